"""Runs that are interrupted, and the net for what may be done with them: continue, at no charge, once.

`Interrupted` starts a small training with real noise and breaks it off where a test wants it: after some steps, or when
the release is about to be written.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pyarrow as pa

from understudy.errors import UnderstudyError
from understudy.mechanisms.deep.wgan import Ints, WganTrainer
from understudy.privacy.ledger import Ledger
from understudy.release import Release, verify_release
from understudy.synthesizer import pipeline, synthesize
from understudy.synthesizer.working import working_place
from understudy.testing import tables

__all__ = ["OPTIONS", "Interrupted", "interrupted_after", "interrupted_writing"]

OPTIONS: Mapping[str, object] = {
    "steps": 40,
    "hidden": 4,
    "latent": 2,
    "batch": 8,
    "components": 16,
    "rate": 0.3,
}


@contextmanager
def interrupted_after(steps: int) -> Iterator[None]:
    """Breaks off every training in its next step, once that many were taken."""
    taken, step = 0, WganTrainer.step

    def counted(trainer: WganTrainer, noisy: Ints) -> None:
        nonlocal taken
        taken += 1
        if taken > steps:
            raise KeyboardInterrupt
        step(trainer, noisy)

    with mock.patch.object(WganTrainer, "step", counted), suppress(KeyboardInterrupt):
        yield


@contextmanager
def interrupted_writing() -> Iterator[None]:
    """Breaks off every run when its release would be written."""
    broken = mock.patch.object(pipeline, "save_release", side_effect=KeyboardInterrupt)
    with broken, suppress(KeyboardInterrupt):
        yield


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A run of `dpwgan` on a small table, charged to a ledger, with its release in `folder`."""

    ledger: Ledger
    folder: Path
    options: Mapping[str, object] = field(default_factory=lambda: OPTIONS)

    @property
    def table(self) -> pa.Table:
        """The table, the same each time."""
        return tables.possible_rows(tables.small(), 60, seed=1)

    @property
    def working(self) -> Path:
        """Where the run keeps its state."""
        return working_place(self.folder)

    def run(self, *, resume: bool = False, **changes: object) -> Release:
        """Starts or continues the run."""
        settings: dict[str, object] = {"epsilon": 1.0, "delta": 1e-6, "options": self.options, "ledger": self.ledger}
        settings |= {"out": self.folder, "dataset": "people", "method": "dpwgan", "resume": resume} | changes
        return synthesize(self.table, tables.small(), **settings)  # type: ignore[arg-type]

    def check(self) -> None:
        """Continues a run that was interrupted twice, and tries to get a second release out of it."""
        before = self.ledger.balance("people").spent
        with interrupted_after(5):
            self.run()
        charged = self.ledger.balance("people").spent - before
        with interrupted_writing():
            self.run(resume=True)
        assert not self.folder.exists(), "an interrupted run left a release"
        kept = self.folder.with_name("kept")
        shutil.copytree(self.working, kept)
        release = self.run(resume=True)
        assert self.ledger.balance("people").spent - before == charged, "a continued run was charged again"
        assert release.statement.claim == (1.0, 1e-6), "a continued run claims something else"
        assert not verify_release(self.folder), "the release of a continued run does not verify"
        self.folder.rename(self.folder.with_name("first"))
        shutil.copytree(kept, self.working)
        with suppress(UnderstudyError):
            self.run(resume=True)
        assert not self.folder.exists(), "one charge yielded two releases"
        assert not self.ledger.verify(), "the ledger does not verify"
