"""Trees: every record in one leaf, found as by walking; damaged trees are refused."""

import itertools

import numpy as np
import pytest

from understudy.models.label_trees import Attributes, DecisionTree

ATTRIBUTES = Attributes.of({"a": np.array([0, 1, 1]), "b": np.arange(2), "c": np.arange(4)})
TREE = DecisionTree(np.array([2, -1, 0, -1, 1, -1, 1, -1, -1, -1, -1]), ATTRIBUTES.fan_outs)


def _walked(tree, attributes, record):
    """The leaf of one record, node by node."""
    node = 0
    while tree.splits[node] >= 0:
        column = int(tree.splits[node])
        node = int(tree.places[node]) + int(attributes.groups[column][record[column]])
    return int((tree.splits[:node] < 0).sum())


def test_every_combination_reaches_exactly_one_leaf():
    records = list(itertools.product(range(3), range(2), range(4)))
    codes = {name: np.array(column) for name, column in zip("abc", zip(*records, strict=True), strict=True)}
    leaves = TREE.leaf_of(ATTRIBUTES.grouped(codes, len(records)))
    assert leaves.tolist() == [_walked(TREE, ATTRIBUTES, record) for record in records]
    assert set(leaves.tolist()) == set(range(TREE.leaves))
    assert TREE.faults() == []
    assert (TREE.leaves, TREE.used) == (7, (0, 1, 2))


def test_pooled_codes_share_a_leaf():
    codes = {"a": np.array([1, 2]), "b": np.array([0, 0]), "c": np.array([1, 1])}
    first, second = TREE.leaf_of(ATTRIBUTES.grouped(codes, 2))
    assert first == second


def test_one_leaf_holds_everybody():
    tree = DecisionTree.leaf(ATTRIBUTES.fan_outs)
    codes = {"a": np.array([0, 2]), "b": np.array([0, 1]), "c": np.array([3, 0])}
    assert tree.leaf_of(ATTRIBUTES.grouped(codes, 2)).tolist() == [0, 0]
    assert (tree.leaves, tree.used) == (1, ())


def test_leaves_split_once_more_keep_what_was_there():
    larger = DecisionTree(TREE.splits, TREE.fan_outs).with_leaves_split(1)
    assert larger.faults() == []
    assert larger.leaves == 2 * TREE.leaves
    records = list(itertools.product(range(3), range(2), range(4)))
    codes = {name: np.array(column) for name, column in zip("abc", zip(*records, strict=True), strict=True)}
    grouped = ATTRIBUTES.grouped(codes, len(records))
    before, after = TREE.leaf_of(grouped), larger.leaf_of(grouped)
    assert after.tolist() == [_walked(larger, ATTRIBUTES, record) for record in records]
    for leaf in range(larger.leaves):  # every new leaf lies in one old leaf
        assert len(set(before[after == leaf].tolist())) <= 1


@pytest.mark.parametrize("splits", [[], [3], [-2], [1], [1, -1], [1, -1, -1, -1], [-1, 1, -1], [0, 0, -1, -1]], ids=str)
def test_a_damaged_tree_is_refused(splits):
    assert DecisionTree(np.array(splits, dtype=np.int64), ATTRIBUTES.fan_outs).faults()


@pytest.mark.parametrize(
    "attributes",
    [
        Attributes.of({"x": np.array([0, 1])}),
        Attributes(("a", "a"), (np.arange(3), np.arange(3))),
        Attributes.of({"a": np.array([0, 1])}),
        Attributes.of({"a": np.array([0, 2, 2])}),
        Attributes.of({"a": np.array([-1, 0, 1])}),
    ],
)
def test_damaged_groups_are_refused(attributes):
    assert attributes.faults({"a": 3, "b": 2})
