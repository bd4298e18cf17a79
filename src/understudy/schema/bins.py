"""Where the bins of a number column lie, from public facts alone: one definition for rules, codec and plans.

Every number column has an axis: integers and floats are themselves, dates count days from 1970-01-01, datetimes count
seconds from there (in UTC when the column has a zone, else by the wall clock), times count seconds from midnight.
All axes but the float's hold whole numbers, and the values that can be written are `lower`, `lower + step`, and so on.
"""

import datetime as dt

from understudy.schema.column import Date, Float, GivenBins, Integer, NumberColumn, Point, PrivateBins

__all__ = ["MOST_SINGLE_VALUES", "USUAL_BINS", "bin_starts", "number_of", "step_of", "values_between"]

MOST_SINGLE_VALUES = 100
USUAL_BINS = 32


def number_of(point: Point) -> int | float:
    """The place of a bound, edge or value on its column's axis.

    >>> number_of(dt.date(1970, 1, 2)), number_of(dt.time(0, 1)), number_of(7)
    (1, 60, 7)
    """
    if isinstance(point, dt.datetime):
        start = dt.datetime(1970, 1, 1, tzinfo=dt.UTC if point.tzinfo else None)
        return (point - start) // dt.timedelta(seconds=1)
    if isinstance(point, dt.date):
        return point.toordinal() - dt.date(1970, 1, 1).toordinal()
    if isinstance(point, dt.time):
        return point.hour * 3600 + point.minute * 60 + point.second
    return point


def step_of(column: NumberColumn) -> int | None:
    """The distance between neighbouring values on the axis; None where values are not whole numbers."""
    match column:
        case Float():
            return None
        case Integer():
            return column.step
        case Date():
            return 1
        case _:
            return column.resolution


def values_between(column: NumberColumn) -> int | None:
    """How many values can be written between the bounds, both included; None for floats."""
    step = step_of(column)
    if step is None:
        return None
    return int(number_of(column.upper) - number_of(column.lower)) // step + 1


def bin_starts(column: NumberColumn) -> tuple[int | float, ...] | None:
    """The first place of every bin, in order; None while the bins are still to be chosen privately.

    A bin ends before the next one starts; the last one ends with the upper bound, included. Without `bins` there is
    one bin per integer up to 100 of them, else 32 of equal width. On whole-number axes "equal" means equally many
    values up to one, so no bin is empty.

    >>> from understudy.schema.column import UniformBins
    >>> bin_starts(Integer(name="age", lower=0, upper=9, bins=UniformBins(4)))
    (0, 2, 5, 7)
    >>> bin_starts(Float(name="share", lower=0.0, upper=1.0, bins=UniformBins(4)))
    (0.0, 0.25, 0.5, 0.75)
    """
    bins = column.bins
    if isinstance(bins, PrivateBins):
        return None
    if isinstance(bins, GivenBins):
        return tuple(number_of(edge) for edge in bins.edges[:-1])
    step, values = step_of(column), values_between(column)
    if step is None or values is None:
        count = bins.count if bins else USUAL_BINS
        return tuple(_between(column.lower, column.upper, i / count) for i in range(count))
    if bins:
        count = bins.count
    else:
        single = isinstance(column, Integer) and values <= MOST_SINGLE_VALUES
        count = values if single else min(values, USUAL_BINS)
    return tuple(number_of(column.lower) + step * (i * values // count) for i in range(count))


def _between(lower: Point, upper: Point, share: float) -> float:
    # Not lower + share × width: this form ends exactly on the upper bound.
    return float(number_of(lower)) * (1.0 - share) + float(number_of(upper)) * share
