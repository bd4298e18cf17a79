"""What a person sees: lines and tables on standard output; progress, notes and one error panel on standard error.

Everything printed here counts as released. So text is shown as plain text with control characters spelled out,
log records and warnings are silenced, except warnings of our own, which are made of public facts and shown as notes;
and an exception we did not raise on purpose is reported by its type alone. Its traceback may hold private values: it is
written only on demand (`--debug`), to a private file.

Messages of the library name arguments (`delta=`). The panel names the flags of the command line instead (`--delta`).
"""

import contextlib
import errno
import json
import logging
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from understudy.cli.ending import OutputError, drop_output, ending_of, ignore_signals, require_handles
from understudy.errors import UnderstudyWarning
from understudy.progress import STAGES, Standing, recorded

if TYPE_CHECKING:
    from typing import TextIO

    from rich.console import Console
    from rich.progress import Progress as Bar

Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no notes; results and errors only.")]
Debug = Annotated[
    bool, typer.Option("--debug", help="Write the traceback of an internal error to a private file (it may hold data).")
]

OFF_TERMINAL_WIDTH = 100
SHARES = dict(zip(STAGES, (0.02, 0.02, 0.11, 0.45, 0.25, 0.15), strict=True))
"""How much of a usual run each stage takes; a public guess that only moves the bar."""
UNSEEN = re.compile(r"[^\n\x20-\x7e]")
FLAGS = {
    "codebook": "--codebook",
    "composition": "--composition",
    "copies": "--copies",
    "copies_mode": "--copies-mode",
    "copy": "--copy",
    "dataset": "--dataset",
    "decimal": "--decimal",
    "delimiter": "--delimiter",
    "delta": "--delta",
    "encoding": "--encoding",
    "epsilon": "--epsilon",
    "epsilons": "--epsilon",
    "excel_safe": "--excel-safe",
    "formula": "--formula",
    "keep": "--keep",
    "known": "--known",
    "ledger": "--ledger",
    "level": "--level",
    "like": "--like",
    "memory_bytes": "--memory",
    "method": "--method",
    "methods": "--method",
    "metrics": "--metric",
    "most_bytes": "--most-bytes",
    "names": "--names",
    "names_are_right": "--names-are-right",
    "out": "--out",
    "public": "--public",
    "public_proxy": "--public-proxy",
    "repeats": "--repeats",
    "resume": "--resume",
    "rows": "--rows",
    "rows_hint": "--rows-hint",
    "schema": "--schema",
    "seed": "--seed",
    "where": "--where",
}
"""Arguments that Python's messages name, and the flag of each on the command line; `options` is `--set`."""
_OPTION = re.compile(r"options=\{'(?P<key>\w+)': '(?P<setting>[^']*)'\}")
_ARGUMENT = re.compile(rf"(?<![\w.-])(?P<name>{'|'.join(FLAGS)})=(?P<value>[\w.-]*\w)?")
_NAMED = re.compile(rf"{_OPTION.pattern}|(?<!\w)'[^']*'|\"[^\"]*\"|`[^`]*`|{_ARGUMENT.pattern}")


def plain(text: str) -> str:
    """The text with every character that could steer a terminal spelled out.

    >>> plain("a\\x1b[31mb\\u202ec")
    'a\\\\x1b[31mb\\\\u202ec'
    """
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


def in_flags(text: str) -> str:
    """A message that names arguments, as Python's callers know them, with the flags of the command line instead.

    An argument is a name at the very beginning, or one with an equals sign; what stands in quotes is left as it is.

    >>> in_flags("delta: must be above 0. Give delta=, for example 1e-9.")
    '--delta: must be above 0. Give --delta, for example 1e-9.'
    >>> in_flags("Give copies_mode=remeasure or resume=True, not 'rows=3.csv'; or options={'bins': '8'}.")
    "Give --copies-mode remeasure or --resume, not 'rows=3.csv'; or --set bins=8."
    """
    named = _NAMED.sub(_flag, text)
    where, colon, rest = named.partition(": ")
    return f"{FLAGS[where]}: {rest}" if colon and where in FLAGS else named


def _flag(found: re.Match[str]) -> str:
    if found["key"] is not None:
        setting = f"{found['key']}={found['setting']}"
        return f"--set {setting}" if re.fullmatch(r"[\w=:.×-]+", setting) else f"--set '{setting}'"
    if found["name"] is None:
        return found[0]
    value = found["value"]
    return FLAGS[found["name"]] + (f" {value}" if value and value != "True" else "")


class Shell:
    """Where one command prints."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._out = _console(_Result(sys.stdout))
        self._err = _console(_Remarks(sys.stderr))

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
        """The result for programs: one JSON object, in which no character could steer a terminal."""
        text = json.dumps(value, indent=2, ensure_ascii=False)
        self._out.file.write(UNSEEN.sub(lambda found: _escaped(found[0]), text) + "\n")

    def flush(self) -> None:
        """Waits until every line of the result has left this process."""
        self._out.file.flush()

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
def shell(*, quiet: bool, debug: bool, charges: bool = False) -> Iterator[Shell]:
    """The place a command prints to; any exception inside becomes one panel and the exit status it calls for.

    The panel of a command that may charge a ledger (`charges`) ends with what was charged and what exists.
    """
    with warnings.catch_warnings(), recorded() as standing:
        warnings.simplefilter("ignore")  # a library's warning may quote data
        logging.disable(logging.CRITICAL)
        try:
            require_handles()
            place = Shell(quiet=quiet)
            _show_own_warnings(place)
            yield place
            place.flush()
        except (typer.Exit, typer.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - whatever it is, its text must not be printed
            end(error, standing if charges else None, debug=debug)
        finally:
            logging.disable(logging.NOTSET)


def _show_own_warnings(place: Shell) -> None:
    """Notes what understudy itself warns of; undone with the filters of the block this is called in."""

    def show(message: Warning | str, category: type[Warning], *_where: object, **_more: object) -> None:
        if issubclass(category, UnderstudyWarning):
            place.note(f"Warning: {message}")

    warnings.simplefilter("default", UnderstudyWarning)
    warnings.showwarning = show


def end(error: BaseException, standing: Standing | None = None, *, debug: bool = False) -> NoReturn:
    """Ends the command with the panel and exit status that the exception calls for."""
    ending = ending_of(error)
    ignore_signals()
    if isinstance(error, OutputError):
        drop_output()
    lines = list(ending.lines)
    if ending.ours and debug:
        lines.append(f"Traceback (may contain PRIVATE values, keep it to yourself): {_keep_traceback(error)}")
    elif ending.ours:
        lines.append("With --debug the traceback is kept in a private file on this machine.")
    if standing is not None:
        lines.append(standing.sentence())
    if ending.title:
        show_error(ending.title, lines)
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
