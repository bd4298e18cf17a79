"""Processes that treat a ledger badly: they race, are killed, run out of disk or of rights. Started by the tests.

Forking happens here, in a process with one thread. Each command prints one JSON object.
"""

import itertools
import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from understudy.errors import BudgetError, LedgerError, UnderstudyError
from understudy.privacy.cost import Budget, Cost
from understudy.privacy.ledger import Ledger, Mark

BUDGET = Budget(0.25)
COST = Cost(epsilon=BUDGET.epsilon_units)


def charge(ledger: Ledger, run: str, note: str = "") -> None:
    ledger.charge("people", run=run, method="laplace", cost=COST, budget=BUDGET, note=note)


def _racing(processes: int, work: Callable[[int], Sequence[int]]) -> tuple[list[int], int]:
    """The numbers that forked processes come to, added up by place, and how many of the processes failed."""
    reader, writer = os.pipe()
    for process in range(processes):
        if os.fork() == 0:
            os.write(writer, (" ".join(map(str, work(process))) + "\n").encode())
            os._exit(0)
    exits = [os.wait()[1] for _ in range(processes)]
    os.close(writer)
    with os.fdopen(reader) as told:
        counts = [list(map(int, line.split())) for line in told]
    return [sum(column) for column in zip(*counts, strict=True)], sum(status != 0 for status in exits)


def race(path: str, processes: str, attempts: str) -> dict[str, int]:
    """How many charges all processes were granted together."""

    def charging(process: int) -> list[int]:
        ledger, granted = Ledger.open(path), 0
        for attempt in range(int(attempts)):
            with suppress(BudgetError):
                charge(ledger, f"{process}-{attempt}")
                granted += 1
        return [granted]

    (granted,), failed = _racing(int(processes), charging)
    return {"granted": granted, "failed": failed}


def continue_all(path: str, processes: str, attempts: str) -> dict[str, int]:
    """How often racing processes took one run up, and how often they finished it."""

    def continuing(process: int) -> list[int]:
        ledger, taken, finished = Ledger.open(path), 0, 0
        for attempt in range(int(attempts)):
            with suppress(LedgerError):
                receipt = ledger.take_up("run", ledger.newest("run"))
                taken += 1
                mark = Mark(100 * attempt + process + 1, f"{process}" * 64)
                ledger.checkpoint("run", mark, holder=receipt.holder)
                ledger.finish("run", "released", holder=receipt.holder)
                finished += 1
        return [taken, finished]

    (taken, finished), failed = _racing(int(processes), continuing)
    return {"taken": taken, "finished": finished, "failed": failed}


def kill(path: str, marks: str, kills: str, order: str) -> dict[str, int]:
    """Kills that many workers, one after the other, at random moments after their first round."""
    for number in range(int(kills)):
        start = time.monotonic()
        worker, ready = _forked(path, marks, str(number), order)
        os.read(ready, 1)
        os.close(ready)
        round_seconds = time.monotonic() - start  # the moment must be random whatever the load of the machine
        time.sleep(random.uniform(0, round_seconds))
        os.kill(worker, signal.SIGKILL)
        if not os.WIFSIGNALED(os.waitpid(worker, 0)[1]):
            raise SystemExit("a worker ended before it was killed")
    return {"kills": int(kills)}


def _forked(path: str, marks: str, name: str, order: str) -> tuple[int, int]:
    """A worker that loops until it is killed, and the pipe on which it tells that its first round is done."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    parent = os.getppid()
    read = os.open(marks, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    ledger = Ledger.open(path)
    for number in itertools.count():
        if os.getppid() != parent:
            break  # nobody is left to kill this worker
        run = f"{name}-{number}"
        if order == "charge-first":
            charge(ledger, run)
        os.write(read, f"{run}\n".encode())
        if order == "read-first":
            charge(ledger, run)
        if number == 0:
            os.write(writer, b"1")
    os._exit(1)


def fill(path: str, marks: str, most_bytes: str) -> dict[str, str | int]:
    """Charges until the disk, or a limit on file size that stands for it, refuses; marks each read."""
    ledger, number = Ledger.open(path), 0
    _limit(int(most_bytes))
    with open(marks, "w", encoding="utf-8") as read:
        while True:
            try:
                charge(ledger, f"run {number}", note="x" * 500)
            except UnderstudyError as error:
                return {"charged": number, "error": str(error), "code": error.exit_code}
            read.write(f"run {number}\n")
            number += 1


def create(path: str, most_bytes: str) -> dict[str, str | int | bool]:
    """Tries to make a ledger where there is no room for one."""
    _limit(int(most_bytes))
    try:
        Ledger.create(path, "people", Budget(1.0))
    except UnderstudyError as error:
        return {"error": str(error), "code": error.exit_code, "exists": Path(path).exists()}
    return {"error": "", "code": 0, "exists": True}


def unprivileged(path: str) -> dict[str, str | int]:
    """Charges as a user who may not write."""
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    ledger = Ledger.open(path)
    seen = len(ledger.entries())
    try:
        charge(ledger, "unwritten")
    except UnderstudyError as error:
        return {"seen": seen, "error": str(error), "code": error.exit_code}
    return {"seen": seen, "error": "", "code": 0}


def _limit(most_bytes: int) -> None:
    if most_bytes:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))


if __name__ == "__main__":
    commands = {
        "race": race,
        "continue": continue_all,
        "kill": kill,
        "fill": fill,
        "create": create,
        "unprivileged": unprivileged,
    }
    print(json.dumps(commands[sys.argv[1]](*sys.argv[2:])))  # type: ignore[operator]
