"""correlations: the correlation of every level of a column with every level of another, in both tables."""

from dataclasses import dataclass, field
from typing import ClassVar

from understudy.evaluate.data.pair import Context, Pair
from understudy.evaluate.data.rows import Rows
from understudy.evaluate.score import Result, Scale
from understudy.evaluate.tables.indicators import correlation_table
from understudy.evaluate.tables.panels import NEAR_ZERO, Panel, panel_detail, panel_notes, panel_of
from understudy.evaluate.tables.slopes import check_columns
from understudy.schema import Schema

__all__ = ["Correlations"]


@dataclass(frozen=True, slots=True)
class Correlations:
    """Correlations between levels of columns."""

    name: ClassVar[str] = "correlations"
    question: ClassVar[str] = "Are columns as strongly related as in the real table?"
    scales: ClassVar[tuple[Scale, ...]] = (
        Scale("agreement", "correlation of synthetic with real correlations", "higher", -1.0, 1.0, 1.0),
        Scale("worst_difference", "largest |synthetic correlation − real correlation|", highest=2.0),
        Scale("mean_difference", f"mean of |synthetic correlation − real correlation|{NEAR_ZERO}", highest=2.0),
    )

    outcomes: tuple[str, ...] = field(default=(), metadata={"help": "one side of each pair; all columns by default"})

    def check(self, schema: Schema) -> None:
        """Raises for a column that is not in the schema."""
        check_columns("correlations", self.outcomes, schema)

    def compare(self, pair: Pair, context: Context) -> Result:
        """Agreement and differences of correlations."""
        chosen = self.outcomes or pair.schema.names

        def panel_between(real: Rows, *copies: Rows) -> Panel:
            return panel_of(pair, real, copies, correlation_table, outcomes=chosen, both_ways=False)

        panel = panel_between(pair.real, *pair.copies)
        context.done(0.5)
        lines = pair.between_halves(lambda one, other: panel_between(one, other).outcomes(), len(self.scales))
        scores = tuple(
            scale.score(value, line) for scale, value, line in zip(self.scales, panel.outcomes(), lines, strict=True)
        )
        caption = "Correlation of two levels, largest difference first."
        detail = panel_detail(pair, panel, "levels", caption)
        return Result(self.name, self.question, scores, (detail,), panel_notes(pair, panel))
