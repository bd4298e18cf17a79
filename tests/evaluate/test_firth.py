"""Firth's regression on a case solved by hand, and against direct maximisation."""

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.evaluate.written_out import dense
from understudy.evaluate.glm import ModelMatrix, design_of, factor, fit_firth, fit_logistic, profile_interval, slope

# Counts 3/0 at x = 1 and 2/5 at x = 0: for one binary column the penalty adds ½ to every cell.
X = np.array([1] * 3 + [0] * 7)
Y = np.array([1.0] * 3 + [1.0] * 2 + [0.0] * 5)
SMALL = design_of([factor(["0", "1"], X)], 10)


def test_equals_adding_half_to_each_cell() -> None:
    fit = fit_firth(SMALL, Y)
    np.testing.assert_allclose(fit.coefficients, [np.log(2.5 / 5.5), np.log(3.5 / 0.5) - np.log(2.5 / 5.5)], atol=1e-7)
    np.testing.assert_allclose(fit.coefficients, [-0.788457, 2.734368], atol=1e-6)
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance)), [0.815436, 1.926799], atol=1e-6)
    assert fit.converged


def _penalised(design: ModelMatrix, outcomes: np.ndarray, coefficients: np.ndarray) -> float:
    whole = dense(design)
    probability = 1 / (1 + np.exp(-whole @ coefficients))
    information = whole.T @ ((probability * (1 - probability))[:, None] * whole)
    chosen = np.where(outcomes > 0.5, probability, 1 - probability)
    return float(np.log(chosen).sum() + np.linalg.slogdet(information)[1] / 2)


def test_equals_direct_maximisation() -> None:
    rng = np.random.default_rng(3)
    codes, numbers = rng.integers(0, 3, 60), rng.normal(size=60)
    design = design_of([factor(list("abc"), codes), slope("n", numbers)], 60)
    outcomes = ((codes == 2) | (rng.random(60) < 0.3)).astype(np.float64)  # level c always 1
    fit = fit_firth(design, outcomes)
    best = minimize(lambda b: -_penalised(design, outcomes, b), np.zeros(4), method="Nelder-Mead",
                    options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000})  # fmt: skip
    np.testing.assert_allclose(fit.coefficients, best.x, atol=1e-5)
    assert fit.likelihood == pytest.approx(-best.fun, abs=1e-9)


def test_profile_interval_meets_the_bound() -> None:
    fit = fit_firth(SMALL, Y)
    ends = profile_interval(SMALL, Y, fit, 1)
    assert ends is not None
    for end in ends:
        rest = minimize(lambda b, end=end: -_penalised(SMALL, Y, np.array([b[0], end])), [0.0], method="Nelder-Mead",
                        options={"xatol": 1e-10, "fatol": 1e-12})  # fmt: skip
        assert 2 * (fit.likelihood + rest.fun) == pytest.approx(3.841459, abs=1e-4)


def test_close_to_maximum_likelihood_with_many_rows() -> None:
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 2, 20_000)
    outcomes = (rng.random(20_000) < np.where(codes == 1, 0.6, 0.4)).astype(np.float64)
    design = design_of([factor(["0", "1"], codes)], 20_000)
    np.testing.assert_allclose(
        fit_firth(design, outcomes).coefficients, fit_logistic(design, outcomes).coefficients, atol=1e-3
    )
