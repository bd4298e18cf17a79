"""Checkpoints on disk: for their owner only, whole or absent, the newest recorded one or none."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from understudy.errors import LedgerError
from understudy.folders import write_durably
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger
from understudy.privacy.training import Checkpoint, FolderKeeper

ONE = Budget(1.0)


def _at(step: int) -> Checkpoint:
    return Checkpoint(step, np.array([step, 7]), {"x": np.arange(step)})


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*"))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.db", "people", Budget(5.0))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def _begun(folder: Path, ledger: Ledger, run: str = "run") -> FolderKeeper:
    keeper = FolderKeeper(folder, ledger, run, "configuration")
    keeper.begun(ledger.charge("people", run=run, method="dpwgan", cost=ONE.cost("pure"), budget=ONE))
    return keeper


def _again(folder: Path, ledger: Ledger, configuration: str = "configuration") -> FolderKeeper:
    return FolderKeeper(folder, ledger, "run", configuration)


def test_the_newest_one_is_taken_up(folder: Path, ledger: Ledger) -> None:
    begun = _begun(folder, ledger)
    assert begun.newest() is None
    for step in (0, 5, 10):
        begun.keep(_at(step))
        (kept,) = _files(folder)
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    again = _again(folder, ledger)
    receipt = again.take_up()
    found = again.newest()
    assert found is not None
    assert (found.step, found.first.tolist(), found.state["x"].tolist()) == (10, [10, 7], list(range(10)))
    assert receipt.holder == ledger.head()
    again.keep(_at(15))
    with pytest.raises(LedgerError, match=r"continued by another process since\. The run stopped"):
        begun.keep(_at(15))
    assert _again(folder, ledger).take_up().hash == receipt.hash, "what another process wrote does no harm"


def test_a_run_without_a_checkpoint_begins_again(folder: Path, ledger: Ledger) -> None:
    _begun(folder, ledger)
    again = _again(folder, ledger)
    again.take_up()
    assert again.newest() is None
    again.keep(_at(0))


@pytest.mark.parametrize("moment", ["write", "rename", "record"])
def test_a_kill_while_keeping_leaves_the_one_before(folder: Path, ledger: Ledger, monkeypatch, moment: str) -> None:
    begun = _begun(folder, ledger)
    begun.keep(_at(5))

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    target = {"write": (os, "fsync"), "rename": (os, "rename"), "record": (Ledger, "checkpoint")}[moment]
    with monkeypatch.context() as broken:
        broken.setattr(*target, killed)
        with pytest.raises(KeyboardInterrupt):
            begun.keep(_at(10))
    again = _again(folder, ledger)
    again.take_up()
    found = again.newest()
    assert found is not None
    assert found.step == 5
    assert len(_files(folder)) == 1, "what was not recorded is gone"


def _altered(folder: Path) -> None:
    (path,) = _files(folder)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _missing(folder: Path) -> None:
    _files(folder)[0].unlink()


def _older(folder: Path) -> None:
    (path,) = _files(folder)
    path.write_bytes((folder / "older").read_bytes())


@pytest.mark.parametrize(("harm", "told"), [(_altered, "does not match"), (_missing, "is missing"), (_older, "match")])
def test_what_is_not_the_recorded_file_is_refused(folder: Path, ledger: Ledger, harm, told: str) -> None:
    begun = _begun(folder, ledger)
    begun.keep(_at(5))
    (folder / "older").write_bytes(_files(folder)[0].read_bytes())
    begun.keep(_at(10))
    harm(folder)
    before = ledger.head()
    with pytest.raises(LedgerError, match=told):
        _again(folder, ledger).take_up()
    assert ledger.head() == before


def test_other_settings_and_other_runs_are_refused(folder: Path, ledger: Ledger) -> None:
    _begun(folder, ledger).keep(_at(5))
    before = ledger.head()
    with pytest.raises(LedgerError, match="no checkpoint of this run"):
        _again(folder, ledger, "other").take_up()
    assert ledger.head() == before
    _begun(folder, ledger, "second").keep(_at(7))
    with pytest.raises(LedgerError, match="is missing"):
        _again(folder, ledger).take_up()


def test_a_file_is_whole_or_absent(tmp_path: Path, monkeypatch) -> None:
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    write_durably(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content"
    assert synced == [(tmp_path / "file").stat().st_ino, tmp_path.stat().st_ino]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
