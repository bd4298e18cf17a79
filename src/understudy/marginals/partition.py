"""Partition: a public rule that puts each record in exactly one cell."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from understudy.marginals.clique import Clique

__all__ = ["Partition"]


@runtime_checkable
class Partition(Protocol):
    """A public rule over codes: the leaves of a tree, a coarsening, a group of columns.

    The rule must be fixed before the counts are read (or depend on earlier answers only) and must look at one record
    at a time. Then one record moves one cell by one, so a partition costs what a clique costs.
    """

    @property
    def name(self) -> str:
        """What the transcript calls it; unique within a run."""
        ...

    @property
    def columns(self) -> Clique:
        """The columns the rule looks at."""
        ...

    @property
    def cells(self) -> int:
        """Number of cells."""
        ...

    def assign(self, codes: Mapping[str, npt.NDArray[np.integer]]) -> npt.NDArray[np.int64]:
        """The cell of each record, in [0, cells), given the codes of `columns` (arrays of equal length)."""
        ...
