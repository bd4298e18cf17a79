"""Slopes and correlations of indicators: the vector, and regressions written out."""

import numpy as np
import pytest

from tests.evaluate.examples import mixed_frame, pair_of
from understudy.evaluate import slopes as indicators
from understudy.evaluate.slopes import correlation_table, level_pairs, slope_table

TABLE = np.array([[30, 10], [20, 40]])  # rows: y = 1, 0; columns: x = 1, 0


def test_vector() -> None:
    assert slope_table(TABLE)[0, 0] == pytest.approx(0.4)
    assert correlation_table(TABLE)[0, 0] == pytest.approx(0.408248, abs=1e-6)


def test_equal_to_least_squares_on_indicators() -> None:
    rng = np.random.default_rng(1)
    y, x = rng.integers(0, 3, 200), rng.integers(0, 4, 200)
    table = np.zeros((3, 4), np.int64)
    np.add.at(table, (y, x), 1)
    for row in range(3):
        for column in range(4):
            outcome, given = (y == row).astype(float), (x == column).astype(float)
            assert slope_table(table)[row, column] == pytest.approx(np.polyfit(given, outcome, 1)[0])
            assert correlation_table(table)[row, column] == pytest.approx(np.corrcoef(given, outcome)[0, 1])


def test_undefined_numbers_are_not_numbers() -> None:
    assert np.isnan(slope_table(np.array([[3, 0], [4, 0]]))).all()
    assert np.isnan(correlation_table(np.array([[3, 5], [0, 0]]))).all()


def test_rare_levels_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indicators, "MOST_LEVELS", 2)
    pair = pair_of(mixed_frame(200), mixed_frame(200))
    found = list(level_pairs(pair, [pair.real], ["age"], both_ways=True))
    assert {one.outcome for one in found} == {"age"}
    assert len(found) == 5
    assert all(one.tables[0].shape == (3, len(one.given_codes) + 1) for one in found)
    assert all(one.tables[0].sum() == 200 for one in found)
