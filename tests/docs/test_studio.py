"""The page on the studio: its commands exist, its pictures are there and small, its snippet runs."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.terminal import run
from tests.processes import Forked

PLACE = Path(__file__).parents[2] / "docs"
PAGE = (PLACE / "studio.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (understudy .*)$", PAGE, re.MULTILINE)
MOST_PICTURE_BYTES = 150_000


def test_every_option_exists() -> None:
    help_page = run("studio", "--help").words
    named = {word for command in COMMANDS for word in shlex.split(command) if word.startswith("--")}
    assert len(COMMANDS) == 4
    assert {"--read-only", "--host", "--password-file", "--address", "--make-password"} == named
    assert all(option in help_page for option in named)


def test_every_picture_is_there_and_small() -> None:
    shown = {PLACE / name for name in re.findall(r"!\[[^]]+\]\(([^)]+)\)", PAGE)}
    assert shown == set((PLACE / "studio").glob("*.png"))
    for path in shown:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size <= MOST_PICTURE_BYTES, path.name


def test_the_snippet_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (snippet,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert Forked(snippet).ended().status == 0


def test_what_it_says_of_the_doors_is_what_they_do() -> None:
    guard = pytest.importorskip("understudy.studio.guard")
    assert guard.MOST_FORM_BYTES == 2 << 20
    assert (guard.MOST_FAILURES, guard.FAILURE_SECONDS) == (5, 60.0)
