import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

from tests.compare.studies import made_up
from tests.compare.tables import SCHEMA, table
from understudy.compare import compare
from understudy.compare.compare import PROGRAM_BYTES, StudyPages, Workers
from understudy.compare.page import build_page
from understudy.compare.runs import Job, ProcessEnding, ProcessLimits, read_outcome
from understudy.compare.study import Candidate, Cell, Study, StudyFolder, StudySettings, Tables, drop_left_behind
from understudy.errors import UsageError
from understudy.evaluate.suite import MARKER
from understudy.report import Page

SETTINGS = StudySettings((Candidate.read("independent"),), (1.0,))
PRIVATE = Tables(table(20))
pytestmark = pytest.mark.usefixtures("quick_runs")
ONE_RUN: Any = {"methods": ["independent"], "epsilons": [1.0], "repeats": 1, "metrics": ["marginals"]}


def test_a_begun_study_goes_on_only_under_its_own_settings(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "study")
    folder.open(SETTINGS, SCHEMA, PRIVATE)
    folder.open(SETTINGS, SCHEMA, PRIVATE)
    with pytest.raises(UsageError, match="other settings"):
        folder.open(StudySettings(SETTINGS.candidates, (2.0,)), SCHEMA, PRIVATE)
    with pytest.raises(UsageError, match="whether the table is public"):
        folder.open(SETTINGS, SCHEMA, Tables(table(20), is_public=True))


def test_methods_epsilons_and_repeats_can_be_added_but_not_left_out(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "study")
    folder.open(SETTINGS, SCHEMA, PRIVATE)
    more = StudySettings((Candidate.read("laplace"), *SETTINGS.candidates), (0.5, 1.0), repeats=5)
    folder.open(more, SCHEMA, PRIVATE)
    assert {cell.key for cell in SETTINGS.cells} <= {cell.key for cell in more.cells}
    with pytest.raises(UsageError, match=r"other settings \(methods, epsilons, repeats\)"):
        folder.open(SETTINGS, SCHEMA, PRIVATE)
    folder.open(more, SCHEMA, PRIVATE)


def test_a_begun_study_does_not_go_on_with_another_table(tmp_path: Path) -> None:
    rows = tmp_path / "people.csv"
    rows.write_text("sex,region,age\nf,north,3\n")
    folder = StudyFolder(tmp_path / "study")
    folder.open(SETTINGS, SCHEMA, Tables(rows))
    folder.open(SETTINGS, SCHEMA, Tables(str(rows)))
    rows.write_text("sex,region,age\nf,north,4\n")
    with pytest.raises(UsageError, match="another table"):
        folder.open(SETTINGS, SCHEMA, Tables(rows))


def test_a_frame_is_told_from_another_one_but_not_from_itself(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "study")
    folder.open(SETTINGS, SCHEMA, Tables(table(20)))
    folder.open(SETTINGS, SCHEMA, Tables(table(20).to_pandas()))
    with pytest.raises(UsageError, match="another table"):
        folder.open(SETTINGS, SCHEMA, Tables(table(21)))


def test_another_public_table_is_refused(tmp_path: Path) -> None:
    public = tmp_path / "public.parquet"
    pq.write_table(table(30), public)
    settings = StudySettings((Candidate.read("aim"), Candidate.read("independent")), (1.0,), 1e-9)
    folder = StudyFolder(tmp_path / "study")
    folder.open(settings, SCHEMA, Tables(table(20), str(public)))
    assert json.loads((folder.place / "study.json").read_text())["public used by"] == ["aim"]
    pq.write_table(table(31), public)
    with pytest.raises(UsageError, match="another public table"):
        folder.open(settings, SCHEMA, Tables(table(20), str(public)))


def test_what_differs_is_named(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "study")
    folder.open(SETTINGS, SCHEMA, PRIVATE)
    other = StudySettings(SETTINGS.candidates, (1.0,), repeats=2, metric_options={"marginals": {"ways": 2}})
    with pytest.raises(UsageError, match=r"other settings \(repeats, options of metrics\)"):
        folder.open(other, SCHEMA, PRIVATE)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"format": "understudy st', "cannot be read"),
        ("\x00\xff", "cannot be read"),
        ("[1, 2]", "another program"),
        ('{"format": "mine"}', "another program"),
        ('{"format": "understudy study, format 1"}', "another version"),
    ],
)
def test_a_damaged_or_foreign_study_says_what_to_do(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=words) as raised:
        StudyFolder(tmp_path).open(SETTINGS, SCHEMA, PRIVATE)
    assert "new folder" in raised.value.problem.fix
    assert [path.name for path in tmp_path.iterdir()] == ["study.json"]


def test_a_study_that_was_killed_while_it_began_can_begin_again(tmp_path: Path) -> None:
    (tmp_path / ".study.json.part").write_text('{"form')
    StudyFolder(tmp_path).open(SETTINGS, SCHEMA, PRIVATE)
    assert sorted(path.name for path in tmp_path.iterdir()) == [MARKER, "runs", "study.json"]


def test_two_processes_do_not_work_on_one_study(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "study")
    folder.open(SETTINGS, SCHEMA, PRIVATE)
    left = folder.place / ".work-gone", folder.runs / ".work-gone"
    for place in left:
        place.mkdir()
    with folder.held():
        assert not any(place.exists() for place in left)
        with pytest.raises(UsageError, match="another process"), folder.held():
            pass
    with folder.held():
        pass


def test_the_first_to_come_begins_the_study(tmp_path: Path) -> None:
    """The lock is there before anything is written, so a second process cannot begin the same study beside it."""
    folder = StudyFolder(tmp_path / "study")
    with folder.held():
        with pytest.raises(UsageError, match="another process"), folder.held():
            pass
        assert [path.name for path in folder.place.iterdir()] == [".lock"]
    assert not folder.place.exists(), "no study was begun there"


def test_a_table_that_changes_in_mid_study_is_noticed(tmp_path: Path) -> None:
    rows = tmp_path / "people.parquet"
    pq.write_table(table(60), rows)

    class Changing:
        def stage(self, name: str, done: float) -> None:
            if name == "measure":
                pq.write_table(table(70), rows)

    with pytest.raises(UsageError, match="changed while"):
        compare(rows, SCHEMA, **ONE_RUN, out=tmp_path / "study", progress=Changing())
    assert not (tmp_path / "study" / "index.html").exists()
    for size in (60, 70):  # neither the old table nor the new one can go on with runs that may be of both
        pq.write_table(table(size), rows)
        with pytest.raises(UsageError, match="another table"):
            compare(rows, SCHEMA, **ONE_RUN, out=tmp_path / "study")


def test_what_a_fallen_process_printed_is_kept_for_the_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("understudy.compare.compare"), "WatchedProcess", _Falling)
    found = compare(table(60), SCHEMA, **ONE_RUN, out=tmp_path / "study")
    (run,) = found.study.runs
    assert run.outcome.status == "failed"
    (log,) = (tmp_path / "study" / "runs").glob("*.log")
    assert log.name in run.outcome.reason
    assert "scored" in run.outcome.reason, "it had said that it was scoring"
    assert log.read_text() == "scoring\na traceback\n"
    assert log.stat().st_mode & 0o777 == 0o600
    monkeypatch.undo()
    assert compare(table(60), SCHEMA, **ONE_RUN, out=tmp_path / "study").study.runs[0].outcome.status == "done"
    assert not log.exists()


class _Falling:
    peak_bytes = 0

    def __init__(self, arguments: list[str], limits: ProcessLimits, log: Path, *, threads: int | None = None) -> None:
        log.write_text("scoring\na traceback\n")

    def ending(self) -> ProcessEnding:
        return ProcessEnding("exit", 1, 0.1, 1)

    def stop(self) -> None:
        pass


def test_copies_of_killed_studies_without_a_folder_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, busy, other = (tmp_path / name for name in ("understudy-study-a", "understudy-study-b", "someone-else"))
    for place in (left, busy, other):
        place.mkdir()
        (place / ".lock").touch()
        (place / "table.parquet").write_bytes(b"private")
    with StudyFolder(busy).place.joinpath(".lock").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        drop_left_behind("understudy-study-")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["someone-else", "understudy-study-b"]


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(UsageError, match="not a study"):
        StudyFolder(tmp_path).open(SETTINGS, SCHEMA, PRIVATE)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_confidential_study_is_marked_and_closed_to_others(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "study")
    folder.open(SETTINGS, SCHEMA, PRIVATE)
    assert (folder.place / MARKER).read_text().startswith("NOT FOR RELEASE")
    assert folder.place.stat().st_mode & 0o777 == 0o700


def test_no_file_of_a_confidential_study_is_open_to_others(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        compare(table(60), SCHEMA, **ONE_RUN, out=tmp_path / "study")
    finally:
        os.umask(before)
    modes = {
        path.relative_to(tmp_path).as_posix(): path.stat().st_mode & 0o777
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert {"study/study.json", "study/results.parquet", "study/index.html", f"study/{MARKER}"} < set(modes)
    assert len(modes) == 7, "and a table of means, and one of ranks"
    assert set(modes.values()) == {0o600}


def test_the_copy_of_a_frame_is_closed_and_gone_afterwards(tmp_path: Path) -> None:
    seen: list[int] = []

    class Watching:
        def stage(self, name: str, done: float) -> None:
            seen.extend(path.stat().st_mode & 0o777 for path in (tmp_path / "study").glob(".work-*/table.parquet"))

    compare(table(60), SCHEMA, **ONE_RUN, out=tmp_path / "study", progress=Watching())
    assert set(seen) == {0o600}
    assert not list((tmp_path / "study").glob(".work-*"))


def test_an_outcome_that_is_torn_is_none(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "study")
    folder.open(StudySettings(SETTINGS.candidates, (1.0,), repeats=1, metrics=("marginals",)), SCHEMA, PRIVATE)
    (cell,) = replace(SETTINGS, repeats=1).cells
    folder.outcome(cell).write_text('{"status": "done", "sco')
    found = compare(table(20), SCHEMA, **ONE_RUN, out=folder.place)
    assert [run.outcome.status for run in found.study.runs] == ["done"]
    assert found.study.runs[0].outcome.scores


def test_the_page_is_written_anew_while_the_study_runs(tmp_path: Path) -> None:
    said: list[str] = []

    class Reading:
        def stage(self, name: str, done: float) -> None:
            page = tmp_path / "study" / "index.html"
            said.extend(re.findall(r"\d of \d runs are done", page.read_text()) if page.exists() else ["no page"])

    asked = ONE_RUN | {"repeats": 3}
    compare(table(60), SCHEMA, **asked, out=tmp_path / "study", progress=Reading())
    assert list(dict.fromkeys(said)) == ["no page", *(f"{done} of 3 runs are done" for done in range(3))]
    page = (tmp_path / "study" / "index.html").read_text()
    assert "runs are done" not in page
    for name in re.findall(r'href="([^"#]+)"', page):
        assert (tmp_path / "study" / name).is_file()


def test_a_page_that_takes_long_is_written_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = made_up({"a": [0.1] * 3})
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    pages = StudyPages(tmp_path)

    def slow(study: object) -> Page:
        now[0] += 2.0
        return build_page(cast(Study, study))

    monkeypatch.setattr(import_module("understudy.compare.compare"), "build_page", slow)
    pages.write_while_running(study)
    (tmp_path / "index.html").unlink()
    now[0] += 39.0
    pages.write_while_running(study)
    assert not (tmp_path / "index.html").exists()
    now[0] += 2.0
    pages.write_while_running(study)
    assert (tmp_path / "index.html").exists()


def test_runs_side_by_side_give_the_outcomes_of_runs_one_by_one(tmp_path: Path) -> None:
    asked = ONE_RUN | {"methods": ["independent", "laplace"], "repeats": 2}
    alone = compare(table(60), SCHEMA, **asked, out=tmp_path / "alone").study
    beside = compare(table(60), SCHEMA, **asked, jobs=3, out=tmp_path / "beside").study
    assert [run.cell for run in beside.runs] == [run.cell for run in alone.runs]
    assert {run.outcome.status for run in beside.runs} == {"done"}
    names = [[(one.metric, one.score) for one in run.outcome.scores] for run in beside.runs]
    assert names == [[(one.metric, one.score) for one in run.outcome.scores] for run in alone.runs]
    assert [{run.outcome.jobs for run in study.runs} for study in (alone, beside)] == [{1}, {3}]
    kept = compare(table(60), SCHEMA, **asked, out=tmp_path / "beside").study
    assert kept.runs == beside.runs, "taken up one by one, nothing is run again"


def test_runs_are_begun_beside_others_as_far_as_memory_and_jobs_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("understudy.compare.compare"), "memory_limit", lambda _: 4 * PROGRAM_BYTES)
    monkeypatch.setattr(import_module("understudy.compare.compare"), "WatchedProcess", _Endless)
    small, large = (Candidate.read(name) for name in ("independent", "mst"))
    forecasts = {("independent", 1.0): 0, ("mst", 1.0): 3 * PROGRAM_BYTES}
    folder = StudyFolder(tmp_path / "study")
    folder.open(SETTINGS, SCHEMA, PRIVATE)
    job = Job("", "", {}, {})
    with Workers(folder, ProcessLimits(60.0, 2**40), 2, forecasts) as workers:
        assert workers.may_begin(Cell(large, 1.0, 1)), "one alone always may"
        workers.begin(Cell(small, 1.0, 1), job)
        assert not workers.may_begin(Cell(large, 1.0, 1))
        assert workers.may_begin(Cell(small, 1.0, 2))
        workers.begin(Cell(small, 1.0, 2), job)
        assert not workers.may_begin(Cell(small, 1.0, 3)), "no more than two at a time"
        assert len(list(folder.place.glob(".work-*"))) == 2
    assert not list(folder.place.glob(".work-*"))
    assert _Endless.stopped == 2


class _Endless:
    stopped = 0
    peak_bytes = 0

    def __init__(self, arguments: list[str], limits: ProcessLimits, log: Path, *, threads: int | None = None) -> None:
        assert threads == max(1, (os.cpu_count() or 1) // 2)

    def ending(self) -> None:
        return None

    def stop(self) -> None:
        _Endless.stopped += 1


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
    assert list(before) == [kept.name]  # the other run was cut off
    assert "of 2 runs are done" in (out / "index.html").read_text()
    first = read_outcome(kept)
    assert first is not None
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
    rows = [row for row in found.frame().to_pylist() if row["candidate"] == "independent"]
    assert [(row["score"], row["value"], row["seconds"]) for row in rows] == [
        (one.score, one.value, first.seconds) for one in first.scores
    ]


def _first_outcome(place: Path) -> Path:
    for _ in range(2400):
        for path in sorted(place.glob("*.json")) if place.is_dir() else []:
            if read_outcome(path) is not None:
                return path
        time.sleep(0.05)
    raise AssertionError(f"no outcome appeared in {os.fspath(place)}")


def test_a_run_that_went_past_its_limit_is_tried_again(tmp_path: Path) -> None:
    pq.write_table(table(60), tmp_path / "people.parquet")
    statuses = []
    for seconds in (0.001, 600.0):
        found = compare(tmp_path / "people.parquet", SCHEMA, **ONE_RUN, seconds=seconds, out=tmp_path / "study")
        statuses.append([run.outcome.status for run in found.study.runs])
    assert statuses == [["time"], ["done"]]
