"""Delimited text (CSV, TSV) as Arrow batches, by rules under which no content can stop the reading.

Header: the first line. A record ends at LF, CR or CR LF; blank lines are skipped. A field that opens with a quote is
quoted if the quote that closes it is followed by the delimiter or the end of the record within 1 MiB ("" inside is a
quote, line ends inside are text); else the quote is an ordinary character and the field ends where any field would.
So a stray quote spoils its own record, not the rest of the file. Fields too many are dropped, too few are absent;
empty ones are absent. Bytes that are not UTF-8 are handed on as they are, and are unreadable as in any other source
(see `labels`). Records end after 4 MiB at the latest; what follows up to the next line end is dropped. Nothing is
guessed from values: every field is text.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.compiled import compiled

__all__ = ["delimited_batches", "delimited_header"]

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

READ_BYTES = 8 << 20
MOST_QUOTED = 1 << 20
MOST_RECORD = 4 << 20
MOST_ROWS = 1 << 16
MOST_SPANS = 1 << 21  # fields held at once
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

LINE_FEED, CARRIAGE_RETURN, QUOTE = 10, 13, 34
PLAIN, DOUBLED, ABSENT = 0, 1, 2


@numba.njit(nogil=True, inline="always")  # pragma: no cover
def _ends_field(byte, delimiter):  # type: ignore[no-untyped-def]
    return (byte == delimiter) | (byte == LINE_FEED) | (byte == CARRIAGE_RETURN)


@compiled()  # pragma: no cover
def _close_of(data, start, stop, final, delimiter):  # type: ignore[no-untyped-def]
    """Where the quoted field that opens before `start` closes: (position, has doubled quotes); −1 no, −2 unknown."""
    doubled = False
    end = min(stop, start + MOST_QUOTED)
    place = start
    while place < end:
        if data[place] != QUOTE:
            place += 1
            continue
        if place + 1 >= stop:
            return (place, doubled) if final else (-2, doubled)
        after = data[place + 1]
        if after == QUOTE:
            doubled = True
            place += 2
        elif _ends_field(after, delimiter):
            return place, doubled
        else:
            return -1, doubled
    if end < stop or final:
        return -1, doubled
    return -2, doubled


@compiled()  # pragma: no cover
def _field(data, place, stop, whole, delimiter):  # type: ignore[no-untyped-def]
    """The field at `place`: (first, last + 1, sort, where it ends); the end is −1 if more data must be seen."""
    if place < stop and data[place] == QUOTE:
        close, doubled = _close_of(data, place + 1, stop, whole, delimiter)
        if close == -2:
            return place, place, PLAIN, -1
        if close >= 0:
            return place + 1, close, DOUBLED if doubled else PLAIN, close + 1
    first = place
    while place < stop:
        if _ends_field(data[place], delimiter):
            break
        place += 1
    return first, place, PLAIN, place if place < stop or whole else -1


@compiled()  # pragma: no cover
def _record(data, begin, stop, whole, delimiter, slots, spans):  # type: ignore[no-untyped-def]
    """One record into spans[slot] = (first, last + 1, sort). Returns where it ends, −1 if more data must be seen.

    `slots[column]` is the slot of a wanted column, −1 of others.
    """
    spans[:, 2] = ABSENT
    place = begin
    column = 0
    while True:
        first, last, sort, place = _field(data, place, stop, whole, delimiter)
        if place < 0 or (place >= stop and not whole):
            return -1
        if column < slots.size and slots[column] >= 0:
            span = spans[slots[column]]
            span[0], span[1], span[2] = first, last, sort
        column += 1
        if place >= stop or data[place] != delimiter:
            return place
        place += 1


@compiled()  # pragma: no cover
def _scan(data, start, final, skipping, delimiter, slots, spans):  # type: ignore[no-untyped-def]
    """As many complete records as `spans` holds. Returns (records, where to go on, whether a long one is skipped)."""
    stop = data.size
    records = 0
    place = start
    while records < spans.shape[0]:
        while skipping and place < stop:
            skipping = data[place] != LINE_FEED and data[place] != CARRIAGE_RETURN
            place += 1
        while place < stop and (data[place] == LINE_FEED or data[place] == CARRIAGE_RETURN):
            place += 1
        if place >= stop:
            break
        limit = min(stop, place + MOST_RECORD)
        whole = final or place + MOST_RECORD <= stop
        end = _record(data, place, limit, whole, delimiter, slots, spans[records])
        if end < 0:
            break
        skipping = end == place + MOST_RECORD
        records += 1
        place = end
    return records, place, skipping


@compiled()  # pragma: no cover
def _gather(data, spans, offsets, valid, out):  # type: ignore[no-untyped-def]
    """Bytes of one slot's fields, doubled quotes made single; empty fields are marked absent."""
    end = 0
    for record in range(spans.shape[0]):
        first, last, sort = spans[record]
        if sort == PLAIN:
            for place in range(first, last):
                out[end] = data[place]
                end += 1
        elif sort == DOUBLED:
            place = first
            while place < last:
                out[end] = data[place]
                end += 1
                place += 2 if data[place] == QUOTE else 1
        offsets[record + 1] = end
        valid[record] = offsets[record + 1] > offsets[record]


def delimited_header(path: Path, delimiter: str) -> list[str]:
    """The names in the first line; none if the file holds no text at all."""
    with path.open("rb") as stream:
        data = np.frombuffer(bytearray(stream.read(MOST_RECORD).removeprefix(BYTE_ORDER_MARK)), np.uint8)
    most = int((data == ord(delimiter)).sum()) + 1
    spans = np.zeros((1, most, 3), np.int32)
    records, _, _ = _scan(data, 0, True, False, np.uint8(ord(delimiter)), np.arange(most), spans)
    present: list[int] = np.flatnonzero(spans[0, :, 2] != ABSENT).tolist() if records else []
    raw = [_texts(data, spans[:, slot]).cast(pa.large_binary())[0].as_py() or b"" for slot in present]
    return [_name(text) for text in raw]


def _name(text: bytes) -> str:
    """A column's name: UTF-8, or Latin-1 where it is not. Names are public, and the schema has to spell them."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("latin-1")


def delimited_batches(
    path: Path, delimiter: str, header: Sequence[str], wanted: Sequence[str]
) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    """Number of rows and the wanted columns (text), batch by batch; never raises on content."""
    slots = np.full(len(header), -1, np.int64)
    for slot, name in enumerate(wanted):
        slots[header.index(name)] = slot
    rows = min(MOST_ROWS, max(1, MOST_SPANS // max(1, len(wanted))))
    spans = np.zeros((rows, max(1, len(wanted)), 3), np.int32)
    for data, records in _record_batches(path, np.uint8(ord(delimiter)), slots, spans):
        found = spans[:records]
        yield records, {name: _texts(data, found[:, slot]) for slot, name in enumerate(wanted)}


def _record_batches(
    path: Path, delimiter: np.uint8, slots: Ints, spans: npt.NDArray[np.int32]
) -> Iterator[tuple[Bytes, int]]:
    """Fills `spans` again and again; each time the bytes it points into and the number of records. No header."""
    with path.open("rb") as stream:
        data = np.frombuffer(bytearray(stream.read(READ_BYTES).removeprefix(BYTE_ORDER_MARK)), np.uint8)
        start, final, skipping, heading = 0, False, False, True
        while True:
            room = spans[:1] if heading else spans
            records, start, skipping = _scan(data, start, final, skipping, delimiter, slots, room)
            if records and not heading:
                yield data, records
            heading = heading and not records
            if records:
                continue
            if final:
                return
            fresh = np.frombuffer(bytearray(stream.read(READ_BYTES)), np.uint8)
            final = not len(fresh)
            data, start = np.concatenate([data[start:], fresh]), 0


def _texts(data: Bytes, spans: npt.NDArray[np.int32]) -> pa.Array:
    """One slot's fields as large_string, absent ones null. Their bytes are not judged, as in a Parquet file."""
    lengths = np.where(spans[:, 2] == ABSENT, 0, spans[:, 1] - spans[:, 0])
    offsets = np.zeros(len(spans) + 1, np.int64)
    valid = np.zeros(len(spans), np.bool_)
    out = np.empty(int(lengths.sum(dtype=np.int64)), np.uint8)
    _gather(data, spans, offsets, valid, out)
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.LargeStringArray.from_buffers(len(spans), pa.py_buffer(offsets), pa.py_buffer(out), bitmap)
