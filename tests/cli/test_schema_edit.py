"""`schema edit` in a real terminal and through a pipe: it can be stopped at any moment and taken up again."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from tests.cli.terminal import Outcome, run

OPEN = """\
# our register
understudy: 1
unit: row
columns:
  age: {kind: integer, lower: 0, upper: 120}  # guess: years of age
  sex:
    kind: category
    labels: DECIDE  # as on the form
    missing: DECIDE
"""
CLOSED = OPEN.replace("  # guess: years of age", "").replace("DECIDE  # as", "[F, M]  # as").replace("DECIDE", "false")


@contextmanager
def terminal(path: Path, kind: str = "xterm") -> Iterator["pexpect.spawn[str]"]:
    """The command in a terminal of its own; it is gone when the block ends."""
    words = ["-m", "understudy", "schema", "edit", str(path)]
    made = pexpect.spawn(
        sys.executable,
        words,
        encoding="utf-8",
        timeout=30,
        env={"TERM": kind, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
    )
    made.logfile_read = io.StringIO()
    try:
        yield made
    finally:
        made.close(force=True)


def ended(made: "pexpect.spawn[str]") -> tuple[int, str]:
    """Exit status, and all that the terminal has shown."""
    made.expect(pexpect.EOF)
    made.wait()
    return made.exitstatus, made.logfile_read.getvalue()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "schema.yaml"
    made.write_text(OPEN, encoding="utf-8")
    return made


def test_a_person_fills_in_a_schema(path: Path) -> None:
    with terminal(path) as shown:
        shown.expect_exact("1 of 3: age (integer)")
        shown.expect_exact("Guess: {kind: integer, lower: 0, upper: 120}")
        shown.sendline("")
        shown.expect_exact("2 of 3: sex · labels (category)")
        shown.expect_exact("Hint: as on the form")
        shown.sendline("?")
        shown.expect_exact("never from the rows.")
        shown.sendline("F, F")
        shown.expect_exact("Not accepted: columns.sex.labels")
        shown.sendline("X")
        shown.expect_exact("3 of 3: sex · missing (category)")
        assert "labels: [X]" in path.read_text(encoding="utf-8")  # saved before the next question
        shown.sendline("u")
        shown.expect_exact("2 of 3: sex · labels (category)")
        shown.sendline("F, M")
        shown.expect_exact("3 of 3")
        shown.sendline("n")
        status, text = ended(shown)
    assert status == 0
    assert "no problems (columns: 2, rules: 0)" in text
    assert path.read_text(encoding="utf-8") == CLOSED
    assert [one.name for one in path.parent.iterdir()] == ["schema.yaml"]


def test_stopping_in_a_dumb_terminal_keeps_the_answers_and_going_on_asks_the_rest(path: Path) -> None:
    with terminal(path, "dumb") as shown:
        shown.expect_exact("1 of 3")
        shown.sendline("")
        shown.expect_exact("2 of 3")
        shown.sendintr()
        status, text = ended(shown)
    assert "1 answered and saved, 2 still open. Go on with: understudy schema edit" in text
    assert "You stopped the command." in text
    assert (status, "\x1b" in text) == (130, False)
    assert path.read_text(encoding="utf-8") == OPEN.replace("  # guess: years of age", "")
    with terminal(path, "dumb") as shown:
        shown.expect_exact("1 of 2: sex · labels")
        shown.sendline("q")
        status, text = ended(shown)
    assert "0 answered and saved, 2 still open" in text
    assert status == 0


def typed(path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return run("schema", "edit", path)


def test_answers_may_come_through_a_pipe(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = typed(path, "\nF, M\nno\n", monkeypatch)
    assert (shown.status, shown.err) == (0, "")
    assert path.read_text(encoding="utf-8") == CLOSED


def test_input_that_ends_is_told_and_nothing_is_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = typed(path, "\n", monkeypatch)
    assert (shown.status, shown.panels) == (2, 1)
    assert "standard input has ended" in shown.words
    assert "1 answered and saved, 2 still open" in shown.words
    assert "guess" not in path.read_text(encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", None)
    shown = run("schema", "edit", path)
    assert (shown.status, shown.panels) == (2, 1)
    assert "standard input is closed" in shown.words


def test_without_open_places_the_check_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(CLOSED, encoding="utf-8")
    shown = typed(path, "", monkeypatch)
    assert (shown.status, shown.err) == (0, "")
    assert "nothing is open" in shown.out
    assert "no problems (columns: 2, rules: 0)" in shown.out
    path.write_text(CLOSED.replace("upper: 120", "upper: -1"), encoding="utf-8")
    shown = typed(path, "", monkeypatch)
    assert (shown.status, shown.panels) == (2, 1)
    assert "must be above lower" in shown.words


def test_what_cannot_be_edited_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, said in (("a: [", "is not valid YAML"), ("a: &b 1", "anchors")):
        path.write_text(text, encoding="utf-8")
        shown = typed(path, "", monkeypatch)
        assert (shown.status, shown.panels) == (2, 1)
        assert said in shown.words
    shown = typed(path.parent / "absent.yaml", "", monkeypatch)
    assert (shown.status, shown.panels) == (2, 1)


def test_skipped_places_stay_open(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = typed(path, "s\ns\ns\n", monkeypatch)
    assert (shown.status, shown.err) == (0, "")
    assert "0 answered and saved, 3 still open" in shown.out
    assert path.read_text(encoding="utf-8") == OPEN


def test_a_column_can_be_left_out_and_taken_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = typed(path, "?\nx\nu\n\nx\n", monkeypatch)
    assert (shown.status, shown.err) == (0, "")
    assert "leave this column out of the release" in shown.words
    assert "no problems (columns: 1, rules: 0)" in shown.out
    kept = OPEN.partition("  sex:")[0].replace("  # guess: years of age", "")
    assert path.read_text(encoding="utf-8") == f"{kept}  # Left out: sex; decided while editing.\n"


def test_the_last_column_stays_and_x_in_quotes_is_an_answer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = typed(path, 'x\nx\n"x"\nno\n', monkeypatch)
    assert (shown.status, shown.err) == (0, "")
    assert "Not accepted: It is the only column that is left." in shown.words
    assert 'labels: ["x"]  # as on the form\n' in path.read_text(encoding="utf-8")


def test_an_answer_that_could_not_be_saved_is_not_called_saved(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("understudy.schema.edit.os.replace", stopped)
    shown = typed(path, "\n", monkeypatch)
    assert (shown.status, shown.panels) == (130, 1)
    assert "the last answer is not saved, 3 still open" in shown.words
    assert path.read_text(encoding="utf-8") == OPEN
