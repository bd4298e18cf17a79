"""The simulation of the STEPS paper in its smoke form, and the fits it rests on."""

from pathlib import Path

import numpy as np
import pytest
from studies.steps.design import fit, truths
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
