"""Tests of `understudy.privacy.scores`."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.domain import SCORE_UNIT, Clique
from understudy.errors import UsageError
from understudy.privacy.scores import (
    LARGEST_SCORE,
    WEIGHT_UNIT,
    MarginalError,
    PublicOrPrivate,
    Quality,
    Sourced,
    StandInError,
)

# The score for choosing a table: right in value, exact in sensitivity whatever the counts, weights and estimates.


A, B, AB = Clique(("a",)), Clique(("b",)), Clique(("a", "b"))
SHAPES = {A: (2, 1), B: (1, 3), AB: (2, 3)}
HARD_COUNTS = [0, 1, 2, 2**31 - 1, 2**31, 2**32, 2**42 - 1, 2**42, 2**53 - 2]


def tables(joint: np.ndarray) -> dict[Clique, np.ndarray]:
    """The three tables of a joint one; what adds up beyond 2⁵³ is cut there, as no source counts further."""
    exact = {A: joint.sum(axis=1), B: joint.sum(axis=0), AB: joint.ravel()}
    return {clique: np.minimum(counts, 2**53 - 1) for clique, counts in exact.items()}


estimates = st.lists(
    st.one_of(st.floats(0, 1e4), st.sampled_from([0.0, 0.5, 2.0**-21, 1e-300, 2.0**42, 2.0**53, 1e300])),
    min_size=6,
    max_size=6,
).map(np.array)
counts = st.lists(st.one_of(st.integers(0, 20), st.sampled_from(HARD_COUNTS)), min_size=6, max_size=6)
weights = st.lists(st.one_of(st.floats(1e-6, 1e6), st.sampled_from([1.0, 2.0, 1 / 3, 5e-324])), min_size=3, max_size=3)
penalties = st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3)
floors = st.lists(
    st.one_of(st.just(0.0), st.floats(0, 50), st.sampled_from([2.0**-21, 2.0**42, 1e300])), min_size=3, max_size=3
)


@settings(max_examples=400, deadline=None)
@given(counts, estimates, weights, penalties, floors, st.integers(0, 5), st.integers(1, 3))
def test_no_score_moves_by_more_than_claimed(cells, aims, scale, cut, floor, place, rows) -> None:
    expected = {A: aims[:2], B: aims[:3], AB: aims}
    quality = MarginalError("pair", (A, B, AB), expected, scale, cut, floor)
    before = np.array(cells, dtype=np.int64).reshape(2, 3)
    after = before.copy()
    after.ravel()[place] += rows
    one, other = quality.scores(tables(before)), quality.scores(tables(after))
    assert max(abs(int(x) - int(y)) for x, y in zip(one, other, strict=True)) <= rows * quality.sensitivity


def test_the_bound_is_reached_by_the_heaviest_option() -> None:
    quality = MarginalError("pair", (A, AB), {A: np.zeros(2), AB: np.zeros(6)}, (1.0, 4.0))
    moved = quality.scores({A: np.array([1, 0]), AB: np.array([0, 0, 1, 0, 0, 0])})
    assert quality.sensitivity == WEIGHT_UNIT * SCORE_UNIT
    assert moved.tolist() == [WEIGHT_UNIT // 4 * SCORE_UNIT, WEIGHT_UNIT * SCORE_UNIT]


def test_scores_are_weighted_distances_less_penalties() -> None:
    expected = {A: np.array([3.5, 1.0]), B: np.ones(3)}
    quality = MarginalError("pair", (A, B), expected, (1.0, 2.0), (1.0, 0.0))
    found = quality.scores({A: np.array([5, 0]), B: np.array([1, 3, 0])}) / float(quality.sensitivity)
    assert found.tolist() == [0.5 * (1.5 + 1.0 - 1.0), 3.0]


def test_a_cell_counts_by_what_it_is_off_beyond_the_floor() -> None:
    expected = {A: np.array([3.5, 1.0]), B: np.ones(3)}
    quality = MarginalError("pair", (A, B), expected, penalties=(0.25, 0.0), floors=(1.0, 2.0))
    found = quality.scores({A: np.array([5, 0]), B: np.array([1, 3, 0])}) / float(quality.sensitivity)
    assert found.tolist() == [0.5 - 0.25, 0.0]
    sourced = PublicOrPrivate(
        "table", ((A, "private"), (A, "public")), expected, {A: np.array([4.0, 0.0])}, floors=(1.0, 1.0)
    )
    found = sourced.scores({A: np.array([5, 0])}) / float(sourced.sensitivity)
    assert found.tolist() == [0.5, 0.5 * (2.5 - 1.0)]


@pytest.mark.parametrize("floors", [(1.0,), (-1.0, 0.0), (math.inf, 0.0), (math.nan, 0.0)])
def test_floors_are_checked(floors: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="floor"):
        MarginalError("pair", (A, B), {A: np.zeros(2), B: np.zeros(3)}, floors=floors)


def test_an_estimate_of_another_size_is_refused() -> None:
    with pytest.raises(UsageError, match="cells of their tables"):
        MarginalError("table", (A,), {A: np.zeros(3)}).scores({A: np.zeros(2, dtype=np.int64)})


@given(counts, estimates)
def test_scores_agree_with_exact_fractions(cells, aims) -> None:
    quality = MarginalError("table", (AB,), {AB: aims})
    exact = [
        abs(min(count, 2**42) * SCORE_UNIT - round(Fraction(min(float(aim), 2.0**42)) * SCORE_UNIT))
        for count, aim in zip(cells, aims, strict=True)
    ]
    (score,) = quality.scores({AB: np.array(cells, dtype=np.int64)})
    assert int(score) == min(LARGEST_SCORE, WEIGHT_UNIT * sum(exact))


def test_it_is_a_quality_and_not_monotone() -> None:
    quality: Quality[Clique] = MarginalError("pair", (A,), {A: np.array([2.0, 2.0])})
    towards = quality.scores({A: np.array([1, 2])}) - quality.scores({A: np.array([0, 2])})
    away = quality.scores({A: np.array([3, 2])}) - quality.scores({A: np.array([2, 2])})
    assert towards[0] < 0 < away[0]
    assert not quality.monotone
    assert quality.cliques == (A,)


@pytest.mark.parametrize(
    ("scale", "cut"),
    [((0.0,), (0.0,)), ((-1.0,), (0.0,)), ((float("nan"),), (0.0,)), ((1.0,), (float("inf"),)), ((1.0, 2.0), (0.0,))],
)
def test_bad_weights_and_penalties_are_refused(scale, cut) -> None:
    with pytest.raises(UsageError, match="select pair"):
        MarginalError("pair", (A,), {A: np.zeros(2)}, scale, cut)


SOURCED: tuple[Sourced, ...] = ((A, "private"), (B, "private"), (AB, "private"), (A, "public"), (AB, "public"))


@settings(max_examples=400, deadline=None)
@given(
    counts,
    st.tuples(estimates, estimates),
    st.tuples(weights, weights).map(lambda pair: [*pair[0], *pair[1][:2]]),
    st.tuples(penalties, penalties).map(lambda pair: [*pair[0], *pair[1][:2]]),
    st.integers(0, 5),
    st.integers(1, 3),
)
def test_no_score_of_either_source_moves_by_more_than_claimed(cells, aims, scale, cut, place, rows) -> None:
    model, public = ({A: aim[:2], B: aim[:3], AB: aim} for aim in aims)
    quality = PublicOrPrivate("table", SOURCED, model, public, scale, cut)
    before = np.array(cells, dtype=np.int64).reshape(2, 3)
    after = before.copy()
    after.ravel()[place] += rows
    one, other = quality.scores(tables(before)), quality.scores(tables(after))
    assert max(abs(int(x) - int(y)) for x, y in zip(one, other, strict=True)) <= rows * quality.sensitivity


def test_each_source_reaches_the_bound() -> None:
    """A count between the model's number and the public one: a row moves it away from the first, towards the other."""
    quality = PublicOrPrivate("table", ((A, "private"), (A, "public")), {A: np.zeros(2)}, {A: np.array([9.0, 0.0])})
    moved = quality.scores({A: np.array([5, 0])}) - quality.scores({A: np.array([4, 0])})
    assert quality.sensitivity == 2 * WEIGHT_UNIT * SCORE_UNIT
    assert moved.tolist() == [quality.sensitivity] * 2


def test_scores_by_hand_for_both_sources() -> None:
    """p = (4, 6), m = (5, 5), q = (3, 7), σ = 1: private 2 − 2√(2/π) = 0.4042, public 2 − 2 = 0."""
    model, public = {A: np.array([5.0, 5.0])}, {A: np.array([3.0, 7.0])}
    both: tuple[Sourced, ...] = ((A, "private"), (A, "public"))
    quality = PublicOrPrivate("table", both, model, public, penalties=(2 * math.sqrt(2 / math.pi), 0.0))
    assert quality.cliques == [A]
    private, taken = quality.scores({A: np.array([4, 6])}) / float(quality.sensitivity)
    assert private == pytest.approx(0.4042, abs=5e-5)
    assert taken == 0.0
    exact_public = PublicOrPrivate("table", both, model, {A: np.array([4.0, 6.0])})
    assert (exact_public.scores({A: np.array([4, 6])}) / float(quality.sensitivity)).tolist() == [2.0, 1.0]


@given(counts, estimates)
def test_private_options_alone_are_chosen_as_without_public_data(cells, aims) -> None:
    exact = {AB: np.array(cells, dtype=np.int64)}
    plain = MarginalError("table", (AB,), {AB: aims})
    sourced = PublicOrPrivate("table", ((AB, "private"),), {AB: aims}, {})
    (one,), (other,) = plain.scores(exact), sourced.scores(exact)
    assert int(other) == min(LARGEST_SCORE, 2 * int(one))
    assert sourced.sensitivity == 2 * plain.sensitivity


def test_a_public_table_of_another_size_and_bad_weights_are_refused() -> None:
    with pytest.raises(UsageError, match="cells of their tables"):
        PublicOrPrivate("table", ((A, "public"),), {A: np.zeros(2)}, {A: np.zeros(3)}).scores(
            {A: np.zeros(2, dtype=np.int64)}
        )
    with pytest.raises(UsageError, match="select table"):
        PublicOrPrivate("table", ((A, "public"),), {A: np.zeros(2)}, {A: np.zeros(2)}, (0.0,))


STAND_IN_ERROR_A, STAND_IN_ERROR_B, PAIR = Clique(("a",)), Clique(("b",)), Clique(("a", "b"))


def query(aims: dict[str, list[float]]) -> StandInError:
    estimates = {}
    for name, pair in aims.items():
        table = np.array(pair).reshape(2, 3)
        estimates[name] = {
            STAND_IN_ERROR_A: table.sum(axis=1),
            STAND_IN_ERROR_B: table.sum(axis=0),
            PAIR: table.ravel(),
        }
    return StandInError("method", list(aims), [STAND_IN_ERROR_A, STAND_IN_ERROR_B, PAIR], estimates)


def exact(cells: list[int]) -> dict[Clique, np.ndarray]:
    table = np.array(cells, dtype=np.int64).reshape(2, 3)
    return {STAND_IN_ERROR_A: table.sum(axis=1), STAND_IN_ERROR_B: table.sum(axis=0), PAIR: table.ravel()}


def test_the_score_is_minus_the_distance_over_all_tables() -> None:
    queries = query({"same": [1, 2, 3, 4, 5, 6], "one moved": [2, 2, 3, 4, 5, 5]})
    assert queries.scores(exact([1, 2, 3, 4, 5, 6])).tolist() == [0, -6 * SCORE_UNIT]


@given(
    st.lists(st.integers(0, 50), min_size=6, max_size=6),
    st.lists(st.floats(0, 60), min_size=6, max_size=6),
    st.integers(0, 5),
)
def test_no_row_moves_a_score_by_more_than_the_bound(cells: list[int], aims: list[float], place: int) -> None:
    queries = query({"first": aims, "second": aims[::-1]})
    more = [count + (index == place) for index, count in enumerate(cells)]
    moved = np.abs(queries.scores(exact(cells)) - queries.scores(exact(more)))
    assert moved.max() <= queries.sensitivity


def test_the_bound_is_reached() -> None:
    queries = query({"empty": [0.0] * 6})
    moved = queries.scores(exact([0] * 6)) - queries.scores(exact([1, 0, 0, 0, 0, 0]))
    assert moved.tolist() == [queries.sensitivity]


@pytest.mark.parametrize("count", [2**32 // SCORE_UNIT, 2**40 + 5])
def test_distances_of_millions_of_rows_are_exact(count: int) -> None:
    """Sums are taken in two halves; a row more is a row more on either side of where they meet."""
    queries = query({"empty": [0.0] * 6})
    for rows in (count - 1, count, count + 1):
        assert queries.scores(exact([rows, 0, 0, 0, 0, 0])).tolist() == [-3 * rows * SCORE_UNIT]


def test_huge_counts_do_not_wrap() -> None:
    queries = query({"empty": [0.0] * 6, "huge": [2.0**42] * 6})
    scores = queries.scores(exact([2**42] * 6)).tolist()
    assert scores[0] < scores[1] <= 0
    assert all(score >= -(2**62) for score in itertools.chain(scores))
