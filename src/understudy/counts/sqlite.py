"""SQLite: a table or view of a file as Arrow batches, through Python's own module, in one snapshot.

    sqlite:file.db::table

A file that holds one table needs no name of it. Files called .sqlite, .sqlite3 or .db need no "sqlite:" before them.
A name is taken as it stands after "::", dots and quotes included.

The file is opened for reading only, and one read transaction serves all passes. A writer in WAL mode goes on meanwhile;
in the other modes it waits until the reader is closed. What is no database, is locked or cannot be opened is found
before the charge.

SQLite types each value, not the column, so the column's declared type is a hint for drafts and nothing else. Each value
is read on its own terms: where all values of a batch are integers or all are floats they arrive as such, else each one
arrives as its text, which the codec reads alike. Text and blobs arrive as their bytes, UTF-8 or not.
"""

import re
import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from understudy.counts.files import quoted
from understudy.counts.readers import Header, RowReader
from understudy.counts.source import Batch
from understudy.counts.values import batches_of_rows, decimal_signs
from understudy.errors import InputError
from understudy.schema import Schema

SCHEME = "sqlite:"
MAGIC = b"SQLite format 3\0"
WAIT_SECONDS = 5.0
# By the rules of affinity in the manual: the words of a declared type, first come, first served.
# Before them stand words that SQLite itself takes no notice of.
HINTS = (
    ("datetime|timestamp", "timestamp[us]"),
    ("date", "date32[day]"),
    ("bool", "bool"),
    ("int", "int64"),
    ("char|clob|text", "string"),
    ("blob", "binary"),
    ("real|floa|doub|numeric|dec", "double"),
)


class SqliteReader(RowReader):
    """Rows of a table in a SQLite file, in one transaction that lasts until the reader is closed."""

    def __init__(self, location: str | Path, schema: Schema | None = None) -> None:
        path, _, table = str(location).removeprefix(SCHEME).partition("::")
        self.where = f"{path}::{table}" if table else path
        self.engine = f"SQLite {sqlite3.sqlite_version}"
        self._decimals = decimal_signs(schema)
        _check_file(Path(path))
        self._connection = _connected(Path(path), self.where)
        self._closing = weakref.finalize(self, self._connection.close)
        try:
            table = _table_of(self._connection, table, self.where)
            self._table = quoted(table)
            self._header = _header_of(self._connection, self._table, self.where)
        except BaseException:
            self.close()
            raise

    @property
    def header(self) -> Header:
        """Names of the columns, with the type that each one's declaration hints at."""
        return self._header

    def batches(self, columns: Sequence[str], *, memory_bytes: int, threads: int) -> Iterator[Batch]:
        """Rows of these columns, batch by batch. Private."""
        cursor = self._connection.cursor()
        try:
            if not columns:
                yield int(cursor.execute(f"SELECT count(*) FROM {self._table}").fetchone()[0]), {}
                return
            cursor.execute(f"SELECT {', '.join(map(quoted, columns))} FROM {self._table}")
            yield from batches_of_rows(cursor.fetchmany, columns, self._decimals)
        finally:
            cursor.close()

    def close(self) -> None:
        """Ends the transaction and closes the file."""
        self._closing()


def _check_file(path: Path) -> None:
    """Raises unless there is a file that begins as SQLite's do."""
    there, begins = False, b""
    with suppress(OSError, ValueError):
        there = path.is_file()
        with path.open("rb") as file:
            begins = file.read(len(MAGIC))
    if not there:
        raise InputError(str(path), "no such file.", f"Write {SCHEME}file.db::table.")
    if begins != MAGIC:
        fix = (
            "A DuckDB file needs the suffix .duckdb."
            if begins[8:12] == b"DUCK"
            else "Check that it is not encrypted or damaged."
        )
        raise InputError(str(path), "is not a readable SQLite database.", fix)


def _connected(path: Path, where: str) -> sqlite3.Connection:
    """A connection that can only read, in a transaction whose snapshot is fixed."""
    state = ""
    connection: sqlite3.Connection | None = None
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        connection.text_factory = bytes  # text that is not UTF-8 would raise
        for command in ("PRAGMA query_only = ON", "BEGIN"):
            connection.execute(command)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()  # only a read fixes the snapshot
        return connection
    except (sqlite3.Error, OSError, ValueError) as error:
        state = getattr(error, "sqlite_errorname", "")
    if connection is not None:
        connection.close()
    raise _refusal(where, state)


def _refusal(where: str, state: str) -> InputError:
    if state.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return InputError(where, "is locked by a program that writes.", "Try again when it has finished.")
    if state.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
        fix = "Check that you may read it. In WAL mode its folder must be writable, or hold its -wal and -shm files."
        return InputError(where, "cannot be opened.", fix)
    return InputError(where, "is not a readable SQLite database.", "Check that it is not encrypted or damaged.")


def _asked(connection: sqlite3.Connection, where: str, command: str, *values: str) -> list[tuple[object, ...]]:
    """The answer to a question about the file's own tables, without the engine's words should it fail."""
    with suppress(sqlite3.Error):
        return connection.execute(command, values).fetchall()
    raise InputError(where, "cannot be read.", "Check that it is not damaged and needs no extension.")


def _table_of(connection: sqlite3.Connection, wanted: str, where: str) -> str:
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    names = [_text(name) for (name,) in _asked(connection, where, f"{query} ORDER BY name")]
    table = wanted or (names[0] if len(names) == 1 else "")
    if table not in names:
        rule = f"has no table {table!r}." if table else "does not hold exactly one table."
        raise InputError(where, rule, f"Write {SCHEME}file.db::table; tables here: {', '.join(names)}.")
    return table


def _header_of(connection: sqlite3.Connection, table: str, where: str) -> Header:
    # Hidden are columns of virtual tables (1); generated ones (2, 3) are columns like others.
    rows = _asked(connection, where, f"PRAGMA table_xinfo({table})")
    return tuple((_text(name), hinted_type(_text(kind))) for _, name, kind, _, _, _, hidden in rows if hidden != 1)


def _text(value: object) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value or "")


def hinted_type(declared: str) -> str:
    """What values are likely to be by the declaration of their column, in Arrow's words; for drafts.

    >>> hinted_type("VARCHAR(20)"), hinted_type("BIGINT"), hinted_type("DATE"), hinted_type("")
    ('string', 'int64', 'date32[day]', 'string')
    """
    for words, kind in HINTS:
        if re.search(words, declared, re.IGNORECASE):
            return kind
    return "string"
