"""MarginalError: how far each clique's exact table is from its estimate, for choosing what to measure next.

    score_r = w_r · (‖M_r − M̂_r‖₁ − penalty_r)

M_r are exact counts; the estimate M̂_r, the penalty and the weight w_r are public (from earlier answers).

Sensitivity. Everything but M_r is rounded to integers first: estimates and penalties to units of 1/SCORE_UNIT rows,
weights to units of 1/WEIGHT_UNIT of the largest weight (at least one unit), so that

    score_r = W_r · (Σ_x |SCORE_UNIT · M_r(x) − E_r(x)| − P_r)        with integers W_r ≤ WEIGHT_UNIT, E_r, P_r.

One row added or removed moves one cell of M_r by one. That moves one absolute value by at most SCORE_UNIT, hence the
score by at most W_r · SCORE_UNIT ≤ WEIGHT_UNIT · SCORE_UNIT, with nothing lost to rounding. Counts are cut at 2⁴² and
scores at ±2⁶², so that no product or sum can wrap; cutting never takes two numbers further apart. A row can bring a
cell closer to its estimate or take it away, in one table up and in another down: not monotone.

PublicOrPrivate: the same choice when a public table Q of the same columns could stand in for a measurement.

    private:  score_r = w_r · (‖M_r − M̂_r‖₁ − penalty_r)
    public:   score_r = w_r · (‖M_r − M̂_r‖₁ − ‖M_r − Q_r‖₁ − penalty_r)

Sensitivity. Q_r is public and rounded to units E'_r of 1/SCORE_UNIT rows as well. A row moves one cell of M_r by one:
the first absolute value by at most SCORE_UNIT and the second by at most SCORE_UNIT, possibly in opposite directions
(the count lies between the two aims). So a public score moves by up to twice as much as a private one. Each kind is
divided by its own bound: public scores are halved. To halve integers without rounding, private ones are doubled

    private:  2 · W_r · (Σ_x |SCORE_UNIT · M_r(x) − E_r(x)| − P_r)
    public:       W_r · (Σ_x |SCORE_UNIT · M_r(x) − E_r(x)| − Σ_x |SCORE_UNIT · M_r(x) − E'_r(x)| − P_r)

and every score moves by at most 2 · max W · SCORE_UNIT for one row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.counts.source import Ints
from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.privacy.quality import SCORE_UNIT

__all__ = ["LARGEST_SCORE", "WEIGHT_UNIT", "MarginalError", "PublicOrPrivate", "Sourced"]

Floats = npt.NDArray[np.float64]
Sourced = tuple[Clique, Literal["private", "public"]]
"""A clique and where its table would come from."""

WEIGHT_UNIT = 2**10
LARGEST_SCORE = 2**62
_LARGEST_COUNT = 2**42
_HALF = 32
_MASK = 2**_HALF - 1


@dataclass(frozen=True, slots=True, eq=False)
class MarginalError:
    """A choice among cliques; `estimates` holds the expected counts of each, flat row-major.

    `weights` (above 0) and `penalties` (in rows) stand in the order of `options`; without them all weigh the same and
    nothing is subtracted.
    """

    name: str
    options: Sequence[Clique]
    estimates: Mapping[Clique, Floats]
    weights: Sequence[float] = ()
    penalties: Sequence[float] = ()
    _multipliers: tuple[int, ...] = field(init=False, repr=False)
    _offsets: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        multipliers, offsets = _in_units(self._where, len(self.options), self.weights, self.penalties)
        object.__setattr__(self, "_multipliers", multipliers)
        object.__setattr__(self, "_offsets", offsets)

    @property
    def cliques(self) -> Sequence[Clique]:
        """The same cliques."""
        return self.options

    @property
    def sensitivity(self) -> Fraction:
        """The largest weight times one row, in score units; see the module's proof."""
        return Fraction(max(self._multipliers, default=WEIGHT_UNIT) * SCORE_UNIT)

    @property
    def monotone(self) -> bool:
        """No: a row may bring a cell closer to its estimate or take it away."""
        return False

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        """One integer per clique, in score units; higher where the estimate is worse."""
        found = np.zeros(len(self.options), dtype=np.int64)
        for place, clique in enumerate(self.options):
            distance = _rows_apart(exact[clique], self.estimates[clique], self._where)
            found[place] = _cut(self._multipliers[place] * (distance - self._offsets[place]))
        return found

    @property
    def _where(self) -> str:
        return f"select {self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class PublicOrPrivate:
    """A choice among cliques and, for each, between measuring it and taking the table of public data.

    `public` holds the public table of each clique that has a public option, scaled to the expected number of rows;
    `weights` and `penalties` stand in the order of `options`, as in `MarginalError`.
    """

    name: str
    options: Sequence[Sourced]
    estimates: Mapping[Clique, Floats]
    public: Mapping[Clique, Floats]
    weights: Sequence[float] = ()
    penalties: Sequence[float] = ()
    _multipliers: tuple[int, ...] = field(init=False, repr=False)
    _offsets: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        multipliers, offsets = _in_units(self._where, len(self.options), self.weights, self.penalties)
        object.__setattr__(self, "_multipliers", multipliers)
        object.__setattr__(self, "_offsets", offsets)

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
        distances = {clique: _rows_apart(exact[clique], self.estimates[clique], self._where) for clique in self.cliques}
        for place, (clique, source) in enumerate(self.options):
            gain, factor = distances[clique] - self._offsets[place], 2
            if source == "public":
                gain, factor = gain - _rows_apart(exact[clique], self.public[clique], self._where), 1
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


def _rows_apart(exact: Ints, estimate: Floats, where: str) -> int:
    """‖exact − estimate‖₁ in score units."""
    if exact.size != estimate.size:
        raise UsageError(where, "the estimates do not have the cells of their tables.")
    high, low = _distance(exact, estimate)
    # Plain integers: what is multiplied and added from here on never wraps.
    return (int(high) << _HALF) + int(low)


def _cut(score: int) -> int:
    return max(-LARGEST_SCORE, min(LARGEST_SCORE, score))


def _part(penalty: float) -> int:
    """What rounding a penalty to whole rows leaves, in score units."""
    return round((penalty - round(penalty)) * SCORE_UNIT)


@compiled()  # pragma: no cover
def _distance(exact: Ints, estimate: Floats) -> tuple[int, int]:
    """Σ |SCORE_UNIT · count − rounded estimate| as high · 2³² + low: neither sum can wrap for a table in memory."""
    high, low = 0, 0
    for cell in range(exact.size):
        aim = 0
        if estimate[cell] > 0.0:  # not a number counts as 0
            aim = int(np.rint(min(estimate[cell], float(_LARGEST_COUNT)) * SCORE_UNIT))
        gap = abs(min(exact[cell], _LARGEST_COUNT) * SCORE_UNIT - aim)
        high += gap >> _HALF
        low += gap & _MASK
    return high, low
