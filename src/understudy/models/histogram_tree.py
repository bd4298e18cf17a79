"""TreeModel: a full table of probabilities fitted to the noisy counts of a tree of its cells.

The leaf layer of a tree is the full table, so the distribution is one probability per cell of the domain, row-major;
cells that a rule excludes have none. `signed` holds the least squares estimates before negatives were removed, in the
same order: unbiased, and what sums over many cells should be taken from. Sums over a node's cells give its estimates.
Post-processing: everything here follows from noisy answers and their public variances.

The tree
--------
Public: it never holds a count. A node holds the records of its parent whose code of one column lies in a range; the
children of a node share the column and their ranges follow each other and cover the parent's. A node may also be passed
on to the next layer as it is. All nodes lie in flat arrays, layer after layer, children of one node side by side, so a
record finds its node of any layer by following child ranges downwards (compiled; a range is found by position where
each child is one code, and by halving otherwise).

Weighted least squares
----------------------
In time linear in the nodes. Given a noisy count y and a variance s of every node, the estimates h minimise Σ (h − y)²/s
under "children add up to their parent". One pass up combines what a node's own count and its children's sum say about
it, one pass down hands what the parent knows better to the children in proportion to their variances (Hay et al. 2010
for equal variances and branching; here both are free). s = 0: the count is known exactly. s = ∞: it was not measured.

Up, with S and T the sums of the children's z and V: z = (y·T + S·s)/(T + s), V = s·T/(s + T); a node without children
keeps z = y, V = s. Down: h = z at the root, h_u = z_u + (V_u/T)(h − S) below. Where several children were not measured
at all, nothing tells them apart: they share what is missing equally.

Counts of 0 or more
-------------------
From the root downwards each node's children are made to add up to it, in one of the two ways of `models/tables.py`,
applied to all sibling sets of a level at once: `clip_rescale` sets negatives to 0 and scales the rest to the parent
(equal shares if nothing is positive), `norm_sub` is the nearest vector with that sum. Cells that a public rule excludes
get nothing and take no part; a node with nothing but such cells below it gets nothing either. Biased, as every way is.

Raking
------
Setting negatives to 0 is biased: in a table with far more cells than rows, noise that stays above 0 in empty cells
pulls every column that no layer measured towards uniform. The sum of the *signed* estimates over a code has no such
bias, only variance: the sum V of its cells' variances. So each column gets a target between the two,

    target = current + w · (signed − current),        w = max(0, 1 − Σ noise / ‖signed − current‖²)

(signed first brought to the known total, in proportion to V; noise is what variance is left then). w is the share of
the difference that noise does not explain, as in James and Stein: near 1 where the signed sums say something, 0 where
they are noise. Then cells are multiplied, column by column, to meet the targets (iterative proportional fitting), and
last by node, so that what the layers measured is kept. Cells that are 0, impossible ones among them, stay 0.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Self, cast, get_args

import numpy as np
import numpy.typing as npt

from understudy.arrays import Bools, Floats, Integers, Ints, Shorts
from understudy.compiled import compiled
from understudy.domain import Clique, Domain
from understudy.errors import UsageError, nearest
from understudy.models.model import (
    Codes,
    Contents,
    ModelFiles,
    StoredModel,
    probability_faults,
    query_clique,
    query_codes,
    size_list,
    total_faults,
)
from understudy.models.tables import Rounding, code_dtype, draw_places, norm_sub, sub_indices

_BLOCK_ROWS = 2**16
_MOST_CODES = 2**31 - 1
_MOST_NODES = 2**28


class TreeNode(NamedTuple):
    """A node: its parent's place in the layer above, and the codes low … high − 1 of a column that it holds of it.

    `column` is None for the root and for a node passed on unsplit.
    """

    parent: int
    column: str | None
    low: int
    high: int


@dataclass(frozen=True, slots=True, eq=False)
class TreeStructure:
    """Nodes in flat arrays. Build it from `TreeStructure.root` by `split`, `refine` and `divide`.

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

    def nodes(self, layer: int = -1) -> list[TreeNode]:
        """The nodes of a layer in order."""
        number = self._layer(layer)
        here = slice(self.starts[number], self.starts[number + 1])
        above = self.starts[max(number - 1, 0)]
        names = self.domain.columns
        facts = zip(self.parents[here], self.columns[here], self.lows[here], self.highs[here], strict=True)
        return [
            TreeNode(int(parent) - above if number else -1, None if column < 0 else names[column], int(low), int(high))
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

    def partition(self, layer: int = -1) -> "LayerPartition":
        """The nodes of a layer as cells, in order; called `layer NUMBER` in the transcript."""
        number = self._layer(layer)
        used = np.unique(self.columns[: self.starts[number + 1]])
        names = [self.domain.columns[place] for place in used if place >= 0] or [self.domain.columns[0]]
        return LayerPartition(f"layer {number}", self.domain.clique(names), self, number)

    def find(self, codes: Mapping[str, Integers], layer: int = -1) -> Ints:
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
    structure: TreeStructure
    layer: int

    @property
    def cells(self) -> int:
        """Number of nodes."""
        return self.structure.size(self.layer)

    def assign(self, codes: Mapping[str, Integers]) -> Ints:
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


@dataclass(frozen=True, slots=True, eq=False)
class HistogramTree:
    """Parent pointers, one array per level below the root: the place of every node's parent in the level above.

    Branching may differ from node to node, and a node of any level may have no children.
    """

    parents: tuple[Ints, ...]

    def __post_init__(self) -> None:
        above = 1
        for number, level in enumerate(self.parents, start=1):
            if level.ndim != 1 or not level.size or level.min() < 0 or level.max() >= above:
                raise UsageError(f"tree: level {number}", f"needs nodes, each with a parent from 0 to {above - 1}.")
            above = level.size

    @classmethod
    def of(cls, structure: TreeStructure) -> Self:
        """The layers of a structure, and the cells of the full table as the last level."""
        return cls((*structure.parent_places(), structure.leaf_parents()))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of nodes of every level, the root first."""
        return (1, *(level.size for level in self.parents))


@dataclass(frozen=True, slots=True, eq=False)
class TreeEstimate:
    """Level by level: the estimates, and the variances V of the upward pass (at the root: that of its estimate)."""

    values: tuple[Floats, ...]
    upward: tuple[Floats, ...]


def least_squares(
    tree: HistogramTree, values: Sequence[npt.ArrayLike], variances: Sequence[npt.ArrayLike]
) -> TreeEstimate:
    """The weighted least squares estimates of all nodes.

    Args:
        tree: who is whose parent.
        values: noisy counts of each level, the root first; ignored where the variance is infinite.
        variances: for each level a variance for all its nodes, or one per node; 0 to infinity.
    """
    counts, spread = _checked(tree, values, variances)
    upward, sums, totals = _up(tree, counts, spread)
    estimates = [counts[0]]
    for number, parents in enumerate(tree.parents):
        missing = (estimates[number] - sums[number])[parents]
        estimates.append(counts[number + 1] + _share(upward[number + 1], totals[number], parents) * missing)
    return TreeEstimate(tuple(estimates), tuple(upward))


def _up(
    tree: HistogramTree, counts: list[Floats], spread: list[Floats]
) -> tuple[list[Floats], list[Floats], list[Floats]]:
    """Turns `counts` into z in place; the variances V, and the children's sums S and T of every inner level."""
    upward = list(spread)
    sums: list[Floats] = [np.empty(0)] * len(tree.parents)
    totals: list[Floats] = [np.empty(0)] * len(tree.parents)
    for number in reversed(range(len(tree.parents))):
        parents, size = tree.parents[number], counts[number].size
        below = _sums(parents, counts[number + 1], size)
        noise = _sums(parents, upward[number + 1], size)
        own = spread[number]
        # The weight of the node's own count. Nothing below, or something below not measured: all of it.
        with np.errstate(invalid="ignore", divide="ignore"):
            weight = np.where(np.isinf(own), 0.0, noise / (noise + own))
            joint = np.where(np.isinf(own), noise, own * weight)
        childless = np.bincount(parents, minlength=size) == 0
        alone = childless | (own == 0.0) | (np.isinf(noise) & np.isfinite(own))
        weight[alone], joint[alone] = 1.0, own[alone]
        counts[number] = np.where(alone, counts[number], weight * counts[number] + (1.0 - weight) * below)
        upward[number] = joint
        sums[number], totals[number] = below, noise
    return upward, sums, totals


def _sums(parents: Ints, values: Floats, size: int) -> Floats:
    return np.asarray(np.bincount(parents, weights=values, minlength=size), dtype=np.float64)


def _share(upward: Floats, totals: Floats, parents: Ints) -> Floats:
    """The part of its parent's surplus each node takes over: V/T, equal parts among the unmeasured, 0 if T = 0."""
    above = totals[parents]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(above > 0.0, upward / above, 0.0)
    open_below = np.isinf(above)
    if open_below.any():
        unknown = np.isinf(upward)
        number = np.bincount(parents, weights=unknown, minlength=totals.size)
        share[open_below] = (unknown / np.maximum(number[parents], 1.0))[open_below]
    return np.asarray(share)


def _checked(
    tree: HistogramTree, values: Sequence[npt.ArrayLike], variances: Sequence[npt.ArrayLike]
) -> tuple[list[Floats], list[Floats]]:
    if len(values) != len(tree.sizes) or len(variances) != len(tree.sizes):
        raise UsageError("tree", f"needs values and variances of all {len(tree.sizes)} levels, the root first.")
    counts, spread = [], []
    for number, (given, noise, size) in enumerate(zip(values, variances, tree.sizes, strict=True)):
        level = np.array(np.broadcast_to(np.asarray(noise, dtype=np.float64), size))
        if np.isnan(level).any() or level.min() < 0.0:
            raise UsageError(f"tree: level {number}", "variances must be 0 or more.")
        count = np.broadcast_to(np.asarray(given, dtype=np.float64), size)
        if not np.all(np.isfinite(count) | np.isinf(level)):
            raise UsageError(f"tree: level {number}", "values must be finite where they were measured.")
        counts.append(np.where(np.isinf(level), 0.0, count))
        spread.append(level)
    return counts, spread


TreeNegatives = Literal["clip_rescale", "norm_sub"]


def nonnegative_tree(
    tree: HistogramTree, estimates: Sequence[Floats], total: float, way: str, *, possible: Bools | None = None
) -> list[Floats]:
    """Counts of 0 or more for every level, the root's being `total`, children adding up to their parents.

    Args:
        tree: who is whose parent.
        estimates: signed estimates of each level, the root first.
        total: what everything adds up to, above 0.
        way: `clip_rescale` or `norm_sub`.
        possible: which nodes of the last level may hold anything; all of them by default.
    """
    if way not in get_args(TreeNegatives):
        raise UsageError(f"negatives {way!r}", "is not known here.", nearest(str(way), get_args(TreeNegatives)))
    if not np.isfinite(total) or total <= 0.0:
        raise UsageError("total", f"must be a number above 0, got {total!r}.")
    masks = _possible(tree, possible)
    if not masks[0][0]:
        raise UsageError("tree", "no cell is possible.", "Drop or narrow a rule.")
    counts = [np.array([total])]
    for number, parents in enumerate(tree.parents):
        counts.append(project_children(estimates[number + 1], parents, counts[number], masks[number + 1], way))
    return counts


def project_children(values: Floats, parents: Ints, totals: Floats, possible: Bools, way: str) -> Floats:
    """The values of one level made 0 or more and adding up to `totals` within every sibling set.

    A parent none of whose children is possible must have a total of 0.
    """
    if way == "clip_rescale":
        return _clip_rescale(values, parents, totals, possible)
    order = parents.argsort(kind="stable") if np.any(parents[1:] < parents[:-1]) else np.arange(parents.size)
    ends = np.cumsum(np.bincount(parents, minlength=totals.size))
    projected = np.zeros(values.size)
    _norm_sub(np.ascontiguousarray(values), order, ends, totals, possible, projected)
    return projected


def _clip_rescale(values: Floats, parents: Ints, totals: Floats, possible: Bools) -> Floats:
    kept = np.where(possible, np.maximum(values, 0.0), 0.0)
    sums = np.bincount(parents, weights=kept, minlength=totals.size)
    nothing = sums <= 0.0
    if nothing.any():
        kept = np.where(nothing[parents], possible, kept)
        sums = np.bincount(parents, weights=kept, minlength=totals.size)
    factors = np.divide(totals, sums, out=np.zeros(totals.size), where=sums > 0.0)
    return np.asarray(kept * factors[parents])


def _possible(tree: HistogramTree, leaves: Bools | None) -> list[Bools]:
    """Which nodes of each level may hold something: those with a possible child, or without children."""
    last = np.ones(tree.sizes[-1], dtype=bool) if leaves is None else np.asarray(leaves, dtype=bool)
    if last.shape != (tree.sizes[-1],):
        raise UsageError("tree: possible", f"needs one entry per node of the last level, {tree.sizes[-1]} in all.")
    masks = [last]
    for parents, size in zip(reversed(tree.parents), reversed(tree.sizes[:-1]), strict=True):
        children = np.bincount(parents, minlength=size)
        masks.append((children == 0) | (np.bincount(parents, weights=masks[-1], minlength=size) > 0))
    return masks[::-1]


@compiled()
def _norm_sub(values, order, ends, totals, possible, projected):  # type: ignore[no-untyped-def]
    """Each sibling set onto the simplex of its total (Duchi et al. 2008), as `models.nonnegative.norm_sub` does."""
    largest_set = 0
    start = 0
    for end in ends:
        largest_set = max(largest_set, end - start)
        start = end
    work = np.empty(largest_set)
    start = 0
    for group in range(ends.size):
        end, total = ends[group], totals[group]
        size = 0
        largest = -np.inf
        for place in range(start, end):
            if possible[order[place]]:
                work[size] = values[order[place]]
                largest = max(largest, work[size])
                size += 1
        if size and total > 0.0:
            falling = np.sort(work[:size] - largest)[::-1]
            running, level = 0.0, 0.0
            for count in range(size):
                running += falling[count]
                candidate = (running - total) / (count + 1)
                if falling[count] <= candidate:
                    break
                level = candidate
            mass = 0.0
            for place in range(start, end):
                cell = order[place]
                if possible[cell]:
                    projected[cell] = max(values[cell] - largest - level, 0.0)
                    mass += projected[cell]
            for place in range(start, end):
                projected[order[place]] *= total / mass
        start = end


ROUNDS = 20
CLOSE = 1e-6
"""Rounds end when no column is further than this share of the total from its target."""
LEAST = 1e-3
"""No code is brought below this share of what it held."""


def rake(domain: Domain, counts: Floats, signed: Floats, variances: Floats, nodes: Ints) -> Floats:
    """The table with columns moved towards the signed sums; sums over nodes, and so the total, stay as they are.

    Args:
        domain: what the cells are, row-major.
        counts: counts of 0 or more, one per cell.
        signed: unbiased estimates of the same cells, and `variances`, their variances.
        nodes: for every cell the node whose sum is kept.
    """
    total = float(counts.sum())
    targets = dict(column_targets(domain, counts, signed, variances))
    if total <= 0.0 or not targets:
        return counts
    moved = counts.copy()
    kept = _by_node(nodes, counts)
    for _ in range(ROUNDS):
        furthest = 0.0
        for place, target in targets.items():
            view = moved.reshape(_around(domain, place))
            current = view.sum(axis=(0, 2))
            furthest = max(furthest, float(np.abs(current - target).sum()))
            view *= _factors(target, current)[None, :, None]
        moved *= _factors(kept, _by_node(nodes, moved))[nodes]
        if furthest <= CLOSE * total:
            break
    return moved


def column_targets(domain: Domain, counts: Floats, signed: Floats, variances: Floats) -> Iterator[tuple[int, Floats]]:
    """For every column that the signed sums say something about: its place, and the counts of its codes to aim at."""
    total = float(counts.sum())
    for place, name in enumerate(domain.columns):
        if domain.sizes[name] < 2:
            continue
        shape = _around(domain, place)
        current = counts.reshape(shape).sum(axis=(0, 2))
        noise = variances.reshape(shape).sum(axis=(0, 2))
        if not np.isfinite(noise).all() or noise.sum() <= 0.0:
            continue
        found = signed.reshape(shape).sum(axis=(0, 2))
        found = found - (found.sum() - total) * noise / noise.sum()
        apart = found - current
        distance = float(apart @ apart)
        left = float((noise - noise**2 / noise.sum()).sum())
        if distance > left:
            aimed = norm_sub(current + (1.0 - left / distance) * apart, total)
            # No code that holds something is emptied: a node that lost all its cells could not keep its sum.
            aimed = np.maximum(aimed, LEAST * current)
            yield place, aimed * (total / aimed.sum())


def _around(domain: Domain, place: int) -> tuple[int, int, int]:
    """Cells before, of and after a column: the shape in which its codes are the middle axis."""
    sizes = [domain.sizes[name] for name in domain.columns]
    before = int(np.prod(sizes[:place], dtype=np.int64))
    after = int(np.prod(sizes[place + 1 :], dtype=np.int64))
    return before, sizes[place], after


def _by_node(nodes: Ints, counts: Floats) -> Floats:
    return np.bincount(nodes, weights=counts).astype(np.float64)


def _factors(target: Floats, current: Floats) -> Floats:
    """What to multiply by; where there is nothing, nothing can be made of it."""
    return np.divide(target, current, out=np.zeros_like(target), where=current > 0.0)


LEAF_LIMIT = 2**28
"""Most cells of a full table that is written out."""


_OF_TREE = ("parents", "columns", "lows", "highs")


@dataclass(frozen=True, slots=True, eq=False)
class TreeModel(StoredModel):
    """A distribution over the cells of the full table. `rounding` says how many whole rows are made of it."""

    kind: ClassVar[str] = "tree"
    stored: ClassVar[Mapping[str, str]] = {
        **{"probabilities": "<f8", "signed": "<f8"},
        **{"parents": "<i8", "columns": "<i4", "lows": "<i4", "highs": "<i4"},
    }

    structure: TreeStructure
    probabilities: Floats
    signed: Floats
    total: float
    rounding: Rounding = "multinomial"

    def __post_init__(self) -> None:
        for fault in _faults(self):
            raise UsageError("tree model", fault)

    @classmethod
    def of(
        cls, structure: TreeStructure, signed: Floats, counts: Floats, total: float, rounding: Rounding = "multinomial"
    ) -> Self:
        """The model of leaf counts of 0 or more (not all 0), in the row-major order of the domain."""
        return cls(structure, counts / counts.sum(), signed, total, rounding)

    @property
    def domain(self) -> Domain:
        """The codes it speaks about."""
        return self.structure.domain

    def marginal(self, clique: Clique) -> Floats:
        """Probabilities of the clique's cells, flat row-major.

        Raises:
            ResourceError: if the table would be too large to hold.
        """
        return _summed(self.domain, query_clique(self.domain, clique), self.probabilities)

    def signed_marginal(self, clique: Clique) -> Floats:
        """Unbiased estimates of the counts of the clique's cells, some perhaps below 0."""
        return _summed(self.domain, query_clique(self.domain, clique), self.signed)

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` records: independent ones, or in random order after controlled rounding if the model asks for it."""
        cells = draw_places(self.probabilities, rows, rng, self.rounding)
        drawn: dict[str, Integers] = {}
        for name in reversed(self.domain.columns):
            size = self.domain.sizes[name]
            cells, codes = np.divmod(cells, size)
            drawn[name] = codes.astype(code_dtype(size))
        return {name: drawn[name] for name in self.domain.columns}

    def condition(self, where: Mapping[str, Integers]) -> Self:
        """The distribution given that each named column holds one of the codes; `total` shrinks with its probability.

        Raises:
            UsageError: if a code is outside its column or the condition has probability 0.
        """
        kept = np.ones(self.probabilities.size, dtype=bool)
        cells = np.arange(kept.size, dtype=np.int64)
        for name, codes in where.items():
            mask = query_codes(self.domain, name, codes)
            if not mask.all():
                kept &= mask[sub_indices(self.domain, self.domain.columns, cells, (name,))]
        probability = float(self.probabilities[kept].sum())
        if probability <= 0.0:
            raise UsageError(f"where {', '.join(where)}", "cannot happen under this model.", "Allow more values.")
        if kept.all():
            return self
        return type(self)(
            self.structure,
            np.where(kept, self.probabilities / probability, 0.0),
            np.where(kept, self.signed, 0.0),
            self.total * min(probability, 1.0),
            self.rounding,
        )

    def contents(self) -> Contents:
        """Document and arrays of its file form."""
        tree = self.structure
        sizes, layers = size_list(self.domain), list(tree.starts)
        document = {"total": self.total, "rounding": self.rounding, "domain": sizes, "layers": layers}
        arrays = {"probabilities": [self.probabilities], "signed": [self.signed]}
        return document, arrays | {name: [getattr(tree, name)] for name in _OF_TREE}

    @classmethod
    def of_contents(cls, files: ModelFiles) -> Self:
        """The model of its file form."""
        starts = files.value("layers", tuple[int, ...])
        if len(starts) < 2:
            raise UsageError("layers", "a tree must begin with its root.")
        parents, columns, lows, highs = (files.arrays[name] for name in _OF_TREE)
        structure = TreeStructure(files.domain(), parents, columns, lows, highs, starts)
        for fault in structure.faults():
            raise UsageError("tree model", fault)
        rounding = cast(Rounding, files.document.get("rounding"))  # checked by the model
        return cls(structure, files.arrays["probabilities"], files.arrays["signed"], files.number("total"), rounding)


def _summed(domain: Domain, clique: Clique, table: Floats) -> Floats:
    """The table summed over all columns that are not in the clique."""
    # Columns with one code add nothing but a dimension, and numpy allows only 64 of those.
    live = [name for name in domain.columns if domain.sizes[name] > 1]
    others = tuple(axis for axis, name in enumerate(live) if name not in clique)
    return np.ascontiguousarray(table.reshape(domain.shape(live)).sum(axis=others)).reshape(-1)


def _faults(model: TreeModel) -> list[str]:
    cells = model.domain.cells(model.domain.columns)
    if cells > LEAF_LIMIT:
        return [f"a table of {cells:,} cells is too large."]
    if model.probabilities.shape != (cells,) or model.signed.shape != (cells,):
        return ["needs one probability and one signed estimate per cell of the domain."]
    found = total_faults(model.total)
    if model.rounding not in get_args(Rounding):
        found.append("rounding must be multinomial or controlled.")
    found += probability_faults(model.probabilities)
    if not np.all(np.isfinite(model.signed)):
        found.append("signed estimates must be finite.")
    return found
