"""Kinds of numbers by divisibility: of which kind a number is, how many of a kind a stretch holds, and drawing one.

The kind of a number is the place of the first divisor that it is a multiple of, or the number of divisors if there is
none. On a grid of values the kinds repeat with a period that divides the least common multiple of the divisors, so
values of a kind are counted, ranked and found by arithmetic, however long the stretch is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from understudy.codec.support import Grid

__all__ = ["Residues", "kinds_of"]

Ints = npt.NDArray[np.int64]


def kinds_of(values: Ints, divisors: Sequence[int]) -> Ints:
    """The kind of each number.

    >>> kinds_of(np.array([200, 40, 25, 7]), (100, 20, 5)).tolist()
    [0, 1, 2, 3]
    """
    kinds = np.full(len(values), len(divisors), dtype=np.int64)
    for kind in range(len(divisors) - 1, -1, -1):
        kinds[values % divisors[kind] == 0] = kind
    return kinds


@dataclass(frozen=True, slots=True, eq=False)
class Residues:
    """The kinds along a grid: `members` holds, for each kind, its indices within the first `period` of the grid."""

    grid: Grid
    divisors: tuple[int, ...]
    period: int
    members: tuple[Ints, ...]

    @classmethod
    def of(cls, grid: Grid, divisors: Sequence[int]) -> Self:
        """The kinds of a grid of whole numbers."""
        period = math.lcm(*(divisor // math.gcd(divisor, grid.step) for divisor in divisors))
        # Only remainders matter, and those of the least common multiple cannot overflow.
        all_of = math.lcm(*divisors)
        kinds = kinds_of(grid.start % all_of + np.arange(period) * (grid.step % all_of), divisors)
        members = tuple(np.flatnonzero(kinds == kind) for kind in range(len(divisors) + 1))
        return cls(grid, tuple(divisors), period, members)

    def below(self, kind: int, indices: Ints) -> Ints:
        """How many places of a kind lie before each index of the grid; differences count those in between."""
        whole, part = np.divmod(indices, self.period)
        found: Ints = whole * self.members[kind].size + np.searchsorted(self.members[kind], part)
        return found

    def counts(self, firsts: Ints, stops: Ints, avoid: Sequence[int]) -> Ints:
        """How many values of each kind lie in each stretch [first, stop) of the grid, without those at `avoid`."""
        counts = np.stack(
            [self.below(kind, stops) - self.below(kind, firsts) for kind in range(len(self.members))], axis=1
        )
        for stretch, kind, _ in self._inside(firsts, stops, avoid):
            counts[stretch, kind] -= 1
        return counts

    def draw(
        self, firsts: Ints, stops: Ints, avoid: Sequence[int], wanted: tuple[Ints, Ints], rng: np.random.Generator
    ) -> Ints:
        """One value for each wanted (stretch, kind), evenly drawn from those there are; there must be some."""
        stretches, kinds = wanted
        indices = np.zeros(len(stretches), dtype=np.int64)
        skipped = self._inside(firsts, stops, avoid)
        room = self.counts(firsts, stops, avoid)
        for kind in range(len(self.members)):
            rows = np.flatnonzero(kinds == kind)
            if not rows.size:
                continue
            where = stretches[rows]
            ranks = self.below(kind, firsts)[where] + rng.integers(0, room[where, kind])
            # Each skipped value at or below the drawn one moves it up by one rank, lowest first.
            for stretch, other, rank in skipped:
                if other == kind:
                    ranks += (where == stretch) & (ranks >= rank)
            whole, part = np.divmod(ranks, self.members[kind].size)
            indices[rows] = whole * self.period + self.members[kind][part]
        return np.asarray(self.grid.values(indices), dtype=np.int64)

    def _inside(self, firsts: Ints, stops: Ints, avoid: Sequence[int]) -> list[tuple[int, int, int]]:
        """The stretch, kind and rank of each index to avoid that lies in a stretch, in increasing order."""
        found = []
        for index in sorted(avoid):
            stretch = int(np.searchsorted(stops, index, side="right"))
            if stretch < len(firsts) and index >= firsts[stretch]:
                place = np.array([index], dtype=np.int64)
                kind = next(k for k, members in enumerate(self.members) if index % self.period in members)
                found.append((stretch, kind, int(self.below(kind, place)[0])))
        return found
