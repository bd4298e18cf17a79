"""Pruning: weakest links against trying every subtree."""

import itertools

import numpy as np
import pytest

from understudy.evaluate.cart import Features, Tree, TreeLimits, errors_by_complexity, grow_tree


def _grown(seed: int) -> tuple[Tree, Features, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 8, (3, 160)).astype(np.uint16)
    target = (rng.random(160) < np.where(codes[0] > 3, 0.7, 0.35) + 0.1 * (codes[1] > 5)).astype(np.uint8)
    features = Features(("a", "b", "c"), codes, np.array([8, 8, 8]), np.ones(3, np.bool_))
    return grow_tree(features, target, limits=TreeLimits(split=20, bucket=7, depth=4)), features, target


def _best_cost(tree: Tree, penalty: float) -> float:
    """The smallest risk + penalty · leaves over all subtrees, by recursion."""
    root = max(1, min(tree.ones[0], tree.number[0] - tree.ones[0]))

    def cost(node: int) -> float:
        alone = min(tree.ones[node], tree.number[node] - tree.ones[node]) / root + penalty
        if tree.column[node] < 0:
            return float(alone)
        return float(min(alone, cost(tree.left[node]) + cost(tree.left[node] + 1)))

    return cost(0)


@pytest.mark.parametrize("seed", range(6))
def test_pruned_tree_is_the_cheapest(seed: int) -> None:
    tree, features, _ = _grown(seed)
    root = max(1, min(tree.ones[0], tree.number[0] - tree.ones[0]))
    for penalty in (0.0, 0.003, 0.01, 0.02, 0.05, 0.2, 1.0):
        leaves = tree.leaves(features, penalty)
        used = np.unique(leaves)
        risk = sum(min(tree.ones[leaf], tree.number[leaf] - tree.ones[leaf]) for leaf in used.tolist())
        assert risk / root + penalty * len(used) == pytest.approx(_best_cost(tree, penalty))


def test_errors_by_complexity_equal_predicting_one_by_one() -> None:
    tree, features, target = _grown(3)
    grid = np.array([0.0, 0.001, 0.01, 0.03, 0.1, 0.5, 2.0])
    rows = np.arange(0, 160, 3)
    parts = (tree.column, tree.left, tree.start, tree.sides, tree.collapse, tree.number, tree.ones)
    found = errors_by_complexity(features.codes, rows, target, parts, grid)
    for errors, complexity in zip(found.tolist(), grid.tolist(), strict=True):
        leaves = tree.leaves(features, complexity, rows)
        predicted = 2 * tree.ones[leaves] > tree.number[leaves]
        assert errors == int((predicted != target[rows].astype(bool)).sum())


def test_larger_complexity_never_means_more_leaves() -> None:
    tree, features, _ = _grown(1)
    sizes = [len(np.unique(tree.leaves(features, value))) for value in (-1.0, 0.0, 0.01, 0.05, 0.3, 2.0)]
    assert all(first >= second for first, second in itertools.pairwise(sizes))
    assert sizes[-1] == 1
