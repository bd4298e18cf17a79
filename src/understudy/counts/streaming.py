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
kept for the next question (none if they do not fit), and to the rows of units that await their bound; the rest is for
batches in flight. A single value may exceed all of that, and then more memory is used: how long a value is decides
neither what is counted nor whether a run succeeds.
"""

import abc
import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from understudy.arrays import Bools, Ints, Unsigned
from understudy.codec.table import TableCodec
from understudy.counts.kernels import (
    Cover,
    TableCounter,
    check_memory,
    cover_for,
    flat_index,
    look_up,
    passes,
    projected,
)
from understudy.counts.source import (
    ORDER_KEY,
    Batch,
    ColumnBlocks,
    LabelCounts,
    LabelNumbers,
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

SPARSE_CELLS = 1 << 62
MOST_TABLE_BYTES = 1 << 29
LEAST_MERGE = 1 << 20
LEAST_LOOK_UP = 1 << 10
LEAST_TOUCHED = 1 << 20
SHORT_INTEGERS = {pa.int8(): 8, pa.uint8(): 8, pa.int16(): 16, pa.uint16(): 16}


class ChunkedSource(abc.ABC):
    """Counts from chunks of coded rows; subclasses say where the chunks come from.

    Of the memory given, a quarter is for tables being counted at a time; answers are refused only beyond all of it, so
    that what was planned within it is never refused after it was paid for.
    """

    def __init__(self, codec: TableCodec, memory_bytes: int, schema: Schema | None = None) -> None:
        self._codec = codec
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
        for _, chunk in self._chunks([name for name in self.domain.columns if name in used]):
            for partition, total in zip(partitions, totals, strict=True):
                cells = partition.assign({name: chunk[name] for name in partition.columns})
                total += np.bincount(cells, minlength=partition.cells)
        return totals

    def occupied(self, clique: Clique) -> OccupiedCells:
        """Only the occupied cells of a table too large to hold (fewer than 2⁶² cells)."""
        cells = self.domain.cells(clique)
        if cells >= SPARSE_CELLS:
            raise UsageError(f"table over {', '.join(clique)}", f"has {cells:,} cells; sparse counting ends at 2⁶².")
        found = _SortedCells()
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
        counter = TableCounter(self.domain.shape(columns), [[place[name] for name in table] for table in tables])
        for rows, chunk in self._chunks(columns):
            counter.add([chunk[name] for name in columns], stop=rows)
        return counter.totals()

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

    def _check_partitions(self, partitions: Sequence[Partition]) -> None:
        needed = 8 * sum(partition.cells for partition in partitions)
        if needed > self._memory_bytes:
            fix = "Ask about coarser partitions or raise the memory limit."
            raise ResourceError(f"counting {len(partitions)} partitions", needed, self._memory_bytes, fix)


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


def encode_column(codec: TableCodec, name: str, values: pa.Array | pa.ChunkedArray) -> Codes:
    """The codec's codes of a column. Integers of 8 or 16 bits are coded once per possible value, then looked up."""
    width = SHORT_INTEGERS.get(values.type, 0)
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    if not width or values.null_count or len(values) < LEAST_LOOK_UP << (width - 8):
        return codec.encode(name, values)
    unsigned = np.dtype(f"u{width // 8}")
    possible = np.arange(1 << width, dtype=np.int64).astype(unsigned)
    table = codec.encode(name, pa.array(possible.view(values.type.to_pandas_dtype())))
    codes = _touched(len(values), table.dtype)
    start = 0
    for chunk in chunks:
        look_up(chunk.to_numpy().view(unsigned), table, codes[start : start + len(chunk)])
        start += len(chunk)
    return codes


def _touched(rows: int, dtype: np.dtype[np.unsignedinteger]) -> Codes:
    """An array whose pages are there already: faulting them in one by one can cost more than coding a column."""
    if rows * dtype.itemsize < LEAST_TOUCHED or not hasattr(mmap, "MAP_POPULATE"):
        return np.empty(rows, dtype)
    try:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
        return np.frombuffer(mmap.mmap(-1, rows * dtype.itemsize, flags=flags), dtype)
    except OSError:
        return np.empty(rows, dtype)


class _SortedCells:
    """Occupied cells seen so far. Merged when as many wait as were merged before, so each is moved few times."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Ints, Ints]] = []
        self._merged = 0

    def add(self, indices: Ints, counts: Ints) -> None:
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
        indices, counts = indices[order], counts[order]
        first = np.flatnonzero(np.r_[True, indices[1:] != indices[:-1]][: len(indices)])
        total = np.add.reduceat(counts, first) if len(first) else counts
        self._waiting = [(indices[first], total)]
        self._merged = len(first)


LEAST_SHARE_BYTES = 64 << 20


class StreamedSource(ChunkedSource):
    """Exact counts of batches. Coded columns are kept for the next question if they fit a quarter of the limit."""

    def __init__(self, table: PrivateTable, codec: TableCodec) -> None:
        super().__init__(codec, table.memory_bytes, table.schema)
        self._table = table
        self._cache_bytes = table.memory_bytes // 4
        self._cache: list[tuple[int, Chunk]] | None = None
        self._cached: set[str] = set()
        self._kept: ColumnBlocks | None = None

    def _chunks(self, columns: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
        if self._cache is not None and set(columns) <= self._cached:
            yield from self._cache
            return
        # Chunks of different passes need not hold the same rows, so what is kept always comes from one pass.
        # Whoever asks about column after column would have the kept ones read again each time, so the second reads all.
        wanted = [name for name in self._held if self._cached or name in columns]
        kept: list[tuple[int, Chunk]] | None = []
        self._cache, size = None, 0
        bounded = self._table.schema.unit.column is not None
        for rows, chunk in self._bounded(wanted) if bounded else self._coded(wanted):
            size += sum(codes.nbytes for codes in chunk.values())
            if kept is not None:
                kept.append((rows, chunk))
            if size > self._cache_bytes:
                kept, wanted = None, list(columns)
            yield rows, chunk
        self._cache = kept
        self._cached = set(wanted) if kept is not None else set()

    def _coded(self, columns: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
        """Codes of every row that counts, straight from the table."""
        origin = self._codec.origin
        needed = list(dict.fromkeys([*columns, *self._leaving_out]))
        for rows, batch in _read(self._table, list(dict.fromkeys(map(origin, needed)))):
            codes = {name: encode_column(self._codec, name, batch[origin(name)]) for name in needed}
            kept = rows_with_codes(self._codec, codes)
            if kept is None:
                yield rows, {name: codes[name] for name in columns}
            else:
                yield len(kept), {name: codes[name][kept] for name in columns}

    def _bounded(self, columns: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
        """Coded rows of each unit up to its bound."""
        place = {name: position + 1 for position, name in enumerate(self.domain.columns)}
        for rows, codes in self._within_bound().read([place[name] for name in columns]):
            yield rows, dict(zip(columns, codes, strict=True))

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
            names, origin = self.domain.columns, self._codec.origin
            rows = UnitRows([self._codec.dtype(name) for name in names], unit.rows, share_of(self._table))
            for _, batch in _read(self._table, list(dict.fromkeys([*map(origin, names), unit.column]))):
                codes = {name: encode_column(self._codec, name, batch[origin(name)]) for name in names}
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
    rows = UnitRows([np.dtype(np.uint64)] * 2, unit.rows, share_of(table))
    times = np.zeros(0, np.int64)
    for _, batch in _read(table, names):
        labels = texts_of(batch[column]).only_labels(absent)
        numbers, has_label = known.of(labels), labels.places >= 0
        if unit.column is None:
            times = _added(times, numbers[has_label], len(known))
        else:
            ids = texts_of(batch[unit.column]).only_ids()
            # The order looks at a hash of the label first: its number depends on the order of the file.
            rows.add(ids.where(has_label), [labels.hashes(ORDER_KEY)[:, 0], numbers])
    for _, (_, numbers) in rows.blocks():
        times = _added(times, numbers, len(known))
    return known.counted(times)


def _added(times: Ints, numbers: Codes, size: int) -> Ints:
    found = np.bincount(numbers.astype(np.int64), minlength=size).astype(np.int64)
    found[: len(times)] += times
    return found


def _read(table: PrivateTable, columns: Sequence[str]) -> Iterator[Batch]:
    """The table's batches, checked to be whole: the kernels trust that columns are of equal length."""
    for rows, batch in table.batches(columns):
        if any(name not in batch or len(batch[name]) != rows for name in columns):
            raise InputError(type(table).__name__, "hands over batches whose columns are missing or differ in length.")
        yield rows, batch


def share_of(table: PrivateTable) -> int:
    """The part of the memory limit that is for batches in flight."""
    return max(LEAST_SHARE_BYTES, table.memory_bytes // 4)
