"""Chi-square tests of integer samples against distributions computed in floats, separately from the product."""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy import stats

Ints = npt.NDArray[np.int64]
Distribution = Mapping[int, float]


def laplace_distribution(scale: float, reach: float = 40.0) -> dict[int, float]:
    """Probabilities of discrete Laplace noise."""
    ratio = math.exp(-1 / scale)
    end = int(reach * scale) + 2
    return {k: (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-end, end + 1)}


def gaussian_distribution(variance: float, reach: float = 9.0) -> dict[int, float]:
    """Probabilities of discrete Gaussian noise."""
    end = int(reach * math.sqrt(variance)) + 2
    weights = {k: math.exp(-k * k / (2 * variance)) for k in range(-end, end + 1)}
    total = sum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


def geometric_distribution(ratio: float, end: int) -> dict[int, float]:
    """Probabilities of a geometric number below `end`."""
    return {k: (1 - ratio) * ratio**k for k in range(end)}


def z_score(values: Ints, distribution: Distribution, cells: int = 400) -> float:
    """How many standard normal deviations the fit is from chance: Pearson's test, its p-value written as z.

    Neighbouring values share a cell, so that there are at most `cells` and each is expected at least 25 times. What
    the distribution does not list is expected with the probability that is left over.
    """
    keys = np.array(sorted(distribution))
    probabilities = np.array([distribution[int(key)] for key in keys])
    least = max(25 / values.size, 1 / cells)
    cell_of_key = _cells(probabilities, least)
    expected = np.bincount(cell_of_key, probabilities) * values.size
    at = np.searchsorted(keys, values)
    known = (at < keys.size) & (keys[np.minimum(at, keys.size - 1)] == values)
    observed = np.bincount(cell_of_key[at[known]], minlength=expected.size).astype(float)
    rest = values.size - expected.sum()
    if rest < 1e-6 * values.size and np.count_nonzero(~known) > 20:
        return math.inf
    observed[-1] += np.count_nonzero(~known)
    expected[-1] += rest
    if expected.size == 1:
        return 0.0 if observed[0] == values.size else math.inf
    return pearson(observed, expected)


def _cells(probabilities: npt.NDArray[np.float64], least: float) -> npt.NDArray[np.int64]:
    """Cell of each value: cells are filled from the left up to `least`; a remainder joins the last full one."""
    cell, mass, out = 0, 0.0, np.empty(probabilities.size, dtype=np.int64)
    for at, probability in enumerate(probabilities.tolist()):
        out[at] = cell
        mass += probability
        if mass >= least:
            cell, mass = cell + 1, 0.0
    return np.minimum(out, max(cell - 1, 0))


def pearson(observed: npt.NDArray[np.float64], expected: npt.NDArray[np.float64], lost: int = 1) -> float:
    """z of Pearson's statistic with `lost` degrees of freedom fewer than cells."""
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return float(stats.norm.isf(stats.chi2.sf(statistic, observed.size - lost)))


def two_sample_z(first: Ints, second: Ints) -> float:
    """z of the test that two integer samples have the same distribution."""
    both = np.sort(np.concatenate([first, second]))
    edges = np.unique(both[:: max(1, both.size // 40)])
    tables = [
        np.bincount(np.searchsorted(edges, sample, side="right"), minlength=edges.size + 1)
        for sample in (first, second)
    ]
    counts = np.array(tables, dtype=float)
    counts = counts[:, counts.sum(axis=0) > 0]
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return float(stats.norm.isf(stats.chi2.sf(statistic, counts.shape[1] - 1)))
