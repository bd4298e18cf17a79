"""Rates, thresholds, trees and training against what the reference finds for the same settings."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.reference import training as reference
from tests.reference import trees
from tests.reference.conversions import least_epsilon_of_rho
from tests.reference.noise import choice_chances, decimal, exponential, laplace_mass, laplace_tail
from understudy.domain import GROWTH_UNIT, Course, Distribution
from understudy.privacy.cost import (
    DELTA_UNIT,
    UNIT,
    Cost,
    check_sparse,
    discovery_threshold,
    growth_rule,
    selection_rate,
)
from understudy.privacy.noise import exp_minus
from understudy.privacy.training import (
    ORDERS,
    Contributions,
    TrainingPart,
    bounded_sum,
    epsilon_of,
    parts_epsilon,
    rate_of,
    renyi,
    training_distributions,
)
from understudy.privacy.trees import biased_counts

COSTS = st.integers(10**9, 10 * UNIT)


@settings(max_examples=30)
@given(COSTS, st.lists(st.integers(0, 40), min_size=2, max_size=5), st.data())
def test_no_option_is_likelier_for_a_neighbour_than_its_cost_says(
    units: int, before: list[int], data: st.DataObject
) -> None:
    """Exact chances of both tables: the largest log-ratio is ε at most, its range too (that makes it ε²/8-zCDP)."""
    moved = 3
    monotone = data.draw(st.booleans())
    change = st.integers(0, moved) if monotone else st.integers(-moved, moved)
    after = [score + data.draw(change) for score in before]
    epsilon = decimal(Fraction(units, UNIT))
    for cost, granted in ((Cost(epsilon=units), epsilon), (Cost(rho=units), (8 * epsilon).sqrt())):
        rate = selection_rate(cost, Fraction(moved), "x", monotone=monotone)
        one, other = choice_chances(before, rate), choice_chances(after, rate)
        ratios = [(first / second).ln() for first, second in zip(one, other, strict=True)]
        assert max(abs(ratio) for ratio in ratios) <= granted * (1 + Decimal(10) ** -50)
        assert max(ratios) - min(ratios) <= granted * (1 + Decimal(10) ** -50)


@given(COSTS, st.fractions(Fraction(1, 9), 9, max_denominator=20))
def test_the_rate_of_a_choice_uses_the_cost_up(units: int, moved: Fraction) -> None:
    assert selection_rate(Cost(epsilon=units), moved, "x", monotone=True) * moved == Fraction(units, UNIT)
    assert selection_rate(Cost(epsilon=units), moved, "x", monotone=False) * 2 * moved == Fraction(units, UNIT)
    bought = selection_rate(Cost(rho=units), moved, "x", monotone=False) * 2 * moved
    assert bought**2 / 8 <= Fraction(units, UNIT) < (bought + Fraction(1, 10**17)) ** 2 / 8


@settings(max_examples=40)
@given(st.fractions(Fraction(1, 5), 30, max_denominator=20), st.integers(1, 5), st.integers(1, DELTA_UNIT // 20))
def test_the_threshold_is_the_least_that_hides_lone_labels(scale: Fraction, rows: int, delta: int) -> None:
    """k labels of k rows each: any shows with probability k·P(noise ≥ τ − k) at most."""
    found = discovery_threshold(Distribution("laplace", scale), rows, delta, "x")
    allowed = decimal(Fraction(delta, DELTA_UNIT))
    assert found > rows
    assert rows * laplace_tail(scale, found - rows) <= allowed
    assert found == rows + 1 or rows * laplace_tail(scale, found - rows - 1) > allowed
    exact = 1 - (1 - laplace_tail(scale, found - rows)) ** rows
    assert exact <= allowed


@pytest.mark.parametrize(("cells", "threshold"), [(10**12, 30), (10**12, 40), (10**9, 8), (10**9, 9), (10**15, 60)])
def test_huge_tables_are_refused_where_noise_alone_would_fill_them(cells: int, threshold: int) -> None:
    scale = Fraction(3)
    many = cells * laplace_tail(scale, threshold) > 50_000_000
    try:
        check_sparse(Distribution("laplace", scale), cells, threshold, "x")
    except ValueError:
        assert many
    else:
        assert not many


@settings(max_examples=50)
@given(st.fractions(0, 300, max_denominator=1000), st.integers(8, 240))
def test_bounds_of_exponentials_hold_and_are_narrow(exponent: Fraction, bits: int) -> None:
    lower, upper = exp_minus(exponent, bits)
    exact = exponential(-exponent) * 2**bits
    assert lower <= exact <= upper
    assert upper - lower <= 2


@settings(max_examples=25)
@given(COSTS, st.integers(1, 4), st.sampled_from([Fraction(2), Fraction(5, 2), Fraction(4), Fraction(14)]))
def test_the_noise_and_bias_of_a_tree_are_those_of_its_rule(units: int, rows: int, decay: Fraction) -> None:
    noise, bias = growth_rule(Cost(epsilon=units), rows, decay, "x")
    scale = trees.private_scale(Fraction(units, UNIT) / rows, decay) * GROWTH_UNIT
    assert noise.parameter == scale
    assert bias == trees.least_bias(scale, decay, GROWTH_UNIT)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(3)])
@pytest.mark.parametrize(("decay", "theta"), [(Fraction(2), 0), (Fraction(2), 3), (Fraction(7), 1)])
def test_no_path_of_a_tree_reveals_more_than_its_cost(epsilon: Fraction, decay: Fraction, theta: int) -> None:
    """All falling paths of six counts up to five rows above the threshold."""
    noise, bias = growth_rule(Cost(epsilon=int(epsilon * UNIT)), 1, decay, "x")
    highest = theta + 5
    paths = [path for path in itertools.product(range(highest, -1, -1), repeat=4) if list(path) == sorted(path)[::-1]]
    long = [[*path, *([path[-1]] * 8)] for path in paths]
    worst = trees.worst_loss(Fraction(noise.parameter), bias, theta, GROWTH_UNIT, long)
    assert worst <= decimal(epsilon)
    assert worst >= decimal(epsilon) * Decimal("0.4")


@given(st.integers(0, 2**52), st.integers(0, 1000), st.integers(1, 2**20), st.integers(-5, 2**30))
def test_biased_counts(count: int, depth: int, bias: int, theta: int) -> None:
    (found,) = biased_counts(np.array([count]), np.array([depth]), bias, theta).tolist()
    assert found == max(theta * GROWTH_UNIT - bias, min(count, 2**50) * GROWTH_UNIT - depth * bias)


RATES = st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(1, 10), Fraction(1, 500)])
MULTIPLIERS = st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(5, 2), Fraction(20)])


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 40), RATES, MULTIPLIERS, st.integers(1, 1000))
def test_divergences_of_training_are_the_formula_rounded_up(
    order: int, rate: Fraction, multiplier: Fraction, steps: int
) -> None:
    found = Decimal(renyi(TrainingPart(float(rate), float(multiplier), steps), order))
    exact = steps * reference.formula(order, Fraction(float(rate)), multiplier)
    assert exact <= found <= exact * (1 + Decimal("2e-6"))


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 8), RATES, st.sampled_from([Fraction(1), Fraction(3), Fraction(10)]), st.integers(1, 3))
def test_divergences_of_integer_noise_stay_below_the_formula(
    order: int, rate: Fraction, variance: Fraction, move: int
) -> None:
    """By summing over the lattice, for adding and for removing a unit. The exact one is cut where noise ends."""
    part = TrainingPart(float(rate), math.sqrt(variance) / move)
    assume(part.multiplier > 0.4)
    adding, removing = reference.divergences(order, rate, variance, move)
    assert max(adding, removing) <= Decimal(renyi(part, order))


@settings(max_examples=15, deadline=None)
@given(RATES, MULTIPLIERS, st.integers(1, 300), st.integers(3, 12))
def test_epsilon_of_a_training_is_that_of_an_order_and_no_order_is_much_better(
    rate: Fraction, multiplier: Fraction, steps: int, places: int
) -> None:
    delta = Fraction(1, 10**places)
    found = Decimal(parts_epsilon([TrainingPart(float(rate), float(multiplier), steps)], float(delta)))
    tried = [2, 3, 4, 6, 9, 13, 20, 33, 64]
    exact = [
        reference.epsilon_at(steps * reference.formula(order, Fraction(float(rate)), multiplier), order, delta)
        for order in tried
    ]
    assert found <= min(exact) + Decimal("1e-5") * (1 + abs(min(exact)))
    best = min(
        ORDERS,
        key=lambda order: epsilon_of(
            steps * renyi(TrainingPart(float(rate), float(multiplier)), order), order, float(delta)
        ),
    )
    if best <= 200:  # the claim is that of some order, so never below the exact ε of that order
        divergence = steps * reference.formula(best, Fraction(float(rate)), multiplier)
        assert found >= max(reference.epsilon_at(divergence, best, delta), Decimal(0))


@settings(max_examples=6, deadline=None)
@given(st.sampled_from([0.3, 1.0, 6.0]), st.sampled_from([1, 40]), st.sampled_from([Fraction(1), Fraction(30)]))
def test_noise_of_a_course_keeps_to_its_budget(epsilon: float, steps: int, gap: Fraction) -> None:
    course = Course(clip=50, steps=steps, gap=gap, first_share=Fraction(1, 5))
    cost = Cost(epsilon=int(epsilon * UNIT), delta=DELTA_UNIT // 10**9)
    first, later = training_distributions(cost, course, "x")
    assert first is not None
    rate, delta = Fraction(rate_of(gap)), Fraction(cost.delta, DELTA_UNIT)
    orders = [*range(2, 31), 36, 44, 54, 66, 80, 100, 120, 150, 180, 220]
    spent = []
    for order in orders:
        looked = Decimal(order) * 50**2 / (2 * decimal(Fraction(first.parameter)))
        stepped = steps * reference.formula(order, rate, Fraction(later.scale) / 50)
        spent.append(reference.epsilon_at(looked + stepped, order, delta))
    assert min(spent) <= Decimal(epsilon) * Decimal("1.02"), (
        "some order proves the budget, or nearly: not all were tried"
    )
    alone = least_epsilon_of_rho(50**2 / (2 * Fraction(first.parameter)), delta)
    assert Decimal(epsilon) / 5 * Decimal("0.98") <= alone <= Decimal(epsilon) / 5


@given(st.fractions(Fraction(1, 8), 10**6, max_denominator=50))
def test_the_rate_is_no_less_than_a_coin_comes_up(gap: Fraction) -> None:
    exact = 1 - exponential(-1 / gap)
    assert exact <= Decimal(rate_of(gap)) <= exact * (1 + Decimal("1e-11"))


VECTORS = st.lists(st.integers(-9, 9), min_size=4, max_size=4)


@given(st.lists(st.lists(VECTORS, min_size=0, max_size=3), min_size=1, max_size=5), st.integers(1, 15))
def test_units_beyond_the_bound_are_left_out(units: list[list[list[int]]], clip: int) -> None:
    """Sums in plain integers: a unit whose vector is longer than the bound, or has a number beyond it, adds nothing."""
    wanted = [0] * 4
    for rows in units:
        together = [sum(part) for part in zip(*rows, strict=True)] or [0] * 4
        fine = all(abs(number) <= clip for row in rows for number in row)
        if fine and sum(number**2 for number in together) <= clip**2:
            wanted = [one + other for one, other in zip(wanted, together, strict=True)]
    rows = [row for unit in units for row in unit]
    starts = np.cumsum([0, *(len(unit) for unit in units)])
    shared = np.array(rows, np.int32).reshape(-1, 4)[:, :2]
    own = np.array(rows, np.int32).reshape(-1, 4)[:, 2:]
    blocks = np.zeros((len(rows), 1), np.int32)
    found = bounded_sum(Contributions(blocks, np.ascontiguousarray(shared), np.ascontiguousarray(own)), starts, clip, 4)
    assert found.tolist() == wanted


def test_masses_of_the_design() -> None:
    """The numbers that the design prints for scale 2, computed by the reference."""
    found = [float(laplace_mass(Fraction(2), value)) for value in range(4)]
    assert found == pytest.approx([0.244919, 0.148551, 0.090101, 0.054649], abs=1e-6)
