"""Study: every method at every ε, each run in a process of its own, in a folder that survives a kill at any moment.

The folder holds `study.json` (settings, digests of schema and tables), `runs/` (one outcome for each finished run),
`results.parquet`, and `index.html`. A run's outcome appears in one step, so what is there is finished, and what is not
there is run again. Methods, ε and repeats may be added to a study later. Confidential: scores compare with the private
table, and noise of all these runs together was not paid for. A study on a public table of the same schema
(`public_proxy`) costs nothing and may be shown.
"""

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from understudy.compare.fingerprint import columns_read, fingerprint
from understudy.compare.job import Job, Outcome, read_outcome, write_json
from understudy.compare.settings import Candidate, Cell, StudySettings
from understudy.compare.watch import SCORING, Ending, Limits, watched
from understudy.counts.open import open_table
from understudy.counts.source import PrivateTable
from understudy.errors import UsageError
from understudy.evaluate.store import CLOSED_FILE, CLOSED_FOLDER, MARKER, write_closed
from understudy.progress import Progress, silent
from understudy.release.statement import digest_of
from understudy.schema import Schema

__all__ = ["Finished", "Study", "StudyFolder", "Tables", "drop_left_behind", "run_study", "take_lock"]

KIND = "understudy study"
FORMAT = f"{KIND}, format 2"
BEGUN, LOCK, WORK = "study.json", ".lock", ".work-"
SEED_STEP = 1_000_003


@dataclass(frozen=True, slots=True)
class Tables:
    """The table of a study, whether it is public itself, and a public table for methods that use one."""

    data: object
    public: str | None = None
    is_public: bool = False

    def public_for(self, candidate: Candidate) -> str | None:
        """The public table, for a method that uses one."""
        return self.public if candidate.uses_public else None


@dataclass(frozen=True, slots=True)
class Finished:
    """A run and how it ended."""

    cell: Cell
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Study:
    """All runs of a study that have ended, in the order of its settings."""

    settings: StudySettings
    runs: tuple[Finished, ...]
    confidential: bool
    title: str = ""
    has_public: bool = False
    """Whether methods that use a public table were given one."""


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """Where a study lives."""

    place: Path

    @property
    def runs(self) -> Path:
        """Outcomes, one file for each run."""
        return self.place / "runs"

    def outcome(self, cell: Cell) -> Path:
        """Where the outcome of a run lies or will lie."""
        return self.runs / f"{cell.key}.json"

    def open(self, settings: StudySettings, schema: Schema, tables: Tables) -> None:
        """Begins the study, or goes on with it if it was begun on the same tables under the same settings or fewer.

        Raises:
            UsageError: if the folder holds something else, a damaged study, or one with other settings or tables.
        """
        users = [one.name for one in settings.candidates if one.uses_public]
        document = {
            "format": FORMAT,
            "confidential": not tables.is_public,
            "schema": digest_of(schema),
            "settings": settings.to_json(),
            **_fingerprints(tables, schema),
            "public used by": [] if tables.public is None else users,
        }
        self._make()
        begun = self.place / BEGUN
        before = _read(begun) if begun.exists() else None
        if before is not None:
            _require_same(before, document, self.place)
        elif not tables.is_public:
            self.place.chmod(CLOSED_FOLDER)
        if document != before:
            write_json(begun, document)
        self.runs.mkdir(exist_ok=True)
        if not tables.is_public:
            self.runs.chmod(CLOSED_FOLDER)
            write_closed(self.place / MARKER, _NOTICE.encode())

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keeps the folder to this process until the block ends; a process that is killed lets go of it.

        A folder in which no study was begun is removed again.

        Raises:
            UsageError: if it holds something else, or another process is running this study.
        """
        self._make()
        with (self.place / LOCK).open("ab") as file:
            if not take_lock(file.fileno(), self.place / LOCK):
                where = f"output {str(self.place)!r}"
                raise UsageError(where, "is being worked on by another process.", "Wait for it.")
            for left in (*self.place.glob(f"{WORK}*"), *self.runs.glob(f"{WORK}*")):  # of a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            try:
                yield
            finally:
                (self.place / LOCK).unlink(missing_ok=True)
                if not (self.place / BEGUN).exists():
                    with contextlib.suppress(OSError):
                        self.place.rmdir()

    def _make(self) -> None:
        """The folder, unless it holds something else."""
        if self.place.exists() and not (self.place / BEGUN).exists():
            others = [path for path in self.place.iterdir() if path.name not in (f".{BEGUN}.part", LOCK)]
            if others:
                raise UsageError(f"output {str(self.place)!r}", "exists and is not a study.", "Give a new folder.")
        self.place.mkdir(parents=True, exist_ok=True)

    def check_unchanged(self, tables: Tables, schema: Schema) -> None:
        """Raises if a table is no longer the one with which the study was begun.

        Raises:
            UsageError: with what to do.
        """
        before = _read(self.place / BEGUN)
        if any(before.get(key) != found for key, found in _fingerprints(tables, schema).items()):
            write_json(self.place / BEGUN, {**before, "table": "changed"})  # so that no table can go on with these runs
            rule = "changed while the study was running, so its runs may be of two tables."
            raise UsageError("table", rule, "Give a new folder, and tables that stay as they are.")

    def study(self, settings: StudySettings, *, confidential: bool, title: str, has_public: bool = False) -> Study:
        """What has ended so far."""
        read = ((cell, read_outcome(self.outcome(cell))) for cell in settings.cells)
        runs = tuple(Finished(cell, outcome) for cell, outcome in read if outcome is not None)
        return Study(settings, runs, confidential, title, has_public)


def drop_left_behind(prefix: str) -> None:
    """Removes studies without a lasting folder whose processes were killed: they may hold a copy of a table."""
    for place in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with contextlib.suppress(OSError), (place / LOCK).open("rb") as file:  # others' folders cannot be opened
            if take_lock(file.fileno(), place / LOCK):
                shutil.rmtree(place, ignore_errors=True)


def take_lock(handle: int, path: Path) -> bool:
    """Takes the lock of an open file; false if another process has it, or has just removed the file."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(handle), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _fingerprints(tables: Tables, schema: Schema) -> dict[str, object]:
    public = None if tables.public is None else fingerprint(tables.public, schema)
    return {"table": fingerprint(tables.data, schema), "public": public}


_NOTICE = (
    "NOT FOR RELEASE. The scores in this folder were computed from the private table, run after run; no privacy\n"
    "guarantee covers them, and choosing a method by them is not covered either. Keep it where the table is kept.\n"
)


def _read(begun: Path) -> Mapping[str, object]:
    """What a study was begun with."""
    where = f"output {str(begun.parent)!r}"
    try:
        document = json.loads(begun.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        rule = "holds a study.json that cannot be read, so it is not known what was run there."
        raise UsageError(where, rule, "Restore that file, or give a new folder.") from None
    if not isinstance(document, dict) or not str(document.get("format")).startswith(KIND):
        raise UsageError(where, "holds a study.json of another program.", "Give a new folder.")
    if document["format"] != FORMAT:
        rule = "holds a study of another version of understudy."
        raise UsageError(where, rule, "Go on with that version, or give a new folder.")
    return document


_LISTS = ("candidates", "epsilons", "public used by")
"""What may be added to: runs do not depend on each other."""
_NAMES = {"candidates": "methods", "copies_mode": "copies mode", "metric_options": "options of metrics"}


def _require_same(before: Mapping[str, object], now: Mapping[str, object], place: Path) -> None:
    """Raises if the study was begun with something else, and says with what."""
    words = {
        "settings": "other settings",
        "schema": "another schema",
        "table": "another table",
        "public": "another public table",
        "confidential": "another answer to whether the table is public",
    }
    apart = [words.get(key, words["settings"]) for key in now if not _covers(key, now[key], before.get(key))]
    if not apart:
        return
    found, asked = before.get("settings"), now["settings"]
    if isinstance(found, dict) and isinstance(asked, dict):
        names = [_NAMES.get(str(key), str(key)) for key in asked if not _covers(key, asked[key], found.get(key))]
        apart = [f"{one} ({', '.join(names)})" if one == words["settings"] and names else one for one in apart]
    rule = f"holds a study that was begun with {' and '.join(dict.fromkeys(apart))}."
    fix = "Give a new folder, or the same as before: methods, ε and repeats may be added, not left out."
    raise UsageError(f"output {str(place)!r}", rule, fix)


def _covers(name: str, now: object, before: object) -> bool:
    """Whether what is asked for now is what was asked for before; of what may be added, also if it is more."""
    if name == "settings" and isinstance(now, dict) and isinstance(before, dict):
        return all(_covers(setting, now[setting], before.get(setting)) for setting in now)
    if name == "repeats" and isinstance(now, int) and isinstance(before, int):
        return now >= before
    if name in _LISTS and isinstance(now, list) and isinstance(before, list):
        return all(one in now for one in before)
    return now == before


def run_study(
    tables: Tables,
    schema: Schema,
    settings: StudySettings,
    folder: StudyFolder,
    limits: Limits,
    *,
    progress: Progress | None = None,
) -> int:
    """Runs what has not ended yet, one process after the other, and tells how many that were."""
    told = progress or silent
    waiting = [cell for cell in settings.cells if not _ended(read_outcome(folder.outcome(cell)))]
    done = len(settings.cells) - len(waiting)
    with _files(tables.data, schema, folder.place) as (rows, declared):
        for cell in waiting:
            told.stage("measure", done / len(settings.cells))
            budget = settings.budget(cell.candidate, cell.epsilon)
            job = Job(
                table=rows,
                schema=declared,
                method=cell.candidate.method,
                options=cell.candidate.options,
                epsilon=budget.epsilon,
                delta=budget.delta,
                rows=settings.rows,
                copies=settings.copies,
                copies_mode=settings.copies_mode,
                metrics=settings.metrics,
                seed=settings.seed + SEED_STEP * cell.repeat,
                public=tables.public_for(cell.candidate),
                metric_options=settings.metric_options,
                formula=settings.formula,
            )
            _run(job, folder, cell, limits)
            done += 1
    told.stage("measure", 1.0)
    return len(waiting)


def _ended(outcome: Outcome | None) -> bool:
    """Whether a run need not be tried again. Limits may be wider by now, the machine larger, faults gone."""
    return outcome is not None and outcome.status == "done"


def _run(job: Job, folder: StudyFolder, cell: Cell, limits: Limits) -> None:
    """One process; if it leaves no outcome, what stopped it is the outcome, and what it printed is kept."""
    target = folder.outcome(cell)
    kept = target.with_suffix(".log")
    with tempfile.TemporaryDirectory(prefix=WORK, dir=folder.place) as place:  # closed and marked as the study is
        described, left, log = (Path(place) / name for name in ("job.json", "outcome.json", "log.txt"))
        job.write(described)
        ending = watched(["-m", "understudy.compare.worker", str(described), str(left)], limits, log)
        outcome = read_outcome(left)
        if outcome is None and ending.how == "exit":
            write_closed(kept, log.read_bytes())
        else:
            kept.unlink(missing_ok=True)
        (outcome or _stopped(ending, limits, log, kept.name)).write(target)


def _stopped(ending: Ending, limits: Limits, log: Path, kept: str) -> Outcome:
    """What is said of a run whose process left no outcome."""
    doing = "scored" if SCORING.encode() in log.read_bytes() else "made"
    if ending.how == "time":
        reason = f"was still being {doing} after {limits.seconds:,.3g} s."
        return Outcome("time", reason, ending.seconds, 0.0, 0)
    if ending.how == "memory":
        reason = f"went past {limits.bytes / 2**20:,.0f} MiB while being {doing}."
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
    """Table and schema as files for the processes; a frame is written into the study's folder and removed."""
    with tempfile.TemporaryDirectory(prefix=WORK, dir=place) as work:
        declared = Path(work) / "schema.yaml"
        schema.to_yaml(declared)
        if isinstance(table, str | os.PathLike):
            yield os.fspath(table), str(declared)
            return
        rows = Path(work) / "table.parquet"
        rows.touch(CLOSED_FILE)
        pq.write_table(_written(open_table(table, schema), schema), rows)
        yield str(rows), str(declared)


def _written(table: PrivateTable, schema: Schema) -> pa.Table:
    parts = [pa.table(dict(batch)) for _, batch in table.batches(columns_read(schema))]
    return pa.concat_tables(parts)
