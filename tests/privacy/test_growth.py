"""The cost of a tree, held against exact output probabilities of small trees on neighbouring counts."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.statistics.chi_square import laplace_distribution
from understudy.answers import GROWTH_UNIT
from understudy.domain import Clique
from understudy.errors import UsageError
from understudy.privacy.cost import UNIT, Cost, growth_rule
from understudy.privacy.trees import Halving, Ranges, as_decay, biased_counts, checked_depths, checked_theta

ROUNDING = 1e-9


def _log_chance(above: np.ndarray, scale: float) -> np.ndarray:
    """ln P(above + X > 0): geometric series on either side of 0."""
    rate = 1 / scale
    low = -(1 - np.minimum(above, 0)) * rate - math.log1p(math.exp(-rate))
    high = np.log1p(-np.exp(-np.maximum(above, 1) * rate) / (1 + math.exp(-rate)))
    return np.where(above <= 0, low, high)


def test_chances_are_sums_of_the_distribution() -> None:
    for scale in (0.4, 3.0, 17.5):
        distribution = laplace_distribution(scale, 60.0)
        for above in (-9, -1, 0, 1, 2, 25):
            direct = sum(probability for noise, probability in distribution.items() if above + noise > 0)
            assert _log_chance(np.array(above), scale) == pytest.approx(math.log(direct), abs=1e-9)


def _rule(epsilon: float, decay: int, rows: int = 1) -> tuple[float, int]:
    distribution, bias = growth_rule(Cost(epsilon=round(epsilon * UNIT)), rows, Fraction(decay), "grow")
    return float(distribution.parameter), bias


def _paths(depth: int, most: int) -> np.ndarray:
    """All sequences most ≥ c_0 ≥ c_1 ≥ … ≥ c_depth ≥ 1: the rows of each node on the way of one record."""
    return np.array(list(itertools.combinations_with_replacement(range(most, 0, -1), depth + 1)))


def _largest_loss(paths: np.ndarray, scale: float, bias: int, theta: int) -> float:
    """Largest |log ratio| over all paths and over where the tree stops on the path (or at the public limit)."""
    depths = np.arange(paths.shape[1])
    above = [biased_counts(counts, depths, bias, theta) - theta * GROWTH_UNIT for counts in (paths, paths - 1)]
    split = np.cumsum(_log_chance(above[0], scale) - _log_chance(above[1], scale), axis=1)
    stop = _log_chance(1 - above[0], scale) - _log_chance(1 - above[1], scale)
    before = np.concatenate([np.zeros((len(paths), 1)), split[:, :-1]], axis=1)
    return float(max(np.abs(before + stop).max(), np.abs(split[:, -1]).max()))


PATHS = {depth: _paths(depth, 9) for depth in (0, 1, 3, 6)}
EQUAL = np.repeat(np.arange(1, 60)[:, np.newaxis], 60, axis=1)
"""Paths of equal counts, the worst there are, sixty levels deep."""


@pytest.mark.parametrize("decay", [2, 4, 14])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.0, 8.0, 40.0])
@pytest.mark.parametrize("theta", [0, 4])
def test_no_tree_costs_more_than_its_price(decay: int, epsilon: float, theta: int) -> None:
    scale, bias = _rule(epsilon, decay)
    for paths in (*PATHS.values(), EQUAL):
        assert _largest_loss(paths, scale, bias, theta) <= epsilon * (1 + ROUNDING)


@pytest.mark.parametrize("decay", [2, 4, 14])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_price_is_not_far_above_what_is_lost(decay: int, epsilon: float) -> None:
    scale, bias = _rule(epsilon, decay)
    assert _largest_loss(EQUAL, scale, bias, 0) > 0.5 * epsilon


def test_without_bias_depth_costs() -> None:
    """The planted bug: the counts are not lowered, and sixty layers cost far more than one."""
    scale, _ = _rule(1.0, 2)
    assert _largest_loss(EQUAL, scale, 0, 0) > 10.0


def test_the_bias_is_one_row_at_least() -> None:
    """β = 2: λ ln 2 falls below one row where ε exceeds 3 ln 2 = 2.079."""
    assert _rule(2.07, 2)[1] > GROWTH_UNIT
    assert _rule(2.09, 2)[1] == _rule(100.0, 2)[1] == GROWTH_UNIT


@pytest.mark.parametrize(("decay", "scale", "bias"), [(2, 3.0, 2.0794), (14, 2.0769, 5.4811)])
def test_published_numbers(decay: int, scale: float, bias: float) -> None:
    """ALGORITHMS §2.15 at ε = 1; the bias is rounded up to the grid."""
    found_scale, found_bias = _rule(1.0, decay)
    assert found_scale / GROWTH_UNIT == pytest.approx(scale, abs=5e-5)
    assert bias - 5e-5 <= found_bias / GROWTH_UNIT <= bias + 1 / GROWTH_UNIT


def test_the_bias_buys_the_decay_and_no_more() -> None:
    for decay, epsilon in itertools.product((2, 3, 14, 1000), (0.001, 0.7, 1.9)):
        scale, bias = _rule(epsilon, decay)
        assert math.exp(bias / scale) >= decay
        assert bias == GROWTH_UNIT or math.exp((bias - 1) / scale) < decay


def _binary_tree(leaves: tuple[int, ...], scale: float, bias: int) -> dict[tuple[bool, ...], float]:
    """Probability of every outcome of a binary tree of depth 2 over four codes: root, left child, right child."""
    counts = np.array([sum(leaves), leaves[0] + leaves[1], leaves[2] + leaves[3]])
    probabilities = np.exp(_log_chance(biased_counts(counts, np.array([0, 1, 1]), bias, 0), scale))
    found: dict[tuple[bool, ...], float] = {(False,): 1 - probabilities[0]}
    for left, right in itertools.product((False, True), repeat=2):
        probability = (
            probabilities[0]
            * (probabilities[1] if left else 1 - probabilities[1])
            * (probabilities[2] if right else 1 - probabilities[2])
        )
        found[True, left, right] = float(probability)
    return found


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_whole_trees_of_units_with_several_rows(rows: int) -> None:
    """All tables of at most 3 rows a leaf, a unit of `rows` rows anywhere: every outcome within e^ε."""
    epsilon = 1.5
    scale, bias = _rule(epsilon, 2, rows)
    worst = 0.0
    for leaves in itertools.product(range(4), repeat=4):
        without = _binary_tree(leaves, scale, bias)
        assert sum(without.values()) == pytest.approx(1.0)
        for added in itertools.combinations_with_replacement(range(4), rows):
            more = tuple(count + added.count(place) for place, count in enumerate(leaves))
            with_unit = _binary_tree(more, scale, bias)
            worst = max(worst, *(abs(math.log(with_unit[key] / without[key])) for key in without))
    assert 0.3 * epsilon < worst <= epsilon


def test_counts_are_cut_before_they_can_wrap() -> None:
    biased = biased_counts(np.array([2**53 - 1, 0]), np.array([0, 5]), 2**44, 0)
    assert biased.tolist() == [2**60, -(2**44)]


class Uneven(Halving):
    """One depth too many."""

    @property
    def depths(self) -> np.ndarray:
        return np.zeros(len(self.nodes) + 1, dtype=np.int64)


class Blind(Halving):
    """Looks at no column."""

    @property
    def frontier(self) -> Ranges:
        return Ranges("blind", Clique(), self.nodes)


def test_growths_that_break_the_rules_are_refused() -> None:
    tree = Halving.of("a", 8)
    assert checked_depths(tree, -1, "grow").tolist() == [0]
    with pytest.raises(UsageError, match="depths must rise"):
        checked_depths(tree, 0, "grow")
    with pytest.raises(UsageError, match="depths must rise"):
        checked_depths(replace(tree, depth=2**15), 0, "grow")
    with pytest.raises(UsageError, match="one whole depth per open node"):
        checked_depths(Uneven("x", "a", 0, 9, 9, ((0, 8),)), -1, "grow")
    with pytest.raises(UsageError, match="one column at least"):
        checked_depths(Blind("x", "a", 0, 9, 9, ((0, 8),)), -1, "grow")
    with pytest.raises(UsageError, match="theta must be a whole number"):
        checked_theta(replace(tree, theta=0.5), "grow")  # type: ignore[arg-type]
    for decay in (1.5, math.inf, math.nan, "two", 2.0**21):
        with pytest.raises(UsageError, match="decay must"):
            growth_rule(Cost(epsilon=UNIT), 1, as_decay(decay, "grow"), "grow")  # type: ignore[arg-type]
