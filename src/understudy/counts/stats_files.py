"""Files of Stata, SPSS and SAS as Arrow batches, read by pyreadstat (the extra `stats`).

Values are read as stored: codes as numbers and not as the labels a file may give them, values that SPSS users declare
to be missing as the numbers they are, and the many missing values of Stata and SAS as absent. Columns in a format of
dates or times are dates and times; what lies outside the calendar is absent.

No content can stop the reading. The library converts text to UTF-8 and fails where bytes do not fit, and it fails on
dates outside the calendar; so it is told that text is Latin-1, in which every byte is a character, and that dates are
numbers, and both are converted here, value by value.

Transport files of SAS in version 5 do not say how many rows they have, and end in blanks; the library leaves out the
rows of nothing but blanks at the end, and only there. So every such row is left out, wherever it stands: otherwise
the last row would decide about those before it.
"""

import importlib
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.counts.streams import UNREADABLE, decoded, most_expanded, too_large
from understudy.errors import InputError
from understudy.schema.schema import plain_encoding

READERS = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
_LATIN = "ISO-8859-1"
_STATA_RELEASE = re.compile(rb"<stata_dta><header><release>(\d{3})</release>")
_COUNTED_TRANSPORT = b"LIBV8"  # version 8, which says how many rows there are
_BLANK_NUMBERS = frozenset(int.from_bytes(b" " * (size - 1)) / 256 ** (size - 1) * 16.0**-32 for size in range(2, 9))
_MOST_VALUES = 1 << 21
_MOST_PIECE_BYTES = 1 << 27
_DAYS = re.compile(r"[AEJS]?DATE|DDMMYYS?|MMDDYYS?|YYMMDD[NS]?|(E|B|IS)8601DA|WORDDATE|WEEKDATE|NLDATE")
_INSTANTS = re.compile(r"DATETIME|YMDHMS|(E|B|IS)8601DT|DATEAMPM|NLDATM")
_CLOCKS = re.compile(r"TIME|HHMM|TOD|(E|B|IS)8601TM")
_DAY = 86_400.0
_FROM_1960 = -3653 * _DAY
_FROM_1582 = -141_428 * _DAY
_FIRST, _LAST = -719_162 * _DAY, 2_932_897 * _DAY  # of the years 1 to 9999, in seconds from 1970


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column: its name, the name that the library has for it, and how its numbers become seconds since 1970."""

    name: str
    key: str
    kind: pa.DataType
    scale: float = 1.0
    origin: float = 0.0


@dataclass(frozen=True, slots=True)
class StatsFile:
    """What such a file says about itself."""

    path: Path
    encoding: str
    columns: tuple[StoredColumn, ...]
    rows: int
    width: int

    @property
    def expanded(self) -> int:
        """How many bytes its rows take."""
        return self.rows * self.width


def stats_file(path: Path, encoding: str | None) -> StatsFile:
    """The columns of a file, of which no row is read.

    Raises:
        InputError: the library is not installed, or cannot read the file.
    """
    found = _read(path, metadataonly=True)
    names = [] if found is None else list(getattr(found[1], "column_names", None) or [])
    if found is None or not names or not all(isinstance(name, str) for name in names):
        rule = "is not a readable file of its kind (damaged, truncated, encrypted or of another kind)."
        raise InputError(str(path), rule, "Check the file, or write it again.")
    meta: Any = found[1]
    known = _encoding_of(path, encoding)
    columns = tuple(_column(path, name, meta, known) for name in names)
    widths = sum(int(width) for width in (getattr(meta, "variable_storage_width", None) or {}).values())
    return StatsFile(path, known, columns, max(0, int(meta.number_rows or 0)), max(1, widths))


def _library(path: Path) -> ModuleType:
    try:
        return importlib.import_module("pyreadstat")
    except ImportError as cause:
        rule = "needs the package pyreadstat, which is not installed."
        raise InputError(str(path), rule, "Install it: pip install 'understudy[stats]'.") from cause


def _read(path: Path, **limits: Any) -> tuple[dict[str, list[Any]], object] | None:
    """What the library reads; None if it fails, whose words may quote the file."""
    name = READERS[path.suffix.lower()]
    read: Callable[..., Any] = getattr(_library(path), name)
    more = {"user_missing": True} if name == "read_sav" else {}
    try:
        told = {"encoding": _LATIN, "output_format": "dict", "disable_datetime_conversion": True} | more | limits
        data, meta = read(str(path), **told)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the library has an exception of its own, and Python's where a header is odd
        return None
    return data, meta


def _encoding_of(path: Path, encoding: str | None) -> str:
    """As declared, else as the file says, else as is usual for its kind."""
    if encoding is not None:
        return plain_encoding(encoding)
    found = _read(path, encoding=None, metadataonly=True)  # which fails if names are not as the file says
    said = None if found is None else getattr(found[1], "file_encoding", None)
    if path.suffix.lower() == ".dta":
        with path.open("rb") as file:
            release = _STATA_RELEASE.match(file.read(64))
        said = "utf-8" if release and int(release[1]) >= 118 else "cp1252"
    try:
        return plain_encoding(said or "utf-8")
    except LookupError:
        return "utf-8"


def _column(path: Path, key: str, meta: Any, encoding: str) -> StoredColumn:
    name = decoded(_bytes(key), encoding).decode("utf-8", "replace")
    if meta.readstat_variable_types.get(key) == "string":
        return StoredColumn(name, key, pa.large_binary())
    form = str(meta.original_variable_types.get(key) or "")
    scale, kind = _moment_of(form, path.suffix.lower())
    if kind is None:
        return StoredColumn(name, key, pa.float64())
    spss = path.suffix.lower() in (".sav", ".zsav", ".por")
    origin = 0.0 if pa.types.is_time(kind) else _FROM_1582 if spss else _FROM_1960
    return StoredColumn(name, key, kind, scale, origin)


def _moment_of(form: str, suffix: str) -> tuple[float, pa.DataType | None]:
    """The seconds that one in a column of this format stands for, and its type; None if it is a number."""
    if suffix == ".dta":
        bare = form.replace("-", "")
        if bare.startswith(("%td", "%d")):
            return _DAY, pa.date32()
        return (0.001, pa.timestamp("ms")) if bare.startswith(("%tc", "%tC")) else (1.0, None)
    base = re.sub(r"[0-9.]+$", "", form.upper())
    if _DAYS.fullmatch(base):
        return (1.0 if suffix in (".sav", ".zsav", ".por") else _DAY), pa.date32()
    if _INSTANTS.fullmatch(base):
        return 1.0, pa.timestamp("ms")
    return (1.0, pa.time32("ms")) if _CLOCKS.fullmatch(base) else (1.0, None)


def _bytes(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return UNREADABLE


def check_stats(file: StatsFile, most_bytes: int | None) -> None:
    """Reads all rows, to nothing.

    Raises:
        InputError: the file is damaged, or expands to more than the limit.
    """
    limit = most_expanded(file.path, most_bytes)
    if file.expanded > limit:
        raise too_large(file.path, limit)
    for _ in _pieces(file, file.columns):
        pass


def stats_batches(file: StatsFile, wanted: Sequence[str]) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    """Number of rows and the wanted columns, batch by batch."""
    by_name = {column.name: column for column in file.columns}
    # The library cannot count rows without reading a column.
    chosen = [by_name[name] for name in wanted] or list(file.columns[:1])
    for data in _pieces(file, chosen):
        rows = len(data[chosen[0].key])
        yield rows, {name: _array(data[by_name[name].key], by_name[name], file.encoding) for name in wanted}


def _pieces(file: StatsFile, chosen: Sequence[StoredColumn]) -> Iterator[dict[str, list[Any]]]:
    ended_by_blanks = _is_ended_by_blanks(file.path)
    keys = [column.key for column in (file.columns if ended_by_blanks else chosen)]
    size = max(1, min(_MOST_VALUES // max(1, len(keys)), _MOST_PIECE_BYTES // file.width))
    start = 0
    while True:
        found = _read(file.path, row_offset=start, row_limit=size, usecols=keys)
        if found is None:
            raise InputError(str(file.path), "could not be read to its end.", "Check the file and the disk it is on.")
        data = found[0]
        rows = len(data[keys[0]]) if keys[0] in data else 0
        kept = _without_blank_rows(data) if ended_by_blanks and rows else data
        if rows and len(kept[keys[0]]):
            yield kept
        if rows < size:
            return
        start += rows


def _is_ended_by_blanks(path: Path) -> bool:
    if path.suffix.lower() != ".xpt":
        return False
    with path.open("rb") as file:
        return not file.read(28)[20:].startswith(_COUNTED_TRANSPORT)


def _without_blank_rows(data: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The rows that are more than blanks in the file, which as a number are one too small to be in use."""
    kept = [any(not _is_blank(value) for value in row) for row in zip(*data.values(), strict=True)]
    return {key: list(itertools.compress(values, kept)) for key, values in data.items()}


def _is_blank(value: object) -> bool:
    return value == "" or (isinstance(value, float) and value in _BLANK_NUMBERS)


def _array(values: list[Any], column: StoredColumn, encoding: str) -> pa.Array:
    if pa.types.is_large_binary(column.kind):
        texts = [decoded(_bytes(value), encoding) if isinstance(value, str) else None for value in values]
        return pa.array(texts, pa.large_binary())
    numbers = np.array([_number(value) for value in values], np.float64)
    if pa.types.is_floating(column.kind):
        return pa.array(numbers, from_pandas=True)
    with np.errstate(all="ignore"):
        seconds = numbers * column.scale + column.origin
        is_time = pa.types.is_time(column.kind)
        known = (seconds >= 0) & (seconds < _DAY) if is_time else (seconds >= _FIRST) & (seconds < _LAST)
        day = pa.types.is_date(column.kind)
        whole = np.where(known, np.floor(seconds / _DAY) if day else np.round(seconds * 1000), 0).astype(np.int64)
    kind = pa.int32() if day or is_time else pa.int64()
    return pa.array(whole, mask=~known).cast(kind).view(column.kind)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float | np.number) else float("nan")
