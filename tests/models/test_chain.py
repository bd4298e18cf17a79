"""Chains: the distribution of labels drawn one after the other, under rules."""

import numpy as np

from tests.models.small_chain import DOMAIN, RACE_RULE, chain
from understudy.domain import StructuralZeros
from understudy.models.label_trees import Attributes, DecisionTree, Ensemble, LabelChain, pick

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
