"""The loss of a tree is the log ratio of its decisions, and its price is never below the theorem's."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.statistics.chi_square import laplace_law
from understudy.audit.tree_loss import split_chance, split_loss, tree_epsilon
from understudy.marginals.answer import GROWTH_UNIT, Law
from understudy.privacy.calibrate import growth_rule
from understudy.privacy.cost import UNIT, Cost
from understudy.privacy.randomizer import Request


def _request(law: Law | None, bias: int = GROWTH_UNIT, rows: int = 1, threshold: int = 0) -> Request:
    sensitivity = Fraction(rows * GROWTH_UNIT)
    return Request("grow", "tree", 2, law, sensitivity, threshold=threshold, bias=bias)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7)])
def test_chances_are_sums_of_the_law(scale: Fraction) -> None:
    law = laplace_law(float(scale), 60.0)
    for above in (-5, -1, 0, 1, 2, 9):
        direct = sum(chance for noise, chance in law.items() if above + noise > 0)
        assert math.exp(split_chance(np.array([above]), scale)[0]) == pytest.approx(direct, abs=1e-12)


def test_losses_of_splits_and_leaves_add_up() -> None:
    law = Law("laplace", Fraction(7))
    one, other, split = np.array([15, 12]), np.array([14, 12]), np.array([True, False])
    by_hand = split_chance(np.array([5]), Fraction(7)) - split_chance(np.array([4]), Fraction(7))
    assert split_loss(_request(law, threshold=10), one, other, split) == pytest.approx(by_hand[0])
    stopped = split_loss(_request(law, threshold=10), one, other, ~split)
    chances = [1 - math.exp(split_chance(np.array([at]), Fraction(7))[0]) for at in (5, 4)]
    assert stopped == pytest.approx(math.log(chances[0] / chances[1]))
    assert split_loss(_request(None), one, other, split) == math.inf


@pytest.mark.parametrize(("units", "decay", "rows"), [(UNIT, 2, 1), (UNIT // 7, 14, 3), (9 * UNIT, 2, 2)])
def test_the_price_is_recovered_from_noise_and_bias(units: int, decay: int, rows: int) -> None:
    law, bias = growth_rule(Cost(epsilon=units), rows, Fraction(decay), "grow")
    priced = tree_epsilon(_request(law, bias, rows))
    assert priced is not None
    assert 0.6 * Fraction(units, UNIT) < priced <= Fraction(units, UNIT)


def test_where_the_theorem_does_not_hold_there_is_no_price() -> None:
    law = Law("laplace", Fraction(3 * GROWTH_UNIT))
    assert tree_epsilon(_request(law, GROWTH_UNIT - 1)) is None
    assert tree_epsilon(_request(None)) is None
    assert tree_epsilon(_request(Law("gaussian", Fraction(9)))) is None
