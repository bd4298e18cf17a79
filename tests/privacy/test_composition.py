"""ε by exact summation: never below brute force, close above it, and below what zCDP gives."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nets.lower_bound import exact_epsilon
from understudy.domain import Distribution
from understudy.privacy.composition import _GRID_STEPS, tight_epsilon, tight_factor
from understudy.privacy.cost import epsilon_of_rho


def _by_enumeration(variances: list[float], delta: float) -> float:
    """All combinations of noise, with their losses."""
    losses, masses = np.zeros(1), np.ones(1)
    for variance in variances:
        reach = int(14 * math.sqrt(variance)) + 5
        noise = np.arange(-reach, reach + 1)
        distribution = np.exp(-(noise**2) / (2 * variance))
        losses = (losses[:, None] + (1 - 2 * noise)[None, :] / (2 * variance)).ravel()
        masses = (masses[:, None] * (distribution / distribution.sum())[None, :]).ravel()
        losses, masses = losses[masses > 1e-22], masses[masses > 1e-22]
    low, high = 0.0, 100.0
    for _ in range(70):
        middle = (low + high) / 2
        above = losses > middle
        failure = float(np.sum(masses[above] * -np.expm1(middle - losses[above])))
        low, high = (middle, high) if failure > delta else (low, middle)
    return high


@pytest.mark.parametrize(
    ("variances", "delta"),
    [([4, 9], 1e-6), ([4, 9, 12.5], 1e-5), ([6, 6, 6], 1e-6), ([1, 1], 1e-4), ([0.5, 2], 1e-3), ([100, 400], 1e-9)],
)
def test_several_answers_against_enumeration(variances: list[float], delta: float) -> None:
    exact = _by_enumeration(variances, delta)
    found = tight_epsilon(tuple(map(Fraction, variances)), Fraction(delta))
    assert found is not None
    assert exact <= found <= 1.005 * exact


@settings(max_examples=40, deadline=None)
@given(st.floats(0.4, 300.0), st.floats(1e-12, 0.1))
def test_one_answer_against_direct_summation(sigma: float, delta: float) -> None:
    distribution = Distribution("gaussian", Fraction(sigma) ** 2)
    exact = exact_epsilon(distribution, 1, delta)
    found = tight_epsilon((distribution.parameter,), Fraction(delta))
    if found is None:
        return
    step = 1 / (_GRID_STEPS * sigma)  # losses are rounded up to a grid, so ε may be a step too large
    assert exact * (1 - 1e-7) - 1e-9 <= found <= 1.005 * exact + step + 1e-6


@pytest.mark.parametrize(("count", "sigma", "delta"), [(15, 30, 1e-9), (200, 50, 1e-12), (500, 2000, 1e-9)])
def test_many_answers_approach_the_continuous_distribution_and_beat_zcdp(count: int, sigma: int, delta: float) -> None:
    from scipy.stats import norm

    found = tight_epsilon((Fraction(sigma) ** 2,) * count, Fraction(delta))
    assert found is not None
    mu = math.sqrt(count) / sigma
    continuous = norm.cdf(-found / mu + mu / 2) - math.exp(found + norm.logcdf(-found / mu - mu / 2))
    assert continuous == pytest.approx(delta, rel=0.02)
    assert found < 0.97 * float(epsilon_of_rho(Fraction(count, 2 * sigma**2), Fraction(delta)))


def test_what_cannot_be_settled_in_floats_is_left_to_zcdp() -> None:
    assert tight_epsilon((), Fraction(1, 10**6)) is None
    assert tight_epsilon((Fraction(1, 1000),), Fraction(1, 10**6)) is None
    assert tight_epsilon((Fraction(1),), Fraction(1, 10**17)) is None


@pytest.mark.parametrize("count", [1, 15])
def test_noise_shrinks_until_the_budget_is_used(count: int) -> None:
    variances = (Fraction(500),) * count
    epsilon, delta = epsilon_of_rho(Fraction(count, 1000), Fraction(1, 10**9)), Fraction(1, 10**9)
    factor = tight_factor(variances, epsilon, delta)
    assert 1.05 < factor < 1.3
    used = tight_epsilon(tuple(variance / factor for variance in variances), delta)
    assert used is not None
    assert 0.9999 * epsilon < used <= epsilon
