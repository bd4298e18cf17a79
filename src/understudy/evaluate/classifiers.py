"""classifiers: can a random forest or a support vector machine tell synthetic rows from real ones?

The scores are those of `specks` and `pmse` (see `evaluate/propensity.py`), from the two other classifiers that the
literature of propensity scores names. They come from scikit-learn, the extra `classifiers`, so this metric runs only
when it is asked for by name.

Both classifiers see every label as an indicator and every number as its place among all numbers, between 0 and 1.
A forest scores rows that it was trained on almost without error, whatever they are, so both classifiers score held-out
rows only: five folds, in each of which 70 % of either table train and 30 % are scored. The null of pMSE is that of
permuted labels, under the same folds.

A support vector machine takes time in the square of its rows. It sees at most `most_rows` rows of each table, drawn
without replacement by the seed; the notes say so where rows were left out. Its distances are turned into probabilities
by a logistic curve fitted to held-out distances (Platt 1999), which moves no row past another, so the distance of
Kolmogorov and Smirnov does not depend on the curve.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.sparse import csr_matrix

from understudy.arrays import Floats, Ints
from understudy.errors import UsageError
from understudy.evaluate.cart import Features, tree_features
from understudy.evaluate.metric import (
    Context,
    Metric,
    Outcome,
    Result,
    Rows,
    Scale,
    TablePair,
    Unavailable,
    mean_outcome,
    stacked,
)
from understudy.evaluate.propensity import (
    Scored,
    drawn_null,
    kolmogorov_smirnov,
    labels,
    mean_squared_deviation,
    out_of_sample,
    too_small,
)
from understudy.options import option
from understudy.schema.schema import Schema

Kind = Literal["forest", "svm"]
WORDS: dict[Kind, str] = {"forest": "a random forest", "svm": "a support vector machine"}
FORMS = ("specks", "pmse_raw", "pmse_ratio")
CALIBRATION_FOLDS = 3


def _scales() -> tuple[Scale, ...]:
    found = []
    for kind, words in WORDS.items():
        found.append(Scale(f"{kind}_specks", f"KS distance between real and synthetic rows in the scores of {words}"))
        found.append(Scale(f"{kind}_pmse_raw", f"pMSE of {words}"))
        ratio = f"pMSE of {words}, divided by its mean under the null: 1 is what chance alone gives"
        found.append(Scale(f"{kind}_pmse_ratio", ratio, highest=None))
    return tuple(found)


class Estimator:
    """A classifier of scikit-learn over the columns of a stacked table."""

    def __init__(self, kind: Kind, features: Features, settings: "Settings") -> None:
        self.kind = kind
        self.features = features
        self.settings = settings
        self.matrix = indicators(features)

    @property
    def rows(self) -> int:
        """Rows of the stacked table."""
        return int(self.features.codes.shape[1])

    def scores(self, target: Floats, train: Ints | None = None, test: Ints | None = None) -> Scored:
        """Probabilities of class 1 for the test rows."""
        fitted = self._machine().fit(
            self.matrix if train is None else self.matrix[train],
            (target if train is None else target[train]).astype(np.int8),
        )
        found = fitted.predict_proba(self.matrix if test is None else self.matrix[test])[:, 1]
        return Scored(np.asarray(found, np.float64), self.matrix.shape[1])

    def resampled(self, index: Ints) -> "Estimator":
        """The same columns for a table made of these rows."""
        return Estimator(self.kind, self.features.take(index), self.settings)

    def _machine(self) -> Any:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.svm import SVC

        if self.kind == "forest":
            own = self.settings
            return RandomForestClassifier(own.trees, min_samples_leaf=own.least_leaf, random_state=own.seed, n_jobs=1)
        return CalibratedClassifierCV(SVC(), method="sigmoid", cv=CALIBRATION_FOLDS, ensemble=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """Size and seed of the classifiers."""

    trees: int
    least_leaf: int
    seed: int


def indicators(features: Features) -> csr_matrix:
    """One column for each label, and one between 0 and 1 for each number; one row for each record."""
    rows = int(features.codes.shape[1])
    widths = np.where(features.ordered, 1, features.sizes)
    starts = np.cumsum(widths) - widths
    places = np.where(features.ordered[:, None], 0, features.codes.astype(np.int64)) + starts[:, None]
    scale = np.maximum(features.sizes - 1, 1)[:, None]
    values = np.where(features.ordered[:, None], features.codes / scale, 1.0)
    pointers = np.arange(0, rows * len(widths) + 1, len(widths)) if len(widths) else np.zeros(rows + 1, np.int64)
    shape = (rows, int(widths.sum()))
    return csr_matrix((values.T.ravel(), places.T.ravel(), pointers), shape=shape)


@dataclass(frozen=True, slots=True)
class Classifiers(Metric):
    """SPECKS and pMSE by a random forest and by a support vector machine, on held-out rows."""

    name: ClassVar[str] = "classifiers"
    question: ClassVar[str] = "Can a random forest or a support vector machine tell synthetic rows from real ones?"
    scales: ClassVar[tuple[Scale, ...]] = _scales()

    trees: int = option(100, help="number of trees in the forest", least=1)
    least_leaf: int = option(5, help="fewest training rows in a leaf of the forest", least=1)
    most_rows: int = option(
        2000, help="largest number of rows of each table that the support vector machine sees", least=50
    )
    draws: int = option(5, help="number of permutations for the null of pMSE", least=2)

    def check(self, schema: Schema) -> None:
        """Raises where scikit-learn is not installed."""
        if _lacking():
            raise UsageError(
                f"metric {self.name}", _lacking() + ".", "Install it: pip install 'understudy[classifiers]'."
            )

    def compare(self, pair: TablePair, context: Context) -> Result:
        """Three scores for each classifier."""
        parts = len(pair.copies) + 2
        found = []
        for place, copy in enumerate(pair.copies):
            found.append(self._outcomes(pair.real, copy, context))
            context.done((place + 1) / parts)
        lines = pair.between_halves(lambda one, other: self._outcomes(one, other, context), len(self.scales))
        context.done((parts - 1) / parts)
        bottoms = self._outcomes(pair.real, pair.independent, context)
        scores = tuple(
            scale.score(mean_outcome([one[place] for one in found]), lines[place], bottoms[place])
            for place, scale in enumerate(self.scales)
        )
        return Result(self.name, self.question, scores, (), self._notes(pair))

    def _notes(self, pair: TablePair) -> tuple[str, ...]:
        most = max(pair.real.count, *(copy.count for copy in pair.copies))
        if most <= self.most_rows:
            return ()
        return (f"The support vector machine saw {self.most_rows:,} rows of each larger table (most_rows).",)

    def _outcomes(self, first: Rows, second: Rows, context: Context) -> tuple[Outcome, ...]:
        """The scores of both classifiers, in the order of the scales."""
        reason = too_small(first, second, "folds")
        if reason is not None:
            return (reason,) * len(self.scales)
        features, target = tree_features(stacked(first, second)), labels(first, second)
        if not features.names:
            return (Unavailable("no column is left to tell the tables apart by"),) * len(self.scales)
        return tuple(value for kind in WORDS for value in self._scored(kind, features, target, context))

    def _scored(self, kind: Kind, features: Features, target: Floats, context: Context) -> tuple[Outcome, ...]:
        """SPECKS, pMSE and its ratio."""
        if kind == "svm":
            kept = _at_most(target, self.most_rows, context.rng("rows"))
            features, target = features.take(kept), target[kept]
        seed = int(context.rng("seed", kind).integers(2**31))
        estimator = Estimator(kind, features, Settings(self.trees, self.least_leaf, seed))
        scored, places = out_of_sample(estimator, target, context.rng("folds"))
        truth = target[places]
        distance = kolmogorov_smirnov(scored.scores[truth == 0], scored.scores[truth == 1])
        raw = mean_squared_deviation(scored.scores, float(target.mean()))
        null = drawn_null(estimator, target, "folds", "permutation", draws=self.draws, context=context)
        ratio: Outcome = raw / null.mean if null.mean > 0 else Unavailable("nothing varies under the null")
        return distance, raw, ratio


def _at_most(target: Floats, most: int, rng: np.random.Generator) -> Ints:
    """Positions of at most so many rows of each table, in their order."""
    parts = [np.flatnonzero(target == label) for label in (0.0, 1.0)]
    kept = [part if len(part) <= most else rng.choice(part, most, replace=False) for part in parts]
    return np.sort(np.concatenate(kept))


def _lacking() -> str:
    try:
        import sklearn  # noqa: F401
    except ImportError:
        return "needs scikit-learn"
    return ""
