"""Scores for choosing among public options, each with the bound that makes it safe.

Score and sensitivity live in one object because they drift apart when they do not (an L2 bound fed to an L1 score is
a known leak). Every implementation is checked by brute force in the contract suite.

`MarginalError`: how far each clique's exact table is from its estimate, for choosing what to measure next
----------------------------------------------------------------------------------------------------------
    score_r = w_r · (Σ_x max(|M_r(x) − M̂_r(x)| − floor_r, 0) − penalty_r)

M_r are exact counts; the estimate M̂_r, floor, penalty and the weight w_r are public (from earlier answers). With a
floor of 0, the default, the sum is the distance ‖M_r − M̂_r‖₁; else a cell counts by what it is off beyond the floor.

Sensitivity. Everything but M_r is rounded to integers first: estimates, floors and penalties to units of 1/SCORE_UNIT
rows, weights to units of 1/WEIGHT_UNIT of the largest weight (at least one unit), so that

    score_r = W_r · (Σ_x max(|SCORE_UNIT · M_r(x) − E_r(x)| − F_r, 0) − P_r), integers W_r ≤ WEIGHT_UNIT, E_r, F_r, P_r.

One row added or removed moves one cell of M_r by one. That moves one absolute value by at most SCORE_UNIT, and what is
left of it above F_r by no more than that (cutting takes no two numbers further apart), hence the score by at most
W_r · SCORE_UNIT ≤ WEIGHT_UNIT · SCORE_UNIT, with nothing lost to rounding. Counts are cut at 2⁴² and
scores at ±2⁶², so that no product or sum can wrap; cutting never takes two numbers further apart. A row can bring a
cell closer to its estimate or take it away, in one table up and in another down: not monotone.

The score of a clique depends on its own table, estimate and public numbers alone, so it is the same number whether all
cliques are scored at once or part by part (`ScoredApart`); the estimates of a part may be worked out when it is scored.

`PublicOrPrivate`: the same choice when a public table Q of the same columns could stand in for a measurement
-------------------------------------------------------------------------------------------------------------
    private:  score_r = w_r · (Σ_x max(|M_r(x) − M̂_r(x)| − floor_r, 0) − penalty_r)
    public:   score_r = w_r · (‖M_r − M̂_r‖₁ − ‖M_r − Q_r‖₁ − penalty_r)

Sensitivity. Q_r is public and rounded to units E'_r of 1/SCORE_UNIT rows as well. A row moves one cell of M_r by one:
the first absolute value by at most SCORE_UNIT and the second by at most SCORE_UNIT, possibly in opposite directions
(the count lies between the two aims). So a public score moves by up to twice as much as a private one. Each kind is
divided by its own bound: public scores are halved. To halve integers without rounding, private ones are doubled

    private:  2 · W_r · (Σ_x max(|SCORE_UNIT · M_r(x) − E_r(x)| − F_r, 0) − P_r)
    public:       W_r · (Σ_x |SCORE_UNIT · M_r(x) − E_r(x)| − Σ_x |SCORE_UNIT · M_r(x) − E'_r(x)| − P_r)

and every score moves by at most 2 · max W · SCORE_UNIT for one row.

`StandInError`: how far the private table is from each of several stand-ins, for a choice that is paid for
----------------------------------------------------------------------------------------------------------
    score_s = − Σ_r ‖M_r − E_{s,r}‖₁ ,   r over the same public list of cliques for all stand-ins s

M_r are exact counts of the private table; E_{s,r} are the counts a stand-in has, scaled to its estimate of the number
of rows. Stand-ins must have left the curator already (released rows), so E is public.

Sensitivity. E is rounded to whole units of 1/SCORE_UNIT rows first. One row added or removed moves one cell of every
M_r by one, so every absolute value sum by at most SCORE_UNIT, and a score by at most R · SCORE_UNIT for R cliques, with
nothing lost to rounding. Scores are cut at ±2⁶², which takes no two of them further apart. A row may bring one stand-in
closer and take another away: not monotone.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from understudy.arrays import Bools, Floats, Ints
from understudy.compiled import compiled
from understudy.domain import SCORE_UNIT, Clique, Domain
from understudy.errors import UsageError

Option = TypeVar("Option", covariant=True)


class Quality(Protocol, Generic[Option]):
    """How good each option is, from exact counts."""

    @property
    def name(self) -> str:
        """What the transcript calls the choice."""
        ...

    @property
    def options(self) -> Sequence[Option]:
        """The public candidates."""
        ...

    @property
    def cliques(self) -> Sequence[Clique]:
        """What must be counted to score them."""
        ...

    @property
    def sensitivity(self) -> Fraction:
        """Most any score (in score units, rounding included) moves when one row is added or removed."""
        ...

    @property
    def monotone(self) -> bool:
        """Whether adding a row never lowers any score, or never raises any (proved in the docstring)."""
        ...

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        """One integer per option, higher is better."""
        ...


@runtime_checkable
class ScoredApart(Protocol):
    """A quality with one clique per option, in the same order, which alone decides its score.

    Then not all tables need lie in memory at a time.
    """

    def scores_of(self, places: Ints, exact: Mapping[Clique, Ints]) -> Ints:
        """The scores of the options at these places, the same numbers that `scores` has there."""
        ...


@runtime_checkable
class ScoredByFamily(Protocol):
    """A quality whose options, families of columns, come back in later choices: each is then scored once in a run.

    The score of a family before its penalty depends on the counts, on the family and on `rule` alone. A kept score is
    used only under the rule and the bound that it was computed under, so at the rate that was proved for it.
    """

    @property
    def options(self) -> Sequence[Hashable]:
        """The families."""
        ...

    @property
    def sensitivity(self) -> Fraction:
        """As of any quality."""
        ...

    @property
    def monotone(self) -> bool:
        """As of any quality."""
        ...

    @property
    def rule(self) -> tuple[object, ...]:
        """What else decides a score; compared part by part, numbers by value and all else by identity."""
        ...

    def cliques_of(self, families: Sequence[Hashable]) -> Sequence[Clique]:
        """What must be counted to score these."""
        ...

    def unpenalised(self, families: Sequence[Hashable], exact: Mapping[Clique, Ints]) -> list[int]:
        """The score of each of these before its penalty."""
        ...

    def penalised(self, unpenalised: Sequence[int]) -> Ints:
        """The scores of all options from those before their penalties, the same numbers that `scores` gives."""
        ...


PART_CELLS = 2**22
"""Cells of the tables that are counted and scored at a time, if a quality allows it (32 MiB)."""


def parts_of(domain: Domain, cliques: Sequence[Clique], most_cells: int = PART_CELLS) -> list[Ints]:
    """Places of the cliques in parts of about so many cells; one part if all of them fit. From public sizes alone.

    Cliques whose columns lie near each other come together, so that many can be summed out of one larger table.
    """
    cells = [domain.cells(clique) for clique in cliques]
    if sum(cells) <= most_cells:
        return [np.arange(len(cliques), dtype=np.int64)]
    run, number, width = {}, 0, 0
    for name, size in domain.sizes.items():
        # Runs of about √most_cells codes: pairs between two of them can then be summed out of few larger tables.
        if width and width + size > math.isqrt(most_cells):
            number, width = number + 1, 0
        run[name] = number
        width += size
    near = [tuple(run[name] for name in clique) for clique in cliques]
    parts: list[list[int]] = []
    used, last = 0, None
    for place in sorted(range(len(cliques)), key=near.__getitem__):
        if near[place] != last or used + cells[place] > most_cells:
            parts.append([])
            used, last = 0, near[place]
        parts[-1].append(place)
        used += cells[place]
    return [np.array(part, np.int64) for part in parts]


class WithinQuality(Protocol, Generic[Option]):
    """How good each option is inside every cell of a partition, from the counts of that cell alone."""

    @property
    def name(self) -> str:
        """What the transcript calls the choices."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """What is counted inside every cell."""
        ...

    @property
    def options(self) -> Sequence[Option]:
        """The public candidates, the same list for all cells."""
        ...

    @property
    def allowed(self) -> Bools:
        """Shape (cells, options): which options a cell may take, at least one each."""
        ...

    @property
    def sensitivity(self) -> Fraction:
        """Most any score of a cell (in score units, rounding included) moves when one row enters or leaves it.

        Scores of cells that the row does not lie in must not move: each row of the result may depend on the counts of
        its own cell only.
        """
        ...

    @property
    def monotone(self) -> bool:
        """Whether a row never lowers any score of its cell, or never raises any (proved in the docstring)."""
        ...

    def scores(self, exact: Mapping[str, Ints]) -> Ints:
        """Shape (cells, options), higher is better; `exact[column]` has shape (cells, codes of the column)."""
        ...


Sourced = tuple[Clique, Literal["private", "public"]]
"""A clique and where its table would come from."""

# Rounding weights to so many steps may favour a table by a thousandth; the bound holds for the rounded ones exactly.
WEIGHT_UNIT = 2**10
LARGEST_SCORE = 2**62
# 2⁴² rows in units of 2⁻²⁰ are 2⁶²: the most that a gap of one cell may come to.
_LARGEST_COUNT = 2**42
_HALF = 32
_MASK = 2**_HALF - 1


@dataclass(frozen=True, slots=True, eq=False)
class MarginalError:
    """A choice among cliques; `estimates` holds the expected counts of each, flat row-major, or works them out.

    `weights` (above 0), `penalties` and `floors` (in rows) stand in the order of `options`; without them all weigh the
    same, nothing is subtracted, and every row that a cell is off counts.
    """

    name: str
    options: Sequence[Clique]
    estimates: Mapping[Clique, Floats] | Callable[[Sequence[Clique]], Mapping[Clique, Floats]]
    weights: Sequence[float] = ()
    penalties: Sequence[float] = ()
    floors: Sequence[float] = ()
    _multipliers: tuple[int, ...] = field(init=False, repr=False)
    _offsets: tuple[int, ...] = field(init=False, repr=False)
    _floors: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        multipliers, offsets = _in_units(self._where, len(self.options), self.weights, self.penalties)
        object.__setattr__(self, "_multipliers", multipliers)
        object.__setattr__(self, "_offsets", offsets)
        object.__setattr__(self, "_floors", _floors_in_units(self._where, len(self.options), self.floors))

    @property
    def cliques(self) -> Sequence[Clique]:
        """The same cliques."""
        return self.options

    @property
    def sensitivity(self) -> Fraction:
        """The largest weight times one row, in score units; see the module's proof."""
        # One bound for all options, that of the heaviest, because one rate serves the whole draw.
        return Fraction(max(self._multipliers, default=WEIGHT_UNIT) * SCORE_UNIT)

    @property
    def monotone(self) -> bool:
        """No: a row may bring a cell closer to its estimate or take it away."""
        return False

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        """One integer per clique, in score units; higher where the estimate is worse."""
        return self.scores_of(np.arange(len(self.options), dtype=np.int64), exact)

    def scores_of(self, places: Ints, exact: Mapping[Clique, Ints]) -> Ints:
        """The same for the cliques at these places."""
        cliques = [self.options[place] for place in places.tolist()]
        known = self.estimates(cliques) if callable(self.estimates) else self.estimates
        found = np.zeros(len(cliques), dtype=np.int64)
        for row, (place, clique) in enumerate(zip(places.tolist(), cliques, strict=True)):
            distance = _rows_apart(exact[clique], known[clique], self._where, self._floors[place])
            found[row] = _cut(self._multipliers[place] * (distance - self._offsets[place]))
        return found

    @property
    def _where(self) -> str:
        return f"select {self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class PublicOrPrivate:
    """A choice among cliques and, for each, between measuring it and taking the table of public data.

    `public` holds the public table of each clique that has a public option, scaled to the expected number of rows;
    `weights`, `penalties` and `floors` stand in the order of `options`, as in `MarginalError`; floors are for the
    private ones, and those of public ones are not looked at.
    """

    name: str
    options: Sequence[Sourced]
    estimates: Mapping[Clique, Floats]
    public: Mapping[Clique, Floats]
    weights: Sequence[float] = ()
    penalties: Sequence[float] = ()
    floors: Sequence[float] = ()
    _multipliers: tuple[int, ...] = field(init=False, repr=False)
    _offsets: tuple[int, ...] = field(init=False, repr=False)
    _floors: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        multipliers, offsets = _in_units(self._where, len(self.options), self.weights, self.penalties)
        object.__setattr__(self, "_multipliers", multipliers)
        object.__setattr__(self, "_offsets", offsets)
        object.__setattr__(self, "_floors", _floors_in_units(self._where, len(self.options), self.floors))

    @property
    def cliques(self) -> Sequence[Clique]:
        """Every clique once."""
        return list(dict.fromkeys(clique for clique, _ in self.options))

    @property
    def sensitivity(self) -> Fraction:
        """Twice the largest weight times one row, in score units; see the module's proof."""
        return Fraction(2 * max(self._multipliers, default=WEIGHT_UNIT) * SCORE_UNIT)

    @property
    def monotone(self) -> bool:
        """No: a row may bring a cell closer to its estimate or take it away."""
        return False

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        """One integer per option: private scores doubled, public ones as they are."""
        found = np.zeros(len(self.options), dtype=np.int64)
        for place, (clique, source) in enumerate(self.options):
            # A public score can move twice as far, so private ones are doubled instead of public ones halved: no
            # rounding.
            floor, factor = (self._floors[place], 2) if source == "private" else (0, 1)
            gain = _rows_apart(exact[clique], self.estimates[clique], self._where, floor) - self._offsets[place]
            if source == "public":
                gain -= _rows_apart(exact[clique], self.public[clique], self._where)
            found[place] = _cut(factor * self._multipliers[place] * gain)
        return found

    @property
    def _where(self) -> str:
        return f"select {self.name}"


def _in_units(
    where: str, count: int, weights: Sequence[float], penalties: Sequence[float]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Weights in units of the largest and penalties in score units, all of them integers."""
    weights = list(weights) or [1.0] * count
    penalties = list(penalties) or [0.0] * count
    if not len(weights) == len(penalties) == count:
        raise UsageError(where, "needs one weight and one penalty per clique.")
    if not np.isfinite([*weights, *penalties]).all() or any(weight <= 0 for weight in weights):
        raise UsageError(where, "needs finite penalties and finite weights above 0.")
    # Any integers from 1 to WEIGHT_UNIT will do for the proof, so floats may find them.
    largest = max(weights, default=1.0)
    multipliers = (max(1, min(WEIGHT_UNIT, round(weight / largest * WEIGHT_UNIT))) for weight in weights)
    return tuple(multipliers), tuple(round(cut) * SCORE_UNIT + _part(cut) for cut in penalties)


def _floors_in_units(where: str, count: int, floors: Sequence[float]) -> tuple[int, ...]:
    """Floors in score units, all of them integers of 0 or more."""
    floors = list(floors) or [0.0] * count
    if len(floors) != count or not all(0.0 <= floor < math.inf for floor in floors):
        raise UsageError(where, "needs one finite floor of 0 or more per clique.")
    return tuple(round(min(floor, float(_LARGEST_COUNT)) * SCORE_UNIT) for floor in floors)


def _rows_apart(exact: Ints, estimate: Floats, where: str, floor: int = 0) -> int:
    """Σ max(|exact − estimate| − floor, 0) in score units."""
    if exact.size != estimate.size:
        raise UsageError(where, "the estimates do not have the cells of their tables.")
    high, low = _distance(exact, estimate, floor)
    # Plain integers: what is multiplied and added from here on never wraps.
    return (int(high) << _HALF) + int(low)


def _cut(score: int) -> int:
    return max(-LARGEST_SCORE, min(LARGEST_SCORE, score))


def _part(penalty: float) -> int:
    """What rounding a penalty to whole rows leaves, in score units."""
    return round((penalty - round(penalty)) * SCORE_UNIT)


@compiled()  # pragma: no cover
def _distance(exact: Ints, estimate: Floats, floor: int) -> tuple[int, int]:
    """Σ max(|SCORE_UNIT · count − rounded estimate| − floor, 0) as high · 2³² + low.

    Neither sum can wrap for a table in memory: a gap is at most 2⁶² and a floor at least 0.
    """
    high, low = 0, 0
    for cell in range(exact.size):
        aim = 0
        # Cut and rounded before it meets the count, so that a wild estimate can only make a score worse, never
        # unbounded.
        if estimate[cell] > 0.0:  # not a number counts as 0
            aim = int(np.rint(min(estimate[cell], float(_LARGEST_COUNT)) * SCORE_UNIT))
        gap = max(abs(min(exact[cell], _LARGEST_COUNT) * SCORE_UNIT - aim) - floor, 0)
        high += gap >> _HALF
        low += gap & _MASK
    return high, low


@dataclass(frozen=True, slots=True, eq=False)
class StandInError:
    """A choice among named stand-ins; `estimates` holds for each the expected counts of every clique."""

    name: str
    options: Sequence[str]
    cliques: Sequence[Clique]
    estimates: Mapping[str, Mapping[Clique, Floats]]

    @property
    def sensitivity(self) -> Fraction:
        """One row for each clique; see the module's proof."""
        return Fraction(len(self.cliques) * SCORE_UNIT)

    @property
    def monotone(self) -> bool:
        """No: a row can bring one stand-in closer and take another away."""
        return False

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        """Minus the distance of every stand-in, in units of 1/SCORE_UNIT rows."""
        found = [self._distance(self.estimates[option], exact) for option in self.options]
        return np.array([-min(distance, LARGEST_SCORE) for distance in found], dtype=np.int64)

    def _distance(self, estimates: Mapping[Clique, Floats], exact: Mapping[Clique, Ints]) -> int:
        total = 0
        for clique in self.cliques:
            known = np.nan_to_num(estimates[clique], nan=0.0, posinf=_LARGEST_COUNT)
            aims = np.rint(np.clip(known, 0, _LARGEST_COUNT) * SCORE_UNIT).astype(np.int64)
            apart = np.abs(np.minimum(exact[clique], _LARGEST_COUNT) * SCORE_UNIT - aims)
            # Two halves, so that the sum of many cells cannot wrap.
            total += int((apart >> 32).sum()) * 2**32 + int((apart & (2**32 - 1)).sum())
        return total
