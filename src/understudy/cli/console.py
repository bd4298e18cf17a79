"""What a person sees: lines and tables on standard output; progress, notes and one error panel on standard error.

Everything printed here counts as released. So text is shown as plain text with control characters spelled out,
library warnings and log records are silenced, and an exception we did not raise on purpose is reported by its type
alone. Its traceback may hold private values: it is written only on demand (`--debug`), to a private file.
"""

import contextlib
import errno
import json
import logging
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from understudy.errors import BudgetError, LedgerError, ReleaseError, ResourceError, SchemaError, UnderstudyError
from understudy.progress import STAGES

if TYPE_CHECKING:
    from typing import TextIO

    from rich.console import Console
    from rich.progress import Progress as Bar

__all__ = ["Debug", "Meter", "Quiet", "Shell", "plain", "refuse", "shell", "show_error"]

Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no notes; results and errors only.")]
Debug = Annotated[
    bool, typer.Option("--debug", help="Keep the traceback of an internal error in a private file (may hold data).")
]

OFF_TERMINAL_WIDTH = 100
SHARES = dict(zip(STAGES, (0.02, 0.02, 0.11, 0.45, 0.25, 0.15), strict=True))
"""How much of a usual run each stage takes; a public guess that only moves the bar."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM)
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


def plain(text: str) -> str:
    """The text with every character that could steer a terminal spelled out.

    >>> plain("a\\x1b[31mb\\u202ec")
    'a\\\\x1b[31mb\\\\u202ec'
    """
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


class Shell:
    """Where one command prints."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._out = _console(sys.stdout)
        self._err = _console(sys.stderr)

    @property
    def watched(self) -> bool:
        """Whether somebody sees a progress bar."""
        return not self.quiet and sys.stderr.isatty()

    def line(self, text: str) -> None:
        """One line of the result; long lines are left whole, so that paths can be copied."""
        self._out.print(plain(text), markup=False, highlight=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """A remark beside the result, dropped by `--quiet`."""
        if not self.quiet:
            self._err.print(plain(text), markup=False, highlight=False, soft_wrap=True)

    def json(self, value: Mapping[str, object]) -> None:
        """The result for programs: one JSON object."""
        self._out.file.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
        """A result as a table; a header that starts with ">" is a column of numbers; no headers, no heading."""
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
def shell(*, quiet: bool, debug: bool) -> Iterator[Shell]:
    """The place a command prints to; any exception inside becomes one panel and the exit status it calls for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a library's warning may quote data
        logging.disable(logging.CRITICAL)
        try:
            yield Shell(quiet=quiet)
        except (typer.Exit, typer.Abort):
            raise
        except UnderstudyError as error:
            refuse(error)
        except KeyboardInterrupt:
            show_error("Stopped", ["You stopped the run. Budget charged so far stays charged."])
            raise typer.Exit(130) from None
        except BrokenPipeError:
            raise typer.Exit(0) from None
        except Exception as error:  # noqa: BLE001 - the last line: whatever it is, its text must not be printed
            _unexpected(error, debug=debug)
        finally:
            logging.disable(logging.NOTSET)


def refuse(error: UnderstudyError) -> NoReturn:
    """Ends the command with the error's panel and exit status."""
    title = "Error"
    for kind, name in _TITLES.items():
        if isinstance(error, kind):
            title = name
    if isinstance(error, SchemaError | ReleaseError):
        lines = [f"• {problem}" for problem in error.problems]
    else:
        lines = [str(error)]
    show_error(title, lines)
    raise typer.Exit(error.exit_code) from None


_TITLES: Mapping[type[UnderstudyError], str] = {
    SchemaError: "Schema",
    BudgetError: "Budget refused",
    LedgerError: "Ledger",
    ResourceError: "Not enough memory or disk",
    ReleaseError: "Release folder",
}


def show_error(title: str, lines: Sequence[str]) -> None:
    """One panel on standard error."""
    from rich import box
    from rich.panel import Panel
    from rich.text import Text

    body = Text("\n".join(plain(line) for line in lines))
    _console(sys.stderr).print(Panel(body, title=title, title_align="left", box=box.ROUNDED, border_style="red"))


def _unexpected(error: Exception, *, debug: bool) -> NoReturn:
    kind = type(error).__name__
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or number in FULL:
        lines = ["Memory or disk ran out. No release was written; budget charged so far stays charged.", "Free some."]
        show_error("Not enough memory or disk", lines)
        raise typer.Exit(4) from None
    if number in REFUSED:
        reason = os.strerror(number or 0).lower()  # a fixed text; the error's own may quote more
        show_error("Error", [f"The operating system refused: {reason}. Check the paths you named and your rights."])
        raise typer.Exit(2) from None
    lines = [f"Internal error of type {kind}. No release was written.", REPORT]
    if debug:
        lines.append(f"Traceback (may contain PRIVATE values, keep it to yourself): {_keep_traceback(error)}")
    else:
        lines.append("With --debug the traceback is kept in a private file on this machine.")
    show_error("A fault of understudy", lines)
    raise typer.Exit(1) from None


def _keep_traceback(error: Exception) -> str:
    handle, path = tempfile.mkstemp(prefix="understudy-debug-", suffix=".txt")  # created with mode 0600
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write("CONFIDENTIAL: this traceback may contain private values. Do not share it. Delete it after use.\n\n")
        file.writelines(traceback.format_exception(error))
    return path


def _console(stream: "TextIO") -> "Console":
    from rich.console import Console

    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")  # a terminal without Greek letters must not stop a release
    if stream.isatty():
        return Console(file=stream)
    return Console(file=stream, width=OFF_TERMINAL_WIDTH, no_color=True, force_terminal=False)
