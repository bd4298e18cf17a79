"""Real processes that are ready at once: forked from a server that has loaded what commands need.

A process that loads the package anew takes two seconds of a processor, which is more than most kills, races and limits
take that are tested on it. What a test says about the start of a process, about what is loaded or about the standard
streams of a command, it says of an interpreter of its own.
"""

import contextlib
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing import forkserver, get_context
from pathlib import Path
from typing import Literal

from understudy.compare.runs import ProcessEnding, ProcessLimits

__all__ = ["COMMAND", "Ended", "Forked", "ForkedRun"]

ROOT = Path(__file__).resolve().parents[1]
COMMAND = "import sys\nfrom understudy.__main__ import main\nsys.exit(main())"
"""The script of a process that is the command `understudy`."""

_RUN = """
import sys
from understudy.compare import worker
worker.end_with_parent = lambda: None  # by its input, which a forked process has not
sys.exit(worker.main(sys.argv[1:]))
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """The status of a process that has ended (a signal as a negative number), and what it printed, as it came."""

    status: int
    said: str

    @property
    def words(self) -> str:
        """What it printed, with panel borders and line breaks folded into single spaces."""
        return " ".join(self.said.replace("│", " ").split())


class Forked:
    """A process that runs a script with these words after its name, from the moment this is made."""

    def __init__(self, script: str, *words: object) -> None:
        handle, self._said = tempfile.mkstemp(prefix="said-")
        os.close(handle)
        forks = get_context("forkserver")
        forks.set_forkserver_preload(["tests.loaded"])
        with contextlib.chdir(ROOT):  # where the server, which is started once, finds what it shall load
            forkserver.ensure_running()
        given = (script, ["-c", *map(str, words)], dict(os.environ), self._said)
        self._process = forks.Process(target=_execute, args=given)
        self._process.start()

    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.is_alive()

    def send(self, number: int) -> None:
        """Sends it a signal, unless it has ended."""
        assert self._process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def ended(self, most_seconds: float = 600.0) -> Ended:
        """How it ended, which is waited for."""
        self._process.join(most_seconds)
        status, said = self._process.exitcode, Path(self._said)
        try:
            assert status is not None, f"still running after {most_seconds:g} s"
            return Ended(status, said.read_text(encoding="utf-8", errors="replace"))
        finally:
            self._process.kill()
            said.unlink(missing_ok=True)


class ForkedRun:
    """One run of a study: stands in for `WatchedProcess`, which starts an interpreter; held to the time alone."""

    def __init__(self, arguments: list[str], limits: ProcessLimits, log: Path, *, threads: int | None = None) -> None:
        program, job, outcome = arguments[-3:]
        assert program == "understudy.compare.worker"
        self.peak_bytes = 0
        self._limits, self._log, self._begun = limits, log, time.monotonic()
        self._run = Forked(_RUN, job, outcome)
        self._ended = False

    def ending(self) -> ProcessEnding | None:
        """How it ended; None while it runs."""
        spent = time.monotonic() - self._begun
        if self._run.runs() and spent <= self._limits.seconds:
            return None
        how: Literal["time", "exit"] = "time" if self._run.runs() else "exit"
        return ProcessEnding(how, self._stopped(), spent, 0)

    def stop(self) -> None:
        """Ends it, unless it has ended."""
        if not self._ended:
            self._stopped()

    def _stopped(self) -> int:
        self._run.send(signal.SIGKILL)
        ended = self._run.ended()
        self._ended = True
        self._log.write_text(ended.said, encoding="utf-8")
        return ended.status


def _execute(script: str, words: list[str], environment: dict[str, str], said: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    handle = os.open(said, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(handle, stream)
    os.close(handle)
    sys.argv = words
    exec(compile(script, "<script>", "exec"), {"__name__": "__main__"})  # noqa: S102 - a script of the test's own
