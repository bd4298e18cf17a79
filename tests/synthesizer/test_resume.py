"""Interrupted runs: continued without a charge, with the distribution of an uninterrupted run, and released once."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.nets.doubles import OPTIONS, Interrupted, interrupted_after, interrupted_writing
from tests.processes import COMMAND, Forked
from understudy.counts.streaming import ChunkedSource
from understudy.errors import BudgetError, LedgerError, UsageError
from understudy.methods.dpwgan import WganTrainer
from understudy.privacy import ledger as ledger_room
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger
from understudy.release import files as folder_room
from understudy.release import verify_release
from understudy.release.files import finish_waiting
from understudy.synthesizer import Environment
from understudy.synthesizer import account as working
from understudy.testing import NoNoise
from understudy.testing import cases as tables

SHARED = Path("/dev/shm")
LONG = {**OPTIONS, "steps": 1500}


class ByStep(NoNoise):
    """Noise and coins that belong to the step, so that an interruption changes neither. Not private."""

    def add_noise(self, request, exact):
        draws = np.random.default_rng([request.layer, request.cells]).normal(
            0.0, request.distribution.scale, exact.size
        )
        return exact + np.rint(draws).astype(np.int64)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory where there is one: what is tested survives a kill, not a loss of power."""
    with tempfile.TemporaryDirectory(dir=SHARED if os.access(SHARED, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.db", "people", Budget(3.0, 1e-3))


@pytest.fixture
def run(ledger: Ledger, tmp_path: Path) -> Interrupted:
    return Interrupted(ledger, tmp_path / "release")


def _kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries() if entry.kind != "checkpoint"]


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_continued_run_is_an_uninterrupted_one(ledger: Ledger, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(ledger_room, "_today", lambda: "2026-01-02")
    found = []
    for name, breaks in (("whole", []), ("broken", [0, 3, 17]), ("written", [40])):
        own = Ledger.create(tmp_path / f"{name}.db", "people", Budget(3.0, 1e-3))
        run = Interrupted(own, tmp_path / name)
        environment = Environment(ByStep(), lambda: datetime(2026, 1, 2, tzinfo=UTC), lambda: "run-of-a-test")
        for number, steps in enumerate(breaks):
            with interrupted_after(steps), interrupted_writing():
                run.run(resume=number > 0, seed=None if number else 3, _environment=environment)
            assert not run.folder.exists()
        run.run(resume=bool(breaks), seed=None if breaks else 3, _environment=environment)
        assert _kinds(own) == ["dataset", "charge", *["continue"] * len(breaks), "finish"]
        found.append(_bytes(run.folder))
    assert found[0] == found[1] == found[2]


def test_the_charge_is_made_once_and_the_release_verifies(run: Interrupted, ledger: Ledger, tmp_path: Path) -> None:
    with interrupted_after(5):
        run.run(seed=9)
    charged = ledger.balance("people")
    assert not run.folder.exists()
    with pytest.raises(UsageError, match="interrupted run is waiting"):
        run.run()
    release = run.run(resume=True)
    assert ledger.balance("people") == charged
    assert _kinds(ledger) == ["dataset", "charge", "continue", "finish"]
    assert (release.statement.claim, release.config.seed) == ((1.0, 1e-6), 9)
    assert verify_release(run.folder) == []
    assert ledger.verify([release.statement.ledger.head]) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.db", "release"]


def test_a_run_broken_before_its_first_checkpoint_begins_again(run: Interrupted, ledger: Ledger, monkeypatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(ChunkedSource, "records", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            run.run()
    assert _kinds(ledger) == ["dataset", "charge"]
    with monkeypatch.context() as broken:
        broken.setattr("understudy.release.release._version", _absent)
        with pytest.raises(UsageError, match="not installed"):
            run.run(resume=True)
    run.run(resume=True)  # which the refused one did not keep locked
    assert [entry.note for entry in ledger.entries() if entry.kind == "continue"] == ["from the beginning"]
    assert ledger.balance("people").releases == 1
    assert ledger.verify() == []


def test_without_a_lasting_ledger_the_runs_own_is_kept_until_the_release(run: Interrupted, tmp_path: Path) -> None:
    with interrupted_after(5):
        run.run(ledger=None, dataset=None)
    own = Ledger.open(run.working / "ledger.db")
    assert own.balance(own.datasets()[0]).releases == 1
    with pytest.raises(UsageError, match="ε and δ are spent all the same: this folder is the only record of them"):
        run.run(ledger=None, dataset=None)
    with pytest.raises(UsageError, match="charged to no lasting ledger, got dataset 'people'"):
        run.run(resume=True)
    run.run(resume=True, ledger=None, dataset=None)
    assert verify_release(run.folder) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.db", "release"]


CHANGES = {
    "method": ({"method": "independent", "options": {}}, "keeps no checkpoints"),
    "options": ({"options": {**OPTIONS, "steps": 41}}, "other settings"),
    "epsilon": ({"epsilon": 1.1}, "other settings"),
    "delta": ({"delta": 2e-6}, "other settings"),
    "rows": ({"rows": 5}, "other settings"),
    "copies": ({"copies": 2}, "other settings"),
    "copies measured anew": ({"copies": 2, "copies_mode": "remeasure"}, "keeps no checkpoints"),
    "seed": ({"seed": 10}, "has seed 9"),
    "nowhere": ({"out": None}, "needs the output"),
    "elsewhere": ({"out": "somewhere-else"}, "no interrupted run"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_settings_are_refused_and_nothing_happens(run: Interrupted, ledger: Ledger, change: str) -> None:
    with interrupted_after(5):
        run.run(seed=9)
    before, files = ledger.path.read_bytes(), _bytes(run.working)
    changes, told = CHANGES[change]
    with pytest.raises(UsageError, match=told):
        run.run(resume=True, **changes)
    assert (ledger.path.read_bytes(), _bytes(run.working)) == (before, files)
    run.run(resume=True)


def test_a_run_is_continued_for_what_it_was_charged_only(run: Interrupted, ledger: Ledger, monkeypatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(ChunkedSource, "records", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            run.run()
    monkeypatch.setattr(working, "_check_same", lambda *_: None)  # as if its notes had been altered
    for changes in ({"epsilon": 2.0}, {"delta": 1e-5}):
        with pytest.raises(LedgerError, match="charged for something other"):
            run.run(resume=True, **changes)
    assert _kinds(ledger) == ["dataset", "charge"]


def test_a_folder_that_others_may_use_is_not_continued(run: Interrupted) -> None:
    with interrupted_after(5):
        run.run()
    run.working.chmod(0o770)
    with pytest.raises(UsageError, match="others may use it"):
        run.run(resume=True)
    run.working.chmod(0o700)
    run.run(resume=True)


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.filterwarnings("ignore:The release of an earlier run")
def test_an_interruption_just_after_the_record_keeps_the_release(
    run: Interrupted, ledger: Ledger, monkeypatch, resume: bool
) -> None:
    finish = Ledger.finish

    def interrupted(*given, **more):
        finish(*given, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(Ledger, "finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.run()
    (staged,) = run.folder.parent.glob(".release.*.partial")
    charged = ledger.balance("people")
    with pytest.raises(UsageError, match=r"other settings \(budget\)"):
        run.run(resume=True, epsilon=1.5)
    assert not finish_waiting(run.folder), "its ledger must tell whether this is the release of the charge"
    assert staged.exists()
    run.run(resume=resume)
    assert verify_release(run.folder) == []
    assert ledger.balance("people") == charged
    assert [path.name for path in run.folder.parent.iterdir() if path.name.startswith(".")] == []


def test_a_complete_release_that_never_came_on_record_goes_when_the_run_is_continued(
    run: Interrupted, ledger: Ledger, monkeypatch
) -> None:
    """Both together would be two releases under one charge."""
    with monkeypatch.context() as broken:
        broken.setattr(Ledger, "finish", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            run.run()
    (staged,) = run.folder.parent.glob(".release.*.partial")
    assert (staged / "manifest.json").exists()
    run.run(resume=True)
    assert not staged.exists()
    assert _kinds(ledger) == ["dataset", "charge", "continue", "finish"]


def test_nothing_to_continue_charges_nothing(run: Interrupted, ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="no interrupted run"):
        run.run(resume=True)
    with pytest.raises(BudgetError):
        run.run(epsilon=9.0)
    assert not run.working.exists(), "a refused charge leaves nothing"
    assert _kinds(ledger) == ["dataset"]


def test_a_run_stopped_before_its_charge_cannot_be_continued(run: Interrupted, ledger: Ledger, monkeypatch) -> None:
    for place in (ledger, None):
        with monkeypatch.context() as killed:
            killed.setattr(Ledger, "charge", _interrupt)
            killed.setattr(Ledger, "single_use", _interrupt)
            killed.setattr(working.Working, "discard", working.Working.let_go)
            with pytest.raises(KeyboardInterrupt):
                run.run(ledger=place, dataset="people" if place else None)
        with pytest.raises(UsageError, match=r"was not charged to this ledger|before it was charged"):
            run.run(resume=True, ledger=place, dataset="people" if place else None)
        shutil.rmtree(run.working)
    assert _kinds(ledger) == ["dataset"]


def _absent(name: str) -> str:
    raise PackageNotFoundError(name)


def _interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_altered_and_foreign_checkpoints_are_refused(run: Interrupted, ledger: Ledger, tmp_path: Path) -> None:
    with interrupted_after(5):
        run.run()
    (kept,) = run.working.glob("checkpoint-*")
    content = kept.read_bytes()
    other = Interrupted(Ledger.create(tmp_path / "other.db", "people", Budget(3.0, 1e-3)), tmp_path / "other")
    with interrupted_after(5):
        other.run()
    (foreign,) = other.working.glob("checkpoint-*")
    for bad in (content[:-1], content.replace(b"format 1", b"format 2"), foreign.read_bytes()):
        kept.write_bytes(bad)
        with pytest.raises(LedgerError, match="does not match the ledger"):
            run.run(resume=True)
    shutil.copyfile(other.working / "run.json", run.working / "run.json")
    kept.write_bytes(content)
    with pytest.raises(UsageError, match="was not charged to this ledger"):
        run.run(resume=True)
    assert _kinds(ledger) == ["dataset", "charge"]


def test_an_older_branch_is_refused(run: Interrupted, ledger: Ledger, tmp_path: Path) -> None:
    with interrupted_after(5):
        run.run()
    shutil.copytree(run.working, tmp_path / "older")
    with interrupted_after(5):
        run.run(resume=True)
    shutil.rmtree(run.working)
    shutil.copytree(tmp_path / "older", run.working)
    with pytest.raises(LedgerError, match="is missing"):
        run.run(resume=True)
    steps = [int(entry.note.split()[1].rstrip(",")) for entry in ledger.entries() if entry.kind == "checkpoint"]
    assert steps == sorted(set(steps)), "one sequence of recorded states"


def test_two_processes_that_do_not_see_each_others_lock_release_once(run: Interrupted, ledger: Ledger, monkeypatch):
    """While one process trains, another one takes the run up and completes it; the first cannot publish any more."""
    step, done = WganTrainer.step, []  # type: ignore[var-annotated]

    def overtaken(trainer, noisy):
        if not done:
            done.append(True)
            run.run(resume=True)
            run.folder.rename(run.folder.with_name("theirs"))
        step(trainer, noisy)

    monkeypatch.setattr("understudy.folders.locked", lambda path: os.open(path.parent, os.O_RDONLY))
    monkeypatch.setattr(folder_room, "_reserving", lambda *_: None)
    monkeypatch.setattr(WganTrainer, "step", overtaken)
    with pytest.raises((LedgerError, OSError)):
        run.run()
    assert not run.folder.exists()
    assert verify_release(run.folder.with_name("theirs")) == []
    assert _kinds(ledger) == ["dataset", "charge", "continue", "finish"]


def test_completion_is_recorded_before_the_release_can_be_seen(run: Interrupted, ledger: Ledger, monkeypatch) -> None:
    seen = []

    def failing(source: Path, target: Path) -> None:
        seen.append((_kinds(ledger)[-1], run.folder.exists()))
        raise OSError("the disk broke")

    with monkeypatch.context() as broken:
        broken.setattr(folder_room.os, "rename", _only(failing, run.folder))  # type: ignore[attr-defined]
        with pytest.raises(UsageError, match=r"complete in .* same command again"):
            run.run()
    assert seen == [("finish", False)]
    (staged,) = run.folder.parent.glob(".release.*.partial")
    assert verify_release(staged) == [], "the paid release is not lost"
    run.run(resume=True)
    assert verify_release(run.folder) == []
    assert _kinds(ledger) == ["dataset", "charge", "finish"], "put in place, not made again"
    assert ledger.verify() == []


def _only(failing, target: Path):
    rename = os.rename
    return lambda source, place: failing(source, place) if Path(place) == target.absolute() else rename(source, place)


def _command(run: Interrupted, *more: str) -> list[str]:
    schema, table = run.folder.with_name("schema.yaml"), run.folder.with_name("table.parquet")
    if not schema.exists():
        tables.small().to_yaml(schema)
        pq.write_table(run.table, table)
    words = ["synthesize", str(table), "--schema", str(schema), "--epsilon", "1"]
    words += ["--delta", "1e-6", "--method", "dpwgan", "--ledger", str(run.ledger.path), "--dataset", "people"]
    options = [word for key, value in LONG.items() for word in ("--set", f"{key}={value}")]
    return [*words, "--out", str(run.folder), *options, *more]


def _killed(run: Interrupted) -> None:
    """Starts the command and kills it in the middle of its training."""
    process = Forked(COMMAND, *_command(run))
    until = time.monotonic() + 300
    while not any(entry.note.startswith("step 150,") for entry in run.ledger.entries()):
        assert process.runs(), process.ended()
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send(signal.SIGKILL)
    assert process.ended().status == -signal.SIGKILL, "it ended before it was killed"


def test_kill_and_resume_from_the_command_line(run: Interrupted, ledger: Ledger) -> None:
    _killed(run)
    assert not run.folder.exists()
    charged = ledger.balance("people")
    racing = [Forked(COMMAND, *_command(run, "--resume")) for _ in range(2)]
    winner, loser = sorted((process.ended() for process in racing), key=lambda ended: ended.status)
    assert (winner.status, loser.status) == (0, 2), (winner, loser)
    assert "another process" in loser.words or "exists already" in loser.words
    assert "ε = 1 and δ = 1e-06" in winner.words
    assert verify_release(run.folder) == []
    assert ledger.balance("people") == charged
    assert _kinds(ledger) == ["dataset", "charge", "continue", "finish"]
    assert ledger.verify() == []
