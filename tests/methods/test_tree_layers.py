"""Tests of `understudy.methods.tree_layers`."""

from fractions import Fraction

import numpy as np
import pytest

from tests.methods.door import VOTERS, door, epsilon, letters, rho, rows_of
from tests.methods.test_laplace import Fixed
from understudy.domain import Domain, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.method import PublicFacts
from understudy.methods.random_partition import RandomPartition
from understudy.methods.steps import Steps
from understudy.methods.steps_tree import NodesOrCells, fit_stopped, stopped
from understudy.methods.tree_layers import (
    TreeCosts,
    TreeFit,
    allocation_weights,
    average_variance,
    best_shares,
    check_cells,
    fit_tree,
    noise_variance,
    root_above,
    split_exactly,
)
from understudy.models.histogram_tree import TreeStructure
from understudy.privacy.cost import Cost
from understudy.testing.doubles import NoNoise, SeededRandomizer

PAIR = letters({"a": 2, "b": 2})


@pytest.mark.parametrize(
    ("layers", "allocation", "shares", "expected"),
    [
        (2, "equal", "", ["1/3", "1/3", "1/3"]),
        (0, "half_leaf", "", ["1"]),
        (2, "half_leaf", "", ["1/4", "1/4", "1/2"]),
        (3, "half_leaf", "", ["1/6", "1/6", "1/6", "1/2"]),
        (1, "custom", "0.3, 0.7", ["3/10", "7/10"]),
        (2, "custom", "1/6,1/3,1/2", ["1/6", "1/3", "1/2"]),
    ],
)
def test_schemes(layers, allocation, shares, expected):
    assert allocation_weights(layers, allocation, shares) == list(map(Fraction, expected))


@pytest.mark.parametrize("shares", ["", "0.5,0.5", "0.2,0.3,0.6", "0,0.5,0.5", "a,b,c", "1/0,1,1", "-0.5,1,0.5"])
def test_wrong_shares_are_refused(shares):
    with pytest.raises(UsageError, match="shares"):
        allocation_weights(2, "custom", shares)


def test_a_scheme_that_is_not_known():
    with pytest.raises(UsageError, match="half_leaf"):
        allocation_weights(2, "half_leafs")
    with pytest.raises(UsageError, match="shares"):
        allocation_weights(2, "equal", "0.2,0.3,0.5")


@pytest.mark.parametrize("layers", [0, 1, 2, 3, 6, 14])
@pytest.mark.parametrize("scheme", ["equal", "half_leaf"])
@pytest.mark.parametrize("units", [1_000_000_000_000, 333_333_333_333, 7_777])
def test_costs_add_up_to_epsilon_exactly(layers, scheme, units):
    costs = TreeCosts.shared(Cost(epsilon=units), layers, scheme, total_share=0.01)
    assert costs.spent == Cost(epsilon=units)
    assert len(costs.layers) == layers
    never_more = TreeCosts.shared(Cost(rho=units), layers, scheme, total_share=0.01).spent
    assert units - layers - 2 <= never_more.rho <= units


def test_equal_costs_stay_equal_with_gaussian_noise():
    upper, leaves = split_exactly(Cost(rho=10), [1.0, 1.0, 1.0])
    assert [*upper, leaves] == [Cost(rho=3)] * 3


def test_the_printed_tree_through_the_door():
    """The binary tree of the specification: true counts plus given noise are its noisy counts."""
    table = rows_of({"a": [0] * 9 + [1] * 10, "b": [0] * 7 + [1] * 2 + [0] * 5 + [1] * 5})
    noise = ([20 - 19], [11 - 9, 8 - 10], [0, 0, 0, 6 - 5])
    structure = TreeStructure.root(Domain.of({"a": 2, "b": 2})).split(["a"])
    third = epsilon(0.25)
    curator = door(table, PAIR, epsilon(0.75), Fixed(*noise))
    model = fit_tree(curator, structure, TreeCosts(third, (third,), third), TreeFit())
    np.testing.assert_allclose(model.signed, [7.7619, 2.7619, 4.0952, 5.0952], atol=5e-5)
    assert model.total == pytest.approx(19.7143, abs=5e-5)
    np.testing.assert_allclose(model.probabilities, model.signed / model.total)
    assert curator.left == Cost()
    assert [answer.name for answer in curator.transcript] == ["total", "layer 1", "a × b"]


def test_a_public_number_of_rows_is_the_root():
    table = rows_of({"a": [0] * 9 + [1] * 10, "b": [0] * 7 + [1] * 2 + [0] * 5 + [1] * 5})
    structure = TreeStructure.root(Domain.of({"a": 2, "b": 2})).split(["a"])
    costs = TreeCosts(Cost(), (epsilon(0.5),), epsilon(0.5))
    curator = door(table, PAIR, epsilon(1), Fixed([2, -2], [0, 0, 0, 1]))
    model = fit_tree(curator, structure, costs, TreeFit(known_rows=19))
    np.testing.assert_allclose(model.signed.sum(), 19.0)
    assert model.total == 19.0


@pytest.mark.parametrize("negatives", ["clip_rescale", "norm_sub"])
def test_impossible_cells_stay_empty_and_take_no_part(negatives):
    rng = np.random.default_rng(1)
    codes = {"registered": rng.integers(0, 2, 60), "voted": np.zeros(60, dtype=int), "age": rng.integers(0, 5, 60)}
    curator = door(rows_of(codes), VOTERS, epsilon(0.02))
    structure = TreeStructure.root(curator.domain).split(["voted"])
    costs = TreeCosts.shared(epsilon(0.02), 1)
    model = fit_tree(curator, structure, costs, TreeFit(negatives))
    table = model.probabilities.reshape(2, 2, 5)
    assert not table[0, 1].any()
    assert not model.signed.reshape(2, 2, 5)[0, 1].any()
    # The layer's estimates are the sums over possible cells alone.
    assert model.signed.sum() == pytest.approx(model.signed_marginal(curator.domain.clique(["voted"])).sum())


def test_layers_that_are_not_bought_are_not_asked():
    curator = door(rows_of({"a": [0, 1, 1], "b": [0, 0, 1]}), PAIR, rho(1), NoNoise())
    structure = TreeStructure.root(curator.domain).split(["a"])
    model = fit_tree(curator, structure, TreeCosts(Cost(), (Cost(),), rho(1)), TreeFit())
    assert [answer.name for answer in curator.transcript] == ["a × b"]
    np.testing.assert_allclose(model.signed, [1, 0, 1, 1])


def test_a_table_that_is_too_large_is_refused_before_anything_is_asked():
    facts = PublicFacts(Domain.of({"a": 1000, "b": 1000}), (), 1)
    assert check_cells(facts, 10**6, "here") == 10**6
    with pytest.raises(ResourceError, match="most_cells"):
        check_cells(facts, 10**6 - 1, "here")


def test_rules_that_leave_nothing_are_refused():
    domain = Domain.of({"a": 2, "b": 2})
    facts = PublicFacts(domain, (StructuralZeros(domain.clique(["a"]), np.ones(2, dtype=bool)),), 1)
    with pytest.raises(UsageError, match="possible"):
        check_cells(facts, 10**6, "here")


def test_options_of_the_fit_are_checked_where_they_are_given():
    for options in ({"negatives": "norm_cut"}, {"rounding": "up"}, {"margins": "none"}):
        for method in (Steps, RandomPartition):
            with pytest.raises(UsageError, match=next(iter(options))):
                method(**options)
    with pytest.raises(UsageError, match="known_rows must be a whole number, at least 0, got -1"):
        Steps(n_policy="public", known_rows=-1)


def dense(fanouts, variances):
    """The average over all ranges by linear algebra."""
    sizes = np.cumprod([1, *fanouts])
    leaves = sizes[-1]
    rows = np.concatenate([np.repeat(np.eye(size), leaves // size, axis=1) for size in sizes[1:]])
    weights = np.repeat(1.0 / np.array(variances), sizes[1:])
    covariance = np.linalg.inv(rows.T @ (rows * weights[:, None]))
    prefix = np.pad(covariance, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
    spread = np.diag(prefix)
    ranges = spread[:, None] + spread - 2 * prefix
    return ranges[np.triu_indices(leaves + 1, 1)].mean()


@pytest.mark.parametrize(
    ("fanouts", "variances"),
    [
        ([4], [1.0]),
        ([2, 2], [1.0, 1.0]),
        ([3, 2, 4], [1.0, 2.5, 0.7]),
        ([2, 5], [3.0, 1.0]),
        ([5, 1, 2], [3.0, 1.0, 2.0]),
        ([2] * 6, [6.0] * 6),
        ([7, 3], [1e6, 1.0]),
    ],
)
def test_equals_enumeration(fanouts, variances):
    assert average_variance(fanouts, variances) == pytest.approx(dense(fanouts, variances), rel=1e-10)


def test_a_level_that_is_not_measured():
    assert average_variance([2, 3], [np.inf, 1.0]) == pytest.approx(dense([6], [1.0]))


@pytest.mark.parametrize(("leaves", "levels", "branching"), [(1, 1, 1), (8, 3, 2), (9, 3, 3), (10**12, 4, 1_000)])
def test_the_smallest_branching_that_reaches(leaves, levels, branching):
    assert root_above(leaves, levels) == branching


@pytest.mark.parametrize("zcdp", [False, True])
def test_shares_are_at_a_minimum(zcdp):
    fanouts = [4, 2, 3]
    shares = np.array(best_shares(fanouts, zcdp=zcdp))
    assert shares.sum() == pytest.approx(1.0, abs=1e-3)

    def loss(shares):
        return average_variance(fanouts, [noise_variance(part, zcdp=zcdp) for part in shares / shares.sum()])

    at_best = loss(shares)
    assert at_best < loss(np.ones(3))
    for place in np.flatnonzero(shares):
        for step in (-0.03, 0.03):
            moved = shares.copy()
            moved[place] += step
            assert loss(moved) > at_best * (1 - 1e-4)


def test_a_level_that_is_not_worth_it_gets_nothing():
    shares = best_shares([4, 2, 3], zcdp=False)
    assert shares[1] == 0.0
    rest = np.array(shares)[[0, 2]]
    noise = [noise_variance(share, zcdp=False) for share in rest]
    assert average_variance([4, 6], noise) < average_variance([4, 2, 3], [9.0] * 3)


def test_one_level_gets_everything():
    assert best_shares([9], zcdp=False) == [1.0]


# Paths that end early: every record in one cell, every cell of an ended path counted again, and better for it.


SCHEMA = letters({"a": 2, "b": 3, "c": 4})


def tree_of(curator) -> TreeStructure:
    """a = 0 ends after the first layer, a = 1 goes on with b."""
    return TreeStructure.root(curator.domain).split(["a"]).split([None, "b"])


def some_table(rows: int = 200) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {name: rng.integers(0, size, rows) for name, size in (("a", 2), ("b", 3), ("c", 4))}


def test_every_record_lies_in_one_cell_which_is_its_node_or_its_own():
    curator = door(rows_of(some_table()), SCHEMA, epsilon(1))
    tree = tree_of(curator)
    assert stopped(tree, 0).tolist() == [False]
    assert stopped(tree, 2).tolist() == [True, False, False, False]
    partition = NodesOrCells.of(tree, 2)
    codes = dict(zip("abc", np.indices((2, 3, 4)).reshape(3, -1), strict=True))
    cells = partition.assign(codes)
    assert partition.cells == 3 + 12
    expected = np.where(codes["a"] == 1, codes["b"], 3 + 4 * codes["b"] + codes["c"])
    assert cells.tolist() == expected.tolist()


def test_without_noise_the_table_comes_back():
    codes = some_table()
    curator = door(rows_of(codes), SCHEMA, epsilon(1), NoNoise())
    tree = tree_of(curator)
    costs = TreeCosts.shared(epsilon(1), 2, "equal", total_share=0.1)
    model = fit_stopped(curator, tree, costs, TreeFit())
    exact = np.bincount(np.ravel_multi_index((codes["a"], codes["b"], codes["c"]), (2, 3, 4)), minlength=24)
    assert model.signed == pytest.approx(exact)
    assert model.total == pytest.approx(200)
    assert curator.left == Cost()
    names = [answer.name for answer in curator.transcript]
    assert names == ["total", "layer 1", "layer 2", "a × b × c"]


def test_a_known_number_of_rows_is_kept():
    curator = door(rows_of(some_table()), SCHEMA, epsilon(1))
    costs = TreeCosts.shared(epsilon(1), 2, "equal")
    model = fit_stopped(curator, tree_of(curator), costs, TreeFit(known_rows=77))
    assert model.total == 77
    assert model.signed.sum() == pytest.approx(77)


@pytest.mark.parametrize(("cost", "gain"), [(epsilon(3), 2.0), (rho(3), 2.0)])
def test_cells_of_an_ended_path_are_counted_more_often(cost, gain):
    # Two counts of equal cost halve the variance; the other path keeps one count of each cell and one of its node.
    errors = {"ended": [], "going": [], "plain": []}  # type: ignore[var-annotated]
    codes = {"a": np.zeros(0, int), "b": np.zeros(0, int), "c": np.zeros(0, int)}
    for seed in range(150):
        curator = door(rows_of(codes), SCHEMA, cost, SeededRandomizer(seed))
        tree = tree_of(curator)
        costs = TreeCosts.shared(cost, 2, "equal")
        model = fit_stopped(curator, tree, costs, TreeFit(known_rows=0))
        errors["ended"].append(model.signed[:12])
        errors["going"].append(model.signed[12:])
        curator = door(rows_of(codes), SCHEMA, cost, SeededRandomizer(1_000 + seed))
        errors["plain"].append(fit_tree(curator, tree, costs, TreeFit(known_rows=0)).signed[:12])
    spread = {name: float(np.mean(np.square(found))) for name, found in errors.items()}
    assert spread["plain"] / spread["ended"] == pytest.approx(gain, rel=0.35)
    assert spread["going"] / spread["ended"] > 1.2
    assert abs(np.mean(errors["ended"])) < 0.2
