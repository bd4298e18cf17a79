"""Coins of the secure randomizer: independent, of the stated probability, for every unit alike."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from understudy.counts.source import Records
from understudy.errors import UsageError
from understudy.privacy.noise import sampled_positions
from understudy.privacy.randomizer import Request, SecureRandomizer

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
