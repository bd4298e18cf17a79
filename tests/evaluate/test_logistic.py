"""Logistic regression against an independent implementation, and at its limits."""

import numpy as np
import pytest
import statsmodels.api as sm

from tests.evaluate.written_out import dense
from understudy.evaluate.glm import RIDGE, ModelMatrix, design_of, factor, fit_logistic, product, slope


def _example(rows: int = 1500) -> tuple[ModelMatrix, np.ndarray]:
    rng = np.random.default_rng(4)
    one, two = rng.integers(0, 4, rows), rng.integers(0, 3, rows)
    first, second, number = factor(list("abcd"), one), factor(list("xyz"), two), slope("n", rng.normal(50, 10, rows))
    design = design_of([first, second, number, product(first, second)], rows)
    probability = 1 / (1 + np.exp(2 - 0.3 * one + 0.2 * two - 0.02 * dense(design)[:, 6]))
    return design, (rng.random(rows) < probability).astype(np.float64)


def test_equals_statsmodels() -> None:
    design, outcomes = _example()
    fit = fit_logistic(design, outcomes)
    reference = sm.Logit(outcomes, dense(design)).fit(disp=0)
    np.testing.assert_allclose(fit.coefficients, reference.params, atol=1e-7)
    covariance = fit.covariance(design)
    assert covariance is not None
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), reference.bse, rtol=1e-6)
    assert fit.converged
    assert not fit.runaway
    assert fit.ridge == 0


def test_level_with_one_outcome_converges_in_its_probabilities() -> None:
    codes = np.array([0] * 10 + [1] * 10)
    outcomes = np.array([1.0] * 4 + [0.0] * 6 + [1.0] * 10)
    fit = fit_logistic(design_of([factor(["a", "b"], codes)], 20), outcomes)
    assert fit.runaway
    np.testing.assert_allclose(fit.probabilities[:10], 0.4, atol=1e-6)
    assert fit.probabilities[10:].min() > 0.9999


def test_perfect_separation_needs_a_ridge_and_says_so() -> None:
    codes = np.array([0] * 10 + [1] * 10)
    fit = fit_logistic(design_of([factor(["a", "b"], codes)], 20), codes.astype(np.float64))
    assert fit.ridge == RIDGE
    assert np.isfinite(fit.coefficients).all()


@pytest.mark.parametrize("seed", range(3))
def test_combinations_do_not_change_probabilities(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes, outcomes = rng.integers(0, 3, 200), rng.integers(0, 2, 200).astype(np.float64)
    plain = fit_logistic(design_of([factor(list("abc"), codes)], 200), outcomes)
    doubled = fit_logistic(design_of([factor(list("abc"), codes), factor(list("xyz"), codes)], 200), outcomes)
    np.testing.assert_allclose(plain.probabilities, doubled.probabilities, atol=1e-8)
    assert plain.parameters == doubled.parameters == 3
