"""Pearson's test of independence on counts, for tables with empty rows or columns."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
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


def pearson(
    counts: Ints, shape: tuple[int, int], cells: Ints | None = None, *, common: int | None = None
) -> Tested | None:
    """The test without continuity correction; None if fewer than two rows or columns occur.

    Args:
        counts: of all cells in row-major order, or of those named in `cells`.
        shape: rows and columns of the whole table.
        cells: flat numbers of the cells counted.
        common: the common degrees of freedom, when they are not those of the whole table.
    """
    places = np.arange(len(counts)) if cells is None else cells
    kept = counts > 0
    observed, places = counts[kept].astype(np.float64), places[kept]
    rows, columns = places // shape[1], places % shape[1]
    by_row = np.bincount(rows, observed, shape[0])
    by_column = np.bincount(columns, observed, shape[1])
    used = int((by_row > 0).sum()), int((by_column > 0).sum())
    if min(used) < 2:
        return None
    degrees = (used[0] - 1) * (used[1] - 1)
    total = float(observed.sum())
    expected = by_row[rows] * by_column[columns] / total
    # Σ(O − E)²/E = Σ O²/E − n; summed as (O/E − 1)·O, which loses less.
    statistic = max(0.0, float(((observed / expected - 1.0) * observed).sum()))
    p_value = float(chi2.sf(statistic, degrees))
    shared = (shape[0] - 1) * (shape[1] - 1) if common is None else common
    return Tested(statistic, degrees, p_value, converted(statistic, degrees, shared))


def converted(statistic: float, degrees: int, common: int) -> float:
    """The statistic on `common` degrees of freedom with the same p-value, also where that is below all floats."""
    if degrees == common:
        return statistic
    p_value = float(chi2.sf(statistic, degrees))
    if p_value > LEAST_P:
        return float(chi2.isf(p_value, common))
    target = _log_tail(statistic, degrees)
    low, high = float(common), statistic + 2.0 * common
    while _log_tail(high, common) > target:
        high *= 2
    return float(brentq(lambda place: _log_tail(place, common) - target, low, high, xtol=1e-9, rtol=1e-12))


def _log_tail(statistic: float, degrees: int) -> float:
    """log P(χ² > statistic) far in the tail: y^(a−1) e^(−y) / Γ(a) / (1 − (a − 1)/y) with y = x/2, a = k/2."""
    place, shape = statistic / 2, degrees / 2
    lead = (shape - 1) * math.log(place) - place - math.lgamma(shape)
    return lead - math.log1p(-min((shape - 1) / place, 0.999_999))
