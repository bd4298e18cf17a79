"""pmse: the mean squared deviation of propensity scores from the share of synthetic rows, raw and against its null.

ratio = pMSE / its mean under the null (1: as close as the null says), standardised = (pMSE − mean) / standard
deviation. Always state the null: under "fitted_model" the mean is smaller by the factor 1 − c than under
"permutation" (see `null`). Trees are pruned at one complexity for all data sets, the same as in specks (see
`classifier`); where no tree splits under the null, the ratio is undefined and says so.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.errors import UsageError
from understudy.evaluate.data.pair import Context, Pair
from understudy.evaluate.data.rows import Rows
from understudy.evaluate.propensity.classifier import (
    MAIN_EFFECTS,
    Classifier,
    Logistic,
    Terms,
    Trees,
    check_complexity,
    common_complexity,
    labels,
    too_small,
)
from understudy.evaluate.propensity.null import Null, NullName, Scheme, closed_form, drawn_null, observed
from understudy.evaluate.score import Detail, Outcome, Result, Scale, Unavailable, mean_outcome, table_of

__all__ = ["Pmse"]

Floats = npt.NDArray[np.float64]
Kind = Literal["logistic", "cart"]
WORDS = {"logistic": "a logistic regression", "cart": "a classification tree"}


def _scales() -> tuple[Scale, ...]:
    found = []
    for kind, words in WORDS.items():
        ratio = f"pMSE of {words}, divided by its mean under the null: 1 is what chance does"
        standard = f"pMSE of {words}, in standard deviations from its mean under the null"
        found.append(Scale(f"{kind}_ratio", ratio, highest=None))
        found.append(Scale(f"{kind}_raw", f"pMSE of {words}"))
        found.append(Scale(f"{kind}_standardised", standard, lowest=None, highest=None, best=None))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Pmse:
    """Propensity score mean squared error, by logistic regression and by a classification tree."""

    name: ClassVar[str] = "pmse"
    question: ClassVar[str] = "How much better than chance is a classifier at spotting synthetic rows?"
    scales: ClassVar[tuple[Scale, ...]] = _scales()

    terms: Terms = field(default="main", metadata={"help": "terms of the regression"})
    scheme: Scheme = field(
        default="in_sample", metadata={"help": "score the rows that were fitted, or others (5 folds, 70/30)"}
    )
    null: NullName = field(default="permutation", metadata={"help": "what the ratio divides by"})
    draws: int = field(default=10, metadata={"help": "random draws for nulls without a closed form"})
    complexity: float | None = field(default=None, metadata={"help": "of the tree; cross-validated when not given"})

    def __post_init__(self) -> None:
        if self.draws < 2:
            raise UsageError("pmse: draws", f"must be at least 2, got {self.draws!r}.")
        check_complexity("pmse", self.complexity)
        if self.null == "fitted_model" and self.scheme == "folds":
            rule = "is known for rows that were fitted (scheme in_sample) only: folds train on parts of the real rows."
            raise UsageError("pmse: null fitted_model", rule, "Use null permutation or bootstrap with folds.")

    def compare(self, pair: Pair, context: Context) -> Result:
        """Raw, ratio and standardised values of both classifiers."""
        rows: list[_Row] = []
        complexity = common_complexity(pair, self.complexity)
        for place, copy in enumerate(pair.copies):
            rows += self._both(pair.real, copy, f"copy {place + 1}", complexity, context)
            context.done((place + 1) / (len(pair.copies) + 1))
        halves = pair.halves
        lines: list[_Row] = []
        if not isinstance(halves, Unavailable):
            lines = self._both(*halves, "halves", complexity, context)
        scores = []
        for scale in self.scales:
            kind, _, form = scale.name.partition("_")
            values = [row.outcome(form) for row in rows if row.kind == kind and row.null.name == self.null]
            line = [row.outcome(form) for row in lines if row.kind == kind and row.null.name == self.null]
            against = halves if isinstance(halves, Unavailable) else mean_outcome(line)
            scores.append(scale.score(mean_outcome(values), against))
        notes = [
            f"The null is {self.null}.",
            *(MAIN_EFFECTS if self.terms == "main" else ()),
            *dict.fromkeys(row.note for row in rows if row.note),
        ]
        return Result(self.name, self.question, tuple(scores), (_variants([*rows, *lines]),), tuple(notes))

    def _both(self, first: Rows, second: Rows, which: str, complexity: float, context: Context) -> list["_Row"]:
        blank = Null(self.null, 0.0, 0.0)
        reason = too_small(first, second, self.scheme)
        if reason is not None:
            return [_Row(which, kind, self.scheme, blank, reason) for kind in ("logistic", "cart")]
        logistic = Logistic.of(first, second, self.terms)
        if isinstance(logistic, Unavailable):
            rows = [_Row(which, "logistic", self.scheme, blank, logistic)]
        else:
            rows = self._rows(logistic, first, second, which, context)
        return rows + self._rows(Trees.of(first, second, complexity), first, second, which, context)

    def _rows(
        self, classifier: Logistic | Trees, first: Rows, second: Rows, which: str, context: Context
    ) -> list["_Row"]:
        target = labels(first, second)
        kind: Kind = "logistic" if isinstance(classifier, Logistic) else "cart"
        value, parameters, splits = observed(classifier, target, self.scheme, context.rng("folds"))
        exact = kind == "logistic" and self.scheme == "in_sample"
        wanted: list[NullName] = ["permutation", "fitted_model"] if exact else [self.null]
        if self.null not in wanted:
            wanted.append(self.null)
        found = []
        for name in wanted:
            null = self._null(classifier, target, name, parameters if exact else None, context)
            found.append(_Row(which, kind, self.scheme, null, value, parameters, _remark(classifier, splits, null)))
        return found

    def _null(
        self, classifier: Classifier, target: Floats, name: NullName, parameters: int | None, context: Context
    ) -> Null:
        if parameters is not None and name != "bootstrap":
            return closed_form(name, parameters, float(target.mean()), len(target))
        return drawn_null(classifier, target, self.scheme, name, draws=self.draws, context=context)


@dataclass(frozen=True, slots=True)
class _Row:
    """pMSE of one pair of tables against one null."""

    which: str
    kind: Kind
    scheme: Scheme
    null: Null
    value: Outcome
    parameters: int = 0
    note: str = ""

    def outcome(self, form: str) -> Outcome:
        if isinstance(self.value, Unavailable) or form == "raw":
            return self.value
        if self.null.mean <= 0:
            if self.kind == "cart":
                return Unavailable("no tree split under the null, so there is nothing to divide by")
            return Unavailable("no column varies, so there is nothing to tell the tables apart by")
        if form == "ratio":
            return self.value / self.null.mean
        if self.null.spread <= 0:
            return Unavailable("every draw under the null gave the same value")
        return (self.value - self.null.mean) / self.null.spread


def _remark(classifier: Logistic | Trees, splits: bool, null: Null) -> str:
    if isinstance(classifier, Logistic):
        return ""
    words = f"Trees were pruned at complexity {classifier.complexity:.3g}"
    own = "" if splits else "; the tree of these tables did not split"
    return f"{words}{own}; {null.unsplit} of {len(null.draws)} trees under the null did not split."


def _variants(rows: list[_Row]) -> Detail:
    kinds = {
        "tables": pa.string(), "classifier": pa.string(), "scheme": pa.string(), "null": pa.string(),
        "parameters": pa.int64(), "pmse": pa.float64(), "null_mean": pa.float64(), "null_sd": pa.float64(),
        "ratio": pa.float64(), "standardised": pa.float64(), "null_draws": pa.int64(), "null_unsplit": pa.int64(),
        "why_not": pa.string(),
    }  # fmt: skip
    ordered = sorted(rows, key=lambda row: -_number(row.outcome("ratio"), -math.inf))
    columns: dict[str, list[object]] = {name: [] for name in kinds}
    for row in ordered:
        ratio = row.outcome("ratio")
        entries: tuple[object, ...] = (
            row.which, row.kind, row.scheme, row.null.name, row.parameters, _shown(row.value), row.null.mean,
            row.null.spread, _shown(ratio), _shown(row.outcome("standardised")), len(row.null.draws),
            row.null.unsplit, ratio.reason if isinstance(ratio, Unavailable) else "",
        )  # fmt: skip
        for name, entry in zip(kinds, entries, strict=True):
            columns[name].append(entry)
    caption = "pMSE of each copy (and of two real halves) against each null, largest ratio first."
    return Detail("variants", caption, table_of(columns, kinds))


def _number(outcome: Outcome, otherwise: float) -> float:
    return otherwise if isinstance(outcome, Unavailable) else outcome


def _shown(outcome: Outcome) -> float | None:
    return None if isinstance(outcome, Unavailable) else outcome
