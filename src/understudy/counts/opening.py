"""Opening a private table, whatever the user has: a frame, a file, a place in a database or a lake, or an object.

A location is text. Its scheme ("postgresql://…", "delta:…") or the suffix of its file says which source opens it, and
nothing of a source is loaded before that. Everything here looks at the outside of a table and at its header; no row is
read.
"""

import contextlib
import os
import re
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

from narwhals.dependencies import is_into_series

from understudy.codec.table import TableCodec
from understudy.counts.datasets import DatasetReader
from understudy.counts.files import PARQUET, SUFFIXES, FileReader
from understudy.counts.frames import FrameSource, FrameTable, is_frame
from understudy.counts.readers import RowReader, StreamedTable
from understudy.counts.source import DEFAULT_MEMORY_BYTES, CountSource, LabelCounts, PrivateTable
from understudy.counts.stores import MAGIC, STORES
from understudy.counts.streaming import StreamedSource, streamed_labels
from understudy.errors import InputError, UsageError, size_text
from understudy.options import Registry
from understudy.schema import Schema

ENGINES: dict[str, str | type[PrivateTable | RowReader]] = {
    "postgresql": "understudy.counts.postgres:PostgresReader",
    "postgres": "understudy.counts.postgres:PostgresReader",
    "sqlite": "understudy.counts.sqlite:SqliteReader",
    ".sqlite": "understudy.counts.sqlite:SqliteReader",
    ".sqlite3": "understudy.counts.sqlite:SqliteReader",
    ".db": "understudy.counts.sqlite:SqliteReader",
    **dict.fromkeys(STORES, "understudy.counts.datasets:DatasetReader"),
    "delta": "understudy.counts.delta:DeltaReader",
    "iceberg": "understudy.counts.iceberg:IcebergReader",
    "spark": "understudy.counts.spark:SparkTable",
}
"""Schemes of locations with the reader or table of each, as "module:Class"; loaded when a location says its name."""

DATABASES = "understudy.counts.databases:ObjectReader"

SOURCES: Registry[PrivateTable | RowReader] = Registry(
    "source", {**dict.fromkeys(SUFFIXES, "understudy.counts.files:FileReader"), **ENGINES}, (PrivateTable, RowReader)
)
"""Sources of locations, by the suffix of a file (".csv") or the scheme before ":" ("postgresql").

Another package adds one by an entry point in the group `understudy.sources` with that suffix or scheme as its name. It
points to a subclass of `RowReader`, made of the location and the schema, or of `PrivateTable`, made of the location,
the schema, `memory_bytes` and `threads`. Nothing of it is loaded before a location says its name.
"""
OBJECTS: Registry[PrivateTable | RowReader] = Registry(
    "source",
    {
        **dict.fromkeys(
            ("understudy.counts.databases", "sqlalchemy", "adbc_driver_manager", "duckdb", "_duckdb", "ibis"), DATABASES
        ),
        "pyspark": "understudy.counts.spark:SparkTable",
    },
    (PrivateTable, RowReader),
)
"""Sources of objects that are no frames in memory, by the package ("duckdb") or module that their type comes from."""

SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):.*", re.IGNORECASE | re.DOTALL)
SECRET = re.compile(r"(?:^|[?;&\s])\w*(?:password|passwd|pwd|secret|token|key|sig)\w*\s*=", re.IGNORECASE)
LEAST_MEMORY_BYTES = 64 << 20
MOST_THREADS = 8


def is_of_files(location: str | Path) -> bool:
    """Whether a location names files, which is also what is said of those that nobody has declared."""
    return _source_class(location) is FileReader


def _source_class(location: str | Path) -> Callable[..., PrivateTable | RowReader]:
    """The class that opens a location; what nobody has declared is taken for a file and judged there."""
    text = str(location)
    scheme = SCHEME.fullmatch(text)
    _refuse_secrets(text, scheme[1].lower() if scheme else "")
    for name in (scheme[1].lower() if scheme else "", Path(text.partition("::")[0]).suffix.lower()):
        if name and (name in SOURCES.built_in or name in SOURCES.offered()):
            found = SOURCES.find(name)
            return DatasetReader if found is FileReader and _is_dataset(text) else found
        if scheme:
            _refuse_foreign(text)  # before its suffix can make it look like a file
    _refuse_foreign(text)
    return DatasetReader if _is_dataset(text) else FileReader


def _is_dataset(location: str) -> bool:
    """Whether a location on this machine is a folder, or a pattern of Parquet files in several folders.

    >>> [_is_dataset(f"data/{name}") for name in ("year=*/*.parquet", "*.parquet", "*/x.csv")]
    [True, False, False]
    """
    folder, _, name = location.rpartition("/")
    with contextlib.suppress(ValueError):
        return os.path.isdir(location) or bool(MAGIC.search(folder) and name.lower().endswith(PARQUET))
    return False


def _refuse_secrets(location: str, scheme: str) -> None:
    """Raises, without a word of it, for what looks like a location with a password or key and is no file that is there.

    A reader of PostgreSQL tells its own locations apart by itself.
    """
    if scheme.startswith("postgres") or _is_there(location):
        return
    known = scheme in SOURCES.built_in or scheme in SOURCES.offered()
    named = re.match(r"[^/\\]*:[^/\\]*:[^/\\]*@" if known else r"[^/\\]*:[^/\\]*@", location)
    if named or re.search(r"://[^/]*:[^/]*@", location) or SECRET.search(location):
        rule = "holds, or seems to hold, a password or key; others can see locations."
        raise InputError("location", rule, "docs/engines.md says where each engine looks for them.")


def _is_there(path: str) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return os.path.exists(path.partition("::")[0])
    return False


def _refuse_foreign(location: str) -> None:
    """Raises for what is meant for a database and would be quoted as a path that is not there, password and all."""
    foreign = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", location)
    if foreign:
        schemes = ", ".join(name for name in SOURCES.names() if not name.startswith("."))
        raise InputError(f"location {foreign[1]}://…", "has a scheme that is not known.", f"Known: {schemes}.")
    if re.search(r"\b(password|pwd)\s*=", location, re.IGNORECASE):
        raise InputError("location", "holds a password and is not a location.", "docs/engines.md lists their forms.")


def _object_class(data: object) -> Callable[..., PrivateTable | RowReader] | None:
    """The class that opens an object: by the package of its type, or as a stream of Arrow."""
    for kind in type(data).__mro__:
        for name in (kind.__module__, kind.__module__.partition(".")[0]):
            if name in OBJECTS.built_in:
                return OBJECTS.find(name)
    streams = hasattr(data, "__arrow_c_stream__") and not is_into_series(data)  # one column is no table
    return OBJECTS.find("understudy.counts.databases") if streams else None


def header_of(data: object, schema: Schema | None = None) -> list[tuple[str, str]]:
    """Column names and storage types of a location or an object other than a frame; reads no row.

    Of a file that a schema is for, what the location does not declare is taken from the schema.

    Raises:
        InputError: if the container cannot be used.
    """
    found = _found(data, schema)
    if isinstance(found, RowReader):
        header = list(found.header)
        if found is not data:
            found.close()
        return header
    if isinstance(found, type) and issubclass(found, PrivateTable):
        return found.header_of(data)
    raise _unknown(data)


def _unknown(data: object) -> InputError:
    """What to say of an object that nothing here opens; its type alone, since its text may hold rows or a password."""
    kinds = f"a pandas, polars or Arrow frame, the path of a {', '.join(SUFFIXES)} file or another location"
    own = "A source of your own is a subclass of understudy.counts.readers.RowReader."
    return InputError("data", f"must be {kinds}; got {type(data).__name__}.", own)


def _found(data: object, schema: Schema | None) -> object:
    """What opens the data, not yet a table: a reader, or the class of a source that counts in its own way."""
    if isinstance(data, RowReader):
        return data
    kind = _source_class(data) if isinstance(data, str | Path) else _object_class(data)
    if isinstance(kind, type) and issubclass(kind, RowReader):
        return kind(data, schema)  # type: ignore[call-arg]
    return kind


def open_table(
    data: object, schema: Schema, *, memory_bytes: int | None = None, threads: int | None = None
) -> PrivateTable:
    """A private table under a schema. Looks at the container and its header only; reads no row.

    Args:
        data: a pandas, polars or Arrow frame; a path or glob of files, text also compressed ("file.csv::multiline" if
            quoted fields contain line breaks; `read_table` says more about it), Parquet, Arrow, JSON lines, Stata, SPSS
            or SAS; a workbook ("file.xlsx::sheet"); a DuckDB file ("file.duckdb" or "file.duckdb::table"); a location
            in a database or a lake (docs/engines.md lists them); a location that another package can open; a reader; or
            a private table, which is handed back.
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
    if isinstance(data, PrivateTable):
        if data.closed:
            raise UsageError("data", "was closed.", "Open it again.")
        if data.schema != schema:
            raise UsageError("data", "was opened under another schema.", "Open it again under this one.")
        if isinstance(data, StreamedTable):
            data.reader.check_again()
        return data
    if not isinstance(data, str | Path) and is_frame(data):
        return FrameTable(data, schema, memory_bytes=memory, threads=workers)
    found = _found(data, schema)
    if isinstance(found, RowReader):
        return _streamed(found, schema, memory_bytes=memory, threads=workers, own=found is not data)
    if found is not None:
        return found(data, schema, memory_bytes=memory, threads=workers)  # type: ignore[operator, no-any-return]
    raise _unknown(data)


def _streamed(reader: RowReader, schema: Schema, *, memory_bytes: int, threads: int, own: bool) -> StreamedTable:
    """The table behind a reader; one that we opened is closed when the table goes, or if it does not fit the schema."""
    try:
        table = StreamedTable(reader, schema, memory_bytes=memory_bytes, threads=threads)
    except BaseException:
        if own:
            reader.close()
        raise
    if own:
        weakref.finalize(table, reader.close)
    return table


def _loaded_class(module: str, name: str) -> type | None:
    """A class of one of our own modules, if anybody has loaded it; without it no table can be one of its kind."""
    found = sys.modules.get(module)
    return None if found is None else getattr(found, name)


def source_of(table: PrivateTable, codec: TableCodec) -> CountSource:
    """Exact counts of any table under fixed codes, after the unit's bound. Reads nothing yet.

    Tables that count in their own way are listed here and nowhere else: each of them has to prove its bound.
    """
    if isinstance(table, FrameTable):
        return FrameSource(table, codec)
    if type(table) is _loaded_class("understudy.counts.spark", "SparkTable"):
        from understudy.counts.spark import SparkSource

        return SparkSource(table, codec)  # type: ignore[arg-type]
    return StreamedSource(table, codec)


def label_counts_of(table: PrivateTable, column: str) -> LabelCounts:
    """Labels of an open column of any table, after the unit's bound."""
    if type(table) is _loaded_class("understudy.counts.spark", "SparkTable"):
        from understudy.counts.spark import spark_labels

        return spark_labels(table, column)  # type: ignore[arg-type]
    return streamed_labels(table, column)
