"""The products of a design equal those of the matrix written out."""

import numpy as np
import pytest

from tests.evaluate.written_out import dense
from understudy.evaluate.glm import ModelMatrix, design_of, factor, product, slope


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
