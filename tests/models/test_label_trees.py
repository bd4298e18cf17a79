"""Tests of `understudy.models.label_trees`."""

import itertools

import numpy as np
import pytest

from tests.models.small_chain import DOMAIN, RACE_RULE, chain, joint_of, model
from understudy.domain import StructuralZeros
from understudy.errors import UsageError
from understudy.models.label_trees import Attributes, DecisionTree, Ensemble, LabelChain, LabelModel, pick
from understudy.testing import check_model

# Label models: the contract of models, labels for given records, blocks as good as the whole.


@pytest.mark.parametrize("kept", [2**24, 1], ids=["whole", "in blocks"])
def test_contract(kept, monkeypatch):
    monkeypatch.setattr("understudy.models.label_trees._KEPT_ENTRIES", kept)
    made = model()
    check_model(made, joint_of(made).ravel())


def test_a_condition_on_several_columns_is_exact():
    made = model()
    joint = joint_of(made)
    given = made.condition({"race": np.array([1, 2]), "b": np.array([1]), "sex": np.array([0])})
    wanted = np.zeros_like(joint)
    wanted[:, 0, 1, 1:] = joint[:, 0, 1, 1:]
    np.testing.assert_allclose(given.marginal(DOMAIN.everything()), (wanted / wanted.sum()).ravel(), atol=1e-12)
    assert given.total == pytest.approx(12.5 * wanted.sum())
    assert given.condition({"sex": np.array([0, 1])}).total == pytest.approx(given.total)


def test_labels_follow_the_distribution_of_each_record():
    made = model()
    rows = 30_000
    codes = {"a": np.arange(rows) % 3, "b": np.arange(rows) % 2}
    drawn = made.label(codes, np.random.default_rng(1), rows=rows)
    assert set(drawn) == {"sex", "race"}
    cells = drawn["sex"].astype(int) * 3 + drawn["race"]
    for a in range(3):
        for b in range(2):
            mine = (codes["a"] == a) & (codes["b"] == b)
            distribution = made.chain.distribution({"a": np.array([a]), "b": np.array([b])}, 1)[0]
            observed, expected = np.bincount(cells[mine], minlength=6), distribution * mine.sum()
            used = expected > 0
            assert not observed[~used].any()
            assert ((observed - expected)[used] ** 2 / expected[used]).sum() < 25.7
    again = made.label(codes, np.random.default_rng(1), rows=rows)
    assert all(np.array_equal(drawn[name], again[name]) for name in drawn)


def test_records_without_rows_are_labelled_too():
    drawn = model().label({"a": np.zeros(0, int), "b": np.zeros(0, int)}, np.random.default_rng(1), rows=0)
    assert [part.size for part in drawn.values()] == [0, 0]


def test_no_weight_on_possible_cells_is_shared_by_all_of_them():
    made = LabelModel.of(chain(), np.arange(6), np.array([0.0, 0.0, 9.0, 0.0, 0.0, 0.0]), 1.0)
    assert made.cells.tolist() == [0, 1, 3, 4, 5]
    np.testing.assert_allclose(made.probabilities, 0.2)


def test_rules_that_leave_nothing_are_refused():
    nothing = StructuralZeros(DOMAIN.clique(["sex"]), np.ones(2, dtype=bool))
    with pytest.raises(UsageError, match="no combination"):
        LabelModel.of(chain(rules=(nothing,)), np.arange(6), np.ones(6), 1.0)


@pytest.mark.parametrize(
    ("cells", "shares", "total"),
    [
        ([1, 0], [0.5, 0.5], 1.0),
        ([0, 6], [0.5, 0.5], 1.0),
        ([0, 1], [0.5, 0.6], 1.0),
        ([0, 1], [1.5, -0.5], 1.0),
        ([0, 1], [0.5, 0.5], -1.0),
        ([0], [0.5, 0.5], 1.0),
        ([], [], 1.0),
    ],
)
def test_damaged_parts_are_refused(cells, shares, total):
    with pytest.raises(UsageError):
        LabelModel(chain(), np.array(cells, np.int64), np.array(shares, float), total, np.ones(6, dtype=bool))


# Chains: the distribution of labels drawn one after the other, under rules.


CODES = {"a": np.array([0, 1, 2]), "b": np.array([0, 1, 1])}


def test_drawing_one_label_after_the_other_gives_the_distribution():
    made = chain(rules=())
    distribution = made.distribution(CODES, 3)
    rng = np.random.default_rng(5)
    draws = 20_000
    for row in range(3):
        codes = {name: np.full(draws, column[row]) for name, column in CODES.items()}
        sexes = pick(made.ensembles[0].distribution(codes, draws), rng.random(draws))
        races = pick(made.ensembles[1].distribution({**codes, "sex": sexes}, draws), rng.random(draws))
        observed = np.bincount(sexes * 3 + races, minlength=6)
        expected = distribution[row] * draws
        used = expected > 0
        assert not observed[~used].any()
        statistic = ((observed - expected)[used] ** 2 / expected[used]).sum()
        assert statistic < 25.7  # 99.99 % point of 5 degrees of freedom
        wrong = distribution[(row + 1) % 3] * draws
        assert ((observed - wrong)[wrong > 0] ** 2 / wrong[wrong > 0]).sum() > 25.7


def test_excluded_labels_get_nothing_and_the_rest_keeps_its_proportions():
    free, bound = chain(rules=()).distribution(CODES, 3), chain(rules=(RACE_RULE,)).distribution(CODES, 3)
    excluded = np.array([False, False, True] * 2)
    assert not bound[0, excluded].any()
    np.testing.assert_allclose(bound[0, ~excluded], free[0, ~excluded] / free[0, ~excluded].sum())
    np.testing.assert_allclose(bound[1:], free[1:])


def test_all_mass_on_excluded_labels_is_shared_by_the_others():
    attributes = Attributes.of({"b": np.arange(2)})
    only = Ensemble.of_counts("race", attributes, [DecisionTree.leaf((2,))], [[0, 0, 7]])
    sexes = Ensemble.of_counts("sex", attributes, [DecisionTree.leaf((2,))], [[1, 1]])
    made = LabelChain(DOMAIN, (sexes, only), (RACE_RULE,))
    np.testing.assert_allclose(made.distribution({"a": np.array([0]), "b": np.array([0])}, 1)[0], [0.25, 0.25, 0] * 2)


def test_a_record_that_no_rule_allows_is_labelled_without_rules():
    everything = StructuralZeros(DOMAIN.clique(["b", "sex"]), np.array([1, 0, 1, 0], dtype=bool))
    free, bound = chain(rules=()).distribution(CODES, 3), chain(rules=(everything,)).distribution(CODES, 3)
    np.testing.assert_allclose(bound[0], free[0])


def test_blocks_are_the_distribution_in_pieces(monkeypatch):
    made = chain()
    whole = made.distribution(CODES, 3)
    monkeypatch.setattr("understudy.models.label_trees._BLOCK_ENTRIES", 6)
    for part, distribution in made.blocks(CODES, 3):
        assert part.stop - part.start == 1
        np.testing.assert_array_equal(distribution, whole[part])


def test_an_entry_of_probability_0_is_never_picked():
    distribution = np.array([[0.0, 0.5, 0.0, 0.5, 0.0]])
    for uniform in (0.0, 0.25, 0.5, np.nextafter(1.0, 0.0)):
        assert pick(distribution, np.array([uniform]))[0] in (1, 3)


def test_damaged_chains_are_refused():
    good = chain()
    assert good.faults() == []
    assert LabelChain(DOMAIN, ()).faults()
    assert LabelChain(DOMAIN, good.ensembles[::-1]).faults(), "race splits on sex, which is drawn later"
    assert LabelChain(DOMAIN, (good.ensembles[0], good.ensembles[0])).faults()


# Ensembles: leaf distributions by hand, averages over trees, damaged ones refused.


ATTRIBUTES = Attributes.of({"a": np.arange(2)})
LEAF, SPLIT = DecisionTree.leaf((2,)), DecisionTree(np.array([0, -1, -1]), (2,))
SIZES = {"a": 2, "sex": 2}


def test_the_printed_leaf():
    ensemble = Ensemble.of_counts("sex", ATTRIBUTES, [LEAF], [[6 - 1, 4 + 3]])
    assert round(float(ensemble.tables[0][0, 0]), 4) == 0.4167


def test_the_printed_mean_of_two_trees():
    ensemble = Ensemble.of_counts("sex", ATTRIBUTES, [LEAF, LEAF], [[5, 7], [3, 9]])
    assert round(float(ensemble.distribution({"a": np.array([0])}, 1)[0, 0]), 4) == 0.3333


def test_negative_counts_are_nothing_and_nothing_is_uniform():
    ensemble = Ensemble.of_counts("sex", ATTRIBUTES, [SPLIT], [[-3, 4, -1, -2]])
    assert ensemble.distribution({"a": np.array([0, 1])}, 2).tolist() == [[0.0, 1.0], [0.5, 0.5]]
    assert ensemble.used == ("a",)
    assert Ensemble.of_counts("sex", ATTRIBUTES, [LEAF], [[1, 1]]).used == ()


def test_a_tree_drawn_at_random_gives_the_same_distribution():
    rng = np.random.default_rng(3)
    ensemble = Ensemble.of_counts("sex", ATTRIBUTES, [LEAF, SPLIT], [[2, 8], [9, 1, 5, 5]])
    distribution = ensemble.distribution({"a": np.array([0])}, 1)[0]
    draws = 20_000
    tree = rng.integers(0, 2, draws)
    shares = np.where(tree == 0, ensemble.tables[0][0, 0], ensemble.tables[1][0, 0])
    found = (rng.random(draws) < shares).mean()
    assert abs(found - distribution[0]) < 5 * np.sqrt(distribution[0] * distribution[1] / draws)


def test_damaged_ensembles_are_refused():
    good = Ensemble.of_counts("sex", ATTRIBUTES, [SPLIT], [[1, 1, 1, 1]])
    assert good.faults(SIZES) == []
    tables = (np.array([[0.5, 0.6], [0.5, 0.5]]),)
    assert Ensemble("sex", ATTRIBUTES, good.trees, tables).faults(SIZES)
    assert Ensemble("sex", ATTRIBUTES, good.trees, (np.array([[0.5, 0.5]]),)).faults(SIZES)
    assert Ensemble("sex", ATTRIBUTES, good.trees, (np.array([[1.5, -0.5], [0.5, 0.5]]),)).faults(SIZES)
    assert Ensemble("sex", ATTRIBUTES, (), ()).faults(SIZES)
    assert Ensemble("a", ATTRIBUTES, good.trees, good.tables).faults(SIZES)


# Trees: every record in one leaf, found as by walking; damaged trees are refused.


TREE_ATTRIBUTES = Attributes.of({"a": np.array([0, 1, 1]), "b": np.arange(2), "c": np.arange(4)})
TREE = DecisionTree(np.array([2, -1, 0, -1, 1, -1, 1, -1, -1, -1, -1]), TREE_ATTRIBUTES.fan_outs)


def _walked(tree, attributes, record):
    """The leaf of one record, node by node."""
    node = 0
    while tree.splits[node] >= 0:
        column = int(tree.splits[node])
        node = int(tree.places[node]) + int(attributes.groups[column][record[column]])
    return int((tree.splits[:node] < 0).sum())


def test_every_combination_reaches_exactly_one_leaf():
    records = list(itertools.product(range(3), range(2), range(4)))
    codes = {name: np.array(column) for name, column in zip("abc", zip(*records, strict=True), strict=True)}
    leaves = TREE.leaf_of(TREE_ATTRIBUTES.grouped(codes, len(records)))
    assert leaves.tolist() == [_walked(TREE, TREE_ATTRIBUTES, record) for record in records]
    assert set(leaves.tolist()) == set(range(TREE.leaves))
    assert TREE.faults() == []
    assert (TREE.leaves, TREE.used) == (7, (0, 1, 2))


def test_pooled_codes_share_a_leaf():
    codes = {"a": np.array([1, 2]), "b": np.array([0, 0]), "c": np.array([1, 1])}
    first, second = TREE.leaf_of(TREE_ATTRIBUTES.grouped(codes, 2))
    assert first == second


def test_one_leaf_holds_everybody():
    tree = DecisionTree.leaf(TREE_ATTRIBUTES.fan_outs)
    codes = {"a": np.array([0, 2]), "b": np.array([0, 1]), "c": np.array([3, 0])}
    assert tree.leaf_of(TREE_ATTRIBUTES.grouped(codes, 2)).tolist() == [0, 0]
    assert (tree.leaves, tree.used) == (1, ())


def test_leaves_split_once_more_keep_what_was_there():
    larger = DecisionTree(TREE.splits, TREE.fan_outs).with_leaves_split(1)
    assert larger.faults() == []
    assert larger.leaves == 2 * TREE.leaves
    records = list(itertools.product(range(3), range(2), range(4)))
    codes = {name: np.array(column) for name, column in zip("abc", zip(*records, strict=True), strict=True)}
    grouped = TREE_ATTRIBUTES.grouped(codes, len(records))
    before, after = TREE.leaf_of(grouped), larger.leaf_of(grouped)
    assert after.tolist() == [_walked(larger, TREE_ATTRIBUTES, record) for record in records]
    for leaf in range(larger.leaves):  # every new leaf lies in one old leaf
        assert len(set(before[after == leaf].tolist())) <= 1


@pytest.mark.parametrize("splits", [[], [3], [-2], [1], [1, -1], [1, -1, -1, -1], [-1, 1, -1], [0, 0, -1, -1]], ids=str)
def test_a_damaged_tree_is_refused(splits):
    assert DecisionTree(np.array(splits, dtype=np.int64), TREE_ATTRIBUTES.fan_outs).faults()


@pytest.mark.parametrize(
    "attributes",
    [
        Attributes.of({"x": np.array([0, 1])}),
        Attributes(("a", "a"), (np.arange(3), np.arange(3))),
        Attributes.of({"a": np.array([0, 1])}),
        Attributes.of({"a": np.array([0, 2, 2])}),
        Attributes.of({"a": np.array([-1, 0, 1])}),
    ],
)
def test_damaged_groups_are_refused(attributes):
    assert attributes.faults({"a": 3, "b": 2})
