"""From ρ and μ to (ε, δ), and the exact δ of integer noise, by search over orders and by plain sums."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from tests.reference.noise import decimal, exponential, gaussian_masses

_WORK = Context(prec=70, Emax=10**9, Emin=-(10**9))


def zcdp_delta_at(order: Decimal, rho: Fraction, epsilon: Fraction) -> Decimal:
    """The δ that Rényi order α proves for ρ-zCDP: e^((α−1)(αρ−ε))·(1 − 1/α)^α/(α − 1)."""
    with localcontext(_WORK):
        exponent = (order - 1) * (order * decimal(rho) - decimal(epsilon))
        return exponent.exp() * (order * (1 - 1 / order).ln()).exp() / (order - 1)


def least_epsilon_of_rho(rho: Fraction, delta: Fraction) -> Decimal:
    """The infimum over all orders of the ε at which that formula gives δ; at least 0."""
    with localcontext(_WORK):
        log_delta = decimal(delta).ln()

        def at(position: Decimal) -> Decimal:
            order = 1 + position.exp()
            gain = order * (1 - 1 / order).ln() - (order - 1).ln()
            return order * decimal(rho) + (gain - log_delta) / (order - 1)

        return max(at(_lowest(at)), Decimal(0))


def largest_rho_of_epsilon(epsilon: Fraction, delta: Fraction) -> Decimal:
    """The supremum over all orders of the ρ that keeps to (ε, δ)."""
    with localcontext(_WORK):
        log_delta = decimal(delta).ln()

        def at(position: Decimal) -> Decimal:
            order = 1 + position.exp()
            gain = order * (1 - 1 / order).ln() - (order - 1).ln()
            return -(decimal(epsilon) - (gain - log_delta) / (order - 1)) / order

        return -at(_lowest(at))


def _lowest(function: Callable[[Decimal], Decimal]) -> Decimal:
    """Where a function that falls and then rises is smallest, on [−40, 60]."""
    points = [Decimal(place) / 2 for place in range(-80, 121)]
    at = min(range(len(points)), key=lambda place: function(points[place]))
    low, high = points[max(0, at - 1)], points[min(len(points) - 1, at + 1)]
    for _ in range(90):
        third = (high - low) / 3
        if function(low + third) < function(high - third):
            high -= third
        else:
            low += third
    return (low + high) / 2


def normal_below(place: Decimal) -> Decimal:
    """Φ(place) by the alternating power series of the error function."""
    digits = 40 + int(place * place)
    with localcontext(Context(prec=2 * digits + 40, Emax=10**9, Emin=-(10**9))):
        z = place / Decimal(2).sqrt()
        term, total, index = z, z, 0
        while abs(term) > Decimal(10) ** -(digits + 10):
            index += 1
            term = -term * z * z / index
            total += term / (2 * index + 1)
        return (1 + 2 * total / _pi().sqrt()) / 2


def _pi() -> Decimal:
    """π by the mean of Gauss and Legendre."""
    one, other, part, power = Decimal(1), 1 / Decimal(2).sqrt(), Decimal("0.25"), Decimal(1)
    for _ in range(12):
        mean = (one + other) / 2
        other, part, one, power = (one * other).sqrt(), part - power * (one - mean) ** 2, mean, 2 * power
    return (one + other) ** 2 / (4 * part)


def gaussian_delta(epsilon: Fraction, rho: Fraction) -> Decimal:
    """δ of one normal answer moved by μ = √(2ρ) standard deviations (Balle and Wang 2018)."""
    shift_squared = 2 * decimal(rho)
    digits = 60 + int(float(epsilon) ** 2 / float(shift_squared)) + int(float(shift_squared))
    with localcontext(Context(prec=digits + 60, Emax=10**9, Emin=-(10**9))):
        shift = shift_squared.sqrt()
        budget = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        first, second = shift / 2 - budget / shift, -shift / 2 - budget / shift
        return normal_below(first) - budget.exp() * normal_below(second)


def exact_delta(variances: Sequence[Fraction], moves: Sequence[int], epsilon: Fraction) -> Decimal:
    """δ(ε) of integer Gaussian answers taken together, the i-th moved by `moves[i]`: Σ (p − e^ε·q)⁺ over all answers.

    Answers are put together by their losses, exact fractions; removing a unit is the same with the sign of the noise
    turned.
    """
    with localcontext(_WORK):
        losses: dict[Fraction, Decimal] = {Fraction(0): Decimal(1)}
        for variance, move in zip(variances, moves, strict=True):
            masses = gaussian_masses(variance)
            joined: defaultdict[Fraction, Decimal] = defaultdict(Decimal)
            for (loss, chance), (value, mass) in itertools.product(losses.items(), masses.items()):
                if chance * mass > Decimal(10) ** -40:
                    joined[loss + Fraction(move**2 - 2 * value * move) / (2 * variance)] += chance * mass
            losses = dict(joined)
        gained = (mass * (1 - exponential(epsilon - loss)) for loss, mass in losses.items() if loss > epsilon)
        return sum(gained, Decimal(0))


def mixed_delta(pure: Fraction, variance: Fraction, epsilon: Fraction) -> Decimal:
    """δ(ε) of one binary answer that is `pure`-DP (randomised response) beside one integer Gaussian answer."""
    with localcontext(_WORK):
        told = exponential(pure) / (1 + exponential(pure))
        found = Decimal(0)
        masses = gaussian_masses(variance)
        for value, mass in masses.items():
            loss = Fraction(1 - 2 * value) / (2 * variance)
            for chance, more in ((told, pure), (1 - told, -pure)):
                if loss + more > epsilon:
                    found += mass * chance * (1 - exponential(epsilon - loss - more))
        return found
