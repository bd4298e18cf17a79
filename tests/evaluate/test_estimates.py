"""Estimates and intervals against an independent implementation."""

import numpy as np
import pytest
import statsmodels.api as sm

from tests.evaluate.examples import mixed, mixed_frame, rows_of
from tests.evaluate.written_out import dense
from understudy.evaluate import regression as room
from understudy.evaluate.metric import Unavailable
from understudy.evaluate.regression import (
    FittedCoefficients,
    ModelData,
    fit_model,
    model_data,
    parse_formula,
    references,
)

ROWS = rows_of(mixed_frame(400), mixed())


def _data(text: str) -> ModelData:
    formula = parse_formula(text, mixed())
    return model_data(formula, ROWS, references(formula, ROWS))


@pytest.mark.parametrize(
    ("text", "family", "model"), [("income ~ age + sex", "linear", sm.OLS), ("voted ~ age + sex", "logistic", sm.Logit)]
)
def test_equals_statsmodels(text: str, family: str, model: type) -> None:
    data = _data(text)
    found = fit_model(data, family, level=0.9)  # type: ignore[arg-type]
    reference = model(data.outcomes, dense(data.design)).fit(**({"disp": 0} if family == "logistic" else {}))
    assert isinstance(found, FittedCoefficients)
    ends = reference.conf_int(0.1)
    for place, estimate in enumerate(found.estimates.values()):
        assert estimate.value == pytest.approx(reference.params[place], rel=1e-6, abs=1e-9)
        assert estimate.error == pytest.approx(reference.bse[place], rel=1e-5)
        assert (estimate.low, estimate.high) == pytest.approx(tuple(ends[place]), rel=1e-5, abs=1e-7)


def test_firth_profile_intervals_are_wider_on_the_far_side() -> None:
    data = _data("voted ~ sex")
    wald, profile = fit_model(data, "firth"), fit_model(data, "firth", profile=True)
    assert isinstance(wald, FittedCoefficients)
    assert isinstance(profile, FittedCoefficients)
    one, other = wald.estimates["sex=M"], profile.estimates["sex=M"]
    assert one.value == other.value
    assert (other.low, other.high) == pytest.approx((one.low, one.high), abs=0.02)


def test_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    data = _data("voted ~ age")
    constant = ModelData(data.design, np.ones(data.complete), data.complete, data.rows)
    assert "same in every" in fit_model(constant, "logistic").reason  # type: ignore[union-attr]
    none = ModelData(data.design.take(np.arange(0)), np.empty(0), 0, 10)
    assert "fewer than two rows" in fit_model(none, "linear").reason  # type: ignore[union-attr]
    two = ModelData(data.design.take(np.arange(2)), np.array([0.0, 1.0]), 2, 10)
    assert "no more complete rows" in fit_model(two, "linear").reason  # type: ignore[union-attr]
    monkeypatch.setattr(room, "MOST_COEFFICIENTS", 1)
    assert isinstance(fit_model(data, "logistic"), Unavailable)
