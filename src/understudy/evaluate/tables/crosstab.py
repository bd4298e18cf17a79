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
        halves = pair.halves
        scores = []
        for place, scale in enumerate(self.scales):
            line: Outcome = halves if isinstance(halves, Unavailable) else _distances(*halves)[place]
            if not isinstance(line, Unavailable) and place > 0 and not isinstance(halves, Unavailable):
                line *= pair.real.count / halves[0].count
            scores.append(scale.score(mean_outcome([one[place] for one in found]), line))
        context.done(1.0)
        return Result(self.name, self.question, tuple(scores))


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
