"""Iceberg: snapshots, rows that were deleted, columns that were renamed, files that are gone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.counts.places import full_counts, people
from tests.engines import lakes
from tests.engines.available import needs
from understudy.codec.table import TableCodec
from understudy.counts.iceberg import IcebergReader
from understudy.counts.opening import open_table
from understudy.errors import InputError, UsageError

TABLE = pa.table({"sex": ["F", "M", None, "F"], "age": [1, 2, 3, 4], "city": ["Rome", "Oslo", None, "Rome"]})


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Any]:
    needs("pyiceberg")
    from pyiceberg.catalog import load_catalog

    with lakes.catalog(tmp_path):
        made = load_catalog("lake").create_table("people.rows", schema=TABLE.schema)
        made.append(TABLE)
        yield made


def counts(data: object) -> list[int]:
    return full_counts(open_table(data, people()).bind(TableCodec.of(people())))


def test_the_snapshot_is_pinned_and_told(table: Any) -> None:
    first = table.current_snapshot().snapshot_id
    opened = open_table("iceberg:lake.people.rows", people())
    table.append(TABLE)
    assert full_counts(opened.bind(TableCodec.of(people()))) == counts(TABLE)
    assert counts(f"iceberg:lake.people.rows@{first}") == counts(TABLE)
    assert sum(counts("iceberg:lake.people.rows")) == 8
    assert IcebergReader(f"iceberg:lake.people.rows@{first}").snapshot == f"snapshot {first}"


def test_deleted_rows_do_not_count_and_renamed_columns_are_found(table: Any) -> None:
    table.delete("age = 4")
    assert counts("iceberg:lake.people.rows") == counts(TABLE.slice(0, 3))
    assert sum(rows for rows, _ in open_table("iceberg:lake.people.rows", people()).batches([])) == 3
    before = table.current_snapshot().snapshot_id
    with table.update_schema() as change:
        change.rename_column("city", "town")
    with table.update_schema() as change:
        change.add_column("city", table.schema().find_type("town"))
    assert counts(f"iceberg:lake.people.rows@{before}") == counts(TABLE.slice(0, 3))
    with pytest.raises(InputError, match="columns were changed"):
        open_table("iceberg:lake.people.rows", people())


def test_a_table_without_rows(table: Any) -> None:
    from pyiceberg.catalog import load_catalog

    load_catalog("lake").create_table("people.nobody", schema=TABLE.schema)
    assert sum(counts("iceberg:lake.people.nobody")) == 0


def test_what_cannot_be_read_is_refused_before_rows(table: Any, tmp_path: Path) -> None:
    for location in ("iceberg:lake.people.nothing", "iceberg:nowhere.people.rows", "iceberg:lake.people.rows@7"):
        with pytest.raises(InputError) as caught:
            open_table(location, people())
        assert caught.value.__context__ is None
    with pytest.raises(UsageError, match="whole number"):
        open_table("iceberg:lake.people.rows@newest", people())
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
    with pytest.raises(InputError, match="gone"):
        open_table("iceberg:lake.people.rows", people())
