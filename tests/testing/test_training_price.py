"""What trainings cost by their requests: one cost per training, whatever else was asked."""

from fractions import Fraction

import pytest

from understudy.answers import Course, Distribution
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost
from understudy.privacy.randomizer import Request
from understudy.privacy.training import training_distributions
from understudy.testing.replay import cost_of, trainings_cost

PRICE = Cost(epsilon=UNIT, delta=DELTA_UNIT // 10**6)
COURSE = Course(64, 5, Fraction(3), Fraction(1, 2))


def _queries(course=COURSE, paid=PRICE):
    first, distribution = training_distributions(paid, course, "train")
    requests = [Request("train", "x", 4, first, Fraction(64), delta=PRICE.delta)]
    for layer in range(1, COURSE.steps + 1):
        requests.append(
            Request("train", "x", 4, distribution, Fraction(64), Fraction(1, 3), layer=layer, delta=PRICE.delta)
        )
    return requests


def test_a_training_costs_what_was_paid() -> None:
    ((epsilon, delta),) = trainings_cost(_queries())
    assert 0.99 < epsilon <= 1
    assert delta == PRICE.delta


def test_a_second_training_costs_again() -> None:
    assert len(trainings_cost(_queries() + _queries())) == 2
    assert cost_of(_queries() + _queries(), zcdp=False).delta == 2 * PRICE.delta


def test_noise_that_was_not_paid_for_shows() -> None:
    cheap = _queries(Course(64, 2, Fraction(3), Fraction(1, 2)))
    assert not cost_of(cheap, zcdp=False).fits(PRICE)
    louder = [Request("train", "x", 4, Distribution("gaussian", Fraction(1)), Fraction(64), delta=1)]
    assert trainings_cost(louder)[0][0] > 100


def test_other_questions_are_priced_beside() -> None:
    other = Request("measure", "y", 4, Distribution("laplace", Fraction(2)), Fraction(1))
    both = cost_of([other, *_queries()], zcdp=False)
    assert both.epsilon == pytest.approx(1.5 * UNIT, rel=0.01)
    both = cost_of([other, *_queries()], zcdp=True)
    assert (both.epsilon, both.rho) == (UNIT // 2, pytest.approx(0.5 * UNIT, rel=0.02))
    assert trainings_cost([other]) == []
