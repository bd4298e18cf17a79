"""The snippets of README.md run as they stand, on a table with the columns they speak of."""

import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import run
from tests.processes import Forked

PAGE = Path(__file__).parents[2] / "README.md"
SCHEMA = """\
understudy: 1
unit: row
columns:
  sex: {kind: category, labels: [F, M]}
  age: {kind: integer, lower: 0, upper: 99, bins: 10}
"""
ROWS = "sex,age\n" + "".join(f"{'FM'[number % 2]},{number % 90}\n" for number in range(500))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


def test_the_python_snippet_runs(folder: Path) -> None:
    (folder / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    done = Forked(snippet).ended()
    assert done.status == 0, done.said
    assert "differential privacy with ε = 1" in done.said
    assert re.search(r"^aim +\(ε, δ\) through ρ-zCDP +Measures", done.said, re.MULTILINE)
    assert re.search(r"^rules +Do synthetic rows obey the rules", done.said, re.MULTILINE)
    assert (folder / "release" / "statement.json").exists()


@pytest.mark.usefixtures("quick_runs")
def test_the_commands_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("q\n"))  # whoever is asked something has had enough
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", " ")
    commands = re.findall(r"^    understudy (.*?)(?:\s+#.*)?$", text, re.MULTILINE)
    assert len(commands) >= 10
    for command in commands:
        if command.startswith("schema check"):  # a person fills in the draft first
            (folder / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
        quicker = ["--repeats", "1"] if command.startswith("compare") else []
        shown = run(*shlex.split(command), *quicker)
        assert shown.status == 0, f"{command}\n{shown.words}"


def test_every_link_also_works_on_a_package_index() -> None:
    targets = re.findall(r"\]\(([^)]*)\)|^\[[^\]]+\]:\s*(\S+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [target for pair in targets for target in pair if target and not target.startswith("https://")] == []


def test_every_page_it_names_is_there() -> None:
    named = re.findall(r"`((?:docs|benchmarks)/[\w./-]+|[A-Z]+\.md)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) >= 10
    assert [name for name in named if not (PAGE.parent / name).exists()] == []


def test_the_two_commands_exist() -> None:
    makefile = (PAGE.parent / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^    make (\w+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        assert f"\n{target}:" in makefile
