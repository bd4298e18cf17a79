"""Every command of the tutorial runs here, in order, and prints what the page says it prints.

In a `console` block a line that starts with "$ " is a command (a trailing backslash continues it); the lines after it
must appear in its output in this order, "…" standing for anything. `<!-- status: N -->` before a block announces
another exit status than 0; `<!-- file: NAME -->` saves the block; `python` blocks are run.
"""

import os
import re
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.terminal import run
from tests.processes import Forked

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"(?:<!-- (\w+): (\S+) -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Step:
    command: str
    status: int
    expected: list[str] = field(default_factory=list)


def _steps(text: str, status: int) -> list[Step]:
    steps: list[Step] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            steps.append(Step(line[2:], 0))
        elif line.strip():
            steps[-1].expected.append(line)
    steps[-1].status = status
    return steps


def _run(command: str) -> tuple[int, str]:
    words = shlex.split(command)
    if words[0] == "understudy":
        shown = run(*words[1:])
        return shown.status, shown.words
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def _require(step: Step, output: str) -> None:
    place = 0
    for line in step.expected:
        parts = [re.escape(" ".join(part.split())) for part in line.split("…")]
        found = re.compile(r"\s*.*?\s*".join(parts)).search(output, place)
        assert found, f"{step.command}\nshould print: {line}\nprinted: {output}"
        place = found.end()


def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = 0
    for key, value, kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if key == "file":
            Path(value).write_text(text, encoding="utf-8")
        elif kind == "python":
            assert Forked(text).ended().status == 0
        elif kind == "console":
            for step in _steps(text, int(value) if key == "status" else 0):
                status, output = _run(step.command)
                assert status == step.status, f"{step.command}\n{output}"
                _require(step, output)
                commands += 1
    assert commands >= 15
    assert sorted(os.listdir()) == [
        *("ledger.db", "maternity.csv", "release", "report-numbers", "report.html", "schema.yaml", "visits.csv")
    ]


def test_every_block_of_the_tutorial_is_understood() -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert text.count("\n```") == 2 * len(blocks)
    assert text.count("<!--") == sum(1 for key, *_ in blocks if key)
    assert {kind for _, _, kind, _ in blocks} == {"console", "python", "yaml"}
    assert all(key == "file" for key, _, kind, _ in blocks if kind == "yaml")
