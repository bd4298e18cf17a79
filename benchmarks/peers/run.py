"""Run a peer on a job folder, in an environment of its own, within limits of time and memory.

    python -m benchmarks.peers.run mbi INPUT OUTPUT               # from the root of the repository
    python -m benchmarks.peers.run mbi INPUT OUTPUT --cache FOLDER --minutes 20 --gibibytes 8

Each repeat is a process of its own, so that every time includes what a first run costs (compilation, say) and every
peak of memory is that of one run. INPUT and OUTPUT are described in README.md. Linux measures and bounds the memory of
the whole process group; elsewhere only the adapter's own peak is reported and no bound holds.
"""

import argparse
import hashlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .contract import RESULT, TABLE, read_settings
from .environment import ROOT, EnvironmentUnavailable, Peer, cache_folder, checked_out, environment, peers

POLL_SECONDS = 0.1
OURS = "understudy"
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Limits:
    """The most that one repeat may take."""

    seconds: float = 1_800.0
    memory_bytes: int = 16 * 2**30


def group_bytes(group: int) -> int:
    """Resident memory of all processes of a group; shared pages count once for each (0 where /proc is missing)."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[2]) == group:
                total += int((folder / "statm").read_text(encoding="ascii").split()[1]) * PAGE
        except (OSError, IndexError, ValueError):
            continue  # the process has ended since it was listed
    return total


def watch(
    command: list[str], *, folder: Path, variables: dict[str, str], log: Path, limits: Limits
) -> dict[str, object]:
    """Run a command in a group of its own; what it used, and the limit that ended it if one did."""
    start, peak, reason = time.perf_counter(), 0, None
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | variables,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        while True:
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            peak = max(peak, group_bytes(process.pid))
            if reason is None and time.perf_counter() - start > limits.seconds:
                reason = f"stopped at the time limit of {limits.seconds:g} s"
            elif reason is None and peak > limits.memory_bytes:
                reason = f"stopped at the memory limit of {limits.memory_bytes / 2**30:g} GiB"
            if reason:
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(POLL_SECONDS)
        process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "seconds_wall": time.perf_counter() - start,
        "seconds_cpu": used.ru_utime + used.ru_stime,
        "peak_rss_bytes": peak,
        "exit": process.returncode,
        "stopped": reason,
    }


def repeat(
    command: list[str], output: Path, index: int, *, variables: dict[str, str], limits: Limits
) -> dict[str, object]:
    """One repeat of an adapter: its own report, completed by what was seen from outside."""
    log = output / f"log-{index}.txt"
    seen = watch([*command, str(index)], folder=output, variables=variables, log=log, limits=limits)
    report_path = output / f"run-{index}.json"
    if report_path.exists() and not seen["stopped"]:
        report: dict[str, object] = json.loads(report_path.read_text(encoding="utf-8"))
        report["peak_rss_bytes"] = max(int(str(report["peak_rss_bytes"])), int(str(seen["peak_rss_bytes"])))
    else:
        tail = " ".join(log.read_text(encoding="utf-8", errors="replace").split()[-30:])
        error = seen["stopped"] or f"the adapter ended with {seen['exit']} before its report: {tail}"
        report = {"error": error, "peak_rss_bytes": seen["peak_rss_bytes"], "versions": {}, "notes": []}
    report_path.unlink(missing_ok=True)
    return report | {"process": {name: seen[name] for name in ("seconds_wall", "seconds_cpu")}}


def collected(peer: str, folder: Path, runs: list[dict[str, object]]) -> dict[str, object]:
    """The contents of result.json: medians of time over the repeats, the largest peak, the first error."""
    settings = read_settings(folder)
    good = [run for run in runs if run["error"] is None]
    errors = [str(run["error"]) for run in runs if run["error"] is not None]
    return {
        "peer": peer,
        "settings": settings,
        "table_sha256": hashlib.sha256((folder / TABLE).read_bytes()).hexdigest(),
        "error": errors[0] if errors else None,
        "seconds_wall": statistics.median(float(str(run["seconds_wall"])) for run in good) if good else None,
        "seconds_cpu": statistics.median(float(str(run["seconds_cpu"])) for run in good) if good else None,
        "peak_rss_bytes": max((int(str(run["peak_rss_bytes"])) for run in runs), default=None),
        "versions": runs[0].get("versions", {}) if runs else {},
        "notes": runs[0].get("notes", []) if runs else [],
        "runs": [{name: value for name, value in run.items() if name not in ("versions", "notes")} for run in runs],
    }


def run_adapter(
    name: str, command: list[str], folder: Path, output: Path, *, variables: dict[str, str], limits: Limits
) -> dict[str, object]:
    """Run all repeats of an adapter command and write result.json, which is also returned."""
    output.mkdir(parents=True, exist_ok=True)
    runs: list[dict[str, object]] = []
    for index in range(int(str(read_settings(folder)["repeats"]))):
        runs.append(repeat(command, output, index, variables=variables, limits=limits))
        result = collected(name, folder, runs)
        (output / RESULT).write_text(json.dumps(result, indent=1, ensure_ascii=False), encoding="utf-8")
        if runs[-1]["error"] is not None:
            break
    return result


def run_peer(
    name: str,
    folder: Path,
    output: Path,
    *,
    cache: Path | None = None,
    python: str | None = None,
    limits: Limits = Limits(),
    checkouts: Mapping[str, Path] | None = None,
) -> dict[str, object]:
    """Run a listed peer on a job folder; a peer that cannot be installed gives a result with that error."""
    listed = peers()
    if name not in listed:
        raise SystemExit(f"no peer {name}; listed are {', '.join(listed)}")
    peer, method = listed[name], str(read_settings(folder)["method"])
    if method not in peer.methods:
        raise SystemExit(f"{name} has no method {method} here; it has {', '.join(peer.methods)}")
    folder, output = folder.resolve(), output.resolve()
    try:
        paths = [ROOT, *checked_out(peer, checkouts or {})]
        interpreter = environment(peer, cache_folder(cache), python)
    except EnvironmentUnavailable as unavailable:
        output.mkdir(parents=True, exist_ok=True)
        result = collected(name, folder, []) | {"error": str(unavailable)}
        (output / RESULT).write_text(json.dumps(result, indent=1, ensure_ascii=False), encoding="utf-8")
        return result
    return run_adapter(
        name,
        adapter_command(interpreter, peer, method, folder, output),
        folder,
        output,
        variables=dict(peer.variables) | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
        limits=limits,
    )


def run_ours(folder: Path, output: Path, *, limits: Limits = Limits()) -> dict[str, object]:
    """Run understudy itself on a job folder, in this environment and through the same contract.

    The package is that of this tree, whatever the environment has installed.
    """
    folder, output = folder.resolve(), output.resolve()
    command = [sys.executable, "-m", "benchmarks.peers.ours", str(folder), str(output)]
    return run_adapter(
        OURS,
        command,
        folder,
        output,
        variables={"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
        limits=limits,
    )


def adapter_command(interpreter: Path, peer: Peer, method: str, folder: Path, output: Path) -> list[str]:
    """The command of one repeat, all but its number."""
    return [
        str(interpreter),
        "-W",
        "ignore",
        "-m",
        f"benchmarks.peers.{peer.methods[method]}",
        str(folder),
        str(output),
    ]


def main() -> None:
    """Run one peer and print its result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=[OURS, *sorted(peers())])
    parser.add_argument("input", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--cache", type=Path, help="folder of the environments (default: the user's cache)")
    parser.add_argument("--python", help="Python to make the environment with")
    parser.add_argument(
        "--checkout", action="append", default=[], metavar="OWNER/NAME=FOLDER", help="of a peer that is not packaged"
    )
    parser.add_argument("--minutes", type=float, default=30.0, help="most time for one repeat")
    parser.add_argument("--gibibytes", type=float, default=16.0, help="most memory for one repeat")
    given = parser.parse_args()
    limits = Limits(seconds=given.minutes * 60, memory_bytes=int(given.gibibytes * 2**30))
    if given.peer == OURS:
        result = run_ours(given.input, given.output, limits=limits)
    else:
        folders = {name: Path(folder) for name, _, folder in (one.partition("=") for one in given.checkout)}
        result = run_peer(
            given.peer,
            given.input,
            given.output,
            cache=given.cache,
            python=given.python,
            limits=limits,
            checkouts=folders,
        )
    print(json.dumps(result, indent=1, ensure_ascii=False))
    sys.exit(0 if result["error"] is None else 1)


if __name__ == "__main__":
    main()
