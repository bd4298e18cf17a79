"""Tiny schemas and tables for contracts, and one function that runs from a table to everything that is released.

The tables have every column kind once, hostile names, and a unit with several rows.
What leaves: the release's rows, statement, card, answers and model, the folder byte for byte with its files' times (if
one is written), all that was printed, logged or warned about, and on failure the type and text of the error. The
run's name and the day are fixed, because they are not private and would differ between two runs. The time of day is
not: the clock goes on with every look at it, so that whatever lets it out differs between any two runs.
"""

import contextlib
import datetime as dt
import io
import itertools
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa

from understudy.codec.table import TableCodec
from understudy.errors import UnderstudyError
from understudy.privacy.cost import Budget, Cost
from understudy.privacy.randomizer import Randomizer
from understudy.release import Release
from understudy.schema import (
    Boolean,
    Category,
    Column,
    Cut,
    Date,
    Datetime,
    Derived,
    Float,
    GivenBins,
    Impossible,
    Integer,
    OpenCategory,
    Schema,
    Time,
    UniformBins,
    Unit,
)
from understudy.synthesizer import Environment, synthesize
from understudy.testing.replay import Leak, Pipeline, Record, record_pool, to_table


def small(*, unit: Unit | None = None) -> Schema:
    """Three columns and one impossible combination: fast, and every cell can be enumerated."""
    return Schema(
        columns=(
            Category(name="registered", labels=("yes", "no"), missing=False),
            Category(name="voted", labels=("yes", "no"), missing=False),
            Integer(name="age", lower=18, upper=22),
        ),
        unit=unit or Unit(),
        rules=(Impossible(when={"registered": ("no",), "voted": ("yes",)}, note="only the registered may vote"),),
    )


def several_rows(rows: int = 3) -> Schema:
    """The small schema, protecting people who may hold several rows."""
    return small(unit=Unit(column="person", rows=rows))


def every_kind() -> Schema:
    """One column of every kind with a closed domain, and a derived one."""
    return Schema(
        columns=(
            Category(name="city", labels=("Rome", "Oslo", "Nis"), other="elsewhere"),
            Boolean(name="member"),
            Integer(name="income", lower=0, upper=100_000, bins=UniformBins(5), special=(999_998,)),
            Float(name="height", lower=0.5, upper=2.5, bins=UniformBins(4), decimals=2),
            Date(name="born", lower=dt.date(1990, 1, 1), upper=dt.date(1999, 12, 31), bins=UniformBins(3)),
            Datetime(
                name="seen",
                lower=dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
                upper=dt.datetime(2020, 12, 31, tzinfo=dt.UTC),
                bins=UniformBins(3),
                zone="Europe/Rome",
            ),
            Time(name="woke", bins=UniformBins(4)),
            Derived(name="tall", formula=Cut("height", (0.5, 1.5, 2.5), ("no", "yes"))),
        ),
        unit=Unit(),
    )


def split_amounts(*, unit: Unit | None = None) -> Schema:
    """Amounts modelled by size and kind (13 of 6 × 5 pairs of codes are possible), beside a closed column."""
    return Schema(
        columns=(
            Integer(
                name="wage",
                lower=0,
                upper=400,
                bins=GivenBins((0, 3, 200, 400)),
                special=(998, 999),
                split=(100, 20, 3),
            ),
            Category(name="registered", labels=("yes", "no"), missing=False),
        ),
        unit=unit or Unit(),
    )


def open_labels() -> Schema:
    """A closed column beside one whose labels must be discovered."""
    return Schema(
        columns=(Category(name="sex", labels=("F", "M")), OpenCategory(name="job", most_labels=20)), unit=Unit()
    )


def closed_kinds() -> Schema:
    """The same kinds with neither missing nor other: what cannot be read is a code of its own, or its row goes."""
    columns = every_kind().columns
    return Schema(columns=tuple(map(_closed, columns)), unit=Unit())


def _closed(column: Column) -> Column:
    return (
        replace(column, missing=False, other=None) if isinstance(column, Category) else replace(column, missing=False)
    )


def hostile_names() -> Schema:
    """Column names and labels that break careless quoting."""
    names = ('a"b', "c'; drop table x; --", "d\\e", "select", "ф 🙂", "line\nbreak", "semi;colon", "per%cent {x}")
    labels = ("plain", "quo'te", 'dou"ble', "com,ma", "new\nline", " lead", "trail ", "é", "e\u0301", "0", "-1", "null")
    return Schema(columns=tuple(Category(name=name, labels=labels) for name in names), unit=Unit())


def some_rows(schema: Schema, rows: int, seed: int) -> pa.Table:
    """A table of `rows` valid records with some dependence, the same for the same seed."""
    rng = np.random.default_rng(seed)
    pool = record_pool(schema)
    weights = rng.dirichlet(np.full(len(pool), 0.7))
    picks = rng.choice(len(pool), size=rows, p=weights)
    records: list[Record] = []
    for number, pick in enumerate(picks):
        record = dict(pool[pick])
        swap = pool[int(rng.integers(len(pool)))]
        name = schema.modelled[int(rng.integers(len(schema.modelled)))].name
        record[name] = swap[name]
        if schema.unit.column is not None:
            record[schema.unit.column] = f"person-{int(rng.integers(max(1, rows // 2)))}" if number % 9 else None
        records.append(record)
    return to_table(schema, records)


def possible_rows(schema: Schema, rows: int, seed: int) -> pa.Table:
    """As `some_rows`, without the records that the schema's rules call impossible (so perhaps fewer)."""
    table = some_rows(schema, rows, seed)
    codec = TableCodec.of(schema)
    keep = np.ones(table.num_rows, dtype=bool)
    for structural_zeros in codec.structural_zeros:
        codes = tuple(
            codec.encode(name, table.column(codec.origin(name))).astype(np.int64) for name in structural_zeros.clique
        )
        keep &= ~structural_zeros.mask[np.ravel_multi_index(codes, codec.domain.shape(structural_zeros.clique))]
    return table.filter(pa.array(keep))


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
    check_share: float | None = None

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
                check_share=self.check_share,
                _environment=environment,
            )

    def pipeline(self, place: Place = lambda table: table) -> Pipeline:
        """The replay pipeline: all released bytes and the granted cost."""

        def run(table: pa.Table, randomizer: Randomizer) -> tuple[bytes, Cost]:
            with in_memory(), tempfile.TemporaryDirectory() as folder, _listening() as heard:
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


def in_memory() -> contextlib.AbstractContextManager[object]:
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
            # Connections that engines leave to the garbage collector; Python itself shows none of these.
            warnings.simplefilter("ignore", ResourceWarning)
            warnings.showwarning = lambda message, category, *_, **__: print(category.__name__, message, file=heard)
            yield heard
    finally:
        root.removeHandler(handler)
        ours.setLevel(level)
