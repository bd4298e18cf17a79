"""Every page about a method runs from top to bottom, by the rules of the tutorial's test; so do some other pages."""

from pathlib import Path

import pytest

from tests.docs.test_tutorial import BLOCK, _require, _run, _steps
from tests.processes import Forked

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    *sorted((DOCS / "methods").glob("*.md")),
    *(DOCS / f"{name}.md" for name in ("audit", "evaluate", "ledger", "pool", "signing")),
]


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
    assert {kind for _, _, kind, _ in blocks} <= {"console", "python", "yaml"}
