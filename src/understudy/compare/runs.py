"""One run of a study: what it is to do, what came of it, and the process that does it, watched from outside.

A run's process is killed when it goes past its limit of time or memory, and when the process that watches it ends,
however that happens. What it is to do and what it leaves behind are JSON files; what came of it is an `Outcome`, also
when the process left none.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from understudy.errors import UsageError
from understudy.folders import write_json

Plain = str | int | float | bool | None | tuple[str | int | float | bool, ...]
"""What an option of a metric may be, so that it can be written down and compared."""


def plain_options(options: Mapping[str, Mapping[str, object]] | None) -> dict[str, dict[str, Plain]]:
    """Options of metrics as values that can be written down: lists become tuples.

    >>> plain_options({"slopes": {"outcomes": ["age", "sex"]}})
    {'slopes': {'outcomes': ('age', 'sex')}}
    """
    for metric, given in (options or {}).items():
        if not isinstance(given, Mapping):
            raise UsageError(f"options of {metric}", f"must be names with values, got {type(given).__name__}.")
    return {
        metric: {option: _plain(value, f"{metric}.{option}") for option, value in given.items()}
        for metric, given in (options or {}).items()
    }


def _plain(value: object, where: str) -> Plain:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list | tuple) and all(isinstance(one, str | int | float | bool) for one in value):
        return tuple(value)
    rule = f"must be text, a number, or a list of those, got {type(value).__name__}."
    raise UsageError(f"option {where!r}", rule, "A study writes its options down and hands them to its runs.")


PAUSE = 0.05
_TIE = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; it survives exec
if os.getppid() != int(sys.argv[1]):  # the parent ended before the request
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Where libraries look for how many threads they may use."""
SCORING = "scoring"
"""What a run prints when its table is made, so that its log tells how far it came."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Most seconds (wall clock) and most bytes (resident) of one process."""

    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class ProcessEnding:
    """How a process ended: by itself with a status, or killed for time or memory."""

    how: Literal["exit", "time", "memory"]
    status: int
    seconds: float
    peak_bytes: int


class WatchedProcess:
    """`python` with these arguments; what it prints goes to the log.

    It never outlives the process that started it, even if that is ended by kill -9. On Linux the kernel sees to it.
    Elsewhere its input is a pipe that closes when this process ends, and a child that watches its input
    (`end_with_parent`) ends as soon as the interpreter lets it: not while it is starting or compiling.

    The kernel ties a child to the thread that started it: start processes from a thread that stays.
    """

    def __init__(self, arguments: list[str], limits: ProcessLimits, log: Path, *, threads: int | None = None) -> None:
        self.peak_bytes = 0
        self._limits, self._begun = limits, time.monotonic()
        held = {} if threads is None else dict.fromkeys(THREADS, str(threads))
        with log.open("wb") as file:
            self._child = subprocess.Popen(
                # -P: files of the folder one happens to be in must not stand in for modules.
                [*_tied_to_this_process(), sys.executable, "-P", *arguments],
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **held},
            )

    def ending(self) -> ProcessEnding | None:
        """How it ended; None while it runs. One that is past a limit is ended here."""
        spent = time.monotonic() - self._begun
        status = self._child.poll()
        if status is not None:
            return ProcessEnding("exit", status, spent, self.peak_bytes)
        self.peak_bytes = max(self.peak_bytes, resident_bytes(self._child.pid))
        if spent > self._limits.seconds:
            self.stop()
            return ProcessEnding("time", -9, spent, self.peak_bytes)
        if self.peak_bytes > self._limits.bytes:
            self.stop()
            return ProcessEnding("memory", -9, spent, self.peak_bytes)
        return None

    def stop(self) -> None:
        """Ends it at once, and waits until it is gone."""
        if self._child.poll() is None:
            self._child.kill()
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()


def _tied_to_this_process() -> list[str]:
    """The beginning of a command that the kernel ends together with this process; empty where it cannot.

    A small interpreter makes the request and then becomes the command. Making it between fork and exec instead would
    run what libraries do at every fork, and a signal that arrives there is lost.
    """
    if sys.platform != "linux":
        return []
    return [sys.executable, "-I", "-S", "-c", _TIE, str(os.getpid())]


def end_with_parent() -> None:
    """Ends this process at once when its input closes, which it does when the process that watches it is gone."""

    def wait() -> None:
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def resident_bytes(process: int) -> int:
    """Resident memory of a process; 0 where the system does not tell (then only its own limit holds)."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


Status = Literal["done", "refused", "failed", "memory", "time"]


@dataclass(frozen=True, slots=True)
class Job:
    """One run: files of the table and the schema, the arguments of `synthesize`, and those of `evaluate`."""

    table: str
    schema: str
    run: Mapping[str, Any]
    scoring: Mapping[str, Any]

    def write(self, path: Path) -> None:
        """Writes the job for the process that runs it."""
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> "Job":
        """Reads what `write` wrote."""
        document = json.loads(path.read_text(encoding="utf-8"))
        document["scoring"]["options"] = plain_options(document["scoring"]["options"])
        return cls(**document)


@dataclass(frozen=True, slots=True)
class Found:
    """One score of a run and which way is better."""

    metric: str
    score: str
    value: float | None
    yardstick: float | None
    direction: str
    best: float | None
    why_not: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended; scores only if it is done, a reason only if it is not."""

    status: Status
    reason: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    scores: tuple[Found, ...] = ()
    jobs: int = 1
    """How many runs were made at a time: seconds (not CPU seconds) of several at a time are longer."""

    def write(self, path: Path) -> None:
        """Writes the outcome in one step: the file is there as a whole or not at all."""
        write_json(path, asdict(self))


def read_outcome(path: Path) -> Outcome | None:
    """The outcome that was written there; None if there is none, or only a torn one."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        scores = tuple(Found(**score) for score in document.pop("scores"))
        return Outcome(**document, scores=scores)
    except (OSError, ValueError, TypeError, KeyError):
        return None
