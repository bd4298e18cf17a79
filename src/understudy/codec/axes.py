"""Where the values of a number, date or time column lie, how they are read and written, and where bins begin and end.

Integers lie on the integers, dates on days since 1970, datetimes and times on whole units of their resolution, floats
on the floats. Reading never raises on content. Values that mean "no value" are not read; where such a value could be
read, it is compared by what it says and not by its text, so that -99, -99.0 and a typed −99 are the same.

Bins are decided from public bounds alone, on that axis. Every bin holds at least one value that can be written out, so
no code stands for nothing; which values a bin holds is counted, and drawn from, without listing them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.arrays import Bools
from understudy.codec.kernels import is_whole
from understudy.codec.reading import (
    PER_SECOND,
    SECONDS_A_DAY,
    NumberForm,
    Reading,
    format_text,
    is_absent,
    is_text,
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

    @property
    def text_kind(self) -> pa.DataType | None:
        """The storage type of whose values texts in plain form are; None where text has a form of its own."""
        ...

    def ticks(self, kind: pa.DataType) -> int | None:
        """How many units of a whole-number storage type make one number here; None if reading takes more than that."""
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

    @property
    def text_kind(self) -> pa.DataType | None:
        """Whole numbers."""
        return pa.int64() if self.form is None else None

    def ticks(self, kind: pa.DataType) -> int | None:
        """One, of every type of whole numbers."""
        return 1 if is_whole(kind) else None

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

    @property
    def text_kind(self) -> pa.DataType | None:
        """Floats."""
        return pa.float64() if self.form is None else None

    def ticks(self, kind: pa.DataType) -> int | None:
        """None: floats are not counted in units."""
        return None

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

    @property
    def text_kind(self) -> pa.DataType | None:
        """Days, or seconds where no clock elsewhere has to be asked; ISO form only."""
        if self.column.format is not None or isinstance(self.column, Time) or self._zone is not None:
            return None
        return pa.date32() if isinstance(self.column, Date) else pa.timestamp("s")

    def ticks(self, kind: pa.DataType) -> int | None:
        """Units of a day or a second, unless a clock elsewhere has to be asked."""
        if isinstance(self.column, Date) and (pa.types.is_date32(kind) or pa.types.is_date64(kind)):
            return 1 if pa.types.is_date32(kind) else SECONDS_A_DAY * PER_SECOND["ms"]
        if isinstance(self.column, Time):
            return PER_SECOND[kind.unit] if pa.types.is_time(kind) else None
        if not pa.types.is_timestamp(kind) or (kind.tz is None if self._zone else kind.tz not in (None, "UTC")):
            return None
        return PER_SECOND[kind.unit] * (SECONDS_A_DAY if isinstance(self.column, Date) else 1)

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
