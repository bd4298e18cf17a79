"""`understudy compare`: a study from the command line, a paid choice, and mistakes that run nothing."""

import json
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tests.cli.terminal import run
from tests.compare.tables import SCHEMA, table
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pacsv.write_csv(table(300), tmp_path / "people.csv")
    SCHEMA.to_yaml(tmp_path / "schema.yaml")
    return tmp_path


def _words(folder: Path, *more: object) -> tuple[object, ...]:
    return ("compare", folder / "people.csv", "--schema", folder / "schema.yaml", "--out", folder / "study", *more)


def test_a_study_names_a_method_and_is_marked(folder: Path) -> None:
    words = _words(folder, "--method", "independent", "--epsilon", 1, "--repeats", 1, "--metric", "marginals")
    shown = run(*words)
    assert shown.status == 0, shown.words
    assert "NOT FOR RELEASE" in shown.words
    assert "ε = 1: independent." in shown.words
    assert (folder / "study" / "index.html").is_file()
    again = run(*words)
    assert again.status == 0
    assert "ε = 1: independent." in again.words


def test_a_choice_is_charged_and_its_release_named(folder: Path) -> None:
    account = Ledger.create(folder / "ledger.db", dataset="people", cap=Budget(10.0))
    methods = ("--method", "independent", "--method", "laplace")
    shown = run(*_words(folder, *methods, "--epsilon", 2, "--choose", 1, "--ledger", folder / "ledger.db"))
    assert shown.status == 0, shown.words
    assert "Paid in total: ε = 5" in shown.words
    assert account.balance("people").spent.epsilon == Budget(5.0).epsilon_units
    refused = run(
        "compare", folder / "people.csv", "--schema", folder / "schema.yaml", *methods,
        "--epsilon", 3, "--choose", 1, "--ledger", folder / "ledger.db", "--out", folder / "more",
    )  # fmt: skip
    assert refused.status == 3
    assert account.balance("people").releases == 3


@pytest.mark.parametrize(
    "more",
    [
        ("--method", "independent", "--epsilon", 1, "--ledger", "ledger.db"),
        ("--method", "independent", "--epsilon", 1, "--choose", 1),
        ("--method", "independent", "--epsilon", 1, "--epsilon", 2, "--choose", 1, "--ledger", "ledger.db"),
        ("--method", "independent", "--epsilon", 1, "--choose", 1, "--ledger", "ledger.db", "--rows", 7),
        ("--method", "independent", "--epsilon", 1, "--choose", 1, "--ledger", "ledger.db", "--public-proxy"),
        ("--method", "independant", "--epsilon", 1),
        ("--method", "independent", "--epsilon", 1, "--metric", "marginal"),
        ("--method", "independent", "--epsilon", 1, "--minutes", 0),
        ("--method", "independent", "--epsilon", 1, "--memory", "much"),
        ("--method", "mst", "--epsilon", 1),
        ("--method", "independent", "--epsilon", 1, "--copies-mode", "again"),
        ("--method", "independent", "--epsilon", 1, "--rows", -3),
        ("--method", "independent", "--epsilon", 1, "--set", "marginals=2"),
        ("--method", "independent", "--epsilon", 1, "--set", "marginals.way=2"),
        ("--method", "independent", "--epsilon", 1, "--set", "nist.sex=sex"),
        ("--method", "independent", "--epsilon", 1, "--formula", "age ~ sex"),
        ("--method", "independent", "--epsilon", 1, "--public", "nowhere.csv"),
        ("--method", "independent", "--epsilon", 1, "--dataset", "people"),
        (
            "--method",
            "independent",
            "--epsilon",
            1,
            "--choose",
            1,
            "--ledger",
            "ledger.db",
            "--set",
            "marginals.ways=1",
        ),
        ("--method", "independent", "--epsilon", 1, "--choose", 1, "--ledger", "ledger.db", "--repeats", 5),
    ],
)
def test_mistakes_run_nothing(folder: Path, more: tuple[object, ...]) -> None:
    shown = run(*_words(folder, *more))
    assert shown.status == 2, shown.words
    assert shown.panels == 1
    assert not (folder / "study").exists()


@pytest.mark.parametrize("limit", [("--minutes", 5), ("--memory", "4GiB")])
def test_limits_of_a_study_do_not_go_with_a_choice(folder: Path, limit: tuple[object, ...]) -> None:
    account = Ledger.create(folder / "ledger.db", dataset="people", cap=Budget(10.0))
    methods = ("--method", "independent", "--method", "laplace", "--epsilon", 2, "--choose", 1)
    shown = run(*_words(folder, *methods, "--ledger", folder / "ledger.db", *limit))
    assert (shown.status, shown.panels) == (2, 1)
    assert f"{limit[0]} cannot be combined with --choose" in shown.words
    assert account.balance("people").releases == 0
    assert not (folder / "study").exists()


def test_tables_that_cannot_be_used_run_nothing(folder: Path) -> None:
    (folder / "header.csv").write_text("sex,region,age\n")
    (folder / "other.csv").write_text("sex,region\nf,north\n")
    more = ("--schema", folder / "schema.yaml", "--method", "independent", "--epsilon", 1, "-o", folder / "study")
    for name, words in (("none.csv", "no such file"), ("header.csv", "no rows"), ("other.csv", "age")):
        shown = run("compare", folder / name, *more)
        assert (shown.status, shown.panels) == (2, 1)
        assert words in shown.words
        assert not (folder / "study").exists()


def test_a_damaged_study_and_a_file_in_its_place_are_explained(folder: Path) -> None:
    words = _words(folder, "--method", "independent", "--epsilon", 1)
    (folder / "study").write_text("mine")
    shown = run(*words)
    assert (shown.status, shown.panels) == (2, 1)
    assert "a study is a folder" in shown.words
    (folder / "study").unlink()
    (folder / "study").mkdir()
    (folder / "study" / "study.json").write_text("{")
    shown = run(*words)
    assert (shown.status, shown.panels) == (2, 1)
    assert "Restore that file, or give a new folder" in shown.words


@pytest.mark.usefixtures("quick_runs")
def test_a_study_in_which_nothing_finished_says_why_and_can_go_on(folder: Path) -> None:
    words = _words(folder, "--method", "independent", "--epsilon", 1, "--repeats", 1, "--metric", "marginals")
    shown = run(*words, "--minutes", 0.0001)
    assert (shown.status, shown.panels) == (4, 1)
    assert "independent at ε = 1 (1 run, time): was still being made" in shown.words
    assert "kept in" in shown.words
    assert run(*words).status == 0


@pytest.mark.usefixtures("quick_runs")
def test_options_of_metrics_are_those_of_evaluate_and_part_of_the_study(folder: Path) -> None:
    request = ("--method", "independent", "--epsilon", 1, "--repeats", 1, "--metric", "marginals")
    shown = run(*_words(folder, *request, "--set", "marginals.ways=1"))
    assert shown.status == 0, shown.words
    expected = "ε = 1: independent. There was nothing to compare it with."
    assert expected in shown.words
    rows = pq.read_table(folder / "study" / "results.parquet").to_pylist()
    assert {row["score"]: row["value"] for row in rows}["two_way_mean"] is None
    settings = json.loads((folder / "study" / "study.json").read_text())["settings"]
    assert settings["metric_options"] == {"marginals": {"ways": "1"}}
    refused = run(*_words(folder, *request, "--set", "marginals.ways=2"))
    assert refused.status == 2
    assert "other settings (options of metrics)" in refused.words


@pytest.mark.usefixtures("quick_runs")
def test_a_public_table_goes_only_to_methods_that_use_one(folder: Path) -> None:
    pacsv.write_csv(table(200), folder / "public.csv")
    request = ("--method", "independent", "--method", "aim", "--epsilon", 1, "--delta", 1e-6, "--repeats", 1)
    shown = run(*_words(folder, *request, "--metric", "marginals", "--public", folder / "public.csv"))
    assert shown.status == 0, shown.words
    assert "Without scores" not in shown.words
    assert "A public table was given to aim." in (folder / "study" / "index.html").read_text()
