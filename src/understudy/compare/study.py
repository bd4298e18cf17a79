"""Study: every method at every ε, each run in a process of its own, in a folder that survives a kill at any moment.

The folder holds `study.json` (settings, digests of schema and tables), `runs/` (one outcome for each finished run),
`results.parquet`, and `index.html`. A run's outcome appears in one step, so what is there is finished, and what is not
there is run again. Confidential: scores compare with the private table, and noise of all these runs together was not
paid for. A study on a public table of the same schema (`public_proxy`) costs nothing and may be shown.
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
from understudy.compare.watch import Limits, watched
from understudy.counts.open import open_table
from understudy.counts.source import PrivateTable
from understudy.errors import UsageError
from understudy.evaluate.store import CLOSED_FILE, CLOSED_FOLDER, MARKER, write_closed
from understudy.progress import Progress, silent
from understudy.release.statement import digest_of
from understudy.schema import Schema

__all__ = ["Finished", "Study", "StudyFolder", "Tables", "run_study"]

KIND = "understudy study"
FORMAT = f"{KIND}, format 2"
WORK = ".work-"
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
        """Begins the study, or goes on with it if it was begun under the same settings, on the same tables.

        Raises:
            UsageError: if the folder holds something else, a damaged study, or one with other settings or tables.
        """
        users = [one.name for one in settings.candidates if one.uses_public]
        document = {
            "format": FORMAT,
            "confidential": not tables.is_public,
            "schema": digest_of(schema),
            "settings": settings.to_json(),
            "table": fingerprint(tables.data, schema),
            "public": None if tables.public is None else fingerprint(tables.public, schema),
            "public used by": [] if tables.public is None else users,
        }
        begun = self.place / "study.json"
        if begun.exists():
            _require_same(_read(begun), document, self.place)
        elif self.place.exists() and any(path.name != ".study.json.part" for path in self.place.iterdir()):
            raise UsageError(f"output {str(self.place)!r}", "exists and is not a study.", "Give a new folder.")
        else:
            self.place.mkdir(parents=True, exist_ok=True)
            if not tables.is_public:
                self.place.chmod(CLOSED_FOLDER)
            write_json(begun, document)
        self.runs.mkdir(exist_ok=True)
        if not tables.is_public:
            self.runs.chmod(CLOSED_FOLDER)
            write_closed(self.place / MARKER, _NOTICE.encode())

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keeps the study to this process until the block ends; a process that is killed lets go of it.

        Raises:
            UsageError: if another process is running this study.
        """
        with (self.place / "study.json").open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                where = f"output {str(self.place)!r}"
                raise UsageError(where, "is being worked on by another process.", "Wait for it.") from None
            for left in self.place.glob(f"{WORK}*"):  # of a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            yield

    def study(self, settings: StudySettings, *, confidential: bool, title: str, has_public: bool = False) -> Study:
        """What has ended so far."""
        read = ((cell, read_outcome(self.outcome(cell))) for cell in settings.cells)
        runs = tuple(Finished(cell, outcome) for cell, outcome in read if outcome is not None)
        return Study(settings, runs, confidential, title, has_public)


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


_NAMES = {"candidates": "methods", "copies_mode": "copies mode", "metric_options": "options of metrics"}


def _require_same(before: Mapping[str, object], now: Mapping[str, object], place: Path) -> None:
    """Raises if the study was begun with something else, and says with what."""
    words = {
        "settings": "other settings",
        "schema": "another schema",
        "table": "another table",
        "public": "another public table",
    }
    apart = [words.get(key, words["settings"]) for key in now if before.get(key) != now[key]]
    if not apart:
        return
    found, asked = before.get("settings"), now["settings"]
    if isinstance(found, dict) and isinstance(asked, dict):
        names = [_NAMES.get(str(key), str(key)) for key in asked if found.get(key) != asked[key]]
        apart = [f"{one} ({', '.join(names)})" if one == words["settings"] and names else one for one in apart]
    rule = f"holds a study that was begun with {' and '.join(dict.fromkeys(apart))}."
    raise UsageError(f"output {str(place)!r}", rule, "Give a new folder, or the same as before.")


def run_study(
    tables: Tables,
    schema: Schema,
    settings: StudySettings,
    folder: StudyFolder,
    limits: Limits,
    *,
    progress: Progress | None = None,
) -> None:
    """Runs what has not ended yet, one process after the other."""
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
            _run(job, folder.outcome(cell), limits)
            done += 1
    told.stage("measure", 1.0)


def _ended(outcome: Outcome | None) -> bool:
    """Whether a run need not be tried again: it has scores, or was refused. Limits may be wider, faults gone."""
    return outcome is not None and outcome.status in ("done", "refused")


def _run(job: Job, target: Path, limits: Limits) -> None:
    """One process; if it leaves no outcome, what stopped it is the outcome."""
    with tempfile.TemporaryDirectory(prefix=WORK, dir=target.parent) as place:  # closed and marked as the study is
        described, log = Path(place) / "job.json", Path(place) / "log.txt"
        target.unlink(missing_ok=True)
        job.write(described)
        ending = watched(["-m", "understudy.compare.worker", str(described), str(target)], limits, log)
    if read_outcome(target) is not None:
        return
    if ending.how == "time":
        outcome = Outcome("time", f"was still running after {limits.seconds:,.3g} s.", ending.seconds, 0.0, 0)
    elif ending.how == "memory":
        reason = f"went past {limits.bytes / 2**20:,.0f} MiB."
        outcome = Outcome("memory", reason, ending.seconds, 0.0, ending.peak_bytes)
    else:
        reason = f"its process ended with status {ending.status} and left no outcome."
        outcome = Outcome("failed", reason, ending.seconds, 0.0, ending.peak_bytes)
    outcome.write(target)


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
