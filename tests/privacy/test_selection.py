"""Exact selection: weights as proved intervals, decisions by definition, refusals."""

import math
import os
from fractions import Fraction
from math import exp
from unittest import mock

import numpy as np
import pytest

from tests.statistics.chi_square import pearson, z_score
from understudy.errors import UsageError
from understudy.privacy import randomizer as selection
from understudy.privacy.randomizer import _digit_weights, _resolve, _weight, choose_each, choose_exponentially


def test_the_best_option_wins_when_it_is_far_ahead() -> None:
    scores = [5, 0, 2**60, -(2**62), 7]
    assert {choose_exponentially(scores, Fraction(1, 1000)) for _ in range(50)} == {2}


def test_equal_scores_are_equally_likely() -> None:
    draws = np.array([choose_exponentially([3] * 7, Fraction(5)) for _ in range(7000)])
    assert z_score(draws, dict.fromkeys(range(7), 1 / 7)) < 6


def test_rate_zero_ignores_the_scores() -> None:
    draws = np.array([choose_exponentially([0, 100, -(10**9)], Fraction(0)) for _ in range(6000)])
    assert z_score(draws, dict.fromkeys(range(3), 1 / 3)) < 6


def test_groups_and_single_options_mix_by_weight() -> None:
    scores, rate = [4, 1, 4, 0, 1, 4, 2], Fraction(1, 2)
    weights = [exp(score / 2) for score in scores]
    draws = np.array([choose_exponentially(scores, rate) for _ in range(20_000)])
    assert z_score(draws, {index: weight / sum(weights) for index, weight in enumerate(weights)}) < 6


def test_long_lists_have_the_same_distribution() -> None:
    """Scores 0 … 9, a hundred of each, in turn; the compiled loop draws these."""
    scores, rate = list(range(10)) * 100, Fraction(1, 3)
    assert len(scores) >= selection._MANY
    weights = np.exp(np.arange(10) / 3)
    draws = np.array([choose_exponentially(scores, rate) for _ in range(20_000)])
    assert z_score(draws % 10, dict(enumerate(weights / weights.sum()))) < 6
    assert z_score(draws // 100, dict.fromkeys(range(10), 0.1)) < 6


def test_weights_hold_the_exponentials() -> None:
    gaps, rate, bits = [0, 1, 2, 3, 1000, 2**40 + 5], Fraction(3, 7), 200
    lows = selection._weights(gaps, rate, 100)
    fine = [selection.exp_minus(rate * gap, bits) for gap in gaps]  # type: ignore[attr-defined]
    for (lower, upper), (fine_lower, fine_upper) in zip(lows, fine, strict=True):
        assert lower << 100 <= fine_upper
        assert fine_lower <= upper << 100
        assert upper - lower <= 2


def test_decisions_at_the_border_take_more_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups, border at 1/(1+e⁻¹): bits equal to the border's leave it open, then zeros or ones decide."""
    bits = 128
    lower, upper = selection._cumulated([0, 1], [1, 1], Fraction(1), 4 * bits)
    border = (lower[0] << bits) // upper[1]
    for filler, expected in ((b"\x00", 0), (b"\xff", 1)):
        queries: list[int] = []

        def urandom(size: int, filler: bytes = filler, queries: list[int] = queries) -> bytes:
            queries.append(size)
            return border.to_bytes(16, "little") if len(queries) == 1 else filler * size

        monkeypatch.setattr(selection.os, "urandom", urandom)  # type: ignore[attr-defined]
        assert selection._choose_group([0, 1], [1, 1], Fraction(1)) == expected
        assert len(queries) > 1


def test_decide_knows_what_it_does_not_know() -> None:
    sums = [10, 20], [12, 22]
    assert selection._decide(sums, 0, 4) == 0
    assert selection._decide(sums, 8, 4) is None
    assert selection._decide(sums, 15, 4) == 1


def test_refusals() -> None:
    with pytest.raises(UsageError, match="at least one option"):
        choose_exponentially([], Fraction(1))
    with pytest.raises(UsageError, match="rate"):
        choose_exponentially([1], Fraction(-1))


# Many choices at once: the distribution of each, the certainty of the fast path, and agreement with the slow one.


SCORES = [0, 3, -7, 3, 12, 1]
ALLOWED = [True, True, True, True, False, True]
LIMIT = 6.0


def _distribution(scores: list[int], allowed: list[bool], rate: float) -> np.ndarray:
    """Probabilities in floats, by enumeration."""
    weights = np.array([math.exp(rate * score) if open_ else 0.0 for score, open_ in zip(scores, allowed, strict=True)])
    return weights / weights.sum()


def _tiled(rows: int, unit: int = 1) -> tuple[np.ndarray, np.ndarray]:
    return np.tile(np.array(SCORES) * unit, (rows, 1)), np.tile(np.array(ALLOWED), (rows, 1))


@pytest.mark.parametrize(("rows", "slack"), [(300_000, selection.SLACK), (6_000, 2**59)])
@pytest.mark.parametrize(("unit", "rate"), [(1, Fraction(1, 5)), (2**20, Fraction(3, 11 * 2**20)), (1, Fraction(0))])
def test_every_row_follows_the_exponential_distribution(rows: int, slack: int, unit: int, rate: Fraction) -> None:
    """Also where nothing is certain at first, so that all draws take the slow path."""
    scores, allowed = _tiled(rows, unit)
    chosen = choose_each(scores, allowed, rate, slack=slack)
    expected = _distribution(SCORES, ALLOWED, float(rate * unit)) * rows
    observed = np.bincount(chosen, minlength=len(SCORES))
    assert observed[4] == 0
    assert pearson(observed[expected > 0].astype(float), expected[expected > 0]) < LIMIT
    wrong = _distribution(SCORES, ALLOWED, 1.1 * float(rate * unit)) * rows
    assert rate == 0 or pearson(observed[wrong > 0].astype(float), wrong[wrong > 0]) > (LIMIT if rows > 10**5 else -9)


@pytest.mark.parametrize("slack", [0, 1, 5])
@pytest.mark.parametrize("options", [2, 3])
def test_what_64_bits_decide_is_decided_whatever_bits_follow(options: int, slack: int) -> None:
    """Weights at rate 0 are exact, so every word beside a border is known: U lies in [u, u + 1)/2⁶⁴.

    A word may be left to the slow path, and with so little slack only a few are; none may be decided wrongly.
    """
    table, shift = _digit_weights(Fraction(0)), options.bit_length()
    weight = 2**62 >> shift
    total = options * weight
    border = [-(-place * 2**64 // total) for option in range(1, options) for place in _around(option * weight)]
    words = np.array(border, np.uint64)
    scores, allowed = np.zeros((words.size, options), np.int64), np.ones((words.size, options), np.bool_)
    chosen, pending = np.empty(words.size, np.int64), np.empty(words.size, np.int64)
    count = selection._choose(scores, allowed, words, table, shift, slack, chosen, pending)
    slow = set(pending[:count].tolist())
    for at, word in enumerate(border):
        least, most = word * options >> 64, ((word + 1) * options - 1) >> 64
        if at not in slow:
            assert least == most == chosen[at]
    assert len(slow) < len(border) / 2, "else nothing was decided here"


def _around(place: int) -> range:
    return range(place - 40, place + 40)


def test_rows_differ_and_are_independent() -> None:
    """Two cells with their own scores: the joint frequencies are products."""
    rows = 100_000
    scores = np.array([[0, 1], [2, 0]])
    chosen = choose_each(np.tile(scores, (rows, 1)), np.ones((2 * rows, 2), np.bool_), Fraction(1))
    pairs = np.bincount(2 * chosen[0::2] + chosen[1::2], minlength=4).astype(float)
    first, second = _distribution([0, 1], [True] * 2, 1.0), _distribution([2, 0], [True] * 2, 1.0)
    assert pearson(pairs, np.outer(first, second).ravel() * rows) < LIMIT


@pytest.mark.parametrize("rate", [Fraction(1, 7), Fraction(5, 2**22), Fraction(10**6)])
def test_weights_are_lower_bounds_and_nearly_exact(rate: Fraction) -> None:
    table = _digit_weights(rate)
    for gap in [0, 1, 15, 16, 255, 2**20 + 3, 2**40, 2**63, 2**64 - 1]:
        exact = math.exp(-min(float(rate * gap), 700.0)) if rate * gap < 700 else 0.0
        weight = int(_weight(np.uint64(gap), table))
        bound = selection.exp_minus(rate * gap, 200)  # type: ignore[attr-defined]
        assert weight << 138 <= bound[1]
        assert (weight + 64) << 138 >= bound[0]
        assert weight / 2**62 == pytest.approx(exact, abs=2.0**-55)


def test_what_the_fast_path_decides_the_slow_path_confirms() -> None:
    rng = np.random.default_rng(5)
    scores = rng.integers(-(2**30), 2**30, (400, 7))
    allowed = rng.random((400, 7)) < 0.7
    allowed[:, 3] = True
    rate = Fraction(1, 2**28)
    words = rng.bytes(8 * 400)
    with mock.patch.object(os, "urandom", lambda size: words[:size]):
        fast = choose_each(scores, allowed, rate)
    prefixes = np.frombuffer(words, np.uint64)
    slow = [_resolve(scores[row], allowed[row], rate, int(prefixes[row])) for row in range(400)]
    assert fast.tolist() == slow


def test_a_prefix_on_the_border_draws_more_bits() -> None:
    """Two equal options: the 64 bits 0111… end just below one half, and need no more; 1000… belongs to the second."""
    scores, allowed = np.zeros(2, np.int64), np.ones(2, np.bool_)
    assert _resolve(scores, allowed, Fraction(1), 2**63 - 1) == 0
    assert _resolve(scores, allowed, Fraction(1), 2**63) == 1
    three = np.array([0, 0, 5])
    third = 2**64 // 3
    with mock.patch.object(os, "urandom", side_effect=lambda size: b"\0" * size) as drawn:
        assert _resolve(three, np.array([True, True, False]), Fraction(1), third) == 0
        assert _resolve(np.zeros(3, np.int64), np.ones(3, np.bool_), Fraction(1), third) == 0
    assert drawn.called


@pytest.mark.parametrize("extreme", [2**62, 2**63 - 1])
def test_extreme_scores(extreme: int) -> None:
    scores = np.array([[extreme, -extreme, 0]] * 50)
    assert (choose_each(scores, np.ones((50, 3), np.bool_), Fraction(1)) == 0).all()
    assert (choose_each(scores, np.tile([False, True, True], (50, 1)), Fraction(1, 2**20)) == 2).all()
    assert set(choose_each(scores, np.ones((50, 3), np.bool_), Fraction(0)).tolist()) == {0, 1, 2}


def test_shapes() -> None:
    assert choose_each(np.zeros((0, 3), np.int64), np.zeros((0, 3), np.bool_), Fraction(1)).size == 0
    assert choose_each(np.zeros((5, 1), np.int64), np.ones((5, 1), np.bool_), Fraction(1)).tolist() == [0] * 5
    many = choose_each(np.zeros((40_000, 1), np.int64), np.ones((40_000, 1), np.bool_), Fraction(1))
    assert many.size == 40_000
    thousand = choose_each(np.zeros((2000, 1000), np.int64), np.ones((2000, 1000), np.bool_), Fraction(1))
    assert abs(thousand.mean() - 499.5) < 6 * 1000 / math.sqrt(12 * 2000)


@pytest.mark.parametrize(
    ("scores", "allowed", "rate"),
    [
        (np.zeros((2, 2)), np.ones((2, 2), np.bool_), Fraction(1)),
        (np.zeros((2, 2), np.int64), np.ones((2, 3), np.bool_), Fraction(1)),
        (np.zeros((2, 2), np.int64), np.array([[True, False], [False, False]]), Fraction(1)),
        (np.zeros((2, 2), np.int64), np.ones((2, 2), np.bool_), Fraction(-1)),
        (np.zeros(2, np.int64), np.ones(2, np.bool_), Fraction(1)),
    ],
)
def test_bad_input_is_refused(scores: np.ndarray, allowed: np.ndarray, rate: Fraction) -> None:
    with pytest.raises(UsageError):
        choose_each(scores, allowed, rate)
