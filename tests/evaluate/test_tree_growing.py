"""Grown trees against scikit-learn on ordered columns, and against all subsets on labels."""

import itertools

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from understudy.evaluate.cart import Features, TreeLimits, grow_tree


def _features(codes: np.ndarray, *, ordered: bool) -> Features:
    sizes = codes.max(axis=1).astype(np.int64) + 1
    names = tuple(f"c{place}" for place in range(len(codes)))
    return Features(names, np.ascontiguousarray(codes, np.uint16), sizes, np.full(len(codes), ordered))


@pytest.mark.parametrize("seed", range(4))
def test_equals_scikit_learn_on_ordered_columns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.permuted(np.tile(np.arange(700), (3, 1)), axis=1)  # no ties, so there is one best cut
    target = (rng.random(700) < 1 / (1 + np.exp(-(codes[0] - 350) / 60 + (codes[1] > 200)))).astype(np.uint8)
    limits = TreeLimits(split=60, bucket=25, depth=3)  # large nodes, in which no two cuts gain the same
    ours = grow_tree(_features(codes, ordered=True), target, limits=limits)
    theirs = DecisionTreeClassifier(min_samples_split=60, min_samples_leaf=25, max_depth=3, random_state=0)
    expected = theirs.fit(codes.T, target).predict_proba(codes.T)[:, 1]
    np.testing.assert_allclose(ours.probabilities(_features(codes, ordered=True)), expected)
    assert theirs.get_n_leaves() == int((ours.column < 0).sum())


def test_first_cut_of_labels_is_the_best_subset() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 6, (1, 400))
    target = (rng.random(400) < np.array([0.1, 0.9, 0.5, 0.3, 0.8, 0.2])[codes[0]]).astype(np.uint8)
    tree = grow_tree(_features(codes, ordered=False), target, limits=TreeLimits(depth=1))
    leaves = tree.probabilities(_features(codes, ordered=False))

    def gini(inside: np.ndarray) -> float:
        parts = [target[inside], target[~inside]]
        return sum(len(part) * part.mean() * (1 - part.mean()) for part in parts if len(part))

    subsets = (set(chosen) for size in range(1, 6) for chosen in itertools.combinations(range(6), size))
    best = min(gini(np.isin(codes[0], list(chosen))) for chosen in subsets)
    assert float((leaves * (1 - leaves)).sum()) == pytest.approx(best)


def test_limits_are_kept() -> None:
    rng = np.random.default_rng(2)
    codes, target = rng.integers(0, 50, (4, 600)), rng.integers(0, 2, 600).astype(np.uint8)
    tree = grow_tree(_features(codes, ordered=True), target)
    assert tree.number[tree.column < 0].min() >= 7
    assert tree.number[tree.column >= 0].min() >= 20
    assert tree.number[0] == 600


def test_equal_tables_do_not_split() -> None:
    codes = np.tile(np.random.default_rng(3).integers(0, 9, (5, 300)), (1, 2))
    target = np.repeat([0, 1], 300).astype(np.uint8)
    assert len(grow_tree(_features(codes, ordered=True), target).column) == 1


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
