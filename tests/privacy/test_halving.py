"""Halving keeps its limits, and its cells are the open ranges."""

import numpy as np
import pytest

from tests.methods.door import door, epsilon, letters, rows_of
from understudy.domain import Clique
from understudy.privacy.trees import Halving, Ranges
from understudy.testing.doubles import NoNoise


def test_ranges_put_every_code_in_its_cell() -> None:
    ranges = Ranges("r", Clique(("a",)), ((4, 6), (0, 1), (6, 9)))
    codes = {"a": np.arange(10, dtype=np.uint8)}
    assert ranges.cells == 4
    assert ranges.assign(codes).tolist() == [1, 3, 3, 3, 0, 0, 2, 2, 2, 3]
    assert Ranges("none", Clique(("a",)), ()).assign(codes).tolist() == [0] * 10


def test_layers_of_a_tree() -> None:
    tree = Halving.of("a", 5)
    assert tree.frontier.ranges == ((0, 5),)
    tree = tree.after(np.array([True]))
    assert tree.nodes == ((0, 2), (2, 5))
    assert tree.depths.tolist() == [1, 1]
    tree = tree.after(np.array([False, True]))
    assert tree.nodes == ((3, 5),)
    assert tree.leaves == ((0, 2), (2, 3))
    tree = tree.after(np.array([True]))
    assert tree.finished
    assert tree.leaves == ((0, 2), (2, 3), (3, 4), (4, 5))


@pytest.mark.parametrize(("codes", "nodes"), [(1, 0), (2, 1)])
def test_single_codes_are_leaves(codes: int, nodes: int) -> None:
    tree = Halving.of("a", codes)
    assert len(tree.nodes) == nodes
    assert tree.finished is (nodes == 0)


def test_public_limits_end_the_growth() -> None:
    shallow = Halving.of("a", 1000, most_depth=2)
    for layer in range(2):
        shallow = shallow.after(np.ones(2**layer, dtype=np.bool_))
    assert shallow.finished
    assert [stop - start for start, stop in shallow.leaves] == [250] * 4
    few = Halving.of("a", 1000, most_leaves=3).after(np.array([True]))
    few = few.after(np.array([True, True]))
    assert few.ranges == ((0, 250), (250, 500), (500, 1000))
    assert few.after(np.array([True, True])).leaves == few.ranges


def test_without_noise_a_tree_follows_the_counts() -> None:
    """Rows sit in code 6 of 8, so that only ranges around it are halved, and depth costs two rows per level."""
    schema = letters({"a": 8})
    curator = door(rows_of({"a": [6] * 100}), schema, epsilon(1), NoNoise())
    tree = curator.grow(Halving.of("a", 8), epsilon(1))
    assert tree.leaves == ((0, 4), (4, 6), (6, 7), (7, 8))
    few = door(rows_of({"a": [6] * 3}), schema, epsilon(1), NoNoise()).grow(Halving.of("a", 8), epsilon(1))
    assert few.leaves == ((0, 4), (4, 6), (6, 8))
