import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import UsageError
from understudy.models.histogram_tree import HistogramTree, nonnegative_tree, project_children
from understudy.models.tables import nonnegative

WAYS = ("clip_rescale", "norm_sub")


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(WAYS), st.data())
def test_every_sibling_set_is_treated_as_if_alone(way, data):
    size = data.draw(st.integers(1, 30))
    sets = data.draw(st.integers(1, 5))
    parents = np.array(data.draw(st.lists(st.integers(0, sets - 1), min_size=size, max_size=size)))
    values = np.array(data.draw(st.lists(st.integers(-50, 100), min_size=size, max_size=size)), dtype=float)
    totals = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, 7.0, 200.0]), min_size=sets, max_size=sets)))
    possible = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    found = project_children(values, parents, totals, possible, way)
    assert not found[~possible].any()
    for number in range(sets):
        here = (parents == number) & possible
        if here.any():
            np.testing.assert_allclose(found[here], nonnegative(way, values[here], totals[number]), atol=1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_children_add_up_all_the_way_down(way):
    rng = np.random.default_rng(3)
    tree = HistogramTree((np.zeros(40, dtype=int), np.repeat(np.arange(40), 25)))
    estimates = [np.array([500.0]), rng.normal(10, 20, 40), rng.normal(0.5, 5, 1_000)]
    possible = rng.random(1_000) < 0.7
    possible[:25] = False
    counts = nonnegative_tree(tree, estimates, 500.0, way, possible=possible)
    assert counts[0][0] == 500.0
    assert counts[1][0] == 0.0  # nothing below it is possible
    assert min(level.min() for level in counts) >= 0.0
    assert not counts[2][~possible].any()
    np.testing.assert_allclose(np.bincount(tree.parents[1], weights=counts[2]), counts[1], atol=1e-9)
    assert counts[1].sum() == pytest.approx(500.0, abs=1e-9)


def test_by_hand():
    tree = HistogramTree((np.array([0, 0]), np.array([0, 0, 1, 1])))
    estimates = [np.array([10.0]), np.array([8.0, 2.0]), np.array([9.0, -1.0, -2.0, -3.0])]
    clipped = nonnegative_tree(tree, estimates, 10.0, "clip_rescale")
    np.testing.assert_allclose(clipped[2], [8.0, 0.0, 1.0, 1.0])
    projected = nonnegative_tree(tree, estimates, 10.0, "norm_sub")
    np.testing.assert_allclose(projected[2], [8.0, 0.0, 1.5, 0.5])


def test_refusals():
    tree = HistogramTree((np.array([0, 0]),))
    estimates = [np.array([1.0]), np.array([1.0, 0.0])]
    with pytest.raises(UsageError, match="norm_sub"):
        nonnegative_tree(tree, estimates, 1.0, "norm_sup")
    with pytest.raises(UsageError, match="total"):
        nonnegative_tree(tree, estimates, 0.0, "norm_sub")
    with pytest.raises(UsageError, match="possible"):
        nonnegative_tree(tree, estimates, 1.0, "norm_sub", possible=np.zeros(2, dtype=bool))
