"""From zCDP to (ε, δ) and back, by the tight formula and rounded to the safe side.

A ρ-zCDP mechanism has Rényi divergence at most αρ at every order α > 1, hence is (ε, δ)-DP as soon as for *one* α

    δ ≥ exp((α − 1)(αρ − ε)) · (1 − 1/α)^α / (α − 1)            (Canonne, Kamath, Steinke 2020, Proposition 12).

With x = α − 1 and c(x) = (log δ + log(1 + x)) / x + log(1 + 1/x) this condition reads

    ε ≥ (1 + x) ρ − c(x)            or            ρ ≤ (ε + c(x)) / (1 + x).

Every x gives a valid answer; the search for the best one runs in floats and cannot break the guarantee, only waste
some of it. The answer is then computed at the x found, with 80 decimal digits and a margin far above all rounding.
"""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction

from understudy.errors import UsageError

__all__ = ["epsilon_of_rho", "rho_of_epsilon"]

_DIGITS = 80
_ANSWER_DIGITS = 30
_MARGIN = Decimal(10) ** (6 - _DIGITS)  # each of the < 20 operations is off by at most 10^(1 − digits), relatively
_GOLDEN = (math.sqrt(5) - 1) / 2


def rho_of_epsilon(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The ρ that (ε, δ) buys: ρ-zCDP implies (ε, δ)-DP. Rounded down, at most one part in 10¹² below the largest."""
    _check("epsilon", epsilon > 0)
    _check_delta(delta)
    epsilon_float, log_delta = float(epsilon), _log(delta)
    best = _best_order(lambda order: -(epsilon_float + _gain(order, log_delta)) / (1 + order))
    with localcontext(Context(prec=_DIGITS, rounding=ROUND_HALF_EVEN)):
        order = Decimal(best)
        start = _decimal(epsilon)
        gain, size = _exact_gain(order, delta)
        rho = (start + gain - (start + size + 1) * _MARGIN) / (1 + order)
        rho = max(rho * (1 - _MARGIN), Decimal(0))
        return Fraction(Context(prec=_ANSWER_DIGITS, rounding=ROUND_FLOOR).plus(rho))


def epsilon_of_rho(rho: Fraction, delta: Fraction) -> Fraction:
    """The ε that a ρ-zCDP mechanism satisfies together with δ. Rounded up."""
    _check("rho", rho >= 0)
    _check_delta(delta)
    if rho == 0:
        return Fraction(0)
    rho_float, log_delta = float(rho), _log(delta)
    best = _best_order(lambda order: (1 + order) * rho_float - _gain(order, log_delta))
    with localcontext(Context(prec=_DIGITS, rounding=ROUND_HALF_EVEN)):
        order = Decimal(best)
        start = (1 + order) * _decimal(rho)
        gain, size = _exact_gain(order, delta)
        epsilon = max(start - gain + (start + size + 1) * _MARGIN, Decimal(0))
        return Fraction(Context(prec=_ANSWER_DIGITS, rounding=ROUND_CEILING).plus(epsilon))


def _gain(order: float, log_delta: float) -> float:
    """c(x) in floats."""
    return (log_delta + math.log1p(order)) / order + math.log1p(1 / order)


def _exact_gain(order: Decimal, delta: Fraction) -> tuple[Decimal, Decimal]:
    """c(x) to about 80 digits, and the sum of the sizes of its terms, which bounds its rounding error."""
    log_delta = _decimal(delta).ln() / order
    log_order = (1 + order).ln() / order
    # log(1 + 1/x) as a difference of logarithms would lose digits for large x; 80 digits leave plenty for x ≤ e^60.
    log_ratio = (1 + 1 / order).ln()
    return log_delta + log_order + log_ratio, abs(log_delta) + abs(log_order) + abs(log_ratio) + 1 / order


def _best_order(loss: Callable[[float], float]) -> float:
    """The x = α − 1 with the smallest loss: a coarse scan of log x, then golden section."""
    exponents = [0.5 * step for step in range(-80, 121)]
    losses = [loss(math.exp(exponent)) for exponent in exponents]
    at = min(range(len(losses)), key=losses.__getitem__)
    low, high = exponents[max(at - 1, 0)], exponents[min(at + 1, len(exponents) - 1)]
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    loss_left, loss_right = loss(math.exp(left)), loss(math.exp(right))
    for _ in range(45):
        if loss_left < loss_right:
            high, right, loss_right = right, left, loss_left
            left = high - _GOLDEN * (high - low)
            loss_left = loss(math.exp(left))
        else:
            low, left, loss_left = left, right, loss_right
            right = low + _GOLDEN * (high - low)
            loss_right = loss(math.exp(right))
    return math.exp((low + high) / 2)


def _log(number: Fraction) -> float:
    return math.log(number.numerator) - math.log(number.denominator)


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def _check_delta(delta: Fraction) -> None:
    _check("delta", 0 < delta < 1)


def _check(name: str, holds: bool) -> None:
    if not holds:
        rule = {"epsilon": "must be above 0.", "rho": "must be 0 or more.", "delta": "must lie between 0 and 1."}[name]
        raise UsageError(name, rule)
