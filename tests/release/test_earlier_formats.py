"""What earlier versions wrote still loads, verifies, samples and can be charged: folders and a ledger made by them.

Folders are never made anew: what is written today is kept here from the day on which its format began.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pytest

from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger
from understudy.release import Release
from understudy.release.provenance import check_signature
from understudy.release.statement import read_statement, statement_document
from understudy.release.verify import verify_release

DATA = Path(__file__).parents[1] / "data"
FOLDERS = ("format-1/clinic-mst", "format-1/register-laplace", "format-2/clinic-mst", "format-3/clinic-ensemble")


@pytest.mark.parametrize("name", FOLDERS)
def test_earlier_folder_verifies(name: str) -> None:
    assert verify_release(DATA / name) == []


def test_earlier_signature_holds() -> None:
    pytest.importorskip("cryptography")
    assert check_signature(DATA / "format-3" / "clinic-ensemble", DATA / "format-3" / "key.public.pem") == []


@pytest.mark.parametrize("name", FOLDERS)
def test_earlier_folder_loads_and_samples(name: str) -> None:
    release = Release.load(DATA / name)
    rows = release.sample(50, seed=3, where={"sex": "F"})
    assert rows.num_rows == 50
    assert pc.all(pc.equal(rows["sex"].cast("string"), "F")).as_py()


@pytest.mark.parametrize("name", FOLDERS)
def test_earlier_folder_is_still_checked(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(DATA / name, copy)
    statement = copy / "statement.json"
    statement.write_text(statement.read_text(encoding="utf-8").replace('"epsilon"', '"epsilom"', 1), encoding="utf-8")
    assert verify_release(copy)


def test_earlier_ledger_is_read_and_charged_on(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    shutil.copy(DATA / "format-1" / "ledger.db", place)
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
    assert f"format-{statement.format}" == name.split("/")[0]
    assert statement.markdown() == (DATA / name / "statement.md").read_text(encoding="utf-8")
    words = {1: "A suspicion of 1 in 100", 2: "that a unit is in the table", 3: "protected unit is in the data"}
    for number, said in words.items():
        assert (said in statement.odds) == (number == statement.format)
        assert said in replace(statement, format=number).odds or statement.unit.column is None


@pytest.mark.parametrize("name", FOLDERS)
def test_earlier_statement_is_written_again_to_the_byte(name: str) -> None:
    text = (DATA / name / "statement.json").read_text(encoding="utf-8")
    document = statement_document(read_statement(json.loads(text)))
    assert json.dumps(document, indent=1, ensure_ascii=True, allow_nan=False) + "\n" == text
