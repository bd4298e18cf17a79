import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from understudy.compare.runs import PAUSE, ProcessEnding, ProcessLimits, WatchedProcess, resident_bytes

ROOMY = ProcessLimits(60.0, 2**34)


def watched(arguments: list[str], limits: ProcessLimits, log: Path) -> ProcessEnding:
    """Runs one process to its end."""
    process = WatchedProcess(arguments, limits, log)
    while (ending := process.ending()) is None:
        time.sleep(PAUSE)
    process.stop()
    return ending


def test_a_process_that_ends_by_itself_keeps_its_status(tmp_path: Path) -> None:
    ending = watched(["-c", "print('said'); raise SystemExit(3)"], ROOMY, tmp_path / "log")
    assert (ending.how, ending.status) == ("exit", 3)
    assert (tmp_path / "log").read_text().strip() == "said"


def test_files_of_the_folder_one_is_in_do_not_stand_in_for_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fractions.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    assert watched(["-m", "understudy", "--help"], ROOMY, tmp_path / "log").status == 0


def test_a_process_that_runs_too_long_is_killed(tmp_path: Path) -> None:
    ending = watched(["-c", "import time; time.sleep(60)"], ProcessLimits(0.3, 2**34), tmp_path / "log")
    assert ending.how == "time"
    assert ending.seconds < 30


def test_a_process_that_takes_too_much_memory_is_killed(tmp_path: Path) -> None:
    hungry = "import time; held = bytearray(300 * 2**20); held[::4096] = b'x' * len(held[::4096]); time.sleep(60)"
    ending = watched(["-c", hungry], ProcessLimits(60.0, 100 * 2**20), tmp_path / "log")
    assert ending.how == "memory"
    assert ending.peak_bytes > 100 * 2**20


def test_memory_of_a_process_that_is_gone_is_nothing() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert resident_bytes(gone.pid) == 0
    assert resident_bytes(os.getpid()) > 2**20


def test_no_child_outlives_a_watcher_that_is_killed(tmp_path: Path) -> None:
    child = "from understudy.compare.runs import end_with_parent as end; import os, time; end();"
    child += f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    watcher = (
        "from pathlib import Path; from understudy.compare.runs import ProcessLimits, WatchedProcess; import time;"
    )
    watcher += f"WatchedProcess(['-c', {child!r}], ProcessLimits(60.0, 2**34), Path({str(tmp_path / 'log')!r}));"
    watcher += "time.sleep(60)"
    running = subprocess.Popen([sys.executable, "-c", watcher])
    number = _number_in(tmp_path / "pid")
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert _ends(number)


def test_no_child_outlives_a_watcher_even_while_it_cannot_look_at_its_input(tmp_path: Path) -> None:
    """As while it is starting, or compiling a kernel: then no thread of the interpreter gets its turn."""
    child = "import os, re;"
    child += f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); re.match('(a*)*b', 'a' * 60)"
    watcher = (
        "from pathlib import Path; from understudy.compare.runs import ProcessLimits, WatchedProcess; import time;"
    )
    watcher += f"WatchedProcess(['-c', {child!r}], ProcessLimits(60.0, 2**34), Path({str(tmp_path / 'log')!r}));"
    watcher += "time.sleep(60)"
    running = subprocess.Popen([sys.executable, "-c", watcher])
    number = _number_in(tmp_path / "pid")
    running.send_signal(signal.SIGKILL)
    running.wait()
    try:
        assert _ends(number)
    finally:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


@pytest.mark.parametrize(
    ("number", "status", "jobs"),
    [
        pytest.param(signal.SIGKILL, -9, 1, marks=pytest.mark.slow),
        (signal.SIGKILL, -9, 2),
        pytest.param(signal.SIGTERM, 143, 2, marks=pytest.mark.slow),
        (signal.SIGINT, 130, 2),
    ],
)
def test_a_study_that_is_stopped_takes_its_processes_along(tmp_path: Path, number: int, status: int, jobs: int) -> None:
    from tests.cli.workspace import Workspace

    place = Workspace.make(tmp_path)
    words = ["compare", place.table, "--schema", place.schema, "--method", "aim", "--epsilon", 1, "--jobs", jobs]
    command = [sys.executable, "-m", "understudy", *map(str, words), "--delta", "1e-6", "--out", "study"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    workers = _children_of(running, jobs)
    running.send_signal(number)
    assert running.wait(timeout=300) == status
    assert all(map(_ends, workers))
    if number != signal.SIGKILL:
        assert [path.name for path in (tmp_path / "study").glob(".*")] == []


def _children_of(process: subprocess.Popen[bytes], number: int) -> list[int]:
    """So many children at the same time, waited for as long as a busy machine may need."""
    while process.poll() is None:
        found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if len(found) == number:
            return list(map(int, found))
        time.sleep(0.02)
    raise AssertionError("so many children never ran at a time")


def _number_in(place: Path) -> int:
    for _ in range(600):
        if place.exists() and place.read_text():
            return int(place.read_text())
        time.sleep(0.05)
    raise AssertionError("the child never started")


def _ends(process: int) -> bool:
    """Whether the process is gone soon (a zombie that nobody has waited for yet counts as gone)."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False
