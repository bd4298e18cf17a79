"""Tests of `understudy.privacy.noise`."""

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from understudy.privacy.noise import (
    Digit,
    FoldedGaussian,
    FoldedLaplace,
    GapDigit,
    exp_minus,
    power,
    product,
    quotient,
)

# Distributions with geometric tails: tables and bounds against decimals computed separately, digits against the
# whole.


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


# The compiled table and the plain summation of the discrete Gaussian, against decimals computed separately.


VARIANCES = [Fraction(1, 10**6), Fraction(1, 10), Fraction(1, 4), Fraction(1), Fraction(37, 9), Fraction(900)]


def _cumulative(variance: Fraction) -> list[Decimal]:
    """P(|X| ≤ k) for all k that matter at 100 digits; call within a decimal context."""
    weights, k = [Decimal(1)], 1
    while True:
        exponent = Fraction(k * k) / (2 * variance)
        weight = (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        weights.append(2 * weight)
        if weight < Decimal(10) ** -100:
            break
        k += 1
    total, part, out = sum(weights), Decimal(0), []
    for weight in weights:
        part += weight
        out.append(part / total)
    return out


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_every_entry_is_the_floor(variance: Fraction) -> None:
    distribution = FoldedGaussian(variance)
    floors = distribution.floors()
    with localcontext(Context(prec=120)):
        reference = _cumulative(variance)
        for k, floor in enumerate(floors):
            assert min(int(reference[k] * 2**63), MOST) == floor
            lower, upper = distribution.bounds(k, 160)
            assert lower - 1 <= reference[k] * 2**160 <= upper + 1
            assert upper - lower <= 4
    assert floors[-1] == MOST
    assert floors.size == 1 or floors[-2] < MOST


def test_two_computations_agree_on_a_large_table() -> None:
    """Blocks, carries and scaling of the compiled pass at σ = 3000, against the plain sum at scattered entries."""
    distribution = FoldedGaussian(Fraction(9_000_000))
    floors = distribution.floors()
    assert np.all(np.diff(floors) >= 0)
    for k in (0, 1, 255, 256, 257, 511, 512, 7777, 20_000, floors.size - 1):
        lower, upper = (min(bound >> 33, MOST) for bound in distribution.bounds(k, 96))
        assert lower == upper == floors[k]


def test_entries_the_compiled_pass_cannot_tell_are_decided_by_the_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    distribution = FoldedGaussian(Fraction(37, 9))
    floors = distribution.floors()
    doubtful = distribution._compiled_floors(extra_margin=2**63)
    unsure = doubtful < 0
    assert unsure.any()
    assert np.array_equal(doubtful[: floors.size][~unsure[: floors.size]], floors[~unsure[: floors.size]])
    monkeypatch.setattr(FoldedGaussian, "_compiled_floors", lambda self: doubtful.copy())
    assert np.array_equal(distribution.floors(), floors)


@pytest.mark.parametrize(("variance", "published"), [("0.25", 0.21501), ("0.1", 0.01330), ("1", 1.0), ("4", 4.0)])
def test_variance_of_the_distribution(variance: str, published: float) -> None:
    floors = FoldedGaussian(Fraction(variance)).floors().astype(object)
    masses = np.diff(floors, prepend=0) / 2**63
    assert float(sum(k * k * mass for k, mass in enumerate(masses))) == pytest.approx(published, abs=2e-5)


# Intervals hold the true value, and they are narrow.


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
