"""The ledger as its callers use it: caps, charges, refusals, names, extracts."""

import json
import math
import re
import shutil
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import BudgetError, LedgerError, UsageError
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost, epsilon_of_rho, rho_of_epsilon
from understudy.privacy.ledger import Balance, Ledger, Receipt, in_full, require_claim, verify_extract
from understudy.progress import recorded

HALF = Budget(0.5)


def _charge(ledger: Ledger, run: str, budget: Budget = HALF, dataset: str = "people", **more: str) -> Receipt:
    cost = budget.cost("zcdp" if budget.delta else "pure")
    return ledger.charge(dataset, run=run, method="laplace", cost=cost, budget=budget, **more)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.db", "people", Budget(1.0, 2e-9))


def test_receipt_tells_what_was_charged_and_what_is_left(ledger: Ledger) -> None:
    before = ledger.head()
    receipt = _charge(ledger, "first", Budget(0.25, 1e-9))
    assert (receipt.sequence, receipt.dataset, receipt.run) == (2, "people", "first")
    assert (receipt.previous, receipt.hash) == (before, ledger.head())
    assert receipt.deduction == Cost(epsilon=UNIT // 4, delta=Budget(1, 1e-9).delta_units)
    assert receipt.cost.rho > 0
    assert receipt.balance == ledger.balance("people")
    assert receipt.balance.left.epsilon == 3 * UNIT // 4
    made = datetime.strptime(receipt.made, "%Y-%m-%d").replace(tzinfo=UTC)  # the day, and nothing finer
    assert timedelta() <= datetime.now(UTC) - made < timedelta(days=1, minutes=5)


def test_basic_grants_up_to_the_cap_and_not_one_unit_more(ledger: Ledger) -> None:
    _charge(ledger, "first")
    _charge(ledger, "second")
    assert ledger.balance("people").left == Cost(delta=Budget(1, 2e-9).delta_units)
    with pytest.raises(BudgetError) as refused:
        _charge(ledger, "third", Budget(2e-12))
    assert refused.value.exit_code == 3
    assert "covers no further run" in str(refused.value)


def test_who_is_interrupted_later_is_told_whether_the_charge_stands(ledger: Ledger) -> None:
    with recorded() as found:
        _charge(ledger, "first")
        assert found.is_charged
        assert "stands; no release was written" in found.sentence()
    with recorded() as found:
        with pytest.raises(BudgetError):
            _charge(ledger, "second", Budget(0.75))
        assert (found.is_charged, found.sentence()) == (False, "Nothing was charged.")


def test_basic_adds_up_delta_as_well(ledger: Ledger) -> None:
    _charge(ledger, "first", Budget(0.1, 2e-9))
    with pytest.raises(BudgetError):
        _charge(ledger, "second", Budget(0.1, 1e-9))
    _charge(ledger, "second", Budget(0.1))


def test_refusal_names_a_largest_request_that_passes(ledger: Ledger) -> None:
    _charge(ledger, "first", Budget(0.3, 1e-9))
    with pytest.raises(BudgetError) as refused:
        _charge(ledger, "second", Budget(0.8, 1e-9))
    found = re.search(r"would pass: ε = ([0-9.]+), δ = ([0-9.e-]+)\.", refused.value.fix)
    assert found
    largest = Budget(float(found[1]), float(found[2]))
    assert largest.epsilon > 0.69
    _charge(ledger, "second", largest)
    assert ledger.verify() == []


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_concentrated_refusal_names_a_largest_request_that_passes(tmp_path: Path, delta: float) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1.0, 1e-9), "zcdp")
    _charge(ledger, "first", Budget(0.5, 1e-9))
    with pytest.raises(BudgetError) as refused:
        _charge(ledger, "second", Budget(0.95, delta))
    found = re.search(r"would pass: ε = ([0-9.]+?)(,|\.$)", refused.value.fix)
    assert found
    _charge(ledger, "second", Budget(float(found[1]), delta))
    assert ledger.balance("people").left.rho <= 4  # nothing worth asking for is left
    assert ledger.verify() == []


def test_concentrated_covers_more_gaussian_runs_than_basic(tmp_path: Path) -> None:
    granted = {}
    for composition in ("basic", "zcdp"):
        ledger = Ledger.create(tmp_path / composition, "people", Budget(1.0, 1e-6), composition)
        granted[composition] = 0
        for number in range(40):
            try:
                _charge(ledger, str(number), Budget(0.1, 1e-7))
            except BudgetError:
                break
            granted[composition] += 1
        claim = ledger.balance("people").claim()
        assert claim.fits(ledger.balance("people").cap)
    assert granted["basic"] <= 10
    assert granted["zcdp"] > 2 * granted["basic"]


def test_concentrated_keeps_failing_steps_apart(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1.0, 1e-6), "zcdp", failure_share=Fraction(1, 4))
    budget = Budget(0.1, 1e-6)
    failing = budget.cost("zcdp", failure_delta=2 * DELTA_UNIT // 10**7)
    ledger.charge("people", run="first", method="aim", cost=failing, budget=budget)
    with pytest.raises(BudgetError, match="steps that may fail"):
        ledger.charge("people", run="second", method="aim", cost=failing, budget=budget)
    left = ledger.balance("people").left
    large = Budget(5.0, 1e-6)
    with pytest.raises(BudgetError, match="largest request") as refused:  # too much ρ, and just the δ that is left
        ledger.charge("people", run="second", method="aim", cost=large.cost("zcdp", left.delta), budget=large)
    assert "steps that may fail" not in str(refused.value)
    ledger.charge("people", run="second", method="aim", cost=budget.cost("zcdp"), budget=budget)


def test_run_is_charged_once_and_never_paid_back(ledger: Ledger) -> None:
    _charge(ledger, "first")
    spent = ledger.balance("people")
    with pytest.raises(LedgerError, match="charged before") as refused:
        _charge(ledger, "first", Budget(0.1))
    assert refused.value.exit_code == 3
    ledger.finish("first", "failed")
    assert ledger.balance("people") == spent
    with pytest.raises(LedgerError, match="charged before"):
        _charge(ledger, "first", Budget(0.1))


def test_finish_is_noted_once_with_its_date_alone(ledger: Ledger) -> None:
    _charge(ledger, "first")
    ledger.finish("first", "released")
    last = ledger.entries()[-1]
    assert (last.kind, last.run, last.outcome, len(last.made)) == ("finish", "first", "released", 10)
    with pytest.raises(LedgerError, match="finished already"):
        ledger.finish("first", "failed")
    with pytest.raises(UsageError, match="was not charged"):
        ledger.finish("second", "released")
    with pytest.raises(UsageError, match="outcome"):
        ledger.finish("first", "refunded")  # type: ignore[arg-type]
    assert ledger.verify() == []


def test_datasets_do_not_share_a_cap(ledger: Ledger) -> None:
    ledger.add_dataset("visits", Budget(0.5), "basic")
    _charge(ledger, "first", Budget(1.0))
    _charge(ledger, "second", dataset="visits")
    assert ledger.datasets() == ["people", "visits"]
    assert [entry.run for entry in ledger.entries("visits")] == ["", "second"]
    with pytest.raises(UsageError, match="already"):
        ledger.add_dataset("visits", Budget(5.0))
    with pytest.raises(UsageError, match='Did you mean "visits"'):
        _charge(ledger, "third", dataset="visit")
    assert ledger.verify() == []


def test_all_runs_of_a_dataset_protect_the_same_unit(ledger: Ledger) -> None:
    _charge(ledger, "first", Budget(0.1), unit="one row")
    with pytest.raises(UsageError, match="same unit"):
        _charge(ledger, "second", Budget(0.1), unit="one patient, 5 rows")
    _charge(ledger, "second", Budget(0.1), unit="one row")


def test_single_use_covers_one_run(tmp_path: Path) -> None:
    budget = Budget(0.7, 1e-9)
    ledger = Ledger.single_use(tmp_path / "ledger.db", budget)
    _charge(ledger, "only", budget, dataset="table")
    with pytest.raises(BudgetError):
        _charge(ledger, "again", Budget(0.1), dataset="table")


@pytest.mark.parametrize(
    ("cost", "budget"),
    [
        (Cost(), Budget(1.0)),
        (Cost(epsilon=UNIT + 1), Budget(1.0)),
        (Cost(epsilon=2**70), Budget(1e6)),
        (Cost(rho=UNIT), Budget(0.5, 1e-9)),
        (Cost(rho=2**70), Budget(1e6, 0.5)),
        (Cost(rho=1), Budget(1.0)),
        (Cost(epsilon=1, delta=1), Budget(1.0)),
        (Cost(epsilon=1, delta=2 * 10**9), Budget(1.0, 1e-9)),
    ],
)
def test_cost_that_does_not_give_the_claim_is_refused(ledger: Ledger, cost: Cost, budget: Budget) -> None:
    with pytest.raises(UsageError):
        ledger.charge("people", run="first", method="laplace", cost=cost, budget=budget)
    assert len(ledger.entries()) == 1


HOSTILE = [
    "x'; DROP TABLE entry; --",
    '"quoted" and `ticked`',
    "%s %(a)s {0} ?1 :name @name $name",
    "../../etc/passwd",
    "null",
    "=1+1",
    "<script>alert(1)</script>",
    "naïve 名前 🎭",
    "e\u0301",
    "é",
    "x" * 200,
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_only_names(tmp_path: Path, name: str) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", name, Budget(1.0))
    ledger.charge(name, run=name, method=name, cost=HALF.cost("pure"), budget=HALF, unit=name, note=name)
    ledger.finish(name, "released")
    assert ledger.datasets() == [name]
    assert ledger.entries(name)[1].run == ledger.entries()[1].note == name
    assert ledger.verify() == []
    text = "\n".join(map(json.dumps, ledger.extract(run=name)))
    assert verify_extract([json.loads(line) for line in text.split("\n")]) == []


@pytest.mark.parametrize(
    "name", ["", " ", " x", "x\n", "a\x00b", "a\x1b[31m", "\u202eabc", "a\u200bb", "\ud800", "y" * 201]
)
def test_unprintable_names_are_refused_everywhere(tmp_path: Path, ledger: Ledger, name: str) -> None:
    with pytest.raises(UsageError):
        Ledger.create(tmp_path / "other.db", name, Budget(1.0))
    assert not (tmp_path / "other.db").exists()
    for attempt in (
        lambda: ledger.add_dataset(name, Budget(1.0)),
        lambda: _charge(ledger, name),
        lambda: _charge(ledger, "run", dataset=name),
        lambda: ledger.finish(name, "released"),
        lambda: ledger.balance(name),
        lambda: ledger.extract(run=name),
    ):
        with pytest.raises(UsageError):
            attempt()
    assert len(ledger.entries()) == 1


def test_note_is_bounded(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="note"):
        _charge(ledger, "first", note="x" * 2001)


def test_extract_of_a_run_ends_with_it_and_holds_one_dataset(ledger: Ledger) -> None:
    ledger.add_dataset("visits", Budget(1.0))
    for number in range(4):
        _charge(ledger, f"p{number}", Budget(0.1))
        _charge(ledger, f"v{number}", Budget(0.1), dataset="visits")
        ledger.finish(f"p{number}", "failed")
    lines = ledger.extract(run="v2")
    assert [line["run"] for line in lines] == ["", "v0", "v1", "v2"]
    assert {line["dataset"] for line in lines} == {"visits"}
    assert verify_extract(lines) == []
    assert len(ledger.extract(dataset="people")) == 5
    assert "finish" not in {line["kind"] for line in ledger.extract(dataset="people")}
    with pytest.raises(UsageError, match="either"):
        ledger.extract()


def test_fork_or_old_copy_lacks_a_known_hash(ledger: Ledger, tmp_path: Path) -> None:
    _charge(ledger, "first", Budget(0.1))
    shutil.copy(ledger.path, tmp_path / "copy.db")
    copy = Ledger.open(tmp_path / "copy.db")
    printed = [_charge(ledger, "second", Budget(0.1)).hash, ledger.entries()[0].hash]
    _charge(copy, "other", Budget(0.1))
    assert ledger.verify(printed) == []
    problems = copy.verify(printed)
    assert len(problems) == 1
    assert printed[0] in problems[0].rule


def test_unknown_composition_and_bad_shares_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with pytest.raises(UsageError, match="composition"):
        Ledger.create(path, "people", Budget(1.0), "advanced")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="failure share"):
        Ledger.create(path, "people", Budget(1.0, 1e-9), "zcdp", failure_share=Fraction(1))
    with pytest.raises(UsageError, match="delta"):
        Ledger.create(path, "people", Budget(1.0), "zcdp")
    assert not path.exists()


# The arithmetic of a cap: never under, never over, rounded against us.


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
    assert in_full(Cost(epsilon=UNIT, rho=1, delta=10**9)) == "ε = 1, ρ = 0.000000000001, δ = 1e-09"
    assert in_full(Cost()) == "ε = 0"
    assert in_full(Cost(epsilon=10**18 - 1)) == "ε = 999999.999999999999"


def test_exact_distributions_speak_for_their_own_cost_only() -> None:
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
