"""Tests of `understudy.methods.steps_tree`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.methods.door import door, epsilon, letters, rows_of
from understudy.domain import Domain
from understudy.errors import ResourceError, UsageError
from understudy.methods.steps_tree import (
    ChoiceCosts,
    NodeGrowth,
    Shape,
    TreeSettings,
    Wanted,
    choose,
    named_columns,
    splittable,
    stopped,
    trimmed_shares,
)
from understudy.models.histogram_tree import TreeStructure
from understudy.privacy.cost import Cost
from understudy.privacy.trees import GrowingTree, node_criterion, ordered_splits
from understudy.testing.doubles import NoNoise
from understudy.testing.replay import Recorder

# What follows from options and domain alone: how many layers, draws and decisions there are, and what is refused.


FIVE = Domain.of({"a": 2, "b": 3, "one": 1, "c": 4, "d": 5, "e": 14})


@pytest.mark.parametrize(("layers", "upper"), [(1, 1), (2, 2), (3, 3), (4, 4), (5, 4), (64, 4)])
def test_draws_and_counted_layers_of_a_path(layers, upper):
    # q = L and Λ = L + 1 below p = 5; q = p − 1 and Λ = p at L = p.
    shape = Shape.of(Wanted(layers=layers, stopping="range"), FIVE)
    assert (shape.upper, shape.draws, shape.stops) == (upper, upper, upper)
    assert shape.columns == ("a", "b", "c", "d", "e")
    assert shape.layer_sizes == [14, 70, 280, 840][:upper]


def test_a_sequence_needs_no_draws():
    shape = Shape.of(Wanted(sequence="d, a,one"), FIVE)
    assert (shape.wanted.depth, shape.upper, shape.draws, shape.stops) == (3, 2, 0, 0)
    assert shape.sequence == ("d", "a")
    assert shape.layer_sizes == [5, 10]
    assert Shape.of(Wanted(sequence="*", layers=3), FIVE).sequence == ("a", "b", "c", "d", "e")
    assert Shape.of(Wanted(sequence="d,a", layers=1), FIVE).layer_sizes == [5]


def test_groups_are_one_draw():
    shape = Shape.of(Wanted(choice="grouped"), FIVE)
    assert (shape.upper, shape.draws, shape.splits) == (1, 1, 30)
    assert Shape.of(Wanted(choice="grouped", layers=3), FIVE).splits == 150
    assert Shape.of(Wanted(choice="grouped", layers=1), FIVE).draws == 0


@pytest.mark.parametrize("domain", [Domain.of({"a": 7}), Domain.of({"a": 1, "b": 1})])
def test_one_column_leaves_nothing_to_choose(domain):
    for wanted in (Wanted(), Wanted(choice="grouped"), Wanted(sequence="*"), Wanted(stopping="privtree")):
        shape = Shape.of(wanted, domain)
        assert (shape.upper, shape.draws, shape.stops, shape.layer_sizes, shape.codes_at_nodes) == (0, 0, 0, [], 0)


def test_what_does_not_go_together_is_refused():
    for wrong in ("a,a", "a,,b", ","):
        with pytest.raises(UsageError, match="sequence"):
            Wanted(sequence=wrong)
    with pytest.raises(UsageError, match="fewer columns"):
        Wanted(sequence="a,b", layers=3)
    with pytest.raises(UsageError, match="sequence"):
        Wanted(choice="grouped", sequence="a")
    with pytest.raises(UsageError, match="stopping"):
        Wanted(choice="grouped", stopping="range")
    with pytest.raises(UsageError, match="incme"):
        Shape.of(Wanted(sequence="incme"), FIVE)


def test_choices_too_large_to_score_are_refused_in_advance():
    wide = Domain.of({f"c{place}": 2 for place in range(20)})
    with pytest.raises(ResourceError, match="group 20 columns"):
        Shape.of(Wanted(choice="grouped"), wide).choice_bytes("method steps")
    tall = Domain.of({"a": 4096, "b": 4096, "c": 4096})
    with pytest.raises(ResourceError, match="every node"):
        Shape.of(Wanted(layers=3), Domain.of({**tall.sizes, "d": 2})).choice_bytes("method steps")
    assert Shape.of(Wanted(layers=2), FIVE).choice_bytes("method steps") == 24 * 14 * 28


def test_shares_follow_the_layers_that_are_left():
    assert trimmed_shares("0.2,0.3,0.5", 2) == "1/5,3/10,1/2"
    assert trimmed_shares("0.2,0.3,0.5", 0) == "1"
    assert named_columns("*") == named_columns("") == []


def test_costs_of_choosing_are_equal_parts():
    from fractions import Fraction

    third = Fraction(1, 3)
    range_costs = ChoiceCosts.of(epsilon(0.3), 2, 2, draw_share=third, stopping="range")
    assert range_costs == ChoiceCosts(epsilon(0.05), epsilon(0.1), Cost())
    grown = ChoiceCosts.of(epsilon(0.3), 2, 2, draw_share=third, stopping="privtree")
    assert grown == ChoiceCosts(epsilon(0.05), Cost(), epsilon(0.2))
    assert ChoiceCosts.of(epsilon(0.3), 3, 0, draw_share=third, stopping="none").draw == epsilon(0.1)
    assert ChoiceCosts.of(epsilon(0.3), 0, 3, draw_share=third, stopping="range").stop == epsilon(0.1)


# Choosing columns through the door: what is asked, what it costs, and that the tree follows the answers.


SIZES = {"a": 2, "b": 3, "c": 2, "one": 1, "d": 4}
SCHEMA = letters(SIZES)
COSTS = ChoiceCosts(epsilon(0.1), epsilon(0.2), epsilon(0.3))


def some_codes(rows: int = 400) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    codes = {name: rng.integers(0, size, rows) for name, size in SIZES.items()}
    codes["a"] = (rng.random(rows) < 0.02).astype(int)
    codes["c"] = np.where(codes["a"] == 1, rng.integers(0, 2, rows), (rng.random(rows) < 0.1).astype(int))
    return codes


def queries(settings: TreeSettings, codes=None, randomizer=None):
    recorder = Recorder(randomizer or NoNoise())
    curator = door(rows_of(codes or some_codes()), SCHEMA, epsilon(9), recorder)
    return choose(curator, settings, COSTS), curator, recorder.log


def columns_of(structure, layer):
    return [node.column for node in structure.nodes(layer)]


def test_columns_with_one_code_are_never_split():
    assert splittable(door(rows_of(some_codes()), SCHEMA, Cost()).domain) == ["a", "b", "c", "d"]


def test_a_sequence_is_followed_for_nothing():
    tree, curator, log = queries(TreeSettings(2, ("d", "a")))
    assert columns_of(tree.structure, 1) == ["d"] * 4
    assert columns_of(tree.structure, 2) == ["a"] * 8
    assert tree.counted == (1, 2)
    assert curator.charges == []
    assert log == []


def test_without_noise_every_node_takes_the_column_of_smallest_aic():
    codes = some_codes()
    tree, curator, log = queries(TreeSettings(2), codes)
    assert [step for step, _ in curator.charges] == ["select column of layer 1", "select column of layer 2"]
    assert [cost for _, cost in curator.charges] == [epsilon(0.1)] * 2
    assert columns_of(tree.structure, 1) == ["a", "a"]
    for code, chosen in zip((0, 1), columns_of(tree.structure, 2)[::2], strict=True):
        inside = codes["a"] == code
        aic = {name: int(node_criterion(np.bincount(codes[name][inside], minlength=SIZES[name]))) for name in "bcd"}
        assert chosen == min(aic, key=aic.get)
    assert [exchange.request.cells for exchange in log] == [4, 4]


def test_a_column_is_used_once_on_a_path():
    tree, _, _ = queries(TreeSettings(3), randomizer=_Last())
    widths = tree.structure.widths()
    used = (widths == 1) & (np.array(list(SIZES.values())) > 1)
    assert np.all(used.sum(axis=1) == 3)


def test_the_published_form_halves_the_rate():
    rates = [queries(TreeSettings(1, published=published))[2][0].request.rate for published in (False, True)]
    assert rates[0] == 2 * rates[1]


def test_information_gain_is_scored_with_its_own_bound():
    tree, _, log = queries(TreeSettings(1, rows_bound=500))
    assert log[0].request.sensitivity > 2 * 2**20 * 5
    assert columns_of(tree.structure, 1) == ["a", "a"]  # the least even column of all


def test_groups_are_drawn_at_once_and_the_chosen_order_is_kept():
    codes = some_codes()
    aic = {name: int(node_criterion(np.bincount(codes[name], minlength=SIZES[name]))) for name in "abcd"}

    def gap(split):
        return np.mean([aic[name] for name in split[1]]) - np.mean([aic[name] for name in split[0]])

    splits = sorted(ordered_splits(list("abcd"), 2), key=gap)
    # The draw decides which group is on top; nothing afterwards puts a bad draw right.
    for randomizer, wanted in ((NoNoise(), splits[-1]), (_Worst(), splits[0])):
        tree, curator, _ = queries(TreeSettings(1, choice="grouped"), codes, randomizer)
        assert curator.charges == [("select columns of all layers", epsilon(0.1))]
        layers = range(1, tree.structure.layers + 1)
        assert {node.column for layer in layers for node in tree.structure.nodes(layer)} == set(wanted[0])
        assert tree.counted == (len(wanted[0]),)


def test_three_groups_count_two_layers():
    tree, _, _ = queries(TreeSettings(2, choice="grouped"))
    assert len(tree.counted) == 2
    assert tree.counted[-1] == tree.structure.layers < 4


def test_stopped_nodes_stay_whole_and_are_not_chosen_for():
    tree, curator, log = queries(TreeSettings(2, stopping="range", tolerance=100), randomizer=_StopsAtZero())
    assert [cost for _, cost in curator.charges] == [epsilon(0.2), epsilon(0.1)] * 2
    assert columns_of(tree.structure, 1) == ["d"] * 4
    assert columns_of(tree.structure, 2) == [None] + ["c"] * 6
    assert stopped(tree.structure, 1).tolist() == [False] * 4
    assert stopped(tree.structure, 2).tolist() == [True] + [False] * 6
    # The stopped node may take one column only, so its answer says nothing.
    assert log[3].answer.tolist() == [0, 2, 2, 2]


def test_nothing_is_asked_once_every_path_has_stopped():
    tree, curator, _ = queries(TreeSettings(3, stopping="range"), randomizer=_AlwaysLast())
    assert [step for step, _ in curator.charges] == ["select stop above layer 1"]
    assert tree.structure.layers == 3
    assert tree.structure.size() == 1


def test_a_sequence_can_stop_as_well():
    tree, curator, _ = queries(TreeSettings(2, ("d", "a"), stopping="range"))
    assert {step.split()[1] for step, _ in curator.charges} == {"stop"}
    assert tree.structure.layers == 2


def test_small_nodes_are_cut_back_by_noisy_counts():
    tree, curator, _ = queries(TreeSettings(2, ("a", "d"), stopping="privtree", theta=50))
    assert [(step, cost) for step, cost in curator.charges] == [("grow tree", epsilon(0.3))]
    # Two in a hundred rows have a = 1: too few to be worth splitting.
    assert stopped(tree.structure, 2).tolist() == [False] * 4 + [True]


class _Chooses:
    """A randomizer that answers choices by a rule of its own. Not private."""

    private = False

    def add_noise(self, request, exact):
        return exact

    def split(self, request, biased):
        return biased > request.threshold


class _Last(_Chooses):
    def choose_each(self, request, scores, allowed):
        return np.array([int(np.flatnonzero(row)[-1]) for row in allowed])


class _AlwaysLast(_Last):
    """Of "go on" and "stop" the last one."""


class _Worst(_Chooses):
    def choose(self, request, scores):
        return int(np.argmin(scores))


class _StopsAtZero(_Last):
    """Goes on at the root; below it the first node stops and the others go on."""

    def choose_each(self, request, scores, allowed):
        if "stop" not in request.name:
            return super().choose_each(request, scores, allowed)
        going = np.zeros(len(scores), dtype=np.int64)
        if len(scores) > 1:
            going[0] = 1
        return going


@pytest.mark.parametrize(
    "settings", [TreeSettings(0), TreeSettings(0, choice="grouped"), TreeSettings(0, stopping="privtree")]
)
def test_no_layers_no_queries(settings):
    tree, curator, _ = queries(settings)
    assert tree.structure.layers == 0
    assert tree.counted == ()
    assert curator.charges == []


# A fixed tree cut back by decisions: who is open, which cell a record lies in, and what the cut tree looks like.


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
