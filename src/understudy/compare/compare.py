"""compare: methods × ε × repeats on one table, into a folder that can be resumed, several runs at a time if asked.

Each run is a process. All of them are begun, watched and ended from the one thread that `compare` was called in; an
exception in it, which a signal becomes, ends them, and the system does if the whole process is killed (`runs.py`).
Whether runs are made one by one or side by side changes nothing in their outcomes but the seconds: seeds follow from
the place of a run in the study, and each has fresh noise. The page is written anew after every run that ends.
"""

import contextlib
import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import SupportsFloat, TypeVar

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from understudy.compare.page import build_page
from understudy.compare.runs import (
    PAUSE,
    SCORING,
    Job,
    Outcome,
    ProcessEnding,
    ProcessLimits,
    WatchedProcess,
    plain_options,
    read_outcome,
)
from understudy.compare.study import (
    WORK,
    Candidate,
    Cell,
    Finished,
    Forecasts,
    Study,
    StudyFolder,
    StudySettings,
    Tables,
    check_place,
    check_study,
    drop_left_behind,
    leaves_labels_open,
)
from understudy.compare.summary import TABLES, Recommendation, failures, recommend, summary_tables, tidy
from understudy.counts.files import columns_read
from understudy.counts.opening import is_of_files, open_table
from understudy.counts.readers import StreamedTable
from understudy.counts.source import PrivateTable, texts_of
from understudy.errors import UsageError
from understudy.folders import CLOSED_FILE, write_durably
from understudy.notebook import shown_as_html
from understudy.progress import Progress, silent
from understudy.report import Pictures, render_page, section_pictures
from understudy.schema import Schema
from understudy.synthesizer.design import memory_limit

METRICS = ("marginals", "specks")
SECONDS = 3600.0
MEMORY = 2**34
TEMPORARY = "understudy-study-"
"""How the folder of a study is called that is not to be kept."""
JOB, LEFT, LOG = "job.json", "outcome.json", "log.txt"
SEED_STEP = 1_000_003
PROGRAM_BYTES = 2**29
"""What a process takes besides its plan: interpreter, libraries, kernels and scoring; 420 MiB were measured."""
QUICK, CALM = 1.0, 20
"""A page that takes longer than these seconds is written anew only when this many times as long has passed."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A finished study."""

    study: Study
    folder: Path | None

    def __repr__(self) -> str:
        return repr(self.study).replace("Study", "Comparison", 1)

    def _repr_html_(self) -> str:
        """For notebooks: what to use at each ε, and why."""
        rows = [(f"{one.epsilon:g}", one.answer, one.grounds) for one in self.recommendations]
        note = "NOT FOR RELEASE: this compares with the private table." if self.study.confidential else ""
        return shown_as_html(self.study.title or "Comparison", (), ("ε", "method", "grounds"), rows, note)

    def plot(self, what: str = "errors") -> Pictures:
        """Charts of the study's page: "errors" over ε with intervals, or "resources" (seconds and memory).

        Raises:
            UsageError: if there is no such chart.
        """
        return section_pictures(build_page(self.study), what)

    def frame(self) -> pa.Table:
        """Every score of every run, tidy."""
        return tidy(self.study)

    @property
    def recommendations(self) -> tuple[Recommendation, ...]:
        """A method for each ε, with its grounds."""
        return recommend(self.study)

    @property
    def failures(self) -> tuple[str, ...]:
        """Which runs have no scores, and why, in plain words."""
        return failures(self.study)


def compare(
    data: object,
    schema: Schema | str | Path,
    *,
    methods: Sequence[str],
    epsilons: Sequence[float],
    delta: float = 0.0,
    repeats: int = 3,
    copies: int = 1,
    copies_mode: str = "resample",
    metrics: Sequence[str] = METRICS,
    options: Mapping[str, Mapping[str, object]] | None = None,
    formula: str | None = None,
    rows: int | None = None,
    seed: int = 0,
    seconds: float = SECONDS,
    memory_bytes: int = MEMORY,
    jobs: int = 1,
    public: str | Path | None = None,
    public_proxy: bool = False,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Every method at every ε, several times, scored. CONFIDENTIAL unless `public_proxy` says the table is public.

    Costs no budget because nothing may be released: neither the scores nor a choice made by them. Where the choice
    must be safe, compare on a public table of the same schema, or pay for it with `choose`. Mistakes raise at once.

    Args:
        data, schema: the table, and what it may contain.
        methods: names, each with its options as in "steps layers=2".
        epsilons, delta, repeats: values of ε, δ (not for methods of pure ε), and runs of each method at each ε.
        copies, copies_mode, rows: as for `synthesize`.
        metrics, options, formula, seed: what is scored, as for `evaluate`; the seed is for sampling rows, too.
        seconds, memory_bytes, jobs: limits of one run, beyond which it is stopped; number of runs at a time.
        public, public_proxy: a public table for methods that use one; whether the table itself is public.
        out: the study's folder; an unfinished study with the same settings is continued.
    """
    known, listed = Schema.of(schema), _listed("metrics", metrics)
    settings = StudySettings(
        tuple(Candidate.read(text) for text in _listed("methods", methods)),
        tuple(_number(epsilon) for epsilon in _listed("epsilons", epsilons)),
        *(delta, repeats, copies, copies_mode, listed, rows, seed),
        plain_options(options),
        formula,
        leaves_labels_open(known),
    )
    tables = Tables(data, None if public is None else str(public), public_proxy)
    asked = _Asked(tables, known, settings, ProcessLimits(seconds, memory_bytes), jobs)
    return _carried_out(asked, None if out is None else Path(out), progress or silent)


def _listed(name: str, values: Sequence[Item]) -> tuple[Item, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UsageError(name, f"must be a list, got {values!r}.", f"For example {name}=[{values!r}].")
    return tuple(values)


def _number(epsilon: object) -> float:
    """ε as one kind of number, so that 1 and 1.0 are the same run."""
    if isinstance(epsilon, str | bytes | bool) or not isinstance(epsilon, SupportsFloat):
        raise UsageError("epsilons", f"must be numbers, got {epsilon!r}.")
    return float(epsilon)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be run, on which tables, and within which limits."""

    tables: Tables
    schema: Schema
    settings: StudySettings
    limits: ProcessLimits
    jobs: int

    def __post_init__(self) -> None:
        if type(self.jobs) is not int or self.jobs < 1:
            raise UsageError("jobs", f"must be a whole number from 1, got {self.jobs!r}.")

    def study(self, known: Mapping[str, Finished]) -> Study:
        """The study as far as it has come; runs by the keys of their cells."""
        runs = tuple(known[cell.key] for cell in self.settings.cells if cell.key in known)
        confidential = not self.tables.is_public
        return Study(self.settings, runs, confidential, self.schema.title, self.tables.public is not None)


def _carried_out(asked: _Asked, out: Path | None, progress: Progress) -> Comparison:
    """The study as asked, begun or taken up again; nothing is written before everything was checked."""
    progress.stage("check", 0.0)
    if out is not None:
        check_place(out)
    forecasts = check_study(asked.tables, asked.schema, asked.settings, asked.limits)
    if out is None:
        drop_left_behind(TEMPORARY)
    place = Path(tempfile.mkdtemp(prefix=TEMPORARY)) if out is None else out
    folder = StudyFolder(place)
    with folder.held():
        try:
            folder.open(asked.settings, asked.schema, asked.tables)
            progress.stage("check", 1.0)
            pages = StudyPages(out)
            known = run_study(asked, folder, forecasts, pages, progress)
            study = asked.study(known)
            pages.write(study)
        finally:
            if out is None:  # while the folder is held: what is left of a kill can be told by its lock
                shutil.rmtree(place, ignore_errors=True)
    return Comparison(study, out)


class StudyPages:
    """The page of a study and its tables, each of which appears in one step; of a confidential one for their owner.

    While a study runs, a page that takes long to write is written less often.
    """

    def __init__(self, place: Path | None) -> None:
        self._place = place
        self._next = 0.0

    def write_while_running(self, study: Study) -> None:
        """Writes how far the study has come, unless that was done a moment ago."""
        begun = time.monotonic()
        if self._place is not None and begun >= self._next:
            self.write(study)
            ended = time.monotonic()
            self._next = ended + CALM * (ended - begun) if ended - begun > QUICK else ended

    def write(self, study: Study) -> None:
        """Writes page and tables."""
        place = self._place
        if place is None:
            return
        files = {name: _csv(table) for name, table in summary_tables(study).items()}
        files |= {"results.parquet": _parquet(tidy(study)), "index.html": render_page(build_page(study)).encode()}
        for name, content in files.items():
            write_durably(place / name, content, for_all=not study.confidential)

    def drop(self) -> None:
        """Removes the page and its tables: what they say does not hold."""
        if self._place is not None:
            for name in ("index.html", "results.parquet", *TABLES):
                (self._place / name).unlink(missing_ok=True)


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def _csv(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pc.write_csv(table, sink)
    return bytes(sink.getvalue())


@dataclass(frozen=True, slots=True)
class Underway:
    """A run that goes on: its process, the folder it works in, and the memory it may come to."""

    cell: Cell
    process: WatchedProcess
    place: tempfile.TemporaryDirectory[str]
    bytes: int

    def file(self, name: str) -> Path:
        """A file in the folder it works in."""
        return Path(self.place.name) / name

    def stop(self) -> None:
        """Ends its process, if it still runs, and removes the folder."""
        self.process.stop()
        self.place.cleanup()


class Workers:
    """The runs that go on at the same time; leaving the block, however that happens, ends them all.

    A run is begun beside others only if all of them together stay within the memory of the machine, by what their plans
    say they may come to and by what runs of the same method took before, whichever is more. All of them are started
    and watched from one thread; a process that an exception meets in the very moment of its start ends with this one.
    """

    def __init__(self, folder: StudyFolder, limits: ProcessLimits, jobs: int, forecasts: Forecasts) -> None:
        self._folder, self._limits, self._jobs, self._forecasts = folder, limits, jobs, forecasts
        self._memory = memory_limit(None)
        self._threads = None if jobs == 1 else max(1, (os.cpu_count() or 1) // jobs)
        self._running: list[Underway] = []
        self._peaks: dict[str, int] = {}

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._running:
            one.process.stop()
        for one in self._running:
            one.place.cleanup()

    @property
    def busy(self) -> bool:
        """Whether a run goes on."""
        return bool(self._running)

    def may_begin(self, cell: Cell) -> bool:
        """Whether the run may be begun now. One alone always may: its own limit ends it."""
        if not self._running:
            return True
        taken = sum(max(one.bytes, one.process.peak_bytes) for one in self._running)
        return len(self._running) < self._jobs and taken + self._needs(cell) <= self._memory

    def _needs(self, cell: Cell) -> int:
        planned = self._forecasts.get((cell.candidate.name, cell.epsilon), 0) + PROGRAM_BYTES
        return min(max(planned, self._peaks.get(cell.candidate.name, 0)), self._limits.bytes)

    def begin(self, cell: Cell, job: Job) -> None:
        """Starts the process of a run."""
        # Closed and marked as the study is.
        place = tempfile.TemporaryDirectory(prefix=WORK, dir=self._folder.place)
        described, left, log = (Path(place.name) / name for name in (JOB, LEFT, LOG))
        process: WatchedProcess | None = None
        try:
            job.write(described)
            arguments = ["-m", "understudy.compare.worker", str(described), str(left)]
            process = WatchedProcess(arguments, self._limits, log, threads=self._threads)
            self._running.append(Underway(cell, process, place, self._needs(cell)))
        except BaseException:
            if process is not None:
                process.stop()
            place.cleanup()
            raise

    def ended(self) -> list[Finished]:
        """The runs that have ended since it was last asked, with their outcomes in the study's folder."""
        found = []
        for one in tuple(self._running):
            ending = one.process.ending()
            if ending is not None:
                found.append(self._taken(one, ending))
                self._running.remove(one)
                one.stop()
        return found

    def _taken(self, one: Underway, ending: ProcessEnding) -> Finished:
        """If a process left no outcome, what stopped it is the outcome, and what it printed is kept."""
        target = self._folder.outcome(one.cell)
        kept, log = target.with_suffix(".log"), one.file(LOG)
        outcome = read_outcome(one.file(LEFT))
        if outcome is None and ending.how == "exit":
            write_durably(kept, log.read_bytes())
        else:
            kept.unlink(missing_ok=True)
        outcome = replace(outcome or _stopped(ending, self._limits, log, kept.name), jobs=self._jobs)
        outcome.write(target)
        name = one.cell.candidate.name
        self._peaks[name] = max(ending.peak_bytes, self._peaks.get(name, 0))
        return Finished(one.cell, outcome)


def run_study(
    asked: _Asked, folder: StudyFolder, forecasts: Forecasts, pages: StudyPages, progress: Progress
) -> dict[str, Finished]:
    """Runs what has not ended well yet; gives every run by the key of its cell.

    Of runs that were refused or stopped before, limits may be wider by now, the machine larger, faults gone.
    """
    every = asked.settings.cells
    read = (Finished(cell, outcome) for cell in every if (outcome := read_outcome(folder.outcome(cell))) is not None)
    known = {one.cell.key: one for one in read if one.outcome.status == "done"}
    waiting = deque(cell for cell in every if cell.key not in known)
    if not waiting:
        return known
    pages.write_while_running(asked.study(known))
    with (
        _files(asked.tables.data, asked.schema, folder.place) as (rows, declared),
        Workers(folder, asked.limits, asked.jobs, forecasts) as workers,
    ):
        while waiting or workers.busy:
            progress.stage("measure", len(known) / len(every))
            while waiting and workers.may_begin(waiting[0]):
                cell = waiting.popleft()
                public = asked.tables.public_for(cell.candidate)
                workers.begin(cell, Job(rows, declared, *_arguments(cell, asked.settings, public)))
            ended = workers.ended()
            known |= {one.cell.key: one for one in ended}
            if ended:
                pages.write_while_running(asked.study(known))
            else:
                time.sleep(PAUSE)
    progress.stage("measure", 1.0)
    try:
        folder.check_unchanged(asked.tables, asked.schema)
    except UsageError:
        pages.drop()
        raise
    return known


def _arguments(cell: Cell, settings: StudySettings, public: str | None) -> tuple[dict[str, object], dict[str, object]]:
    """What one run of the study tells `synthesize`, and what it tells `evaluate`."""
    budget = settings.budget(cell.candidate, cell.epsilon)
    seed = settings.seed + SEED_STEP * cell.repeat
    run = {
        "method": cell.candidate.method,
        "options": dict(cell.candidate.options),
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "rows": settings.rows,
        "copies": settings.copies,
        "copies_mode": settings.copies_mode,
        "public": public,
        "seed": seed,
    }
    options = {"options": settings.metric_options, "formula": settings.formula}
    return run, {"metrics": list(settings.metrics), "seed": seed, **options}


def _stopped(ending: ProcessEnding, limits: ProcessLimits, log: Path, kept: str) -> Outcome:
    """What is said of a run whose process left no outcome."""
    doing = "scored" if SCORING.encode() in log.read_bytes() else "made"
    if ending.how == "time":
        reason = f"was still being {doing} after {limits.seconds:,.3g} s."
        return Outcome("time", reason, ending.seconds, 0.0, 0)
    if ending.how == "memory":
        reason = f"used more than {limits.bytes / 2**20:,.0f} MiB while being {doing}."
        return Outcome("memory", reason, ending.seconds, 0.0, ending.peak_bytes)
    how = f"ended with status {ending.status}"
    if ending.status < 0:
        how = f"was killed by signal {-ending.status} (9: perhaps by the system, for lack of memory)"
    reason = (
        f"its process {how} while the table was being {doing}, without an outcome; runs/{kept} holds what it printed."
    )
    return Outcome("failed", reason, ending.seconds, 0.0, ending.peak_bytes)


@contextlib.contextmanager
def _files(table: object, schema: Schema, place: Path) -> Iterator[tuple[str, str]]:
    """Table and schema as files for the processes; what is no file is written into the study's folder and removed.

    So all runs of a study are of the same rows, whatever becomes of a table in a database meanwhile, and its location
    reaches no other process.
    """
    with tempfile.TemporaryDirectory(prefix=WORK, dir=place) as work:
        declared = Path(work) / "schema.yaml"
        schema.to_yaml(declared)
        location = _reopened(os.fspath(table), schema) if isinstance(table, str | os.PathLike) else ""
        if location:
            yield location, str(declared)
            return
        rows = Path(work) / "table.parquet"
        rows.touch(CLOSED_FILE)
        pq.write_table(_written(open_table(table, schema), schema), rows)
        yield str(rows), str(declared)


def _reopened(location: str, schema: Schema) -> str:
    """A location at which processes, one after the other, find the rows that are there now; "" if there is none."""
    if is_of_files(location):
        return location
    opened = open_table(location, schema)
    try:
        return opened.reader.pinned if isinstance(opened, StreamedTable) else ""
    finally:
        opened.close()


def _written(table: PrivateTable, schema: Schema) -> pa.Table:
    """All rows as one table. Where batches of a column differ in type, as some databases have it, it becomes text."""
    names = columns_read(schema)
    parts = [dict(batch) for _, batch in table.batches(names)]
    mixed = [name for name in names if len({part[name].type for part in parts}) > 1]
    for part in parts:
        part |= {name: _as_text(part[name]) for name in mixed}
    return pa.concat_tables([pa.table(part) for part in parts])


def _as_text(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    texts = texts_of(values)
    places = pa.array(texts.places, mask=texts.places < 0)
    return texts.values.take(places)
