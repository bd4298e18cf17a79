"""Columns that are combinations of earlier ones are found."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from understudy.evaluate.glm import independent_columns


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
