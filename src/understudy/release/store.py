"""The release folder on disk: written in one piece under fixed names, read back with every file checked first.

Nothing is written that was not already in the release, no clock is read, nothing that is loaded is executed.

measurements.parquet
--------------------
Every noisy answer in tidy form, one row per cell, and the way back to transcripts. The columns are for people (which
question, which cell in words, which value, which noise; the check's tables are of the kind "held back"); exact
fractions, shapes and counts of cells travel in the file's metadata. Reading checks one against the other and refuses
what does not agree.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from understudy.arrays import Ints
from understudy.codec.table import TableCodec
from understudy.domain import (
    Answer,
    Course,
    Discovery,
    Distribution,
    Grown,
    HeldBack,
    Measurement,
    NoisyScores,
    ResidualTable,
    Selection,
    Selections,
    SparseMeasurement,
    Trained,
    Transcript,
)
from understudy.errors import InputError, Problem, ReleaseError, ResourceError, UnderstudyError
from understudy.models.model import fraction_of, load_model, parse_json, read_json, read_plain, save_model
from understudy.progress import Progress
from understudy.release.card import build_card, card_facts
from understudy.release.check import stored_tables
from understudy.release.files import PACKAGES_FILE, finish_waiting, machine_bytes, packages_text, published, walk
from understudy.release.parquet import batch_rows, open_parquet
from understudy.release.release import (
    Fitted,
    Release,
    RunConfig,
    checked_release,
    data_name,
    draw_tables,
    read_config,
    write_config,
    write_rows,
)
from understudy.release.statement import Statement, read_statement, statement_document, statement_markdown
from understudy.release.statistics import (
    STATISTICS_FILE,
    CellWords,
    numbered,
    repeated,
    storable,
    write_statistics_file,
)
from understudy.report import render_page
from understudy.schema import Schema
from understudy.schema.document import schema_from_text

FIXED_FILES = (
    "card.html",
    "config.yaml",
    "ledger.jsonl",
    "measurements.parquet",
    "schema.yaml",
    "statement.json",
    "statement.md",
)


def model_name(run: int) -> str:
    """The folder of a run's fitted model."""
    return f"model/{run}"


def codec_name(run: int) -> str:
    """The file of a run's fixed codes."""
    return f"model/codec-{run}.json"


def save_release(
    release: Release, target: Path, progress: Progress, completing: Callable[[], None] | None = None
) -> Statement:
    """Writes every file of the folder and publishes it in one rename; `completing` is called just before that.

    Returns the statement as it was written: what the check says about the rows is computed from the written ones.
    """
    with published(target, completing) as folder:
        progress.stage("draw", 0.0)
        for copy in range(1, release.config.copies + 1):
            _write_data(release, copy, folder)
            progress.stage("draw", copy / release.config.copies)
        progress.stage("write", 0.0)
        # From the written rows: what is said of them must hold for the file that people get.
        release = checked_release(release, partial(_stored_copy, release, folder))
        _write_fits(release, folder)
        # ASCII, so that no reader's guess of an encoding changes a text; NaN is no JSON.
        document = json.dumps(statement_document(release.statement), indent=1, ensure_ascii=True, allow_nan=False)
        _write_text(folder / "statement.json", document + "\n")
        _write_text(folder / "statement.md", statement_markdown(release.statement))
        release.schema.to_yaml(folder / "schema.yaml")
        write_config(release.config, folder / "config.yaml")
        _write_text(folder / "ledger.jsonl", "".join(f"{line}\n" for line in release.ledger))
        _write_text(folder / PACKAGES_FILE, packages_text())
        page = build_card(card_facts(release, folder / data_name(1, release.config.copies)))
        _write_text(folder / "card.html", render_page(page))
    progress.stage("write", 1.0)
    return release.statement


def _stored_copy(release: Release, folder: Path, copy: int) -> Iterator[pa.Table]:
    return stored_tables(folder / data_name(copy, release.config.copies), release.codec)


def _write_data(release: Release, copy: int, folder: Path) -> None:
    fitted = release.fitted(copy)
    rows = release.config.rows[copy - 1]
    pieces = draw_tables(fitted, rows, seed=release.config.seed, copy=copy, entries=True)
    path = folder / data_name(copy, release.config.copies)
    write_rows(path, fitted.codec.arrow_schema, pieces, release.marks())


def _write_fits(release: Release, folder: Path) -> None:
    (folder / "model").mkdir()
    for run, fitted in enumerate(release.fits, start=1):
        save_model(fitted.model, folder / model_name(run))
        _write_text(folder / codec_name(run), json.dumps(fitted.codec.to_json(), ensure_ascii=True) + "\n")
    transcripts = [fitted.transcript for fitted in release.fits]
    write_measurements(folder / "measurements.parquet", transcripts, [fitted.codec for fitted in release.fits])
    write_statistics_file(folder / STATISTICS_FILE, release.fits)


def _write_text(path: Path, text: str) -> None:
    # Half of a surrogate pair, in a name that a person chose, must not fail a run that was charged.
    path.write_bytes(text.encode("utf-8", "backslashreplace"))


@dataclass(frozen=True, slots=True)
class Loaded:
    """The content of a release folder."""

    schema: Schema
    fits: tuple[Fitted, ...]
    statement: Statement
    config: RunConfig
    ledger: tuple[str, ...]
    folder: Path


def load_release(folder: Path) -> Loaded:
    """The content of a release folder, or every reason why it cannot be read."""
    if not folder.is_dir() and not finish_waiting(folder):
        raise InputError(f"release {str(folder)!r}", "is not a folder.", "Name the folder that synthesize wrote.")
    present, strange = walk(folder)
    if strange:
        raise ReleaseError(strange)
    _require(FIXED_FILES, present)
    try:
        return _loaded(folder, present)
    except (UnderstudyError, MemoryError):
        raise
    except Exception as error:  # whatever a damaged file leads to, it is the folder that is at fault
        rule = f"cannot be read ({type(error).__name__})."
        raise ReleaseError([Problem("release folder", rule, "Run `understudy verify` on it.")]) from error


def _loaded(folder: Path, present: Sequence[str]) -> Loaded:
    schema = read_schema(folder)
    config = read_config(folder / "config.yaml")
    statement = read_statement(read_json(folder / "statement.json"))
    runs = number_of_runs(config)
    _require(expected_files(config), present)
    transcripts = read_measurements(folder / "measurements.parquet", runs)
    fits = tuple(
        Fitted(load_codec(schema, folder, run), transcript, load_model(folder / model_name(run)))
        for run, transcript in enumerate(transcripts, start=1)
    )
    return Loaded(schema, fits, statement, config, read_ledger(folder), folder.absolute())


def _require(names: Sequence[str], present: Sequence[str]) -> None:
    missing = sorted(set(names) - set(present))
    if missing:
        raise ReleaseError([Problem(name, "is missing from the release folder.", "Restore it.") for name in missing])


def number_of_runs(config: RunConfig) -> int:
    """How many times the private table was measured."""
    return 1 if config.copies_mode == "resample" else config.copies


def expected_files(config: RunConfig) -> list[str]:
    """Every file the folder must hold besides the manifest and the arrays of the models."""
    runs = range(1, number_of_runs(config) + 1)
    data = [data_name(copy, config.copies) for copy in range(1, config.copies + 1)]
    models = [f"{model_name(run)}/model.json" for run in runs]
    return sorted([*FIXED_FILES, *data, *models, *(codec_name(run) for run in runs)])


def load_codec(schema: Schema, folder: Path, run: int) -> TableCodec:
    """The fixed codes of a run."""
    name = codec_name(run)
    document = read_json(folder / name)
    try:
        if not isinstance(document, dict):
            raise TypeError("object")
        return TableCodec.from_json(schema, document)
    except (KeyError, TypeError, ValueError, UnderstudyError) as error:
        raise ReleaseError([Problem(name, "does not fit the schema.", "Restore the folder.")]) from error


def read_schema(folder: Path) -> Schema:
    """The schema of a release."""
    name = "schema.yaml"
    try:
        text = read_plain(folder / name).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ReleaseError([Problem(name, "is not UTF-8.", "Restore the folder.")]) from error
    return schema_from_text(text, name)


def read_ledger(folder: Path) -> tuple[str, ...]:
    """The lines of the ledger extract."""
    text = read_plain(folder / "ledger.jsonl").decode("utf-8", errors="replace")
    return tuple(line for line in text.split("\n") if line)


CHUNK_CELLS = 2**18
METADATA_KEY = b"understudy.answers"
_WORDS = pa.dictionary(pa.int32(), pa.string())
TIDY = pa.schema(
    [
        ("run", pa.int32()),
        ("answer", pa.int32()),
        ("kind", _WORDS),
        ("question", _WORDS),
        ("cell", pa.int64()),
        ("label", pa.string()),
        ("value", pa.int64()),
        ("noise", _WORDS),
        ("scale", pa.float64()),
        ("threshold", pa.int64()),
    ]
)
KINDS = (
    "measurement",
    "held back",
    "sparse measurement",
    "residuals",
    "discovery",
    "selection",
    "selections",
    "scores",
    "tree",
    "training",
)
NOISES = ("laplace", "gaussian")
_CHECKED = ["run", "answer", "kind", "cell", "value", "noise", "scale"]
_ROW_BYTES = 2 * 16
Header = Mapping[str, object]


def write_measurements(path: Path, transcripts: Sequence[Transcript], codecs: Sequence[TableCodec]) -> None:
    """Writes the answers of every run, in order and in bounded pieces."""
    headers = [
        _header(run, position, answer)
        for run, transcript in enumerate(transcripts, start=1)
        for position, answer in enumerate(transcript)
    ]
    # Exact fractions as text beside the columns, which hold floats for people: noise is judged by the exact ones.
    schema = TIDY.with_metadata({METADATA_KEY: json.dumps(headers, ensure_ascii=True).encode()})
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for run, (transcript, codec) in enumerate(zip(transcripts, codecs, strict=True), start=1):
            words = CellWords(codec)
            for position, answer in enumerate(transcript):
                for batch in _batches(run, position, answer, words):
                    writer.write_batch(batch)


def read_measurements(path: Path, runs: int, most_rows: int | None = None) -> list[Transcript]:
    """The transcripts that `write_measurements` was given, of at most so many rows (none: what memory holds).

    Raises:
        ReleaseError: when metadata and columns disagree.
        ResourceError: when there are more rows.
    """
    limit = machine_bytes() // _ROW_BYTES if most_rows is None else most_rows
    with open_parquet(path, ("kind", "noise", "label")) as stored:
        try:
            if stored.schema_arrow.names != TIDY.names:
                raise ValueError("columns")
            headers = _headers(stored, runs)
            # Before anything is allocated: a few kilobytes can claim billions of rows.
            if stored.metadata.num_rows > limit:
                sizes = (stored.metadata.num_rows * _ROW_BYTES, limit * _ROW_BYTES)
                raise ResourceError(path.name, *sizes, "Use a machine with more memory.")
            return _transcripts(_Rows.read(stored, headers), headers, runs)
        except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError, pa.ArrowException) as error:
            problem = Problem(path.name, "does not hold answers in the expected form.", "Restore the folder.")
            raise ReleaseError([problem]) from error


def _header(run: int, position: int, answer: Answer) -> dict[str, object]:
    header: dict[str, object] = {"run": run, "answer": position, "kind": _kind(answer), "name": answer.name}
    if isinstance(answer, Selection | Selections):
        scores = {"sensitivity": str(answer.sensitivity), "monotone": answer.monotone}
        rows = 1 if isinstance(answer, Selection) else int(answer.chosen.size)
        return header | {"options": answer.options, "rate": str(answer.rate), **scores, "rows": rows}
    # "law" is the word of the first format, and files written then must still be read.
    header |= {"law": _written(answer.distribution), "rows": int(answer.values.size)}
    if isinstance(answer, Trained):
        course, first = answer.course, answer.first_distribution
        shares = {"gap": str(course.gap), "first_share": str(course.first_share)}
        shown = None if first is None else _written(first)
        return header | {"clip": course.clip, "steps": course.steps, **shares, "first_law": shown}
    if isinstance(answer, NoisyScores):
        return header | {"sensitivity": str(answer.sensitivity)}
    if isinstance(answer, ResidualTable):
        return header | {"columns": list(answer.columns), "shape": list(answer.shape)}
    if isinstance(answer, Grown):
        rule = {"bias": answer.bias, "theta": answer.theta, "decay": str(answer.decay)}
        return header | {"layers": list(answer.layers), **rule}
    if isinstance(answer, Discovery):
        return header | {"column": answer.column, "threshold": answer.threshold}
    header |= {"columns": list(answer.columns), "shape": list(answer.shape)}
    return header | ({"threshold": answer.threshold} if isinstance(answer, SparseMeasurement) else {})


def _written(distribution: Distribution) -> list[object]:
    """Noise that is not rounded is written as it always was."""
    grid: list[object] = [] if distribution.grid == 1 else [distribution.grid]
    return [distribution.kind, str(distribution.parameter), *grid]


def _kind(answer: Answer) -> str:
    match answer:
        case Measurement():
            return "measurement"
        case HeldBack():
            return "held back"
        case SparseMeasurement():
            return "sparse measurement"
        case Discovery():
            return "discovery"
        case Selection():
            return "selection"
        case Selections():
            return "selections"
        case NoisyScores():
            return "scores"
        case ResidualTable():
            return "residuals"
        case Grown():
            return "tree"
        case Trained():
            return "training"


def _batches(run: int, position: int, answer: Answer, words: CellWords) -> Iterator[pa.RecordBatch]:
    values = np.atleast_1d(answer.chosen) if isinstance(answer, Selection | Selections) else answer.values
    total = values.size
    for start in range(0, total, CHUNK_CELLS):
        part = slice(start, min(start + CHUNK_CELLS, total))
        cells = np.arange(part.start, part.stop, dtype=np.int64)
        if isinstance(answer, SparseMeasurement):
            cells = answer.indices[part]
        yield _batch(run, position, answer, (cells, _labels(answer, cells, part, words), values[part]))


def _labels(answer: Answer, cells: Ints, part: slice, words: CellWords) -> pa.Array:
    """What each row is about, in words."""
    match answer:
        case Discovery():
            return pa.array(answer.labels[part], pa.string())
        case Measurement() | HeldBack() | SparseMeasurement():
            return words.of_cells(answer.columns, answer.shape, cells)
        case Selections():
            return numbered("option chosen in cell", cells)
        case NoisyScores():
            return numbered("option", cells)
        case ResidualTable():
            return numbered("contrast", cells)
        case Grown():
            layers = np.repeat(np.arange(len(answer.layers)), np.array(answer.layers, np.int64))
            return numbered("split in layer", layers[part])
        case Trained():
            return numbered("coordinate of the first look", cells)
        case _:
            return pa.array(["chosen option"] * cells.size, pa.string())


def _batch(run: int, position: int, answer: Answer, columns: tuple[Ints, pa.Array, Ints]) -> pa.RecordBatch:
    cells, labels, values = columns
    rows = values.size
    distribution = None if isinstance(answer, Selection | Selections) else _shown_distribution(answer)
    threshold = answer.threshold if isinstance(answer, SparseMeasurement | Discovery) else None
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(rows, run, np.int32)),
            pa.array(np.full(rows, position, np.int32)),
            repeated(_kind(answer), rows),
            repeated(storable(answer.name), rows),
            pa.array(cells),
            labels,
            pa.array(values, pa.int64()),
            repeated(None if distribution is None else distribution.kind, rows),
            pa.array(np.full(rows, np.nan if distribution is None else distribution.scale)),
            pa.array([threshold] * rows, pa.int64()),
        ],
        schema=TIDY,
    )


def _shown_distribution(
    answer: Measurement | HeldBack | SparseMeasurement | ResidualTable | Discovery | NoisyScores | Grown | Trained,
) -> Distribution:
    """The noise in the values shown; of a training these are the values of its first look."""
    return answer.first_distribution or answer.distribution if isinstance(answer, Trained) else answer.distribution


def _headers(stored: pq.ParquetFile, runs: int) -> list[Header]:
    """What the metadata say about every answer, in order, for as many rows as there are."""
    headers = []
    queries = [0] * runs
    rows = 0
    for header in _list(parse_json(stored.schema_arrow.metadata[METADATA_KEY], "metadata")):
        if not isinstance(header, Mapping) or not 1 <= _whole(header["run"]) <= runs or _whole(header["rows"]) < 0:
            raise ValueError("header")
        if header["answer"] != queries[header["run"] - 1]:
            raise ValueError("order")
        queries[header["run"] - 1] += 1
        rows += header["rows"]
        headers.append(header)
    if rows != stored.metadata.num_rows:
        raise ValueError("rows")
    return headers


@dataclass(frozen=True, slots=True)
class _Rows:
    """The columns that answers are made of; the others agree with the metadata."""

    values: Ints
    cells: Ints
    labels: Mapping[int, list[str]]
    """The labels of each discovery, by the number of its first row."""

    @classmethod
    def read(cls, stored: pq.ParquetFile, headers: Sequence[Header]) -> "_Rows":
        expected = _Expected(headers)
        found = cls(np.empty(expected.rows, np.int64), np.empty(expected.rows, np.int64), {})
        start = 0
        for batch in stored.iter_batches(batch_rows(len(_CHECKED)), columns=_CHECKED):
            part = slice(start, start + batch.num_rows)
            expected.check(batch, part)
            found.values[part], found.cells[part] = _numbers(batch["value"]), _numbers(batch["cell"])
            start = part.stop
        if start != expected.rows:
            raise ValueError("rows")
        return replace(found, labels=_discovered(stored, headers))


class _Expected:
    """What the metadata say about every row."""

    def __init__(self, headers: Sequence[Header]) -> None:
        self._ends = np.cumsum([0, *(_whole(header["rows"]) for header in headers)])[1:]
        self.rows = int(self._ends[-1]) if headers else 0
        distributions = [_stated_distribution(header) for header in headers]
        self._wholes = {name: np.array([_whole(header[name]) for header in headers]) for name in ("run", "answer")}
        self._kinds = np.array([KINDS.index(str(header["kind"])) for header in headers])
        self._noises = np.array(
            [-1 if distribution is None else NOISES.index(distribution.kind) for distribution in distributions]
        )
        self._scales = np.array(
            [np.nan if distribution is None else distribution.scale for distribution in distributions]
        )

    def check(self, batch: pa.RecordBatch, part: slice) -> None:
        """Raises ValueError unless these rows say the same as the metadata."""
        which = np.searchsorted(self._ends, np.arange(part.start, part.stop), side="right")
        noises = self._noises[which]
        scales = np.asarray(batch["scale"], dtype=np.float64)
        # Columns and metadata say the same twice; whoever alters one of them for readers has to be caught.
        agree = [np.array_equal(_numbers(batch[name]), whole[which]) for name, whole in self._wholes.items()]
        agree.append(np.array_equal(_places(batch["kind"], KINDS), self._kinds[which]))
        agree.append(bool(np.all((noises < 0) | (_places(batch["noise"], NOISES) == noises))))
        agree.append(bool(np.all((noises < 0) | (scales == self._scales[which]))))
        if not all(agree):
            raise ValueError("columns")


def _stated_distribution(header: Header) -> Distribution | None:
    """The noise in the values of an answer, if noise is what they have."""
    if header["kind"] in ("selection", "selections"):
        return None
    stored = header["first_law"] if header["kind"] == "training" else header["law"]
    return None if stored is None else _distribution(stored)


def _numbers(column: pa.Array) -> Ints:
    if column.null_count:
        raise ValueError("missing")
    return np.asarray(column.cast(pa.int64()), dtype=np.int64)


def _places(column: pa.Array, words: Sequence[str]) -> Ints:
    """The place of each text among these words; -1 for any other and for none."""
    known = pc.fill_null(pc.index_in(column.dictionary, value_set=pa.array(words, pa.string())), -1)
    places = np.append(np.asarray(known, dtype=np.int64), -1)
    return places[np.asarray(pc.fill_null(column.indices, len(places) - 1), dtype=np.int64)]


def _discovered(stored: pq.ParquetFile, headers: Sequence[Header]) -> dict[int, list[str]]:
    """The labels of every discovery; one object for each text, however many rows name it."""
    starts = np.cumsum([0, *(_whole(header["rows"]) for header in headers)]).tolist()
    wanted = [(start, start + _whole(one["rows"])) for start, one in zip(starts, headers, strict=False)]
    wanted = [span for span, one in zip(wanted, headers, strict=True) if one["kind"] == "discovery"]
    found: dict[int, list[str]] = {start: [] for start, _ in wanted}
    position = 0
    for batch in stored.iter_batches(batch_rows(1), columns=["label"]) if wanted else ():
        column, stop = batch.column(0), position + batch.num_rows
        inside = [(start, max(start, position), min(end, stop)) for start, end in wanted]
        spans = [span for span in inside if span[1] < span[2]]
        words = column.dictionary.to_pylist() if spans else []
        for start, first, last in spans:
            indices = column.indices.slice(first - position, last - first).to_pylist()
            found[start] += [words[index] for index in indices]
        position = stop
    return found


def _transcripts(rows: _Rows, headers: Sequence[Header], runs: int) -> list[Transcript]:
    transcripts = [Transcript() for _ in range(runs)]
    start = 0
    for header in headers:
        stop = start + _whole(header["rows"])
        answer = _answer(header, rows.values[start:stop], rows.cells[start:stop], rows.labels.get(start, []))
        transcripts[_whole(header["run"]) - 1].append(answer)
        start = stop
    return transcripts


def _answer(header: Header, values: Ints, cells: Ints, labels: Sequence[str]) -> Answer:
    name = str(header["name"])
    if header["kind"] in ("selection", "selections"):
        return _chosen(header, name, cells, values)
    if header["kind"] == "training":
        return _training(header, name, cells, values)
    distribution = _distribution(header["law"])
    if header["kind"] in ("scores", "tree"):
        return _scores_or_tree(header, name, cells, (values, distribution))
    if header["kind"] == "discovery":
        return Discovery(name, str(header["column"]), tuple(labels), values, distribution, _whole(header["threshold"]))
    columns, shape = tuple(map(str, _list(header["columns"]))), tuple(map(_whole, _list(header["shape"])))
    if header["kind"] == "sparse measurement":
        return SparseMeasurement(name, columns, shape, cells, values, distribution, _whole(header["threshold"]))
    if not np.array_equal(cells, np.arange(values.size)):
        raise ValueError("cells")
    if header["kind"] == "residuals":
        if len(shape) not in (1, 2) or min(shape) < 2 or math.prod(size - 1 for size in shape) != values.size:
            raise ValueError("shape")
        return ResidualTable(name, columns, shape, values, distribution)
    form = HeldBack if header["kind"] == "held back" else Measurement
    return form(name, columns, shape, values, distribution)


def _chosen(header: Header, name: str, cells: Ints, values: Ints) -> Selection | Selections:
    rate, sensitivity = fraction_of(header["rate"]), fraction_of(header["sensitivity"])
    options, monotone = _whole(header["options"]), header["monotone"] is True
    if not np.array_equal(cells, np.arange(values.size)) or np.any((values < 0) | (values >= options)):
        raise ValueError("options")
    if header["kind"] == "selections":
        return Selections(name, options, values, rate, sensitivity, monotone)
    (chosen,) = values.tolist()
    return Selection(name, options, chosen, rate, sensitivity, monotone)


def _scores_or_tree(header: Header, name: str, cells: Ints, answered: tuple[Ints, Distribution]) -> NoisyScores | Grown:
    values, distribution = answered
    if not np.array_equal(cells, np.arange(values.size)):
        raise ValueError("cells")
    if header["kind"] == "scores":
        return NoisyScores(name, values, distribution, fraction_of(header["sensitivity"]))
    layers = tuple(map(_whole, _list(header["layers"])))
    if min(layers, default=0) < 0 or sum(layers) != values.size or np.any((values != 0) & (values != 1)):
        raise ValueError("layers")
    bias, theta = _whole(header["bias"]), _whole(header["theta"])
    return Grown(name, layers, values, distribution, bias, theta, fraction_of(header["decay"]))


def _training(header: Header, name: str, cells: Ints, values: Ints) -> Trained:
    if not np.array_equal(cells, np.arange(values.size)) or (header["first_law"] is None and values.size):
        raise ValueError("cells")
    gap, share = fraction_of(header["gap"]), fraction_of(header["first_share"])
    course = Course(_whole(header["clip"]), _whole(header["steps"]), gap, share)
    return Trained(name, course, values, _stated_distribution(header), _distribution(header["law"]))


def _distribution(stored: object) -> Distribution:
    kind, parameter, grid = [*_list(stored), 1][:3]
    named: Literal["laplace", "gaussian"] = "laplace" if kind == "laplace" else "gaussian"
    if kind != named:
        raise ValueError("law")
    return Distribution(named, fraction_of(parameter), _whole(grid))


def _whole(value: object) -> int:
    # True would pass as 1 otherwise.
    if type(value) is not int:
        raise TypeError("whole number")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError("list")
    return value
