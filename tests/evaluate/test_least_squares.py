"""Least squares against an independent implementation."""

import numpy as np
import statsmodels.api as sm

from tests.evaluate.written_out import dense
from understudy.evaluate.glm import design_of, factor, fit_linear, slope


def test_equals_statsmodels_also_far_from_zero() -> None:
    rng = np.random.default_rng(1)
    number = rng.normal(1.5e9, 1e7, 400)  # seconds since 1970
    design = design_of([factor(list("abc"), rng.integers(0, 3, 400)), slope("n", number)], 400)
    outcomes = 1e6 + 3 * dense(design)[:, 1] + number / 1e7 + rng.normal(size=400)
    fit = fit_linear(design, outcomes)
    assert fit is not None
    centred = dense(design)
    centred[:, 3] -= number.mean()
    reference = sm.OLS(outcomes, centred).fit()
    np.testing.assert_allclose(fit.coefficients[1:], reference.params[1:], rtol=1e-6)
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance))[1:], reference.bse[1:], rtol=1e-6)
    assert fit.degrees == 396


def test_combinations_are_left_out() -> None:
    codes = np.arange(30) % 3
    design = design_of([factor(list("abc"), codes), factor(list("xyz"), codes)], 30)
    fit = fit_linear(design, np.arange(30.0))
    assert fit is not None
    assert fit.kept.tolist() == [True, True, True, False, False]


def test_too_few_rows() -> None:
    assert fit_linear(design_of([factor(list("ab"), np.array([0, 1]))], 2), np.array([1.0, 2.0])) is None
