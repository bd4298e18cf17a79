"""Elimination against an independent solver, and on matrices it must refuse."""

import numpy as np
import pytest

from understudy.evaluate.glm import solve_positive


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
