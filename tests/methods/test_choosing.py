"""Choosing columns through the door: what is asked, what it costs, and that the tree follows the answers."""

import numpy as np
import pytest

from tests.methods.door import door, epsilon, letters, rows_of
from understudy.methods.steps_tree import ChoiceCosts, TreeSettings, choose, splittable, stopped
from understudy.privacy.cost import Cost
from understudy.privacy.trees import node_aic, ordered_splits
from understudy.testing.doubles import NoNoise
from understudy.testing.replay import Recorder

SIZES = {"a": 2, "b": 3, "c": 2, "one": 1, "d": 4}
SCHEMA = letters(SIZES)
PRICES = ChoiceCosts(epsilon(0.1), epsilon(0.2), epsilon(0.3))


def some_codes(rows: int = 400) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    codes = {name: rng.integers(0, size, rows) for name, size in SIZES.items()}
    codes["a"] = (rng.random(rows) < 0.02).astype(int)
    codes["c"] = np.where(codes["a"] == 1, rng.integers(0, 2, rows), (rng.random(rows) < 0.1).astype(int))
    return codes


def queries(settings: TreeSettings, codes=None, randomizer=None):
    recorder = Recorder(randomizer or NoNoise())
    curator = door(rows_of(codes or some_codes()), SCHEMA, epsilon(9), recorder)
    return choose(curator, settings, PRICES), curator, recorder.log


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
        aic = {name: int(node_aic(np.bincount(codes[name][inside], minlength=SIZES[name]))) for name in "bcd"}
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
    aic = {name: int(node_aic(np.bincount(codes[name], minlength=SIZES[name]))) for name in "abcd"}

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
def test_no_layers_no_questions(settings):
    tree, curator, _ = queries(settings)
    assert tree.structure.layers == 0
    assert tree.counted == ()
    assert curator.charges == []
