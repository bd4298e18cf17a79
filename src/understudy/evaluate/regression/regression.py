"""regression: would a model fitted to the synthetic table say the same as one fitted to the real table?

Linear for a number, logistic for labels, Firth's penalised logistic where plain maximum likelihood has no finite
estimate ("auto"). Copies are pooled by Liu's rule.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar

from understudy.evaluate.data.pair import Context, Pair
from understudy.evaluate.metric import refused
from understudy.evaluate.regression.coefficients import (
    NO_FORMULA,
    Compared,
    FamilyName,
    ModelComparison,
    checked_formula,
    coefficient_detail,
    scored_models,
)
from understudy.evaluate.score import Outcome, Result, Scale, Unavailable
from understudy.schema import Schema

__all__ = ["Regression"]


@dataclass(frozen=True, slots=True)
class Regression:
    """Coefficients of a model the user names."""

    name: ClassVar[str] = "regression"
    question: ClassVar[str] = "Would a regression give the same coefficients?"
    scales: ClassVar[tuple[Scale, ...]] = (
        Scale("mean_difference", "mean |difference of coefficients| in standard errors of the real one", highest=None),
        Scale("worst_difference", "largest such difference", highest=None),
        Scale("same_sign", "share of coefficients with the same sign", "higher", 0.0, 1.0, 1.0),
        Scale("covered", "share of real coefficients inside the synthetic interval", "higher", 0.0, 1.0, 1.0),
    )

    formula: str = field(default="", metadata={"help": 'the model, as "income ~ age + sex"'})
    family: FamilyName = field(default="auto", metadata={"help": "kind of model"})
    level: float = field(default=0.95, metadata={"help": "of the intervals"})

    def lacks(self, schema: Schema) -> str:
        """A formula, if there is none."""
        return "" if self.formula else NO_FORMULA

    def check(self, schema: Schema) -> None:
        """Raises when the formula does not fit the schema."""
        if self.formula:
            checked_formula(self.formula, self.family, schema)

    def compare(self, pair: Pair, context: Context) -> Result:
        """Differences, signs and coverage of the coefficients."""
        compared = scored_models(self, pair, context, _outcomes)
        if isinstance(compared, Unavailable):
            return refused(self, compared.reason)
        found, scores = compared
        notes = [f"Model: {self.formula} ({found.family}).", *found.notes]
        lost = sum(one.synthetic is None for one in found.coefficients)
        if lost:
            notes.append(f"{lost} coefficients cannot be estimated from the synthetic rows.")
        return Result(self.name, self.question, scores, (coefficient_detail(found),), tuple(notes))


def _outcomes(comparison: ModelComparison) -> list[Outcome]:
    coefficients = comparison.coefficients
    gaps = [one.standardised for one in coefficients]
    known = [gap for gap in gaps if gap is not None]
    nothing = Unavailable("no coefficient can be estimated with an error in both tables")
    mean: Outcome = math.fsum(known) / len(known) if known else nothing
    return [mean, max(known) if known else nothing, _share(coefficients, "same_sign"), _share(coefficients, "covered")]


def _share(coefficients: tuple[Compared, ...], what: str) -> float:
    return sum(bool(getattr(one, what)) for one in coefficients) / len(coefficients)
