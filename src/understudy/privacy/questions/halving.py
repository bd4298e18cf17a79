"""Halving: ranges of a column's codes, halved again and again where enough rows lie. A `Growth` for one ordered column.

A node is a range of neighbouring codes. Its halves are two disjoint ranges inside it, one level deeper, so a row lies
in one node per layer and in at most one child of it: what the proof in `growth.py` asks for. Ranges of one code are
leaves, whatever they hold; so are nodes that would exceed the public limits on depth and number of leaves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from understudy.counts.source import Ints
from understudy.marginals.clique import Clique
from understudy.privacy.randomizer import Bools

__all__ = ["Halving", "Ranges"]

Range = tuple[int, int]


@dataclass(frozen=True)
class Ranges:
    """A partition of the rows by a column's code: one cell per range, and a last one for all other codes."""

    name: str
    columns: Clique
    ranges: tuple[Range, ...]

    @property
    def cells(self) -> int:
        """The ranges and the rest."""
        return len(self.ranges) + 1

    @cached_property
    def _starts(self) -> tuple[Ints, Ints, Ints]:
        order = sorted(range(len(self.ranges)), key=lambda place: self.ranges[place])
        parts = np.array([(*self.ranges[place], place) for place in order], dtype=np.int64).reshape(-1, 3)
        return parts[:, 0], parts[:, 1], parts[:, 2]

    def assign(self, codes: Mapping[str, npt.NDArray[np.integer]]) -> Ints:
        """The range of each record's code."""
        (column,) = self.columns
        values = codes[column].astype(np.int64)
        starts, stops, places = self._starts
        if not starts.size:
            return np.zeros(values.size, dtype=np.int64)
        at = np.searchsorted(starts, values, side="right") - 1
        inside = (at >= 0) & (values < stops[at])
        return np.where(inside, places[at], len(self.ranges))


@dataclass(frozen=True, slots=True)
class Halving:
    """The codes 0, 1, …, `codes` − 1 of a column, cut into ranges; begin with `Halving.of`."""

    name: str
    column: str
    theta: int
    most_depth: int
    most_leaves: int
    nodes: tuple[Range, ...]
    leaves: tuple[Range, ...] = ()
    depth: int = 0
    decay: float = 2.0

    @classmethod
    def of(
        cls, column: str, codes: int, *, theta: int = 0, most_depth: int = 64, most_leaves: int = 2**20
    ) -> "Halving":
        """One range of all codes, to be halved."""
        whole = ((0, codes),)
        nodes, leaves = (whole, ()) if codes > 1 else ((), whole)
        return cls(f"halves of {column}", column, theta, most_depth, most_leaves, nodes, leaves)

    @property
    def frontier(self) -> Ranges:
        """The open ranges."""
        return Ranges(self.name, Clique((self.column,)), self.nodes)

    @property
    def depths(self) -> Ints:
        """The same depth for all."""
        return np.full(len(self.nodes), self.depth, dtype=np.int64)

    @property
    def ranges(self) -> tuple[Range, ...]:
        """All ranges, open or not, in the order of their codes."""
        return tuple(sorted([*self.leaves, *self.nodes]))

    @property
    def finished(self) -> bool:
        """Whether no range is open."""
        return not self.nodes

    def after(self, split: Bools) -> "Halving":
        """The next layer: halves of what was split, leaves of the rest.

        Where all leaves would be more than `most_leaves`, the first ranges of the layer are halved, as many as fit.
        """
        room = self.most_leaves - len(self.leaves) - len(self.nodes)
        wanted = set(np.flatnonzero(split)[: max(room, 0)].tolist())
        halves = [half for place in sorted(wanted) for half in _halved(self.nodes[place])]
        kept = [node for place, node in enumerate(self.nodes) if place not in wanted]
        deeper = self.depth + 1 < self.most_depth
        open_nodes = [half for half in halves if deeper and half[1] - half[0] > 1]
        closed = [half for half in halves if not deeper or half[1] - half[0] == 1]
        leaves = tuple(sorted([*self.leaves, *kept, *closed]))
        return replace(self, nodes=tuple(open_nodes), leaves=leaves, depth=self.depth + 1)


def _halved(node: Range) -> tuple[Range, Range]:
    middle = (node[0] + node[1]) // 2
    return (node[0], middle), (middle, node[1])
