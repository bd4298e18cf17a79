"""Classification trees for two classes, grown and pruned as `rpart` does by default, on coded columns."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.evaluate.models.tree_features import Features
from understudy.evaluate.models.tree_growing import grow, leaves_of
from understudy.evaluate.models.tree_pruning import collapse_values, errors_by_complexity

__all__ = ["Limits", "Tree", "best_complexity", "grow_tree"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Target = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Limits:
    """When growing stops: rows a node needs to be split, rows a leaf must keep, levels below the root."""

    split: int = 20
    bucket: int = 7
    depth: int = 30


USUAL = Limits()


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A fully grown tree; how much of it is used is decided by the complexity asked for."""

    column: npt.NDArray[np.int32]
    left: npt.NDArray[np.int32]
    start: Ints
    number: Ints
    ones: Ints
    sides: npt.NDArray[np.uint8]
    collapse: Floats

    def leaves(self, features: Features, complexity: float = -1.0, rows: Ints | None = None) -> npt.NDArray[np.int32]:
        """The leaf of each row, when nodes worth no more than the complexity are cut; below 0: none is."""
        wanted = np.arange(features.codes.shape[1]) if rows is None else rows
        found: npt.NDArray[np.int32] = leaves_of(
            features.codes, wanted, self.column, self.left, self.start, self.sides, self.collapse, complexity
        )
        return found

    def probabilities(self, features: Features, complexity: float = -1.0, rows: Ints | None = None) -> Floats:
        """The share of class 1 in the leaf of each row."""
        shares = self.ones / np.maximum(self.number, 1)
        return shares[self.leaves(features, complexity, rows)]

    def splits(self, complexity: float) -> bool:
        """Whether the tree still splits at this complexity."""
        return bool(self.column[0] >= 0 and self.collapse[0] > complexity)


def grow_tree(features: Features, target: Target, rows: Ints | None = None, limits: Limits = USUAL) -> Tree:
    """The full tree for these rows (all of them when not given)."""
    index = np.arange(features.codes.shape[1]) if rows is None else rows.astype(np.int64)
    bounds = (limits.split, limits.bucket, limits.depth)
    parts = grow(features.codes, features.sizes, features.ordered, target, index.copy(), bounds)
    column, left, start, number, ones, sides = parts
    return Tree(column, left, start, number, ones, sides, collapse_values(left, number, ones))


def best_complexity(
    features: Features, target: Target, rng: np.random.Generator, *, folds: int = 5, limits: Limits = USUAL
) -> float:
    """The complexity with the smallest cross-validated error, the largest one if several tie.

    Candidates lie between the values at which the tree of all rows changes.
    """
    whole = grow_tree(features, target, limits=limits)
    values = np.unique(whole.collapse[whole.column >= 0])
    values = values[values > 0]
    if not len(values):
        return 0.0
    grid = np.concatenate([[0.0], np.sqrt(values[:-1] * values[1:]), [2 * values[-1]]])
    errors = np.zeros(len(grid), np.int64)
    fold = rng.permutation(np.arange(len(target)) % folds)
    for number in range(folds):
        tree = grow_tree(features, target, np.flatnonzero(fold != number), limits)
        parts = (tree.column, tree.left, tree.start, tree.sides, tree.collapse, tree.number, tree.ones)
        errors += errors_by_complexity(features.codes, np.flatnonzero(fold == number), target, parts, grid)
    return float(grid[len(grid) - 1 - int(np.argmin(errors[::-1]))])
