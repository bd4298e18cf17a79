"""The study of young voters: its judgements, and a run from end to end on a few rows."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from studies.verdicts import Comparison, above, alike
from studies.voters.claims import claims
from studies.voters.combine import apart, more_than_slightly, no_better, somewhere, together
from studies.voters.judge import Judge
from studies.voters.measures import EPSILONS, Measured
from studies.voters.nodes import averaging_helps, layer_errors, nearer_is_smaller
from studies.writing import Form
from studies.youth_voters import study

from understudy.models.histogram_tree import HistogramTree

NOISE = (-0.01, 0.0, 0.01, 0.0, 0.005, -0.005)


def lead(size: float) -> Comparison:
    """A lead of that size, with a margin of 0.05 and an interval of about ± 0.008."""
    return above([size + one for one in NOISE], [0.0] * len(NOISE), 0.05)


def distance(size: float) -> Comparison:
    return alike([size + one for one in NOISE], [0.0] * len(NOISE), 0.05)


@pytest.mark.parametrize(
    ("size", "answer"), [(-0.2, "yes"), (0.0, "yes"), (0.03, "yes"), (0.05, "no"), (0.2, "no")]
)  # fmt: skip
def test_no_better_is_worse_or_similar(size: float, answer: str) -> None:
    assert no_better([lead(size)], [distance(size)])[0].answer == answer


@pytest.mark.parametrize(("size", "answer"), [(0.2, "yes"), (-0.2, "yes"), (0.01, "no"), (0.05, "open")])
def test_apart_is_further_than_the_margin(size: float, answer: str) -> None:
    assert apart([distance(size)])[0].answer == answer


@pytest.mark.parametrize(
    ("sizes", "answer"),
    [
        ([0.1, 0.2, 0.3], "yes"),
        ([0.1, 0.2, 0.0], "yes"),
        ([0.1, 0.2, 0.3, -0.1, -0.2], "no"),
        ([-0.1, -0.2, -0.1], "no"),
        ([0.0, 0.0, 0.0], "same"),
    ],
)
def test_an_epsilon_counts_by_all_its_comparisons_together(sizes: Sequence[float], answer: str) -> None:
    found = together([lead(size) for size in sizes])
    assert found.answer == answer
    assert found.gap.mean == pytest.approx(min(sizes), abs=1e-12)


@pytest.mark.parametrize(
    ("sizes", "answer"), [([-0.1, 0.2, -0.3], "yes"), ([-0.1, -0.2], "no"), ([-0.1, 0.0], "no")]
)  # fmt: skip
def test_some_analysis_must_agree_for_sure(sizes: Sequence[float], answer: str) -> None:
    found = somewhere([lead(size) for size in sizes])
    assert found.answer == answer
    assert found.gap.mean == pytest.approx(max(sizes) / 0.05)


def test_many_analyses_do_not_agree_by_chance() -> None:
    alone = lead(0.0095)
    assert alone.answer == somewhere([alone]).answer == "yes"
    assert somewhere([alone, *[lead(-0.1)] * 5]).answer == "open"


def test_slightly_is_said_of_leads_within_the_margin_only() -> None:
    assert more_than_slightly([lead(0.02), lead(-0.3)]) == ""
    assert more_than_slightly([lead(0.02), lead(0.2)]) == " (but by more than 0.05, so not slightly, in 1 of 2)"


def test_errors_of_nodes_are_those_of_least_squares() -> None:
    places = (np.array([0, 0]), np.array([0, 0, 1, 1, 1]))
    cells = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 1], *np.eye(5)])  # every node as a sum of cells
    free = np.linalg.svd(np.ones((1, 5)))[2][1:].T  # the total is known
    spread = cells @ free @ np.linalg.inv(free.T @ cells.T @ cells @ free) @ free.T @ cells.T
    found = layer_errors(HistogramTree(places))
    assert found.final == pytest.approx((np.diag(spread)[:2].mean(), np.diag(spread)[2:].mean()))
    assert found.averaged == pytest.approx(((2 / 3 + 3 / 4) / 2, 1.0))


@pytest.mark.parametrize(("cells", "answer"), [(4, "yes"), (400_000, "no")])
def test_averaging_is_a_reason_for_nodes_with_few_cells_only(cells: int, answer: str) -> None:
    errors = layer_errors(HistogramTree((np.array([0, 0]), np.repeat([0, 1], cells // 2))))
    assert [one.answer for one in averaging_helps(errors)] == [answer]
    assert [one.answer for one in nearer_is_smaller(errors)] == ["yes"]


def test_nodes_near_the_root_need_not_be_more_exact() -> None:
    single = layer_errors(HistogramTree((np.repeat(0, 9), np.repeat(0, 2))))
    assert "no" in [one.answer for one in nearer_is_smaller(single)]


@pytest.mark.parametrize(("important", "answer"), [(0.01, "yes"), (0.09, "no")])
def test_important_columns_are_held_against_columns_at_random(important: float, answer: str) -> None:
    """Both groups of columns have errors of their own: what counts is the gain over the tree of random columns."""
    errors = {"STEPS-3": {"important columns": important, "other columns": 0.2}}
    errors["UH-3"] = {"important columns": 0.05, "other columns": 0.25}
    found = {
        ("t", system, epsilon): [
            Measured({part: error * (1 + one) for part, error in parts.items()}) for one in (-0.01, 0.0, 0.01)
        ]
        for system, parts in errors.items()
        for epsilon in EPSILONS
    }
    (claim,) = [one for one in claims() if "more important columns" in one.printed]
    (found_answer,) = claim.answers(Judge(found, "t", 100))
    assert found_answer.answer == answer


@pytest.mark.slow
def test_smoke_form_writes_a_page_with_a_row_for_every_statement(tmp_path: Path) -> None:
    page = study(Form(smoke=True, out=tmp_path, data=None)).read_text(encoding="utf-8")
    assert "Smoke form" in page
    rows = page.split("## Statement by statement")[1]
    assert all(f"[{claim.source}] {claim.printed}" in rows for claim in claims())
    figures = sorted(tmp_path.glob("*.svg"))
    assert len(figures) == 13
    assert "Total variation of every column at ε = 1" in page
    assert "STEPS preserves more important columns better" in rows
    drawn = (tmp_path / "youth_voters-narrow-intervals.svg").read_text(encoding="utf-8")
    coefficients = drawn.count('class="bar real"')
    assert coefficients > 4, "both systems, an interval for every original coefficient"
    assert drawn.count('class="interval real"') == coefficients
    assert drawn.count('class="interval made"') + drawn.count("cannot be estimated</text>") == coefficients
    assert all(file.name in page for file in figures)
