"""Exact selection: weights as proved intervals, decisions by definition, refusals."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest

from tests.statistics.chi_square import z_score
from understudy.errors import UsageError
from understudy.privacy import selection
from understudy.privacy.selection import choose_exponentially


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
