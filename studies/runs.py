"""Runs of a study: in processes of their own, each kept on disk when it ends, so that a stopped study can go on."""

import hashlib
import json
import multiprocessing
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar

import understudy

__all__ = ["Record", "Spent", "Task", "carry_out", "commit", "kept_file", "spent_on"]

Record = dict[str, object]
ROOT = Path(__file__).parents[1]
MAKING = ("src", "studies", "benchmarks/*.py", "benchmarks/peers")
"""What makes runs; pages and kept runs may differ from the commit."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Every process works alone: libraries are told not to share its work out."""


class Task(Protocol):
    """What one run is told; `key` names it."""

    @property
    def key(self) -> str: ...


AnyTask = TypeVar("AnyTask", bound=Task)


@dataclass(frozen=True)
class Spent:
    """What runs took: how many, minutes during which any of them was at work, and minutes of processors.

    And the days on which they were made, and the commits of the code that made them.
    """

    runs: int
    elapsed: float
    processor: float
    days: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()


def kept_file(keep: Path | None, study: str, made_by: Iterable[str]) -> Path | None:
    """The file in the folder `keep` for the runs of a study as this code makes them.

    Its name changes with every source file of the package and with the files named in `made_by`, so that runs of other
    code are never taken for runs of this one.
    """
    if keep is None:
        return None
    digest = hashlib.sha256()
    package = sorted(Path(understudy.__file__).parent.rglob("*.py"))
    for file in (*package, *sorted(map(Path, made_by))):
        digest.update(file.name.encode() + file.read_bytes())
    return keep / f"{study}-{digest.hexdigest()[:12]}.jsonl"


def carry_out(
    tasks: Sequence[AnyTask], work: Callable[[AnyTask], Record], kept: Path | None, processes: int
) -> list[Record]:
    """The records of all tasks in their order; those in the file `kept` are not run again.

    With `processes` of 0 everything runs here. Delete the file to start anew. Every record tells when its run began and
    ended, and what it took of a processor.
    """
    done = _read(kept)
    missing = [task for task in tasks if task.key not in done]
    if processes and missing:
        for name in THREADS:
            os.environ.setdefault(name, "1")
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            for record in pool.imap_unordered(_Timed(work), missing):
                _keep(record, done, kept)
    else:
        for task in missing:
            _keep(_Timed(work)(task), done, kept)
    return [done[task.key] for task in tasks]


def spent_on(records: Sequence[Record]) -> Spent:
    """The time of runs, over all sittings."""
    spans = sorted((float(str(one["began"])), float(str(one["ended"]))) for one in records)
    elapsed, until = 0.0, 0.0
    for began, ended in spans:
        elapsed += max(0.0, ended - max(began, until))
        until = max(until, ended)
    processor = sum(float(str(one["processor"])) for one in records) / 60
    days = sorted({datetime.fromtimestamp(began, UTC).date().isoformat() for began, _ in spans})
    commits = dict.fromkeys(str(one["commit"]) for one in records if one.get("commit"))
    return Spent(len(records), elapsed / 60, processor, tuple(days), tuple(commits))


@cache
def commit(root: Path = ROOT) -> str | None:
    """The commit of the code in a folder, with a plus where files that git knows differ; None outside a repository."""
    said = []
    code = ["status", "--porcelain", "--untracked-files=no", "--", *MAKING]
    for command in (["rev-parse", "--short=10", "HEAD"], code):
        try:
            ended = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True, check=False)
        except OSError:
            return None
        if ended.returncode:
            return None
        said.append(ended.stdout.strip())
    return said[0] + ("+" if said[1] else "")


class _Timed:
    """The work with the name of its task and its times on the record; a function that travels to other processes."""

    def __init__(self, work: Callable[[AnyTask], Record]) -> None:
        self.work = work

    def __call__(self, task: Task) -> Record:
        began, before = time.time(), time.process_time()
        record = self.work(task)
        times = {"began": began, "ended": time.time(), "processor": time.process_time() - before}
        return record | times | {"key": task.key, "commit": commit()}


def _keep(record: Record, done: dict[str, Record], kept: Path | None) -> None:
    done[str(record["key"])] = record
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def _read(kept: Path | None) -> dict[str, Record]:
    """Finished runs; a line that a kill cut short is left out."""
    found: dict[str, Record] = {}
    if kept is None or not kept.exists():
        return found
    text = kept.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):
        with kept.open("a", encoding="utf-8") as file:
            file.write("\n")
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        found[str(record["key"])] = record
    return found
