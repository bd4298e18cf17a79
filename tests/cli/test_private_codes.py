"""Private bins and rare labels on the command line: declared in the schema, planned, paid for, released, verified."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.terminal import run
from tests.cli.workspace import SCHEMA, Workspace

REGIONS = ", ".join(["north", "south", "east", "west", *(f"hamlet {place}" for place in range(30))])


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace.make(tmp_path, rows=800)
    text = SCHEMA.replace(
        "labels: [north, south, east, west]\n    other: elsewhere", f"labels: [{REGIONS}]\n    rare: private"
    )
    text = text.replace("upper: 100000\n", "upper: 100000\n    bins: {private: 8, by: quantiles}\n")
    text = text.replace("upper: 2020-12-31\n", "upper: 2020-12-31\n    bins: {private: 6, by: privtree}\n")
    made.schema.write_text(text, encoding="utf-8")
    return made


def test_the_plan_lists_every_query(workspace: Workspace) -> None:
    shown = run("plan", "--schema", workspace.schema, "--epsilon", 5, "--method", "independent")
    assert shown.status == 0, shown.err
    for step in ("select cuts of income, layer 3", "grow halves of visited", "measure total", "measure region"):
        assert step in shown.words


@pytest.mark.parametrize("options", [(), ("--delta", "1e-9", "--method", "mst")])
def test_the_whole_way(workspace: Workspace, options: tuple[str, ...]) -> None:
    made = workspace.synthesize(*options, epsilon=8)
    assert made.status == 0, made.err
    checked = run("verify", workspace.release)
    assert checked.status == 0, checked.words
    rows = pq.read_table(workspace.release / "data.parquet")
    held = set(rows.column("region").to_pylist())
    assert {"north", "south", "east", "west"} <= held
    assert held <= {*REGIONS.split(", "), None}
    card = (workspace.release / "card.html").read_text(encoding="utf-8")
    for words in ("tree of", "choice among", "rare labels"):
        assert words in card
    drawn = run("sample", workspace.release, "--rows", 50, "--out", workspace.folder / "more.csv", "--seed", 3)
    assert drawn.status == 0, drawn.err


def test_mistakes_are_named_with_their_line(workspace: Workspace) -> None:
    text = workspace.schema.read_text(encoding="utf-8").replace("by: quantiles", "by: deciles")
    workspace.schema.write_text(text.replace("rare: private", "rare: maybe"), encoding="utf-8")
    shown = run("schema", "check", workspace.schema)
    assert shown.status != 0
    assert "'deciles' is not a way to choose bins" in shown.words
    assert "'maybe' is not known" in shown.words
