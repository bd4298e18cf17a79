"""Mutual information in rows: equal to the formula, exact in sensitivity for any counts, and the published numbers."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.answers import SCORE_UNIT
from understudy.domain import Clique, Domain
from understudy.errors import UsageError
from understudy.privacy import dependence as mutual_information
from understudy.privacy.dependence import Family, Information
from understudy.privacy.scores import Quality

DOMAIN = Domain.of({"a": 2, "b": 3})
AB = Clique(("a", "b"))
FAMILY = Family("b", ("a",))
HARD = [0, 1, 2, 2**16 - 1, 2**16, 2**16 + 1, 2**17 - 1, 2**31, 2**40, 2**42, 2**57]
counts = st.lists(st.one_of(st.integers(0, 12), st.sampled_from(HARD)), min_size=6, max_size=6)


def entropy(table: np.ndarray) -> float:
    """Σ c log₂ c."""
    positive = table[table > 0].astype(float)
    return float((positive * np.log2(positive)).sum())


def information(table: np.ndarray) -> float:
    """n·I by definition."""
    return entropy(table) - entropy(table.sum(axis=0)) - entropy(table.sum(axis=1)) + entropy(np.array([table.sum()]))


def score(table: np.ndarray, rows: int) -> int:
    """The integer score of b given a."""
    (found,) = Information("parents", [FAMILY], DOMAIN, rows).scores({AB: table.ravel()})
    return int(found)


@settings(max_examples=400, deadline=None)
@given(counts, st.integers(0, 5), st.integers(1, 3), st.sampled_from([1, 2, 10, 2**16, 3 * 2**16 + 5, 2**24]))
def test_no_score_moves_by_more_than_claimed(cells, place, added, rows) -> None:
    quality = Information("parents", [FAMILY], DOMAIN, rows)
    before = np.array(cells, dtype=np.int64).reshape(2, 3)
    after = before.copy()
    after.ravel()[place] += added
    assert abs(score(before, rows) - score(after, rows)) <= added * quality.sensitivity


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 40), st.integers(0, 10**6)), min_size=6, max_size=6))
def test_up_to_the_stated_rows_it_is_mutual_information(cells) -> None:
    table = np.array(cells, dtype=np.int64).reshape(2, 3)
    rows = max(1, int(table.sum()))
    assert score(table, rows) / SCORE_UNIT == pytest.approx(information(table), abs=1e-5 * rows + 1e-3)


@pytest.mark.parametrize("rows", [5, 70_000, 2**20, 2**34])
def test_both_ways_of_summing_agree(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.array([[2**33, 5, 70_000], [12, 2**34, 2**20 + 77]], dtype=np.int64)
    narrow = score(table, rows)
    monkeypatch.setattr(mutual_information, "_SAFE", 0)
    assert score(table, rows) == narrow


def test_the_bound_is_reached_and_is_the_formula() -> None:
    for rows in (1, 7, 50, 44_821):
        quality = Information("parents", [FAMILY], DOMAIN, rows)
        exact = math.log2(rows + 1) + rows * math.log2(1 + 1 / rows)
        assert float(quality.sensitivity) / SCORE_UNIT == pytest.approx(exact, abs=1e-6)
        before, after = np.array([[rows, 0, 0], [0, 0, 0]]), np.array([[rows, 0, 0], [0, 0, 1]])
        assert score(after, rows) - score(before, rows) == quality.sensitivity


def test_every_small_table_stays_within_the_bound() -> None:
    for cells in product(range(4), repeat=4):
        table = np.array(cells, dtype=np.int64).reshape(2, 2)
        for place in range(4):
            after = table.copy()
            after.ravel()[place] += 1
            rows = int(after.sum())
            bound = math.log2(rows) + (rows - 1) * math.log2(1 + 1 / max(1, rows - 1))
            assert abs(information(after) - information(table)) <= bound + 1e-9


def test_published_numbers() -> None:
    """n = 8, table (3, 1; 1, 3): I = 0.18872 bits."""
    pair = Domain.of({"x": 2, "y": 2})
    quality: Quality[Family] = Information("parents", [Family("y", ("x",))], pair, 8)
    (found,) = quality.scores({Clique(("x", "y")): np.array([3, 1, 1, 3])})
    assert found / SCORE_UNIT / 8 == pytest.approx(0.18872, abs=5e-6)
    assert not quality.monotone


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=9, max_size=9), st.integers(0, 8), st.integers(0, 8))
def test_replacing_a_row_moves_the_share_by_no_more_than_published(cells, gone, come) -> None:
    table = np.array(cells, dtype=np.int64).reshape(3, 3)
    rows = int(table.sum())
    if rows < 2 or not table.ravel()[gone]:
        return
    after = table.copy()
    after.ravel()[gone] -= 1
    after.ravel()[come] += 1
    published = 2 / rows * math.log2((rows + 1) / 2) + (rows - 1) / rows * math.log2((rows + 1) / (rows - 1))
    assert abs(information(table) - information(after)) / rows <= published + 1e-9


def test_penalties_are_subtracted_and_checked() -> None:
    exact = {AB: np.array([3, 0, 0, 0, 3, 0])}
    plain = Information("parents", [FAMILY, FAMILY], DOMAIN, 8).scores(exact)
    less = Information("parents", [FAMILY, FAMILY], DOMAIN, 8, penalties=(0.0, 2.5)).scores(exact)
    assert (plain - less).tolist() == [0, 5 * SCORE_UNIT // 2]
    with pytest.raises(UsageError, match="one finite penalty"):
        Information("parents", [FAMILY], DOMAIN, 8, penalties=(0.0, 1.0)).scores(exact)
    with pytest.raises(UsageError, match="whole number"):
        Information("parents", [FAMILY], DOMAIN, 0)
