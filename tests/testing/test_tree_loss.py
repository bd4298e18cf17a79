"""The loss of a tree is the log ratio of its decisions, and its cost is never below the theorem's."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.statistics.chi_square import laplace_distribution
from understudy.answers import GROWTH_UNIT, Distribution
from understudy.privacy.cost import UNIT, Cost, growth_rule
from understudy.privacy.randomizer import Request
from understudy.testing.replay import split_loss, split_probability, tree_epsilon


def _request(distribution: Distribution | None, bias: int = GROWTH_UNIT, rows: int = 1, threshold: int = 0) -> Request:
    sensitivity = Fraction(rows * GROWTH_UNIT)
    return Request("grow", "tree", 2, distribution, sensitivity, threshold=threshold, bias=bias)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7)])
def test_chances_are_sums_of_the_distribution(scale: Fraction) -> None:
    distribution = laplace_distribution(float(scale), 60.0)
    for above in (-5, -1, 0, 1, 2, 9):
        direct = sum(probability for noise, probability in distribution.items() if above + noise > 0)
        assert math.exp(split_probability(np.array([above]), scale)[0]) == pytest.approx(direct, abs=1e-12)


def test_losses_of_splits_and_leaves_add_up() -> None:
    distribution = Distribution("laplace", Fraction(7))
    one, other, split = np.array([15, 12]), np.array([14, 12]), np.array([True, False])
    by_hand = split_probability(np.array([5]), Fraction(7)) - split_probability(np.array([4]), Fraction(7))
    assert split_loss(_request(distribution, threshold=10), one, other, split) == pytest.approx(by_hand[0])
    stopped = split_loss(_request(distribution, threshold=10), one, other, ~split)
    probabilities = [1 - math.exp(split_probability(np.array([at]), Fraction(7))[0]) for at in (5, 4)]
    assert stopped == pytest.approx(math.log(probabilities[0] / probabilities[1]))
    assert split_loss(_request(None), one, other, split) == math.inf


@pytest.mark.parametrize(("units", "decay", "rows"), [(UNIT, 2, 1), (UNIT // 7, 14, 3), (9 * UNIT, 2, 2)])
def test_the_price_is_recovered_from_noise_and_bias(units: int, decay: int, rows: int) -> None:
    distribution, bias = growth_rule(Cost(epsilon=units), rows, Fraction(decay), "grow")
    paid_for = tree_epsilon(_request(distribution, bias, rows))
    assert paid_for is not None
    assert 0.6 * Fraction(units, UNIT) < paid_for <= Fraction(units, UNIT)


def test_where_the_theorem_does_not_hold_there_is_no_price() -> None:
    distribution = Distribution("laplace", Fraction(3 * GROWTH_UNIT))
    assert tree_epsilon(_request(distribution, GROWTH_UNIT - 1)) is None
    assert tree_epsilon(_request(None)) is None
    assert tree_epsilon(_request(Distribution("gaussian", Fraction(9)))) is None
