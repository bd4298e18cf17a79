"""Distances of scores: vectors, an independent implementation, and the published script's other quantity."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from understudy.evaluate.propensity import kolmogorov_smirnov, legacy_distance, mean_squared_deviation

FIRST = np.array([0.2, 0.3, 0.3, 0.4, 0.5])
SECOND = np.array([0.3, 0.5, 0.6, 0.6, 0.7])


def test_vectors() -> None:
    assert kolmogorov_smirnov(FIRST, SECOND) == pytest.approx(0.6, abs=1e-12)
    assert legacy_distance(FIRST, SECOND) == pytest.approx(0.3000, abs=1e-4)


def test_legacy_is_another_quantity() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.49, 0.01, 20_000), rng.normal(0.51, 0.01, 20_000)
    assert kolmogorov_smirnov(first, second) == pytest.approx(0.6827, abs=0.02)
    assert legacy_distance(first, second) == pytest.approx(0.0249, abs=0.004)


@pytest.mark.parametrize("seed", range(5))
def test_equals_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 9, 70) / 8, rng.integers(2, 12, 40) / 8
    assert kolmogorov_smirnov(first, second) == pytest.approx(ks_2samp(first, second).statistic)


def test_mean_squared_deviation() -> None:
    assert mean_squared_deviation(np.array([0.4, 0.6]), 0.5) == pytest.approx(0.01)
