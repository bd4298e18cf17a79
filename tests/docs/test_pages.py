"""Pages with commands and code run from top to bottom, by the rules of the tutorial's test."""

from pathlib import Path

import pytest

from tests.docs.test_tutorial import BLOCK, _require, _run, _steps
from tests.processes import Forked
from understudy.evaluate.metric import METRICS
from understudy.methods.method import METHODS

DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = ("methods", "metrics", "tutorials", "howto", "reference", "explanation")
FOUND = [page for folder in FOLDERS for page in sorted((DOCS / folder).glob("*.md"))]
PAGES = [
    *(page for page in FOUND if "\n```" in page.read_text(encoding="utf-8")),
    *(DOCS / f"{name}.md" for name in ("audit", "check", "evaluate", "install", "ledger", "pool", "signing")),
]
NOT_RUN = {"r-and-stata": {"r", "text"}, "codebook": {"csv"}, "install": {"text"}}
"""Languages of other programs, files that are saved and not run, and commands that install."""


@pytest.mark.usefixtures("quick_runs")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert blocks
    for key, value, kind, text in blocks:
        if key == "file":
            Path(value).write_text(text, encoding="utf-8")
        elif kind == "python":
            assert Forked(text).ended().status == 0
        elif kind == "console":
            for step in _steps(text, int(value) if key == "status" else 0):
                status, output = _run(step.command)
                assert status == step.status, f"{step.command}\n{output}"
                _require(step, output)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_understood(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert text.count("\n```") == 2 * len(blocks)
    assert {kind for _, _, kind, _ in blocks} <= {"console", "python", "yaml"} | NOT_RUN.get(page.stem, set())


def test_every_method_and_metric_has_a_page_that_runs() -> None:
    run = {(page.parent.name, page.stem) for page in PAGES}
    assert {("methods", name) for name in METHODS.built_in} <= run
    assert {("metrics", name) for name in METRICS.built_in} <= run
