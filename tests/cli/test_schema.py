"""Drafts from headers alone; checks that list everything at once."""

from pathlib import Path

import pytest

from tests.cli.terminal import listing, run
from tests.cli.workspace import SCHEMA, Workspace
from understudy.schema.draft import open_places


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
    assert "unit still says DECIDE" in checked.words
    assert "columns.age is a guess that nobody has confirmed" in checked.words
    opened = open_places(text)
    assert checked.words.count("•") == len(opened)
    guesses = sum(bool(found.guess) for found in opened)
    assert f"To decide: {len(opened) - guesses}. Guesses to confirm, by deleting their comment: {guesses}." in shown.out


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


def test_draft_takes_over_a_public_table_and_codebooks(place: Workspace, tmp_path: Path) -> None:
    public, book, out = tmp_path / "public.csv", tmp_path / "book.csv", tmp_path / "s.yaml"
    public.write_text("region,sex,age,income\nnorth,F,20,17.5\nsouth,M,61,\n", encoding="utf-8")
    book.write_text("name,type,values,min,max\nsex,category,F=female; M=male,,\nage,integer,,16,99\n", encoding="utf-8")
    shown = run("schema", "draft", place.table, "-o", out, "--like", public, "--codebook", book)
    assert (shown.status, "To decide: 2." in shown.out) == (0, True)
    text = out.read_text(encoding="utf-8")
    assert (
        "# A draft made from column names and storage types, the codebook book.csv, the public table public.csv;"
        in text
    )
    assert "meanings: {F: female, M: male}" in text
    assert "    upper: 99\n" in text
    assert "    labels: [north, south]\n    missing: false\n    note: from the public table public.csv\n" in text
    assert [(found.column, found.key) for found in open_places(text)] == [("", "unit"), ("visited", "kind")]


@pytest.mark.parametrize(
    ("flag", "name", "content", "said"),
    [
        (
            "--codebook",
            "book.csv",
            "a,b\n1,2\n",
            "book.csv:1: its first line does not name the columns of a data dictionary",
        ),
        ("--codebook", "book.csv", "name,type\nzebra,integer\n", "names none of the table's columns"),
        ("--codebook", "book.json", "{", "book.json:1: is not valid JSON"),
        ("--like", "absent.csv", None, "no such file"),
        ("--like", "public.csv", "id,notes\n1,x\n", "--like has no column that could be described"),
    ],
)
def test_draft_refuses_public_files_that_it_cannot_use(
    flag: str, name: str, content: str | None, said: str, place: Workspace, tmp_path: Path
) -> None:
    file, out = tmp_path / name, tmp_path / "s.yaml"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    shown = run("schema", "draft", place.table, "-o", out, flag, file)
    assert (shown.status, shown.panels) == (2, 1)
    assert said in shown.words.replace(f"{tmp_path}/", "")
    assert not out.exists()


def test_check_accepts_a_good_schema_and_its_table(place: Workspace) -> None:
    shown = run("schema", "check", place.schema, place.table)
    assert shown.status == 0
    assert shown.err.startswith("Each line of ")  # a note that every text file gets
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
    narrow.write_text("region,Sex,income\n", encoding="utf-8")
    shown = run("schema", "check", place.schema, wide)
    assert shown.status == 0
    assert "left out: name, phone." in shown.out
    shown = run("schema", "check", place.schema, narrow)
    assert (shown.status, shown.words.count("•")) == (2, 3)
    assert "schema 'sex', file 'Sex'" in shown.words


def test_check_lists_problems_of_schema_and_header_in_one_run(place: Workspace, tmp_path: Path) -> None:
    bad, narrow = tmp_path / "bad.yaml", tmp_path / "narrow.csv"
    narrow.write_text("region,Sex,income,visited\n", encoding="utf-8")
    text = SCHEMA.replace("upper: 65", "upper: 1").replace("kind: float", "kind: real").replace("row", "DECIDE")
    derived = "  rich:\n    kind: derived\n    cut: {}\n"
    bad.write_text(text + derived, encoding="utf-8")
    shown = run("schema", "check", bad, narrow)
    assert (shown.status, shown.panels) == (2, 1)
    for said in (
        "columns.age",
        "columns.income",
        "unit",
        "schema 'sex', file 'Sex'",
        "column 'age' is declared in the sch",
    ):
        assert said in shown.words
    assert "'rich'" not in shown.words  # a derived column is in no table
    for absent in (tmp_path / "absent.csv", tmp_path / "notes.txt"):
        shown = run("schema", "check", bad, absent)
        assert (shown.status, shown.panels) == (2, 1)
        assert "columns.age" in shown.words
        assert absent.name in shown.words.replace(" ", "")
    bad.write_text(SCHEMA + "  sex: [", encoding="utf-8")
    shown = run("schema", "check", bad, narrow)
    assert (shown.status, shown.words.count("•")) == (2, 1)
    assert "is not valid YAML" in shown.words


def test_check_takes_a_faulty_unit_by_its_column(tmp_path: Path) -> None:
    bad, table = tmp_path / "bad.yaml", tmp_path / "table.csv"
    bad.write_text(SCHEMA.replace("unit: row", "unit: {column: person_id}"), encoding="utf-8")
    table.write_text("region,sex,age,income,visited\n", encoding="utf-8")
    shown = run("schema", "check", bad, table)
    assert (shown.status, shown.words.count("•")) == (2, 2)
    assert "unit.rows" in shown.words
    assert "column 'person_id' is declared in the schema but not in the table" in shown.words


ROW = ("Zaphod", "F", "31", "zaphod@example.org", "2001-02-03")


@pytest.mark.parametrize(("suffix", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_draft_refuses_a_table_without_a_header(suffix: str, delimiter: str, tmp_path: Path) -> None:
    table, out = tmp_path / f"headless.{suffix}", tmp_path / "draft.yaml"
    table.write_text(delimiter.join(ROW) + "\n" + delimiter.join(ROW) + "\n", encoding="utf-8")
    shown = run("schema", "draft", table, "-o", out)
    assert (shown.status, shown.panels) == (2, 1)
    assert not any(value in shown.out + shown.err for value in ROW if len(value) > 1)
    assert not out.exists()
    assert "If its first line is a row, give --no-header with --names, one for each column." in shown.words
    assert run("schema", "draft", table, "-o", out, "--names-are-right").status == 0
    assert "Zaphod" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize("header", ["region,sex,age,income,visited,{}", "region,sex,age,income,visited{}"])
def test_a_row_merged_into_the_header_is_refused_and_not_quoted(header: str, place: Workspace, tmp_path: Path) -> None:
    table = tmp_path / "merged.csv"
    table.write_text(header.format(",".join(ROW)) + "\nnorth,F,30,1,2020-01-01\n", encoding="utf-8")
    before = place.balance()
    for words in (
        ("schema", "check", place.schema, table),
        ("synthesize", table, "--schema", place.schema, "--epsilon", 1, "--out", tmp_path / "release"),
    ):
        shown = run(*words, *(("--ledger", place.ledger, "--dataset", "people") if "--out" in words else ()))
        assert (shown.status, shown.panels) == (2, 1)
        assert not any(value in shown.out + shown.err for value in ROW if len(value) > 1)
    assert place.balance() == before
    assert not (tmp_path / "release").exists()


def test_draft_says_what_comes_next_and_which_table_has_no_header(place: Workspace, tmp_path: Path) -> None:
    out, headless = tmp_path / "d.yaml", tmp_path / "headless.csv"
    headless.write_text(",".join(ROW) + "\n", encoding="utf-8")
    refused = run("schema", "draft", place.table, "-o", out, "--like", headless)
    assert refused.status == 2
    assert "--like: the first line of the public table looks like values" in refused.words
    words = run("schema", "draft", place.table, "-o", out).words
    assert 0 < words.index("understudy schema edit") < words.index("understudy schema check")


def test_draft_says_that_a_line_is_a_row(place: Workspace, tmp_path: Path) -> None:
    for number, (table, said) in enumerate(
        ((place.table, True), (f"{place.table}::multiline", False), (place.folder / "people.parquet", False))
    ):
        shown = run("schema", "draft", table, "-o", tmp_path / f"{number}.yaml")
        assert shown.status == 0
        assert ("is read as one row. If quoted fields contain line breaks" in shown.words) is said


def test_check_says_which_dates_need_a_format(tmp_path: Path) -> None:
    schema, table = tmp_path / "s.yaml", tmp_path / "t.csv"
    days = "kind: date, lower: 2020-01-01, upper: 2020-12-31"
    head = "understudy: 1\nunit: row\ncolumns:\n"
    schema.write_text(f'{head}  a: {{{days}}}\n  b: {{{days}, format: "%d/%m/%Y"}}\n', encoding="utf-8")
    table.write_text("a,b\n", encoding="utf-8")
    shown = run("schema", "check", schema, table)
    assert shown.status == 0
    assert "Column 'a' is text in the table." in shown.words
    assert "need a `format`" in shown.words
    assert "need a `format`" not in run("schema", "check", schema).words
