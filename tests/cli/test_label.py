"""`understudy label`: a file of records in, the same file with private columns out."""

from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tests.cli.terminal import run
from tests.cli.workspace import Workspace, people


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = Workspace.make(tmp_path_factory.mktemp("labels"), rows=300)
    public = people(120).drop(["sex"])
    pacsv.write_csv(public, made.folder / "public.csv")
    done = made.synthesize(
        "--method", "rdt", "--public", made.folder / "public.csv", "--set", "private=sex", "--set", "leaf_size=40",
        "--seed", 1,
    )  # fmt: skip
    assert done.status == 0, done.err
    return made


def test_records_come_back_with_labels(place: Workspace, tmp_path: Path) -> None:
    records = place.folder / "public.csv"
    for name in ("one.csv", "two.csv"):
        done = run("label", place.release, records, "--out", tmp_path / name, "--seed", 4)
        assert done.status == 0, done.err
        assert "sex" in done.err
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    labelled = pacsv.read_csv(tmp_path / "one.csv")
    assert labelled.column_names == ["region", "age", "income", "visited", "sex"]
    assert labelled.num_rows == 120
    assert set(labelled["sex"].to_pylist()) <= {"F", "M", ""}
    given = pacsv.read_csv(records)
    assert labelled["income"].equals(given["income"])
    done = run("label", place.release, records, "--out", tmp_path / "three.parquet", "--quiet")
    assert (done.status, done.err) == (0, "")
    assert pq.read_schema(tmp_path / "three.parquet").metadata[b"understudy.synthetic"] == b"sex"


def test_the_release_states_both_relations(place: Workspace) -> None:
    text = (place.release / "statement.md").read_text(encoding="utf-8")
    assert "Change of labels" in text
    assert "ε = 2." in text
    assert run("verify", place.release).status == 0


def test_safe_text_for_spreadsheets(place: Workspace, tmp_path: Path) -> None:
    hostile = tmp_path / "hostile.csv"
    hostile.write_text('region,age,income,visited,"=note"\nnorth,20,5,2020-01-02,=1+1\n', encoding="utf-8")
    done = run(
        "label", place.release, hostile, "--out", tmp_path / "safe.csv", "--excel-safe", "--seed", 1, "--keep", "=note"
    )
    assert done.status == 0, done.err
    assert "'=1+1" in (tmp_path / "safe.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.csv"], "missing.csv"),
        (["{public}", "--excel-safe"], "excel-safe"),
        (["{public}", "--copy", "3"], "copy"),
        (["{table}"], ""),
    ],
)
def test_mistakes_end_with_status_2_and_no_file(place: Workspace, tmp_path: Path, words: list[str], said: str) -> None:
    filled = [word.format(public=place.folder / "public.csv", table=place.schema) for word in words]
    done = run("label", place.release, *filled, "--out", tmp_path / "out.parquet")
    assert done.status == 2, done.err
    assert said in done.err
    assert not (tmp_path / "out.parquet").exists()
