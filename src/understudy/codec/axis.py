"""Number axes: where the values of a number, date or time column lie, how they are read and written.

Integers lie on the integers, dates on days since 1970, datetimes and times on whole units of their resolution, floats
on the floats. Reading never raises on content.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.codec.moment import format_text, read_clock, read_days, read_instants, zone_is_known
from understudy.codec.reading import Reading, read_reals, read_wholes
from understudy.codec.support import Continuum, Grid, Number, Support, Values
from understudy.errors import Problem, SchemaError
from understudy.schema.bins import number_of, step_of
from understudy.schema.column import STORAGE, Date, Datetime, Float, Integer, NumberColumn, Time

__all__ = ["Axis", "CalendarAxis", "FloatAxis", "IntegerAxis", "axis_of", "written"]

# Above this, floats are further apart than the decimals asked for, so a grid of decimals means nothing.
_LARGEST_INDEX = 2**53
# Single floats keep six digits for sure.
_LARGEST_SINGLE_INDEX = 10**6
# Widths of bins must fit 64 bits too.
_LARGEST_BOUND = 2**62


class Axis(Protocol):
    """Reads values into numbers and writes numbers as values."""

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

    @cached_property
    def support(self) -> Support:
        """Multiples of the step, counted from the lower bound."""
        return Grid(self.lower, self.step)

    def read(self, array: pa.Array) -> Reading:
        """The greatest integer not above each value."""
        return read_wholes(array)

    def number(self, text: str) -> Number | None:
        """The number meant by a text a person typed, if it is one."""
        reading = self.read(pa.array([text], pa.string()))
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
        return read_reals(array)

    def number(self, text: str) -> Number | None:
        """The number meant by a text a person typed, if it is one."""
        reading = self.read(pa.array([text], pa.string()))
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
    """The axis of a number, date or time column."""
    kind = pa.type_for_alias(column.storage or STORAGE[column.kind][0])
    if isinstance(column, Integer):
        if max(abs(column.lower), abs(column.upper)) > _LARGEST_BOUND:
            rule = f"bounds ({column.lower}, {column.upper}) must lie within ±2^62."
            raise SchemaError([Problem(f"columns.{column.name}", rule, "Narrow the bounds.")])
        return IntegerAxis(column.lower, column.upper, column.step, kind)
    if isinstance(column, Float):
        return FloatAxis(float(column.lower) + 0.0, float(column.upper) + 0.0, column.decimals, kind)
    if isinstance(column, Datetime) and pa.types.is_timestamp(kind):
        kind = pa.timestamp(kind.unit, column.zone)
    if isinstance(column, Datetime) and column.zone is not None and not zone_is_known(column.zone):
        rule = f"{column.zone!r} is not in the time zone database of this machine."
        raise SchemaError([Problem(f"columns.{column.name}.zone", rule, "Install tzdata, or name another zone.")])
    return CalendarAxis(column, kind)
