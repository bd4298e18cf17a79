"""The page about the ledger: the numbers of runs that it says a cap covers. (Its snippets run with the others.)"""

from pathlib import Path

from understudy.privacy.cost import Budget, Cost
from understudy.privacy.ledger import Balance, Composition

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8").split())


def _covered(composition: Composition, cost: Cost, budget: Budget) -> int:
    balance, runs = Balance.opened(Budget(2.0, 1e-6), composition), 0
    while True:
        deduction = balance.deduction(cost, budget_epsilon=budget.epsilon_units, budget_delta=budget.delta_units)
        balance = balance.after(deduction)
        if not balance.is_within_limit():
            return runs
        runs += 1


def test_what_a_cap_covers() -> None:
    each = Budget(0.5, 1e-9)
    basic = _covered("basic", each.cost("zcdp", 0), each)
    zcdp = _covered("zcdp", each.cost("zcdp", 0), each)
    assert f"`basic` covers {basic} runs at ε = 0.5 and δ = 1e-9; `zcdp` covers {zcdp} that" in PAGE
