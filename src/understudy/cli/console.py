"""What a person sees of a command, and how it ends: lines, tables and progress, one error panel, the exit status.

Results go to standard output; progress, notes and the panel to standard error. Everything printed here counts as
released. So text is shown as plain text with control characters spelled out, log records and warnings are silenced,
except warnings of our own, which are made of public facts and shown as notes; and an exception we did not raise on
purpose is reported by its type alone, for its text may quote private values. Its traceback may hold them too: it is
written only on demand (`--debug`), to a private file.

Messages of the library name arguments (`delta=`). The panel names the flags of the command line instead (`--delta`).

Signals
-------
Ctrl-C, a request to terminate and a closed terminal end a command in the same orderly way. The signal becomes an
exception where the command is at work: folders that are not finished are removed, the ledger notes how the run ended,
and the status is 128 plus the number of the signal. A few libraries turn that exception into one of their own, so the
signal is remembered, and whatever exception arrives after it counts as the signal.
"""

import contextlib
import errno
import json
import logging
import os
import re
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from understudy.errors import (
    PREDICATE,
    BudgetError,
    ColumnWarning,
    LedgerError,
    ReleaseError,
    ResourceError,
    SchemaError,
    UnderstudyError,
    UnderstudyWarning,
    UsageError,
)
from understudy.progress import STAGES, Standing, recorded

if TYPE_CHECKING:
    from typing import TextIO

    from rich.console import Console
    from rich.progress import Progress as Bar

Quiet = Annotated[bool, typer.Option("--quiet", help="Print results and errors only, no progress and no notes.")]
Debug = Annotated[
    bool, typer.Option("--debug", help="Write the traceback of an internal error to a private file (it may hold data).")
]

JSON_FORMAT = 1
"""Keys may be added under the same number; one that goes or changes its meaning makes the next."""
OFF_TERMINAL_WIDTH = 100
SHARES = dict(zip(STAGES, (0.02, 0.02, 0.11, 0.45, 0.25, 0.15), strict=True))
"""How much of a usual run each stage takes; a public guess that only moves the bar."""
UNSEEN = re.compile(r"[^\n\x20-\x7e]")
FLAGS = {
    "codebook": "--codebook",
    "composition": "--composition",
    "confidence": "--confidence",
    "copies": "--copies",
    "copies_mode": "--copies-mode",
    "check_share": "--check-share",
    "copy": "--copy",
    "criteria": "--criteria",
    "dataset": "--dataset",
    "decimal": "--decimal",
    "delimiter": "--delimiter",
    "delta": "--delta",
    "encoding": "--encoding",
    "epsilon": "--epsilon",
    "epsilons": "--epsilon",
    "excel_safe": "--excel-safe",
    "formula": "--formula",
    "from_copies": "--from-copies",
    "by": "--by",
    "header": "--no-header",
    "jobs": "--jobs",
    "keep": "--keep",
    "key": "--key",
    "known": "--known",
    "ledger": "--ledger",
    "level": "--level",
    "like": "--like",
    "mean": "--mean",
    "memory_bytes": "--memory",
    "method": "--method",
    "methods": "--method",
    "metrics": "--metric",
    "most_bytes": "--most-bytes",
    "names": "--names",
    "new_key": "--new-key",
    "names_are_right": "--names-are-right",
    "out": "--out",
    "public": "--public",
    "public_proxy": "--public-proxy",
    "quantile": "--quantile",
    "rate": "--rate",
    "repeats": "--repeats",
    "resume": "--resume",
    "everything": "--everything",
    "rows": "--rows",
    "rows_hint": "--rows-hint",
    "runs": "--runs",
    "schema": "--schema",
    "seed": "--seed",
    "where": "--where",
}
"""Arguments that Python's messages name, and the flag of each on the command line; `options` is `--set`."""
_OPTION = re.compile(r"options=\{'(?P<key>\w+)': '(?P<setting>[^']*)'\}")
_ARGUMENT = re.compile(rf"(?<![\w.-])(?P<name>{'|'.join(FLAGS)})=(?P<value>[\w.-]*\w)?")
_PLACE = re.compile(rf"\A(?:{'|'.join(FLAGS)})(?=: | (?:{PREDICATE.pattern}))")
_NAMED = re.compile(rf"{_OPTION.pattern}|(?<!\w)'[^']*'|\"[^\"]*\"|`[^`]*`|{_ARGUMENT.pattern}")


def plain(text: str) -> str:
    """The text with every character that could steer a terminal spelled out.

    >>> plain("a\\x1b[31mb\\u202ec")
    'a\\\\x1b[31mb\\\\u202ec'
    """
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


def in_flags(text: str) -> str:
    """A message that names arguments, as Python's callers know them, with the flags of the command line instead.

    An argument is a name that begins the message, or one with an equals sign; what stands in quotes is left as it is.

    >>> in_flags("delta must be above 0. Give delta=, for example 1e-9.")
    '--delta must be above 0. Give --delta, for example 1e-9.'
    >>> in_flags("Give copies_mode=remeasure or resume=True, not 'rows=3.csv'; or options={'bins': '8'}.")
    "Give --copies-mode remeasure or --resume, not 'rows=3.csv'; or --set bins=8."
    """
    named = _NAMED.sub(_flag, text)
    return _PLACE.sub(lambda found: FLAGS[found[0]], named)


def _flag(found: re.Match[str]) -> str:
    if found["key"] is not None:
        setting = f"{found['key']}={found['setting']}"
        return f"--set {setting}" if re.fullmatch(r"[\w=:.×-]+", setting) else f"--set '{setting}'"
    if found["name"] is None:
        return found[0]
    value = None if found[0] == "header=False" else found["value"]
    return FLAGS[found["name"]] + (f" {value}" if value and value != "True" else "")


class Shell:
    """Where one command prints."""

    def __init__(self, command: str = "", *, quiet: bool = False, as_json: bool = False) -> None:
        self.command, self.quiet, self.as_json = command, quiet, as_json
        self._told = False
        self._out = _console(_Result(sys.stdout))
        self._err = _console(_Remarks(sys.stderr))

    @property
    def watched(self) -> bool:
        """Whether somebody sees a progress bar."""
        return not self.quiet and sys.stderr.isatty()

    def line(self, text: str) -> None:
        """One line of the result for people; long lines are left whole, so that paths can be copied."""
        if not self.as_json:
            self._out.print(plain(text), markup=False, highlight=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """A remark beside the result, dropped by `--quiet`."""
        if not self.quiet:
            self._err.print(plain(text), markup=False, highlight=False, soft_wrap=True)

    def ask(self, prompt: str) -> str:
        """What somebody types on one line after the prompt, without white space at its ends.

        Raises:
            UsageError: if there is nobody to ask.
        """
        self._out.file.write(plain(prompt))
        self.flush()
        fix = "Run it in a terminal, or edit the file itself."
        if sys.stdin is None:
            raise UsageError("standard input", "is closed, so nothing can be asked.", fix)
        try:
            return input().strip()
        except EOFError:
            raise UsageError("standard input", "has ended, so nothing more can be asked.", fix) from None
        except UnicodeDecodeError:
            raise UsageError("standard input", "is not UTF-8.", "Set the terminal to UTF-8.") from None
        except (OSError, RuntimeError):  # the terminal has gone, or there never was one
            raise UsageError("standard input", "cannot be read.", fix) from None

    def json(self, value: Mapping[str, object]) -> None:
        """The result for programs, if they asked: one JSON object, in which no character could steer a terminal.

        It names the command and the format of what follows; docs/json.md describes every one.
        """
        if not self.as_json or self._told:  # an error may come after the result: one object is what was promised
            return
        self._told = True
        named = {"command": self.command, "format": JSON_FORMAT, **value}
        text = json.dumps(named, indent=2, ensure_ascii=False)
        self._out.file.write(UNSEEN.sub(lambda found: _escaped(found[0]), text) + "\n")

    def flush(self) -> None:
        """Waits until every line of the result has left this process."""
        self._out.file.flush()

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
        """A result as a table; a header that starts with ">" is a column of numbers; no headers, no heading."""
        if self.as_json:
            return
        from rich import box
        from rich.table import Table
        from rich.text import Text

        named = any(headers)
        table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD if named else None)
        table.show_header = named
        for header in headers:
            number = header.startswith(">")
            table.add_column(header.removeprefix(">"), justify="right" if number else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(plain(cell)) for cell in row))
        self._out.print(table)

    @contextlib.contextmanager
    def running(self, stages: Sequence[str] = tuple(SHARES)) -> Iterator["Meter"]:
        """A progress bar over these stages while the block runs; silent when quiet or when nobody watches."""
        if not self.watched:
            yield Meter(None, stages)
            return
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        share, left = TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[left]}")
        columns = (TextColumn("{task.description:<8}"), BarColumn(), share, left, TimeElapsedColumn())
        with Bar(*columns, console=self._err, transient=True) as bar:
            yield Meter(bar, stages)


def _escaped(char: str) -> str:
    """The character as it is if one can see it, and as JSON spells it if not."""
    return char if char.isprintable() else json.dumps(char)[1:-1]


class _Stream:
    """A stream of text, with another answer to failure."""

    def __init__(self, stream: "TextIO") -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Result(_Stream):
    """Standard output: a result that cannot be written is an error of its own kind."""

    def write(self, text: str) -> int:
        """Writes, or raises OutputError."""
        with _output_errors():
            return self._stream.write(text)

    def flush(self) -> None:
        """Flushes, or raises OutputError."""
        with _output_errors():
            self._stream.flush()


class _Remarks(_Stream):
    """Standard error: no run may end because nobody can read its remarks."""

    def write(self, text: str) -> int:
        """Writes if that is possible."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flushes if that is possible."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


@contextlib.contextmanager
def _output_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(error.errno or errno.EIO) from error
    except ValueError as error:  # closed
        raise OutputError(errno.EBADF) from error


class Meter:
    """Turns stages into one bar with the stage, the share of the whole run and the time left; without a bar, nothing.

    It is the `Progress` that a run reports to.
    """

    def __init__(self, bar: "Bar | None", stages: Sequence[str]) -> None:
        self._bar = bar
        self._task = bar.add_task(stages[0], total=1.0, left=_time_left(0.0, 0.0, None)) if bar else None
        whole = sum(SHARES[stage] for stage in stages)
        self._shares = {stage: SHARES[stage] / whole for stage in stages}
        self._started = time.monotonic()
        self._share = 0.0
        self._stage = stages[0]
        self._expected: float | None = None

    def expect(self, seconds: float | None) -> None:
        """Takes over what the plan expects, until the speed of the run says more."""
        self._expected = seconds
        self._show()

    def stage(self, name: str, done: float) -> None:
        """Moves the bar to that share of that stage."""
        self._stage = name
        if name in self._shares:
            stages = list(self._shares)
            before = sum(self._shares[stage] for stage in stages[: stages.index(name)])
            self._share = before + self._shares[name] * min(max(done, 0.0), 1.0)
        self._show()

    def _show(self) -> None:
        if self._bar is not None and self._task is not None:
            left = _time_left(time.monotonic() - self._started, self._share, self._expected)
            self._bar.update(self._task, completed=self._share, description=self._stage, left=left)


def _time_left(elapsed: float, share: float, expected_seconds: float | None) -> str:
    by_speed = elapsed * (1.0 - share) / share if share > 0 else None
    by_plan = None if expected_seconds is None else max(0.0, expected_seconds - elapsed)
    if by_speed is None or (share < 0.1 and by_plan is not None):
        by_speed = by_plan
    return "estimating time left" if by_speed is None else f"about {max(1, round(by_speed)):,} s left"


@contextlib.contextmanager
def shell(command: str, *, quiet: bool, debug: bool, as_json: bool = False, charges: bool = False) -> Iterator[Shell]:
    """The place a command prints to; any exception inside becomes one panel and the exit status it calls for.

    With `as_json` the result is the one object that the command hands to `Shell.json`, or one that tells the error.
    The panel of a command that may charge a ledger (`charges`) ends with what was charged and what exists.
    """
    with warnings.catch_warnings(), recorded() as standing:
        warnings.simplefilter("ignore")  # a library's warning may quote data
        logging.disable(logging.CRITICAL)
        place: Shell | None = None
        try:
            require_handles()
            place = Shell(command, quiet=quiet, as_json=as_json)
            _show_own_warnings(place)
            yield place
            place.flush()
        except (typer.Exit, typer.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - whatever it is, its text must not be printed
            end(error, standing if charges else None, debug=debug, place=place)
        finally:
            logging.disable(logging.NOTSET)


def _show_own_warnings(place: Shell) -> None:
    """Notes what understudy itself warns of; undone with the filters of the block this is called in."""

    def show(message: Warning | str, category: type[Warning], *_where: object, **_more: object) -> None:
        if issubclass(category, UnderstudyWarning) and not issubclass(category, ColumnWarning):
            place.note(f"Warning: {message}")

    warnings.simplefilter("default", UnderstudyWarning)
    warnings.showwarning = show


def end(
    error: BaseException, standing: Standing | None = None, *, debug: bool = False, place: Shell | None = None
) -> NoReturn:
    """Ends the command with the panel and exit status that the exception calls for."""
    ending = ending_of(error)
    ignore_signals()
    if isinstance(error, OutputError):
        drop_output()
    lines = list(ending.lines)
    if ending.ours and debug:
        lines.append(f"Traceback (may contain PRIVATE values, keep it to yourself): {_keep_traceback(error)}")
    elif ending.ours:
        lines.append("Run it with --debug to keep the traceback in a private file on this machine.")
    if standing is not None:
        lines.append(standing.sentence())
    if ending.title:
        show_error(ending.title, lines)
        if place is not None and not isinstance(error, OutputError):
            with contextlib.suppress(OutputError):
                told = [in_flags(line.removeprefix("• ")) for line in lines]
                place.json({"error": {"status": ending.status, "title": ending.title, "lines": told}})
                place.flush()
    raise typer.Exit(ending.status) from None


def show_error(title: str, lines: Sequence[str]) -> None:
    """One panel on standard error; arguments that its lines name become flags."""
    from rich import box
    from rich.panel import Panel
    from rich.text import Text

    body = Text("\n".join(plain(in_flags(line)) for line in lines))
    panel = Panel(body, title=title, title_align="left", box=box.ROUNDED, border_style="red")
    _console(_Remarks(sys.stderr)).print(panel)


def _keep_traceback(error: BaseException) -> str:
    handle, path = tempfile.mkstemp(prefix="understudy-debug-", suffix=".txt")  # created with mode 0600
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write("CONFIDENTIAL: this traceback may contain private values. Do not share it. Delete it after use.\n\n")
        file.writelines(traceback.format_exception(error))
    return path


def _console(text: _Stream) -> "Console":
    from rich.console import Console

    stream: Any = text
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")  # a terminal without Greek letters must not stop a release
    if stream.isatty():
        return Console(file=stream)
    return Console(file=stream, width=OFF_TERMINAL_WIDTH, no_color=True, force_terminal=False)


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
FAILING = (
    errno.EIO,
    errno.ESTALE,
    errno.ENODEV,
    errno.ENXIO,
    errno.ENOTCONN,
    errno.ETIMEDOUT,
    errno.EHOSTDOWN,
    errno.EREMOTEIO,
)
"""What a disk that breaks, or a network drive that goes away, answers."""
REPORT = "Please report it with the command you typed, the schema and this type. Never include rows of the table."
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
        return CommandEnding(128 + signal.SIGPIPE, "", ())
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
    if number in FAILING:
        said = "A disk failed, or a network drive went away. Check it, then run the same command again."
        return CommandEnding(4, "Disk", (said,))
    if number in REFUSED:
        reason = os.strerror(number or 0).lower()  # a fixed text; the error's own may quote more
        said = f"The operating system refused: {reason}. Check the paths you named and your permissions."
        return CommandEnding(2, "Error", (said,))
    lines = (f"Internal error of type {type(error).__name__}.", REPORT)
    return CommandEnding(1, "A fault in understudy", lines, ours=True)


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
