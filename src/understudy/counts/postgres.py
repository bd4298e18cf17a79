"""PostgreSQL: a table, a view or a materialised view as Arrow batches, through ADBC, in one snapshot.

    postgresql://host/database::schema.table

Names are taken as they are stored, letter by letter: nothing is folded to lower case. A dot separates the schema from
the table. A name that holds a dot or a double quote itself is put in double quotes, with its own double quotes doubled.
Without a schema the table is looked up on the search path of the role.

Passwords come from the places that libpq knows (a password file, a service file, PGPASSWORD). One inside a location is
refused, because shells and process lists show it, and no message quotes a location that could hold one.

Before the charge: the driver, the connection, the table's names and types, the privilege to read the wanted columns
(of a view also the privileges of its owner), and that no row-level policy hides rows. None of it reads a row.

One transaction, REPEATABLE READ READ ONLY, serves all passes, so what others commit meanwhile is not seen. It ends
with the reader. What a volatile function in a view returns, or another server behind a foreign table, is beyond any
snapshot; foreign tables are refused, also as partitions or below a view. So is truncating or rewriting a table, after
which it looks empty: what the query reads is locked before the charge, and refused if that has happened since the
snapshot was taken. Partitions that come or go later end the run. `snapshot` is the time at which the transaction began.
It is not the number of the transaction: that counts what was written before, so it would tell rows inserted one by one.

What arrives is what the column holds, as Parquet would have it, except where ADBC would hand over something else. Days
and instants before year 1 or after year 9999, and infinity, which would wrap around to the other end, arrive as the
first or last moment of those years and are clamped by the codec. Numbers of arbitrary precision, money, and everything
that Arrow has no plain type for arrive as text. The server never groups or compares, so collations decide nothing.

A broken connection ends the run. No words of the server are shown, nor are its notices asked for.
"""

import re
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, NoReturn
from urllib.parse import unquote

from understudy.counts.files import columns_read, quoted
from understudy.counts.readers import Header, RowReader
from understudy.counts.source import Batch
from understudy.errors import InputError, UsageError
from understudy.schema import Float, Integer, Schema

FORM = "postgresql://host/database::schema.table"
MOST_BATCH_BYTES = 4 << 20
LEAST_VERSION = 130000  # the oldest that knows trim_scale
FORBIDDEN = "42501"  # the state of SQL for a privilege that is missing, and for rows that a policy would hide

_LOCATION = re.compile(
    r"(?P<uri>postgres(?:ql)?://(?P<place>(?:\[[^\]]*\]|[^\[/?])*?)(?:/(?P<database>[^?/]*?))?(?:\?(?P<options>.*?))?)"
    r"::(?P<table>.+)",
    re.IGNORECASE | re.DOTALL,
)
_NAME = r'(?:"(?:[^"]|"")+"|[^".]+)'
_TABLE = re.compile(rf"(?:({_NAME})\.)?({_NAME})", re.DOTALL)
_SECRET = re.compile(r"password|passwd|secret|token", re.IGNORECASE)
_HOSTS = re.compile(r"(?:(?:\[[0-9A-Fa-f:.%]*\]|[\w.%-]*)(?::[0-9]*)?,?)*")

SETTINGS = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET LOCAL client_min_messages = error",  # libpq prints notices, and a function in a view may notify of anything
    "SET LOCAL row_security = off",  # a policy that would hide rows is an error instead
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO'",
    "SET LOCAL IntervalStyle = 'postgres'",
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL idle_in_transaction_session_timeout = 0",  # between two passes a model may be fitted for hours
)
STANDING = """
    SELECT current_setting('server_version_num')::int4, split_part(current_setting('server_version'), ' ', 1),
           to_char(now(), 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
"""
RELATION = """
    SELECT c.oid::int8, c.relkind::text, row_security_active(c.oid) FROM pg_catalog.pg_class c
    WHERE c.oid = pg_catalog.to_regclass($1)
"""
QUALIFIED = """
    SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1::oid
"""
# Of a column of a domain, what is below all domains. Types of other schemas may have any name, so theirs is not told.
COLUMNS = """
    WITH RECURSIVE kinds (place, oid, modifier) AS (
        SELECT attnum, atttypid, atttypmod FROM pg_attribute
        WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped
        UNION ALL
        SELECT k.place, t.typbasetype, t.typtypmod FROM kinds k JOIN pg_type t ON t.oid = k.oid WHERE t.typtype = 'd'
    )
    SELECT a.attname::text, CASE WHEN n.nspname = 'pg_catalog' THEN t.typname::text ELSE '' END, k.modifier::int4,
           has_column_privilege($1::oid, a.attnum, 'SELECT')
    FROM kinds k JOIN pg_type t ON t.oid = k.oid AND t.typtype <> 'd' JOIN pg_namespace n ON n.oid = t.typnamespace
    JOIN pg_attribute a ON a.attrelid = $1::oid AND a.attnum = k.place ORDER BY k.place
"""
# What the query reads, by the locks that it holds: the snapshot's catalogue beside what stands there now. Until a table
# is locked it can be truncated, rewritten or made anew, and then looks empty to a snapshot from before.
REPLACED = """
    SELECT coalesce(bool_or(c.oid IS NULL OR
                            c.relkind IN ('r', 'm') AND c.relfilenode <> pg_relation_filenode(l.relation)), false),
           coalesce(bool_or(c.relkind = 'f'), false)
    FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_class c ON c.oid = l.relation
    WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.relation >= 16384
"""
# Partitions can be attached while the table is locked for reading, and would be in the next pass.
PARTITIONS = """
    SELECT coalesce(string_agg(t.relid::oid::text, ' ' ORDER BY t.relid), '')
    FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation AND c.relkind = 'p',
         pg_partition_tree(c.oid) t
    WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation'
"""
READABLE = ("r", "p", "v", "m")
ARROW_NAMES = {
    "int2": "int16",
    "int4": "int32",
    "int8": "int64",
    "oid": "int64",
    "float4": "float",
    "float8": "double",
    "bool": "bool",
    "bytea": "binary",
    "date": "date32[day]",
    "timestamp": "timestamp[us]",
    "timestamptz": "timestamp[us, tz=UTC]",
    "time": "time64[us]",
    "money": "decimal128(19, 2)",
}
"""Types that are not text, by what Arrow calls them."""
AS_THEY_ARE = frozenset({"int2", "int4", "int8", "float4", "float8", "bool", "text", "varchar", "bytea"})
ENDS = {
    "date": ("DATE '0001-01-01'", "DATE '9999-12-31'"),
    "timestamp": ("TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"),
    "timestamptz": ("TIMESTAMPTZ '0001-01-01 00:00Z'", "TIMESTAMPTZ '9999-12-31 23:59:59.999999Z'"),
}


@dataclass(frozen=True, slots=True)
class PostgresPlace:
    """What a location says: how to connect, the table, and both in words that hold no user and no option."""

    uri: str
    names: tuple[str, ...]
    where: str

    @classmethod
    def of(cls, location: str) -> "PostgresPlace":
        """The parts of a location.

        >>> PostgresPlace.of('postgresql://ada@db.example/people?sslmode=require::"a.b".rows').where
        'postgresql://db.example/people::"a.b".rows'

        Raises:
            InputError: it has another form, or a password inside.
        """
        parts = _LOCATION.fullmatch(location)
        names = names_of(parts["table"]) if parts else ()
        if parts is None or not names:
            raise InputError("location of a PostgreSQL table", f"must have the form {FORM}.", QUOTES)
        user, _, hosts = parts["place"].rpartition("@")
        options = [unquote(option.partition("=")[0]) for option in (parts["options"] or "").split("&")]
        if ":" in user or "@" in (parts["options"] or "") or any(map(_SECRET.search, options)):
            rule = "has a password inside, which shell histories and process lists reveal."
            fix = "Leave it out. A password file (~/.pgpass), a service file or PGPASSWORD can hold it."
            raise InputError("location of a PostgreSQL table", rule, fix)
        if not _HOSTS.fullmatch(hosts) or "@" in (parts["database"] or ""):
            raise InputError("location of a PostgreSQL table", "has no usable host.", f"Write {FORM}.")
        where = f"postgresql://{hosts}/{parts['database'] or ''}::{parts['table']}"
        return cls(parts["uri"], names, where)

    @property
    def spelled(self) -> str:
        """The table in SQL."""
        return ".".join(map(quoted, self.names))


QUOTES = 'A name with a dot or a double quote in it stands in double quotes: "my.table".'


def names_of(table: str) -> tuple[str, ...]:
    """Schema and table, or the table alone, as they are stored; nothing if the text does not follow the rule.

    >>> names_of("public.people"), names_of('"a.""b"'), names_of('a"b')
    (('public', 'people'), ('a."b',), ())
    """
    parts = _TABLE.fullmatch(table)
    found = [name for name in parts.groups() if name] if parts else []
    return tuple(name[1:-1].replace('""', '"') if name.startswith('"') else name for name in found)


@dataclass(frozen=True, slots=True)
class PostgresColumn:
    """A column by the catalogue: its name, its type below all domains, and whether the role may read it."""

    name: str
    kind: str
    modifier: int
    readable: bool

    @property
    def storage(self) -> str:
        """The type in Arrow's words."""
        if self.kind == "numeric":
            packed = self.modifier - 4
            return f"decimal128({packed >> 16}, {packed & 0x7FF})" if self.modifier >= 4 else "decimal128"
        return ARROW_NAMES.get(self.kind, "string")


class PostgresReader(RowReader):
    """Rows of a table in PostgreSQL, in one transaction that lasts until the reader is closed."""

    def __init__(self, location: str, schema: Schema | None = None) -> None:
        place = PostgresPlace.of(str(location))
        self.where = place.where
        self._connection = _connected(place)
        self._closing = weakref.finalize(self, _closed, self._connection)
        try:
            self.engine, self.snapshot = _begun(self._connection, self.where)
            self._table, self._columns = _looked_up(self._connection, place)
            self._schema = schema
            self._partitions: list[tuple[Any, ...]] = []
            if schema is not None:
                self._check_readable(columns_read(schema))
                self._check_held()
        except BaseException:
            self.close()
            raise

    @property
    def header(self) -> Header:
        """Names and types of the columns, in Arrow's words, from the catalogue."""
        return tuple((column.name, column.storage) for column in self._columns.values())

    def batches(self, columns: Sequence[str], *, memory_bytes: int, threads: int) -> Iterator[Batch]:
        """Rows of these columns, batch by batch, streamed by the server. Private."""
        with self._connection.cursor() as cursor:
            if columns:
                size = min(MOST_BATCH_BYTES, memory_bytes)
                cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(size)})
                cursor.execute(self._query(columns))
                for batch in cursor.fetch_record_batch():
                    yield batch.num_rows, {name: batch.column(place) for place, name in enumerate(columns)}
            else:
                cursor.execute(f"SELECT count(*) FROM {self._table}")
                yield int(cursor.fetchone()[0]), {}
        if self._schema is not None and _asked(self._connection, self.where, PARTITIONS) != self._partitions:
            rule = "got or lost a partition while it was read."
            raise InputError(self.where, rule, "Try again while nobody is altering it.")

    def close(self) -> None:
        """Ends the transaction and the connection."""
        self._closing()

    def _query(self, columns: Sequence[str]) -> str:
        unit = self._schema.unit.column if self._schema else None
        declared = {one.name: one for one in self._schema.modelled} if self._schema else {}
        shown = []
        for name in columns:
            kind, one = self._columns[name].kind, declared.get(name)
            decimal = one.decimal if isinstance(one, Integer | Float) else ""
            shown.append(expression(name, kind, decimal=decimal or "", exactly=name == unit))
        return f"SELECT {', '.join(shown)} FROM {self._table}"

    def _check_readable(self, wanted: Sequence[str]) -> None:
        """Raises unless the wanted columns that are there may be read. The server plans for no row at all."""
        there = [name for name in wanted if name in self._columns]
        for name in there:
            if not self._columns[name].readable:
                rule = f"column {name!r} may not be read by this role."
                raise InputError(self.where, rule, "Ask for the SELECT privilege on it.")
        if there:  # not WHERE false, for which partitions are not locked
            _asked(self._connection, self.where, f"{self._query(there)} LIMIT 0")

    def _check_held(self) -> None:
        """Raises unless what is locked by now is what the snapshot shows."""
        ((replaced, foreign),) = _asked(self._connection, self.where, REPLACED)
        if replaced:
            raise InputError(self.where, "was rewritten while it was opened.", "Try again when that has finished.")
        if foreign:
            rule = "reads a foreign table, which no snapshot protects from changes."
            raise InputError(self.where, rule, "Make a materialised view of the rows you mean, and name that.")
        self._partitions = _asked(self._connection, self.where, PARTITIONS)


def expression(name: str, kind: str, *, decimal: str = "", exactly: bool = False) -> str:
    """How a column of that type is selected, so that what arrives is what it holds.

    Args:
        name: name of the column.
        kind: the type's name in pg_catalog; nothing for any other type.
        decimal: the sign that the schema declares for numbers as text, if any.
        exactly: whether different values must stay different, as ids must, where others may be clamped.

    >>> expression("born", "date", exactly=True), expression("paid", "numeric", decimal=",")
    ('"born"::text', 'replace(trim_scale(nullif("paid", \\'NaN\\'))::text, \\'.\\', \\',\\')')
    """
    column = quoted(name)
    if kind in AS_THEY_ARE:
        return column
    if kind in ENDS and not exactly:
        first, last = ENDS[kind]
        return f"CASE WHEN {column} < {first} THEN {first} WHEN {column} > {last} THEN {last} ELSE {column} END"
    if kind in ("numeric", "money"):
        number = f"{column}::numeric" if kind == "money" else f"nullif({column}, 'NaN')"
        text = f"trim_scale({number})::text"
        return f"replace({text}, '.', ',')" if decimal == "," else text
    if kind == "oid":
        return f"{column}::int8"
    return f"abbrev({column})" if kind == "inet" else f"{column}::text"


def _connected(place: PostgresPlace) -> Any:
    """A connection by the driver of ADBC, in a transaction of its own."""
    try:
        driver = import_module("adbc_driver_postgresql.dbapi")
    except ImportError:
        driver = None
    if driver is None:
        rule = "is read by the package adbc-driver-postgresql, which is not installed."
        raise UsageError("PostgreSQL", rule, "Install it by pip install 'understudy[postgres]'.")
    with suppress(Exception):  # whatever the driver says could hold what it was told
        return driver.connect(place.uri, autocommit=False)
    fix = "Check host, database, role and password (password file, service file or PGPASSWORD), or ask with psql."
    raise InputError(place.where, "cannot be connected to.", fix)


def _closed(connection: Any) -> None:
    with suppress(Exception):
        connection.close()


def _begun(connection: Any, where: str) -> tuple[str, str]:
    """Server and snapshot in words, once the transaction stands."""
    for setting in SETTINGS:
        _asked(connection, where, setting)
    ((number, version, began),) = _asked(connection, where, STANDING)
    if number < LEAST_VERSION:
        raise InputError(where, f"is on PostgreSQL {version}; 13 or newer is needed.", "Export the table to Parquet.")
    return f"PostgreSQL {version}", f"REPEATABLE READ since {began}"


def _looked_up(connection: Any, place: PostgresPlace) -> tuple[str, dict[str, PostgresColumn]]:
    """The table in SQL and its columns."""
    found = _asked(connection, place.where, RELATION, place.spelled)
    if not found:
        _refuse_missing(connection, place)
    ((number, kind, hidden),) = found
    if kind not in READABLE:
        what = (
            "a foreign table, which no snapshot protects from changes" if kind == "f" else "neither a table nor a view"
        )
        raise InputError(place.where, f"is {what}.", "Make a materialised view of the rows you mean, and name that.")
    if hidden:
        rule = "has row-level security, which hides rows from this role."
        raise InputError(place.where, rule, "Read as a role that may see all rows, or name a view of those you mean.")
    rows = _asked(connection, place.where, COLUMNS, int(number))
    table = ".".join(map(quoted, _asked(connection, place.where, QUALIFIED, int(number))[0]))
    return table, {row[0]: PostgresColumn(*row) for row in rows}


def _refuse_missing(connection: Any, place: PostgresPlace) -> NoReturn:
    lower = replace(place, names=tuple(map(str.lower, place.names)))
    other = _asked(connection, place.where, RELATION, lower.spelled)
    fix = "PostgreSQL keeps names in lower case unless they were quoted." if other else "Check schema and table."
    raise InputError(place.where, "no such table or view.", fix)


def _asked(connection: Any, where: str, command: str, *values: str | int) -> list[tuple[Any, ...]]:
    """The answer to a question about the catalogue or a setting, before any row is read.

    Raises:
        InputError: without the server's words, and outside of the handler.
    """
    state = ""
    try:
        with connection.cursor() as cursor:
            cursor.execute(command, values or None)
            return list(cursor.fetchall()) if cursor.description else []
    except Exception as error:  # noqa: BLE001 - whatever a driver raises
        state = str(getattr(error, "sqlstate", None) or "")
    if state == FORBIDDEN:
        fix = "Ask for SELECT on it, or as a view's owner on what it reads; row-level policies must not hide rows."
        raise InputError(where, "may not be read in full by this role.", fix)
    raise InputError(where, "cannot be read.", "Check that the server can be reached, and ask it with psql.")
