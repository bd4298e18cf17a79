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
    assert "share of sex=F" in done.said
    assert (folder / "release" / "statement.json").exists()


@pytest.mark.usefixtures("quick_runs")
def test_the_commands_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("q\n"))  # whoever is asked something has had enough
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", " ")
    commands = re.findall(r"^    understudy (.*?)(?:\s+#.*)?$", text, re.MULTILINE)
    assert len(commands) >= 7
    for command in commands:
        if command == "demo":  # tests/cli has it
            continue
        if command.startswith("schema check"):  # a person fills in the draft first
            (folder / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
        quicker = ["--repeats", "1"] if command.startswith("compare") else []
        shown = run(*shlex.split(command), *quicker)
        assert shown.status == 0, f"{command}\n{shown.words}"


def test_every_link_works_in_a_checkout_and_on_a_package_index() -> None:
    text = PAGE.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]*)\)", text)
    assert len(targets) > 20
    assert [target for target in targets if ":" not in target and not (PAGE.parent / target).exists()] == []
    plugins = pytest.importorskip("hatchling.plugin.manager").PluginManager()
    built = pytest.importorskip("hatchling.metadata.core").ProjectMetadata(str(PAGE.parent), plugins)
    published = re.findall(r"\]\(([^)]*)\)", built.core.readme)
    assert len(published) == len(targets)
    assert [target for target in published if not target.startswith("https://")] == []


def test_numbers_of_peers_stand_in_their_own_page() -> None:
    """Each figure of the table is one that benchmarks/peers prints, rounded."""
    text = PAGE.read_text(encoding="utf-8").partition("| library |")[2].partition("\n\n")[0]
    source = (PAGE.parent / "benchmarks" / "peers" / "README.md").read_text(encoding="utf-8")
    known = {float(word) for word in re.findall(r"\d+(?:\.\d+)?", source.replace(",", ""))}
    checked = 0
    for line in text.splitlines()[2:]:
        for word in re.findall(r"\d+(?:\.\d+)?", "|".join(line.split("|")[3:])):
            digits = len(word.partition(".")[2])
            assert any(f"{number:.{digits}f}" == word for number in known), f"{word} in {line}"
            checked += 1
    assert checked >= 14


def test_the_two_commands_exist() -> None:
    makefile = (PAGE.parent / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^    make (\w+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        assert f"\n{target}:" in makefile
