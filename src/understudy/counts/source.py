"""The seams of counting: a private table before and after its codes are settled.

Nothing here is noisy. Exact counts may be handed to `privacy` and to `evaluate`, to nobody else. No message raised
in this room may depend on the content of a row; content never raises at all (see `codec`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.codec.table_codec import TableCodec
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.partition import Partition
from understudy.schema import Schema

__all__ = ["CountSource", "Ints", "LabelCounts", "OccupiedCells", "PrivateTable", "Records"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Every distinct label of an open column with its number of rows (missing values are not listed)."""

    labels: tuple[str, ...]
    counts: Ints


@dataclass(frozen=True, slots=True)
class OccupiedCells:
    """Cells of a clique's table with at least one row: flat row-major indices (increasing) and their counts."""

    indices: Ints
    counts: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Coded rows, one line each with the columns in domain order; rows starts[u] to starts[u + 1] are of unit u."""

    codes: npt.NDArray[np.unsignedinteger]
    starts: Ints

    @property
    def units(self) -> int:
        """How many units hold a row."""
        return self.starts.size - 1


class CountSource(Protocol):
    """Exact counts of coded records, after the unit's bound on rows was applied."""

    @property
    def domain(self) -> Domain:
        """The codes being counted."""
        ...

    def counts(self, cliques: Sequence[Clique]) -> Mapping[Clique, Ints]:
        """Flat row-major counts of each clique, as few passes over the rows as memory allows; () is the total."""
        ...

    def partition_counts(self, partitions: Sequence[Partition]) -> list[Ints]:
        """Counts of each partition's cells."""
        ...

    def occupied(self, clique: Clique) -> OccupiedCells:
        """Only the occupied cells of a table too large to hold (fewer than 2⁶³ cells)."""
        ...

    def records(self) -> Records:
        """The rows themselves, in memory, grouped by unit; for training, which the door alone does."""
        ...


class PrivateTable(Protocol):
    """A private table of which only public facts are known: column names and storage types.

    Opening and checking it reads headers, never rows. Rows are read by `label_counts`, by the bound source, and by
    `batches`, which is for comparisons with the private table: those are confidential and never leave.
    """

    @property
    def schema(self) -> Schema:
        """The public schema it will be read under."""
        ...

    @property
    def undeclared(self) -> tuple[str, ...]:
        """Columns present in the table but not in the schema: left out."""
        ...

    @property
    def frame_kind(self) -> str:
        """What to hand back to the user: "pandas", "polars" or "arrow" (also for files)."""
        ...

    def label_counts(self, column: str) -> LabelCounts:
        """Labels of an open column, after the unit's bound on rows was applied."""
        ...

    def bind(self, codec: TableCodec) -> CountSource:
        """The same rows seen through settled codes. Reads nothing yet."""
        ...

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, Mapping[str, pa.Array | pa.ChunkedArray]]]:
        """Number of rows and their values, batch by batch, before any bound. Private; `evaluate` alone reads it."""
        ...
