"""The ledger under races, kill -9, full disks, missing rights, locks and damage."""

import json
import os
import random
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.terminal import run
from tests.privacy import ledger_worker
from understudy.errors import BudgetError, LedgerError
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import WAIT_SECONDS, Ledger, Mark

ROOT = Path(__file__).resolve().parents[2]


def _work(*arguments: object) -> dict[str, int | str]:
    command = [sys.executable, "-m", "tests.privacy.ledger_worker", *map(str, arguments)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def _ledger(folder: Path, epsilon: float = 1e6) -> Ledger:
    return Ledger.create(folder / "ledger.db", "people", Budget(epsilon))


def _charged(ledger: Ledger) -> set[str]:
    return {entry.run for entry in ledger.entries() if entry.kind == "charge"}


def test_eight_racing_processes_get_exactly_what_the_cap_covers(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path, epsilon=25.1)  # 100 charges of 0.25 and a rest that covers no other
    assert _work("race", ledger.path, 8, 50) == {"granted": 100, "failed": 0}
    balance = ledger.balance("people")
    assert balance.releases == len(_charged(ledger)) == 100
    assert balance.spent.epsilon == 25 * 10**12
    assert ledger.verify() == []


def test_racing_processes_finish_a_continued_run_once(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    ledger_worker.charge(ledger, "run")
    told = _work("continue", ledger.path, 8, 20)
    assert (told["finished"], told["failed"]) == (1, 0)
    assert told["taken"] == sum(entry.kind == "continue" for entry in ledger.entries())
    assert ledger.balance("people").releases == 1
    assert ledger.verify() == []


def test_two_hundred_kills_leave_no_uncharged_read(tmp_path: Path) -> None:
    ledger, marks = _ledger(tmp_path), tmp_path / "marks"
    assert _work("kill", ledger.path, marks, 200, "charge-first") == {"kills": 200}
    read = set(marks.read_text(encoding="utf-8").split())
    assert len(read) >= 200  # every worker got to work
    assert read - _charged(ledger) == set()
    assert ledger.verify() == []
    assert ledger.balance("people").spent.epsilon == len(_charged(ledger)) * ledger_worker.COST.epsilon


def test_the_kill_test_catches_reading_before_charging(tmp_path: Path) -> None:
    ledger, marks = _ledger(tmp_path), tmp_path / "marks"
    _work("kill", ledger.path, marks, 40, "read-first")
    assert set(marks.read_text(encoding="utf-8").split()) - _charged(ledger)


def test_file_size_limit_refuses_before_reading(tmp_path: Path) -> None:
    ledger, marks = _ledger(tmp_path), tmp_path / "marks"
    _check_full(ledger, marks, _work("fill", ledger.path, marks, 120_000))


def test_full_disk_refuses_before_reading(tmp_path: Path, small_disk: Path) -> None:
    ledger, marks = _ledger(small_disk), tmp_path / "marks"
    _check_full(ledger, marks, _work("fill", ledger.path, marks, 0))


def _check_full(ledger: Ledger, marks: Path, told: dict[str, int | str]) -> None:
    read = marks.read_text(encoding="utf-8").splitlines()
    assert told["code"] == 3
    assert "disk" in str(told["error"])
    assert len(read) == told["charged"]
    assert len(read) > 10
    assert set(read) == _charged(ledger)
    assert ledger.verify() == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a small disk is not allowed here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("most_bytes", [1, 100, 5000, 20_000])
def test_no_room_for_a_ledger_leaves_no_file(tmp_path: Path, most_bytes: int) -> None:
    told = _work("create", tmp_path / "ledger.db", most_bytes)
    assert told["code"] == 3
    assert told["exists"] is False
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o755), (0o666, 0o555)])
def test_without_write_access_it_reads_and_refuses(file_mode: int, folder_mode: int) -> None:
    with tempfile.TemporaryDirectory() as name:  # the folders above a test's own are closed to other users
        folder = Path(name)
        ledger = _ledger(folder)
        ledger.path.chmod(file_mode)
        folder.chmod(folder_mode)
        told = _work("unprivileged", ledger.path)
        folder.chmod(0o700)
        assert told["seen"] == 1
        assert told["code"] == 3
        assert "write" in str(told["error"]) or "writing" in str(told["error"])
        assert len(ledger.entries()) == 1


def test_locked_ledger_is_refused_after_the_wait(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    impatient = Ledger.open(ledger.path, wait_seconds=0.05)
    assert WAIT_SECONDS == 60
    holder = sqlite3.connect(ledger.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert impatient.balance("people").releases == 0
    with pytest.raises(LedgerError, match="in use by another process"):
        ledger_worker.charge(impatient, "late")
    holder.execute("ROLLBACK")
    holder.execute("BEGIN")
    holder.execute("SELECT * FROM entry").fetchall()  # a reader that never ends keeps a commit from happening
    with pytest.raises(LedgerError, match="in use by another process"):
        ledger_worker.charge(impatient, "late")
    holder.close()
    ledger_worker.charge(impatient, "late")
    assert _charged(ledger) == {"late"}


def test_new_ledger_is_private_to_its_owner_and_replaces_nothing(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = _ledger(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    stored = ledger.path.read_bytes()
    with pytest.raises(LedgerError, match="exists already"):
        _ledger(tmp_path)
    assert ledger.path.read_bytes() == stored
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]


def test_a_ledger_whose_making_was_cut_short_is_made_now(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.touch(0o644)
    with pytest.raises(LedgerError, match="ledger init"):
        Ledger.open(path)
    assert run("ledger", "init", path, "--dataset", "people", "--epsilon", 2).status == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Ledger.open(path).datasets() == ["people"]
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(path, "others", Budget(1.0))
    (tmp_path / "text").write_text("not a ledger")
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(tmp_path / "text", "people", Budget(1.0))


@pytest.mark.parametrize("seed", range(30))
def test_damaged_file_is_told_and_never_breaks_out(tmp_path: Path, seed: int) -> None:
    """Whatever bytes are overwritten: verify tells or the entries are whole, and errors are ours."""
    probability = random.Random(seed)
    ledger = _ledger(tmp_path)
    for number in range(6):
        ledger_worker.charge(ledger, f"run {number}")
    whole = ledger.entries()
    stored = bytearray(ledger.path.read_bytes())
    start = probability.randrange(len(stored))
    for place in range(start, min(start + probability.choice([1, 8, 300, 4096]), len(stored))):
        stored[place] ^= probability.randrange(1, 256)
    ledger.path.write_bytes(stored)
    if not ledger.verify():
        assert ledger.entries() == whole
    granted = True
    try:
        ledger_worker.charge(ledger, "after")
    except LedgerError:
        granted = False
    if granted:
        assert ledger.balance("people").spent.epsilon == 7 * ledger_worker.COST.epsilon


def test_refused_runs_leave_no_trace(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path, epsilon=0.3)
    ledger_worker.charge(ledger, "first")
    stored = ledger.path.read_bytes()
    with pytest.raises(BudgetError):
        ledger_worker.charge(ledger, "second")
    with pytest.raises(LedgerError):
        ledger_worker.charge(ledger, "first")
    assert ledger.path.read_bytes() == stored


def _page_of(path: Path, name: str) -> int:
    with closing(sqlite3.connect(path)) as opened:
        (page,) = opened.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [name]).fetchone()
        return int(page)


@pytest.mark.parametrize("name", ["entry", "entry_dataset", "entry_run", "entry_opening", "entry_held"])
@pytest.mark.parametrize("left", [0, 1])
def test_a_damaged_index_is_refused_by_every_call(tmp_path: Path, name: str, left: int) -> None:
    """A page that holds fewer cells than it did is well formed, and hides charges."""
    ledger = _ledger(tmp_path)
    for number in range(3):
        ledger_worker.charge(ledger, f"run {number}")
    ledger.checkpoint("run 0", Mark(1, "0" * 64))
    start = (_page_of(ledger.path, name) - 1) * 4096
    content = bytearray(ledger.path.read_bytes())
    cells = int.from_bytes(content[start + 3 : start + 5], "big")
    content[start + 3 : start + 5] = (left if cells > left else 0).to_bytes(2, "big")
    ledger.path.write_bytes(content)
    calls = [
        lambda: Ledger.open(ledger.path),
        lambda: ledger.balance("people"),
        lambda: ledger.entries(),
        lambda: ledger.head(),
        lambda: ledger.extract(run="run 1"),
        lambda: ledger.newest("run 0"),
        lambda: ledger.finish("run 1", "failed"),
        lambda: ledger_worker.charge(ledger, "another"),
    ]
    for call in calls:
        with pytest.raises(LedgerError, match=r"is damaged|does not match"):
            call()
    assert ledger.verify()


def test_a_damaged_ledger_has_the_status_of_a_damaged_file(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    ledger_worker.charge(ledger, "run")
    start = (_page_of(ledger.path, "entry_dataset") - 1) * 4096
    content = bytearray(ledger.path.read_bytes())
    content[start + 3 : start + 5] = b"\x00\x00"
    ledger.path.write_bytes(content)
    for words in (["show"], ["verify"], ["init", "--dataset", "more", "--epsilon", 1]):
        shown = run("ledger", words[0], ledger.path, *words[1:])
        assert (shown.status, shown.panels) == (3 if words == ["verify"] else 2, 1), shown.words


def test_write_ahead_mode_is_refused_and_no_second_file_appears(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    ledger_worker.charge(ledger, "run")
    with closing(sqlite3.connect(ledger.path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
    for call in (lambda: Ledger.open(ledger.path), lambda: ledger_worker.charge(ledger, "another")):
        with pytest.raises(LedgerError, match="write-ahead mode"):
            call()
    assert "write-ahead" in str(ledger.verify()[0])
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]
    with closing(sqlite3.connect(ledger.path)) as other:  # what the message advises
        other.execute("PRAGMA journal_mode = DELETE")
    assert ledger.verify() == []
    assert _charged(ledger) == {"run"}


def test_write_ahead_mode_that_begins_while_we_look_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = _ledger(tmp_path)
    with closing(sqlite3.connect(ledger.path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        monkeypatch.setattr("understudy.privacy.ledger_file._is_write_ahead", lambda path: False)
        with pytest.raises(LedgerError, match="write-ahead mode"):
            ledger_worker.charge(ledger, "run")


def test_a_journal_that_a_killed_writer_left_is_rolled_back(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    ledger_worker.charge(ledger, "before")
    code = """
import os, sqlite3, sys
opened = sqlite3.connect(sys.argv[1], isolation_level=None)
opened.execute("PRAGMA cache_size = 1")
opened.execute("PRAGMA cache_spill = 1")
opened.execute("BEGIN IMMEDIATE")
opened.execute("DROP TRIGGER entry_never_changes")
opened.execute("UPDATE entry SET note = ?", ["x" * 100_000])  # more than fits in memory, so pages are on disk
os.kill(os.getpid(), 9)
"""
    whole = ledger.path.read_bytes()
    subprocess.run([sys.executable, "-c", code, str(ledger.path)], check=False)
    assert (tmp_path / "ledger.db-journal").exists()
    assert ledger.path.read_bytes() != whole
    assert _charged(ledger) == {"before"}
    assert ledger.verify() == []
    ledger_worker.charge(ledger, "after")
    assert _charged(ledger) == {"before", "after"}
