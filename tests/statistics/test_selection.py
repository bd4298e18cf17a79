"""Is the choice the exponential mechanism that was paid for? Truth tables with two candidates, z < 6.

Chosen as log odds: the exponential mechanism gives rate·gap exactly. Permute-and-flip, the minimum instead of the
maximum, a forgotten factor ½ or a rate a tenth off are all told apart.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from understudy.domain import SCORE_UNIT
from understudy.privacy.cost import UNIT, Cost, selection_rate
from understudy.privacy.randomizer import Request, SecureRandomizer

DRAWS = 40_000
LIMIT = 6.0


def _share_of_second(scores: list[int], rate: Fraction) -> float:
    request = Request("select", "pair", 2, None, Fraction(SCORE_UNIT), rate)
    array = np.array(scores, dtype=np.int64)
    randomizer = SecureRandomizer()
    return sum(randomizer.choose(request, array) for _ in range(DRAWS)) / DRAWS


def _z(share: float, expected: float) -> float:
    return abs(share - expected) / math.sqrt(expected * (1 - expected) / DRAWS)


def _logistic(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("cost", "epsilon"), [(Cost(epsilon=2 * UNIT), 2.0), (Cost(rho=UNIT // 2), 2.0)])
def test_two_candidates(cost: Cost, epsilon: float, *, monotone: bool) -> None:
    """ρ = ½ buys the same ε = 2 as ε = 2 does; the gap is one sensitivity."""
    rate = selection_rate(cost, Fraction(SCORE_UNIT), "select pair", monotone=monotone)
    odds = epsilon if monotone else epsilon / 2
    share = _share_of_second([10 * SCORE_UNIT, 11 * SCORE_UNIT], rate)
    assert _z(share, _logistic(odds)) < LIMIT
    # A tenth off would be missed once in a few hundred runs at these draws; a fifth never is (below 1e-30).
    for wrong in (0.8 * odds, 1.25 * odds, 2 * odds, odds / 2, -odds):
        assert _z(share, _logistic(wrong)) > LIMIT
    permute_and_flip = 1 - math.exp(-odds) / 2
    assert _z(share, permute_and_flip) > LIMIT


def test_the_larger_score_is_favoured_at_either_place() -> None:
    """Gap 2 at rate 1: 0.881 for the exponential mechanism, 0.932 for permute-and-flip."""
    share = _share_of_second([2, 0], Fraction(1))
    assert _z(share, 1 - 0.880797) < LIMIT
    assert _z(share, 1 - 0.932332) > LIMIT
