import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from understudy.codec.numbers import axis_of, written
from understudy.errors import SchemaError
from understudy.schema import Date, Datetime, Float, Integer, Time

VALID = np.asarray([True, False])


def write(column, numbers):
    return axis_of(column).write(np.asarray(numbers), VALID)


def test_integers_and_floats_are_written_in_their_storage():
    assert write(Integer(name="n", lower=0, upper=9, storage="uint8"), [7, 0]).equals(pa.array([7, None], pa.uint8()))
    assert write(Float(name="f", lower=0, upper=9, storage="float"), [0.5, 0]).equals(
        pa.array([0.5, None], pa.float32())
    )


def test_what_does_not_fit_becomes_null():
    assert written(pa.array([1, 300]), pa.int8()).to_pylist() == [1, None]


def test_dates_are_days():
    column = Date(name="d", lower=dt.date(1970, 1, 2), upper=dt.date(1970, 2, 1))
    assert (axis_of(column).lower, axis_of(column).upper) == (1, 31)
    assert write(column, [2, 0]).to_pylist() == [dt.date(1970, 1, 3), None]
    text = Date(name="d", lower=column.lower, upper=column.upper, storage="string", format="%d/%m/%y")
    assert write(text, [2, 0]).to_pylist() == ["03/01/70", None]
    assert axis_of(text).text(2) == "1970-01-03"


def test_instants_keep_their_zone():
    low, high = dt.datetime(2020, 10, 25, tzinfo=dt.UTC), dt.datetime(2020, 10, 26, tzinfo=dt.UTC)
    column = Datetime(name="t", lower=low, upper=high, zone="Europe/Berlin")
    start = axis_of(column).lower
    assert start == int(low.timestamp())
    stored = write(column, [start, 0])
    assert stored.type == pa.timestamp("us", "Europe/Berlin")
    assert stored[0].as_py().timestamp() == start
    text = Datetime(name="t", lower=low, upper=high, zone="Europe/Berlin", storage="string")
    assert write(text, [start, 0]).to_pylist() == ["2020-10-25T02:00:00+0200", None]
    assert write(text, [start + 3600, 0]).to_pylist() == ["2020-10-25T02:00:00+0100", None]


def test_times_are_seconds_of_the_day():
    assert write(Time(name="t", storage="time32[s]"), [3661, 0]).to_pylist() == [dt.time(1, 1, 1), None]
    assert write(Time(name="t", storage="string"), [3661, 0]).to_pylist() == ["01:01:01", None]


def test_typed_text_is_read_in_the_format_or_iso():
    axis = axis_of(Date(name="d", lower=dt.date(1970, 1, 1), upper=dt.date(2000, 1, 1), format="%d.%m.%Y"))
    assert axis.number("02.01.1970") == axis.number("1970-01-02") == 1
    assert axis.number("soon") is None
    assert axis_of(Integer(name="n", lower=0, upper=9)).number("4.9") == 4
    assert axis_of(Float(name="f", lower=0, upper=9)).number("x") is None


def test_bounds_too_wide_for_64_bits_are_refused():
    with pytest.raises(SchemaError, match="2\\^62"):
        axis_of(Integer(name="n", lower=-(2**63), upper=2**63 - 1))
