"""AIC inside nodes: the printed numbers, the distribution of the draw, and its sensitivity by brute force."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.methods.door import door, letters, rows_of
from understudy.domain import Clique
from understudy.errors import UsageError
from understudy.models.histogram_tree import TreeStructure
from understudy.privacy.cost import UNIT, Cost, selection_rate
from understudy.privacy.randomizer import Randomizer
from understudy.privacy.trees import AIC_UNIT, AicRange, GroupedAic, NodeAic, node_aic, ordered_splits, split_count
from understudy.testing.doubles import NoNoise
from understudy.testing.replay import Leak, Pipeline, check_pair

HUNDRED = {"a": np.array([[60, 40]]), "b": np.array([[30, 50, 20]]), "c": np.array([[97, 3]])}
EVERY = np.ones((1, 3), dtype=bool)
HARD_COUNTS = [0, 1, 2, 3, 2**16 - 1, 2**16, 2**16 + 1, 2**30, 2**40 - 1, 2**40, 2**50]


def by_formula(counts: list[int], levels: int | None = None) -> float:
    """AIC as it is defined, with logarithms of factorials."""
    total = sum(counts)
    likelihood = math.lgamma(total + 1) - sum(math.lgamma(count + 1) for count in counts)
    likelihood += sum(count * math.log(count / total) for count in counts if count)
    return -2 * likelihood + 2 * (len(counts) if levels is None else levels)


def distribution_of(scores: np.ndarray, rate: float) -> np.ndarray:
    """Probabilities of the exponential mechanism."""
    weights = np.exp((scores - scores.max()) * rate)
    return weights / weights.sum()


@pytest.mark.parametrize(("counts", "expected"), [((97, 3), 6.961), ((60, 40), 9.021), ((30, 50, 20), 15.395)])
def test_aic_of_a_hundred_rows(counts: tuple[int, ...], expected: float) -> None:
    assert int(node_aic(np.array(counts))) / AIC_UNIT == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(("rows", "expected"), [(2, 0.69315), (10, 0.94824), (100, 0.99498), (44_821, 0.999989)])
def test_the_only_row_of_a_code_moves_aic_by_twice_g_of_the_rows(rows: int, expected: float) -> None:
    """AIC(D) − AIC(D−) = 2(g(N) − g(a)) with g(1) = 0 and g(x) = (x − 1) log(x/(x − 1))."""
    moved = int(node_aic(np.array([rows - 1, 1]))) - int(node_aic(np.array([rows - 1, 0])))
    assert moved / 2 / AIC_UNIT == pytest.approx(expected, abs=5e-6 if rows < 1000 else 5e-7)


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=6))
def test_aic_agrees_with_its_definition(counts: list[int]) -> None:
    assert int(node_aic(np.array(counts))) / AIC_UNIT == pytest.approx(by_formula(counts), abs=1e-3)


def test_an_empty_node_has_twice_its_codes() -> None:
    assert int(node_aic(np.zeros(5, dtype=np.int64))) == 10 * AIC_UNIT


def moves(levels: int, most: int) -> np.ndarray:
    """How far removing one row moves AIC, in its own units: all tables of up to `most` rows a code, all codes."""
    tables = np.indices((most + 1,) * levels).reshape(levels, -1).T
    found = []
    for place in range(levels):
        held = tables[tables[:, place] > 0]
        less = held - np.eye(levels, dtype=np.int64)[place]
        found.append(node_aic(held) - node_aic(less))
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
    assert worst > float(NodeAic("split", ["a"], np.ones((1, 1), dtype=bool)).sensitivity) / AIC_UNIT


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.one_of(st.integers(0, 50), st.sampled_from(HARD_COUNTS)), min_size=2, max_size=6),
    st.data(),
)
def test_every_score_of_a_node_falls_by_at_most_two_with_a_row(cells: list[int], data: st.DataObject) -> None:
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
    quality = NodeAic("split", ["a", "b", "c"], EVERY)
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
    quality = NodeAic("split", ["a", "b", "c"], EVERY, published=published)
    rate = selection_rate(Cost(epsilon=UNIT), quality.sensitivity, "split", monotone=quality.monotone)
    found = distribution_of(quality.scores(HUNDRED)[0], float(rate))
    assert found == pytest.approx(expected, abs=6e-5)


def test_grouped_scores_and_their_distribution() -> None:
    splits = ordered_splits(["a", "b", "c"], 2)
    quality = GroupedAic("layers", splits)
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
def test_grouped_scores_move_by_at_most_two(cells: list[int], place: int, layers: int) -> None:
    before = np.array(cells, dtype=np.int64).reshape(2, 3, 2)
    after = before.copy()
    after.ravel()[place] += 1
    quality = GroupedAic("layers", ordered_splits(["a", "b", "c"], layers))

    def tables(joint: np.ndarray) -> dict[Clique, np.ndarray]:
        axes = {"a": (1, 2), "b": (0, 2), "c": (0, 1)}
        return {Clique((name,)): joint.sum(axis=axis) for name, axis in axes.items()}

    assert np.abs(quality.scores(tables(before)) - quality.scores(tables(after))).max() <= quality.sensitivity


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


def test_no_outcome_of_a_choice_is_more_than_its_price_likelier_for_a_neighbour() -> None:
    # Every table of two binary columns with up to six rows a cell, each with one row more, charged at ε = 1.
    quality = NodeAic("split", ["a", "b"], np.ones((7**4, 2), dtype=bool))
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
        return np.stack([part - node_aic(exact[name]) for part, name in zip(empty, self.columns, strict=True)], axis=1)


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

    check_pair(pipeline(NodeAic("split", ["a", "b"], np.ones((1, 2), dtype=bool))), table, neighbour, NoNoise())
    with pytest.raises(Leak, match="moved"):
        check_pair(pipeline(OccupiedAic()), table, neighbour, NoNoise())
