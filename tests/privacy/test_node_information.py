"""Information gain inside nodes: right in value below the bound of rows, safe above it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.answers import SCORE_UNIT
from understudy.errors import UsageError
from understudy.privacy.trees import MOST_ROWS, NodeInformation, information_sensitivity

HARD_COUNTS = [0, 1, 2, 3, 2**16, 2**16 + 1, 2**30, 2**36 - 1, 2**36, 2**37, 2**38, 2**50]


def quality_of(levels: int, rows_bound: int) -> NodeInformation:
    return NodeInformation("split", ["a"], np.ones((1, 1), dtype=bool), [levels], rows_bound)


def by_formula(counts: list[int]) -> float:
    """2 N (log K − entropy) − 2K."""
    total, levels = sum(counts), len(counts)
    entropy = -sum(count / total * math.log(count / total) for count in counts if count) if total else 0.0
    return 2 * total * (math.log(levels) - entropy) - 2 * levels


@given(st.lists(st.integers(0, 30_000), min_size=2, max_size=6))
def test_the_gain_agrees_with_its_definition(counts: list[int]) -> None:
    found = int(quality_of(len(counts), 200_000).scores({"a": np.array([counts])})[0, 0]) / SCORE_UNIT
    assert found == pytest.approx(by_formula(counts), abs=0.5, rel=1e-4)


@pytest.mark.parametrize(("levels", "rows", "expected"), [(2, 44_821, 22.03), (14, 44_821, 18.14), (2, 1, 2 * 0.6931)])
def test_the_sensitivity_grows_with_the_bound(levels: int, rows: int, expected: float) -> None:
    assert information_sensitivity([levels], rows) / SCORE_UNIT == pytest.approx(expected, abs=6e-3)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.one_of(st.integers(0, 60), st.sampled_from(HARD_COUNTS)), min_size=1, max_size=5),
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
    assert by_formula([10**6, 0]) - by_formula([10**6, 1]) > float(quality.sensitivity) / SCORE_UNIT


@pytest.mark.parametrize("bound", [0, -3, MOST_ROWS + 1, 2.5, True, None])
def test_a_bound_that_is_none_is_refused(bound: object) -> None:
    with pytest.raises(UsageError, match="rows_bound"):
        quality_of(2, bound)  # type: ignore[arg-type]


def test_levels_go_with_options() -> None:
    with pytest.raises(UsageError, match="every column"):
        NodeInformation("split", ["a"], np.ones((1, 1), dtype=bool), [2, 3], 10)
    with pytest.raises(UsageError, match="codes"):
        quality_of(0, 10)
