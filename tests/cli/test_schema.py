"""Drafts from headers alone; checks that list everything at once."""

from pathlib import Path

import pytest

from tests.cli.terminal import listing, run
from tests.cli.workspace import SCHEMA, Workspace


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace.make(tmp_path_factory.mktemp("schema"), rows=5)


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_draft_names_every_column_and_leaves_the_decisions(name: str, place: Workspace, tmp_path: Path) -> None:
    out = tmp_path / "draft.yaml"
    shown = run("schema", "draft", place.folder / name, "-o", out)
    assert shown.status == 0
    text = out.read_text(encoding="utf-8")
    assert all(f"  {column}:" in text for column in ("region", "sex", "age", "income", "visited"))
    assert "unit: DECIDE" in text
    checked = run("schema", "check", out)
    assert (checked.status, checked.panels) == (2, 1)
    assert checked.words.count("DECIDE") >= 3


def test_draft_never_overwrites(place: Workspace) -> None:
    before = listing(place.folder)
    shown = run("schema", "draft", place.table, "-o", place.schema)
    assert (shown.status, shown.panels) == (2, 1)
    assert "never overwritten" in shown.words
    assert listing(place.folder) == before


def test_draft_looks_at_no_row(place: Workspace, tmp_path: Path) -> None:
    drafts = []
    for number, rows in enumerate(("", "north,F,30,1,2020-01-01\n", "Zaphod,\0,x\n")):
        table = tmp_path / f"{number}.csv"
        table.write_text("region,sex,age,income,visited\n" + rows, encoding="utf-8")
        assert run("schema", "draft", table, "-o", tmp_path / f"{number}.yaml").status == 0
        drafts.append((tmp_path / f"{number}.yaml").read_text(encoding="utf-8"))
    assert len(set(drafts)) == 1


def test_check_accepts_a_good_schema_and_its_table(place: Workspace) -> None:
    shown = run("schema", "check", place.schema, place.table)
    assert (shown.status, shown.err) == (0, "")
    assert "no problems (columns: 5, rules: 0)" in shown.out


def test_check_lists_all_problems_at_once(place: Workspace, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    text = SCHEMA.replace("upper: 65", "upper: 1").replace("labels: [F, M]", "labels: []")
    bad.write_text(text.replace("kind: float", "kind: real"), encoding="utf-8")
    shown = run("schema", "check", bad)
    assert (shown.status, shown.panels) == (2, 1)
    assert shown.words.count("•") == 3
    assert all(f"columns.{column}" in shown.words for column in ("age", "sex", "income"))


def test_check_says_which_columns_are_left_out_and_which_are_missing(place: Workspace, tmp_path: Path) -> None:
    wide, narrow = tmp_path / "wide.csv", tmp_path / "narrow.csv"
    wide.write_text("name,region,sex,age,income,visited,phone\n", encoding="utf-8")
    narrow.write_text("region,sexx,income\n", encoding="utf-8")
    shown = run("schema", "check", place.schema, wide)
    assert shown.status == 0
    assert "left out: name, phone." in shown.out
    shown = run("schema", "check", place.schema, narrow)
    assert (shown.status, shown.words.count("•")) == (2, 3)
    assert 'Did you mean "sexx"?' in shown.words
