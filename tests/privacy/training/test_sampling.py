"""Coins of the secure randomizer: independent, of the stated probability, for every unit alike."""

import math
from fractions import Fraction

import numpy as np
import pytest

from understudy.counts.source import Records
from understudy.errors import UsageError
from understudy.privacy.noise import sampled_positions
from understudy.privacy.randomizer import Request
from understudy.privacy.secure import SecureRandomizer

MOST_Z = 6.0


@pytest.mark.parametrize("gap", [Fraction(1, 2), Fraction(7, 3), Fraction(40)])
def test_every_unit_has_the_same_chance_and_neighbours_are_independent(gap) -> None:
    units, runs = 30, 4000
    taken = np.zeros((runs, units))
    for run in range(runs):
        taken[run, sampled_positions(units, gap)] = 1
    chance = -math.expm1(-1 / float(gap))
    spread = math.sqrt(chance * (1 - chance) / runs)
    assert np.abs(taken.mean(axis=0) - chance).max() < MOST_Z * spread
    together = (taken[:, 1:] * taken[:, :-1]).mean(axis=0)
    pair = chance**2
    assert np.abs(together - pair).max() < MOST_Z * math.sqrt(pair * (1 - pair) / runs)


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
