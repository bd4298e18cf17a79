"""Account: one charge on disk for every run, and an extract that says what was charged."""

import json
from pathlib import Path

import pytest

from tests.release.people import simple
from understudy.errors import LedgerError
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger, verify_extract
from understudy.synthesizer.account import Account
from understudy.synthesizer.design import Design


def _design() -> Design:
    return Design.of(simple(), "independent", Budget(1.0))


def test_a_ledger_of_its_own_goes_with_the_release_and_stays_on_failure(tmp_path: Path) -> None:
    for run, outcome, left in (("a", "released", 0), ("b", "failed", 1)):
        charged = Account.of(None, None, tmp_path / "out").charge(_design(), run)
        assert len(list(tmp_path.rglob("ledger.db"))) == 1
        charged.close(outcome)  # type: ignore[arg-type]
        assert len(list(tmp_path.rglob("ledger.db"))) == left


def test_the_extract_verifies_alone_and_ends_with_the_charge(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(5.0))
    Account.of(ledger, None, None).charge(_design(), "first")
    charged = Account.of(tmp_path / "ledger.db", "people", None).charge(_design(), "second")
    entries = [json.loads(line) for line in charged.extract()]
    assert verify_extract(entries) == []
    assert [entry["run"] for entry in entries] == ["", "first", "second"]
    assert entries[-1]["hash"] == charged.facts.head
    assert entries[-1]["unit"] == "one row"
    assert (charged.facts.dataset, charged.facts.releases, charged.facts.epsilon) == ("people", 2, 2.0)


def test_a_run_is_charged_once(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(5.0))
    Account.of(ledger, None, None).charge(_design(), "run")
    with pytest.raises(LedgerError):
        Account.of(ledger, None, None).charge(_design(), "run")
    assert ledger.balance("people").releases == 1
