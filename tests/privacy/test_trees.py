"""Tests of `understudy.privacy.trees`."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.methods.door import door, epsilon, letters, rows_of
from tests.statistics.chi_square import laplace_distribution
from understudy.domain import GROWTH_UNIT, SCORE_UNIT, Clique
from understudy.errors import UsageError
from understudy.models.histogram_tree import TreeStructure
from understudy.privacy.cost import UNIT, Cost, growth_rule, selection_rate
from understudy.privacy.randomizer import Randomizer
from understudy.privacy.trees import (
    AIC_UNIT,
    BIC_ROWS,
    MOST_ROWS,
    AicRange,
    Criterion,
    EvenSplit,
    GroupedCriterion,
    Halving,
    NodeCriterion,
    NodeInformation,
    Ranges,
    as_decay,
    biased_counts,
    checked_depths,
    checked_theta,
    information_sensitivity,
    node_criterion,
    ordered_splits,
    split_count,
)
from understudy.testing.doubles import NoNoise
from understudy.testing.replay import Leak, Pipeline, check_pair

# The cost of a tree, held against exact output probabilities of small trees on neighbouring counts.


ROUNDING = 1e-9


def _log_chance(above: np.ndarray, scale: float) -> np.ndarray:
    """ln P(above + X > 0): geometric series on either side of 0."""
    rate = 1 / scale
    low = -(1 - np.minimum(above, 0)) * rate - math.log1p(math.exp(-rate))
    high = np.log1p(-np.exp(-np.maximum(above, 1) * rate) / (1 + math.exp(-rate)))
    return np.where(above <= 0, low, high)


def test_chances_are_sums_of_the_distribution() -> None:
    for scale in (0.4, 3.0, 17.5):
        distribution = laplace_distribution(scale, 60.0)
        for above in (-9, -1, 0, 1, 2, 25):
            direct = sum(probability for noise, probability in distribution.items() if above + noise > 0)
            assert _log_chance(np.array(above), scale) == pytest.approx(math.log(direct), abs=1e-9)


def _rule(epsilon: float, decay: int, rows: int = 1) -> tuple[float, int]:
    distribution, bias = growth_rule(Cost(epsilon=round(epsilon * UNIT)), rows, Fraction(decay), "grow")
    return float(distribution.parameter), bias


def _paths(depth: int, most: int) -> np.ndarray:
    """All sequences most ≥ c_0 ≥ c_1 ≥ … ≥ c_depth ≥ 1: the rows of each node on the way of one record."""
    return np.array(list(itertools.combinations_with_replacement(range(most, 0, -1), depth + 1)))


def _largest_loss(paths: np.ndarray, scale: float, bias: int, theta: int) -> float:
    """Largest |log ratio| over all paths and over where the tree stops on the path (or at the public limit)."""
    depths = np.arange(paths.shape[1])
    above = [biased_counts(counts, depths, bias, theta) - theta * GROWTH_UNIT for counts in (paths, paths - 1)]
    split = np.cumsum(_log_chance(above[0], scale) - _log_chance(above[1], scale), axis=1)
    stop = _log_chance(1 - above[0], scale) - _log_chance(1 - above[1], scale)
    before = np.concatenate([np.zeros((len(paths), 1)), split[:, :-1]], axis=1)
    return float(max(np.abs(before + stop).max(), np.abs(split[:, -1]).max()))


PATHS = {depth: _paths(depth, 9) for depth in (0, 1, 3, 6)}
EQUAL = np.repeat(np.arange(1, 60)[:, np.newaxis], 60, axis=1)
"""Paths of equal counts, the worst there are, sixty levels deep."""


@pytest.mark.parametrize("decay", [2, 4, 14])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.0, 8.0, 40.0])
@pytest.mark.parametrize("theta", [0, 4])
def test_no_tree_loses_more_than_its_cost(decay: int, epsilon: float, theta: int) -> None:
    scale, bias = _rule(epsilon, decay)
    for paths in (*PATHS.values(), EQUAL):
        assert _largest_loss(paths, scale, bias, theta) <= epsilon * (1 + ROUNDING)


@pytest.mark.parametrize("decay", [2, 4, 14])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_cost_is_not_far_above_what_is_lost(decay: int, epsilon: float) -> None:
    scale, bias = _rule(epsilon, decay)
    assert _largest_loss(EQUAL, scale, bias, 0) > 0.5 * epsilon


def test_without_bias_depth_costs() -> None:
    """The planted bug: the counts are not lowered, and sixty layers cost far more than one."""
    scale, _ = _rule(1.0, 2)
    assert _largest_loss(EQUAL, scale, 0, 0) > 10.0


def test_the_bias_is_one_row_at_least() -> None:
    """β = 2: λ ln 2 falls below one row where ε exceeds 3 ln 2 = 2.079."""
    assert _rule(2.07, 2)[1] > GROWTH_UNIT
    assert _rule(2.09, 2)[1] == _rule(100.0, 2)[1] == GROWTH_UNIT


@pytest.mark.parametrize(("decay", "scale", "bias"), [(2, 3.0, 2.0794), (14, 2.0769, 5.4811)])
def test_published_numbers(decay: int, scale: float, bias: float) -> None:
    """ALGORITHMS §2.15 at ε = 1; the bias is rounded up to the grid."""
    found_scale, found_bias = _rule(1.0, decay)
    assert found_scale / GROWTH_UNIT == pytest.approx(scale, abs=5e-5)
    assert bias - 5e-5 <= found_bias / GROWTH_UNIT <= bias + 1 / GROWTH_UNIT


def test_the_bias_buys_the_decay_and_no_more() -> None:
    for decay, amount in itertools.product((2, 3, 14, 1000), (0.001, 0.7, 1.9)):
        scale, bias = _rule(amount, decay)
        assert math.exp(bias / scale) >= decay
        assert bias == GROWTH_UNIT or math.exp((bias - 1) / scale) < decay


def _binary_tree(leaves: tuple[int, ...], scale: float, bias: int) -> dict[tuple[bool, ...], float]:
    """Probability of every outcome of a binary tree of depth 2 over four codes: root, left child, right child."""
    counts = np.array([sum(leaves), leaves[0] + leaves[1], leaves[2] + leaves[3]])
    probabilities = np.exp(_log_chance(biased_counts(counts, np.array([0, 1, 1]), bias, 0), scale))
    found: dict[tuple[bool, ...], float] = {(False,): 1 - probabilities[0]}
    for left, right in itertools.product((False, True), repeat=2):
        probability = (
            probabilities[0]
            * (probabilities[1] if left else 1 - probabilities[1])
            * (probabilities[2] if right else 1 - probabilities[2])
        )
        found[True, left, right] = float(probability)
    return found


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_whole_trees_of_units_with_several_rows(rows: int) -> None:
    """All tables of at most 3 rows a leaf, a unit of `rows` rows anywhere: every outcome within e^ε."""
    epsilon = 1.5
    scale, bias = _rule(epsilon, 2, rows)
    worst = 0.0
    for leaves in itertools.product(range(4), repeat=4):
        without = _binary_tree(leaves, scale, bias)
        assert sum(without.values()) == pytest.approx(1.0)
        for added in itertools.combinations_with_replacement(range(4), rows):
            more = tuple(count + added.count(place) for place, count in enumerate(leaves))
            with_unit = _binary_tree(more, scale, bias)
            worst = max(worst, *(abs(math.log(with_unit[key] / without[key])) for key in without))
    assert 0.3 * epsilon < worst <= epsilon


def test_counts_are_cut_before_they_can_wrap() -> None:
    biased = biased_counts(np.array([2**53 - 1, 0]), np.array([0, 5]), 2**44, 0)
    assert biased.tolist() == [2**60, -(2**44)]


class Uneven(Halving):
    """One depth too many."""

    @property
    def depths(self) -> np.ndarray:
        return np.zeros(len(self.nodes) + 1, dtype=np.int64)


class Blind(Halving):
    """Looks at no column."""

    @property
    def frontier(self) -> Ranges:
        return Ranges("blind", Clique(), self.nodes)


def test_growths_that_break_the_rules_are_refused() -> None:
    tree = Halving.of("a", 8)
    assert checked_depths(tree, -1, "grow").tolist() == [0]
    with pytest.raises(UsageError, match="depths must rise"):
        checked_depths(tree, 0, "grow")
    with pytest.raises(UsageError, match="depths must rise"):
        checked_depths(replace(tree, depth=2**15), 0, "grow")
    with pytest.raises(UsageError, match="one whole depth per open node"):
        checked_depths(Uneven("x", "a", 0, 9, 9, ((0, 8),)), -1, "grow")
    with pytest.raises(UsageError, match="one column or more"):
        checked_depths(Blind("x", "a", 0, 9, 9, ((0, 8),)), -1, "grow")
    with pytest.raises(UsageError, match="theta must be a whole number"):
        checked_theta(replace(tree, theta=0.5), "grow")  # type: ignore[arg-type]
    for theta in (2**60, -(2**60)):  # in grid units it would wrap
        with pytest.raises(UsageError, match="theta must be a whole number"):
            checked_theta(replace(tree, theta=theta), "grow")
    for decay in (1.5, math.inf, math.nan, "two", 2.0**21):
        with pytest.raises(UsageError, match="decay must"):
            growth_rule(Cost(epsilon=UNIT), 1, as_decay(decay, "grow"), "grow")  # type: ignore[arg-type]


# Halving keeps its limits, and its cells are the open ranges.


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


# Cuts: the score prefers even ones, moves by no more than it says, and only inside its own range.


def _scores(counts: list[list[int]], quality: EvenSplit) -> np.ndarray:
    return quality.scores({"a": np.array(counts, dtype=np.int64)})


def test_the_best_cut_has_the_wanted_ratio() -> None:
    quality = EvenSplit("a", 6, ((0, 6),), (2,))
    scores = _scores([[4, 1, 1, 2, 4, 0], [0] * 6], quality)
    assert scores[0].tolist() == [
        -12 * SCORE_UNIT,
        -4 * SCORE_UNIT,
        -2 * SCORE_UNIT,
        0,
        -4 * SCORE_UNIT,
        -12 * SCORE_UNIT,
    ]
    assert scores[1].tolist() == [0] * 6
    thirds = EvenSplit("a", 6, ((0, 6),), (3,))
    assert int(np.argmax(_scores([[2, 2, 2, 2, 2, 2], [0] * 6], thirds)[0])) == 2


def test_only_places_inside_the_range_are_allowed() -> None:
    quality = EvenSplit("a", 6, ((0, 2), (2, 5)), (2, 2))
    assert quality.allowed.astype(int).tolist() == [[0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 0], [1, 0, 0, 0, 0, 0]]


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.integers(0, 2**41), min_size=7, max_size=7),
    st.integers(0, 6),
    st.integers(2, 9),
)
def test_one_row_moves_scores_by_one_row_at_most(counts: list[int], place: int, bins: int) -> None:
    quality = EvenSplit("a", 7, ((0, 7),), (bins,))
    more = [count + (code == place) for code, count in enumerate(counts)]
    moved = _scores([more, [0] * 7], quality) - _scores([counts, [0] * 7], quality)
    assert np.abs(moved).max() <= quality.sensitivity
    assert not moved[1].any()


def test_the_bound_is_attained_and_the_score_is_not_monotone() -> None:
    quality = EvenSplit("a", 4, ((0, 4),), (2,))
    moved = _scores([[3, 1, 1, 3], [0] * 4], quality) - _scores([[3, 1, 1, 2], [0] * 4], quality)
    assert {int(move) // SCORE_UNIT for move in moved[0]} == {-1, 1}


@pytest.mark.parametrize("bins", [2, 3, 5])
def test_without_noise_the_door_cuts_evenly(bins: int) -> None:
    curator = door(rows_of({"a": list(range(10)) * 5}), letters({"a": 10}), epsilon(1), NoNoise())
    quality = EvenSplit("a", 10, ((0, 10),), (bins,))
    place, rest = curator.select_within(quality.partition, quality, epsilon(1))
    assert place == {2: 5, 3: 3, 5: 4}[bins]
    assert rest == 0


# AIC inside nodes: the printed numbers, the distribution of the draw, and its sensitivity by brute force.


HUNDRED = {"a": np.array([[60, 40]]), "b": np.array([[30, 50, 20]]), "c": np.array([[97, 3]])}
EVERY = np.ones((1, 3), dtype=bool)
HARD_COUNTS = [0, 1, 2, 3, 2**16 - 1, 2**16, 2**16 + 1, 2**30, 2**40 - 1, 2**40, 2**50]


def by_formula(counts: list[int], levels: int | None = None) -> float:
    """AIC as it is defined, with logarithms of factorials."""
    total = sum(counts)
    likelihood = math.lgamma(total + 1) - sum(math.lgamma(count + 1) for count in counts)
    likelihood += sum(count * math.log(count / total) for count in counts if count)
    return -2 * likelihood + 2 * (len(counts) if levels is None else levels)


CRITERIA: tuple[Criterion, ...] = ("aic", "bic", "deviance")


def distribution_of(scores: np.ndarray, rate: float) -> np.ndarray:
    """Probabilities of the exponential mechanism."""
    weights = np.exp((scores - scores.max()) * rate)
    return weights / weights.sum()


@pytest.mark.parametrize(("counts", "expected"), [((97, 3), 6.961), ((60, 40), 9.021), ((30, 50, 20), 15.395)])
def test_aic_of_a_hundred_rows(counts: tuple[int, ...], expected: float) -> None:
    assert int(node_criterion(np.array(counts))) / AIC_UNIT == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(("rows", "expected"), [(2, 0.69315), (10, 0.94824), (100, 0.99498), (44_821, 0.999989)])
def test_the_only_row_of_a_code_moves_aic_by_twice_g_of_the_rows(rows: int, expected: float) -> None:
    """AIC(D) − AIC(D−) = 2(g(N) − g(a)) with g(1) = 0 and g(x) = (x − 1) log(x/(x − 1))."""
    moved = int(node_criterion(np.array([rows - 1, 1]))) - int(node_criterion(np.array([rows - 1, 0])))
    assert moved / 2 / AIC_UNIT == pytest.approx(expected, abs=5e-6 if rows < 1000 else 5e-7)


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=6))
def test_aic_agrees_with_its_definition(counts: list[int]) -> None:
    assert int(node_criterion(np.array(counts))) / AIC_UNIT == pytest.approx(by_formula(counts), abs=1e-3)


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=6))
def test_bic_and_deviance_agree_with_their_definitions(counts: list[int]) -> None:
    deviance = by_formula(counts) - 2 * len(counts)
    bic = deviance + len(counts) * math.log(max(sum(counts), BIC_ROWS))
    # Beyond 2¹⁶ rows sums run along straight lines, a thousandth away for a code.
    assert int(node_criterion(np.array(counts), "deviance")) / AIC_UNIT == pytest.approx(deviance, abs=5e-3)
    assert int(node_criterion(np.array(counts), "bic")) / AIC_UNIT == pytest.approx(bic, abs=5e-3)


@pytest.mark.parametrize("levels", [2, 99, 100, 101, 3001])
def test_the_penalty_of_bic_moves_by_less_than_one_however_many_codes(levels: int) -> None:
    """One code holds all rows, so that likelihoods stay as they are and only the penalty moves."""
    rows = np.concatenate([np.arange(5_000), 2**16 + np.arange(3), [2**30, 2**30 + 1]])
    found = node_criterion(np.pad(rows[:, None], ((0, 0), (0, levels - 1))), "bic")
    moved = np.diff(found)[np.diff(rows) == 1]
    assert moved.min() >= 0
    assert 0.9 * min(1, levels / BIC_ROWS) * AIC_UNIT < moved.max() <= AIC_UNIT


def test_bic_without_a_least_number_of_rows_would_move_by_more_than_claimed() -> None:
    claimed = float(NodeCriterion("split", ["a"], np.ones((1, 1), dtype=bool), "bic").sensitivity) / AIC_UNIT
    assert 20 * math.log(2) - 20 * math.log(1) > claimed


def test_an_empty_node_has_twice_its_codes() -> None:
    assert int(node_criterion(np.zeros(5, dtype=np.int64))) == 10 * AIC_UNIT


def moves(levels: int, most: int) -> np.ndarray:
    """How far removing one row moves AIC, in its own units: all tables of up to `most` rows a code, all codes."""
    tables = np.indices((most + 1,) * levels).reshape(levels, -1).T
    found = []
    for place in range(levels):
        held = tables[tables[:, place] > 0]
        less = held - np.eye(levels, dtype=np.int64)[place]
        found.append(node_criterion(held) - node_criterion(less))
    return np.concatenate(found)


@pytest.mark.parametrize(("levels", "most", "largest"), [(2, 200, 1.9950), (3, 30, 1.9835), (4, 12, 1.9727)])
def test_a_row_moves_aic_by_less_than_two_and_never_upwards_when_removed(
    levels: int, most: int, largest: float
) -> None:
    found = moves(levels, most)
    assert found.min() == 0
    assert found.max() < 2 * AIC_UNIT
    assert found.max() / AIC_UNIT == pytest.approx(largest, abs=5e-5)
    total = (
        most * (levels - 1) + 1
    )  # the lone row of a code beside full ones: 2 g(N) with g(x) = (x − 1) log(x/(x − 1))
    assert found.max() / AIC_UNIT == pytest.approx(2 * (total - 1) * math.log(total / (total - 1)), abs=1e-6)


def test_counting_occupied_codes_only_would_move_it_by_almost_four() -> None:
    def occupied(counts: list[int]) -> float:
        return by_formula(counts, sum(count > 0 for count in counts))

    assert occupied([9, 1]) - occupied([9, 0]) == pytest.approx(3.896, abs=1e-3)
    worst = max(abs(occupied([a, b]) - occupied([a, b - 1])) for a in range(200) for b in range(1, 200) if a + b > 1)
    assert 3.98 < worst < 4
    assert worst > float(NodeCriterion("split", ["a"], np.ones((1, 1), dtype=bool)).sensitivity) / AIC_UNIT


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.one_of(st.integers(0, 50), st.sampled_from(HARD_COUNTS)), min_size=2, max_size=6),
    st.data(),
)
def test_every_score_of_a_node_falls_by_at_most_its_bound_with_a_row(cells: list[int], data: st.DataObject) -> None:
    joint = np.array(cells, dtype=np.int64)
    place = data.draw(st.integers(0, joint.size - 1))
    labels = {"a": np.arange(joint.size) % 2, "b": np.arange(joint.size) % 3, "c": np.arange(joint.size) // 2}

    def tables(table: np.ndarray) -> dict[str, np.ndarray]:
        sizes = {"a": 2, "b": 3, "c": 4}
        return {
            name: np.array([[table[codes == code].sum() for code in range(sizes[name])]], dtype=np.int64)
            for name, codes in labels.items()
        }

    more = joint.copy()
    more[place] += 1
    for criterion in CRITERIA:
        quality = NodeCriterion("split", ["a", "b", "c"], EVERY, criterion)
        fall = quality.scores(tables(joint)) - quality.scores(tables(more))
        assert quality.monotone
        assert fall.min() >= 0
        assert fall.max() <= quality.sensitivity
    stop = AicRange("stop", ["a", "b", "c"], EVERY, np.ones((1, 2), dtype=bool), 100)
    moved = stop.scores(tables(joint)) - stop.scores(tables(more))
    assert np.abs(moved).max() <= stop.sensitivity


@pytest.mark.parametrize(
    ("published", "expected"), [(True, (0.3476, 0.0706, 0.5817)), (False, (0.2603, 0.0107, 0.7290))]
)
def test_the_distribution_of_the_choice(*, published: bool, expected: tuple[float, ...]) -> None:
    quality = NodeCriterion("split", ["a", "b", "c"], EVERY, published=published)
    rate = selection_rate(Cost(epsilon=UNIT), quality.sensitivity, "split", monotone=quality.monotone)
    found = distribution_of(quality.scores(HUNDRED)[0], float(rate))
    assert found == pytest.approx(expected, abs=6e-5)


def test_grouped_scores_and_their_distribution() -> None:
    splits = ordered_splits(["a", "b", "c"], 2)
    quality = GroupedCriterion("layers", splits)
    scores = quality.scores({Clique((name,)): table[0] for name, table in HUNDRED.items()})
    found = {"".join(split[0]): score / AIC_UNIT for split, score in zip(splits, scores, strict=True)}
    expected = {"a": 2.1571, "b": -7.4038, "c": 5.2467, "ab": -5.2467, "ac": 7.4038, "bc": -2.1571}
    assert found == pytest.approx(expected, abs=6e-5)
    rate = selection_rate(Cost(epsilon=UNIT), quality.sensitivity, "layers", monotone=quality.monotone)
    probabilities = {
        "".join(split[0]): probability
        for split, probability in zip(splits, distribution_of(scores, float(rate)), strict=True)
    }
    printed = {"a": 0.1339, "b": 0.0123, "c": 0.2900, "ab": 0.0210, "ac": 0.4972, "bc": 0.0456}
    assert probabilities == pytest.approx(printed, abs=6e-5)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=12, max_size=12), st.integers(0, 11), st.sampled_from([2, 3]))
def test_grouped_scores_move_by_at_most_their_bound(cells: list[int], place: int, layers: int) -> None:
    before = np.array(cells, dtype=np.int64).reshape(2, 3, 2)
    after = before.copy()
    after.ravel()[place] += 1

    def tables(joint: np.ndarray) -> dict[Clique, np.ndarray]:
        axes = {"a": (1, 2), "b": (0, 2), "c": (0, 1)}
        return {Clique((name,)): joint.sum(axis=axis) for name, axis in axes.items()}

    for criterion in CRITERIA:
        quality = GroupedCriterion("layers", ordered_splits(["a", "b", "c"], layers), criterion)
        moved = quality.scores(tables(before)) - quality.scores(tables(after))
        assert np.abs(moved).max() <= quality.sensitivity


def test_five_columns_have_thirty_ordered_splits_and_their_order_counts() -> None:
    splits = ordered_splits(list("vwxyz"), 2)
    assert len(splits) == split_count(5, 2) == 30 == len(set(splits))
    assert all((bottom, top) in splits for top, bottom in splits)
    by_size = [sum(len(top) == size for top, _ in splits) for size in (1, 2, 3, 4)]
    assert by_size == [5, 10, 10, 5]


def test_stopping_scores_the_range_of_aic() -> None:
    quality = AicRange("stop", ["a", "b", "c"], EVERY, np.ones((1, 2), dtype=bool), 100)
    ((go_on, stop),) = quality.scores(HUNDRED).tolist()
    assert go_on / (1000 * AIC_UNIT) == pytest.approx((15.395 - 1.1 * 6.961) / 2, abs=1e-3)
    assert stop == -go_on
    rate = float(selection_rate(Cost(epsilon=UNIT), quality.sensitivity, "stop", monotone=False))
    odds = math.exp(rate * (stop - go_on))
    assert odds == pytest.approx(math.exp(-(15.3951 - 1.1 * 6.9614) / (2 * 1.1)), rel=1e-4)


def test_only_compared_columns_count_for_stopping() -> None:
    compared = np.array([[True, False, True]])
    quality = AicRange("stop", ["a", "b", "c"], compared, np.ones((1, 2), dtype=bool), 0)
    ((go_on, _),) = quality.scores(HUNDRED).tolist()
    assert go_on / (1000 * AIC_UNIT) == pytest.approx((9.0212 - 6.9614) / 2, abs=1e-4)
    with pytest.raises(UsageError, match="at least one column"):
        AicRange("stop", ["a"], np.zeros((1, 1), dtype=bool), np.ones((1, 2), dtype=bool))
    with pytest.raises(UsageError, match="thousandths"):
        AicRange("stop", ["a"], np.ones((1, 1), dtype=bool), np.ones((1, 2), dtype=bool), -1)
    widest = AicRange("stop", ["a"], np.ones((1, 1), dtype=bool), np.ones((1, 2), dtype=bool), 10_000)
    assert widest.sensitivity == 11_000 * AIC_UNIT
    with pytest.raises(UsageError, match="thousandths"):
        replace(widest, tolerance=10_001)


def test_no_outcome_of_a_choice_is_more_than_its_cost_likelier_for_a_neighbour() -> None:
    # Every table of two binary columns with up to six rows a cell, each with one row more, charged at ε = 1.
    quality = NodeCriterion("split", ["a", "b"], np.ones((7**4, 2), dtype=bool))
    rate = float(selection_rate(Cost(epsilon=UNIT), quality.sensitivity, "split", monotone=True))
    joint = np.indices((7, 7, 7, 7)).reshape(4, -1).T

    def log_chances(cells: np.ndarray) -> np.ndarray:
        table = cells.reshape(-1, 2, 2)
        scores = quality.scores({"a": table.sum(axis=2), "b": table.sum(axis=1)}) * rate
        return scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)

    worst = max(
        float(np.abs(log_chances(joint) - log_chances(joint + np.eye(4, dtype=np.int64)[place])).max())
        for place in range(4)
    )
    assert 0.6 < worst <= 1.0


@dataclass(frozen=True)
class OccupiedAic:
    """The published score: the number of parameters is that of occupied codes. Its bound of 2 does not hold."""

    name: str = "split"
    options: tuple[str, ...] = ("a", "b")
    columns: tuple[str, ...] = ("a", "b")
    sensitivity: Fraction = Fraction(2 * AIC_UNIT)
    monotone: bool = True

    @property
    def allowed(self) -> np.ndarray:
        return np.ones((1, 2), dtype=bool)

    def scores(self, exact: Mapping[str, np.ndarray]) -> np.ndarray:
        empty = [2 * AIC_UNIT * (exact[name] == 0).sum(axis=1) for name in self.columns]
        return np.stack(
            [part - node_criterion(exact[name]) for part, name in zip(empty, self.columns, strict=True)], axis=1
        )


def test_replay_catches_the_score_of_occupied_codes_and_passes_ours() -> None:
    schema = letters({"a": 2, "b": 3})
    table = rows_of({"a": [0] * 10, "b": [1] * 10})
    neighbour = rows_of({"a": [0] * 10 + [1], "b": [1] * 11})

    def pipeline(quality: object) -> Pipeline:
        def run(rows: pa.Table, randomizer: Randomizer) -> tuple[bytes, Cost]:
            curator = door(rows, schema, Cost(epsilon=UNIT), randomizer)
            structure = TreeStructure.root(curator.domain)
            chosen: object = curator.select_within(structure.partition(), quality, Cost(epsilon=UNIT))
            return repr(chosen).encode(), Cost(epsilon=UNIT)

        return run

    check_pair(pipeline(NodeCriterion("split", ["a", "b"], np.ones((1, 2), dtype=bool))), table, neighbour, NoNoise())
    with pytest.raises(Leak, match="moved"):
        check_pair(pipeline(OccupiedAic()), table, neighbour, NoNoise())


# Information gain inside nodes: right in value below the bound of rows, safe above it.


NODE_INFORMATION_HARD_COUNTS = [0, 1, 2, 3, 2**16, 2**16 + 1, 2**30, 2**36 - 1, 2**36, 2**37, 2**38, 2**50]


def quality_of(levels: int, rows_bound: int) -> NodeInformation:
    return NodeInformation("split", ["a"], np.ones((1, 1), dtype=bool), [levels], rows_bound)


def node_information_by_formula(counts: list[int]) -> float:
    """2 N (log K − entropy) − 2K."""
    total, levels = sum(counts), len(counts)
    entropy = -sum(count / total * math.log(count / total) for count in counts if count) if total else 0.0
    return 2 * total * (math.log(levels) - entropy) - 2 * levels


@given(st.lists(st.integers(0, 30_000), min_size=2, max_size=6))
def test_the_gain_agrees_with_its_definition(counts: list[int]) -> None:
    found = int(quality_of(len(counts), 200_000).scores({"a": np.array([counts])})[0, 0]) / SCORE_UNIT
    assert found == pytest.approx(node_information_by_formula(counts), abs=0.5, rel=1e-4)


@pytest.mark.parametrize(("levels", "rows", "expected"), [(2, 44_821, 22.03), (14, 44_821, 18.14), (2, 1, 2 * 0.6931)])
def test_the_sensitivity_grows_with_the_bound(levels: int, rows: int, expected: float) -> None:
    assert information_sensitivity([levels], rows) / SCORE_UNIT == pytest.approx(expected, abs=6e-3)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.one_of(st.integers(0, 60), st.sampled_from(NODE_INFORMATION_HARD_COUNTS)), min_size=1, max_size=5),
    st.integers(0, 4),
    st.sampled_from([1, 2, 5, 30, 1000, 10**6, MOST_ROWS]),
)
def test_no_score_moves_by_more_than_claimed_whatever_the_table(cells: list[int], place: int, bound: int) -> None:
    before = np.array([cells], dtype=np.int64)
    after = before.copy()
    after[0, place % len(cells)] += 1
    quality = quality_of(len(cells), bound)
    moved = quality.scores({"a": before}) - quality.scores({"a": after})
    assert abs(int(moved[0, 0])) <= quality.sensitivity


def test_the_bound_is_almost_reached_and_one_without_a_bound_would_be_broken() -> None:
    quality = quality_of(2, 1000)
    full = np.array([[1000, 0]], dtype=np.int64)
    (down,) = quality.scores({"a": full}) - quality.scores({"a": full + np.array([[0, 1]])})
    assert 0.999 < int(down[0]) / float(quality.sensitivity) <= 1
    assert (
        node_information_by_formula([10**6, 0]) - node_information_by_formula([10**6, 1])
        > float(quality.sensitivity) / SCORE_UNIT
    )


@pytest.mark.parametrize("bound", [0, -3, MOST_ROWS + 1, 2.5, True, None])
def test_a_bound_that_is_none_is_refused(bound: object) -> None:
    with pytest.raises(UsageError, match="rows_bound"):
        quality_of(2, bound)  # type: ignore[arg-type]


def test_levels_go_with_options() -> None:
    with pytest.raises(UsageError, match="every column"):
        NodeInformation("split", ["a"], np.ones((1, 1), dtype=bool), [2, 3], 10)
    with pytest.raises(UsageError, match="codes"):
        quality_of(0, 10)
