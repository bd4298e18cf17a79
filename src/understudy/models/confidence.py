"""How far a fitted model can be from the private table on what was measured, from noisy answers alone.

The exact counts of a measured table are y − z, with y the noisy answer and z the noise, so for any model counts m

    ‖exact − m‖₁ ≤ ‖y − m‖₁ + ‖z‖₁,

and ‖z‖₁, a sum of independent |z_i| of known law, stays below a bound with any wanted confidence. The bound is
Chernoff's, with the law's own moment generating function, so it holds for every number of cells. (The bound that comes
with AIM has the same shape but uses that the noise is sub-Gaussian, which costs a factor of about 1.5.)
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from understudy.marginals.answer import Law

__all__ = ["misplaced_share", "noise_sum_bound"]

_CONTINUOUS = 50.0  # from this σ on, sums over integers equal integrals to all digits of a float
_GOLDEN = (math.sqrt(5) - 1) / 2


def misplaced_share(noisy: npt.ArrayLike, model_counts: npt.ArrayLike, law: Law, confidence: float = 0.95) -> float:
    """Largest share of records that the model puts in a wrong cell of a measured table, with that confidence.

    Half the L1 distance, over the model's total; 1 if the model is empty.
    """
    answer, model = np.asarray(noisy, dtype=np.float64), np.asarray(model_counts, dtype=np.float64)
    total = float(model.sum())
    if total <= 0:
        return 1.0
    distance = float(np.abs(answer - model).sum()) + noise_sum_bound(law, answer.size, confidence)
    return min(1.0, distance / (2 * total))


@lru_cache(maxsize=4096)
def noise_sum_bound(law: Law, cells: int, confidence: float) -> float:
    """What the sum of |noise| over `cells` cells stays below with that confidence."""
    surprise = -math.log(1 - confidence)

    def bound(log_rate: float) -> float:
        rate = math.exp(log_rate)
        return (cells * _log_mean_exp(law, rate) + surprise) / rate

    # Rates are measured in noise scales; for Laplace noise they must stay below one.
    low, high = math.log(1e-6 / law.scale), math.log((1 - 1e-9 if law.kind == "laplace" else 40.0) / law.scale)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = bound(left), bound(right)
    for _ in range(60):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = bound(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = bound(right)
    return min(at_left, at_right)


def _log_mean_exp(law: Law, rate: float) -> float:
    """log E e^(rate·|z|)."""
    if law.kind == "laplace":
        decay = math.exp(-1.0 / law.scale)
        grown = math.exp(rate - 1.0 / law.scale)
        return math.log((1 - decay) / (1 + decay) * (1 + 2 * grown / (1 - grown)))
    sigma = law.scale
    if sigma >= _CONTINUOUS:
        half_normal = 1 + math.erf(rate * sigma / math.sqrt(2))  # 2Φ(rate·σ)
        return (rate * sigma) ** 2 / 2 + math.log(half_normal)
    sizes = np.arange(math.ceil(60 * sigma) + 2, dtype=np.float64)
    weights = -(sizes**2) / (2 * sigma * sigma) + np.where(sizes > 0, math.log(2), 0.0)
    return float(np.logaddexp.reduce(weights + rate * sizes) - np.logaddexp.reduce(weights))
