"""The simulation of the STEPS paper in its smoke form, and the fits it rests on."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from studies.steps.design import BINNED, Run, carried, fit, truths
from studies.steps.judge import Judge, no_trend, not_so, some, turned
from studies.steps.measures import Cell, Corner, better
from studies.steps.unchanged import ORIGINAL, unchanged
from studies.steps_simulation import study
from studies.verdicts import Answer, Comparison, above, alike, verdict
from studies.writing import Estimate, Form


@pytest.mark.slow
def test_smoke_form_writes_a_page_with_a_row_for_every_statement(tmp_path: Path) -> None:
    page = study(Form(smoke=True, out=tmp_path, data=None)).read_text(encoding="utf-8")
    assert "Smoke form" in page
    statements = page.split("## Statement by statement")[1]
    assert statements.count("\n| model ") == 31
    assert statements.count("\n| ") == 2 + 38
    assert statements.count("| cannot be checked: ") == 2
    assert "coverage of PrivBayes" in statements
    assert page.count("| none | original data |") == 8
    assert len(list(tmp_path.glob("*.svg"))) == 24
    assert "binning alone has more than half of its variance between sets" in statements
    for model, coefficients in ((1, 11), (2, 120)):
        drawn = (tmp_path / f"steps_simulation-model-{model}-4000-coefficients.svg").read_text(encoding="utf-8")
        assert drawn.count('class="thread"') == 9 * coefficients, "three measures of three methods"
        assert drawn.count('class="thread mean"') == 9


def test_spread_between_sets_is_kept_and_judged() -> None:
    """Sets of unchanged tables but for Y inside its bins vary, and their spread is what the fits of the sets have."""
    run = Run(1, 4_000, 0.0, BINNED, 1)
    between = np.array(carried(run)["between"])
    assert between.shape == (11,)
    assert between.min() > 0.0
    assert between.max() < 0.1, "far below the standard error of the estimates between data sets"
    binned = Cell(np.zeros((3, 2)), np.ones((3, 2)), np.ones(3), np.full((3, 2), 0.02))
    assert binned.spread == pytest.approx([0.0004] * 3)
    answers = {}
    for name, factor in (("mainly", 1.2), ("hardly", 3.0)):
        made = Cell(np.zeros((3, 2)), np.ones((3, 2)), np.ones(3), np.full((3, 2), 0.02 * factor))
        found = {(Corner(1, 4_000, 0.0), BINNED): binned, (Corner(1, 4_000, 10.0), "PrivBayes"): made}
        (one,) = Judge(found, (4_000,), (10.0,)).binning_spreads(1, "PrivBayes", 10.0)
        answers[name] = one.answer
    assert answers == {"mainly": "yes", "hardly": "no"}


def test_least_squares_and_ridge_find_the_coefficients() -> None:
    rng = np.random.default_rng(3)
    for truth in truths():
        codes, outcome = truth.draw(60_000, rng)
        found, variances = fit(truth, codes, outcome)
        scores = (found - truth.coefficients) / np.sqrt(variances)
        assert np.abs(scores).max() < 4.5
        assert scores.std() == pytest.approx(1.0, abs=0.4)


def cell(errors: list[list[float]], covered: list[list[float]]) -> Cell:
    return Cell(np.array(errors), np.array(covered), np.arange(float(len(errors))))


def test_pseudo_values_are_the_repeats_themselves_where_a_measure_is_a_mean() -> None:
    """Bias of one sign and coverage on one side of 95 % are linear in the repeats, so nothing else can come out."""
    found = cell([[0.1, 0.3], [0.2, 0.4], [0.6, 0.5]], [[0, 1], [1, 0], [0, 0]])
    assert found.pseudo["bias"] == pytest.approx([0.2, 0.3, 0.55])
    assert found.pseudo["coverage"] == pytest.approx([0.45, 0.45, 0.95])
    assert found.shown("bias").mean == pytest.approx(0.35)
    assert found.shown("coverage").mean == pytest.approx(1 / 3)


def test_rmse_is_taken_over_repeats_for_each_coefficient() -> None:
    found = cell([[3.0, 0.0], [-3.0, 0.0], [3.0, 0.0]], [[1, 1]] * 3)
    assert found.shown("estimation RMSE").mean == pytest.approx(1.5)
    assert found.pseudo["estimation RMSE"] == pytest.approx([1.5] * 3)
    assert found.shown("bias").mean == pytest.approx(0.5)


def test_better_is_lower_and_told_repeat_by_repeat() -> None:
    """Errors of both methods vary far more than their difference, as with shared data."""
    shared = [0.1, 0.5, 0.9, 0.2]
    first, second = ([[one + shift] for one in shared] for shift in (0.0, 0.05))
    ones = [[1.0]] * 4
    assert better(cell(first, ones), cell(second, ones), "bias").answer == "yes"
    assert better(cell(second, ones), cell(first, ones), "bias").answer == "no"
    assert better(cell(first, ones), cell(second, ones), "bias", paired=False).answer == "open"


def test_coverage_too_high_in_one_coefficient_does_not_make_up_for_too_low_in_another() -> None:
    found = cell([[0.0, 0.0]] * 10, [[1, 1]] * 9 + [[1, 0]])
    assert found.shown("coverage").mean == pytest.approx(0.95)
    assert found.judged("coverage").mean == pytest.approx(0.05)
    assert found.span("coverage") == (pytest.approx(0.9), pytest.approx(1.0))


def steady(bias: float) -> Cell:
    """Repeats with nearly the same bias of the one coefficient, covered as it should be."""
    return cell([[bias + wiggle] for wiggle in (0.0, 0.001, -0.001, 0.0)], [[1.0]] * 4)


def judge_of(method: str, biases: Sequence[float], plain: float = 0.0, binned: float = 0.0) -> Judge:
    epsilons = tuple(float(place) for place in range(1, len(biases) + 1))
    found = {(Corner(2, 50, epsilon), method): steady(bias) for epsilon, bias in zip(epsilons, biases, strict=True)}
    bare = {(Corner(2, 50, 0.0), ORIGINAL): steady(plain), (Corner(2, 50, 0.0), BINNED): steady(binned)}
    return Judge(found | bare, (50,), epsilons)


@pytest.mark.parametrize(
    ("binned", "made", "answer"),
    [(0.5, 0.6, "yes"), (0.5, 0.4, "yes"), (0.1, 0.6, "no"), (0.001, 0.002, "same")],
)
def test_binning_is_the_main_loss_when_it_adds_more_than_all_else(binned: float, made: float, answer: str) -> None:
    given = judge_of("STEPS", [made], binned=binned)
    assert [one.answer for one in given.binning_first(2, "STEPS", 1.0, ("bias",))] == [answer]


def bias_trend(biases: Sequence[float]) -> Comparison:
    return judge_of("PrivBayes", biases).flat_in_epsilon(2, "PrivBayes")[0]


def test_a_clear_worsening_is_a_trend_as_much_as_a_clear_improvement() -> None:
    assert bias_trend([0.8, 0.6, 0.4]).answer == "no"
    assert bias_trend([0.4, 0.6, 0.8]).answer == "no"
    assert bias_trend([0.4, 0.405, 0.4]).answer == "yes"


def test_steps_both_ways_are_no_trend_unless_one_of_them_is_within_the_margin() -> None:
    assert bias_trend([0.4, 0.8, 0.6]).answer == "yes"
    assert bias_trend([0.4, 0.8, 0.795]).answer == "no"
    assert no_trend(alike([1.0, 1.1], [0.0, 0.1], 0.02), []).answer == "no"


def test_what_denies_an_improvement_agrees_with_a_loss_and_with_none() -> None:
    low, high = [0.1, 0.11, 0.1], [0.2, 0.21, 0.2]
    answers = [above(low, high), above(high, low), above(low, low, 0.1)]
    assert [one.answer for one in not_so(answers)] == ["yes", "no", "yes"]
    assert turned(answers[0]).gap.mean == pytest.approx(0.1)


def given_answers(**counts: int) -> list[Comparison]:
    named: dict[str, Answer] = {"yes": "yes", "no": "no", "same": "same", "open": "open"}
    return [Comparison(Estimate(0.0, 1.0, 4), named[name]) for name, count in counts.items() for _ in range(count)]


def test_some_cases_are_more_than_chance_gives() -> None:
    assert some(given_answers(yes=20, no=44)) == "confirmed"
    assert some(given_answers(yes=64)) == "confirmed"
    assert some(given_answers(yes=1, no=60, open=3)) == "refuted"
    assert some(given_answers(same=64)) == "refuted"
    assert some(given_answers(yes=1, no=10, open=53)) == "not decided"


def test_in_general_goes_by_means_over_epsilon() -> None:
    """The first method is better at one ε by more than it is worse at the other."""
    corners = [Corner(model, 50, epsilon) for model in (1, 2) for epsilon in (1.0, 2.0)]
    found = {(one, name): steady(0.5 if name == "second" else one.epsilon / 2 - 0.3)
             for one in corners for name in ("first", "second")}  # fmt: skip
    given = Judge(found, (50,), (1.0, 2.0))
    assert [one.answer for one in given.everywhere("first", "second")[:2]] == ["yes", "no"]
    assert given.overall("first", "second")[0].answer == "yes"
    assert verdict([given.overall("second", "first")[0]]) == "refuted"


@pytest.mark.parametrize("model", [1, 2])
def test_the_original_data_are_those_of_the_runs(model: int) -> None:
    """Binning and drawing anew inside bins moves estimates a little, other data would move them a lot."""
    bare = unchanged(Run(model, 4_000, 0.0, ORIGINAL, 7))
    binned = carried(Run(model, 4_000, 0.0, BINNED, 7))
    assert np.array(bare["estimates"]) == pytest.approx(np.array(binned["estimates"]), abs=0.25)
    assert float(str(bare["prediction"])) == pytest.approx(float(str(binned["prediction"])), abs=0.03)
    scores = bare["aic"]
    assert isinstance(scores, dict)
    assert list(scores) == ["x1", "x2", "x3", "x4", "y"]
    assert sorted(scores.values()) == list(scores.values())
