"""How far apart two samples of scores lie."""

import numpy as np
import numpy.typing as npt

__all__ = ["kolmogorov_smirnov", "legacy_distance", "mean_squared_deviation"]

Floats = npt.NDArray[np.float64]

GRID = 10_000


def kolmogorov_smirnov(first: Floats, second: Floats) -> float:
    """The largest distance of the two empirical distribution functions.

    >>> kolmogorov_smirnov(np.array([0.2, 0.3, 0.3, 0.4, 0.5]), np.array([0.3, 0.5, 0.6, 0.6, 0.7]))
    0.6
    """
    places = np.unique(np.concatenate([first, second]))
    return float(np.abs(_shares(first, places) - _shares(second, places)).max())


def legacy_distance(first: Floats, second: Floats) -> float:
    """What a published script computes instead: the distance of the *values* of both functions on a grid of [0, 1].

    Only for comparison with figures printed from that script.
    """
    grid = np.arange(GRID + 1) / GRID
    return kolmogorov_smirnov(_shares(first, grid), _shares(second, grid))


def mean_squared_deviation(scores: Floats, share: float) -> float:
    """pMSE: the mean squared distance of the scores from the share of synthetic rows."""
    return float(np.mean((scores - share) ** 2))


def _shares(sample: Floats, places: Floats) -> Floats:
    return np.searchsorted(np.sort(sample), places, side="right") / len(sample)
