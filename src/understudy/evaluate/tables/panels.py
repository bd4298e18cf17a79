"""Comparing one number per pair of levels (a slope, a correlation) between the real table and its stand-in.

Where a number cannot be computed from the synthetic table (a level does not occur, or nothing else does) while the
real table has one, the synthetic one counts as 0: nobody would see an association there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.evaluate.data.pair import Pair
from understudy.evaluate.data.rows import Rows
from understudy.evaluate.score import Detail, Outcome, Unavailable, table_of
from understudy.evaluate.tables.indicators import MOST_LEVELS, LevelPairs, level_pairs

__all__ = ["Panel", "panel_detail", "panel_notes", "panel_of"]

Floats = npt.NDArray[np.float64]
Measure = Callable[[npt.NDArray[np.int64]], Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One real and one synthetic number for each pair of levels (column, code, other column, other code)."""

    places: list[tuple[str, int, str, int]]
    real: Floats
    synthetic: Floats
    lost: int

    def mean_difference(self) -> Outcome:
        """Mean of |synthetic − real|."""
        return self._summary(lambda gaps: float(gaps.mean()))

    def largest_difference(self) -> Outcome:
        """Largest |synthetic − real|."""
        return self._summary(lambda gaps: float(gaps.max()))

    def _summary(self, summary: Callable[[Floats], float]) -> Outcome:
        if not len(self.real):
            return Unavailable("no two columns of the real table vary")
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
    places: list[tuple[str, int, str, int]] = []
    ours: list[Floats] = []
    theirs: list[Floats] = []
    lost = 0
    for found in level_pairs(pair, [real, *copies], outcomes, both_ways=both_ways):
        numbers = [_inner(found, measure(table)) for table in found.tables]
        known = ~np.isnan(numbers[0])
        others = [np.where(np.isnan(one), 0.0, one)[known] for one in numbers[1:]]
        lost += int(sum(np.isnan(one[known]).sum() for one in numbers[1:]))
        ours.append(numbers[0][known])
        theirs.append(np.mean(others, axis=0))
        rows, columns = np.nonzero(known)
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            codes = int(found.outcome_codes[row]), int(found.given_codes[column])
            places.append((found.outcome, codes[0], found.given, codes[1]))
    empty = np.empty(0)
    return Panel(places, np.concatenate([empty, *ours]), np.concatenate([empty, *theirs]), lost)


def _inner(found: LevelPairs, numbers: Floats) -> Floats:
    return numbers[: len(found.outcome_codes), : len(found.given_codes)]


def panel_detail(pair: Pair, panel: Panel, name: str, caption: str) -> Detail:
    """Every pair of levels with both numbers, largest difference first."""
    order = np.argsort(-np.abs(panel.synthetic - panel.real), kind="stable").tolist()
    describe = pair.codec.describe
    places = [panel.places[place] for place in order]
    columns: dict[str, list[object]] = {
        "column": [place[0] for place in places],
        "level": [describe(place[0], place[1]) for place in places],
        "other_column": [place[2] for place in places],
        "other_level": [describe(place[2], place[3]) for place in places],
        "real": panel.real[order].tolist(),
        "synthetic": panel.synthetic[order].tolist(),
    }
    texts = dict.fromkeys(("column", "level", "other_column", "other_level"), pa.string())
    return Detail(name, caption, table_of(columns, texts | {"real": pa.float64(), "synthetic": pa.float64()}))


def panel_notes(pair: Pair, panel: Panel) -> tuple[str, ...]:
    """What was left out or had to be taken as 0."""
    notes = []
    wide = [name for name, size in pair.codec.domain.sizes.items() if size > MOST_LEVELS]
    if wide:
        notes.append(f"Of columns with more than {MOST_LEVELS} levels, the most frequent ones: {', '.join(wide)}.")
    if panel.lost:
        notes.append(f"{panel.lost} numbers cannot be computed from the synthetic rows and count as 0.")
    return tuple(notes)
