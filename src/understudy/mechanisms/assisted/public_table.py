"""PublicTable: what preparing a plan needs of a table that protects nobody.

Methods never hold such a table. They see its counts alone: through `PublicFacts.public` in a plan and through
`Curator.public_counts` in a run.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from understudy.codec.table_codec import TableCodec
from understudy.marginals.clique import Clique

__all__ = ["PublicLabels", "PublicSource", "PublicTable"]

Ints = npt.NDArray[np.int64]


class PublicLabels(Protocol):
    """Labels of an open column with their numbers of rows."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Every distinct label."""
        ...

    @property
    def counts(self) -> Ints:
        """Rows that hold it."""
        ...


class PublicSource(Protocol):
    """Public rows seen through settled codes."""

    def counts(self, cliques: Sequence[Clique]) -> Mapping[Clique, Ints]:
        """Exact counts of cliques."""
        ...


class PublicTable(Protocol):
    """Public rows of the schema's columns."""

    def label_counts(self, column: str) -> PublicLabels:
        """Labels of an open column."""
        ...

    def bind(self, codec: TableCodec) -> PublicSource:
        """The same rows seen through settled codes."""
        ...
