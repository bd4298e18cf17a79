"""Gaussian integers by rejection have the distribution of the tables, where both can be drawn, and the right shape
beyond."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.statistics.chi_square import gaussian_distribution, z_score
from understudy.privacy.noise import LARGEST, discrete_gaussian, discrete_laplace, geometric, happens, wide_gaussian

LIMIT = 6.0


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(10), Fraction(731, 7)])
def test_the_distribution_is_the_discrete_gaussian(variance: Fraction) -> None:
    values = wide_gaussian(8_000, variance, discrete_laplace, geometric, LARGEST)
    assert z_score(values, gaussian_distribution(float(variance))) < LIMIT
    assert z_score(values, gaussian_distribution(1.5 * float(variance))) > LIMIT  # missed with probability below 1e-30


def test_beyond_the_tables_it_is_normal_to_many_digits() -> None:
    values = discrete_gaussian(6_000, Fraction(2**90))
    assert stats.kstest(values / 2.0**45, "norm").pvalue > 1e-9
    assert stats.kstest(values / 2.0**45 * 1.5, "norm").pvalue < 1e-9  # missed with probability below 1e-40
    assert values.dtype == np.int64


def test_what_a_proposal_was_cut_at_is_drawn_on() -> None:
    """Draws cut at 8 give the same distribution, reported at ±8 where they lie beyond."""

    def cut(draw):
        return lambda size, scale: np.clip(draw(size, scale), -8, 8)

    values = wide_gaussian(8_000, Fraction(40), cut(discrete_laplace), cut(geometric), 8)
    distribution = gaussian_distribution(40.0)
    clipped = {k: probability for k, probability in distribution.items() if abs(k) < 8}
    clipped[8] = clipped[-8] = sum(probability for k, probability in distribution.items() if k >= 8)
    assert z_score(values, clipped) < LIMIT


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 3), Fraction(2)])
def test_a_chance_of_e_to_the_minus(exponent: Fraction) -> None:
    probability, runs = math.exp(-exponent), 8_000
    hits = sum(happens(exponent) for _ in range(runs))
    assert abs(hits - probability * runs) <= LIMIT * math.sqrt(runs * probability * (1 - probability))
    assert not any(happens(Fraction(1000)) for _ in range(100))
