"""How well parents split a column of two codes: the score F of PrivBayes, in rows.

    F_c = −min over splits of the parents' combinations into Π₀ and Π₁ of (n/2 − C₀)₊ + (n/2 − C₁)₊,

with C_x the rows of code x whose combination lies in Π_x. F_c = n·F of Zhang et al. (2017); 0 is best (the parents
determine a balanced column), −n/2 is what no parents at all give.

Sensitivity for adding or removing one row. Take a fixed split and add a row of code x whose combination lies in Π_y.
Both halves n/2 grow by ½. If y = x, C_x grows by 1: the term of x falls by 0 to ½, the other rises by 0 to ½, their
sum moves by −½ to ½. If y ≠ x, both terms rise by 0 to ½ each, their sum by 0 to 1. So the sum of every split, and with
it their minimum, moves by −½ to 1, and F_c by −1 to ½. Adding n/4, the same for all options, centres that:

    score = F_c + n/4        moves by −¾ to ¾.

In score units it is SCORE_UNIT/4 times the integer n − 2·min((n − 2C₀)₊ + (n − 2C₁)₊), so nothing is rounded and the
bound ¾ · SCORE_UNIT is exact; F_c itself moves by at most 1. Not monotone. Replacing one of n rows, n public, moves F
by at most 1/n, as published.

The minimum. Any sum is at least n − C₀ − C₁ ≥ n − Σ_π max(c_0π, c_1π); the split by majority reaches that if neither
C exceeds n/2. Otherwise dynamic programming over the combinations that hold both codes, with the captured rows of
the rarer code as state, finds the largest C of the other code for each state: exact, in integers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from understudy.compiled import compiled
from understudy.counts.source import Ints
from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.privacy.quality import SCORE_UNIT
from understudy.privacy.questions.family import Family, FamilyTables, Levels, penalised

__all__ = ["BinaryFit"]


@dataclass(frozen=True, slots=True, eq=False)
class BinaryFit:
    """A choice among families with a child of two codes by F."""

    name: str
    options: Sequence[Family]
    domain: Domain
    coarser: Levels = field(default_factory=dict)
    penalties: Sequence[float] = ()

    def __post_init__(self) -> None:
        for family in self.options:
            if self.domain.sizes[family.child] != 2:
                raise UsageError(
                    f"select {self.name}",
                    f"score F needs children of two codes, {family.child!r} has others.",
                    "Use R.",
                )

    @property
    def cliques(self) -> Sequence[Clique]:
        """The table of every family, once."""
        return list(dict.fromkeys(self.domain.clique(family.columns) for family in self.options))

    @property
    def sensitivity(self) -> Fraction:
        """Three quarters of a row; see the module's proof."""
        return Fraction(3 * SCORE_UNIT, 4)

    @property
    def monotone(self) -> bool:
        """No: a row can raise or lower it."""
        return False

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        """F_c + n/4 of each family in score units, less its penalty (public, in rows)."""
        tables = FamilyTables(self.domain, self.coarser)
        found = (_score(tables.table(family, exact[tables.clique(family)])) for family in self.options)
        return penalised(self.name, found, self.penalties, len(self.options))


def _score(table: Ints) -> int:
    total = int(table.sum())
    return (total - 2 * _smallest(table, total)) * (SCORE_UNIT // 4)


def _smallest(table: Ints, total: int) -> int:
    """min over splits of (n − 2C₀)₊ + (n − 2C₁)₊."""
    majority = table[:, 0] >= table[:, 1]
    captured = (int(table[majority, 0].sum()), int(table[~majority, 1].sum()))
    if 2 * max(captured) <= total:
        return 2 * (total - sum(captured))
    # Combinations that hold one code only belong to it; the rest is a knapsack over the rarer code.
    mixed = table[(table[:, 0] > 0) & (table[:, 1] > 0)]
    pure = [int(table[table[:, 1 - code] == 0, code].sum()) for code in (0, 1)]
    rarer = int(mixed[:, 1].sum() < mixed[:, 0].sum())
    weights, gains = np.ascontiguousarray(mixed[:, rarer]), np.ascontiguousarray(mixed[:, 1 - rarer])
    best = _best(weights, gains, int(weights.sum()))
    states = np.flatnonzero(best >= 0)
    first = np.maximum(total - 2 * (pure[rarer] + states), 0)
    second = np.maximum(total - 2 * (pure[1 - rarer] + best[states]), 0)
    return int((first + second).min())


@compiled()  # pragma: no cover
def _best(weights: Ints, gains: Ints, most: int) -> Ints:
    """For each number of rows captured of one code, the most rows of the other; −1 where it cannot be."""
    best = np.full(most + 1, -1, np.int64)
    best[0] = 0
    reached = 0
    for item in range(weights.size):
        weight, gain = weights[item], gains[item]
        for state in range(reached + weight, -1, -1):
            stay = best[state] + gain if state <= reached and best[state] >= 0 else -1
            take = best[state - weight] if state >= weight and best[state - weight] >= 0 else -1
            best[state] = max(stay, take)
        reached += weight
    return best
