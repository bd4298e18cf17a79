import numpy as np
import pytest
from scipy.stats import chisquare

from understudy.errors import UsageError
from understudy.models.draw import code_dtype, cumulative, draw_cells


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
