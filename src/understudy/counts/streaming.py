"""ChunkedSource: all ways of counting, for any source that can hand over coded rows in chunks.

Each chunk is a mapping from column to codes, after the unit's bound on rows. Rows in cells that public rules exclude
are counted like any other: whoever removes such cells does it to the whole cell, before noise.

Where the schema says `unreadable: drop`, a row that holds a value without a code is left out of every count, before
the unit's bound. Whether a row is left out depends on that row and the public schema alone. So neighbours, which differ
by the rows of one unit, still differ by rows of that unit only once both are filtered, and the bound then leaves at
most k of them: no sensitivity changes. How many rows were left out is private and told to nobody.
"""

import abc
import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from understudy.arrays import Bools, Ints, Unsigned
from understudy.codec.table import TableCodec
from understudy.counts.kernels import Cover, TableCounter, check_memory, cover_for, flat_index, look_up, passes, project
from understudy.counts.source import OccupiedCells, Records
from understudy.domain import Clique, Domain, Partition
from understudy.errors import ResourceError, UsageError
from understudy.schema import Schema

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
        wanted: list[list[Clique]] = [[] for _ in cover.tables]
        for clique, position in cover.source.items():
            wanted[position].append(clique)
        found: dict[Clique, Ints] = {}
        for batch in passes(self.domain, cover.tables, self._table_bytes):
            tables = [cover.tables[position] for position in batch]
            for position, total in zip(batch, self._count_tables(tables), strict=True):
                for clique in wanted[position]:
                    found[clique] = project(self.domain, cover.tables[position], total, clique)
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
