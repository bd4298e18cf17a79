"""How far columns are from independent, in rows: the scores R (a child and its parents) and InDif (a pair).

For counts c of a child x and its parents' combination π, with sums c_x, c_π and their total n (0 if n = 0):

    InDif = Σ |c_xπ − c_x c_π / n|        R = InDif / 2

R is half the L1 distance of Zhang et al. (PrivBayes, 2017) times n; InDif is the score of PrivSyn (Zhang et al. 2021).

Sensitivity for adding or removing one row: InDif moves by less than 4, R by less than 2. Proof. Let p = (c_x)/n and
q = (c_π)/n before a row with codes (x*, π*) is added, e and e' the unit vectors of x* and π*. The table
T = c − n·p·qᵀ becomes

    T + e e'ᵀ − (n p + e)(n q + e')ᵀ/(n + 1) + n p qᵀ  =  T + n/(n + 1) · (e − p)(e' − q)ᵀ.

‖(e − p)(e' − q)ᵀ‖₁ = ‖e − p‖₁ ‖e' − q‖₁ ≤ 2 · 2, so ‖T‖₁ moves by at most 4n/(n + 1) < 4. From an empty table it does
not move at all (T = 0 for one row). The bound cannot be lowered: all n rows in one cell, the new row in another row and
column of the table, gives 4n/(n + 1). ∎

Integers. n · InDif = S = Σ |n c_xπ − c_x c_π| is an integer, computed without rounding: in 64 bits while n ≤ 2³⁰ (then
S ≤ 2n² ≤ 2⁶¹), else in 128. The score is ⌊SCORE_UNIT · S / n⌋ (for R: over 2n), rounded once. If a number moves by
less than an integer D, its floor moves by at most D: so the integer scores move by at most 4 · SCORE_UNIT and
2 · SCORE_UNIT, rounding included. Scores are cut at 2⁶², which takes no two of them further apart; counts are cut so
that n ≤ 2⁶² (see `family.py`). n is the sum of the table itself and never leaves.

A row can raise one score and lower another (a row in line with the others lowers T where it was positive): not
monotone. Replacing a row is removing one and adding one, so it moves R by less than 4 rows by this proof; the
published bound for R/n, 3/n + 2/n², is lower.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.counts.source import Ints
from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.privacy.quality import SCORE_UNIT
from understudy.privacy.questions.family import LARGEST_SCORE, Family, FamilyTables, Levels, penalised

__all__ = ["Dependence", "IndependenceGap"]

Words = npt.NDArray[np.uint64]

_NARROW_TOTAL = 2**30
_HALF = 32


@dataclass(frozen=True, slots=True, eq=False)
class Dependence:
    """A choice among families by R: half of how many rows child and parents are away from independent."""

    name: str
    options: Sequence[Family]
    domain: Domain
    coarser: Levels = field(default_factory=dict)
    penalties: Sequence[float] = ()

    @property
    def cliques(self) -> Sequence[Clique]:
        """The table of every family, once."""
        return list(dict.fromkeys(self.domain.clique(family.columns) for family in self.options))

    @property
    def sensitivity(self) -> Fraction:
        """Two rows; see the module's proof."""
        return Fraction(2 * SCORE_UNIT)

    @property
    def monotone(self) -> bool:
        """No: a row can bring a table closer to independent or take it away."""
        return False

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        """⌊R⌋ of each family in score units, less its penalty (public, in rows)."""
        tables = FamilyTables(self.domain, self.coarser)
        found = (_gap(tables.table(family, exact[tables.clique(family)]), 2) for family in self.options)
        return penalised(self.name, found, self.penalties, len(self.options))


@dataclass(frozen=True, slots=True, eq=False)
class IndependenceGap:
    """InDif of pairs of columns: how many rows, counted twice, a pair is away from independent."""

    name: str
    options: Sequence[Clique]
    domain: Domain

    def __post_init__(self) -> None:
        for clique in self.options:
            if len(clique) != 2:
                raise UsageError(f"select {self.name}", f"needs pairs of columns, got {' × '.join(clique) or 'none'}.")

    @property
    def cliques(self) -> Sequence[Clique]:
        """The same pairs."""
        return self.options

    @property
    def sensitivity(self) -> Fraction:
        """Four rows; see the module's proof."""
        return Fraction(4 * SCORE_UNIT)

    @property
    def monotone(self) -> bool:
        """No: a row can bring a table closer to independent or take it away."""
        return False

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        """⌊InDif⌋ of each pair in score units."""
        tables = FamilyTables(self.domain)
        families = (Family(pair[1], (pair[0],)) for pair in self.options)
        found = (_gap(tables.table(family, exact[tables.clique(family)]), 1) for family in families)
        return np.fromiter(found, dtype=np.int64, count=len(self.options))


def _gap(table: Ints, parts: int) -> int:
    """⌊SCORE_UNIT · Σ|c − c_x c_π/n| / parts⌋ of a table of parents × child."""
    total = int(table.sum())
    if not total:
        return 0
    if total <= _NARROW_TOTAL:
        apart = int(_apart(table))
    else:
        high, low = _apart_wide(table.astype(np.uint64))
        apart = (int(high) << 64) + int(low)
    return min(LARGEST_SCORE, SCORE_UNIT * apart // (parts * total))


@compiled()  # pragma: no cover
def _apart(table: Ints) -> int:
    """Σ |n c_xπ − c_x c_π|; all fits in 64 bits for n ≤ 2³⁰."""
    combinations, codes = table.shape
    ofchild = np.zeros(codes, np.int64)
    total = 0
    for combination in range(combinations):
        for code in range(codes):
            ofchild[code] += table[combination, code]
    for code in range(codes):
        total += ofchild[code]
    apart = 0
    for combination in range(combinations):
        ofparents = 0
        for code in range(codes):
            ofparents += table[combination, code]
        if ofparents:
            for code in range(codes):
                apart += abs(total * table[combination, code] - ofparents * ofchild[code])
    return apart


@compiled()  # pragma: no cover
def _product(first: np.uint64, second: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The product of two 64-bit numbers as high and low word."""
    half, mask = np.uint64(_HALF), np.uint64(2**_HALF - 1)
    low = (first & mask) * (second & mask)
    across = (first >> half) * (second & mask) + (low >> half)
    other = (first & mask) * (second >> half) + (across & mask)
    high = (first >> half) * (second >> half) + (across >> half) + (other >> half)
    return high, (other << half) | (low & mask)


@compiled()  # pragma: no cover
def _apart_wide(table: Words) -> tuple[np.uint64, np.uint64]:
    """The same in two words: n ≤ 2⁶², so every product is below 2¹²⁴ and their sum below 2¹²⁶."""
    combinations, codes = table.shape
    ofchild = np.zeros(codes, np.uint64)
    total = np.uint64(0)
    for combination in range(combinations):
        for code in range(codes):
            ofchild[code] += table[combination, code]
            total += table[combination, code]
    high, low = np.uint64(0), np.uint64(0)
    for combination in range(combinations):
        ofparents = np.uint64(0)
        for code in range(codes):
            ofparents += table[combination, code]
        for code in range(codes):
            seen_high, seen_low = _product(total, table[combination, code])
            even_high, even_low = _product(ofparents, ofchild[code])
            if seen_high < even_high or (seen_high == even_high and seen_low < even_low):
                seen_high, seen_low, even_high, even_low = even_high, even_low, seen_high, seen_low
            borrowed = np.uint64(1) if seen_low < even_low else np.uint64(0)
            gap_low = seen_low - even_low
            gap_high = seen_high - even_high - borrowed
            low += gap_low
            high += gap_high + (np.uint64(1) if low < gap_low else np.uint64(0))
    return high, low
