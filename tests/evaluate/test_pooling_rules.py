"""Tests of `understudy.evaluate.pooling_rules`."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import chi2

from understudy.errors import UsageError
from understudy.evaluate.pooling_rules import Pooled, pool_chi_squares, pool_liu, pool_p_values, pool_raghunathan

# Liu's rule: the vectors, and refusals.


def test_first_vector() -> None:
    found = pool_liu([0.42, 0.51, 0.37, 0.46, 0.40], [0.0100, 0.0110, 0.0090, 0.0105, 0.0095])
    assert (found.estimate, found.between, found.within, found.variance) == pytest.approx(
        (0.432, 0.00297, 0.01, 0.010594)
    )
    assert found.degrees == pytest.approx(1272.35, abs=0.01)
    assert (found.low, found.high) == pytest.approx((0.230074, 0.633926), abs=1e-6)


def test_second_vector() -> None:
    found = pool_liu([0.10, 0.90, 0.35, 0.75, 0.40], [0.01] * 5)
    assert found.variance == pytest.approx(0.03075)
    assert found.degrees == pytest.approx(8.78444, abs=1e-5)
    assert (found.low, found.high) == pytest.approx((0.101827, 0.898173), abs=1e-6)


def test_equal_copies_are_normal() -> None:
    found = pool_liu([1.0, 1.0], [4.0, 4.0], level=0.9)
    assert found.degrees is None
    assert found.high == pytest.approx(1 + 1.6448536 * 2)


@pytest.mark.parametrize(
    ("estimates", "variances", "level"),
    [([1.0], [1.0], 0.95), ([1.0, 2.0], [1.0], 0.95), ([1.0, float("nan")], [1.0, 1.0], 0.95),
     ([1.0, 2.0], [1.0, -1.0], 0.95), ([1.0, 2.0], [1.0, 1.0], 1.0), ([], [], 0.95)],
)  # fmt: skip
def test_refusals(estimates: list[float], variances: list[float], level: float) -> None:
    with pytest.raises(UsageError, match="pool"):
        pool_liu(estimates, variances, level=level)


# Pooled χ² tests: the vectors, limits, and refusals.


def test_pooling_chi_square_first_vector() -> None:
    found = pool_chi_squares([5, 12, 3, 20, 7], 3)
    assert (found.spread, found.statistic, found.denominator, found.p_value) == pytest.approx(
        (1.397662, 0.432438, 6.089180, 0.737459), abs=1e-6
    )


def test_pooling_chi_square_second_vector() -> None:
    found = pool_chi_squares([11.2, 9.8, 14.1, 8.7, 12.0], 4)
    assert (found.spread, found.statistic, found.p_value) == pytest.approx((0.115021, 2.347461, 0.056623), abs=1e-6)
    assert found.denominator == pytest.approx(163.62, abs=0.01)


def test_equal_statistics_are_a_chi_square() -> None:
    found = pool_chi_squares([9.0, 9.0, 9.0], 3)
    assert found.denominator is None
    assert found.p_value == pytest.approx(chi2.sf(9.0, 3))


def test_scattered_statistics_prove_nothing() -> None:
    assert pool_chi_squares([0.0, 0.0, 200.0], 2).p_value == 1


def test_p_values_are_inverted() -> None:
    statistics = [5.0, 12.0, 3.0]
    from_p = pool_p_values([float(chi2.sf(one, 3)) for one in statistics], 3)
    assert from_p.p_value == pytest.approx(pool_chi_squares(statistics, 3).p_value)


@pytest.mark.parametrize(
    ("statistics", "degrees"), [([1.0], 2), ([1.0, 2.0], 0), ([1.0, -2.0], 2), ([1.0, float("inf")], 2)]
)
def test_pooling_chi_square_refusals(statistics: list[float], degrees: float) -> None:
    with pytest.raises(UsageError, match="pool"):
        pool_chi_squares(statistics, degrees)
    with pytest.raises(UsageError, match="p-values"):
        pool_p_values([0.5, 0.0], 2)


def test_raghunathan_by_hand() -> None:
    found = pool_raghunathan([0.10, 0.90, 0.35, 0.75, 0.40], [0.01] * 5)
    assert found.between == pytest.approx(0.10375)
    assert found.variance == pytest.approx(1.2 * 0.10375 - 0.01)
    assert found.degrees == pytest.approx(4 * (1 - 0.01 / 0.1245) ** 2)
    assert (found.low, found.high) == pytest.approx((-0.511047, 1.511047), abs=1e-6)


def test_raghunathan_where_the_difference_is_not_above_zero() -> None:
    found = pool_raghunathan([0.42, 0.51, 0.37, 0.46, 0.40], [0.0100, 0.0110, 0.0090, 0.0105, 0.0095])
    assert found.variance == pytest.approx(0.01)
    assert found.degrees is None
    assert found.high - found.low == pytest.approx(2 * 1.959964 * 0.1, abs=1e-6)


@pytest.mark.parametrize(("rule", "posterior"), [(pool_raghunathan, True), (pool_liu, False)])
def test_each_rule_covers_for_its_kind_of_copies(rule: Callable[..., Pooled], *, posterior: bool) -> None:
    """Means of normal samples around a posterior draw of the mean, or around an estimate with noise of its own."""
    rng, size, copies, trials = np.random.default_rng(11), 400, 10, 4000
    covered = 0
    for _ in range(trials):
        mean = rng.normal(scale=size**-0.5)  # of the original sample; the truth is 0
        centres = mean + rng.normal(scale=size**-0.5 if posterior else 0.2, size=copies)
        found = rule(rng.normal(centres, size**-0.5).tolist(), [1 / size] * copies)
        covered += found.low <= 0.0 <= found.high
    # Five standard deviations below 95 %.
    assert covered / trials > 0.95 - 5 * math.sqrt(0.95 * 0.05 / trials)
