"""verify makes the plan again: a release that only says that it kept to one is found, and every honest one passes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import understudy as us
from tests.release.people import everything, people, relisted, simple
from tests.release.test_earlier_formats import DATA, FOLDERS
from understudy.release import files
from understudy.release import verify_release as verify_alone
from understudy.release.release import read_config
from understudy.release.statement import read_statement, statement_document, statement_markdown
from understudy.schema import Schema
from understudy.synthesizer.design import Design
from understudy.synthesizer.verifying import inspect_release, planned_costs

FIXED = {
    "independent, pure": (simple(), {"method": "independent", "epsilon": 2.0}),
    "independent, exact sums": (simple(), {"method": "independent", "epsilon": 2.0, "delta": 1e-6}),
    "independent, copies": (
        simple(),
        {"method": "independent", "epsilon": 2.0, "delta": 1e-6, "copies": 3, "copies_mode": "remeasure"},
    ),
    "independent, checked": (simple(), {"method": "independent", "epsilon": 2.0, "delta": 1e-6, "check_share": 0.1}),
    "nist_mst": (simple(), {"method": "nist_mst", "epsilon": 2.0, "delta": 1e-6, "options": {"marginals": "pairs"}}),
    "universal_histogram": (simple(), {"method": "universal_histogram", "epsilon": 2.0, "delta": 1e-6}),
}


def _made(place: Path, schema: Schema, settings: dict[str, object]) -> us.Statement:
    data = people(300)[[column.name for column in schema.columns if column.name != "tall"]]
    return us.synthesize(data, schema, **{"method": "laplace", "out": place, "seed": 1} | settings).statement


@pytest.mark.parametrize("name", FIXED)
def test_releases_that_kept_to_their_plan_verify(name: str, tmp_path: Path) -> None:
    assert _made(tmp_path / "out", *FIXED[name]).as_planned
    found = inspect_release(tmp_path / "out")
    assert (found.problems, found.believed) == ((), ())


def test_a_release_with_open_codes_says_nothing_of_a_plan(tmp_path: Path) -> None:
    statement = _made(tmp_path / "out", everything(), {"method": "independent", "epsilon": 20.0, "delta": 1e-6})
    assert not statement.as_planned
    assert us.verify(tmp_path / "out") == []


def _claims_a_plan(folder: Path, **changes: object) -> None:
    """Says of a run that chose its queries that they were planned, in every file that must agree."""
    document = json.loads((folder / "statement.json").read_text(encoding="utf-8"))
    statement = replace(read_statement(document), as_planned=True, **changes)
    text = json.dumps(statement_document(statement), indent=1, ensure_ascii=True, allow_nan=False)
    (folder / "statement.json").write_text(text + "\n", encoding="utf-8")
    (folder / "statement.md").write_text(statement_markdown(statement), encoding="utf-8")
    relisted(folder)


@pytest.mark.parametrize("method", ["mst", "privsyn"])
def test_a_run_that_only_says_that_it_was_planned_is_found(method: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert not _made(folder, simple(), {"method": method, "epsilon": 2.0, "delta": 1e-6}).as_planned
    _claims_a_plan(folder)
    assert verify_alone(folder) == [], "the folder agrees with itself"
    assert [problem.where for problem in us.verify(folder)] == ["statement.json: as_planned"]


def test_another_version_is_believed_and_that_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    statement = _made(folder, simple(), {"method": "mst", "epsilon": 2.0, "delta": 1e-6})
    _claims_a_plan(folder, versions={**statement.versions, "understudy": "0.3.99"})
    found = inspect_release(folder)
    assert found.problems == ()
    assert [part.split(",")[0] for part in found.believed] == ["that the run kept to its plan"]


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_of_earlier_versions_verify(name: str) -> None:
    assert us.verify(DATA / name) == []


def test_no_plan_is_made_for_what_a_stranger_merely_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workload of long tables, or a thousand copies, takes minutes and gigabytes to plan."""
    folder = tmp_path / "out"
    asked: list[int] = []
    of = Design.of

    def counted(*given: object, **more: object) -> Design:
        asked.append(more.get("runs", 1))
        return of(*given, **more)

    monkeypatch.setattr(Design, "of", counted)
    _made(folder, simple(), {"method": "mst", "epsilon": 2.0, "delta": 1e-6})
    _claims_a_plan(folder)
    asked.clear()
    assert [problem.where for problem in us.verify(folder)] == ["statement.json: as_planned"]
    assert asked == [], "no plan of this method is ever fixed"
    other = tmp_path / "other"
    _made(other, simple(), {"method": "independent", "epsilon": 2.0, "copies": 2, "copies_mode": "remeasure"})
    schema, config = Schema.from_yaml(other / "schema.yaml"), read_config(other / "config.yaml")
    statement = read_statement(json.loads((other / "statement.json").read_text(encoding="utf-8")))
    asked.clear()
    assert planned_costs(schema, config, statement) == [charge.cost for charge in statement.charges]
    assert planned_costs(schema, replace(config, rows=config.rows * 500), statement) == []
    assert asked == [1, 2, 1]


def test_a_plan_of_many_columns_is_made_where_everything_is_to_be_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    _made(folder, *FIXED["independent, pure"])
    monkeypatch.setattr(files, "PLANNED_COLUMNS", 2)
    assert [part.split(",")[0] for part in inspect_release(folder).unchecked] == ["whether the run kept to its plan"]
    assert inspect_release(folder, everything=True).unchecked == ()
