"""Every snippet of docs/compare.md runs here, in order, in a folder with a small table."""

import shlex
from pathlib import Path

import pyarrow.csv as pacsv
import pytest

from tests.cli.terminal import run
from tests.compare.tables import SCHEMA, table
from tests.docs.test_tutorial import BLOCK
from tests.processes import Forked

PAGE = Path(__file__).parents[2] / "docs" / "compare.md"


@pytest.mark.usefixtures("quick_runs")
def test_every_snippet_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pacsv.write_csv(table(2000), "people.csv")
    SCHEMA.to_yaml(Path("schema.yaml"))
    kinds = []
    for _, _, kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        kinds.append(kind)
        if kind == "python":  # takes up the study of the first command
            assert Forked(text).ended().status == 0
            continue
        command, *expected = text.replace("\\\n", " ").splitlines()
        shown = run(*shlex.split(command.removeprefix("$ understudy ")))
        assert shown.status == 0, shown.words
        for line in expected:
            for part in line.split("…"):
                assert part.strip() in shown.words
    assert kinds == ["console", "console", "python"]
    assert Path("study/index.html").is_file()
