"""The cost of training against direct sums of the exact integer distribution and against published numbers."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from understudy.answers import Course, Distribution
from understudy.errors import UsageError
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost
from understudy.privacy.training import (
    ORDERS,
    TrainingPart,
    course_parts,
    epsilon_of,
    parts_epsilon,
    rate_of,
    renyi,
    training_distributions,
)

ROWS = 661_967
STEPS = 103_440
DELTA = 1 / ROWS**2
COURSE = Course(1024, 500, Fraction(40), Fraction(2, 5))


def _cost(epsilon, delta=1e-6):
    return Cost(epsilon=int(epsilon * UNIT), delta=int(delta * DELTA_UNIT))


def test_numbers_of_a_published_entry() -> None:
    """ε that a challenge entry really spent: batch 64 of 661,967, ten epochs, δ = 1/n²."""
    loud, quiet = TrainingPart(64 / ROWS, 1.0, STEPS), TrainingPart(64 / ROWS, 3.0, STEPS)
    assert parts_epsilon([loud], DELTA, tight=False) == pytest.approx(1.60, abs=0.005)
    assert parts_epsilon([loud], DELTA) == pytest.approx(1.37, abs=0.005)
    assert parts_epsilon([quiet], DELTA, range(2, 201), tight=False) == pytest.approx(0.17, abs=0.005)


def test_orders_that_end_at_32_can_report_no_less_than_a_constant() -> None:
    """The moments accountant of that entry knew λ = α − 1 up to 32: an artefact that made small ε look impossible."""
    capped = parts_epsilon([TrainingPart(64 / ROWS, 3.0, STEPS)], DELTA, range(2, 34), tight=False)
    assert math.log(1 / DELTA) / 32 == pytest.approx(0.8375, abs=3e-4)
    assert capped >= math.log(1 / DELTA) / 32


def _direct(order, rate, variance, shift):
    """Both moments by summing the integer distribution over the lattice (one coordinate holds the whole shift)."""
    points = np.arange(-4000, 4001, dtype=np.float64)
    noise, moved = -(points**2) / (2 * variance), -((points - shift) ** 2) / (2 * variance)
    here = noise - np.logaddexp.reduce(noise)
    there = np.logaddexp(math.log(1 - rate) + noise, math.log(rate) + moved) - np.logaddexp.reduce(noise)
    forward = np.logaddexp.reduce(order * there + (1 - order) * here)
    return float(forward), float(np.logaddexp.reduce(order * here + (1 - order) * there))


@pytest.mark.parametrize("order", [2, 3, 8, 21])
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.5, 0.9])
@pytest.mark.parametrize(("variance", "shift"), [(0.6, 1), (4.0, 2), (100.0, 7)])
def test_the_formula_is_the_exact_moment_and_bounds_the_other_direction(order, rate, variance, shift) -> None:
    bound = renyi(TrainingPart(rate, math.sqrt(variance) / shift), order) * (order - 1)
    forward, backward = _direct(order, rate, variance, shift)
    assert forward == pytest.approx(bound, rel=3e-6, abs=1e-9)
    assert backward <= forward + 1e-9
    assert bound >= forward - 1e-12


def test_a_shift_spread_over_coordinates_costs_what_its_norm_costs() -> None:
    """The normaliser survives integer shifts in every direction: (3, 4) moves as far as (5, 0)."""
    points = np.arange(-60, 61, dtype=np.float64)
    x, y = np.meshgrid(points, points, indexing="ij")
    noise = np.exp(-(x**2 + y**2) / 18.0)
    total = noise.sum()

    def moment(shift_x, shift_y):
        moved = np.exp(-((x - shift_x) ** 2 + (y - shift_y) ** 2) / 18.0)
        return ((0.8 + 0.2 * moved / noise) ** 3 * noise).sum() / total

    assert moment(3, 4) == pytest.approx(moment(5, 0), rel=1e-9)
    assert math.log(moment(3, 4)) == pytest.approx(2 * renyi(TrainingPart(0.2, 3 / 5), 3), rel=3e-6)


def test_a_look_at_everybody_is_the_plain_gaussian_mechanism() -> None:
    assert renyi(TrainingPart(1.0, 2.0), 10) == pytest.approx(10 / 8, rel=2e-6)
    assert renyi(TrainingPart(1 - 1e-12, 2.0), 10) == pytest.approx(10 / 8, rel=1e-5)


def test_steps_add_up_and_more_noise_costs_less() -> None:
    assert renyi(TrainingPart(0.1, 1.0, 7), 5) == pytest.approx(7 * renyi(TrainingPart(0.1, 1.0), 5))
    costs = [parts_epsilon([TrainingPart(0.02, noise, 300)], 1e-6) for noise in (0.5, 1.0, 2.0, 8.0)]
    assert costs == sorted(costs, reverse=True)
    costs = [parts_epsilon([TrainingPart(rate, 1.0, 300)], 1e-6) for rate in (0.001, 0.01, 0.1, 1.0)]
    assert costs == sorted(costs)


def test_the_search_over_orders_finds_the_best_of_all() -> None:
    for part in (TrainingPart(0.02, 0.7, 1000), TrainingPart(0.001, 4.0, 10_000), TrainingPart(0.3, 40.0, 50)):
        every = min(epsilon_of(renyi(part, order), order, 1e-6) for order in ORDERS)
        assert parts_epsilon([part], 1e-6) == pytest.approx(every + 1e-9, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0, 1e5])
def test_calibrated_noise_uses_the_budget_and_no_more(epsilon) -> None:
    first, distribution = training_distributions(_cost(epsilon), COURSE, "train")
    assert first is not None
    spent = parts_epsilon(course_parts(COURSE, first, distribution), 1e-6)
    assert 0.995 * epsilon < spent <= epsilon
    alone = parts_epsilon([TrainingPart(1.0, first.scale / COURSE.clip)], 1e-6)
    assert 0.38 * epsilon < alone <= 0.4 * epsilon


def test_without_a_first_look_the_steps_get_everything() -> None:
    course = Course(1024, 500, Fraction(40))
    first, distribution = training_distributions(_cost(1.0), course, "train")
    with_look = training_distributions(_cost(1.0), COURSE, "train")[1]
    assert first is None
    assert distribution.parameter < with_look.parameter
    assert distribution.kind == "gaussian"


@pytest.mark.parametrize(
    ("cost", "course"),
    [
        (Cost(epsilon=UNIT), COURSE),
        (Cost(rho=UNIT, delta=1), COURSE),
        (_cost(1.0), Course(0, 500, Fraction(40))),
        (_cost(1.0), Course(1024, 0, Fraction(40))),
        (_cost(1.0), Course(1024, 5, Fraction(1, 100))),
        (_cost(1.0), Course(1024, 5, Fraction(4), Fraction(1))),
        (_cost(1e-9), COURSE),
    ],
)
def test_bad_courses_and_prices_are_refused(cost, course) -> None:
    with pytest.raises(UsageError):
        training_distributions(cost, course, "train")


def test_bad_parts_are_refused() -> None:
    with pytest.raises(UsageError):
        renyi(TrainingPart(0.0, 1.0), 2)
    with pytest.raises(UsageError):
        parts_epsilon([TrainingPart(0.5, 1.0)], 0.0)
    assert course_parts(COURSE, None, Distribution("gaussian", Fraction(1024**2)))[0].multiplier == 1.0


@pytest.mark.parametrize("gap", [Fraction(1, 8), Fraction(19, 2), Fraction(977), Fraction(10**6, 3), Fraction(2**40)])
def test_the_rate_is_the_probability_of_a_coin_rounded_up(gap) -> None:
    with localcontext() as context:
        context.prec = 40
        exact = 1 - (-Decimal(gap.denominator) / Decimal(gap.numerator)).exp()
        assert exact <= Decimal(rate_of(gap)) <= exact * (1 + Decimal("1e-10"))
    (part,) = course_parts(Course(64, 7, gap), None, Distribution("gaussian", Fraction(10_000)))
    assert (part.rate, part.multiplier, part.steps) == (rate_of(gap), 100 / 64, 7)
