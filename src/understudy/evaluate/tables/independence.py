"""Pearson's test of independence on counts, for tables with empty rows or columns."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

__all__ = ["Tested", "pearson"]

Ints = npt.NDArray[np.int64]

LEAST_P = 1e-290


@dataclass(frozen=True, slots=True)
class Tested:
    """The statistic on the rows and columns that occur, its degrees of freedom, its p-value, and the same p-value as
    a statistic on the degrees of freedom of the whole table."""

    statistic: float
    degrees: int
    p_value: float
    common: float


def pearson(counts: Ints, shape: tuple[int, int], cells: Ints | None = None) -> Tested | None:
    """The test without continuity correction; None if fewer than two rows or columns occur.

    Args:
        counts: of all cells in row-major order, or of those named in `cells`.
        shape: rows and columns of the whole table, which give the common degrees of freedom.
        cells: flat numbers of the cells counted.
    """
    places = np.arange(len(counts)) if cells is None else cells
    kept = counts > 0
    observed, places = counts[kept].astype(np.float64), places[kept]
    rows, columns = places // shape[1], places % shape[1]
    by_row = np.bincount(rows, observed, shape[0])
    by_column = np.bincount(columns, observed, shape[1])
    degrees = (int((by_row > 0).sum()) - 1) * (int((by_column > 0).sum()) - 1)
    if degrees < 1:
        return None
    total = float(observed.sum())
    expected = by_row[rows] * by_column[columns] / total
    # Σ(O − E)²/E = Σ O²/E − n; summed as (O/E − 1)·O, which loses less.
    statistic = max(0.0, float(((observed / expected - 1.0) * observed).sum()))
    p_value = float(chi2.sf(statistic, degrees))
    return Tested(statistic, degrees, p_value, converted(statistic, degrees, (shape[0] - 1) * (shape[1] - 1)))


def converted(statistic: float, degrees: int, common: int) -> float:
    """The statistic on `common` degrees of freedom with the same p-value; by a cube root where p underflows."""
    if degrees == common:
        return statistic
    p_value = float(chi2.sf(statistic, degrees))
    if p_value > LEAST_P:
        return float(chi2.isf(p_value, common))
    spread = 2 / (9 * degrees)
    place = ((statistic / degrees) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    wide = 2 / (9 * common)
    return float(common * max(0.0, 1 - wide + place * math.sqrt(wide)) ** 3)
