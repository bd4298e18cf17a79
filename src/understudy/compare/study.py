"""Study: every method at every ε, each run in a process of its own, in a folder that survives a kill at any moment.

The folder holds `study.json` (settings and a digest of the schema), `runs/` (one outcome for each finished run),
`results.parquet`, and `index.html`. A run's outcome appears in one step, so what is there is finished, and what is not
there is run again. Confidential: scores compare with the private table, and noise of all these runs together was not
paid for. A study on a public table of the same schema (`public_proxy`) costs nothing and may be shown.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from understudy.compare.job import Job, Outcome, read_outcome, write_json
from understudy.compare.settings import Cell, StudySettings
from understudy.compare.watch import Limits, watched
from understudy.counts.open import open_table
from understudy.counts.source import PrivateTable
from understudy.errors import UsageError
from understudy.progress import Progress, silent
from understudy.release.statement import digest_of
from understudy.schema import Schema

__all__ = ["Finished", "Study", "StudyFolder", "Tables", "run_study"]

FORMAT = "understudy study, format 1"
MARKER = "NOT-FOR-RELEASE.txt"
SEED_STEP = 1_000_003


@dataclass(frozen=True, slots=True)
class Tables:
    """The table of a study, whether it is public itself, and a public table for methods that use one."""

    data: object
    public: str | None = None
    is_public: bool = False


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
            UsageError: if the folder holds something else, or a study with other settings or tables.
        """
        confidential = not tables.is_public
        document = {
            "format": FORMAT,
            "confidential": confidential,
            "schema": digest_of(schema),
            "settings": settings.to_json(),
            "table": _mark(tables.data),
            "public": None if tables.public is None else _mark(tables.public),
        }
        begun = self.place / "study.json"
        if begun.is_file():
            if json.loads(begun.read_text(encoding="utf-8")) != document:
                rule = "holds a study with other settings, another schema or another table."
                raise UsageError(f"output {str(self.place)!r}", rule, "Give a new folder, or the same as before.")
            return
        if self.place.exists() and any(self.place.iterdir()):
            raise UsageError(f"output {str(self.place)!r}", "exists and is not a study.", "Give a new folder.")
        self.runs.mkdir(parents=True, exist_ok=True)
        if confidential:
            self.place.chmod(0o700)
            (self.place / MARKER).write_text(_NOTICE, encoding="utf-8")
        write_json(begun, document)

    def study(self, settings: StudySettings, *, confidential: bool, title: str) -> Study:
        """What has ended so far."""
        read = ((cell, read_outcome(self.outcome(cell))) for cell in settings.cells)
        runs = tuple(Finished(cell, outcome) for cell, outcome in read if outcome is not None)
        return Study(settings, runs, confidential, title)


_NOTICE = (
    "NOT FOR RELEASE. The scores in this folder were computed from the private table, run after run; no privacy\n"
    "guarantee covers them, and choosing a method by them is not covered either. Keep it where the table is kept.\n"
)


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
    with _files(tables.data, schema) as (rows, declared):
        for cell in waiting:
            told.stage("measure", done / len(settings.cells))
            budget = cell.candidate.budget(cell.epsilon, settings.delta)
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
                public=tables.public,
            )
            _run(job, folder.outcome(cell), limits)
            done += 1
    told.stage("measure", 1.0)


def _ended(outcome: Outcome | None) -> bool:
    """Whether a run need not be tried again: it has scores, or was refused. Limits may be wider, faults gone."""
    return outcome is not None and outcome.status in ("done", "refused")


def _mark(table: object) -> str:
    """What tells one table from another when a study is taken up again: a file's digest, else its name or form.

    It stays in the study's folder, which is as confidential as the table.
    """
    if not isinstance(table, str | os.PathLike):
        return f"frame of {type(table).__module__.partition('.')[0]}"
    path = Path(table)
    if not path.is_file():
        return os.fspath(table)
    with path.open("rb") as file:
        return f"sha256 {hashlib.file_digest(file, 'sha256').hexdigest()}"


def _run(job: Job, target: Path, limits: Limits) -> None:
    """One process; if it leaves no outcome, what stopped it is the outcome."""
    with tempfile.TemporaryDirectory() as place:
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


@contextmanager
def _files(table: object, schema: Schema) -> Iterator[tuple[str, str]]:
    """Table and schema as files for the processes; a frame is written to a private temporary file and removed."""
    with tempfile.TemporaryDirectory() as place:
        declared = Path(place) / "schema.yaml"
        schema.to_yaml(declared)
        if isinstance(table, str | os.PathLike):
            yield os.fspath(table), str(declared)
            return
        rows = Path(place) / "table.parquet"
        pq.write_table(_written(open_table(table, schema), schema), rows)
        yield str(rows), str(declared)


def _written(table: PrivateTable, schema: Schema) -> pa.Table:
    """The columns a run reads: those that are modelled, and who the rows belong to."""
    names = [column.name for column in schema.modelled]
    if schema.unit.column is not None and schema.unit.column not in names:
        names.append(schema.unit.column)
    parts = [pa.table(dict(batch)) for _, batch in table.batches(names)]
    return pa.concat_tables(parts)
