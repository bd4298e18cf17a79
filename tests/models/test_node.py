"""Nodes: coarser parents become hidden columns, and what is no network is refused."""

import numpy as np
import pytest

from understudy.domain import Domain
from understudy.errors import UsageError
from understudy.models.bayes_net import Conditional, layout_of

DOMAIN = Domain.of({"a": 4, "b": 2, "c": 2})
HALVES, ALL = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0])
ROOT = Conditional("a", (), np.full((1, 4), 0.25))


def test_a_level_in_use_becomes_one_hidden_column() -> None:
    layout = layout_of(
        DOMAIN,
        [
            ROOT,
            Conditional("b", ("a",), np.full((2, 2), 0.5), (HALVES,)),
            Conditional("c", ("a", "b"), np.full((4, 2), 0.5), (HALVES, None)),
        ],
    )
    assert layout.hidden == ("a ↓1",)
    assert dict(layout.visible.sizes) == dict(DOMAIN.sizes)
    assert [node.child for node in layout.nodes] == ["a", "a ↓1", "b", "c"]
    assert layout.nodes[1].table.tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert layout.nodes[3].parents == ("a ↓1", "b")
    assert not layout.dead_ends


def test_a_coarser_level_hangs_on_the_coarsest_level_it_merges() -> None:
    layout = layout_of(
        DOMAIN,
        [
            ROOT,
            Conditional("b", ("a",), np.full((2, 2), 0.5), (HALVES,)),
            Conditional("c", ("a",), np.full((1, 2), 0.5), (ALL,)),
        ],
    )
    (coarsest,) = (node for node in layout.nodes if node.child == "a ↓2")
    assert coarsest.parents == ("a ↓1",)


def test_only_ancestors_are_needed_for_a_column() -> None:
    layout = layout_of(
        DOMAIN,
        [ROOT, Conditional("b", ("a",), np.full((2, 2), 0.5), (HALVES,)), Conditional("c", (), np.full((1, 2), 0.5))],
    )
    assert [node.child for node in layout.above(["b"])] == ["a", "a ↓1", "b"]
    assert [node.child for node in layout.above(["c"])] == ["c"]


@pytest.mark.parametrize(
    ("conditionals", "why"),
    [
        ([ROOT], "needs a node"),
        ([Conditional("b", ("a",), np.full((4, 2), 0.5)), ROOT], "after its parents"),
        ([ROOT, Conditional("b", ("a",), np.full((2, 2), 0.5))], "must have 4 rows"),
        ([Conditional("a", (), np.array([[0.5, 0.5, 0.5, -0.5]]))], "0 or more"),
        ([Conditional("a", (), np.array([[0.5, 0.5, 0.5, 0.5]]))], "add up to 1"),
    ],
)
def test_what_is_no_network_is_refused(conditionals, why) -> None:
    with pytest.raises(UsageError, match=why):
        layout_of(DOMAIN, conditionals)
