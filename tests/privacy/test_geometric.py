"""Distributions with geometric tails: tables and bounds against decimals computed separately, digits against the
whole."""

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest

from understudy.privacy.distributions import Digit, FoldedLaplace, GapDigit

Distribution = FoldedLaplace | Digit | GapDigit
MOST = 2**63 - 1


def _exp(exponent: Fraction) -> Decimal:
    return (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()


def _folded(scale: Fraction) -> Callable[[int], Decimal]:
    return lambda k: 1 - 2 * _exp((k + 1) / scale) / (1 + _exp(1 / scale))


def _digit(exponent: Fraction, top: int | None) -> Callable[[int], Decimal]:
    total = 1 - _exp(exponent * top) if top else Decimal(1)
    return lambda k: (1 - _exp(exponent * (k + 1))) / total


def _gap(scale: Fraction, threshold: int, stride: int, top: int | None) -> Callable[[int], Decimal]:
    failure = 1 - _exp(threshold / scale) / (1 + _exp(1 / scale))
    total = 1 - failure ** (stride * top) if top else Decimal(1)
    return lambda k: (1 - failure ** (stride * (k + 1))) / total


CASES: list[tuple[Distribution, Callable[[], Callable[[int], Decimal]]]] = [
    (FoldedLaplace(Fraction(1, 50)), lambda: _folded(Fraction(1, 50))),
    (FoldedLaplace(Fraction(2)), lambda: _folded(Fraction(2))),
    (FoldedLaplace(Fraction(41, 3)), lambda: _folded(Fraction(41, 3))),
    (Digit(Fraction(1, 3000), top=64), lambda: _digit(Fraction(1, 3000), 64)),
    (Digit(Fraction(1, 2**60), top=64), lambda: _digit(Fraction(1, 2**60), 64)),
    (Digit(Fraction(3, 7), cap=5), lambda: _digit(Fraction(3, 7), None)),
    (GapDigit(Fraction(2), 1, 1), lambda: _gap(Fraction(2), 1, 1, None)),
    (GapDigit(Fraction(2), 9, 1, top=64), lambda: _gap(Fraction(2), 9, 1, 64)),
    (GapDigit(Fraction(5), 200, 64, top=64), lambda: _gap(Fraction(5), 200, 64, 64)),
]


@pytest.mark.parametrize(("distribution", "reference"), CASES, ids=lambda case: str(case) if not callable(case) else "")
def test_tables_and_bounds_agree_with_decimals(
    distribution: Distribution, reference: Callable[[], Callable[[int], Decimal]]
) -> None:
    floors = distribution.floors()
    assert floors[-1] == MOST
    with localcontext(Context(prec=150)):
        cumulative = reference()
        for k, floor in enumerate(floors):
            if distribution.end is not None and k >= distribution.end:
                assert distribution.bounds(k, 70) == (2**70, 2**70)
                continue
            assert int(cumulative(k) * 2**63) == floor
            lower, upper = distribution.bounds(k, 200)
            scaled = cumulative(k) * 2**200
            assert lower <= scaled <= upper
            assert upper - lower < 2**100


def test_laplace_distribution_has_the_published_probabilities() -> None:
    floors = [int(floor) / 2**63 for floor in FoldedLaplace(Fraction(2)).floors()[:4]]
    points = [floors[0], *((floors[k] - floors[k - 1]) / 2 for k in range(1, 4))]
    assert points == pytest.approx([0.244919, 0.148551, 0.090101, 0.054649], abs=1e-6)


def test_digits_put_together_are_geometric() -> None:
    """P(Σ d_i t^i = g) = (1 − q) q^g: the product of the digit probabilities, checked for every g < t³."""
    radix, exponent = 4, Fraction(1, 20)
    bits = 120

    def mass(distribution: Digit, k: int) -> float:
        before = distribution.bounds(k - 1, bits)[0] if k else 0
        return float(Fraction(distribution.bounds(k, bits)[0] - before, 2**bits))

    low, middle, top = (Digit(exponent * radix**i, top=radix if i < 2 else None) for i in range(3))
    ratio = float(_exp(exponent))
    for number in range(radix**3):
        digits = number % radix, number // radix % radix, number // radix**2
        product = mass(low, digits[0]) * mass(middle, digits[1]) * mass(top, digits[2])
        assert product == pytest.approx((1 - ratio) * ratio**number, rel=1e-12)


def test_success_that_is_nearly_impossible_still_has_proved_tables() -> None:
    """At e^−900 the difference of two nearly equal powers needs more than a thousand bits: they are taken."""
    floors = GapDigit(Fraction(1), 900, 1, top=16).floors()
    assert list(floors[:2]) == [2**59, 2**60]
    assert floors.size == 16
