"""Tests of `understudy.models.bayes_net`."""

import json
from pathlib import Path

import numpy as np
import pytest

from understudy.domain import Domain
from understudy.errors import ReleaseError, ResourceError, UsageError
from understudy.models import bayes_net as bayesian
from understudy.models.bayes_net import BayesianNetwork, Conditional, layout_of
from understudy.testing.contracts import check_draws, check_model

# Bayesian networks: equal to enumeration in every answer, refused where an exact answer would not fit.


DOMAIN = Domain.of({"a": 4, "b": 3, "one": 1, "c": 2, "d": 3})
HALVES = np.array([0, 0, 1, 1])


def probabilities(rng: np.random.Generator, rows: int, codes: int) -> np.ndarray:
    """Random conditional rows."""
    return rng.dirichlet(np.ones(codes), size=rows)


def conditionals(*, dead: bool = False) -> list[Conditional]:
    """d, then a given d, b given a coarse a, c given a and b; with `dead`, one combination has no c at all."""
    rng = np.random.default_rng(5)
    last = probabilities(rng, 12, 2)
    last[3] = [0.0, 1.0]
    if dead:
        last[7] = 0.0
    return [
        Conditional("d", (), probabilities(rng, 1, 3)),
        Conditional("a", ("d",), probabilities(rng, 3, 4)),
        Conditional("one", (), np.ones((1, 1))),
        Conditional("b", ("a", "d"), probabilities(rng, 6, 3), (HALVES, None)),
        Conditional("c", ("a", "b"), last),
    ]


def enumerated(parts: list[Conditional]) -> np.ndarray:
    """The joint table by multiplying everything out."""
    joint = np.zeros(DOMAIN.shape(DOMAIN.columns))
    for codes in np.ndindex(joint.shape):
        held = dict(zip(DOMAIN.columns, codes, strict=True))
        probability = 1.0
        for part in parts:
            row = 0
            for place, name in enumerate(part.parents):
                groups = part.groups[place] if part.groups else None
                size = DOMAIN.sizes[name] if groups is None else int(groups.max()) + 1
                row = row * size + (held[name] if groups is None else int(groups[held[name]]))
            probability *= part.table[row, held[part.child]]
        joint[codes] = probability
    return joint / joint.sum()


@pytest.mark.parametrize("dead", [False, True])
def test_it_keeps_the_contract_of_models(dead: bool) -> None:
    parts = conditionals(dead=dead)
    check_model(BayesianNetwork.of(DOMAIN, parts, 100.0), enumerated(parts).ravel())


def test_without_room_for_a_junction_tree_it_still_draws_and_refuses_the_rest(monkeypatch) -> None:
    monkeypatch.setattr(bayesian, "FIELD_BYTES", 8 * 40)
    model = BayesianNetwork.of(DOMAIN, conditionals(), 100.0)
    joint = enumerated(conditionals())
    check_draws(model, joint, seed=3)
    np.testing.assert_allclose(model.marginal(DOMAIN.clique("ad")), joint.sum(axis=(1, 2, 3)).ravel())
    with pytest.raises(ResourceError):
        model.marginal(DOMAIN.clique("bc"))
    with pytest.raises(ResourceError, match="condition"):
        model.condition({"a": np.array([0])})


def test_dead_ends_are_drawn_anew_where_no_junction_tree_fits(monkeypatch) -> None:
    monkeypatch.setattr(bayesian, "FIELD_BYTES", 8)
    parts = conditionals(dead=True)
    check_draws(BayesianNetwork.of(DOMAIN, parts, 1.0), enumerated(parts), seed=4)
    with pytest.raises(ResourceError):
        BayesianNetwork.of(DOMAIN, parts, 1.0).marginal(DOMAIN.clique("d"))


def test_conditions_add_up_and_shrink_the_total() -> None:
    model = BayesianNetwork.of(DOMAIN, conditionals(), 100.0)
    joint = enumerated(conditionals())
    twice = model.condition({"a": np.array([0, 1])}).condition({"a": np.array([1, 2]), "d": np.array([0])})
    assert twice.total == pytest.approx(100.0 * joint[1, :, :, :, 0].sum())
    np.testing.assert_allclose(
        twice.marginal(DOMAIN.clique("b")), joint[1, :, 0, :, 0].sum(axis=1) / joint[1, :, :, :, 0].sum()
    )
    with pytest.raises(UsageError, match="cannot happen"):
        twice.condition({"a": np.array([0])})


def test_rounded_rows_are_as_many_as_expected() -> None:
    model = BayesianNetwork.of(DOMAIN, conditionals(), 100.0, rounding=True)
    drawn = model.draw(10_000, np.random.default_rng(1))
    seen = np.bincount(drawn["d"], minlength=3)
    assert np.abs(seen - 10_000 * model.marginal(DOMAIN.clique("d"))).max() <= 1.0


@pytest.mark.parametrize(
    "change",
    [
        {"rounding": 1},
        {"hidden": ["a", "b", "one", "c", "d", "a ↓1"]},
        {"nodes": []},
        {"nodes": [{"child": "a", "parents": ["zzz"]}] * 6},
        {"evidence": ["a"]},
        {"total": -1.0},
    ],
)
def test_altered_files_are_refused(tmp_path: Path, change) -> None:
    BayesianNetwork.of(DOMAIN, conditionals(), 100.0).save(tmp_path)
    place = tmp_path / "model.json"
    place.write_text(json.dumps(json.loads(place.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(ReleaseError):
        BayesianNetwork.load(tmp_path)


# Nodes: coarser parents become hidden columns, and what is no network is refused.


NODE_DOMAIN = Domain.of({"a": 4, "b": 2, "c": 2})
NODE_HALVES, ALL = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0])
ROOT = Conditional("a", (), np.full((1, 4), 0.25))


def test_a_level_in_use_becomes_one_hidden_column() -> None:
    layout = layout_of(
        NODE_DOMAIN,
        [
            ROOT,
            Conditional("b", ("a",), np.full((2, 2), 0.5), (NODE_HALVES,)),
            Conditional("c", ("a", "b"), np.full((4, 2), 0.5), (NODE_HALVES, None)),
        ],
    )
    assert layout.hidden == ("a ↓1",)
    assert dict(layout.visible.sizes) == dict(NODE_DOMAIN.sizes)
    assert [node.child for node in layout.nodes] == ["a", "a ↓1", "b", "c"]
    assert layout.nodes[1].table.tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert layout.nodes[3].parents == ("a ↓1", "b")
    assert not layout.dead_ends


def test_a_coarser_level_hangs_on_the_coarsest_level_it_merges() -> None:
    layout = layout_of(
        NODE_DOMAIN,
        [
            ROOT,
            Conditional("b", ("a",), np.full((2, 2), 0.5), (NODE_HALVES,)),
            Conditional("c", ("a",), np.full((1, 2), 0.5), (ALL,)),
        ],
    )
    (coarsest,) = (node for node in layout.nodes if node.child == "a ↓2")
    assert coarsest.parents == ("a ↓1",)


def test_only_ancestors_are_needed_for_a_column() -> None:
    layout = layout_of(
        NODE_DOMAIN,
        [
            ROOT,
            Conditional("b", ("a",), np.full((2, 2), 0.5), (NODE_HALVES,)),
            Conditional("c", (), np.full((1, 2), 0.5)),
        ],
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
        layout_of(NODE_DOMAIN, conditionals)
