"""Panels, exit status, silence, and the rule that an unexpected exception shows its type only."""

import io
import json
import logging
import os
import re
import stat
import sys
import warnings
from pathlib import Path

import pytest
import typer

from understudy.cli.console import Shell, plain, shell
from understudy.errors import (
    BudgetError,
    InputError,
    LedgerError,
    Problem,
    ReleaseError,
    ResourceError,
    SchemaError,
    UnderstudyError,
    UnderstudyWarning,
    UsageError,
)

SECRET = "Zaphod-7731"


class Watched(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def _end(error: BaseException, *, debug: bool = False) -> int:
    with pytest.raises(typer.Exit) as ending, shell("plan", quiet=False, debug=debug):
        raise error
    return int(ending.value.exit_code)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UsageError("--rows", "must be above 0."), 2),
        (InputError("people.csv", "is not there."), 2),
        (SchemaError([Problem("a", "b"), Problem("c", "d")]), 2),
        (ReleaseError([Problem("a", "b")]), 2),
        (BudgetError("measure", "ε = 2", "ε = 1", "Ask for less."), 3),
        (LedgerError("ledger.db", "is locked."), 3),
        (ResourceError("plan", 10, 5, "Use fewer bins."), 4),
        (MemoryError(), 4),
        (OSError(28, "No space left on device"), 4),
        (PermissionError(13, SECRET, SECRET), 2),
        (OSError(36, SECRET), 2),
        (KeyboardInterrupt(), 130),
        (RuntimeError(SECRET), 1),
        (OSError(5, SECRET), 4),
    ],
)
def test_every_ending_has_its_status_and_one_panel(
    error: BaseException, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _end(error) == status
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("╭") == 1
    assert "Traceback" not in shown.err
    assert SECRET not in shown.err
    if isinstance(error, UnderstudyError):
        for line in str(error).split("\n"):
            assert line in " ".join(shown.err.replace("│", " ").split())


def test_unexpected_exception_shows_its_type_only(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise KeyError(SECRET)
    except KeyError as cause:
        error = RuntimeError(SECRET)
        error.__cause__ = cause
    assert _end(error) == 1
    shown = capsys.readouterr().err
    assert "RuntimeError" in shown
    assert SECRET not in shown
    assert "report" in shown


def test_debug_keeps_the_traceback_in_a_private_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert _end(RuntimeError(SECRET), debug=True) == 1
    shown = capsys.readouterr().err
    assert SECRET not in shown
    assert "PRIVATE" in shown
    (kept,) = tmp_path.iterdir()
    assert kept.name in "".join(re.sub(r"[│\n]", "", line).strip() for line in shown.splitlines())
    assert stat.S_IMODE(os.stat(kept).st_mode) == 0o600
    text = kept.read_text(encoding="utf-8")
    assert text.startswith("CONFIDENTIAL")
    assert SECRET in text


def test_warnings_and_log_records_stay_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with shell("plan", quiet=False, debug=False):
            warnings.warn(SECRET, stacklevel=1)
            logging.getLogger("anything").error(SECRET)
        assert seen == []
        warnings.warn("after", stacklevel=1)
        assert len(seen) == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")


def test_text_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert plain("a\tb\x1b[2J\u202e\u200b\nc") == "a\\tb\\x1b[2J\\u202e\\u200b\nc"
    place = Shell()
    place.line("[red]label[/red] \x1b[31m")
    place.table(["name", ">rows"], [["[bold]x[/bold]\x07", "1"]])
    shown = capsys.readouterr().out
    assert "[red]label[/red]" in shown
    assert "[bold]x[/bold]" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_json_cannot_steer_the_terminal_either(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a\x1b[31m": "\x7f\x85\x9b2J\u202e\u2066\u200b\u2028\ufeff\udc80\U000e0001 ε é 好 \n\t"}
    Shell("plan", as_json=True).json(value)
    shown = capsys.readouterr().out
    assert json.loads(shown) == {"command": "plan", "format": 1, **value}
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert "ε é 好" in shown


def test_quiet_drops_notes_and_progress_but_not_results(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Watched()
    monkeypatch.setattr(sys, "stderr", stream)
    place = Shell(quiet=True)
    place.note("a note")
    with place.running() as progress:
        progress.expect(10.0)
        progress.stage("measure", 0.5)
    place.line("a result")
    assert stream.getvalue() == ""
    assert "a result" in capsys.readouterr().out


def test_progress_is_silent_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Shell().running() as progress:
        progress.stage("measure", 0.5)
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal_shows_stage_share_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Watched()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    with Shell().running() as progress:
        progress.expect(60.0)
        progress.stage("check", 0.0)
        progress.stage("measure", 1.0)
        progress.stage("a stage nobody planned", 0.5)
    shown = stream.getvalue()
    assert re.search(r"about \d+ s left", shown)
    assert "%" in shown


def test_warnings_of_our_own_are_notes(capsys: pytest.CaptureFixture[str]) -> None:
    with shell("plan", quiet=False, debug=False):
        for _ in range(2):
            warnings.warn("odd \x1b[31m", UnderstudyWarning, stacklevel=1)
        warnings.warn(SECRET, stacklevel=1)
    with shell("plan", quiet=True, debug=False):
        warnings.warn("quiet", UnderstudyWarning, stacklevel=1)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "Warning: odd \\x1b[31m\n")
