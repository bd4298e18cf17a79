"""ci_overlap: how much the confidence intervals of a model's coefficients overlap between the two tables.

J = ½ [(min U − max L)/(width of one) + (min U − max L)/(width of the other)], cut off at 0; the version that goes
negative for intervals apart from each other is reported too. 1 means equal intervals.

Several copies are pooled by a rule for estimates and their standard errors, which gives Wald intervals. There is no
such rule for profile intervals, so with several copies they are refused.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from understudy.errors import UsageError
from understudy.evaluate.data.pair import Context, Pair
from understudy.evaluate.metric import refused
from understudy.evaluate.regression.coefficients import (
    NO_FORMULA,
    FamilyName,
    ModelComparison,
    checked_formula,
    coefficient_detail,
    scored_models,
)
from understudy.evaluate.score import Outcome, Result, Scale, Unavailable
from understudy.schema import Schema

__all__ = ["IntervalOverlap"]

NO_PROFILE = (
    "profile intervals of several copies cannot be pooled, for the rule pools estimates and standard errors; "
    "use interval=wald, or compare one copy"
)


@dataclass(frozen=True, slots=True)
class IntervalOverlap:
    """Overlap of confidence intervals of a model the user names."""

    name: ClassVar[str] = "ci_overlap"
    question: ClassVar[str] = "Would the confidence intervals of a regression overlap?"
    scales: ClassVar[tuple[Scale, ...]] = (
        Scale("mean_overlap", "mean overlap of the intervals, cut off at 0", "higher", 0.0, 1.0, 1.0),
        Scale("worst_overlap", "smallest overlap, cut off at 0", "higher", 0.0, 1.0, 1.0),
        Scale("mean_with_gaps", "mean overlap, negative for intervals that lie apart", "higher", None, 1.0, 1.0),
    )

    formula: str = field(default="", metadata={"help": 'the model, as "income ~ age + sex"'})
    family: FamilyName = field(default="auto", metadata={"help": "kind of model"})
    level: float = field(default=0.95, metadata={"help": "of the intervals"})
    interval: Literal["wald", "profile"] = field(
        default="wald", metadata={"help": "profile: for Firth's model and a single copy"}
    )

    def __post_init__(self) -> None:
        if self.interval == "profile" and self.family != "firth":
            raise UsageError("ci_overlap: interval", "profile is there for family firth only.", "Set family=firth.")

    def lacks(self, schema: Schema) -> str:
        """A formula, if there is none."""
        return "" if self.formula else NO_FORMULA

    def check(self, schema: Schema) -> None:
        """Raises when the formula does not fit the schema."""
        if self.formula:
            checked_formula(self.formula, self.family, schema)

    def compare(self, pair: Pair, context: Context) -> Result:
        """Mean and smallest overlap."""
        if self.interval == "profile" and len(pair.copies) > 1:
            return refused(self, NO_PROFILE)
        compared = scored_models(self, pair, context, _outcomes, profile=self.interval == "profile")
        if isinstance(compared, Unavailable):
            return refused(self, compared.reason)
        found, scores = compared
        notes = (f"Model: {self.formula} ({found.family}), {self.level:.0%} {self.interval} intervals.",)
        return Result(self.name, self.question, scores, (coefficient_detail(found),), notes + found.notes)


def _outcomes(comparison: ModelComparison) -> list[Outcome]:
    raw = [one.overlap for one in comparison.coefficients]
    cut = [max(0.0, one) for one in raw]
    return [math.fsum(cut) / len(cut), min(cut), math.fsum(raw) / len(raw)]
