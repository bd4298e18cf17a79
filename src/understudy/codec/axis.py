"""Number axes: where the values of a number, date or time column lie, how they are read and written.

Integers lie on the integers, dates on days since 1970, datetimes and times on whole units of their resolution, floats
on the floats. Reading never raises on content.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.codec.reading import Reading, read_reals, read_wholes
from understudy.codec.support import Continuum, Grid, Number, Support, Values
from understudy.errors import Problem, SchemaError
from understudy.schema.column import STORAGE, Float, Integer, NumberColumn

__all__ = ["Axis", "FloatAxis", "IntegerAxis", "axis_of", "written"]

# Above this, floats are further apart than the decimals asked for, so a grid of decimals means nothing.
_LARGEST_INDEX = 2**53
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

    @property
    def support(self) -> Support:
        """Multiples of the step, counted from the lower bound."""
        return Grid(self.lower, self.step)

    def read(self, array: pa.Array) -> Reading:
        """The greatest integer not above each value."""
        return read_wholes(array)

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

    @property
    def support(self) -> Support:
        """Decimal fractions when `decimals` are given, else all floats."""
        if self.decimals is None or self.decimals < 0:
            return Continuum(self.decimals)
        per = 10**self.decimals
        if max(abs(self.lower), abs(self.upper)) * per > _LARGEST_INDEX:
            return Continuum(self.decimals)
        # With `per` = 1 the grid holds integers; drawn numbers are written as floats all the same.
        grid = Grid(0, 1, per)
        return grid if grid.points(self.lower, np.nextafter(self.upper, np.inf)) else Continuum()

    def read(self, array: pa.Array) -> Reading:
        """Each value as a float."""
        return read_reals(array)

    def write(self, numbers: Values, valid: npt.NDArray[np.bool_]) -> pa.Array:
        """Floats in the column's type."""
        return written(pa.array(numbers.astype(np.float64), pa.float64(), mask=~valid), self.arrow_type)

    def text(self, number: Number) -> str:
        """The number with no more digits than needed."""
        return str(int(number)) if float(number).is_integer() and abs(number) < 1e15 else repr(float(number))


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
    raise SchemaError([Problem(f"column {column.name!r}", "dates are not readable yet.")])
