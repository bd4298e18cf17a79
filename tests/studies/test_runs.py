"""Runs are kept as they end, go on after a kill, and are never taken for runs of other code."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from studies.runs import Record, carry_out, commit, kept_file, spent_on
from studies.writing import Form, StudyPage


@dataclass(frozen=True)
class Square:
    number: int

    @property
    def key(self) -> str:
        return str(self.number)


def squared(task: Square) -> Record:
    return {"square": task.number**2}


def refused(task: Square) -> Record:
    raise AssertionError(task.key)


TASKS = [Square(number) for number in range(4)]


def test_finished_runs_are_not_run_again(tmp_path: Path) -> None:
    kept = tmp_path / "folder" / "runs.jsonl"
    first = carry_out(TASKS, squared, kept, 0)
    assert [one["square"] for one in first] == [0, 1, 4, 9]
    assert carry_out(TASKS, refused, kept, 0) == first


def test_a_line_cut_short_by_a_kill_is_run_again(tmp_path: Path) -> None:
    kept = tmp_path / "runs.jsonl"
    carry_out(TASKS[:3], squared, kept, 0)
    whole = kept.read_text(encoding="utf-8")
    kept.write_text(whole[: len(whole) - 20], encoding="utf-8")
    found = carry_out(TASKS, squared, kept, 0)
    assert [one["square"] for one in found] == [0, 1, 4, 9]
    lines = kept.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 5, "two whole lines, the cut one, and two new ones"
    assert [json.loads(line)["key"] for line in lines[3:]] == ["2", "3"]


def test_processes_give_the_same_records_in_the_order_of_tasks(tmp_path: Path) -> None:
    found = carry_out(TASKS, squared, tmp_path / "runs.jsonl", 2)
    assert [(one["key"], one["square"]) for one in found] == [("0", 0), ("1", 1), ("2", 4), ("3", 9)]


def test_the_file_is_another_one_when_the_code_is(tmp_path: Path) -> None:
    source = tmp_path / "made_by.py"
    source.write_text("one", encoding="utf-8")
    first = kept_file(tmp_path, "study", (str(source),))
    assert first == kept_file(tmp_path, "study", (str(source),))
    source.write_text("other", encoding="utf-8")
    assert first != kept_file(tmp_path, "study", (str(source),))
    assert kept_file(None, "study", (str(source),)) is None


def test_time_during_which_any_run_was_at_work() -> None:
    spans = [(0.0, 60.0), (30.0, 90.0), (600.0, 660.0), (610.0, 620.0)]
    spent = spent_on([{"began": began, "ended": ended, "processor": 30.0} for began, ended in spans])
    assert (spent.runs, spent.elapsed, spent.processor) == pytest.approx((4, 2.5, 2.0))


def test_runs_say_of_which_commit_they_are(tmp_path: Path) -> None:
    def git(*command: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(["git", *who, *command], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    def said() -> str | None:
        commit.cache_clear()
        return commit(tmp_path)

    assert said() is None, "no repository"
    for name in ("src", "docs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "text").write_text("1\n", encoding="utf-8")
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "first"]):
        git(*command)
    clean = git("rev-parse", "--short=10", "HEAD").strip()
    assert said() == clean
    (tmp_path / "docs" / "text").write_text("2\n", encoding="utf-8")
    assert said() == clean, "pages make no runs"
    (tmp_path / "src" / "text").write_text("2\n", encoding="utf-8")
    assert said() == f"{clean}+"
    commit.cache_clear()


def test_pages_say_when_and_by_which_code_their_runs_were_made() -> None:
    runs = [{"began": 1e9, "ended": 1e9 + 60, "processor": 30.0, "commit": "abc"}]
    runs += [{"began": 1e9 + 86_400, "ended": 1e9 + 86_460, "processor": 30.0, "commit": "def+"}]
    spent = spent_on([*runs, {"began": 1e9, "ended": 1e9 + 1, "processor": 0.0}])
    assert (spent.days, spent.commits) == (("2001-09-09", "2001-09-10"), ("abc", "def+"))
    page = StudyPage("name", "Title", Form(smoke=False, out=Path(), data=None))
    page.spent = spent
    assert page._time().startswith("The 3 runs, made 2001-09-09 to 2001-09-10 by the code of commit abc and def+, took")
