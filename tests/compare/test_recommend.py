from dataclasses import replace

from tests.compare.studies import made_up, put_first
from understudy.compare.study import Cell, Finished, Found
from understudy.compare.summary import headlines, recommend


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
    assert headlines(put_first(study, lambda _: empty)) == ("marginals: 2-way",)


def test_a_score_that_no_method_has_at_an_epsilon_is_not_counted_there() -> None:
    study = made_up({"one": [0.1] * 3, "two": [0.2] * 3}, epsilons=(0.1, 1.0))

    def late(cell: Cell) -> Found:
        value = None if cell.epsilon == 0.1 else {"one": 1.0, "two": 2.0}[cell.candidate.name]
        return Found("nist", "score", value, None, "higher", 1e6, "" if value else "no triples")

    without, whole = recommend(put_first(study, late))
    assert without.candidate == "one"
    assert without.grounds.startswith("Mean rank 1.00 over 1 metric; best by marginals: 2-way.")
    assert "Not counted, for want of numbers: nist: score." in without.grounds
    assert whole.grounds.startswith("Mean rank 1.50 over 2 metrics")
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
        "Left out: one (rules: broken missing in 3 of 3 runs), two (nist: score missing in 3 of 3 runs)."
    )


def test_a_method_without_one_of_the_scores_is_left_out_by_name() -> None:
    errors = {"best": [0.1] * 3, "good": [0.2] * 3, "bad": [0.3] * 3}
    (found,) = recommend(made_up(errors, other={"best": None, "good": 2.0, "bad": 1.0}))
    assert found.candidate == "good"
    assert found.grounds.startswith("Mean rank 1.00 over 2 metrics; best by marginals: 2-way, nist: score.")
    assert "Left out: best (nist: score missing in 3 of 3 runs)." in found.grounds
    (found,) = recommend(made_up(errors, other={"best": [9.0, 9.0, None], "good": 2.0, "bad": 1.0}))
    assert found.candidate == "good", "a number from some of the runs is one from the survivors"
    assert "Left out: best (nist: score missing in 1 of 3 runs)." in found.grounds


def test_lead_and_lag_are_both_told() -> None:
    study = made_up({"aim": [0.1] * 3, "laplace": [0.9] * 3}, other={"aim": 1.0, "laplace": 9.0})
    (found,) = recommend(study)
    assert "Split with laplace: clearly ahead by marginals: 2-way, clearly behind by nist: score." in found.grounds
    assert "Same mean rank as laplace" in found.grounds
    assert "Clearly ahead of" not in found.grounds
    third = put_first(study, lambda cell: Found("slopes", "mean", _wide(cell), None, "lower", 0.0, ""))
    behind = replace(third, runs=tuple(_without(run, "marginals") for run in third.runs))
    (found,) = recommend(put_first(behind, lambda cell: Found("rules", "broken", _wide(cell), None, "lower", 0.0, "")))
    assert found.candidate == "aim"
    assert "Clearly behind laplace by nist: score, clearly ahead by none." in found.grounds


def _wide(cell: Cell) -> float:
    """Errors that vary much, a little smaller for aim."""
    return cell.repeat + (0.0 if cell.candidate.name == "aim" else 0.1)


def _without(run: Finished, metric: str) -> Finished:
    kept = tuple(one for one in run.outcome.scores if one.metric != metric)
    return replace(run, outcome=replace(run.outcome, scores=kept))


def test_every_method_is_held_against_the_best_and_the_much_faster_are_named() -> None:
    errors = {"slow": [0.10, 0.20, 0.30], "quick": [0.12, 0.22, 0.32], "slack": [0.11, 0.21, 0.31], "bad": [8.0] * 3}
    (found,) = recommend(made_up(errors, seconds={"slow": 1000.0, "quick": 1.0, "slack": 900.0, "bad": 1.0}))
    assert found.candidate == "slow"
    assert "The runs do not tell it apart from slack, quick." in found.grounds
    assert "Clearly ahead of bad by marginals: 2-way." in found.grounds
    assert "It took 1,000 s on average; much faster: quick (1 s)." in found.grounds


def test_of_equal_mean_ranks_the_faster_is_named() -> None:
    (found,) = recommend(made_up({"slow": [0.1] * 3, "quick": [0.1] * 3}, seconds={"slow": 2.0}))
    assert found.candidate == "quick"
    assert "Same mean rank as slow; of equals, the faster is named." in found.grounds


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
        assert found.grounds.startswith("Scored by marginals: 2-way; there was nothing to compare it with.")
        assert "Mean rank" not in found.grounds
        assert "best by" not in found.grounds
