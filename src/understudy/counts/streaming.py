"""ChunkedSource: all ways of counting, for any source that can hand over coded rows in chunks.

Each chunk is a mapping from column to codes, after the unit's bound on rows. Rows in cells that public rules exclude
are counted like any other: whoever removes such cells does it to the whole cell, before noise.

Where the schema says `unreadable: drop`, a row that holds a value without a code is left out of every count, before
the unit's bound. Whether a row is left out depends on that row and the public schema alone. So neighbours, which differ
by the rows of one unit, still differ by rows of that unit only once both are filtered, and the bound then leaves at
most k of them: no sensitivity changes. How many rows were left out is private and told to nobody.

Tables larger than memory
-------------------------
Rows are streamed, coded and counted chunk by chunk within a stated limit. Any table that hands over its rows in batches
is counted here; files are one kind of it. Of the limit, one quarter each goes to tables of counts, to coded columns
kept for the next question, and to the rows of units that await their bound; the rest is for batches in flight. A single
value may exceed all of that, and then more memory is used: how long a value is decides neither what is counted nor
whether a run succeeds. Codes beyond their quarter go to a temporary file without a name (see below), so that a
second question need not read the table again; where the disk has no room for them, it does.

Several threads
---------------
Where a table can be read in several places at once, each thread reads, codes and counts a part of the rows into tables
of its own. Counts are integers, so their sums are the same whatever the number of threads. If one thread fails, the
others stop, and there are no counts.

What is kept of the rows
------------------------
What is on disk: codes, and for tables whose units may hold several rows also numbers of units, column after column and
block after block, as the narrowest unsigned integers that hold them; no value, no label and no id. The file has no
name: it is unlinked as it is made, so nobody else can open it, and the operating system frees it when the process ends,
however it ends. How large it grows follows from the number of rows and the schema.

A copy that only saves time (`KeptCodes`) is given up where the disk has no room for it or will not take it. The rows
are then read again from where they lie: a run that was charged never fails because a copy could not be kept.
"""

import abc
import contextlib
import itertools
import shutil
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Bools, Ints, Unsigned
from understudy.codec.table import TableCodec
from understudy.counts.kernels import (
    Cover,
    TableCounter,
    check_memory,
    cover_for,
    flat_index,
    passes,
    projected,
    table_bytes,
)
from understudy.counts.source import (
    ORDER_KEY,
    Batch,
    LabelCounts,
    LabelNumbers,
    NamelessFile,
    OccupiedCells,
    PrivateTable,
    Records,
    UnitRows,
    texts_of,
)
from understudy.domain import Clique, Domain, Partition
from understudy.errors import InputError, ResourceError, UsageError
from understudy.schema import Schema
from understudy.schema.columns import missing_texts

Codes = Unsigned
Chunk = Mapping[str, Codes]
Chunks = Iterator[tuple[int, Chunk]]

Column = npt.NDArray[Any]  # codes are unsigned, numbers of units are not
Block = tuple[int, list[Column]]
"""A number of rows and some of their columns."""

# Somebody else's work on this disk should not fail for a copy that we can do without.
SPARE_BYTES = 1 << 30
"""What a copy that only saves time leaves free on the disk."""

SPARSE_CELLS = 1 << 62
MOST_TABLE_BYTES = 1 << 29
LEAST_MERGE = 1 << 20


class ChunkedSource(abc.ABC):
    """Counts from chunks of coded rows; subclasses say where the chunks come from.

    Of the memory given, a quarter is for tables being counted at a time; answers are refused only beyond all of it, so
    that what was planned within it is never refused after it was paid for.
    """

    def __init__(self, codec: TableCodec, memory_bytes: int, schema: Schema | None = None) -> None:
        self._codec = codec
        self._threads = 1
        self._memory_bytes = memory_bytes
        self._table_bytes = min(MOST_TABLE_BYTES, memory_bytes // 4)
        declared = {column.name for column in (schema or codec.schema).modelled}
        # A public table need not hold all columns of the codec.
        self._held = [name for name in codec.domain.columns if codec.origin(name) in declared]
        self._leaving_out = [name for name in codec.leaving_out if name in self._held]
        self._covers: dict[frozenset[Clique], Cover] = {}

    @abc.abstractmethod
    def _chunks(self, columns: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
        """The number of rows and the codes of these columns, chunk by chunk; every row once per call."""

    def _parts(self, columns: Sequence[str], most: int) -> Sequence[Chunks]:
        """The same as at most that many streams for threads; one after the other they give the rows in their order."""
        return [self._chunks(columns)]

    @property
    def _known_rows(self) -> int | None:
        """How many rows will be counted, if that is known without reading them."""
        return None

    @property
    def domain(self) -> Domain:
        """The codes being counted."""
        return self._codec.domain

    def counts(self, cliques: Sequence[Clique]) -> Mapping[Clique, Ints]:
        """Flat row-major counts of each clique, as few passes over the rows as memory allows; () is the total.

        Raises:
            ResourceError: from the domain alone, when the tables do not fit the memory limit.
        """
        check_memory(self.domain, cliques, self._memory_bytes)
        cover = self._cover(cliques)
        wanted = cover.wanted
        found: dict[Clique, Ints] = {}
        for batch in passes(self.domain, cover.tables, self._table_bytes):
            tables = [cover.tables[position] for position in batch]
            for position, total in zip(batch, self._count_tables(tables), strict=True):
                found.update(projected(self.domain, cover.tables[position], total, wanted[position]))
        return {clique: found[clique] if clique else self._total(found) for clique in dict.fromkeys(cliques)}

    def partition_counts(self, partitions: Sequence[Partition]) -> list[Ints]:
        """Counts of each partition's cells."""
        self._check_partitions(partitions)
        totals = [np.zeros(partition.cells, np.int64) for partition in partitions]
        used = {name for partition in partitions for name in partition.columns}
        # In one stream: partitions of a query may share what they worked out for a batch (`Within` in
        # `privacy/trees.py`).
        for _, chunk in self._chunks([name for name in self.domain.columns if name in used]):
            for partition, total in zip(partitions, totals, strict=True):
                cells = partition.assign({name: chunk[name] for name in partition.columns})
                total += np.bincount(cells, minlength=partition.cells)
        return totals

    def occupied(self, clique: Clique) -> OccupiedCells:
        """Only the occupied cells of a table too large to hold (fewer than 2⁶² cells)."""
        self._check_sparse(clique)
        found = SortedCells()
        sizes = self.domain.shape(clique)
        for rows, chunk in self._chunks(list(clique)):
            if clique:
                index = flat_index([chunk[name] for name in clique], sizes)
            else:
                index = np.zeros(rows, np.int64)
            found.add(*np.unique(index, return_counts=True))
        return found.all()

    def records(self) -> Records:
        """The rows themselves, in memory, grouped by unit."""
        parts = list(self._holders())
        codes = np.concatenate([self._stacked(0, {}), *(self._stacked(rows, chunk) for rows, chunk, _ in parts)])
        if not parts or parts[0][2] is None:
            # Each row is a unit of its own.
            return Records(codes, np.arange(len(codes) + 1, dtype=np.int64))
        return grouped(codes, np.concatenate([holders for _, _, holders in parts if holders is not None]))

    def _holders(self) -> Iterator[tuple[int, Chunk, Ints | None]]:
        """Chunks of all columns, with the number of each row's unit where a unit may hold several rows."""
        for rows, chunk in self._chunks(self.domain.columns):
            yield rows, chunk, None

    def _stacked(self, rows: int, chunk: Chunk) -> Codes:
        kind = max((self._codec.dtype(name) for name in self.domain.columns), key=lambda dtype: dtype.itemsize)
        codes = np.empty((rows, len(self.domain.columns)), kind)
        for place, name in enumerate(self.domain.columns if rows else ()):
            codes[:, place] = chunk[name]
        return codes

    def _count_tables(self, tables: Sequence[Clique]) -> Iterator[Ints]:
        """Counts of these tables in one pass over the rows, handed over one at a time."""
        columns = [name for name in self.domain.columns if any(name in table for table in tables)]
        place = {name: position for position, name in enumerate(columns)}
        layout = [[place[name] for name in table] for table in tables]
        # Each thread needs tables of its own, within the memory limit, and rows enough to be worth adding these up.
        needed = sum(table_bytes(self.domain.cells(table)) for table in tables)
        each = max(1, needed // max(1, len(tables)))
        worth = self._threads if self._known_rows is None else self._known_rows // each
        parts = self._parts(columns, max(1, min(self._threads, self._table_bytes // max(1, needed), worth)))
        counters = [TableCounter(self.domain.shape(columns), layout) for _ in parts]

        def count(number: int, rows: int, chunk: Chunk) -> None:
            counters[number].add([chunk[name] for name in columns], stop=rows)

        side_by_side(parts, count)
        return (sum(each[1:], each[0]) for each in zip(*(counter.totals() for counter in counters), strict=True))

    def _cover(self, cliques: Iterable[Clique]) -> Cover:
        key = frozenset(cliques)
        if key not in self._covers:
            self._covers = {key: cover_for(self.domain, key)}
        return self._covers[key]

    def _total(self, found: Mapping[Clique, Ints]) -> Ints:
        """The number of rows: any table's sum, or a pass of its own when nothing else was asked."""
        for counts in found.values():
            return np.array([counts.sum()], np.int64)
        return np.array([sum(rows for rows, _ in self._chunks([]))], np.int64)

    def _check_sparse(self, clique: Clique) -> None:
        cells = self.domain.cells(clique)
        if cells >= SPARSE_CELLS:
            raise UsageError(f"table over {', '.join(clique)}", f"has {cells:,} cells; sparse counting ends at 2⁶².")

    def _check_partitions(self, partitions: Sequence[Partition]) -> None:
        needed = 8 * sum(partition.cells for partition in partitions)
        if needed > self._memory_bytes:
            fix = "Ask about coarser partitions or raise the memory limit."
            raise ResourceError(f"counting {len(partitions)} partitions", needed, self._memory_bytes, fix)


def side_by_side(parts: Sequence[Chunks], work: Callable[[int, int, Chunk], None]) -> None:
    """Hands every chunk, with the number of its part, to the work; each part has a thread. One that fails stops all."""
    stop = threading.Event()

    def run(number: int) -> None:
        try:
            with contextlib.closing(_closable(parts[number])) as chunks:
                for rows, chunk in chunks:
                    if stop.is_set():
                        return
                    work(number, rows, chunk)
        except BaseException:
            stop.set()
            raise

    if len(parts) == 1:
        run(0)
        return
    with ThreadPoolExecutor(len(parts)) as pool:
        started = [pool.submit(run, number) for number in range(len(parts))]
        try:
            for future in started:
                future.result()
        finally:
            stop.set()


def _closable(chunks: Chunks) -> Generator[tuple[int, Chunk], None, None]:
    yield from chunks


def grouped(codes: Codes, holders: Ints) -> Records:
    """The rows with those of each unit side by side."""
    order = np.argsort(holders, kind="stable")
    ordered = holders[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)])
    return Records(codes[order], np.append(starts, len(ordered)).astype(np.int64))


def rows_with_codes(codec: TableCodec, codes: Chunk) -> Ints | None:
    """Positions of the rows in which every value of these columns has a code; None if that is all of them."""
    kept: Bools | None = None
    for name in codec.leaving_out:
        if name not in codes:
            continue
        fits = codes[name] < codec.domain.sizes[name]
        if not fits.all():
            kept = fits if kept is None else kept & fits
    return None if kept is None else np.flatnonzero(kept)


class SortedCells:
    """Occupied cells seen so far. Merged when as many wait as were merged before, so each is moved few times."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Ints, Ints]] = []
        self._merged = 0

    def add(self, indices: Ints, counts: Ints) -> None:
        """Takes cells in, in any order."""
        self._waiting.append((indices, counts))
        if sum(len(cells) for cells, _ in self._waiting) > max(LEAST_MERGE, 2 * self._merged):
            self._merge()

    def all(self) -> OccupiedCells:
        """Cells in increasing order with their counts."""
        self._merge()
        return OccupiedCells(*self._waiting[0])

    def _merge(self) -> None:
        indices = np.concatenate([np.zeros(0, np.int64), *(cells for cells, _ in self._waiting)])
        counts = np.concatenate([np.zeros(0, np.int64), *(times for _, times in self._waiting)])
        order = np.argsort(indices, kind="stable")
        # Merged cells come in increasing order, whatever the order of the rows was.
        indices, counts = indices[order], counts[order]
        first = np.flatnonzero(np.r_[True, indices[1:] != indices[:-1]][: len(indices)])
        total = np.add.reduceat(counts, first) if len(first) else counts
        self._waiting = [(indices[first], total)]
        self._merged = len(first)


class ColumnBlocks:
    """Columns of rows in blocks. Blocks are appended by one thread; any number of threads may read them then."""

    def __init__(self, memory_bytes: int) -> None:
        self._left = memory_bytes
        self._blocks: list[tuple[int, list[Column | _OnDisk]]] = []
        self._file: NamelessFile | None = None

    def append(self, columns: Sequence[Column], rows: int | None = None) -> None:
        """Keeps one block: arrays of equal length, which is the number of rows unless that is said."""
        self._left -= sum(column.nbytes for column in columns)
        rows = len(columns[0]) if rows is None else rows
        if self._left >= 0:
            self._blocks.append((rows, list(columns)))
            return
        self._file = file = self._file or NamelessFile()
        self._blocks.append((rows, [_OnDisk(file.append(column), column.dtype) for column in columns]))

    def fits(self, size: int) -> bool:
        """Whether a block of so many bytes has room, in memory or on the disk beside what is left free there."""
        return size <= self._left or shutil.disk_usage(tempfile.gettempdir()).free >= size + SPARE_BYTES

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(rows for rows, _ in self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)

    def read(self, places: Sequence[int], start: int = 0, stop: int | None = None) -> Iterator[Block]:
        """The number of rows and the columns at these places, block by block."""
        for rows, columns in self._blocks[start:stop]:
            yield rows, [self._column(columns[place], rows) for place in places]

    def _column(self, held: "Column | _OnDisk", rows: int) -> Column:
        if not isinstance(held, _OnDisk):
            return held
        assert self._file is not None
        return np.frombuffer(self._file.read(held.start, rows * held.kind.itemsize), held.kind)


@dataclass(frozen=True, slots=True)
class _OnDisk:
    start: int
    kind: np.dtype[Any]


class KeptCodes:
    """The codes of some columns of a whole table, in the order of its rows, as one pass in several parts met them."""

    def __init__(self, columns: Sequence[str], parts: int, memory_bytes: int) -> None:
        self.columns = tuple(columns)
        self._parts: list[ColumnBlocks] | None = [ColumnBlocks(memory_bytes // parts) for _ in range(parts)]
        self._open = [True] * parts

    def append(self, part: int, rows: int, columns: Sequence[Column]) -> None:
        """Keeps a block of a part; gives all of them up where there is no room. One thread appends to each part."""
        parts = self._parts
        if parts is None:
            return
        try:
            if parts[part].fits(sum(column.nbytes for column in columns)):
                parts[part].append(columns, rows)
                return
        except OSError:  # a full disk, a limit of the process, a folder that vanished
            pass
        # Given up as a whole: with a part of the rows kept, a later question would count those alone.
        self._parts = None

    def close(self, part: int) -> None:
        """Says that a part is complete."""
        self._open[part] = False

    @property
    def given_up(self) -> bool:
        """Whether there was no room."""
        return self._parts is None

    @property
    def complete(self) -> bool:
        """Whether every row is kept."""
        return not any(self._open) and not self.given_up

    @property
    def rows(self) -> int:
        """How many rows are kept."""
        return sum(part.rows for part in self._parts or ())

    def split(self, columns: Sequence[str], most: int) -> list[Iterator[Block]]:
        """The rows in at most that many streams of blocks, one after the other in the order of the rows."""
        places = [self.columns.index(name) for name in columns]
        every = [(part, place) for part in self._parts or () for place in range(len(part))]
        bounds = np.linspace(0, len(every), max(1, min(most, len(every))) + 1).astype(int).tolist()
        return [_blocks_of(every[low:high], places) for low, high in itertools.pairwise(bounds)]


def _blocks_of(chosen: Sequence[tuple[ColumnBlocks, int]], places: Sequence[int]) -> Iterator[Block]:
    for blocks, number in chosen:
        yield from blocks.read(places, number, number + 1)


class StreamedSource(ChunkedSource):
    """Exact counts of batches. Coded columns are kept for the next question, in memory and beyond it on disk."""

    def __init__(self, table: PrivateTable, codec: TableCodec) -> None:
        super().__init__(codec, table.memory_bytes, table.schema)
        self._table = table
        self._threads = max(1, table.threads)
        self._cache_bytes = table.memory_bytes // 4
        self._cache: KeptCodes | None = None
        self._keeps = True
        self._kept: ColumnBlocks | None = None

    @property
    def _known_rows(self) -> int | None:
        return None if self._cache is None else self._cache.rows

    def _chunks(self, columns: Sequence[str]) -> Chunks:
        for part in self._parts(columns, 1):
            yield from part

    def _parts(self, columns: Sequence[str], most: int) -> Sequence[Chunks]:
        if self._table.schema.unit.column is not None:
            # A unit's rows may lie anywhere in the table, so its bound needs all of them in one place, and no threads.
            return [self._bounded(columns)]
        kept = self._cache
        if kept is not None and set(columns) <= set(kept.columns):
            return [_named(columns, part) for part in kept.split(columns, most)]
        # Chunks of different passes need not hold the same rows, so what is kept always comes from one pass.
        # Whoever asks about column after column would have the kept ones read again each time, so the second reads all.
        wanted = [name for name in self._held if kept is not None or name in columns] if self._keeps else list(columns)
        needed = list(dict.fromkeys([*wanted, *self._leaving_out]))
        read = list(dict.fromkeys(map(self._codec.origin, needed)))
        streams = self._table.parts(read, most) if most > 1 else [self._table.batches(read)]
        fresh = KeptCodes(wanted, len(streams), self._cache_bytes if self._keeps else 0)
        return [self._filling(fresh, number, wanted, stream) for number, stream in enumerate(streams)]

    def _filling(self, kept: KeptCodes, number: int, columns: Sequence[str], batches: Iterator[Batch]) -> Chunks:
        """Codes of one stream, kept as they pass; the last stream to end leaves them for the next question."""
        for rows, chunk in self._coded(columns, batches):
            if self._keeps:
                kept.append(number, rows, [chunk[name] for name in columns])
                self._keeps = not kept.given_up
            yield rows, chunk
        kept.close(number)
        # Only a pass that has seen every row: a reader that broke off half way must not look like a shorter table.
        if self._keeps and kept.complete:
            self._cache = kept

    def _coded(self, columns: Sequence[str], batches: Iterator[Batch]) -> Chunks:
        """Codes of every row that counts, straight from the table."""
        origin = self._codec.origin
        needed = list(dict.fromkeys([*columns, *self._leaving_out]))
        for rows, batch in _whole(self._table, batches, list(dict.fromkeys(map(origin, needed)))):
            codes = {name: self._codec.encode(name, batch[origin(name)]) for name in needed}
            kept = rows_with_codes(self._codec, codes)
            if kept is None:
                yield rows, {name: codes[name] for name in columns}
            else:
                yield len(kept), {name: codes[name][kept] for name in columns}

    def _bounded(self, columns: Sequence[str]) -> Chunks:
        """Coded rows of each unit up to its bound."""
        place = {name: position + 1 for position, name in enumerate(self.domain.columns)}
        yield from _named(columns, self._within_bound().read([place[name] for name in columns]))

    def _holders(self) -> Iterator[tuple[int, Chunk, Ints | None]]:
        unit = self._table.schema.unit
        if unit.column is None or unit.rows == 1:
            yield from super()._holders()
            return
        names = self.domain.columns
        for rows, (holders, *codes) in self._within_bound().read(range(len(names) + 1)):
            yield rows, dict(zip(names, codes, strict=True)), holders

    def _within_bound(self) -> ColumnBlocks:
        """Numbers of units, and the codes of all columns, of the rows that count; worked out on first use."""
        if self._kept is None:
            unit = self._table.schema.unit
            assert unit.column is not None
            # All columns, whatever was asked about: rows are ranked by all of their codes, so that every question is
            # about the same rows of a unit.
            names, origin = self.domain.columns, self._codec.origin
            rows = UnitRows([self._codec.dtype(name) for name in names], unit.rows, self._table.batch_bytes)
            for _, batch in _read(self._table, list(dict.fromkeys([*map(origin, names), unit.column]))):
                codes = {name: self._codec.encode(name, batch[origin(name)]) for name in names}
                # Rows without a code go before the bound, so that they take nobody's place in it.
                ids = texts_of(batch[unit.column]).only_ids().only_at(rows_with_codes(self._codec, codes))
                rows.add(ids, list(codes.values()))
            kept = ColumnBlocks(self._cache_bytes)
            for units, columns in rows.blocks():
                kept.append([units, *columns])
            self._kept = kept
        return self._kept


def streamed_labels(table: PrivateTable, column: str) -> LabelCounts:
    """Labels of an open column, after the unit's bound on rows was applied (to rows that have a label).

    Only fixed-size numbers of labels are ranked and counted; the labels themselves stay in one dictionary.
    """
    unit, known = table.schema.unit, LabelNumbers()
    absent = missing_texts(table.schema.column(column))
    names = [column] if unit.column is None else list(dict.fromkeys([column, unit.column]))
    rows = UnitRows([np.dtype(np.uint64)] * 3, unit.rows, table.batch_bytes)
    times = np.zeros(0, np.int64)
    for _, batch in _read(table, names):
        labels = texts_of(batch[column]).only_labels(absent)
        numbers, has_label = known.of(labels), labels.places >= 0
        if unit.column is None:
            times = _added(times, numbers[has_label], len(known))
        else:
            ids = texts_of(batch[unit.column]).only_ids()
            # Ranked by a hash of the label alone: its number depends on the order of the file and on other units. The
            # second word breaks ties, so that the number decides nothing.
            order = labels.hashes(ORDER_KEY).T
            rows.add(ids.where(has_label), [*order, numbers], ranking=[order[0]])
    for _, (_, _, numbers) in rows.blocks():
        times = _added(times, numbers, len(known))
    return known.counted(times)


def _added(times: Ints, numbers: Codes, size: int) -> Ints:
    found = np.bincount(numbers.astype(np.int64), minlength=size).astype(np.int64)
    found[: len(times)] += times
    return found


def _named(columns: Sequence[str], blocks: Iterable[tuple[int, list[Codes]]]) -> Chunks:
    for rows, codes in blocks:
        yield rows, dict(zip(columns, codes, strict=True))


def _read(table: PrivateTable, columns: Sequence[str]) -> Iterator[Batch]:
    return _whole(table, table.batches(columns), columns)


def _whole(table: PrivateTable, batches: Iterator[Batch], columns: Sequence[str]) -> Iterator[Batch]:
    """The batches, checked to be whole: the kernels trust that columns are of equal length."""
    for rows, batch in batches:
        if any(name not in batch or len(batch[name]) != rows for name in columns):
            raise InputError(type(table).__name__, "hands over batches whose columns are missing or differ in length.")
        yield rows, batch
