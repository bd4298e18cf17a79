"""Workbooks of Excel (.xlsx) as Arrow batches of text, read part by part without any macro, formula or link.

A workbook is a zip of XML parts. A cell is read as what is stored in it: of a formula the value it had when the file
was saved, of a number in the style of a date the date, a time or both, everything else as text, in which characters
may be written by their number (`_x000A_` is a line end). The first row names the columns; every later row that holds a
value is a row of the table, and cells right of the names are dropped. Numbers and moments are spelled as in every other
source.

What a cell holds cannot stop the reading: a number that is none or has more than 400 characters, a style that is
no short number, a reference to a text that is not there and a date outside the calendar are unreadable. Parts that
are no XML are damage to the container, and so is a document type, by which a few bytes of XML could expand to anything.

The texts that cells share are held in memory at once, and must fit within the limit.
"""

import datetime as dt
import math
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers import expat

import pyarrow as pa

from understudy.counts.streams import PACKED_ERRORS, PIECE_BYTES, UNREADABLE, most_expanded, too_large, zip_part
from understudy.errors import InputError, ResourceError

EXCEL_ERRORS = (*PACKED_ERRORS, expat.ExpatError, AttributeError, TypeError)
_WORKBOOK, _LINKS = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
_STYLES = "xl/styles.xml"
_MOST_BOOK = 16 << 20
_MOST_TEXT = 1 << 20
_MOST_COLUMNS = 1 << 14
_MOST_ROWS = 1 << 14
_MOST_BATCH_BYTES = 1 << 25
_MOST_DIGITS = 9  # of a number that refers to something
_MOST_NUMBER = 400
_MOST_FORMAT = 255  # as in Excel
_CELL = re.compile(r"([A-Z]{1,3})[0-9]*", re.ASCII)
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?", re.ASCII)
_ESCAPED = re.compile(r"_x([0-9a-fA-F]{4})_")
_ISO_MOMENT = re.compile(rb"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?)")
_DATE_STYLES = frozenset([*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)])
_QUOTED_STYLE = re.compile(r'"[^"]*"|\\.|\[(?!h+\]|m+\]|s+\])[^\[\]]*\]|_.|\*.', re.IGNORECASE)
_EPOCHS = {False: dt.datetime(1899, 12, 30), True: dt.datetime(1904, 1, 1)}

Value = bytes | None


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet: its name, the part it is in, and whether days are counted from 1904."""

    name: str
    part: str
    late: bool


def sheets_of(path: Path) -> list[Sheet]:
    """The sheets of a workbook that hold cells, in its order.

    Raises:
        InputError: it is no workbook that can be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if max(archive.getinfo(name).file_size for name in (_WORKBOOK, _LINKS)) > _MOST_BOOK:
                raise ValueError("too large")
            book, links = _Parts("sheet", "workbookPr"), _Parts("Relationship")
            _parse(archive, _WORKBOOK, book)
            _parse(archive, _LINKS, links)
            targets = {one.get("Id", ""): _target(one.get("Target", "")) for _, one in links.found}
            late = any(one.get("date1904", "") in ("1", "true") for name, one in book.found if name == "workbookPr")
            sheets = [one for name, one in book.found if name == "sheet"]
            parts = set(archive.namelist())
            listed = [Sheet(one.get("name", ""), targets.get(one.get("id", ""), ""), late) for one in sheets]
            return [one for one in listed if one.part in parts and "worksheets/" in one.part]
    except EXCEL_ERRORS:
        pass
    rule = "is not a readable Excel workbook (damaged, protected by a password or in another format)."
    raise InputError(str(path), rule, "Save it as .xlsx without a password.")


def _target(target: str) -> str:
    return target.lstrip("/") if target.startswith("/") else f"xl/{target}"


def check_sizes(path: Path, sheet: Sheet, most_bytes: int | None, memory_bytes: int) -> None:
    """Looks at the sizes that the parts of the sheet are said to have; more than that is never read of them.

    Raises:
        InputError: they expand to more than the limit.
        ResourceError: the texts that cells share do not fit in memory.
    """
    limit, sizes = most_expanded(path, most_bytes), None
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = [archive.getinfo(name).file_size for name in _parts(archive, sheet)]
    except EXCEL_ERRORS:
        pass
    if sizes is None:
        raise _damaged(path)
    if sum(sizes) > limit:
        raise too_large(path, limit)
    held = 4 * sum(sizes[1:])
    if held > memory_bytes:
        raise ResourceError(str(path), held, memory_bytes, "Save the sheet as CSV, or raise the memory limit.")


def check_parts(path: Path, sheet: Sheet) -> None:
    """Reads every part that the sheet needs, to nothing.

    Raises:
        InputError: a part is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            for name in _parts(archive, sheet):
                _parse(archive, name, _Parts())
        return
    except EXCEL_ERRORS:
        pass
    raise _damaged(path)


def _damaged(path: Path) -> InputError:
    return InputError(str(path), "holds a damaged part, or one that is encrypted.", "Save it again as .xlsx.")


def _parts(archive: zipfile.ZipFile, sheet: Sheet) -> list[str]:
    """The sheet, and the parts beside it that are held in memory."""
    return [sheet.part, *(name for name in (_shared_part(archive), _STYLES) if _has(archive, name))]


def _has(archive: zipfile.ZipFile, name: str) -> bool:
    return name in archive.namelist()


def _shared_part(archive: zipfile.ZipFile) -> str:
    return next((name for name in archive.namelist() if name.lower() == "xl/sharedstrings.xml"), "")


def _refused_type(*_: object) -> None:
    raise ValueError("a document type")


def _parse(archive: zipfile.ZipFile, name: str, parts: "_Parts | _Texts | _SheetCells") -> None:
    """Feeds one part to its handlers."""
    for _ in _fed(archive, name, parts):
        pass


def _fed(archive: zipfile.ZipFile, name: str, parts: "_Parts | _Texts | _SheetCells") -> Iterator[None]:
    """Feeds one part to its handlers, piece by piece."""
    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartDoctypeDeclHandler = _refused_type
    parser.EntityDeclHandler = _refused_type
    parser.StartElementHandler = lambda tag, attributes: parts.start(_local(tag), _plain(attributes))
    parser.EndElementHandler = lambda tag: parts.end(_local(tag))
    parser.CharacterDataHandler = parts.data
    parser.buffer_text = True
    with zip_part(archive, name) as stream:
        while piece := stream.read(PIECE_BYTES // 4):
            parser.Parse(piece, False)
            yield
    parser.Parse(b"", True)
    yield


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _plain(attributes: Mapping[str, str]) -> dict[str, str]:
    return {_local(name): value for name, value in attributes.items()}


class _Parts:
    """Attributes of the elements of some names."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self.found: list[tuple[str, dict[str, str]]] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in self._names:
            self.found.append((tag, attributes))

    def end(self, tag: str) -> None:
        """Nothing to do."""

    def data(self, text: str) -> None:
        """Nothing to keep."""


class _Written:
    """Text of elements `t`, of which all that is not phonetic counts."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._inside = self._spoken = False

    def begin(self) -> None:
        self._pieces, self._length = [], 0

    def start(self, tag: str) -> None:
        self._spoken = self._spoken or tag == "rPh"
        self._inside = tag in ("t", "v") and not self._spoken

    def end(self, tag: str) -> None:
        self._spoken = self._spoken and tag != "rPh"
        self._inside = False

    def data(self, text: str) -> None:
        if self._inside:
            self._length += len(text)
            if self._length <= _MOST_TEXT:
                self._pieces.append(text)

    @property
    def text(self) -> Value:
        """What was written; too much of it is unreadable."""
        if self._length > _MOST_TEXT:
            return UNREADABLE
        return "".join(self._pieces).encode("utf-8", "surrogatepass")


def _unescaped(text: Value) -> Value:
    """Text with the characters that are written by their number; halves of one that needs two are joined.

    >>> _unescaped(b"a_x000A_b"), _unescaped(b"_x005F_x000A_"), _unescaped(b"_xD83D__xDE00_").decode()
    (b'a\\nb', b'_x000A_', '😀')
    """
    if text is None or b"_x" not in text or text == UNREADABLE:
        return text
    plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text.decode("utf-8", "surrogatepass"))
    joined = plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return joined.encode("utf-8", "surrogatepass")


def _index(text: str) -> int | None:
    """A number that refers to something; None if it is none, or too long to be one.

    >>> _index("12"), _index(""), _index("-1"), _index("9" * 5000)
    (12, None, None, None)
    """
    return int(text) if len(text) <= _MOST_DIGITS and text.isascii() and text.isdecimal() else None


class _Texts:
    """The texts that cells share."""

    def __init__(self) -> None:
        self.found: list[Value] = []
        self._written = _Written()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "si":
            self._written.begin()
        self._written.start(tag)

    def end(self, tag: str) -> None:
        self._written.end(tag)
        if tag == "si":
            self.found.append(_unescaped(self._written.text))

    def data(self, text: str) -> None:
        self._written.data(text)


class _SheetCells:
    """The rows of a sheet as they are completed: values by the number of their column."""

    def __init__(self, texts: Sequence[Value], dates: Sequence[bool], late: bool) -> None:
        self.rows: list[dict[int, tuple[Value, bool]]] = []
        self._texts, self._dates, self._late = texts, dates, late
        self._row: dict[int, tuple[Value, bool]] = {}
        self._written = _Written()
        self._kind, self._column = "n", -1
        self._style: int | None = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "row":
            self._row, self._column = {}, -1
        elif tag == "c":
            self._column = _column_of(attributes.get("r", ""), self._column + 1)
            self._kind, self._style = attributes.get("t", "n"), _index(attributes.get("s", "0"))
            self._written.begin()
        self._written.start(tag)

    def end(self, tag: str) -> None:
        self._written.end(tag)
        if tag == "c" and 0 <= self._column < _MOST_COLUMNS:
            value = self._value(self._written.text or b"")
            if value[0]:
                self._row[self._column] = value
        elif tag == "row" and self._row:
            self.rows.append(self._row)
            self._row = {}

    def data(self, text: str) -> None:
        self._written.data(text)

    def _value(self, text: bytes) -> tuple[Value, bool]:
        """The text of a cell, and whether it is a number."""
        if not text or text == UNREADABLE:
            return text or None, False
        if self._style is None:
            return UNREADABLE, False
        if self._kind == "s":
            place = _index(text.decode("utf-8", "replace"))
            return (UNREADABLE if place is None or place >= len(self._texts) else self._texts[place]), False
        if self._kind == "b":
            return {b"1": b"true", b"0": b"false"}.get(text, UNREADABLE), False
        if self._kind == "d":
            return _iso_moment(text), False
        if self._kind != "n":
            return _unescaped(text), False
        return self._number(text.decode("utf-8", "replace").strip())

    def _number(self, spelled: str) -> tuple[Value, bool]:
        """A number as text, and whether it still is one; some are dates by their style."""
        if len(spelled) > _MOST_NUMBER or not _NUMBER.fullmatch(spelled):
            return UNREADABLE, False
        if self._style is not None and self._style < len(self._dates) and self._dates[self._style]:
            return _moment(float(spelled), late=self._late), False
        return _spelled(float(spelled)), True


def _spelled(number: float) -> bytes:
    """A number as other sources spell it.

    >>> _spelled(5.0), _spelled(0.25), _spelled(1e400)
    (b'5', b'0.25', b'inf')
    """
    return str(int(number)).encode() if math.isfinite(number) and number.is_integer() else repr(number).encode()


def _column_of(place: str, following: int) -> int:
    found = _CELL.fullmatch(place)
    if found is None:
        return following
    number = 0
    for letter in found[1]:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def _moment(days: float, *, late: bool) -> bytes:
    """A number of days as a date, a time of day or both, in ISO form.

    >>> _moment(44196.0, late=False), _moment(0.5, late=False), _moment(44196.75, late=False)
    (b'2020-12-31', b'12:00:00', b'2020-12-31 18:00:00')
    """
    if not math.isfinite(days) or not 0 <= days < 2_958_466:
        return UNREADABLE
    whole, seconds = divmod(round(days * 86_400_000) / 1000, 86_400)
    if whole == 0 and seconds and not late:
        return _clock((dt.datetime.min + dt.timedelta(seconds=seconds)).time().isoformat())
    # The calendar of Excel has a 29 February 1900, so earlier days are one off.
    days_on = whole + (1 if whole < 60 and not late else 0)
    try:
        moment = _EPOCHS[late] + dt.timedelta(days=days_on, seconds=seconds)
    except OverflowError:
        return UNREADABLE
    return _clock(moment.isoformat(" ")) if seconds else moment.date().isoformat().encode()


def _iso_moment(text: bytes) -> bytes:
    """A moment that is stored as text, with the mark between day and time that other sources have.

    >>> _iso_moment(b"2020-12-31T18:00:00.500"), _iso_moment(b"2020-12-31")
    (b'2020-12-31 18:00:00.5', b'2020-12-31')
    """
    found = _ISO_MOMENT.fullmatch(text)
    return text if found is None else found[1] + b" " + _clock(found[2].decode())


def _clock(text: str) -> bytes:
    return re.sub(r"(\.\d*?)0+$", r"\1", text).rstrip(".").encode()


def _date_styles(archive: zipfile.ZipFile) -> list[bool]:
    """For each style of cells, whether its numbers are dates or times."""
    if not _has(archive, _STYLES):
        return []
    formats, styles = _Parts("numFmt"), _Styles()
    _parse(archive, _STYLES, formats)
    _parse(archive, _STYLES, styles)
    own = {one.get("numFmtId", ""): _is_date_style(one.get("formatCode", "")) for _, one in formats.found}
    return [own.get(one, one.isdecimal() and len(one) < 4 and int(one) in _DATE_STYLES) for one in styles.formats]


class _Styles(_Parts):
    """The number formats of the styles that cells refer to."""

    def __init__(self) -> None:
        super().__init__()
        self.formats: list[str] = []
        self._inside = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._inside = self._inside or tag == "cellXfs"
        if self._inside and tag == "xf":
            self.formats.append(attributes.get("numFmtId", "0"))

    def end(self, tag: str) -> None:
        self._inside = self._inside and tag != "cellXfs"


def _is_date_style(code: str) -> bool:
    """Whether a format code shows a date or a time.

    >>> [_is_date_style(code) for code in ("yyyy-mm-dd", "#,##0.00", '0.0" days"', "[h]:mm", "[Red]0", "General")]
    [True, False, False, True, False, False]
    """
    if len(code) > _MOST_FORMAT:
        return False
    bare = _QUOTED_STYLE.sub("", code.split(";")[0])
    return "general" not in bare.lower() and bool(re.search(r"[dmyhs]", bare, re.IGNORECASE))


def excel_header(path: Path, sheet: Sheet) -> list[str]:
    """The texts of the first row; none if the sheet holds nothing. A column without a text has an empty name.

    Raises:
        InputError: a part is damaged.
    """
    try:
        first = next(_rows(path, sheet), None)
    except EXCEL_ERRORS:
        first = {-1: (None, False)}
    if first and -1 in first:
        raise _damaged(path)
    if not first:
        return []
    return [(first.get(place, (b"", False))[0] or b"").decode("utf-8", "replace") for place in range(max(first) + 1)]


def _rows(path: Path, sheet: Sheet) -> Iterator[dict[int, tuple[Value, bool]]]:
    with zipfile.ZipFile(path) as archive:
        texts = _Texts()
        shared = _shared_part(archive)
        if shared:
            _parse(archive, shared, texts)
        cells = _SheetCells(texts.found, _date_styles(archive), sheet.late)
        for _ in _fed(archive, sheet.part, cells):
            yield from cells.rows
            cells.rows = []


def excel_batches(
    path: Path, sheet: Sheet, header: Sequence[str], wanted: Sequence[str], *, named: bool, decimals: Mapping[str, str]
) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    """Number of rows and the wanted columns, batch by batch; `decimals` are the signs of the columns' numbers."""
    places = {name: header.index(name) for name in wanted}
    rows: list[dict[int, tuple[Value, bool]]] = []
    held = 0
    for number, row in enumerate(_rows(path, sheet)):
        if (named and number == 0) or min(row) >= len(header):
            continue
        rows.append(row)
        held += sum(len(value or b"") for value, _ in row.values())
        if len(rows) >= _MOST_ROWS or held >= _MOST_BATCH_BYTES:
            yield len(rows), _columns(rows, places, decimals)
            rows, held = [], 0
    if rows:
        yield len(rows), _columns(rows, places, decimals)


def _columns(rows: list[dict[int, Any]], places: Mapping[str, int], decimals: Mapping[str, str]) -> dict[str, pa.Array]:
    found = {}
    for name, place in places.items():
        decimal = decimals.get(name, "").encode()
        cells = [row.get(place, (None, False)) for row in rows]
        texts = [text.replace(b".", decimal) if decimal and is_number else text for text, is_number in cells]
        found[name] = pa.array(texts, pa.large_binary())
    return found
