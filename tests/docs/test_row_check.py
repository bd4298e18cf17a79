"""The walk and the look at rows on the schema page: both are replayed, and print what the page says."""

import io
import re
import shlex
import sys
from pathlib import Path

import pytest

import understudy as us
from tests.cli.terminal import run
from understudy.schema.document import schema_from_text
from understudy.schema.draft import draft_schema

PAGE = (Path(__file__).parents[2] / "docs" / "schema.md").read_text(encoding="utf-8")
WALK, LOOK, NOISY = re.findall(
    r"^```text\n\$ (understudy schema (?:edit|check).*?)^```$", PAGE, re.MULTILINE | re.DOTALL
)
(SNIPPET,) = re.findall(r"^```python\n(schema = us\.Schema.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
OPEN = draft_schema([(name, "string") for name in ("age", "ward", "wobble")])
ROWS = """\
age,ward
5,surgery
7,surgery
8,children
9,maternity
200,surgery
,children
12 years,Surgery
30 years,surgery
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.yaml").write_text(OPEN, encoding="utf-8")
    (tmp_path / "visits.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


def _printed(block: str, output: str) -> None:
    """Every line of the block but the commands and answers, in this order."""
    place = 0
    for line in block.splitlines()[1:]:
        if line.startswith(">") or not line.strip():
            continue
        parts = [re.escape(" ".join(part.split())) for part in line.split("…")]
        found = re.compile(r"\s*.*?\s*".join(parts)).search(output, place)
        assert found, f"should print: {line}\nprinted: {output}"
        place = found.end()


def test_the_page_prints_what_the_commands_print(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [line[1:].strip() for line in WALK.splitlines() if line.startswith(">")]
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{answer}\n" for answer in answers)))
    made = run("ledger", "init", "ledger.db", "--dataset", "visits", "--epsilon", 10)
    assert made.status == 0
    for block in (WALK, LOOK, NOISY):
        shown = run(*shlex.split(block.splitlines()[0])[1:])
        assert shown.status == 0, shown.err
        _printed(block, " ".join(shown.out.split()))
    schema = schema_from_text((folder / "visits.yaml").read_text(encoding="utf-8"), "the walk")
    assert (schema.names, schema.column("ward").kind) == (("age", "ward"), "category")
    exec(SNIPPET, {"us": us})  # noqa: S102 - the page's own lines
