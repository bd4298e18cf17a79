"""Running adapters within limits, collecting results, comparing them, and saying why a peer cannot be installed."""

import json
import os
import sys
import time
from pathlib import Path

import pytest
from benchmarks.peers import environment
from benchmarks.peers import run as runner
from benchmarks.peers.compare import compare
from benchmarks.peers.contract import ContractError
from benchmarks.peers.run import ROOT, Limits, run_adapter

from tests.benchmarks.test_peers_contract import job_folder

ECHO = """
import sys
sys.path.insert(0, {root!r})
from benchmarks.peers.contract import serve
def echo(job):
    {body}
    return job.columns
serve(echo, packages=("numpy",), notes=("an echo",))
"""


def ran(folder: Path, output: Path, body: str = "pass", limits: Limits | None = None) -> dict[str, object]:
    script = folder / "echo.py"
    script.write_text(ECHO.format(root=str(ROOT), body=body), encoding="utf-8")
    command = [sys.executable, str(script), str(folder), str(output)]
    return run_adapter("echo", command, folder, output, variables={}, limits=limits or Limits(seconds=600))


def test_result_holds_times_memory_versions_and_rows(tmp_path: Path) -> None:
    result = ran(job_folder(tmp_path / "in", repeats=2), tmp_path / "out")
    assert result["error"] is None
    assert [run["synthetic"] for run in result["runs"]] == ["synthetic-0.parquet", "synthetic-1.parquet"]  # type: ignore[attr-defined]
    assert {"python", "numpy"} == set(result["versions"])  # type: ignore[call-overload]
    assert 10 * 2**20 < int(str(result["peak_rss_bytes"])) < 2**30
    assert json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8")) == result


def test_time_limit_ends_the_adapter(tmp_path: Path) -> None:
    start = time.perf_counter()
    result = ran(job_folder(tmp_path / "in"), tmp_path / "out", "import time; time.sleep(60)", Limits(seconds=2))
    assert time.perf_counter() - start < 30
    assert "time limit of 2 s" in str(result["error"])
    assert result["seconds_wall"] is None


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory of a group is read from /proc")
def test_memory_limit_ends_the_adapter(tmp_path: Path) -> None:
    body = "import time; held = bytearray(b'x') * (400 * 2**20); time.sleep(30)"
    result = ran(job_folder(tmp_path / "in"), tmp_path / "out", body, Limits(seconds=600, memory_bytes=300 * 2**20))
    assert "memory limit" in str(result["error"])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("raise ValueError('no such table')", "ValueError: no such table"),
        ("import os; os._exit(3)", "ended with 3"),
        ("job.columns['a'][0] = 9", 'column "a" has codes outside 0..1'),
    ],
)
def test_failure_is_reported_not_raised(tmp_path: Path, body: str, expected: str) -> None:
    result = ran(job_folder(tmp_path / "in"), tmp_path / "out", body)
    assert expected in str(result["error"])


def test_comparison_prints_ratios_and_refuses_another_budget(tmp_path: Path) -> None:
    folder = job_folder(tmp_path / "in")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for output, seconds in ((ours, 0.5), (theirs, 5.0)):
        ran(folder, output)
        result = json.loads((output / "result.json").read_text(encoding="utf-8"))
        result["seconds_wall"] = seconds
        (output / "result.json").write_text(json.dumps(result), encoding="utf-8")
    text = compare(folder, ours, [theirs])
    assert "5 (10×)" in text
    result["settings"]["epsilon"] = 2.0
    (theirs / "result.json").write_text(json.dumps(result), encoding="utf-8")
    with pytest.raises(ContractError, match="different ε"):
        compare(folder, ours, [theirs])


def test_every_listed_peer_is_pinned_and_has_its_adapters() -> None:
    listed = environment.peers()
    assert set(listed) == {"mbi", "dpmm", "smartnoise-synth", "DataSynthesizer", "dpsynth", "margnet"}
    for peer in listed.values():
        assert all("==" in package for package in peer.packages)
        assert all((environment.HERE / f"{module}.py").exists() for module in peer.methods.values())


def test_environment_that_cannot_be_installed_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    peer = environment.Peer("absent", ("understudy-absent-peer==1.0",), (version,), {}, {})
    with pytest.raises(
        environment.EnvironmentUnavailable, match=r"absent cannot be installed here: .*understudy-absent"
    ):
        environment.environment(peer, tmp_path)
    assert not list(tmp_path.glob("*/ready.json"))


def test_a_peer_that_is_not_packaged_needs_a_checkout(tmp_path: Path) -> None:
    peer = environment.peers()["dpsynth"]
    with pytest.raises(environment.EnvironmentUnavailable, match=r"--checkout google/dpsynth=FOLDER"):
        environment.checked_out(peer, {})
    (tmp_path / "src").mkdir()
    given = {"google/dpsynth": tmp_path, "ryan112358/mbi": tmp_path}
    assert environment.checked_out(peer, given) == [tmp_path.resolve(), (tmp_path / "src").resolve()]


def test_python_and_cache_folder_are_checked(tmp_path: Path) -> None:
    peer = environment.Peer("old", (), ("2.1",), {}, {})
    with pytest.raises(environment.EnvironmentUnavailable, match=r"needs Python 2\.1"):
        environment.python_for(peer)
    with pytest.raises(environment.EnvironmentUnavailable, match="outside the repository"):
        environment.cache_folder(ROOT / "build")
    assert environment.cache_folder(tmp_path) == tmp_path.resolve()


def test_our_runs_take_the_package_of_this_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what the environment has installed, which may be another tree's: runs note this tree's commit."""
    seen: dict[str, object] = {}
    monkeypatch.setattr(runner, "run_adapter", lambda *_, variables, limits: seen.update(variables))
    runner.run_ours(tmp_path, tmp_path)
    first = Path(str(seen["PYTHONPATH"]).split(os.pathsep)[0])
    assert (first / "understudy").samefile(Path(runner.__file__).parents[2] / "src" / "understudy")
