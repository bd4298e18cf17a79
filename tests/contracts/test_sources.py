"""Every way to read a table, against the contract of count sources."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from understudy.counts.open import open_table
from understudy.counts.source import PrivateTable
from understudy.schema import Schema
from understudy.testing import check_source


class Files:
    """A fresh file name for every table."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0

    def fresh(self, suffix: str) -> Path:
        self.number += 1
        return self.folder / f"table {self.number}'{suffix}"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_arrow_frame() -> None:
    check_source(open_table)


def test_pandas_frame() -> None:
    check_source(lambda table, schema: open_table(table.to_pandas(), schema))


def test_polars_frame() -> None:
    import polars

    check_source(lambda table, schema: open_table(polars.from_arrow(table), schema))


def test_parquet_file(files: Files) -> None:
    def open_parquet(table: pa.Table, schema: Schema) -> PrivateTable:
        path = files.fresh(".parquet")
        pyarrow.parquet.write_table(table, path, row_group_size=16)
        return open_table(path, schema)

    check_source(open_parquet)


def test_parquet_glob(files: Files) -> None:
    def open_glob(table: pa.Table, schema: Schema) -> PrivateTable:
        folder = files.fresh("")
        folder.mkdir()
        half = table.num_rows // 2
        pyarrow.parquet.write_table(table.slice(0, half), folder / "a.parquet")
        pyarrow.parquet.write_table(table.slice(half), folder / "b.parquet")
        return open_table(f"{folder}/*.parquet", schema)

    check_source(open_glob)


def test_duckdb_file(files: Files) -> None:
    import duckdb

    def open_database(table: pa.Table, schema: Schema) -> PrivateTable:
        path = files.fresh(".duckdb")
        with duckdb.connect(str(path)) as connection:
            connection.register("arrow_rows", table)
            connection.execute('create table people as select * from "arrow_rows"')
        return open_table(f"{path}::people", schema)

    check_source(open_database)


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_delimited_file(files: Files, suffix: str) -> None:
    import csv

    def open_delimited(table: pa.Table, schema: Schema) -> PrivateTable:
        path = files.fresh(suffix)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="\t" if suffix == ".tsv" else ",", quoting=csv.QUOTE_ALL)
            writer.writerow(table.column_names)
            writer.writerows([["" if value is None else value for value in row.values()] for row in table.to_pylist()])
        return open_table(path, schema)

    check_source(open_delimited)
