"""Processes that are forked ready: they are processes of their own, and what they need is loaded."""

import signal
from pathlib import Path

import pytest

from tests.processes import COMMAND, Forked


def test_a_script_has_its_words_its_status_and_both_streams(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SAID", "by the environment")
    monkeypatch.chdir(tmp_path)
    script = (
        "import os, sys; print(sys.argv[1:], os.environ['SAID'], os.getcwd()); sys.stderr.write('late'); sys.exit(3)"
    )
    ended = Forked(script, "one", 2).ended()
    assert (ended.status, ended.said) == (3, f"['one', '2'] by the environment {tmp_path}\nlate")


def test_nothing_is_loaded_anew_and_nothing_is_shared() -> None:
    script = "import sys; print('understudy.cli.app' in sys.modules); sys.modules.clear()"
    assert [Forked(script).ended().said for _ in range(2)] == ["True\n", "True\n"]


def test_a_process_can_be_killed_and_an_error_is_a_status() -> None:
    waiting = Forked("import time; time.sleep(600)")
    assert waiting.runs()
    waiting.send(signal.SIGKILL)
    assert waiting.ended().status == -signal.SIGKILL
    failed = Forked("raise KeyError('lost')").ended()
    assert failed.status == 1
    assert "KeyError: 'lost'" in failed.said


def test_the_command_is_the_command() -> None:
    shown = Forked(COMMAND, "methods", "--nothing").ended()
    assert shown.status == 2
    assert "No such option: --nothing" in shown.words
