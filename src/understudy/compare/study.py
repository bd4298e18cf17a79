"""Study: every method at every ε, each run in a process of its own, in a folder that survives a kill at any moment.

Confidential: scores compare with the private table, and noise of all these runs together was not paid for. A study on a
public table of the same schema (`public_proxy`) costs nothing and may be shown.

The folder
----------
It holds `study.json` (settings, digests of schema and tables), `runs/` (one outcome for each finished run),
`index.html` with its tables as CSV, and `results.parquet`. A run's outcome appears in one step, so what is there is
finished, and what is not there is run again. A study is resumed only under the settings it was begun with and on the
same tables; methods, ε and repeats may be added later. Files are told apart by their bytes; frames and opened tables by
a sum over their rows, so that neither the order of rows nor the kind of frame matters. Such a fingerprint depends on
every private value: it stays in the folder, which is as confidential as the table.

Checks beforehand
-----------------
Everything that can be wrong with a study is found before its folder exists and before anything runs. Plans follow from
public facts; of the tables, headers are looked at, and whether the table has a row at all, which is no leak because a
comparison is confidential. A method that is too large for the machine stays in the study as a refused run, as long as
another one can run; every mistake of use raises.
"""

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from understudy.arrays import Words
from understudy.compare.runs import Outcome, Plain, ProcessLimits
from understudy.counts.files import Container, columns_read, opened
from understudy.counts.kernels import hash_rows
from understudy.counts.opening import is_of_files, open_table
from understudy.counts.source import PrivateTable, label_keys, texts_of
from understudy.errors import InputError, ResourceError, UsageError
from understudy.evaluate.suite import MARKER, check_metrics, chosen_metrics
from understudy.folders import CLOSED_FOLDER, KeptFolder, write_durably
from understudy.methods.method import method_named
from understudy.notebook import counted, shown_as_html
from understudy.privacy.cost import Budget
from understudy.release.files import file_digest, refuse_release_folder
from understudy.release.statement import digest_of
from understudy.schema import OpenCategory, Schema
from understudy.synthesizer.design import Copies, Design, check_memory, check_without_public, public_schema

_KEYS = (0x5EED, 0xC0DE)
_ABSENT = 0x0DDBA11


def fingerprint(table: object, schema: Schema) -> str:
    """A text that differs for different tables: contents of files, or the values of all columns a run reads.

    Raises:
        InputError, SchemaError: the table cannot be opened under the schema.
    """
    if isinstance(table, str | os.PathLike) and is_of_files(os.fspath(table)):
        return _of_files(opened(os.fspath(table), schema))
    return _of_rows(open_table(table, schema), columns_read(schema))


def _of_files(container: Container) -> str:
    digests = [file_digest(path) for path in container.paths]
    if container.kind == "database":
        (path,) = container.paths
        journal = Path(f"{path}.wal")  # changes that DuckDB has not moved into the file yet
        digests += [file_digest(journal)] if journal.is_file() else []
    if len(digests) == 1:
        whole = digests[0]
    else:
        whole = f"{hashlib.sha256(' '.join(digests).encode()).hexdigest()} of {len(digests)} files"
    dialect = ", multiline" if container.multiline else ""
    return f"sha256 {whole}{dialect}{container.declared}" + (f", table {container.table!r}" if container.table else "")


def _of_rows(table: PrivateTable, names: list[str]) -> str:
    """Number of rows, and the sums of two 64-bit hashes of every row."""
    count, sums = 0, np.zeros(len(_KEYS), np.uint64)
    for rows, batch in table.batches(names):
        columns = [_keys(batch[name]) for name in names]
        count += rows
        sums += np.array([hash_rows(columns, key, rows).sum(dtype=np.uint64) for key in _KEYS])
    header = hashlib.sha256("\0".join(names).encode()).hexdigest()[:16]
    return f"rows {count} {header} " + "".join(f"{part:016x}" for part in sums.tolist())


def _keys(values: pa.Array | pa.ChunkedArray) -> Words:
    """A hash of each value's text; absent values share one of their own."""
    texts = texts_of(values)
    coded = texts.values.dictionary_encode()
    of_values = label_keys(coded.dictionary)[coded.indices.fill_null(0)] if len(coded.dictionary) else []
    return np.append(np.asarray(of_values, np.uint64), np.uint64(_ABSENT))[texts.places]


MOST_CELLS = 100_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A method with its options, under the name the study shows."""

    name: str
    method: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Self:
        """A candidate from text: a method and its options, with spaces between; quotes keep a value with spaces whole.

        >>> Candidate.read("steps layers=2 allocation=half_leaf").options
        {'layers': '2', 'allocation': 'half_leaf'}
        """
        try:
            words = shlex.split(text) if isinstance(text, str) else []
        except ValueError:
            raise UsageError(f"method {text!r}", "has a quotation mark that is never closed.", "Close it.") from None
        if not words:
            raise UsageError("method", "is empty.", 'Give a name, such as "aim", or a name with options.')
        options: dict[str, str] = {}
        for word in words[1:]:
            key, equals, value = word.partition("=")
            if not equals or not key or key in options:
                raise UsageError(
                    f"method {text!r}",
                    "must be a name followed by options, each once.",
                    'For example "steps layers=2".',
                )
            options[key] = value
        return cls(shlex.join(words), words[0], options)

    def budget(self, epsilon: float, delta: float, *, open_labels: bool = False) -> Budget:
        """What the method is granted: one that gives pure ε only is not given a δ it could not use.

        Labels that the schema leaves open are discovered under δ, whatever the method.
        """
        method = method_named(self.method, dict(self.options))
        takes = open_labels or method.spends_delta or "zcdp" in method.currencies
        return Budget(epsilon, delta if takes else 0.0)

    @property
    def uses_public(self) -> bool:
        """Whether the method can use a public table."""
        return method_named(self.method, dict(self.options)).uses_public


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of the study."""

    candidate: Candidate
    epsilon: float
    repeat: int

    @property
    def key(self) -> str:
        """A file name of its own: readable, and unique through a digest."""
        text = json.dumps([self.candidate.name, self.epsilon, self.repeat])
        plain = "".join(letter if letter.isalnum() else "-" for letter in self.candidate.name.lower())[:40]
        return f"{plain}-{self.epsilon:g}-{self.repeat}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class StudySettings:
    """Everything that decides what a study computes; limits and places are not among it."""

    candidates: tuple[Candidate, ...]
    epsilons: tuple[float, ...]
    delta: float = 0.0
    repeats: int = 3
    copies: int = 1
    copies_mode: str = "resample"
    metrics: tuple[str, ...] = ("marginals", "specks")
    rows: int | None = None
    seed: int = 0
    metric_options: Mapping[str, Mapping[str, Plain]] = field(default_factory=dict)
    formula: str | None = None
    open_labels: bool = False

    def __post_init__(self) -> None:
        _check_some("methods", [one.name for one in self.candidates])
        _check_some("epsilons", self.epsilons)
        _check_some("metrics", self.metrics)
        if type(self.repeats) is not int or self.repeats < 1:
            raise UsageError("repeats", f"must be a whole number from 1, got {self.repeats!r}.")
        Copies(self.copies, self.copies_mode, self.rows, self.seed)
        if self.rows == 0:
            raise UsageError("rows", "must be 1 or more: a table without rows has no scores.")
        if len(self.candidates) * len(self.epsilons) * self.repeats > MOST_CELLS:
            raise UsageError("study", f"has more than {MOST_CELLS:,} runs.", "Compare fewer methods, ε or repeats.")
        for candidate in self.candidates:
            for epsilon in self.epsilons:
                Budget(epsilon, self.delta)
                self.budget(candidate, epsilon)

    def budget(self, candidate: Candidate, epsilon: float) -> Budget:
        """What a method is granted in one run at that ε."""
        return candidate.budget(epsilon, self.delta, open_labels=self.open_labels)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every run: all methods once before any of them twice, so that an early look is fair."""
        return tuple(
            Cell(candidate, epsilon, repeat)
            for repeat in range(1, self.repeats + 1)
            for epsilon in self.epsilons
            for candidate in self.candidates
        )

    def to_json(self) -> dict[str, object]:
        """The settings as plain values."""
        document: dict[str, object] = json.loads(json.dumps(asdict(self)))
        return document


def leaves_labels_open(schema: Schema) -> bool:
    """Whether labels must be discovered, which takes δ."""
    return any(isinstance(column, OpenCategory) for column in schema.modelled)


def _check_some(name: str, values: Sequence[object]) -> None:
    if not values:
        raise UsageError(name, "must name at least one.")
    if len(set(values)) != len(values):
        raise UsageError(name, "must not name one twice.")


KIND = "understudy study"
FORMAT = f"{KIND}, format 2"
BEGUN, LOCK, WORK = "study.json", ".lock", ".work-"


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

    def __repr__(self) -> str:
        tried = f"{counted(len(self.settings.candidates), 'method')} at {len(self.settings.epsilons):,} ε"
        kept = "; CONFIDENTIAL" if self.confidential else ""
        return f"<Study: {tried}, {counted(len(self.runs), 'run')}{kept}>"

    def _repr_html_(self) -> str:
        """For notebooks: how every run ended."""
        rows = [
            (run.cell.candidate.name, f"{run.cell.epsilon:g}", run.cell.repeat, run.outcome.status) for run in self.runs
        ]
        note = "NOT FOR RELEASE: this compares with the private table." if self.confidential else ""
        return shown_as_html(self.title or "Study", (), ("method", "ε", "repeat", "ended"), rows, note)


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """Where a study lives."""

    place: Path

    @property
    def where(self) -> str:
        """The folder, as errors name it."""
        return f"output {str(self.place)!r}"

    @property
    def _kept(self) -> KeptFolder:
        return KeptFolder(self.place, BEGUN, LOCK)

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
        before = self._begun() if self._kept.note_path.exists() else None
        if before is not None:
            _require_same(before, document, self.place)
        elif not tables.is_public:
            self.place.chmod(CLOSED_FOLDER)
        if document != before:
            self._kept.write_note(document)
        self.runs.mkdir(exist_ok=True)
        if not tables.is_public:
            self.runs.chmod(CLOSED_FOLDER)
            write_durably(self.place / MARKER, _NOTICE.encode())

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keeps the folder to this process until the block ends; a process that is killed lets go of it.

        A folder in which no study was begun is removed again.

        Raises:
            UsageError: if it holds something else, or another process is running this study.
        """
        self._make()
        kept = self._kept
        if not kept.hold():
            raise UsageError(self.where, "is in use by another process.", "Wait for it.")
        try:
            for left in (*self.place.glob(f"{WORK}*"), *self.runs.glob(f"{WORK}*")):  # of a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            yield
        finally:
            kept.lock_path.unlink(missing_ok=True)
            if not kept.note_path.exists():
                with contextlib.suppress(OSError):
                    self.place.rmdir()
            kept.let_go()

    def _make(self) -> None:
        """The folder, unless it holds something else."""
        if self.place.exists() and not (self.place / BEGUN).exists():
            others = [path for path in self.place.iterdir() if path.name not in (f".{BEGUN}.part", LOCK)]
            if others:
                raise UsageError(self.where, "exists and is not a study.", "Give a new folder.")
        self.place.mkdir(parents=True, exist_ok=True)

    def _begun(self) -> Mapping[str, object]:
        """What the study was begun with."""
        document = self._kept.read_note()
        if document is None:
            rule = "holds a study.json that cannot be read, so it is not known what was run there."
            raise UsageError(self.where, rule, "Restore that file, or give a new folder.")
        if not str(document.get("format")).startswith(KIND):
            raise UsageError(self.where, "holds a study.json of another program.", "Give a new folder.")
        if document["format"] != FORMAT:
            rule = "holds a study of another version of understudy."
            raise UsageError(self.where, rule, "Go on with that version, or give a new folder.")
        return document

    def check_unchanged(self, tables: Tables, schema: Schema) -> None:
        """Raises if a table is no longer the one with which the study was begun.

        Raises:
            UsageError: with what to do.
        """
        before = self._begun()
        if any(before.get(key) != found for key, found in _fingerprints(tables, schema).items()):
            self._kept.write_note({**before, "table": "changed"})  # so that no table can go on with these runs
            rule = "changed while the study was running, so its runs may come from two different tables."
            raise UsageError("table", rule, "Give a new folder, and tables that do not change.")


def drop_left_behind(prefix: str) -> None:
    """Removes studies without a lasting folder whose processes were killed: they may hold a copy of a table."""
    for place in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        kept = KeptFolder(place, BEGUN, LOCK)
        with contextlib.suppress(OSError):  # others' folders cannot be opened
            if kept.lock_path.is_file() and kept.hold():
                kept.discard()


def _fingerprints(tables: Tables, schema: Schema) -> dict[str, object]:
    public = None if tables.public is None else fingerprint(tables.public, schema)
    return {"table": fingerprint(tables.data, schema), "public": public}


_NOTICE = (
    "NOT FOR RELEASE. The scores in this folder were computed from the private table, run after run; no privacy\n"
    "guarantee covers them, and choosing a method by them is not covered either. Keep it where the table is kept.\n"
)


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
    found, queries = before.get("settings"), now["settings"]
    if isinstance(found, dict) and isinstance(queries, dict):
        names = [_NAMES.get(str(key), str(key)) for key in queries if not _covers(key, queries[key], found.get(key))]
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


LEAST_BYTES = 2**20

Forecasts = Mapping[tuple[str, float], int]
"""The most memory that the plan of a method at an ε says a run may come to; of those that were not refused."""


def check_study(tables: Tables, schema: Schema, settings: StudySettings, limits: ProcessLimits) -> Forecasts:
    """What memory each method may take at each ε; raises unless the study can be run as it is asked for.

    Raises:
        UsageError, SchemaError: for a mistake in what is asked, or a table that cannot be read under the schema.
        ResourceError: if no method can run on this machine at any ε.
    """
    numbers = all(isinstance(one, int | float) for one in (limits.seconds, limits.bytes))
    if not numbers or not limits.seconds > 0 or not limits.bytes >= LEAST_BYTES:
        given = f"{limits.seconds!r} s and {limits.bytes!r} bytes"
        raise UsageError("limits", f"must be above 0 s and 1 MiB, got {given}.")
    _check_metrics(settings, schema)
    _check_table(tables.data, schema)
    return _check_plans(tables, schema, settings)


def check_place(place: Path) -> None:
    """Raises unless a study may live there: in a folder, new or not, that can be written and is no release.

    Raises:
        UsageError: with what to do instead.
    """
    refuse_release_folder(place)
    where = f"output {str(place)!r}"
    if (place.exists() or place.is_symlink()) and not place.is_dir():
        raise UsageError(where, "is a file or a broken link, but a study is a folder.", "Name a new folder.")
    known = next((parent for parent in (place, *place.absolute().parents) if parent.exists()), place)
    if not known.is_dir():
        raise UsageError(where, f"cannot be made, because {str(known)!r} is a file.", "Name another folder.")
    if not os.access(known, os.W_OK | os.X_OK):
        raise UsageError(where, f"cannot be made or written in {str(known)!r}.", "Name a folder you may write in.")


def _check_metrics(settings: StudySettings, schema: Schema) -> None:
    check_metrics(chosen_metrics(settings.metrics, settings.metric_options, settings.formula), schema)


def _check_table(data: object, schema: Schema) -> None:
    table = open_table(data, schema)
    if not any(rows for rows, _ in table.batches([])):
        raise InputError("table", "has no rows, so there is nothing to compare with.", "Name a table with rows.")


def _check_plans(tables: Tables, schema: Schema, settings: StudySettings) -> Forecasts:
    if tables.public is not None and not any(one.uses_public for one in settings.candidates):
        rule = "is given, but none of these methods uses a public table."
        raise UsageError("public", rule, "Drop it or add a method that uses one; see `understudy methods`.")
    refused: list[ResourceError] = []
    found: dict[tuple[str, float], int] = {}
    pairs = [(one, epsilon) for one in settings.candidates for epsilon in settings.epsilons]
    for one, epsilon in pairs:
        try:
            found[one.name, epsilon] = _check_plan(one, epsilon, tables, schema, settings)
        except ResourceError as error:
            refused.append(error)
        except InputError:
            raise
        except UsageError as error:
            place = error.problem.where
            where = f"{one.name} at ε = {epsilon:g}" + ("" if place == f"method {one.method}" else f", {place}")
            raise UsageError(where, error.problem.rule, error.problem.fix) from None
    if len(refused) == len(pairs):
        raise refused[0]
    return found


def _check_plan(one: Candidate, epsilon: float, tables: Tables, schema: Schema, settings: StudySettings) -> int:
    """The most memory by its plan; raises what `synthesize` would raise before it reads a row."""
    wanted = Copies(settings.copies, settings.copies_mode, settings.rows, settings.seed)
    budget, public = settings.budget(one, epsilon), tables.public_for(one)
    design = Design.of(schema, one.method, budget, options=dict(one.options), runs=wanted.runs, public=public)
    if public is None:
        check_without_public(design)
    else:
        open_table(public, public_schema(design))
    check_memory(design.plan, None)
    return design.plan.limit_bytes
