"""The folder of a choice: a kill at any moment, the same command, and what was paid for is still there."""

import json
import os
import shutil
import signal
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.csv as pacsv
import pytest

from tests.cli.terminal import listing, run
from tests.compare.tables import SCHEMA, table
from tests.nets.doubles import OPTIONS, interrupted_after
from tests.processes import Forked
from understudy.compare import Choice, choose
from understudy.compare.choice import ChoiceFolder
from understudy.compare.study import fingerprint
from understudy.errors import BudgetError, InputError, ReleaseError, UsageError
from understudy.privacy.cost import UNIT, Budget
from understudy.privacy.ledger import Ledger
from understudy.release import verify_release

KILLED = """
import os, signal, sys
from understudy.cli.app import main
from understudy.compare.choice import ChoiceFolder
from understudy.privacy.ledger import Ledger
moment, number = sys.argv[1], int(sys.argv[2])
charge, finish, seen = Ledger.charge, ChoiceFolder.finish, []
def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)
def counted(*given, **named):
    if moment == "before charge":
        kill()
    receipt = charge(*given, **named)
    seen.append(receipt)
    if moment == "charged" and len(seen) == number:
        kill()
    return receipt
Ledger.charge = counted
if moment == "drawn":
    ChoiceFolder.finish = kill
if moment == "written":
    import shutil
    shutil.rmtree = lambda path, **_: kill() if path.name == ".out.choosing" else None
main(sys.argv[3:])
"""


def _words(place: Path, *more: object) -> list[str]:
    methods = ("--method", "independent", "--method", "laplace", "--epsilon", 2, "--choose", 1)
    places = ("--schema", place / "schema.yaml", "--ledger", place / "ledger.db", "--out", place / "out")
    return [str(word) for word in ("compare", place / "people.csv", *places, *methods, *more)]


def _prepared(place: Path, epsilon: float) -> Ledger:
    pacsv.write_csv(table(300), place / "people.csv")
    SCHEMA.to_yaml(place / "schema.yaml")
    return Ledger.create(place / "ledger.db", dataset="people", cap=Budget(epsilon))


def _killed(place: Path, moment: str, number: int = 0) -> None:
    assert Forked(KILLED, moment, number, *_words(place)).ended().status == -signal.SIGKILL


def _charged(ledger: Ledger) -> list[str]:
    return [entry.method for entry in ledger.entries() if entry.kind == "charge"]


WHOLE = ["independent", "laplace", "choice"]


@pytest.mark.parametrize(
    ("moment", "number", "charged", "finished"),
    [
        ("before charge", 0, WHOLE, []),
        ("charged", 1, ["independent", *WHOLE], []),
        ("charged", 2, ["independent", "laplace", "laplace", "choice"], ["1-independent"]),
        ("charged", 3, [*WHOLE, "choice"], ["1-independent", "2-laplace"]),
        ("drawn", 0, [*WHOLE, "choice"], ["1-independent", "2-laplace"]),
    ],
)
def test_a_killed_choice_is_finished_by_the_same_command(
    moment: str, number: int, charged: list[str], finished: list[str], tmp_path: Path
) -> None:
    ledger = _prepared(tmp_path, 7.0)  # 2 + 2 + 1, and 2 for an attempt that was killed
    _killed(tmp_path, moment, number)
    before = {name: listing(tmp_path / "out" / name) for name in finished}
    assert all(before.values())
    shown = run(*_words(tmp_path))
    assert shown.status == 0, shown.words
    assert _charged(ledger) == charged
    assert ledger.verify() == []
    assert {name: listing(tmp_path / "out" / name) for name in finished} == before
    assert sorted(os.listdir(tmp_path / "out")) == ["1-independent", "2-laplace", "choice.json"]
    assert sorted(os.listdir(tmp_path)) == ["ledger.db", "out", "people.csv", "schema.yaml"]
    stated = json.loads((tmp_path / "out" / "choice.json").read_text(encoding="utf-8"))
    assert stated["epsilon"] * UNIT == ledger.balance("people").spent.epsilon
    assert len(stated["interrupted"]) == len(charged) - 3
    for one in stated["releases"]:
        assert verify_release(tmp_path / "out" / one["folder"]) == []


def test_a_choice_killed_after_it_was_written_is_finished(tmp_path: Path) -> None:
    ledger = _prepared(tmp_path, 7.0)
    _killed(tmp_path, "written")
    assert (tmp_path / ".out.choosing").is_dir()
    shown = run(*_words(tmp_path))
    assert shown.status == 2
    assert "holds a finished choice" in shown.words
    assert _charged(ledger) == WHOLE
    assert not (tmp_path / ".out.choosing").exists()


def test_a_rest_that_the_ledger_does_not_cover_is_refused_and_can_go_on_when_it_is(tmp_path: Path) -> None:
    ledger = _prepared(tmp_path, 6.0)
    _killed(tmp_path, "charged", 2)
    before = listing(tmp_path)
    shown = run(*_words(tmp_path))
    assert shown.status == 3
    assert "asks for 1 release and the choice, but ε = 2 is left" in shown.words
    assert listing(tmp_path) == before
    assert _charged(ledger) == ["independent", "laplace"]


def _interrupted(place: Path, charges: int, monkeypatch) -> Callable[..., Choice]:
    """A choice that was interrupted after so many charges; what it returns goes on."""
    ledger, charge, data = Ledger.create(place / "ledger.db", "people", Budget(20.0)), Ledger.charge, table(300)
    queries = {"methods": ["independent", "laplace"], "epsilon": 2.0, "choice_epsilon": 1.0, "ledger": ledger}

    def broken(*given: object, **named: object) -> object:
        receipt = charge(*given, **named)
        if ledger.balance("people").releases == charges:
            raise KeyboardInterrupt
        return receipt

    def again(**changes: object) -> Choice:
        settings = queries | {"data": data, "schema": SCHEMA, "out": place / "out"} | changes
        return choose(**settings)

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "charge", broken)
        with pytest.raises(KeyboardInterrupt):
            again()
    return again


def test_other_settings_are_refused(tmp_path: Path, monkeypatch) -> None:
    again = _interrupted(tmp_path, 2, monkeypatch)
    other = Ledger.create(tmp_path / "other.db", "people", Budget(30.0))
    named = Ledger.open(tmp_path / "ledger.db")
    named.add_dataset("more", Budget(20.0))
    cases: list[tuple[dict[str, object], str]] = [
        ({"epsilon": 1.0}, "other budgets"),
        ({"choice_epsilon": 2.0}, "other budgets"),
        ({"methods": ["laplace", "independent"]}, "other methods"),
        ({"schema": replace(SCHEMA, title="others")}, "another schema"),
        ({"ledger": other}, "another ledger"),
        ({"dataset": "more"}, "another ledger and another dataset"),
        ({"data": table(301)}, "another table"),
    ]
    for changes, words in cases:
        before = listing(tmp_path)
        with pytest.raises(UsageError, match=f"was begun with .*{words}"):
            again(**{"dataset": "people"} | changes)
        assert listing(tmp_path) == before
    again(dataset="people", data=table(300).take(list(reversed(range(300)))))  # the same rows in another order


def test_nothing_private_lies_in_the_folder_and_what_does_beside_it_is_closed(tmp_path: Path, monkeypatch) -> None:
    again = _interrupted(tmp_path, 2, monkeypatch)
    mark = fingerprint(table(300), SCHEMA).encode()
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file() and mark in path.read_bytes()]
    beside = tmp_path / ".out.choosing"
    assert mark in (beside / "table.txt").read_bytes()
    assert stat.S_IMODE(beside.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in beside.iterdir()} == {0o600}
    again()
    assert not beside.exists()


def test_the_table_is_not_read_before_the_first_charge(tmp_path: Path, monkeypatch) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(20.0))
    charges = []

    def counted(*given: object) -> str:
        charges.append(ledger.balance("people").releases)
        return "mark"

    monkeypatch.setattr("understudy.compare.choice.fingerprint", counted)
    queries = {"methods": ["independent", "laplace"], "epsilon": 2.0, "choice_epsilon": 1.0, "ledger": ledger}
    choose(table(300), SCHEMA, **queries, out=tmp_path / "out")  # type: ignore[arg-type]
    assert charges == [1]


def test_a_folder_is_worked_on_by_one_process(tmp_path: Path, monkeypatch) -> None:
    again = _interrupted(tmp_path, 2, monkeypatch)
    folder = ChoiceFolder(tmp_path / "out")
    folder._hold()
    before = listing(tmp_path)
    with pytest.raises(UsageError, match="is in use by another process"):
        again()
    assert listing(tmp_path) == before
    folder._kept.let_go()
    again()


def test_what_a_killed_process_left_half_written_goes(tmp_path: Path, monkeypatch) -> None:
    again = _interrupted(tmp_path, 2, monkeypatch)
    (tmp_path / "out" / ".2-laplace.abc.partial" / "model").mkdir(parents=True)
    (tmp_path / "out" / ".choice.json.part").write_text("{")
    again()
    assert sorted(os.listdir(tmp_path / "out")) == ["1-independent", "2-laplace", "choice.json"]


def test_an_older_copy_of_the_ledger_is_refused_and_costs_nothing(tmp_path: Path, monkeypatch) -> None:
    """Neither a charge, nor the record of the choice, nor a finished release is lost by giving the wrong ledger."""
    again = _interrupted(tmp_path, 1, monkeypatch)
    shutil.copy(tmp_path / "ledger.db", tmp_path / "older.db")
    with monkeypatch.context() as patched:
        patched.setattr(ChoiceFolder, "prepare", _stop)
        with pytest.raises(KeyboardInterrupt):
            again()
    before = listing(tmp_path)
    with pytest.raises(UsageError, match="not all in this ledger"):
        again(ledger=Ledger.open(tmp_path / "older.db"))
    assert listing(tmp_path) == before
    assert sorted(os.listdir(again().release.folder.parent)) == ["1-independent", "2-laplace", "choice.json"]


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_release_on_record_that_was_not_put_in_place_is_not_paid_for_again(tmp_path: Path, monkeypatch) -> None:
    again = _interrupted(tmp_path, 2, monkeypatch)
    out = tmp_path / "out"
    (out / "1-independent").rename(out / ".1-independent.abc.partial")
    assert again().document()["interrupted"] != []  # the killed attempt at laplace, and nothing else
    assert _charged(Ledger.open(tmp_path / "ledger.db")) == ["independent", "laplace", "laplace", "choice"]
    assert sorted(os.listdir(out)) == ["1-independent", "2-laplace", "choice.json"]


def test_a_draw_is_not_charged_where_its_result_cannot_be_written(tmp_path: Path, monkeypatch) -> None:
    again = _interrupted(tmp_path, 2, monkeypatch)
    (tmp_path / "out" / ".choice.json.part").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        again()
    assert "choice" not in _charged(Ledger.open(tmp_path / "ledger.db"))
    (tmp_path / "out" / ".choice.json.part").rmdir()
    assert "no attempt was stopped" in str(again().document()["notice"])


def test_a_lock_that_was_removed_by_its_holder_holds_nothing(tmp_path: Path, monkeypatch) -> None:
    flock = "understudy.folders.fcntl.flock"
    monkeypatch.setattr(flock, lambda *_: shutil.rmtree(tmp_path / ".out.choosing"))
    with pytest.raises(UsageError, match="is in use by another process"):
        ChoiceFolder(tmp_path / "out")._hold()


def test_a_folder_beside_that_others_may_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".out.choosing").mkdir()
    (tmp_path / ".out.choosing").chmod(0o777)
    with pytest.raises(UsageError, match="belongs to somebody else or is open to others"):
        ChoiceFolder(tmp_path / "out")._hold()


def test_a_finished_release_must_be_whole_and_charged(tmp_path: Path, monkeypatch) -> None:
    again = _interrupted(tmp_path, 2, monkeypatch)
    kept = tmp_path / "out" / "1-independent"
    statement = (kept / "statement.md").read_bytes()
    (kept / "statement.md").write_bytes(statement + b"more")
    with pytest.raises(ReleaseError, match="differs from its checksum"):
        again()
    (kept / "statement.md").write_bytes(statement)
    settings = tmp_path / ".out.choosing" / "settings.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"choice": "unknown"}))
    with pytest.raises(UsageError, match="was not charged to this ledger for this choice"):
        again()
    assert Ledger.open(tmp_path / "ledger.db").balance("people").releases == 2


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, monkeypatch) -> None:
    again = _interrupted(tmp_path, 2, monkeypatch)
    settings = tmp_path / ".out.choosing" / "settings.json"
    settings.write_text("{")
    with pytest.raises(UsageError, match="does not say what choice was begun"):
        again()
    (tmp_path / "mine").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        again(out=tmp_path / "mine")
    assert os.listdir(tmp_path / "mine") == []
    assert Ledger.open(tmp_path / "ledger.db").balance("people").releases == 2


def _interrupted_training(place: Path, epsilon: float) -> tuple[Ledger, Callable[[str], Choice]]:
    """A choice whose first release is a training that was interrupted; what it returns chooses, into a folder."""
    ledger = Ledger.create(place / "ledger.db", "people", Budget(epsilon, 1e-5))
    options = " ".join(f"{name}={option}" for name, option in OPTIONS.items())
    methods = [f"dpwgan {options}", "independent"]

    def again(out: str) -> Choice:
        return choose(
            table(300), SCHEMA, methods=methods, epsilon=2.0, delta=1e-6, choice_epsilon=1.0, ledger=ledger,
            out=place / out,
        )  # fmt: skip

    with interrupted_after(5):
        again("out")
    assert _charged(ledger) == ["dpwgan"]
    return ledger, again


def test_a_training_goes_on_under_its_charge(tmp_path: Path) -> None:
    ledger, again = _interrupted_training(tmp_path, 5.0)
    found = again("out")
    assert _charged(ledger) == ["dpwgan", "independent", "choice"]
    assert [entry.kind for entry in ledger.entries()].count("continue") == 1
    assert found.document()["interrupted"] == []
    assert sorted(os.listdir(tmp_path / "out")) == ["1-dpwgan", "2-independent", "choice.json"]


def test_a_training_whose_state_is_gone_is_charged_anew(tmp_path: Path) -> None:
    ledger, again = _interrupted_training(tmp_path, 7.0)
    (tmp_path / "out" / ".1-dpwgan.working" / "run.json").unlink()
    assert again("out").cost.epsilon == 7.0
    assert _charged(ledger) == ["dpwgan", "dpwgan", "independent", "choice"]
    with pytest.raises(BudgetError):
        again("next")
