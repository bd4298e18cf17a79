"""A fixed tree cut back by decisions: who is open, which cell a record lies in, and what the cut tree looks like."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.domain import Domain
from understudy.methods.steps_tree import NodeGrowth
from understudy.models.histogram_tree import TreeStructure
from understudy.privacy.trees import GrowingTree

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2, "d": 4})


def full_tree() -> TreeStructure:
    tree = TreeStructure.root(DOMAIN).split(["b"]).split(["a", "c", "d"])
    return tree.split(["c"] * 2 + ["a"] * 2 + ["a"] * 4)


def all_codes() -> dict[str, np.ndarray]:
    cells = np.indices(DOMAIN.shape(DOMAIN.columns)).reshape(4, -1)
    return dict(zip(DOMAIN.columns, cells, strict=True))


def test_growth_starts_at_the_root_and_opens_children_of_split_nodes() -> None:
    growth: GrowingTree = NodeGrowth.of(full_tree(), 4.0, 0)
    assert growth.frontier.cells == 2
    assert growth.depths.tolist() == [0]
    growth = growth.after(np.array([True]))
    assert growth.depths.tolist() == [1, 1, 1]
    assert growth.frontier.assign(all_codes()).tolist() == (all_codes()["b"]).tolist()
    growth = growth.after(np.array([False, True, False]))
    assert growth.frontier.cells == 3
    cells = growth.frontier.assign(all_codes())
    inside = all_codes()["b"] == 1
    assert np.array_equal(cells, np.where(inside, all_codes()["c"], 2))
    assert growth.after(np.array([False, True])).finished
    assert growth.after(np.array([False, False])).finished


@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), min_size=12, max_size=12))
def test_the_cut_tree_keeps_split_nodes_and_passes_on_the_others(decisions: list[bool]) -> None:
    tree = full_tree()
    growth = NodeGrowth.of(tree, 4.0, 0)
    left = iter(decisions)
    while not growth.finished:
        growth = growth.after(np.array([next(left) for _ in range(growth.open.size)]))
    cut = growth.pruned()
    assert cut.layers == tree.layers
    assert cut.faults() == []
    codes = all_codes()
    for layer in range(1, tree.layers + 1):
        # Two records share a node of the cut tree if and only if no split above separates them in the full one.
        expected = np.zeros(len(codes["a"]), dtype=np.int64)
        for above in range(layer):
            split = growth.splits[above] if above < len(growth.splits) else np.zeros(tree.size(above), dtype=bool)
            node, child = tree.find(codes, above), tree.find(codes, above + 1)
            expected = np.where(split[node], 1000 * (above + 1) + child, expected)
        found = cut.find(codes, layer)
        pairs = {(int(one), int(other)) for one, other in zip(expected, found, strict=True)}
        assert len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs})


def test_a_tree_without_layers_is_finished() -> None:
    growth = NodeGrowth.of(TreeStructure.root(DOMAIN), 4.0, 0)
    assert growth.finished
    assert growth.pruned().layers == 0
    with pytest.raises(IndexError):
        growth.after(np.array([True]))
