"""Bounds that only tests need: how far the log odds of a choice move, and the exact ε of one noisy integer.

The verdict on integer noise is against the exact curve of integer noise (integer Gaussian noise of small scale is not
Gaussian DP). Error rates get Clopper–Pearson bounds (`understudy.audit.bounds`); nothing is asymptotic.
"""

import math
from fractions import Fraction

import numpy as np

from understudy.arrays import Floats
from understudy.audit.bounds import EventRates
from understudy.domain import Distribution


def log_odds_lower(hits_without: int, hits_with: int, runs: int, confidence: float) -> float:
    """Lower bound on how far the log odds of one option move.

    The exponential mechanism at ε has privacy loss of range ε, so log odds move by at most ε: a far stronger test than
    the ratio of probabilities, and one that permute-and-flip charged at ε²/8 fails.
    """
    rates = EventRates.of(hits_without, hits_with, runs, confidence)
    low_with, high_without = rates.with_unit[0], rates.without[1]
    if not 0 < low_with < 1 or not 0 < high_without < 1:
        return 0.0
    return math.log(low_with / (1 - low_with)) - math.log(high_without / (1 - high_without))


def exact_epsilon(distribution: Distribution, shift: int, delta: Fraction | float) -> float:
    """ε of one noisy integer whose input moves by `shift`, by direct summation of the exact integer distribution."""
    scale = distribution.scale
    reach = int(60 * scale if distribution.kind == "laplace" else 40 * scale) + 8 + shift
    points = np.arange(-reach, reach + 1, dtype=np.float64)

    def log_weight(at: Floats) -> Floats:
        return -np.abs(at) / scale if distribution.kind == "laplace" else -(at**2) / (2 * scale * scale)

    log_total = float(np.logaddexp.reduce(log_weight(points)))
    here, there = log_weight(points) - log_total, log_weight(points - shift) - log_total

    def failure(epsilon: float) -> float:
        return float(np.sum(np.maximum(np.exp(here) - np.exp(epsilon + there), 0.0)))

    low, high = 0.0, 1.0
    while failure(high) > float(delta):
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if failure(middle) > float(delta) else (low, middle)
    return high
