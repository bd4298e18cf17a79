"""JSON lines as Arrow batches of text, by rules under which no content can stop the reading.

Every line that is not blank is one row, whatever it holds, and so is every line of more than 4 MiB, even of nothing but
blanks. Of a line that is no object every value is unreadable, and so are lists and objects inside one; keys that a line
lacks, and null, are absent. Numbers are read as they are spelled. One line never changes how another is read, and under
a schema none decides which columns there are: only a draft, or a public table, takes the keys of the first for names.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from understudy.counts.streams import UNREADABLE, ByteStream, read_up_to

_MARK = b"\xef\xbb\xbf"
_READ_BYTES = 4 << 20
_MOST_LINE = 4 << 20
_MOST_ROWS = 1 << 14
_MOST_BATCH_BYTES = 1 << 25


class SpelledNumber(str):
    """A number as the file spells it."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_int=SpelledNumber, parse_float=SpelledNumber, parse_constant=SpelledNumber)


def json_header(stream: ByteStream) -> list[str] | None:
    """The keys of the first line's object; None if it is no object with keys."""
    start = read_up_to(stream, _MOST_LINE).removeprefix(_MARK)
    line = next((line for line in start.split(b"\n") if line.strip()), b"")
    found = _object(line)
    return list(found) if found else None


def _object(line: bytes) -> dict[str, Any] | None:
    if len(line) > _MOST_LINE:
        return None
    try:
        found = _DECODER.decode(_text(line))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(line: bytes) -> str:
    """The line as text, in which bytes that are not UTF-8 spoil the value that holds them and no other."""
    try:
        return line.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return line.decode("utf-8", "surrogateescape")


def json_batches(
    stream: ByteStream, wanted: Sequence[str], decimals: Mapping[str, str]
) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    """Number of rows and the wanted columns, batch by batch; `decimals` are the signs of the columns' numbers."""
    rows: list[dict[str, Any] | None] = []
    held = 0
    for line in _lines(stream):
        rows.append(_object(line))
        held += len(line)
        if len(rows) >= _MOST_ROWS or held >= _MOST_BATCH_BYTES:
            yield len(rows), _columns(rows, wanted, decimals)
            rows, held = [], 0
    if rows:
        yield len(rows), _columns(rows, wanted, decimals)


def _lines(stream: ByteStream) -> Iterator[bytes]:
    """The lines that are rows; of one that is too long, so much that it is seen to be."""
    held = read_up_to(stream, _READ_BYTES).removeprefix(_MARK)
    skipping = False
    while True:
        *whole, held = held.split(b"\n")
        for line in whole:
            if not skipping and _is_row(line):
                yield line
            skipping = False
        if len(held) > _MOST_LINE:
            if not skipping:
                yield held
            held, skipping = b"", True
        fresh = stream.read(_READ_BYTES)
        if not fresh:
            break
        held += fresh
    if not skipping and _is_row(held):
        yield held


def _is_row(line: bytes) -> bool:
    # A line that is too long is not always held whole, so what it holds cannot count.
    return len(line) > _MOST_LINE or bool(line.strip())


def _columns(
    rows: list[dict[str, Any] | None], wanted: Sequence[str], decimals: Mapping[str, str]
) -> dict[str, pa.Array]:
    found = {}
    for name in wanted:
        decimal = decimals.get(name, "")
        texts = [UNREADABLE if row is None else json_text(row.get(name), decimal) for row in rows]
        found[name] = pa.array(texts, pa.large_binary())
    return found


def json_text(value: object, decimal: str) -> bytes | None:
    """The text of one value.

    >>> json_text(True, ""), json_text(SpelledNumber("1.5"), ","), json_text([1], ""), json_text(None, "")
    (b'true', b'1,5', b'\\xff', None)
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, SpelledNumber):
        return str(value).replace(".", decimal or ".").encode("ascii", "replace")
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else UNREADABLE
