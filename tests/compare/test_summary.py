import math

import pytest
from scipy import stats

from tests.compare.studies import made_up, put_first
from understudy.compare.runs import Found
from understudy.compare.summary import Gap, agreements, failures, gaps, judging, levels, ranks, spelled, tidy


def test_means_come_with_the_interval_of_students_t() -> None:
    (level,) = levels(made_up({"aim": [0.4, 0.5, 0.6]}))
    assert level.mean == pytest.approx(0.5)
    expected = stats.ttest_1samp([0.4, 0.5, 0.6], 0.0).confidence_interval(0.95)
    assert (level.low, level.high) == pytest.approx((expected.low, expected.high))


def test_an_interval_ends_where_the_score_can_go_no_further() -> None:
    study = made_up({"a": [0.001, 0.02, 0.1]}, other={"a": [999_000.0, 999_990.0, 900_000.0]})
    error, score = levels(study)
    half = stats.t.ppf(0.975, 2) * stats.sem([0.001, 0.02, 0.1])
    assert error.mean < half, "otherwise nothing would be cut"
    assert (error.low, error.high) == pytest.approx((0.0, error.mean + half))
    assert score.high == 1e6
    assert score.low is not None
    assert score.low < 900_000.0


def test_epsilons_that_differ_are_spelled_differently() -> None:
    assert [spelled(epsilon) for epsilon in (1.0, 1.0000001, 0.5, 1e-7)] == ["1", "1.0000001", "0.5", "1e-07"]
    study = made_up({"slow": []}, epsilons=(1.0, 1.0000001))
    assert failures(study) == ("slow at ε = 1, 1.0000001 (6 runs, time): was still running.",)


def test_scores_without_a_number_are_told_with_their_reason_and_taken_together() -> None:
    study = made_up({"a": [0.1] * 3, "b": [0.2] * 3, "c": [0.2]}, epsilons=(1.0, 2.0))
    study = put_first(study, lambda _: Found("marginals", "3-way", None, None, "lower", 0.0, "was not asked for"))
    assert gaps(study) == (
        Gap("marginals: 3-way", ("a", "b"), (1.0, 2.0), 12, "was not asked for"),
        Gap("marginals: 3-way", ("c",), (1.0, 2.0), 2, "was not asked for"),
    )
    assert gaps(made_up({"a": [0.1] * 3})) == ()


def test_one_repeat_has_no_interval() -> None:
    (level,) = levels(made_up({"aim": [0.1]}, repeats=1))
    assert (level.repeats, level.low, level.high) == (1, None, None)


def test_rank_one_is_best_whichever_way_is_better() -> None:
    study = made_up({"a": [0.1] * 3, "b": [0.2] * 3, "c": [0.2] * 3}, other={"a": 1.0, "b": 2.0, "c": 3.0})
    found = levels(study)
    assert ranks(found, "marginals: 2-way", 1.0) == {"a": 1.0, "b": 2.5, "c": 2.5}
    assert ranks(found, "nist: score", 1.0) == {"a": 3.0, "b": 2.0, "c": 1.0}
    assert judging(found) == ("marginals: 2-way", "nist: score")


def test_opposite_orders_disagree_fully() -> None:
    study = made_up({"a": [0.1] * 3, "b": [0.2] * 3, "c": [0.3] * 3}, other={"a": 1.0, "b": 2.0, "c": 3.0})
    (pair,) = agreements(levels(study), 1.0)
    assert pair.tau == pytest.approx(-1.0)


def test_the_tidy_table_keeps_runs_without_scores() -> None:
    table = tidy(made_up({"slow": [], "fast": [0.1, 0.1, 0.1]}))
    rows = table.to_pylist()
    assert len(rows) == 6
    assert {row["status"] for row in rows if row["candidate"] == "slow"} == {"time"}
    assert all(row["value"] is None for row in rows if row["candidate"] == "slow")
    assert math.isclose(sum(row["value"] for row in rows if row["value"] is not None), 0.3)


def test_runs_without_scores_are_told_with_their_reason() -> None:
    study = made_up({"slow": [], "half": [0.1], "fast": [0.1, 0.1, 0.1]})
    assert failures(study) == (
        "slow at ε = 1 (3 runs, time): was still running.",
        "half at ε = 1 (2 runs, time): was still running.",
    )
