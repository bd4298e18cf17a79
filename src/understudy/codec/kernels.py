"""Compiled loops of the codec: codes in one pass over a column, and texts told apart without regular expressions.

Codes in one pass
-----------------
For columns of a usual storage type: whole numbers, floats, days, moments, truth values, labels by number.

The general way (`encode` of each codec) reads values into numbers, marks what was understood, finds bins, then special
values, then gaps: a dozen passes over memory, and the only rule of what a code means. Here one loop does all of it. It
knows nothing of its own: tables of codes are made by the general way, once for a column and a storage type, and so are
the codes of gaps, of NaN and of special values. A value's code still depends on that value alone. Types that are not
listed here, and short arrays, go the general way.

Two forms suffice. Where the whole numbers that matter lie close together, a table holds the code of each (`ByTable`).
Elsewhere the edges of bins are searched from a guess (`ByEdges`), and numbers with a code of their own are compared one
by one. Edges of moments are multiplied out instead of dividing every value: ⌊v/t⌋ ≥ e just if v ≥ t·e.

Texts
-----
Whole numbers, short decimal numbers and ISO moments. Each loop decides just what a regular expression in `reading`
decides, for one text at a time and at a tenth of its time. Short arrays are left to the regular expressions, which need
no compiled kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.arrays import Bools, Bytes, Floats, Ints, Unsigned
from understudy.compiled import compiled

LEAST_ROWS = 1 << 12
"""Shorter arrays are coded the general way, which needs no compiled kernel."""
WIDEST_TABLE = 1 << 18
MOST_BUCKETS = 1 << 12
FARTHEST = 1 << 62
LARGEST_EXACT = 1 << 53
NO_BITS: Bytes = np.zeros(0, np.uint8)

Typed = npt.NDArray[np.integer] | Floats


class OnePass(Protocol):
    """Values of one storage type → codes."""

    def code(self, values: Typed, bits: Bytes, first: int, absent: int, codes: Unsigned) -> None:
        """Fills `codes`; value i is a gap if bit first + i is 0, unless there are no bits."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ByTable:
    """Whole numbers by a table: its first entry also for all below `low`, its last for all above."""

    low: int
    table: Unsigned

    def code(self, values: Typed, bits: Bytes, first: int, absent: int, codes: Unsigned) -> None:
        """Fills the codes."""
        given = values if values.dtype.str[1:] in _SHORT else values.astype(np.int64, copy=False)
        _by_table(given, bits, first, self.low, self.table, absent, codes)


@dataclass(frozen=True, slots=True, eq=False)
class ByEdges:
    """Whole numbers by bins that begin at 0 or at an edge; those of the spans [low, last] have codes of their own."""

    edges: Ints
    guesses: Ints
    shift: int
    spans: Ints
    span_codes: Ints

    @classmethod
    def of(cls, edges: Sequence[int], spans: Sequence[tuple[int, int]], codes: Sequence[int]) -> "ByEdges | None":
        """The search for these edges, in increasing order; None where they lie too far out for 64 bits."""
        if any(abs(end) >= FARTHEST for end in (*edges, *(end for span in spans for end in span))):
            return None
        places = np.asarray(edges, np.int64)
        wide = int(places[-1] - places[0]) if len(places) else 0
        shift = max(0, wide.bit_length() - MOST_BUCKETS.bit_length() + 1)
        starts = (places[0] if len(places) else 0) + (np.arange((wide >> shift) + 1, dtype=np.int64) << shift)
        guesses = np.searchsorted(places, starts, side="right").astype(np.int64)
        ends = np.asarray(spans, np.int64).reshape(-1, 2)
        return cls(places, guesses, shift, ends, np.asarray(codes, np.int64))

    def code(self, values: Typed, bits: Bytes, first: int, absent: int, codes: Unsigned) -> None:
        """Fills the codes."""
        numbers = (self.edges, self.guesses, self.shift, self.spans, self.span_codes)
        _by_edges(values.astype(np.int64, copy=False), bits, first, *numbers, absent, codes)


@dataclass(frozen=True, slots=True, eq=False)
class ByFloatEdges:
    """Floats by bins; NaN is a gap, and the numbers `odd` have codes of their own."""

    edges: Floats
    guesses: Ints
    per_unit: float
    odd: Floats
    odd_codes: Ints

    @classmethod
    def of(cls, edges: Sequence[float], odd: Sequence[float], codes: Sequence[int]) -> "ByFloatEdges":
        """The search for these edges, in increasing order."""
        places = np.asarray(edges, np.float64)
        with np.errstate(over="ignore"):
            wide = float(places[-1] - places[0]) if len(places) else 0.0
            per_unit = MOST_BUCKETS / wide if 0.0 < wide < np.inf else 0.0
        if not np.isfinite(per_unit):
            per_unit = 0.0  # then every search begins at the first edge
        starts = np.arange(MOST_BUCKETS) / per_unit + places[0] if per_unit else np.full(1, -np.inf)
        guesses = np.searchsorted(places, starts, side="right").astype(np.int64)
        return cls(places, guesses, per_unit, np.asarray(odd, np.float64), np.asarray(codes, np.int64))

    def code(self, values: Typed, bits: Bytes, first: int, absent: int, codes: Unsigned) -> None:
        """Fills the codes."""
        numbers = (self.edges, self.guesses, self.per_unit, self.odd, self.odd_codes)
        _by_float_edges(values.astype(np.float64, copy=False), bits, first, *numbers, absent, codes)


def is_whole(kind: pa.DataType) -> bool:
    """Whether values of this type are whole numbers that 64 bits with a sign hold."""
    return bool(pa.types.is_integer(kind) and not pa.types.is_uint64(kind))


def code_in_one_pass(way: OnePass, array: pa.Array, absent: int, codes: Unsigned) -> None:
    """Fills the codes of a typed array that has at least one value."""
    bits = array.buffers()[0]
    known = NO_BITS if bits is None or not array.null_count else np.frombuffer(bits, np.uint8)
    way.code(_values(array), known, array.offset, absent, codes)


def code_truths(array: pa.Array, table: Unsigned, absent: int, codes: Unsigned) -> None:
    """Fills the codes of truth values; the table holds that of false and that of true."""
    bits, held = array.buffers()
    known = NO_BITS if bits is None or not array.null_count else np.frombuffer(bits, np.uint8)
    _by_bits(np.frombuffer(held, np.uint8), known, array.offset, table, absent, codes)


_WIDTHS = {8: "1", 16: "2", 32: "4", 64: "8"}
_SHORT = ("i1", "u1", "i4")
"""Types besides 64 bits that tables of codes are compiled for; others are widened first, to keep kernels few."""


def _values(array: pa.Array) -> Typed:
    """The array's own memory, gaps included."""
    kind = array.type
    letter = "f" if pa.types.is_floating(kind) else "u" if pa.types.is_unsigned_integer(kind) else "i"
    stored: Typed = np.frombuffer(array.buffers()[1], np.dtype(letter + _WIDTHS[kind.bit_width]))
    return stored[array.offset : array.offset + len(array)]


@compiled()  # pragma: no cover
def _by_table(values, bits, first, low, table, absent, codes):  # type: ignore[no-untyped-def]
    last = low + np.int64(table.size - 1)
    if bits.size == 0:
        for i in range(values.size):
            codes[i] = table[min(max(np.int64(values[i]), low), last) - low]
        return
    for i in range(values.size):
        place = first + i
        if (bits[place >> 3] >> np.uint8(place & 7)) & 1:
            codes[i] = table[min(max(np.int64(values[i]), low), last) - low]
        else:
            codes[i] = absent


@compiled()  # pragma: no cover
def _by_bits(held, bits, first, table, absent, codes):  # type: ignore[no-untyped-def]
    for i in range(codes.size):
        place = first + i
        byte, bit = place >> 3, np.uint8(place & 7)
        if bits.size == 0 or (bits[byte] >> bit) & 1:
            codes[i] = table[(held[byte] >> bit) & 1]
        else:
            codes[i] = absent


@compiled()  # pragma: no cover
def _by_edges(values, bits, first, edges, guesses, shift, spans, span_codes, absent, codes):  # type: ignore[no-untyped-def]
    count = edges.size
    for i in range(values.size):
        place = first + i
        if bits.size and not (bits[place >> 3] >> np.uint8(place & 7)) & 1:
            codes[i] = absent
            continue
        value = np.int64(values[i])
        if count == 0 or value < edges[0]:
            found = 0
        elif value >= edges[count - 1]:
            found = count
        else:
            found = guesses[(value - edges[0]) >> shift]
            while value >= edges[found]:
                found += 1
        for odd in range(span_codes.size):
            if spans[odd, 0] <= value <= spans[odd, 1]:
                found = span_codes[odd]
        codes[i] = found


@compiled()  # pragma: no cover
def _by_float_edges(values, bits, first, edges, guesses, per_unit, odd, odd_codes, absent, codes):  # type: ignore[no-untyped-def]
    count, last = edges.size, guesses.size - 1
    for i in range(values.size):
        place = first + i
        value = np.float64(values[i])
        if value != value or (bits.size and not (bits[place >> 3] >> np.uint8(place & 7)) & 1):
            codes[i] = absent
            continue
        if count == 0 or value < edges[0]:
            found = 0
        elif value >= edges[count - 1]:
            found = count
        else:
            found = guesses[0] if per_unit == 0.0 else guesses[min(np.int64((value - edges[0]) * per_unit), last)]
            while found > 0 and value < edges[found - 1]:  # a guess may be off by rounding
                found -= 1
            while value >= edges[found]:
                found += 1
        for other in range(odd.size):
            if value == odd[other]:
                found = odd_codes[other]
        codes[i] = found


MATCHED, YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, OFFSET, HAS_OFFSET = range(9)
"""Places in the line of numbers that `iso_moments` finds for a text; zeros where there is no match."""


def whole_numbers(texts: pa.Array) -> Bools:
    """Which texts are [+-]?[0-9]{1,18}."""
    found = np.zeros(len(texts), np.bool_)
    _whole_numbers(*_bytes_of(texts), found)
    return _but_nulls(found, texts)


def short_reals(texts: pa.Array) -> Bools:
    """Which texts are [+-]?[0-9]{1,18}(.[0-9]{0,20})?([eE][+-]?[0-9]{1,2})?, the point taken as a point."""
    found = np.zeros(len(texts), np.bool_)
    _short_reals(*_bytes_of(texts), found)
    return _but_nulls(found, texts)


def iso_moments(texts: pa.Array) -> Ints:
    """Year, month, day, and where it is told hour, minute, second and offset from UTC in seconds, of each text."""
    found = np.zeros((len(texts), 9), np.int64)
    _iso_moments(*_bytes_of(texts), found)
    if texts.null_count:
        found[texts.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


def _bytes_of(texts: pa.Array) -> tuple[Bytes, Ints]:
    """The bytes of all texts, and where each begins and ends."""
    _, places, data = texts.buffers()
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    offsets = np.frombuffer(places, kind)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data or b"", np.uint8), offsets.astype(np.int64, copy=False)


def _but_nulls(found: Bools, texts: pa.Array) -> Bools:
    return found & texts.is_valid().to_numpy(zero_copy_only=False) if texts.null_count else found


@compiled()  # pragma: no cover
def _digits(data, place, stop):  # type: ignore[no-untyped-def]
    """Where the digits end that begin at a place."""
    while place < stop and 48 <= data[place] <= 57:
        place += 1
    return place


@compiled()  # pragma: no cover
def _signed(data, place, stop):  # type: ignore[no-untyped-def]
    """Behind a sign, if there is one."""
    return place + 1 if place < stop and (data[place] == 43 or data[place] == 45) else place


@compiled()  # pragma: no cover
def _whole_numbers(data, offsets, found):  # type: ignore[no-untyped-def]
    for row in range(found.size):
        stop = offsets[row + 1]
        place = _signed(data, offsets[row], stop)
        found[row] = 1 <= stop - place <= 18 and _digits(data, place, stop) == stop


@compiled()  # pragma: no cover
def _short_reals(data, offsets, found):  # type: ignore[no-untyped-def]
    for row in range(found.size):
        stop = offsets[row + 1]
        place = _signed(data, offsets[row], stop)
        end = _digits(data, place, stop)
        fits = 1 <= end - place <= 18
        if end < stop and data[end] == 46:
            place = end + 1
            end = _digits(data, place, stop)
            fits &= end - place <= 20
        if end < stop and (data[end] == 101 or data[end] == 69):
            place = _signed(data, end + 1, stop)
            end = _digits(data, place, stop)
            fits &= 1 <= end - place <= 2
        found[row] = fits and end == stop


@compiled()  # pragma: no cover
def _number(data, place, stop, least, most):  # type: ignore[no-untyped-def]
    """The number that begins at a place and where it ends; −1 unless it has a right number of digits."""
    end = _digits(data, place, min(stop, place + most))
    number = np.int64(0)
    for digit in range(place, end):
        number = number * 10 + np.int64(data[digit]) - 48
    return (number, end) if end - place >= least else (np.int64(-1), end)


@compiled()  # pragma: no cover
def _is(data, place, stop, sign):  # type: ignore[no-untyped-def]
    return place < stop and data[place] == sign


@compiled()  # pragma: no cover
def _clock(data, place, stop, line):  # type: ignore[no-untyped-def]
    """Hour, minute and perhaps second and offset, up to the end of the text; False if they are not all there is."""
    line[HOUR], place = _number(data, place, stop, 1, 2)
    if line[HOUR] < 0 or not _is(data, place, stop, 58):
        return False
    line[MINUTE], place = _number(data, place + 1, stop, 2, 2)
    if line[MINUTE] < 0:
        return False
    if _is(data, place, stop, 58):
        line[SECOND], place = _number(data, place + 1, stop, 2, 2)
        if line[SECOND] < 0:
            return False
        if _is(data, place, stop, 46):
            end = _digits(data, place + 1, stop)
            if end == place + 1:
                return False
            place = end
    if _is(data, place, stop, 32):
        place += 1
    if place == stop:
        return True
    line[HAS_OFFSET] = 1
    if data[place] == 90 or data[place] == 122:
        return place + 1 == stop
    if data[place] != 43 and data[place] != 45:
        return False
    west = data[place] == 45
    hours, place = _number(data, place + 1, stop, 2, 2)
    if hours < 0:
        return False
    if _is(data, place, stop, 58):
        place += 1
    minutes, place = _number(data, place, stop, 2, 2)
    line[OFFSET] = (hours * 3600 + minutes * 60) * (-1 if west else 1)
    return minutes >= 0 and place == stop


@compiled()  # pragma: no cover
def _iso_moments(data, offsets, found):  # type: ignore[no-untyped-def]
    for row in range(found.shape[0]):
        line = found[row]
        place, stop = offsets[row], offsets[row + 1]
        line[YEAR], place = _number(data, place, stop, 4, 4)
        fits = line[YEAR] >= 0 and _is(data, place, stop, 45)
        if fits:
            line[MONTH], place = _number(data, place + 1, stop, 1, 2)
            fits = line[MONTH] >= 0 and _is(data, place, stop, 45)
        if fits:
            line[DAY], place = _number(data, place + 1, stop, 1, 2)
            fits = line[DAY] >= 0
        if fits and place < stop:
            begins = data[place] == 84 or data[place] == 116 or data[place] == 32
            fits = begins and _clock(data, place + 1, stop, line)
        if fits:
            line[MATCHED] = 1
        else:
            line[:] = 0
