"""Solving the normal equations of a fit by elimination, on one thread.

Fits solve systems of a few hundred unknowns many times. Libraries spread such small systems over threads that wait for
each other, which on a busy machine takes a hundred times as long as the arithmetic. Rows are updated as a whole, so
that the compiler vectorises them; sums keep their order.
"""

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled

__all__ = ["solve_positive"]

Floats = npt.NDArray[np.float64]


@compiled()  # pragma: no cover
def _solve(matrix, vector):  # type: ignore[no-untyped-def]
    """Overwrites the vector with the solution; False if the matrix is not positive definite. Uses the upper half."""
    size = vector.size
    for k in range(size):
        pivot = matrix[k, k]
        if not pivot > 0.0:
            return False
        row = matrix[k]
        for i in range(k + 1, size):
            factor = row[i] / pivot
            if factor != 0.0:
                other = matrix[i]
                for j in range(i, size):
                    other[j] -= factor * row[j]
                vector[i] -= factor * vector[k]
    for k in range(size - 1, -1, -1):
        total = vector[k]
        for j in range(k + 1, size):
            total -= matrix[k, j] * vector[j]
        vector[k] = total / matrix[k, k]
    return True


def solve_positive(matrix: Floats, vector: Floats) -> Floats | None:
    """x with matrix · x = vector; None if the matrix is not positive definite.

    >>> solve_positive(np.array([[4.0, 2.0], [2.0, 3.0]]), np.array([2.0, 5.0])).tolist()
    [-0.5, 2.0]
    """
    solution = vector.copy()
    return solution if _solve(np.array(matrix, np.float64, order="C"), solution) else None
