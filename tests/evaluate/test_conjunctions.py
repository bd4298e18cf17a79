"""Score 2: the vector, how conditions are drawn, and whom they fit."""

import numpy as np
import pytest

from tests.evaluate.examples import mixed, mixed_frame, rows_of
from understudy.evaluate.nist import CodeSet, Interval, conjunction_score, draw_conjunctions, shares

ROWS = rows_of(mixed_frame(200), mixed())


def test_vector() -> None:
    score = conjunction_score(np.array([0.02, 0.10, 0.001]), np.array([0.03, 0.05, 0.0]))
    assert score == pytest.approx(418_761.6, abs=0.05)
    assert conjunction_score(np.array([1.0]), np.array([0.0])) == 0


def test_every_condition_fits_the_row_it_was_made_from() -> None:
    drawn = draw_conjunctions(ROWS, np.random.default_rng(1), probability=0.5)
    assert 100 < len(drawn) <= 200  # rows drawn twice count once
    assert shares(ROWS, drawn).min() >= 1 / ROWS.count


def test_how_often_a_column_enters() -> None:
    drawn = draw_conjunctions(ROWS, np.random.default_rng(1), probability=0.1)
    entered = sum(len(condition) for condition in drawn) / (6 * len(drawn))
    assert entered == pytest.approx(0.1, abs=0.035)


def test_allowed_sets_grow_until_a_draw_repeats() -> None:
    sizes = [len(said.codes) for condition in draw_conjunctions(ROWS, np.random.default_rng(2), probability=1.0)
             for name, said in condition.items() if name == "region" and isinstance(said, CodeSet)]  # fmt: skip
    # With 5 codes: 1 with chance 1/5, 2 with 4/5·2/5, 3 with 4/5·3/5·3/5, …
    expected = 0.2 * 1 + 0.32 * 2 + 0.288 * 3 + 0.1536 * 4 + 0.0384 * 5
    assert np.mean(sizes) == pytest.approx(expected, abs=4 * np.std(sizes) / np.sqrt(len(sizes)))


def test_numbers_fit_intervals_and_states() -> None:
    wide = shares(ROWS, [{"age": Interval(18, 67)}, {"age": Interval(30, 30)}, {"age": CodeSet((5,))}])
    special = np.isnan(ROWS.numbers["age"]).mean()
    assert wide[0] == pytest.approx(1 - special)
    assert wide[1] == pytest.approx((ROWS.numbers["age"] == 30).mean())
    assert wide[2] == pytest.approx(special)


def test_columns_that_are_not_there_are_ignored() -> None:
    assert shares(ROWS, [{"gone": CodeSet((0,))}]).tolist() == [1.0]
