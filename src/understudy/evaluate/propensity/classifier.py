"""Classifiers that tell real rows (0) from synthetic ones (1): logistic regression and classification trees.

Both are prepared once for a stacked table and can then be fitted to any labels and any selection of its rows, which
is what permutations, bootstrap draws and folds need.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from understudy.evaluate.data.rows import Rows, stacked
from understudy.evaluate.models.design import Design, design_of
from understudy.evaluate.models.logistic import fit_logistic
from understudy.evaluate.models.rank import independent_columns
from understudy.evaluate.models.terms import propensity_terms
from understudy.evaluate.models.tree import best_complexity, grow_tree
from understudy.evaluate.models.tree_features import Features, tree_features
from understudy.evaluate.score import Unavailable

__all__ = ["MOST_COEFFICIENTS", "Classifier", "Logistic", "Scored", "Terms", "Trees", "labels", "out_of_sample"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Terms = Literal["main", "interactions"]

MOST_COEFFICIENTS = 3000
FOLDS = 5
TRAINED = 0.7


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Propensity scores of rows, the number of fitted parameters, and whether anything was told apart at all."""

    scores: Floats
    parameters: int
    splits: bool = True
    ridge: float = 0.0


class Classifier(Protocol):
    """Fits labels to rows of a stacked table."""

    @property
    def rows(self) -> int:
        """Rows of the stacked table."""
        ...

    def scores(self, target: Floats, train: Ints | None = None, test: Ints | None = None) -> Scored:
        """Scores of the test rows after fitting the labels of the train rows (positions; all rows when not given)."""
        ...

    def resampled(self, index: Ints) -> "Classifier":
        """The same classifier for a table made of these rows."""
        ...


def labels(first: Rows, second: Rows) -> Floats:
    """0 for the rows of the first table, 1 for those of the second."""
    return np.concatenate([np.zeros(first.count), np.ones(second.count)])


class Logistic:
    """Logistic regression on main effects, or with all products of two columns."""

    def __init__(self, design: Design) -> None:
        self.design = design

    @classmethod
    def of(cls, first: Rows, second: Rows, terms: Terms = "main") -> "Logistic | Unavailable":
        """The regression for two tables, unless it would have too many coefficients."""
        whole = stacked(first, second)
        found = propensity_terms(whole, interactions=terms == "interactions")
        width = 1 + sum(len(term.names) for term in found)
        if width > MOST_COEFFICIENTS:
            return Unavailable(
                f"the regression would have {width:,} coefficients, above the limit of {MOST_COEFFICIENTS:,}"
            )
        return cls(design_of(found, whole.count))

    @property
    def rows(self) -> int:
        """Rows of the stacked table."""
        return self.design.rows

    @cached_property
    def kept(self) -> npt.NDArray[np.bool_]:
        """Columns of the whole matrix that are no combinations of others: the same for all labels."""
        return independent_columns(self.design.cross(np.ones(self.design.rows)))

    def scores(self, target: Floats, train: Ints | None = None, test: Ints | None = None) -> Scored:
        """Fitted probabilities of the test rows."""
        if train is None:
            fit = fit_logistic(self.design, target, self.kept)
        else:
            fit = fit_logistic(self.design.take(train), target[train])
        scores = fit.probabilities
        if train is not None or test is not None:
            wanted = self.design if test is None else self.design.take(test)
            scores = np.asarray(expit(wanted.predict(fit.coefficients)), np.float64)
        return Scored(scores, fit.parameters, fit.parameters > 1, fit.ridge)

    def resampled(self, index: Ints) -> "Logistic":
        """The same terms for a table made of these rows."""
        return Logistic(self.design.take(index))


class Trees:
    """A classification tree pruned at one complexity, chosen by cross-validation when not given."""

    def __init__(self, features: Features, complexity: float) -> None:
        self.features = features
        self.complexity = complexity

    @classmethod
    def of(cls, first: Rows, second: Rows, complexity: float | None, rng: np.random.Generator) -> "Trees":
        """The tree for two tables."""
        features = tree_features(stacked(first, second))
        if complexity is None:
            complexity = best_complexity(features, labels(first, second).astype(np.uint8), rng, folds=FOLDS)
        return cls(features, complexity)

    @property
    def rows(self) -> int:
        """Rows of the stacked table."""
        return int(self.features.codes.shape[1])

    def scores(self, target: Floats, train: Ints | None = None, test: Ints | None = None) -> Scored:
        """Shares of class 1 in the leaves of the test rows."""
        tree = grow_tree(self.features, target.astype(np.uint8), train)
        scores = tree.probabilities(self.features, self.complexity, test)
        return Scored(scores, int((tree.column >= 0).sum()), tree.splits(self.complexity))

    def resampled(self, index: Ints) -> "Trees":
        """The same columns for a table made of these rows, at the same complexity."""
        return Trees(self.features.take(index), self.complexity)


def out_of_sample(classifier: Classifier, target: Floats, rng: np.random.Generator) -> tuple[Scored, Ints]:
    """Scores of rows that took no part in the fit, and which rows those are.

    Both tables are cut into five folds; within each fold 70 % of either table train the classifier and the
    other 30 % are scored; the scores of all folds are pooled.
    """
    found: list[Floats] = []
    places: list[Ints] = []
    parameters, splits, ridge = 0, False, 0.0
    by_label = [rng.permutation(np.flatnonzero(target == label)) for label in (0.0, 1.0)]
    for fold in range(FOLDS):
        train: list[Ints] = []
        test: list[Ints] = []
        for members in by_label:
            here = members[fold::FOLDS]
            cut = round(TRAINED * len(here))
            train.append(np.sort(here[:cut]))
            test.append(np.sort(here[cut:]))
        scored = classifier.scores(target, np.concatenate(train), np.concatenate(test))
        found.append(scored.scores)
        places.append(np.concatenate(test))
        parameters, splits = max(parameters, scored.parameters), splits or scored.splits
        ridge = max(ridge, scored.ridge)
    return Scored(np.concatenate(found), parameters, splits, ridge), np.concatenate(places)
