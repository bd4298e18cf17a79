"""Compiled loops of the codec: codes in one pass over a column, and texts told apart without regular expressions.

Codes in one pass
-----------------
For columns of a usual storage type: whole numbers, floats, days, moments, truth values, labels by number.

The general way (`encode` of each codec) reads values into numbers, marks what was understood, finds bins, then special
values, then gaps: a dozen passes over memory, and the only rule of what a code means. Here one loop does all of it. It
knows nothing of its own: tables of codes are made by the general way, once for a column and a storage type, and so are
the codes of gaps, of NaN and of special values. A value's code still depends on that value alone. Types that are not
listed here, and short arrays, go the general way.

Two forms suffice. Where the whole numbers that matter lie close together, a table holds the code of each (`ByTable`);
where codes rise one by one with the numbers, as they mostly do, two comparisons and a sum do the same for many values
at once. Elsewhere the edges of bins are searched from a guess (`ByEdges`), and numbers with a code of their own are
compared one by one. Edges of moments are multiplied out instead of dividing every value: ⌊v/t⌋ ≥ e just if v ≥ t·e.
Where there is no value, whatever lies in memory is coded, and then written over.

Codes of texts met before
-------------------------
Most columns of text hold the same few texts over and over. `KnownTexts` keeps the code that the general way gave to a
text, under all of its bytes, and finds it again in one loop; other texts go the general way as ever. It is in memory
alone, and is never part of a pickle: its texts are values of the table.

Texts
-----
Whole numbers, short decimal numbers and ISO moments. Each loop accepts just what a regular expression in `reading`
accepts, for one text at a time and at a tenth of its time, and says what number it is. Short arrays are left to the
regular expressions, which need no compiled kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.arrays import Bools, Bytes, Floats, Ints, Unsigned
from understudy.compiled import compiled, load_word, within_kernels

# The loops and the general way must agree on every value. How many rows come together is decided by all of them: if a
# value were read otherwise among 4,096 rows than among 4,095, one row more could move the codes of all others.
LEAST_ROWS = 1 << 12
"""Shorter arrays are coded the general way, which needs no compiled kernel."""
WIDEST_TABLE = 1 << 18
MOST_BUCKETS = 1 << 12
# Differences of two such numbers fit 64 bits.
FARTHEST = 1 << 62
LARGEST_EXACT = 1 << 53
NO_BITS: Bytes = np.zeros(0, np.uint8)

Typed = npt.NDArray[np.integer] | Floats


class OnePass(Protocol):
    """Values of one storage type → codes."""

    def code(self, values: Typed, absent: int, codes: Unsigned) -> None:
        """Fills the codes; `absent` is that of values that are none by themselves (NaN)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ByTable:
    """Whole numbers by a table: its first entry also for all below `low`, its last for all above."""

    low: int
    table: Unsigned
    _is_run: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        inner = self.table[1:-1].astype(np.int64)
        object.__setattr__(self, "_is_run", bool(inner.size and (np.diff(inner) == 1).all()))

    def code(self, values: Typed, absent: int, codes: Unsigned) -> None:
        """Fills the codes."""
        given = values if values.dtype.str[1:] in _SHORT else values.astype(np.int64, copy=False)
        if self._is_run:
            ends = (int(self.table[0]), int(self.table[-1]))
            _by_run(given, self.low + 1, len(self.table) - 2, int(self.table[1]), *ends, codes)
        else:
            _by_table(given, self.low, self.table, codes)


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

    def code(self, values: Typed, absent: int, codes: Unsigned) -> None:
        """Fills the codes."""
        numbers = (self.edges, self.guesses, self.shift, self.spans, self.span_codes)
        _by_edges(values.astype(np.int64, copy=False), *numbers, codes)


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

    def code(self, values: Typed, absent: int, codes: Unsigned) -> None:
        """Fills the codes."""
        numbers = (self.edges, self.guesses, self.per_unit, self.odd, self.odd_codes)
        _by_float_edges(values.astype(np.float64, copy=False), *numbers, absent, codes)


def is_whole(kind: pa.DataType) -> bool:
    """Whether values of this type are whole numbers that 64 bits with a sign hold."""
    return bool(pa.types.is_integer(kind) and not pa.types.is_uint64(kind))


def code_in_one_pass(way: OnePass, array: pa.Array, absent: int, codes: Unsigned) -> None:
    """Fills the codes of a typed array that has at least one value."""
    way.code(_values(array), absent, codes)
    mark_gaps(array, absent, codes)


def code_truths(array: pa.Array, table: Unsigned, absent: int, codes: Unsigned) -> None:
    """Fills the codes of truth values; the table holds that of false and that of true."""
    _by_bits(np.frombuffer(array.buffers()[1], np.uint8), array.offset, table, codes)
    mark_gaps(array, absent, codes)


def mark_gaps(array: pa.Array, absent: int, codes: Unsigned) -> None:
    """Gives every null of the array the code of what is absent."""
    if array.null_count:
        _over_gaps(np.frombuffer(array.buffers()[0], np.uint8), array.offset, absent, codes)


_WIDTHS = {8: "1", 16: "2", 32: "4", 64: "8"}
_SHORT = ("i1", "u1", "i4")
"""Types besides 64 bits that tables of codes are compiled for; others are widened first, to keep kernels few."""


def _values(array: pa.Array) -> Typed:
    """The array's own memory, gaps included."""
    kind = array.type
    letter = "f" if pa.types.is_floating(kind) else "u" if pa.types.is_unsigned_integer(kind) else "i"
    stored: Typed = np.frombuffer(array.buffers()[1], np.dtype(letter + _WIDTHS[kind.bit_width]))
    return stored[array.offset : array.offset + len(array)]


@compiled(allocates=False)  # pragma: no cover
def _by_run(values, low, size, start, below, above, codes):  # type: ignore[no-untyped-def]
    """Codes that rise one by one from `start` at `low`, for so many numbers; one each for all below and all above."""
    last = low + np.int64(size - 1)
    for i in range(values.size):
        value = np.int64(values[i])
        code = value - low + start
        code = below if value < low else code
        codes[i] = above if value > last else code


@compiled(allocates=False)  # pragma: no cover
def _by_table(values, low, table, codes):  # type: ignore[no-untyped-def]
    """Places are unsigned, so that they need not be looked at for a sign."""
    most = table.size - 1
    if table[0] == table[most]:  # one comparison finds what lies to either side, because differences wrap
        for i in range(values.size):
            codes[i] = table[min(np.uint64(values[i]) - np.uint64(low), np.uint64(most))]
        return
    last = low + np.int64(most)
    for i in range(values.size):
        codes[i] = table[np.uint64(min(max(np.int64(values[i]), low), last) - low)]


@compiled(allocates=False)  # pragma: no cover
def _over_gaps(bits, first, absent, codes):  # type: ignore[no-untyped-def]
    """Writes a code over those of all places whose bit is 0: eight at a time, without a branch on any of them."""
    kind = codes.dtype.type
    code = kind(absent)
    row = 0
    while row < codes.size:
        place = first + row
        byte = bits[place >> 3]
        if place & 7 == 0 and row + 8 <= codes.size:
            if byte != 0xFF:
                for bit in range(8):
                    kept = kind(0) - kind((byte >> np.uint8(bit)) & np.uint8(1))  # all bits or none
                    codes[row + bit] = code ^ ((codes[row + bit] ^ code) & kept)
            row += 8
        else:
            if not (byte >> np.uint8(place & 7)) & 1:
                codes[row] = code
            row += 1


@compiled(allocates=False)  # pragma: no cover
def _by_bits(held, first, table, codes):  # type: ignore[no-untyped-def]
    for i in range(codes.size):
        place = first + i
        codes[i] = table[(held[place >> 3] >> np.uint8(place & 7)) & 1]


@compiled(allocates=False)  # pragma: no cover
def _by_edges(values, edges, guesses, shift, spans, span_codes, codes):  # type: ignore[no-untyped-def]
    count = edges.size
    for i in range(values.size):
        value = np.int64(values[i])
        if count == 0 or value < edges[0]:
            found = 0
        elif value >= edges[count - 1]:
            found = count
        else:
            found = guesses[(value - edges[0]) >> shift]
            # The guess is for the start of the bucket, so it is never too high, and seldom too low by much.
            while value >= edges[found]:
                found += 1
        for odd in range(span_codes.size):
            if spans[odd, 0] <= value <= spans[odd, 1]:
                found = span_codes[odd]
        codes[i] = found


@within_kernels()  # pragma: no cover
def bin_of(value, edges, guesses, per_unit):  # type: ignore[no-untyped-def]
    """How many of the edges are not above a float that is a number."""
    count, last = edges.size, guesses.size - 1
    if count == 0 or value < edges[0]:
        return np.int64(0)
    if value >= edges[count - 1]:
        return np.int64(count)
    found = guesses[0] if per_unit == 0.0 else guesses[min(np.int64((value - edges[0]) * per_unit), last)]
    while found > 0 and value < edges[found - 1]:  # a guess may be off by rounding
        found -= 1
    while value >= edges[found]:
        found += 1
    return found


@compiled(allocates=False)  # pragma: no cover
def _by_float_edges(values, edges, guesses, per_unit, odd, odd_codes, absent, codes):  # type: ignore[no-untyped-def]
    for i in range(values.size):
        value = np.float64(values[i])
        if value != value:
            codes[i] = absent
            continue
        found = bin_of(value, edges, guesses, per_unit)
        for other in range(odd.size):
            if value == odd[other]:
                found = odd_codes[other]
        codes[i] = found


MOST_TEXT_BYTES = 31
"""Longer texts are not kept: a text and its length are four words of 64 bits."""
MOST_KNOWN = 1 << 14
MOST_STEPS = 16
"""From the first place where a text may be kept to the last; so no choice of values can make the search slow."""
FREE = -1
# Eight bytes are loaded at once and those of the next text masked off.
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class KnownTexts:
    """Codes of texts, by their bytes; never changed, so that any number of threads may read it."""

    words: npt.NDArray[np.uint64]
    entries: Ints
    known: int = 0

    @classmethod
    def empty(cls) -> "KnownTexts":
        """Without any text."""
        return cls(np.zeros((1 << 8, 4), np.uint64), np.full(1 << 8, FREE, np.int64))

    def code(self, texts: pa.Array, absent: int, codes: Unsigned) -> Ints:
        """Fills the codes of texts that are known and of nulls; the places of all others."""
        bits = texts.buffers()[0]
        valid = NO_BITS if bits is None or not texts.null_count else np.frombuffer(bits, np.uint8)
        others = np.empty(len(texts), np.int64)
        count = _known_codes(*bytes_of(texts), valid, texts.offset, absent, self.words, self.entries, codes, others)
        return others[:count]

    def with_texts(self, texts: pa.Array, codes: Unsigned) -> "KnownTexts":
        """These and as many more texts as there is room for."""
        data, offsets = bytes_of(texts)
        found = self
        first = 0
        while True:
            words, entries = found.words.copy(), found.entries.copy()
            first, known = _keep_texts(data, offsets, codes, first, words, entries, found.known)
            found = KnownTexts(words, entries, known)
            if first == len(texts) or known >= MOST_KNOWN:
                return found
            found = found._wider()

    def _wider(self) -> "KnownTexts":
        size = 4 * len(self.entries)
        words, entries = np.zeros((size, 4), np.uint64), np.full(size, FREE, np.int64)
        return KnownTexts(words, entries, _keep_words(self.words, self.entries, words, entries))


@within_kernels()  # pragma: no cover
def word_of(data, start, stop):  # type: ignore[no-untyped-def]
    """At most eight bytes as a number, the first in its lowest byte."""
    if start + 8 <= data.size:
        return load_word(data, start) & _MASKS[stop - start]
    word = np.uint64(0)
    for place in range(stop - 1, start - 1, -1):
        word = (word << np.uint64(8)) | np.uint64(data[place])
    return word


@within_kernels(inline="always")  # pragma: no cover
def _words(data, start, stop):  # type: ignore[no-untyped-def]
    """A text of at most 31 bytes, and its length, as four numbers."""
    length = stop - start
    # With the length, since a text may end in the zero bytes by which others are filled up.
    size = np.uint64(length) << np.uint64(56)
    zero = np.uint64(0)
    if length <= 8:
        return word_of(data, start, stop), zero, zero, size
    first = word_of(data, start, start + 8)
    if length <= 16:
        return first, word_of(data, start + 8, stop), zero, size
    second = word_of(data, start + 8, start + 16)
    if length <= 24:
        return first, second, word_of(data, start + 16, stop), size
    return first, second, word_of(data, start + 16, start + 24), size | word_of(data, start + 24, stop)


@within_kernels(inline="always")  # pragma: no cover
def _place_of(first, second, third, fourth, words, entries):  # type: ignore[no-untyped-def]
    """Where a text is kept, or the free place where it could be; −1 if there is neither."""
    mixed = (first ^ (fourth >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= second * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= (third + fourth) * np.uint64(0x165667B19E3779F9)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    start = np.int64(mixed >> np.uint64(40))
    mask = entries.size - 1
    for step in range(MOST_STEPS):
        # A table of texts that collide on purpose costs steps, up to MOST_STEPS, and then the general way: never a
        # wrong code, because all bytes are compared.
        place = (start + step) & mask
        if entries[place] == FREE:
            return place
        # Place by place: a row of an array is an object that is counted in and out, which takes longer than the rest.
        same = words[place, 0] == first and words[place, 3] == fourth
        if same and words[place, 1] == second and words[place, 2] == third:
            return place
    return -1


@compiled(allocates=False)  # pragma: no cover
def _known_codes(data, offsets, bits, begin, absent, words, entries, codes, others):  # type: ignore[no-untyped-def]
    count = 0
    for row in range(codes.size):
        bit = begin + row
        if bits.size and not (bits[bit >> 3] >> np.uint8(bit & 7)) & 1:
            codes[row] = absent
            continue
        start, stop = offsets[row], offsets[row + 1]
        place = -1
        if stop - start <= MOST_TEXT_BYTES:
            first, second, third, fourth = _words(data, start, stop)
            place = _place_of(first, second, third, fourth, words, entries)
        if place >= 0 and entries[place] != FREE:
            codes[row] = entries[place]
        else:
            others[count] = row
            count += 1
    return count


@compiled(allocates=False)  # pragma: no cover
def _keep_texts(data, offsets, codes, begin, words, entries, known):  # type: ignore[no-untyped-def]
    """Keeps texts from one on. Returns the first that would make the table more than half full, and how many it has."""
    for row in range(begin, codes.size):
        if 2 * known >= entries.size or known >= MOST_KNOWN:
            return row, known
        start, stop = offsets[row], offsets[row + 1]
        if stop - start > MOST_TEXT_BYTES:
            continue
        first, second, third, fourth = _words(data, start, stop)
        place = _place_of(first, second, third, fourth, words, entries)
        if place >= 0 and entries[place] == FREE:
            words[place, 0], words[place, 1], words[place, 2], words[place, 3] = first, second, third, fourth
            entries[place] = codes[row]
            known += 1
    return codes.size, known


@compiled(allocates=False)  # pragma: no cover
def _keep_words(old_words, old_entries, words, entries):  # type: ignore[no-untyped-def]
    known = 0
    for number in range(old_entries.size):
        if old_entries[number] == FREE:
            continue
        first, second = old_words[number, 0], old_words[number, 1]
        third, fourth = old_words[number, 2], old_words[number, 3]
        place = _place_of(first, second, third, fourth, words, entries)
        if place >= 0:
            words[place, 0], words[place, 1], words[place, 2], words[place, 3] = first, second, third, fourth
            entries[place] = old_entries[number]
            known += 1
    return known


SECONDS, OFFSET, HAS_OFFSET, MATCHED = range(4)
"""Places in the line of numbers that `iso_moments` finds for a text; zeros where there is no match."""


def trimmed(texts: pa.Array) -> pa.Array:
    """Texts without white space at their ends; the array itself where none has any."""
    return pc.ascii_trim_whitespace(texts) if _any_space(*bytes_of(texts)) else texts


def whole_numbers(texts: pa.Array) -> tuple[Ints, Bools]:
    """Texts that are [+-]?[0-9]{1,18} as numbers, and which are."""
    numbers, found = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    _whole_numbers(*bytes_of(texts), numbers, found)
    return numbers, _but_nulls(found, texts)


def short_reals(texts: pa.Array) -> tuple[Floats, Bools]:
    """Texts that are [+-]?[0-9]{1,18}(.[0-9]{0,20})?([eE][+-]?[0-9]{1,2})?, the point taken as a point, and which are.

    Numbers of up to 15 digits are a whole number times or over a power of ten, both of which a float holds exactly, so
    one operation rounds them as they should be; the others are left to the library.
    """
    numbers, state = np.zeros(len(texts), np.float64), np.zeros(len(texts), np.uint8)
    long = _short_reals(*bytes_of(texts), _TENS, numbers, state)
    found = _but_nulls(state > 0, texts)
    if long:
        rest = np.flatnonzero((state == _LONG) & found)
        bare = texts if len(rest) == len(texts) else texts.take(pa.array(rest))
        if long > len(rest):  # some begin with +, which the library does not read
            bare = pc.ascii_ltrim(bare, characters="+")
        numbers[rest] = bare.cast(pa.float64()).to_numpy(zero_copy_only=False)
    numbers[~found] = 0.0
    return numbers, found


def iso_moments(texts: pa.Array) -> Ints:
    """Seconds since 1970 by the text's own clock, and the offset from UTC in seconds where it is told."""
    found = np.zeros((len(texts), 4), np.int64)
    _iso_moments(*bytes_of(texts), found)
    if texts.null_count:
        found[texts.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


# From whole numbers: a float holds powers of ten up to 10²² exactly, but a library's power may be off by a last digit,
# and then a number would be read differently in long arrays than in short ones.
def tens() -> Floats:
    """The powers of ten that a float holds exactly."""
    return np.array([float(10**power) for power in range(23)])


_TENS: Floats = tens()
_SHORT_STATE, _LONG = 1, 2
_MOST_DIGITS = 15


def bytes_of(texts: pa.Array) -> tuple[Bytes, Ints]:
    """The bytes of all texts, and where each begins and ends."""
    _, places, data = texts.buffers()
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    offsets = np.frombuffer(places, kind)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data or b"", np.uint8), offsets.astype(np.int64, copy=False)


def _but_nulls(found: Bools, texts: pa.Array) -> Bools:
    return found & texts.is_valid().to_numpy(zero_copy_only=False) if texts.null_count else found


@compiled(allocates=False)  # pragma: no cover
def _digits(data, place, stop):  # type: ignore[no-untyped-def]
    """Where the digits end that begin at a place."""
    while place < stop and 48 <= data[place] <= 57:
        place += 1
    return place


@compiled(allocates=False)  # pragma: no cover
def _signed(data, place, stop):  # type: ignore[no-untyped-def]
    """Behind a sign, if there is one."""
    return place + 1 if place < stop and (data[place] == 43 or data[place] == 45) else place


@compiled(allocates=False)  # pragma: no cover
def _any_space(data, offsets):  # type: ignore[no-untyped-def]
    for row in range(offsets.size - 1):
        start, stop = offsets[row], offsets[row + 1]
        if start < stop:
            first, last = data[start], data[stop - 1]
            if first == 32 or 9 <= first <= 13 or last == 32 or 9 <= last <= 13:
                return True
    return False


@compiled(allocates=False)  # pragma: no cover
def _value(data, start, stop, number):  # type: ignore[no-untyped-def]
    """A number that goes on with these digits."""
    for place in range(start, stop):
        number = number * 10 + np.int64(data[place]) - 48
    return number


@compiled(allocates=False)  # pragma: no cover
def _whole_numbers(data, offsets, numbers, found):  # type: ignore[no-untyped-def]
    for row in range(found.size):
        start, stop = offsets[row], offsets[row + 1]
        place = _signed(data, start, stop)
        if 1 <= stop - place <= 18 and _digits(data, place, stop) == stop:
            found[row] = True
            number = _value(data, place, stop, np.int64(0))
            numbers[row] = -number if data[start] == 45 else number


@compiled(allocates=False)  # pragma: no cover
def _short_reals(data, offsets, tens, numbers, state):  # type: ignore[no-untyped-def]
    """Returns how many are left to the library, those that begin with + twice."""
    long = 0
    for row in range(state.size):
        start, stop = offsets[row], offsets[row + 1]
        place = _signed(data, start, stop)
        end = _digits(data, place, stop)
        digits = end - place
        if not 1 <= digits <= 18:
            continue
        number = _value(data, place, end, np.int64(0))
        power = np.int64(0)
        if end < stop and data[end] == 46:
            place = end + 1
            end = _digits(data, place, stop)
            if end - place > 20:
                continue
            digits += end - place
            if digits <= _MOST_DIGITS:
                number = _value(data, place, end, number)
            power = place - end
        if end < stop and (data[end] == 101 or data[end] == 69):
            sign = end + 1
            place = _signed(data, sign, stop)
            end = _digits(data, place, stop)
            if not 1 <= end - place <= 2:
                continue
            size = _value(data, place, end, np.int64(0))
            power += -size if data[sign] == 45 else size
        if end != stop:
            continue
        # Beyond these one operation would not round right; the library does, as it does in short arrays.
        if digits > _MOST_DIGITS or abs(power) >= tens.size:
            state[row] = _LONG
            long += 2 if data[start] == 43 else 1
            continue
        state[row] = _SHORT_STATE
        real = np.float64(number)
        real = real / tens[-power] if power < 0 else real * tens[power]
        numbers[row] = -real if data[start] == 45 else real
    return long


@compiled(allocates=False)  # pragma: no cover
def _number(data, place, stop, least, most):  # type: ignore[no-untyped-def]
    """The number that begins at a place and where it ends; −1 unless it has a right number of digits."""
    end = _digits(data, place, min(stop, place + most))
    number = np.int64(0)
    for digit in range(place, end):
        number = number * 10 + np.int64(data[digit]) - 48
    return (number, end) if end - place >= least else (np.int64(-1), end)


@compiled(allocates=False)  # pragma: no cover
def _is(data, place, stop, sign):  # type: ignore[no-untyped-def]
    return place < stop and data[place] == sign


HOURS, MINUTES = 3_600, 60


@compiled(allocates=False)  # pragma: no cover
def _clock(data, place, stop, found, row):  # type: ignore[no-untyped-def]
    """Adds hour, minute and perhaps second and offset, up to the text's end; False if they are not all there is."""
    digits = 1 if _is(data, place + 1, stop, 58) else 2
    if place + digits + 3 > stop or data[place + digits] != 58:
        return False
    hour = _two(data, place) if digits == 2 else _value(data, place, _digits(data, place, place + 1), np.int64(0))
    minute = _two(data, place + digits + 1)
    if _digits(data, place, place + 1) == place or hour > 23 or minute > 59:
        return False
    place += digits + 3
    found[row, SECONDS] += hour * HOURS + minute * MINUTES
    if _is(data, place, stop, 58):
        second = _two(data, place + 1) if place + 3 <= stop else 100
        if second > 59:
            return False
        found[row, SECONDS] += second
        place += 3
        if _is(data, place, stop, 46):
            end = _digits(data, place + 1, stop)
            if end == place + 1:
                return False
            place = end
    if _is(data, place, stop, 32):
        place += 1
    if place == stop:
        return True
    found[row, HAS_OFFSET] = 1
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
    found[row, OFFSET] = (hours * HOURS + minutes * MINUTES) * (-1 if west else 1)
    return minutes >= 0 and place == stop


@compiled(allocates=False)  # pragma: no cover
def _days_of(year, month, day):  # type: ignore[no-untyped-def]
    """Days since 1970, and whether the date exists. Years begin in March: a leap day is then the last of its year."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = 31 - (month == 4 or month == 6 or month == 9 or month == 11) - (3 - leap) * (month == 2)
    shifted = year - (month <= 2)
    era = shifted // 400
    of_era = shifted - 400 * era
    of_year = (153 * (month + (9 if month <= 2 else -3)) + 2) // 5 + day - 1
    days = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return days, 1 <= month <= 12 and 1 <= day <= longest


@within_kernels(inline="always")  # pragma: no cover
def _two(data, place):  # type: ignore[no-untyped-def]
    """A number of two digits; more than 99 if they are none."""
    tens, ones = np.int64(data[place]) - 48, np.int64(data[place + 1]) - 48
    return 10 * tens + ones if 0 <= tens <= 9 and 0 <= ones <= 9 else 100


@compiled(allocates=False)  # pragma: no cover
def _date(data, place, stop):  # type: ignore[no-untyped-def]
    """Year, month and day at a place, and where they end; −1 instead if there is no date."""
    if place + 10 <= stop and data[place + 4] == 45 and data[place + 7] == 45:  # the usual form, and the quickest
        century, year = _two(data, place), _two(data, place + 2)
        month, day = _two(data, place + 5), _two(data, place + 8)
        if century < 100 and year < 100 and month < 100 and day < 100:
            return 100 * century + year, month, day, place + 10
    month = day = np.int64(0)
    year, place = _number(data, place, stop, 4, 4)
    fits = year >= 0 and _is(data, place, stop, 45)
    if fits:
        month, place = _number(data, place + 1, stop, 1, 2)
        fits = month >= 0 and _is(data, place, stop, 45)
    if fits:
        day, place = _number(data, place + 1, stop, 1, 2)
    return year, month, day, place if fits and day >= 0 else -1


@compiled(allocates=False)  # pragma: no cover
def _iso_moments(data, offsets, found):  # type: ignore[no-untyped-def]
    for row in range(found.shape[0]):
        stop = offsets[row + 1]
        year, month, day, place = _date(data, offsets[row], stop)
        fits = place >= 0
        if fits:
            days, fits = _days_of(year, month, day)
            found[row, SECONDS] = days * 86_400
        if fits and place < stop:
            begins = data[place] == 84 or data[place] == 116 or data[place] == 32
            fits = begins and _clock(data, place + 1, stop, found, row)
        if fits:
            found[row, MATCHED] = 1
        else:
            found[row, SECONDS] = found[row, OFFSET] = found[row, HAS_OFFSET] = 0
