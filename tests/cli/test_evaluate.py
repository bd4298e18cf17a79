"""`understudy evaluate`: a confidential folder, a table of scores, and refusals before anything is read."""

import json
from pathlib import Path

import pytest

from tests.cli.terminal import listing, run
from tests.cli.workspace import Workspace


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = Workspace.make(tmp_path_factory.mktemp("evaluate"))
    assert made.synthesize("--seed", 3, "--rows", 200).status == 0
    return made


def test_scores_beside_yardsticks(place: Workspace, tmp_path: Path) -> None:
    out = tmp_path / "confidential"
    found = run(
        "evaluate", place.table, place.release, "-o", out, "--metric", "marginals", "--metric", "rules", "--verbose"
    )
    assert found.status == 0, found.err
    assert found.out.startswith("NOT FOR RELEASE")
    assert "two_way_mean" in found.out
    assert "seconds" in found.out
    assert "the schema states no rule" in found.words
    document = json.loads((out / "evaluation.json").read_text(encoding="utf-8"))
    assert [one["metric"] for one in document["metrics"]] == ["marginals", "rules"]
    assert (out / "tables" / "marginals.pairs.csv").is_file()


def test_order_of_arguments_and_seed(place: Workspace, tmp_path: Path) -> None:
    options = ("--metric", "specks", "--metric", "regression", "--formula", "income ~ age + sex", "--seed", 5)
    first = run("evaluate", place.table, place.release, "-o", tmp_path / "a", *options)
    second = run("evaluate", place.release, place.folder / "people.parquet", "-o", tmp_path / "b", *options)
    assert first.status == second.status == 0, first.err + second.err
    documents = [json.loads((tmp_path / name / "evaluation.json").read_text(encoding="utf-8")) for name in "ab"]
    assert documents[0] == documents[1]
    assert documents[0]["metrics"][1]["scores"][0]["value"] is not None


def test_tables_with_a_schema(place: Workspace, tmp_path: Path) -> None:
    words = ("evaluate", place.table, place.table, "-o", tmp_path / "same", "--metric", "marginals")
    assert run(*words).status == 2
    found = run(*words, "--schema", place.schema)
    assert found.status == 0, found.err
    document = json.loads((tmp_path / "same" / "evaluation.json").read_text(encoding="utf-8"))
    assert document["metrics"][0]["scores"][0]["value"] == 0


def test_a_page_says_where_its_numbers_are(place: Workspace, tmp_path: Path) -> None:
    found = run("evaluate", place.table, place.release, "-o", tmp_path / "report.html", "--metric", "rules")
    assert f"Confidential report: {tmp_path / 'report.html'}" in found.words
    assert f"Confidential numbers behind it: {tmp_path / 'report-numbers'}" in found.words
    assert (tmp_path / "report-numbers" / "evaluation.json").is_file()


def test_a_pair_that_is_asked_for_is_drawn_first(place: Workspace, tmp_path: Path) -> None:
    words = ("evaluate", place.table, place.release, "--metric", "rules", "-o")
    found = run(*words, tmp_path / "pair", "--pair", "age, sex")
    assert found.status == 0, found.err
    lines = (tmp_path / "pair" / "tables" / "pictures.drawn_pairs.csv").read_text(encoding="utf-8").splitlines()
    assert lines[1].startswith('"age",') or lines[1].startswith('"sex",')
    refused = run(*words, tmp_path / "none", "--pair", "age")
    assert refused.status == 2
    assert "must name two columns" in refused.err
    assert not (tmp_path / "none").exists()


def test_nothing_is_written_into_a_release(place: Workspace) -> None:
    before = listing(place.release)
    for name in ("new", "model/new"):
        found = run("evaluate", place.table, place.release, "-o", place.release / name, "--metric", "rules")
        assert found.status == 2
        assert "release folder" in found.words
    assert listing(place.release) == before


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--metric", "speck"), 'Did you mean "specks"'),
        (("--set", "pmse"), "must be KEY=VALUE"),
        (("--set", "pmse=3"), "METRIC.OPTION=VALUE"),
        (("--set", "pmse.nul=3"), "is not an option"),
        (("--formula", "wage ~ age"), "is not a column"),
        (("--metric", "rules", "--set", "pmse.draws=3"), "not requested"),
        (("--seed", "-1"), "seed"),
        (("--metric", "rules", "--formula", "income ~ age"), "is for regression and ci_overlap"),
        (("--metric", "regression"), "metric 'regression' fits a model, and none is given. Give formula"),
        (("--metric", "ci_overlap", "--set", "ci_overlap.level=0.9"), "fits a model, and none is given."),
    ],
)
def test_bad_options(place: Workspace, tmp_path: Path, more: tuple[str, ...], words: str) -> None:
    found = run("evaluate", place.table, place.release, "-o", tmp_path / "out", *more)
    assert found.status == 2
    assert words in found.words
    assert found.panels == 1
    assert not (tmp_path / "out").exists()


def test_options_reach_the_metric(place: Workspace, tmp_path: Path) -> None:
    options = ("--metric", "pmse", "--set", "pmse.null=bootstrap", "--set", "pmse.draws=2")
    found = run("evaluate", place.table, place.release, "-o", tmp_path / "out", *options)
    assert found.status == 0, found.err
    assert "The null is bootstrap." in (tmp_path / "out" / "evaluation.json").read_text(encoding="utf-8")


def test_an_empty_real_table_is_an_error(place: Workspace, tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text(place.table.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    found = run("evaluate", empty, place.release, "-o", tmp_path / "out", "--metric", "rules")
    assert (found.status, found.panels) == (2, 1)
    assert "has no rows" in found.words
    assert not (tmp_path / "out").exists()
