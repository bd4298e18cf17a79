"""NodeGrowth: a settled tree that is cut back by noisy counts; nodes too small to be worth splitting stay whole.

The tree of all layers is public or was chosen before. From the root downwards, PrivTree's rule decides about every node
whose parent was split (`Curator.grow`, proved in `privacy/questions/growth.py`): a child's cell lies inside its
parent's, and its depth is its layer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from understudy.marginals.clique import Clique
from understudy.models.tree.structure import Structure

__all__ = ["Frontier", "NodeGrowth"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """The open nodes of a layer as cells, and one last cell for all other records."""

    structure: Structure
    layer: int
    open: Ints

    @property
    def name(self) -> str:
        """The layer's name."""
        return f"layer {self.layer}"

    @property
    def columns(self) -> Clique:
        """The columns the tree splits by down to that layer."""
        return self.structure.partition(self.layer).columns

    @property
    def cells(self) -> int:
        """Open nodes and one more."""
        return self.open.size + 1

    def assign(self, codes: Mapping[str, npt.NDArray[np.integer]]) -> Ints:
        """The open node of each record, or the last cell."""
        place = np.full(self.structure.size(self.layer), self.open.size, dtype=np.int64)
        place[self.open] = np.arange(self.open.size)
        return np.asarray(place[self.structure.partition(self.layer).assign(codes)])


@dataclass(frozen=True, slots=True, eq=False)
class NodeGrowth:
    """How far the tree has grown: the open nodes of the current layer, and what was decided above it."""

    structure: Structure
    decay: float
    theta: int
    open: Ints
    splits: tuple[Bools, ...] = ()
    """For every layer so far and every node of it, whether it was split."""

    @classmethod
    def of(cls, structure: Structure, decay: float, theta: int) -> Self:
        """Nothing decided yet: the root is open."""
        return cls(structure, decay, theta, np.zeros(1, dtype=np.int64))

    @property
    def name(self) -> str:
        """What the transcript calls it."""
        return "tree"

    @property
    def layer(self) -> int:
        """The layer whose nodes are open."""
        return len(self.splits)

    @property
    def frontier(self) -> Frontier:
        """The open nodes, and one cell for all other records."""
        return Frontier(self.structure, self.layer, self.open)

    @property
    def depths(self) -> Ints:
        """The layer, for every open node."""
        return np.full(self.open.size, self.layer, dtype=np.int64)

    @property
    def finished(self) -> bool:
        """No node is open, or the tree has no further layer."""
        return not self.open.size or self.layer >= self.structure.layers

    def after(self, split: Bools) -> Self:
        """The tree with these open nodes split: their children are open next."""
        decided = np.zeros(self.structure.size(self.layer), dtype=bool)
        decided[self.open] = split
        parents = list(self.structure.parent_places())[self.layer]
        children = np.flatnonzero(decided[parents])
        return type(self)(self.structure, self.decay, self.theta, children, (*self.splits, decided))

    def pruned(self) -> Structure:
        """The same number of layers, with nodes that were not split passed on as they are."""
        tree, names = Structure.root(self.structure.domain), self.structure.domain.columns
        # For every node of the cut tree the node of the full one it is, or −1 below a node that was not split.
        same = np.zeros(1, dtype=np.int64)
        for layer, parents in enumerate(self.structure.parent_places()):
            decided = self.splits[layer] if layer < self.layer else np.zeros(self.structure.size(layer), dtype=bool)
            goes = (same >= 0) & decided[same]
            first = np.searchsorted(parents, same)
            number = np.where(goes, np.searchsorted(parents, same, side="right") - first, 1)
            column = self.structure.columns[self.structure.starts[layer + 1] :][first]
            tree = tree.split([names[place] if split else None for place, split in zip(column, goes, strict=True)])
            piece = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
            same = np.where(np.repeat(goes, number), np.repeat(first, number) + piece, -1)
        return tree
