"""specks: the Kolmogorov–Smirnov distance of propensity scores of real and synthetic rows.

A classifier is trained to tell the tables apart; 0 means that it learned nothing, 1 that it separates them. Copies are
averaged. Trees are pruned at one complexity for all data sets, the same as in pmse (see `classifier`). `legacy` is what
the authors' published script computes (the distance of the values of the distribution functions on a grid), for
comparison with printed figures only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.evaluate.data.pair import Context, Pair
from understudy.evaluate.data.rows import Rows
from understudy.evaluate.models.design import INTERCEPT, Design
from understudy.evaluate.models.logistic import fit_logistic
from understudy.evaluate.propensity.classifier import (
    MAIN_EFFECTS,
    Classifier,
    Logistic,
    Terms,
    Trees,
    check_complexity,
    common_complexity,
    labels,
    out_of_sample,
    too_small,
)
from understudy.evaluate.propensity.distance import kolmogorov_smirnov, legacy_distance
from understudy.evaluate.score import Detail, Outcome, Result, Scale, Unavailable, mean_outcome, table_of

__all__ = ["Specks"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Specks:
    """Distance of propensity scores, by logistic regression and by a classification tree."""

    name: ClassVar[str] = "specks"
    question: ClassVar[str] = "Can a classifier tell synthetic rows from real ones?"
    scales: ClassVar[tuple[Scale, ...]] = (
        Scale("logistic", "KS distance of scores of a logistic regression"),
        Scale("cart", "KS distance of scores of a classification tree"),
        Scale("legacy", "the first score as a published script computes it; for comparison with its figures only"),
    )

    terms: Terms = field(default="main", metadata={"help": "terms of the regression"})
    scheme: Literal["in_sample", "folds"] = field(
        default="in_sample", metadata={"help": "score the rows that were fitted, or others (5 folds, 70/30)"}
    )

    complexity: float | None = field(default=None, metadata={"help": "of the tree; cross-validated when not given"})

    def __post_init__(self) -> None:
        check_complexity("specks", self.complexity)

    def compare(self, pair: Pair, context: Context) -> Result:
        """One distance for each classifier."""
        complexity = common_complexity(pair, self.complexity)
        context.done(1 / (len(pair.copies) + 3))
        found = []
        for place, copy in enumerate(pair.copies):
            found.append(self._distances(pair.real, copy, complexity, context))
            context.done((place + 2) / (len(pair.copies) + 3))
        lines = pair.between_halves(
            lambda one, other: self._distances(one, other, complexity, context), len(self.scales)
        )
        scores = tuple(
            scale.score(mean_outcome([one[place] for one in found]), lines[place])
            for place, scale in enumerate(self.scales)
        )
        notes = [*(MAIN_EFFECTS if self.terms == "main" else ())]
        if scores[1].value is not None:
            notes.append(f"All trees were pruned at complexity {complexity:.3g}.")
        return Result(self.name, self.question, scores, _columns(pair), tuple(notes))

    def _distances(self, first: Rows, second: Rows, complexity: float, context: Context) -> Sequence[Outcome]:
        """By regression, by tree, and by regression as the published script has it."""
        reason = too_small(first, second, self.scheme)
        if reason is not None:
            return [reason] * 3
        target = labels(first, second)
        trees = Trees.of(first, second, complexity)
        by_tree = kolmogorov_smirnov(*self._scores(trees, target, context))
        logistic = Logistic.of(first, second, self.terms)
        if isinstance(logistic, Unavailable):
            return [logistic, by_tree, logistic]
        scores = self._scores(logistic, target, context)
        return [kolmogorov_smirnov(*scores), by_tree, legacy_distance(*scores)]

    def _scores(self, classifier: Classifier, target: Floats, context: Context) -> tuple[Floats, Floats]:
        """Scores of the rows of the first and of the second table."""
        if self.scheme == "in_sample":
            scores, truth = classifier.scores(target).scores, target
        else:
            scored, places = out_of_sample(classifier, target, context.rng("folds"))
            scores, truth = scored.scores, target[places]
        return scores[truth == 0], scores[truth == 1]


def _columns(pair: Pair) -> tuple[Detail, ...]:
    """Which columns give the synthetic rows away: how much each moves the log odds, for the first copy."""
    if too_small(pair.real, pair.copies[0], "in_sample") is not None:
        return ()
    classifier = Logistic.of(pair.real, pair.copies[0])
    if isinstance(classifier, Unavailable):
        return ()
    design = classifier.design
    fit = fit_logistic(design, labels(pair.real, pair.copies[0]), classifier.kept)
    origins = [_origin(pair, name) for name in design.names]
    found = []
    for name in dict.fromkeys(origins):
        if name != INTERCEPT:
            mine = np.where(np.asarray(origins) == name, fit.coefficients, 0.0)
            found.append((name, _spread(design, mine)))
    found.sort(key=lambda entry: -entry[1])
    kinds = {"column": pa.string(), "spread": pa.float64()}
    table = table_of({"column": [name for name, _ in found], "spread": [spread for _, spread in found]}, kinds)
    caption = "How much each column moves the log odds of being synthetic (standard deviation), largest first."
    return (Detail("columns", caption, table),)


def _spread(design: Design, coefficients: Floats) -> float:
    return float(design.predict(coefficients).std())


def _origin(pair: Pair, name: str) -> str:
    """The column behind a column of the matrix: names are "column" or "column=label"."""
    if name == INTERCEPT or name in pair.schema.names:
        return name
    parts = [part for part in pair.codec.domain.columns if name.startswith(f"{part}=")]
    return pair.codec.origin(max(parts, key=len)) if parts else name
