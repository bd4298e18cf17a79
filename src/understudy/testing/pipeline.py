"""The whole way from a table to everything that leaves, as one function of table and randomizer.

What leaves: the release's rows, statement, card, answers and model, the folder byte for byte with its files' times (if
one is written), all that was printed, logged or warned about, and on failure the type and text of the error. The
run's name and the day are fixed, because they are not private and would differ between two runs. The time of day is
not: the clock goes on with every look at it, so that whatever lets it out differs between any two runs.
"""

import contextlib
import io
import itertools
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pyarrow as pa

from understudy.audit.replay import Leak, Pipeline
from understudy.errors import UnderstudyError
from understudy.privacy.cost import Budget, Cost
from understudy.privacy.randomizer import Randomizer
from understudy.release import Release
from understudy.schema import Schema
from understudy.synthesizer import Environment, synthesize

__all__ = ["Case", "Place", "released_bytes"]

MOMENT = datetime(2001, 2, 3, tzinfo=UTC)
RUN = "a-run-under-test"
SECONDS_OF_A_DAY = 86_400
_LOOKS = itertools.count(1)
Place = Callable[[pa.Table], object]
"""Where the table is put before it is opened: the frame itself, another frame, or a path to a file."""


@dataclass(frozen=True, slots=True)
class Case:
    """A method with its budget and options on a schema, ready to run as a replay pipeline."""

    schema: Schema
    method: str
    budget: Budget
    options: Mapping[str, object] = field(default_factory=dict)
    copies: int = 1
    copies_mode: str = "resample"
    with_folder: bool = False
    public: object | None = None

    def release(self, data: object, randomizer: Randomizer, *, out: Path | None = None, seed: int = 7) -> Release:
        """A release made with that randomizer, on a fixed date, at some time of that day, and under a fixed name."""
        environment = Environment(randomizer, lambda: datetime.fromtimestamp(_clock(), UTC), lambda: RUN)
        with mock.patch.object(time, "time", _clock):
            return synthesize(
                data,
                self.schema,
                method=self.method,
                epsilon=self.budget.epsilon,
                delta=self.budget.delta,
                options=self.options,
                copies=self.copies,
                copies_mode=self.copies_mode,
                seed=seed,
                out=out,
                public=self.public,
                _environment=environment,
            )

    def pipeline(self, place: Place = lambda table: table) -> Pipeline:
        """The replay pipeline: all released bytes and the granted cost."""

        def run(table: pa.Table, randomizer: Randomizer) -> tuple[bytes, Cost]:
            with _in_memory(), tempfile.TemporaryDirectory() as folder, _listening() as heard:
                out = Path(folder) / "release" if self.with_folder else None
                try:
                    release = self.release(place(table), randomizer, out=out)
                    left, granted = released_bytes(release, out), release.statement.granted
                except Leak:
                    raise
                except UnderstudyError as error:
                    left, granted = f"{type(error).__name__}: {error}".encode(), Cost()
                return left + heard.getvalue().encode(), granted

        return run


def _clock() -> float:
    """Another second of the fixed day at every look."""
    return MOMENT.timestamp() + 7 * next(_LOOKS) % SECONDS_OF_A_DAY


def released_bytes(release: Release, out: Path | None = None) -> bytes:
    """Everything of a release that leaves, in a fixed order."""
    parts = [release.statement.markdown(), repr(release.config), *release.ledger]
    for fitted in release.fits:
        parts += [repr(answer) for answer in fitted.transcript]
    saved = b"".join(_arrow_bytes(release, copy) for copy in range(1, release.config.copies + 1))
    with tempfile.TemporaryDirectory() as folder:
        for number, fitted in enumerate(release.fits):
            place = Path(folder) / str(number)
            place.mkdir()
            fitted.model.save(place)
        saved += _folder_bytes(Path(folder))
    if out is not None:
        saved += _folder_bytes(out) + _folder_times(out)
    return "\n".join(parts).encode() + saved


def _arrow_bytes(release: Release, copy: int) -> bytes:
    table = release.tables[copy - 1]
    if isinstance(table, pa.Table):
        arrow = table
    else:
        arrow = table.to_arrow() if hasattr(table, "to_arrow") else pa.Table.from_pandas(table)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, arrow.schema) as writer:
        writer.write_table(arrow)
    return sink.getvalue()


def _folder_bytes(folder: Path) -> bytes:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return b"".join(path.relative_to(folder).as_posix().encode() + b"\n" + path.read_bytes() for path in files)


def _folder_times(folder: Path) -> bytes:
    """When every file and folder was last written, as whoever gets a copy can see it."""
    paths = [folder, *sorted(folder.rglob("*"))]
    return "".join(f"{path.relative_to(folder).as_posix()} {path.stat().st_mtime_ns}\n" for path in paths).encode()


def _in_memory() -> contextlib.AbstractContextManager[object]:
    """Temporary files in memory where the system offers it: replay is about bytes, not about surviving power loss."""
    shared = Path("/dev/shm")
    if not (shared.is_dir() and os.access(shared, os.W_OK)):
        return contextlib.nullcontext()
    return mock.patch.object(tempfile, "tempdir", str(shared))


@contextlib.contextmanager
def _listening() -> Iterator[io.StringIO]:
    """All that is printed, logged or warned about inside, as text.

    Of our own log records all levels count. Of other packages' those that a program shows by default: a compiler's
    debugging notes appear when code is compiled, which has nothing to do with the rows.
    """
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    root, ours = logging.getLogger(), logging.getLogger("understudy")
    level = ours.level
    root.addHandler(handler)
    ours.setLevel(logging.DEBUG)
    try:
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard), warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda message, category, *_, **__: print(category.__name__, message, file=heard)
            yield heard
    finally:
        root.removeHandler(handler)
        ours.setLevel(level)
