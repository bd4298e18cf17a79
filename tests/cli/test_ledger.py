"""Opening, reading and checking a ledger from the command line."""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.cli.terminal import listing, run
from tests.cli.workspace import Workspace
from understudy.privacy.cost import UNIT, Budget, Cost
from understudy.privacy.ledger import Ledger


def _open(path: Path, *more: object) -> int:
    return run("ledger", "init", path, "--dataset", "people", "--epsilon", 2, "--delta", "1e-6", *more).status


def test_init_show_verify(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    assert _open(path) == 0
    assert run("ledger", "init", path, "--dataset", "births", "--epsilon", 1).status == 0
    shown = run("ledger", "show", path)
    assert (shown.status, shown.err) == (0, "")
    assert "people" in shown.words
    assert "births" in shown.words
    assert "ε = 2" in shown.words
    checked = run("ledger", "verify", path)
    assert checked.status == 0
    assert "is consistent: 2 entries" in checked.out


def test_charges_are_listed_and_lower_what_is_left(tmp_path: Path) -> None:
    place = Workspace.make(tmp_path, rows=20)
    assert place.synthesize(epsilon=1).status == 0
    document = json.loads(run("ledger", "show", place.ledger, "--dataset", "people", "--json").out)
    people = document["datasets"]["people"]
    assert (people["spent"]["epsilon"], people["left"]["epsilon"], people["charges"]) == (1.0, 99.0, 1)
    (charge,) = document["charges"]
    assert (charge["dataset"], charge["state"], charge["continued"]) == ("people", "released", 0)
    statement = json.loads((place.release / "statement.json").read_text(encoding="utf-8"))
    known = statement["ledger"]["head"]
    assert run("ledger", "verify", place.ledger, "--known", known).status == 0
    other = run("ledger", "verify", place.ledger, "--known", "0" * 64)
    assert (other.status, other.panels) == (3, 1)


def test_what_became_of_each_charge_is_shown(tmp_path: Path) -> None:
    """A run killed twice and continued, one that failed, one that was released."""
    path = tmp_path / "ledger.db"
    ledger = Ledger.create(path, "people", Budget(3.0))
    for name in ("broken", "spoilt", "done"):
        ledger.charge("people", run=f"{name}-run", method="laplace", cost=Cost(epsilon=UNIT), budget=Budget(1.0))
    for _ in range(2):
        ledger.take_up("broken-run", None)
    ledger.finish("spoilt-run", "failed")
    ledger.finish("done-run", "released")
    words = run("ledger", "show", path).words
    assert "nothing 3" in words  # charges, not releases
    assert "broken-r laplace ε = 1 interrupted or still running 2" in words
    assert "spoilt-r laplace ε = 1 failed 0" in words
    assert "done-run laplace ε = 1 released 0" in words


def test_concentrated_composition(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    assert _open(path, "--composition", "zcdp") == 0
    assert "ρ" in run("ledger", "show", path).words


@pytest.mark.parametrize(
    "words",
    [
        ("--dataset", "people", "--epsilon", "0"),
        ("--dataset", "people", "--epsilon", "nan"),
        ("--dataset", "people", "--epsilon", "1", "--delta", "1"),
        ("--dataset", "", "--epsilon", "1"),
        ("--dataset", "a\tb", "--epsilon", "1"),
        ("--dataset", "people", "--epsilon", "1", "--composition", "magic"),
        ("--dataset", "people", "--epsilon", "1", "--composition", "zcdp"),
    ],
)
def test_bad_caps_create_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    shown = run("ledger", "init", tmp_path / "ledger.db", *words)
    assert (shown.status, shown.panels, shown.out) == (2, 1, "")
    assert listing(tmp_path) == {}


def test_a_cap_is_not_changed_by_opening_it_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    assert _open(path) == 0
    before = run("ledger", "show", path).out
    shown = run("ledger", "init", path, "--dataset", "people", "--epsilon", 50)
    assert (shown.status, shown.panels) == (2, 1)
    assert "is in this ledger already, and its cap stands." in shown.words
    assert "The same table under another name would have a second budget" in shown.words
    assert run("ledger", "show", path).out == before


def test_unknown_dataset_and_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    assert _open(path) == 0
    shown = run("ledger", "show", path, "--dataset", "poeple")
    assert shown.status == 2
    assert 'Did you mean "people"?' in shown.words
    for command in ("show", "verify"):
        missing = run("ledger", command, tmp_path / "nothing.db")
        assert (missing.status, missing.panels) == (3, 1)
    assert not (tmp_path / "nothing.db").exists()


def test_an_edited_ledger_does_not_pass(tmp_path: Path) -> None:
    place = Workspace.make(tmp_path, rows=5)
    assert place.synthesize(epsilon=1).status == 0
    connection = sqlite3.connect(place.ledger)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
    for name in tables:
        connection.execute(f'DROP TRIGGER "{name}"')
    (table,) = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if "total_epsilon" in {row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')}
    ]
    connection.execute(f'UPDATE "{table}" SET total_epsilon = 0')
    connection.commit()
    connection.close()
    shown = run("ledger", "verify", place.ledger)
    assert (shown.status, shown.panels) == (3, 1)
