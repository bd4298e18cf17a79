"""StandInError: how far the private table is from each of several stand-ins, for a choice that is paid for.

    score_s = − Σ_r ‖M_r − E_{s,r}‖₁ ,   r over the same public list of cliques for all stand-ins s

M_r are exact counts of the private table; E_{s,r} are the counts a stand-in has, scaled to its estimate of the number
of rows. Stand-ins must have left the door already (released rows), so E is public.

Sensitivity. E is rounded to whole units of 1/SCORE_UNIT rows first. One row added or removed moves one cell of every
M_r by one, so every absolute value sum by at most SCORE_UNIT, and a score by at most R · SCORE_UNIT for R cliques, with
nothing lost to rounding. Scores are cut at ±2⁶², which takes no two of them further apart. A row may bring one stand-in
closer and take another away: not monotone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from understudy.counts.source import Ints
from understudy.marginals.clique import Clique
from understudy.privacy.quality import SCORE_UNIT

__all__ = ["StandInError"]

_LARGEST_SCORE = 2**62
_LARGEST_COUNT = 2**42


@dataclass(frozen=True, slots=True, eq=False)
class StandInError:
    """A choice among named stand-ins; `estimates` holds for each the expected counts of every clique."""

    name: str
    options: Sequence[str]
    cliques: Sequence[Clique]
    estimates: Mapping[str, Mapping[Clique, npt.NDArray[np.float64]]]

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
        return np.array([-min(distance, _LARGEST_SCORE) for distance in found], dtype=np.int64)

    def _distance(self, estimates: Mapping[Clique, npt.NDArray[np.float64]], exact: Mapping[Clique, Ints]) -> int:
        total = 0
        for clique in self.cliques:
            known = np.nan_to_num(estimates[clique], nan=0.0, posinf=_LARGEST_COUNT)
            aims = np.rint(np.clip(known, 0, _LARGEST_COUNT) * SCORE_UNIT).astype(np.int64)
            apart = np.abs(np.minimum(exact[clique], _LARGEST_COUNT) * SCORE_UNIT - aims)
            # Two halves, so that the sum of many cells cannot wrap.
            total += int((apart >> 32).sum()) * 2**32 + int((apart & (2**32 - 1)).sum())
        return total
