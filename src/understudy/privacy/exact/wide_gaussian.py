"""Discrete Gaussian numbers of any variance, exact in law, for the few numbers whose scale no table can hold.

P(k) ∝ e^(−k²/(2·variance)) by rejection (Canonne, Kamath, Steinke 2020, Algorithm 3): with t = ⌊σ⌋ + 1 a proposal Y is
discrete Laplace of scale t, and it is kept with probability e^(−(|Y| − variance/t)²/(2·variance)). Completing the
square, e^(−|y|/t) · e^(−(|y| − variance/t)²/(2·variance)) = e^(−y²/(2·variance)) · constant, so what is kept has the
law wanted. About three proposals in four are kept.

Whether to keep is decided by comparing a uniform number, of which bits are drawn as needed, with bounds of the
exponential: exact, no floats. A proposal that `discrete_laplace` cut at 2⁶² is drawn on without a cut, which is easy
because magnitudes have no memory: given that |Y| ≥ m, |Y| − m is geometric again.
"""

import math
import os
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from understudy.privacy.exact.interval import exp_minus

__all__ = ["happens", "wide_gaussian"]

Ints = npt.NDArray[np.int64]
Draw = Callable[[int, Fraction], Ints]


def wide_gaussian(size: int, variance: Fraction, laplace: Draw, geometric: Draw, largest: int) -> Ints:
    """Independent integers with P(k) ∝ e^(−k²/(2·variance)); those beyond ±`largest` are reported as ±`largest`.

    Args:
        size: how many.
        variance: above 0.
        laplace: draws discrete Laplace noise of a scale, cut at ±`largest`.
        geometric: draws numbers with P(k) ∝ e^(−k/scale), cut at `largest`.
        largest: where the two draws, and this one, are cut.
    """
    scale = Fraction(math.isqrt(math.floor(variance)) + 1)
    kept: list[int] = []
    while len(kept) < size:
        for proposal in laplace(size - len(kept), scale).tolist():
            magnitude = more = abs(proposal)
            while more == largest:  # cut there: what lies beyond is drawn anew
                more = int(geometric(1, scale)[0])
                magnitude += more
            if happens((magnitude - variance / scale) ** 2 / (2 * variance)):
                kept.append(min(magnitude, largest) * (1 if proposal >= 0 else -1))
    return np.array(kept, dtype=np.int64)


def happens(exponent: Fraction) -> bool:
    """True with probability e^−exponent exactly, for an exponent ≥ 0."""
    bits, number = 64, int.from_bytes(os.urandom(8), "little")
    while True:
        lower, upper = exp_minus(exponent, bits)
        if number + 1 <= lower:
            return True
        if number >= upper:
            return False
        number = number << bits | int.from_bytes(os.urandom(bits // 8), "little")
        bits *= 2
