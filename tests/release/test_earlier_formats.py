"""What version 0.1 wrote still loads, verifies, samples and can be charged: folders and a ledger made by its code."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pytest

from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger
from understudy.release import Release
from understudy.release.statement import read_statement, statement_document
from understudy.release.verify import verify_release

DATA = Path(__file__).parents[1] / "data" / "format-1"
FOLDERS = ("clinic-mst", "register-laplace")


@pytest.mark.parametrize("name", FOLDERS)
def test_earlier_folder_verifies(name: str) -> None:
    assert verify_release(DATA / name) == []


@pytest.mark.parametrize("name", FOLDERS)
def test_earlier_folder_loads_and_samples(name: str) -> None:
    release = Release.load(DATA / name)
    rows = release.sample(50, seed=3, where={"sex": "F"})
    assert rows.num_rows == 50
    assert pc.all(pc.equal(rows["sex"].cast("string"), "F")).as_py()


@pytest.mark.parametrize("name", FOLDERS)
def test_earlier_folder_is_still_checked(name: str, tmp_path: Path) -> None:
    copy = tmp_path / name
    shutil.copytree(DATA / name, copy)
    statement = copy / "statement.json"
    statement.write_text(statement.read_text(encoding="utf-8").replace('"epsilon"', '"epsilom"', 1), encoding="utf-8")
    assert verify_release(copy)


def test_earlier_ledger_is_read_and_charged_on(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    shutil.copy(DATA / "ledger.db", place)
    ledger = Ledger.open(place)
    assert ledger.verify() == []
    assert str(ledger.balance("visits").left) == "ε = 18, δ = 9e-06"
    budget = Budget(1.0, 0.0)
    ledger.charge(
        "register", run="a" * 32, method="laplace", cost=budget.cost("pure", 0), budget=budget, unit="one row"
    )
    assert ledger.verify() == []


@pytest.mark.parametrize("name", FOLDERS)
def test_earlier_statement_keeps_the_words_of_its_format(name: str) -> None:
    statement = Release.load(DATA / name).statement
    assert statement.format == 1
    assert statement.markdown() == (DATA / name / "statement.md").read_text(encoding="utf-8")
    assert "A suspicion of 1 in 100" in statement.odds
    assert "could become at most" in replace(statement, format=2).odds


@pytest.mark.parametrize("name", FOLDERS)
def test_earlier_statement_is_written_again_to_the_byte(name: str) -> None:
    text = (DATA / name / "statement.json").read_text(encoding="utf-8")
    document = statement_document(read_statement(json.loads(text)))
    assert json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n" == text
