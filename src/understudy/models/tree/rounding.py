"""Whole rows out of expected counts: controlled rounding, the low-noise alternative to independent draws.

Every cell gets the whole part of its expectation, and the rows still missing go to different cells, each with a
probability equal to its fractional part (systematic sampling in a random order). So every count has the right
expectation and differs from it by less than 1. Rows are then dependent: fewer surprises in every table than
independent draws have, at the price that formulas for independent rows overstate the sampling error.
"""

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError

__all__ = ["controlled_rounding"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def controlled_rounding(probabilities: Floats, rows: int, rng: np.random.Generator) -> Ints:
    """Counts of 0 or more that add up to `rows`, each the expectation rounded down or up, with the right mean."""
    if rows < 0:
        raise UsageError("rows", f"must be 0 or more, got {rows}.")
    expected = probabilities * (rows / probabilities.sum())
    counts: Ints = np.floor(expected).astype(np.int64)
    missing = rows - int(counts.sum())
    fractions = expected - counts
    open_cells = np.flatnonzero(fractions > 0.0)
    if missing > 0:
        shuffled = rng.permutation(open_cells)
        steps = np.cumsum(fractions[shuffled])
        marks = (np.arange(missing) + rng.random()) * (steps[-1] / missing)
        places = np.minimum(np.searchsorted(steps, marks, side="right"), shuffled.size - 1)
        np.add.at(counts, shuffled[places], 1)
    return counts
