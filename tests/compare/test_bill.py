"""The bill of a choice: read off the ledger, by the names of its runs."""

from pathlib import Path

import pytest

from understudy.compare.choice import Bill, claimed
from understudy.errors import BudgetError, UsageError
from understudy.privacy.cost import UNIT, Budget
from understudy.privacy.ledger import Ledger


@pytest.fixture
def bill(tmp_path: Path) -> Bill:
    return Bill(Ledger.create(tmp_path / "ledger.db", dataset="people", cap=Budget(3.0)), "people", "abc")


def _charge(bill: Bill, run: str, epsilon: float, unit: str = "one row") -> None:
    budget = Budget(epsilon)
    bill.ledger.charge("people", run=run, method="m", cost=budget.cost("pure"), budget=budget, unit=unit)


def test_only_runs_named_after_the_choice_are_on_the_bill(bill: Bill) -> None:
    for run in ("abc-1-1", "abc-10-1", "abc-1-2", "abcd-1-1", "other"):
        _charge(bill, run, 0.1)
    assert [entry.run for entry in bill.charges()] == ["abc-1-1", "abc-10-1", "abc-1-2"]
    assert [entry.run for entry in bill.charges("1")] == ["abc-1-1", "abc-1-2"]
    assert (bill.next_run("1"), bill.next_run("2")) == ("abc-1-3", "abc-2-1")


def test_an_attempt_is_open_until_it_has_ended(bill: Bill) -> None:
    assert bill.open_run("1") is None
    _charge(bill, "abc-1-1", 0.1)
    assert bill.open_run("1") == "abc-1-1"
    bill.ledger.finish("abc-1-1", "failed")
    assert bill.open_run("1") is None


def test_totals_are_sums_of_whole_units_rounded_up(bill: Bill) -> None:
    for run in ("abc-1-1", "abc-2-1"):
        _charge(bill, run, 0.35)
    assert bill.total([Budget(0.1)]) == Budget(0.8)
    assert claimed(3 * UNIT // 7, 0).epsilon >= (3 * UNIT // 7) / UNIT


def test_a_total_that_is_no_budget_says_so(bill: Bill) -> None:
    with pytest.raises(UsageError, match="all releases and the choice together: delta must be"):
        bill.total([Budget(1.0, 0.6), Budget(1.0, 0.6)])
    with pytest.raises(UsageError, match="all releases and the choice together: epsilon must be"):
        bill.total([Budget(6e5), Budget(6e5)])


def test_the_ledger_must_cover_what_is_missing_and_no_more(bill: Bill) -> None:
    _charge(bill, "abc-1-1", 1.0)
    one = (Budget(1.0).cost("pure"), Budget(1.0))
    bill.check_covered([one, one])
    with pytest.raises(BudgetError, match="asks for 2 releases and the choice, but ε = 2 is left"):
        bill.check_covered([one, one, one])
    with pytest.raises(BudgetError, match="asks for the choice, but"):
        bill.check_covered([(Budget(2.5).cost("pure"), Budget(2.5))])


def test_a_dataset_protects_one_unit(bill: Bill) -> None:
    bill.check_unit("each 'person', at most 2 rows")
    _charge(bill, "other", 1.0)
    bill.check_unit("one row")
    with pytest.raises(UsageError, match="is charged for the unit 'one row'"):
        bill.check_unit("each 'person', at most 2 rows")
