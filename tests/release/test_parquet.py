"""Rows written from codes: every reader finds the values, and nothing but them decides the bytes."""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.release.parquet import PAGE_ROWS, open_parquet, packed_places, write_parquet

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "uint8": (pa.uint8(), st.integers(0, 255)),
    "int16": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "uint16": (pa.uint16(), st.integers(0, 2**16 - 1)),
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "uint32": (pa.uint32(), st.integers(0, 2**32 - 1)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "few": (pa.int64(), st.integers(5, 7)),
    "float": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "text": (pa.string(), st.text()),
    "truth": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates()),
    "time": (pa.time64("us"), st.times()),
    "moment": (pa.timestamp("us"), st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))),
    "entry": (pa.dictionary(pa.uint8(), pa.string()), st.sampled_from(["a", "b", "", "ü"])),
    "either": (pa.dictionary(pa.int8(), pa.bool_()), st.booleans()),
    "number": (pa.dictionary(pa.int32(), pa.int64()), st.sampled_from([3, -4, 2**40])),
}


@st.composite
def columns(draw: st.DrawFn) -> tuple[str, Sequence[Any], bool, int]:
    """A kind, values, whether the column may be without one, and how often the values are repeated."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    optional = draw(st.booleans())
    value = st.none() | KINDS[kind][1] if optional else KINDS[kind][1]
    return kind, draw(st.lists(value, max_size=30)), optional, draw(st.sampled_from([1, 1, 1, 9, 40]))


def _stored(tables: Sequence[pa.Table], schema: pa.Schema, folder: Path) -> Path:
    path = folder / "rows.parquet"
    path.unlink(missing_ok=True)
    write_parquet(path, schema, tables)
    return path


@given(columns())
def test_every_value_is_read_as_it_was(tmp_path_factory: pytest.TempPathFactory, column: Any) -> None:
    kind, values, optional, times = column
    field = pa.field("value", KINDS[kind][0], nullable=optional)
    table = pa.table([pa.array(list(values) * times, field.type)], schema=pa.schema([field]))
    path = _stored([table, table.slice(0, 3), table.slice(1)], table.schema, tmp_path_factory.mktemp("rows"))
    whole = pa.concat_tables([table, table.slice(0, 3), table.slice(1)])
    found = pq.read_table(path)
    assert found.schema.field("value").type == field.type or pa.types.is_dictionary(field.type)
    assert found.column("value").to_pylist() == whole.column("value").to_pylist()
    with open_parquet(path) as stored:
        assert stored.metadata.num_rows == whole.num_rows


@pytest.mark.parametrize("entries", [1, 2, 3, 5, 17, 100, 255, 256, 257, 4000, 70_000])
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 1000])
def test_packed_places_are_found_again(entries: int, rows: int, tmp_path: Path) -> None:
    places = np.random.default_rng(entries + rows).integers(0, entries, rows)
    packed = packed_places(places, entries)
    width, eights = packed[0], -(-rows // 8)
    bits = np.unpackbits(np.frombuffer(packed[-eights * width :] if rows else b"", np.uint8), bitorder="little")
    found = bits.reshape(-1, width).astype(np.int64) @ (1 << np.arange(width, dtype=np.int64))
    assert found[:rows].tolist() == places.tolist()
    assert not found[rows:].any()


def _mixed(rows: int) -> pa.Table:
    rng = np.random.default_rng(7)
    gaps = rng.random(rows) < 0.1
    return pa.table(
        {
            "word": pa.DictionaryArray.from_arrays(
                pa.array(rng.integers(0, 3, rows).astype(np.uint8), mask=gaps), pa.array(["a", "b", "c"])
            ),
            "age": pa.array(rng.integers(17, 91, rows), mask=gaps),
            "id": pa.array(rng.integers(0, 2**60, rows)),
            "wage": pa.array(rng.normal(size=rows), mask=gaps),
            "voted": pa.array(rng.random(rows) < 0.4, mask=gaps),
            "day": pa.array(rng.integers(0, 20_000, rows).astype(np.int32), mask=gaps).cast(pa.date32()),
            "seen": pa.array(rng.integers(0, 2**50, rows)).cast(pa.timestamp("us")),
        }
    )


def test_other_readers_find_the_same_over_many_pages(tmp_path: Path) -> None:
    table = _mixed(2 * PAGE_ROWS + 5)
    plain = table.set_column(0, "word", table.column("word").cast(pa.string()))
    path = _stored([table, table.slice(0, 10)], plain.schema.with_metadata({"made": "here"}), tmp_path)
    whole = pa.concat_tables([plain, plain.slice(0, 10)])
    assert pq.read_schema(path) == whole.schema
    assert pq.read_schema(path).metadata[b"made"] == b"here"
    with duckdb.connect() as connection:
        assert connection.sql(f"SELECT * FROM '{path}'").to_arrow_table().cast(whole.schema).equals(whole)
    assert pl.read_parquet(path).equals(pl.from_arrow(whole))
    pd.testing.assert_frame_equal(pd.read_parquet(path), whole.to_pandas())


def test_the_same_rows_are_the_same_bytes(tmp_path: Path) -> None:
    first = _stored([_mixed(1000)], _mixed(1000).schema, tmp_path).read_bytes()
    assert _stored([_mixed(1000)], _mixed(1000).schema, tmp_path).read_bytes() == first
    assert pq.ParquetFile(tmp_path / "rows.parquet").metadata.created_by.startswith("understudy version ")


def test_a_file_is_no_larger_than_the_library_makes_it(tmp_path: Path) -> None:
    table = _mixed(100_000)
    path = _stored([table], table.schema, tmp_path)
    pq.write_table(table, tmp_path / "theirs.parquet", compression="zstd", use_dictionary=["word", "age", "day"])
    assert path.stat().st_size <= 1.05 * (tmp_path / "theirs.parquet").stat().st_size


def test_types_without_a_page_of_ours_are_left_to_the_library(tmp_path: Path) -> None:
    table = pa.table({"amount": pa.array([Decimal(1), Decimal(2), None], pa.decimal128(9, 2)), "age": [1, None, 3]})
    assert pq.read_table(_stored([table], table.schema, tmp_path)).equals(table)
    assert "parquet-cpp" in pq.ParquetFile(tmp_path / "rows.parquet").metadata.created_by


def test_no_rows_and_no_pieces_are_a_file_with_columns(tmp_path: Path) -> None:
    table = _mixed(5)
    plain = table.set_column(0, "word", table.column("word").cast(pa.string()))
    for pieces in ([], [plain.slice(0, 0)]):
        assert pq.read_table(_stored(pieces, plain.schema, tmp_path)).equals(plain.slice(0, 0))


def test_missing_values_where_none_may_be_are_refused(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("age", pa.int64(), nullable=False)])
    with pytest.raises(ValueError, match="age"):
        _stored([pa.table([pa.array([1, None])], schema=schema)], schema, tmp_path)
