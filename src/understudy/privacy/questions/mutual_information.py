"""Mutual information of a child and its parents, in bits times rows: the score I of PrivBayes.

    n·I = Σ f(c_xπ) − Σ f(c_x) − Σ f(c_π) + f(n),        f(t) = t log₂ t

Sensitivity for adding or removing one row. Let g(t) = f(t + 1) − f(t), which is 0 at 0 and rises. A row added at
(x, π) changes n·I by g(c_xπ) − g(c_x) − g(c_π) + g(n). Because c_xπ ≤ c_x and c_π ≤ n,

    −g(c_x) ≤ g(c_xπ) − g(c_x) ≤ g(c_xπ) − g(c_x) − g(c_π) + g(n) ≤ g(n) − g(c_π) ≤ g(n),

so n·I moves by at most g(n) = log₂(n + 1) + n log₂(1 + 1/n), and that is reached (a new row with a new code of both).
It grows with n, which is private; and I itself, without the factor n, moves by a whole bit where n is small. So f is
replaced by a function that agrees with it up to a public number of rows N and goes on as a straight line beyond:
then g(t) becomes min(g(t), g(N)), still rising from 0, the argument is unchanged, and the bound is g(N) for tables of
any size. For n ≤ N the score is n·I; for more rows it is a weaker measure of dependence and as private.

Integers. f is piecewise linear between whole counts: slope G_i on the i-th piece, with integers 0 = G_0 ≤ G_1 ≤ … ≤
G_last (g in score units, rounded, then made to rise; pieces have one row up to 2¹⁶ rows and a relative width of 2⁻¹⁵
above). Only 0 ≤ G, and that it rises, enter the argument above, so the bound G_last holds exactly, whatever the
rounding. Sums are exact: in 64 bits while n · G_last < 2⁶², in Python's integers beyond.

Not monotone: a row can raise or lower it. Replacing one of n rows, with n public, moves I by at most the published
2/n log₂((n+1)/2) + (n−1)/n log₂((n+1)/(n−1)); we do not use it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np

from understudy.compiled import compiled
from understudy.counts.source import Ints
from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.privacy.quality import SCORE_UNIT
from understudy.privacy.questions.family import Family, FamilyTables, Levels, penalised

__all__ = ["Information"]

_FINE = 16
_PIECES = 2 ** (_FINE - 1)
_MOST_ROWS = 2**40
_SAFE = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class Information:
    """A choice among families by n·I in bits; `rows` is the public number N up to which it is exact."""

    name: str
    options: Sequence[Family]
    domain: Domain
    rows: int
    coarser: Levels = field(default_factory=dict)
    penalties: Sequence[float] = ()

    def __post_init__(self) -> None:
        if type(self.rows) is not int or not 1 <= self.rows <= _MOST_ROWS:
            raise UsageError(f"select {self.name}", f"rows must be a whole number from 1 to {_MOST_ROWS:,}.")

    @property
    def cliques(self) -> Sequence[Clique]:
        """The table of every family, once."""
        return list(dict.fromkeys(self.domain.clique(family.columns) for family in self.options))

    @property
    def sensitivity(self) -> Fraction:
        """The last slope, g(N) in score units; see the module's proof."""
        return Fraction(int(_curve(self.rows)[1][-1]))

    @property
    def monotone(self) -> bool:
        """No: a row can raise or lower it."""
        return False

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        """n·I of each family in score units, less its penalty (public, in bits times rows)."""
        tables = FamilyTables(self.domain, self.coarser)
        found = (_information(tables.table(family, exact[tables.clique(family)]), self.rows) for family in self.options)
        return penalised(self.name, found, self.penalties, len(self.options))


@lru_cache(maxsize=4)
def _curve(rows: int) -> tuple[Ints, Ints, Ints]:
    """Where the pieces of f begin, their slopes (rising from 0), and f at their beginnings; the last has no end."""
    starts = [np.arange(min(rows + 1, 2**_FINE), dtype=np.int64)]
    octave = _FINE
    while 2**octave <= rows:
        starts.append(2**octave + np.arange(_PIECES, dtype=np.int64) * 2 ** (octave - _FINE + 1))
        octave += 1
    begins = np.concatenate(starts)
    begins = begins[begins <= rows]
    counts = np.maximum(begins, 1).astype(np.float64)
    growth = np.log2(counts + 1.0) + counts * np.log1p(1.0 / counts) / math.log(2.0)
    slopes = np.rint(np.where(begins > 0, growth, 0.0) * SCORE_UNIT).astype(np.int64)
    slopes = np.maximum.accumulate(slopes)
    values = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(slopes[:-1] * np.diff(begins))])
    return begins, slopes, values


def _information(table: Ints, rows: int) -> int:
    begins, slopes, values = _curve(rows)
    total = int(table.sum())
    if total * int(slopes[-1]) < _SAFE:
        return int(_sums(table, begins, slopes, values))
    parts = [table.ravel(), table.sum(axis=0), table.sum(axis=1), np.array([total])]
    found = [sum(_at(int(count), begins, slopes, values) for count in part) for part in parts]
    return found[0] - found[1] - found[2] + found[3]


def _at(count: int, begins: Ints, slopes: Ints, values: Ints) -> int:
    place = int(np.searchsorted(begins, count, side="right")) - 1
    return int(values[place]) + (count - int(begins[place])) * int(slopes[place])


@compiled()  # pragma: no cover
def _f(count: int, begins: Ints, slopes: Ints, values: Ints) -> int:
    """f of a count; the piece is found from its leading bits."""
    place = count
    if count >= 2**_FINE:
        octave = _FINE
        while count >> (octave + 1):
            octave += 1
        place = 2**_FINE + (octave - _FINE) * _PIECES + ((count - (1 << octave)) >> (octave - _FINE + 1))
    place = min(place, begins.size - 1)
    return values[place] + (count - begins[place]) * slopes[place]  # type: ignore[no-any-return]


@compiled()  # pragma: no cover
def _sums(table: Ints, begins: Ints, slopes: Ints, values: Ints) -> int:
    combinations, codes = table.shape
    ofchild = np.zeros(codes, np.int64)
    found, total = 0, 0
    for combination in range(combinations):
        ofparents = 0
        for code in range(codes):
            count = table[combination, code]
            ofchild[code] += count
            ofparents += count
            found += _f(count, begins, slopes, values)
        found -= _f(ofparents, begins, slopes, values)
        total += ofparents
    for code in range(codes):
        found -= _f(ofchild[code], begins, slopes, values)
    return found + _f(total, begins, slopes, values)  # type: ignore[no-any-return]
