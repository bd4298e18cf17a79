from fractions import Fraction

import numpy as np
import pytest

from tests.mechanisms.door import epsilon, rho
from understudy.marginals.answer import Law
from understudy.marginals.domain import Domain
from understudy.mechanisms.forecast import expected_absolute, noisy_step, pass_probability, seconds_for
from understudy.mechanisms.mechanism import PublicFacts


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(1), Fraction(5), Fraction(400, 3)])
def test_laplace_numbers_agree_with_summation(scale):
    law = Law("laplace", scale)
    reach = np.arange(-20_000, 20_001)
    weights = np.exp(-np.abs(reach) / float(scale))
    weights /= weights.sum()
    assert expected_absolute(law) == pytest.approx((np.abs(reach) * weights).sum(), rel=1e-6)
    for threshold in (1, 3, 40):
        assert pass_probability(law, threshold) == pytest.approx(weights[reach >= threshold].sum(), rel=1e-6, abs=1e-80)


def test_tiny_and_huge_scales_do_not_overflow():
    assert expected_absolute(Law("laplace", Fraction(1, 10**6))) == 0.0
    assert pass_probability(Law("laplace", Fraction(1, 10**6)), 1) == 0.0
    assert expected_absolute(Law("laplace", Fraction(10**12))) == pytest.approx(1e12)


def test_a_step_states_the_noise_it_buys():
    step = noisy_step("measure x", epsilon(0.5), 10, unit_rows=2)
    assert step.noise_scale == pytest.approx(4.0)
    step = noisy_step("measure x", rho(0.5), 10, unit_rows=2)
    assert step.noise_scale == pytest.approx(2.0)
    assert step.expected_error == pytest.approx(2.0 * np.sqrt(2 / np.pi))


def test_more_rows_and_cells_take_longer():
    facts = PublicFacts(Domain.of({"a": 2}), (), 1, rows_hint=10)
    more = PublicFacts(Domain.of({"a": 2}), (), 1, rows_hint=10**8)
    assert seconds_for(facts, 10) < seconds_for(more, 10) < seconds_for(more, 10**9)
