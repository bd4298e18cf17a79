"""Where bins begin and end, decided from public bounds alone.

Edges live on the column's number axis (integers, days, units of the resolution, floats). Every bin holds at least
one value that can be written out, so no code stands for nothing.
"""

import math
from collections.abc import Sequence

from understudy.codec.axis import Axis, axis_of
from understudy.codec.support import Grid, Number, Support
from understudy.errors import UsageError
from understudy.schema.bins import bin_starts
from understudy.schema.column import Float, Integer, NumberColumn

__all__ = ["fine_grid", "kept_edges", "settled_edges", "special_of"]


def special_of(column: NumberColumn) -> tuple[Number, ...]:
    """The column's special values, on its axis."""
    if isinstance(column, Integer):
        return column.special
    return tuple(float(value) + 0.0 for value in column.special) if isinstance(column, Float) else ()


def settled_edges(column: NumberColumn, given: Sequence[Number] | None = None) -> list[Number]:
    """The edges of a number column's bins; `given` are those chosen privately, when the column asks for that.

    On whole-number axes the last edge is one past the upper bound, on the float axis it is the bound.
    """
    axis = axis_of(column)
    starts = bin_starts(column)
    if starts is None:
        if given is None:
            rule = "has bins chosen privately, which are not settled yet."
            raise UsageError(f"column {column.name!r}", rule, "Pass its edges.")
        starts = (axis.lower, *_inner(axis, given))
    return kept_edges([*starts, _end(axis)], axis.support, special_of(column))


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
    return kept_edges([*starts, _end(axis)], support, special_of(column))


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
