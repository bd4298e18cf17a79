"""Samplers against masses summed in decimals.

Every draw turns random bits into a number by a rising function. So a sampler need not be drawn from to be known: where
its answer changes from one value to the next, the bits read as a number in [0, 1) are the distribution function, to as
many digits as there are bits. The tests look for these places by bisection and hold them against the reference.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.noise import (
    choice_chances,
    decimal,
    exponential,
    gap_chance,
    gaussian_masses,
    laplace_mass,
    laplace_tail,
)
from understudy.domain import ROUNDED_GRID, Distribution
from understudy.privacy import noise, randomizer
from understudy.privacy.noise import Digit, FoldedGaussian, FoldedLaplace, GapDigit, NoiseTable

SCALES = st.fractions(Fraction(1, 8), 40, max_denominator=50)
VARIANCES = st.fractions(Fraction(1, 20), 60, max_denominator=50)
WIDTH = 63


class Fed:
    """In place of the operating system's generator: a number given beforehand, then zeros (or ones)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.first, self.rest = b"", 0
        monkeypatch.setattr("os.urandom", self)

    def __call__(self, size: int) -> bytes:
        found, self.first = self.first[:size], self.first[size:]
        return found + bytes([self.rest]) * (size - len(found))


def first_beyond(drawn: Callable[[int], int], value: int, bits: int) -> int:
    """The least number of so many bits for which more than that value is drawn."""
    return least_word(lambda number: drawn(number) > value, bits)


def least_word(draws: Callable[[int], bool], bits: int) -> int:
    """The least number of so many bits for which a rising condition holds; 2^bits if it never does."""
    low, high = -1, 1 << bits
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if draws(middle) else (middle, high)
    return high


def floor_of(chance: Decimal, bits: int) -> int:
    with localcontext() as context:
        context.prec = 120
        return int(chance * 2**bits)


@settings(max_examples=20)
@given(SCALES)
def test_tables_of_laplace_noise_are_floors_of_the_reference(scale: Fraction) -> None:
    table = FoldedLaplace(scale).floors()
    below = accumulate([laplace_mass(scale, 0), *(2 * laplace_mass(scale, k) for k in range(1, 30))])
    for k, chance in zip(range(min(30, table.size)), below, strict=False):
        assert table[k] == min(floor_of(chance, WIDTH), 2**63 - 1)


@settings(max_examples=20)
@given(VARIANCES)
def test_tables_of_gaussian_noise_are_floors_of_the_reference(variance: Fraction) -> None:
    table, masses = FoldedGaussian(variance).floors(), gaussian_masses(variance)
    below = accumulate([masses[0], *(2 * masses[k] for k in range(1, max(masses) + 1))])
    assert table.size <= max(masses) + 1
    for found, chance in zip(table.tolist(), below, strict=False):
        assert found == min(floor_of(chance, WIDTH), 2**63 - 1)


@settings(max_examples=15)
@given(SCALES, st.integers(1, 30), st.integers(0, 2))
def test_gaps_and_digits_have_the_distribution_of_the_reference(scale: Fraction, threshold: int, place: int) -> None:
    """Failures before the first success in base 4: the digits are independent and put together are the gap."""
    stride = 4**place
    digit = GapDigit(scale, threshold, stride, top=4).floors().tolist()
    lower = [sum((gap_chance(scale, threshold, stride * d) for d in range(k + 1)), Decimal(0)) for k in range(4)]
    for found, part in zip(digit, lower, strict=False):
        assert found == min(floor_of(part / lower[-1], WIDTH), 2**63 - 1)
    rate = Fraction(stride) / scale
    plain = Digit(rate, top=4).floors().tolist()
    parts = [exponential(-rate * d) for d in range(4)]
    for found, part in zip(plain, accumulate(parts), strict=False):
        assert found == min(floor_of(part / sum(parts), WIDTH), 2**63 - 1)


@pytest.mark.parametrize("distribution", [FoldedLaplace(Fraction(7, 3)), FoldedGaussian(Fraction(29, 4))])
def test_where_a_draw_changes_is_the_distribution_function(
    monkeypatch: pytest.MonkeyPatch, distribution: FoldedLaplace | FoldedGaussian
) -> None:
    fed, table = Fed(monkeypatch), NoiseTable(distribution)

    def drawn(number: int) -> int:
        """The magnitude for a uniform number that begins with these 127 bits: a word, then what decides a tie."""
        fed.first = (number >> 64).to_bytes(8, "little") + (number & (2**64 - 1)).to_bytes(8, "little")
        return int(table.draw(1)[0])

    masses = (
        gaussian_masses(distribution.variance)
        if isinstance(distribution, FoldedGaussian)
        else {k: laplace_mass(distribution.scale, k) for k in range(-40, 41)}
    )
    below = masses[0]
    for k in range(8):
        place = first_beyond(drawn, k, 127)
        assert abs(decimal(Fraction(place, 2**127)) - below) <= Decimal(2) ** -120
        below += 2 * masses[k + 1]


def test_signs_are_fair_bits_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    fed, table = Fed(monkeypatch), NoiseTable(FoldedLaplace(Fraction(3)))
    for word in range(0, 2**63, 2**58):
        found = []
        for sign in (0, 2**63):
            fed.first = (word | sign).to_bytes(8, "little")
            found.append(int(table.draw_signed(1)[0]))
        assert found[0] == -found[1]


@settings(max_examples=25)
@given(st.fractions(0, 30, max_denominator=40))
def test_a_coin_of_e_to_the_minus(exponent: Fraction) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fed = Fed(patch)

        def falls(number: int) -> bool:
            fed.first = (number & (2**64 - 1)).to_bytes(8, "little")
            return not noise.happens(exponent, number >> 64)

        place = least_word(falls, 128)
        assert abs(decimal(Fraction(place, 2**128)) - exponential(-exponent)) <= Decimal(2) ** -120


def test_wide_noise_keeps_a_proposal_as_often_as_it_must() -> None:
    """P(proposal)·P(kept) must be P(answer) up to one constant, whatever the scale of the proposals."""
    variance = Fraction(10**7, 3)
    scale = Fraction(noise._rounded_up(int(float(variance) ** 0.5) + 1))
    ratios = set()
    for value in (0, 1, 500, 1826, 5000):
        kept = exponential(-((abs(value) - variance / scale) ** 2) / (2 * variance))
        wanted = exponential(-Fraction(value**2) / (2 * variance))
        ratios.add(round(laplace_mass(scale, value) * kept / wanted, 30))
    assert len(ratios) == 1
    assert scale >= 1
    proposals = np.array([0, 1, 500, 1826, 5000], dtype=np.int64)
    for value in proposals.tolist():  # what decides is the same number
        chance = exponential(-((value - variance / scale) ** 2) / (2 * variance))
        below = np.array([int(chance * 2**64) - 2**44], dtype=np.uint64)
        above = np.array([int(chance * 2**64) + 2**46], dtype=np.uint64)
        keeps, unsure = noise._screened(np.array([value], np.int64), below, variance, scale)
        assert keeps[0] or unsure[0]
        keeps, unsure = noise._screened(np.array([value], np.int64), above, variance, scale)
        assert not keeps[0] or unsure[0]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-(2**22), 2**22), min_size=2, max_size=6), st.fractions(0, 3, max_denominator=9))
def test_choices_change_where_the_cumulated_weights_do(scores: list[int], rate: Fraction) -> None:
    """Options of equal scores share their weight evenly; the compiled and the plain way are both looked at."""
    rate = rate / 2**20
    chances = choice_chances(scores, rate)
    table, allowed = np.array([scores], np.int64), np.ones((1, len(scores)), np.bool_)
    with pytest.MonkeyPatch.context() as patch:
        fed = Fed(patch)

        def chosen(number: int) -> int:
            fed.first = (number >> 64).to_bytes(8, "little") + (number & (2**64 - 1)).to_bytes(8, "little")
            return int(randomizer.choose_each(table, allowed, rate)[0])

        below = Decimal(0)
        for option in range(len(scores) - 1):
            below += chances[option]
            place = first_beyond(chosen, option, 128)
            assert abs(decimal(Fraction(place, 2**128)) - below) <= Decimal(2) ** -100


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(-(2**22), 2**22), min_size=2, max_size=6, unique=True), st.fractions(0, 3, max_denominator=9)
)
def test_a_single_choice_changes_where_the_cumulated_weights_do(scores: list[int], rate: Fraction) -> None:
    rate = rate / 2**20
    chances = choice_chances(scores, rate)
    order = sorted(range(len(scores)), key=lambda option: -scores[option])
    with pytest.MonkeyPatch.context() as patch:
        fed = Fed(patch)

        def place_of(number: int) -> int:
            fed.first = number.to_bytes(16, "little")
            return order.index(randomizer.choose_exponentially(scores, rate))

        below = Decimal(0)
        for rank, option in enumerate(order[:-1]):
            below += chances[option]
            place = first_beyond(place_of, rank, 128)
            assert abs(decimal(Fraction(place, 2**128)) - below) <= Decimal(2) ** -110


def test_members_of_a_tie_are_equally_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    fed, found = Fed(monkeypatch), []
    for byte in range(256):
        fed.first, fed.rest = bytes([byte]), 0
        found.append(noise.uniform_below(3))
    # Two bits are kept of each byte; the number 3 is drawn again, here with zeros.
    assert [found.count(member) for member in range(3)] == [128, 64, 64]
    assert len({noise.uniform_below(1) for _ in range(3)}) == 1


@settings(max_examples=20)
@given(st.integers(0, 40), st.fractions(Fraction(1, 4), 9, max_denominator=12))
def test_rounded_noise_is_noise_on_the_fine_lattice_rounded(count: int, variance: Fraction) -> None:
    """A count with noise on a lattice of 1/63 rows: the nearest whole number of every lattice point."""
    distribution = Distribution("gaussian", variance, ROUNDED_GRID)
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomizer, "discrete_gaussian", lambda size, wide: asked.append((size, wide)) or FINE.copy())
        found = randomizer._noisy(distribution, np.full(FINE.size, count, np.int64)).tolist()
    assert asked == [(FINE.size, variance * ROUNDED_GRID**2)]
    assert found == [round(Fraction(count * ROUNDED_GRID + fine, ROUNDED_GRID)) for fine in FINE.tolist()]


FINE = np.arange(-200, 200, dtype=np.int64)


@settings(max_examples=15, deadline=None)
@given(SCALES, st.integers(1, 60))
def test_cells_of_sparse_tables_pass_as_often_as_noise_reaches_the_threshold(scale: Fraction, threshold: int) -> None:
    """The first gap is read off the bits: P(gap = 0) is the tail of the noise, P(gap ≤ g) follows."""
    passes = laplace_tail(scale, threshold)
    with pytest.MonkeyPatch.context() as patch:
        fed = Fed(patch)

        def first_gap(number: int) -> int:
            fed.first, fed.rest = number.to_bytes(8, "little"), 0
            digit = GapDigit(scale, threshold, 1, None, noise.LARGEST)
            return int(NoiseTable(digit, WIDTH).draw(1)[0]) if passes > Decimal("0.02") else 0

        if passes > Decimal("0.02"):
            for gap in (0, 1, 3):
                place = first_beyond(first_gap, gap, WIDTH)
                assert abs(decimal(Fraction(place, 2**WIDTH)) - (1 - (1 - passes) ** (gap + 1))) <= Decimal(2) ** -60


@settings(max_examples=20)
@given(st.fractions(Fraction(1, 4), 30, max_denominator=20), st.integers(0, 20))
def test_what_a_sum_of_gaussian_weights_leaves_out_is_bounded_from_above(variance: Fraction, reach: int) -> None:
    """Both sides beyond the reach, term by term."""
    beyond = sum((exponential(-Fraction(k * k) / (2 * variance)) for k in range(reach + 1, reach + 120)), Decimal(0))
    found = noise._tail_above(variance, reach, 100)
    assert 2 * beyond * 2**100 <= found
    assert found <= 2 * beyond * 2**100 * 20 + 4
