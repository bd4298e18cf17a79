"""The working folder: for its owner, for one process at a time, for one run under one set of settings."""

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tests.release.people import everything, simple
from understudy.errors import UsageError
from understudy.privacy.cost import Budget
from understudy.release.files import working_place
from understudy.synthesizer.account import (
    Begun,
    Working,
    check_continuable,
    configuration_digest,
    is_continuable,
)
from understudy.synthesizer.design import Copies, Design

BEGUN = Begun("run", "digest", "people", 7)


def _design(method: str = "dpwgan", schema=None, *, options=None, runs: int = 1, epsilon: float = 1.0) -> Design:
    budget = Budget(epsilon, 0.0 if method == "laplace" else 1e-6)
    return Design.of(schema or simple(), method, budget, options=options, runs=runs)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "release"


def test_a_run_begins_in_a_folder_of_its_own(target: Path) -> None:
    working = Working.unused(target)
    assert not working.path.exists()
    working.begin(BEGUN)
    assert stat.S_IMODE(working.path.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in working.path.iterdir())
    with pytest.raises(UsageError, match=r"interrupted run is waiting .* with resume=True.* the ledger records them"):
        Working.unused(target)
    working.let_go()
    found = Working.interrupted(target, replace(BEGUN, run="", seed=1), seed=None)
    assert found.begun == BEGUN
    found.discard()
    assert list(target.parent.iterdir()) == []


def test_one_process_at_a_time(target: Path) -> None:
    first, second = Working.unused(target), Working.unused(target)
    first.begin(BEGUN)
    with pytest.raises(UsageError, match="belongs to another run"):
        second.begin(BEGUN)
    with pytest.raises(UsageError, match="another process is working"):
        Working.interrupted(target, BEGUN, seed=None)
    first.let_go()
    first.let_go()
    found = Working.interrupted(target, BEGUN, seed=7)
    with pytest.raises(UsageError, match="another process is working"):
        Working.interrupted(target, BEGUN, seed=None)
    found.let_go()


@pytest.mark.parametrize(
    ("wanted", "seed", "told"),
    [
        (replace(BEGUN, dataset="other"), None, "charged to dataset 'people', got dataset 'other'"),
        (replace(BEGUN, dataset=None), None, "got no lasting ledger"),
        (replace(BEGUN, configuration="other"), None, "had other settings"),
        (BEGUN, 8, "has seed 7, got 8"),
    ],
)
def test_other_settings_are_refused_and_the_folder_is_let_go(target: Path, wanted: Begun, seed, told: str) -> None:
    working = Working.unused(target)
    working.begin(BEGUN)
    working.let_go()
    with pytest.raises(UsageError, match=told):
        Working.interrupted(target, wanted, seed=seed)
    Working.interrupted(target, BEGUN, seed=None).let_go()


@pytest.mark.parametrize("change", [{"run": 3}, {"seed": "7"}, {"dataset": 1}, {"format": "2"}, None])
def test_notes_of_another_form_are_refused(target: Path, change) -> None:
    with pytest.raises(UsageError, match="no interrupted run"):
        Working.interrupted(target, BEGUN, seed=None)
    working = Working.unused(target)
    working.begin(BEGUN)
    working.let_go()
    notes = working_place(target) / "run.json"
    document = json.loads(notes.read_text(encoding="utf-8"))
    notes.write_text("[" if change is None else json.dumps(document | change), encoding="utf-8")
    with pytest.raises(UsageError, match="does not say which run"):
        Working.interrupted(target, BEGUN, seed=None)


def test_only_one_training_and_nothing_besides_can_be_continued() -> None:
    assert is_continuable(_design())
    check_continuable(_design())
    for design, told in (
        (_design("laplace"), "method laplace keeps no checkpoints"),
        (_design(schema=everything()), "first fixes labels or bins"),
        (_design(runs=2), "measures every copy anew"),
    ):
        assert not is_continuable(design)
        with pytest.raises(UsageError, match=told):
            check_continuable(design)


def test_the_digest_tells_settings_apart() -> None:
    copies = Copies(1, "resample", None, 5)
    found = [
        configuration_digest(_design(), copies, ()),
        configuration_digest(_design(epsilon=2.0), copies, ()),
        configuration_digest(_design(options={"steps": 9}), copies, ()),
        configuration_digest(_design(schema=replace(simple(), title="another")), copies, ()),
        configuration_digest(_design(), replace(copies, count=2), ()),
        configuration_digest(_design(), replace(copies, rows=10), ()),
        configuration_digest(_design(), copies, ("extra",)),
    ]
    assert len(set(found)) == len(found)
    assert configuration_digest(_design(), replace(copies, seed=6), ()) == found[0]


def test_a_folder_that_cannot_be_made_whole_is_removed(target: Path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("understudy.folders.write_durably", full)
    with pytest.raises(OSError, match="No space"):
        Working.unused(target).begin(BEGUN)
    assert list(target.parent.iterdir()) == []
