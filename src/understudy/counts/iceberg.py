"""Iceberg: a table in a catalog, read at one snapshot.

A location is `iceberg:catalog.namespace.table@snapshot`. The catalog is looked up by its name where pyiceberg looks it
up: in `.pyiceberg.yaml` and in the environment (`PYICEBERG_CATALOG__…`), which also hold its password; a location never
does. Without a snapshot the newest one is taken at opening and told. Its list of files is fixed there: every pass reads
those, with the columns as they were at that snapshot, and without the rows that its delete files remove. Renamed and
added columns are for pyiceberg to bring together, which reads one file of the table at a time into memory.

Before the charge the catalog, the metadata and the manifests are read, and every file is asked for, so that one that is
gone is missed in time. No row is read. Nothing that the catalog or a store says is shown.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa

from understudy.counts.readers import Header, RowReader, batch_rows
from understudy.counts.source import Batch
from understudy.errors import InputError, UsageError
from understudy.schema import Schema

ASKED_AT_ONCE = 16
_LOCATION = re.compile(r"iceberg:([^.@/]+)\.([^@/]+)(?:@(.*))?", re.IGNORECASE | re.DOTALL)


class IcebergReader(RowReader):
    """Rows of one snapshot of an Iceberg table."""

    def __init__(self, location: str | Path, schema: Schema | None = None) -> None:
        written = _LOCATION.fullmatch(str(location))
        if written is None:
            fix = "Write iceberg:catalog.namespace.table, or iceberg:catalog.namespace.table@snapshot."
            raise InputError("iceberg:", "needs a catalog and a table in it.", fix)
        self.where = f"iceberg:{written[1]}.{written[2]}"
        self.engine = "Iceberg"
        wanted = _snapshot(self.where, written[3])
        self._table = _loaded(self.where, written[1], written[2])
        self._scan = _pinned(self.where, self._table, wanted)
        number = self._scan.snapshot_id
        self.snapshot = "no snapshot yet" if number is None else f"snapshot {number}"
        self.pinned = self.where if number is None else f"{self.where}@{number}"
        self._columns, self._header, self._tasks = _planned(self.where, self._scan)
        _check_files(self.where, self._table.io, self._tasks)

    @property
    def header(self) -> Header:
        """Names and storage types of the columns at the snapshot."""
        return self._header

    def batches(self, columns: Sequence[str], *, memory_bytes: int, threads: int) -> Iterator[Batch]:
        """Rows of these columns, file by file. Private."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        wanted = list(columns) or [self._header[0][0]]  # rows without columns are counted by the first
        projected = type(self._columns)(*(one for one in self._columns.fields if one.name in wanted))
        scan = ArrowScan(self._table.metadata, self._table.io, projected, AlwaysTrue())
        for task in self._tasks:
            if not columns and not task.delete_files:
                yield int(task.file.record_count), {}
                continue
            for batch in scan.to_record_batches([task]):
                yield from _cut(batch, columns)


def _cut(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[Batch]:
    """One batch in pieces of the usual size."""
    rows = batch_rows(len(columns))
    for start in range(0, batch.num_rows, rows):
        part = batch.slice(start, rows)
        yield part.num_rows, {name: part.column(part.schema.get_field_index(name)) for name in columns}


def _snapshot(where: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,19}", text):
        raise UsageError(where, "the snapshot after @ must be a whole number.", "Leave it out for the newest one.")
    return int(text)


def _loaded(where: str, catalog: str, name: str) -> Any:
    try:
        import pyiceberg.catalog
    except ImportError:
        raise InputError(
            where, "needs the package pyiceberg.", 'Install it: pip install "understudy[iceberg]".'
        ) from None
    with contextlib.suppress(Exception):  # whatever a catalog says, perhaps with the password it was asked with
        return pyiceberg.catalog.load_catalog(catalog).load_table(name)
    fix = f"Check that the catalog {catalog!r} is in .pyiceberg.yaml and can be reached, and that it holds the table."
    raise InputError(where, "cannot be opened.", fix)


def _pinned(where: str, table: Any, wanted: int | None) -> Any:
    """A scan of that snapshot, or of the newest."""
    newest = table.current_snapshot()
    number = wanted if wanted is not None else None if newest is None else newest.snapshot_id
    if wanted is not None and table.snapshot_by_id(wanted) is None:
        raise InputError(where, f"has no snapshot {wanted}.", "It may have expired; leave it out for the newest one.")
    if wanted is None and newest is not None and newest.schema_id not in (None, table.schema().schema_id):
        rule = f"its columns were changed after its newest snapshot, {newest.snapshot_id}."
        raise InputError(where, rule, f"Write {where}@{newest.snapshot_id} to read that one under its own columns.")
    return table.scan(snapshot_id=number)


def _planned(where: str, scan: Any) -> tuple[Any, Header, list[Any]]:
    """The columns at the snapshot, for pyiceberg and in words, and its files."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    with contextlib.suppress(Exception):  # a manifest that is gone, or a store that does not answer
        columns = scan.projection()
        kinds = schema_to_pyarrow(columns, include_field_ids=False)
        return columns, tuple((one.name, str(one.type)) for one in kinds), list(scan.plan_files())
    raise InputError(where, "its list of files cannot be read.", "Check that its snapshot is whole and can be reached.")


def _check_files(where: str, files: Any, tasks: Sequence[Any]) -> None:
    """Raises if a file of the snapshot is gone or is not Parquet, without a word about which."""
    listed = [task.file for task in tasks] + [one for task in tasks for one in task.delete_files]
    if any(str(getattr(one.file_format, "value", one.file_format)).upper() != "PARQUET" for one in listed):
        raise InputError(where, "holds files other than Parquet.", "Write it again as Parquet.")

    def there(path: str) -> bool:
        with contextlib.suppress(Exception):
            return bool(files.new_input(path).exists())
        return False

    with ThreadPoolExecutor(ASKED_AT_ONCE) as asking:
        if not all(asking.map(there, dict.fromkeys(one.file_path for one in listed))):
            raise InputError(where, "has files that are gone or cannot be reached.", "Name another snapshot.")
