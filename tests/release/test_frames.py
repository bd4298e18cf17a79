"""Frames: whole numbers with gaps stay whole, in every kind of frame, and types come back as they came."""

import datetime as dt
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from understudy.errors import UsageError
from understudy.release.frames import to_frame, write_statistics
from understudy.schema import (
    Boolean,
    Category,
    Column,
    Date,
    Datetime,
    Float,
    Integer,
    OpenCategory,
    Schema,
    Time,
    Unit,
)

TABLE = pa.table(
    {
        "whole": pa.array([1, None, 3], pa.int32()),
        "full": pa.array([1, 2, 3], pa.int64()),
        "flag": pa.array([True, None, False]),
        "text": ["a", None, "c"],
    }
)


def test_pandas_keeps_whole_numbers_whole() -> None:
    frame = to_frame(TABLE, "pandas")
    assert isinstance(frame, pd.DataFrame)
    assert frame["whole"].dtype == pd.Int32Dtype()
    assert frame["full"].dtype == "int64"
    assert frame["flag"].dtype == pd.BooleanDtype()
    assert frame["whole"].isna().tolist() == [False, True, False]


def test_polars_and_arrow() -> None:
    frame = to_frame(TABLE, "polars")
    assert isinstance(frame, pl.DataFrame)
    assert frame["whole"].to_list() == [1, None, 3]
    assert to_frame(TABLE, "arrow") is TABLE


def test_unknown_kinds_are_named() -> None:
    with pytest.raises(UsageError, match="pandas"):
        to_frame(TABLE, "panda")


ROWS = 60
DAYS = {"lower": dt.date(2020, 1, 1), "upper": dt.date(2020, 12, 31)}
MOMENTS = {"lower": dt.datetime(2020, 1, 1), "upper": dt.datetime(2020, 12, 31)}
ZONED = {key: value.replace(tzinfo=dt.UTC) for key, value in MOMENTS.items()}
MOMENT = dt.datetime(2020, 5, 6, 7, 8)


def back(frame: object, *columns: Column) -> object:
    """Rows of a release of the frame; the budget is large, so that what is missing is missing by the schema."""
    release = us.synthesize(frame, Schema(columns, Unit()), epsilon=1e3, method="independent")
    table = release.table
    fresh = release.sample(5)
    if not isinstance(table, pd.DataFrame):
        assert list(fresh.schema) == list(table.schema)
    elif not any(column.missing for column in columns):  # five rows may hold no gap where many hold one
        assert list(fresh.dtypes) == list(table.dtypes)
    return table


WHOLE = Integer(name="x", lower=0, upper=9, missing=False)
SIZE = Category(name="x", labels=("small", "middle", "large"), missing=False)
NUMBERED = Category(name="x", labels=("1", "2"), missing=False)
DAY = Date(name="x", missing=False, **DAYS)
WALL = Datetime(name="x", missing=False, **MOMENTS)


@pytest.mark.parametrize(
    ("series", "column"),
    [
        (pd.Series([1, 2], dtype="int64"), WHOLE),
        (pd.Series([1, 2], dtype="int16"), WHOLE),
        (pd.Series([1, 2], dtype="Int64"), WHOLE),
        (pd.Series([1, 2], dtype="UInt8"), WHOLE),
        (pd.Series([1, 2], dtype="int64[pyarrow]"), WHOLE),
        (pd.Series([1.0, 2.0], dtype="float32"), Float(name="x", lower=0.0, upper=9.0)),
        (pd.Series([1.0, 2.0], dtype="Float64"), Float(name="x", lower=0.0, upper=9.0)),
        (pd.Series([True, False]), Boolean(name="x", missing=False)),
        (pd.Series([True, False], dtype="boolean"), Boolean(name="x", missing=False)),
        (pd.Series([1, 2]), NUMBERED),
        (pd.Series([1, 2], dtype="Int8"), NUMBERED),
        (pd.Series([MOMENT]).astype("datetime64[s]"), WALL),
        (pd.Series([MOMENT]).astype("datetime64[ms]"), WALL),
        (pd.Series([MOMENT]).astype("datetime64[ns]"), WALL),
        (pd.Series([MOMENT]).astype("datetime64[ms]"), DAY),
        (
            pd.Series([MOMENT]).dt.as_unit("ms").dt.tz_localize("UTC"),
            Datetime(name="x", zone="Europe/Berlin", missing=False, **ZONED),
        ),
        (pd.Series(["small", "large"], dtype="string"), SIZE),
        (pd.Series(["small", "large"], dtype="string[pyarrow]"), SIZE),
        (pd.Series(["small", "large"]), SIZE),
    ],
    ids=lambda value: str(getattr(value, "dtype", getattr(value, "kind", ""))),
)
def test_pandas_types_come_back(series: "pd.Series[int]", column: Column) -> None:
    frame = pd.DataFrame({"x": pd.concat([series] * ROWS, ignore_index=True)})
    found = back(frame, column)
    assert isinstance(found, pd.DataFrame)
    assert found["x"].dtype == frame["x"].dtype
    assert len(found)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("declared", [False, True])
def test_pandas_categories_come_back_with_the_labels_of_the_schema(ordered: bool, declared: bool) -> None:
    kind = pd.CategoricalDtype(["large", "small"], ordered=ordered)
    frame = pd.DataFrame({"x": pd.Series(["small", "large"] * ROWS, dtype=kind)})
    column = Category(name="x", labels=("small", "middle", "large"), other="else", ordered=declared, missing=True)
    found = back(frame, column)
    assert isinstance(found, pd.DataFrame)
    dtype = found["x"].dtype
    assert isinstance(dtype, pd.CategoricalDtype)
    assert list(dtype.categories) == ["small", "middle", "large", "else"]
    assert dtype.ordered == declared  # the labels come in the schema's order, which may be none
    assert set(found["x"].dropna()) <= {"small", "middle", "large", "else"}


def test_pandas_categories_of_numbers_and_of_open_lists_come_back() -> None:
    frame = pd.DataFrame({"x": pd.Categorical([1, 2] * ROWS), "y": pd.Categorical(["a", "b"] * ROWS)})
    open_list = OpenCategory(name="y", other="rest")
    schema = Schema((Category(name="x", labels=("2", "1")), open_list), Unit())
    found = us.synthesize(frame, schema, epsilon=1e3, delta=1e-6, method="independent").table
    assert isinstance(found, pd.DataFrame)
    assert list(found["x"].cat.categories) == [2, 1]
    assert list(found["y"].cat.categories) == ["a", "b", "rest"]


def test_what_a_gap_does_to_a_pandas_type_is_not_told() -> None:
    column = Integer(name="x", lower=0, upper=9)
    whole = pd.DataFrame({"x": [1, 2] * ROWS})
    gaps = pd.DataFrame({"x": [1, None] * ROWS})
    narrow = gaps.astype("float32")
    found = [back(frame, column) for frame in (whole, gaps, narrow)]
    assert {str(frame.dtypes["x"]) for frame in found} <= {"int64", "Int64"}  # type: ignore[attr-defined]
    objects = pd.DataFrame({"x": pd.Series([True, None, "yes"] * ROWS, dtype=object)})
    assert str(back(objects, Boolean(name="x")).dtypes["x"]) in ("bool", "boolean")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("dtype", "values", "column"),
    [
        (pl.Int16, [1, 2], WHOLE),
        (pl.Float64, [1.0, 2.0], WHOLE),
        (pl.Float32, [1.0, 2.0], Float(name="x", lower=0.0, upper=9.0)),
        (pl.Enum(["small", "middle", "large"]), ["small", "large"], SIZE),
        (pl.Categorical, ["small", "large"], SIZE),
        (pl.String, ["small", "large"], SIZE),
        (pl.Int8, [1, 2], NUMBERED),
        (pl.Date, [dt.date(2020, 5, 6)], DAY),
        (pl.Datetime("ms"), [MOMENT], DAY),
        (pl.Datetime("ms"), [MOMENT], WALL),
        (pl.Datetime("ns"), [MOMENT], WALL),
        (pl.Boolean, [True, False], Boolean(name="x")),
        (pl.Time, [dt.time(8)], Time(name="x")),
    ],
    ids=lambda value: "" if isinstance(value, list) else str(getattr(value, "kind", value)),
)
@pytest.mark.parametrize("lazy", [False, True])
def test_polars_types_come_back(dtype: pl.DataType, values: list[object], column: Column, lazy: bool) -> None:
    frame = pl.DataFrame({"x": pl.Series(values * ROWS, dtype=dtype)})
    found = back(frame.lazy() if lazy else frame, column)
    assert isinstance(found, pl.DataFrame)
    assert found.schema == frame.schema


@pytest.mark.parametrize(
    ("kind", "values", "column"),
    [
        (pa.int32(), [1, 2], WHOLE),
        (pa.uint8(), [1, 2], WHOLE),
        (pa.dictionary(pa.int8(), pa.string()), ["small", "large"], SIZE),
        (pa.dictionary(pa.int32(), pa.large_string(), ordered=True), ["small", "large"], replace(SIZE, ordered=True)),
        (pa.dictionary(pa.int32(), pa.int64()), [1, 2], NUMBERED),
        (pa.large_string(), ["small"], SIZE),
        (pa.string_view(), ["small"], SIZE),
        (pa.timestamp("ms"), [MOMENT], WALL),
        (pa.timestamp("s", "UTC"), [MOMENT], Datetime(name="x", zone="Europe/Berlin", missing=False, **ZONED)),
        (pa.timestamp("us"), [MOMENT], DAY),
        (pa.date32(), [dt.date(2020, 5, 6)], DAY),
        (pa.date64(), [dt.date(2020, 5, 6)], DAY),
        (pa.time32("s"), [dt.time(8)], Time(name="x")),
        (pa.float32(), [0.5], Float(name="x", lower=0.0, upper=9.0)),
        (pa.bool_(), [True], Boolean(name="x")),
    ],
    ids=lambda value: "" if isinstance(value, list) else str(getattr(value, "kind", value)),
)
def test_arrow_types_come_back(kind: pa.DataType, values: list[object], column: Column) -> None:
    frame = pa.table({"x": pa.array(values * ROWS, kind)})
    found = back(frame, column)
    assert isinstance(found, pa.Table)
    assert found.schema == frame.schema
    found.validate(full=True)


def test_the_schema_comes_before_the_frame() -> None:
    column = Integer(name="x", lower=0, upper=1000, missing=False)
    narrow = pa.table({"x": pa.array([1, 2] * ROWS, pa.int8())})
    assert back(narrow, column).schema.field("x").type == pa.int64()  # type: ignore[attr-defined]
    stated = Integer(name="x", lower=0, upper=9, storage="int16", missing=False)
    assert back(narrow, stated).schema.field("x").type == pa.int16()  # type: ignore[attr-defined]
    texts = pa.table({"x": ["2020-05-06"] * ROWS})
    assert back(texts, DAY).schema.field("x").type == pa.date32()  # type: ignore[attr-defined]


def test_the_file_of_a_release_does_not_depend_on_the_frame(tmp_path: Path) -> None:
    for name, kind in (("a", pa.int8()), ("b", pa.int64())):
        frame = pa.table({"x": pa.array([1, 2] * ROWS, kind)})
        us.synthesize(frame, Schema((WHOLE,), Unit()), epsilon=1.0, method="independent", out=tmp_path / name)
    schemas = [pq.read_schema(tmp_path / name / "data.parquet") for name in "ab"]
    assert schemas[0].equals(schemas[1])
    assert schemas[0].field("x").type == pa.int64()


EVERYTHING = Schema(
    (
        Category(name="vote", labels=("1", "2", "9"), title="Vote", ordered=True, meanings={"1": "yes", "2": "no"}),
        Category(name="city", labels=("Rome", "Zürich"), title="City of birth", meanings={"Rome": "Roma"}),
        Integer(name="age", lower=0, upper=99, missing=True),
        Float(name="wage", lower=0.0, upper=9.0),
        Boolean(name="member"),
        Date(name="day", **DAYS),
        Datetime(name="seen", zone="Europe/Berlin", **ZONED),
        Time(name="hour"),
    ),
    Unit(),
)


@pytest.mark.parametrize(("suffix", "read"), [("dta", "read_dta"), ("sav", "read_sav")])
def test_files_of_statistics_programs_carry_titles_and_value_labels(suffix: str, read: str, tmp_path: Path) -> None:
    import pyreadstat

    table = pa.table({name: pa.array([None] * ROWS, pa.string()) for name in EVERYTHING.names})
    table = table.set_column(0, "vote", pa.array(["1"] * ROWS))
    table = table.set_column(2, "age", pa.array([5, None] * (ROWS // 2)))
    table = table.set_column(5, "day", pa.array([dt.date(2020, 5, 6), None] * (ROWS // 2)))
    release = us.synthesize(table, EVERYTHING, epsilon=30.0, method="independent")
    path = tmp_path / f"rows.{suffix}"
    release.sample_to(path, 200, seed=1)
    frame, known = getattr(pyreadstat, read)(path)
    assert list(frame.columns) == list(EVERYTHING.names)
    assert len(frame) == 200
    assert known.column_names_to_labels["vote"] == "Vote"
    assert known.column_names_to_labels["city"] == "City of birth"
    assert known.variable_value_labels == {"vote": {1: "yes", 2: "no"}}
    rows = release.sample(200, seed=1)
    assert isinstance(rows, pa.Table)
    for name in ("age", "day"):
        assert [None if pd.isna(value) else value for value in frame[name]] == rows[name].to_pylist()
    assert frame["hour"].isna().sum() == rows["hour"].null_count
    if suffix == "sav":
        assert known.variable_measure["vote"] == "ordinal"
    release.sample_to(tmp_path / f"none.{suffix}", 0)
    assert len(getattr(pyreadstat, read)(tmp_path / f"none.{suffix}")[0]) == 0


def test_names_that_statistics_programs_do_not_allow_are_told(tmp_path: Path) -> None:
    table = pa.table({"a b": [1] * ROWS, "x": [1] * ROWS})
    schema = Schema((Integer(name="a b", lower=0, upper=9), WHOLE), Unit())
    release = us.synthesize(table, schema, epsilon=1.0, method="independent")
    with pytest.raises(UsageError, match="cannot hold columns called 'a b'"):
        release.sample_to(tmp_path / "rows.dta", 5)
    assert list(tmp_path.iterdir()) == []


def test_the_extra_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(UsageError, match=r"understudy\[stats\]"):
        write_statistics(tmp_path / "rows.dta", pa.schema([("x", pa.int64())]), [], "stata")
