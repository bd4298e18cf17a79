"""Cuts: the score prefers even ones, moves by no more than it says, and only inside its own range."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.methods.door import door, epsilon, letters, rows_of
from understudy.answers import SCORE_UNIT
from understudy.privacy.trees import EvenSplit
from understudy.testing.doubles import NoNoise


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
