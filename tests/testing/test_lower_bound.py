"""Bounds that only the nets need: of log odds, and the exact ε of one noisy integer."""

import math
from fractions import Fraction

import pytest

from tests.nets import lower_bound
from understudy.domain import Distribution

CONFIDENCE = 0.999


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
