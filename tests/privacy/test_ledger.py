"""The ledger as its callers use it: caps, charges, refusals, names, extracts."""

import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from understudy.errors import BudgetError, LedgerError, UsageError
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost
from understudy.privacy.ledger import Ledger, Receipt, verify_extract

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
