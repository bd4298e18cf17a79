"""Classifiers that tell real rows (0) from synthetic ones (1): logistic regression and classification trees.

Both are prepared once for a stacked table and can then be fitted to any labels and any selection of its rows, which
is what permutations, bootstrap draws and folds need. Trees are pruned at one complexity for all data sets of an
evaluation: every copy, the two real halves, and what is drawn under a null. It is the one with the least error in
5-fold cross-validation on the real table and the first copy, unless an option sets it; the draw of the folds follows
from the seed alone, so that all metrics with trees use the same one.
"""

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from understudy.errors import UsageError
from understudy.evaluate.data.pair import Pair
from understudy.evaluate.data.rows import Rows, stacked
from understudy.evaluate.models.design import Design, design_of
from understudy.evaluate.models.logistic import fit_logistic
from understudy.evaluate.models.rank import independent_columns
from understudy.evaluate.models.terms import propensity_terms
from understudy.evaluate.models.tree import best_complexity, grow_tree
from understudy.evaluate.models.tree_features import Features, tree_features
from understudy.evaluate.score import Unavailable

__all__ = [
    "MAIN_EFFECTS",
    "MOST_COEFFICIENTS",
    "Classifier",
    "Logistic",
    "Scored",
    "Terms",
    "Trees",
    "check_complexity",
    "common_complexity",
    "labels",
    "out_of_sample",
    "too_small",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Terms = Literal["main", "interactions"]

MOST_COEFFICIENTS = 3000
MAIN_EFFECTS = ("A regression on main effects sees single columns only; the tree sees combinations too.",)
FOLDS = 5
TRAINED = 0.7
FEWEST_ROWS = 10
FEWEST_FOLD_ROWS = 50


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


def too_small(first: Rows, second: Rows, scheme: str) -> Unavailable | None:
    """Why these tables cannot be told apart by a classifier, if they cannot."""
    fewest = FEWEST_ROWS if scheme == "in_sample" else FEWEST_FOLD_ROWS
    if min(first.count, second.count) < fewest:
        return Unavailable(f"a table with fewer than {fewest} rows cannot train a classifier")
    return None


def check_complexity(metric: str, complexity: float | None) -> None:
    """Raises for a complexity that no tree can have."""
    if complexity is not None and not 0 <= complexity <= 1:
        raise UsageError(f"{metric}: complexity", f"must lie between 0 and 1, got {complexity!r}.")


def common_complexity(pair: Pair, given: float | None) -> float:
    """The complexity at which every tree of this evaluation is pruned: the given one, or one by cross-validation.

    Tables that are too small to train on are never scored, so that theirs does not matter.
    """
    if given is not None:
        return given
    if too_small(pair.real, pair.copies[0], "in_sample") is not None:
        return 0.0
    rng = np.random.default_rng([pair.seed, zlib.crc32(b"complexity of trees")])
    features = tree_features(stacked(pair.real, pair.copies[0]))
    return best_complexity(features, labels(pair.real, pair.copies[0]).astype(np.uint8), rng, folds=FOLDS)


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
    """A classification tree pruned at one complexity."""

    def __init__(self, features: Features, complexity: float) -> None:
        self.features = features
        self.complexity = complexity

    @classmethod
    def of(cls, first: Rows, second: Rows, complexity: float) -> "Trees":
        """The tree for two tables."""
        return cls(tree_features(stacked(first, second)), complexity)

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
