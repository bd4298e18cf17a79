"""Tables behind Python objects: a connection with a table or query, a DuckDB relation, an Ibis table, an Arrow stream.

    us.read_database(connection, table="schema.people")
    us.read_database(connection, query="SELECT … FROM …")

Most of these objects promise no snapshot that would outlast one query, and some can be read once only. So the query
runs once, when rows are first needed, with the columns that the schema names, and all passes are of the rows that it
returned. These wait in memory up to the share of the memory limit that is for batches, and beyond it in a temporary
file without a name: nobody else can open it, and the operating system frees it when the process ends, however it ends.
Unlike what other streams leave there, it holds values, compressed and not encrypted.

Opening asks for the names of the columns, by the same query without any row, so that a missing table, a missing
privilege or a broken connection is found before the charge.

A connection stays the caller's. Nothing is committed or rolled back on it, and a transaction that the caller has begun
goes on. Of an SQLAlchemy engine a connection of its own is taken and given back.

What these engines say is not shown, as everywhere: see `readers`. Neither is a query, which may hold literals.
"""

import abc
import datetime as dt
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from understudy.counts.files import columns_read, quoted
from understudy.counts.postgres import QUOTES, expression, names_of
from understudy.counts.readers import Header, RowReader, batch_rows, in_utc
from understudy.counts.source import Batch
from understudy.counts.values import batches_of_rows, decimal_signs
from understudy.errors import InputError, UnderstudyError, UsageError
from understudy.schema import Schema

Found = TypeVar("Found")
ARROW_SCAN = "ARROW_SCAN"
"""In the names that versions of DuckDB have for reading an Arrow object of Python."""
NO_ROWS = "SELECT * FROM {} WHERE 1 = 0"
BACKTICKS = ("mysql", "mariadb", "bigquery", "databricks", "spark", "hive")
"""Vendors whose SQL puts names in backticks, by what their ADBC drivers call them."""
ARROW_OF_PYTHON: dict[type, str] = {
    bool: "bool",
    int: "int64",
    float: "double",
    Decimal: "double",
    dt.date: "date32[day]",
    dt.datetime: "timestamp[us]",
    dt.time: "time64[us]",
}


@dataclass(frozen=True, slots=True, eq=False)
class DatabaseTable:
    """A table or the rows of a query behind a connection; `read_database` makes it. Nothing is opened yet."""

    connection: Any = field(repr=False)
    table: str = ""
    query: str = field(default="", repr=False)

    def source(self, quote: Callable[[str], str] = quoted) -> str:
        """What stands after FROM: the table in quotes, or the query in parentheses."""
        return ".".join(map(quote, names_of(self.table))) if self.table else f"({self.query}\n) AS rows_of_query"

    @property
    def where(self) -> str:
        """The table in words; a query is not quoted."""
        return f"table {self.table}" if self.table else "query"


def read_database(connection: object, *, table: str | None = None, query: str | None = None) -> DatabaseTable:
    """A table, or the rows of a query, behind a connection: every function that takes a table accepts it.

    Nothing is opened or read yet. The query runs once in each call that is given the result, and all counts of that
    call are of the rows it returned.

    Args:
        connection: an SQLAlchemy engine or connection, an ADBC connection (`dbapi`), or a DuckDB connection.
        table: its name, or schema.table; names as they are stored, in double quotes if they hold a dot.
        query: one SELECT in the words of that database, in place of a table.

    Raises:
        UsageError: it is neither a table nor a query, or the connection is of a kind that cannot be read.
    """
    if (table is None) == (query is None):
        raise UsageError("read_database", "needs either table= or query=.")
    if table is not None and not names_of(table):
        raise UsageError("table", "must be a name, or schema.table.", QUOTES)
    bare = (query or "").strip().rstrip(";").rstrip()
    if query is not None and not bare:
        raise UsageError("query", "must be a SELECT.")
    _connection_query(connection)
    return DatabaseTable(connection, table or "", bare)


class Query(abc.ABC):
    """One way of asking for rows: what it is called, its columns, and its rows as batches."""

    engine: ClassVar[str] = ""
    zones_are_its_own: ClassVar[bool] = False
    """Whether the zone of an instant belongs to the table, as in a frame, and not to a session or a machine."""
    unit: str | None = None
    """The column of ids, of which different values must stay different."""

    @abc.abstractmethod
    def header(self) -> Header:
        """Names and types of the columns, by asking for no row."""

    @abc.abstractmethod
    def stream(self, columns: Sequence[str], decimals: Mapping[str, str]) -> Iterator[Batch]:
        """Every row of these columns once. Private."""

    @property
    def engine_name(self) -> str:
        """What holds the table, in words."""
        return self.engine

    def check_again(self) -> None:  # noqa: B027 - most can be asked again
        """Refuses to be asked where rows that were there are gone."""


class ObjectReader(RowReader):
    """Rows behind a Python object, which is asked once; all passes are of the rows it gave then."""

    snapshot = "the rows of one query"

    def __init__(self, data: object, schema: Schema | None = None) -> None:
        self.where = data.where if isinstance(data, DatabaseTable) else f"object of type {type(data).__name__}"
        way = _connection_query(data.connection) if isinstance(data, DatabaseTable) else _table_query(data)
        self._query = _unworded(self.where, lambda: way(data, to_be_read=schema is not None))
        self._header: Header = _unworded(self.where, self._query.header)
        self.engine = _unworded(self.where, lambda: self._query.engine_name)
        self._decimals = decimal_signs(schema)
        self._wanted = [] if schema is None else columns_read(schema)
        self._kept: KeptRows | None = None
        self._closed = False
        self._query.unit = None if schema is None else schema.unit.column

    @property
    def header(self) -> Header:
        """Names and types of the columns, as the engine told when it was asked for no row."""
        return self._header

    def batches(self, columns: Sequence[str], *, memory_bytes: int, threads: int) -> Iterator[Batch]:
        """Rows of these columns, batch by batch, from what the one query gave. Private."""
        if self._closed:
            raise InputError(self.where, "was closed.", "Open it again.")
        if self._kept is None:
            kept = KeptRows(memory_bytes)
            names = {name for name, _ in self._header}
            wanted = list(dict.fromkeys([*(name for name in self._wanted if name in names), *columns]))
            for rows, batch in self._query.stream(wanted, self._decimals):
                kept.append(rows, batch if self._query.zones_are_its_own else _all_in_utc(batch))
            self._kept = kept
        yield from self._kept.read(columns)

    def check_again(self) -> None:
        """Refuses a stream that somebody else has read meanwhile, or that broke off."""
        if self._kept is None:
            self._query.check_again()

    def close(self) -> None:
        """Lets go of the rows that were kept; a connection stays the caller's."""
        self._closed, self._kept = True, None


def _all_in_utc(batch: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    return {name: in_utc(values) for name, values in batch.items()}


def _unworded(where: str, ask: Callable[[], Found]) -> Found:
    """What the engine answers before any row is read, or a refusal without its words."""
    try:
        return ask()
    except UnderstudyError:
        raise
    except Exception:  # noqa: BLE001 - whatever an engine raises
        pass
    raise InputError(where, "cannot be read.", "Check that it is there, and that the connection may read it.")


class KeptRows:
    """Batches to be read again and again: in memory up to a limit, beyond it in a temporary file without a name."""

    def __init__(self, memory_bytes: int) -> None:
        self._left = memory_bytes
        self._blocks: list[tuple[int, dict[str, pa.Array | tuple[int, int]]]] = []
        self._file: Any = None

    def append(self, rows: int, batch: Mapping[str, pa.Array]) -> None:
        """Keeps one batch."""
        self._left -= sum(values.nbytes for values in batch.values())
        if self._left >= 0:
            self._blocks.append((rows, dict(batch)))
        else:
            self._blocks.append((rows, {name: self._written(values) for name, values in batch.items()}))

    def read(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The same batches with these columns."""
        for rows, held in self._blocks:
            yield rows, {name: self._column(held[name]) for name in columns}

    def _written(self, values: pa.Array) -> tuple[int, int]:
        if self._file is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it lives as long as this object
        sink = pa.BufferOutputStream()
        whole = pa.record_batch([values], names=["values"])
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, whole.schema, options=options) as writer:
            writer.write_batch(whole)
        packed = memoryview(sink.getvalue())
        start = self._file.seek(0, 2)
        left = packed
        while len(left):
            left = left[self._file.write(left) :]
        return start, len(packed)

    def _column(self, held: pa.Array | tuple[int, int]) -> pa.Array:
        if not isinstance(held, tuple):
            return held
        start, size = held
        self._file.seek(start)
        packed = bytearray()
        while len(packed) < size and (part := self._file.read(size - len(packed))):
            packed += part
        with pa.ipc.open_stream(pa.py_buffer(packed)) as reader:
            return reader.read_next_batch().column(0)


class AdbcQuery(Query):
    """A table or query through a connection of ADBC, whatever driver is behind it."""

    def __init__(self, data: DatabaseTable, *, to_be_read: bool) -> None:
        self._connection = data.connection
        info = self._connection.adbc_get_info()
        self._vendor, self._version = str(info.get("vendor_name", "")), str(info.get("vendor_version", ""))
        if self._vendor.lower() == "sqlite":
            rule = "is a SQLite database, whose types ADBC guesses from the first rows."
            raise InputError(data.where, rule, "Name its file, sqlite:file.db::table.")
        ticks = any(one in self._vendor.lower() for one in BACKTICKS)
        self._source = data.source(_in_backticks if ticks else quoted)
        self._quote = _in_backticks if ticks else quoted
        self._kinds: dict[str, str] = {}

    @property
    def engine_name(self) -> str:
        """The vendor by its own name."""
        return f"{self._vendor or 'a database'} through ADBC"

    def header(self) -> Header:
        """By the types of Arrow that no row arrives in."""
        with self._connection.cursor() as cursor:
            cursor.execute(NO_ROWS.format(self._source))
            schema = cursor.fetch_record_batch().schema
        if self._vendor == "PostgreSQL":
            self._kinds = {one.name: _postgres_kind(one) for one in schema}
        return tuple((one.name, _storage(one.type)) for one in schema)

    def stream(self, columns: Sequence[str], decimals: Mapping[str, str]) -> Iterator[Batch]:
        """As the driver hands them over; of PostgreSQL as its own locations are read."""
        shown = [
            expression(name, self._kinds[name], decimal=decimals.get(name, ""), exactly=name == self.unit)
            if self._kinds
            else self._quote(name)
            for name in columns
        ]
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(shown)} FROM {self._source}")
            for batch in cursor.fetch_record_batch():
                yield batch.num_rows, {name: batch.column(place) for place, name in enumerate(columns)}


def _in_backticks(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _postgres_kind(column: pa.Field) -> str:
    """The type in PostgreSQL: as the driver tells it, else by Arrow's; what is neither is selected as text."""
    told = (column.metadata or {}).get(b"POSTGRESQL:type")
    if told is not None:
        return str(told.decode())
    plain = {"string": "text", "bool": "bool", "binary": "bytea", "float": "float4", "double": "float8"}
    wholes = {"int16": "int2", "int32": "int4", "date32[day]": "date", "timestamp[us]": "timestamp"}
    return (plain | wholes | {"timestamp[us, tz=UTC]": "timestamptz"}).get(str(column.type), "")


def _storage(kind: pa.DataType) -> str:
    return "string" if isinstance(kind, pa.BaseExtensionType) else str(kind)


class AlchemyQuery(Query):
    """A table or query through SQLAlchemy, by a cursor on the server where the database has them."""

    def __init__(self, data: DatabaseTable, *, to_be_read: bool) -> None:
        self._data = data
        self._connection = data.connection
        self._dialect = self._connection.dialect
        self._quote = _quoting(self._dialect.identifier_preparer)
        self._source = data.source(self._quote)

    @property
    def engine_name(self) -> str:
        """The dialect by its own name."""
        return f"{self._dialect.name} through SQLAlchemy"

    def header(self) -> Header:
        """Column names; for a table also the types that SQLAlchemy reflects, for a query none."""
        with self._asked(NO_ROWS.format(self._source)) as result:
            names = list(result.keys())
        kinds: dict[str, str] = {}
        if self._data.table:
            *schema, table = names_of(self._data.table)
            with self._connected() as connection:
                inspected = import_module("sqlalchemy").inspect(connection)
                found = inspected.get_columns(table, schema=schema[0] if schema else None)
            kinds = {column["name"]: _reflected(column["type"]) for column in found}
        return tuple((name, kinds.get(name, "string")) for name in names)

    def stream(self, columns: Sequence[str], decimals: Mapping[str, str]) -> Iterator[Batch]:
        """Values as the database's module makes them."""
        with self._asked(f"SELECT {', '.join(map(self._quote, columns))} FROM {self._source}") as result:
            yield from batches_of_rows(result.fetchmany, columns, decimals)

    @contextmanager
    def _asked(self, query: str) -> Iterator[Any]:
        # A colon would begin a parameter; percent signs are SQLAlchemy's own care.
        text = import_module("sqlalchemy").text(query.replace(":", r"\:"))
        options = {"stream_results": True}
        with self._connected() as connection, closing(connection.execute(text, execution_options=options)) as result:
            yield result

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """The caller's connection, or one of the engine's. A transaction that began with the question ends with it."""
        if hasattr(self._connection, "connect"):
            with self._connection.connect() as connection:
                yield connection
            return
        begun = self._connection.in_transaction()
        try:
            yield self._connection
        finally:
            if not begun and self._connection.in_transaction():
                self._connection.rollback()


def _quoting(marks: Any) -> Callable[[str], str]:
    """How a dialect puts names in quotes; its own function also doubles percent signs, which the text has done then."""
    first, last, inner, doubled = marks.initial_quote, marks.final_quote, marks.escape_quote, marks.escape_to_quote
    return lambda name: f"{first}{name.replace(inner, doubled)}{last}"


def _reflected(kind: Any) -> str:
    """The type of a column in Arrow's words, by the type of Python that its values have."""
    try:
        return ARROW_OF_PYTHON.get(kind.python_type, "string")
    except NotImplementedError:
        return "string"


class RelationQuery(Query):
    """A relation of DuckDB, or a table or query through a connection of it."""

    engine = "DuckDB"

    def __init__(self, data: Any, *, to_be_read: bool) -> None:
        self._relation = data
        if isinstance(data, DatabaseTable):
            self._relation = data.connection.sql(f"SELECT * FROM {data.source()}")
        if to_be_read and ARROW_SCAN in str(self._relation.explain()):
            rule = "reads Arrow objects of Python, and DuckDB does not tell tables from streams that are used up."
            raise InputError("DuckDB relation", rule, "Give relation.to_arrow_table(), or make it a table in DuckDB.")

    def header(self) -> Header:
        """By the types of Arrow."""
        return _fields(_arrow_reader(self._relation.limit(0), 1).read_all().schema)

    def stream(self, columns: Sequence[str], decimals: Mapping[str, str]) -> Iterator[Batch]:
        """As DuckDB hands them over."""
        chosen = self._relation.project(", ".join(map(quoted, columns)))
        for batch in _arrow_reader(chosen, batch_rows(len(columns))):
            yield batch.num_rows, {name: batch.column(place) for place, name in enumerate(columns)}


def _arrow_reader(relation: Any, rows: int) -> pa.RecordBatchReader:
    # The method's name differs between old and new DuckDB.
    return (getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader)(rows)


class IbisQuery(Query):
    """A table of Ibis, wherever it lies."""

    def __init__(self, data: Any, *, to_be_read: bool) -> None:
        if not hasattr(data, "to_pyarrow_batches") or not hasattr(data, "get_backend"):
            raise InputError("data", f"must be a table of Ibis, got {type(data).__name__}.")
        self._table = data
        backend = data.get_backend()
        self._backend = str(backend.name)
        # Ibis 12 asks DuckDB 2 for batches by a method that is gone; the whole table at once still comes.
        self._whole = self._backend == "duckdb" and not hasattr(backend.con, "fetch_record_batch")

    @property
    def engine_name(self) -> str:
        """The backend by its own name."""
        return f"{self._backend} through Ibis"

    def header(self) -> Header:
        """By the types of Arrow that Ibis has for its own."""
        return _fields(self._table.schema().to_pyarrow())

    def stream(self, columns: Sequence[str], decimals: Mapping[str, str]) -> Iterator[Batch]:
        """As the backend hands them over."""
        rows, chosen = batch_rows(len(columns)), self._table.select(list(columns))
        reader = chosen.to_pyarrow().to_batches(rows) if self._whole else chosen.to_pyarrow_batches(chunk_size=rows)
        for batch in reader:
            yield batch.num_rows, {name: batch.column(place) for place, name in enumerate(columns)}


@dataclass(slots=True, eq=False)
class _ArrowStream:
    """What is known of an object that exports a stream: its one import, and whether anybody began to read it."""

    holder: object
    """The object, by a weak reference where it takes one: while it lives, nothing else has its number."""
    reader: pa.RecordBatchReader | None = None
    begun: bool = False


_STREAMS: dict[int, _ArrowStream] = {}
"""Streams that were looked at here, by the number of their object. One that is at its end looks like an empty table,
and one that can be exported once may be at its end by a look. Objects say neither, and need not compare as themselves.
"""
_IN_MEMORY = (("pyarrow", "RecordBatch"), ("arro3", "Table"))
"""Packages and types of objects that export the same rows each time."""


def _stream_of(data: object) -> _ArrowStream:
    number = id(data)
    if number not in _STREAMS:
        try:
            _STREAMS[number] = _ArrowStream(weakref.ref(data, lambda _: _STREAMS.pop(number, None)))
        except TypeError:
            _STREAMS[number] = _ArrowStream(data)
    return _STREAMS[number]


class StreamQuery(Query):
    """Any object that exports a stream of Arrow, which is taken for one that can be read only once."""

    engine = "an Arrow stream"
    zones_are_its_own = True

    def __init__(self, data: Any, *, to_be_read: bool) -> None:
        self._data = data
        again = (type(data).__module__.partition(".")[0], type(data).__name__) in _IN_MEMORY
        self._stream = _ArrowStream(data) if again else _stream_of(data)
        if to_be_read:
            self.check_again()
        if isinstance(data, pa.RecordBatchReader):
            self._schema = data.schema
        elif not to_be_read and hasattr(data, "__arrow_c_schema__"):
            self._schema = pa.schema(data)
        else:
            reader = self._stream.reader or pa.RecordBatchReader.from_stream(data)
            self._stream.reader, self._schema = reader, reader.schema

    def check_again(self) -> None:
        """Refuses a stream that was read, by whichever table."""
        if self._stream.begun:
            fix = "Create the stream again, or give a table made from it: pyarrow.table(stream)."
            raise InputError("stream", "was read already, and a stream can be read only once.", fix)

    def header(self) -> Header:
        """By the types of Arrow, which a stream tells before its rows."""
        return _fields(self._schema)

    def stream(self, columns: Sequence[str], decimals: Mapping[str, str]) -> Iterator[Batch]:
        """As they come, and no second time, even if the first one broke off."""
        self.check_again()
        self._stream.begun = True
        reader, self._stream.reader = self._stream.reader or self._data, None
        for batch in reader:
            places = {name: place for place, name in enumerate(batch.schema.names)}
            yield batch.num_rows, {name: batch.column(places[name]) for name in columns}


def _fields(schema: pa.Schema) -> Header:
    return tuple((one.name, _storage(one.type)) for one in schema)


DUCKDB = ("duckdb", "_duckdb")
CONNECTIONS: tuple[tuple[tuple[str, ...], str, type[Query]], ...] = (
    (("sqlalchemy",), "dialect", AlchemyQuery),
    (("adbc_driver_manager",), "adbc_get_info", AdbcQuery),
    (DUCKDB, "cursor", RelationQuery),
)
"""Packages of a connection's type and a name it must have, with the way in which it is asked."""
TABLES: tuple[tuple[tuple[str, ...], str, type[Query]], ...] = (
    (DUCKDB, "project", RelationQuery),
    (("ibis",), "to_pyarrow_batches", IbisQuery),
    (("",), "__arrow_c_stream__", StreamQuery),
)
"""The same of objects that are tables by themselves."""


def _way(data: object, known: Sequence[tuple[tuple[str, ...], str, type[Query]]]) -> type[Any] | None:
    packages = {"", *(kind.__module__.partition(".")[0] for kind in type(data).__mro__)}
    found = (way for names, needed, way in known if packages & set(names) and hasattr(data, needed))
    return next(found, None)


def _connection_query(connection: object) -> type[Any]:
    """The way in which a connection is asked."""
    way = _way(connection, CONNECTIONS)
    if way is None:
        known = "an SQLAlchemy engine or connection, an ADBC connection or a DuckDB connection"
        fix = "sqlalchemy.create_engine() makes one for most databases."
        raise UsageError("connection", f"must be {known}, got {type(connection).__name__}.", fix)
    return way


def _table_query(data: object) -> type[Any]:
    """The way in which an object that is a table by itself is asked."""
    way = _way(data, TABLES)
    if way is None:
        rule = f"is a {type(data).__name__}, which does not say which table is meant."
        raise UsageError("data", rule, "Write read_database(connection, table=…).")
    return way
