"""Structure: which records the nodes of a tree hold, layer by layer. Public: it never holds a count.

A node holds the records of its parent whose code of one column lies in a range; the children of a node share the column
and their ranges follow each other and cover the parent's. A node may also be passed on to the next layer as it is. All
nodes lie in flat arrays, layer after layer, children of one node side by side, so a record finds its node of any
layer by following child ranges downwards (compiled; a range is found by position where each child is one code, and by
halving otherwise).
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain

__all__ = ["LayerPartition", "Node", "Structure"]

Ints = npt.NDArray[np.int64]
Shorts = npt.NDArray[np.int32]

_BLOCK_ROWS = 2**16
_MOST_CODES = 2**31 - 1
_MOST_NODES = 2**28


class Node(NamedTuple):
    """A node: its parent's place in the layer above, and the codes low … high − 1 of a column that it holds of it.

    `column` is None for the root and for a node passed on unsplit.
    """

    parent: int
    column: str | None
    low: int
    high: int


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """Nodes in flat arrays. Build it from `Structure.root` by `split`, `refine` and `divide`.

    `parents` number nodes over all layers (the root's is −1) and never fall; `columns` are positions in the domain, −1
    for the root and nodes passed on; `starts` holds the first node of each layer, and the number of nodes at the end.
    """

    domain: Domain
    parents: Ints
    columns: Shorts
    lows: Shorts
    highs: Shorts
    starts: tuple[int, ...]

    @classmethod
    def root(cls, domain: Domain) -> Self:
        """One node that holds every record."""
        if not domain.columns:
            raise UsageError("tree", "needs at least one column.")
        for name, size in domain.sizes.items():
            if size > _MOST_CODES:
                raise UsageError(f"tree: column {name!r}", f"must have at most {_MOST_CODES:,} codes, has {size:,}.")
        none = np.zeros(1, dtype=np.int32)
        return cls(domain, np.array([-1]), np.array([-1], dtype=np.int32), none, none, (0, 1))

    @property
    def layers(self) -> int:
        """Number of layers below the root (the leaf layer not counted)."""
        return len(self.starts) - 2

    def size(self, layer: int = -1) -> int:
        """Number of nodes of a layer, the last one by default."""
        number = self._layer(layer)
        return self.starts[number + 1] - self.starts[number]

    def nodes(self, layer: int = -1) -> list[Node]:
        """The nodes of a layer in order."""
        number = self._layer(layer)
        here = slice(self.starts[number], self.starts[number + 1])
        above = self.starts[max(number - 1, 0)]
        names = self.domain.columns
        facts = zip(self.parents[here], self.columns[here], self.lows[here], self.highs[here], strict=True)
        return [
            Node(int(parent) - above if number else -1, None if column < 0 else names[column], int(low), int(high))
            for parent, column, low, high in facts
        ]

    def boxes(self, layer: int = -1) -> tuple[Shorts, Shorts]:
        """First code and end (one past the last code) of every column at every node: two (nodes × columns) arrays."""
        lows = np.zeros((1, len(self.domain.columns)), dtype=np.int32)
        highs = np.array([self.domain.shape(self.domain.columns)], dtype=np.int32)
        for number in range(1, self._layer(layer) + 1):
            here = slice(self.starts[number], self.starts[number + 1])
            above = self.parents[here] - self.starts[number - 1]
            lows, highs = lows[above], highs[above]
            moved = np.flatnonzero(self.columns[here] >= 0)
            column = self.columns[here][moved]
            lows[moved, column] = self.lows[here][moved]
            highs[moved, column] = self.highs[here][moved]
        return lows, highs

    def widths(self, layer: int = -1) -> Shorts:
        """Number of codes of every column left at every node (nodes × columns)."""
        lows, highs = self.boxes(layer)
        return np.asarray(highs - lows)

    def split(self, columns: Sequence[str | None]) -> Self:
        """One more layer: each node of the last layer gets one child per code of its column; None passes it on."""
        return self.refine(columns, parts=_MOST_CODES)

    def refine(self, columns: Sequence[str | None], *, parts: int) -> Self:
        """One more layer: each node of the last layer is cut into at most `parts` nearly equal ranges of its column.

        A column of which one code is left gives one child, as None does.
        """
        if parts < 1:
            raise UsageError("tree: parts", f"must be 1 or more, got {parts}.")
        places = self._places(columns)
        lows, highs = self.boxes()
        node = np.arange(places.size)
        low = np.where(places >= 0, lows[node, places], 0).astype(np.int64)
        width = np.where(places >= 0, highs[node, places] - lows[node, places], 1).astype(np.int64)
        pieces = np.minimum(width, parts)
        above = np.repeat(node, pieces)
        piece = np.arange(above.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        first = low[above] + piece * width[above] // pieces[above]
        end = low[above] + (piece + 1) * width[above] // pieces[above]
        return self._with_layer(above, places[above], first, end)

    def divide(self, columns: Sequence[str | None], starts: Sequence[Sequence[int]]) -> Self:
        """One more layer: each node is cut where a new range starts; `starts` lists those codes, but not the first.

        `divide(["age"], [[2, 4]])` gives the codes below 2, then 2 and 3, then 4 and above.
        """
        places = self._places(columns)
        if len(starts) != places.size:
            raise UsageError("tree: starts", f"needs one list per node of the last layer, {places.size} in all.")
        lows, highs = self.boxes()
        above, first, end = [], [], []
        for node, (place, inner) in enumerate(zip(places, starts, strict=True)):
            low, high = (int(lows[node, place]), int(highs[node, place])) if place >= 0 else (0, 1)
            bounds = [low, *inner, high]
            if any(left >= right for left, right in itertools.pairwise(bounds)):
                raise UsageError("tree: starts", f"must rise and lie between {low + 1} and {high - 1}, got {inner!r}.")
            above += [node] * (len(bounds) - 1)
            first += bounds[:-1]
            end += bounds[1:]
        return self._with_layer(np.array(above), places[above], np.array(first), np.array(end))

    def partition(self, layer: int = -1, name: str = "") -> "LayerPartition":
        """The nodes of a layer as cells, in order; called `layer NUMBER` in the transcript unless a name is given."""
        number = self._layer(layer)
        used = np.unique(self.columns[: self.starts[number + 1]])
        names = [self.domain.columns[place] for place in used if place >= 0] or [self.domain.columns[0]]
        return LayerPartition(name or f"layer {number}", self.domain.clique(names), self, number)

    def find(self, codes: Mapping[str, npt.NDArray[np.integer]], layer: int = -1) -> Ints:
        """The node each record falls in, counted within the layer; codes of the columns split so far are needed."""
        number = self._layer(layer)
        rows = len(next(iter(codes.values())))
        found = np.zeros(rows, dtype=np.int64)
        names = [name for name in self.domain.columns if name in codes]
        place = np.full(len(self.domain.columns), -1, dtype=np.int64)
        for row, name in enumerate(names):
            place[self.domain.columns.index(name)] = row
        columns = np.where(self.columns >= 0, place[self.columns], -1)
        first = self._children()
        block = np.empty((len(names), min(rows, _BLOCK_ROWS)), dtype=np.int32)
        for start in range(0, rows, _BLOCK_ROWS):
            stop = min(rows, start + _BLOCK_ROWS)
            for row, name in enumerate(names):
                block[row, : stop - start] = codes[name][start:stop]
            _descend(block, number, columns, first, self.lows, self.highs, found[start:stop])
        return found - self.starts[number]

    def leaf_parents(self) -> Ints:
        """For every cell of the full table, row-major, the node of the last layer it lies in."""
        cells = self.domain.cells(self.domain.columns)
        found = np.empty(cells, dtype=np.int64)
        partition = self.partition()
        strides = _strides(self.domain)
        for start in range(0, cells, _BLOCK_ROWS):
            here = np.arange(start, min(cells, start + _BLOCK_ROWS))
            codes = {name: here // strides[name] % self.domain.sizes[name] for name in partition.columns}
            found[start : start + here.size] = partition.assign(codes)
        return found

    def parent_places(self) -> Iterator[Ints]:
        """For each layer below the root, the place of every node's parent within the layer above."""
        for number in range(1, self.layers + 1):
            yield self.parents[self.starts[number] : self.starts[number + 1]] - self.starts[number - 1]

    def faults(self) -> list[str]:
        """What is wrong with arrays that came from elsewhere, in words; empty if nothing is."""
        count = self.parents.size
        if any(array.shape != (count,) for array in (self.columns, self.lows, self.highs)):
            return ["all arrays of a tree must have the same length."]
        if self.starts[:2] != (0, 1) or self.starts[-1] != count or self.parents[0] != -1 or self.columns[0] != -1:
            return ["a tree must begin with its root."]
        if not -1 <= self.columns.min() <= self.columns.max() < len(self.domain.columns):
            return ["a tree must split columns of the domain."]
        for number in range(1, self.layers + 1):
            if self.starts[number + 1] <= self.starts[number] or self.starts[number + 1] > count:
                return ["layers of a tree must follow each other."]
            if not self._layer_is_whole(number):
                return ["the children of a node must follow each other and cover it."]
        return []

    def _layer_is_whole(self, number: int) -> bool:
        above, start, end = self.starts[number - 1], self.starts[number], self.starts[number + 1]
        parent = self.parents[start:end] - above
        steps = np.diff(parent)
        if parent[0] != 0 or parent[-1] != start - above - 1 or steps.min(initial=0) < 0 or steps.max(initial=0) > 1:
            return False
        first, last = np.append(True, steps == 1), np.append(steps == 1, True)
        column, low, high = self.columns[start:end], self.lows[start:end], self.highs[start:end]
        lows, highs = self.boxes(number - 1)
        split = column >= 0
        whole = bool(np.all(split | (first & last)) and np.all((low < high)[split]))
        whole = whole and np.array_equal(column[1:][~first[1:]], column[:-1][~last[:-1]])
        whole = whole and np.array_equal(low[1:][~first[1:]], high[:-1][~last[:-1]])
        opens, closes = first & split, last & split
        whole = whole and np.array_equal(low[opens], lows[parent[opens], column[opens]])
        return whole and np.array_equal(high[closes], highs[parent[closes], column[closes]])

    def _children(self) -> Ints:
        """First child of every node; a node's children end where the next node's begin."""
        counts = np.bincount(self.parents[1:], minlength=self.parents.size)
        return np.concatenate(([1], 1 + np.cumsum(counts)))

    def _places(self, columns: Sequence[str | None]) -> Ints:
        if len(columns) != self.size():
            raise UsageError("tree: columns", f"needs one entry per node of the last layer, {self.size()} in all.")
        known = {name: place for place, name in enumerate(self.domain.columns)}
        for name in set(columns):
            if name is not None:
                self.domain.clique([name])  # raises for an unknown column, with the closest known one
        return np.array([-1 if name is None else known[name] for name in columns], dtype=np.int64)

    def _with_layer(self, above: Ints, columns: Ints, lows: Ints, highs: Ints) -> Self:
        if self.parents.size + above.size > _MOST_NODES:
            raise UsageError("tree", f"must have at most {_MOST_NODES:,} nodes above the leaves.")
        empty = columns < 0
        return type(self)(
            self.domain,
            np.concatenate((self.parents, above + self.starts[-2])),
            np.concatenate((self.columns, columns.astype(np.int32))),
            np.concatenate((self.lows, np.where(empty, 0, lows).astype(np.int32))),
            np.concatenate((self.highs, np.where(empty, 0, highs).astype(np.int32))),
            (*self.starts, self.starts[-1] + above.size),
        )

    def _layer(self, layer: int) -> int:
        number = layer + self.layers + 1 if layer < 0 else layer
        if not 0 <= number <= self.layers:
            raise UsageError("tree: layer", f"must lie between 0 and {self.layers}, got {layer}.")
        return number


@dataclass(frozen=True, slots=True, eq=False)
class LayerPartition:
    """A partition whose cells are the nodes of one layer, in order."""

    name: str
    columns: Clique
    structure: Structure
    layer: int

    @property
    def cells(self) -> int:
        """Number of nodes."""
        return self.structure.size(self.layer)

    def assign(self, codes: Mapping[str, npt.NDArray[np.integer]]) -> Ints:
        """The node of each record."""
        return self.structure.find({name: codes[name] for name in self.columns}, self.layer)


def _strides(domain: Domain) -> dict[str, int]:
    strides, stride = {}, 1
    for name in reversed(domain.columns):
        strides[name] = stride
        stride *= domain.sizes[name]
    return strides


@compiled()
def _descend(codes, layers, columns, first, lows, highs, found):  # type: ignore[no-untyped-def]
    """Follows every record (a column of `codes`) from the root through that many layers."""
    for row in range(found.size):
        node = 0
        for _ in range(layers):
            begin, end = first[node], first[node + 1]
            column = columns[begin]
            if column < 0:
                node = begin
                continue
            code = codes[column, row]
            if highs[end - 1] - lows[begin] == end - begin:
                node = begin + code - lows[begin]
                continue
            last = end - 1
            while begin < last:
                middle = (begin + last) // 2
                if code < highs[middle]:
                    last = middle
                else:
                    begin = middle + 1
            node = begin
        found[row] = node
