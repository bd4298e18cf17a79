"""Which columns of a model matrix are linear combinations of earlier ones, from its cross product."""

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled

__all__ = ["independent_columns"]

TOLERANCE = 1e-10


@compiled()  # pragma: no cover
def _sweep(matrix, tolerance, kept):  # type: ignore[no-untyped-def]
    """Cholesky by columns; a column whose remaining diagonal is next to nothing is left out."""
    width = matrix.shape[0]
    factor = np.zeros((width, width))
    for j in range(width):
        left = matrix[j, j]
        for k in range(j):
            left -= factor[j, k] * factor[j, k]
        if left <= tolerance * matrix[j, j] or matrix[j, j] <= 0.0:
            kept[j] = False
            continue
        kept[j] = True
        root = np.sqrt(left)
        factor[j, j] = root
        for i in range(j + 1, width):
            total = matrix[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = total / root


def independent_columns(cross: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """True for each column that is not (up to rounding) a combination of the columns before it.

    >>> x = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
    >>> independent_columns(x.T @ x).tolist()
    [True, True, False]
    """
    kept = np.zeros(len(cross), np.bool_)
    _sweep(np.ascontiguousarray(cross), TOLERANCE, kept)
    return kept
