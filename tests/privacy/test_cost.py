"""Costs are integers rounded against us: shares never exceed the whole, claims never fall below the truth."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import UsageError
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost, epsilon_of_rho

COSTS = st.builds(Cost, *(st.integers(0, 10**15) for _ in range(3)))


@given(COSTS, st.lists(st.floats(0, 1e6), min_size=1, max_size=20).filter(any))
def test_parts_never_add_up_to_more_than_the_whole(cost: Cost, weights: list[float]) -> None:
    parts = cost.split(weights)
    total = sum(parts, Cost())
    assert total.fits(cost)
    assert cost.epsilon - total.epsilon <= len(weights)
    assert total.delta == 0
    for weight, part in zip(weights, parts, strict=True):
        assert part.epsilon <= cost.epsilon * Fraction(weight) / sum(map(Fraction, weights)) < part.epsilon + 1


@given(COSTS, COSTS)
def test_adding_and_taking_away(first: Cost, second: Cost) -> None:
    assert (first + second) - second == first
    assert first.fits(first + second)
    if (second.epsilon, second.rho, second.delta) != (0, 0, 0):
        assert not (first + second).fits(first)


@pytest.mark.parametrize("bad", [-1, 1.0, True, "1", None])
def test_units_are_whole_numbers(bad: object) -> None:
    for name in ("epsilon", "rho", "delta"):
        with pytest.raises(UsageError, match=name):
            Cost(**{name: bad})  # type: ignore[arg-type]


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan, math.inf])
def test_shares_outside_the_unit_interval_are_refused(fraction: float) -> None:
    with pytest.raises(UsageError, match="cost share"):
        Cost(epsilon=5).share(fraction)


@pytest.mark.parametrize("weights", [[], [0.0, 0.0], [1.0, -1.0], [math.nan], [math.inf, 1.0]])
def test_weights_that_split_nothing_are_refused(weights: list[float]) -> None:
    with pytest.raises(UsageError, match="cost split"):
        Cost(epsilon=5).split(weights)


BAD = [0, -1, math.nan, math.inf, -math.inf, 1e-13, 1e7, "1", None, True]


@pytest.mark.parametrize("epsilon", BAD)
def test_bad_epsilon(epsilon: object) -> None:
    with pytest.raises(UsageError, match="epsilon"):
        Budget(epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, math.nan, math.inf, 1e-19, "0", None, False])
def test_bad_delta(delta: object) -> None:
    with pytest.raises(UsageError, match="delta"):
        Budget(1.0, delta)  # type: ignore[arg-type]


@given(st.floats(1e-3, 1e3), st.floats(1e-17, 0.5))
def test_what_a_budget_grants_is_never_claimed_above_it(epsilon: float, delta: float) -> None:
    budget = Budget(epsilon, delta)
    claimed = budget.claim(budget.cost("pure"))
    assert claimed[0] <= epsilon
    assert Fraction(repr(claimed[0])) >= Fraction(budget.epsilon_units, UNIT)
    failure = budget.delta_units // 3
    granted = budget.cost("zcdp", failure)
    claimed = budget.claim(granted)
    assert claimed[0] <= epsilon
    assert claimed[1] <= delta
    if granted.rho > 10**6:
        assert claimed[0] >= 0.999 * epsilon


@given(st.integers(1, 10**13), st.integers(0, 10**12))
def test_claims_are_rounded_up(rho: int, epsilon: int) -> None:
    budget = Budget(1.0, 1e-9)
    claimed, delta = budget.claim(Cost(epsilon=epsilon, rho=rho))
    pure, rest = Fraction(epsilon, UNIT), Fraction(budget.delta_units, DELTA_UNIT)
    in_rho = epsilon_of_rho(Fraction(rho, UNIT) + pure**2 / 2, rest)
    exact = min(in_rho, pure + epsilon_of_rho(Fraction(rho, UNIT), rest))
    assert Fraction(repr(claimed)) >= min(exact, Fraction(1))
    if exact > 1:
        assert Fraction(repr(claimed)) >= exact
    assert Fraction(repr(delta)) >= Fraction(budget.delta_units, DELTA_UNIT)


@given(st.floats(0.01, 20.0), st.floats(1e-12, 1e-3), st.floats(0.0, 0.99))
def test_pure_and_concentrated_parts_together_claim_what_was_granted(epsilon: float, delta: float, part: float) -> None:
    budget = Budget(epsilon, delta)
    granted = budget.cost("zcdp", pure=math.floor(budget.epsilon_units * part))
    claimed = budget.claim(granted)
    assert claimed[0] <= epsilon
    assert claimed[0] >= granted.epsilon / UNIT or granted.epsilon**2 / (2 * UNIT) < granted.rho
    assert claimed[1] <= delta


@pytest.mark.parametrize("pure", [0.05, 0.5, 1.5])
@pytest.mark.parametrize("rho", [0.001, 0.1, 1.0])
def test_the_claim_of_both_holds_for_the_worst_pair(pure: float, rho: float) -> None:
    """A randomised bit at ε beside one Gaussian answer: the exact δ at the claimed ε is no more than claimed."""
    budget = Budget(1.0, 1e-6)
    epsilon, delta = budget.claim(Cost(round(pure * UNIT), round(rho * UNIT)))
    likely = math.exp(pure) / (1.0 + math.exp(pure))
    exact = sum(
        probability * gaussian_delta(rho, epsilon - loss)
        for probability, loss in ((likely, pure), (1.0 - likely, -pure))
    )
    assert exact <= delta
    assert exact > 1e-3 * delta, "the claim is of the right size"


def gaussian_delta(rho: float, epsilon: float) -> float:
    """δ at ε of a number with Gaussian noise, one unit moving it by √(2ρ) standard deviations."""
    moved = math.sqrt(2.0 * rho)
    upper, lower = moved / 2.0 - epsilon / moved, -moved / 2.0 - epsilon / moved
    return 0.5 * (math.erfc(-upper / math.sqrt(2.0)) - math.exp(epsilon) * math.erfc(-lower / math.sqrt(2.0)))


@given(st.integers(1, 10**18), st.integers(0, DELTA_UNIT - 1))
def test_pure_claims_are_rounded_up(epsilon: int, delta: int) -> None:
    claimed = Budget(1.0).claim(Cost(epsilon=epsilon, delta=delta))
    assert Fraction(repr(claimed[0])) >= Fraction(epsilon, UNIT)
    assert Fraction(repr(claimed[1])) >= Fraction(delta, DELTA_UNIT)


def test_delta_is_needed_and_can_be_used_up() -> None:
    with pytest.raises(UsageError, match="delta: must be above 0 for Gaussian"):
        Budget(1.0).cost("zcdp")
    budget = Budget(1.0, 1e-9)
    with pytest.raises(UsageError, match="set aside"):
        budget.cost("pure", budget.delta_units + 1)
    with pytest.raises(UsageError, match="used up"):
        budget.claim(Cost(rho=1, delta=budget.delta_units))


def test_prices_read_well() -> None:
    assert str(Cost(epsilon=UNIT // 2, delta=10**9)) == "ε = 0.5, δ = 1e-09"
    assert str(Cost(rho=UNIT)) == "ρ = 1"
    assert str(Cost()) == "nothing"


def test_a_budget_means_the_decimal_number_that_was_written() -> None:
    assert Budget(0.7).epsilon_units == 7 * UNIT // 10
    assert 3 * Budget(0.1).epsilon_units == Budget(0.3).epsilon_units
    assert Budget(1.0, 1e-9).delta_units == DELTA_UNIT // 10**9
