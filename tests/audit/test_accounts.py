"""Accounts: what independent coins and noisy sums really show is allowed, nearly all of it is seen, and more is not."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from understudy.audit.bounds import ClaimedAccount, EventRates, MixedAccount, PureAccount, TrainingAccount, _most_power
from understudy.privacy.training import TrainingPart, parts_epsilon

RUNS, CONFIDENCE = 10**9, 0.999


def _rates(without: float, with_unit: float) -> EventRates:
    """Rates that are known almost exactly."""
    return EventRates.of(round(RUNS * without), round(RUNS * with_unit), RUNS, CONFIDENCE)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("coins", [2, 9, 40])
def test_coins_show_their_price_and_no_more(coins: int, factor: float) -> None:
    """As many coins as answers, each right with odds e^(its price): what an account of prices allows at most."""
    epsilon = 6.0
    account = PureAccount(epsilon, 0.0, (epsilon / coins,) * coins)
    right = 1 / (1 + math.exp(-factor * epsilon / coins))
    cuts = range(1, coins + 1) if coins < 10 else range(coins // 2 - 3, coins // 2 + 8)
    found = [
        account.bound(_rates(binom.sf(cut - 1, coins, 1 - right), binom.sf(cut - 1, coins, right))) for cut in cuts
    ]
    assert max(found) <= factor * epsilon
    assert max(found) > 0.95 * factor * epsilon


def test_both_directions_and_the_complement_are_held_to_it() -> None:
    account = PureAccount(2.0, 0.0, (1.0, 1.0))
    for rates in (_rates(0.01, 0.4), _rates(0.4, 0.01), _rates(0.6, 0.99), _rates(0.99, 0.6)):
        assert account.bound(rates) > 2.0
    assert account.bound(_rates(0.3, 0.3)) == 0.0


def test_power_of_different_coins_is_never_too_small() -> None:
    prices = (0.1, 0.2, 0.35, 0.7, 1.4, 2.9)
    levels, powers = _most_power(prices, 99)  # the factor 1
    outcomes = []
    for signs in itertools.product((1, -1), repeat=len(prices)):
        loss = sum(sign * price for sign, price in zip(signs, prices, strict=True))
        chance = math.prod(1 / (1 + math.exp(-sign * price)) for sign, price in zip(signs, prices, strict=True))
        outcomes.append((loss, chance))
    level = power = 0.0
    for loss, chance in sorted(outcomes, reverse=True):
        level, power = level + chance * math.exp(-loss), power + chance
        allowed = float(np.interp(level, levels, powers))
        assert power <= allowed + 1e-9
        assert allowed <= power + 0.01


def test_steps_that_may_fail_count_against_the_bound() -> None:
    sure, unsure = PureAccount(2.0, 0.0, (1.0, 1.0)), PureAccount(2.0, 0.1, (1.0, 1.0), failure=0.1)
    rates = _rates(0.05, 0.3)
    assert unsure.bound(rates) < sure.bound(rates)


def test_a_single_price_and_an_unknown_account_tell_nothing_beside_the_claim() -> None:
    assert not PureAccount(1.0, 0.0, (1.0,)).is_known
    assert not ClaimedAccount(1.0, 0.0).is_known
    assert ClaimedAccount(1.0, 0.0).bound(_rates(0.1, 0.9)) is None


@pytest.mark.parametrize("claim", [4.0, 8.5])
def test_a_sum_of_claims_is_held_against_what_its_parts_cost_in_rho(claim: float) -> None:
    """One noisy number that the unit moves by one; the claim may be far above what that ρ converts to."""
    account = MixedAccount(claim, 1e-6, rho=0.5)

    def best(deviation: float) -> float:
        cuts = np.linspace(-2, 3, 21)
        return max(account.bound(_rates(norm.sf(cut / deviation), norm.sf((cut - 1) / deviation))) for cut in cuts)

    assert 0.7 * claim < best(1.0) <= claim
    assert 1.4 * claim < best(0.5) <= 2 * claim
    may_fail = MixedAccount(claim, 1e-6, rho=0.5, failure=0.1)
    rates = _rates(norm.sf(1.0), norm.sf(0.0))
    assert may_fail.bound(rates) < account.bound(rates)


@pytest.mark.parametrize("rate", [0.2, 0.6, 1.0])
def test_a_training_shows_much_of_its_price_and_no_more(rate: float) -> None:
    """One step in which the extra unit takes part by a coin, its vector as long as the bound."""
    delta = 1e-6
    parts = (TrainingPart(rate, 0.8, 1),)
    claim = parts_epsilon(parts, delta)
    account = TrainingAccount(claim, delta, parts)

    def best(multiplier: float) -> float:
        cuts = np.linspace(-2, 4, 25) * multiplier
        both = [(norm.sf(cut / multiplier), norm.sf((cut - 1) / multiplier)) for cut in cuts]
        return max(account.bound(_rates(lone, (1 - rate) * lone + rate * moved)) for lone, moved in both)

    assert 0.2 * claim < best(0.8) <= claim
    assert best(0.4) > claim
