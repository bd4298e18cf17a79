"""Delimited text (CSV, TSV) as Arrow batches, by rules under which no content can stop the reading.

Header: the first line. A line ends at LF, CR or CR LF, blank lines are skipped, and **every other line is one row**,
whatever it holds. A field that opens with a quote is quoted if a quote that is followed by the delimiter or the end of
the line closes it ("" inside is a quote, delimiters inside are text); else the quote is an ordinary character. Fields
too many are dropped, too few are absent; empty ones are absent. Bytes that are not UTF-8 are handed on as they are,
and are unreadable as in any other source (see `labels`). Of a line longer than 4 MiB the field that reaches so far is
absent, as are all after it. Nothing is guessed from values: every field is text.

Privacy: a row is a function of its own line, so a file with one more line is a table with one more row and no other
change (one more blank line: with no change). One line is one row in the sensitivity, for any content of any line.

Why a quoted field does not cross a line end, unless told so: no rule can allow that and keep the sentence above. Let a
rule read what a CSV writer writes, and take two records of it that each span two lines, O1 C1 and O2 C2 (O opens the
quote, C closes it). The lines O1 C1 O2 C2 are two rows, and O1 C2 alone are one row that is neither of them. The lines
O1 O2 C2 lie one line away from both; but no table lies within one row of both a table of those two rows and a table of
that other row alone. So one line then changes two rows or more; and as writers may put any number of lines into one
field, either one line can take any number of rows with it or one long field can become any number of rows.

A declared dialect, `multiline`, is for files written by a program that quotes. There a quoted field may cross line ends
where the record then has exactly the header's number of fields, the field ends within 1 MiB and the record within
4 MiB; else the quote is an ordinary character and the record ends with its line. In a file of records as such a program
writes them, one record is one row. In a file with other lines too, one line can take those after it with it, up to
4 MiB of them: that is the risk which declaring the dialect accepts.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from understudy.arrays import Bytes, Ints
from understudy.compiled import (
    MARKED_BYTES,
    compiled,
    load_word,
    lowest_bit,
    marks_of,
    store_word,
    within_kernels,
)
from understudy.counts.streams import ByteStream, read_up_to

READ_BYTES = 4 << 20
MOST_QUOTED = 1 << 20
MOST_RECORD = 4 << 20
MOST_ROWS = 1 << 16
MOST_SPANS = 1 << 21  # fields held at once
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

LINE_FEED, CARRIAGE_RETURN, QUOTE = 10, 13, 34
PLAIN, DOUBLED, ABSENT, OPEN = 0, 1, 2, 3  # OPEN: as PLAIN, but it began with a quote that its line did not close
UNKNOWN, NOT_CLOSED, OPEN_AT_LINE_END = -1, -2, -3
NEVER, ALWAYS = 0, -1
ONES = np.uint64(0x0101010101010101)
GATHERED = 1 << 8
SPARE = 16
# A field found in a line, as one word: where it begins, how many bytes it has (an absent one 0), and its sort.
_LENGTH, _SORT = 32, 60
_LENGTHS = (1 << (_SORT - _LENGTH)) - 1
_PLACES = (1 << _LENGTH) - 1


@within_kernels()  # pragma: no cover
def _packed(first, last, sort):  # type: ignore[no-untyped-def]
    return first | (last - first) << _LENGTH | np.int64(sort) << _SORT


@within_kernels()  # pragma: no cover
def _absent():  # type: ignore[no-untyped-def]
    return np.int64(ABSENT) << _SORT


@within_kernels()  # pragma: no cover
def _ends_field(byte, delimiter):  # type: ignore[no-untyped-def]
    return (byte == delimiter) | (byte == LINE_FEED) | (byte == CARRIAGE_RETURN)


@within_kernels()  # pragma: no cover
def _close_of(data, start, stop, whole, delimiter, crossing):  # type: ignore[no-untyped-def]
    """Where the quoted field that opens before `start` closes: (position, has doubled quotes).

    The position is NOT_CLOSED, or OPEN_AT_LINE_END if the line ends first, or UNKNOWN if more data must be seen.
    """
    doubled = False
    end = min(stop, start + MOST_QUOTED) if crossing else stop
    place = start
    while place < end:
        byte = data[place]
        if byte != QUOTE:
            if not crossing and ((byte == LINE_FEED) | (byte == CARRIAGE_RETURN)):
                return OPEN_AT_LINE_END, doubled
            place += 1
            continue
        if place + 1 >= stop:
            return (place, doubled) if whole else (UNKNOWN, doubled)
        after = data[place + 1]
        if after == QUOTE:
            doubled = True
            place += 2
        elif _ends_field(after, delimiter):
            return place, doubled
        else:
            return NOT_CLOSED, doubled
    if end < stop or whole:
        return NOT_CLOSED, doubled
    return UNKNOWN, doubled


@within_kernels()  # pragma: no cover
def _zeros(word):  # type: ignore[no-untyped-def]
    """Marks the bytes of a word that are 0; above the lowest of them others may be marked too."""
    return (word - ONES) & ~word & (ONES << np.uint64(7))


@within_kernels()  # pragma: no cover
def _field_end(data, place, stop, delimiter):  # type: ignore[no-untyped-def]
    """The first delimiter or line end from a place on, or `stop`; eight bytes at a time where so many are left."""
    while place + 8 <= stop:
        word = load_word(data, place)
        marks = _zeros(word ^ (ONES * np.uint64(delimiter)))
        marks |= _zeros(word ^ (ONES * np.uint64(LINE_FEED))) | _zeros(word ^ (ONES * np.uint64(CARRIAGE_RETURN)))
        if marks:
            below = (
                (marks & (~marks + np.uint64(1))) - np.uint64(1)
            ) & ONES  # a bit in the lowest marked byte and below
            return place + np.int64((below * ONES) >> np.uint64(56)) - 1
        place += 8
    while place < stop and not _ends_field(data[place], delimiter):
        place += 1
    return place


@within_kernels()  # pragma: no cover
def _field(data, place, stop, whole, delimiter, crossing):  # type: ignore[no-untyped-def]
    """The field at `place`: (first, last + 1, sort, where it ends); the end is UNKNOWN if more data must be seen."""
    sort = PLAIN
    if place < stop and data[place] == QUOTE:
        close, doubled = _close_of(data, place + 1, stop, whole, delimiter, crossing)
        if close == UNKNOWN:
            return place, place, PLAIN, UNKNOWN
        if close >= 0:
            return place + 1, close, DOUBLED if doubled else PLAIN, close + 1
        sort = OPEN if close == OPEN_AT_LINE_END else PLAIN
    first = place
    place = _field_end(data, place, stop, delimiter)
    return first, place, sort, place if place < stop or whole else UNKNOWN


@within_kernels()  # pragma: no cover
def _fields(data, begin, stop, whole, delimiter, crossing, slots, spans, record):  # type: ignore[no-untyped-def]
    """The fields of one record into spans[slot, record].

    Returns where it ends (UNKNOWN if more data must be seen), the number of fields, and whether a quote was left open
    at the line end. `slots[column]` is the slot of a wanted column, −1 of others.
    """
    for slot in range(spans.shape[0]):
        spans[slot, record] = _absent()
    place = begin
    column = 0
    left_open = False
    while True:
        first, last, sort, place = _field(data, place, stop, whole, delimiter, crossing)
        if place < 0 or (place >= stop and not whole):
            return UNKNOWN, column, left_open
        left_open |= sort == OPEN
        if column < slots.size and slots[column] >= 0:
            spans[slots[column], record] = _packed(first, last, sort)
        column += 1
        if place >= stop or data[place] != delimiter:
            return place, column, left_open
        place += 1


@compiled(allocates=False)  # pragma: no cover
def _line(data, begin, stop, whole, delimiter, slots, spans, record):  # type: ignore[no-untyped-def]
    """One line into `spans`. Returns where it ends (UNKNOWN if more data must be seen), and if a quote stays open."""
    end, _, left_open = _fields(data, begin, stop, whole, delimiter, np.bool_(False), slots, spans, record)
    return end, left_open


@compiled(allocates=False)  # pragma: no cover
def _record(data, begin, stop, whole, delimiter, across, slots, spans, record):  # type: ignore[no-untyped-def]
    """One record of several lines, or the line alone where that is refused. Returns where it ends, or UNKNOWN.

    `across` says where quoted fields may cross line ends: ALWAYS, or the number of fields the record must have.
    """
    far, fields, _ = _fields(data, begin, stop, whole, delimiter, np.bool_(True), slots, spans, record)
    if far == UNKNOWN or (far < begin + MOST_RECORD and (across == ALWAYS or fields == across)):
        return far
    return _line(data, begin, stop, whole, delimiter, slots, spans, record)[0]


@compiled(allocates=False)  # pragma: no cover
def _drop_cut(spans, record, end):  # type: ignore[no-untyped-def]
    """Marks the field that a long record was cut in as absent: two long ids may differ in what was cut off."""
    for slot in range(spans.shape[0]):
        span = spans[slot, record]
        if (span & _PLACES) + ((span >> _LENGTH) & _LENGTHS) >= end:
            spans[slot, record] = _absent()


@within_kernels()  # pragma: no cover
def _next_mark(data, stop, delimiter, block, marks):  # type: ignore[no-untyped-def]
    """The next quote, delimiter or line end, or `stop`; and where the search goes on from there."""
    while not marks:
        block += MARKED_BYTES
        if block >= stop:
            return stop, block, marks
        marks = marks_of(data, block, delimiter, np.uint8(QUOTE))
        marks |= marks_of(data, block, np.uint8(LINE_FEED), np.uint8(CARRIAGE_RETURN))
    return block + lowest_bit(marks), block, marks & (marks - np.uint64(1))


@within_kernels()  # pragma: no cover
def _plain_lines(data, start, stop, delimiter, slots, spans, records, most):  # type: ignore[no-untyped-def]
    """Complete lines up to the first that takes a closer look (`_line`): the number of records, and where that begins.

    Bytes are looked at 64 at a time, so that most are never met one by one. Left to the closer look are doubled quotes
    and quotes that nothing closes.
    """
    begin = start
    block = start - MARKED_BYTES
    marks = np.uint64(0)
    while records < most:
        # A longer line is cut there, which is not done here.
        limit = min(stop, begin + MOST_RECORD)
        first, column = begin, np.int64(0)
        while True:
            here, block, marks = _next_mark(data, limit, delimiter, block, marks)
            quoted = np.int64(0)
            if here < limit and data[here] == QUOTE:
                if here == first:
                    here, block, marks = _next_mark(data, limit, delimiter, block, marks)
                    while here < limit and data[here] == delimiter:
                        here, block, marks = _next_mark(data, limit, delimiter, block, marks)
                    if here >= limit or data[here] != QUOTE:
                        return records, begin
                    closes = here
                    here, block, marks = _next_mark(data, limit, delimiter, block, marks)
                    if here != closes + 1 or (here < limit and data[here] == QUOTE):
                        return records, begin
                    quoted = np.int64(1)
                else:
                    while here < limit and data[here] == QUOTE:
                        here, block, marks = _next_mark(data, limit, delimiter, block, marks)
            if here >= limit:
                return records, begin
            if column < slots.size and slots[column] >= 0:
                spans[slots[column], records] = _packed(first + quoted, here - quoted, PLAIN)
            column += 1
            if data[here] != delimiter:
                break
            first = here + 1
        if here == begin:  # an empty line
            begin = here + 1
            continue
        while column < slots.size:
            if slots[column] >= 0:
                spans[slots[column], records] = _absent()
            column += 1
        records += 1
        begin = here + 1
    return records, begin


@compiled(allocates=False)  # pragma: no cover
def _scan(data, start, stop, final, skipping, delimiter, across, slots, spans, most):  # type: ignore[no-untyped-def]
    """Complete records, at most so many. Returns (records, where to go on, whether a long one is skipped)."""
    records = np.int64(0)  # a bare 0 has a type of its own, for which everything below would be compiled once more
    place = start
    while records < most:
        if not skipping:
            records, place = _plain_lines(data, place, stop, delimiter, slots, spans, records, most)
            if records == most:
                break
        while skipping and place < stop:
            skipping = data[place] != LINE_FEED and data[place] != CARRIAGE_RETURN
            place += 1
        while place < stop and (data[place] == LINE_FEED or data[place] == CARRIAGE_RETURN):
            place += 1
        if place >= stop:
            break
        limit = min(stop, place + MOST_RECORD)
        whole = final or place + MOST_RECORD <= stop
        end, left_open = _line(data, place, limit, whole, delimiter, slots, spans, records)
        if left_open and across != NEVER:
            end = _record(data, place, limit, whole, delimiter, across, slots, spans, records)
        if end == UNKNOWN:
            break
        skipping = end == place + MOST_RECORD
        if skipping:
            _drop_cut(spans, records, end)
        records += 1
        place = end
    return records, place, skipping


@compiled(allocates=False)  # pragma: no cover
def _lengths(spans, records, lengths):  # type: ignore[no-untyped-def]
    """At most so many bytes each slot's fields have."""
    for slot in range(lengths.size):
        total = np.int64(0)
        for record in range(records):
            total += (spans[slot, record] >> _LENGTH) & _LENGTHS
        lengths[slot] = total


@compiled(allocates=False)  # pragma: no cover
def _gather(data, spans, records, starts, offsets, valid, empty, out):  # type: ignore[no-untyped-def]
    """Bytes of all fields, slot by slot, doubled quotes made single; empty fields are marked absent, and counted.

    A few records at a time, all slots of them, so that their bytes are still near the processor.
    """
    for begin in range(0, records, GATHERED):
        stop = min(begin + GATHERED, records)
        for slot in range(starts.size):
            base = starts[slot]
            end = base + offsets[slot, begin]
            fields, ends, there = spans[slot, begin:stop], offsets[slot, begin + 1 : stop + 1], valid[slot, begin:stop]
            none = np.int64(0)
            for record in range(fields.size):
                span = fields[record]
                first, length = span & _PLACES, (span >> _LENGTH) & _LENGTHS
                before = end
                if span >> _SORT == DOUBLED:
                    place, last = first, first + length
                    while place < last:
                        out[end] = data[place]
                        end += 1
                        place += 2 if data[place] == QUOTE else 1
                else:
                    _copy(data, first, length, out, end)
                    end += length
                ends[record] = end - base
                there[record] = end > before
                none += end == before
            empty[slot] += none


@within_kernels()  # pragma: no cover
def _copy(data, first, length, out, end):  # type: ignore[no-untyped-def]
    """Copies a field to a place of `out`; as both have bytes to spare, sixteen at a time and mostly once."""
    while True:
        store_word(out, end, load_word(data, first))
        store_word(out, end + 8, load_word(data, first + 8))
        if length <= SPARE:
            break
        first, end, length = first + SPARE, end + SPARE, length - SPARE


def delimited_header(stream: ByteStream, delimiter: str, *, multiline: bool = False) -> list[str]:
    """The names in the first line; none if the file holds no text at all."""
    head = read_up_to(stream, MOST_RECORD).removeprefix(BYTE_ORDER_MARK)
    data = np.frombuffer(bytearray(head) + bytearray(MARKED_BYTES), np.uint8)
    most = head.count(delimiter.encode()) + 1
    spans = np.zeros((most, 1), np.int64)
    across = ALWAYS if multiline else NEVER
    slots = np.arange(most, dtype=np.int64)
    records, _, _ = _scan(data, 0, len(head), True, False, np.uint8(ord(delimiter)), across, slots, spans, 1)
    present: list[int] = np.flatnonzero(spans[:, 0] >> _SORT != ABSENT).tolist() if records else []
    raw = [texts.cast(pa.large_binary())[0].as_py() or b"" for texts in _texts(data, spans[present], len(present), 1)]
    return [_name(text) for text in raw]


def _name(text: bytes) -> str:
    """A column's name: UTF-8, or Latin-1 where it is not. Names are public, and the schema has to spell them."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("latin-1")


def delimited_batches(
    stream: ByteStream,
    delimiter: str,
    header: Sequence[str],
    wanted: Sequence[str],
    *,
    multiline: bool = False,
    named: bool = True,
    marked: bool = True,
) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    """Number of rows and the wanted columns (text), batch by batch; never raises on content.

    The first line is the header if the file is `named`, else it is a row. Only what is `marked`, the beginning of a
    file, may have a byte order mark.
    """
    slots = np.full(len(header), -1, np.int64)
    for slot, name in enumerate(wanted):
        slots[header.index(name)] = slot
    rows = min(MOST_ROWS, max(1, MOST_SPANS // max(1, len(wanted))))
    spans = np.zeros((max(1, len(wanted)), rows), np.int64)  # fields of a column side by side
    across = len(header) if multiline else NEVER
    for data, records in _record_batches(
        stream, np.uint8(ord(delimiter)), across, slots, spans, named=named, marked=marked
    ):
        yield records, dict(zip(wanted, _texts(data, spans, len(wanted), records), strict=True))


def _record_batches(
    stream: ByteStream, delimiter: np.uint8, across: int, slots: Ints, spans: Ints, *, named: bool, marked: bool
) -> Iterator[tuple[Bytes, int]]:
    """Fills `spans` again and again; each time the bytes it points into and the number of records. No header.

    The bytes are those of the next batch as soon as that is asked for.
    """
    first = read_up_to(stream, READ_BYTES)
    data, stop = _with_more(np.zeros(0, np.uint8), 0, 0, first.removeprefix(BYTE_ORDER_MARK) if marked else first)
    start, final, skipping, heading = 0, False, False, named
    while True:
        most = 1 if heading else spans.shape[1]
        records, start, skipping = _scan(data, start, stop, final, skipping, delimiter, across, slots, spans, most)
        if records and not heading:
            yield data, records
        heading = heading and not records
        if records:
            continue
        if final:
            return
        fresh = stream.read(READ_BYTES)
        final = not len(fresh)
        (data, stop), start = _with_more(data, start, stop, fresh), 0


def _with_more(data: Bytes, start: int, stop: int, fresh: bytes) -> tuple[Bytes, int]:
    """What is left of the data with fresh bytes behind it, in the same memory if there is room, and where they end."""
    left = data[start:stop]
    size = len(left) + len(fresh)
    if size + MARKED_BYTES > len(data):
        data = np.zeros(size + MARKED_BYTES, np.uint8)
    data[: len(left)] = left  # NumPy takes care where the two overlap
    data[len(left) : size] = np.frombuffer(fresh, np.uint8)
    return data, size


def _texts(data: Bytes, spans: Ints, slots: int, records: int) -> list[pa.Array]:
    """Each slot's fields as large_string, absent ones null. Their bytes are not judged, as in a Parquet file."""
    lengths = np.zeros(slots, np.int64)
    _lengths(spans, records, lengths)
    room = lengths + SPARE  # a field is copied by sixteen bytes, the last of which may reach beyond it
    starts = np.cumsum(room) - room
    offsets, valid = np.empty((slots, records + 1), np.int64), np.empty((slots, records), np.bool_)
    offsets[:, 0] = 0
    empty, out = np.zeros(slots, np.int64), np.empty(int(room.sum()), np.uint8)
    _gather(data, spans, records, starts, offsets, valid, empty, out)
    whole = pa.py_buffer(out)
    return [
        pa.LargeStringArray.from_buffers(
            records,
            pa.py_buffer(offsets[slot]),
            whole.slice(int(starts[slot]), int(lengths[slot])),
            pa.py_buffer(np.packbits(valid[slot], bitorder="little")) if empty[slot] else None,
            int(empty[slot]),
        )
        for slot in range(slots)
    ]
