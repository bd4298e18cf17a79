"""Lower bounds from the rates of one event: they find what is there, stay below it, and hold together."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from understudy.audit.bounds import EventRates, epsilon_lower, rate_bounds

CONFIDENCE = 0.999


def test_rate_bounds_at_the_ends() -> None:
    assert rate_bounds(0, 100, 0.99)[0] == 0.0
    assert rate_bounds(100, 100, 0.99)[1] == 1.0
    # P(no hit in n) = (1 − p)^n = 1 − confidence at the upper bound
    assert rate_bounds(0, 100, 0.99)[1] == pytest.approx(1 - 0.01 ** (1 / 100))


def test_epsilon_lower_finds_a_ratio_and_stays_below_it() -> None:
    runs, true = 100_000, 1.0
    hits_with = round(runs * 0.5)
    hits_without = round(runs * 0.5 / math.e**true)
    found = epsilon_lower(hits_without, hits_with, runs, CONFIDENCE)
    assert 0.95 < found < true
    assert epsilon_lower(hits_with, hits_without, runs, CONFIDENCE) == pytest.approx(found)
    assert epsilon_lower(hits_without, hits_with, runs, CONFIDENCE, delta=0.4) < 0.1


def test_the_complement_counts_as_well() -> None:
    assert epsilon_lower(900, 990, 1000, CONFIDENCE) > 0.9, "the event itself has a ratio of 1.1"


def test_four_bounds_hold_together_with_the_confidence() -> None:
    """The chance that any of the four fails is summed exactly over all outcomes, at rates where bounds are tight."""
    runs, confidence = 60, 0.9
    hits = np.arange(runs + 1)
    for rate in (0.05, 0.3, 0.5, 0.9):
        bounds = [EventRates.of(int(seen), int(seen), runs, confidence).with_unit for seen in hits]
        missed = np.array([not low <= rate <= high for low, high in bounds])
        one_side = float(binom.pmf(hits, runs, rate)[missed].sum())
        assert 2 * one_side <= 1 - confidence + 1e-12


@pytest.mark.parametrize("shift", [0.3, 1.0, 2.0])
def test_gaussian_noise_shows_its_rho_and_no_more(shift: float) -> None:
    """At rates known (almost) exactly: Gaussian DP is tight at every threshold, zCDP at none."""
    runs, rho = 10**9, shift**2 / 2
    for cut in (0.0, shift / 2, shift):
        rates = EventRates.of(round(runs * norm.sf(cut)), round(runs * norm.sf(cut - shift)), runs, CONFIDENCE)
        assert rates.gaussian_lower() == pytest.approx(rho, rel=2e-3)
        assert 0.5 * rho < rates.rho_lower() < rho
        assert rates.gaussian_lower(failure=0.05) < 0.9 * rho


def test_pure_noise_shows_less_rho_than_half_the_square_of_its_epsilon() -> None:
    runs, epsilon = 10**9, 1.0
    high = math.exp(epsilon) / (1 + math.exp(epsilon))
    rates = EventRates.of(round(runs * (1 - high)), round(runs * high), runs, CONFIDENCE)
    assert rates.epsilon_lower() == pytest.approx(epsilon, rel=1e-3)
    assert 0.4 < rates.rho_lower() < epsilon**2 / 2


def test_equal_rates_show_nothing() -> None:
    rates = EventRates.of(500, 500, 1000, CONFIDENCE)
    assert (rates.epsilon_lower(), rates.rho_lower(), rates.gaussian_lower()) == (0.0, 0.0, 0.0)
