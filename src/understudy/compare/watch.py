"""One process under a limit of time and memory: it is watched from outside and killed when it goes past either."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["SCORING", "Ending", "Limits", "end_with_parent", "resident_bytes", "watched"]

PAUSE = 0.05
END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2); the setting survives exec
SCORING = "scoring"
"""What a run prints when its table is made, so that its log tells how far it came."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Most seconds (wall clock) and most bytes (resident) of one process."""

    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended: by itself with a status, or killed for time or memory."""

    how: Literal["exit", "time", "memory"]
    status: int
    seconds: float
    peak_bytes: int


def watched(arguments: list[str], limits: Limits, log: Path) -> Ending:
    """Runs `python` with these arguments; what it prints goes to the log.

    The child never outlives this process, even if that is ended by kill -9. On Linux the kernel sees to it. Elsewhere
    the child's input is a pipe that closes when this process ends, and a child that watches its input
    (`end_with_parent`) ends as soon as the interpreter lets it: not while it is starting or compiling.
    """
    begun = time.monotonic()
    peak = 0
    with log.open("wb") as file:
        child = subprocess.Popen(
            # -P: files of the folder one happens to be in must not stand in for modules.
            [sys.executable, "-P", *arguments],
            stdin=subprocess.PIPE,
            preexec_fn=_tied_to(os.getpid()),  # one system call: nothing in it waits for a thread
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        try:
            while child.poll() is None:
                peak = max(peak, resident_bytes(child.pid))
                spent = time.monotonic() - begun
                if spent > limits.seconds:
                    return Ending("time", -9, spent, peak)
                if peak > limits.bytes:
                    return Ending("memory", -9, spent, peak)
                time.sleep(PAUSE)
        finally:
            if child.poll() is None:
                child.kill()
            assert child.stdin is not None
            child.stdin.close()
            child.wait()
    return Ending("exit", child.returncode, time.monotonic() - begun, peak)


def _tied_to(parent: int) -> Callable[[], None] | None:
    """What a new process does first so that the kernel ends it with its parent; None where the kernel cannot."""
    if sys.platform != "linux":
        return None
    request = ctypes.CDLL(None, use_errno=True).prctl

    def tie() -> None:
        request(END_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the request
            os._exit(1)

    return tie


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
