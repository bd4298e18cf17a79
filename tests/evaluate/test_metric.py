"""Tests of `understudy.evaluate.metric`."""

import math

import numpy as np
import pyarrow as pa
import pytest

from tests.evaluate.examples import mixed_frame, pair_of
from understudy.evaluate.metric import Context, Detail, Result, Scale, Unavailable, mean_outcome, table_of

# A score has a value or a reason, lies in its range, and is never a NaN.


SCALE = Scale("share", "a share")


def test_value_or_reason() -> None:
    score = SCALE.score(0.25, Unavailable("too few rows"))
    assert (score.value, score.why_not) == (0.25, "")
    assert (score.yardstick, score.why_no_yardstick) == (None, "too few rows")
    assert SCALE.missing("no rows").value is None


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_become_reasons(number: float) -> None:
    assert SCALE.score(number, 0.0).value is None
    assert SCALE.score(number, 0.0).why_not


@pytest.mark.parametrize("number", [-0.01, 1.01])
def test_range_is_kept(number: float) -> None:
    with pytest.raises(ValueError, match="outside its range"):
        SCALE.score(number, 0.0)


def test_open_ranges() -> None:
    assert Scale("ratio", "a ratio", highest=None).score(1e9, 0.0).value == 1e9


def test_means_need_every_value() -> None:
    assert mean_outcome([1.0, 2.0]) == 1.5
    assert mean_outcome([1.0, Unavailable("why")]) == Unavailable("why")
    assert isinstance(mean_outcome([]), Unavailable)


def test_result_shows_its_headline() -> None:
    detail = Detail("cells", "cells", table_of({"a": [1, 2]}, {"a": pa.int64()}))
    result = Result("m", "Is it?", (SCALE.score(0.5, 0.1), Scale("other", "o").missing("why")), (detail,))
    assert (result.value, result.yardstick, result.why_not) == (0.5, 0.1, "")
    assert result.score("other").why_not == "why"
    assert result.detail("cells").records(1) == [{"a": 1}]


def test_a_score_whose_yardstick_is_the_worst_value_cannot_judge() -> None:
    """Two tables with nothing in common once read "as good as fresh real rows" where real halves had none either."""
    nothing = SCALE.score(1.0, 1.0)
    assert nothing.blind
    assert nothing.reading.startswith("cannot tell: two halves of the real table score 1 themselves")
    assert SCALE.score(0.2, 0.95).blind  # however good: the halves have no room left to be worse
    assert not SCALE.score(1.0, 0.5).blind
    agreement = Scale("agreement", "agreement", "higher", -1.0, 1.0, 1.0)
    assert agreement.score(0.4, 0.03).blind
    assert agreement.score(0.40, 0.86).reading == "0.46 below the yardstick"
    assert not Scale("ratio", "a ratio", highest=None).score(3.0, 1e9).blind
    assert not Scale("count", "a count", "none", best=None).score(1.0, 1.0).blind


# Halves of the real table, and randomness that follows from seed, metric and step.


def test_halves_are_a_partition() -> None:
    frame = mixed_frame(101)
    halves = pair_of(frame, frame).halves
    assert not isinstance(halves, Unavailable)
    assert [half.count for half in halves] == [50, 51]
    both = np.sort(np.concatenate([half.numbers["income"] for half in halves]))
    np.testing.assert_array_equal(both, np.sort(frame["income"].to_numpy()))


def test_halves_depend_on_the_seed_and_not_on_order() -> None:
    frame = mixed_frame(100)
    one, other = pair_of(frame, frame, seed=1), pair_of(frame, frame, seed=2)
    moved = pair_of(frame.sample(frac=1, random_state=1), frame, seed=1)
    codes = [pair.halves[0].codes["age"] for pair in (one, other, moved)]  # type: ignore[index]
    assert not np.array_equal(codes[0], codes[1])
    np.testing.assert_array_equal(codes[0], codes[2])


def test_too_few_rows_say_so() -> None:
    frame = mixed_frame(3)
    assert "too few to halve" in pair_of(frame, frame).halves.reason  # type: ignore[union-attr]


def test_generators_are_apart() -> None:
    context = Context("m", 1)
    first = context.rng("a").random()
    assert context.rng("a").random() == first
    assert len({first, context.rng("b").random(), context.rng("a", 1).random(), Context("n", 1).rng("a").random()}) == 4
