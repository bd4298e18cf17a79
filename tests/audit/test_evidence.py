"""Log likelihood ratios are exact: weighted with them, the chances of all answers without the unit add up to 1."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from understudy.audit.games import log_ratio, sampled_ratio
from understudy.counts.source import LabelCounts, OccupiedCells
from understudy.domain import GROWTH_UNIT, Distribution
from understudy.privacy.randomizer import Request
from understudy.testing.replay import Exact, Exchange, split_probability

LAPLACE = Distribution("laplace", Fraction(3, 2))
GAUSSIAN = Distribution("gaussian", Fraction(4))
REACH = np.arange(-80, 81)


def _chances(distribution: Distribution) -> np.ndarray:
    weights = -np.abs(REACH) / distribution.scale
    if distribution.kind == "gaussian":
        weights = -(REACH**2) / (2 * distribution.scale**2)
    return np.exp(weights) / np.exp(weights).sum()


def _ratio(request: Request, without: Exact, with_unit: Exact, answer: object) -> float:
    return log_ratio(Exchange(request, without, answer), Exchange(request, with_unit, answer))


@pytest.mark.parametrize("distribution", [LAPLACE, GAUSSIAN])
def test_noisy_counts(distribution: Distribution) -> None:
    request = Request("measure", "a", 2, distribution, Fraction(1))
    without, with_unit = np.array([3, 0]), np.array([3, 2])
    chances = _chances(distribution)
    total = sum(
        chance * math.exp(_ratio(request, without, with_unit, np.array([3, noise])))
        for noise, chance in zip(REACH.tolist(), chances, strict=True)
    )
    assert total == pytest.approx(1.0, abs=1e-6)


def test_choices_of_one_option_and_of_one_in_each_cell() -> None:
    masked = np.iinfo(np.int64).min
    rate = Fraction(1, 4)
    one, other = np.array([[0, 4, 2], [masked, 1, 1]]), np.array([[1, 2, 2], [masked, 3, 0]])

    def chances(row: np.ndarray) -> np.ndarray:
        weights = np.where(row == masked, 0.0, np.exp(float(rate) * np.where(row == masked, 0, row)))
        return np.asarray(weights / weights.sum())

    single = Request("select", "a", 3, None, Fraction(1), rate)
    found = [_ratio(single, other[0], one[0], option) for option in range(3)]
    assert np.exp(found) == pytest.approx(chances(one[0]) / chances(other[0]))
    each = Request("select within", "a", 3, None, Fraction(1), rate)
    total = 0.0
    for picks in itertools.product(range(3), (1, 2)):
        chance = chances(other[0])[picks[0]] * chances(other[1])[picks[1]]
        total += chance * math.exp(_ratio(each, other, one, np.array(picks)))
    assert total == pytest.approx(1.0)


def test_growing_trees() -> None:
    scale = Fraction(2 * GROWTH_UNIT)
    request = Request("grow", "a", 1, Distribution("laplace", scale), Fraction(GROWTH_UNIT), bias=GROWTH_UNIT)
    without, with_unit = np.array([0]), np.array([GROWTH_UNIT])
    split = math.exp(float(split_probability(without, scale)[0]))
    total = sum(
        chance * math.exp(_ratio(request, without, with_unit, np.array([said])))
        for said, chance in ((True, split), (False, 1 - split))
    )
    assert total == pytest.approx(1.0)


def _shown(threshold: int, count: int, *, sparse: bool) -> list[tuple[object, float]]:
    """Every answer about cell or label 7 with its chance: a value from the threshold on, or nothing."""
    chances = dict(zip((REACH + count).tolist(), _chances(LAPLACE), strict=True))
    kept = [(value, chance) for value, chance in chances.items() if value >= threshold]
    rest = 1 - sum(chance for _, chance in kept)

    def answer(values: list[int]) -> object:
        counts = np.array(values, dtype=np.int64)
        return OccupiedCells(np.full(counts.size, 7), counts) if sparse else LabelCounts(("g",) * counts.size, counts)

    return [(answer([]), rest), *((answer([value]), chance) for value, chance in kept)]


@pytest.mark.parametrize("threshold", [1, 4])
def test_cells_of_a_sparse_table_and_labels(threshold: int) -> None:
    nothing, one = np.zeros(0, dtype=np.int64), np.array([1])
    sparse = Request("sparse", "a", 100, LAPLACE, Fraction(1), threshold=threshold)
    empty, held = OccupiedCells(nothing, nothing), OccupiedCells(np.array([7]), one)
    total = sum(p * math.exp(_ratio(sparse, empty, held, answer)) for answer, p in _shown(threshold, 0, sparse=True))
    assert total == pytest.approx(1.0, abs=1e-6)
    labels = Request("discover", "a", 1, LAPLACE, Fraction(1), threshold=threshold)
    few, more = LabelCounts(("g",), np.array([1])), LabelCounts(("g",), np.array([2]))
    total = sum(p * math.exp(_ratio(labels, few, more, answer)) for answer, p in _shown(threshold, 1, sparse=False))
    assert total == pytest.approx(1.0, abs=1e-6)


def test_a_label_that_nobody_holds_cannot_be_shown() -> None:
    request = Request("discover", "a", 1, LAPLACE, Fraction(1), threshold=2)
    held, none = LabelCounts(("g",), np.array([1])), LabelCounts((), np.zeros(0, dtype=np.int64))
    shown = LabelCounts(("g",), np.array([3]))
    assert _ratio(request, none, held, shown) == 1000.0
    hidden = LabelCounts((), np.zeros(0, dtype=np.int64))
    assert -1.0 < _ratio(request, none, held, hidden) < 0.0


def test_sums_over_units_that_nobody_knows() -> None:
    """Of two kinds of units, 2 and 1 of them, and 2 and 2 with the unit; answers are whole numbers."""
    request = Request("train", "a", 1, GAUSSIAN, Fraction(3), rate=Fraction(1, 2), layer=1)
    vectors = [np.array([3.0]), np.array([-2.0])]
    rate = -math.expm1(-0.5)

    def chance(answer: int, held: tuple[int, int]) -> float:
        found = 0.0
        for coins in itertools.product((0, 1), repeat=sum(held)):
            mean = 3 * sum(coins[: held[0]]) - 2 * sum(coins[held[0] :])
            took = sum(coins)
            found += rate**took * (1 - rate) ** (len(coins) - took) * math.exp(-((answer - mean) ** 2) / 8)
        return found

    for answer in (-9, -2, 0, 1, 5, 12):
        exchange = Exchange(request, np.array([0]), np.array([answer]))
        found = sampled_ratio(exchange, vectors, ([2, 1], [2, 2]))
        assert found == pytest.approx(math.log(chance(answer, (2, 2)) / chance(answer, (2, 1))))
