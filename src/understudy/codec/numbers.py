"""Codes of numbers, dates and times: axes, bins, special values, and columns split into size and kind.

The values a number column can be written with, counted and drawn bin by bin.

Number axes: where the values of a number, date or time column lie, how they are read and written.

Integers lie on the integers, dates on days since 1970, datetimes and times on whole units of their resolution, floats
on the floats. Reading never raises on content. Values that mean "no value" are not read; where such a value could be
read, it is compared by what it says and not by its text, so that -99, -99.0 and a typed −99 are the same.

Where bins begin and end, decided from public bounds alone.

Edges live on the column's number axis (integers, days, units of the resolution, floats). Every bin holds at least
one value that can be written out, so no code stands for nothing.

Codes of numbers, dates and times: bins along the column's axis, then special values, missing, unreadable.

A number beyond the bounds falls into an end bin. What is no number, or no date in the column's format, does not.

Kinds of numbers by divisibility: of which kind a number is, how many of a kind a stretch holds, and drawing one.

The kind of a number is the place of the first divisor that it is a multiple of, or the number of divisors if there is
none. On a grid of values the kinds repeat with a period that divides the least common multiple of the divisors, so
values of a kind are counted, ranked and found by arithmetic, however long the stretch is.

SplitCodec: an integer column as two code columns, its size (bin, special value or missing) and its kind.

People round amounts: 1,500 is far more common than 1,497. A bin alone forgets that, a code per value costs too much
noise; size and kind together keep it. The kind of a value is the first of the column's divisors that it is a multiple
of, or none of them; special, missing and unreadable values share one further code. Both parts are read from the same
cell, and a record whose kind its bin does not hold (a value off the column's step) gets the first kind that the bin
does hold, so that every coded pair stands for a value. The pairs that stand for none are structural zeros: no model
gives them mass.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.arrays import Bools, Ints
from understudy.codec.column import CodeArray, Layout, through_dictionary
from understudy.codec.reading import (
    NumberForm,
    Reading,
    format_text,
    is_absent,
    is_text,
    plain,
    read_clock,
    read_days,
    read_instants,
    read_reals,
    read_wholes,
    zone_is_known,
)
from understudy.errors import Problem, SchemaError, UsageError
from understudy.schema.columns import (
    STORAGE,
    Date,
    Datetime,
    Float,
    Integer,
    NumberColumn,
    Time,
    bin_starts,
    missing_texts,
    number_of,
    step_of,
)

Number = int | float
Values = npt.NDArray[np.int64] | npt.NDArray[np.float64]


class Support(Protocol):
    """The values a number column can be written with."""

    def points(self, start: Number, stop: Number) -> int:
        """How many of them lie in [start, stop), as the codec compares them."""
        ...

    def draw(
        self, edges: Sequence[Number], bins: npt.NDArray[np.integer], rng: np.random.Generator, avoid: Sequence[Number]
    ) -> Values:
        """One value evenly drawn from each wanted bin, never one of `avoid`."""
        ...


@dataclass(frozen=True, slots=True)
class Grid:
    """Values start + k × step, or k ÷ `per` for decimals (then `per` is above 1)."""

    start: int = 0
    step: int = 1
    per: int = 1

    def value(self, index: int) -> Number:
        """The value at an index."""
        return self.start + index * self.step if self.per == 1 else index / self.per

    def values(self, indices: npt.NDArray[np.int64]) -> Values:
        """The values at many indices."""
        if self.per == 1:
            return self.start + indices * self.step
        return indices / self.per

    def first_index(self, bound: Number) -> int:
        """The lowest index whose value is not below `bound`, compared as machine numbers."""
        if self.per == 1:
            return -((self.start - math.ceil(bound)) // self.step)
        index = math.ceil(bound * self.per)
        while self.value(index) < bound:
            index += 1
        while self.value(index - 1) >= bound:
            index -= 1
        return index

    def points(self, start: Number, stop: Number) -> int:
        """How many grid values lie in [start, stop)."""
        return max(0, self.first_index(stop) - self.first_index(start))

    def index_of(self, value: Number) -> int | None:
        """The index of a value, if it is on the grid."""
        index = self.first_index(value)
        return index if self.value(index) == value else None

    def draw(
        self, edges: Sequence[Number], bins: npt.NDArray[np.integer], rng: np.random.Generator, avoid: Sequence[Number]
    ) -> Values:
        """One grid value evenly drawn from each wanted bin, never one of `avoid`."""
        inner = [self.first_index(edge) for edge in edges[:-1]]
        firsts = np.asarray(inner, dtype=np.int64)
        stops = np.asarray([*inner[1:], self._end(edges[-1])], dtype=np.int64)
        skipped = sorted(index for index in map(self.index_of, avoid) if index is not None)
        taken = [int(np.searchsorted(stops, index, side="right")) for index in skipped]
        inside = [(b, i) for b, i in zip(taken, skipped, strict=True) if b < len(firsts) and i >= firsts[b]]
        counts = stops - firsts
        for where, _ in inside:
            counts[where] -= 1
        indices = firsts[bins] + rng.integers(0, np.maximum(counts, 1)[bins])
        # Each skipped value at or below the drawn one moves it up by one place, lowest first.
        for where, index in inside:
            indices += (bins == where) & (indices >= index)
        highest: npt.NDArray[np.int64] = np.maximum(stops - 1, firsts)
        return self.values(np.minimum(indices, highest[bins]))

    def _end(self, last_edge: Number) -> int:
        # The last bin includes its end when values are floats; edges of integer bins are already one past it.
        index = self.first_index(last_edge)
        return index + 1 if self.per > 1 and self.value(index) == last_edge else index


@dataclass(frozen=True, slots=True)
class Continuum:
    """All floats between the bounds, rounded to `decimals` where given and where that stays in the bin.

    With `single` they are written in single precision and read again by their shortest decimal form.
    """

    decimals: int | None = None
    single: bool = False

    def points(self, start: Number, stop: Number) -> int:
        """Enough of them whenever the interval is not empty."""
        low, high = self._range(float(start), float(stop))
        return 2 if stop > start and low <= high else 0

    def draw(
        self, edges: Sequence[Number], bins: npt.NDArray[np.integer], rng: np.random.Generator, avoid: Sequence[Number]
    ) -> Values:
        """One float evenly drawn from each wanted bin, never one of `avoid`."""
        ranges = [self._range(float(start), float(stop)) for start, stop in pairwise(edges)]
        lows, highs = np.asarray([low for low, _ in ranges]), np.asarray([high for _, high in ranges])
        share = rng.random(len(bins))
        # A weighted mean cannot overflow where the width of the bin would.
        drawn = lows[bins] * (1.0 - share) + highs[bins] * share
        if self.decimals is not None:
            drawn = np.round(drawn, self.decimals)
        if self.single:
            drawn = drawn.astype(np.float32).astype(np.float64)
        drawn = np.clip(drawn, lows[bins], highs[bins])
        for value in avoid:
            met = drawn == value
            drawn[met] = np.where(drawn[met] < highs[bins][met], highs[bins][met], lows[bins][met])
        return np.asarray(drawn + 0.0, dtype=np.float64)

    def _range(self, start: float, stop: float) -> tuple[float, float]:
        """The lowest and highest float to write in [start, stop)."""
        if not self.single:
            return start, max(start, math.nextafter(stop, -math.inf))
        low, high = np.float32(start), np.float32(stop)
        while float(str(low)) < start:
            low = np.nextafter(low, np.float32(np.inf))
        while float(str(high)) >= stop and high > low:
            high = np.nextafter(high, np.float32(-np.inf))
        return float(low), float(high)


# Above this, floats are further apart than the decimals asked for, so a grid of decimals means nothing.
_LARGEST_INDEX = 2**53
# Single floats keep six digits for sure.
_LARGEST_SINGLE_INDEX = 10**6
# Widths of bins must fit 64 bits too.
_LARGEST_BOUND = 2**62


@dataclass(frozen=True)
class Missing:
    """What means "no value" on an axis: numbers on it, and texts that are none."""

    texts: tuple[str, ...] = ()
    numbers: tuple[Number, ...] = ()

    def without(self, reading: Reading) -> Reading:
        """The reading, in which numbers that mean "no value" are not understood."""
        if not self.numbers:
            return reading
        kept = ~self._met(reading)
        return Reading(reading.values, reading.valid & kept, reading.exact & kept)

    def absent(self, array: pa.Array, reading: Reading) -> Bools:
        """Which values of a `plain` array are not there, given what was read before any were taken out."""
        found = is_absent(array)
        if self.texts and is_text(array.type):
            known = pa.array(self.texts, array.type)
            found |= pc.is_in(pc.ascii_trim_whitespace(array), value_set=known).to_numpy(zero_copy_only=False)
        return found | self._met(reading) if self.numbers else found

    def _met(self, reading: Reading) -> Bools:
        met: Bools = np.isin(reading.values, np.asarray(self.numbers, dtype=reading.values.dtype)) & reading.exact
        return met


NONE_MISSING = Missing()


class Axis(Protocol):
    """Reads values into numbers and writes numbers as values."""

    @property
    def missing(self) -> Missing:
        """What means "no value"."""
        ...

    @property
    def lower(self) -> Number:
        """The lowest number a value may have."""
        ...

    @property
    def upper(self) -> Number:
        """The highest number a value may have."""
        ...

    @property
    def support(self) -> Support:
        """The numbers that can be written."""
        ...

    @property
    def arrow_type(self) -> pa.DataType:
        """The type written."""
        ...

    def read(self, array: pa.Array) -> Reading:
        """The number of each value, for an array of any Arrow type without dictionary."""
        ...

    def read_all(self, array: pa.Array) -> Reading:
        """The same, with the numbers that mean "no value"."""
        ...

    def number(self, text: str) -> Number | None:
        """The number meant by a text a person typed, if it is one."""
        ...

    def write(self, numbers: Values, valid: npt.NDArray[np.bool_]) -> pa.Array:
        """The values of these numbers, null where not valid."""
        ...

    def text(self, number: Number) -> str:
        """The value of a number in words."""
        ...


@dataclass(frozen=True)
class IntegerAxis:
    """Whole numbers as they are."""

    lower: int
    upper: int
    step: int
    arrow_type: pa.DataType
    form: NumberForm | None = None
    missing: Missing = NONE_MISSING

    @cached_property
    def support(self) -> Support:
        """Multiples of the step, counted from the lower bound."""
        return Grid(self.lower, self.step)

    def read(self, array: pa.Array) -> Reading:
        """The greatest integer not above each value."""
        return self.missing.without(self.read_all(array))

    def read_all(self, array: pa.Array) -> Reading:
        """The same, with the numbers that mean "no value"."""
        return read_wholes(array, self.form)

    def number(self, text: str) -> Number | None:
        """The number meant by a text a person typed, if it is one: in the plain form, or in the column's."""
        reading = _typed(text, read_wholes, self.form)
        return int(reading.values[0]) if reading.valid[0] else None

    def write(self, numbers: Values, valid: npt.NDArray[np.bool_]) -> pa.Array:
        """Integers in the column's type."""
        return written(pa.array(numbers, pa.int64(), mask=~valid), self.arrow_type)

    def text(self, number: Number) -> str:
        """The integer."""
        return str(int(number))


@dataclass(frozen=True)
class FloatAxis:
    """Floats as they are."""

    lower: float
    upper: float
    decimals: int | None
    arrow_type: pa.DataType
    form: NumberForm | None = None
    missing: Missing = NONE_MISSING

    @cached_property
    def support(self) -> Support:
        """Decimal fractions when `decimals` are given, else all floats."""
        single = bool(pa.types.is_float32(self.arrow_type))
        if self.decimals is None:
            return Continuum(None, single)
        per = 10**self.decimals
        if max(abs(self.lower), abs(self.upper)) * per > (_LARGEST_SINGLE_INDEX if single else _LARGEST_INDEX):
            return Continuum(self.decimals, single)
        # With `per` = 1 the grid holds integers; drawn numbers are written as floats all the same.
        grid = Grid(0, 1, per)
        return grid if grid.points(self.lower, math.nextafter(self.upper, math.inf)) else Continuum(None, single)

    def read(self, array: pa.Array) -> Reading:
        """Each value as a float."""
        return self.missing.without(self.read_all(array))

    def read_all(self, array: pa.Array) -> Reading:
        """The same, with the numbers that mean "no value"."""
        return read_reals(array, self.form)

    def number(self, text: str) -> Number | None:
        """The number meant by a text a person typed, if it is one: in the plain form, or in the column's."""
        reading = _typed(text, read_reals, self.form)
        return float(reading.values[0]) if reading.valid[0] else None

    def write(self, numbers: Values, valid: npt.NDArray[np.bool_]) -> pa.Array:
        """Floats in the column's type."""
        return written(pa.array(numbers.astype(np.float64), pa.float64(), mask=~valid), self.arrow_type)

    def text(self, number: Number) -> str:
        """The number with no more digits than needed."""
        return str(int(number)) if float(number).is_integer() and abs(number) < 1e15 else repr(float(number))


@dataclass(frozen=True)
class CalendarAxis:
    """Days (dates), seconds since 1970 (datetimes) or seconds since midnight (times)."""

    column: Date | Datetime | Time
    arrow_type: pa.DataType
    missing: Missing = NONE_MISSING

    @cached_property
    def lower(self) -> int:
        """The lower bound on the axis."""
        return int(number_of(self.column.lower))

    @cached_property
    def upper(self) -> int:
        """The upper bound on the axis."""
        return int(number_of(self.column.upper))

    @cached_property
    def support(self) -> Support:
        """Every day, or whole multiples of the resolution counted from the lower bound."""
        return Grid(self.lower, step_of(self.column) or 1)

    @property
    def _zone(self) -> str | None:
        return self.column.zone if isinstance(self.column, Datetime) else None

    def read(self, array: pa.Array) -> Reading:
        """The day or second of each value."""
        return self.missing.without(self.read_all(array))

    def read_all(self, array: pa.Array) -> Reading:
        """The same, with the moments that mean "no value"."""
        return self._read(array, self.column.format)

    def _read(self, array: pa.Array, form: str | None) -> Reading:
        if isinstance(self.column, Date):
            return read_days(array, form)
        if isinstance(self.column, Time):
            return read_clock(array, form)
        return read_instants(array, form, self._zone)

    def number(self, text: str) -> Number | None:
        """The number meant by a text a person typed: in the column's format, or in ISO form."""
        for form in (self.column.format, None):
            reading = self._read(pa.array([text], pa.string()), form)
            if reading.valid[0]:
                return int(reading.values[0])
        return None

    def write(self, numbers: Values, valid: npt.NDArray[np.bool_]) -> pa.Array:
        """Dates, timestamps or times, or text in the column's format."""
        whole = pa.array(numbers, pa.int64(), mask=~valid)
        kind = self.arrow_type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return format_text(self._stamps(whole), self.column.format or self._iso()).cast(kind)
        if isinstance(self.column, Date):
            return whole.cast(pa.int32()).cast(kind)
        if isinstance(self.column, Time):
            return whole.cast(pa.int32()).cast(pa.time32("s")).cast(kind)
        return whole.cast(pa.timestamp("s", self._zone)).cast(kind)

    def _stamps(self, whole: pa.Array) -> pa.Array:
        if isinstance(self.column, Date):
            return whole.cast(pa.int32()).cast(pa.date32()).cast(pa.timestamp("s"))
        return whole.cast(pa.timestamp("s", self._zone))

    def _iso(self) -> str:
        if isinstance(self.column, Date):
            return "%Y-%m-%d"
        if isinstance(self.column, Time):
            return "%H:%M:%S"
        return "%Y-%m-%dT%H:%M:%S%z" if self._zone else "%Y-%m-%dT%H:%M:%S"

    def text(self, number: Number) -> str:
        """The value in ISO form."""
        return str(format_text(self._stamps(pa.array([int(number)], pa.int64())), self._iso())[0].as_py())


def _typed(text: str, read: Callable[[pa.Array, NumberForm | None], Reading], form: NumberForm | None) -> Reading:
    """The number a person typed, read in the plain form, else in the column's: a schema writes numbers plainly."""
    typed = pa.array([text], pa.string())
    reading = read(typed, None)
    return reading if form is None or reading.valid[0] else read(typed, form)


def written(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The array in the wanted type; a value it cannot hold becomes null."""
    if array.type == kind:
        return array
    try:
        return array.cast(kind, safe=not pa.types.is_floating(kind))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        distinct = array.dictionary_encode()
        values = [_one(distinct.dictionary.slice(place, 1), kind) for place in range(len(distinct.dictionary))]
        return pa.concat_arrays([pa.array([], kind), *values]).take(distinct.indices)


def _one(value: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return value.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(1, kind)


@lru_cache(maxsize=4096)
def axis_of(column: NumberColumn) -> Axis:
    """The axis of a number, date or time column, with the values that mean "no value" in it."""
    axis = _bare_axis(column)
    return replace(axis, missing=_missing_of(column, axis))


def _missing_of(column: NumberColumn, axis: Axis) -> Missing:
    """What the column says means "no value": a special value never does, and what cannot be read is met by its text."""
    listed = [text for text in missing_texts(column) if text]
    if column.missing_values is None:
        return Missing(tuple(listed))  # none of the usual ones is a number, a date or a time
    texts, numbers = [], []
    for text in listed:
        reading = axis.read_all(pa.array([text], pa.string()))
        number = reading.values[0].item() if reading.valid[0] else axis.number(text)
        if number is None or not reading.valid[0]:
            texts.append(text)
        if number is not None and (reading.exact[0] or not reading.valid[0]) and number not in special_of(column):
            numbers.append(number)
    return Missing(tuple(texts), tuple(dict.fromkeys(numbers)))


def _bare_axis(column: NumberColumn) -> "IntegerAxis | FloatAxis | CalendarAxis":
    kind = pa.type_for_alias(column.storage or STORAGE[column.kind][0])
    if isinstance(column, Integer):
        if max(abs(column.lower), abs(column.upper)) > _LARGEST_BOUND:
            rule = f"bounds ({column.lower}, {column.upper}) must lie within ±2^62."
            raise SchemaError([Problem(f"columns.{column.name}", rule, "Narrow the bounds.")])
        return IntegerAxis(column.lower, column.upper, column.step, kind, NumberForm.of(column))
    if isinstance(column, Float):
        lower, upper = float(column.lower) + 0.0, float(column.upper) + 0.0
        return FloatAxis(lower, upper, column.decimals, kind, NumberForm.of(column))
    if isinstance(column, Datetime) and pa.types.is_timestamp(kind):
        kind = pa.timestamp(kind.unit, column.zone)
    if isinstance(column, Datetime) and column.zone is not None and not zone_is_known(column.zone):
        rule = f"{column.zone!r} is not in the time zone database of this machine."
        raise SchemaError([Problem(f"columns.{column.name}.zone", rule, "Install tzdata, or name another zone.")])
    return CalendarAxis(column, kind)


def special_of(column: NumberColumn) -> tuple[Number, ...]:
    """The column's special values, on its axis."""
    if isinstance(column, Integer):
        return column.special
    return tuple(float(value) + 0.0 for value in column.special) if isinstance(column, Float) else ()


def fixed_edges(column: NumberColumn, given: Sequence[Number] | None = None) -> list[Number]:
    """The edges of a number column's bins; `given` are those chosen privately, when the column asks for that.

    On whole-number axes the last edge is one past the upper bound, on the float axis it is the bound.
    """
    axis = axis_of(column)
    starts = bin_starts(column)
    if starts is None:
        if given is None:
            rule = "has private bins, which are not fixed yet."
            raise UsageError(f"column {column.name!r}", rule, "Pass its edges.")
        starts = (axis.lower, *_inner(axis, given))
    return kept_edges([*starts, _end(axis)], axis.support, (*special_of(column), *axis.missing.numbers))


def fine_grid(column: NumberColumn, cells: int) -> list[Number]:
    """Edges of at most `cells` even bins between the bounds: public places for private binning to choose from."""
    axis = axis_of(column)
    support, lower = axis.support, axis.lower
    if isinstance(lower, float):
        shares = [place / cells for place in range(cells)]
        starts: list[Number] = [lower * (1.0 - share) + axis.upper * share for share in shares]
    else:
        step = support.step if isinstance(support, Grid) else 1
        values = int(axis.upper - lower) // step + 1
        count = min(cells, values)
        starts = [lower + step * (place * values // count) for place in range(count)]
    return kept_edges([*starts, _end(axis)], support, (*special_of(column), *axis.missing.numbers))


def _inner(axis: Axis, given: Sequence[Number]) -> list[Number]:
    """The edges between the bounds. The last one given ends the last bin, be it the bound itself or one past it."""
    places = sorted(set(given))
    if places and places[-1] >= axis.upper:
        places.pop()
    return [place for place in places if axis.lower < place < _end(axis)]


def _end(axis: Axis) -> Number:
    return axis.upper if isinstance(axis.upper, float) else axis.upper + 1


def kept_edges(edges: Sequence[Number], support: Support, special: Sequence[Number]) -> list[Number]:
    """The edges without those that would leave a bin with no value of its own (special values are codes already)."""
    kept: list[Number] = [edges[0]]
    for edge in edges[1:-1]:
        if _free(support, kept[-1], edge, special):
            kept.append(edge)
    while len(kept) > 1 and not _free(support, kept[-1], edges[-1], special, closed=isinstance(edges[-1], float)):
        kept.pop()
    return [*kept, edges[-1]]


def _free(support: Support, start: Number, stop: Number, special: Sequence[Number], *, closed: bool = False) -> bool:
    end = math.nextafter(stop, math.inf) if closed else stop
    on_it = [value for value in special if start <= value < end]
    if isinstance(support, Grid):
        on_it = [value for value in on_it if support.index_of(value) is not None]
    return support.points(start, end) > len(on_it)


# Integer columns that span no more than this are coded by one look into a table.
_WIDEST_TABLE = 1 << 18


class NumberCodec:
    """Numbers ⇄ codes of bins. Values beyond the bounds fall into the end bins."""

    def __init__(
        self,
        axis: Axis,
        edges: Sequence[Number],
        special: Sequence[Number],
        *,
        missing: bool,
        unreadable: bool = False,
    ) -> None:
        self.axis = axis
        self.edges = tuple(edges)
        self.special = tuple(special)
        # What no bin may give out: these are codes of their own, or no values.
        self.avoid = (*self.special, *(number for number in axis.missing.numbers if number not in self.special))
        self.layout = Layout(len(self.edges) - 1, len(self.special), missing=missing, unreadable=unreadable)
        self.arrow_type = axis.arrow_type
        kind = np.float64 if isinstance(axis.lower, float) else np.int64
        self._inner = np.asarray(self.edges[1:-1], dtype=kind)
        self._specials = np.asarray(self.special, dtype=kind)
        self._table: CodeArray | None = None
        if kind is np.int64 and axis.upper - axis.lower < _WIDEST_TABLE:
            every = np.arange(axis.lower, axis.upper + 1, dtype=np.int64)
            self._table = np.searchsorted(self._inner, every, side="right").astype(self.layout.dtype)

    def encode(self, array: pa.Array) -> CodeArray:
        """The code of each value."""
        array = plain(array)
        kind = array.type
        if pa.types.is_dictionary(kind) or self.reads_by_text(kind):
            return through_dictionary(array, self._encode_plain, self.layout)
        if pa.types.is_null(kind):
            return np.full(len(array), self.layout.absent, dtype=self.layout.dtype)
        return self._encode_plain(array)

    def reads_by_text(self, kind: pa.DataType) -> bool:
        """Whether such values are read through their text, which is worth doing once per distinct value."""
        if is_text(kind) or pa.types.is_decimal(kind) or pa.types.is_float32(kind):
            return True
        return isinstance(self.axis, CalendarAxis) and bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))

    def _encode_plain(self, array: pa.Array) -> CodeArray:
        array = plain(array)
        everything = self.axis.read_all(array)
        reading = self.axis.missing.without(everything)
        codes = self._codes(reading)
        if self.layout.absent != self.layout.unknown and not reading.valid.all():
            codes[self.axis.missing.absent(array, everything)] = self.layout.absent
        return codes

    def _codes(self, reading: Reading) -> CodeArray:
        codes = self._bins(reading.values)
        self._mark_special(codes, reading)
        if not reading.valid.all():
            codes[~reading.valid] = self.layout.unknown
        return codes

    def _bins(self, numbers: Values) -> CodeArray:
        if self._table is not None:
            low, high = int(self.axis.lower), int(self.axis.upper)
            within: npt.NDArray[np.int64] = np.clip(numbers.astype(np.int64, copy=False), low, high)
            codes: CodeArray = np.take(self._table, within - low, mode="clip")
            return codes
        return np.searchsorted(self._inner, numbers, side="right").astype(self.layout.dtype)

    def _mark_special(self, codes: CodeArray, reading: Reading) -> None:
        for place, value in enumerate(self._specials):
            codes[(reading.values == value) & reading.exact] = self.layout.regular + place

    def decode(self, codes: CodeArray, rng: np.random.Generator) -> pa.Array:
        """A value evenly drawn from each bin; special values exactly; null for missing."""
        regular = codes < self.layout.regular
        bins = np.where(regular, codes, 0).astype(np.int64)
        return self.write(codes, self.axis.support.draw(self.edges, bins, rng, self.avoid))

    def write(self, codes: CodeArray, numbers: Values) -> pa.Array:
        """The numbers where the code is that of a bin; special values and nulls elsewhere."""
        regular = codes < self.layout.regular
        if self.special:
            place = codes.astype(np.int64) - self.layout.regular
            is_special = (place >= 0) & (place < len(self.special))
            numbers = np.where(is_special, self._specials[np.where(is_special, place, 0)], numbers)
            regular |= is_special
        return self.axis.write(numbers, regular)

    def describe(self, code: int) -> str:
        """The bin as "[20, 30)", a lone value as itself, "missing" or "unreadable"."""
        if code == self.layout.missing_code:
            return "missing"
        if code == self.layout.unreadable_code:
            return "unreadable"
        if code >= self.layout.regular:
            return self.axis.text(self.special[code - self.layout.regular])
        start, stop = self.edges[code], self.edges[code + 1]
        low, high = self._ends(code)
        if low == high:
            return self.axis.text(low)
        if code < self.layout.regular - 1:
            return f"[{self.axis.text(start)}, {self.axis.text(stop)})"
        return f"[{self.axis.text(start)}, {self.axis.text(self.axis.upper)}]"

    def _ends(self, code: int) -> tuple[Number, Number]:
        """The lowest and highest value a bin gives out."""
        start, stop = self.edges[code], self.edges[code + 1]
        support = self.axis.support
        if not isinstance(support, Grid):
            return start, stop
        if code == self.layout.regular - 1 and isinstance(stop, float):
            stop = math.nextafter(stop, math.inf)
        first, last = support.first_index(start), support.first_index(stop) - 1
        while first < last and support.value(first) in self.avoid:
            first += 1
        while first < last and support.value(last) in self.avoid:
            last -= 1
        return support.value(first), support.value(last)

    def codes_matching(self, text: str) -> npt.NDArray[np.int64]:
        """The codes that a value, "lo..hi", "missing" or "unreadable" stands for exactly; none where it cuts a bin.

        A value stands for its code if it is special or the only value of its bin. A range must begin where a bin
        begins and end where one ends; special values between the bounds belong to a range that holds them.
        """
        if text in ("missing", "unreadable"):
            code = self.layout.missing_code if text == "missing" else self.layout.unreadable_code
            return np.asarray([] if code is None else [code], dtype=np.int64)
        interval = self._interval(text)
        if interval is None or interval[0] > interval[1]:
            return np.asarray([], dtype=np.int64)
        low, high = interval
        special = [place for place, value in enumerate(self.special) if low <= value <= high]
        if low == high and special:
            return np.asarray([self.layout.regular + special[0]], dtype=np.int64)
        inside = self.codes_between(low, high)
        if len(inside) != len(self._bins_touched(low, high)) or not len(inside):
            return np.asarray([], dtype=np.int64)
        counted = [place for place in special if self.axis.lower <= self.special[place] <= self.axis.upper]
        return np.asarray([*inside, *(self.layout.regular + place for place in counted)], dtype=np.int64)

    def nearest_conditions(self, text: str) -> str:
        """The conditions next to one that cuts a bin or runs backwards, as advice; empty where it is no condition."""
        interval = self._interval(text)
        if interval is not None and interval[0] > interval[1]:
            low, _, high = text.partition("..")
            return f'The range runs backwards: ask for "{high.strip()}..{low.strip()}".'
        touched = [] if interval is None else self._bins_touched(*interval)
        if interval is None or not touched:
            return ""
        whole = self.codes_between(*interval).tolist()
        spoken = [f'"{self._range(interval, codes)}"' for codes in (whole, touched) if codes]
        return f"Its values are known in bins only: ask for {' or '.join(dict.fromkeys(spoken))}."

    def _interval(self, text: str) -> tuple[Number, Number] | None:
        """The ends of "lo..hi" (either may be left out), or one value twice."""
        low, dots, high = text.partition("..")
        if not dots:
            number = self.axis.number(text)
            return None if number is None else (number, number)
        start = self.axis.number(low) if low.strip() else -math.inf
        stop = self.axis.number(high) if high.strip() else math.inf
        return None if start is None or stop is None else (start, stop)

    def _bins_touched(self, low: Number, high: Number) -> list[int]:
        """Bins with a value in [low, high]; values beyond the bounds are in the end bins."""
        low, high = min(low, self.axis.upper), max(high, self.axis.lower)
        ends = [self._ends(code) for code in range(self.layout.regular)]
        if isinstance(self.axis.support, Grid) or low == high:
            return [code for code, (a, b) in enumerate(ends) if low <= b and a <= high][-1 if low == high else 0 :]
        # Where all floats are values a bin ends just before the next one, so to share an edge is not to overlap.
        return [code for code, (a, b) in enumerate(ends) if low < b - self._slack and a + self._slack < high]

    def _range(self, interval: tuple[Number, Number], codes: Sequence[int]) -> str:
        """These bins as a condition; an end that was asked for at or beyond the column's bounds stays as it was."""
        low, high = self._ends(codes[0])[0], self._ends(codes[-1])[1]
        if interval[0] != interval[1]:
            low = min(low, interval[0]) if codes[0] == 0 else low
            high = max(high, interval[1]) if codes[-1] == self.layout.regular - 1 else high
        if low == high:
            return self.axis.text(low)
        return "..".join("" if math.isinf(end) else self.axis.text(end) for end in (low, high))

    @property
    def _slack(self) -> float:
        """How far an end that means an edge may miss it: edges of even float bins are rounded."""
        return (self.axis.upper - self.axis.lower) * 1e-9 if isinstance(self.axis.lower, float) else 0

    def codes_between(self, low: Number, high: Number) -> npt.NDArray[np.int64]:
        """Bins all of whose values lie in [low, high]; special values are not part of a range."""
        slack = self._slack
        ends = (self._ends(code) for code in range(self.layout.regular))
        codes = [code for code, (a, b) in enumerate(ends) if low - slack <= a and b <= high + slack]
        return np.asarray(codes, dtype=np.int64)

    def special_code(self, text: str) -> int | None:
        """The code of the special value written so, if there is one."""
        number = self.axis.number(text)
        return self.layout.regular + self.special.index(number) if number in self.special else None


def kinds_of(values: Ints, divisors: Sequence[int]) -> Ints:
    """The kind of each number.

    >>> kinds_of(np.array([200, 40, 25, 7]), (100, 20, 5)).tolist()
    [0, 1, 2, 3]
    """
    kinds = np.full(len(values), len(divisors), dtype=np.int64)
    for kind in range(len(divisors) - 1, -1, -1):
        kinds[values % divisors[kind] == 0] = kind
    return kinds


@dataclass(frozen=True, slots=True, eq=False)
class Residues:
    """The kinds along a grid: `members` holds, for each kind, its indices within the first `period` of the grid."""

    grid: Grid
    divisors: tuple[int, ...]
    period: int
    members: tuple[Ints, ...]

    @classmethod
    def of(cls, grid: Grid, divisors: Sequence[int]) -> Self:
        """The kinds of a grid of whole numbers."""
        period = math.lcm(*(divisor // math.gcd(divisor, grid.step) for divisor in divisors))
        # Only remainders matter, and those of the least common multiple cannot overflow.
        all_of = math.lcm(*divisors)
        kinds = kinds_of(grid.start % all_of + np.arange(period) * (grid.step % all_of), divisors)
        members = tuple(np.flatnonzero(kinds == kind) for kind in range(len(divisors) + 1))
        return cls(grid, tuple(divisors), period, members)

    def below(self, kind: int, indices: Ints) -> Ints:
        """How many places of a kind lie before each index of the grid; differences count those in between."""
        whole, part = np.divmod(indices, self.period)
        found: Ints = whole * self.members[kind].size + np.searchsorted(self.members[kind], part)
        return found

    def counts(self, firsts: Ints, stops: Ints, avoid: Sequence[int]) -> Ints:
        """How many values of each kind lie in each stretch [first, stop) of the grid, without those at `avoid`."""
        counts = np.stack(
            [self.below(kind, stops) - self.below(kind, firsts) for kind in range(len(self.members))], axis=1
        )
        for stretch, kind, _ in self._inside(firsts, stops, avoid):
            counts[stretch, kind] -= 1
        return counts

    def draw(
        self, firsts: Ints, stops: Ints, avoid: Sequence[int], wanted: tuple[Ints, Ints], rng: np.random.Generator
    ) -> Ints:
        """One value for each wanted (stretch, kind), evenly drawn from those there are; there must be some."""
        stretches, kinds = wanted
        indices = np.zeros(len(stretches), dtype=np.int64)
        skipped = self._inside(firsts, stops, avoid)
        numbers_left = self.counts(firsts, stops, avoid)
        for kind in range(len(self.members)):
            rows = np.flatnonzero(kinds == kind)
            if not rows.size:
                continue
            where = stretches[rows]
            ranks = self.below(kind, firsts)[where] + rng.integers(0, numbers_left[where, kind])
            # Each skipped value at or below the drawn one moves it up by one rank, lowest first.
            for stretch, other, rank in skipped:
                if other == kind:
                    ranks += (where == stretch) & (ranks >= rank)
            whole, part = np.divmod(ranks, self.members[kind].size)
            indices[rows] = whole * self.period + self.members[kind][part]
        return np.asarray(self.grid.values(indices), dtype=np.int64)

    def _inside(self, firsts: Ints, stops: Ints, avoid: Sequence[int]) -> list[tuple[int, int, int]]:
        """The stretch, kind and rank of each index to avoid that lies in a stretch, in increasing order."""
        found = []
        for index in sorted(avoid):
            stretch = int(np.searchsorted(stops, index, side="right"))
            if stretch < len(firsts) and index >= firsts[stretch]:
                place = np.array([index], dtype=np.int64)
                kind = next(k for k, members in enumerate(self.members) if index % self.period in members)
                found.append((stretch, kind, int(self.below(kind, place)[0])))
        return found


_NO_NUMBER = "no number"
_NO_MULTIPLE = "multiple of none"


class SplitCodec:
    """One column ⇄ the codes of its size and of its kind."""

    def __init__(self, size: NumberCodec, divisors: tuple[int, ...]) -> None:
        assert isinstance(size.axis.support, Grid)
        self.size = size
        self.arrow_type = size.arrow_type
        grid = size.axis.support
        firsts = [grid.first_index(edge) for edge in size.edges]
        self._firsts = np.asarray(firsts[:-1], dtype=np.int64)
        self._stops = np.asarray(firsts[1:], dtype=np.int64)
        self._avoid = [index for value in size.avoid if (index := grid.index_of(value)) is not None]
        self._residues = Residues.of(grid, divisors)
        self.kind = KindCodec(size, divisors, self.possible)

    @cached_property
    def possible(self) -> npt.NDArray[np.bool_]:
        """Which kinds go with which sizes, by code: those of a bin's values; the last kind with all but bins."""
        layout = self.size.layout
        counts = self._residues.counts(self._firsts, self._stops, self._avoid)
        kinds = counts.shape[1]
        mask = np.zeros((layout.size, kinds + (layout.size > layout.regular)), dtype=bool)
        mask[: layout.regular, :kinds] = counts > 0
        mask[layout.regular :, kinds:] = True
        return mask

    def decode(self, sizes: CodeArray, kinds: CodeArray, rng: np.random.Generator) -> pa.Array:
        """A value of the kind evenly drawn from each bin; special values exactly; null for missing."""
        regular = sizes < self.size.layout.regular
        bins = np.where(regular, sizes, 0).astype(np.int64)
        wanted = (bins, agreed(self.possible, bins, kinds.astype(np.int64)))
        return self.size.write(sizes, self._residues.draw(self._firsts, self._stops, self._avoid, wanted, rng))


class KindCodec:
    """Numbers → codes of their kind."""

    def __init__(self, size: NumberCodec, divisors: tuple[int, ...], possible: npt.NDArray[np.bool_]) -> None:
        self._size = size
        self._divisors = divisors
        self._possible = possible
        self.layout = _kind_layout(len(divisors) + 1, size.layout)

    def encode(self, array: pa.Array) -> CodeArray:
        """The code of each value's kind, one that its size can have."""
        array = plain(array)
        sizes = self._size.encode(array).astype(np.int64)
        layout = Layout(self.layout.regular - 1, other=True, missing=False)  # what is no number is fixed by its size
        if pa.types.is_null(array.type):
            kinds = np.zeros(len(array), dtype=np.int64)
        elif pa.types.is_dictionary(array.type) or self._size.reads_by_text(array.type):
            kinds = through_dictionary(array, self._kinds, layout).astype(np.int64)
        else:
            kinds = self._kinds(array).astype(np.int64)
        coded = sizes < self._size.layout.size
        found = agreed(self._possible, np.where(coded, sizes, 0), kinds)
        return np.where(coded, found, self.layout.size).astype(self.layout.dtype)

    def _kinds(self, array: pa.Array) -> CodeArray:
        axis = self._size.axis
        values = np.clip(axis.read(plain(array)).values.astype(np.int64), int(axis.lower), int(axis.upper))
        return kinds_of(values, self._divisors).astype(self.layout.dtype)

    def describe(self, code: int) -> str:
        """The kind in words: "multiple of 100", "multiple of none", or "no number" for all other values."""
        if code < len(self._divisors):
            return f"multiple of {self._divisors[code]}"
        return _NO_MULTIPLE if code == len(self._divisors) else _NO_NUMBER

    def codes_matching(self, text: str) -> npt.NDArray[np.int64]:
        """The code described so."""
        return np.asarray([code for code in range(self.layout.size) if self.describe(code) == text], dtype=np.int64)

    def nearest_conditions(self, text: str) -> str:
        """For a number, its kind, which other numbers share."""
        if self._size.axis.number(text) is None:
            return ""
        (code,) = self.encode(pa.array([text], pa.string())).tolist()
        return f'It holds kinds of numbers: ask for "{self.describe(code)}".'


def _kind_layout(kinds: int, size: Layout) -> Layout:
    """The codes of the kinds, and one more for all values that are no number, if the column can hold any."""
    if size.missing:
        return Layout(kinds, missing=True)
    if size.special:
        return Layout(kinds, special=1, missing=False)
    return Layout(kinds, missing=False, unreadable=size.unreadable)


def agreed(possible: npt.NDArray[np.bool_], sizes: Ints, kinds: Ints) -> Ints:
    """The kinds, each replaced by the first one that its size can have where it cannot have it."""
    return np.where(possible[sizes, kinds], kinds, possible.argmax(axis=1)[sizes])
