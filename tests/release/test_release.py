"""Release: what it hands out in memory, from disk, and as streams is the same."""

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.errors import UsageError
from understudy.release.release import Release


def test_table_sample_and_file_agree(full_release: Release, full_folder: Path, tmp_path: Path) -> None:
    seed, rows = full_release.config.seed, full_release.config.rows[0]
    table = full_release.table
    assert isinstance(table, pd.DataFrame)
    assert table.equals(full_release.sample(rows, seed=seed))
    loaded = Release.load(full_folder)
    assert loaded.table.equals(loaded.sample(seed=seed))
    full_release.sample_to(tmp_path / "again.parquet", seed=seed)
    assert pq.read_table(tmp_path / "again.parquet").equals(loaded.table)


def test_a_loaded_release_is_the_saved_one(full_release: Release, full_folder: Path) -> None:
    loaded = Release.load(full_folder)
    assert loaded.schema == full_release.schema
    assert loaded.statement == full_release.statement
    assert loaded.config == full_release.config
    assert loaded.ledger == full_release.ledger
    assert len(loaded.transcript) == len(full_release.transcript)
    assert isinstance(Release.load(full_folder, frame_kind="polars").table, pl.DataFrame)
    where = {"sex": "F", "age": "0..39"}
    again = full_release.sample(500, seed=3, where=where)
    assert loaded.sample(500, seed=3, where=where).to_pandas(types_mapper=None).shape == again.shape
    assert pa.Table.from_pandas(again)["job"].to_pylist() == loaded.sample(500, seed=3, where=where)["job"].to_pylist()


def test_files_say_that_they_are_synthetic(full_folder: Path) -> None:
    marks = pq.read_schema(full_folder / "data.parquet").metadata
    assert next(iter(marks)) == b"understudy.synthetic"
    assert b"SYNTHETIC" in marks[b"understudy.notice"]
    assert float(marks[b"understudy.epsilon"]) <= 20.0


def test_types_are_the_schemas(full_folder: Path) -> None:
    types = {field.name: str(field.type) for field in pq.read_schema(full_folder / "data.parquet")}
    assert types == {
        "sex": "string",
        "mood": "string",
        "job": "string",
        "member": "bool",
        "age": "int64",
        "height": "double",
        "born": "date32[day]",
        "tall": "string",
    }


@pytest.mark.parametrize("copy", [0, 2, "1"])
def test_unknown_copies_are_refused(full_release: Release, copy: object) -> None:
    with pytest.raises(UsageError, match="from 1 to 1"):
        full_release.sample(1, copy=copy)  # type: ignore[arg-type]


def test_fresh_rows_differ_without_a_seed(plain_release: Release) -> None:
    assert not plain_release.sample(200).equals(plain_release.sample(200))
