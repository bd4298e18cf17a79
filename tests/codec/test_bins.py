import datetime as dt
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.codec.numbers import axis_of, fine_grid, fixed_edges
from understudy.errors import UsageError
from understudy.schema import Date, Float, GivenBins, Integer, PrivateBins, UniformBins


def integer(**more):
    return Integer(name="n", **more)


def test_a_code_per_integer_up_to_a_hundred_then_32_bins():
    assert fixed_edges(integer(lower=1, upper=100)) == list(range(1, 102))
    assert len(fixed_edges(integer(lower=0, upper=100))) == 33
    assert fixed_edges(integer(lower=0, upper=30, step=10)) == [0, 10, 20, 30, 31]


def test_bins_end_one_past_the_bound_on_whole_axes_only():
    assert fixed_edges(integer(lower=0, upper=9, bins=GivenBins((0, 4, 9)))) == [0, 4, 10]
    assert fixed_edges(Float(name="f", lower=0.0, upper=1.0, bins=UniformBins(4))) == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_no_bin_is_left_without_a_value_of_its_own():
    assert fixed_edges(integer(lower=0, upper=4, special=(0, 2))) == [0, 2, 4, 5]
    assert fixed_edges(Float(name="f", lower=0.0, upper=3.0, decimals=0)) == pytest.approx(
        [0.0, 0.09375, 1.03125, 2.0625, 3.0], abs=0.1
    )
    assert len(fixed_edges(integer(lower=5, upper=6, special=(5, 6)))) == 2


def test_private_bins_need_edges_and_are_cut_to_the_bounds():
    column = integer(lower=0, upper=9, bins=PrivateBins(4))
    with pytest.raises(UsageError, match="'n'"):
        fixed_edges(column)
    assert fixed_edges(column, [-5, 0, 3, 3, 7, 9, 50]) == [0, 3, 7, 9, 10]
    assert fixed_edges(column, [0, 3, 9]) == fixed_edges(column, [0, 3, 10]) == [0, 3, 10]
    assert fixed_edges(column, []) == [0, 10]
    share = Float(name="f", lower=0.0, upper=1.0, bins=PrivateBins(4))
    assert fixed_edges(share, [0.0, 0.5, 1.0]) == fixed_edges(share, [0.5]) == [0.0, 0.5, 1.0]


@given(st.integers(-1000, 1000), st.integers(0, 3000), st.integers(1, 9), st.integers(1, 500))
@settings(max_examples=80, deadline=None)
def test_fine_grid_is_public_even_and_never_too_fine(lower, width, step, cells):
    column = integer(lower=lower, upper=lower + width, step=min(step, max(width, 1)), bins=PrivateBins(5))
    edges = fine_grid(column, cells)
    support = axis_of(column).support
    counts = [support.points(start, stop) for start, stop in pairwise(edges)]
    assert len(counts) <= cells
    assert edges[0] == lower
    assert edges[-1] == lower + width + 1
    assert max(counts) - min(counts) <= 1
    assert min(counts) >= 1
    assert fixed_edges(column, edges) == edges


def test_fine_grid_of_floats_and_dates():
    assert fine_grid(Float(name="f", lower=0.0, upper=1.0, bins=PrivateBins(4)), 4) == [0.0, 0.25, 0.5, 0.75, 1.0]
    day = Date(name="d", lower=dt.date(1970, 1, 1), upper=dt.date(1970, 1, 10), bins=PrivateBins(4))
    assert fine_grid(day, 1000) == list(range(11))
