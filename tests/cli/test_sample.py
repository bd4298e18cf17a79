"""More rows: by seed, under conditions, in every format, never over an existing file."""

from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tests.cli.terminal import run
from tests.cli.workspace import SCHEMA, Workspace


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = Workspace.make(tmp_path_factory.mktemp("sample"))
    made.schema.write_text(SCHEMA.replace("[north, south,", "['=north', south,"), encoding="utf-8")
    made.table.write_text(made.table.read_text(encoding="utf-8").replace("north", "=north"), encoding="utf-8")
    assert made.synthesize("--yes", epsilon=20).status == 0
    return made


def test_same_seed_same_rows(place: Workspace, tmp_path: Path) -> None:
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        out = tmp_path / f"{name}.parquet"
        assert run("sample", place.release, "--rows", 500, "--seed", seed, "-o", out).status == 0
    tables = [pq.read_table(tmp_path / f"{name}.parquet") for name in "abc"]
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])
    assert b"understudy.synthetic" in tables[0].schema.metadata


def test_rows_default_to_those_of_the_release(place: Workspace, tmp_path: Path) -> None:
    assert run("sample", place.release, "-o", tmp_path / "more.parquet").status == 0
    rows = pq.read_metadata(place.release / "data.parquet").num_rows
    assert pq.read_metadata(tmp_path / "more.parquet").num_rows == rows


def test_conditions_hold_for_every_row(place: Workspace, tmp_path: Path) -> None:
    out = tmp_path / "some.csv"
    for words in (("--where", "sex=F", "--where", "age=20..29"), ("--where", 'sex="F", age=20..29')):
        shown = run("sample", place.release, *words, "--rows", 300, "-o", out)
        assert shown.status == 0
        assert "Wrote 300 synthetic rows" in shown.err
        table = pacsv.read_csv(out)
        assert set(table["sex"].to_pylist()) == {"F"}
        assert all(20 <= age <= 29 for age in table["age"].to_pylist())
        out.unlink()


def test_excel_safe_text(place: Workspace, tmp_path: Path) -> None:
    for name, words in (("plain", ()), ("safe", ("--excel-safe",))):
        out = tmp_path / f"{name}.csv"
        assert run("sample", place.release, "--rows", 50, "--where", "region==north", "-o", out, *words).status == 0
    assert set(pacsv.read_csv(tmp_path / "plain.csv")["region"].to_pylist()) == {"=north"}
    assert set(pacsv.read_csv(tmp_path / "safe.csv")["region"].to_pylist()) == {"'=north"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--where", "sexx=F"), 'Did you mean "sex"?'),
        (("--where", "sex=Q"), "matches"),
        (("--where", "sex"), "must be COLUMN=VALUE"),
        (("--where", "sex=F,agee=20..29"), 'Did you mean "age"?'),
        (("--where", "sex=F,sex=M"), "names 'sex' twice"),
        (("--where", "age=30..20"), 'The range runs backwards: ask for "20..30".'),
        (("--where", "visited=2020-06-01..2020-03-01"), 'runs backwards: ask for "2020-03-01..2020-06-01".'),
        (("--rows", "-1"), "rows"),
        (("--seed", "-1"), "seed"),
        (("--copy", "2"), "copy"),
    ],
)
def test_refusals_write_nothing(words: tuple[str, ...], message: str, place: Workspace, tmp_path: Path) -> None:
    shown = run("sample", place.release, "-o", tmp_path / "x.csv", *words)
    assert (shown.status, shown.panels) == (2, 1)
    assert message.lower() in shown.words.lower()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.ods", "x", "no/x.csv"])
def test_bad_outputs(name: str, place: Workspace, tmp_path: Path) -> None:
    shown = run("sample", place.release, "--rows", 5, "-o", tmp_path / name)
    assert (shown.status, shown.panels) == (2, 1)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_and_parquet_needs_no_apostrophes(place: Workspace, tmp_path: Path) -> None:
    taken = tmp_path / "taken.csv"
    taken.write_text("mine", encoding="utf-8")
    shown = run("sample", place.release, "--rows", 5, "-o", taken)
    assert shown.status == 2
    assert "is a file that exists already. Name another or remove it." in shown.words
    assert taken.read_text(encoding="utf-8") == "mine"
    assert run("sample", place.release, "-o", tmp_path / "x.parquet", "--excel-safe").status == 2


def test_a_folder_that_is_no_release(place: Workspace, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nothing", place.table):
        shown = run("sample", folder, "--rows", 5, "-o", tmp_path / "x.csv")
        assert (shown.status, shown.panels) == (2, 1)
