"""The metric of interval overlap."""

import pytest

from tests.evaluate.examples import context, mixed_frame, pair_of, shuffled
from understudy.evaluate.regression import IntervalOverlap

FRAME = mixed_frame(400)


def test_overlap_is_the_mean_over_coefficients() -> None:
    found = IntervalOverlap(formula="income ~ age + sex").compare(pair_of(FRAME, shuffled(FRAME)), context())
    rows = found.detail("coefficients").records()
    assert found.value == pytest.approx(sum(row["overlap"] for row in rows) / len(rows))  # type: ignore[misc]
    gaps = found.score("mean_with_gaps").value
    assert gaps == pytest.approx(sum(row["overlap_or_gap"] for row in rows) / len(rows))  # type: ignore[misc]
    assert gaps < found.value  # type: ignore[operator]
    assert found.score("worst_overlap").value == 0


def test_profile_intervals() -> None:
    metric = IntervalOverlap(formula="voted ~ sex", family="firth", interval="profile")
    found = metric.compare(pair_of(FRAME, mixed_frame(400, seed=8)), context())
    wald = IntervalOverlap(formula="voted ~ sex", family="firth").compare(
        pair_of(FRAME, mixed_frame(400, seed=8)), context()
    )
    assert found.value == pytest.approx(wald.value, abs=0.05)
    assert found.value != wald.value
    assert "profile intervals" in found.notes[0]


def test_profile_intervals_of_several_copies_are_refused_by_their_name() -> None:
    metric = IntervalOverlap(formula="voted ~ sex", family="firth", interval="profile")
    found = metric.compare(pair_of(FRAME, mixed_frame(300, seed=8), mixed_frame(300, seed=9)), context())
    assert all(score.value is None and "cannot be pooled" in score.why_not for score in found.scores)
    assert not any("profile" in note for note in found.notes)
    wald = IntervalOverlap(formula="voted ~ sex", family="firth")
    pooled = wald.compare(pair_of(FRAME, mixed_frame(300, seed=8), mixed_frame(300, seed=9)), context())
    assert pooled.value is not None
    assert "wald intervals" in pooled.notes[0]
