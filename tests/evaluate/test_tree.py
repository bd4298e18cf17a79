"""Trees as classifiers: complexity by cross-validation, probabilities of leaves."""

import numpy as np

from understudy.evaluate.cart import Features, best_complexity, grow_tree


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
