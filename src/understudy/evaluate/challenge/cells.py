"""What the challenge's scorer sees of a column: its code, or one of 100 buckets for a number."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.codec.axis import axis_of
from understudy.evaluate.data.rows import Rows
from understudy.schema.column import NumberColumn

__all__ = ["BUCKETS", "NumberView", "bucket_codes", "cell_codes", "challenge_columns", "densities", "number_view"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BUCKETS = 100
MOST_DENSE_CELLS = 1 << 22
STRETCH = 1.0001
OUT_OF_RANGE = BUCKETS


@dataclass(frozen=True, slots=True, eq=False)
class NumberView:
    """A number column: its public bounds, its values, and the code of each value that is no number (else −1)."""

    lower: float
    upper: float
    values: Floats
    states: Ints


def challenge_columns(rows: Rows) -> tuple[str, ...]:
    """The columns of the table, in schema order."""
    return tuple(dict.fromkeys(rows.codec.origin(part) for part in rows.domain.columns))


def number_view(rows: Rows, name: str) -> NumberView | None:
    """The column as numbers; None if it holds labels."""
    column = rows.codec.schema.column(name)
    if not isinstance(column, NumberColumn):
        return None
    axis = axis_of(column)
    values = rows.numbers[name]
    part = next(part for part in rows.domain.columns if rows.codec.origin(part) == name)
    states = np.where(np.isnan(values), rows.codes[part].astype(np.int64), -1)
    return NumberView(float(axis.lower), float(axis.upper), values, states)


def bucket_codes(view: NumberView) -> Ints:
    """⌊(v − min)/w⌋ with w = 1.0001·(max − min)/100; beyond 0 … 99 one code; empty and special values one each."""
    width = STRETCH * (view.upper - view.lower) / BUCKETS
    numbers = np.where(view.states >= 0, view.lower, view.values)
    buckets = np.floor((numbers - view.lower) / width) if width > 0 else np.zeros(len(numbers))
    inside = (buckets >= 0) & (buckets < BUCKETS)
    codes: Ints = np.where(inside, buckets, OUT_OF_RANGE).astype(np.int64)
    return np.where(view.states >= 0, OUT_OF_RANGE + 1 + view.states, codes)


def cell_codes(rows: Rows, name: str) -> Ints:
    """The scorer's code of each row of a column."""
    view = number_view(rows, name)
    return rows.codes[name].astype(np.int64) if view is None else bucket_codes(view)


def densities(parts: Sequence[Rows], columns: Sequence[str], cache: Mapping[str, Sequence[Ints]]) -> list[Floats]:
    """Shares of the cells of these columns in every table, over all cells that occur in some of them."""
    sizes = [max(int(codes.max()) for codes in cache[name]) + 1 for name in columns]
    indices = []
    for place in range(len(parts)):
        index = np.zeros(parts[place].count, np.int64)
        for name, size in zip(columns, sizes, strict=True):
            index = index * size + cache[name][place]
        indices.append(index)
    cells = math.prod(sizes)
    if cells <= min(MOST_DENSE_CELLS, 8 * sum(len(index) for index in indices)):
        return [np.bincount(index, minlength=cells) / len(index) for index in indices]
    _, places = np.unique(np.concatenate(indices), return_inverse=True)
    bounds = np.cumsum([0, *(part.count for part in parts)]).tolist()
    spans = itertools.pairwise(bounds)
    return [np.bincount(places[low:high], minlength=int(places.max()) + 1) / (high - low) for low, high in spans]
