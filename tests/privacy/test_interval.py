"""Intervals hold the true value, and they are narrow."""

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest

from understudy.privacy.distributions import exp_minus, power, product, quotient

EXPONENTS = [
    Fraction(0),
    Fraction(1, 2**70),
    Fraction(1, 10**6),
    Fraction(1, 3),
    Fraction(1),
    Fraction(22, 7),
    Fraction(60),
    Fraction(999, 2),
    Fraction(10**6),
]


def _true_exp(exponent: Fraction, digits: int) -> Fraction:
    with localcontext(Context(prec=digits)):
        return Fraction((-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())


@pytest.mark.parametrize("exponent", EXPONENTS, ids=str)
@pytest.mark.parametrize("bits", [8, 63, 128, 700])
def test_exp_minus_holds_the_value(exponent: Fraction, bits: int) -> None:
    lower, upper = exp_minus(exponent, bits)
    slack = Fraction(1, 10**280)
    true = _true_exp(exponent, 300) * 2**bits
    assert lower - slack <= true <= upper + slack
    assert 0 <= upper - lower <= 2
    assert upper <= 2**bits


def test_exp_minus_refuses_growth() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        exp_minus(Fraction(-1, 2), 64)


@pytest.mark.parametrize(("number", "exponent"), [((3, 7), 0), ((3, 7), 1), ((999, 1000), 12345), ((1, 10**9), 3)])
def test_power_and_product_round_outwards(number: tuple[int, int], exponent: int) -> None:
    bits = 40
    exact = Fraction(*number)
    around = (int(exact * 2**bits), int(exact * 2**bits) + 1)
    lower, upper = power(around, exponent, bits)
    assert Fraction(lower, 2**bits) <= exact**exponent <= Fraction(upper, 2**bits)
    assert upper - lower <= 2 * exponent + 2
    assert product((5, 6), (7, 8), 3) == (4, 6)


def test_quotient_rounds_outwards_and_survives_an_empty_bottom() -> None:
    assert quotient((2, 2), (3, 3), 4) == (10, 11)
    assert quotient((2, 2), (0, 3), 4) == (0, 16)
