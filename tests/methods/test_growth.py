"""Growing: columns drawn by weight and never twice on a path, limits kept, the same seed the same tree."""

import itertools

import numpy as np
import pytest

from understudy.domain import Partition
from understudy.methods.rdt import GrowthLimits, Reference, TreeGrowth, grow_by_counts
from understudy.models.label_trees import Attributes

SIZES = {"a": 3, "b": 2, "c": 4, "d": 2}
ATTRIBUTES = Attributes.of({name: np.arange(size) for name, size in SIZES.items()})
RECORDS = np.array(list(itertools.product(*(range(size) for size in SIZES.values()))))
CODES = {name: RECORDS[:, place] for place, name in enumerate(SIZES)}
EVEN = Reference(CODES, np.ones(len(RECORDS)))


def start(seed=0, weights=(1.0, 1.0, 1.0, 1.0), attributes=ATTRIBUTES, **limits):
    given = {"leaf_size": 1, "depth": 9, "leaves": 1000} | limits
    return TreeGrowth.start(
        "tree", attributes, weights, GrowthLimits(**given), seed=(seed, 0, 0), order=tuple(attributes.names)
    )


def paths(tree):
    """For each leaf the columns split on above it."""
    found, waiting = {}, [(0, ())]
    while waiting:
        node, path = waiting.pop()
        column = int(tree.splits[node])
        if column < 0:
            found[int(tree.places[node])] = path
        else:
            children = range(int(tree.places[node]), int(tree.places[node]) + tree.fan_outs[column])
            waiting += [(child, (*path, column)) for child in children]  # type: ignore[misc]
    return found


def test_nodes_split_while_they_hold_enough_records():
    tree = grow_by_counts(start(leaf_size=10), EVEN)
    leaves = tree.leaf_of(ATTRIBUTES.grouped(CODES, len(RECORDS)))
    counts = np.bincount(leaves, minlength=tree.leaves)
    assert counts.sum() == len(RECORDS)
    assert counts.max() < 10
    for leaf, path in paths(tree).items():
        held = counts[leaf] * SIZES[list(SIZES)[path[-1]]]  # records are spread evenly, so this is the parent's
        assert held >= 10


def test_no_column_twice_on_a_path_and_everything_split_at_the_end():
    tree = grow_by_counts(start(leaf_size=0), EVEN)
    assert all(sorted(path) == [0, 1, 2, 3] for path in paths(tree).values())
    assert tree.leaves == len(RECORDS)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_depth_is_a_limit(depth):
    tree = grow_by_counts(start(leaf_size=0, depth=depth), EVEN)
    assert {len(path) for path in paths(tree).values()} == {depth}


def test_leaves_are_a_limit():
    for most in (1, 2, 3, 5, 9, 20):
        assert grow_by_counts(start(leaf_size=0, leaves=most), EVEN).leaves <= most
    assert grow_by_counts(start(leaf_size=0, leaves=20), EVEN).leaves > 10


def test_per_level_gives_every_node_of_a_layer_the_same_column():
    tree = grow_by_counts(start(leaf_size=0, per_level=True), EVEN)
    assert len(set(paths(tree).values())) == 1
    mixed = grow_by_counts(start(leaf_size=0), EVEN)
    assert len(set(paths(mixed).values())) > 1


def test_weight_0_is_never_drawn_and_large_weights_nearly_always():
    firsts = []
    for seed in range(200):
        tree = grow_by_counts(start(seed, weights=(60.0, 0.0, 1.0, 1.0), leaf_size=0), EVEN)
        assert 1 not in tree.used
        firsts.append(int(tree.splits[0]))
    share = firsts.count(0) / 200
    assert abs(share - 60 / 62) < 4 * np.sqrt(60 * 2 / 62**2 / 200)
    assert set(firsts) - {0}, "the others are never drawn"


def test_only_weight_0_leaves_one_leaf():
    assert grow_by_counts(start(weights=(0.0,) * 4, leaf_size=0), EVEN).leaves == 1


def test_a_column_of_one_group_is_never_split_on():
    pooled = Attributes.of({"a": np.zeros(3, int), "b": np.arange(2)})
    tree = grow_by_counts(start(weights=(1.0, 1.0), attributes=pooled, leaf_size=0), EVEN)
    assert tree.used == (1,)


def test_the_seed_decides_the_tree():
    trees = [grow_by_counts(start(seed, leaf_size=0), EVEN).splits.tolist() for seed in (1, 1, 2)]
    assert trees[0] == trees[1]
    assert trees[0] != trees[2]


def test_the_frontier_is_a_partition_of_open_nodes_and_the_rest():
    growth = start(leaf_size=0)
    assert isinstance(growth.frontier, Partition)
    assert growth.frontier.assign({"a": np.array([0, 2])}).tolist() == [0, 0]
    first = growth.after(np.array([True]))
    assert first.depths.tolist() == [1] * first.open.size
    split = np.zeros(first.open.size, dtype=bool)
    split[0] = True
    second = first.after(split)
    cells = second.frontier.assign(CODES)
    assert second.frontier.cells == second.open.size + 1
    assert set(cells.tolist()) == set(range(second.frontier.cells)), "closed nodes share the last cell"
    fewer = first.frontier.assign({name: CODES[name] for name in first.frontier.columns})
    assert np.array_equal(fewer, first.frontier.assign(CODES)), "it looks at its columns only"


def test_expected_numbers_of_records_may_be_fractions():
    halves = Reference(CODES, np.full(len(RECORDS), 0.5))
    assert grow_by_counts(start(leaf_size=len(RECORDS)), halves).leaves == 1
    assert grow_by_counts(start(leaf_size=len(RECORDS) // 2), halves).leaves > 1
