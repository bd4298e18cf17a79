"""ChunkedSource: all ways of counting, for any source that can hand over coded rows in chunks.

Each chunk is a mapping from column to codes, after the unit's bound on rows. Rows in cells that public rules exclude
are counted like any other: whoever removes such cells does it to the whole cell, before noise.
"""

import abc
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from understudy.codec.table_codec import TableCodec
from understudy.counts.cover import Cover, check_memory, cover_for, passes, project
from understudy.counts.kernels import TableCounter, flat_index
from understudy.counts.source import Ints, OccupiedCells
from understudy.errors import ResourceError, UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.partition import Partition

__all__ = ["Chunk", "ChunkedSource"]

Codes = npt.NDArray[np.unsignedinteger]
Chunk = Mapping[str, Codes]

SPARSE_CELLS = 1 << 62


class ChunkedSource(abc.ABC):
    """Counts from chunks of coded rows; subclasses say where the chunks come from."""

    def __init__(self, codec: TableCodec, memory_bytes: int) -> None:
        self._codec = codec
        self._memory_bytes = memory_bytes
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
        found: dict[Clique, Ints] = {}
        for batch in passes(self.domain, cover.tables, self._memory_bytes // 2):
            tables = [cover.tables[position] for position in batch]
            here = set(batch)
            wanted = [clique for clique in dict.fromkeys(cliques) if clique and cover.source[clique] in here]
            totals = dict(zip(batch, self._count_tables(tables), strict=True))
            for clique in wanted:
                table = cover.source[clique]
                found[clique] = project(self.domain, cover.tables[table], totals[table], clique)
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
        indices, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        sizes = self.domain.shape(clique)
        for rows, chunk in self._chunks(list(clique)):
            if clique:
                index = flat_index([chunk[name] for name in clique], sizes)
            else:
                index = np.zeros(rows, np.int64)
            fresh, times = np.unique(index, return_counts=True)
            indices, counts = _merged(indices, counts, fresh, times)
        return OccupiedCells(indices, counts)

    def _count_tables(self, tables: Sequence[Clique]) -> list[Ints]:
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


def _merged(indices: Ints, counts: Ints, fresh: Ints, times: Ints) -> tuple[Ints, Ints]:
    """Two sorted lists of cells as one; memory grows with the occupied cells only."""
    if not len(indices):
        return fresh.astype(np.int64), times.astype(np.int64)
    union = np.union1d(indices, fresh)
    total = np.zeros(len(union), np.int64)
    total[np.searchsorted(union, indices)] += counts
    total[np.searchsorted(union, fresh)] += times
    return union, total
