"""Family: a column and the parents it may depend on, and the counts of the two against each other.

A parent may be taken at a coarser level: several of its codes then count as one. Levels are public lists of code
groups, so a row still falls in exactly one cell of the table of child and parents, and adding a row moves that cell by
one and no other. What a score proves about tables moved in one cell by one therefore holds at every level.

Penalties are public and subtracted from finished scores as whole score units; that moves no score between neighbours.

Counts are cut at 2⁶² divided by the (public) number of counted cells, so that no sum of them can wrap; a cut table
moves by one cell by one, or not at all.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.counts.source import Ints
from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.privacy.quality import SCORE_UNIT

__all__ = ["LARGEST_SCORE", "LARGEST_TOTAL", "Family", "FamilyTables", "Levels", "penalised"]

LARGEST_SCORE = 2**62

LARGEST_TOTAL = 2**62
"""No table handed to a score adds up to more."""

Levels = Mapping[str, Sequence[Ints]]
"""Column → its coarser levels, finest first: each gives every code of the column the number of its group."""


@dataclass(frozen=True, slots=True)
class Family:
    """A child and its parents; `levels[i]` says how coarse parent i is taken (0, or nothing: its own codes)."""

    child: str
    parents: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.child in self.parents or len(set(self.parents)) != len(self.parents):
            raise UsageError(f"family of {self.child!r}", "a column must not be its own parent, nor a parent twice.")
        if self.levels and len(self.levels) != len(self.parents):
            raise UsageError(f"family of {self.child!r}", "needs one level per parent.")

    @property
    def columns(self) -> tuple[str, ...]:
        """Child and parents."""
        return (self.child, *self.parents)

    def level(self, place: int) -> int:
        """How coarse the parent at that place is taken; 0: its own codes."""
        return self.levels[place] if self.levels else 0


class FamilyTables:
    """Turns exact counts of cliques into tables of parents × child; made once per question."""

    def __init__(self, domain: Domain, coarser: Levels | None = None) -> None:
        self._domain = domain
        self._groups: dict[tuple[str, int], tuple[Ints, int]] = {}
        for name, levels in (coarser or {}).items():
            for level, groups in enumerate(levels, start=1):
                self._groups[name, level] = (groups, int(groups.max()) + 1)
        for name, size in domain.sizes.items():
            self._groups[name, 0] = (np.arange(size, dtype=np.int64), size)

    def clique(self, family: Family) -> Clique:
        """What must be counted for the family."""
        return self._domain.clique(family.columns)

    def shape(self, family: Family) -> tuple[int, int]:
        """Combinations of the parents at their levels, and codes of the child."""
        sizes = (self._groups[name, family.level(place)][1] for place, name in enumerate(family.parents))
        return math.prod(sizes), self._domain.sizes[family.child]

    def table(self, family: Family, counts: Ints) -> Ints:
        """Counts in the shape (combinations of parents, codes of the child); parents in the family's order."""
        clique = self.clique(family)
        codes = self._domain.shape(clique)
        if counts.size != math.prod(codes):
            raise UsageError(f"family of {family.child!r}", "the counts do not have the cells of its table.")
        own, stride = self._groups[family.child, 0]
        steps = {family.child: own}
        for place in reversed(range(len(family.parents))):
            name = family.parents[place]
            groups, size = self._groups[name, family.level(place)]
            steps[name] = groups * stride
            stride *= size
        found = np.zeros(stride, dtype=np.int64)
        moves = np.concatenate([steps[name] for name in clique])
        _scatter(counts, np.array(codes, dtype=np.int64), moves, LARGEST_TOTAL // counts.size, found)
        return found.reshape(-1, own.size)


def penalised(name: str, scores: Iterable[int], penalties: Sequence[float], count: int) -> Ints:
    """Scores less their penalties (in rows, or in the score's own unit), all within ±2⁶²."""
    cuts = list(penalties) or [0.0] * count
    if len(cuts) != count or not np.isfinite(cuts).all():
        raise UsageError(f"select {name}", "needs one finite penalty per option, or none.")
    found = (
        max(-LARGEST_SCORE, min(LARGEST_SCORE, score - _units(cut))) for score, cut in zip(scores, cuts, strict=True)
    )
    return np.fromiter(found, dtype=np.int64, count=count)


def _units(penalty: float) -> int:
    whole = math.floor(penalty)
    return whole * SCORE_UNIT + round((penalty - whole) * SCORE_UNIT)


@compiled()  # pragma: no cover
def _scatter(counts: Ints, codes: Ints, steps: Ints, most: int, found: npt.NDArray[np.int64]) -> None:
    """Adds every count (cut at `most`) to the place that the codes of its cell sum up to."""
    width = codes.size
    code, start = np.zeros(width, np.int64), np.zeros(width, np.int64)
    for column in range(1, width):
        start[column] = start[column - 1] + codes[column - 1]
    place = 0
    for column in range(width):
        place += steps[start[column]]
    for cell in range(counts.size):
        if counts[cell]:
            found[place] += min(counts[cell], most)
        column = width - 1
        while column >= 0:  # the next cell: the last column moves on, those that end begin anew
            place -= steps[start[column] + code[column]]
            code[column] += 1
            if code[column] < codes[column]:
                place += steps[start[column] + code[column]]
                break
            code[column] = 0
            place += steps[start[column]]
            column -= 1
