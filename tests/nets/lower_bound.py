"""Empirical lower bounds: how much a mechanism provably leaks, from repeated runs on one worst-case pair.

Every bound is one-sided: "with this confidence the mechanism leaks at least this much". A bound above the claim is a
violation; a bound far below the claim where the game is tight means that the audit has lost its power, which is also
a failure. The verdict on integer noise is against the exact curve of integer noise (integer Gaussian noise of small
scale is not Gaussian DP). Error rates get Clopper–Pearson bounds; nothing is asymptotic.
"""

import math
from fractions import Fraction

import numpy as np

from understudy.arrays import Floats
from understudy.domain import Distribution


def rate_bounds(hits: int, runs: int, confidence: float) -> tuple[float, float]:
    """Clopper–Pearson bounds of a success rate, each holding with the given confidence.

    >>> low, high = rate_bounds(50, 100, 0.999)
    >>> low < 0.5 < high
    True
    """
    from scipy.special import betaincinv

    alpha = 1 - confidence
    low = 0.0 if hits == 0 else float(betaincinv(hits, runs - hits + 1, alpha))
    high = 1.0 if hits == runs else float(betaincinv(hits + 1, runs - hits, 1 - alpha))
    return low, high


def epsilon_lower(hits_without: int, hits_with: int, runs: int, confidence: float, *, delta: float = 0.0) -> float:
    """Lower bound on ε from how often one event occurs without and with the extra unit (both of `runs` runs).

    (ε, δ)-DP demands p₁ ≤ e^ε p₀ + δ in both directions and for the complement.
    """
    half = 1 - (1 - confidence) / 2
    low_with, high_with = rate_bounds(hits_with, runs, half)
    low_without, high_without = rate_bounds(hits_without, runs, half)
    candidates = [
        (low_with - delta, high_without),
        (low_without - delta, high_with),
        (1 - high_with - delta, 1 - low_without),
        (1 - high_without - delta, 1 - low_with),
    ]
    return max([0.0, *(math.log(top / bottom) for top, bottom in candidates if top > 0 and bottom > 0)])


def log_odds_lower(hits_without: int, hits_with: int, runs: int, confidence: float) -> float:
    """Lower bound on how far the log odds of one option move.

    The exponential mechanism at ε has privacy loss of range ε, so log odds move by at most ε: a far stronger test than
    the ratio of probabilities, and one that permute-and-flip charged at ε²/8 fails.
    """
    half = 1 - (1 - confidence) / 2
    low_with, _ = rate_bounds(hits_with, runs, half)
    _, high_without = rate_bounds(hits_without, runs, half)
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
