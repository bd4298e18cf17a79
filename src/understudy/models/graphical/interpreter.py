"""The compiled half of propagation: a few loops over tables, told by integer arrays which tables to touch.

A model's structure is data to these kernels, not code: they are compiled once per machine, whatever the junction tree
is. Tables live side by side in one array of doubles. An operation walks a bag's cells in memory order as `outer` runs
of `inner` cells; `offsets` says where in the smaller table each run belongs, and the operation's variant says whether
the run moves along the smaller table (ALONG) or stays on one of its cells (ACROSS).

The compiler's cache does not notice that a kernel called from another file has changed: after an edit here (or of
`loss.evaluate`) remove this folder's `__pycache__`.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled

__all__ = [
    "ACROSS",
    "ALONG",
    "CONDITION",
    "COPY",
    "DIVIDE",
    "MULTIPLY",
    "PRODUCT",
    "SCALE",
    "SUM",
    "Operation",
    "run",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

COPY, DIVIDE, SCALE = 0, 1, 2
MULTIPLY, PRODUCT, SUM, CONDITION = 4, 6, 8, 10
ACROSS, ALONG = 0, 1

_FAINT = 1e-280


class Operation(NamedTuple):
    """One row of a program: what to do, the large table, the small one, how to walk, and a third table."""

    code: int
    large: int
    small: int
    outer: int
    inner: int
    offsets: int
    small_size: int
    third: int


@compiled()  # pragma: no cover
def _multiply(row, offsets, data, source):  # type: ignore[no-untyped-def]
    """large = source · small."""
    _, large, small, outer, inner, at, _, _ = row
    for o in range(outer):
        start = large + o * inner
        result = data[start : start + inner]
        factor = data[source + o * inner : source + o * inner + inner]
        if row[0] & 1:
            place = small + offsets[at + o]
            other = data[place : place + inner]
            for j in range(inner):
                result[j] = factor[j] * other[j]
        else:
            value = data[small + offsets[at + o]]
            for j in range(inner):
                result[j] = factor[j] * value


@compiled()  # pragma: no cover
def _sum(row, offsets, data):  # type: ignore[no-untyped-def]
    """small = sums of large."""
    _, large, small, outer, inner, at, size, _ = row
    for j in range(size):
        data[small + j] = 0.0
    for o in range(outer):
        cells = data[large + o * inner : large + o * inner + inner]
        if row[0] & 1:
            place = small + offsets[at + o]
            sums = data[place : place + inner]
            for j in range(inner):
                sums[j] += cells[j]
        else:
            total = 0.0
            for j in range(inner):
                total += cells[j]
            data[small + offsets[at + o]] += total


@compiled()  # pragma: no cover
def _condition(row, offsets, data, floor):  # type: ignore[no-untyped-def]
    """large = third / small where small has mass; elsewhere large stays. A positive cell stays above the floor."""
    _, large, small, outer, inner, at, _, third = row
    for o in range(outer):
        result = data[large + o * inner : large + o * inner + inner]
        joint = data[third + o * inner : third + o * inner + inner]
        for j in range(inner):
            mass = data[small + offsets[at + o] + (j if row[0] & 1 else 0)]
            if mass > _FAINT and result[j] > 0.0:
                result[j] = max(joint[j] / mass, floor)


@compiled()  # pragma: no cover
def _divide(row, data):  # type: ignore[no-untyped-def]
    """large = large / small, with 0/0 = 0."""
    for j in range(row[4]):
        value = data[row[2] + j]
        data[row[1] + j] = data[row[1] + j] / value if value > 0.0 else 0.0


@compiled()  # pragma: no cover
def _scale(row, data):  # type: ignore[no-untyped-def]
    """large = large / its largest cell."""
    most = 0.0
    for j in range(row[4]):
        most = max(most, data[row[1] + j])
    if most > 0.0:
        for j in range(row[4]):
            data[row[1] + j] /= most


@compiled()  # pragma: no cover
def run(program: Ints, offsets: Ints, data: Floats, floor: float) -> None:
    """Carries out the operations in order; `floor` is the least value a positive conditional cell may take."""
    for step in range(program.shape[0]):
        row = program[step]
        kind = row[0] & ~1
        if kind == MULTIPLY:
            _multiply(row, offsets, data, row[1])
        elif kind == PRODUCT:
            _multiply(row, offsets, data, row[7])
        elif kind == SUM:
            _sum(row, offsets, data)
        elif kind == CONDITION:
            _condition(row, offsets, data, floor)
        elif row[0] == COPY:
            for j in range(row[4]):
                data[row[1] + j] = data[row[2] + j]
        elif row[0] == DIVIDE:
            _divide(row, data)
        else:
            _scale(row, data)
