import numpy as np
import pytest

from understudy.errors import UsageError
from understudy.models.tree.rounding import controlled_rounding


@pytest.mark.parametrize("rows", [0, 1, 7, 1_000])
def test_counts_are_the_expectation_rounded_down_or_up(rows):
    probabilities = np.random.default_rng(2).dirichlet(np.full(50, 0.3))
    probabilities[[3, 8]] = 0.0
    probabilities /= probabilities.sum()
    for seed in range(20):
        counts = controlled_rounding(probabilities, rows, np.random.default_rng(seed))
        assert counts.sum() == rows
        assert np.all(np.abs(counts - rows * probabilities) < 1.0 + 1e-9)
        assert not counts[[3, 8]].any()


def test_the_mean_is_right():
    probabilities = np.array([0.05, 0.15, 0.3, 0.41, 0.09])
    repeats = 40_000
    rng = np.random.default_rng(5)
    counts = np.array([controlled_rounding(probabilities, 7, rng) for _ in range(repeats)])
    fractions = 7 * probabilities % 1.0
    spread = np.sqrt(fractions * (1 - fractions) / repeats)
    assert np.all(np.abs(counts.mean(axis=0) - 7 * probabilities) < 6 * spread + 1e-9)


def test_whole_expectations_need_no_chance():
    assert controlled_rounding(np.array([0.5, 0.25, 0.25]), 8, np.random.default_rng(0)).tolist() == [4, 2, 2]


def test_rows_must_not_be_negative():
    with pytest.raises(UsageError, match="rows"):
        controlled_rounding(np.array([1.0]), -1, np.random.default_rng(0))
