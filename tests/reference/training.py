"""Sums over sampled units with integer Gaussian noise: Rényi divergences from their definitions."""

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import comb

from tests.reference.noise import decimal, exponential, gaussian_masses

_WORK = Context(prec=90, Emax=10**9, Emin=-(10**9))


def formula(order: int, rate: Fraction, multiplier: Fraction) -> Decimal:
    """log(Σ_k C(α,k)(1−q)^(α−k) q^k e^(k(k−1)/(2σ²)))/(α − 1)."""
    with localcontext(_WORK):
        q, exponents = decimal(rate), [Fraction(k * (k - 1)) / (2 * multiplier**2) for k in range(order + 1)]
        if q == 1:
            return decimal(exponents[order]) / (order - 1)
        terms = (comb(order, k) * (1 - q) ** (order - k) * q**k * exponential(exponents[k]) for k in range(order + 1))
        return sum(terms, Decimal(0)).ln() / (order - 1)


def divergences(order: int, rate: Fraction, variance: Fraction, move: int) -> tuple[Decimal, Decimal]:
    """Rényi divergences of one step with an extra unit that moves the sum by `move`, in both directions, by summing."""
    with localcontext(_WORK):
        masses = gaussian_masses(variance)
        without = {value: masses.get(value, Decimal(0)) for value in range(-max(masses), max(masses) + move + 1)}
        q = decimal(rate)
        mixed = {value: (1 - q) * mass + q * without.get(value - move, Decimal(0)) for value, mass in without.items()}
        return _divergence(order, mixed, without), _divergence(order, without, mixed)


def _divergence(order: int, first: dict[int, Decimal], second: dict[int, Decimal]) -> Decimal:
    kept = ((first[value], second[value]) for value in first if first[value] and second[value])
    return sum((one * (one / other) ** (order - 1) for one, other in kept), Decimal(0)).ln() / (order - 1)


def epsilon_at(divergence: Decimal, order: int, delta: Fraction) -> Decimal:
    """ε = R + log(1 − 1/α) − (log δ + log α)/(α − 1) (Canonne, Kamath, Steinke 2020, proposition 12)."""
    with localcontext(_WORK):
        alpha = Decimal(order)
        return divergence + (1 - 1 / alpha).ln() - (decimal(delta).ln() + alpha.ln()) / (alpha - 1)
