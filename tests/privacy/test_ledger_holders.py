"""Who holds a run: one sequence of checkpoints, one holder, one end; whatever processes and old copies try."""

import sqlite3
from pathlib import Path

import pytest

from understudy.errors import LedgerError, UsageError
from understudy.privacy import ledger_file as store
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger, Mark, Receipt, mark_of, verify_extract

HALF = Budget(0.5)


def _mark(step: int, letter: str = "a") -> Mark:
    return Mark(step, letter * 64)


def _charge(ledger: Ledger, run: str = "run") -> Receipt:
    return ledger.charge("people", run=run, method="dpwgan", cost=HALF.cost("pure"), budget=HALF, unit="one row")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(2.0))
    _charge(ledger)
    return ledger


def test_continuing_is_a_line_without_a_charge(ledger: Ledger) -> None:
    before, charge = ledger.balance("people"), ledger.entries()[-1]
    ledger.checkpoint("run", _mark(10))
    assert ledger.newest("run") == _mark(10)
    receipt = ledger.take_up("run", _mark(10))
    assert ledger.balance("people") == receipt.balance == before
    assert (receipt.hash, receipt.cost, receipt.deduction) == (charge.hash, HALF.cost("pure"), HALF.cost("pure"))
    kept, continued = ledger.entries()[-2:]
    assert (kept.kind, kept.run, kept.note) == ("checkpoint", "run", _mark(10).note)
    assert (continued.kind, continued.run, continued.note) == ("continue", "run", _mark(10).note)
    assert {len(kept.made), len(continued.made)} == {10}, "the day alone"
    assert receipt.holder == continued.hash != receipt.hash
    ledger.checkpoint("run", _mark(20), holder=receipt.holder)
    ledger.finish("run", "released", holder=receipt.holder)
    assert ledger.verify([charge.hash]) == []


def test_a_run_without_checkpoints_is_continued_from_the_beginning(ledger: Ledger) -> None:
    assert ledger.newest("run") is None
    receipt = ledger.take_up("run", None)
    assert ledger.entries()[-1].note == "from the beginning"
    ledger.finish("run", "released", holder=receipt.holder)
    assert ledger.verify() == []


def test_only_the_newest_checkpoint_can_be_continued(ledger: Ledger) -> None:
    ledger.checkpoint("run", _mark(10))
    ledger.checkpoint("run", _mark(20))
    stored = ledger.path.read_bytes()
    for older in (None, _mark(10), _mark(20, "b"), _mark(30)):
        with pytest.raises(LedgerError, match=r"newest checkpoint only, step 20\."):
            ledger.take_up("run", older)
    assert ledger.path.read_bytes() == stored, "a refusal leaves no trace"


def test_checkpoints_rise(ledger: Ledger) -> None:
    ledger.checkpoint("run", _mark(10))
    for step in (0, 9, 10):
        with pytest.raises(LedgerError, match="step 10 already"):
            ledger.checkpoint("run", _mark(step, "b"))
    ledger.checkpoint("run", _mark(11))
    assert ledger.newest("run") == _mark(11)


def test_whoever_held_the_run_before_can_do_nothing_any_more(ledger: Ledger) -> None:
    first = ledger.take_up("run", None)
    second = ledger.take_up("run", None)
    for holder in (None, first.holder):
        with pytest.raises(LedgerError, match="continued by another process"):
            ledger.checkpoint("run", _mark(10), holder=holder)
        with pytest.raises(LedgerError, match="continued by another process"):
            ledger.finish("run", "released", holder=holder)
    ledger.checkpoint("run", _mark(10), holder=second.holder)
    ledger.finish("run", "released", holder=second.holder)


def test_nothing_follows_the_end(ledger: Ledger) -> None:
    ledger.checkpoint("run", _mark(10))
    ledger.finish("run", "released")
    for attempt in (
        lambda: ledger.take_up("run", _mark(10)),
        lambda: ledger.checkpoint("run", _mark(20)),
        lambda: ledger.finish("run", "released"),
    ):
        with pytest.raises(LedgerError, match="finished already"):
            attempt()
    with pytest.raises(UsageError, match="was not charged"):
        ledger.take_up("other", None)
    with pytest.raises(UsageError, match="was not charged"):
        ledger.newest("other")


def test_runs_do_not_mix(ledger: Ledger) -> None:
    other = _charge(ledger, "other")
    ledger.checkpoint("run", _mark(10))
    ledger.checkpoint("other", _mark(5), holder=other.holder)
    with pytest.raises(LedgerError, match="continued by another process"):
        ledger.finish("run", "released", holder=other.holder)
    assert (ledger.newest("run"), ledger.newest("other")) == (_mark(10), _mark(5))


def test_extracts_hold_charges_alone(ledger: Ledger) -> None:
    ledger.checkpoint("run", _mark(10))
    ledger.take_up("run", _mark(10))
    _charge(ledger, "later")
    lines = ledger.extract(dataset="people")
    assert [line["kind"] for line in lines] == ["dataset", "charge", "charge"]
    assert verify_extract(lines) == []
    whole = [entry.to_json() for entry in ledger.entries()]
    assert "does not belong in an extract." in {problem.rule for problem in verify_extract(whole)}


def test_a_ledger_of_the_first_format_is_brought_up_to_date(ledger: Ledger, tmp_path: Path) -> None:
    _charge(ledger, "second")
    entries, path = ledger.entries(), tmp_path / "earlier.db"
    raw = sqlite3.connect(path)
    for statement in store.LAYOUTS[1].values():
        raw.execute(statement)
    raw.execute(f"PRAGMA application_id = {store.APPLICATION}")
    raw.execute("PRAGMA user_version = 1")
    marks = ", ".join("?" * len(store.FIELDS))
    for entry in entries:
        raw.execute(f"INSERT INTO entry VALUES ({marks})", tuple(entry.to_json().values()))
    raw.commit()
    raw.close()
    earlier = Ledger.open(path)
    assert earlier.verify() == []
    _charge(earlier, "third")
    earlier.finish("second", "released")
    kept = earlier.entries()
    earlier.checkpoint("run", _mark(10))
    receipt = earlier.take_up("run", _mark(10))
    assert earlier.entries()[:-2] == kept
    assert earlier.verify() == []
    with sqlite3.connect(path) as raw, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute("DELETE FROM entry")
    raw.close()
    earlier.finish("run", "released", holder=receipt.holder)
    assert earlier.balance("people").releases == 3


@pytest.mark.parametrize("note", ["", "step 1", "step x, sha256 " + "0" * 64, "step 1, sha256 " + "0" * 63])
def test_words_that_name_no_checkpoint(note: str) -> None:
    with pytest.raises(ValueError, match="does not name"):
        mark_of(note)
    assert mark_of(_mark(7).note) == _mark(7)
