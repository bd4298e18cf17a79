"""Noise vectors: shapes, limits, how numbers are put together from digits, and refusals."""

import math
import os
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.statistics.chi_square import gaussian_distribution, laplace_distribution, z_score
from understudy.counts.source import Records
from understudy.errors import UsageError
from understudy.privacy import noise
from understudy.privacy import noise as cumulative
from understudy.privacy.noise import (
    LARGEST,
    Digit,
    FoldedGaussian,
    FoldedLaplace,
    NoiseTable,
    _screened,
    discrete_gaussian,
    discrete_laplace,
    geometric,
    happens,
    rare_positions,
    sampled_positions,
    table_for,
    uniform_below,
    wide_gaussian,
)
from understudy.privacy.randomizer import Request, SecureRandomizer


@pytest.mark.parametrize("size", [0, 1, 17, 70_000])
@pytest.mark.parametrize("parameter", [Fraction(1, 10**6), Fraction(3), Fraction(5000)])
def test_vectors_are_integers_of_the_asked_size(size: int, parameter: Fraction) -> None:
    for draw in (discrete_gaussian, discrete_laplace, geometric):
        values = draw(size, parameter)
        assert values.dtype == np.int64
        assert values.shape == (size,)
        assert values.flags.writeable


def test_tiny_scales_give_zeros() -> None:
    assert not discrete_laplace(1000, Fraction(1, 10**6)).any()
    assert not discrete_gaussian(1000, Fraction(1, 10**6)).any()
    assert not discrete_gaussian(1000, Fraction(1, 10**40)).any()


@pytest.mark.parametrize("bad", [Fraction(0), Fraction(-1), Fraction(2**101)])
def test_scales_out_of_range_are_refused(bad: Fraction) -> None:
    for draw in (discrete_gaussian, discrete_laplace, geometric):
        with pytest.raises(UsageError, match="above 0 and at most"):
            draw(3, bad)
    with pytest.raises(UsageError):
        rare_positions(10, bad, 1)


@pytest.mark.parametrize(("limit", "threshold"), [(-1, 1), (2**62, 1), (10, 0)])
def test_rare_positions_refuse_what_they_cannot_count(limit: int, threshold: int) -> None:
    with pytest.raises(UsageError, match="sparse noise"):
        rare_positions(limit, Fraction(1), threshold)


@pytest.mark.parametrize("power", [8, 20, 40, 60])
def test_moments_at_any_scale(power: int) -> None:
    """Means of |X| and of the sign, and the share below the median, against the exponential distribution; 6
    deviations."""
    size, scale = 100_000, 2**power
    values = discrete_laplace(size, Fraction(scale)).astype(np.float64)
    assert abs(np.sign(values).mean()) < 6 / math.sqrt(size)
    assert abs((np.abs(values) < scale * math.log(2)).mean() - 0.5) < 6 * 0.5 / math.sqrt(size) + 2 / scale
    cut = np.minimum(np.abs(values), 3 * scale)
    mean, deviation = scale * (1 - math.exp(-3)), scale
    assert abs(cut.mean() - mean) < 6 * deviation / math.sqrt(size) + 2


def test_the_largest_scale_is_cut_and_never_wraps() -> None:
    values = discrete_laplace(20_000, Fraction(2**60))
    assert values.max() == LARGEST
    assert values.min() == -LARGEST
    assert abs((np.abs(values) == LARGEST).mean() - math.exp(-4)) < 6 * math.sqrt(math.exp(-4) / 20_000)


def test_low_digits_of_large_noise_are_uniform_and_independent() -> None:
    """At scale 2⁴⁰ the lowest and the second digit are as good as uniform; so is their combination."""
    values = np.abs(discrete_laplace(200_000, Fraction(2**40)))
    for shift in (0, 6, 12, 18):
        counts = np.bincount((values >> shift) & 63, minlength=64)
        assert np.all(np.abs(counts - 3125) < 6 * math.sqrt(3125))
    mixed = np.bincount(((values >> 9) & 7) * 8 + ((values >> 12) & 7), minlength=64)
    assert np.all(np.abs(mixed - 3125) < 6 * math.sqrt(3125))


def test_minus_zero_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With sign and magnitude drawn apart, zero would come up twice as often if minus zero were kept."""
    monkeypatch.setattr(noise, "_SINGLE_TABLE_SCALE", Fraction(1, 2))
    values = discrete_laplace(400_000, Fraction(1))
    ratio = math.exp(-1)
    expected = (1 - ratio) / (1 + ratio)
    assert abs((values == 0).mean() - expected) < 6 * math.sqrt(expected / 400_000)
    assert abs((values == -1).mean() - expected * ratio) < 6 * math.sqrt(expected / 400_000)


def test_rare_positions_increase_and_lie_inside() -> None:
    for limit, scale, threshold in ((0, 1, 1), (1, 1, 1), (1000, 3, 2), (10**6, 2, 12), (10**15, 2, 52)):
        positions = rare_positions(limit, Fraction(scale), threshold)
        assert positions.dtype == np.int64
        assert np.all(np.diff(positions) > 0)
        assert positions.size == 0 or (positions[0] >= 0 and positions[-1] < limit)


def test_thresholds_out_of_reach_are_cheap() -> None:
    """p = e^−50,000: the tables of the lower digits would need a hundred thousand bits and are never built."""
    assert rare_positions(2**61, Fraction(1, 1000), 50).size == 0


# The table sampler: what 63 bits decide, what they leave open, and what lies beyond the table.


Bytes = Callable[[int], bytes]


def _words(*words: int) -> bytes:
    return b"".join(word.to_bytes(8, "little") for word in words)


def _feed(monkeypatch: pytest.MonkeyPatch, first: bytes, then: Bytes) -> None:
    """The generator gives `first` once, then whatever `then` makes of the number of bytes asked."""
    calls: list[int] = []

    def urandom(size: int) -> bytes:
        calls.append(size)
        return first if len(calls) == 1 else then(size)

    monkeypatch.setattr(cumulative.os, "urandom", urandom)  # type: ignore[attr-defined]


def _zeros(size: int) -> bytes:
    return bytes(size)


def _ones(size: int) -> bytes:
    return b"\xff" * size


def test_words_are_turned_into_values_as_defined(monkeypatch: pytest.MonkeyPatch) -> None:
    table = NoiseTable(FoldedGaussian(Fraction(4)))
    entries = [int(entry) for entry in table.entries]
    sign = 1 << 63
    words = [0, entries[0] - 1, entries[0] + 1, entries[1] - 1, entries[5] - 1, entries[5] + 1]
    _feed(monkeypatch, _words(*words, *(word | sign for word in words)), _zeros)
    assert table.draw_signed(12).tolist() == [0, 0, 1, 1, 5, 6, 0, 0, -1, -1, -5, -6]
    _feed(monkeypatch, _words(*words, *(word | sign for word in words)), _zeros)
    assert table.draw_marked(12).tolist() == [0, 0, 1, 1, 5, 6, -1, -1, -2, -2, -6, -7]
    _feed(monkeypatch, _words(*words, *(word | sign for word in words)), _zeros)
    assert table.draw(12).tolist() == [0, 0, 1, 1, 5, 6] * 2


@pytest.mark.parametrize(
    "distribution", [FoldedGaussian(Fraction(4)), FoldedLaplace(Fraction(3)), Digit(Fraction(1, 9), top=7)]
)
def test_a_tie_is_decided_by_further_bits(distribution: FoldedGaussian, monkeypatch: pytest.MonkeyPatch) -> None:
    """U just above T[k]/2⁶³ is below F(k); U just below (T[k]+1)/2⁶³ is above it."""
    table = NoiseTable(distribution)
    for k in range(5):
        tie = int(table.entries[k])
        _feed(monkeypatch, _words(tie), _zeros)
        assert table.draw(1).tolist() == [k]
        _feed(monkeypatch, _words(tie), _ones)
        assert table.draw(1).tolist() == [k + 1]
        _feed(monkeypatch, _words(tie | 1 << 63), _ones)
        assert table.draw_signed(1).tolist() == [-k - 1]


def test_values_beyond_the_table_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """126 ones, then zeros: 1 − U is about 2⁻¹²⁶, where P(|X| > k) tells k."""
    table = NoiseTable(FoldedLaplace(Fraction(2)))
    answers = iter([b"\xff" * 8])
    _feed(monkeypatch, _words(2**63 - 1), lambda size: next(answers, bytes(size)))
    (value,) = table.draw(1).tolist()
    with localcontext(Context(prec=60)):
        above = [2 * (-Decimal(k + 1) / 2).exp() / (1 + Decimal("-0.5").exp()) for k in (value - 1, value)]
        assert above[0] > Decimal(2) ** -127 >= above[1]
    assert value > table.entries.size


def test_the_topmost_digit_ends_where_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    for distribution, largest in ((Digit(Fraction(1, 9), top=7), 6), (Digit(Fraction(1, 9), cap=7), 7)):
        _feed(monkeypatch, _words(2**63 - 1), _ones)
        assert NoiseTable(distribution).draw(1).tolist() == [largest]


@pytest.mark.parametrize("bits", [6, 8])
@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(9)])
def test_few_bits_give_the_same_gaussian(bits: int, variance: Fraction) -> None:
    values = NoiseTable(FoldedGaussian(variance), bits).draw_signed(100_000)
    assert z_score(values, gaussian_distribution(float(variance))) < 6


@pytest.mark.parametrize("bits", [6, 8])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(4)])
def test_few_bits_give_the_same_laplace(bits: int, scale: Fraction) -> None:
    values = NoiseTable(FoldedLaplace(scale), bits).draw_signed(100_000)
    assert z_score(values, laplace_distribution(float(scale))) < 6


def test_few_bits_without_the_slow_path_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NoiseTable, "_resolve", lambda self, k, prefix: k)
    values = NoiseTable(FoldedGaussian(Fraction(9)), 6).draw_signed(100_000)
    assert z_score(values, gaussian_distribution(9.0)) > 12


def prefix_distance(table: NoiseTable, cumulative: list[Fraction]) -> Fraction:
    """Total variation between the table read alone (u ≤ T[k] decides) and a distribution given by P(X ≤ 0), P(X ≤ 1),
    ….

    What lies beyond the given list counts in full.
    """
    scale = 1 << table.bits
    distance, before_table, before_distribution = Fraction(0), Fraction(0), Fraction(0)
    for k, exact in enumerate(cumulative):
        here = Fraction(min(int(table.entries[k]) + 1, scale), scale) if k < table.entries.size else Fraction(1)
        distance += abs((here - before_table) - (exact - before_distribution))
        before_table, before_distribution = here, exact
    return (distance + (1 - before_distribution) + (1 - before_table)) / 2


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5), Fraction(40)])
def test_the_table_alone_is_as_close_as_its_bits_allow(scale: Fraction) -> None:
    table = NoiseTable(FoldedLaplace(scale))
    with localcontext(Context(prec=80)):
        ratio = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
        exact = [Fraction(1 - 2 * ratio ** (k + 1) / (1 + ratio)) for k in range(table.entries.size + 50)]
    assert prefix_distance(table, exact) <= Fraction(table.entries.size + 1, 2**63)
    assert prefix_distance(NoiseTable(FoldedLaplace(scale * Fraction(101, 100))), exact) > Fraction(1, 1000)


def test_every_word_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many bytes are asked as words are used, each asked for once."""
    queries: list[int] = []
    true = os.urandom

    def urandom(size: int) -> bytes:
        queries.append(size)
        return true(size)

    monkeypatch.setattr(cumulative.os, "urandom", urandom)  # type: ignore[attr-defined]
    NoiseTable(FoldedGaussian(Fraction(9))).draw_signed(100_001)
    assert sum(queries) == 8 * 100_001


def test_tables_are_reused_and_hold_no_randomness() -> None:
    distribution = FoldedGaussian(Fraction(17))
    assert table_for(distribution) is table_for(FoldedGaussian(Fraction(17)))
    assert set(vars(table_for(distribution))) == {"distribution", "bits", "entries", "_steps", "_padded"}


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 40_000])
def test_any_number_of_draws(size: int) -> None:
    values = NoiseTable(FoldedGaussian(Fraction(9))).draw_signed(size)
    assert values.shape == (size,)
    assert values.dtype == np.int64


@pytest.mark.parametrize("limit", [1, 2, 5, 300])
def test_uniform_below(limit: int) -> None:
    draws = np.array([uniform_below(limit) for _ in range(20_000)])
    assert z_score(draws, dict.fromkeys(range(limit), 1 / limit)) < 6


# Coins of the secure randomizer: independent, of the stated probability, for every unit alike.


LEVEL = 1e-9
"""How likely correct coins give one number of hits as far out, on either side: 118 times in a test, about 1e-7."""


def _least_tail(hits: np.ndarray, runs: int, probability: float) -> float:
    """The chance of the least likely number of hits or one farther out, exact: a rare pair is expected only twice."""
    below, above = stats.binom.cdf(hits, runs, probability), stats.binom.sf(hits - 1, runs, probability)
    return float(np.minimum(below, above).min())


@pytest.mark.parametrize("gap", [Fraction(1, 2), Fraction(7, 3), Fraction(40)])
def test_every_unit_has_the_same_chance_and_neighbours_are_independent(gap) -> None:
    units, runs = 30, 4000
    taken = np.zeros((runs, units))
    for run in range(runs):
        taken[run, sampled_positions(units, gap)] = 1
    probability = -math.expm1(-1 / float(gap))
    assert _least_tail(taken.sum(axis=0), runs, probability) > LEVEL
    together = (taken[:, 1:] * taken[:, :-1]).sum(axis=0)
    assert _least_tail(together, runs, probability**2) > LEVEL


def test_positions_increase_and_end_in_time() -> None:
    for limit in (0, 1, 2, 100_000):
        found = sampled_positions(limit, Fraction(3))
        assert (np.diff(found) > 0).all()
        assert found.size == 0 or (found[0] >= 0 and found[-1] < limit)
    assert sampled_positions(10, Fraction(2**50)).size == 0


def test_bad_requests_are_refused() -> None:
    records = Records(np.zeros((3, 1), dtype=np.uint8), np.arange(4))
    with pytest.raises(UsageError):
        SecureRandomizer().sample(Request("train", "x", 1, None, Fraction(1)), records)
    with pytest.raises(UsageError):
        sampled_positions(-1, Fraction(2))
    with pytest.raises(UsageError):
        sampled_positions(5, Fraction(0))


# Gaussian integers by rejection have the distribution of the tables, where both can be drawn, and the right shape
# beyond.


LIMIT = 6.0


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(10), Fraction(731, 7)])
def test_the_distribution_is_the_discrete_gaussian(variance: Fraction) -> None:
    values = wide_gaussian(8_000, variance, discrete_laplace, geometric, LARGEST)
    assert z_score(values, gaussian_distribution(float(variance))) < LIMIT
    assert z_score(values, gaussian_distribution(1.5 * float(variance))) > LIMIT  # missed with probability below 1e-30


@pytest.mark.parametrize(("size", "by_table"), [(8_190, False), (8_200, True)])
def test_few_numbers_of_a_large_variance_take_no_table(
    size: int, by_table: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def asking(distribution: cumulative.Cumulative) -> NoiseTable:
        asked.append(distribution)
        return table_for(distribution)

    monkeypatch.setattr(noise, "table_for", asking)
    variance = Fraction(2**28)
    values = np.concatenate([discrete_gaussian(size, variance) for _ in range(4)])
    assert (FoldedGaussian(variance) in asked) is by_table
    assert stats.kstest(values / 2.0**14, "norm").pvalue > 1e-9
    assert stats.kstest(values / 2.0**14 * 1.5, "norm").pvalue < 1e-9  # missed with probability below 1e-40


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(731, 7), Fraction(2**90), Fraction(2**100)])
def test_a_float_is_asked_only_where_bounds_say_the_same(variance: Fraction) -> None:
    scale = Fraction(math.isqrt(math.floor(variance)) + 1)
    proposals = np.abs(discrete_laplace(1_500, scale))
    words = np.frombuffer(os.urandom(8 * proposals.size), dtype=np.uint64)
    keeps, unsure = _screened(proposals, words, variance, scale)
    sure = np.flatnonzero(~unsure).tolist()
    assert len(sure) > 1_400
    for at in sure:
        exponent = (int(proposals[at]) - variance / scale) ** 2 / (2 * variance)
        assert happens(exponent, int(words[at])) == keeps[at]
    # A word that lies where the float does is never taken for an answer.
    chance = math.exp(-float((int(proposals[0]) - variance / scale) ** 2 / (2 * variance)))
    near = np.array([min(int(chance * 2**64), 2**64 - 1)], np.uint64)
    assert _screened(proposals[:1], near, variance, scale)[1].all()


def test_beyond_the_tables_it_is_normal_to_many_digits() -> None:
    values = discrete_gaussian(6_000, Fraction(2**90))
    assert stats.kstest(values / 2.0**45, "norm").pvalue > 1e-9
    assert stats.kstest(values / 2.0**45 * 1.5, "norm").pvalue < 1e-9  # missed with probability below 1e-40
    assert values.dtype == np.int64


def test_what_a_proposal_was_cut_at_is_drawn_on() -> None:
    """Draws cut at 8 give the same distribution, reported at ±8 where they lie beyond."""

    def cut(draw):
        return lambda size, scale: np.clip(draw(size, scale), -8, 8)

    values = wide_gaussian(8_000, Fraction(40), cut(discrete_laplace), cut(geometric), 8)
    distribution = gaussian_distribution(40.0)
    clipped = {k: probability for k, probability in distribution.items() if abs(k) < 8}
    clipped[8] = clipped[-8] = sum(probability for k, probability in distribution.items() if k >= 8)
    assert z_score(values, clipped) < LIMIT


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 3), Fraction(2)])
def test_a_chance_of_e_to_the_minus(exponent: Fraction) -> None:
    probability, runs = math.exp(-exponent), 8_000
    hits = sum(happens(exponent) for _ in range(runs))
    assert abs(hits - probability * runs) <= LIMIT * math.sqrt(runs * probability * (1 - probability))
    assert not any(happens(Fraction(1000)) for _ in range(100))


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(3), Fraction(50), Fraction(333)])
def test_bounds_of_any_precision_hold_the_finest_ones(variance: Fraction) -> None:
    """At few bits an error term with the wrong sign shows in many of them."""
    folded = FoldedGaussian(variance)
    for k in range(14):
        low, high = folded.bounds(k, 200)
        for bits in range(3, 44):
            lower, upper = folded.bounds(k, bits)
            assert lower << (200 - bits) <= low <= high <= upper << (200 - bits)


def test_a_chance_that_its_first_bits_do_not_decide() -> None:
    """The first 64 bits are those of the chance itself: what is left of it decides, as often as it is large."""
    exponent, runs = Fraction(3, 4), 2_000
    with localcontext(Context(prec=60)):
        scaled = (-(Decimal(3) / 4)).exp() * 2**64
    prefix, rest = int(scaled), float(scaled % 1)
    assert 0.1 < rest < 0.9
    hits = sum(happens(exponent, prefix) for _ in range(runs))
    assert abs(hits - rest * runs) <= LIMIT * math.sqrt(runs * rest * (1 - rest))
    assert not happens(exponent, prefix + 1)
    assert happens(exponent, prefix - 1)
