"""The outside of a file: which kind it is, whether it can be opened, its column names and storage types.

Everything that can be wrong with a container is found here, before anything is charged: a missing or empty file, an
unknown suffix, a broken footer, headers that differ between files. Rows are never looked at, and no message quotes
anything but paths, table names and column names.
"""

import glob
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from understudy.counts.delimited import delimited_header
from understudy.errors import InputError

__all__ = ["LOCKED", "Container", "Settings", "connect_read_only", "container_of", "header_of", "silenced"]

DELIMITERS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
DATABASE = (".duckdb", ".ddb")
SUFFIXES = (*DELIMITERS, *PARQUET, *DATABASE)
NAMED_TABLE = re.compile(r"(.*?\.(?:duckdb|ddb))::(.+)", re.IGNORECASE | re.DOTALL)
DECLARED_TEXT = re.compile(r"(.*\.(?:csv|tsv))::(\w*)", re.IGNORECASE | re.DOTALL)
MULTILINE = "multiline"
WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")

Kind = Literal["delimited", "parquet", "database"]
Header = tuple[tuple[str, str], ...]
Settings = dict[str, str | bool | int | float | list[str]]

# The engine may neither fetch code nor open or write any file but the one it was given.
LOCKED: Settings = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "enable_external_access": False,
    "temp_directory": "",  # it only reads, and what it reads must not be written elsewhere
}

# Nor may it print how far it is: what appears only after some seconds, and tells them, depends on the rows.
SILENT = (
    "SET enable_progress_bar = false",
    "SET enable_progress_bar_print = false",
    "SET lock_configuration = true",
)


@dataclass(frozen=True, slots=True)
class Container:
    """Files of one kind with one header; `table` names the table of a database, `delimiter` splits text.

    `multiline` is the declared dialect of text in which quoted fields may hold line ends; see `delimited`.
    """

    kind: Kind
    paths: tuple[Path, ...]
    header: Header
    delimiter: str = ""
    table: str = ""
    multiline: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in file order."""
        return tuple(name for name, _ in self.header)


def header_of(path: str | Path) -> list[tuple[str, str]]:
    """Column names and storage types of a file (all "string" for text files); reads no row.

    Raises:
        InputError: if the container cannot be used.
    """
    return list(container_of(path).header)


def container_of(location: str | Path) -> Container:
    """The files meant by a location, checked to be readable from outside.

    A location is a path, a glob pattern, "file.duckdb::table", or text files in the dialect "file.csv::multiline".
    """
    named = NAMED_TABLE.fullmatch(str(location))
    text, table = (named[1], named[2]) if named else (str(location), "")
    text, multiline = _dialect(text)
    paths = _paths(text)
    kinds = {_kind(path) for path in paths}
    if len(kinds) > 1:
        raise InputError(
            f"{text}", "the pattern matches files of different kinds.", "Name one kind, such as *.parquet."
        )
    kind = kinds.pop()
    if kind == "database":
        return _database(text, paths, table)
    headers = [_header(path, kind, multiline=multiline) for path in paths]
    for path, header in zip(paths, headers, strict=True):
        if [name for name, _ in header] != [name for name, _ in headers[0]]:
            rule = f"its columns differ from those of {paths[0]}."
            raise InputError(str(path), rule, "Files read together need the same columns in the same order.")
    delimiter = DELIMITERS.get(paths[0].suffix.lower(), "")
    return Container(kind, tuple(paths), headers[0], delimiter, multiline=multiline)


def _dialect(text: str) -> tuple[str, bool]:
    """The path or pattern of text files, and whether the location declares that quoted fields may hold line ends."""
    declared = DECLARED_TEXT.fullmatch(text)
    if declared is None:
        return text, False
    if declared[2] != MULTILINE:
        rule = f"the dialect {declared[2]!r} is not known."
        raise InputError(text, rule, f"Known: {declared[1]}::{MULTILINE}, where quoted fields hold line ends.")
    return declared[1], True


def _paths(text: str) -> list[Path]:
    path = Path(text)
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
        found = sorted(Path(name) for name in glob.glob(text, recursive=True)) if glob.has_magic(text) else []
    except (OSError, ValueError) as cause:
        raise InputError(text, "is not a usable path.") from cause
    if is_file:
        return [path]
    if is_folder:
        raise InputError(text, "is a folder, not a table.", f"Name files in it, such as {path / '*.parquet'}.")
    files = [name for name in found if name.is_file()]
    if files:
        return files
    rule = "no file matches this pattern." if glob.has_magic(text) else "no such file."
    raise InputError(text, rule, "Check the path.")


def _kind(path: Path) -> Kind:
    suffix = path.suffix.lower()
    if suffix in DELIMITERS:
        return "delimited"
    if suffix in PARQUET:
        return "parquet"
    if suffix in DATABASE:
        return "database"
    raise InputError(str(path), f"the suffix {suffix!r} is not known.", f"Known: {', '.join(SUFFIXES)}.")


def _header(path: Path, kind: Kind, *, multiline: bool) -> Header:
    try:
        if not path.stat().st_size:
            raise InputError(str(path), "is empty.", "A table needs at least a header.")
        return _text_header(path, multiline=multiline) if kind == "delimited" else _parquet_header(path)
    except OSError as cause:
        raise InputError(str(path), "cannot be read.", "Check that the file exists and you may read it.") from cause


def _text_header(path: Path, *, multiline: bool) -> Header:
    with path.open("rb") as stream:
        start = stream.read(4096)
    first_line = start.splitlines()[0] if start.strip() else b""
    if start.startswith(WIDE_MARKS) or b"\0" in first_line:
        raise InputError(str(path), "is not UTF-8 text (it may be UTF-16 or a binary file).", "Save it as UTF-8.")
    names = delimited_header(path, DELIMITERS[path.suffix.lower()], multiline=multiline)
    if not names:
        raise InputError(str(path), "has no header.", "The first line must name the columns.")
    return tuple((name, "string") for name in names)


def _parquet_header(path: Path) -> Header:
    # The reader's own words may quote the file, so its errors are not chained.
    with (
        suppress(pa.ArrowException, ValueError, TypeError, KeyError, NotImplementedError),
        pq.ParquetFile(path) as file,
    ):
        return tuple((field.name, str(field.type)) for field in file.schema_arrow)
    raise InputError(str(path), "is not a readable Parquet file (damaged, cut short, encrypted or another format).")


def _database(text: str, paths: list[Path], table: str) -> Container:
    if len(paths) > 1:
        raise InputError(text, "the pattern matches several databases.", "Name one.")
    with connect_read_only(paths[0]) as connection:
        tables = [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        if not table and len(tables) == 1:
            table = tables[0]
        if table not in tables:
            rule = f"has no table {table!r}." if table else "does not hold exactly one table."
            raise InputError(text, rule, f"Write file.duckdb::table; tables here: {', '.join(sorted(tables))}.")
        query = "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index"
        header = tuple((str(name), str(kind)) for name, kind in connection.execute(query, [table]).fetchall())
    return Container("database", tuple(paths), header, table=table)


def connect_read_only(path: Path, settings: Settings | None = None) -> duckdb.DuckDBPyConnection:
    """A locked-down connection that can read one database file and nothing else."""
    try:
        return silenced(duckdb.connect(str(path), read_only=True, config={**LOCKED, **(settings or {})}))
    except (duckdb.Error, OSError, ValueError):
        failed = True
    assert failed
    raise InputError(
        str(path), "cannot be opened as a DuckDB database.", "Is it damaged, in use, or of a newer version?"
    )


def silenced(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """The connection without progress bar, and with all settings fixed."""
    for command in SILENT:
        connection.execute(command)
    return connection
