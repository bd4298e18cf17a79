"""Tests of `understudy.evaluate.cart`."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from tests.evaluate.examples import mixed, mixed_frame, rows_of
from understudy.evaluate.cart import (
    MOST_CUTS,
    Features,
    Tree,
    TreeLimits,
    best_complexity,
    errors_by_complexity,
    grow_tree,
    tree_features,
)
from understudy.schema import Float, Schema, Unit

# Trees as classifiers: complexity by cross-validation, probabilities of leaves.


def _features(codes: np.ndarray) -> Features:
    return Features(("a", "b"), codes.astype(np.uint16), np.array([10, 10]), np.ones(2, np.bool_))


def test_noise_alone_is_pruned_away() -> None:
    rng = np.random.default_rng(1)
    codes, target = rng.integers(0, 10, (2, 800)), rng.integers(0, 2, 800).astype(np.uint8)
    features = _features(codes)
    complexity = best_complexity(features, target, np.random.default_rng(0))
    kept = len(np.unique(grow_tree(features, target).leaves(features, complexity)))
    assert kept < len(np.unique(grow_tree(features, target).leaves(features))) / 4


def test_signal_is_kept_and_the_choice_is_reproducible() -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 10, (2, 800))
    target = (rng.random(800) < np.where(codes[0] > 4, 0.9, 0.1)).astype(np.uint8)
    features = _features(codes)
    complexity = best_complexity(features, target, np.random.default_rng(0))
    assert complexity == best_complexity(features, target, np.random.default_rng(0))
    tree = grow_tree(features, target)
    assert tree.splits(complexity)
    found = tree.probabilities(features, complexity)
    assert found[codes[0] > 4].min() > 0.5 > found[codes[0] <= 4].max()


def test_one_class_is_a_single_leaf() -> None:
    features = _features(np.zeros((2, 50), np.int64))
    tree = grow_tree(features, np.zeros(50, np.uint8))
    assert not tree.splits(0.0)
    assert best_complexity(features, np.zeros(50, np.uint8), np.random.default_rng(0)) == 0.0
    assert tree.probabilities(features).tolist() == [0.0] * 50


# Columns as trees see them: labels by code, numbers by rank, odd numbers above all others.


def test_order_is_kept_and_odd_values_come_last() -> None:
    rows = rows_of(mixed_frame(300), mixed())
    features = tree_features(rows)
    assert features.names == ("region", "sex", "voted", "age", "income", "seen")
    assert features.ordered.tolist() == [False, False, False, True, True, True]
    age = features.codes[3].astype(int)
    known = ~np.isnan(rows.numbers["age"])
    order = np.argsort(rows.numbers["age"][known], kind="stable")
    assert (np.diff(age[known][order]) >= 0).all()
    assert age[~known].min() > age[known].max()
    assert (features.codes.max(axis=1) < features.sizes).all()


def test_left_out_columns_are_gone() -> None:
    assert "age" not in tree_features(rows_of(mixed_frame(50), mixed()), leave_out={"age"}).names


def test_many_values_are_cut_at_quantiles() -> None:
    schema = Schema(columns=(Float(name="x", lower=0.0, upper=1.0),), unit=Unit())
    rows = rows_of(pd.DataFrame({"x": np.random.default_rng(1).random(5000)}), schema)
    counts = np.bincount(tree_features(rows).codes[0])
    assert len(counts) == MOST_CUTS
    assert counts.max() < 2 * 5000 / MOST_CUTS


# Grown trees against scikit-learn on ordered columns, and against all subsets on labels.


def _tree_growing_features(codes: np.ndarray, *, ordered: bool) -> Features:
    sizes = codes.max(axis=1).astype(np.int64) + 1
    names = tuple(f"c{place}" for place in range(len(codes)))
    return Features(names, np.ascontiguousarray(codes, np.uint16), sizes, np.full(len(codes), ordered))


@pytest.mark.parametrize("seed", range(4))
def test_equals_scikit_learn_on_ordered_columns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.permuted(np.tile(np.arange(700), (3, 1)), axis=1)  # no ties, so there is one best cut
    target = (rng.random(700) < 1 / (1 + np.exp(-(codes[0] - 350) / 60 + (codes[1] > 200)))).astype(np.uint8)
    limits = TreeLimits(split=60, bucket=25, depth=3)  # large nodes, in which no two cuts gain the same
    ours = grow_tree(_tree_growing_features(codes, ordered=True), target, limits=limits)
    theirs = DecisionTreeClassifier(min_samples_split=60, min_samples_leaf=25, max_depth=3, random_state=0)
    expected = theirs.fit(codes.T, target).predict_proba(codes.T)[:, 1]
    np.testing.assert_allclose(ours.probabilities(_tree_growing_features(codes, ordered=True)), expected)
    assert theirs.get_n_leaves() == int((ours.column < 0).sum())


def test_first_cut_of_labels_is_the_best_subset() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 6, (1, 400))
    target = (rng.random(400) < np.array([0.1, 0.9, 0.5, 0.3, 0.8, 0.2])[codes[0]]).astype(np.uint8)
    tree = grow_tree(_tree_growing_features(codes, ordered=False), target, limits=TreeLimits(depth=1))
    leaves = tree.probabilities(_tree_growing_features(codes, ordered=False))

    def gini(inside: np.ndarray) -> float:
        parts = [target[inside], target[~inside]]
        return sum(len(part) * part.mean() * (1 - part.mean()) for part in parts if len(part))

    subsets = (set(chosen) for size in range(1, 6) for chosen in itertools.combinations(range(6), size))
    best = min(gini(np.isin(codes[0], list(chosen))) for chosen in subsets)
    assert float((leaves * (1 - leaves)).sum()) == pytest.approx(best)


def test_limits_are_kept() -> None:
    rng = np.random.default_rng(2)
    codes, target = rng.integers(0, 50, (4, 600)), rng.integers(0, 2, 600).astype(np.uint8)
    tree = grow_tree(_tree_growing_features(codes, ordered=True), target)
    assert tree.number[tree.column < 0].min() >= 7
    assert tree.number[tree.column >= 0].min() >= 20
    assert tree.number[0] == 600


def test_equal_tables_do_not_split() -> None:
    codes = np.tile(np.random.default_rng(3).integers(0, 9, (5, 300)), (1, 2))
    target = np.repeat([0, 1], 300).astype(np.uint8)
    assert len(grow_tree(_tree_growing_features(codes, ordered=True), target).column) == 1


def test_codes_never_seen_find_a_leaf() -> None:
    codes = np.array([[0] * 50 + [3] * 50])
    target = np.repeat([0, 1], 50).astype(np.uint8)
    for ordered in (True, False):
        features = Features(("c",), codes.astype(np.uint16), np.array([6]), np.array([ordered]))
        other = Features(("c",), np.array([[1, 2, 4, 5]], np.uint16), np.array([6]), np.array([ordered]))
        found = grow_tree(features, target).probabilities(other)
        assert set(found.tolist()) <= {0.0, 1.0}
        if ordered:
            assert found.tolist() == [0.0, 1.0, 1.0, 1.0]


# Pruning: weakest links against trying every subtree.


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
