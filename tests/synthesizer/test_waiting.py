"""One output, one charge, one release: runs that race for an output, and releases left before they were in place."""

import fcntl
import os
import signal
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.processes import COMMAND, Forked
from tests.release.people import people, simple
from understudy.errors import Problem, UsageError
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger
from understudy.release import files, verify_release
from understudy.release.files import clear_unfinished, finish_waiting, reserved, waiting_folders

RACERS = 6
KILLED = """
import os, signal, sys
from understudy.release import files
files.put_in_place = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
from understudy.cli.app import app
app(sys.argv[1:])
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    pq.write_table(pa.Table.from_pandas(people(300)[["sex", "age", "voted"]]), tmp_path / "table.parquet")
    simple().to_yaml(tmp_path / "schema.yaml")
    return Ledger.create(tmp_path / "ledger.db", "people", Budget(20.0))


def _words(ledger: Ledger, *more: str) -> list[str]:
    here = ledger.path.parent
    words = ["synthesize", str(here / "table.parquet"), "--schema", str(here / "schema.yaml"), "--epsilon", "1"]
    return [*words, "--method", "laplace", "--out", str(here / "out"), *more]


def _start(ledger: Ledger, *more: str, script: str = COMMAND) -> Forked:
    return Forked(script, *_words(ledger, *more))


def _told(process: Forked) -> tuple[int, str]:
    ended = process.ended()
    return ended.status, ended.words


def _kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries()]


def test_runs_that_race_for_one_output_pay_once(ledger: Ledger) -> None:
    charged = ("--ledger", str(ledger.path), "--dataset", "people")
    ended = [_told(process) for process in [_start(ledger, *charged) for _ in range(RACERS)]]
    assert sorted(status for status, _ in ended) == [0] + [2] * (RACERS - 1), ended
    assert all("another process" in said or "exists already" in said for status, said in ended if status), ended
    assert ledger.balance("people").releases == 1
    assert verify_release(ledger.path.parent / "out") == []
    left = sorted(path.name for path in ledger.path.parent.iterdir())
    assert left == ["ledger.db", "out", "schema.yaml", "table.parquet"]


@pytest.fixture(params=[True, False], ids=["lasting ledger", "ledger of the run alone"])
def killed(request: pytest.FixtureRequest, ledger: Ledger) -> tuple[str, ...]:
    """How the next command is charged, after one that was killed when its release was complete but not in place."""
    charged = ("--ledger", str(ledger.path), "--dataset", "people") if request.param else ()
    assert _told(_start(ledger, *charged, script=KILLED))[0] == -signal.SIGKILL
    assert len(list(ledger.path.parent.glob(".out.*.partial"))) == 1
    return charged


def _is_finished(ledger: Ledger, killed: tuple[str, ...]) -> None:
    here = ledger.path.parent
    assert verify_release(here / "out") == []
    assert _kinds(ledger) == (["dataset", "charge", "finish"] if killed else ["dataset"])
    assert [path.name for path in here.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("more", [(), ("--resume",)], ids=["same again", "resumed"])
def test_a_release_left_by_a_kill_is_put_in_place_and_paid_once(
    ledger: Ledger, killed: tuple[str, ...], more: tuple[str, ...]
) -> None:
    status, said = _told(_start(ledger, *killed, *more))
    assert status == 0, said
    assert ("was complete but had not been moved into place" in said) == (not more)
    assert "Charged to" not in said
    _is_finished(ledger, killed)


def test_other_settings_put_it_in_place_and_are_refused(ledger: Ledger, killed: tuple[str, ...]) -> None:
    status, said = _told(_start(ledger, *killed, "--epsilon", "2", "--resume"))
    assert status == 2
    assert "other settings (budget)" in said
    assert not (ledger.path.parent / "out").exists(), "a person who names --resume means that very run"
    status, said = _told(_start(ledger, *killed, "--epsilon", "2"))
    assert status == 2
    assert "is now in place" in said
    assert "Nothing was charged." in said
    _is_finished(ledger, killed)


@pytest.mark.parametrize(
    "words", [("verify",), ("sample", "--rows", "5", "-o", "rows.csv")], ids=lambda words: words[0]
)
def test_commands_that_read_the_output_put_it_in_place(
    ledger: Ledger, killed: tuple[str, ...], words: tuple[str, ...], monkeypatch
) -> None:
    here = ledger.path.parent
    monkeypatch.chdir(here)
    ended = Forked(f"import os\nos.chdir({str(here)!r})\n{COMMAND}", words[0], "out", *words[1:]).ended()
    assert ended.status == 0, ended
    assert verify_release(here / "out") == []


def test_nobody_finishes_what_another_process_is_at_work_on(ledger: Ledger) -> None:
    """The folder is complete, and its process lives: it waits between the record and the rename."""
    here = ledger.path.parent
    paused = KILLED.replace("os.kill(os.getpid(), signal.SIGKILL)", "__import__('time').sleep(600)")
    running = _start(ledger, script=paused)
    while not list(here.glob(".out.*.partial/manifest.json")):
        assert running.runs(), running.ended()
        time.sleep(0.01)
    assert not finish_waiting(here / "out")
    assert not (here / "out").exists()
    assert _told(_start(ledger))[0] == 2
    running.send(signal.SIGKILL)
    running.ended()
    assert finish_waiting(here / "out")
    assert verify_release(here / "out") == []


def test_what_a_kill_left_half_written_goes_with_the_next_run(ledger: Ledger) -> None:
    here = ledger.path.parent
    charged = ("--ledger", str(ledger.path), "--dataset", "people")
    early = "import os, signal, sys\nfrom understudy.release import store\n"
    early += "store._write_fits = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
    early += "from understudy.cli.app import app\napp(sys.argv[1:])\n"
    assert _told(_start(ledger, *charged, script=early))[0] == -signal.SIGKILL
    assert len(list(here.glob(".out.*.partial"))) == 1
    status, said = _told(_start(ledger, *charged))
    assert status == 0, said
    assert list(here.glob(".out.*")) == []
    assert _kinds(ledger) == ["dataset", "charge", "charge", "finish"], "a charge is never taken back"


def test_a_damaged_leftover_blocks_nobody(ledger: Ledger) -> None:
    charged = ("--ledger", str(ledger.path), "--dataset", "people")
    assert _told(_start(ledger, *charged, script=KILLED))[0] == -signal.SIGKILL
    (left,) = ledger.path.parent.glob(".out.*.partial")
    os.truncate(left / "manifest.json", 40)
    status, said = _told(_start(ledger, *charged))
    assert status == 0, said
    assert ledger.balance("people").releases == 2
    assert left.exists(), "what was paid for is not removed"


def test_what_another_user_left_there_is_nobodys_release(
    ledger: Ledger, killed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that several people may write to, a folder with a hidden name is no reason to publish it."""
    target = ledger.path.parent / "out"
    assert len(waiting_folders(target)) == 1
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    assert waiting_folders(target) == []
    assert not finish_waiting(target)
    clear_unfinished(target)
    assert len(list(target.parent.glob(".out.*.partial"))) == 1


def test_no_run_begins_while_a_reader_finishes_its_output(
    ledger: Ledger, killed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a large folder takes long; a run that began meanwhile would pay for the same release once more."""
    target = ledger.path.parent / "out"
    checked, tried = files.check_files, []

    def slowly(folder: Path) -> list[Problem]:
        with pytest.raises(UsageError, match="being written"), reserved(target):
            pass
        tried.append(folder)
        return checked(folder)

    monkeypatch.setattr(files, "check_files", slowly)
    assert finish_waiting(target)
    assert len(tried) == 1


def test_whoever_looks_at_a_leftover_hides_it_from_nobody(ledger: Ledger, killed: tuple[str, ...]) -> None:
    target = ledger.path.parent / "out"
    (left,) = target.parent.glob(".out.*.partial")
    looking = os.open(left, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH | fcntl.LOCK_NB)
    try:
        assert waiting_folders(target) == [left]
    finally:
        os.close(looking)
