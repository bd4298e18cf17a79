"""The auditor must find violations, and must not cry wolf on correct noise."""

import math
from fractions import Fraction

import pytest

from tests.nets import lower_bound
from understudy.domain import Distribution

CONFIDENCE = 0.999


def test_rate_bounds_at_the_ends() -> None:
    assert lower_bound.rate_bounds(0, 100, 0.99)[0] == 0.0
    assert lower_bound.rate_bounds(100, 100, 0.99)[1] == 1.0
    # P(no hit in n) = (1 − p)^n = 1 − confidence at the upper bound
    assert lower_bound.rate_bounds(0, 100, 0.99)[1] == pytest.approx(1 - 0.01 ** (1 / 100))


def test_epsilon_lower_finds_a_ratio_and_stays_below_it() -> None:
    runs, true = 100_000, 1.0
    hits_with = round(runs * 0.5)
    hits_without = round(runs * 0.5 / math.e**true)
    found = lower_bound.epsilon_lower(hits_without, hits_with, runs, CONFIDENCE)
    assert 0.95 < found < true
    assert lower_bound.epsilon_lower(hits_with, hits_without, runs, CONFIDENCE) == pytest.approx(found)
    assert lower_bound.epsilon_lower(hits_without, hits_with, runs, CONFIDENCE, delta=0.4) < 0.1


def test_log_odds_lower() -> None:
    runs = 100_000
    assert (
        0.9 < lower_bound.log_odds_lower(round(runs * 0.5), round(runs * math.e / (1 + math.e)), runs, CONFIDENCE) < 1.0
    )
    assert lower_bound.log_odds_lower(0, 0, runs, CONFIDENCE) == 0.0


@pytest.mark.parametrize(("sigma", "epsilon"), [(2.0, 2.276), (1.5, 3.130)])
def test_exact_epsilon_of_integer_gaussian_noise(sigma: float, epsilon: float) -> None:
    assert lower_bound.exact_epsilon(Distribution("gaussian", Fraction(sigma) ** 2), 1, 1e-6) == pytest.approx(
        epsilon, abs=2e-3
    )


def test_exact_epsilon_of_laplace_noise_is_its_rate() -> None:
    assert lower_bound.exact_epsilon(Distribution("laplace", Fraction(4)), 1, 0.0) == pytest.approx(0.25, abs=1e-9)
