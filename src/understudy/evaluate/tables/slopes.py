"""slopes: P(y | x) − P(y | not x) for every level y of an outcome column and level x of any other, in both tables.

The panels of a decision-tree study of federal personnel records: slopes synthetic against real, and joint shares of
chosen columns with their correlation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.errors import UsageError, nearest
from understudy.evaluate.data.counting import counted
from understudy.evaluate.data.pair import Context, Pair
from understudy.evaluate.data.rows import Rows
from understudy.evaluate.score import Detail, Outcome, Result, Scale, Unavailable, table_of
from understudy.evaluate.tables.indicators import slope_table
from understudy.evaluate.tables.panels import NEAR_ZERO, Panel, agreement, panel_detail, panel_notes, panel_of
from understudy.schema import Schema

__all__ = ["Slopes", "check_columns"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Slopes:
    """Slopes between levels of columns."""

    name: ClassVar[str] = "slopes"
    question: ClassVar[str] = "Does knowing one column change the odds of another by as much?"
    scales: ClassVar[tuple[Scale, ...]] = (
        Scale("agreement", "correlation of synthetic with real slopes", "higher", -1.0, 1.0, 1.0),
        Scale("worst_difference", "largest |synthetic slope − real slope|", highest=2.0),
        Scale("mean_difference", f"mean of |synthetic slope − real slope|{NEAR_ZERO}", highest=2.0),
        Scale("joint_shares", "correlation of joint shares of the chosen columns", "higher", -1.0, 1.0, 1.0),
    )

    outcomes: tuple[str, ...] = field(default=(), metadata={"help": "columns whose levels are y; all by default"})
    groups: tuple[str, ...] = field(default=(), metadata={"help": "columns whose joint shares are compared"})

    def check(self, schema: Schema) -> None:
        """Raises for a column that is not in the schema."""
        check_columns("slopes", (*self.outcomes, *self.groups), schema)

    def compare(self, pair: Pair, context: Context) -> Result:
        """Agreement and differences of slopes."""
        panel = self._panel(pair, pair.real, pair.copies)
        context.done(0.5)
        shares = _joint_shares(pair, self.groups, pair.real, pair.copies)
        values = _outcomes(panel, shares)
        lines = pair.between_halves(
            lambda one, other: _outcomes(
                self._panel(pair, one, (other,)), _joint_shares(pair, self.groups, one, (other,))
            ),
            len(self.scales),
        )
        scores = tuple(scale.score(value, line) for scale, value, line in zip(self.scales, values, lines, strict=True))
        caption = "Slope of level y (first) on level x (second), largest difference first."
        details = [panel_detail(pair, panel, "levels", caption)]
        if not isinstance(shares, Unavailable):
            details.append(_share_detail(pair, self.groups, shares))
        return Result(self.name, self.question, scores, tuple(details), panel_notes(pair, panel))

    def _panel(self, pair: Pair, real: Rows, copies: Sequence[Rows]) -> Panel:
        chosen = self.outcomes or pair.schema.names
        return panel_of(pair, real, copies, slope_table, outcomes=chosen, both_ways=True)


def _outcomes(panel: Panel, shares: tuple[npt.NDArray[np.int64], Floats, Floats] | Unavailable) -> list[Outcome]:
    joint = shares if isinstance(shares, Unavailable) else agreement(shares[1], shares[2])
    return [*panel.outcomes(), joint]


def check_columns(metric: str, columns: Sequence[str], schema: Schema) -> None:
    """Raises for the first column that is not modelled."""
    known = [column.name for column in schema.modelled]
    for name in columns:
        if name not in known:
            raise UsageError(f"{metric}: column {name!r}", "is not a modelled column.", nearest(name, known))


def _joint_shares(
    pair: Pair, groups: Sequence[str], real: Rows, copies: Sequence[Rows]
) -> tuple[npt.NDArray[np.int64], Floats, Floats] | Unavailable:
    """Occupied cells of the joint table of the chosen columns and their shares in both tables."""
    if not groups:
        return Unavailable("no columns were chosen for joint shares (option groups)")
    names = [part for part in pair.codec.domain.columns if pair.codec.origin(part) in groups]
    table = next(counted([real, *copies], [pair.codec.domain.clique(names)]))
    shares = [counts / counts.sum() for counts in table.counts]
    theirs = np.mean(shares[1:], axis=0)
    used = np.flatnonzero((shares[0] > 0) | (theirs > 0))
    cells = used if table.cells is None else table.cells[used]
    return cells, shares[0][used], theirs[used]


def _share_detail(pair: Pair, groups: Sequence[str], shares: tuple[npt.NDArray[np.int64], Floats, Floats]) -> Detail:
    cells, real, theirs = shares
    names = [part for part in pair.codec.domain.columns if pair.codec.origin(part) in groups]
    order = np.argsort(-np.abs(real - theirs), kind="stable")
    codes = np.unravel_index(cells[order], pair.codec.domain.shape(names))
    columns: dict[str, list[object]] = {
        name: [pair.codec.describe(name, code) for code in codes[axis].tolist()] for axis, name in enumerate(names)
    }
    columns["real share"], columns["synthetic share"] = real[order].tolist(), theirs[order].tolist()
    kinds = dict.fromkeys(names, pa.string()) | {"real share": pa.float64(), "synthetic share": pa.float64()}
    return Detail(
        "joint_shares", "Joint shares of the chosen columns, largest difference first.", table_of(columns, kinds)
    )
