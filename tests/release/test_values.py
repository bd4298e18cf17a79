"""Rows against the schema: valid values pass in every kind, one bad value anywhere is found."""

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.codec.table import TableCodec
from understudy.release.verify import check_rows
from understudy.testing.cases import every_kind, small

MARKS = {"understudy.synthetic": "true", "understudy.run": "r"}


def _rows(codec: TableCodec, rows: int = 400) -> pa.Table:
    rng = np.random.default_rng(2)
    codes = {name: rng.integers(0, size, rows) for name, size in codec.domain.sizes.items()}
    return codec.decode(codes, rng)


def _found(table: pa.Table, codec: TableCodec, path: Path) -> list[str]:
    pq.write_table(table.replace_schema_metadata(MARKS), path)
    return [str(problem) for problem in check_rows(path, codec, table.num_rows, "r")]


def _with(table: pa.Table, name: str, value: object) -> pa.Table:
    values = [*table[name].to_pylist()[:-1], value]
    place, field = table.column_names.index(name), table.schema.field(name)
    return table.set_column(place, field, pa.array(values, field.type))


def test_decoded_rows_of_every_kind_are_valid(tmp_path: Path) -> None:
    codec = TableCodec.of(every_kind())
    assert _found(_rows(codec), codec, tmp_path / "data.parquet") == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("city", "Paris"),
        ("income", -1),
        ("income", 999_999),
        ("height", 2.6),
        ("height", float("nan")),
        ("born", dt.date(2000, 1, 1)),
        ("seen", dt.datetime(2021, 1, 1, tzinfo=dt.UTC)),
    ],
)
def test_one_bad_value_is_found(name: str, value: object, tmp_path: Path) -> None:
    codec = TableCodec.of(every_kind())
    found = _found(_with(_rows(codec), name, value), codec, tmp_path / "data.parquet")
    assert any(f"column {name!r} holds a value outside its domain" in problem.replace(":", "") for problem in found), (
        found
    )
    assert all(str(value) not in problem for problem in found)


def test_broken_rules_are_found(tmp_path: Path) -> None:
    codec = TableCodec.of(small())
    found = _found(_rows(codec), codec, tmp_path / "data.parquet")
    assert len(found) == 1
    assert "rule excludes" in found[0]


def test_other_runs_and_row_counts_are_found(tmp_path: Path) -> None:
    codec = TableCodec.of(every_kind())
    table = _rows(codec, 10)
    path = tmp_path / "data.parquet"
    _found(table, codec, path)
    assert "another run" in check_rows(path, codec, 10, "other")[0].rule
    assert "number of rows" in check_rows(path, codec, 11, "r")[0].rule
    assert "is missing" in check_rows(tmp_path / "none.parquet", codec, 1, "r")[0].rule
