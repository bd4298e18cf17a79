"""The benchmark: what is kept is not run again, what was stopped is not started again, the page says what there is."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.bench import Run, missing
from benchmarks.peers import claims
from benchmarks.peers.claims import GRID, grid_check, off_grid
from benchmarks.peers.environment import EnvironmentUnavailable

from benchmarks import bench, standing

OURS, THEIRS = "understudy mst", "mbi mst"


def line(run: Run, error: str | None = None, pairs: float = 0.1) -> dict[str, object]:
    record: dict[str, object] = {"key": run.key, "table": run.table, "epsilon": run.epsilon, "by": run.by}
    record |= {"repeat": run.repeat, "rows": 1304, "columns": 9, "date": "2026-11-19", "error": error}
    record |= {
        "seconds_cpu": 1.0,
        "seconds_wall": 2.0,
        "peak_rss_bytes": 2**28,
        "versions": {run.by.split(" ")[0]: "1.0"},
    }
    return record | ({} if error else {"singles": 0.01, "pairs": pairs, "triples": 0.2})


def test_kept_runs_and_stopped_contestants_are_left_out() -> None:
    grid = [Run(table, 1.0, by, 0) for table in ("titanic", "adult") for by in (OURS, THEIRS)]
    later = Run("titanic", 10.0, THEIRS, 0)
    records = [line(grid[0]), line(grid[1], "stopped at the time limit of 5 s")]
    assert list(missing([*grid, later], records)) == grid[2:]


def test_the_page_names_errors_failures_and_what_was_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "KEPT", tmp_path)
    monkeypatch.setattr(standing, "PAGE", tmp_path / "benchmark.md")
    records = [line(Run("titanic", epsilon, OURS, 0), pairs=0.1 / epsilon) for epsilon in (0.1, 1.0, 10.0)]
    records += [line(Run("titanic", 1.0, THEIRS, 0), pairs=0.3), line(Run("adult", 1.0, THEIRS, 0), "no memory left")]
    records[0]["commit"] = "abc+"
    text = "\n".join(map(json.dumps, records)) + '\n{"key": "cut sh'
    (tmp_path / "all.jsonl").write_text(text, encoding="utf-8")
    page = standing.write_page((OURS, THEIRS), ("titanic", "adult"), (0.1, 1.0, 10.0)).read_text(encoding="utf-8")
    assert "**0.1000 / 0.2000**" in page
    assert "Runs of ours: 1 of commit abc+, 2 of version 0.2.0 under way, before runs noted their commit." in page
    assert "0.3000 / 0.2000" in page
    assert f"`{THEIRS}` on adult at ε = 1: no memory left" in page
    assert f"`{OURS}`: not run in 3 of 6 cells" in page
    assert f"`{THEIRS}`: not run in 2 of 6 cells" in page
    assert (tmp_path / "benchmark-titanic.svg").exists()
    assert not (tmp_path / "benchmark-adult.svg").exists()


def test_claims_of_one_package_leave_those_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str, *_: object) -> list[dict[str, object]]:
        if name == "dpsynth":
            raise EnvironmentUnavailable("dpsynth needs a checkout")
        return [{"peer": name, "claim": "new", "holds": True}]

    target = tmp_path / "results" / "claims.json"
    target.parent.mkdir()
    target.write_text(json.dumps([{"peer": name, "claim": "old"} for name in ("dpsynth", "mbi", "dpmm")]), "utf-8")
    monkeypatch.setattr(claims, "__file__", str(tmp_path / "peers" / "claims.py"))
    monkeypatch.setattr(claims, "checked", found)
    monkeypatch.setattr("sys.argv", ["claims", "--only", "dpsynth", "mbi"])
    claims.main()
    known = [(one["peer"], one["claim"]) for one in json.loads(target.read_text(encoding="utf-8"))]
    assert known == [("mbi", "new"), ("dpmm", "old"), ("dpsynth", "old")]


def test_every_contestant_is_a_listed_peer_or_ours() -> None:
    from benchmarks.peers.environment import peers

    for by in bench.CONTESTANTS:
        package, method = by.split(" ")
        assert package == "understudy" or method in peers()[package].methods


def test_noise_beside_the_count_shows_the_count_and_noise_on_a_grid_does_not() -> None:
    """The check finds floats that only one of two neighbouring counts can reach, and none where noise has a grid."""
    rng = np.random.default_rng(3)
    beside = grid_check("exact", lambda size: rng.normal(0.0, 100.0, size), "noise")
    assert beside["holds"] is False
    on_grid = grid_check("exact", lambda size: np.rint(rng.normal(0.0, 100.0, size) * 2**30) / 2**30, "noise")
    assert on_grid["holds"] is True
    assert off_grid(lambda size: np.full(size, -127.5 + 0.5 / GRID), 127)[1] > 0
