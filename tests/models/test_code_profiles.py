"""Codes that noise hides alone go by what codes like them do."""

import numpy as np
import pytest

from understudy.models.code_profiles import by_profiles, drawn_by_profiles

CODES, OTHERS, SIGMA = 400, 5, 6.0


def zipf(seed=0):
    """Counts that fall as 1/rank; nine of ten rows of a code have one code of the other column."""
    rng = np.random.default_rng(seed)
    counts = 3_000.0 / np.arange(1, CODES + 1)
    goes = rng.integers(0, OTHERS, CODES)
    exact = np.outer(counts, np.full(OTHERS, 0.1 / OTHERS))
    exact[np.arange(CODES), goes] += 0.9 * counts
    return exact, exact + rng.normal(0.0, SIGMA, exact.shape)


@pytest.mark.parametrize("turned", [False, True])
def test_lines_that_noise_hides_go_by_profiles_of_others(turned):
    exact, noisy = zipf()
    rows, columns = exact.sum(axis=1), exact.sum(axis=0)
    if turned:
        drawn = drawn_by_profiles(noisy.T, columns, rows, SIGMA**2).T
    else:
        drawn = drawn_by_profiles(noisy, rows, columns, SIGMA**2)
    apart = np.outer(rows, columns) / rows.sum()
    off, noise, before = (np.abs(table - exact).sum() for table in (drawn, noisy, apart))
    assert off < 0.3 * noise
    assert off < 0.25 * before
    small = slice(100, CODES)  # 30 rows or fewer, each cell with noise of 6
    assert np.abs(drawn - exact)[small].sum() < 0.65 * np.abs(apart - exact)[small].sum()


def test_where_nothing_goes_together_nothing_is_found():
    exact, _ = zipf()
    apart = np.outer(exact.sum(axis=1), exact.sum(axis=0)) / exact.sum()
    noisy = apart + np.random.default_rng(1).normal(0.0, SIGMA, apart.shape)
    found = by_profiles(noisy, apart.sum(axis=1), SIGMA**2)
    assert np.abs(found - apart).sum() < 0.25 * np.abs(noisy - apart).sum()
    assert found.sum(axis=1) == pytest.approx(apart.sum(axis=1))


def test_more_codes_beside_than_profiles():
    rng = np.random.default_rng(2)
    exact = np.zeros((300, 90))
    exact[np.arange(300), rng.integers(0, 90, 300)] = 50.0
    found = by_profiles(exact + rng.normal(0.0, 1.0, exact.shape), exact.sum(axis=1), 1.0)
    assert found.shape == exact.shape
    assert found.min() >= 0.0
    assert found.sum(axis=1) == pytest.approx(exact.sum(axis=1))
