"""Working: the folder beside the output in which a run that can be continued keeps its state until it is released.

It holds the name of the run, the digest of its settings, the newest checkpoint and, without a lasting ledger, the
ledger made for this run alone. It belongs to its owner only and is confidential until the release is complete; then it
goes. A process that works in it holds a lock, which the operating system lets go when the process ends, however it
ends. What must hold even where locks do not (a folder copied, another machine) is the ledger's part.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from understudy.errors import UsageError
from understudy.mechanisms.registry import keeps_checkpoints
from understudy.privacy.training.keeper import write_durably
from understudy.release.folder import waiting_folders
from understudy.release.statement import digest_of
from understudy.synthesizer.design import Copies, Design

__all__ = ["Begun", "Working", "check_continuable", "configuration_digest", "is_continuable", "working_place"]

FORMAT = "understudy run, format 1"
_NOTES, _LOCK, _LEDGER = "run.json", "lock", "ledger.db"


@dataclass(frozen=True, slots=True)
class Begun:
    """What a run is known by: its name, the settings' digest, the dataset it is charged to, the seed."""

    run: str
    configuration: str
    dataset: str | None
    seed: int


def working_place(target: Path) -> Path:
    """Where a run that writes to `target` keeps its state.

    >>> working_place(Path("/data/release")).name
    '.release.working'
    """
    final = target.absolute()
    return final.parent / f".{final.name}.working"


def is_continuable(design: Design) -> bool:
    """Whether a run of this design keeps checkpoints: one training, and nothing that is asked besides it."""
    return keeps_checkpoints(design.method) and not design.preparation and design.runs == 1


def check_continuable(design: Design) -> None:
    """Raises UsageError unless runs of this design keep checkpoints."""
    if is_continuable(design):
        return
    fix = "Run it without --resume; it is charged as a run of its own."
    if not keeps_checkpoints(design.method):
        raise UsageError("resume", f"method {design.method.name} keeps no checkpoints.", fix)
    rule = "a run that settles labels or bins first, or measures every copy anew, keeps no checkpoints."
    raise UsageError("resume", rule, fix)


def configuration_digest(design: Design, copies: Copies, left_out: Sequence[str]) -> str:
    """SHA-256 of everything public that a run depends on; a run is continued under the same settings only."""
    granted = design.granted
    facts = {
        "version": version("understudy"),
        "method": design.method.name,
        "options": dict(design.plan.options),
        "schema": digest_of(design.schema),
        "budget": [design.budget.epsilon_units, design.budget.delta_units],
        "granted": [granted.epsilon, granted.rho, granted.delta],
        "copies": [copies.count, copies.mode, copies.rows],
        "left out": list(left_out),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True, ensure_ascii=True, default=str).encode()).hexdigest()


class Working:
    """The folder of one run; `begun` says which, once it is known."""

    def __init__(self, path: Path, begun: Begun | None = None, lock: int | None = None) -> None:
        self.path, self.begun, self._lock = path, begun, lock

    @classmethod
    def unused(cls, target: Path) -> "Working":
        """The folder of a run that is still to begin.

        Raises:
            UsageError: if an interrupted run is waiting there.
        """
        path = working_place(target)
        if path.exists() or path.is_symlink():
            record = "this folder is their only record" if (path / _LEDGER).exists() else "the ledger keeps them"
            fix = "Continue it with --resume, free of charge. If you delete the folder instead, its ε and δ are spent "
            fix += f"all the same: {record}."
            raise UsageError(f"output {str(target)!r}", f"an interrupted run is waiting in {str(path)!r}.", fix)
        return cls(path)

    @classmethod
    def interrupted(cls, target: Path, wanted: Begun, *, seed: int | None) -> "Working":
        """The folder of an interrupted run, locked, with the same settings as `wanted`; a given seed must be its own.

        Raises:
            UsageError: if there is none, another process works in it, or it was begun under other settings.
        """
        path = working_place(target)
        if path.is_symlink() or not (path / _NOTES).is_file():
            fix = "Run without --resume, or name the output of the run that was interrupted."
            raise UsageError(f"output {str(target)!r}", "has no interrupted run beside it.", fix)
        _check_own(path)
        found = cls(path, None, _locked(path))
        try:
            found.begun = _read(path / _NOTES)
            _check_same(found.begun, wanted, seed)
        except BaseException:
            found.let_go()
            raise
        return found

    def drop_unrecorded(self) -> None:
        """Removes complete releases of this output that never came on record.

        To be called once the run was taken up: from then on they cannot be recorded any more, and together with what
        the continued run releases they would be a second release under one charge.
        """
        name = self.path.name.removeprefix(".").removesuffix(".working")
        for folder in waiting_folders(self.path.with_name(name)):
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def ledger_path(self) -> Path:
        """Where a ledger for this run alone is kept."""
        return self.path / _LEDGER

    def begin(self, begun: Begun) -> None:
        """Makes the folder, for its owner only, and notes which run works in it."""
        try:
            self.path.mkdir(mode=0o700)
        except FileExistsError as error:
            fix = "Wait for it, or continue it with --resume."
            raise UsageError(f"folder {str(self.path)!r}", "belongs to another run.", fix) from error
        try:
            self._lock, self.begun = _locked(self.path), begun
            content = json.dumps({"format": FORMAT, **asdict(begun)}, indent=1, ensure_ascii=True)
            write_durably(self.path / _NOTES, content.encode() + b"\n")
        except BaseException:
            self.discard()
            raise

    def let_go(self) -> None:
        """Lets another process continue the run."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def discard(self) -> None:
        """Removes the folder: the release is complete, or nothing was charged."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.let_go()


def _check_own(path: Path) -> None:
    """Raises unless the folder belongs to whoever runs this, and to nobody else."""
    facts = path.lstat()
    if facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
        rule = "belongs to somebody else, or others may use it."
        raise UsageError(f"folder {str(path)!r}", rule, "A run is continued by its owner, from a folder of mode 0700.")


def _locked(path: Path) -> int:
    handle = os.open(path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise UsageError(f"folder {str(path)!r}", "another process is at work on this run.", "Wait for it.") from error
    return handle


def _read(path: Path) -> Begun:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        run, configuration, seed = document["run"], document["configuration"], document["seed"]
        dataset = document["dataset"]
        if document["format"] != FORMAT or not isinstance(run, str) or not isinstance(configuration, str):
            raise ValueError("form")
        if type(seed) is not int or not isinstance(dataset, str | None):
            raise ValueError("form")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"file {str(path)!r}", "does not tell which run was interrupted.", "Restore it.") from error
    return Begun(run, configuration, dataset, seed)


def _check_same(begun: Begun, wanted: Begun, seed: int | None) -> None:
    if begun.dataset != wanted.dataset:
        rule = f"the interrupted run was charged to {_named(begun.dataset)}, got {_named(wanted.dataset)}."
        raise UsageError("resume", rule, "Name the same ledger and dataset as before.")
    if begun.configuration != wanted.configuration:
        rule = "the interrupted run had other settings (method, options, schema, budget, rows, copies or version)."
        raise UsageError("resume", rule, "Give the same command as before; nothing was continued or charged.")
    if seed not in (None, begun.seed):
        raise UsageError("seed", f"the interrupted run has seed {begun.seed}, got {seed}.", "Leave it out.")


def _named(dataset: str | None) -> str:
    return "no lasting ledger" if dataset is None else f"dataset {dataset!r}"
