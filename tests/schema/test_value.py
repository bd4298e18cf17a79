import datetime as dt

import pytest

from understudy.schema import Datetime, Integer
from understudy.schema.checks import (
    count_problems,
    is_whole,
    label_problems,
    number_problem,
    point_problem,
    text_problems,
    written,
)


def test_text_must_be_text_that_can_be_written() -> None:
    assert list(text_problems("any\n🎭\0", "x")) == []
    assert len(list(text_problems(b"bytes", "x"))) == 1
    assert len(list(text_problems("\udc80", "x"))) == 1


@pytest.mark.parametrize(("value", "count"), [(1, 0), (10, 0), (0, 1), (11, 1), (True, 1), ("1", 1), (10**4000, 1)])
def test_counts_have_limits(value: object, count: int) -> None:
    assert len(list(count_problems(value, "x", 10))) == count


def test_labels_must_differ_and_may_be_of_any_wrong_type() -> None:
    assert list(label_problems(("a", "A", ""), "x")) == []
    assert len(list(label_problems(("a", "a", [], {}), "x"))) == 3


def test_numbers_are_finite_and_exact() -> None:
    assert [bool(number_problem(value)) for value in (0, -0.0, 2**60, 1e308)] == [False] * 4
    assert [bool(number_problem(value)) for value in (True, None, float("nan"), 2**60 + 1, 10**400)] == [True] * 5


def test_points_fit_their_axis() -> None:
    assert point_problem(Integer(name="n", lower=0, upper=1), 3) == ""
    zoned = Datetime(name="t", lower=dt.datetime.min, upper=dt.datetime.max, zone="UTC")
    assert point_problem(zoned, dt.datetime(2020, 1, 1)) != ""
    assert point_problem(zoned, dt.datetime(2020, 1, 1, tzinfo=dt.UTC)) == ""


def test_values_are_shown_as_files_show_them() -> None:
    assert written(dt.date(2020, 1, 2)) == "2020-01-02"
    assert written(3) == "3"
    assert not is_whole(False)
