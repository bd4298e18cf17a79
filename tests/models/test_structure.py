import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.domain import Domain, Partition
from understudy.errors import UsageError
from understudy.models.histogram_tree import TreeNode, TreeStructure

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 5})


def all_codes(domain=DOMAIN):
    shape = domain.shape(domain.columns)
    return dict(zip(domain.columns, (axis.ravel() for axis in np.indices(shape)), strict=True))


def by_hand(structure, layer, codes):
    """The node of each record, found by comparing it with every box."""
    lows, highs = structure.boxes(layer)
    table = np.stack([codes[name] for name in structure.domain.columns], axis=1)
    inside = np.all((table[:, None] >= lows) & (table[:, None] < highs), axis=2)
    assert np.all(inside.sum(axis=1) == 1)
    return inside.argmax(axis=1)


@st.composite
def structures(draw):
    structure = TreeStructure.root(DOMAIN)
    for _ in range(draw(st.integers(0, 4))):
        columns = [draw(st.sampled_from([*DOMAIN.columns, None])) for _ in range(structure.size())]
        structure = structure.refine(columns, parts=draw(st.integers(1, 6)))
    return structure


@settings(max_examples=60, deadline=None)
@given(structures())
def test_every_record_finds_the_node_whose_box_holds_it(structure):
    codes = all_codes()
    for layer in range(structure.layers + 1):
        partition = structure.partition(layer)
        assert isinstance(partition, Partition)
        assert partition.cells == structure.size(layer)
        expected = by_hand(structure, layer, codes)
        found = partition.assign({name: codes[name].astype(np.uint8) for name in partition.columns})
        assert found.tolist() == expected.tolist()
    assert structure.leaf_parents().tolist() == by_hand(structure, -1, codes).tolist()
    assert structure.faults() == []


@settings(max_examples=60, deadline=None)
@given(structures())
def test_parents_hold_what_their_children_hold(structure):
    for layer, parents in enumerate(structure.parent_places(), start=1):
        cells = structure.widths(layer).prod(axis=1)
        above = structure.widths(layer - 1).prod(axis=1)
        assert np.bincount(parents, weights=cells).tolist() == above.tolist()
    assert structure.widths().prod(axis=1).sum() == 30


def test_nodes_are_told_as_parent_column_and_range():
    structure = TreeStructure.root(DOMAIN).split(["a"]).refine(["c", None], parts=2)
    assert structure.nodes(0) == [TreeNode(-1, None, 0, 0)]
    assert structure.nodes(1) == [TreeNode(0, "a", 0, 1), TreeNode(0, "a", 1, 2)]
    assert structure.nodes() == [TreeNode(0, "c", 0, 2), TreeNode(0, "c", 2, 5), TreeNode(1, None, 0, 0)]
    assert structure.partition().name == "layer 2"
    assert structure.partition().columns == ("a", "c")
    assert structure.partition(0).columns == ("a",)  # a rule that looks at nothing could not be told how many rows
    assert structure.partition(0).assign({"a": np.array([1, 0, 1])}).tolist() == [0, 0, 0]


def test_ranges_can_be_given():
    structure = TreeStructure.root(DOMAIN).divide(["c"], [[2, 4]]).divide(["c", "a", None], [[1], [], []])
    assert [(node.low, node.high) for node in structure.nodes(1)] == [(0, 2), (2, 4), (4, 5)]
    assert [(node.parent, node.column) for node in structure.nodes()] == [(0, "c"), (0, "c"), (1, "a"), (2, None)]
    assert structure.leaf_parents().reshape(2, 3, 5)[1, 2].tolist() == [0, 1, 2, 2, 3]


def test_many_records_go_through_in_blocks():
    rng = np.random.default_rng(1)
    codes = {name: rng.integers(0, size, 150_001).astype(np.uint16) for name, size in DOMAIN.sizes.items()}
    structure = TreeStructure.root(DOMAIN).split(["b"]).refine(["c"] * 3, parts=2)
    found = structure.partition().assign(codes)
    assert found.tolist() == (codes["b"].astype(int) * 2 + (codes["c"] >= 2)).tolist()


@pytest.mark.parametrize(
    ("grow", "named"),
    [
        (lambda tree: tree.split(["a", "b"]), "columns"),
        (lambda tree: tree.split(["d"]), "'d'"),
        (lambda tree: tree.refine(["a"], parts=0), "parts"),
        (lambda tree: tree.divide(["c"], [[3, 3]]), "starts"),
        (lambda tree: tree.divide(["c"], [[0]]), "starts"),
        (lambda tree: tree.divide(["c"], []), "starts"),
        (lambda tree: tree.partition(1), "layer"),
    ],
)
def test_wrong_calls_say_what_is_wrong(grow, named):
    with pytest.raises(UsageError, match=named):
        grow(TreeStructure.root(DOMAIN))


@pytest.mark.parametrize(
    ("array", "place", "value"),
    [("parents", 2, 1), ("parents", 3, 0), ("columns", 1, 7), ("columns", 3, 0), ("lows", 1, 1), ("highs", 5, 4)],
)
def test_arrays_that_are_no_tree_are_noticed(array, place, value):
    tree = TreeStructure.root(DOMAIN).split(["a"]).refine(["c", "b"], parts=2)
    arrays = {name: getattr(tree, name).copy() for name in ("parents", "columns", "lows", "highs")}
    assert TreeStructure(DOMAIN, *arrays.values(), tree.starts).faults() == []  # type: ignore[call-arg]
    arrays[array][place] = value
    assert TreeStructure(DOMAIN, *arrays.values(), tree.starts).faults()  # type: ignore[call-arg]
    assert TreeStructure(DOMAIN, tree.parents, tree.columns, tree.lows, tree.highs, (0, 1, 3)).faults()
