import numpy as np
import pytest
from scipy.stats import chisquare

from understudy.errors import UsageError
from understudy.models.tables import code_dtype, controlled_rounding, cumulative, draw_cells, draw_places


class Extremes:
    """A generator that only returns the ends of [0, 1)."""

    def random(self, rows):
        return np.array([0.0, np.nextafter(1.0, 0.0)] * (rows // 2))


def test_cells_without_mass_are_never_drawn():
    steps = cumulative(np.array([0.0, 0.3, 0.0, 0.7, 0.0]))
    assert set(draw_cells(steps, 4, Extremes()).tolist()) == {1, 3}


def test_shares_follow_the_probabilities():
    probabilities = np.array([0.05, 0.15, 0.3, 0.5])
    drawn = draw_cells(cumulative(probabilities), 100_000, np.random.default_rng(1))
    assert chisquare(np.bincount(drawn, minlength=4), probabilities * 100_000).pvalue > 1e-4


def test_the_smallest_type_is_used():
    assert [code_dtype(size) for size in (1, 256, 257, 65536, 65537)] == [
        np.uint8, np.uint8, np.uint16, np.uint16, np.uint32,
    ]  # fmt: skip


def test_negative_rows_are_refused():
    with pytest.raises(UsageError, match="rows"):
        draw_cells(np.array([1.0]), -1, np.random.default_rng(0))
    with pytest.raises(UsageError, match="rows"):
        controlled_rounding(np.array([1.0]), -1, np.random.default_rng(0))


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


def test_the_mean_of_rounded_counts_is_right():
    probabilities = np.array([0.05, 0.15, 0.3, 0.41, 0.09])
    repeats = 40_000
    rng = np.random.default_rng(5)
    counts = np.array([controlled_rounding(probabilities, 7, rng) for _ in range(repeats)])
    fractions = 7 * probabilities % 1.0
    spread = np.sqrt(fractions * (1 - fractions) / repeats)
    assert np.all(np.abs(counts.mean(axis=0) - 7 * probabilities) < 6 * spread + 1e-9)


def test_whole_expectations_need_no_chance():
    assert controlled_rounding(np.array([0.5, 0.25, 0.25]), 8, np.random.default_rng(0)).tolist() == [4, 2, 2]


def test_rounded_places_come_in_random_order():
    places = draw_places(np.array([0.5, 0.0, 0.5]), 1_000, np.random.default_rng(3), "controlled")
    assert np.bincount(places).tolist() == [500, 0, 500]
    assert 400 < np.count_nonzero(np.diff(places)) < 600
