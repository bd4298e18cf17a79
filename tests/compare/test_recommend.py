from dataclasses import replace

from tests.compare.studies import made_up, put_first
from understudy.compare.runs import Found
from understudy.compare.study import Cell
from understudy.compare.summary import headlines, recommend


def test_the_method_that_is_clearly_ahead_is_named_with_its_lead() -> None:
    study = made_up({"good": [0.10, 0.11, 0.12], "bad": [0.50, 0.51, 0.52]})
    (found,) = recommend(study)
    assert found.candidate == "good"
    assert found.tied == ()
    assert "good is clearly ahead of bad by “marginals: 2-way”." in found.grounds


def test_methods_that_do_not_differ_are_said_to_tie() -> None:
    (found,) = recommend(made_up({"one": [0.11, 0.21, 0.31], "two": [0.10, 0.20, 0.30]}))
    assert (found.candidate, found.tied) == ("", ("two", "one"))
    assert found.answer == "no winner: two and one tie"
    assert "The runs do not tell two and one apart." in found.grounds


def test_one_that_nobody_beats_is_no_winner_unless_it_beats_everybody() -> None:
    errors = {"first": [0.1, 0.2, 0.3], "wide": [0.0, 0.3, 0.9], "last": [0.9, 0.91, 0.92]}
    (found,) = recommend(made_up(errors))
    assert (found.candidate, found.tied) == ("", ("first", "wide"))
    assert "first is clearly ahead of last by “marginals: 2-way”." in found.grounds


def test_a_method_that_did_not_finish_is_not_recommended() -> None:
    (found,) = recommend(made_up({"slow": [], "fast": [0.9, 0.9, 0.9]}))
    assert found.candidate == "fast"
    (none,) = recommend(made_up({"slow": [], "slower": []}))
    assert none.candidate == ""


def test_one_repeat_is_said_not_to_rule_out_chance() -> None:
    (found,) = recommend(made_up({"one": [0.1], "two": [0.2]}, repeats=1))
    assert (found.candidate, found.tied) == ("", ("one", "two"))
    assert "One repeat only: chance is not ruled out, so no method is named." in found.grounds


def test_every_metric_has_one_headline() -> None:
    study = made_up({"a": [0.1] * 3}, other={"a": 1.0})
    assert headlines(study) == ("marginals: 2-way", "nist: score")


def test_a_score_that_no_run_has_is_no_headline() -> None:
    study = made_up({"one": [0.1] * 3, "two": [0.2] * 3})
    empty = Found("marginals", "3-way", None, None, "lower", 0.0, "was not asked for")
    assert headlines(put_first(study, lambda _: empty)) == ("marginals: 2-way",)


def test_a_score_that_no_method_has_at_an_epsilon_is_not_counted_there() -> None:
    study = made_up({"one": [0.1] * 3, "two": [0.2] * 3}, epsilons=(0.1, 1.0))

    def late(cell: Cell) -> Found:
        value = None if cell.epsilon == 0.1 else {"one": 1.0, "two": 2.0}[cell.candidate.name]
        return Found("nist", "score", value, None, "higher", 1e6, "" if value else "no triples")

    without, whole = recommend(put_first(study, late))
    assert without.candidate == "one"
    assert "Not counted, because numbers are missing: “nist: score”." in without.grounds
    assert without.candidate == "one"
    assert "Not counted" not in whole.grounds


def test_methods_that_finished_without_any_number_are_not_said_to_have_failed() -> None:
    study = made_up({"one": [0.1] * 3, "two": [0.2] * 3})
    bare = tuple(
        replace(run, outcome=replace(run.outcome, scores=tuple(replace(one, value=None) for one in run.outcome.scores)))
        for run in study.runs
    )
    (found,) = recommend(replace(study, runs=bare))
    assert found.candidate == ""
    assert found.grounds == "Methods finished at this ε, but no score that judges has a number in every run."


def test_where_every_method_lacks_a_score_none_is_named_and_all_reasons_are() -> None:
    study = made_up({"one": [0.1] * 3, "two": [0.2] * 3}, other={"one": 1.0, "two": None})
    lacks = {"one": None, "two": 1.0}
    split = put_first(study, lambda cell: Found("rules", "broken", lacks[cell.candidate.name], None, "lower", 0.0, "?"))
    (found,) = recommend(split)
    assert found.candidate == ""
    assert found.grounds == (
        "Methods finished at this ε, but no method has every score in every run. "
        "Left out: one (rows that break a rule: missing in 3 of 3 runs), two (nist: score: missing in 3 of 3 runs)."
    )


def test_a_method_without_one_of_the_scores_is_left_out_by_name() -> None:
    errors = {"best": [0.1] * 3, "good": [0.2] * 3, "bad": [0.3] * 3}
    (found,) = recommend(made_up(errors, other={"best": None, "good": 2.0, "bad": 1.0}))
    assert found.candidate == "good"
    assert "good is clearly ahead of bad by “marginals: 2-way” and “nist: score”." in found.grounds
    assert "Left out: best (nist: score: missing in 3 of 3 runs)." in found.grounds
    (found,) = recommend(made_up(errors, other={"best": [9.0, 9.0, None], "good": 2.0, "bad": 1.0}))
    assert found.candidate == "good", "a number from some of the runs is one from the survivors"
    assert "Left out: best (nist: score: missing in 1 of 3 runs)." in found.grounds


def test_methods_that_are_each_ahead_by_something_tie_and_are_told_apart() -> None:
    study = made_up({"aim": [0.1] * 3, "laplace": [0.9] * 3}, other={"aim": 1.0, "laplace": 9.0})
    (found,) = recommend(study)
    assert (found.candidate, set(found.tied)) == ("", {"aim", "laplace"})
    assert "aim by “marginals: 2-way”, laplace by “nist: score”." in found.grounds.replace("\n", " ")
    assert "do not tell" not in found.grounds


def test_of_methods_that_tie_the_fastest_is_named() -> None:
    errors = {"slow": [0.10, 0.20, 0.30], "quick": [0.12, 0.22, 0.32], "slack": [0.11, 0.21, 0.31], "bad": [8.0] * 3}
    (found,) = recommend(made_up(errors, seconds={"slow": 1000.0, "quick": 1.0, "slack": 900.0, "bad": 1.0}))
    assert (found.candidate, found.tied) == ("", ("slow", "slack", "quick"))
    assert "The runs do not tell slow, slack and quick apart." in found.grounds
    assert "slow is clearly ahead of bad by “marginals: 2-way”." in found.grounds
    assert "The fastest of those that tie by far: quick (1 s; others up to 1,000 s)." in found.grounds


def test_nobody_is_named_while_runs_have_not_ended() -> None:
    study = made_up({"a": [0.1] * 3, "b": [0.9] * 3})
    (found,) = recommend(replace(study, runs=study.runs[:-1]))
    assert (found.candidate, found.tied) == ("", ())
    assert "before all runs at this ε have ended" in found.grounds


def test_a_method_must_have_finished_every_repeat() -> None:
    (found,) = recommend(made_up({"lucky": [0.1], "bad": [0.8] * 3, "worse": [0.9] * 3}))
    assert found.candidate == "bad"
    assert "Left out: lucky (1 of 3 runs finished)." in found.grounds


def test_if_none_finished_every_repeat_the_one_with_most_runs_is_named_with_their_number() -> None:
    (found,) = recommend(made_up({"none": [], "one": [0.1], "two": [0.5, 0.6]}))
    assert found.candidate == "two"
    assert found.grounds.startswith("No method finished more: 2 of 3 runs finished.")
    assert "Left out: none (0 of 3 runs finished), one (1 of 3 runs finished)." in found.grounds


def test_a_method_alone_has_nothing_to_be_compared_with() -> None:
    for errors in ({"only": [0.1] * 3}, {"only": [0.1] * 3, "slow": [0.1]}):
        (found,) = recommend(made_up(errors))
        assert found.grounds.startswith("There was nothing to compare it with.")
        assert "clearly ahead" not in found.grounds
