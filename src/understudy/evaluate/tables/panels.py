"""Comparing one number per pair of levels (a slope, a correlation) between the real table and its stand-in.

Where a number cannot be computed from the synthetic table (a level does not occur, or nothing else does) while the
real table has one, the synthetic one counts as 0: nobody would see an association there.

The headline is the agreement over all pairs. Most levels of most columns have hardly anything to do with each other, so
a mean of differences is small whether or not the few strong relations were kept; it comes last and says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.evaluate.data.pair import Pair
from understudy.evaluate.data.rows import Rows
from understudy.evaluate.score import Detail, Outcome, Unavailable
from understudy.evaluate.tables.indicators import MOST_LEVELS, LevelPairs, level_pairs

__all__ = ["NEAR_ZERO", "Panel", "panel_detail", "panel_notes", "panel_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Measure = Callable[[Ints], Floats]

NEAR_ZERO = "; small wherever most pairs of levels are unrelated"
"""What a reader of a mean over all pairs of levels must know."""


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One real and one synthetic number for each pair of levels; `columns` and `codes` say which (both sides)."""

    columns: tuple[Ints, Ints]
    codes: tuple[Ints, Ints]
    real: Floats
    synthetic: Floats
    lost: int

    def outcomes(self) -> list[Outcome]:
        """Agreement, largest and mean difference: the order of the scales."""
        return [self.agreement(), self.largest_difference(), self.mean_difference()]

    def mean_difference(self) -> Outcome:
        """Mean of |synthetic − real|."""
        return self._summary(lambda gaps: float(gaps.mean()))

    def largest_difference(self) -> Outcome:
        """Largest |synthetic − real|."""
        return self._summary(lambda gaps: float(gaps.max()))

    def _summary(self, summary: Callable[[Floats], float]) -> Outcome:
        if not len(self.real):
            return Unavailable("no two columns of the real table have two values that can be read")
        return summary(np.abs(self.synthetic - self.real))

    def agreement(self) -> Outcome:
        """Correlation of the synthetic with the real numbers."""
        return agreement(self.real, self.synthetic)


def agreement(real: Floats, synthetic: Floats) -> Outcome:
    """Pearson's correlation, unless one side does not vary."""
    if len(real) < 3:
        return Unavailable("fewer than three points have no meaningful correlation")
    spreads = float(real.std()), float(synthetic.std())
    if min(spreads) <= 1e-12:
        return Unavailable(f"the {'real' if spreads[0] <= 1e-12 else 'synthetic'} values do not vary")
    return float(np.clip(np.corrcoef(real, synthetic)[0, 1], -1.0, 1.0))


def panel_of(
    pair: Pair, real: Rows, copies: Sequence[Rows], measure: Measure, *, outcomes: Sequence[str], both_ways: bool
) -> Panel:
    """The numbers of every pair of levels; copies are averaged."""
    number = {name: place for place, name in enumerate(pair.codec.domain.columns)}
    places: list[Ints] = [np.empty((0, 4), np.int64)]
    ours: list[Floats] = [np.empty(0)]
    theirs: list[Floats] = [np.empty(0)]
    lost = 0
    for found in level_pairs(pair, [real, *copies], outcomes, both_ways=both_ways):
        numbers = [_inner(found, measure(table)) for table in found.tables]
        known = ~np.isnan(numbers[0])
        others = [np.where(np.isnan(one), 0.0, one)[known] for one in numbers[1:]]
        lost += int(sum(np.isnan(one[known]).sum() for one in numbers[1:]))
        ours.append(numbers[0][known])
        theirs.append(np.mean(others, axis=0))
        rows, columns = np.nonzero(known)
        names = np.full((len(rows), 2), [number[found.outcome], number[found.given]], np.int64)
        places.append(np.column_stack([names, found.outcome_codes[rows], found.given_codes[columns]]))
    where = np.concatenate(places)
    return Panel(
        (where[:, 0], where[:, 1]), (where[:, 2], where[:, 3]), np.concatenate(ours), np.concatenate(theirs), lost
    )


def _inner(found: LevelPairs, numbers: Floats) -> Floats:
    return numbers[: len(found.outcome_codes), : len(found.given_codes)]


def panel_detail(pair: Pair, panel: Panel, name: str, caption: str) -> Detail:
    """Every pair of levels with both numbers, largest difference first."""
    order = np.argsort(-np.abs(panel.synthetic - panel.real), kind="stable")
    domain = pair.codec.domain
    starts = np.cumsum([0, *domain.sizes.values()])[:-1]
    words = [pair.codec.describe(one, code) for one, size in domain.sizes.items() for code in range(size)]
    columns: dict[str, pa.Array] = {}
    for side, prefix in enumerate(("", "other_")):
        names, codes = panel.columns[side][order], panel.codes[side][order]
        columns[f"{prefix}column"] = pa.array(domain.columns, pa.string()).take(pa.array(names))
        columns[f"{prefix}level"] = pa.array(words, pa.string()).take(pa.array(starts[names] + codes))
    columns["real"], columns["synthetic"] = pa.array(panel.real[order]), pa.array(panel.synthetic[order])
    return Detail(name, caption, pa.table(columns))


def panel_notes(pair: Pair, panel: Panel) -> tuple[str, ...]:
    """What was left out or had to be taken as 0."""
    notes = []
    wide = [name for name, size in pair.codec.domain.sizes.items() if size > MOST_LEVELS]
    if wide:
        notes.append(f"Of columns with more than {MOST_LEVELS} levels, the most frequent ones: {', '.join(wide)}.")
    if panel.lost:
        notes.append(f"{panel.lost} numbers cannot be computed from the synthetic rows and count as 0.")
    return tuple(notes)
