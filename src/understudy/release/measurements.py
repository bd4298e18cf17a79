"""measurements.parquet: every noisy answer in tidy form, one row per cell, and the way back to transcripts.

The columns are for people (which question, which cell in words, which value, which noise); exact fractions, shapes and
counts of cells travel in the file's metadata. Reading checks one against the other and refuses what does not agree.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from understudy.codec.table_codec import TableCodec
from understudy.errors import Problem, ReleaseError
from understudy.marginals.answer import (
    Answer,
    Course,
    Discovery,
    Grown,
    Law,
    Measurement,
    NoisyScores,
    Selection,
    Selections,
    SparseMeasurement,
    Trained,
)
from understudy.marginals.transcript import Transcript

__all__ = ["read_measurements", "write_measurements"]

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
Header = Mapping[str, object]
Ints = npt.NDArray[np.int64]


def write_measurements(path: Path, transcripts: Sequence[Transcript], codecs: Sequence[TableCodec]) -> None:
    """Writes the answers of every run, in order and in bounded pieces."""
    headers = [
        _header(run, position, answer)
        for run, transcript in enumerate(transcripts, start=1)
        for position, answer in enumerate(transcript)
    ]
    schema = TIDY.with_metadata({METADATA_KEY: json.dumps(headers, ensure_ascii=True).encode()})
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for run, (transcript, codec) in enumerate(zip(transcripts, codecs, strict=True), start=1):
            words = _Words(codec)
            for position, answer in enumerate(transcript):
                for batch in _batches(run, position, answer, words):
                    writer.write_batch(batch)


def read_measurements(path: Path, runs: int) -> list[Transcript]:
    """The transcripts that `write_measurements` was given.

    Raises:
        ReleaseError: when metadata and columns disagree.
    """
    try:
        table = pq.read_table(path, schema=TIDY)
        headers = json.loads((pq.read_schema(path).metadata or {})[METADATA_KEY])
        return _transcripts(table, headers, runs)
    except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError, pa.ArrowException) as error:
        problem = Problem(path.name, "does not hold answers in the expected form.", "Restore the folder.")
        raise ReleaseError([problem]) from error


def _header(run: int, position: int, answer: Answer) -> dict[str, object]:
    header: dict[str, object] = {"run": run, "answer": position, "kind": _kind(answer), "name": answer.name}
    if isinstance(answer, Selection | Selections):
        scores = {"sensitivity": str(answer.sensitivity), "monotone": answer.monotone}
        rows = 1 if isinstance(answer, Selection) else int(answer.chosen.size)
        return header | {"options": answer.options, "rate": str(answer.rate), **scores, "rows": rows}
    header |= {"law": [answer.law.kind, str(answer.law.parameter)], "rows": int(answer.values.size)}
    if isinstance(answer, Trained):
        course, first = answer.course, answer.first_law
        shares = {"gap": str(course.gap), "first_share": str(course.first_share)}
        shown = None if first is None else [first.kind, str(first.parameter)]
        return header | {"clip": course.clip, "steps": course.steps, **shares, "first_law": shown}
    if isinstance(answer, NoisyScores):
        return header | {"sensitivity": str(answer.sensitivity)}
    if isinstance(answer, Grown):
        rule = {"bias": answer.bias, "theta": answer.theta, "decay": str(answer.decay)}
        return header | {"layers": list(answer.layers), **rule}
    if isinstance(answer, Discovery):
        return header | {"column": answer.column, "threshold": answer.threshold}
    header |= {"columns": list(answer.columns), "shape": list(answer.shape)}
    return header | ({"threshold": answer.threshold} if isinstance(answer, SparseMeasurement) else {})


def _kind(answer: Answer) -> str:
    match answer:
        case Measurement():
            return "measurement"
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
        case Grown():
            return "tree"
        case Trained():
            return "training"


class _Words:
    """The codes of each column in words, looked up once."""

    def __init__(self, codec: TableCodec) -> None:
        self._codec = codec
        self._known: dict[str, pa.Array] = {}

    def of_cells(self, columns: Sequence[str], shape: Sequence[int], cells: Ints) -> pa.Array:
        """The words of flat cell numbers; cells of a rule of its own (a partition) are numbered."""
        sizes = self._codec.domain.sizes
        if tuple(sizes.get(name) for name in columns) != tuple(shape):
            return _numbered("cell", cells)
        if not columns:
            return pa.array(["total"] * cells.size, pa.string())
        codes = _unravel(cells, shape)
        parts = [self._of_column(name).take(pa.array(code)) for name, code in zip(columns, codes, strict=True)]
        return pc.binary_join_element_wise(*parts, " × ") if len(parts) > 1 else parts[0]

    def _of_column(self, name: str) -> pa.Array:
        if name not in self._known:
            size = self._codec.domain.sizes[name]
            texts = [self._codec.describe(name, code) for code in range(size)]
            self._known[name] = pa.array([_storable(text) for text in texts], pa.string())
        return self._known[name]


def _unravel(cells: Ints, shape: Sequence[int]) -> list[Ints]:
    # numpy.unravel_index refuses shapes whose product it cannot hold in a pointer; plain division has no such limit
    codes, rest = [], cells
    for size in reversed(shape):
        codes.append(rest % size)
        rest = rest // size
    return codes[::-1]


def _storable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _batches(run: int, position: int, answer: Answer, words: _Words) -> Iterator[pa.RecordBatch]:
    values = np.atleast_1d(answer.chosen) if isinstance(answer, Selection | Selections) else answer.values
    total = values.size
    for start in range(0, total, CHUNK_CELLS):
        part = slice(start, min(start + CHUNK_CELLS, total))
        cells = np.arange(part.start, part.stop, dtype=np.int64)
        if isinstance(answer, SparseMeasurement):
            cells = answer.indices[part]
        yield _batch(run, position, answer, (cells, _labels(answer, cells, part, words), values[part]))


def _labels(answer: Answer, cells: Ints, part: slice, words: _Words) -> pa.Array:
    """What each row is about, in words."""
    match answer:
        case Discovery():
            return pa.array(answer.labels[part], pa.string())
        case Measurement() | SparseMeasurement():
            return words.of_cells(answer.columns, answer.shape, cells)
        case Selections():
            return _numbered("option chosen in cell", cells)
        case NoisyScores():
            return _numbered("option", cells)
        case Grown():
            layers = np.repeat(np.arange(len(answer.layers)), np.array(answer.layers, np.int64))
            return _numbered("split in layer", layers[part])
        case Trained():
            return _numbered("coordinate of the first look", cells)
        case _:
            return pa.array(["chosen option"] * cells.size, pa.string())


def _numbered(text: str, numbers: Ints) -> pa.Array:
    return pc.binary_join_element_wise(text, pc.cast(pa.array(numbers), pa.string()), " ")


def _batch(run: int, position: int, answer: Answer, columns: tuple[Ints, pa.Array, Ints]) -> pa.RecordBatch:
    cells, labels, values = columns
    rows = values.size
    law = None if isinstance(answer, Selection | Selections) else _law_of_rows(answer)
    threshold = answer.threshold if isinstance(answer, SparseMeasurement | Discovery) else None
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(rows, run, np.int32)),
            pa.array(np.full(rows, position, np.int32)),
            _repeat(_kind(answer), rows),
            _repeat(_storable(answer.name), rows),
            pa.array(cells),
            labels,
            pa.array(values, pa.int64()),
            _repeat(None if law is None else law.kind, rows),
            pa.array(np.full(rows, np.nan if law is None else law.scale)),
            pa.array([threshold] * rows, pa.int64()),
        ],
        schema=TIDY,
    )


def _law_of_rows(answer: Measurement | SparseMeasurement | Discovery | NoisyScores | Grown | Trained) -> Law:
    """The noise in the values shown; of a training these are the values of its first look."""
    return answer.first_law or answer.law if isinstance(answer, Trained) else answer.law


def _repeat(text: str | None, rows: int) -> pa.Array:
    indices = pa.array(np.zeros(rows, np.int32)) if text is not None else pa.nulls(rows, pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array([text or ""], pa.string()))


def _transcripts(table: pa.Table, headers: Sequence[Header], runs: int) -> list[Transcript]:
    transcripts = [Transcript() for _ in range(runs)]
    start = 0
    for header in headers:
        run, rows = header["run"], header["rows"]
        if type(run) is not int or type(rows) is not int or not 1 <= run <= runs or rows < 0:
            raise ValueError("header")
        transcript = transcripts[run - 1]
        if header["answer"] != len(transcript):
            raise ValueError("order")
        transcript.append(_answer(header, table.slice(start, rows)))
        start += rows
    if start != table.num_rows:
        raise ValueError("rows")
    return transcripts


def _answer(header: Header, rows: pa.Table) -> Answer:
    if rows.num_rows != header["rows"]:
        raise ValueError("rows")
    values = np.asarray(rows["value"], dtype=np.int64)
    cells = np.asarray(rows["cell"], dtype=np.int64)
    _same(rows, "run", header["run"])
    _same(rows, "answer", header["answer"])
    _same(rows, "kind", header["kind"])
    name = str(header["name"])
    if header["kind"] in ("selection", "selections"):
        return _chosen(header, name, cells, values)
    if header["kind"] == "training":
        return _training(header, name, cells, values, rows=rows)
    law = _law(header["law"], rows)
    if header["kind"] in ("scores", "tree"):
        return _scores_or_tree(header, name, cells, (values, law))
    if header["kind"] == "discovery":
        labels = tuple(rows["label"].to_pylist())
        return Discovery(name, str(header["column"]), labels, values, law, _whole(header["threshold"]))
    columns, shape = tuple(map(str, _list(header["columns"]))), tuple(map(_whole, _list(header["shape"])))
    if header["kind"] == "sparse measurement":
        return SparseMeasurement(name, columns, shape, cells, values, law, _whole(header["threshold"]))
    if header["kind"] != "measurement" or not np.array_equal(cells, np.arange(values.size)):
        raise ValueError("cells")
    return Measurement(name, columns, shape, values, law)


def _chosen(header: Header, name: str, cells: Ints, values: Ints) -> Selection | Selections:
    rate, sensitivity = Fraction(str(header["rate"])), Fraction(str(header["sensitivity"]))
    options, monotone = _whole(header["options"]), header["monotone"] is True
    if not np.array_equal(cells, np.arange(values.size)) or np.any((values < 0) | (values >= options)):
        raise ValueError("options")
    if header["kind"] == "selections":
        return Selections(name, options, values, rate, sensitivity, monotone)
    (chosen,) = values.tolist()
    return Selection(name, options, chosen, rate, sensitivity, monotone)


def _scores_or_tree(header: Header, name: str, cells: Ints, answered: tuple[Ints, Law]) -> NoisyScores | Grown:
    values, law = answered
    if not np.array_equal(cells, np.arange(values.size)):
        raise ValueError("cells")
    if header["kind"] == "scores":
        return NoisyScores(name, values, law, Fraction(str(header["sensitivity"])))
    layers = tuple(map(_whole, _list(header["layers"])))
    if min(layers, default=0) < 0 or sum(layers) != values.size or np.any((values != 0) & (values != 1)):
        raise ValueError("layers")
    bias, theta = _whole(header["bias"]), _whole(header["theta"])
    return Grown(name, layers, values, law, bias, theta, Fraction(str(header["decay"])))


def _training(header: Header, name: str, cells: Ints, values: Ints, *, rows: pa.Table) -> Trained:
    if not np.array_equal(cells, np.arange(values.size)) or (header["first_law"] is None and values.size):
        raise ValueError("cells")
    gap, share = Fraction(str(header["gap"])), Fraction(str(header["first_share"]))
    first = None if header["first_law"] is None else _law(header["first_law"], rows)
    law = _law(header["law"], rows.slice(0, 0))
    return Trained(name, Course(_whole(header["clip"]), _whole(header["steps"]), gap, share), values, first, law)


def _law(stored: object, rows: pa.Table) -> Law:
    kind, parameter = _list(stored)
    named: Literal["laplace", "gaussian"] = "laplace" if kind == "laplace" else "gaussian"
    if kind != named:
        raise ValueError("law")
    law = Law(named, Fraction(str(parameter)))
    _same(rows, "noise", law.kind)
    _same(rows, "scale", law.scale)
    return law


def _same(rows: pa.Table, column: str, wanted: object) -> None:
    if any(value != wanted for value in pc.unique(rows[column]).to_pylist()):
        raise ValueError(column)


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError("whole number")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError("list")
    return value
