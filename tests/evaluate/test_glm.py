"""Tests of `understudy.evaluate.glm`."""

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluate.examples import mixed, mixed_frame, rows_of
from tests.evaluate.written_out import dense
from understudy.evaluate.glm import (
    RIDGE,
    ModelMatrix,
    column_terms,
    design_of,
    factor,
    fit_linear,
    fit_logistic,
    independent_columns,
    product,
    propensity_terms,
    slope,
    solve_positive,
)

# The products of a design equal those of the matrix written out.


@pytest.fixture(scope="module")
def design() -> ModelMatrix:
    rng = np.random.default_rng(1)
    one, two = factor(list("abcd"), rng.integers(0, 4, 60)), factor(list("xyz"), rng.integers(0, 3, 60))
    number = slope("n", rng.normal(5, 2, 60))
    return design_of([one, number, two, product(one, two), product(two, number)], 60)


def test_products(design: ModelMatrix) -> None:
    rng = np.random.default_rng(2)
    whole, weights, vector = dense(design), rng.random(60), rng.normal(size=design.width)
    assert whole.shape == (60, design.width)
    np.testing.assert_allclose(design.predict(vector), whole @ vector)
    np.testing.assert_allclose(design.collect(weights), whole.T @ weights)
    np.testing.assert_allclose(design.cross(weights), whole.T @ (weights[:, None] * whole))
    matrix = rng.normal(size=(design.width, design.width))
    np.testing.assert_allclose(design.quadratic(matrix), np.einsum("ij,jk,ik->i", whole, matrix, whole))


def test_take(design: ModelMatrix) -> None:
    index = np.array([3, 3, 10])
    np.testing.assert_array_equal(dense(design.take(index)), dense(design)[index])


def test_intercept_alone() -> None:
    np.testing.assert_array_equal(dense(design_of([], 4)), np.ones((4, 1)))


# Least squares against an independent implementation.


def test_equals_statsmodels_also_far_from_zero() -> None:
    rng = np.random.default_rng(1)
    number = rng.normal(1.5e9, 1e7, 400)  # seconds since 1970
    design = design_of([factor(list("abc"), rng.integers(0, 3, 400)), slope("n", number)], 400)
    outcomes = 1e6 + 3 * dense(design)[:, 1] + number / 1e7 + rng.normal(size=400)
    fit = fit_linear(design, outcomes)
    assert fit is not None
    # Columns of like size, so that the reference itself has digits to spare.
    like, scale = dense(design), np.array([1.0, 1.0, 1e7])
    like[:, 3] = (number - number.mean()) / 1e7
    reference = sm.OLS(outcomes, like).fit()
    np.testing.assert_allclose(fit.coefficients[1:] * scale, reference.params[1:], rtol=1e-6)
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance))[1:] * scale, reference.bse[1:], rtol=1e-6)
    assert fit.degrees == 396


def test_combinations_are_left_out() -> None:
    codes = np.arange(30) % 3
    design = design_of([factor(list("abc"), codes), factor(list("xyz"), codes)], 30)
    fit = fit_linear(design, np.arange(30.0))
    assert fit is not None
    assert fit.kept.tolist() == [True, True, True, False, False]


def test_too_few_rows() -> None:
    assert fit_linear(design_of([factor(list("ab"), np.array([0, 1]))], 2), np.array([1.0, 2.0])) is None


# Logistic regression against an independent implementation, and at its limits.


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


# Elimination against an independent solver, and on matrices it must refuse.


@pytest.mark.parametrize("size", [1, 2, 7, 60])
def test_equals_numpy(size: int) -> None:
    rng = np.random.default_rng(size)
    factor, wanted = rng.normal(size=(size, size + 3)), rng.normal(size=size)
    matrix = factor @ factor.T
    before = matrix.copy()
    found = solve_positive(matrix, matrix @ wanted)
    assert found is not None
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(matrix, before)


@pytest.mark.parametrize(
    "matrix", [[[0.0]], [[-1.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]], [[float("nan")]]]
)
def test_others_are_refused(matrix: list[list[float]]) -> None:
    assert solve_positive(np.array(matrix), np.ones(len(matrix))) is None


# Columns that are combinations of earlier ones are found.


@given(st.integers(0, 10_000))
def test_rank_is_found_column_by_column(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-2, 3, (12, 6)).astype(np.float64)
    matrix[:, 3] = matrix[:, 0] - 2 * matrix[:, 1]
    kept = independent_columns(matrix.T @ matrix)
    for column in range(6):
        grown = np.linalg.matrix_rank(matrix[:, : column + 1]) > np.linalg.matrix_rank(matrix[:, :column])
        assert kept[column] == grown


def test_columns_of_zeros_are_left_out() -> None:
    assert independent_columns(np.diag([1.0, 0.0, 2.0])).tolist() == [True, False, True]


# Terms are model matrices in disguise: the same columns that one would write out.


CODES = np.array([0, 1, 2, 1, 4])
NAMES = ["a", "b", "c", "d", "e"]


def test_factor_drops_the_reference_and_levels_that_do_not_occur() -> None:
    term = factor(NAMES, CODES)
    assert term.names == ("b", "c", "e")
    assert term.level.tolist() == [-1, 0, 1, 0, 2]
    assert factor(NAMES, CODES, reference=1).names == ("a", "c", "e")


def test_products_are_products_of_columns() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    one, two, number = factor(NAMES, CODES), factor(["x", "y"], np.array([0, 1, 1, 0, 1])), slope("z", values)
    both = dense(design_of([product(one, two)], 5))[:, 1:]
    assert product(one, two).names == ("b:y", "c:y", "e:y")
    assert both.sum() == 3
    np.testing.assert_allclose(dense(design_of([product(one, number)], 5))[:, 1], [0, 2, 0, 4, 0])
    np.testing.assert_allclose(dense(design_of([product(number, number)], 5))[:, 1], values**2)


def test_numbers_get_a_slope_and_indicators_of_their_states() -> None:
    rows = rows_of(mixed_frame(300), mixed())
    number, states = column_terms(rows, "age")
    assert number.names == ("age",)
    odd = np.isnan(rows.numbers["age"])
    assert states.names == ("age=999",)
    np.testing.assert_array_equal(states.level >= 0, odd)
    assert number.value is not None
    assert abs(float(number.value[~odd].mean())) < 1e-12
    assert (number.value[odd] == 0).all()


def test_missing_is_a_level_of_labels() -> None:
    rows = rows_of(mixed_frame(300), mixed())
    (term,) = column_terms(rows, "region")
    assert "region=missing" in term.names


def test_interactions_add_every_pair() -> None:
    rows = rows_of(mixed_frame(300), mixed())
    main, all_terms = propensity_terms(rows, interactions=False), propensity_terms(rows, interactions=True)
    assert len(main) == 8  # region, sex, voted; age, income and seen with slopes; age and income with states
    assert len(all_terms) > len(main) + 15
