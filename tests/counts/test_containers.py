"""The same values get the same codes in every container."""

import datetime as dt
from pathlib import Path
from tempfile import TemporaryDirectory

import openpyxl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.counts.containers import CONTAINERS
from tests.counts.places import full_counts
from understudy.codec.table import TableCodec
from understudy.counts.files import read_table
from understudy.counts.opening import header_of, open_table
from understudy.schema import Boolean, Category, Date, Datetime, Float, Integer, Schema, UniformBins, Unit
from understudy.schema.schema import Dialect

SCHEMA = Schema(
    columns=(
        Category(name="city", labels=("Rome", "Köln", "1"), other="elsewhere"),
        Integer(name="age", lower=0, upper=9),
        Float(name="rate", lower=0.0, upper=1.0, bins=None, missing=False),
        Boolean(name="yes"),
        Date(name="day", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 1, 9)),
        Datetime(name="seen", lower=dt.datetime(2020, 1, 1), upper=dt.datetime(2020, 1, 9), resolution=3600),
    ),
    unit=Unit(),
)
KINDS = pa.schema(
    {
        "city": pa.string(),
        "age": pa.int32(),
        "rate": pa.float64(),
        "yes": pa.bool_(),
        "day": pa.date32(),
        "seen": pa.timestamp("ms"),
    }
)
ROW = st.fixed_dictionaries(
    {
        "city": st.sampled_from([None, "Rome", "Köln", "1", " Rome ", "Oslo"]),
        "age": st.sampled_from([None, 0, 3, 9, 12]),
        "rate": st.sampled_from([None, 0.0, 0.25, 0.5, 1.0, 1e-5, 7.5]),
        "yes": st.sampled_from([None, True, False]),
        "day": st.sampled_from([None, dt.date(2020, 1, 1), dt.date(2020, 1, 5), dt.date(2021, 1, 1)]),
        "seen": st.sampled_from([None, dt.datetime(2020, 1, 1, 5), dt.datetime(2020, 1, 3, 23)]),
    }
)


@settings(max_examples=6, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=7))
def test_the_same_values_get_the_same_codes(rows: list[dict[str, object]]) -> None:
    table = pa.Table.from_pylist(rows, KINDS)
    codec = TableCodec.of(SCHEMA)
    # A line of nothing but empty fields is a row in text and none in a workbook, so every row has a city.
    table = table.set_column(0, "city", table.column("city").fill_null("Rome"))
    expected = _codes(table, codec)
    with TemporaryDirectory() as folder:
        for name, make in CONTAINERS.items():
            assert _codes(make(table, Path(folder)), codec) == expected, name


def _codes(data: object, codec: TableCodec, schema: Schema = SCHEMA) -> list[list[int]]:
    table = open_table(data, schema)
    found = []
    for column in codec.domain.columns:
        found.append(
            [int(code) for _, batch in table.batches([column]) for code in codec.encode(column, batch[column])]
        )
    return found


@pytest.mark.parametrize("name", [name for name in CONTAINERS if name != "frame"])
def test_names_and_rows(name: str, tmp_path: Path) -> None:
    table = pa.table({"city": ["Rome", "Köln", None], "age": [1, None, 3], "note": ["a", "b", "c"]})
    schema = Schema(columns=SCHEMA.columns[:2], unit=Unit())
    place = CONTAINERS[name](table, tmp_path)
    assert [column for column, _ in header_of(place)] == ["city", "age", "note"]  # type: ignore[arg-type]
    opened = open_table(place, schema)
    # Lines of JSON have the schema's columns, whatever keys the first of them has.
    assert opened.undeclared == (() if name.startswith("json") else ("note",))
    assert sum(rows for rows, _ in opened.batches([])) == 3
    assert sum(full_counts(opened.bind(TableCodec.of(schema)))) == 3


def test_a_decimal_of_the_file_is_that_of_columns_without_their_own(tmp_path: Path) -> None:
    """Read as the same numbers in a plain file are; text in the plain form is no number there."""
    columns = (
        Float(name="plain", lower=0, upper=10, bins=UniformBins(10), missing_values=("9,9", "x.y"), missing=False),
        Float(name="swiss", lower=0, upper=10, bins=UniformBins(10), suffix="Fr.", missing=False),
        Float(name="own", lower=0, upper=10, bins=UniformBins(10), decimal=".", missing=False),
        Category(name="label", labels=("1,5", "1.5")),
    )
    lines = ["1,5;2,5 Fr.;3.5;1,5", "1.5;2.5;3,5;1.5", "9,9;-;;1,5", "x.y;(1);1e0;", "\xff;1,5,5;nan;1"]
    path = tmp_path / "t.csv"
    path.write_bytes("\r\n".join(["plain;swiss;own;label", *lines]).encode("latin-1"))
    schema = Schema(columns=columns, unit=Unit(), file=Dialect(decimal=","))
    codec = TableCodec.of(schema)
    found = _codes(path, codec, schema)
    unreadable = 10
    assert found == [
        [1, unreadable, unreadable, unreadable, unreadable],
        [2, unreadable, unreadable, unreadable, unreadable],
        [3, unreadable, unreadable, 1, unreadable],
        [0, 1, 0, 2, 2],
    ]
    said = read_table(path, decimal=".")
    assert _codes(said, codec, schema)[0][:2] == [unreadable, 1]


def test_numbers_of_a_workbook_are_numbers_whatever_sign_text_has(tmp_path: Path) -> None:
    column = Float(name="rate", lower=0, upper=10, bins=UniformBins(10), decimal=",", missing=False)
    schema = Schema(columns=(column,), unit=Unit())
    book = openpyxl.Workbook()
    for value in ("rate", 1.5, "2,5", "3.5"):
        book.active.append([value])
    book.save(tmp_path / "t.xlsx")
    (tmp_path / "t.jsonl").write_text('{"rate": 1.5}\n{"rate": "2,5"}\n{"rate": "3.5"}\n')
    for name in ("t.xlsx", "t.jsonl"):
        assert _codes(tmp_path / name, TableCodec.of(schema), schema) == [[1, 2, 10]]
