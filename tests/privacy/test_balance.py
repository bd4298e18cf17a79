"""The arithmetic of a cap: never under, never over, rounded against us."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import UsageError
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost, epsilon_of_rho, rho_of_epsilon
from understudy.privacy.ledger import Balance, in_full, require_claim

THIRD = 816_497  # this many units of ε make 0.3333337 units of ρ


def _cost(balance: Balance, cost: Cost, budget: Budget) -> Cost:
    return balance.deduction(cost, budget_epsilon=budget.epsilon_units, budget_delta=budget.delta_units)


def test_hundred_thousand_charges_of_a_third_of_a_unit_are_never_under() -> None:
    balance = Balance.opened(Budget(1.0, 1e-6), "zcdp")
    deduction = balance.deduction(Cost(epsilon=THIRD), budget_epsilon=THIRD, budget_delta=0)
    for _ in range(100_000):
        balance = balance.after(deduction)
    assert balance.spent.rho >= 100_000 * Fraction(THIRD**2, 2 * UNIT)
    assert balance.releases == 100_000


@given(st.lists(st.integers(1, 10**13), max_size=30))
def test_pure_spending_is_rounded_up_in_rho(amounts: list[int]) -> None:
    balance = Balance.opened(Budget(100.0, 1e-6), "zcdp")
    for amount in amounts:
        balance = balance.after(balance.deduction(Cost(epsilon=amount), budget_epsilon=amount, budget_delta=0))
    exact = sum((Fraction(amount, UNIT) ** 2 / 2 for amount in amounts), Fraction(0))
    assert exact <= Fraction(balance.spent.rho, UNIT) <= exact + Fraction(len(amounts), UNIT)


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 10), Fraction(1, 2)])
def test_concentrated_limit_converts_back_to_the_cap(share: Fraction) -> None:
    cap = Budget(2.0, 1e-8)
    balance = Balance.opened(cap, "zcdp", share)
    assert balance.limit.delta == math.floor(cap.delta_units * share)
    rest = Fraction(cap.delta_units - balance.limit.delta, DELTA_UNIT)
    assert epsilon_of_rho(Fraction(balance.limit.rho, UNIT), rest) <= Fraction(cap.epsilon_units + 2, UNIT)
    assert balance.limit.rho == math.floor(rho_of_epsilon(Fraction(cap.epsilon_units, UNIT), rest) * UNIT)


def test_limit_does_not_move_with_the_failure_delta_spent() -> None:
    balance = Balance.opened(Budget(1.0, 1e-6), "zcdp")
    assert balance.after(Cost(rho=5, delta=7)).limit == balance.limit
    assert balance.after(Cost(rho=5, delta=7)).left == balance.limit - Cost(rho=5, delta=7)


def test_claim_is_what_the_spending_implies() -> None:
    basic = Balance.opened(Budget(1.0, 1e-6), "basic").after(Cost(epsilon=5, delta=7))
    assert basic.claim() == Cost(epsilon=5, delta=7)
    zcdp = Balance.opened(Budget(1.0, 1e-6), "zcdp")
    assert zcdp.claim() == Cost()
    full = zcdp.after(zcdp.limit)
    assert full.claim().fits(full.cap)
    assert full.claim().delta == full.cap.delta
    assert full.claim().epsilon >= full.cap.epsilon - 100  # what one unit of ρ is worth
    part = zcdp.after(Cost(rho=UNIT // 1000))
    rest = Fraction(part.cap.delta - part.limit.delta, DELTA_UNIT)
    assert Fraction(part.claim().epsilon, UNIT) >= epsilon_of_rho(Fraction(1, 1000), rest)
    assert part.claim().delta == part.cap.delta - part.limit.delta


@given(st.floats(0.01, 5.0), st.sampled_from([1e-12, 1e-9, 1e-6]), st.booleans())
def test_largest_request_passes_and_a_larger_one_does_not(epsilon: float, delta: float, pure: bool) -> None:
    cap = Budget(1.0, 1e-9)
    balance = Balance.opened(cap, "zcdp")
    balance = balance.after(Cost(rho=balance.limit.rho // 3))
    budget = Budget(epsilon, delta)
    cost = budget.cost("pure" if pure else "zcdp")
    largest = balance.largest(cost, budget)
    assert largest is not None
    if balance.after(_cost(balance, cost, budget)).is_within_limit():
        return
    for step, passes in ((0, True), (2000, False)):  # at small ε one unit of ρ is many units of ε
        units = largest.epsilon + step
        if pure:
            queries = Cost(epsilon=units)
        else:
            rho = rho_of_epsilon(Fraction(units, UNIT), Fraction(budget.delta_units, DELTA_UNIT))
            queries = Cost(rho=math.floor(rho * UNIT))
        assert balance.after(_cost(balance, queries, budget)).is_within_limit() is passes


def test_nothing_fits_once_all_is_spent() -> None:
    for composition in ("basic", "zcdp"):
        balance = Balance.opened(Budget(1.0, 1e-9), composition)
        balance = balance.after(balance.limit)
        assert balance.is_within_limit()
        assert balance.largest(Cost(epsilon=5), Budget(0.1, 1e-9)) is None
        assert balance.largest(Cost(rho=5), Budget(0.1, 1e-9)) is None
        assert not balance.after(Cost(epsilon=1, rho=1)).is_within_limit()


def test_claim_must_follow_from_the_cost() -> None:
    budget = Budget(0.5, 1e-9)
    most = budget.cost("zcdp")
    require_claim(most, budget)
    require_claim(budget.cost("pure"), budget)
    with pytest.raises(UsageError, match="does not give the claimed"):
        require_claim(most + Cost(rho=1), budget)
    with pytest.raises(UsageError, match="does not give the claimed"):
        require_claim(most + Cost(epsilon=UNIT // 1000), budget)
    some = budget.cost("zcdp", pure=UNIT // 10)
    require_claim(some, budget)  # ε of 0.1 beside the ρ of 0.4
    with pytest.raises(UsageError, match="does not give the claimed"):
        require_claim(some + Cost(epsilon=UNIT // 1000), budget)
    with pytest.raises(UsageError, match="does not give the claimed"):
        require_claim(Cost(epsilon=UNIT // 2, rho=1), budget)
    with pytest.raises(UsageError, match="must cost something"):
        require_claim(Cost(), budget)


def test_amounts_are_printed_to_the_last_unit() -> None:
    assert in_full(Cost(epsilon=UNIT, rho=1, delta=10**9)) == "ε = 1, ρ = 0.000000000001, δ = 1e-9"
    assert in_full(Cost()) == "ε = 0"
    assert in_full(Cost(epsilon=10**18 - 1)) == "ε = 999999.999999999999"


def test_exact_distributions_speak_for_their_own_price_only() -> None:
    budget = Budget(0.1, 1e-9)
    deduction = budget.cost("zcdp").rho * 21 // 20
    variances = (Fraction(UNIT, 2 * deduction),)
    require_claim(Cost(rho=deduction), budget, variances)
    with pytest.raises(UsageError, match="does not give the claimed"):
        require_claim(Cost(rho=deduction), budget)
    with pytest.raises(UsageError, match="does not give the claimed"):
        require_claim(Cost(rho=deduction * 11 // 10), budget, variances)
    with pytest.raises(UsageError, match="does not give the claimed"):
        require_claim(Cost(rho=deduction, delta=1), budget, variances)


def test_the_largest_request_passes_where_exact_distributions_buy_more() -> None:
    cap = Budget(1.0, 1e-6)
    balance = Balance.opened(cap, "zcdp")
    alone = cap.cost("zcdp", balance.limit.delta).rho
    found = balance.largest(Cost(rho=2 * alone), cap)
    assert found is not None
    told = Budget(found.epsilon / UNIT, 1e-6)
    assert 1.9 * told.cost("zcdp").rho < balance.left.rho
