"""R and InDif: equal to fractions, exact in sensitivity whatever the counts, and the published numbers."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.answers import SCORE_UNIT
from understudy.domain import Clique, Domain
from understudy.errors import UsageError
from understudy.privacy.dependence import Dependence, Family, IndependenceGap
from understudy.privacy.scores import Quality

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
ABC, AB = Clique(("a", "b", "c")), Clique(("a", "b"))
FAMILY = Family("b", ("a", "c"))
HARD = [0, 1, 2, 2**29, 2**30, 2**31, 2**42 - 1, 2**42, 2**53, 2**57]
counts = st.lists(st.one_of(st.integers(0, 12), st.sampled_from(HARD)), min_size=12, max_size=12)


def gap(table: np.ndarray) -> Fraction:
    """InDif by definition, in fractions."""
    total = int(table.sum())
    if not total:
        return Fraction(0)
    rows, columns = [int(x) for x in table.sum(axis=1)], [int(x) for x in table.sum(axis=0)]
    return sum(
        (abs(int(table[i, j]) - Fraction(rows[i] * columns[j], total)) for i, j in np.ndindex(table.shape)), Fraction(0)
    )


def both(cells: np.ndarray) -> tuple[int, int]:
    """The integer scores R of b given a and c, and InDif of a and b."""
    exact = {ABC: cells.ravel(), AB: cells.sum(axis=2).ravel()}
    (dependence,) = Dependence("parents", [FAMILY], DOMAIN).scores(exact)
    (apart,) = IndependenceGap("pair", [AB], DOMAIN).scores(exact)
    return int(dependence), int(apart)


@settings(max_examples=200, deadline=None)
@given(counts)
def test_scores_are_the_floor_of_exact_fractions(cells) -> None:
    table = np.array(cells, dtype=np.int64).reshape(2, 3, 2)
    dependence, apart = both(table)
    assert dependence == min(2**62, SCORE_UNIT * gap(table.transpose(0, 2, 1).reshape(4, 3)) // 2)
    assert apart == min(2**62, SCORE_UNIT * gap(table.sum(axis=2)) // 1)


@settings(max_examples=400, deadline=None)
@given(counts, st.integers(0, 11), st.integers(1, 3))
def test_no_score_moves_by_more_than_claimed(cells, place, rows) -> None:
    before = np.array(cells, dtype=np.int64).reshape(2, 3, 2)
    after = before.copy()
    after.ravel()[place] += rows
    one, other = both(before), both(after)
    assert abs(one[0] - other[0]) <= rows * Dependence("parents", [FAMILY], DOMAIN).sensitivity
    assert abs(one[1] - other[1]) <= rows * IndependenceGap("pair", [AB], DOMAIN).sensitivity


def test_every_small_table_stays_within_the_bound_and_one_comes_close() -> None:
    """All 2 × 3 tables of up to 5 rows with every row added; 63 rows in one cell show that 4 cannot be lowered."""
    worst = Fraction(0)
    for cells in product(range(6), repeat=6):
        if sum(cells) > 5:
            continue
        table = np.array(cells, dtype=np.int64).reshape(2, 3)
        for place in range(6):
            after = table.copy()
            after.ravel()[place] += 1
            worst = max(worst, abs(gap(after) - gap(table)))
    assert worst == Fraction(4 * 5, 6)
    table = np.array([[63, 0], [0, 0]])
    after = np.array([[63, 0], [0, 1]])
    assert gap(after) - gap(table) == Fraction(4 * 63, 64)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=9, max_size=9), st.integers(0, 8), st.integers(0, 8))
def test_replacing_a_row_moves_the_share_by_less_than_published(cells, gone, come) -> None:
    table = np.array(cells, dtype=np.int64).reshape(3, 3)
    if not table.ravel()[gone]:
        return
    after = table.copy()
    after.ravel()[gone] -= 1
    after.ravel()[come] += 1
    rows = int(table.sum())
    assert abs(gap(table) - gap(after)) / (2 * rows) <= Fraction(3, rows) + Fraction(2, rows**2)


def test_published_numbers() -> None:
    """n = 8, table (3, 1; 1, 3): R = 0.25."""
    domain = Domain.of({"x": 2, "y": 2})
    pair = Clique(("x", "y"))
    quality: Quality[Family] = Dependence("parents", [Family("y", ("x",))], domain)
    assert quality.scores({pair: np.array([3, 1, 1, 3])}) / SCORE_UNIT / 8 == 0.25


def test_a_row_can_raise_and_lower_both() -> None:
    exact = [np.array([4, 0, 0, 4]), np.array([5, 0, 0, 4]), np.array([4, 1, 0, 4])]
    domain = Domain.of({"x": 2, "y": 2})
    pair = Clique(("x", "y"))
    quality = IndependenceGap("pair", [pair], domain)
    apart, more, less = (int(quality.scores({pair: table})[0]) for table in exact)
    assert less < apart < more
    assert not quality.monotone
    assert not Dependence("parents", [Family("y", ("x",))], domain).monotone
    assert quality.scores({pair: np.zeros(4, dtype=np.int64)}).tolist() == [0]


def test_only_pairs_have_an_independence_gap() -> None:
    with pytest.raises(UsageError, match="needs pairs"):
        IndependenceGap("pair", [ABC], DOMAIN)
