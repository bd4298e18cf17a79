"""Rows of files as Arrow batches of bounded size, only the wanted columns.

Parquet is read by Arrow's own reader, which keeps dictionary-coded text as it is and does not judge its bytes;
delimited text by `delimited`; databases by DuckDB. Hostile names and paths never become part of a command, except
table and column names of a database, which are quoted.

A container that breaks while it is read (a damaged page, a disk error) raises InputError without the reader's words,
which might quote a row; memory that runs out raises MemoryError. How long values are decides neither: batches are cut
by bytes as well as by rows, and a limit of the engine is lifted where a single value exceeds it.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from understudy.counts.delimited import delimited_batches
from understudy.counts.header import Container, Settings, connect_read_only
from understudy.counts.source import Batch
from understudy.errors import InputError

__all__ = ["file_batches", "quoted"]

BATCH_ROWS = 1 << 17
MOST_VALUES = 1 << 22  # rows × columns of one batch
MOST_BATCH_BYTES = 1 << 28  # of Parquet, by the average row of the file
MOST_DICTIONARY_BYTES = 1 << 30
STREAM_BYTES = 1 << 16  # of every column; larger ones cost memory and page faults in wide files and win nothing
READER_ERRORS = (pa.ArrowException, duckdb.Error, OSError, ValueError, RuntimeError)


def file_batches(container: Container, columns: Sequence[str], *, memory_bytes: int, threads: int) -> Iterator[Batch]:
    """Number of rows and the wanted columns, batch by batch, over all files of the container.

    Raises:
        InputError: if the container (not its content) breaks.
        MemoryError: if the machine's memory runs out.
    """
    wanted = list(columns)
    for path in container.paths:
        broken = full = False
        batches = _batches(container, path, wanted, memory_bytes=memory_bytes, threads=threads)
        while True:
            try:
                batch = next(batches, None)
            except (MemoryError, duckdb.OutOfMemoryException):
                full = True
                break
            except READER_ERRORS:
                broken = True
                break
            if batch is None:
                break
            yield batch
        if full:
            raise MemoryError(f"{path}: memory ran out while it was read.")
        if broken:
            raise InputError(str(path), "broke off while it was read.", "Check the file and the disk it is on.")


def _batches(
    container: Container, path: Path, wanted: list[str], *, memory_bytes: int, threads: int
) -> Iterator[Batch]:
    if container.kind == "delimited":
        return delimited_batches(path, container.delimiter, container.names, wanted, multiline=container.multiline)
    if container.kind == "parquet":
        return _parquet_batches(path, wanted)
    return _database_batches(path, container.table, wanted, memory_bytes=memory_bytes, threads=threads)


def _batch_rows(columns: int) -> int:
    return max(1024, min(BATCH_ROWS, MOST_VALUES // max(1, columns)))


def _parquet_batches(path: Path, wanted: list[str]) -> Iterator[Batch]:
    with pq.ParquetFile(path) as plain:
        if not wanted:
            yield plain.metadata.num_rows, {}
            return
        rows = _batch_rows(len(wanted))
        rows = max(1, min(rows, MOST_BATCH_BYTES // _widest_row(plain.metadata)))
        texts = [field.name for field in plain.schema_arrow if field.name in wanted and _is_text(field.type)]
        coded = [name for name in texts if not _is_vast(plain.metadata, name)]
    with pq.ParquetFile(path, read_dictionary=coded, pre_buffer=False, buffer_size=STREAM_BYTES) as file:
        for batch in file.iter_batches(rows, columns=wanted, use_threads=False):
            place = {name: position for position, name in enumerate(batch.schema.names)}
            yield batch.num_rows, {name: batch.column(place[name]) for name in wanted}


def _widest_row(metadata: pq.FileMetaData) -> int:
    """Bytes of an average row, in the row group where it is longest."""
    groups = [metadata.row_group(position) for position in range(metadata.num_row_groups)]
    return max([1, *(int(group.total_byte_size // max(1, group.num_rows)) for group in groups)])


def _is_vast(metadata: pq.FileMetaData, name: str) -> bool:
    """Whether a column has more text in one row group than Arrow can hold in one dictionary (2 GiB)."""
    paths = [metadata.schema.column(position).path for position in range(metadata.num_columns)]
    place = paths.index(name)
    sizes = (
        metadata.row_group(group).column(place).total_uncompressed_size for group in range(metadata.num_row_groups)
    )
    return any(size > MOST_DICTIONARY_BYTES for size in sizes)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind))


def _database_batches(path: Path, table: str, wanted: list[str], *, memory_bytes: int, threads: int) -> Iterator[Batch]:
    """Rows in the order of the table. A value too long for the limit is read on with what memory the machine has."""
    settings: Settings = {"memory_limit": f"{memory_bytes}B", "threads": threads}
    done = 0
    with suppress(duckdb.OutOfMemoryException):
        for rows, batch in _query_batches(path, table, wanted, settings):
            yield rows, batch
            done += rows
        return
    for rows, batch in _query_batches(path, table, wanted, {"threads": 1}):
        left = min(rows, done)
        done -= left
        if rows > left:
            yield rows - left, {name: column.slice(left) for name, column in batch.items()}


def _query_batches(path: Path, table: str, wanted: list[str], settings: Settings) -> Iterator[Batch]:
    with connect_read_only(path, settings) as connection:
        if not wanted:
            ((rows,),) = connection.sql(f"SELECT count(*) FROM {quoted(table)}").fetchall()
            yield int(rows), {}
            return
        relation = connection.sql(f"SELECT {', '.join(map(quoted, wanted))} FROM {quoted(table)}")
        # The method's name differs between old and new DuckDB.
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        for batch in reader(_batch_rows(len(wanted))):
            yield batch.num_rows, {name: batch.column(position) for position, name in enumerate(wanted)}


def quoted(name: str) -> str:
    """A name as a quoted SQL identifier.

    >>> quoted('a"; DROP TABLE b')
    '"a""; DROP TABLE b"'
    """
    return '"' + name.replace('"', '""') + '"'
