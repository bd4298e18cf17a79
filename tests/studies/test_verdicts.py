"""Verdicts follow intervals: decided where they lie apart, open where they do not."""

import pytest
from studies.verdicts import (
    AT_MARGIN,
    Answer,
    Comparison,
    above,
    against,
    alike,
    count_of,
    difference,
    kind_of,
    range_of,
    verdict,
)
from studies.writing import Estimate

CLOSE = [1.0, 1.1, 0.9, 1.05]
FAR = [3.0, 3.1, 2.9, 3.05]
WIDE = [-20.0, 25.0, -19.0, 26.0]


def test_difference_of_unpaired_repeats_is_welchs_interval() -> None:
    gap = difference([4.0, 6.0], [1.0, 1.0, 1.0], paired=False)
    # One group varies (variance 2, two values), so there is one degree of freedom and t = 12.706.
    assert gap.mean == pytest.approx(4.0)
    assert gap.half == pytest.approx(12.706 * 1.0, rel=1e-4)


def test_paired_repeats_cancel_what_they_share() -> None:
    first, second = [10.0, 20.0, 30.0], [9.0, 19.1, 28.9]
    assert above(first, second, paired=False).answer == "open"
    assert above(first, second).answer == "yes"
    assert difference(first, second).mean == pytest.approx(1.0)


def test_repeats_that_are_not_as_many_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="zip"):
        difference([1.0, 2.0], [1.0, 2.0, 3.0])


def test_single_runs_decide_nothing() -> None:
    assert above([100.0], [0.0], 1000.0).answer == "open"
    assert alike([1.0], [1.0], 0.5).answer == "open"


def test_answers_need_intervals_apart() -> None:
    assert above(FAR, CLOSE).answer == "yes"
    assert above(CLOSE, FAR).answer == "no"
    assert above(WIDE, CLOSE, 0.5).answer == "open"
    assert alike(CLOSE, [1.0, 1.02, 0.98, 1.0], 0.5).answer == "yes"
    assert alike(FAR, CLOSE, 0.5).answer == "no"
    assert alike(WIDE, CLOSE, 0.5).answer == "open"
    assert against(FAR, 2.0).answer == "yes"
    assert against(FAR, 2.0, at_least=False).answer == "no"


def test_no_difference_needs_an_interval_within_the_margin() -> None:
    other = [1.1, 1.0, 1.0, 0.95]
    assert above(CLOSE, other, 0.5).answer == "same"
    assert above(CLOSE, other, 0.01).answer == "open"
    assert above(CLOSE, other).answer == "open"
    assert above([2.0, 2.1, 2.2], [1.9, 1.99, 2.11], 5.0).answer == "yes", "a side is told before a margin"


@pytest.mark.parametrize(
    ("answers", "most", "expected"),
    [
        (["yes"] * 4, False, "confirmed"),
        (["yes"] * 3 + ["open"], False, "confirmed in part"),
        (["yes", "open", "open"], False, "not decided"),
        (["no"], False, "refuted"),
        (["yes"] * 29 + ["no"], False, "confirmed in part"),
        (["yes"] * 27 + ["no"] * 3, False, "mixed"),
        (["yes"] * 3 + ["no"] * 27, False, "refuted"),
        (["yes", "same", "open"], False, "confirmed in part"),
        (["yes"] + ["same"] * 3, False, "no difference larger than 0.1"),
        (["same"], False, "no difference larger than 0.1"),
        (["yes"] * 3 + ["no"] * 2, True, "confirmed"),
        (["yes"] * 2 + ["no"] * 2, True, "refuted"),
        (["yes"] * 2 + ["open"] * 2, True, "not decided"),
        (["yes"] + ["same"] * 3, True, "no difference larger than 0.1"),
    ],
)
def test_verdicts(answers: list[Answer], most: bool, expected: str) -> None:
    assert verdict([Comparison(Estimate(0.0, 1.0, 2), one, 0.1) for one in answers], most=most) == expected


def test_an_open_similarity_says_whether_its_margin_alone_keeps_it_open() -> None:
    edge, wide = Estimate(0.11, 0.03, 9), Estimate(0.05, 0.2, 9)
    similar = [Comparison(edge, "open", 0.1, lead=False), Comparison(wide, "open", 0.1, lead=False)]
    assert verdict(similar[:1]) == AT_MARGIN
    assert verdict(similar) == "not decided", "one of them may not differ at all"
    assert verdict([Comparison(edge, "open", 0.1)]) == "not decided", "an order has no margin to lie at"
    assert kind_of(AT_MARGIN) == "not decided"


def test_words_tell_counts_and_the_ends_with_their_intervals() -> None:
    found = [Comparison(Estimate(mean, 0.1, 3), answer) for mean, answer in ((2.0, "yes"), (-0.5, "no"), (0.0, "same"))]
    assert count_of(found) == "clearly so in 1 of 3, clearly not in 1, no difference in 1"
    assert range_of(found) == "leads -0.5 ± 0.1 to 2 ± 0.1"
    assert range_of([alike(FAR, CLOSE, 0.5)]).startswith("difference 2")
