"""A corpus of small hostile files: tables, schemas and statements, each with what it must come to.

What once surprised us, or could, lies in `tests/data/corpus` and is replayed here. `outcomes.json` says of every table
and schema whether it is read, or which error of ours refuses it; anything else is a crash. A new find is added as a
file, and as a line there. Statements must never pass for the one that they were made from.
"""

import json
import shutil
from pathlib import Path

import pytest

from tests.counts.fuzz import SCHEMA, outcome, schema_outcome
from tests.release.people import relisted
from understudy.release.verify import verify_release

CORPUS = Path(__file__).parents[1] / "data" / "corpus"
OUTCOMES: dict[str, dict[str, str]] = json.loads((CORPUS / "outcomes.json").read_text(encoding="utf-8"))
FOLDER = CORPUS.parent / "format-2" / "clinic-mst"


def _names(kind: str) -> list[str]:
    return sorted(path.name for path in (CORPUS / kind).iterdir())


@pytest.mark.parametrize("kind", ["tables", "schemas"])
def test_every_file_has_an_outcome(kind: str) -> None:
    assert _names(kind) == sorted(OUTCOMES[kind])


@pytest.mark.parametrize("name", _names("tables"))
def test_tables(name: str) -> None:
    assert outcome(str(CORPUS / "tables" / name), SCHEMA) == OUTCOMES["tables"][name]


@pytest.mark.parametrize("name", _names("schemas"))
def test_schemas(name: str) -> None:
    assert schema_outcome((CORPUS / "schemas" / name).read_bytes()) == OUTCOMES["schemas"][name]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "release"
    shutil.copytree(FOLDER, folder)
    assert verify_release(folder) == []
    return folder


@pytest.mark.parametrize("name", _names("statements"))
def test_statements(name: str, copy: Path) -> None:
    """As a careful forger leaves it: with a manifest that fits."""
    shutil.copy(CORPUS / "statements" / name, copy / "statement.json")
    found = verify_release(relisted(copy))
    assert any(problem.where.startswith(("statement", "config", "schema", "run ", "ledger")) for problem in found), (
        found
    )
