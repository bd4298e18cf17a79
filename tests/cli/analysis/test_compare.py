"""`understudy compare`: a study from the command line, a paid choice, and mistakes that run nothing."""

from pathlib import Path

import pyarrow.csv as pacsv
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
    assert "Paid in all: ε = 5" in shown.words
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
    ],
)
def test_mistakes_run_nothing(folder: Path, more: tuple[object, ...]) -> None:
    shown = run(*_words(folder, *more))
    assert shown.status == 2
    assert not (folder / "study").exists()
