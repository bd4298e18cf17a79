"""open_table: from whatever the user has to a private table, checked from outside and not yet read."""

import os
from pathlib import Path

from understudy.codec.table_codec import TableCodec
from understudy.counts.frame_source import FrameSource, FrameTable, is_frame
from understudy.counts.header import SUFFIXES, Container, container_of
from understudy.counts.source import DEFAULT_MEMORY_BYTES, CountSource, LabelCounts, PrivateTable
from understudy.counts.streamed_source import FileTable, StreamedSource, streamed_labels
from understudy.errors import InputError, UsageError, size_text
from understudy.schema import Schema

__all__ = ["DEFAULT_MEMORY_BYTES", "label_counts_of", "open_table", "source_of"]

LEAST_MEMORY_BYTES = 64 << 20
MOST_THREADS = 8


def open_table(
    data: object, schema: Schema, *, memory_bytes: int | None = None, threads: int | None = None
) -> PrivateTable:
    """A private table under a schema. Looks at the container and its header only; reads no row.

    Args:
        data: a pandas, polars or Arrow frame; a path or glob of CSV, TSV or Parquet files ("file.csv::multiline" if
            quoted fields of the text hold line ends); a DuckDB file ("file.duckdb" or "file.duckdb::table"); or a
            private table, which is handed back.
        schema: what the table may contain.
        memory_bytes: the most memory counting may use beside the data itself.
        threads: the most threads counting may use.

    Raises:
        InputError: the container cannot be used.
        SchemaError: the header does not fit the schema; every problem is listed.
        UsageError: a limit makes no sense.
    """
    memory = DEFAULT_MEMORY_BYTES if memory_bytes is None else memory_bytes
    if memory < LEAST_MEMORY_BYTES:
        least, given = size_text(LEAST_MEMORY_BYTES), size_text(memory)
        raise UsageError("memory limit", f"must be at least {least}, got {given}.")
    workers = min(MOST_THREADS, os.cpu_count() or 1) if threads is None else threads
    if workers < 1:
        raise UsageError("threads", f"must be at least 1, got {workers}.")
    if isinstance(data, str | Path):
        container = container_of(data)
        _check_first_line(container, schema)
        return FileTable(container, schema, memory_bytes=memory, threads=workers)
    if is_frame(data):
        return FrameTable(data, schema, memory_bytes=memory, threads=workers)
    if isinstance(data, PrivateTable):
        if data.schema != schema:
            raise UsageError("data", "was opened under another schema.", "Open it again under this one.")
        return data
    kinds = f"a pandas, polars or Arrow frame, or the path of a {', '.join(SUFFIXES)} file"
    own = "A source of your own is a subclass of understudy.counts.source.PrivateTable."
    raise InputError("data", f"must be {kinds}; got {type(data).__name__}.", own)


def source_of(table: PrivateTable, codec: TableCodec) -> CountSource:
    """Exact counts of any table under settled codes, after the unit's bound. Reads nothing yet."""
    return FrameSource(table, codec) if isinstance(table, FrameTable) else StreamedSource(table, codec)


def label_counts_of(table: PrivateTable, column: str) -> LabelCounts:
    """Labels of an open column of any table, after the unit's bound."""
    return streamed_labels(table, column)


def _check_first_line(container: Container, schema: Schema) -> None:
    """A text file without a header would have its first row quoted as column names, so that is told apart."""
    if container.kind == "delimited" and not set(container.names) & {column.name for column in schema.modelled}:
        rule = "its first line names none of the schema's columns."
        raise InputError(str(container.paths[0]), rule, "Is the header missing, or the delimiter another one?")
