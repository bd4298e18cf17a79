"""What a query costs, from what is public about it: noise, how far one unit moves the exact answer, rate, threshold."""

from decimal import Decimal, localcontext
from fractions import Fraction

from tests.reference.noise import decimal


def laplace_epsilon(moved: Fraction, scale: Fraction) -> Fraction:
    """Integer Laplace noise on an answer that a unit moves by so much in L1."""
    return moved / scale


def gaussian_rho(moved_squared: Fraction, variance: Fraction) -> Fraction:
    """Integer Gaussian noise on an answer that a unit moves by so much in L2."""
    return moved_squared / (2 * variance)


def choice_epsilon(rate: Fraction, moved: Fraction, *, monotone: bool) -> Fraction:
    """The exponential mechanism: how far two log-chances can move apart."""
    return rate * moved * (1 if monotone else 2)


def choice_rho(epsilon: Fraction) -> Fraction:
    """A mechanism whose privacy loss has range ε is ε²/8-zCDP (Cesar and Rogers 2021)."""
    return epsilon**2 / 8


def pure_rho(epsilon: Fraction) -> Fraction:
    """ε-DP is ε²/2-zCDP (Bun and Steinke 2016)."""
    return epsilon**2 / 2


def tree_epsilon(scale: Fraction, bias: int, rows: int, unit: int) -> Decimal:
    """A whole PrivTree: (unit/scale)·(2 + 1/(β − 1)) for each row of a unit, β = e^(bias/scale)."""
    with localcontext() as context:
        context.prec = 60
        bought = decimal(Fraction(bias) / scale).exp()
        return rows * decimal(Fraction(unit) / scale) * (2 + 1 / (bought - 1))
