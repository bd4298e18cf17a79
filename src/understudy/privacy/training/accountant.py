"""What training costs: Rényi divergence of noisy sums over sampled units, added up over steps and turned into (ε, δ).

One step. Every unit is sampled on its own with probability q at most; the units sampled add integer vectors of L2 norm
at most C to a sum; every coordinate of the sum gets discrete Gaussian noise of variance s². Claim: at every integer
order α ≥ 2 neighbours have Rényi divergence at most log(A_α) / (α − 1) in both directions, where with c = C²/(2s²)

    A_α = Σ_k binom(α, k) (1 − q)^(α−k) q^k e^((k² − k)·c).

Proof. Fix the coins and contributions of all other units: they have the same law in both tables, and x^α y^(1−α) is
jointly convex, so it is enough to compare, for one fixed sum (moved to 0), the law P of the noise alone with
Q = (1 − q)·P + q·P_μ, where P_μ is P moved by the extra unit's vector μ. Let r = P_μ/P = e^((2⟨x,μ⟩ − ‖μ‖²)/(2s²)).

(1) E_P[r^k] = e^((k²−k)‖μ‖²/(2s²)) exactly: completing the square leaves the sum of e^(−‖x − kμ‖²/(2s²)) over the
    integer lattice, and kμ is a lattice vector, so that sum is the normaliser of P. Expanding L = 1 − q + q·r gives
    E_P[(Q/P)^α] = E_P[L^α] = Σ_k binom(α, k)(1−q)^(α−k) q^k E_P[r^k] ≤ A_α, because every term rises with ‖μ‖ ≤ C. It
    rises with q as well: E_P[(1 + q(r−1))^α] is convex in q with slope 0 at q = 0. So an upper bound of q is safe.
(2) The other direction, E_Q[(P/Q)^α] = E_P[L^(1−α)], is no larger. The reflection x → μ − x of the lattice swaps P and
    P_μ, so E_P[g(r)] = E_P[r·g(1/r)] for every g. Averaging both forms, E_P[L^α − L^(1−α)] ≥ 0 follows from

        f(a) + r·f(b) ≥ 0,   f(x) = x^α − x^(1−α) = 2√x·sinh((α − ½) log x),   a = 1 − q + qr,   b = 1 − q + q/r.

    Let r ≥ 1 (else exchange r and 1/r). Then a ≥ 1 ≥ b, f(b) = −b·f(1/b), and a·b = 1 + q(1−q)(r + 1/r − 2) ≥ 1, so
    a ≥ 1/b ≥ 1. The quotient f(a) / (r·b·f(1/b)) is a positive number times sinh(βx)/sinh(βy) with β = α − ½ and
    x = log a ≥ y = log(1/b) ≥ 0; that rises with β, and at α = 1 it is (a − 1)/(r − r·b) = 1. So it is at least 1.

Steps. A unit's vector may depend on the unit and on all earlier noisy sums, which are public: Rényi divergences of one
order add up (Mironov 2017). A look at every unit (q = 1) with noise of its own is a step with A_α = e^((α²−α)·c).

(ε, δ). D_α ≤ R implies (ε, δ)-DP for ε = R + log(1 − 1/α) − (log δ + log α)/(α − 1) (Canonne, Kamath, Steinke 2020,
Proposition 12). Every order gives a valid ε; the best of a fixed list is taken.

Arithmetic. Floats. A_α − 1 is summed instead of A_α (the terms k = 0 and 1 cancel), so that all terms are positive and
nothing is lost to cancellation; each logarithm of a term is off by less than 10⁻⁸ for α ≤ 2¹⁶. Divergences are raised
by one part in 10⁶ and ε by 10⁻⁹, far above all rounding. σ is found by bisection, and accepted by this bound alone.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError
from understudy.marginals.answer import Course, Law
from understudy.privacy.calibrate import LARGEST_VARIANCE
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost

__all__ = ["ORDERS", "Part", "course_parts", "epsilon_of", "parts_epsilon", "rate_of", "renyi", "training_laws"]

Floats = npt.NDArray[np.float64]

ORDERS: tuple[int, ...] = tuple(
    sorted({*range(2, 65), *(round(64 * 1.1**power) for power in range(1, 73)), 200, 2**16})
)
"""Orders that are tried: all up to 64, then steps of a tenth."""

_RAISED = 1 + 1e-6
_ABOVE = 1e-9
_GRID = 2**10
_LEAST_VARIANCE = Fraction(1, _GRID)
_BISECTIONS = 40


@dataclass(frozen=True, slots=True)
class Part:
    """`steps` noisy sums over units sampled at `rate`, with noise of `multiplier` times the bound of a contribution."""

    rate: float
    multiplier: float
    steps: int = 1


def renyi(part: Part, order: int) -> float:
    """Rényi divergence of that integer order for all steps of the part, both directions, rounded up."""
    if not 0 < part.rate <= 1 or not part.multiplier > 0 or part.steps < 0 or order < 2:
        raise UsageError("training", "needs a rate above 0 and at most 1, noise above 0 and orders of 2 or more.")
    half = 1 / (2 * part.multiplier**2)
    if part.rate == 1:
        return part.steps * order * half * _RAISED
    exponents = _pairs(order) * half
    small = np.minimum(exponents, 40.0)  # beyond, e^x − 1 is e^x to the last digit
    logs = _log_binomial(order, part.rate) + np.where(exponents > 40.0, exponents, np.log(np.expm1(small)))
    log_excess = float(np.logaddexp.reduce(logs))
    log_moment = log_excess + math.log1p(math.exp(-log_excess)) if log_excess > 30 else math.log1p(math.exp(log_excess))
    return part.steps * log_moment / (order - 1) * _RAISED


def epsilon_of(divergence: float, order: int, delta: float, *, tight: bool = True) -> float:
    """ε that a Rényi divergence of that order gives beside δ; the classical conversion is for comparison only."""
    if tight:
        return divergence + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
    return divergence - math.log(delta) / (order - 1)


def parts_epsilon(parts: Sequence[Part], delta: float, orders: Sequence[int] = ORDERS, *, tight: bool = True) -> float:
    """The smallest ε over the orders, for all parts together, rounded up; never below 0."""
    if not 0 < delta < 1:
        raise UsageError("training", "needs δ above 0 and below 1.", "Give --delta, for example 1e-9.")

    @functools.cache
    def at(place: int) -> float:
        order = orders[place]
        return epsilon_of(sum(renyi(part, order) for part in parts), order, delta, tight=tight)

    # Any order is valid. The curve falls and then rises, so a coarse scan and its neighbourhood find the best.
    stride = max(1, math.isqrt(len(orders)))
    best = min(range(0, len(orders), stride), key=at)
    near = range(max(0, best - stride), min(len(orders), best + stride + 1))
    return max(0.0, min(map(at, near))) + _ABOVE


def course_parts(course: Course, first: Law | None, law: Law) -> list[Part]:
    """What a course with that noise consists of."""
    parts = [] if first is None else [Part(1.0, first.scale / course.clip)]
    return [*parts, Part(rate_of(course.gap), law.scale / course.clip, course.steps)]


@functools.lru_cache(maxsize=256)
def training_laws(cost: Cost, course: Course, step: str) -> tuple[Law | None, Law]:
    """Noise of the first look (none without one) and of every step, at which the whole course costs `cost`.

    The first look gets the noise that would cost `first_share` of ε by itself; the steps get the least noise with which
    everything together still keeps to (ε, δ).
    """
    _check(cost, course, step)
    epsilon, delta = cost.epsilon / UNIT, cost.delta / DELTA_UNIT
    first = None
    if course.first_share:
        share = float(course.first_share) * epsilon
        alone = _quietest(lambda law: parts_epsilon([Part(1.0, law.scale / course.clip)], delta) <= share)
        first = _found(alone, step)
    law = _quietest(lambda law: parts_epsilon(course_parts(course, first, law), delta) <= epsilon)
    return first, _found(law, step)


def _quietest(allowed: Callable[[Law], bool]) -> Law | None:
    """The Gaussian law of least variance (on a grid) that is allowed; None if even the largest is not."""
    low, high = _LEAST_VARIANCE, LARGEST_VARIANCE
    if allowed(Law("gaussian", low)):
        return Law("gaussian", low)
    if not allowed(Law("gaussian", high)):
        return None
    for _ in range(_BISECTIONS):
        middle = Fraction(max(1, round(math.sqrt(low * high) * _GRID)), _GRID)
        if not low < middle < high:
            break
        if allowed(Law("gaussian", middle)):
            high = middle
        else:
            low = middle
        if high / low < 1 + Fraction(1, 10**5):
            break
    return Law("gaussian", high)


def _found(law: Law | None, step: str) -> Law:
    if law is None:
        fix = "Grant more, plan fewer steps or a lower rate."
        raise UsageError(step, "the budget is too small: no noise within reach keeps to it.", fix)
    return law


def _check(cost: Cost, course: Course, step: str) -> None:
    if cost.rho or not cost.epsilon or not 0 < cost.delta < DELTA_UNIT:
        raise UsageError(step, "is paid in ε and δ, both above 0.", "Give --delta, for example 1e-9.")
    if not 1 <= course.clip <= 2**20:
        raise UsageError(step, f"the bound of a contribution must lie between 1 and 2²⁰, got {course.clip}.")
    if not 1 <= course.steps <= 10**7:
        raise UsageError(step, f"the number of steps must lie between 1 and 10⁷, got {course.steps}.")
    if not Fraction(1, 8) <= course.gap <= 2**40:
        raise UsageError(step, "the mean gap between sampled units must lie between 1/8 and 2⁴⁰.")
    if not 0 <= course.first_share < 1:
        raise UsageError(step, "the first look may take a share of ε from 0 to below 1.")


def rate_of(gap: Fraction) -> float:
    """The probability 1 − e^(−1/gap) with which a unit takes part, rounded up."""
    return min(1.0, -math.expm1(-1 / float(gap)) * (1 + 1e-12))


@functools.lru_cache(maxsize=256)
def _pairs(order: int) -> Floats:
    places = np.arange(2, order + 1, dtype=np.float64)
    return places * (places - 1)


@functools.lru_cache(maxsize=512)
def _log_binomial(order: int, rate: float) -> Floats:
    """Logarithms of binom(order, k)·(1 − rate)^(order−k)·rate^k for k = 2, 3, …, order."""
    from scipy.special import gammaln

    places = np.arange(2, order + 1, dtype=np.float64)
    ways = gammaln(order + 1) - gammaln(places + 1) - gammaln(order - places + 1)
    return np.asarray(ways + (order - places) * math.log1p(-rate) + places * math.log(rate))
