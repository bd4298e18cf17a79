"""The table sampler: what 63 bits decide, what they leave open, and what lies beyond the table."""

import os
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from tests.statistics.chi_square import gaussian_distribution, laplace_distribution, z_score
from understudy.privacy import noise as cumulative
from understudy.privacy.distributions import Digit, FoldedGaussian, FoldedLaplace
from understudy.privacy.noise import NoiseTable, table_for, uniform_below

Bytes = Callable[[int], bytes]


def _words(*words: int) -> bytes:
    return b"".join(word.to_bytes(8, "little") for word in words)


def _feed(monkeypatch: pytest.MonkeyPatch, first: bytes, then: Bytes) -> None:
    """The generator gives `first` once, then whatever `then` makes of the number of bytes asked."""
    calls: list[int] = []

    def urandom(size: int) -> bytes:
        calls.append(size)
        return first if len(calls) == 1 else then(size)

    monkeypatch.setattr(cumulative.os, "urandom", urandom)


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

    monkeypatch.setattr(cumulative.os, "urandom", urandom)
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
