"""Runs of a study: in processes of their own, each kept on disk when it ends, so that a stopped study can go on."""

import json
import multiprocessing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

__all__ = ["Record", "Task", "carry_out"]

Record = dict[str, object]


class Task(Protocol):
    """What one run is told; `key` names it."""

    @property
    def key(self) -> str: ...


AnyTask = TypeVar("AnyTask", bound=Task)


def carry_out(
    tasks: Sequence[AnyTask], work: Callable[[AnyTask], Record], kept: Path | None, processes: int
) -> list[Record]:
    """The records of all tasks in their order; those in the file `kept` are not run again.

    With `processes` of 0 everything runs here. Delete the file to start anew.
    """
    done = _read(kept)
    missing = [task for task in tasks if task.key not in done]
    if processes and missing:
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            for record in pool.imap_unordered(_Keyed(work), missing):
                _keep(record, done, kept)
    else:
        for task in missing:
            _keep(_Keyed(work)(task), done, kept)
    return [done[task.key] for task in tasks]


class _Keyed:
    """The work with the name of its task on the record; a function that travels to other processes."""

    def __init__(self, work: Callable[[AnyTask], Record]) -> None:
        self.work = work

    def __call__(self, task: Task) -> Record:
        return self.work(task) | {"key": task.key}


def _keep(record: Record, done: dict[str, Record], kept: Path | None) -> None:
    done[str(record["key"])] = record
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, allow_nan=False) + "\n")


def _read(kept: Path | None) -> dict[str, Record]:
    if kept is None or not kept.exists():
        return {}
    lines = kept.read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines if line.endswith("}")]
    return {str(record["key"]): record for record in records}
