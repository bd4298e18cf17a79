"""The tight conversion: published vectors, safe rounding shown against the formula itself, extremes."""

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest

from understudy.errors import UsageError
from understudy.privacy.cost import epsilon_of_rho, rho_of_epsilon

VECTORS = [
    ("1", "1e-6", 0.0243560, 0.0174689),
    ("1", "1e-9", 0.0149731, 0.0117812),
    ("1", "1e-3", 0.0593902, 0.0337869),
    ("0.3", "2.2820544e-12", 0.00107131, 0.000834702),
    ("1", "2.2820544e-12", 0.0111179, 0.00915628),
    ("8", "2.2820544e-12", 0.577246, 0.521588),
]
EXTREMES = [(epsilon, delta) for epsilon in ("0.001", "0.1", "10", "10000") for delta in ("1e-18", "1e-6", "0.5")]


def _log_delta(order: Decimal, rho: Decimal, epsilon: Decimal) -> Decimal:
    """Logarithm of the δ that order α proves, straight from the formula."""
    return (order - 1) * (order * rho - epsilon) + order * (1 - 1 / order).ln() - (order - 1).ln()


def _best_log_delta(rho: Fraction, epsilon: Fraction) -> Decimal:
    """Smallest over a fine grid of orders, refined once around the best: an independent evaluation."""
    with localcontext(Context(prec=60)):
        rho_decimal, epsilon_decimal = (Decimal(x.numerator) / Decimal(x.denominator) for x in (rho, epsilon))
        low, high = Decimal(-30), Decimal(45)
        for _ in range(12):
            points = [low + (high - low) * i / 60 for i in range(61)]
            values = [_log_delta(1 + point.exp(), rho_decimal, epsilon_decimal) for point in points]
            at = min(range(61), key=values.__getitem__)
            low, high = points[max(at - 1, 0)], points[min(at + 1, 60)]
        return min(values)


@pytest.mark.parametrize(("epsilon", "delta", "tight", "classical"), VECTORS)
def test_published_vectors(epsilon: str, delta: str, tight: float, classical: float) -> None:
    rho = rho_of_epsilon(Fraction(epsilon), Fraction(delta))
    assert float(rho) == pytest.approx(tight, rel=5e-6)
    with localcontext(Context(prec=40)):
        log = -Decimal(delta).ln()
        plain = ((Decimal(epsilon) + log).sqrt() - log.sqrt()) ** 2
    assert float(plain) == pytest.approx(classical, rel=5e-6)
    assert rho > Fraction(plain)


@pytest.mark.parametrize(("epsilon", "delta"), [vector[:2] for vector in VECTORS] + EXTREMES)
def test_rho_is_safe_and_not_wasteful(epsilon: str, delta: str) -> None:
    """δ proved for the returned ρ is at most δ, and for a ρ one part in 10⁹ larger it is more than δ."""
    rho = rho_of_epsilon(Fraction(epsilon), Fraction(delta))
    log_delta = Decimal(delta).ln(Context(prec=50))
    assert _best_log_delta(rho, Fraction(epsilon)) <= log_delta + Decimal("1e-25")
    assert _best_log_delta(rho * (1 + Fraction(1, 10**9)), Fraction(epsilon)) > log_delta


@pytest.mark.parametrize(("epsilon", "delta"), EXTREMES)
def test_round_trip(epsilon: str, delta: str) -> None:
    given = Fraction(epsilon)
    rho = rho_of_epsilon(given, Fraction(delta))
    back = epsilon_of_rho(rho, Fraction(delta))
    assert abs(back / given - 1) < Fraction(1, 10**12)
    assert epsilon_of_rho(rho * 2, Fraction(delta)) > given


def test_epsilon_is_safe() -> None:
    for rho, delta in (("0.001", "1e-9"), ("0.5", "1e-6"), ("40", "1e-12")):
        epsilon = epsilon_of_rho(Fraction(rho), Fraction(delta))
        log_delta = Decimal(delta).ln(Context(prec=50))
        assert _best_log_delta(Fraction(rho), epsilon) <= log_delta + Decimal("1e-25")
        assert _best_log_delta(Fraction(rho), epsilon * (1 - Fraction(1, 10**9))) > log_delta


def test_both_grow_with_what_they_should() -> None:
    rhos = [rho_of_epsilon(Fraction(epsilon, 100), Fraction(1, 10**9)) for epsilon in range(1, 400, 7)]
    assert rhos == sorted(rhos)
    rhos = [rho_of_epsilon(Fraction(1), Fraction(1, 10**power)) for power in range(18, 0, -1)]
    assert rhos == sorted(rhos)
    epsilons = [epsilon_of_rho(Fraction(rho, 1000), Fraction(1, 10**9)) for rho in range(0, 400, 7)]
    assert epsilons == sorted(epsilons)


def test_nothing_spent_claims_nothing_and_large_delta_gives_zero() -> None:
    assert epsilon_of_rho(Fraction(0), Fraction(1, 10**9)) == 0
    assert epsilon_of_rho(Fraction(1, 10**12), Fraction(1, 2)) == 0


@pytest.mark.parametrize(("epsilon", "delta"), [("0", "1e-9"), ("-1", "1e-9"), ("1", "0"), ("1", "1"), ("1", "-0.1")])
def test_impossible_budgets_are_refused(epsilon: str, delta: str) -> None:
    with pytest.raises(UsageError, match="epsilon" if epsilon != "1" else "delta"):
        rho_of_epsilon(Fraction(epsilon), Fraction(delta))


@pytest.mark.parametrize(("rho", "delta"), [("-1", "1e-9"), ("1", "0"), ("1", "1")])
def test_impossible_spending_is_refused(rho: str, delta: str) -> None:
    with pytest.raises(UsageError, match="rho" if rho != "1" else "delta"):
        epsilon_of_rho(Fraction(rho), Fraction(delta))
