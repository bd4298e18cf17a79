"""Rules across columns: combinations that cannot occur, known without looking at the data."""

from collections.abc import Mapping
from dataclasses import dataclass

from understudy.schema.bins import bin_starts, number_of
from understudy.schema.column import Boolean, Category, Column, Float, Integer, NumberColumn, Point

__all__ = ["Impossible", "Range", "bins_inside", "labels_for_rules"]


@dataclass(frozen=True, slots=True)
class Range:
    """Values from `lower` to `upper`, both included; None leaves a side open."""

    lower: Point | None = None
    upper: Point | None = None


@dataclass(frozen=True, slots=True)
class Impossible:
    """No record satisfies all conditions at once. A condition is a set of labels (None for missing) or a range.

    Such cells are never emitted: a model gives them no mass. Rows that claim one still count, in every table they are
    part of, because leaving them out would change nothing that is released about the possible cells. A range
    covers bins only: special values are named as labels, by their text, and missing as None.
    """

    when: Mapping[str, tuple[str | None, ...] | Range]
    note: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.when, Mapping):
            object.__setattr__(self, "when", {name: _frozen(said) for name, said in self.when.items()})


def _frozen(said: object) -> object:
    return tuple(said) if isinstance(said, list) else said


def labels_for_rules(column: Column) -> tuple[str, ...]:
    """The texts by which a rule may name codes of this column, in code order, missing apart.

    >>> labels_for_rules(Integer(name="income", lower=0, upper=9, special=(998, 999)))
    ('998', '999')
    """
    match column:
        case Category():
            return column.labels if column.other is None else (*column.labels, column.other)
        case Boolean():
            return ("false", "true")
        case Integer():
            return tuple(str(value) for value in column.special)
        case Float():
            return tuple(str(float(value)) for value in column.special)
        case _:
            return ()


def bins_inside(column: NumberColumn, said: Range) -> list[bool] | None:
    """Which bins lie wholly in the range; None if some bin lies half in it, or if bins are chosen privately.

    Both ends of the range are included. On a float axis an end that equals an edge, up to rounding, fits it.

    >>> bins_inside(Integer(name="age", lower=0, upper=3), Range(upper=1))
    [True, True, False, False]
    """
    starts = bin_starts(column)
    if starts is None:
        return None
    whole = not isinstance(column, Float)
    first, last = number_of(column.lower), number_of(column.upper)
    # On whole numbers a bin that starts at 20 with the next at 30 holds 20 … 29.
    ends = [start - 1 if whole else start for start in starts[1:]] + [last]
    slack = 0 if whole else abs(last - first) * 1e-9
    low = first if said.lower is None else number_of(said.lower)
    high = last if said.upper is None else number_of(said.upper)
    inside = [low - slack <= start and end <= high + slack for start, end in zip(starts, ends, strict=True)]
    for start, end, fits in zip(starts, ends, inside, strict=True):
        apart = end < low or start > high if whole else end <= low + slack or start >= high - slack
        if not fits and not apart:
            return None
    return inside
