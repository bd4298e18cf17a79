"""Three ways to turn signed noisy counts into counts of 0 or more with a given total.

Post-processing: free of charge, and biased (noise that would cancel is cut off on one side). The signed answers stay
in the transcript for whoever needs unbiased sums. Nothing here draws randomness.
"""

import math
from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError, nearest

__all__ = ["Negatives", "clip_rescale", "nonnegative", "norm_cut", "norm_sub"]

Negatives = Literal["clip_rescale", "norm_sub", "norm_cut"]
Floats = npt.NDArray[np.float64]


def clip_rescale(values: npt.ArrayLike, total: float) -> Floats:
    """Negatives set to 0, the rest scaled to the total; equal shares if nothing is positive.

    >>> clip_rescale([2, 2, 1, -1], 1.0).tolist()
    [0.4, 0.4, 0.2, 0.0]
    """
    clipped = np.maximum(_checked(values, total), 0.0)
    positive = clipped.sum()
    if positive <= 0.0:
        return np.full(clipped.size, total / clipped.size)
    return np.asarray(clipped * (total / positive))


def norm_sub(values: npt.ArrayLike, total: float) -> Floats:
    """The nearest vector (in Euclidean distance) of numbers of 0 or more with that total: (y − τ)+ for one τ.

    >>> norm_sub([5, -2, 1, 0.5, 3], 7.5).tolist()
    [4.5, 0.0, 0.5, 0.0, 2.5]
    """
    signed = _checked(values, total)
    if total == 0.0:
        return np.zeros(signed.size)
    # Duchi et al. 2008, Figure 1: with k values kept, τ_k = (sum of the k largest − total) / k; keep the largest k
    # whose smallest member still exceeds τ_k. Shifting all values changes τ only, so the largest is put at 0: then the
    # first comparison is 0 > −total and cannot be lost to rounding.
    signed -= signed.max()
    falling = np.sort(signed)[::-1]
    levels = (np.cumsum(falling) - total) / np.arange(1, signed.size + 1)
    kept = int(np.flatnonzero(falling > levels)[-1])
    projected = np.maximum(signed - levels[kept], 0.0)
    return np.asarray(projected * (total / projected.sum()))


def norm_cut(values: npt.ArrayLike, total: float) -> Floats:
    """Negatives set to 0, then the surplus taken away from the smallest positive values upward.

    Where the positive values fall short of the total they are scaled up to it.

    >>> norm_cut([5, -2, 1, 0.5, 3], 7.5).tolist()
    [5.0, 0.0, 0.0, 0.0, 2.5]
    """
    clipped = np.maximum(_checked(values, total), 0.0)
    surplus = clipped.sum() - total
    if surplus <= 0.0:
        return clip_rescale(clipped, total)
    order = np.argsort(clipped, kind="stable")
    rising = clipped[order]
    before = np.concatenate(([0.0], np.cumsum(rising)[:-1]))
    clipped[order] = rising - np.clip(surplus - before, 0.0, rising)
    return clipped


_WAYS: dict[str, Callable[[npt.ArrayLike, float], Floats]] = {
    "clip_rescale": clip_rescale,
    "norm_sub": norm_sub,
    "norm_cut": norm_cut,
}
assert set(_WAYS) == set(get_args(Negatives))


def nonnegative(way: str, values: npt.ArrayLike, total: float) -> Floats:
    """The values made non-negative in the named way; an unknown name raises with the closest one."""
    if way not in _WAYS:
        raise UsageError(f"negatives {way!r}", "is not a way to remove negative counts.", nearest(way, _WAYS))
    return _WAYS[way](values, total)


def _checked(values: npt.ArrayLike, total: float) -> Floats:
    if not math.isfinite(total) or total < 0.0:
        raise UsageError("total", f"must be a number of 0 or more, got {total!r}.")
    signed = np.array(values, dtype=np.float64).ravel()
    if not signed.size:
        raise UsageError("values", "must hold at least one cell.")
    return signed
