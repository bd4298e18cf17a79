from dataclasses import replace

from tests.compare.studies import made_up
from understudy.compare.job import Found
from understudy.compare.recommend import headlines, recommend


def test_the_method_that_is_clearly_ahead_is_named_with_its_lead() -> None:
    study = made_up({"good": [0.10, 0.11, 0.12], "bad": [0.50, 0.51, 0.52]})
    (found,) = recommend(study)
    assert found.candidate == "good"
    assert "Clearly ahead of bad by marginals: 2-way" in found.grounds


def test_a_lead_within_chance_is_called_so() -> None:
    (found,) = recommend(made_up({"one": [0.10, 0.20, 0.30], "two": [0.11, 0.21, 0.31]}))
    assert found.candidate == "one"
    assert "do not tell it apart from two" in found.grounds


def test_a_method_that_did_not_finish_is_not_recommended() -> None:
    (found,) = recommend(made_up({"slow": [], "fast": [0.9, 0.9, 0.9]}))
    assert found.candidate == "fast"
    (none,) = recommend(made_up({"slow": [], "slower": []}))
    assert none.candidate == ""


def test_one_repeat_is_said_not_to_rule_out_chance() -> None:
    (found,) = recommend(made_up({"one": [0.1], "two": [0.2]}, repeats=1))
    assert "One repeat only" in found.grounds


def test_every_metric_has_one_headline() -> None:
    study = made_up({"a": [0.1] * 3}, other={"a": 1.0})
    assert headlines(study) == ("marginals: 2-way", "nist: score")


def test_a_score_that_no_run_has_is_no_headline() -> None:
    study = made_up({"one": [0.1] * 3, "two": [0.2] * 3})
    empty = Found("marginals", "3-way", None, None, "lower", 0.0, "was not asked for")
    runs = tuple(replace(run, outcome=replace(run.outcome, scores=(empty, *run.outcome.scores))) for run in study.runs)
    assert headlines(replace(study, runs=runs)) == ("marginals: 2-way",)
