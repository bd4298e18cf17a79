"""Rows out of a table of probabilities: independent draws of its cells.

Records are independent draws (a multinomial law), one uniform number each, found in the cumulative probabilities.
No rounding of expected counts in cell order: that makes tables drawn from the same rows rise together. The generator
is seeded on purpose: drawing rows from a fitted model is post-processing, and nothing private depends on it.
"""

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError

__all__ = ["code_dtype", "cumulative", "draw_cells"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def code_dtype(size: int) -> type[np.uint8] | type[np.uint16] | type[np.uint32]:
    """The smallest unsigned type that holds the codes 0 … size − 1.

    >>> code_dtype(256).__name__, code_dtype(257).__name__
    ('uint8', 'uint16')
    """
    if size <= 2**8:
        return np.uint8
    return np.uint16 if size <= 2**16 else np.uint32


def cumulative(probabilities: Floats) -> Floats:
    """Running sums that end at exactly 1."""
    sums = np.cumsum(probabilities)
    return np.asarray(sums / sums[-1])


def draw_cells(steps: Floats, rows: int, rng: np.random.Generator) -> Ints:
    """`rows` independent cell positions, given the running sums of their probabilities.

    A cell of probability 0 is never drawn: its running sum does not rise, and a uniform number in [0, 1) falls
    strictly below the sum of the cell it is given to.
    """
    if rows < 0:
        raise UsageError("rows", f"must be 0 or more, got {rows}.")
    return np.searchsorted(steps, rng.random(rows), side="right").astype(np.int64, copy=False)
