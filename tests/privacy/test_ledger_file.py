"""Tests of `understudy.privacy.ledger_file`."""

import dataclasses
import os
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from understudy.errors import LedgerError
from understudy.privacy import ledger_file as store
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger
from understudy.privacy.ledger_file import FIELDS, MOST_UNITS, Entry

# The file itself: append-only, strict, synced, and refused when it is not what it should be.


HALF = Budget(0.5)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1.0))
    ledger.charge("people", run="first", method="laplace", cost=HALF.cost("pure"), budget=HALF)
    ledger.finish("first", "released")
    return ledger


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET total_epsilon = 0",
        "UPDATE entry SET note = note",
        "DELETE FROM entry",
        "DELETE FROM entry WHERE sequence = 3",
        "INSERT OR REPLACE INTO entry SELECT * FROM entry WHERE sequence = 2",
        "INSERT OR REPLACE INTO entry SELECT 4, * FROM (SELECT {rest} FROM entry WHERE sequence = 1)",
        "INSERT OR REPLACE INTO entry SELECT 4, * FROM (SELECT {rest} FROM entry WHERE sequence = 2)",
        "INSERT OR REPLACE INTO entry SELECT 4, * FROM (SELECT {rest} FROM entry WHERE sequence = 3)",
        "INSERT INTO entry SELECT 9, * FROM (SELECT {rest} FROM entry WHERE sequence = 3)",
    ],
)
def test_entries_stay_as_they_are(ledger: Ledger, statement: str) -> None:
    before = ledger.entries()
    rest = ", ".join(list(store.FIELDS)[1:])
    with sqlite3.connect(ledger.path) as raw, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(statement.format(rest=rest))
    raw.close()
    assert ledger.entries() == before
    assert ledger.verify() == []


def test_amounts_are_stored_as_integers_only(ledger: Ledger) -> None:
    with sqlite3.connect(ledger.path) as raw:
        raw.execute("DROP TRIGGER entry_never_changes")
        with pytest.raises(sqlite3.IntegrityError, match="cannot store REAL"):
            raw.execute("UPDATE entry SET total_epsilon = 0.5")
        raw.rollback()
    raw.close()


def test_commits_are_synced_to_the_last_byte(ledger: Ledger) -> None:
    with store.writing(ledger.path, 1.0) as opened:
        (level,) = opened._connection.execute("PRAGMA synchronous").fetchone()
        (journal,) = opened._connection.execute("PRAGMA journal_mode").fetchone()
    assert (level, journal) == (3, "delete")  # EXTRA; the ledger is one file between writes


def test_new_folder_entry_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    Ledger.create(tmp_path / "ledger.db", "people", Budget(1.0))
    assert synced == [tmp_path.stat().st_ino]


def _missing(path: Path) -> None:
    path.unlink()


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _text(path: Path) -> None:
    path.write_text("age,sex\n" * 1000, encoding="utf-8")


def _other_database(path: Path) -> None:
    path.unlink()
    _execute(path, "CREATE TABLE t (x)")


def _newer(path: Path) -> None:
    _execute(path, "PRAGMA user_version = 3")


def _unguarded(path: Path) -> None:
    _execute(path, "DROP TRIGGER entry_never_leaves")


def _trapped(path: Path) -> None:
    _execute(path, "CREATE TRIGGER trap AFTER INSERT ON entry BEGIN UPDATE entry SET total_epsilon = 0; END")


def _second_name(path: Path) -> None:
    os.link(path, path.with_name("other.db"))


def _zeroed(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4096] + bytes(path.stat().st_size - 4096))


def _execute(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute(statement)
    raw.close()


@pytest.mark.parametrize(
    ("harm", "text"),
    [
        (_missing, "does not exist"),
        (_folder, "is not a file"),
        (_pipe, "is not a file"),
        (_empty, "creation was interrupted"),
        (_text, "is not a ledger"),
        (_other_database, "is not a ledger"),
        (_newer, "has format 3"),
        (_unguarded, "altered tables"),
        (_trapped, "altered tables"),
        (_second_name, "two names"),
        (_zeroed, "is damaged"),
    ],
)
def test_what_is_no_sound_ledger_is_refused(ledger: Ledger, harm: object, text: str) -> None:
    assert callable(harm)
    harm(ledger.path)
    for attempt in (
        lambda: Ledger.open(ledger.path),
        lambda: ledger.charge("people", run="second", method="x", cost=HALF.cost("pure"), budget=HALF),
    ):
        with pytest.raises(LedgerError, match=text) as refused:
            attempt()
        assert refused.value.exit_code == (2 if text == "is damaged" else 3)
        assert refused.value.problem.fix
    assert ledger.verify()


def test_altered_entry_that_a_charge_rests_on_stops_it(ledger: Ledger) -> None:
    with sqlite3.connect(ledger.path) as raw:
        raw.execute("DROP TRIGGER entry_never_changes")
        raw.execute("UPDATE entry SET total_epsilon = 0 WHERE sequence = 2")
        raw.execute(store.TABLES["entry_never_changes"])
    raw.close()
    with pytest.raises(LedgerError, match="entry 2 does not match its hash"):
        ledger.charge("people", run="second", method="x", cost=HALF.cost("pure"), budget=HALF)


def _interrupted(path: Path) -> None:
    with store.writing(path, 1.0) as opened:
        after = opened.head().sequence + 1
        opened.append(store.Entry(sequence=after, kind="finish", dataset="people", made="", run="x").sealed())
        raise KeyboardInterrupt


def test_a_ledger_that_could_not_be_made_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: store.Store, entry: Entry) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(store.Store, "append", full)
        with pytest.raises(LedgerError):
            Ledger.create(tmp_path / "ledger.db", "people", Budget(1.0))
    assert not list(tmp_path.iterdir())
    Ledger.create(tmp_path / "ledger.db", "people", Budget(1.0))


def test_a_ledger_that_somebody_makes_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, begin = tmp_path / "ledger.db", store._begin

    def second(connection: sqlite3.Connection, kind: str) -> None:
        monkeypatch.setattr(store, "_begin", begin)
        Ledger.create(path, "theirs", Budget(1.0))
        begin(connection, kind)

    monkeypatch.setattr(store, "_begin", second)
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(path, "ours", Budget(1.0))
    assert Ledger.open(path).datasets() == ["theirs"]


def test_a_commit_waits_for_a_reader(ledger: Ledger) -> None:
    """A reader that begins between the look at the balance and the commit holds the commit up for a moment."""
    reader = sqlite3.connect(ledger.path, isolation_level=None, check_same_thread=False)
    with store.writing(ledger.path, 10.0) as opened:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entry").fetchone()
        after = opened.head().sequence + 1
        opened.append(store.Entry(sequence=after, kind="finish", dataset="people", made="", run="x").sealed())
        release = threading.Timer(0.3, reader.execute, ["COMMIT"])
        release.start()
    release.join()
    reader.close()
    assert ledger.entries()[-1].kind == "finish"


def test_interrupt_inside_a_transaction_leaves_nothing(ledger: Ledger) -> None:
    before = ledger.path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        _interrupted(ledger.path)
    assert ledger.path.read_bytes() == before


def test_symbolic_link_leads_to_the_same_ledger(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(ledger.path)
    other = Ledger.open(tmp_path / "link.db")
    other.charge("people", run="second", method="x", cost=HALF.cost("pure"), budget=HALF)
    assert ledger.balance("people").releases == 2


@pytest.mark.parametrize("name", ["a b.db", "a?mode=ro.db", "a#b.db", "a%20b.db", "名前.db", "-x.db"])
def test_file_names_are_taken_literally(tmp_path: Path, name: str) -> None:
    Ledger.create(tmp_path / name, "people", Budget(1.0))
    assert Ledger.open(tmp_path / name).verify() == []
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_clock_zone_has_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    try:
        ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1.0))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert ledger.entries()[0].made in {time.strftime("%Y-%m-%d", time.gmtime(time.time() - late)) for late in (0, 60)}


# An entry's hash covers every field; what is read back is checked field by field.


ENTRY = Entry(
    sequence=3, kind="charge", dataset="people", made="2030-01-02T03:04:05Z", run="first", releases=1
).sealed()


def test_hash_is_the_same_for_ever() -> None:
    """The format of stored ledgers: a change here would make every ledger in use unreadable."""
    assert ENTRY.hash == "34e770842fe6d6d225c486460edbe1f0dab6d54d49fc9dc5840659d8dfee2d44"
    assert ENTRY.is_intact()


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "hash"])
def test_hash_covers_every_field(name: str) -> None:
    stored = getattr(ENTRY, name)
    changed = dataclasses.replace(ENTRY, **{name: stored + 1 if isinstance(stored, int) else stored + "x"})
    assert not changed.is_intact()
    assert changed.digest() != ENTRY.digest()


def test_text_cannot_slide_from_one_field_into_the_next() -> None:
    one = dataclasses.replace(ENTRY, method='a","note":"b', note="").digest()
    assert one != dataclasses.replace(ENTRY, method="a", note="b").digest()


def test_json_round_trip() -> None:
    assert Entry.from_json(ENTRY.to_json()) == ENTRY


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("sequence", "3"),
        ("sequence", True),
        ("total_rho", -1),
        ("total_rho", MOST_UNITS + 1),
        ("total_rho", 1.0),
        ("dataset", None),
        ("kind", "refund"),
        ("surprise", 1),
    ],
)
def test_ill_formed_lines_are_told(name: str, content: object) -> None:
    with pytest.raises(ValueError, match=name):
        Entry.from_json({**ENTRY.to_json(), name: content})


def test_missing_field_is_told() -> None:
    line = ENTRY.to_json()
    del line["total_rho"]
    with pytest.raises(ValueError, match="total_rho"):
        Entry.from_json(line)
