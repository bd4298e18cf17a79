"""Columns of mixed Python objects: each value is read by itself, whatever its neighbours are, and nothing crashes."""

import datetime as dt
import decimal
import random

import numpy as np
import pandas as pd
import pytest

from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
from understudy.counts.source import PrivateTable
from understudy.schema import Boolean, Category, Column, Date, Float, GivenBins, Integer, Schema, UniformBins, Unit

STRANGE: tuple[object, ...] = (
    None, 5, 2**60 + 1, 2**53 + 1, 10**30, 5.0, 2.5, float("nan"), float("inf"), -0.0, True, False, "5", "5.0", "true",
    "x", "", " 5 ", "\ud800", b"5", b"\xff", decimal.Decimal("5.00"), decimal.Decimal(2**53 + 1), dt.date(2020, 1, 2),
    dt.datetime(2020, 1, 2, 3, 4, 5), dt.time(1, 2), dt.timedelta(1), pd.Timestamp("2020-01-02"), pd.NaT, pd.NA,
    np.int64(7), np.float32(0.1), np.datetime64("2020-01-02"), (1, 2), [1], {"a": 1}, object, 1 + 2j,
)  # fmt: skip
LABELS = ("5", "5.0", "true", "x", "7", "0.1", "2020-01-02", str(2**53), str(2**53 + 1), str(2**60 + 1))
COLUMNS: tuple[Column, ...] = (
    Category(name="x", labels=LABELS, other="other"),
    Integer(name="x", lower=-10, upper=2**62, bins=UniformBins(50), special=(2**53, 2**53 + 1)),
    Float(name="x", lower=-10.0, upper=1e16, bins=GivenBins((-10.0, 0.0, 0.05, 0.1, 2.0, 5.0, 100.0, 2.0**53, 1e16))),
    Float(name="x", lower=0.0, upper=9.0, bins=GivenBins((0.0, 2.4, 2.6, 9.0)), decimal=",", thousands="."),
    Date(name="x", lower=dt.date(2019, 1, 1), upper=dt.date(2021, 1, 1)),
    Boolean(name="x"),
)


def _codes(column: Column, series: pd.Series) -> list[int]:
    schema = Schema((column,), Unit())
    table: PrivateTable = open_table(pd.DataFrame({"x": series}), schema)
    codec = TableCodec.of(schema)
    return codec.encode("x", table.column("x")).tolist()  # type: ignore[attr-defined]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.kind)
def test_a_value_is_read_the_same_whatever_stands_beside_it(column: Column) -> None:
    alone = [_codes(column, pd.Series([value], dtype=object))[0] for value in STRANGE]
    rng = random.Random(1)
    for _ in range(300):
        picks = [rng.randrange(len(STRANGE)) for _ in range(rng.randint(2, 5))]
        together = _codes(column, pd.Series([STRANGE[pick] for pick in picks], dtype=object))
        assert together == [alone[pick] for pick in picks]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.kind)
def test_categories_of_mixed_objects_are_read_one_by_one(column: Column) -> None:
    plain = [
        value for value in STRANGE if isinstance(value, str | int | float) and value == value and value != "\ud800"
    ]
    plain = list(dict.fromkeys(plain))
    alone = [_codes(column, pd.Series([value], dtype=object))[0] for value in plain]
    categorical = pd.Series(pd.Categorical.from_codes(range(len(plain)), categories=pd.Index(plain, dtype=object)))
    assert _codes(column, categorical) == alone


def test_numbers_among_text_are_taken_as_they_are_whatever_form_the_text_has() -> None:
    said = {"decimal": ",", "thousands": ".", "missing_values": ("-1",)}
    column = Float(name="x", lower=0.0, upper=9.0, bins=GivenBins((0.0, 2.4, 2.6, 9.0)), **said)  # type: ignore[arg-type]
    values = [2.5, "2,5", np.float64(2.5), decimal.Decimal("2.50"), "2.5", -1, -1.0, "-1", 3, "2.500"]
    middle, missing, last = 1, 3, 2
    expected = [middle] * 4 + [missing] * 4 + [last, last]
    assert _codes(column, pd.Series(values, dtype=object)) == expected
