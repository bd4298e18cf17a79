"""Leaf tables as partitions: each record lies in one leaf of a tree and has one label, so it lies in one cell.

`LeafPartition` routes a record by its own values. `ChainedPartition` routes it as the source does for its second
private column: by a *synthetic* value of the first one. The rule of a partition may look at one record only, so the
coin of the synthetic value is a public hash of all codes of the record and of a public salt. Records that are equal in
every column therefore get the same synthetic value; other than that the coin is as good as fresh. Laws and salt are
fixed before anything is counted, so one record still moves one cell by one, whatever it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.marginals.clique import Clique
from understudy.models.labels.chain import pick
from understudy.models.labels.ensemble import Ensemble
from understudy.models.labels.tree import Attributes, DecisionTree

__all__ = ["ChainedPartition", "LeafPartition", "coins"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Codes = Mapping[str, npt.NDArray[np.integer]]

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


@dataclass(frozen=True, slots=True, eq=False)
class LeafPartition:
    """Leaf × label, the leaf found by the record's own values."""

    name: str
    columns: Clique
    attributes: Attributes
    tree: DecisionTree
    label: str
    labels: int

    @property
    def cells(self) -> int:
        """Leaves times labels."""
        return self.tree.leaves * self.labels

    def assign(self, codes: Codes) -> Ints:
        """The cell of each record."""
        rows = len(codes[self.label])
        leaves = self.tree.leaf_of(self.attributes.grouped(codes, rows))
        return leaves * self.labels + np.asarray(codes[self.label], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class ChainedPartition:
    """Leaf × label, the leaf found with synthetic values in place of the private columns before this one."""

    inner: LeafPartition
    earlier: tuple[Ensemble, ...]
    everything: Clique
    salt: int

    @property
    def name(self) -> str:
        """What the transcript calls it."""
        return self.inner.name

    @property
    def columns(self) -> Clique:
        """All columns: the coin is a hash of every code."""
        return self.everything

    @property
    def cells(self) -> int:
        """Leaves times labels."""
        return self.inner.cells

    def assign(self, codes: Codes) -> Ints:
        """The cell of each record: its own label, the leaf of its synthetic self."""
        label = codes[self.inner.label]
        routed: dict[str, npt.NDArray[np.integer]] = dict(codes)
        listed = [codes[name] for name in self.everything]
        for place, ensemble in enumerate(self.earlier):
            law = ensemble.law(routed, len(label))
            routed[ensemble.label] = pick(law, coins(listed, self.salt, place))
        return self.inner.assign({**routed, self.inner.label: label})


def coins(codes: Sequence[npt.NDArray[np.integer]], salt: int, place: int) -> Floats:
    """A number in [0, 1) for each record, from its codes, a public salt and the place of the drawn column.

    The same code in another column, another salt or another place gives an unrelated number (the finaliser of
    SplitMix64 after every code).

    >>> coins([np.array([0, 1, 0])], 0, 0).round(4).tolist() == coins([np.array([0, 1, 0])], 0, 0).round(4).tolist()
    True
    """
    with np.errstate(over="ignore"):
        state = np.full(len(codes[0]), (salt * 2 + 1) % 2**64, dtype=np.uint64)
        for column in [np.full(1, place), *codes]:
            state = _mixed(state + np.asarray(column).astype(np.uint64) * np.uint64(_SECOND) + np.uint64(_STEP))
    return np.asarray((state >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _mixed(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    state = (state ^ (state >> np.uint64(30))) * np.uint64(_FIRST)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(_SECOND)
    return state ^ (state >> np.uint64(31))
