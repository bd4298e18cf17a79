"""A command in a process that a fault strikes: at the n-th thing that it does to files of one place.

What is counted are calls of Python: files opened to be written, made, renamed and synced; with `reads` also files that
are opened to be read, and folders listed. Of what libraries write by themselves, the writers of Parquet files are
counted. A disk that is really full strikes the rest (`test_disks.py`). No code of the package is replaced, but for a
mark of the moment in which rows are first read.
"""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

SCRIPT = "import sys\nfrom tests.faults.struck import main\nsys.exit(main(sys.argv[1:]))"
_WRITES = {"os.mkdir", "os.rename", "os.link", "os.symlink", "os.truncate"}
_READS = {"os.listdir", "os.scandir", "sqlite3.connect", "os.remove", "os.rmdir", "os.chmod", "os.utime"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Strike:
    """What strikes, where, and at the how many-th call (none: never, but calls are counted).

    `error` is the number of an error of the system, or empty for SIGKILL. One that `stays` strikes later calls too.
    """

    place: str
    number: int | None = None
    error: int | None = None
    stays: bool = False
    reads: bool = False
    room_is_told: bool = True
    """Whether the command may learn how little room there is; otherwise the disk fills up after it looked."""
    seconds: float = 0.0
    """How far the clock is wrong."""
    most_bytes: int = 0
    """Most bytes of memory beyond those that the process has when it begins, if any."""

    def words(self) -> list[str]:
        return [SCRIPT, json.dumps(asdict(self))]


class _Counter:
    def __init__(self, strike: Strike) -> None:
        self.strike, self.calls, self.inside = strike, 0, False

    def hook(self, event: str, given: tuple[Any, ...]) -> None:
        """What Python tells of every call that touches the system."""
        if event == "open":
            path, _, flags = given
            if not (flags & _WRITING or self.strike.reads):
                return
        elif event in _WRITES or (self.strike.reads and event in _READS):
            path = given[0] if given else ""
        else:
            return
        if isinstance(path, int) and not isinstance(path, bool):
            return  # an open file, whose opening was counted
        self.call(path)

    def call(self, path: object) -> None:
        """One call; strikes if it is the one."""
        try:
            name = os.fsdecode(path)  # type: ignore[arg-type]
        except TypeError:
            return
        if self.inside or not name.removeprefix("file://").startswith(self.strike.place):
            return
        self.calls += 1
        number = self.strike.number
        if number is None or self.calls < number or (self.calls > number and not self.strike.stays):
            return
        if self.strike.error is None:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        raise OSError(self.strike.error, os.strerror(self.strike.error or 0))


def _counted(function: Callable[..., Any], counter: _Counter, path_of: Callable[..., object]) -> Callable[..., Any]:
    def call(*given: Any, **more: Any) -> Any:
        counter.call(path_of(*given))
        return function(*given, **more)

    return call


def _path_of_handle(handle: int) -> object:
    return os.readlink(f"/proc/self/fd/{handle}")


def _mark_reading(place: Path) -> None:
    """Leaves the file `rows-read` in the moment in which rows are first asked for."""
    from understudy.counts.frames import FrameTable
    from understudy.counts.readers import StreamedTable

    for kind in (FrameTable, StreamedTable):
        for name in ("batches", "parts"):
            if name in vars(kind):
                setattr(kind, name, _marking(getattr(kind, name), place / "rows-read"))


def _marking(function: Callable[..., Any], mark: Path) -> Callable[..., Any]:
    def call(*given: Any, **more: Any) -> Any:
        os.close(os.open(mark, os.O_CREAT | os.O_WRONLY))
        return function(*given, **more)

    return call


def _arm(strike: Strike) -> _Counter:
    counter = _Counter(strike)
    os.fsync = _counted(os.fsync, counter, _path_of_handle)
    import pyarrow.parquet as pq

    for name in ("write_batch", "write_table", "close"):
        writing = _counted(getattr(pq.ParquetWriter, name), counter, lambda writer, *_: getattr(writer, "where", ""))
        setattr(pq.ParquetWriter, name, writing)
    if not strike.room_is_told:
        import shutil
        from collections import namedtuple

        usage = namedtuple("usage", "total used free")
        shutil.disk_usage = lambda _place: usage(2**50, 0, 2**50)  # type: ignore[assignment,return-value]
    if strike.seconds:
        _set_clock(strike.seconds)
    if strike.most_bytes:
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + strike.most_bytes,) * 2)
    sys.addaudithook(counter.hook)
    return counter


def _set_clock(seconds: float) -> None:
    import datetime as dt

    from understudy.synthesizer import pipeline

    wall = time.time
    time.time = lambda: wall() + seconds

    class _Clock(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> "_Clock":
            return cls.fromtimestamp(time.time(), tz)

    pipeline.datetime = _Clock  # type: ignore[attr-defined,misc]


def main(words: list[str]) -> int:
    strike = Strike(**json.loads(words[0]))
    place = Path(strike.place)
    _mark_reading(place.parent)
    from understudy.cli.app import main as command

    counter = _arm(strike)
    status = command(words[1:])
    counter.inside = True  # what follows is the test's own
    print(f"\ncalls={counter.calls}", flush=True)
    return status
