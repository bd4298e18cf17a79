"""From a price to noise: which law, which selection rate, which threshold. Exact fractions, rounded against us.

k is the most rows one unit holds, so neighbouring tables differ by at most k rows, all added or all removed.

`law_for`  A histogram moves by at most Δ = k in L1 and in L2. Discrete Laplace noise of scale b changes each
    probability by at most e^(L1/b), so b = Δ/ε is ε-DP (Ghosh, Roughgarden, Sundararajan 2009). Discrete Gaussian
    noise of parameter σ² on integers moved by at most Δ in L2 is Δ²/(2σ²)-zCDP (Canonne, Kamath, Steinke 2020,
    Theorem 4), so σ² = Δ²/(2ρ). Laplace noise paid in ρ: ε-DP is ε²/2-zCDP (Bun, Steinke 2016, Proposition 1.4),
    so ε is √(2ρ) rounded down.

`selection_rate`  P(i) ∝ e^(rate·score_i). Between neighbours each score moves by at most Δ, so the log-probabilities
    of two options move against each other by at most 2Δ·rate, or Δ·rate if all scores move in the same direction
    ("monotone"). That range is ε: rate = ε/(2Δ), or ε/Δ. A mechanism whose privacy loss has range ε is ε-DP and
    ε²/8-zCDP (Cesar, Rogers 2021), so ε is √(8ρ) rounded down.

`discovery_threshold`  Labels in one table only are held by a single unit: at most k labels of at most k rows each.
    Any of them shows with probability ≤ k·P(noise ≥ τ − k), which must be ≤ δ. For labels in both tables the counts
    differ by at most k in L1 altogether, so Laplace noise of scale k/ε gives ε: (ε, δ)-DP in all.

`score_law`  P scores, each moved by at most Δ by one unit: by at most P·Δ in L1 and √P·Δ in L2. So b = P·Δ/ε, and
    σ² = P·Δ²/(2ρ).

`growth_rule`  PrivTree on a grid of 1/GROWTH_UNIT rows; `questions/growth.py` proves it. For decay β, one row costs
    ε' if λ = (2β − 1)/((β − 1)·ε') and the bias per level is at least λ·ln β and at least one row. k rows are k single
    rows one after the other, so ε' = ε/k. Paid in ρ: ε-DP is ε²/2-zCDP, so ε is √(2ρ) rounded down.

`check_sparse`  how many empty cells of a huge table pass the threshold by noise alone, a public number.
"""

import math
from fractions import Fraction

from understudy.errors import UsageError
from understudy.marginals.answer import GROWTH_UNIT, Law
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost
from understudy.privacy.exact.interval import Interval, exp_minus

__all__ = [
    "LARGEST_SCALE",
    "LARGEST_SCORE_VARIANCE",
    "LARGEST_VARIANCE",
    "MOST_KEPT",
    "check_sparse",
    "discovery_threshold",
    "growth_rule",
    "law_for",
    "score_law",
    "selection_rate",
]

LARGEST_SCALE = Fraction(2**60)
LARGEST_VARIANCE = Fraction(2**40)
LARGEST_SCORE_VARIANCE = Fraction(2**100)
LARGEST_DECAY = 2**20
_LARGEST_GROWTH_SCALE = Fraction(2**40)
MOST_KEPT = 50_000_000
_ROOT_UNIT = 10**18  # square roots are rounded down to this resolution
_BITS = 192


def law_for(cost: Cost, sensitivity: int, step: str, *, laplace: bool = False) -> Law:
    """The noise that makes a histogram of that sensitivity cost exactly `cost` (or less, by rounding).

    Args:
        cost: either ε (Laplace noise) or ρ (Gaussian noise); its δ plays no part here.
        sensitivity: most rows one unit holds.
        step: named in error messages.
        laplace: Laplace noise also where the price is ρ.
    """
    if sensitivity < 1:
        raise UsageError(step, f"the sensitivity must be at least 1, got {sensitivity}.")
    if laplace or _in_epsilon(cost, step):
        return Law("laplace", _within(Fraction(sensitivity) / _epsilon(cost, 2, step), LARGEST_SCALE, step))
    variance = Fraction(sensitivity**2 * UNIT, 2 * cost.rho)
    return Law("gaussian", _within(variance, LARGEST_VARIANCE, step))


def selection_rate(cost: Cost, sensitivity: Fraction, step: str, *, monotone: bool) -> Fraction:
    """The rate per unit of score at which the exponential mechanism costs `cost`."""
    if sensitivity <= 0:
        raise UsageError(step, f"the sensitivity of a score must be above 0, got {sensitivity}.")
    epsilon = _epsilon(cost, 8, step)
    return epsilon / sensitivity if monotone else epsilon / (2 * sensitivity)


def score_law(cost: Cost, options: int, sensitivity: Fraction, step: str) -> Law:
    """The noise that makes that many scores, none moved by more than `sensitivity`, cost `cost` in all."""
    if sensitivity <= 0 or options < 1:
        raise UsageError(step, "needs at least one score, and a sensitivity above 0.")
    if _in_epsilon(cost, step):
        return Law("laplace", _within(options * sensitivity / _epsilon(cost, 2, step), LARGEST_SCALE, step))
    variance = options * sensitivity**2 * Fraction(UNIT, 2 * cost.rho)
    return Law("gaussian", _within(variance, LARGEST_SCORE_VARIANCE, step))


def growth_rule(cost: Cost, unit_rows: int, decay: Fraction, step: str) -> tuple[Law, int]:
    """Noise and bias per level, both in 1/GROWTH_UNIT rows, at which growing a whole tree costs `cost`."""
    if not 2 <= decay <= LARGEST_DECAY:
        raise UsageError(step, f"the decay must lie between 2 and {LARGEST_DECAY:,}, got {float(decay)!r}.")
    if unit_rows < 1:
        raise UsageError(step, f"the rows of a unit must be at least 1, got {unit_rows}.")
    per_row = _epsilon(cost, 2, step) / unit_rows
    scale = _within((2 * decay - 1) / ((decay - 1) * per_row) * GROWTH_UNIT, _LARGEST_GROWTH_SCALE, step)
    # The float only says where to begin; what is returned is proved: e^(−bias/scale) ≤ 1/decay.
    bias = max(GROWTH_UNIT, math.floor(float(scale) * math.log(decay)) - 2)
    while Fraction(exp_minus(bias / scale, _BITS)[1], 1 << _BITS) > 1 / decay:
        bias += 1
    return Law("laplace", scale), bias


def discovery_threshold(law: Law, unit_rows: int, delta_units: int, step: str) -> int:
    """The smallest threshold τ with unit_rows · P(noise ≥ τ − unit_rows) ≤ δ, proved by intervals."""
    if law.kind != "laplace":
        raise UsageError(step, "labels are discovered with Laplace noise.")
    if unit_rows < 1:
        raise UsageError(step, f"the rows of a unit must be at least 1, got {unit_rows}.")
    if not 0 < delta_units < DELTA_UNIT:
        raise UsageError(
            step,
            "needs a part of δ above 0 and below 1: it is the chance that a label of a single unit shows.",
            "Grant a budget with delta, for example 1e-9, or declare the labels in the schema.",
        )
    target = Fraction(delta_units, DELTA_UNIT) / unit_rows
    # P(noise ≥ m) = q^m / (1 + q) falls in m, so the answer is found by bisection on the proved upper bound.
    above = 1
    while not _tail_at_most(law.parameter, above, target):
        above *= 2
    below = above // 2
    while above - below > 1:
        middle = (above + below) // 2
        if _tail_at_most(law.parameter, middle, target):
            above = middle
        else:
            below = middle
    return above + unit_rows


def check_sparse(law: Law, cells: int, threshold: int, step: str) -> None:
    """Refuses a sparse table of which so many empty cells would be kept that the answer cannot be held.

    Depends on public numbers only, so that it can run before anything is charged or read.
    """
    if law.kind != "laplace":
        raise UsageError(step, "sparse noise is Laplace noise.")
    lower, _ = _tail(law.parameter, threshold, _BITS)
    if cells * lower > MOST_KEPT << _BITS:
        needed = threshold
        while cells * _tail(law.parameter, needed, _BITS)[0] > MOST_KEPT << _BITS:
            needed += max(1, math.ceil(law.parameter / 8))
        raise UsageError(
            step,
            f"at threshold {threshold} noise alone would keep more than {MOST_KEPT:,} empty cells of {cells:,}.",
            f"Use a threshold of about {needed} or more, fewer columns, or a larger budget.",
        )


def _tail(scale: Fraction, least: int, bits: int) -> Interval:
    """Bounds of P(discrete Laplace noise ≥ least) = q^least / (1 + q) for least ≥ 1."""
    one = 1 << bits
    at_lower, at_upper = exp_minus(least / scale, bits)
    ratio_lower, ratio_upper = exp_minus(1 / scale, bits)
    return (at_lower << bits) // (one + ratio_upper), -(-(at_upper << bits) // (one + ratio_lower))


def _tail_at_most(scale: Fraction, least: int, target: Fraction) -> bool:
    """Whether the tail is proved to be at most the target; a tie that 192 bits cannot decide counts as no."""
    return Fraction(_tail(scale, least, _BITS)[1], 1 << _BITS) <= target


def _in_epsilon(cost: Cost, step: str) -> bool:
    if cost.epsilon and cost.rho:
        raise UsageError(step, f"must be paid in ε or in ρ, not in both ({cost}).")
    if not cost.epsilon and not cost.rho:
        raise UsageError(
            step, "gets no share of the budget, so its noise would be infinite.", "Ask fewer questions or grant more."
        )
    return bool(cost.epsilon)


def _epsilon(cost: Cost, factor: int, step: str) -> Fraction:
    """ε of the cost, or √(factor · ρ) rounded down."""
    if _in_epsilon(cost, step):
        return Fraction(cost.epsilon, UNIT)
    return Fraction(math.isqrt(factor * cost.rho * (_ROOT_UNIT**2 // UNIT)), _ROOT_UNIT)


def _within(parameter: Fraction, largest: Fraction, step: str) -> Fraction:
    if parameter > largest:
        raise UsageError(
            step,
            "the noise would drown every count: the share of the budget is too small.",
            "Ask fewer questions, bound the rows of a unit more tightly, or grant more.",
        )
    return parameter
