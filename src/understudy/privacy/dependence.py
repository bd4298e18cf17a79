"""Scores of dependence: how far a column is from independent of its parents, in rows.

`FallingSum`: whole-number sums H(x) = h(1) + … + h(x) of counts, whose steps never rise
----------------------------------------------------------------------------------------
Scores of nodes are sums of such functions of counts. Their sensitivity is proved from two facts about the whole numbers
themselves, not about the real function behind them: every step h(i) lies between 0 and h(1), and h(i + 1) ≤ h(i). Both
are forced on the numbers when they are built (a running minimum, cut at 0), so floats may find the numbers and may err:
an error makes a score less accurate and never a bound wrong.

Up to 2¹⁶ every step is its own number. Beyond, a step is the average over a stretch of 1/256 of the next lower power of
two, rounded down; averages of falling steps fall. Beyond 2⁴⁰ the steps are 0.

`Family`: a column and the parents it may depend on, and the counts of the two against each other
-------------------------------------------------------------------------------------------------
A parent may be taken at a coarser level: several of its codes then count as one. Levels are public lists of code
groups, so a row still falls in exactly one cell of the table of child and parents, and adding a row moves that cell by
one and no other. What a score proves about tables moved in one cell by one therefore holds at every level.

Penalties are public and subtracted from finished scores as whole score units; that moves no score between neighbours.

Counts are cut at 2⁶² divided by the (public) number of counted cells, so that no sum of them can wrap; a cut table
moves by one cell by one, or not at all.

The scores R (a child and its parents) and InDif (a pair): how far columns are from independent, in rows
--------------------------------------------------------------------------------------------------------
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
that n ≤ 2⁶² (see `Family`). n is the sum of the table itself and never leaves.

A row can raise one score and lower another (a row in line with the others lowers T where it was positive): not
monotone. Replacing a row is removing one and adding one, so it moves R by less than 4 rows by this proof; the
published bound for R/n, 3/n + 2/n², is lower.

The score F of PrivBayes: how well parents split a column of two codes, in rows
-------------------------------------------------------------------------------
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

The score I of PrivBayes: mutual information of a child and its parents, in bits times rows
-------------------------------------------------------------------------------------------
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

import abc
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np

from understudy.arrays import Floats, Ints, Words
from understudy.compiled import compiled
from understudy.domain import SCORE_UNIT, Clique, Domain
from understudy.errors import UsageError

_EXACT = 2**16
_PER_OCTAVE = 256
_OCTAVES = 24


@dataclass(frozen=True, slots=True, eq=False)
class FallingSum:
    """H(x) for every whole x ≥ 0: values at 0, 1, …, 2¹⁶, then straight lines between further places."""

    places: Ints
    values: Ints
    steps: Ints
    """The step that holds from each place to the next; the last is 0 and holds for ever."""

    @classmethod
    def of(cls, step: Callable[[Floats], Floats], total: Callable[[Floats], Floats], unit: int) -> "FallingSum":
        """H in units of 1/`unit`, from h(i) and Σ_{i ≤ x} h(i) as real functions."""
        near = np.arange(1, _EXACT + 1, dtype=np.float64)
        octaves = [2**16 * 2**octave // _PER_OCTAVE * np.arange(_PER_OCTAVE) for octave in range(_OCTAVES)]
        far = np.concatenate([2 ** (16 + octave) + part for octave, part in enumerate(octaves)] + [[2**40]])
        far = far.astype(np.int64)
        sums = total(far.astype(np.float64))
        # Floats may find these numbers. The next line forces on them what the bounds are proved from: they fall, and
        # not below 0.
        wanted = np.concatenate([np.rint(step(near) * unit), np.floor(np.diff(sums) * unit / np.diff(far))])
        steps = np.append(np.maximum(np.minimum.accumulate(wanted), 0.0), 0.0).astype(np.int64)
        places = np.concatenate([np.arange(_EXACT, dtype=np.int64), far])
        values = np.concatenate([np.zeros(1, np.int64), np.cumsum(steps[:-1] * np.diff(places))])
        return cls(places, values, steps)

    @property
    def first(self) -> int:
        """h(1), the largest step."""
        return int(self.steps[0])

    def __call__(self, counts: Ints) -> Ints:
        """H of every count; counts below 0 do not occur."""
        before = np.searchsorted(self.places, counts, side="right") - 1
        reach = np.minimum(counts, self.places[-1]) - self.places[before]
        return np.asarray(self.values[before] + self.steps[before] * reach)


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
    """Turns exact counts of cliques into tables of parents × child; made once per query."""

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
        # Cut by a public number before anything is added up. A cut table still moves by one in one cell, or not at all.
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
def _scatter(counts: Ints, codes: Ints, steps: Ints, most: int, found: Ints) -> None:
    """Adds every count (cut at `most`) to the place that the codes of its cell sum up to."""
    width = codes.size
    code, start = np.zeros(width, np.int64), np.zeros(width, np.int64)
    for column in range(1, width):
        start[column] = start[column - 1] + codes[column - 1]
    last, across = start[width - 1], codes[width - 1]
    place = 0  # of the codes of all columns but the last, whose cells lie side by side
    for column in range(width - 1):
        place += steps[start[column]]
    for cell in range(0, counts.size, across):
        for one in range(across):
            found[place + steps[last + one]] += min(counts[cell + one], most)
        column = width - 2
        while column >= 0:  # the next codes: the last column but one moves on, those that end begin anew
            place -= steps[start[column] + code[column]]
            code[column] += 1
            if code[column] < codes[column]:
                place += steps[start[column] + code[column]]
                break
            code[column] = 0
            place += steps[start[column]]
            column -= 1


class _ByFamily(abc.ABC):
    """What the choices among families have in common."""

    __slots__ = ()
    name: str
    options: Sequence[Family]
    domain: Domain
    coarser: Levels
    penalties: Sequence[float]

    @abc.abstractmethod
    def _score(self, table: Ints) -> int:
        """The score of a table of parents × child."""

    @property
    def rule(self) -> tuple[object, ...]:
        """The kind of score, the codes, their coarser levels, and what the kind adds."""
        return (type(self), self.domain, self.coarser if self.coarser else None, *self._settings())

    def _settings(self) -> tuple[object, ...]:
        """Numbers that the score depends on."""
        return ()

    @property
    def cliques(self) -> Sequence[Clique]:
        """The table of every family, once."""
        return self.cliques_of(self.options)

    @property
    def monotone(self) -> bool:
        """No: a row can raise or lower each of these scores."""
        return False

    def cliques_of(self, families: Sequence[Family]) -> Sequence[Clique]:
        """The tables of these, each once."""
        return list(dict.fromkeys(self.domain.clique(family.columns) for family in families))

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        """The score of each family in score units, less its penalty (public)."""
        return self.penalised(self.unpenalised(self.options, exact))

    def unpenalised(self, families: Sequence[Family], exact: Mapping[Clique, Ints]) -> list[int]:
        """The score of each of these families."""
        tables = FamilyTables(self.domain, self.coarser)
        return [self._score(tables.table(family, exact[tables.clique(family)])) for family in families]

    def penalised(self, unpenalised: Sequence[int]) -> Ints:
        """The same less the penalties of all options."""
        return penalised(self.name, unpenalised, self.penalties, len(self.options))


_NARROW_TOTAL = 2**30
_HALF = 32


@dataclass(frozen=True, slots=True, eq=False)
class Dependence(_ByFamily):
    """A choice among families by R: half of how many rows child and parents are away from independent."""

    name: str
    options: Sequence[Family]
    domain: Domain
    coarser: Levels = field(default_factory=dict)
    penalties: Sequence[float] = ()

    @property
    def sensitivity(self) -> Fraction:
        """Two rows; see the module's proof."""
        return Fraction(2 * SCORE_UNIT)

    def _score(self, table: Ints) -> int:
        """⌊R⌋; penalties are in rows."""
        return _gap(table, 2)


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
        return self.scores_of(np.arange(len(self.options), dtype=np.int64), exact)

    def scores_of(self, places: Ints, exact: Mapping[Clique, Ints]) -> Ints:
        """The same for the pairs at these places: each is scored by its own table alone."""
        pairs = (self.options[place] for place in places.tolist())
        found = (_gap(self._table(pair, exact[pair]), 1) for pair in pairs)
        return np.fromiter(found, dtype=np.int64, count=places.size)

    def _table(self, pair: Clique, counts: Ints) -> Ints:
        """The counts of a pair in its shape, cut as those of families are."""
        shape = self.domain.shape(pair)
        if counts.size != math.prod(shape):
            raise UsageError(f"select {self.name}", "the counts do not have the cells of their table.")
        return np.minimum(counts, LARGEST_TOTAL // counts.size).reshape(shape)


def _gap(table: Ints, parts: int) -> int:
    """⌊SCORE_UNIT · Σ|c − c_x c_π/n| / parts⌋ of a table of parents × child."""
    total = int(table.sum())
    if not total:
        return 0
    # n ≤ 2³⁰ keeps Σ|n·c − c_x·c_π| ≤ 2n² within 2⁶¹. Which of the two ways is taken changes no digit of the result.
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
    # Once more in this file, for the reason given in `randomizer.py`.
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


@dataclass(frozen=True, slots=True, eq=False)
class BinaryFit(_ByFamily):
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
    def sensitivity(self) -> Fraction:
        """Three quarters of a row; see the module's proof."""
        return Fraction(3 * SCORE_UNIT, 4)

    def _score(self, table: Ints) -> int:
        """F_c + n/4; penalties are in rows."""
        total = int(table.sum())
        # In quarters of a row, where everything is whole: a bound of ¾ would not survive rounding.
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
        # Downwards, so that best[state − weight] is still without this combination.
        for state in range(reached + weight, -1, -1):
            stay = best[state] + gain if state <= reached and best[state] >= 0 else -1
            take = best[state - weight] if state >= weight and best[state - weight] >= 0 else -1
            best[state] = max(stay, take)
        reached += weight
    return best


_FINE = 16
_PIECES = 2 ** (_FINE - 1)
_MOST_ROWS = 2**40
_SAFE = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class Information(_ByFamily):
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
    def sensitivity(self) -> Fraction:
        """The last slope, g(N) in score units; see the module's proof."""
        return Fraction(int(_curve(self.rows)[1][-1]))

    def _settings(self) -> tuple[object, ...]:
        """The number N."""
        return (self.rows,)

    def _score(self, table: Ints) -> int:
        """n·I; penalties are in bits times rows."""
        return _information(table, self.rows)


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
    # Two rounded slopes may come out in the wrong order; the bound is proved for slopes that never fall.
    slopes = np.maximum.accumulate(slopes)
    values = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(slopes[:-1] * np.diff(begins))])
    return begins, slopes, values


def _information(table: Ints, rows: int) -> int:
    begins, slopes, values = _curve(rows)
    total = int(table.sum())
    # The private total decides nothing here but how one and the same whole number is added up.
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
