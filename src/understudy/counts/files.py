"""Files: their headers, and their rows as Arrow batches.

The outside of a file
---------------------
Which kind it is, whether it can be opened, its column names and storage types. Everything that can be wrong with a
container is found here, before anything is charged: a missing or empty file, an unknown suffix, a broken footer,
headers that differ between files. Rows are never looked at, and no message quotes anything but paths, table names and
column names.

Rows
----
They come as Arrow batches of bounded size, only the wanted columns. Parquet is read by Arrow's own reader, which keeps
dictionary-coded text as it is and does not judge its bytes; databases by DuckDB; every other kind has a module of its
own (`delimited`, `jsonlines`, `excel`, `arrow_files`, `stats_files`), and `streams` unpacks and decodes. Hostile names
and paths never become part of a command, except table and column names of a database, which are quoted.

A container that breaks while it is read (a damaged page, a disk error) raises InputError without the reader's words,
which might quote a row; memory that runs out raises MemoryError. How long values are decides neither: batches are cut
by bytes as well as by rows, and a limit of the engine is lifted where a single value exceeds it.

"""

import codecs
import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from understudy.codec.reading import NumberForm
from understudy.counts.arrow_files import arrow_batches, arrow_header, check_arrow
from understudy.counts.delimited import delimited_batches, delimited_header
from understudy.counts.excel import check_parts, check_sizes, excel_batches, excel_header, sheets_of
from understudy.counts.jsonlines import json_batches, json_header
from understudy.counts.readers import Header, RowReader, batch_rows, in_utc, unbroken
from understudy.counts.source import (
    CONTENT_ERRORS,
    DEFAULT_MEMORY_BYTES,
    Batch,
)
from understudy.counts.stats_files import READERS, check_stats, stats_batches, stats_file
from understudy.counts.streams import (
    PACKED_ERRORS,
    UNREADABLE,
    ByteStream,
    Packing,
    Span,
    check_expansion,
    check_wide,
    line_spans,
    member_bytes,
    open_span,
    open_text,
    packed_member,
    read_up_to,
    shared_out,
)
from understudy.errors import InputError, UnderstudyError, UsageError
from understudy.schema import Float, Integer, Schema
from understudy.schema.columns import missing_texts
from understudy.schema.schema import Dialect as Dialect
from understudy.schema.schema import is_wide, located, parted, plain_encoding, require_dialect

if TYPE_CHECKING:
    import duckdb

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ""}
PARQUET = (".parquet", ".pq")
DATABASE = (".duckdb", ".ddb")
JSON_LINES = (".jsonl", ".ndjson")
ARROW = (".arrow", ".feather", ".ipc")
EXCEL = (".xlsx", ".xlsm")
PACKED: dict[str, Packing] = {".gz": "gz", ".zst": "zst", ".zip": "zip"}
SUFFIXES = (*DELIMITERS, *PARQUET, *DATABASE, *JSON_LINES, *ARROW, *EXCEL, *READERS, *PACKED)
NAMED_TABLE = re.compile(r"(.*?\.(?:duckdb|ddb|xlsx|xlsm))::(.+)", re.IGNORECASE | re.DOTALL)
DECLARED_TEXT = re.compile(r"(.*\.(?:csv|tsv|txt)(?:\.gz|\.zst)?|.*\.zip)::(\w*)", re.IGNORECASE | re.DOTALL)
MULTILINE = "multiline"
WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
OTHER_DELIMITERS = (";", "\t", "|")
UNSAID = Dialect()
FITTING: dict[str, tuple[str, ...]] = {
    "delimited": ("delimiter", "encoding", "decimal", "names", "multiline", "header"),
    "json": ("encoding", "names"),
    "excel": ("names", "header"),
    "stats": ("encoding",),
}
"""What can be declared about each kind of file; nothing about others, which say it themselves."""

Kind = Literal["delimited", "parquet", "database", "json", "arrow", "excel", "stats"]
ENGINES: dict[Kind, str] = {
    "delimited": "text",
    "parquet": "Parquet",
    "database": "DuckDB",
    "json": "lines of JSON",
    "arrow": "Arrow",
    "excel": "a workbook",
    "stats": "a file of a statistics package",
}
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
    """Files of one kind with one header; `table` names the table of a database or the sheet of a workbook.

    The dialect of text is complete: what nobody declared is filled in. `found` says that the header line was needed to
    find the delimiter, `foreign` that it is not UTF-8 though no encoding was declared. `packing` says how the files are
    compressed, `member` which file of a zip is meant, and `most_bytes` how much they may expand to if that was said.
    """

    kind: Kind
    paths: tuple[Path, ...]
    header: Header
    dialect: Dialect = UNSAID
    table: str = ""
    packing: Packing = ""
    member: str = ""
    found: bool = False
    foreign: bool = False
    most_bytes: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in file order."""
        return tuple(name for name, _ in self.header)

    @property
    def delimiter(self) -> str:
        """What separates fields of text; nothing in other kinds."""
        return self.dialect.delimiter or ""

    @property
    def multiline(self) -> bool:
        """Whether quoted fields may contain line breaks; see `delimited`."""
        return bool(self.dialect.multiline)

    @property
    def unusual(self) -> Dialect | None:
        """What a schema should say about the text, once for all; None where everything is as usual."""
        suffix = Path(self.member or self.paths[0].name.removesuffix(f".{self.packing}")).suffix.lower()
        usual = {"encoding": "utf-8", "decimal": ".", "delimiter": DELIMITERS.get(suffix), "multiline": False}
        said = {key: value for key, value in self.dialect.said.items() if value != usual.get(key)}
        return Dialect(**said) if said else None  # type: ignore[arg-type]

    @property
    def declared(self) -> str:
        """The same in words, but for line ends in fields."""
        said = {} if self.unusual is None else self.unusual.said
        return "".join(f", {key} {value!r}" for key, value in said.items() if key != "multiline")


def read_table(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    names: Sequence[str] | None = None,
    multiline: bool | None = None,
    header: bool | None = None,
    most_bytes: int | None = None,
) -> str:
    """A table in a file with how its text is written: a location that every function which takes a table accepts.

    Nothing is opened yet. What is stated here takes precedence over `file:` in the schema. It is about text files; JSON
    lines and workbooks also take `names`, JSON lines and files of statistics packages also `encoding`.

    Args:
        path: the file, as anywhere else.
        delimiter: one character, or comma, semicolon, tab, pipe or space.
        encoding: encoding of the text, by Python's name; UTF-8 by default.
        decimal: the decimal mark, "." or ",".
        names: the names of the columns, of a file without a header line.
        header: true if the file has a header line, whose names these replace.
        multiline: whether quoted fields contain line breaks.
        most_bytes: largest size to which a compressed file may expand.

    Raises:
        UsageError: an argument makes no sense.
    """
    listed = names if names is None or isinstance(names, str) else tuple(names)
    dialect = require_dialect(Dialect(delimiter, encoding, decimal, listed, multiline, header))  # type: ignore[arg-type]
    if most_bytes is not None and (type(most_bytes) is not int or most_bytes < 1):
        raise UsageError("most_bytes", f"must be a whole number of bytes above 0, got {most_bytes!r}.")
    return located(str(path), dialect, most_bytes)


def opened(location: str | Path, schema: Schema | None) -> Container:
    """The files meant by a location, under the schema that they are read by, if there is one yet."""
    return container_of(location) if schema is None else container_of(location, schema.file, columns_read(schema))


def container_of(
    location: str | Path, usual: Dialect | None = None, declared: Sequence[str] | None = None
) -> Container:
    """The files meant by a location, checked to be readable from outside.

    A location is a path, a glob pattern, "file.duckdb::table", "file.xlsx::sheet", text files in the dialect
    "file.csv::multiline", or what `read_table` gives. What it does not declare is taken from the `usual` dialect. Lines
    of JSON have the `declared` columns of a schema if there is one: no row, not even the first, decides what is there.
    """
    place, dialect, most_bytes = parted(str(location))
    named = NAMED_TABLE.fullmatch(place)
    text, table = (named[1], named[2]) if named else (place, "")
    text, multiline = _multiline(text)
    dialect = replace(dialect, multiline=True) if multiline else dialect
    paths = _paths(text)
    text_said = dialect.over(usual).delimiter is not None
    outsides = [_outside(path, text_said=text_said) for path in paths]
    if len({outside[:2] for outside in outsides}) > 1:
        raise InputError(
            f"{text}", "the pattern matches files of different kinds.", "Name one kind, such as *.parquet."
        )
    kind, packing, _, suffix = outsides[0]
    _check_fitting(text, kind, dialect)
    if kind == "database":
        return _database(text, paths, table)
    if len(paths) > 1 and (kind == "excel" or packing == "zip"):
        raise InputError(text, "the pattern matches several of them.", "Name one.")
    kept = {key: value for key, value in dialect.over(usual).said.items() if key in FITTING.get(kind, ())}
    if kind == "json" and declared is not None:
        kept.setdefault("names", tuple(declared))
    asked = Container(kind, tuple(paths), (), Dialect(**kept), table, packing, outsides[0][2], most_bytes=most_bytes)  # type: ignore[arg-type]
    found = [_headed(replace(asked, paths=(path,)), suffix) for path in paths]
    for path, one in zip(paths, found, strict=True):
        if one.names != found[0].names or one.delimiter != found[0].delimiter:
            rule = f"its columns differ from those of {paths[0]}."
            raise InputError(str(path), rule, "Files read together need the same columns in the same order.")
    return replace(found[0], paths=tuple(paths))


def _multiline(text: str) -> tuple[str, bool]:
    """The path or pattern of text files, and whether the location declares line breaks in quoted fields."""
    declared = DECLARED_TEXT.fullmatch(text)
    if declared is None:
        place = text.removesuffix(f"::{MULTILINE}")
        return place, place != text
    if declared[2] != MULTILINE:
        rule = f"the dialect {declared[2]!r} is not known."
        raise InputError(text, rule, f"Known: {declared[1]}::{MULTILINE}, where quoted fields contain line breaks.")
    return declared[1], True


def _check_fitting(text: str, kind: Kind, dialect: Dialect) -> None:
    """Raises if something is declared that such files say themselves."""
    known = FITTING.get(kind, ())
    unfit = [key for key in dialect.said if key not in known]
    if unfit:
        fix = "Drop it: such a file states this itself."
        raise InputError(text, f"{unfit[0]}= cannot be declared for a file of this kind.", fix)


def _paths(text: str) -> list[Path]:
    path = Path(text)
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
        # Sorted, because the order in which a disk lists files is nobody's choice.
        found = sorted(Path(name) for name in glob.glob(text, recursive=True)) if glob.has_magic(text) else []
    except (OSError, ValueError) as cause:
        raise InputError(text, "is not a usable path.", "Check how it is written.") from cause
    if is_file:
        return [path]
    if is_folder:
        raise InputError(text, "is a folder, not a table.", f"Name files in it, such as {path / '*.parquet'}.")
    files = [name for name in found if name.is_file()]
    if files:
        return files
    rule = "no file matches this pattern." if glob.has_magic(text) else "no such file."
    raise InputError(text, rule, "Check the path.")


def _outside(path: Path, *, text_said: bool) -> tuple[Kind, Packing, str, str]:
    """Kind of a file by its name, how it is packed, which file of a zip is meant, and the table's own suffix.

    Where somebody has said what separates its fields, a file with an unknown suffix (.data, .dat) is text.
    """
    packing = PACKED.get(path.suffix.lower(), "")
    if packing == "zip":
        _check_empty(path)
        member, _ = packed_member(path)
        suffix = Path(member).suffix.lower()
        allowed = (*DELIMITERS, *JSON_LINES, *PARQUET)
    else:
        member, suffix = "", (path.with_suffix("") if packing else path).suffix.lower()
        allowed = (*DELIMITERS, *JSON_LINES) if packing else SUFFIXES
    kind = KINDS.get(suffix)
    if kind is None and text_said:
        return "delimited", packing, member, ".txt"
    if kind is None or suffix not in allowed:
        what = f"the suffix {suffix!r} is not known" + (f" inside a {path.suffix.lower()} file" if packing else "")
        fix = f"Known: {', '.join(allowed)}. Other text files need delimiter=."
        raise InputError(str(path), f"{what}.", fix)
    return kind, packing, member, suffix


def _check_empty(path: Path) -> None:
    try:
        empty = not path.stat().st_size
    except OSError as cause:
        raise InputError(str(path), "cannot be read.", "Check that the file exists and you may read it.") from cause
    if empty:
        raise InputError(str(path), "is empty.", "A table needs at least a header.")


KINDS: dict[str, Kind] = {
    **dict.fromkeys(DELIMITERS, "delimited"),
    **dict.fromkeys(PARQUET, "parquet"),
    **dict.fromkeys(DATABASE, "database"),
    **dict.fromkeys(JSON_LINES, "json"),
    **dict.fromkeys(ARROW, "arrow"),
    **dict.fromkeys(EXCEL, "excel"),
    **dict.fromkeys(READERS, "stats"),
}


def _headed(asked: Container, suffix: str) -> Container:
    """The container with its header, and with all of its dialect."""
    (path,) = asked.paths
    if asked.dialect.first_line_names:
        _check_empty(path)
    broken: OSError | None = None
    try:
        match asked.kind:
            case "delimited":
                return _text_headed(asked, suffix)
            case "json":
                return _json_headed(asked)
            case "excel":
                return _excel_headed(asked)
            case "stats":
                stored = stats_file(path, asked.dialect.encoding)
                kinds = [str(column.kind).replace("large_binary", "string") for column in stored.columns]
                names = [column.name for column in stored.columns]
                return replace(asked, header=tuple(zip(names, kinds, strict=True)))
            case "arrow":
                return replace(asked, header=tuple(arrow_header(path)))
            case _:
                return replace(asked, header=_parquet_header(path, asked))
    except UnderstudyError:
        raise
    except OSError as cause:
        broken = cause if asked.packing == "" else None
    except PACKED_ERRORS:
        pass
    if broken is None:
        rule = "is not readable (damaged, truncated or in another format)."
        raise InputError(str(path), rule, "Check the file, or write it again.")
    raise InputError(str(path), "cannot be read.", "Check that the file exists and you may read it.") from broken


def _open(container: Container, path: Path) -> AbstractContextManager[ByteStream]:
    return open_text(path, container.packing, container.member, plain_encoding(container.dialect.encoding))


def _text_headed(asked: Container, suffix: str) -> Container:
    (path,) = asked.paths
    # Without a header the first line is somebody's row.
    if not asked.dialect.first_line_names:
        return _nameless(asked, DELIMITERS[suffix])
    with _open(asked, path) as stream:
        # No more than the header line needs. It is public; what follows it is not, and is not looked at.
        start = read_up_to(stream, 4096)
    first_line = start.splitlines()[0] if start.strip() else b""
    if plain_encoding(asked.dialect.encoding) == "utf-8" and (start.startswith(WIDE_MARKS) or b"\0" in first_line):
        rule = "is not UTF-8 text (it may be UTF-16 or a binary file)."
        raise InputError(str(path), rule, "If it is text, give encoding=, such as encoding=utf-16.")
    delimiter = asked.dialect.delimiter or _found_delimiter(path, first_line, suffix)
    with _open(asked, path) as stream:
        names = delimited_header(stream, delimiter, multiline=asked.multiline)
    if not names:
        raise InputError(str(path), "has no header.", "The first line must name the columns.")
    found = asked.dialect.delimiter is None and delimiter != DELIMITERS[suffix]
    dialect = replace(asked.dialect, delimiter=delimiter)
    header = tuple((name, "string") for name in _standing_for(names, asked))
    foreign = asked.dialect.encoding is None and not _begins_utf8(first_line)
    return replace(asked, header=header, dialect=dialect, found=found, foreign=foreign)


def _begins_utf8(line: bytes) -> bool:
    """Whether a line, which may be cut off, is UTF-8 as far as it goes."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(line)
    except UnicodeDecodeError:
        return False
    return True


def _standing_for(names: Sequence[str], asked: Container) -> Sequence[str]:
    """The names that stand for those of the header line; these themselves if none were declared."""
    declared = asked.dialect.names
    if declared is not None and len(declared) != len(names):
        rule = f"its first line has {len(names):,} names, and names= lists {len(declared):,}."
        raise InputError(str(asked.paths[0]), rule, "Give one name for each column.")
    return names if declared is None else declared


def _nameless(asked: Container, usual: str) -> Container:
    """A text file without a header line: its first line is a row, so nothing is looked at."""
    delimiter = asked.dialect.delimiter or usual
    if not delimiter:
        raise InputError(str(asked.paths[0]), "does not say what separates its fields.", "Give delimiter=.")
    header = tuple((name, "string") for name in asked.dialect.names or ())
    return replace(asked, header=header, dialect=replace(asked.dialect, delimiter=delimiter))


def _found_delimiter(path: Path, first_line: bytes, suffix: str) -> str:
    """What separates names in the header line, outside of quotes: the usual one, else the only one there."""
    bare = re.sub(rb'"[^"]*"', b"", first_line)
    usual = DELIMITERS[suffix]
    if usual and (usual.encode() in bare):
        return usual
    there = [one for one in (",", *OTHER_DELIMITERS) if one.encode() in bare]
    if len(there) > 1:
        raise InputError(str(path), "its first line could be separated in several ways.", "Give delimiter=.")
    return there[0] if there else usual or ","


def _json_headed(asked: Container) -> Container:
    (path,) = asked.paths
    if asked.dialect.names is None:
        with _open(asked, path) as stream:
            names: Sequence[str] | None = json_header(stream)
    else:
        # Given names spare a look at the first line, whose keys are those of one row.
        names = asked.dialect.names
    if names is None:
        rule = "its first line is not an object with keys."
        raise InputError(str(path), rule, "Each line must be an object, such as {...}; or give names=.")
    return replace(asked, header=tuple((name, "string") for name in names))


def _excel_headed(asked: Container) -> Container:
    (path,) = asked.paths
    sheets = {sheet.name: sheet for sheet in sheets_of(path)}
    table = asked.table or (next(iter(sheets)) if len(sheets) == 1 else "")
    if table not in sheets:
        rule = f"has no sheet {table!r}." if table else "does not hold exactly one sheet."
        raise InputError(str(path), rule, f"Write file.xlsx::sheet; sheets here: {', '.join(sheets)}.")
    check_sizes(path, sheets[table], asked.most_bytes, DEFAULT_MEMORY_BYTES)
    dialect = asked.dialect
    names: Sequence[str] | None = dialect.names
    if dialect.first_line_names:
        names = excel_header(path, sheets[table])
    if not names:
        raise InputError(str(path), "has no header.", "The first row must name the columns.")
    names = _standing_for(names, asked)
    return replace(asked, header=tuple((name, "string") for name in names), table=table)


def _parquet_header(path: Path, asked: Container) -> Header:
    place = _parquet_place(path, asked)
    # The reader's own words may quote the file, so its errors are not chained.
    with (
        suppress(pa.ArrowException, ValueError, TypeError, KeyError, NotImplementedError),
        pq.ParquetFile(place, coerce_int96_timestamp_unit=INT96_UNIT) as file,
    ):
        return tuple((field.name, str(field.type)) for field in file.schema_arrow)
    rule = "is not a readable Parquet file (damaged, truncated, encrypted or in another format)."
    raise InputError(str(path), rule, "Check the file, or write it again.")


def _parquet_place(path: Path, container: Container) -> Path | pa.BufferReader:
    """Where Parquet is read from: the file, or memory, into which one is taken out of a zip."""
    if not container.packing:
        return path
    return pa.BufferReader(member_bytes(path, container.member, MOST_PACKED_PARQUET))


def _database(text: str, paths: list[Path], table: str) -> Container:
    if len(paths) > 1:
        raise InputError(text, "the pattern matches several databases.", "Name one.")
    with connect_read_only(paths[0]) as connection:
        tables = _stored_tables(connection)
        if not table and len(tables) == 1:
            table = next(iter(tables))
        if table not in tables:
            rule = f"has no table {table!r}." if table else "does not hold exactly one table."
            raise InputError(text, rule, f"Write file.duckdb::table; tables here: {', '.join(sorted(tables))}.")
        query = (
            "SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = ? AND schema_name = ? "
            "AND table_name = ? ORDER BY column_index"
        )
        header = tuple((str(name), str(kind)) for name, kind in connection.execute(query, tables[table]).fetchall())
    return Container("database", tuple(paths), header, table=table)


def _stored_tables(connection: "duckdb.DuckDBPyConnection") -> dict[str, tuple[str, str, str]]:
    """Database, schema and name of each table by what a location calls it: name, or schema.name outside of main."""
    query = (
        "SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE database_name = current_database() "
        "ORDER BY schema_name = 'main', schema_name, table_name"
    )
    found = [(str(base), str(schema), str(name)) for base, schema, name in connection.execute(query).fetchall()]
    return {one[2] if one[1] == "main" else f"{one[1]}.{one[2]}": one for one in found}


def connect_read_only(path: Path, settings: Settings | None = None) -> "duckdb.DuckDBPyConnection":
    """A locked-down connection that can read one database file and nothing else."""
    import duckdb  # takes a quarter of a second, and only files of its own need it

    # The engine's own words may quote the file, so its error is neither shown nor chained.
    with suppress(duckdb.Error, OSError, ValueError):
        return silenced(duckdb.connect(str(path), read_only=True, config={**LOCKED, **(settings or {})}))
    raise InputError(
        str(path),
        "cannot be opened as a DuckDB database.",
        "Check that it is not damaged, in use, or written by a newer version of DuckDB.",
    )


def silenced(connection: "duckdb.DuckDBPyConnection") -> "duckdb.DuckDBPyConnection":
    """The connection without progress bar, and with all settings fixed."""
    for command in SILENT:
        connection.execute(command)
    return connection


MOST_BATCH_BYTES = 1 << 28  # of Parquet, by the average row of the file
MOST_DICTIONARY_BYTES = 1 << 30
MOST_FETCHED_BYTES = 1 << 26  # of Parquet at the end of a network, unless one row group is larger
MOST_PACKED_PARQUET = 1 << 28
STREAM_BYTES = 1 << 16  # of every column; larger ones cost memory and page faults in wide files and win nothing
INT96_UNIT = "us"  # in nanoseconds, old timestamps of Parquet would wrap around after the year 2262


def file_batches(
    container: Container,
    columns: Sequence[str],
    *,
    memory_bytes: int,
    threads: int,
    decimals: Mapping[str, str] | None = None,
) -> Iterator[Batch]:
    """Number of rows and the wanted columns, batch by batch, over all files of the container.

    Numbers of workbooks and JSON lines come as text, beside true text in the same column; `decimals` says with which
    sign those of a column are spelled, so that they are read as the column is declared.

    Raises:
        InputError: if the container (not its content) breaks.
        MemoryError: if the machine's memory runs out.
    """
    wanted = list(columns)
    limits = {"memory_bytes": memory_bytes, "threads": threads}
    for path in container.paths:
        yield from unbroken(str(path), _batches(container, path, wanted, decimals=decimals or {}, limits=limits))


def _batches(
    container: Container, path: Path, wanted: list[str], *, decimals: Mapping[str, str], limits: dict[str, int]
) -> Iterator[Batch]:
    named = container.dialect.first_line_names
    match container.kind:
        case "delimited":
            with _open(container, path) as stream:
                yield from delimited_batches(
                    stream, container.delimiter, container.names, wanted, multiline=container.multiline, named=named
                )
        case "json":
            with _open(container, path) as stream:
                yield from json_batches(stream, wanted, decimals)
        case "excel":
            sheet = next(one for one in sheets_of(path) if one.name == container.table)
            yield from excel_batches(path, sheet, container.names, wanted, named=named, decimals=decimals)
        case "stats":
            yield from stats_batches(stats_file(path, container.dialect.encoding), wanted)
        case "arrow":
            yield from arrow_batches(path, wanted)
        case "parquet":
            yield from parquet_batches(_parquet_place(path, container), wanted)
        case "database":
            yield from _database_batches(path, container.table, wanted, **limits)


def check_whole(container: Container, memory_bytes: int) -> None:
    """Reads what can be damaged or expand, to nothing, so that it is refused before anything is charged.

    What it finds depends on the container alone: whether it is whole, and how large. See `streams` about bombs. Parquet
    and databases are opened and not read: a damaged page of theirs is found only when it is read.

    Raises:
        InputError: the container is damaged, or expands to more than the limit.
        ResourceError: a part that is read whole does not fit in memory.
    """
    for path in container.paths:
        match container.kind:
            case "arrow":
                check_arrow(path, container.most_bytes, memory_bytes)
            case "stats":
                check_stats(stats_file(path, container.dialect.encoding), container.most_bytes)
            case "excel":
                sheet = next(one for one in sheets_of(path) if one.name == container.table)
                check_sizes(path, sheet, container.most_bytes, memory_bytes)
                check_parts(path, sheet)
            case _:
                size = check_expansion(path, container.packing, container.member, container.most_bytes)
                if is_wide(container.dialect.encoding or ""):
                    check_wide(path, size)


def parquet_batches(
    place: Path | pa.BufferReader | pa.NativeFile,
    wanted: list[str],
    *,
    span: tuple[int, int] | None = None,
    ahead: bool = False,
) -> Iterator[Batch]:
    """Rows of one Parquet file.

    Args:
        place: the file.
        wanted: names of the columns.
        span: the first row group and the one after the last; all if not given.
        ahead: whether to fetch whole row groups at a time, for files at the end of a network.
    """
    with pq.ParquetFile(place, coerce_int96_timestamp_unit=INT96_UNIT) as plain:
        metadata = plain.metadata
        groups = range(metadata.num_row_groups) if span is None else range(*span)
        if not wanted:
            yield sum(metadata.row_group(group).num_rows for group in groups), {}
            return
        rows = batch_rows(len(wanted))
        # By bytes as well as by rows: a batch of long texts could exceed memory after the charge.
        rows = max(1, min(rows, MOST_BATCH_BYTES // _widest_row(metadata)))
        texts = [field.name for field in plain.schema_arrow if field.name in wanted and _is_text(field.type)]
        # As dictionaries, so that each distinct text is coded once; Arrow fails on a dictionary beyond 2 GiB.
        coded = [name for name in texts if not _is_vast(metadata, name)]
    with pq.ParquetFile(
        place,
        metadata=metadata,
        read_dictionary=coded,
        pre_buffer=ahead,
        buffer_size=0 if ahead else STREAM_BYTES,
        coerce_int96_timestamp_unit=INT96_UNIT,
    ) as file:
        for fetched in _fetched(metadata, groups) if ahead else [list(groups)]:
            # Threads are one per part of the table (`parts`); Arrow's own would come on top of them.
            for batch in file.iter_batches(rows, row_groups=fetched, columns=wanted, use_threads=False):
                place_of = {name: position for position, name in enumerate(batch.schema.names)}
                yield batch.num_rows, {name: batch.column(place_of[name]) for name in wanted}


def _fetched(metadata: pq.FileMetaData, groups: Sequence[int]) -> Iterator[list[int]]:
    """Row groups in runs that are fetched together: as few requests as their bytes allow."""
    run: list[int] = []
    held = 0
    for position in groups:
        size = metadata.row_group(position).total_byte_size
        if run and held + size > MOST_FETCHED_BYTES:
            yield run
            run, held = [], 0
        run, held = [*run, position], held + size
    if run:
        yield run


def file_parts(container: Container, columns: Sequence[str], *, most: int) -> list[Iterator[Batch]]:
    """The rows of the container as at most that many streams, if it can be read so; else none.

    Text is cut where a line begins, which is certain only if no quoted field crosses line ends, and if the bytes are
    those of the text: neither packed nor in another encoding.
    """
    sized: list[tuple[Span, int]] = []
    plain_text = plain_encoding(container.dialect.encoding) == "utf-8" and not container.multiline
    if container.kind == "parquet" and not container.packing:
        sized = [piece for path in container.paths for piece in _row_groups(path)]
    elif container.kind == "delimited" and not container.packing and plain_text:
        sized = [piece for path in container.paths for piece in line_spans(path, most)]
    return [_pieces(container, part, list(columns)) for part in shared_out(sized, most)]


def _row_groups(path: Path) -> list[tuple[Span, int]]:
    """The row groups of a Parquet file, with the rows of each."""
    with pq.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    return [((path, group, group + 1), rows) for group, rows in enumerate(sizes)]


def _pieces(container: Container, pieces: Sequence[Span], wanted: list[str]) -> Iterator[Batch]:
    for path, start, stop in pieces:
        yield from unbroken(str(path), _piece(container, path, (start, stop), wanted))


def _piece(container: Container, path: Path, span: tuple[int, int], wanted: list[str]) -> Iterator[Batch]:
    if container.kind == "parquet":
        yield from parquet_batches(path, wanted, span=span)
        return
    named = container.dialect.first_line_names
    with open_span(path, *span) as stream:
        first = span[0] == 0
        yield from delimited_batches(
            stream, container.delimiter, container.names, wanted, named=named and first, marked=first
        )


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
    import duckdb

    settings: Settings = {"memory_limit": f"{memory_bytes}B", "threads": threads}
    done = 0
    # How long a value is must not decide whether a run that was charged ends well, so a limit is tried, then lifted.
    with suppress(duckdb.OutOfMemoryException):
        for rows, batch in _query_batches(path, table, wanted, settings):
            yield rows, batch
            done += rows
        return
    with suppress(duckdb.OutOfMemoryException):
        for rows, batch in _query_batches(path, table, wanted, {"threads": 1}):
            # DuckDB scans in the order of insertion, so what was handed over already is skipped by its number.
            left = min(rows, done)
            done -= left
            if rows > left:
                yield rows - left, {name: column.slice(left) for name, column in batch.items()}
        return
    raise MemoryError


def _query_batches(path: Path, table: str, wanted: list[str], settings: Settings) -> Iterator[Batch]:
    with connect_read_only(path, settings) as connection:
        place = ".".join(map(quoted, _stored_tables(connection)[table]))
        if not wanted:
            ((rows,),) = connection.sql(f"SELECT count(*) FROM {place}").fetchall()
            yield int(rows), {}
            return
        relation = connection.sql(f"SELECT {', '.join(map(quoted, wanted))} FROM {place}")
        # The method's name differs between old and new DuckDB.
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        for batch in reader(batch_rows(len(wanted))):
            yield batch.num_rows, {name: in_utc(batch.column(position)) for position, name in enumerate(wanted)}


def quoted(name: str) -> str:
    """A name as a quoted SQL identifier.

    >>> quoted('a"; DROP TABLE b')
    '"a""; DROP TABLE b"'
    """
    # The only text of others that becomes part of a command; values are never put into one.
    return '"' + name.replace('"', '""') + '"'


class FileReader(RowReader):
    """Rows of files. Opening looks at the outside of each and at its header.

    Nobody holds a file still: one that is rewritten between two passes is read as it is then.
    """

    def __init__(self, location: str | Path, schema: Schema | None = None) -> None:
        self.container = opened(location, schema)
        self._schema = schema
        if schema is not None:
            _check_first_line(self.container, schema)
            _check_decimal(self.container, schema)
        self.where = str(self.container.paths[0])
        self.engine = ENGINES[self.container.kind]
        self.bytes = sum(path.stat().st_size for path in self.container.paths)

    @property
    def header(self) -> Header:
        """Names and storage types of the columns (all "string" for text files)."""
        return self.container.header

    def check(self, memory_bytes: int) -> None:
        """Reads what can be damaged or expand, to nothing; see `check_whole`."""
        check_whole(self.container, memory_bytes)

    def batches(self, columns: Sequence[str], *, memory_bytes: int, threads: int) -> Iterator[Batch]:
        """Rows of these columns, batch by batch. Private."""
        modelled = () if self._schema is None else self._schema.modelled
        decimals = {column.name: column.decimal for column in modelled if isinstance(column, Integer | Float)}
        limits = {"memory_bytes": memory_bytes, "threads": threads}
        yield from self._in_plain_numbers(file_batches(self.container, columns, decimals=decimals, **limits))

    def parts(self, columns: Sequence[str], *, memory_bytes: int, threads: int) -> Sequence[Iterator[Batch]]:
        """The same rows, of Parquet by row groups and of plain text by lines, for several threads. Private."""
        found = file_parts(self.container, columns, most=threads) if threads > 1 else []
        if len(found) < 2:
            return super().parts(columns, memory_bytes=memory_bytes, threads=threads)
        return [self._in_plain_numbers(part) for part in found]

    def _in_plain_numbers(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        for rows, batch in batches:
            yield rows, batch if self._schema is None else in_plain_numbers(self.container, self._schema, batch)


def columns_read(schema: Schema) -> list[str]:
    """The columns that are read from a table under a schema: all but derived ones, and that of the unit."""
    names = [column.name for column in schema.modelled]
    return names if schema.unit.column in (None, *names) else [*names, str(schema.unit.column)]


def in_plain_numbers(
    container: Container, schema: Schema, batch: Mapping[str, pa.Array]
) -> Mapping[str, pa.Array | pa.ChunkedArray]:
    """The batch with numbers of a text file, whose dialect has another decimal sign, in the form a schema expects.

    That is for columns that do not declare a sign of their own. Texts that mean "no value" stay, and what is no number
    with that sign becomes unreadable. Each value is looked at alone.
    """
    decimal = container.dialect.decimal
    if container.kind != "delimited" or decimal in (None, "."):
        return batch
    found = dict(batch)
    for column in schema.modelled:
        if isinstance(column, Integer | Float) and not column.decimal and column.name in found:
            # With the file's sign, and all else as the column declares it.
            form = NumberForm(decimal or "", column.thousands, column.prefix, column.suffix, column.parentheses)
            known = pa.array(missing_texts(column), pa.large_string())
            found[column.name] = _plain_numbers(found[column.name], form, known)
    return found


def _plain_numbers(texts: pa.Array | pa.ChunkedArray, form: NumberForm, known: pa.Array) -> pa.Array:
    if isinstance(texts, pa.ChunkedArray):
        return pa.chunked_array([_plain_numbers(chunk, form, known) for chunk in texts.chunks], pa.large_binary())
    try:
        bare = pc.ascii_trim_whitespace(texts)
        numbers = pc.fill_null(form.plain(bare).cast(pa.large_binary()), UNREADABLE)
        kept = pc.or_(pc.is_null(texts), pc.is_in(bare, value_set=known))
        return pc.if_else(kept, texts.cast(pa.large_binary()), numbers)
    except CONTENT_ERRORS:
        if len(texts) == 1:
            return pa.array([UNREADABLE], pa.large_binary())
    return pa.concat_arrays([_plain_numbers(texts.slice(row, 1), form, known) for row in range(len(texts))])


def _check_decimal(container: Container, schema: Schema) -> None:
    """The sign before decimals in a whole file must not be what a column groups thousands by: 1,5 would be 15."""
    decimal = container.dialect.decimal
    clash = [
        column.name
        for column in schema.modelled
        if isinstance(column, Integer | Float) and not column.decimal and decimal and column.thousands == decimal
    ]
    if clash:
        rule = f"is {decimal!r}, which separates thousands in column {clash[0]!r}."
        raise UsageError("decimal", rule, "State a `decimal` for that column in the schema, or another one here.")


def _check_first_line(container: Container, schema: Schema) -> None:
    """A text file without a header would have its first row quoted as column names, so that is told apart."""
    first_row = container.kind in ("delimited", "excel") and container.dialect.first_line_names
    if first_row and not set(container.names) & {column.name for column in schema.modelled}:
        rule = "its first line names none of the schema's columns."
        raise InputError(str(container.paths[0]), rule, "Check that it has a header, and which delimiter it uses.")
