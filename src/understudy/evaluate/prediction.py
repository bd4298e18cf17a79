"""prediction: train on synthetic rows, test on real ones, and compare with training on real rows.

For each column a classification tree predicts it from all others: the most frequent label against the rest, or
whether a number is above its median. A fifth of the real rows is kept for testing, the rest is halved: one half trains
the real model, the other (as a stand-in made of different people) gives the yardstick. The score is how much of
the area under the ROC curve is lost.
"""

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from scipy.stats import rankdata

from understudy.arrays import Bytes, Floats, Ints
from understudy.evaluate.cart import Features, TreeLimits, grow_tree, tree_features
from understudy.evaluate.data import Rows, stacked, wholly_unread
from understudy.evaluate.metric import (
    Context,
    Detail,
    Metric,
    Result,
    Scale,
    TablePair,
    check_columns,
    refused,
    table_of,
)
from understudy.options import option
from understudy.schema import Schema, code_names
from understudy.schema.columns import NumberColumn

LIMITS = TreeLimits(split=60, bucket=20, depth=8)
FEWEST_ROWS = 200
TESTED = 0.2
MOST_TARGETS = 30


def area_under_curve(scores: Floats, truth: Bytes) -> float | None:
    """The probability that a random positive scores above a random negative, ties counting half; None without both.

    >>> area_under_curve(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1], np.uint8))
    0.75
    """
    positive = int(truth.sum())
    negative = len(truth) - positive
    if positive == 0 or negative == 0:
        return None
    ranks = float(rankdata(scores)[truth == 1].sum())
    return (ranks - positive * (positive + 1) / 2) / (positive * negative)


@dataclass(frozen=True, slots=True)
class Prediction(Metric):
    """Predicting each column from the others."""

    name: ClassVar[str] = "prediction"
    question: ClassVar[str] = "Does a model trained on synthetic rows predict real ones as well?"
    scales: ClassVar[tuple[Scale, ...]] = (
        Scale("mean_loss", "mean loss of area under the ROC curve against training on real rows"),
        Scale("worst_loss", "largest loss"),
    )

    targets: tuple[str, ...] = option((), help=f"columns to predict; the first {MOST_TARGETS} if omitted")

    def check(self, schema: Schema) -> None:
        """Raises for a column that is not in the schema."""
        check_columns("prediction", self.targets, schema)

    def compare(self, pair: TablePair, context: Context) -> Result:
        """Losses over all columns that can be predicted."""
        smallest = min(pair.real.count, *(copy.count for copy in pair.copies))
        if smallest < FEWEST_ROWS:
            return refused(self, f"fewer than {FEWEST_ROWS} rows are too few to train and test on")
        names = self.targets or tuple(column.name for column in pair.schema.modelled)
        notes = []
        if not self.targets and len(names) > MOST_TARGETS:
            notes.append(f"The first {MOST_TARGETS} of {len(names)} columns were predicted; name others with targets.")
            names = names[:MOST_TARGETS]
        order = context.rng("split").permutation(pair.real.count)
        found = []
        for place, name in enumerate(names):
            areas = _areas(pair, name, order)
            if areas is None:
                unread = any(wholly_unread(pair.real, part) for part in code_names(pair.schema.column(name)))
                why = "the schema can read no value of it" if unread else "one class is empty"
                notes.append(f"{name} cannot be predicted: {why}.")
            else:
                found.append((name, *areas))
            context.done((place + 1) / len(names))
        if not found:
            return refused(self, "no column has two classes in all parts")
        losses = [max(0.0, real - synthetic) for _, real, synthetic, _ in found]
        lines = [max(0.0, real - other) for _, real, _, other in found]
        scores = (
            self.scales[0].score(math.fsum(losses) / len(losses), math.fsum(lines) / len(lines)),
            self.scales[1].score(max(losses), max(lines)),
        )
        return Result(self.name, self.question, scores, (_detail(found),), tuple(notes))


def _areas(pair: TablePair, name: str, order: Ints) -> tuple[float, float, float] | None:
    """Areas on the test rows: trained on a real part, on synthetic rows (mean of copies), on the other real part."""
    real, copies = pair.real, pair.copies
    whole = real
    for copy in copies:
        whole = stacked(whole, copy)
    target = _target(real, whole, name)
    features = tree_features(whole, leave_out={name})
    if not len(features.names):
        return None
    tested = round(TESTED * real.count)
    middle = tested + (real.count - tested) // 2
    test, first, second = order[:tested], order[tested:middle], order[middle:]
    starts = np.cumsum([real.count, *(copy.count for copy in copies)]).tolist()
    spans = [np.arange(low, high) for low, high in itertools.pairwise(starts)]
    areas = [_area(features, target, train, test) for train in (first, second, *spans)]
    known = [area for area in areas if area is not None]
    if len(known) < len(areas):
        return None
    return known[0], math.fsum(known[2:]) / len(copies), known[1]


def _area(features: Features, target: Bytes, train: Ints, test: Ints) -> float | None:
    tree = grow_tree(features, target, np.sort(train), LIMITS)
    return area_under_curve(tree.probabilities(features, rows=test), target[test])


def _target(real: Rows, whole: Rows, name: str) -> Bytes:
    """1 for the real table's most frequent label, or for numbers above the real median."""
    if isinstance(real.codec.schema.column(name), NumberColumn):
        known = real.numbers[name][~np.isnan(real.numbers[name])]
        middle = float(np.median(known)) if len(known) else 0.0
        return np.asarray(whole.numbers[name] > middle, np.uint8)
    part = next(part for part in real.domain.columns if real.codec.origin(part) == name)
    return np.asarray(whole.codes[part] == np.bincount(real.codes[part]).argmax(), np.uint8)


def _detail(found: list[tuple[str, float, float, float]]) -> Detail:
    ordered = sorted(found, key=lambda one: one[2] - one[1])
    kinds = {
        "column": pa.string(), "area_real": pa.float64(), "area_synthetic": pa.float64(), "area_yardstick": pa.float64()
    }  # fmt: skip
    columns = {name: [one[place] for one in ordered] for place, name in enumerate(kinds)}
    caption = "Area under the ROC curve on real test rows by what the model was trained on, largest loss first."
    return Detail("columns", caption, table_of(columns, kinds))
