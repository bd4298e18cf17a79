"""What runs on Spark's executors: coding, the bound of k rows per unit, counting and merging.

Codec, kernels and the bound are those of every other source; this module only moves their input and output through
Arrow. What leaves a task is told by the three formats below, and none of them holds an id or a value: keyed rows (a
keyed hash of the unit, a rank key and codes), coded rows (codes, and for units a number that means nothing beyond its
task), and pieces of counts. Labels of open columns and rows for comparisons do hold values; they go to the driver
straight, through no shuffle and no stored block.

A task never raises. Spark would write the traceback of a failing task into logs, and tracebacks may quote values; so
whatever goes wrong becomes one row that says "failed" and nothing else, and the driver ends the run when it sees it.
"""

import abc
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.arrays import Ints, Unsigned, Words
from understudy.codec.table import TableCodec
from understudy.counts.partials import CellMerge, Merge, PartialCounts, VectorMerge, pieces_of, pieces_of_cells
from understudy.counts.readers import batch_rows, in_utc
from understudy.counts.source import ORDER_KEY, HashKey, KeyedRows, LabelNumbers, Texts, UnitRows, texts_of
from understudy.counts.streaming import Chunk, ChunkedSource, rows_with_codes
from understudy.domain import Clique, Partition

KEYED = "bucket int, rows binary"
"""Rows on their way to the task that bounds their unit; bucket −1 says that a task failed."""
CODED = "task int, bucket int, n bigint, codes binary"
"""Coded rows, `n` of them column by column. Without rows: `bucket` was bounded by `task`; n = −1: a task failed."""
COUNTED = "level int, vector int, start bigint, width int, cells binary"
"""Pieces of counts; vector −1 says that a task failed. `level` is the group of tasks they were counted or merged in."""
LABELLED = "label binary, n bigint"
"""Labels with their numbers of rows in one task; n = −1 says that it failed."""
PACKED = "rows binary"
"""Rows as they are, one Arrow stream per batch; nothing says that a task failed."""

Batches = Iterator[pa.RecordBatch]

_KEYED = pa.schema([("bucket", pa.int32()), ("rows", pa.binary())])
_CODED = pa.schema([("task", pa.int32()), ("bucket", pa.int32()), ("n", pa.int64()), ("codes", pa.binary())])
_COUNTED = pa.schema(
    [
        ("level", pa.int32()),
        ("vector", pa.int32()),
        ("start", pa.int64()),
        ("width", pa.int32()),
        ("cells", pa.binary()),
    ]
)
_LABELLED = pa.schema([("label", pa.binary()), ("n", pa.int64())])
_PACKED = pa.schema([("rows", pa.binary())])

FAILED_KEYED = pa.record_batch([[-1], [b""]], schema=_KEYED)
FAILED_CODED = pa.record_batch([[0], [-1], [-1], [b""]], schema=_CODED)
FAILED_COUNTED = pa.record_batch([[0], [-1], [0], [1], [b""]], schema=_COUNTED)
FAILED_LABELLED = pa.record_batch([[b""], [-1]], schema=_LABELLED)
FAILED_PACKED = pa.record_batch([[None]], schema=_PACKED)

LABELS_PER_BATCH = 1 << 14


class TaskFailedError(Exception):
    """A task before this one has failed; carries nothing."""


def unraised(work: Callable[[], Batches], failed: pa.RecordBatch) -> Batches:
    """The same batches; where something goes wrong, the row that says so, and no word of what it was."""
    try:
        yield from work()
    except Exception:  # noqa: BLE001 - its message could quote a value, and Spark would log it
        broken = True
    else:
        broken = False
    if broken:
        yield failed


def task_number() -> int:
    """Which part of the rows the task at hand was given."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def packed(public: object) -> bytes:
    """What tasks need, as bytes: Spark cannot encrypt a broadcast of arrays that pickle in parts."""
    from pyspark.serializers import CPickleSerializer

    return bytes(CPickleSerializer().dumps(public))  # type: ignore[no-untyped-call, unused-ignore]


@lru_cache(maxsize=4)
def unpacked(public: bytes) -> Any:
    """What the driver packed; tasks that run one after another in one process share it."""
    from pyspark.serializers import CPickleSerializer

    return CPickleSerializer().loads(public)  # type: ignore[no-untyped-call, unused-ignore]


@dataclass(frozen=True, slots=True)
class Coding:
    """How values become codes, and rows of units become few. Public; the key of a pass travels beside it."""

    codec: TableCodec
    names: tuple[str, ...]
    """Columns of the domain that are coded."""
    columns: tuple[str, ...]
    """Columns of the table, in the order in which tasks get them."""
    unit: str | None
    bound: int
    buckets: int
    memory_bytes: int

    def codes_of(self, batch: pa.RecordBatch) -> tuple[Chunk, Ints | None]:
        """Codes of all rows of a batch, and the positions of those that count (None for all)."""
        values = dict(zip(self.columns, batch.columns, strict=True))
        codes = {name: self.codec.encode(name, values[self.codec.origin(name)]) for name in self.names}
        return codes, rows_with_codes(self.codec, codes)

    def unit_rows(self, key: HashKey) -> UnitRows:
        """What bounds units under the key of a pass."""
        return UnitRows([self.codec.dtype(name) for name in self.names], self.bound, self.memory_bytes, key)


def _all_in_utc(batches: Batches) -> Batches:
    """The batches with instants under UTC, as other sources have them, whatever the session's zone."""
    for batch in batches:
        given = batch.columns
        columns = [in_utc(column) for column in given]
        same = all(one is other for one, other in zip(columns, given, strict=True))
        yield batch if same else pa.record_batch(columns, names=batch.schema.names)


def code(batches: Batches, coding: Coding, task: int) -> Batches:
    """Coded rows where every row counts by itself."""
    for batch in _all_in_utc(batches):
        codes, kept = coding.codes_of(batch)
        columns = [codes[name] if kept is None else codes[name][kept] for name in coding.names]
        yield from _coded(task, columns)


def key_rows(batches: Batches, coding: Coding, key: HashKey) -> Batches:
    """Coded rows under a keyed hash of their unit, in buckets of units."""
    rows = coding.unit_rows(key)
    assert coding.unit is not None
    for batch in _all_in_utc(batches):
        codes, kept = coding.codes_of(batch)
        ids = texts_of(batch.columns[coding.columns.index(coding.unit)]).only_ids().only_at(kept)
        yield _in_buckets(rows.keyed(ids, list(codes.values())), coding.buckets)


def _in_buckets(rows: KeyedRows, buckets: int) -> pa.RecordBatch:
    """One record per bucket that some row is in; the bucket of a row follows from the hash of its unit alone."""
    bucket = (rows["second"] % np.uint64(buckets)).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")
    ends = np.cumsum(np.bincount(bucket, minlength=buckets)).tolist()
    ordered = rows[order]
    held = [(number, low, high) for number, (low, high) in enumerate(zip([0, *ends], ends, strict=False)) if high > low]
    numbers = pa.array([number for number, _, _ in held], pa.int32())
    return pa.record_batch(
        [numbers, pa.array([ordered[low:high].tobytes() for _, low, high in held], pa.binary())], schema=_KEYED
    )


def bound_rows(batches: Batches, coding: Coding, key: HashKey, task: int) -> Batches:
    """Coded rows of each unit up to its bound, with numbers of units; all rows of a bucket come to one task."""
    rows = coding.unit_rows(key)
    seen = _take_in(batches, rows)
    for units, columns in rows.blocks():
        yield from _coded(task, [units.astype(np.uint64), *columns])
    whole = [[task] * len(seen), seen, [0] * len(seen), [b""] * len(seen)]
    yield pa.record_batch([pa.array(values, field.type) for values, field in zip(whole, _CODED, strict=True)], _CODED)


def _take_in(batches: Batches, rows: UnitRows) -> list[int]:
    """Takes keyed rows in, and says of which buckets."""
    seen: set[int] = set()
    for batch in batches:
        buckets, packed = batch.columns
        seen.update(buckets.to_pylist())
        if -1 in seen:
            raise TaskFailedError
        for one in packed:
            rows.add_keyed(rows.read(one.as_py()))
    return sorted(seen)


def _coded(task: int, columns: Sequence[Unsigned]) -> Batches:
    rows, step = len(columns[0]), batch_rows(len(columns))
    for low in range(0, rows, step):
        high = min(rows, low + step)
        codes = b"".join(np.ascontiguousarray(column[low:high]).tobytes() for column in columns)
        yield pa.record_batch([[task], [-1], [high - low], [codes]], schema=_CODED)


def uncoded(codes: bytes, rows: int, kinds: Sequence[np.dtype[np.unsignedinteger]]) -> list[Unsigned]:
    """Columns of these kinds again, out of one record of coded rows."""
    found: list[Unsigned] = []
    place = 0
    for kind in kinds:
        found.append(np.frombuffer(codes, kind, rows, place))
        place += rows * kind.itemsize
    return found


class CodedRows(ChunkedSource):
    """Counts of the coded rows of one task, by the code that counts any other rows."""

    def __init__(self, batches: Batches, coding: Coding) -> None:
        super().__init__(coding.codec, coding.memory_bytes)
        self._batches, self._names = batches, coding.names
        self._kinds = kinds_of(coding)

    def _chunks(self, columns: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
        for batch in self._batches:
            for rows, codes in records_of(batch):
                found = uncoded(codes, rows, self._kinds)[-len(self._names) :]
                yield rows, dict(zip(self._names, found, strict=True))

    def tables(self, tables: Sequence[Clique]) -> Iterator[Ints]:
        """Counts of these tables in one pass."""
        return self._count_tables(tables)

    def rows(self) -> Ints:
        """How many rows there are."""
        return np.array([sum(rows for rows, _ in self._chunks([]))], np.int64)


def kinds_of(coding: Coding) -> list[np.dtype[np.unsignedinteger]]:
    """How the columns of coded rows are stored: numbers of units come first, where there are units."""
    kinds = [coding.codec.dtype(name) for name in coding.names]
    return kinds if coding.unit is None else [np.dtype(np.uint64), *kinds]


def records_of(batch: pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
    """The number of rows and the codes of each record that holds rows."""
    _, _, rows, codes = batch.columns
    for count, packed in zip(rows.to_pylist(), codes, strict=True):
        if count < 0:
            raise TaskFailedError
        if count:
            yield count, packed.as_py()


class TaskQuery(abc.ABC):
    """What is counted in one pass: every task answers about its own rows, and the answers are merged."""

    @abc.abstractmethod
    def answer(self, rows: CodedRows) -> Iterator[PartialCounts]:
        """Counts of one task's rows."""

    def merge(self) -> Merge:
        """What adds answers up."""
        return VectorMerge()


@dataclass(frozen=True, slots=True)
class TablesAsked(TaskQuery):
    """Counts of tables over columns; without any, the number of rows."""

    tables: tuple[Clique, ...]

    def answer(self, rows: CodedRows) -> Iterator[PartialCounts]:
        """Counts of one task's rows."""
        return pieces_of(rows.tables(self.tables) if self.tables else [rows.rows()])


@dataclass(frozen=True, slots=True)
class PartitionsAsked(TaskQuery):
    """Counts of the cells of partitions."""

    partitions: tuple[Partition, ...]

    def answer(self, rows: CodedRows) -> Iterator[PartialCounts]:
        """Counts of one task's rows."""
        return pieces_of(rows.partition_counts(self.partitions))


@dataclass(frozen=True, slots=True)
class CellsAsked(TaskQuery):
    """Occupied cells of one table."""

    clique: Clique

    def answer(self, rows: CodedRows) -> Iterator[PartialCounts]:
        """Counts of one task's rows."""
        return pieces_of_cells(rows.occupied(self.clique))

    def merge(self) -> Merge:
        """What adds answers up."""
        return CellMerge()


def count(batches: Batches, coding: Coding, question: TaskQuery, level: int) -> Batches:
    """The answer about one task's rows, in pieces."""
    yield from _counted(question.answer(CodedRows(batches, coding)), level)


def merge_pieces(batches: Batches, kind: type[Merge]) -> Batches:
    """The sum of the pieces that came to this task, group by group."""
    merges: dict[int, Merge] = {}
    for batch in batches:
        for level, piece in pieces_in(batch):
            merges.setdefault(level, kind()).add(piece)
    for level, merged in merges.items():
        yield from _counted(merged.pieces(), level)


def pieces_in(batch: pa.RecordBatch) -> Iterator[tuple[int, PartialCounts]]:
    """The group and the piece of every line."""
    level, vector, start, width, cells = batch.columns
    lines = zip(level.to_pylist(), vector.to_pylist(), start.to_pylist(), width.to_pylist(), cells, strict=True)
    for group, number, first, size, values in lines:
        if number < 0:
            raise TaskFailedError
        yield group, PartialCounts(number, first, size, values.as_py())


def _counted(pieces: Iterable[PartialCounts], level: int) -> Batches:
    for piece in pieces:
        values = [[level], [piece.vector], [piece.start], [piece.width], [piece.values]]
        yield pa.record_batch(values, schema=_COUNTED)


@dataclass(frozen=True, slots=True)
class Labelling:
    """How the labels of an open column are counted: the label is the first column of a batch, the id the last."""

    absent: tuple[str, ...]
    bound: int
    buckets: int
    memory_bytes: int
    hashes: Words
    """Keyed hashes of all labels, in increasing order; a label's number is its place among them."""

    def knowing(self, hashes: Words) -> "Labelling":
        """The same with these labels."""
        return replace(self, hashes=hashes)

    def unit_rows(self, key: HashKey) -> UnitRows:
        """What bounds units under the key of a pass: two words to rank labels by, and the number of the label."""
        return UnitRows([np.dtype(np.uint64)] * 3, self.bound, self.memory_bytes, key)

    def numbers_of(self, labels: Texts, key: HashKey) -> tuple[Unsigned, Texts]:
        """The number of each row's label, and the labels without those that have none."""
        found = labels.hashes(key)
        places = np.searchsorted(self.hashes[:, 0], found[:, 0])
        inside = np.minimum(places, max(0, len(self.hashes) - 1))
        known = (self.hashes[inside] == found).all(axis=1) if len(self.hashes) else np.zeros(len(found), np.bool_)
        return inside.astype(np.uint64), labels.where(known & (labels.places >= 0))


def find_labels(batches: Batches, labelling: Labelling) -> Batches:
    """Labels with their number of rows in this task, before any bound."""
    known, times = LabelNumbers(), np.zeros(0, np.int64)
    for batch in _all_in_utc(batches):
        labels = texts_of(batch.columns[0]).only_labels(labelling.absent)
        numbers = known.of(labels)[labels.places >= 0]
        found = np.bincount(numbers.astype(np.int64), minlength=len(known))
        found[: len(times)] += times
        times = found
    counted = known.counted(times)
    texts = [label.encode() for label in counted.labels]
    for low in range(0, len(texts), LABELS_PER_BATCH):
        part = slice(low, low + LABELS_PER_BATCH)
        yield pa.record_batch([pa.array(texts[part], pa.binary()), pa.array(counted.counts[part])], schema=_LABELLED)


def key_labels(batches: Batches, labelling: Labelling, key: HashKey) -> Batches:
    """Numbers of labels under a keyed hash of their unit, in buckets of units."""
    rows = labelling.unit_rows(key)
    for batch in _all_in_utc(batches):
        labels = texts_of(batch.columns[0]).only_labels(labelling.absent)
        numbers, labels = labelling.numbers_of(labels, key)
        ids = texts_of(batch.columns[-1]).only_ids().where(labels.places >= 0)
        order = labels.hashes(ORDER_KEY).T
        yield _in_buckets(rows.keyed(ids, [*order, numbers], ranking=[order[0]]), labelling.buckets)


def count_labels(batches: Batches, labelling: Labelling, key: HashKey, level: int) -> Batches:
    """Rows of each label after the bound, and which buckets were bounded here: vector 0 and vector 1."""
    rows = labelling.unit_rows(key)
    seen = _take_in(batches, rows)
    times = np.zeros(len(labelling.hashes), np.int64)
    for _, (_, _, numbers) in rows.blocks():
        times += np.bincount(numbers.astype(np.int64), minlength=len(times))
    bounded = np.bincount(np.array(seen, np.int64), minlength=labelling.buckets)
    yield from _counted(pieces_of([times, bounded]), level)


def pack(batches: Batches) -> Batches:
    """Rows as they are, each batch as one Arrow stream."""
    for batch in _all_in_utc(batches):
        stream = io.BytesIO()
        with pa.ipc.new_stream(stream, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch([[stream.getvalue()]], schema=_PACKED)
