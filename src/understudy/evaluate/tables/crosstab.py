"""crosstab_l1: the distance of the full cross-tabulations over all columns at once.

L1 = Σ|x − x̂| over every cell that occurs, half of it (rows that would have to move), and the same for shares. The
yardstick of the counts is that of two halves, scaled up to tables of the real size.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from understudy.evaluate.data.counting import total_variation
from understudy.evaluate.data.pair import Context, Pair
from understudy.evaluate.data.rows import Rows, group_rows
from understudy.evaluate.score import Outcome, Result, Scale, Unavailable, mean_outcome

__all__ = ["CrosstabDistance", "joint_counts"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CrosstabDistance:
    """Distance of the joint tables of all columns."""

    name: ClassVar[str] = "crosstab_l1"
    question: ClassVar[str] = "How many rows would have to change for all columns together to agree?"
    scales: ClassVar[tuple[Scale, ...]] = (
        Scale("total_variation", "half the sum of |differences| of shares over all cells of the full table"),
        Scale("l1", "sum of |differences| of counts over all cells of the full table", highest=None),
        Scale("half_l1", "half of that sum", highest=None),
    )

    def compare(self, pair: Pair, context: Context) -> Result:
        """Distances of shares and of counts."""
        found = [_distances(pair.real, copy) for copy in pair.copies]
        lines = pair.between_halves(lambda one, other: _scaled_up(pair.real, one, other), len(self.scales))
        scores = [
            scale.score(mean_outcome([one[place] for one in found]), lines[place])
            for place, scale in enumerate(self.scales)
        ]
        context.done(1.0)
        return Result(self.name, self.question, tuple(scores))


def _scaled_up(real: Rows, one: Rows, other: Rows) -> list[Outcome]:
    """The distances of two halves; those of counts, all but the first, as tables of the real size would have them."""
    first, *counts = _distances(one, other)
    factor = real.count / one.count
    return [first, *(line if isinstance(line, Unavailable) else line * factor for line in counts)]


def joint_counts(first: Rows, second: Rows) -> tuple[Ints, Ints]:
    """Rows of either table in every cell of the full cross-tabulation that occurs in one of them."""
    columns = [np.concatenate([first.codes[name], second.codes[name]]) for name in first.domain.columns]
    groups = group_rows(columns, first.count + second.count)
    cells = int(groups.max()) + 1
    parts = (groups[: first.count], groups[first.count :])
    counts = [np.bincount(part, minlength=cells).astype(np.int64) for part in parts]
    return counts[0], counts[1]


def _distances(first: Rows, second: Rows) -> list[Outcome]:
    one, other = joint_counts(first, second)
    distance = float(np.abs(one - other).sum())
    return [total_variation(one, other), distance, distance / 2]
