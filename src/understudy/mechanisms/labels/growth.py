"""TreeGrowth: a random decision tree, layer by layer. Which column an open node would split on is drawn in public.

A node draws its column from those not used above it, with probability proportional to their weights (all nodes of a
layer the same one with `per_level`), from a generator made of the public structure seed, the tree's number and the
layer. Whether the node is split is decided from outside: by counts of a public table (`grow_by_counts`) or by noisy
private counts (`Curator.grow`). Nodes are numbered layer by layer, so the splits alone are the tree.

Public limits: depth, columns used up, and the number of leaves (nodes are split in their order while leaves last).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from understudy.marginals.clique import Clique
from understudy.models.labels.tree import Attributes, DecisionTree

__all__ = ["Frontier", "Limits", "Reference", "TreeGrowth", "grow_by_counts"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Limits:
    """When growth ends: records below which a node stays a leaf, depth, leaves; and whether a layer shares a column."""

    leaf_size: int
    depth: int
    leaves: int
    per_level: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """Records that limit growth: codes of every attribute and a weight (a number of records) for each."""

    codes: Mapping[str, npt.NDArray[np.integer]]
    weights: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """The open nodes of a tree as a partition: one cell each, and a last one for all other records."""

    name: str
    columns: Clique
    attributes: Attributes
    tree: DecisionTree
    cell_of_leaf: Ints
    cells: int

    def assign(self, codes: Mapping[str, npt.NDArray[np.integer]]) -> Ints:
        """The cell of each record."""
        rows = len(codes[self.columns[0]])
        return self.cell_of_leaf[self.tree.leaf_of(self.attributes.grouped(codes, rows))]


@dataclass(frozen=True, eq=False)
class TreeGrowth:
    """A tree as it grows; frozen, one object per layer."""

    name: str
    attributes: Attributes
    weights: tuple[float, ...]
    limits: Limits
    seed: tuple[int, ...]
    order: tuple[str, ...]
    """All columns of the domain, for the spelling of cliques."""
    splits: Ints
    open: Ints
    used: Bools
    """For each open node the columns used on the way to it."""
    pending: Ints
    """For each open node the column it would split on."""
    layer: int = 0

    @classmethod
    def start(
        cls, name: str, attributes: Attributes, weights: tuple[float, ...], limits: Limits, *, seed: tuple[int, ...],
        order: tuple[str, ...],
    ) -> "TreeGrowth":  # fmt: skip
        """The tree that is one open root; a column of one group cannot split anything and is never drawn."""
        usable = tuple(
            weight if fan_out > 1 else 0.0 for weight, fan_out in zip(weights, attributes.fan_outs, strict=True)
        )
        nothing = np.zeros(0, dtype=np.int64)
        empty = np.zeros((0, len(usable)), dtype=bool)
        root = np.full(1, -1, dtype=np.int64)
        bare = cls(name, attributes, usable, limits, seed, order, root, nothing, empty, nothing)
        return bare._opened(root, np.zeros(1, dtype=np.int64), np.zeros((1, len(usable)), dtype=bool), 0)

    @property
    def tree(self) -> DecisionTree:
        """What has grown so far."""
        return DecisionTree(self.splits, self.attributes.fan_outs)

    @property
    def finished(self) -> bool:
        """Whether no node is open any more."""
        return not self.open.size

    @property
    def depths(self) -> Ints:
        """The depth of every open node: that of its layer."""
        return np.full(self.open.size, self.layer, dtype=np.int64)

    @property
    def decay(self) -> float:
        """The largest number of children."""
        return float(max(2, *self.attributes.fan_outs, 2))

    @property
    def theta(self) -> int:
        """Records above which a node is worth splitting."""
        return self.limits.leaf_size

    @property
    def frontier(self) -> Frontier:
        """The open nodes as cells."""
        tree = self.tree
        looked_at = {self.attributes.names[position] for position in tree.used} or {self.attributes.names[0]}
        cells = np.full(tree.leaves, self.open.size, dtype=np.int64)
        cells[tree.places[self.open]] = np.arange(self.open.size)
        name = f"{self.name}, layer {self.layer}"
        return Frontier(name, Clique.of(looked_at, self.order), self.attributes, tree, cells, self.open.size + 1)

    def after(self, split: Bools) -> "TreeGrowth":
        """The next layer: these open nodes are split as far as leaves last, all others are leaves."""
        fan_outs = np.array(self.attributes.fan_outs, dtype=np.int64)
        wanted = np.flatnonzero(split)
        leaves = self.tree.leaves + np.cumsum(fan_outs[self.pending[wanted]] - 1)
        chosen = wanted[leaves <= self.limits.leaves]
        splits = self.splits.copy()
        columns = self.pending[chosen]
        splits[self.open[chosen]] = columns
        children = fan_outs[columns]
        used = self.used[chosen]
        used[np.arange(chosen.size), columns] = True
        first = splits.size
        grown = np.concatenate([splits, np.full(int(children.sum()), -1, dtype=np.int64)])
        return self._opened(grown, np.arange(first, grown.size), np.repeat(used, children, axis=0), self.layer + 1)

    def _opened(self, splits: Ints, nodes: Ints, used: Bools, layer: int) -> "TreeGrowth":
        """The same tree with these nodes open, as far as depth and columns allow, and their columns drawn."""
        weights = np.where(used, 0.0, np.array(self.weights))
        able = weights.sum(axis=1) > 0.0 if layer < self.limits.depth else np.zeros(nodes.size, dtype=bool)
        nodes, used, weights = nodes[able], used[able], weights[able]
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence((*self.seed, layer))))
        steps = np.cumsum(weights, axis=1)
        lots = np.full(nodes.size, rng.random()) if self.limits.per_level else rng.random(nodes.size)
        # The last running sum is compared with itself times a number below 1, so a column of weight 0 is never drawn.
        pending = (steps <= (lots * steps[:, -1] if nodes.size else lots)[:, None]).sum(axis=1)
        return replace(self, splits=splits, open=nodes, used=used, pending=pending.astype(np.int64), layer=layer)


def grow_by_counts(growth: TreeGrowth, reference: Reference) -> DecisionTree:
    """The tree in which every node with at least `leaf_size` reference records was split, as far as limits allow."""
    while not growth.finished:
        frontier = growth.frontier
        cells = frontier.assign(reference.codes)
        counts = np.bincount(cells, weights=reference.weights, minlength=frontier.cells)[:-1]
        growth = growth.after(counts >= growth.limits.leaf_size - 1e-9)  # expected numbers carry rounding
    return growth.tree
