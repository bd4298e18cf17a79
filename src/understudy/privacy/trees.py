"""Queries about trees: growing one by noisy counts, halving ranges, and which column splits a node.

Counting inside the cells of a partition
----------------------------------------
"Cell × code of a column" is a partition again. Each record lies in one cell and has one code, so it moves one count by
one, whatever the partition.

`GrowingTree`: a tree that decides by noisy counts which nodes to split, for one cost whatever its depth (PrivTree)
--------------------------------------------------------------------------------------------------------------------
The rule (Zhang, Xiao, Xie 2016), on a grid of 1/g rows (g = `GROWTH_UNIT`) so that every number is an integer. A node
at depth h that holds c rows has the biased count

    B = max(g·θ − D, g·c − h·D)                 split it iff B + X > g·θ,    X discrete Laplace of scale b = λ·g

with D = the smallest whole number that is at least b·ln β and at least g (so that δ' = D/g ≥ λ ln β, and at least one
row). A row that lies in a node lies in at most one of its children, and a child is deeper than its parent.

Claim. One row costs ε = (g/b)·(2 + 1/(β' − 1)) with β' = e^(D/b) ≥ β, hence at most (2β − 1)/((β − 1)·λ); k rows cost
k times that. The cost does not depend on the depth, nor on the fan-out: β is the decay that D buys, and may be smaller
than the number of children. (With fewer than that, empty nodes are split more often than they vanish, about fan-out/2β
children each; public limits must then end the growth. That is a matter of work, not of privacy.)

Proof. Let q = e^(−1/b), z = B − g·θ, and s(z) = P(z + X > 0) the probability of a split. Summing the distribution of X,

    s(z) = q^(1−z)/(1+q) for z ≤ 1,        s(z) = 1 − q^z/(1+q) for z ≥ 1.

(1) σ(z) = ln s(z) − ln s(z−1) ≤ (1/b)·min(1, q^(z−1)). For z ≤ 1 it equals 1/b. For z ≥ 1 let w = q^(z−1) ∈ (0, 1] and
    A = 1/(1+q); then σ = F(w) = ln(1 − A·q·w) − ln(1 − A·w), F(0) = 0, F(1) = 1/b, and F'' = A²/(1 − Aw)² −
    A²q²/(1 − Aqw)² ≥ 0. A convex function with F(0) = 0 has F(w) ≤ w·F(1).
(2) So a count raised by one row, to z, raises ln s by at most (g/b)·min(1, q^(z−g)): it rises in g steps, from z − g
    to z, and none of them adds more than the first, to z − g + 1.
(3) Compare a table with a row and the same table without it. Only the nodes that hold the row differ: one path, with
    z_0 > z_1 > …, z_i − z_{i+1} ≥ D (counts do not rise along a path, depths do, by one at least), until z = −D, where
    both tables are held at the same number and nothing differs any more. Let node k be the last with z_k > −D.
    It moves by t = min(g, z_k + D) units, 1 ≤ t ≤ g, and raises ln s by at most t/b. Node k−j has
    z ≥ t + (j−1)·D, so by (2) it raises ln s by at most g/b (j = 1), and by at most (g/b)·q^(t−g)·β'^−(j−1) (j ≥ 2,
    where t + (j−1)·D − g ≥ 0 because D ≥ g). Together

        (1/b)·(t + g + g·q^(t−g)/(β' − 1)).

    This is convex in t. At t = g it is (g/b)·(2 + 1/(β' − 1)). At t = 0 it is (g/b)·(1 + e^(g/b)/(β' − 1)), no more
    than that because e^(g/b) ≤ e^(D/b) = β'. So it is at most ε.
(4) A tree is one outcome: the nodes above the path's end were split, its end was not (or was not asked, by a public
    limit). The splits change the log-probability by between 0 and ε in one direction, the final refusal by at most
    g/b ≤ ε in the other direction (P(no split) is s(1 − z) with the sign of X turned). All other nodes have the same
    counts, and which nodes are asked follows from earlier decisions. So |log ratio| ≤ ε. Rows one after the other: k·ε.

Step (3) uses D ≥ g, which the published rule does not ask for. It matters where λ ln β is below one row (for β = 2:
where ε is above 2.08), and there it costs a bias of at most one row per level.

Counts are cut at 2⁵⁰ first, which neither reorders a path nor takes neighbours further apart.

`Halving`: ranges of a column's codes, halved again and again where enough rows lie
-----------------------------------------------------------------------------------
A `GrowingTree` for one column. A node is a range of neighbouring codes. Its halves are two disjoint ranges inside it,
one level deeper, so a row lies in one node per layer and in at most one child of it: what the proof above asks for.
Ranges of one code are leaves, whatever they hold; so are nodes that would exceed the public limits on depth and number
of leaves.

`EvenSplit`: where to cut ranges of codes so that rows fall apart in a wanted ratio (private quantiles)
------------------------------------------------------------------------------------------------------
Cell c is a range of neighbouring codes that is to become a + b bins. Cutting before code s leaves L rows of the range
on the left and R on the right; L : R = a : b is what is wanted. In units of 1/SCORE_UNIT

    score(c, s) = −⌊SCORE_UNIT · |b·L − a·R| / max(a, b)⌋.

Sensitivity. A row of the range adds one to L or to R, so it moves |b·L − a·R| by b or by a, at most max(a, b), and the
quotient by at most SCORE_UNIT before rounding; rounding down keeps a distance of a whole number of units. A row
outside of the range moves nothing. So one row moves the scores of its own cell by at most SCORE_UNIT. It raises some
and lowers others: not monotone. L and R are cut at 2⁴⁰ first, so that no product can wrap (a + b ≤ 2²⁰): a row then
moves one of them by one, or none.

Ranges of a layer are disjoint, so that a layer is one query (`Curator.select_within`), and ⌈log₂ bins⌉ layers give
all quantiles: each costs a share of the cost, and the shares add up.

AIC, BIC and deviance of one-column models in a node: which column splits it, how to group columns, when to stop
----------------------------------------------------------------------------------------------------------------
The table of one column inside a node has counts n_1 … n_K, N in all. The log-linear model with that column as its only
factor fits this table as it is, so its multinomial log-likelihood is log N! − Σ log n_k! + Σ n_k log(n_k/N), and

    AIC = −2 logL + 2K = 2 (K + Σ H(n_k) − H(N)),   H(x) = log x! − x log x + x = Σ_{i ≤ x} h(i),
    h(i) = 1 − (i − 1) log(i/(i − 1)),   h(1) = 1.

K is the number of codes the column has by its schema, occupied or not. (With the number of *occupied* codes AIC can
move by 4: the last row of a code takes 2 with it and the likelihood moves by up to 2 more.)

Sensitivity of AIC. h falls from h(1) = 1 towards 0. One row added to a code that held a − 1 of N − 1 rows moves AIC by
2 (h(a) − h(N)), and 1 ≤ a ≤ N, so AIC rises by something from 0 to 2. In whole numbers: H is a `FallingSum` in units of
1/AIC_UNIT, so h(1) = AIC_UNIT, 0 ≤ h(N) ≤ h(a) ≤ AIC_UNIT hold exactly, and AIC moves by 0 to 2 · AIC_UNIT with nothing
lost to rounding. Every column's AIC moves in the same direction.

Deviance and BIC. The deviance −2 logL leaves out 2K, which no row moves: it rises by 0 to 2 as well. BIC has K log N in
place of 2K. N is private, and K log(N/(N − 1)) is as large as K log 2 where N is 2. So a node of fewer than
F = max(BIC_ROWS, K) rows counts as one of F: BIC = −2 logL + K log max(N, F). The increments of log N are kept as whole
numbers rounded down, which fall from the first one, log(1 + 1/F) < 1/F, so a row adds 0 to K/F ≤ 1 to the penalty, and
BIC rises by 0 to 3. It never falls when a row is added.

`NodeCriterion`    score −AIC (or −BIC, or −deviance) of each column. Sensitivity 2 (BIC: 3); adding a row never raises
               a score: monotone, so that the draw may use the rate ε/2 instead of the published ε/4
               (`published=True`: as if it were not monotone).
`GroupedCriterion` score of an ordered split of all columns into layers: mean AIC (BIC, deviance) of the last minus that
               of the first. A mean, rounded down, of numbers that each rise by 0 to 2 (3) rises by 0 to 2 (3), because
               rounding down keeps whole distances; a difference of two such means moves by at most 2 (3), in either
               direction: not monotone.
`AicRange`     t = max AIC − (1 + τ) min AIC over a node's columns. The maximum and the minimum rise by 0 to 2 each
               when a row is added, so t moves by at most 2 (1 + τ). "go on" scores t/2 and "stop" −t/2: each moves by
               at most 1 + τ, in opposite directions. A draw then stops with odds e^(−ε t/(2 (1 + τ))). τ is a whole
               number of thousandths and scores are 1000-fold, so that (1 + τ) is a whole number as well. AIC is cut
               at about 195,000 first, so that no product can wrap; cutting takes no two numbers further apart.

One unit's k rows add up to k times these bounds.

Information gain inside a node: how far each column's table is from an even one
-------------------------------------------------------------------------------
Poisson regression of a node's cell counts on one column has, up to a part common to all columns,

    −AIC = 2 N (log K − entropy) − 2K = 2 (N log K + Σ n_k log n_k − N log N) − 2K.

Its increments are unbounded: h(i) = i log i − (i − 1) log(i − 1) grows like 1 + log i. So the score needs a public
bound B of the number of rows (`rows_bound`), and is made safe for tables that exceed it: beyond B the increments stay
at h(B). With D(x) = Σ_{i ≤ x} (h(B) − h(min(i, B))), a `FallingSum` with steps d(i) from d(1) = h(B) − h(1) = h(B) down
to 0,

    score = 2 (N log K + D(N) − Σ D(n_k) − K),

equal to the above whenever N ≤ B, because the parts N · h(B) and Σ n_k · h(B) cancel.

Sensitivity. One row added to a code that then holds a of N rows, 1 ≤ a ≤ N, moves the score by 2 (log K + d(N) − d(a)).
As d falls, d(N) − d(a) lies between −d(1) and 0, so the score moves by something between −2 (d(1) − log K) and 2 log K:
at most 2 max(log K, d(1) − log K), whatever the table. log K is rounded to units of 1/SCORE_UNIT once, d holds whole
numbers, so the bound is exact. It is the largest over the columns that counts. Not monotone.

No sum can wrap: codes holding more than 2³⁶/K rows count as holding that many. Adding a row then adds one row or none
to the cut table, which is a neighbour or the same.

One unit's k rows add up to k times the bound.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import Literal, Protocol, Self

import numpy as np

from understudy.arrays import Bools, Floats, Integers, Ints
from understudy.counts.source import CountSource
from understudy.domain import GROWTH_UNIT, SCORE_UNIT, Clique, Domain, Partition
from understudy.errors import UsageError
from understudy.privacy.dependence import FallingSum

Codes = Mapping[str, Integers]


@dataclass(slots=True)
class _Cells:
    """The cells of a batch of records, worked out once for all columns that are counted in them."""

    partition: Partition
    _seen: list[Integers] = field(default_factory=list)
    _found: Ints | None = None

    def of(self, codes: Codes, rows: int) -> Ints:
        """The cell of each record."""
        arrays = [codes[name] for name in self.partition.columns]
        if not arrays:
            return np.zeros(rows, dtype=np.int64)
        # Not for threads: two batches at a time could take each other's cells. `partition_counts` reads in one stream.
        # The arrays themselves are kept, so that "the same object" cannot mean a new one in the old one's place.
        known = self._found is not None and len(self._seen) == len(arrays)
        if not known or any(one is not other for one, other in zip(self._seen, arrays, strict=True)):
            self._found = self.partition.assign({name: codes[name] for name in self.partition.columns})
            self._seen = arrays
        assert self._found is not None
        return self._found


@dataclass(frozen=True, slots=True)
class Within:
    """Cell number · codes + code: the codes of one column inside every cell of a partition."""

    partition: Partition
    column: str
    columns: Clique
    size: int
    _cells: _Cells

    @property
    def name(self) -> str:
        """The partition's name and the column's."""
        return f"{self.partition.name} × {self.column}"

    @property
    def cells(self) -> int:
        """Cells times codes."""
        return self.partition.cells * self.size

    def assign(self, codes: Codes) -> Ints:
        """The cell of each record."""
        inside = codes[self.column]
        return self._cells.of(codes, len(inside)) * self.size + inside.astype(np.int64)


def counts_within(source: CountSource, domain: Domain, partition: Partition, columns: Sequence[str]) -> dict[str, Ints]:
    """For every column the exact counts of its codes inside each cell, shape (cells, codes)."""
    shared = _Cells(partition)
    parts = [
        Within(partition, name, domain.clique([*partition.columns, name]), domain.sizes[name], shared)
        for name in dict.fromkeys(columns)
    ]
    found = source.partition_counts(parts) if parts else []
    return {part.column: counts.reshape(partition.cells, part.size) for part, counts in zip(parts, found, strict=True)}


MOST_LAYERS = 1024
"""No tree is asked about more layers than this, whatever its own limits say."""

_MOST_DEPTH = 2**14
_LARGEST_COUNT = 2**50


class GrowingTree(Protocol):
    """A tree as it grows: frozen, one object per layer.

    Everything but the decisions handed to `after` must be public (or come from earlier answers). A node's cell must
    lie inside the cell of the node it was split from: then the proof above holds, whatever else the tree does.
    """

    @property
    def name(self) -> str:
        """What the transcript calls the tree."""
        ...

    @property
    def frontier(self) -> Partition:
        """Cells are the open nodes, and one last cell for all other rows. Looks at one column at least."""
        ...

    @property
    def depths(self) -> Ints:
        """The depth of every open node: 0 for a root; in each layer above all depths of the layer before."""
        ...

    @property
    def decay(self) -> float:
        """β of the noise and the bias, at least 2; the fan-out where that is known."""
        ...

    @property
    def theta(self) -> int:
        """Rows above which a node is worth splitting."""
        ...

    @property
    def finished(self) -> bool:
        """Whether no node is open any more; public limits (depth, codes exhausted, nodes) live here."""
        ...

    def after(self, split: Bools) -> Self:
        """The tree with these open nodes split and the others turned into leaves: the next layer."""
        ...


def biased_counts(exact: Ints, depths: Ints, bias: int, theta: int) -> Ints:
    """What noise is added to: counts in grid units, lowered by `bias` per level, no lower than θ − δ'."""
    counts = np.minimum(exact, _LARGEST_COUNT) * GROWTH_UNIT
    # The floor is what makes the cost independent of the depth: a node that has sunk to it splits with the same
    # probability whether the row is there or not.
    return np.maximum(theta * GROWTH_UNIT - bias, counts - depths * bias)


def checked_theta(growth: GrowingTree, step: str) -> int:
    """θ of the growth, if its grid units cannot overflow."""
    if type(growth.theta) is not int or abs(growth.theta) > _LARGEST_COUNT:
        raise UsageError(step, f"theta must be a whole number of rows, got {growth.theta!r}.")
    return growth.theta


def checked_depths(growth: GrowingTree, above: int, step: str) -> Ints:
    """The depths of the open nodes, if there is one for each and all lie above those of the layer before."""
    depths = np.asarray(growth.depths)
    if not growth.frontier.columns:
        raise UsageError(step, "its nodes must look at one column or more.")
    if depths.shape != (growth.frontier.cells - 1,) or not np.issubdtype(depths.dtype, np.integer):
        raise UsageError(step, "needs one whole depth per open node, and one more cell for all other rows.")
    # The proof adds up a geometric series along a path, so each child has to lie deeper than its parent.
    if depths.size and (int(depths.min()) <= above or int(depths.max()) > _MOST_DEPTH):
        raise UsageError(step, f"depths must rise from layer to layer and end at {_MOST_DEPTH:,}.")
    return depths.astype(np.int64)


def as_decay(decay: float, step: str) -> Fraction:
    """β as an exact fraction."""
    if not isinstance(decay, int | float) or not np.isfinite(decay):
        raise UsageError(step, f"the decay must be a number, got {decay!r}.")
    return Fraction(decay)


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

    def assign(self, codes: Mapping[str, Integers]) -> Ints:
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
        free = self.most_leaves - len(self.leaves) - len(self.nodes)
        # The first ones, by their place: giving the free leaves to the fullest nodes would need their counts.
        wanted = set(np.flatnonzero(split)[: max(free, 0)].tolist())
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


_LARGEST_COUNT_OF_SPLIT = 2**40


@dataclass(frozen=True, slots=True, eq=False)
class EvenSplit:
    """One cut in each of these ranges (two codes or more each), of which range i is to become `bins[i]` ≥ 2 bins."""

    column: str
    codes: int
    ranges: tuple[Range, ...]
    bins: tuple[int, ...]
    name: str = "cuts"

    @property
    def partition(self) -> Ranges:
        """The ranges, and one cell for all other codes, where nothing is to be chosen."""
        return Ranges(self.name, Clique((self.column,)), self.ranges)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column itself."""
        return (self.column,)

    @property
    def options(self) -> Sequence[int]:
        """The code before which to cut."""
        return range(self.codes)

    @property
    def allowed(self) -> Bools:
        """Inside the range; the cell of other codes may take 0 alone."""
        places = np.arange(self.codes)
        mask = np.zeros((len(self.ranges) + 1, self.codes), dtype=np.bool_)
        for cell, (start, stop) in enumerate(self.ranges):
            mask[cell] = (places > start) & (places < stop)
        mask[-1, 0] = True
        return mask

    @property
    def sensitivity(self) -> Fraction:
        """One row, in score units; see the module's proof."""
        return Fraction(SCORE_UNIT)

    @property
    def monotone(self) -> bool:
        """No: a row raises the scores of the cuts on one side of it and lowers those on the other."""
        return False

    def scores(self, exact: Mapping[str, Ints]) -> Ints:
        """Minus the distance from the wanted ratio, in score units."""
        counts = exact[self.column][:, : self.codes]
        left = np.concatenate([np.zeros((len(counts), 1), np.int64), np.cumsum(counts, axis=1)], axis=1)
        total = left[:, -1:]
        before = np.minimum(left[:, :-1], _LARGEST_COUNT_OF_SPLIT)
        after = np.minimum(total - left[:, :-1], _LARGEST_COUNT_OF_SPLIT)
        found = np.zeros((len(counts), self.codes), dtype=np.int64)
        for cell, wanted in enumerate(self.bins):
            low, high = wanted // 2, wanted - wanted // 2
            # Both were cut at 2⁴⁰, so that these products stay within 2⁶⁰.
            gap = np.abs(high * before[cell] - low * after[cell])
            whole, part = np.divmod(gap, high)  # high is the larger of the two
            found[cell] = -(SCORE_UNIT * whole + SCORE_UNIT * part // high)
        return found


Split = tuple[tuple[str, ...], ...]
"""Groups of columns, first layer first."""

AIC_UNIT = SCORE_UNIT * 2**10
"""AIC is kept in units of 2⁻³⁰: the steps of H stay above 0 for tables of up to half a billion rows."""
GO_ON, STOP = "go on", "stop"
MOST_SPLITS = 2**16
_THOUSAND = 1000
# 1 + τ is at most 11, in thousandths, so t/2 stays below 2⁶⁰.
_LARGEST_HALF = 2**60 // (11 * _THOUSAND)


Criterion = Literal["aic", "bic", "deviance"]
BIC_ROWS = 100
"""A node of fewer rows, or of fewer than the column has codes, has the penalty of one of so many."""
_RISES: Mapping[Criterion, int] = {"aic": 2, "bic": 3, "deviance": 2}
"""How far a row raises each; see the module's proof."""


def node_criterion(counts: Ints, criterion: Criterion = "aic") -> Ints:
    """A criterion of the one-column model in units of 1/AIC_UNIT; counts run along the last axis.

    >>> (node_criterion(np.array([[97, 3], [60, 40], [0, 0]])) / AIC_UNIT).round(3).tolist()
    [6.961, 9.021, 4.0]
    >>> (node_criterion(np.array([[97, 3], [60, 40], [0, 0]]), "deviance") / AIC_UNIT).round(3).tolist()
    [2.961, 5.021, 0.0]
    """
    # All codes of the schema. Counting only those that occur would double the bound, for a row may be the last of its
    # code.
    height, levels = _height(), counts.shape[-1]
    rows = counts.sum(axis=-1)
    deviance = 2 * (height(counts).sum(axis=-1) - height(rows))
    if criterion == "aic":
        return np.asarray(deviance + 2 * levels * AIC_UNIT)
    return np.asarray(deviance + levels * _log_rows(rows, max(BIC_ROWS, levels)) if criterion == "bic" else deviance)


def _log_rows(rows: Ints, least: int) -> Ints:
    """log max(rows, least) in units of 1/AIC_UNIT."""
    return round(math.log(least) * AIC_UNIT) + _log_beyond(least)(np.maximum(rows - least, 0))


@lru_cache(maxsize=64)
def _log_beyond(least: int) -> FallingSum:
    """log((least + x)/least) for every x ≥ 0, from steps that are rounded down."""

    def step(places: Floats) -> Floats:
        whole = np.floor(np.log1p(1.0 / (least + places - 1.0)) * AIC_UNIT)
        return np.asarray(whole / AIC_UNIT)

    return FallingSum.of(step, lambda places: np.asarray(np.log1p(places / least)), AIC_UNIT)


@dataclass(frozen=True, slots=True, eq=False)
class NodeCriterion:
    """Which column splits each node: −AIC, or another criterion, of every column inside it."""

    name: str
    options: Sequence[str]
    allowed: Bools
    criterion: Criterion = "aic"
    published: bool = False

    @property
    def columns(self) -> Sequence[str]:
        """The columns among which is chosen."""
        return self.options

    @property
    def sensitivity(self) -> Fraction:
        """2, for BIC 3, in units of 1/AIC_UNIT; see the module's proof."""
        return Fraction(_RISES[self.criterion] * AIC_UNIT)

    @property
    def monotone(self) -> bool:
        """Yes (a row never lowers a criterion), unless the published rate is wanted."""
        return not self.published

    def scores(self, exact: Mapping[str, Ints]) -> Ints:
        """The negative criterion of each column (second axis) in each node (first axis)."""
        return -np.stack([node_criterion(exact[name], self.criterion) for name in self.options], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class AicRange:
    """Whether a node is worth splitting: whether its columns' AIC differ by more than the share τ of the smallest.

    `compared` (nodes × columns) says which columns count in each node; `tolerance` is τ in thousandths.
    """

    name: str
    columns: Sequence[str]
    compared: Bools
    allowed: Bools
    tolerance: int = 100

    def __post_init__(self) -> None:
        if type(self.tolerance) is not int or not 0 <= self.tolerance <= 10 * _THOUSAND:
            raise UsageError(f"select {self.name}", "the tolerance must be a whole number of thousandths up to 10,000.")
        if not self.compared.any(axis=1).all():
            raise UsageError(f"select {self.name}", "needs at least one column in every node.")

    @property
    def options(self) -> Sequence[str]:
        """Go on, or stop."""
        return (GO_ON, STOP)

    @property
    def sensitivity(self) -> Fraction:
        """1 + τ, a thousandfold and in units of 1/AIC_UNIT; see the module's proof."""
        return Fraction((_THOUSAND + self.tolerance) * AIC_UNIT)

    @property
    def monotone(self) -> bool:
        """No: one score rises where the other falls."""
        return False

    def scores(self, exact: Mapping[str, Ints]) -> Ints:
        """t/2 and −t/2 of each node. AIC is even in its units, so halves are whole."""
        every = np.minimum(_every_aic(exact, self.columns) // 2, _LARGEST_HALF)
        largest = np.where(self.compared, every, np.iinfo(np.int64).min).max(axis=1)
        smallest = np.where(self.compared, every, np.iinfo(np.int64).max).min(axis=1)
        half = _THOUSAND * largest - (_THOUSAND + self.tolerance) * smallest
        return np.stack([half, -half], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class GroupedCriterion:
    """Which columns form which layer of the whole table: mean AIC of the last group minus that of the first.

    Or the mean of another criterion.
    """

    name: str
    options: Sequence[Split]
    criterion: Criterion = "aic"
    _columns: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.options:
            raise UsageError(f"select {self.name}", "needs at least one split.")
        object.__setattr__(self, "_columns", tuple(sorted(name for group in self.options[0] for name in group)))

    @property
    def cliques(self) -> Sequence[Clique]:
        """Every column's own table."""
        return [Clique((name,)) for name in self._columns]

    @property
    def sensitivity(self) -> Fraction:
        """2, for BIC 3, in units of 1/AIC_UNIT; see the module's proof."""
        return Fraction(_RISES[self.criterion] * AIC_UNIT)

    @property
    def monotone(self) -> bool:
        """No: a row may move the last group's mean more than the first one's, or less."""
        return False

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        """One integer per split."""
        found = [int(node_criterion(exact[Clique((name,))], self.criterion)) for name in self._columns]
        every = np.array(found, dtype=np.int64)
        last = _floored_means([split[-1] for split in self.options], self._columns, every)
        return last - _floored_means([split[0] for split in self.options], self._columns, every)


def split_count(columns: int, layers: int) -> int:
    """How many ordered splits there are: ways to put each column in a layer so that no layer stays empty.

    >>> split_count(5, 2), split_count(5, 3)
    (30, 150)
    """
    terms = [
        (-1) ** left_out * math.comb(layers, left_out) * (layers - left_out) ** columns for left_out in range(layers)
    ]
    return sum(terms)


def ordered_splits(columns: Sequence[str], layers: int) -> list[Split]:
    """Every way to put the columns in that many layers, none empty; the order of the layers counts.

    >>> ordered_splits(["a", "b"], 2)
    [(('a',), ('b',)), (('b',), ('a',))]
    """
    found = []
    for places in itertools.product(range(layers), repeat=len(columns)):
        if len(set(places)) == layers:
            groups: list[list[str]] = [[] for _ in range(layers)]
            for name, place in zip(columns, places, strict=True):
                groups[place].append(name)
            found.append(tuple(tuple(group) for group in groups))
    return found


def _every_aic(exact: Mapping[str, Ints], columns: Sequence[str]) -> Ints:
    return np.stack([node_criterion(exact[name]) for name in columns], axis=1)


def _floored_means(groups: Sequence[tuple[str, ...]], columns: Sequence[str], every: Ints) -> Ints:
    place = {name: position for position, name in enumerate(columns)}
    members = np.zeros((len(groups), len(columns)), dtype=np.int64)
    for row, group in enumerate(groups):
        members[row, [place[name] for name in group]] = 1
    # Rounds down, also below 0, and rounding down keeps distances of whole units.
    return np.asarray((members @ every) // members.sum(axis=1))


@cache
def _height() -> FallingSum:
    """H, built once."""

    def step(places: Floats) -> Floats:
        before = np.maximum(places - 1.0, 1.0)
        return np.where(places < 2.0, 1.0, 1.0 + before * np.log1p(-1.0 / np.maximum(places, 2.0)))

    def total(places: Floats) -> Floats:
        return np.asarray(0.5 * np.log(2.0 * np.pi * places) + 1.0 / (12.0 * places))

    return FallingSum.of(step, total, AIC_UNIT)


MOST_ROWS = 2**36
MOST_LEVELS = 2**22
_CUT = 2**36


@dataclass(frozen=True, slots=True, eq=False)
class NodeInformation:
    """Which column splits each node: information gain of every column inside it, at most `rows_bound` rows in all."""

    name: str
    options: Sequence[str]
    allowed: Bools
    levels: Sequence[int]
    """Codes of each option's column, occupied or not."""
    rows_bound: int
    _sensitivity: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.levels) != len(self.options):
            raise UsageError(f"select {self.name}", "needs the number of codes of every column.")
        object.__setattr__(self, "_sensitivity", information_sensitivity(self.levels, self.rows_bound))

    @property
    def columns(self) -> Sequence[str]:
        """The columns among which is chosen."""
        return self.options

    @property
    def sensitivity(self) -> Fraction:
        """The largest bound over the columns, in units of 1/SCORE_UNIT; see the module's proof."""
        return Fraction(self._sensitivity)

    @property
    def monotone(self) -> bool:
        """No: a row in a full code raises the score, one in an empty code lowers it."""
        return False

    def scores(self, exact: Mapping[str, Ints]) -> Ints:
        """The gain of each column (second axis) in each node (first axis)."""
        return np.stack([_gain(exact[name], self.rows_bound) for name in self.options], axis=1)


def information_sensitivity(levels: Sequence[int], rows_bound: int) -> int:
    """Most any column's score moves for one row, in units of 1/SCORE_UNIT.

    >>> round(information_sensitivity([2], 44821) / SCORE_UNIT, 2)
    22.03
    """
    if type(rows_bound) is not int or not 1 <= rows_bound <= MOST_ROWS:
        raise UsageError("rows_bound", f"must be a whole number from 1 to {MOST_ROWS:,}, got {rows_bound!r}.")
    if not levels or any(not 1 <= size <= MOST_LEVELS for size in levels):
        raise UsageError("information_gain", f"needs columns of 1 to {MOST_LEVELS:,} codes.")
    first = _depth(rows_bound).first
    # A column with one code carries no information, and its score could not move; 1 keeps the bound above 0.
    return 2 * max(1, *(max(_log_units(size), first - _log_units(size)) for size in levels))


def _gain(counts: Ints, rows_bound: int) -> Ints:
    levels = counts.shape[-1]
    depth = _depth(rows_bound)
    cut = np.minimum(counts, max(1, _CUT // levels))
    total = cut.sum(axis=-1)
    return np.asarray(2 * (total * _log_units(levels) + depth(total) - depth(cut).sum(axis=-1) - levels * SCORE_UNIT))


def _log_units(levels: int) -> int:
    return round(math.log(levels) * SCORE_UNIT)


@lru_cache(maxsize=8)
def _depth(rows_bound: int) -> FallingSum:
    """D for tables of at most that many rows."""

    def increment(places: Floats) -> Floats:
        before = np.maximum(places - 1.0, 1.0)
        return np.where(places < 2.0, 0.0, np.log(places) - before * np.log1p(-1.0 / np.maximum(places, 2.0)))

    top = float(increment(np.array([float(rows_bound)]))[0])

    def step(places: Floats) -> Floats:
        return np.where(places >= rows_bound, 0.0, top - increment(places))

    def total(places: Floats) -> Floats:
        reached = np.minimum(places, float(rows_bound))
        return np.asarray(reached * (top - np.log(reached)))

    return FallingSum.of(step, total, SCORE_UNIT)
