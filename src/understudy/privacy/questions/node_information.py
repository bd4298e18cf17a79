"""Information gain inside a node: how far each column's table is from an even one.

Poisson regression of a node's cell counts on one column has, up to a part common to all columns,

    −AIC = 2 N (log K − entropy) − 2K = 2 (N log K + Σ n_k log n_k − N log N) − 2K.

Its increments are unbounded: h(i) = i log i − (i − 1) log(i − 1) grows like 1 + log i. So the score needs a public
bound B of the number of rows (`rows_bound`), and is made safe for tables that exceed it: beyond B the increments stay
at h(B). With D(x) = Σ_{i ≤ x} (h(B) − h(min(i, B))), a `FallingSum` with steps d(i) from d(1) = h(B) − h(1) = h(B) down
to 0,

    score = 2 (N log K + D(N) − Σ D(n_k) − K),

equal to the above whenever N ≤ B, because the parts N · h(B) and Σ n_k · h(B) cancel.

Sensitivity. One row added to a code that then holds a of N rows, 1 ≤ a ≤ N, moves the score by 2 (log K + d(N) − d(a)).
As d falls, d(N) − d(a) lies between −d(1) and 0, so the score moves by something between −2 (d(1) − log K) and 2 log K:
at most 2 max(log K, d(1) − log K), whatever the table. log K is rounded to units of 1/SCORE_UNIT once, d holds whole
numbers, so the bound is exact. It is the largest over the columns that counts. Not monotone.

No sum can wrap: codes holding more than 2³⁶/K rows count as holding that many. Adding a row then adds one row or none
to the cut table, which is a neighbour or the same.

One unit's k rows add up to k times the bound.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from understudy.counts.source import Ints
from understudy.errors import UsageError
from understudy.privacy.quality import SCORE_UNIT
from understudy.privacy.questions.falling_sum import FallingSum, Floats

__all__ = ["MOST_LEVELS", "MOST_ROWS", "NodeInformation", "information_sensitivity"]

MOST_ROWS = 2**36
MOST_LEVELS = 2**22
_CUT = 2**36


@dataclass(frozen=True, slots=True, eq=False)
class NodeInformation:
    """Which column splits each node: information gain of every column inside it, at most `rows_bound` rows in all."""

    name: str
    options: Sequence[str]
    allowed: npt.NDArray[np.bool_]
    levels: Sequence[int]
    """Codes of each option's column, occupied or not."""
    rows_bound: int
    _sensitivity: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.levels) != len(self.options):
            raise UsageError(f"select {self.name}", "needs the number of codes of every column.")
        object.__setattr__(self, "_sensitivity", information_sensitivity(self.levels, self.rows_bound))

    @property
    def columns(self) -> Sequence[str]:
        """The columns among which is chosen."""
        return self.options

    @property
    def sensitivity(self) -> Fraction:
        """The largest bound over the columns, in units of 1/SCORE_UNIT; see the module's proof."""
        return Fraction(self._sensitivity)

    @property
    def monotone(self) -> bool:
        """No: a row in a full code raises the score, one in an empty code lowers it."""
        return False

    def scores(self, exact: Mapping[str, Ints]) -> Ints:
        """The gain of each column (second axis) in each node (first axis)."""
        return np.stack([_gain(exact[name], self.rows_bound) for name in self.options], axis=1)


def information_sensitivity(levels: Sequence[int], rows_bound: int) -> int:
    """Most any column's score moves for one row, in units of 1/SCORE_UNIT.

    >>> round(information_sensitivity([2], 44821) / SCORE_UNIT, 2)
    22.03
    """
    if type(rows_bound) is not int or not 1 <= rows_bound <= MOST_ROWS:
        raise UsageError("rows_bound", f"must be a whole number from 1 to {MOST_ROWS:,}, got {rows_bound!r}.")
    if not levels or any(not 1 <= size <= MOST_LEVELS for size in levels):
        raise UsageError("information_gain", f"needs columns of 1 to {MOST_LEVELS:,} codes.")
    first = _depth(rows_bound).first
    # A column with one code carries no information, and its score could not move; 1 keeps the bound above 0.
    return 2 * max(1, *(max(_log_units(size), first - _log_units(size)) for size in levels))


def _gain(counts: Ints, rows_bound: int) -> Ints:
    levels = counts.shape[-1]
    depth = _depth(rows_bound)
    cut = np.minimum(counts, max(1, _CUT // levels))
    total = cut.sum(axis=-1)
    return np.asarray(2 * (total * _log_units(levels) + depth(total) - depth(cut).sum(axis=-1) - levels * SCORE_UNIT))


def _log_units(levels: int) -> int:
    return round(math.log(levels) * SCORE_UNIT)


@lru_cache(maxsize=8)
def _depth(rows_bound: int) -> FallingSum:
    """D for tables of at most that many rows."""

    def increment(places: Floats) -> Floats:
        before = np.maximum(places - 1.0, 1.0)
        return np.where(places < 2.0, 0.0, np.log(places) - before * np.log1p(-1.0 / np.maximum(places, 2.0)))

    top = float(increment(np.array([float(rows_bound)]))[0])

    def step(places: Floats) -> Floats:
        return np.where(places >= rows_bound, 0.0, top - increment(places))

    def total(places: Floats) -> Floats:
        reached = np.minimum(places, float(rows_bound))
        return np.asarray(reached * (top - np.log(reached)))

    return FallingSum.of(step, total, SCORE_UNIT)
