import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.codec.numbers import Continuum, Grid


@given(st.integers(-50, 50), st.integers(1, 9), st.integers(-100, 100), st.integers(-100, 100))
@settings(max_examples=100, deadline=None)
def test_grid_counts_points_like_a_list(start, step, low, high):
    grid = Grid(start, step)
    listed = [value for value in range(low, high) if (value - start) % step == 0]
    assert grid.points(low, high) == len(listed)


@given(st.floats(-100, 100), st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_first_decimal_not_below_a_bound(bound, decimals):
    grid = Grid(per=10**decimals)
    index = grid.first_index(bound)
    assert grid.value(index) >= bound > grid.value(index - 1)


def test_every_grid_value_of_a_bin_is_drawn_evenly_and_special_ones_never():
    grid, edges = Grid(0, 5), [0, 23, 51]
    drawn = grid.draw(edges, np.repeat([0, 1], 20_000), np.random.default_rng(5), [10, 50, 999, 3])
    first, second = drawn[:20_000], drawn[20_000:]
    values, counts = np.unique(first, return_counts=True)
    assert values.tolist() == [0, 5, 15, 20]
    assert set(np.unique(second)) == {25, 30, 35, 40, 45}
    # Four values with expectation 5,000: six standard deviations are 367.
    assert np.abs(counts - 5_000).max() < 367


def test_decimals_stay_on_the_grid_and_reach_both_ends():
    grid, edges = Grid(per=10), [0.0, 0.3, 0.5]
    drawn = grid.draw(edges, np.repeat([0, 1], 500), np.random.default_rng(5), [])
    assert set(drawn[:500]) == {0.0, 0.1, 0.2}
    assert set(drawn[500:]) == {0.3, 0.4, 0.5}


@pytest.mark.parametrize("edges", [[0.0, 1e-320, 1.0], [-1e308, 0.0, 1e308], [0.0, 0.1, 0.2]])
def test_floats_stay_inside_their_bin(edges):
    bins = np.repeat([0, 1], 2_000)
    drawn = Continuum().draw(edges, bins, np.random.default_rng(1), [edges[1]])
    assert np.isfinite(drawn).all()
    assert (np.searchsorted(edges[1:-1], drawn, side="right") == bins).all()
    assert not (drawn == edges[1]).any()


def test_singles_are_read_back_into_their_bin():
    edges = [0.1, 0.3, 0.7]
    bins = np.repeat([0, 1], 2_000)
    drawn = Continuum(single=True).draw(edges, bins, np.random.default_rng(1), []).astype(np.float32)
    read = np.asarray([float(str(value)) for value in drawn])
    assert (np.searchsorted(edges[1:-1], read, side="right") == bins).all()
    assert read.min() >= 0.1


def test_rounded_floats_keep_their_decimals_where_the_grid_is_too_large():
    drawn = Continuum(1).draw([0.0, 1e3], np.zeros(100, int), np.random.default_rng(1), [])
    assert all(math.isclose(value * 10, round(value * 10)) for value in drawn)
