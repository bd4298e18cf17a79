"""Paths that end early: every record in one cell, every cell of an ended path counted again, and better for it."""

import numpy as np
import pytest

from tests.methods.door import door, epsilon, letters, rho, rows_of
from understudy.methods.steps_tree import NodesOrCells, fit_stopped, stopped
from understudy.methods.tree_layers import TreeCosts, TreeFit, fit_tree
from understudy.models.histogram_tree import TreeStructure
from understudy.privacy.cost import Cost
from understudy.testing.doubles import NoNoise, SeededRandomizer

SCHEMA = letters({"a": 2, "b": 3, "c": 4})


def tree_of(curator) -> TreeStructure:
    """a = 0 ends after the first layer, a = 1 goes on with b."""
    return TreeStructure.root(curator.domain).split(["a"]).split([None, "b"])


def some_table(rows: int = 200) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {name: rng.integers(0, size, rows) for name, size in (("a", 2), ("b", 3), ("c", 4))}


def test_every_record_lies_in_one_cell_which_is_its_node_or_its_own():
    curator = door(rows_of(some_table()), SCHEMA, epsilon(1))
    tree = tree_of(curator)
    assert stopped(tree, 0).tolist() == [False]
    assert stopped(tree, 2).tolist() == [True, False, False, False]
    partition = NodesOrCells.of(tree, 2)
    codes = dict(zip("abc", np.indices((2, 3, 4)).reshape(3, -1), strict=True))
    cells = partition.assign(codes)
    assert partition.cells == 3 + 12
    expected = np.where(codes["a"] == 1, codes["b"], 3 + 4 * codes["b"] + codes["c"])
    assert cells.tolist() == expected.tolist()


def test_without_noise_the_table_comes_back():
    codes = some_table()
    curator = door(rows_of(codes), SCHEMA, epsilon(1), NoNoise())
    tree = tree_of(curator)
    costs = TreeCosts.shared(epsilon(1), 2, "equal", total_share=0.1)
    model = fit_stopped(curator, tree, costs, TreeFit())
    exact = np.bincount(np.ravel_multi_index((codes["a"], codes["b"], codes["c"]), (2, 3, 4)), minlength=24)
    assert model.signed == pytest.approx(exact)
    assert model.total == pytest.approx(200)
    assert curator.left == Cost()
    names = [answer.name for answer in curator.transcript]
    assert names == ["total", "layer 1", "layer 2", "a × b × c"]


def test_a_known_number_of_rows_is_kept():
    curator = door(rows_of(some_table()), SCHEMA, epsilon(1))
    costs = TreeCosts.shared(epsilon(1), 2, "equal")
    model = fit_stopped(curator, tree_of(curator), costs, TreeFit(known_rows=77))
    assert model.total == 77
    assert model.signed.sum() == pytest.approx(77)


@pytest.mark.parametrize(("cost", "gain"), [(epsilon(3), 2.0), (rho(3), 2.0)])
def test_cells_of_an_ended_path_are_counted_more_often(cost, gain):
    # Two counts of equal cost halve the variance; the other path keeps one count of each cell and one of its node.
    errors = {"ended": [], "going": [], "plain": []}  # type: ignore[var-annotated]
    codes = {"a": np.zeros(0, int), "b": np.zeros(0, int), "c": np.zeros(0, int)}
    for seed in range(150):
        curator = door(rows_of(codes), SCHEMA, cost, SeededRandomizer(seed))
        tree = tree_of(curator)
        costs = TreeCosts.shared(cost, 2, "equal")
        model = fit_stopped(curator, tree, costs, TreeFit(known_rows=0))
        errors["ended"].append(model.signed[:12])
        errors["going"].append(model.signed[12:])
        curator = door(rows_of(codes), SCHEMA, cost, SeededRandomizer(1_000 + seed))
        errors["plain"].append(fit_tree(curator, tree, costs, TreeFit(known_rows=0)).signed[:12])
    spread = {name: float(np.mean(np.square(found))) for name, found in errors.items()}
    assert spread["plain"] / spread["ended"] == pytest.approx(gain, rel=0.35)
    assert spread["going"] / spread["ended"] > 1.2
    assert abs(np.mean(errors["ended"])) < 0.2
