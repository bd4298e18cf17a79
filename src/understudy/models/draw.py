"""Rows out of a table of probabilities: independent draws of its cells, or controlled rounding of expected counts.

`multinomial`: records are independent draws, one uniform number each, found in the cumulative probabilities.
`controlled`: every cell gets the whole part of its expectation, and the rows still missing go to different cells, each
with a probability equal to its fractional part (systematic sampling in a random order). So every count has the right
expectation and differs from it by less than 1: fewer surprises in every table than independent draws have, at the
price that formulas for independent rows overstate the sampling error. Rows come in random order: expected counts
handed out in the order of cells would make tables drawn for the same rows rise together.
The generator is seeded on purpose: drawing rows from a fitted model is post-processing, and nothing private depends
on it.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError

__all__ = ["Rounding", "code_dtype", "controlled_rounding", "cumulative", "draw_cells", "draw_places"]

Rounding = Literal["multinomial", "controlled"]
"""How whole rows are made of probabilities."""

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


def draw_places(probabilities: Floats, rows: int, rng: np.random.Generator, rounding: Rounding) -> Ints:
    """`rows` cell positions in random order, made in the way of `rounding`."""
    if rounding == "controlled":
        counts = controlled_rounding(probabilities, rows, rng)
        return rng.permutation(np.repeat(np.arange(counts.size), counts))
    return draw_cells(cumulative(probabilities), rows, rng)
