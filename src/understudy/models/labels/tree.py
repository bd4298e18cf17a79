"""DecisionTree: splits on coded columns; every combination of codes ends in exactly one leaf.

Nodes are numbered layer by layer, children of one node side by side in the order of their groups. So a tree is one
array: for each node the column it splits on, or −1. Where children stand and which number a leaf has follow from it.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["Attributes", "DecisionTree"]

Groups = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Attributes:
    """Columns that nodes may split on, and for each of them the group (0, 1, …) of every code."""

    names: tuple[str, ...]
    groups: tuple[Ints, ...]

    @classmethod
    def of(cls, groups: Mapping[str, Ints]) -> "Attributes":
        """The columns in this order with these groups."""
        return cls(tuple(groups), tuple(np.asarray(group, dtype=np.int64) for group in groups.values()))

    @property
    def fan_outs(self) -> tuple[int, ...]:
        """Number of groups of each column: the children of a node that splits on it."""
        return tuple(int(group.max()) + 1 for group in self.groups)

    def grouped(self, codes: Mapping[str, npt.NDArray[np.integer]], rows: int) -> Groups:
        """The group of every record, one line per column; lines of columns that `codes` does not name stay 0."""
        found = np.zeros((len(self.names), rows), dtype=np.int32)
        for line, (name, group) in enumerate(zip(self.names, self.groups, strict=True)):
            if name in codes:
                found[line] = group[codes[name]]
        return found

    def faults(self, sizes: Mapping[str, int]) -> list[str]:
        """What is wrong with them, in words; empty if nothing is."""
        if len(set(self.names)) != len(self.names) or any(name not in sizes for name in self.names):
            return ["a tree may split on columns of the domain only, each named once."]
        for name, group in zip(self.names, self.groups, strict=True):
            used = np.unique(group)
            if group.shape != (sizes[name],) or not np.array_equal(used, np.arange(used.size)):
                return ["every code of a column must have a group, and every group a code."]
        return []


@dataclass(frozen=True, eq=False)
class DecisionTree:
    """For each node the position of its column among the attributes, −1 at a leaf; and the attributes' fan-outs."""

    splits: Ints
    fan_outs: tuple[int, ...]

    @classmethod
    def leaf(cls, fan_outs: Sequence[int]) -> "DecisionTree":
        """The tree that is one leaf."""
        return cls(np.full(1, -1, dtype=np.int64), tuple(fan_outs))

    @cached_property
    def leaves(self) -> int:
        """Number of leaves."""
        return int((self.splits < 0).sum())

    @cached_property
    def places(self) -> Ints:
        """For each node its first child, or at a leaf the leaf's number."""
        inner = self.splits >= 0
        children = np.where(inner, np.array([*self.fan_outs, 0])[self.splits], 0)
        first = 1 + np.cumsum(children) - children
        return np.where(inner, first, np.cumsum(~inner) - 1)

    @cached_property
    def used(self) -> tuple[int, ...]:
        """Positions of the columns that it splits on somewhere."""
        return tuple(int(position) for position in np.unique(self.splits) if position >= 0)

    def leaf_of(self, grouped: Groups) -> Ints:
        """The leaf of each record, given the groups of its codes (one line per attribute)."""
        nodes = np.zeros(grouped.shape[1], dtype=np.int64)
        moving = np.arange(nodes.size) if self.splits[0] >= 0 else np.zeros(0, dtype=np.int64)
        while moving.size:
            here = nodes[moving]
            reached = self.places[here] + grouped[self.splits[here], moving]
            nodes[moving] = reached
            moving = moving[self.splits[reached] >= 0]
        return self.places[nodes]

    def with_leaves_split(self, column: int) -> "DecisionTree":
        """The same tree with every leaf split on that column, nodes numbered anew."""
        splits: list[int] = []
        waiting = deque([0])
        while waiting:
            node = waiting.popleft()
            split = column if node >= 0 > self.splits[node] else int(self.splits[node]) if node >= 0 else -1
            splits.append(split)
            if split >= 0:
                known = node >= 0 and self.splits[node] >= 0
                first, count = int(self.places[node]), self.fan_outs[split]
                waiting.extend(range(first, first + count) if known else [-1] * count)  # -1: a leaf of the larger tree
        return DecisionTree(np.array(splits, dtype=np.int64), self.fan_outs)

    def faults(self) -> list[str]:
        """What is wrong with it, in words; empty if nothing is."""
        splits = self.splits
        if splits.ndim != 1 or not splits.size or splits.min() < -1 or splits.max() >= len(self.fan_outs):
            return ["a node must split on one of the columns, or be a leaf."]
        inner = np.flatnonzero(splits >= 0)
        children = np.array([*self.fan_outs, 0])[splits[inner]]
        if 1 + int(children.sum()) != splits.size or not np.all(self.places[inner] > inner):
            return ["every node but the root must be the child of an earlier one."]
        return []
