"""The metric of regressions."""

import pytest

from tests.evaluate.examples import context, mixed, mixed_frame, pair_of, shuffled
from understudy.errors import UsageError
from understudy.evaluate.regression import Regression

FRAME = mixed_frame(500)


def test_fresh_rows_are_close_and_shuffled_ones_are_not() -> None:
    metric = Regression(formula="income ~ age + sex")
    fresh = metric.compare(pair_of(FRAME, mixed_frame(500, seed=9)), context())
    apart = metric.compare(pair_of(FRAME, shuffled(FRAME)), context())
    assert fresh.value < 3 < apart.value  # type: ignore[operator]
    assert fresh.score("same_sign").value == 1
    assert apart.score("covered").value < 0.5  # type: ignore[operator]
    assert fresh.notes[0] == "Model: income ~ age + sex (linear)."


def test_lost_coefficients_are_told() -> None:
    found = Regression(formula="income ~ region").compare(pair_of(FRAME, FRAME[FRAME["region"] != "east"]), context())
    assert "1 coefficients cannot be estimated" in found.notes[-1]


def test_without_a_formula_there_is_a_reason() -> None:
    found = Regression().compare(pair_of(FRAME, FRAME), context())
    assert {score.why_not for score in found.scores} == {"no formula was given"}
    Regression().check(mixed())
    with pytest.raises(UsageError, match="not a column"):
        Regression(formula="wage ~ age").check(mixed())
