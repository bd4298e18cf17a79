"""EvenSplit: where to cut ranges of codes so that the rows fall apart in a wanted ratio: private quantiles.

Cell c is a range of neighbouring codes that is to become a + b bins. Cutting before code s leaves L rows of the range
on the left and R on the right; L : R = a : b is what is wanted. In units of 1/SCORE_UNIT

    score(c, s) = −⌊SCORE_UNIT · |b·L − a·R| / max(a, b)⌋.

Sensitivity. A row of the range adds one to L or to R, so it moves |b·L − a·R| by b or by a, at most max(a, b), and the
quotient by at most SCORE_UNIT before rounding; rounding down keeps a distance of a whole number of units. A row
outside of the range moves nothing. So one row moves the scores of its own cell by at most SCORE_UNIT. It raises some
and lowers others: not monotone. L and R are cut at 2⁴⁰ first, so that no product can wrap (a + b ≤ 2²⁰): a row then
moves one of them by one, or none.

Ranges of a layer are disjoint, so that a layer is one question (`Curator.select_within`), and ⌈log₂ bins⌉ layers give
all quantiles: each costs a share of the price, and the shares add up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from understudy.counts.source import Ints
from understudy.marginals.answer import SCORE_UNIT
from understudy.marginals.clique import Clique
from understudy.privacy.questions.halving import Range, Ranges

__all__ = ["EvenSplit"]

_LARGEST_COUNT = 2**40


@dataclass(frozen=True, slots=True, eq=False)
class EvenSplit:
    """One cut in each of these ranges (two codes or more each), of which range i is to become `bins[i]` ≥ 2 bins."""

    column: str
    codes: int
    ranges: tuple[Range, ...]
    bins: tuple[int, ...]
    name: str = "cuts"

    @property
    def partition(self) -> Ranges:
        """The ranges, and one cell for all other codes, where nothing is to be chosen."""
        return Ranges(self.name, Clique((self.column,)), self.ranges)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column itself."""
        return (self.column,)

    @property
    def options(self) -> Sequence[int]:
        """The code before which to cut."""
        return range(self.codes)

    @property
    def allowed(self) -> npt.NDArray[np.bool_]:
        """Inside the range; the cell of other codes may take 0 alone."""
        places = np.arange(self.codes)
        mask = np.zeros((len(self.ranges) + 1, self.codes), dtype=np.bool_)
        for cell, (start, stop) in enumerate(self.ranges):
            mask[cell] = (places > start) & (places < stop)
        mask[-1, 0] = True
        return mask

    @property
    def sensitivity(self) -> Fraction:
        """One row, in score units; see the module's proof."""
        return Fraction(SCORE_UNIT)

    @property
    def monotone(self) -> bool:
        """No: a row raises the scores of the cuts on one side of it and lowers those on the other."""
        return False

    def scores(self, exact: Mapping[str, Ints]) -> Ints:
        """Minus the distance from the wanted ratio, in score units."""
        counts = exact[self.column][:, : self.codes]
        left = np.concatenate([np.zeros((len(counts), 1), np.int64), np.cumsum(counts, axis=1)], axis=1)
        total = left[:, -1:]
        before = np.minimum(left[:, :-1], _LARGEST_COUNT)
        after = np.minimum(total - left[:, :-1], _LARGEST_COUNT)
        found = np.zeros((len(counts), self.codes), dtype=np.int64)
        for cell, wanted in enumerate(self.bins):
            low, high = wanted // 2, wanted - wanted // 2
            gap = np.abs(high * before[cell] - low * after[cell])
            whole, part = np.divmod(gap, high)  # high is the larger of the two
            found[cell] = -(SCORE_UNIT * whole + SCORE_UNIT * part // high)
        return found
