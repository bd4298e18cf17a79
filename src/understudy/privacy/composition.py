"""ε of several answers with integer Gaussian noise taken together, by summing their exact distributions.

Setting. One unit is one row. Every answer is a histogram, so neighbours differ by one in one cell of it, and the
answer is dominated by the pair "integer Gaussian noise of σ²" against "the same, moved by one". The privacy loss of
one answer at noise x is (1 − 2x)/(2σ²). Losses of answers add up, also when later queries depend on earlier
answers, as long as the scales were fixed beforehand. So with L the sum of independent losses,

    δ(ε) = E[(1 − e^(ε − L))⁺],

for adding a row as for removing one, because the noise is symmetric. zCDP bounds the same quantity through one number
(ρ) and ends 6–8 % higher.

Numbers. Answers of equal scale form a group; its loss depends on the sum S of m integers alone, (m − 2S)/(2σ²), so it
lies on a lattice and nothing is rounded. Groups are then put on one fine grid, rounding losses up, and added.
Distributions are tilted by e^(τL) first, so that the far tail, where δ comes from, is computed with full relative
accuracy. The rest is float arithmetic; the result is raised by a margin far above its rounding errors.
"""

import math
from collections import Counter
from fractions import Fraction
from functools import lru_cache

import numpy as np

from understudy.arrays import Floats, Ints

_REACH = 12.0  # standard deviations kept on either side: what lies beyond has mass below 10⁻³⁰
_GRID_STEPS = 4000.0  # grid steps per standard deviation of the loss
_MARGIN = 1e-6  # relative, on δ and on ε
_LARGEST_SUPPORT = 2**21


@lru_cache(maxsize=64)
def tight_epsilon(variances: tuple[Fraction, ...], delta: Fraction) -> float | None:
    """An ε that answers with these noise variances satisfy together with δ; None where it cannot be computed.

    At most a thousandth above the exact value. None if the noise is so small or so large, or δ so small, that float
    arithmetic does not fix it; whoever asks then falls back on zCDP.
    """
    if not variances or not 1e-15 < delta < 1 or min(variances) < Fraction(1, 100):
        return None
    rho = float(sum(Fraction(1, 2) / variance for variance in variances))
    if not 1e-9 < rho < 50:
        return None
    # About the order at which zCDP would convert: tilted by it, the distribution is centred where δ comes from.
    tilt = max(1.0, math.sqrt(math.log(1 / float(delta)) / rho))
    groups = Counter(variances)
    # Each group is rounded up to the grid once, so more groups need a finer one.
    step = math.sqrt(2 * rho) / (_GRID_STEPS * max(1.0, len(groups) / 8))
    if max(_REACH * math.sqrt(float(variance) * count) for variance, count in groups.items()) > _LARGEST_SUPPORT:
        return None
    first, distribution, log_mass = 0, np.ones(1), 0.0
    for variance, count in groups.items():
        values, masses, log_part = _group(float(variance), count, tilt)
        start, part = _on_grid(values, masses, tilt, step)
        first, distribution, log_mass = first + start, _convolve(distribution, part), log_mass + log_part
    losses = np.arange(first, first + distribution.size, dtype=np.float64) * step
    return _solve(losses, distribution, tilt, log_mass, float(delta))


@lru_cache(maxsize=64)
def tight_factor(variances: tuple[Fraction, ...], epsilon: Fraction, delta: Fraction) -> Fraction:
    """By how much these variances may be divided and still give (ε, δ); 1 if by nothing, or if it is not known."""
    best, trial = Fraction(1), Fraction(1)
    for _ in range(8):
        found = tight_epsilon(tuple(variance / trial for variance in variances), delta)
        if not found:
            break
        if found <= epsilon:
            best = max(best, trial)
            if found > float(epsilon) * (1 - 2e-7):
                break
        # ε grows about as the square root of the factor; aim just below the target, so that the last trial is safe.
        trial = Fraction(float(trial) * (float(epsilon) / found) ** 2 * (1 - 1e-7))
    return best


def _group(variance: float, count: int, tilt: float) -> tuple[Floats, Floats, float]:
    """Losses of `count` equal answers, their tilted probabilities, and the log of the mass before scaling to 1."""
    # e^(τ(1−2x)/(2σ²)) moves the mean of the noise to −τ: the tilted distribution is centred there.
    shift, sigma = round(tilt), math.sqrt(variance)
    reach = math.ceil(_REACH * sigma) + 8
    noise = np.arange(-reach, reach + 1, dtype=np.float64) - shift
    around = np.arange(-math.ceil(40 * sigma) - 8, math.ceil(40 * sigma) + 9, dtype=np.float64)
    log_total = float(np.logaddexp.reduce(-(around**2) / (2 * variance)))
    tilted = -(noise**2) / (2 * variance) - log_total + tilt * (1 - 2 * noise) / (2 * variance)
    log_one = float(np.logaddexp.reduce(tilted))
    sums, distribution = _power(np.exp(tilted - log_one), reach, count)
    return (count - 2 * (sums - count * shift)) / (2 * variance), distribution, count * log_one


def _power(distribution: Floats, reach: int, count: int) -> tuple[Ints, Floats]:
    """Values and distribution of the sum of `count` draws from −reach … reach, where it has mass.

    A cyclic convolution suffices: the sum lies within `_REACH` standard deviations of its mean.
    """
    places = np.arange(-reach, reach + 1)
    mean = float(places @ distribution)
    deviation = math.sqrt(max(float((places - mean) ** 2 @ distribution), 1e-12) * count)
    # Twelve deviations to either side, so what wraps around has mass below 10⁻³⁰.
    length = 1 << math.ceil(math.log2(max(2 * _REACH * deviation + 64, distribution.size)))
    folded = np.zeros(length)
    folded[places % length] = distribution
    summed = np.maximum(np.fft.irfft(np.fft.rfft(folded) ** count, length), 0.0)
    values = round(count * mean) + np.arange(-length // 2, length // 2)
    return values, summed[values % length]


def _on_grid(losses: Floats, distribution: Floats, tilt: float, step: float) -> tuple[int, Floats]:
    """The group's distribution on multiples of `step`, every loss rounded up; its first multiple.

    A tilted probability that moves up by r is multiplied by e^(τr), so that the true one stays the same.
    """
    kept = distribution > 1e-25 * distribution.max()
    places = np.ceil(losses[kept] / step).astype(np.int64)
    first = int(places.min())
    weights = distribution[kept] * np.exp(tilt * (places * step - losses[kept]))
    return first, np.bincount(places - first, weights=weights).astype(np.float64)


def _convolve(one: Floats, other: Floats) -> Floats:
    if min(one.size, other.size) == 1:
        return np.asarray(one * other[0] if other.size == 1 else other * one[0])
    size = one.size + other.size - 1
    length = 1 << (size - 1).bit_length()
    summed = np.fft.irfft(np.fft.rfft(one, length) * np.fft.rfft(other, length), length)[:size]
    # Transforms leave tiny negative numbers where probabilities are 0.
    return np.asarray(np.maximum(summed, 0.0))


def _solve(losses: Floats, distribution: Floats, tilt: float, log_mass: float, delta: float) -> float | None:
    """The smallest ε with δ(ε) ≤ δ, by bisection."""
    low, high = 0.0, float(losses[-1])
    first = int(np.searchsorted(losses, low, side="right"))  # no other loss ever counts; far below, e^(−τL) overflows
    losses = losses[first:]
    with np.errstate(divide="ignore"):
        untilted = np.exp(np.log(distribution[first:]) - tilt * losses + log_mass)

    def failure(epsilon: float) -> float:
        above = int(np.searchsorted(losses, epsilon, side="right"))  # losses lie on a grid, in order
        return float(np.sum(untilted[above:] * -np.expm1(epsilon - losses[above:]))) * (1 + _MARGIN)

    if failure(high) > delta or failure(low) <= delta:
        return 0.0 if failure(low) <= delta else None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if failure(middle) > delta else (low, middle)
    return high * (1 + _MARGIN)
