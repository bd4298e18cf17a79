"""Rows of files as Arrow batches of bounded size, only the wanted columns.

Parquet is read by Arrow's own reader, which keeps dictionary-coded text as it is and does not judge its bytes;
delimited text by `delimited`; databases by DuckDB. Hostile names and paths never become part of a command, except
table and column names of a database, which are quoted.

A container that breaks while it is read (a damaged page, a disk error) raises InputError without the reader's words,
which might quote a row.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from understudy.counts.delimited import delimited_batches
from understudy.counts.header import Container, Settings, connect_read_only
from understudy.errors import InputError

__all__ = ["Batch", "arrow_reader", "file_batches", "quoted"]

Batch = tuple[int, dict[str, pa.Array]]

BATCH_ROWS = 1 << 17
MOST_VALUES = 1 << 22  # rows × columns of one batch
STREAM_BYTES = 1 << 16  # of every column; larger ones cost memory and page faults in wide files and win nothing
READER_ERRORS = (pa.ArrowException, duckdb.Error, OSError, ValueError, RuntimeError)


def file_batches(container: Container, columns: Sequence[str], *, memory_bytes: int, threads: int) -> Iterator[Batch]:
    """Number of rows and the wanted columns, batch by batch, over all files of the container.

    Raises:
        InputError: if the container (not its content) breaks.
    """
    wanted = list(columns)
    for path in container.paths:
        broken = False
        batches = _batches(container, path, wanted, memory_bytes=memory_bytes, threads=threads)
        while not broken:
            try:
                batch = next(batches, None)
            except READER_ERRORS:
                broken = True
                break
            if batch is None:
                break
            yield batch
        if broken:
            raise InputError(str(path), "broke off while it was read.", "Check the file and the disk it is on.")


def _batches(
    container: Container, path: Path, wanted: list[str], *, memory_bytes: int, threads: int
) -> Iterator[Batch]:
    if container.kind == "delimited":
        return delimited_batches(path, container.delimiter, container.names, wanted)
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
        coded = [field.name for field in plain.schema_arrow if field.name in wanted and _is_text(field.type)]
    with pq.ParquetFile(path, read_dictionary=coded, pre_buffer=False, buffer_size=STREAM_BYTES) as file:
        for batch in file.iter_batches(_batch_rows(len(wanted)), columns=wanted, use_threads=False):
            place = {name: position for position, name in enumerate(batch.schema.names)}
            yield batch.num_rows, {name: batch.column(place[name]) for name in wanted}


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind))


def _database_batches(path: Path, table: str, wanted: list[str], *, memory_bytes: int, threads: int) -> Iterator[Batch]:
    settings: Settings = {"memory_limit": f"{memory_bytes}B", "threads": threads, "preserve_insertion_order": False}
    with connect_read_only(path, settings) as connection:
        if not wanted:
            ((rows,),) = connection.sql(f"SELECT count(*) FROM {quoted(table)}").fetchall()
            yield int(rows), {}
            return
        query = f"SELECT {', '.join(map(quoted, wanted))} FROM {quoted(table)}"
        for batch in arrow_reader(connection, query, _batch_rows(len(wanted))):
            yield batch.num_rows, {name: batch.column(position) for position, name in enumerate(wanted)}


def arrow_reader(connection: duckdb.DuckDBPyConnection, query: str, rows: int) -> pa.RecordBatchReader:
    """A query's result as a stream of batches, under the method name of old and new DuckDB."""
    relation = connection.sql(query)
    method = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return method(rows)


def quoted(name: str) -> str:
    """A name as a quoted SQL identifier.

    >>> quoted('a"; DROP TABLE b')
    '"a""; DROP TABLE b"'
    """
    return '"' + name.replace('"', '""') + '"'
