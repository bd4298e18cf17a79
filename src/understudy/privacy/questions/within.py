"""Counting inside the cells of a partition: "cell × code of a column" is a partition again.

Each record lies in one cell and has one code, so it moves one count by one, whatever the partition.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from understudy.counts.source import CountSource, Ints
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.partition import Partition

__all__ = ["Within", "counts_within"]

Codes = Mapping[str, npt.NDArray[np.integer]]


@dataclass(slots=True)
class _Cells:
    """The cells of a batch of records, worked out once for all columns that are counted in them."""

    partition: Partition
    _seen: list[npt.NDArray[np.integer]] = field(default_factory=list)
    _found: Ints | None = None

    def of(self, codes: Codes, rows: int) -> Ints:
        """The cell of each record."""
        arrays = [codes[name] for name in self.partition.columns]
        if not arrays:
            return np.zeros(rows, dtype=np.int64)
        # The arrays themselves are kept, so that "the same object" cannot mean a new one in the old one's place.
        known = self._found is not None and len(self._seen) == len(arrays)
        if not known or any(one is not other for one, other in zip(self._seen, arrays, strict=True)):
            self._found = self.partition.assign({name: codes[name] for name in self.partition.columns})
            self._seen = arrays
        assert self._found is not None
        return self._found


@dataclass(frozen=True, slots=True)
class Within:
    """Cell number · codes + code: the codes of one column inside every cell of a partition."""

    partition: Partition
    column: str
    columns: Clique
    size: int
    _cells: _Cells

    @property
    def name(self) -> str:
        """The partition's name and the column's."""
        return f"{self.partition.name} × {self.column}"

    @property
    def cells(self) -> int:
        """Cells times codes."""
        return self.partition.cells * self.size

    def assign(self, codes: Codes) -> Ints:
        """The cell of each record."""
        inside = codes[self.column]
        return self._cells.of(codes, len(inside)) * self.size + inside.astype(np.int64)


def counts_within(source: CountSource, domain: Domain, partition: Partition, columns: Sequence[str]) -> dict[str, Ints]:
    """For every column the exact counts of its codes inside each cell, shape (cells, codes)."""
    shared = _Cells(partition)
    parts = [
        Within(partition, name, domain.clique([*partition.columns, name]), domain.sizes[name], shared)
        for name in dict.fromkeys(columns)
    ]
    found = source.partition_counts(parts) if parts else []
    return {part.column: counts.reshape(partition.cells, part.size) for part, counts in zip(parts, found, strict=True)}
