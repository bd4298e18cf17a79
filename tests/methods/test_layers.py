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
from understudy.methods.tree_layers import TreeCosts, TreeFit, allocation_weights, check_cells, fit_tree, split_exactly
from understudy.models.histogram_tree import TreeStructure
from understudy.privacy.cost import Cost
from understudy.testing.doubles import NoNoise

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
def test_prices_add_up_to_epsilon_exactly(layers, scheme, units):
    costs = TreeCosts.shared(Cost(epsilon=units), layers, scheme, total_share=0.01)
    assert costs.spent == Cost(epsilon=units)
    assert len(costs.layers) == layers
    never_more = TreeCosts.shared(Cost(rho=units), layers, scheme, total_share=0.01).spent
    assert units - layers - 2 <= never_more.rho <= units


def test_equal_prices_stay_equal_with_gaussian_noise():
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
    with pytest.raises(UsageError, match="known_rows: must be a whole number, at least 0, got -1"):
        Steps(n_policy="public", known_rows=-1)
