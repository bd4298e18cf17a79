import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from understudy.answers import SCORE_UNIT
from understudy.domain import Clique
from understudy.privacy.scores import StandInError

A, B, PAIR = Clique(("a",)), Clique(("b",)), Clique(("a", "b"))


def question(aims: dict[str, list[float]]) -> StandInError:
    estimates = {}
    for name, pair in aims.items():
        table = np.array(pair).reshape(2, 3)
        estimates[name] = {A: table.sum(axis=1), B: table.sum(axis=0), PAIR: table.ravel()}
    return StandInError("method", list(aims), [A, B, PAIR], estimates)


def exact(cells: list[int]) -> dict[Clique, np.ndarray]:
    table = np.array(cells, dtype=np.int64).reshape(2, 3)
    return {A: table.sum(axis=1), B: table.sum(axis=0), PAIR: table.ravel()}


def test_the_score_is_minus_the_distance_over_all_tables() -> None:
    queries = question({"same": [1, 2, 3, 4, 5, 6], "one moved": [2, 2, 3, 4, 5, 5]})
    assert queries.scores(exact([1, 2, 3, 4, 5, 6])).tolist() == [0, -6 * SCORE_UNIT]


@given(
    st.lists(st.integers(0, 50), min_size=6, max_size=6),
    st.lists(st.floats(0, 60), min_size=6, max_size=6),
    st.integers(0, 5),
)
def test_no_row_moves_a_score_by_more_than_the_bound(cells: list[int], aims: list[float], place: int) -> None:
    queries = question({"first": aims, "second": aims[::-1]})
    more = [count + (index == place) for index, count in enumerate(cells)]
    moved = np.abs(queries.scores(exact(cells)) - queries.scores(exact(more)))
    assert moved.max() <= queries.sensitivity


def test_the_bound_is_reached() -> None:
    queries = question({"empty": [0.0] * 6})
    moved = queries.scores(exact([0] * 6)) - queries.scores(exact([1, 0, 0, 0, 0, 0]))
    assert moved.tolist() == [queries.sensitivity]


def test_huge_counts_do_not_wrap() -> None:
    queries = question({"empty": [0.0] * 6, "huge": [2.0**42] * 6})
    scores = queries.scores(exact([2**42] * 6)).tolist()
    assert scores[0] < scores[1] <= 0
    assert all(score >= -(2**62) for score in itertools.chain(scores))
