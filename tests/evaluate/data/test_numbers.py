"""Numbers are read as the codec reads them and as the file has them, whatever they are stored as."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from understudy.evaluate.data import read_numbers
from understudy.schema import Date, Float, Integer

AGE = Integer(name="age", lower=0, upper=99, special=(999,))


@pytest.mark.parametrize(
    "array",
    [
        pa.array([5, 120, 999, None, -3], pa.int64()),
        pa.array([5.0, 120.0, 999.0, None, -3.0]),
        pa.array(["5", "120", "999", None, "-3"]),
        pa.array(["5", "120", "999", None, "-3"]).dictionary_encode(),
        pa.chunked_array([pa.array([5, 120]), pa.array([999, None, -3])]),
    ],
)
def test_every_storage_reads_the_same(array: pa.Array) -> None:
    numbers, raw = read_numbers(AGE, array)
    np.testing.assert_array_equal(numbers, [5.0, 99.0, np.nan, np.nan, 0.0])
    np.testing.assert_array_equal(raw, [5.0, 120.0, 999.0, np.nan, -3.0])


def test_nonsense_is_no_number() -> None:
    for numbers in read_numbers(AGE, pa.array(["x", "7", ""])):
        np.testing.assert_array_equal(numbers, [np.nan, 7.0, np.nan])
    assert np.isnan(read_numbers(AGE, pa.nulls(3))).all()
    assert len(read_numbers(AGE, pa.array([], pa.int64()))[0]) == 0


def test_dates_are_days_and_floats_stay() -> None:
    column = Date(name="d", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 12, 31))
    days, _ = read_numbers(column, pa.array([dt.date(2020, 1, 2), None]))
    assert days[0] == (dt.date(2020, 1, 2) - dt.date(1970, 1, 1)).days
    weights = Float(name="w", lower=0.0, upper=1.0, special=(-1.0,))
    numbers, raw = read_numbers(weights, pa.array([0.25, -1.0, 7.0]))
    np.testing.assert_array_equal(numbers, [0.25, np.nan, 1.0])
    np.testing.assert_array_equal(raw, [0.25, -1.0, 7.0])
