"""The compiled table and the plain summation of the discrete Gaussian, against decimals computed separately."""

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from understudy.privacy.distributions import FoldedGaussian

VARIANCES = [Fraction(1, 10**6), Fraction(1, 10), Fraction(1, 4), Fraction(1), Fraction(37, 9), Fraction(900)]
MOST = 2**63 - 1


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
