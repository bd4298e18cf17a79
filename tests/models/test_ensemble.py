"""Ensembles: leaf distributions by hand, averages over trees, damaged ones refused."""

import numpy as np

from understudy.models.label_trees import Attributes, DecisionTree, Ensemble

ATTRIBUTES = Attributes.of({"a": np.arange(2)})
LEAF, SPLIT = DecisionTree.leaf((2,)), DecisionTree(np.array([0, -1, -1]), (2,))
SIZES = {"a": 2, "sex": 2}


def test_the_printed_leaf():
    ensemble = Ensemble.of_counts("sex", ATTRIBUTES, [LEAF], [[6 - 1, 4 + 3]])
    assert round(float(ensemble.tables[0][0, 0]), 4) == 0.4167


def test_the_printed_mean_of_two_trees():
    ensemble = Ensemble.of_counts("sex", ATTRIBUTES, [LEAF, LEAF], [[5, 7], [3, 9]])
    assert round(float(ensemble.distribution({"a": np.array([0])}, 1)[0, 0]), 4) == 0.3333


def test_negative_counts_are_nothing_and_nothing_is_uniform():
    ensemble = Ensemble.of_counts("sex", ATTRIBUTES, [SPLIT], [[-3, 4, -1, -2]])
    assert ensemble.distribution({"a": np.array([0, 1])}, 2).tolist() == [[0.0, 1.0], [0.5, 0.5]]
    assert ensemble.used == ("a",)
    assert Ensemble.of_counts("sex", ATTRIBUTES, [LEAF], [[1, 1]]).used == ()


def test_a_tree_drawn_at_random_gives_the_same_distribution():
    rng = np.random.default_rng(3)
    ensemble = Ensemble.of_counts("sex", ATTRIBUTES, [LEAF, SPLIT], [[2, 8], [9, 1, 5, 5]])
    distribution = ensemble.distribution({"a": np.array([0])}, 1)[0]
    draws = 20_000
    tree = rng.integers(0, 2, draws)
    shares = np.where(tree == 0, ensemble.tables[0][0, 0], ensemble.tables[1][0, 0])
    found = (rng.random(draws) < shares).mean()
    assert abs(found - distribution[0]) < 5 * np.sqrt(distribution[0] * distribution[1] / draws)


def test_damaged_ensembles_are_refused():
    good = Ensemble.of_counts("sex", ATTRIBUTES, [SPLIT], [[1, 1, 1, 1]])
    assert good.faults(SIZES) == []
    tables = (np.array([[0.5, 0.6], [0.5, 0.5]]),)
    assert Ensemble("sex", ATTRIBUTES, good.trees, tables).faults(SIZES)
    assert Ensemble("sex", ATTRIBUTES, good.trees, (np.array([[0.5, 0.5]]),)).faults(SIZES)
    assert Ensemble("sex", ATTRIBUTES, good.trees, (np.array([[1.5, -0.5], [0.5, 0.5]]),)).faults(SIZES)
    assert Ensemble("sex", ATTRIBUTES, (), ()).faults(SIZES)
    assert Ensemble("a", ATTRIBUTES, good.trees, good.tables).faults(SIZES)
