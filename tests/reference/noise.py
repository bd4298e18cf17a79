"""Distributions of integer noise and of choices, summed term by term in decimals."""

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction

DIGITS = 60
_WORK = Context(prec=DIGITS + 25, Emax=10**9, Emin=-(10**9))


def decimal(number: Fraction | int) -> Decimal:
    """A fraction to many digits."""
    with localcontext(_WORK):
        return Decimal(Fraction(number).numerator) / Decimal(Fraction(number).denominator)


def exponential(exponent: Fraction) -> Decimal:
    """e to that power."""
    with localcontext(_WORK):
        return decimal(exponent).exp()


def laplace_mass(scale: Fraction, value: int) -> Decimal:
    """P(X = value) of discrete Laplace noise: (1 − q)/(1 + q)·q^|value| with q = e^(−1/scale)."""
    with localcontext(_WORK):
        q = exponential(-1 / scale)
        return (1 - q) / (1 + q) * exponential(-abs(value) / scale)


def laplace_tail(scale: Fraction, least: int) -> Decimal:
    """P(X ≥ least) for least ≥ 1, as the sum of a geometric series."""
    with localcontext(_WORK):
        return laplace_mass(scale, least) / (1 - exponential(-1 / scale))


def gaussian_masses(variance: Fraction) -> dict[int, Decimal]:
    """P(X = k) ∝ e^(−k²/(2·variance)) for every k whose mass matters at 50 digits."""
    with localcontext(_WORK):
        reach, weights = 0, {0: Decimal(1)}
        while weights[reach] > Decimal(10) ** -DIGITS:
            reach += 1
            weights[reach] = weights[-reach] = exponential(-Fraction(reach**2) / (2 * variance))
        total = sum(weights.values())
        return {value: weight / total for value, weight in weights.items()}


def choice_chances(scores: Sequence[int], rate: Fraction) -> list[Decimal]:
    """P(i) ∝ e^(rate·score_i): the exponential mechanism."""
    with localcontext(_WORK):
        weights = [exponential(rate * (score - max(scores))) for score in scores]
        total = sum(weights, Decimal(0))
        return [weight / total for weight in weights]


def gap_chance(scale: Fraction, threshold: int, empty: int) -> Decimal:
    """P(exactly so many draws of Laplace noise stay below the threshold before one reaches it)."""
    with localcontext(_WORK):
        passes = laplace_tail(scale, threshold)
        return (1 - passes) ** empty * passes
