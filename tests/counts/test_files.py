import datetime as dt
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.counts import readers
from understudy.counts.files import container_of, file_batches, quoted
from understudy.errors import InputError

SECRET = "Zyxwvut-9731"


def rows_of(location: object, columns: list[str]) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for count, batch in file_batches(container_of(location), columns, memory_bytes=1 << 27, threads=1):  # type: ignore[arg-type]
        assert list(batch) == columns
        part = list(zip(*(batch[name].to_pylist() for name in columns), strict=True)) if columns else [()] * count
        assert len(part) == count
        found += part
    return found


def test_only_wanted_columns_in_the_wanted_order_over_all_files(tmp_path: Path) -> None:
    for number in (1, 2):
        pq.write_table(pa.table({"a": [number], "b": ["x"], "c": [None]}), tmp_path / f"{number}.parquet")
    assert rows_of(f"{tmp_path}/*.parquet", ["b", "a"]) == [("x", 1), ("x", 2)]
    assert rows_of(f"{tmp_path}/*.parquet", []) == [(), ()]


def test_parquet_names_with_dots_and_nested_columns(tmp_path: Path) -> None:
    table = pa.table({"a": [1], "a.b": [2], "s": [{"t": 3}], "": [4], "A": [5]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert rows_of(tmp_path / "t.parquet", ["a", "A", "", "a.b"]) == [(1, 5, 4, 2)]
    assert rows_of(tmp_path / "t.parquet", ["s"]) == [({"t": 3},)]


def test_parquet_text_that_is_not_utf8_is_passed_on(tmp_path: Path) -> None:
    raw = pa.array([b"\xff" + SECRET.encode(), b"ok"])
    broken = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    pq.write_table(pa.table({"a": broken}), tmp_path / "t.parquet")
    ((count, batch),) = file_batches(container_of(tmp_path / "t.parquet"), ["a"], memory_bytes=1 << 27, threads=1)
    assert count == len(batch["a"]) == 2


def test_batches_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "BATCH_ROWS", 1024)
    pq.write_table(pa.table({"a": np.arange(5000)}), tmp_path / "t.parquet")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS a FROM range(5000)")
    for name, most in (("t.parquet", 1024), ("t.duckdb", 2048)):  # DuckDB hands over whole vectors
        batches = list(file_batches(container_of(tmp_path / name), ["a"], memory_bytes=1 << 27, threads=1))
        assert sum(count for count, _ in batches) == 5000
        assert max(count for count, _ in batches) <= most


def test_a_damaged_page_is_told_without_its_content(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [f"{SECRET}{row}" for row in range(3000)]}), path, compression="snappy")
    data = bytearray(path.read_bytes())
    data[4:2000] = b"\x7f" * 1996
    path.write_bytes(data)
    with pytest.raises(InputError, match="could not be read to its end") as caught:
        rows_of(path, ["a"])
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_file_that_vanishes_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    container = container_of(path)
    path.unlink()
    with pytest.raises(InputError, match="could not be read to its end"):
        list(file_batches(container, ["a"], memory_bytes=1 << 27, threads=1))


def test_quoting() -> None:
    assert quoted('x"; --') == '"x""; --"'


def test_old_timestamps_of_parquet_do_not_wrap_around(tmp_path: Path) -> None:
    moments = [dt.datetime(1, 1, 1), dt.datetime(2020, 2, 29, 12), dt.datetime(9999, 12, 31)]
    pq.write_table(pa.table({"a": moments}), tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    assert rows_of(tmp_path / "t.parquet", ["a"]) == [(moment,) for moment in moments]
    assert container_of(tmp_path / "t.parquet").header == (("a", "timestamp[us]"),)


@pytest.mark.parametrize("name", ["other", "base"])
def test_tables_outside_the_main_schema(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.duckdb"  # whose name the database has, beside a schema of the same name
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE SCHEMA other; CREATE TABLE {name}.other.t AS SELECT 1 AS a")
    assert rows_of(path, ["a"]) == [(1,)]
    assert rows_of(f"{path}::other.t", []) == [()]
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE {name}.main.t AS SELECT 2 AS b, 3 AS c")
    assert container_of(f"{path}::t").names == ("b", "c")
    assert rows_of(f"{path}::t", ["c", "b"]) == [(3, 2)]
    assert rows_of(f"{path}::other.t", ["a"]) == [(1,)]
    with pytest.raises(InputError, match=r"tables here: other\.t, t"):
        container_of(path)
