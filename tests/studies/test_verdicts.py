"""Verdicts follow intervals: decided where they lie apart, open where they do not."""

import pytest
from studies.verdicts import Answer, above, alike, difference, verdict

CLOSE = [1.0, 1.1, 0.9, 1.05]
FAR = [3.0, 3.1, 2.9, 3.05]
WIDE = [-20.0, 25.0]


def test_difference_is_welchs_interval() -> None:
    gap = difference([4.0, 6.0], [1.0, 1.0, 1.0])
    # One group varies (variance 2, two values), so there is one degree of freedom and t = 12.706.
    assert gap.mean == pytest.approx(4.0)
    assert gap.half == pytest.approx(12.706 * 1.0, rel=1e-4)


def test_paired_repeats_cancel_what_they_share() -> None:
    first, second = [10.0, 20.0, 30.0], [9.0, 19.1, 28.9]
    assert above(first, second) == "open"
    assert above(first, second, paired=True) == "yes"
    assert difference(first, second, paired=True).mean == pytest.approx(1.0)


def test_single_runs_decide_nothing() -> None:
    assert above([100.0], [0.0]) == "open"
    assert alike([1.0], [1.0], 0.5) == "open"


def test_answers_need_intervals_apart() -> None:
    assert above(FAR, CLOSE) == "yes"
    assert above(CLOSE, FAR) == "no"
    assert above(WIDE, CLOSE) == "open"
    assert alike(CLOSE, [1.0, 1.02, 0.98], 0.5) == "yes"
    assert alike(FAR, CLOSE, 0.5) == "no"
    assert alike(WIDE, CLOSE, 0.5) == "open"


@pytest.mark.parametrize(
    ("answers", "most", "expected"),
    [
        (["yes"] * 4, False, "confirmed"),
        (["yes"] * 3 + ["open"], False, "confirmed in part"),
        (["yes", "open", "open"], False, "not decided"),
        (["no"], False, "refuted"),
        (["yes"] * 29 + ["no"], False, "confirmed in part"),
        (["yes"] * 27 + ["no"] * 3, False, "refuted"),
        (["yes"] * 3 + ["no"] * 2, True, "confirmed"),
        (["yes"] * 2 + ["no"] * 2, True, "refuted"),
        (["yes"] * 2 + ["open"] * 2, True, "not decided"),
    ],
)
def test_verdicts(answers: list[Answer], most: bool, expected: str) -> None:
    assert verdict(answers, most=most) == expected
