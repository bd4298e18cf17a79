"""Coefficients side by side: overlap vectors, pooling, choice of the family."""

import dataclasses

import pytest

from tests.evaluate.examples import mixed, mixed_frame, pair_of, shuffled
from understudy.errors import UsageError
from understudy.evaluate.metric import Unavailable
from understudy.evaluate.pooling_rules import pool_liu
from understudy.evaluate.regression import (
    Compared,
    Estimate,
    ModelComparison,
    checked_formula,
    coefficient_detail,
    compare_models,
    interval_overlap,
)

FRAME = mixed_frame(400)


def _compared(text: str, *copies: object, family: str = "auto") -> ModelComparison:
    pair = pair_of(FRAME, *copies)
    found = compare_models(pair, pair.real, pair.copies, text, family, level=0.95)  # type: ignore[arg-type]
    assert isinstance(found, ModelComparison)
    return found


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [((0, 2), (1, 5), 0.375), ((0, 4), (1, 2), 0.625), ((0, 1), (0, 1), 1.0), ((0, 1), (3, 4), -2.0)],
)
def test_overlap_vectors(first: tuple[float, float], second: tuple[float, float], overlap: float) -> None:
    assert interval_overlap(first, second) == pytest.approx(overlap)
    assert interval_overlap(second, first) == pytest.approx(overlap)


def test_intervals_without_width() -> None:
    assert interval_overlap((1, 1), (1, 1)) == 1
    assert interval_overlap((1, 1), (0, 2)) == 0


def test_facts_about_a_coefficient() -> None:
    one = Compared("a", Estimate(1.0, 0.5, 0.0, 2.0), Estimate(2.0, 0.25, 1.5, 2.5))
    assert (one.standardised, one.same_sign, one.covered) == (2.0, True, False)
    lost = Compared("a", Estimate(1.0, 0.5, 0.0, 2.0), None)
    assert (lost.standardised, lost.same_sign, lost.covered, lost.overlap) == (None, False, False, 0.0)


def test_copies_are_pooled_by_lius_rule() -> None:
    copies = [mixed_frame(400, seed) for seed in (2, 3, 4)]
    pooled = _compared("income ~ age + sex", *copies)
    alone = [_compared("income ~ age + sex", copy) for copy in copies]
    for place, one in enumerate(pooled.coefficients):
        single = [found.coefficients[place].synthetic for found in alone]
        wanted = pool_liu([fit.value for fit in single if fit], [fit.error**2 for fit in single if fit])
        assert one.synthetic is not None
        assert (one.synthetic.value, one.synthetic.low) == pytest.approx((wanted.estimate, wanted.low))


def test_levels_that_are_gone_have_no_estimate() -> None:
    copy = FRAME[FRAME["region"] != "east"]
    found = {one.name: one for one in _compared("income ~ region", copy).coefficients}
    assert found["region=east"].synthetic is None
    assert found["region=south"].synthetic is not None


def test_auto_uses_firth_where_estimates_run_away() -> None:
    assert _compared("voted ~ age", FRAME).family == "logistic"
    assert _compared("income ~ age", FRAME).family == "linear"
    separated = FRAME.assign(voted=FRAME["age"] > 40)
    pair = pair_of(separated, separated)
    found = compare_models(pair, pair.real, pair.copies, "voted ~ C(age)", "auto", level=0.95)
    assert isinstance(found, ModelComparison)
    assert found.family == "firth"
    assert any("Firth" in note for note in found.notes)


def test_incomplete_rows_are_told() -> None:
    assert any("left out" in note for note in _compared("income ~ age", shuffled(FRAME)).notes)


def test_copies_of_one_model_come_with_a_warning() -> None:
    pair = dataclasses.replace(pair_of(FRAME, FRAME, FRAME), copies_mode="resample")
    found = compare_models(pair, pair.real, pair.copies, "income ~ age", "auto", level=0.95)
    assert isinstance(found, ModelComparison)
    assert any("privacy noise" in note for note in found.notes)
    renewed = dataclasses.replace(pair, copies_mode="remeasure")
    again = compare_models(renewed, pair.real, pair.copies, "income ~ age", "auto", level=0.95)
    assert not any("privacy noise" in note for note in again.notes)  # type: ignore[union-attr]


def test_detail_is_worst_first() -> None:
    rows = coefficient_detail(_compared("income ~ age + sex", shuffled(FRAME))).records()
    overlaps = [row["overlap_or_gap"] for row in rows]
    assert overlaps == sorted(overlaps)  # type: ignore[type-var]


def test_reasons() -> None:
    pair = pair_of(FRAME, FRAME.assign(voted=True))
    nothing = compare_models(pair, pair.real, pair.copies, "", "auto", level=0.95)
    assert nothing == Unavailable("no formula was given")
    constant = compare_models(pair, pair.real, pair.copies, "voted ~ age", "logistic", level=0.95)
    assert isinstance(constant, Unavailable)
    assert constant.reason.startswith("copy 1: the outcome is the same")
    with pytest.raises(UsageError, match="number as outcome"):
        checked_formula("income ~ age", "firth", mixed())
    with pytest.raises(UsageError, match="labels as outcome"):
        checked_formula("voted ~ age", "linear", mixed())
