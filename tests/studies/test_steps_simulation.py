"""The simulation of the STEPS paper in its smoke form, and the fits it rests on."""

from pathlib import Path

import numpy as np
import pytest
from studies.steps.design import fit, truths
from studies.steps.measures import Cell, better
from studies.steps_simulation import study
from studies.writing import Form


def test_smoke_form_writes_a_page_with_a_row_for_every_statement(tmp_path: Path) -> None:
    page = study(Form(smoke=True, out=tmp_path, data=None)).read_text(encoding="utf-8")
    assert "Smoke form" in page
    statements = page.split("## Statement by statement")[1]
    assert statements.count("\n| model ") == 25
    assert "coverage of PrivBayes" in statements
    assert len(list(tmp_path.glob("*.svg"))) == 16


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
