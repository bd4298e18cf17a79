"""How a command ends: by itself, by an error, or by a signal; with which exit status and in which words.

Ctrl-C, a request to terminate and a closed terminal end a command in the same orderly way. The signal becomes an
exception where the command is at work: folders that are not finished are removed, the ledger notes how the run ended,
and the status is 128 plus the number of the signal. A few libraries turn that exception into one of their own, so the
signal is remembered, and whatever exception arrives after it counts as the signal.

An exception that nobody raised on purpose is reported by its type alone, for its text may quote private values.
"""

import contextlib
import errno
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

from understudy.errors import BudgetError, LedgerError, ReleaseError, ResourceError, SchemaError, UnderstudyError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GRACE_SECONDS = 2.0
"""A second signal that soon does not disturb the orderly end that the first one began."""
AGAIN_SECONDS = 0.05
LEAST_HANDLES = 64
"""Open files at most that a command must be allowed: tables of many files, spill files, the ledger and a release."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM)
LIMITED = {
    errno.EFBIG: "A file would be larger than this process may write (ulimit -f).",
    errno.EMFILE: "This process may not open as many files as it needs (ulimit -n).",
    errno.ENFILE: "The machine has no room for another open file.",
}
"""Limits that somebody set, and what is said when they are met."""
REFUSED = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
)
"""Answers of the operating system that are about a path the user named, not about us."""
REPORT = "Please report it with the command you typed, the schema and this type, never with rows of the table."
TITLES: dict[type[UnderstudyError], str] = {
    SchemaError: "Schema",
    BudgetError: "Budget refused",
    LedgerError: "Ledger",
    ResourceError: "Not enough memory or disk",
    ReleaseError: "Release folder",
}


class OutputError(Exception):
    """Standard output cannot be written, for the reason that `number` (an errno) tells."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(os.strerror(number))


@dataclass(frozen=True, slots=True)
class CommandEnding:
    """Exit status, title and lines of the panel; `ours` if it is a fault of the program. No title, no panel."""

    status: int
    title: str
    lines: tuple[str, ...]
    ours: bool = False


def ending_of(error: BaseException) -> CommandEnding:
    """How a command ends that this exception has left."""
    number = stopped_by()
    if number is not None or isinstance(error, KeyboardInterrupt):
        return _stopped(number or signal.SIGINT)
    if isinstance(error, OutputError):
        return _unshown(error.number)
    if isinstance(error, UnderstudyError):
        title = next((name for kind, name in TITLES.items() if isinstance(error, kind)), "Error")
        problems = error.problems if isinstance(error, SchemaError | ReleaseError) else ()
        return CommandEnding(error.exit_code, title, tuple(f"• {problem}" for problem in problems) or (str(error),))
    return _unexpected(error)


def _stopped(number: int) -> CommandEnding:
    said = {signal.SIGTERM: "The command was asked to end.", signal.SIGHUP: "The terminal was closed."}
    return CommandEnding(128 + number, "Stopped", (said.get(signal.Signals(number), "You stopped the command."),))


def _unshown(number: int) -> CommandEnding:
    if number == errno.EPIPE:  # whoever reads the output has seen enough
        return CommandEnding(0, "", ())
    reason = os.strerror(number).lower()
    lines = (f"Standard output cannot be written: {reason}.", "Only what was to be shown there is lost.")
    return CommandEnding(4 if number in FULL else 2, "Standard output", lines)


def _unexpected(error: BaseException) -> CommandEnding:
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or number in FULL:
        lines = ("Memory or disk ran out.", "Free some, and run the command again.")
        return CommandEnding(4, "Not enough memory or disk", lines)
    if number in LIMITED:
        return CommandEnding(2, "Error", (LIMITED[number], "Raise that limit, and run the command again."))
    if number in REFUSED:
        reason = os.strerror(number or 0).lower()  # a fixed text; the error's own may quote more
        said = f"The operating system refused: {reason}. Check the paths you named and your rights."
        return CommandEnding(2, "Error", (said,))
    lines = (f"Internal error of type {type(error).__name__}.", REPORT)
    return CommandEnding(1, "A fault of understudy", lines, ours=True)


class _Received:
    """The first signal that came, and when."""

    number: int | None = None
    at: float = 0.0
    too_late: bool = False


def stopped_by() -> int | None:
    """The signal that asked this command to end, if one did."""
    return _Received.number


def _stop(number: int, _frame: FrameType | None) -> None:
    now = time.monotonic()
    if _Received.too_late:
        return
    if _Received.number is None:
        _Received.number, _Received.at = number, now
    elif now - _Received.at < GRACE_SECONDS and number != signal.SIGALRM:
        return
    raise KeyboardInterrupt


def _unraisable(found: "sys.UnraisableHookArgs") -> None:
    """Prints nothing, for it may hold private values. A signal that struck where no exception can leave comes again.

    Such places are finalizers, callbacks out of compiled code, and what libraries do at a fork.
    """
    if isinstance(found.exc_value, KeyboardInterrupt) and _Received.number is not None:
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)


@contextlib.contextmanager
def orderly_signals() -> Iterator[None]:
    """Ends what runs inside the block in an orderly way when a signal says so; ignored signals stay ignored."""
    _Received.number, _Received.too_late = None, False
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)}
    hook = sys.unraisablehook
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _stop)
    sys.unraisablehook = _unraisable
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_signals() -> None:
    """From here on the command only tells how it ended, which no signal should cut short."""
    _Received.too_late = True


def has_output() -> bool:
    """Whether standard output is open. Closed streams lead to nowhere from here on.

    Otherwise the next file that is opened would take the number of a closed stream, and messages would go into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest number that is free
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as the process runs
    return sys.stdout is not None


def require_handles() -> None:
    """Raises unless this process may open a fair number of files; asks for more first, where that is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= LEAST_HANDLES:
        return
    if hard == resource.RLIM_INFINITY or hard >= LEAST_HANDLES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (LEAST_HANDLES, hard))
        return
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def drop_output() -> None:
    """Lets what could not be written go, so that the interpreter does not fail on it once more when it ends."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
