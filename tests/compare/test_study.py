import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.compare.tables import SCHEMA, table
from understudy.compare import compare
from understudy.compare.job import Outcome, read_outcome
from understudy.compare.settings import Candidate, StudySettings
from understudy.compare.study import MARKER, StudyFolder, Tables
from understudy.errors import UsageError

SETTINGS = StudySettings((Candidate.read("independent"),), (1.0,))
PRIVATE = Tables("people.csv")


def test_a_begun_study_goes_on_only_under_its_own_settings(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "study")
    folder.open(SETTINGS, SCHEMA, PRIVATE)
    folder.open(SETTINGS, SCHEMA, PRIVATE)
    with pytest.raises(UsageError, match="other settings"):
        folder.open(StudySettings(SETTINGS.candidates, (2.0,)), SCHEMA, PRIVATE)
    with pytest.raises(UsageError, match="other settings"):
        folder.open(SETTINGS, SCHEMA, Tables("people.csv", is_public=True))


def test_a_begun_study_does_not_go_on_with_another_table(tmp_path: Path) -> None:
    rows = tmp_path / "people.csv"
    rows.write_text("sex,region,age\nf,north,3\n")
    folder = StudyFolder(tmp_path / "study")
    folder.open(SETTINGS, SCHEMA, Tables(rows))
    folder.open(SETTINGS, SCHEMA, Tables(str(rows)))
    rows.write_text("sex,region,age\nf,north,4\n")
    with pytest.raises(UsageError, match="another table"):
        folder.open(SETTINGS, SCHEMA, Tables(rows))


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(UsageError, match="not a study"):
        StudyFolder(tmp_path).open(SETTINGS, SCHEMA, PRIVATE)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_confidential_study_is_marked_and_closed_to_others(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "study")
    folder.open(SETTINGS, SCHEMA, PRIVATE)
    assert (folder.place / MARKER).read_text().startswith("NOT FOR RELEASE")
    assert folder.place.stat().st_mode & 0o077 == 0


def test_only_runs_that_ended_are_part_of_the_study(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "study")
    folder.open(SETTINGS, SCHEMA, PRIVATE)
    first = SETTINGS.cells[0]
    Outcome("done", "", 1.0, 1.0, 1).write(folder.outcome(first))
    folder.outcome(SETTINGS.cells[1]).write_text('{"status": "done", "sco')
    found = folder.study(SETTINGS, confidential=True, title="")
    assert [run.cell for run in found.runs] == [first]


def test_a_study_that_was_killed_goes_on_and_keeps_what_it_had(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "people.parquet")
    SCHEMA.to_yaml(tmp_path / "schema.yaml")
    out = tmp_path / "study"
    words = ["compare", str(tmp_path / "people.parquet"), "--schema", str(tmp_path / "schema.yaml"), "--quiet"]
    words += ["--method", "independent", "--method", "laplace", "--epsilon", "1", "--repeats", "1", "-o", str(out)]
    running = subprocess.Popen([sys.executable, "-m", "understudy", *words, "--metric", "marginals"])
    kept = _first_outcome(out / "runs")
    running.send_signal(signal.SIGKILL)
    running.wait()
    before = {path.name: path.read_bytes() for path in (out / "runs").glob("*.json")}
    assert kept.name in before
    assert not (out / "index.html").exists()
    found = compare(
        tmp_path / "people.parquet",
        SCHEMA,
        methods=["independent", "laplace"],
        epsilons=[1.0],
        repeats=1,
        metrics=["marginals"],
        out=out,
    )
    assert [run.outcome.status for run in found.study.runs] == ["done", "done"]
    after = {path.name: path.read_bytes() for path in (out / "runs").glob("*.json")}
    assert {name: after[name] for name in before} == before
    assert (out / "index.html").is_file()
    assert pq.read_table(out / "results.parquet").equals(found.frame())


def _first_outcome(place: Path) -> Path:
    for _ in range(2400):
        for path in sorted(place.glob("*.json")) if place.is_dir() else []:
            if read_outcome(path) is not None:
                return path
        time.sleep(0.05)
    raise AssertionError(f"no outcome appeared in {os.fspath(place)}")


def test_a_run_that_went_past_its_limit_is_tried_again(tmp_path: Path) -> None:
    asked = {"methods": ["independent"], "epsilons": [1.0], "repeats": 1, "metrics": ["marginals"]}
    pq.write_table(table(60), tmp_path / "people.parquet")
    statuses = []
    for seconds in (0.05, 600.0):
        found = compare(tmp_path / "people.parquet", SCHEMA, **asked, seconds=seconds, out=tmp_path / "study")
        statuses.append([run.outcome.status for run in found.study.runs])
    assert statuses == [["time"], ["done"]]
