"""One process under a limit of time and memory: it is watched from outside and killed when it goes past either."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["SCORING", "Ending", "Limits", "end_with_parent", "resident_bytes", "watched"]

PAUSE = 0.05
_TIE = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; it survives exec
if os.getppid() != int(sys.argv[1]):  # the parent ended before the request
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
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
            [*_tied_to_this_process(), sys.executable, "-P", *arguments],
            stdin=subprocess.PIPE,
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
