"""Runs are processes of their own: they outlive the server, can be cancelled, and tell the truth after being killed."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import understudy as us

pytest.importorskip("starlette", reason="needs the extra [studio]")

from tests.studio.client import Client
from understudy.studio.runs import Runs, StudioRun
from understudy.studio.workspace import Choices, Workspace, read_json, write_json


def until(what: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def demo_settings(workspace: Workspace, **more: object) -> dict[str, object]:
    """A run of some seconds, charged to a ledger of its own."""
    workspace.begin_demo()
    ledger = us.Ledger.create(workspace.ledger_path, "voters", us.Budget(10.0, 1e-6))
    return {
        "kind": "release", "name": "made", "table": workspace.absolute("demo-voters.duckdb::voters"), "method": "mst",
        "epsilon": 1.0, "delta": 1e-9, "ledger": str(workspace.ledger_path), "dataset": "voters",
        "ledger_sequence": ledger.entries()[-1].sequence, "out": str(workspace.root / "made"), "seconds": 9.0, **more,
    }  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture
def run(workspace: Workspace) -> StudioRun:
    return Runs(workspace).start(demo_settings(workspace), us.demo.schema_text())


def again(run: StudioRun, workspace: Workspace) -> StudioRun:
    found = Runs(workspace).find(run.key)
    assert found is not None
    return found


def measuring(run: StudioRun) -> None:
    """Waits until rows are being measured, which is after the charge."""
    until(lambda: read_json(run.place / "state.json").get("stage") in ("prepare", "measure"))


def charges(workspace: Workspace) -> list[str]:
    entries = us.Ledger.open(workspace.ledger_path).entries()
    outcomes = {one.run: one.outcome for one in entries if one.kind == "finish"}
    return [outcomes.get(one.run, "") for one in entries if one.kind == "charge"]


def test_a_run_that_is_cancelled_stays_charged(run: StudioRun, workspace: Workspace) -> None:
    measuring(run)
    Runs(workspace).cancel(run)
    until(lambda: not again(run, workspace).working)
    ended = again(run, workspace)
    assert ended.outcome == "cancelled"
    assert "ε = 1" in ended.end["message"]
    assert "stands" in ended.end["message"]
    assert charges(workspace) == ["failed"]
    assert not (workspace.root / "made").exists()
    page = Client(workspace.root).enter().get(f"/runs/{run.key}")
    assert "It was cancelled" in page.words
    assert "no release was written" in page.words


def test_a_run_that_is_cancelled_before_it_is_charged_costs_nothing(run: StudioRun, workspace: Workspace) -> None:
    Runs(workspace).cancel(run)  # its process has not even begun to read its settings
    until(lambda: not again(run, workspace).working)
    assert again(run, workspace).outcome in ("cancelled", "interrupted")
    assert charges(workspace) == []


def test_a_run_that_is_killed_says_that_its_charge_stands(run: StudioRun, workspace: Workspace) -> None:
    measuring(run)
    os.kill(read_json(run.place / "state.json")["pid"], signal.SIGKILL)
    until(lambda: not again(run, workspace).working)
    assert again(run, workspace).outcome == "interrupted"
    client = Client(workspace.root).enter()
    assert "its charge, which stands" in client.get(f"/runs/{run.key}").words
    assert "Interrupted" in client.get("/").words
    assert client.post(f"/runs/{run.key}/resume").status == 303
    until(lambda: not again(run, workspace).working)
    page = client.get(f"/runs/{run.key}")
    assert "keeps no checkpoints" in page.words
    assert "its charge, which stands" in page.words
    assert charges(workspace) == [""]
    assert client.post(f"/runs/{run.key}/forget").status == 303
    assert client.get(f"/runs/{run.key}").status == 404


def test_a_run_outlives_the_server_that_began_it(workspace: Workspace) -> None:
    """Its server is a process of its own here, which is killed while rows are being measured."""
    settings = demo_settings(workspace)
    code = (
        "import sys, json, time; from pathlib import Path; import understudy as us\n"
        "from understudy.studio.runs import Runs; from understudy.studio.workspace import Workspace\n"
        "run = Runs(Workspace(Path(sys.argv[1]))).start(json.loads(sys.argv[2]), us.demo.schema_text())\n"
        "print(run.key, flush=True); time.sleep(600)"
    )
    import json

    command = [sys.executable, "-c", code, str(workspace.root), json.dumps(settings)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    key = server.stdout.readline().strip()
    run = Runs(workspace).find(key)
    assert run is not None
    measuring(run)
    server.kill()
    server.wait()
    server.stdout.close()
    assert again(run, workspace).working
    client = Client(workspace.root).enter()
    status = client.get(f"/runs/{key}/status")
    assert "% done" in status.words
    assert 'hx-trigger="every 1s"' in status.text
    assert client.until_done(f"/runs/{key}") == "released"
    assert us.verify(workspace.root / "made") == []
    assert charges(workspace) == ["released"]


def test_a_run_that_works_is_not_started_or_forgotten(run: StudioRun, workspace: Workspace) -> None:
    runs = Runs(workspace)
    measuring(run)
    number = read_json(run.place / "state.json")["pid"]
    runs.resume(run)
    runs.forget(run)
    assert runs.start(dict(run.settings)).key == run.key
    assert again(run, workspace).working
    assert read_json(run.place / "state.json")["pid"] == number
    runs.cancel(run)
    until(lambda: not again(run, workspace).working)


@pytest.mark.parametrize("meanwhile", ["released", "begun anew"])
def test_a_run_that_came_to_its_end_meanwhile_is_not_taken_up_again(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """Whoever presses waits for the lock; what was on their page may be past when they get it."""
    runs, spawned = Runs(workspace), list[Path]()
    monkeypatch.setattr(Runs, "_spawn", lambda self, place: spawned.append(place))
    run = runs.start({"kind": "trial", "name": "one"})
    spawned.clear()
    assert run.outcome == "interrupted"
    if meanwhile == "released":
        write_json(run.place / "end.json", {"outcome": "released"})
    else:
        runs.forget(run)
        runs.start({"kind": "trial", "name": "one", "epsilon": 2.0})
        spawned.clear()
    kept = [again(run, workspace).settings, again(run, workspace).outcome]
    runs.resume(run)
    assert not spawned
    assert [again(run, workspace).settings, again(run, workspace).outcome] == kept


@pytest.mark.slow
def test_a_look_at_a_run_does_not_keep_it_from_starting(workspace: Workspace) -> None:
    """Whoever looks holds the lock of the folder for a moment; a start must wait for that, not fail."""
    runs = Runs(workspace)
    settings = demo_settings(workspace, table=str(workspace.root / "gone.csv"))
    run = runs.start(settings, us.demo.schema_text())
    until(lambda: not again(run, workspace).working)
    with (run.place / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        threading.Timer(0.3, lambda: fcntl.flock(lock, fcntl.LOCK_UN)).start()
        runs._spawn(run.place)
    until(lambda: not again(run, workspace).working)
    assert again(run, workspace).outcome == "failed"


def test_a_table_that_is_gone_costs_nothing(workspace: Workspace) -> None:
    settings = demo_settings(workspace, table=str(workspace.root / "gone.csv"))
    run = Runs(workspace).start(settings, us.demo.schema_text())
    until(lambda: not again(run, workspace).working)
    ended = again(run, workspace)
    assert ended.outcome == "failed"
    assert "gone.csv" in ended.end["message"]
    assert charges(workspace) == []
    page = Client(workspace.root).enter().get(f"/runs/{run.key}")
    assert str(workspace.root) not in page.text


def test_files_beside_the_tables_do_not_stand_in_for_modules(workspace: Workspace) -> None:
    for name in ("numpy", "json", "understudy"):
        (workspace.root / f"{name}.py").write_text("open('taken over', 'w').close()\n", encoding="utf-8")
    settings = demo_settings(workspace, table=str(workspace.root / "gone.csv"))
    run = Runs(workspace).start(settings, us.demo.schema_text())
    until(lambda: not again(run, workspace).working)
    assert again(run, workspace).outcome == "failed"
    assert not (workspace.root / "taken over").exists()


def test_shares_and_times_follow_the_stages(tmp_path: Path) -> None:
    def standing(stage: str, done: float) -> StudioRun:
        state = {"stage": stage, "done": done, "began": time.time() - 10.0}
        return StudioRun("x", tmp_path, {"kind": "release", "seconds": 30.0}, state, {}, working=True)

    shares = [standing(*one).share for one in (("check", 0.0), ("charge", 0.0), ("measure", 0.5), ("write", 1.0))]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, pytest.approx(1.0))
    assert standing("check", 0.0).seconds_left == pytest.approx(20.0, abs=0.5)
    halfway = standing("measure", 0.5)
    assert halfway.seconds_left == pytest.approx(10.0 * (1 - halfway.share) / halfway.share, rel=0.05)
    assert standing("nothing", 1.0).share == 0.0
    told = [state for _, state in standing("prepare", 0.5).stages]
    assert told == ["done", "done", "now", "to come", "to come", "to come"]
    assert {state for _, state in standing("nothing", 0.0).stages} == {"to come"}


def test_what_is_kept_is_for_its_owner_alone(run: StudioRun, workspace: Workspace) -> None:
    until(lambda: (run.place / "state.json").exists())
    assert workspace.kept.stat().st_mode & 0o077 == 0
    assert (run.place / "settings.json").stat().st_mode & 0o077 == 0
    Runs(workspace).cancel(run)
    until(lambda: not again(run, workspace).working)


def test_a_link_in_the_place_of_the_studios_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / ".understudy-studio").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(us.errors.UsageError, match="is a link"):
        _ = Workspace(tmp_path / "own").kept


def test_a_studios_folder_that_others_can_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".understudy-studio").mkdir(mode=0o755)
    (tmp_path / ".understudy-studio").chmod(0o755)
    with pytest.raises(us.errors.UsageError, match="open to other users"):
        _ = Workspace(tmp_path).kept
    with pytest.raises(us.errors.UsageError, match="open to other users"):
        Client(tmp_path)
    assert Client(tmp_path, read_only=True).enter().get("/").status == 200


@pytest.mark.parametrize("table", ["../outside.csv", "/etc/passwd", "link.csv", "../outside.duckdb::voters"])
def test_a_draft_that_leads_outside_is_not_run(tmp_path: Path, table: str) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "outside.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (tmp_path / "own" / "link.csv").symlink_to(tmp_path / "outside.csv")
    with pytest.raises(us.errors.UsageError, match="not in the studio's folder"):
        Workspace(tmp_path / "own").absolute(table)


def test_undo_outlives_the_studio_and_leaves_what_was_changed_by_other_means(workspace: Workspace) -> None:
    draft = workspace.begin_demo()
    text = draft.text
    draft.write(f"{text}# one\n")
    later = Workspace(workspace.root).draft(draft.key)
    assert later is not None
    later.write(f"{text}# two\n")
    assert later.undo()
    assert draft.text == f"{text}# one\n"
    draft.schema_path.write_text(f"{text}# by hand\n", encoding="utf-8")
    assert not draft.can_undo
    assert not later.undo()
    assert draft.text == f"{text}# by hand\n"
    draft.schema_path.write_text(f"{text}# one\n", encoding="utf-8")
    assert later.undo()
    assert draft.text == text
    assert not draft.can_undo


def test_the_way_back_is_no_longer_than_it_may_be(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = workspace.begin_demo()
    monkeypatch.setattr("understudy.studio.workspace._MOST_UNDO_LETTERS", 3 * len(draft.text))
    for number in range(9):
        draft.write(f"{us.demo.schema_text()}# {number}\n")
    steps = 0
    while draft.undo():
        steps += 1
    assert steps == 2
    assert draft.text.endswith("# 6\n")


def test_a_draft_that_was_thrown_away_comes_back_as_it_was(workspace: Workspace) -> None:
    draft = workspace.begin_demo()
    draft.write(f"{draft.text}# mine\n")
    draft.choose(Choices(2.0, 0.0, "mwem", 1000))
    workspace.throw_away(draft)
    assert workspace.drafts() == []
    (thrown,) = workspace.drafts(thrown_away=True)
    workspace.take_back(thrown)
    (back,) = Workspace(workspace.root).drafts()
    assert (back.key, back.text.endswith("# mine\n"), back.choices.method) == (draft.key, True, "mwem")
    assert workspace.drafts(thrown_away=True) == []
    workspace.throw_away(back)
    fresh = workspace.begin_demo()
    assert (fresh.text, fresh.choices, fresh.can_undo) == (us.demo.schema_text(), Choices(), False)
    assert workspace.drafts(thrown_away=True) == []


def test_a_folder_that_cannot_be_written_into_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / ".understudy-studio").write_text("", encoding="utf-8")
    with pytest.raises(us.errors.UsageError, match=r"nothing can be written into .* read-only"):
        Client(tmp_path)
    assert Client(tmp_path, read_only=True).enter().get("/").status == 200


def test_a_folder_whose_name_means_something_else_is_refused(tmp_path: Path) -> None:
    for name in ("a*b", "a::b", "[a]"):
        (tmp_path / name).mkdir()
        with pytest.raises(us.errors.UsageError, match="characters"):
            Workspace(tmp_path / name)


def test_a_draft_keeps_its_choices(workspace: Workspace) -> None:
    draft = workspace.begin_demo()
    draft.choose(Choices(2.0, 0.0, "mwem", 1000))
    assert Workspace(workspace.root).draft(draft.key).choices == Choices(2.0, 0.0, "mwem", 1000)
