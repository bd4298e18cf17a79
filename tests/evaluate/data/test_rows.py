"""Rows come in an order of their own, and equal rows are found exactly."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluate.examples import mixed, mixed_frame, rows_of
from understudy.evaluate.data import group_rows, stacked


def test_order_of_the_file_does_not_matter() -> None:
    frame = mixed_frame(200)
    one, other = rows_of(frame, mixed()), rows_of(frame.sample(frac=1, random_state=3)[frame.columns[::-1]], mixed())
    for name in one.codes:
        np.testing.assert_array_equal(one.codes[name], other.codes[name])
    for name in one.numbers:
        np.testing.assert_array_equal(one.numbers[name], other.numbers[name])


def test_take_and_stack() -> None:
    rows = rows_of(mixed_frame(50), mixed())
    some = rows.take(np.arange(0, 50, 5))
    assert some.count == 10
    both = stacked(rows, some)
    assert both.count == 60
    np.testing.assert_array_equal(both.codes["sex"][50:], some.codes["sex"])
    assert rows.groups.max() < 50


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=30), st.sampled_from([1, 10**9])
)
def test_groups_are_equal_rows(table: list[list[int]], scale: int) -> None:
    columns = [np.array([row[place] * scale for row in table]) for place in range(4)]
    groups = group_rows(columns, len(table))
    for i, first in enumerate(table):
        for j, second in enumerate(table):
            assert (groups[i] == groups[j]) == (first == second)
