"""The seams of counting: a private table before and after its codes are settled.

Nothing here is noisy. Exact counts may be handed to `privacy` and to `evaluate`, to nobody else. No message raised
in this room may depend on the content of a row; content never raises at all (see `codec`).
"""

import abc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.codec.table_codec import TableCodec
from understudy.errors import SchemaError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.partition import Partition
from understudy.schema import Schema

__all__ = [
    "DEFAULT_MEMORY_BYTES",
    "Batch",
    "CountSource",
    "Ints",
    "LabelCounts",
    "OccupiedCells",
    "PrivateTable",
    "Records",
]

Ints = npt.NDArray[np.int64]
Batch = tuple[int, Mapping[str, pa.Array | pa.ChunkedArray]]
"""A number of rows and their values by column."""

DEFAULT_MEMORY_BYTES = 2 << 30


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


class PrivateTable(abc.ABC):
    """A private table of which only public facts are known: column names and storage types.

    Opening and checking it reads headers, never rows. A table of one's own is a subclass with one duty, `batches`:
    hand over the rows as they are. Coding, counting and the bound of k rows per unit are done here, for every table
    alike, and cannot be replaced, so no source can forget them.
    """

    def __init__(
        self, names: Sequence[str], schema: Schema, *, memory_bytes: int = DEFAULT_MEMORY_BYTES, threads: int = 1
    ) -> None:
        """Checks the header against the schema.

        Raises:
            SchemaError: with every problem of the header.
        """
        problems = schema.header_problems(names)
        if problems:
            raise SchemaError(problems)
        self._names = tuple(names)
        self._schema = schema
        self.memory_bytes = memory_bytes
        self.threads = threads

    def __init_subclass__(cls) -> None:
        """Refuses a subclass that would count by itself."""
        replaced = sorted({"bind", "label_counts", "schema"} & set(vars(cls)))
        if replaced:
            rule = f"replaces {' and '.join(replaced)}, which cut each unit to its bound for every table alike."
            raise TypeError(f"{cls.__name__} {rule} Hand over rows by batches and leave the rest.")

    @property
    def schema(self) -> Schema:
        """The public schema it will be read under."""
        return self._schema

    @property
    def undeclared(self) -> tuple[str, ...]:
        """Columns present in the table but not in the schema: left out."""
        declared = {*self._schema.names, self._schema.unit.column}
        return tuple(name for name in self._names if name not in declared)

    @property
    def frame_kind(self) -> str:
        """What to hand back to the user: "pandas", "polars" or "arrow" (also for files)."""
        return "arrow"

    @abc.abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Number of rows and the values of these columns, batch by batch, every row once and before any bound.

        Private. Beside the two methods below, only comparisons with the private table read it; those are confidential.
        """

    def label_counts(self, column: str) -> LabelCounts:
        """Labels of an open column, after the unit's bound on rows was applied (to rows that have a label)."""
        from understudy.counts.open import label_counts_of  # which knows every kind of table

        return label_counts_of(self, column)

    def bind(self, codec: TableCodec) -> CountSource:
        """The same rows seen through settled codes, after the unit's bound. Reads nothing yet."""
        from understudy.counts.open import source_of

        return source_of(self, codec)
