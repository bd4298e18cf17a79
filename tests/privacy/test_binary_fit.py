"""F: equal to trying every split, exact in sensitivity, and the published numbers."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.answers import SCORE_UNIT
from understudy.domain import Clique, Domain
from understudy.errors import UsageError
from understudy.privacy.dependence import BinaryFit, Family
from understudy.privacy.scores import Quality

DOMAIN = Domain.of({"p": 4, "x": 2})
PX = Clique(("p", "x"))
QUALITY = BinaryFit("parents", [Family("x", ("p",))], DOMAIN)
counts = st.lists(st.one_of(st.integers(0, 6), st.integers(0, 60)), min_size=8, max_size=8)


def fit(table: np.ndarray) -> Fraction:
    """F_c = n·F by trying every split."""
    total, best = Fraction(int(table.sum())), None
    for split in product((0, 1), repeat=len(table)):
        captured = [sum(int(table[place, side]) for place, side in enumerate(split) if side == code) for code in (0, 1)]
        loss = sum((max(total / 2 - count, Fraction(0)) for count in captured), Fraction(0))
        best = loss if best is None else min(best, loss)
    assert best is not None
    return -best


def score(table: np.ndarray) -> int:
    """The integer score of x given p."""
    return int(QUALITY.scores({PX: table.ravel()})[0])


@settings(max_examples=300, deadline=None)
@given(counts)
def test_scores_equal_the_best_of_all_splits(cells) -> None:
    table = np.array(cells, dtype=np.int64).reshape(4, 2)
    assert score(table) == (fit(table) + Fraction(int(table.sum()), 4)) * SCORE_UNIT


@settings(max_examples=300, deadline=None)
@given(counts, st.integers(0, 7), st.integers(1, 3))
def test_no_score_moves_by_more_than_claimed(cells, place, rows) -> None:
    before = np.array(cells, dtype=np.int64).reshape(4, 2)
    after = before.copy()
    after.ravel()[place] += rows
    assert abs(score(before) - score(after)) <= rows * QUALITY.sensitivity


def test_both_ends_of_the_bound_are_reached() -> None:
    """A row against the grain costs one row, one with it gains a half: centred, three quarters either way."""
    moves = set()
    for cells in product(range(4), repeat=4):
        table = np.array([*cells, 0, 0, 0, 0], dtype=np.int64).reshape(4, 2)
        for place in range(4):
            after = table.copy()
            after.ravel()[place] += 1
            moves.add(score(after) - score(table))
    assert (min(moves), max(moves)) == (-QUALITY.sensitivity, QUALITY.sensitivity)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=8, max_size=8), st.integers(0, 7), st.integers(0, 7))
def test_replacing_a_row_moves_the_share_by_no_more_than_published(cells, gone, come) -> None:
    table = np.array(cells, dtype=np.int64).reshape(4, 2)
    if not table.ravel()[gone]:
        return
    after = table.copy()
    after.ravel()[gone] -= 1
    after.ravel()[come] += 1
    rows = int(table.sum())
    assert abs(fit(table) - fit(after)) / rows <= Fraction(1, rows)


def test_published_numbers() -> None:
    """n = 8, table (3, 1; 1, 3): F = −0.25."""
    quality: Quality[Family] = BinaryFit("parents", [Family("y", ("x",))], Domain.of({"x": 2, "y": 2}))
    (found,) = quality.scores({Clique(("x", "y")): np.array([3, 1, 1, 3])})
    assert found / SCORE_UNIT / 8 - 0.25 == -0.25
    assert not quality.monotone


def test_children_of_other_sizes_are_refused() -> None:
    with pytest.raises(UsageError, match="two codes"):
        BinaryFit("parents", [Family("p", ("x",))], DOMAIN)
