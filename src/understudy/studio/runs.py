"""Runs that outlive the page and the server: each is a process of its own with a folder that says how it stands.

The folder is named after the release that the run is to make, and is made exclusively. So one release is begun once,
whoever presses the button, how often, and in however many tabs: everybody else finds the run that is there. A process
that works in it holds a lock of the operating system, which goes when the process ends, however it ends. Whether a run
is at work is told by that lock alone, never by a number that another process may have by now.

A process writes the stage it is in, and at its end how it ended; no value, and no error but those that are written for
people. What was charged is told by the ledger.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import understudy as us
from understudy.studio.workspace import Workspace, read_json, short_id, write_json

SHARES = {"check": 0.02, "charge": 0.02, "prepare": 0.06, "measure": 0.7, "draw": 0.12, "write": 0.08}
"""What part of a whole run a stage is taken for."""
OTHER_SHARES = {"check": 0.03, "prepare": 0.12, "measure": 0.85}
"""The same of a comparison, and of a trial of methods."""
STAGE_WORDS = {
    "check": "Checking everything public",
    "charge": "Writing the charge into the ledger",
    "prepare": "Getting ready",
    "measure": "Measuring with noise",
    "draw": "Drawing synthetic rows",
    "write": "Writing the release",
}
OTHER_WORDS = {
    "comparison": {"prepare": "Reading both tables", "measure": "Computing scores"},
    "trial": {"measure": "Trying the methods on rows that are not private"},
}
STANDINGS = {
    "working": "Running",
    "released": "Done",
    "compared": "Done",
    "tried": "Done",
    "cancelled": "Cancelled",
    "refused": "Refused by the ledger",
    "failed": "It could not be done",
    "interrupted": "Interrupted",
}
RESUMABLE = ("interrupted", "cancelled")
"""Outcomes of runs that can be taken up again."""
_LOCK_SECONDS = 5.0
_COUNT = "count.json"
_STARTED: list[subprocess.Popen[bytes]] = []
"""Processes of this server, so that those that have ended are seen off."""


@dataclass(frozen=True, slots=True)
class StudioRun:
    """A run as it stands now."""

    key: str
    place: Path
    settings: Mapping[str, Any]
    state: Mapping[str, Any]
    end: Mapping[str, Any]
    working: bool

    @property
    def name(self) -> str:
        """The release's folder, or what is compared."""
        return str(self.settings.get("name", ""))

    @property
    def kind(self) -> str:
        """What is made: a release, a comparison with the private table, or a trial of methods."""
        return str(self.settings.get("kind", ""))

    @property
    def outcome(self) -> str:
        """In one word: working, released, compared, tried, refused, failed, cancelled, fault or interrupted."""
        return "working" if self.working else str(self.end.get("outcome", "interrupted"))

    @property
    def standing(self) -> str:
        """The outcome as people say it."""
        return STANDINGS.get(self.outcome, "It failed")

    @property
    def stage(self) -> str:
        """What it is doing, in words."""
        own = OTHER_WORDS.get(self.kind, {})
        stage = str(self.state.get("stage"))
        return own.get(stage, STAGE_WORDS.get(stage, "Starting"))

    @property
    def stages(self) -> list[tuple[str, str]]:
        """What it does one after the other, in words, each with whether it is done, at work or still to come."""
        own = STAGE_WORDS if self.kind == "release" else OTHER_WORDS.get(self.kind, {})
        at = list(own).index(str(self.state.get("stage"))) if self.state.get("stage") in own else -1
        return [
            (words, "done" if number < at else "now" if number == at else "to come")
            for number, words in enumerate(own.values())
        ]

    @property
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""
        shares = SHARES if self.kind == "release" else OTHER_SHARES
        stages, stage = list(shares), self.state.get("stage")
        if stage not in shares:
            return 0.0
        before = sum(shares[one] for one in stages[: stages.index(stage)])
        return min(1.0, before + shares[stage] * min(max(float(self.state.get("done", 0.0)), 0.0), 1.0))

    @property
    def seconds_left(self) -> float | None:
        """By its speed, and at first by its plan; None while neither is known."""
        elapsed = max(0.0, time.time() - float(self.state.get("began", time.time())))
        expected = self.settings.get("seconds")
        by_plan = None if expected is None else max(0.0, float(expected) - elapsed)
        if self.share < 0.15:
            return by_plan
        return elapsed * (1.0 - self.share) / self.share


class Runs:
    """The runs of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    @property
    def _folder(self) -> Path:
        place = self.workspace.kept / "runs"
        place.mkdir(mode=0o700, exist_ok=True)
        return place

    def all(self) -> list[StudioRun]:
        """Every run of which something is kept, newest first."""
        places = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        return [run for run in map(_run_at, places) if run is not None]

    def find(self, key: str) -> StudioRun | None:
        """The run of that key, if there is one."""
        return _run_at(self._folder / key) if key.isalnum() else None

    def of_release(self, name: str) -> StudioRun | None:
        """The run that was to make the release of that name, if there is one."""
        return self.find(_key_of("release", name))

    @property
    def begun(self) -> int:
        """How many runs that charge were ever begun here, also those that are off the list by now."""
        found = read_json(self.workspace.kept / _COUNT).get("begun", 0)
        return found if isinstance(found, int) else 0

    def start(self, settings: Mapping[str, object], schema_text: str = "") -> StudioRun:
        """Starts the run of that name, or gives the one that was started before; nothing is started twice."""
        key = _key_of(str(settings["kind"]), str(settings["name"]))
        place = self._folder / key
        with self.workspace.lock:
            try:
                place.mkdir(mode=0o700)
            except FileExistsError:
                known = _run_at(place)
                if known is None:  # its server was killed, or is just at it
                    rule = f"{settings['name']!r} was begun but never finished."
                    raise us.errors.UsageError("name", rule, "Choose another one.") from None
                return known
            (place / "schema.yaml").write_text(schema_text, encoding="utf-8", newline="")
            if settings["kind"] == "release":  # counted before it begins: a number is never used twice
                settings = {**settings, "number": self.begun + 1}
                write_json(self.workspace.kept / _COUNT, {"begun": settings["number"]})
            write_json(place / "settings.json", settings)
            self._spawn(place)
        found = _run_at(place)
        assert found is not None
        return found

    def resume(self, run: StudioRun) -> None:
        """Takes an interrupted run up again, under its charge; no second process where one is at work."""
        with self.workspace.lock:
            # Looked at anew: while the lock was waited for, somebody else may have taken it up, to its end even.
            now = _run_at(run.place)
            if now is None or now.settings != run.settings or now.outcome not in RESUMABLE:
                return
            # The number of the process that is gone may be somebody else's by now.
            for name in ("end.json", "cancel", "state.json"):
                (run.place / name).unlink(missing_ok=True)
            write_json(run.place / "settings.json", {**run.settings, "resume": True})
            self._spawn(run.place)

    def cancel(self, run: StudioRun) -> None:
        """Asks the process to end; what was charged stays charged."""
        with suppress(FileNotFoundError):  # it was taken off the list meanwhile
            (run.place / "cancel").touch()
        number = read_json(run.place / "state.json").get("pid")
        if isinstance(number, int) and _is_working(run.place):
            with suppress(OSError):
                os.kill(number, signal.SIGTERM)

    def forget(self, run: StudioRun) -> None:
        """Takes a run that has ended off the list; its release and its charge stay."""
        with self.workspace.lock:
            if not _is_working(run.place) and run.place.is_dir():
                shutil.rmtree(run.place)

    def _spawn(self, place: Path) -> None:
        """A process that holds the lock of its folder from before it begins."""
        _STARTED[:] = [one for one in _STARTED if one.poll() is None]
        with (place / "lock").open("wb") as lock:
            _lock(lock.fileno())
            # -P: files of the folder with the tables, where it works, must not stand in for modules.
            command = [sys.executable, "-P", "-m", "understudy.studio.worker", str(place), str(lock.fileno())]
            nothing = subprocess.DEVNULL
            started = subprocess.Popen(
                command, pass_fds=(lock.fileno(),), stdin=nothing, stdout=nothing, stderr=nothing,
                start_new_session=True, cwd=self.workspace.root,
            )  # fmt: skip
        _STARTED.append(started)


def _key_of(kind: str, name: str) -> str:
    return short_id(f"{kind}:{name}")


def charged_since(run: StudioRun, ledger: "us.Ledger | None") -> str:
    """What the ledger says of a run that came to no release: whether a charge like its own was added since it began."""
    if ledger is None:
        return "There is no ledger, so nothing was charged."
    entries = [one for one in ledger.entries() if one.sequence > int(run.settings.get("ledger_sequence", 0))]
    released = {one.run for one in entries if one.kind == "finish" and one.outcome == "released"}
    budget = us.Budget(float(run.settings["epsilon"]), float(run.settings["delta"]))
    own = (run.settings["dataset"], budget.epsilon_units, budget.delta_units)
    charged = any(
        one.kind == "charge" and (one.dataset, one.budget_epsilon, one.budget_delta) == own and one.run not in released
        for one in entries
    )
    if not charged:
        return "The ledger holds no charge of it: nothing was spent."
    return "The ledger holds its charge, which stands: what was measured with it cannot be taken back."


def _run_at(place: Path) -> StudioRun | None:
    working = _is_working(place)  # first: what it leaves behind is there by the time its lock is gone
    settings = read_json(place / "settings.json")
    if not settings:
        return None
    return StudioRun(
        place.name, place, settings, read_json(place / "state.json"), read_json(place / "end.json"), working
    )


def _lock(lock: int) -> None:
    """Takes the lock of a folder; whoever just looks at whether somebody works there holds it for a moment."""
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise us.errors.UsageError("run", "is already running.", "Look at it.") from error
            time.sleep(0.01)


def _is_working(place: Path) -> bool:
    try:
        with (place / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
