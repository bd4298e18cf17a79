"""Rdt: private labels for records whose other columns are public, by ensembles of random decision trees.

Source: Duke University Synthetic Data Project, "Differentially private synthetic attribute generation using variable
depth random decision trees" (2018), after Jagannathan, Pillaipakkamnatt, Wright (2012).

Steps.
1. Codes of public columns that are rare in the public table are pooled (`collapse`).
2. For a private column T trees are grown: a node with at least `leaf_size` public records splits on a column drawn by
   weight among those not used above it, one child per group of codes. Nothing private is looked at.
3. Every leaf of every tree gets a noisy count of every label: negatives become 0, nothing positive is uniform.
4. A record's label is drawn from the mean of the distributions of its T leaves.
5. The next private column is done in the same way, with the columns before it among those that a node may split on; the
   public records take part with every earlier label, weighted by how likely it is. Records are labelled in order, each
   label following from the labels drawn before it.

Small leaves (`leaf_minimum`, 0 at first). A leaf with fewer records than this takes the noisy counts of the smallest
branch around it that has as many, summed over the leaves of that branch. With a public table the records counted are
public ones, as in growing; without one they are the leaf's own noisy counts.

Without a public table T trees over the public columns are grown by noisy counts (PrivTree, see
`privacy/trees.py`) with `leaf_size` as the threshold, for `growth_share` of the cost, and serve all private
columns; their leaves are then split by the earlier private columns. The model's public columns are then spread evenly
within leaves, which is rough: the method is meant for public records.

Privacy. Neighbours differ by the k rows of one unit. Leaf × label is a partition of the records: each lies in one leaf
of a tree and has one label, so a table moves by at most k in L1 and L2, and a tree costs what one table costs. The
tables of T trees for each of c private columns all get the same share, after `total_share` for the number of records
and, where no public table is given, `growth_share` for the trees themselves; every table, the number of records and
every grown tree are paid for separately, and the parts add up. Which trees are grown depends on public data, on the
public structure seed and on answers paid for before. The order is fixed: trees of a column are grown from the public
table (and from distributions of earlier columns, which are answers already paid for) before the column's leaf tables
are counted.

Relations. The claim of a release is about adding or removing a unit. If everybody may know who is in the table and
what the public columns say, the relation that matters is label-change: private values of one unit differ and nothing
else. Then one unit leaves and another one enters, so Laplace noise of scale b on a table costs 2k/b instead of k/b,
Gaussian noise √2²·k²/(2σ²) instead of k²/(2σ²), twice as much either way; a growing tree costs 2ε, which in ρ is four
times as much. With `relation` = "label_change" every query gets the half (growing in ρ the quarter) of its share:
then the label-change cost is the budget, and the claim for adding or removing a unit is half of it. Both are printed.

Routing (`route`). The source replaces the first private column in the authentic table by synthetic values before it
counts leaves for the second ("synthetic"). But a synthetic value is drawn without looking at the second column, so
given the public columns the two are independent, and their association survives only as far as public columns explain
it. Routing by the record's own value ("true", the default) estimates the distribution of the second given the first,
which is what the chain needs: it is applied to first values with nearly the same distribution. Both cost the same.
Measured on 50,000 members of the armed forces (ε = 2, five trees each, mean of five runs): the table gender × race of
labelled records is off by 0.011 in total variation with "true" and by 0.095 with "synthetic". The rule of a partition
may look at one record only, so the coin of a synthetic value is a public hash of all codes of the record and of a
public salt. Records that are equal in every column therefore get the same synthetic value; other than that the coin is
as good as fresh. Distributions and salt are fixed before anything is counted, so one record still moves one cell by
one, whatever it is.

Trees. A node draws its column from those not used above it, with probability proportional to their weights (all nodes
of a layer the same one with `per_level`), from a generator made of the public structure seed, the tree's number and the
layer. Whether the node is split is decided from outside: by counts of a public table (`grow_by_counts`) or by noisy
private counts (`Curator.grow`). Nodes are numbered layer by layer, so the splits alone are the tree. Public limits:
depth, columns used up, and the number of leaves (nodes are split in their order while leaves last).

Small leaves, more closely. The source's outline makes a table only of leaves with at least `leafFreqMin` records in the
public table; what it returns for the others, "labels with corresponding proportions", it does not compute. The rule
itself looks at public records alone, so it leaks nothing, and it saves nothing: leaves are disjoint, so fewer tables
cost no less. A rule by authentic numbers, which its text could be taken for where it speaks of leaf frequencies, would
leak: whether a leaf has a table of its own would depend on the last record. Here every leaf is counted with noise
whatever it holds, and what is done with small ones is decided afterwards, by public numbers, by distributions paid for
before (which weight public records with earlier labels), or by the noisy counts themselves: post-processing, at no
cost. Sums over a branch carry the noise of all its leaves, which is why the smallest branch that suffices is taken.

Differs from the source. Small leaves have the counts of a branch, where the source leaves open what they say. Tables
list every label, not only those seen in a leaf; labels are pooled by public counts, not by private ones; the ensemble's
total is T times a tree's cost for each column; Δ under label-change is 2; noise is integer noise; the published
pseudo-code filters a new column by the labels of the previous one, here every node filters by its own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from understudy.arrays import Bools, Floats, Ints
from understudy.domain import Clique, Domain, Measurement, Partition
from understudy.errors import ResourceError, UsageError, nearest
from understudy.methods.leaf_size import Relation
from understudy.methods.marginals import at_costs
from understudy.methods.method import Method, Plan, PublicFacts, Step, noisy_step, seconds_for
from understudy.models.label_trees import (
    MOST_COMBINATIONS,
    ROUNDING,
    Attributes,
    DecisionTree,
    Ensemble,
    LabelChain,
    LabelModel,
    pick,
    pooled,
)
from understudy.models.tables import allowed, check_linked, sub_indices
from understudy.options import listed_names, named_numbers, option
from understudy.privacy.cost import Cost, Currency, distribution_for
from understudy.privacy.curator import Curator

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
            distribution = ensemble.distribution(routed, len(label))
            routed[ensemble.label] = pick(distribution, coins(listed, self.salt, place))
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


@dataclass(frozen=True, slots=True)
class GrowthLimits:
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
class LabelFrontier:
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
    limits: GrowthLimits
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
        cls, name: str, attributes: Attributes, weights: tuple[float, ...], limits: GrowthLimits, *,
        seed: tuple[int, ...], order: tuple[str, ...],
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
    def frontier(self) -> LabelFrontier:
        """The open nodes as cells."""
        tree = self.tree
        looked_at = {self.attributes.names[position] for position in tree.used} or {self.attributes.names[0]}
        cells = np.full(tree.leaves, self.open.size, dtype=np.int64)
        cells[tree.places[self.open]] = np.arange(self.open.size)
        name = f"{self.name}, layer {self.layer}"
        return LabelFrontier(name, Clique.of(looked_at, self.order), self.attributes, tree, cells, self.open.size + 1)

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
        growth = growth.after(counts >= growth.limits.leaf_size - ROUNDING)
    return growth.tree


MOST_CELLS = 2**62
DENSE_CELLS = 2**20
"""Most cells of the public columns that are written out, where no public table says which of them matter."""


@dataclass(frozen=True, slots=True)
class LabelCosts:
    """The cost of the number of records, of growing one tree, and of all leaf tables of one private column."""

    total: Cost
    tree: Cost
    ensemble: Cost

    @classmethod
    def of(
        cls, cost: Cost, columns: int, trees: int, *, shares: tuple[float, float], label_change: bool
    ) -> "LabelCosts":
        """The costs when `cost` is spent; `shares` are those of the number of records and of growing."""
        for_total, for_growth = (cost.share(share) for share in shares)
        for_tables = cost - Cost(delta=cost.delta) - for_total - for_growth
        half = Fraction(1, 2) if label_change else Fraction(1)
        part = (half**2 if cost.rho else half) / trees
        return cls(for_total.share(half), for_growth.share(part), for_tables.share(half / columns))


@dataclass(frozen=True, slots=True)
class LabelSettings:
    """Private columns in order, weights of all columns, counts below which codes are pooled, limits of growth.

    And the records below which a leaf takes the counts of a branch.
    """

    domain: Domain
    private: tuple[str, ...]
    weights: dict[str, float]
    collapse: dict[str, int]
    limits: GrowthLimits
    leaf_minimum: int = 0

    @classmethod
    def of(
        cls, domain: Domain, private: tuple[str, ...], weights: dict[str, float], collapse: dict[str, float],
        limits: GrowthLimits, *, leaf_minimum: int = 0,
    ) -> "LabelSettings":  # fmt: skip
        """The method on this domain; names that it does not have, and sizes it cannot hold, raise."""
        named = _with_parts(private or domain.columns[-1:], domain)
        _check_known("private", named, domain.columns)
        public = tuple(name for name in domain.columns if name not in named)
        _check_known("weights", tuple(weights), (*public, *named[:-1]))
        _check_known("collapse", tuple(collapse), public)
        combinations = domain.cells(named)
        if combinations > MOST_COMBINATIONS:
            where = f"a table of the private columns {', '.join(named)} ({combinations:,} combinations)"
            fix = "Name fewer private columns or use coarser bins."
            raise ResourceError(where, 8 * combinations, 8 * MOST_COMBINATIONS, fix)
        cells = domain.cells(public)
        if cells >= MOST_CELLS:
            fix = "Use coarser bins or fewer columns."
            raise ResourceError(f"a table of the public columns ({cells:,} cells)", 8 * cells, 8 * MOST_CELLS, fix)
        every = {name: weights.get(name, 1.0) for name in domain.columns}
        rare = {name: int(np.ceil(number)) for name, number in collapse.items()}
        return cls(domain, tuple(named), every, rare, limits, leaf_minimum)

    @property
    def public(self) -> Clique:
        """The public columns, in schema order."""
        return self.domain.clique(name for name in self.domain.columns if name not in self.private)

    def splits(self, name: str) -> bool:
        """Whether a node may split on the column at all."""
        return self.weights[name] > 0.0 and self.domain.sizes[name] > 1

    @property
    def grows(self) -> bool:
        """Whether there is a public column to grow a tree on."""
        return self.limits.depth > 0 and any(self.splits(name) for name in self.public)

    def most_leaves(self, place: int) -> int:
        """Most leaves of a tree for the private column at that place."""
        leaves = min(self.limits.leaves, self.domain.cells(self.public))
        return leaves * self.domain.cells(self.private[:place])


def _with_parts(names: tuple[str, ...], domain: Domain) -> tuple[str, ...]:
    """The names, with both parts of a column that is modelled as size and kind, whichever way it is named."""
    found: list[str] = []
    for name in names:
        whole = name.removesuffix(".size").removesuffix(".kind") if name in domain.sizes else name
        parts = (f"{whole}.size", f"{whole}.kind")
        found += parts if all(part in domain.sizes for part in parts) else (name,)
    return tuple(dict.fromkeys(found))


def _check_known(option: str, names: tuple[str, ...], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            rule = f"names {name!r}, which is not a column that it may name."
            raise UsageError(f"option {option}", rule, nearest(name, known) if known else "There is none.")


@dataclass(slots=True)
class LabelRun:
    """What a run knows so far: the method and its costs, finished ensembles and the answers behind them."""

    curator: Curator
    settings: LabelSettings
    costs: LabelCosts
    trees: int
    seed: int
    synthetic: bool
    ensembles: list[Ensemble] = field(default_factory=list)
    answers: list[list[Measurement]] = field(default_factory=list)

    def model(self) -> LabelModel:
        """Asks every query and puts the answers together."""
        curator, settings = self.curator, self.settings
        for_total = self.costs.total
        bought = curator.measure([Clique()], for_total) if for_total.epsilon or for_total.rho else []
        cells, weights = self._public_cells()
        groups = self._groups()
        grown = [] if curator.has_public else self._paid_trees(groups)
        reference = Reference(self._codes(cells), weights)
        for place, label in enumerate(settings.private):
            earlier = settings.private[:place]
            attributes = Attributes.of(groups | {name: np.arange(settings.domain.sizes[name]) for name in earlier})
            if curator.has_public:
                trees = [self._public_tree(attributes, reference, (place, number)) for number in range(self.trees)]
            else:
                trees = [self._with_earlier(tree, attributes, earlier) for tree in grown]
            self._measure(label, attributes, trees, reference)
            reference = _expanded(reference, self.ensembles[-1], label)
        chain = LabelChain(curator.domain, tuple(self.ensembles), curator.structural_zeros)
        if not cells.size:
            cells, weights = self._written_out()
        total = float(bought[0].values[0]) if bought else self._estimated_total()
        return LabelModel.of(chain, cells, weights, max(0.0, total))

    def _public_cells(self) -> tuple[Ints, Floats]:
        """Cells of the public columns that the public table holds and the rules allow, with their numbers of rows."""
        if not self.curator.has_public:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        found = self.curator.public_cells(self.settings.public)
        possible = allowed(self.settings.domain, self.settings.public, found.indices, self.curator.structural_zeros)
        return found.indices[possible], found.counts[possible].astype(np.float64)

    def _groups(self) -> dict[str, Ints]:
        """The group of every code of the public columns: its own, or one for all codes that are rare in public."""
        public, domain = self.settings.public, self.settings.domain
        groups = {name: np.arange(domain.sizes[name]) for name in public}
        wanted = {name: domain.clique([name]) for name in self.settings.collapse}
        counts = self.curator.public_counts(list(wanted.values())) if wanted else {}
        for name, clique in wanted.items():
            rare = counts[clique] < self.settings.collapse[name]
            groups[name] = np.where(rare, int((~rare).sum()), np.cumsum(~rare) - 1)
        return groups

    def _public_tree(self, attributes: Attributes, reference: Reference, number: tuple[int, int]) -> DecisionTree:
        start = self._start(f"tree {number[1] + 1} for {self.settings.private[number[0]]}", attributes, number)
        return grow_by_counts(start, reference)

    def _paid_trees(self, groups: dict[str, Ints]) -> list[DecisionTree]:
        """Trees over the public columns alone, grown by noisy counts; every private column uses the same ones."""
        attributes = Attributes.of(groups)
        if not self.settings.grows:
            return [DecisionTree.leaf(attributes.fan_outs)] * self.trees
        starts = [self._start(f"tree {number + 1}", attributes, (0, number)) for number in range(self.trees)]
        return [self.curator.grow(start, self.costs.tree).tree for start in starts]

    def _start(self, name: str, attributes: Attributes, number: tuple[int, int]) -> TreeGrowth:
        weights = tuple(self.settings.weights[column] for column in attributes.names)
        return TreeGrowth.start(
            name,
            attributes,
            weights,
            self.settings.limits,
            seed=(self.seed, *number),
            order=self.settings.domain.columns,
        )

    def _with_earlier(self, tree: DecisionTree, attributes: Attributes, earlier: Sequence[str]) -> DecisionTree:
        """The tree with every leaf split by the private columns before this one."""
        tree = DecisionTree(tree.splits, attributes.fan_outs)
        for name in earlier:
            if self.settings.splits(name):
                tree = tree.with_leaves_split(attributes.names.index(name))
        return tree

    def _measure(self, label: str, attributes: Attributes, trees: Sequence[DecisionTree], reference: Reference) -> None:
        """Leaf tables of all trees of a column, every label counted, and the ensemble made of them."""
        domain = self.settings.domain
        partitions: list[Partition] = []
        for number, tree in enumerate(trees):
            used = {attributes.names[position] for position in tree.used}
            name = f"leaves of tree {number + 1} for {label}"
            inner = LeafPartition(name, domain.clique({*used, label}), attributes, tree, label, domain.sizes[label])
            chained = self.synthetic and used & set(self.settings.private)
            partitions.append(
                ChainedPartition(inner, tuple(self.ensembles), domain.everything(), self.seed) if chained else inner
            )
        (part, *_) = self.costs.ensemble.split([1.0] * self.trees)
        answers = at_costs(self.curator, partitions, [part] * len(partitions))
        self.answers.append(answers)
        noisy = [answer.values for answer in answers]
        if self.settings.leaf_minimum:
            noisy = [
                self._pooled(tree, attributes, values, reference) for tree, values in zip(trees, noisy, strict=True)
            ]
        self.ensembles.append(Ensemble.of_counts(label, attributes, trees, noisy))

    def _pooled(self, tree: DecisionTree, attributes: Attributes, noisy: Ints, reference: Reference) -> Ints:
        """The noisy counts of a tree, small leaves with those of a branch: small by public records if there are any."""
        counts = noisy.reshape(tree.leaves, -1)
        if self.curator.has_public:
            leaves = tree.leaf_of(attributes.grouped(reference.codes, reference.weights.size))
            records: Floats = np.bincount(leaves, weights=reference.weights, minlength=tree.leaves).astype(np.float64)
        else:
            records = counts.sum(axis=1).astype(np.float64)
        return pooled(tree, counts, records, self.settings.leaf_minimum).ravel()

    def _codes(self, cells: Ints) -> dict[str, Ints]:
        public = self.settings.public
        return {name: sub_indices(self.settings.domain, public, cells, (name,)) for name in public}

    def _written_out(self) -> tuple[Ints, Floats]:
        """Every possible cell of the public columns, with the mean over trees of its share of its leaf.

        A leaf's noisy number of records (negatives are 0) is spread evenly over its possible cells. That is all that
        trees know about public columns where no public table was given, or where it holds no possible row.
        """
        settings = self.settings
        check_dense(settings)
        cells = np.arange(settings.domain.cells(settings.public), dtype=np.int64)
        cells = cells[allowed(settings.domain, settings.public, cells, self.curator.structural_zeros)]
        first = self.ensembles[0]
        grouped = first.attributes.grouped(self._codes(cells), cells.size)
        weights = np.zeros(cells.size)
        for tree, answer in zip(first.trees, self.answers[0], strict=True):
            rows = np.maximum(answer.values.reshape(tree.leaves, -1).sum(axis=1), 0)
            leaves = tree.leaf_of(grouped)
            inside = np.bincount(leaves, minlength=tree.leaves)
            shares = (rows / np.maximum(inside, 1))[leaves]
            weights += shares / shares.sum() if shares.sum() > 0.0 else 1.0 / max(cells.size, 1)
        return cells, weights

    def _estimated_total(self) -> float:
        """The number of records from all leaf tables, each weighted by one over its number of cells."""
        answers = [answer for ensemble in self.answers for answer in ensemble]
        weights = [1.0 / answer.values.size for answer in answers]
        sums = [weight * float(answer.values.sum()) for weight, answer in zip(weights, answers, strict=True)]
        return math.fsum(sums) / math.fsum(weights)


def check_dense(settings: LabelSettings) -> None:
    """Refuses public columns that cannot be written out cell by cell."""
    cells = settings.domain.cells(settings.public)
    if cells > DENSE_CELLS:
        where = f"method rdt without a public table: a table of the public columns ({cells:,} cells)"
        raise ResourceError(where, 48 * cells, 48 * DENSE_CELLS, "Give a public table, or use coarser bins.")


def _expanded(reference: Reference, ensemble: Ensemble, label: str) -> Reference:
    """The records with each label in turn, weighted by how likely it is: expected numbers of records."""
    rows, labels = reference.weights.size, ensemble.labels
    distribution = ensemble.distribution(reference.codes, rows)
    codes = {name: np.repeat(part, labels) for name, part in reference.codes.items()}
    codes[label] = np.tile(np.arange(labels), rows)
    return Reference(codes, (reference.weights[:, None] * distribution).ravel())


Route = Literal["true", "synthetic"]
_MOST_DEPTH = 1000
_ROWS_UNKNOWN = 1_000_000


@dataclass(frozen=True, slots=True)
class Rdt(Method):
    """Method: ensembles of random trees, grown in public, with noisy label counts in their leaves."""

    name: ClassVar[str] = "rdt"
    summary: ClassVar[str] = "Labels for public records: random decision trees with noisy leaf tables."
    source: ClassVar[str] = "Duke University Synthetic Data Project (2018); Jagannathan et al. (2012)."
    needs: ClassVar[str] = "Private columns (private=sex,race); best with a public table of the others (public=)."
    limits: ClassVar[str] = "Private columns of at most 2¹⁴ combinations; without public=, public ones of 2²⁰ cells."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "zcdp")
    can_be_fixed: ClassVar[bool] = True
    uses_public: ClassVar[bool] = True

    private: str = option("", help="private columns in order, e.g. sex,race; none: the last column", check=listed_names)
    weights: str = option(
        "", help="weight of a column when nodes pick a split, e.g. occupation:60; 1 for all others", check=named_numbers
    )
    leaf_size: int = option(1000, help="least number of public records of a node that is split", least=0, most=2**40)
    leaf_minimum: int = option(
        0,
        help="leaves with fewer records than this take the noisy counts of the branch around them; public records, "
        "or noisy counts without a public table",
        least=0,
        most=2**40,
    )
    trees: int = option(5, help="number of trees for each private column", least=1, most=100)
    collapse: str = option(
        "", help="pool codes with fewer public records than this, e.g. occupation:200", check=named_numbers
    )
    per_level: bool = option(False, help="whether all nodes of a layer split on the same column")
    max_depth: int | None = option(
        None, help="maximum depth of a tree; none: every column once", least=0, most=_MOST_DEPTH
    )
    structure_seed: int = option(0, help="public seed of the columns that trees split on", least=0, most=2**63 - 1)
    route: Route = option("true", help="condition later labels on the true or on the synthetic first label")
    relation: Relation = option(
        "add_remove", help="neighbour relation that the budget refers to: add_remove or label_change"
    )
    total_share: float = option(
        0.01, help="share of the budget for the number of records; 0: from the leaf tables", least=0, most=0.5
    )
    growth_share: float = option(
        0.25, help="share of the budget for growing trees without a public table", above=0, most=0.5
    )
    most_leaves: int = option(50_000, help="maximum number of leaves of a tree", least=1, most=2**24)

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """All queries of a run; with a public table growing is free and tables get its share."""
        settings, public = self._settings(facts), facts.has_public
        if self.relation == "label_change" and facts.prepared:
            names = ", ".join(facts.prepared)
            rule = f"label_change cannot be guaranteed: {names} are fixed from private rows before the trees."
            raise UsageError("option relation", rule, "List their labels or bins in the schema.")
        singles = [facts.domain.clique([name]) for name in facts.domain.columns]
        check_linked(facts.domain, singles, facts.structural_zeros, f"method {self.name}")
        costs = self._costs(settings, cost, public=public)
        steps = [*self._first_steps(settings, costs, facts), *self._table_steps(settings, costs, facts)]
        cells = sum(step.cells for step in steps)
        rows = facts.rows_hint if facts.rows_hint is not None else _ROWS_UNKNOWN
        held = min(facts.domain.cells(settings.public), max(rows, DENSE_CELLS))
        line = 24 + 16 * min(facts.domain.cells(settings.private), 2**24 // max(held, 1) + 1)
        return Plan(
            self,
            cost,
            sum((step.cost for step in steps), Cost()),
            tuple(steps),
            cells,
            (48 if self.leaf_minimum else 24) * cells + held * line + 2**26,
            seconds_for(facts, cells) + 1e-6 * held * self.trees * len(settings.private),
            self._notes(settings, cost, facts),
            schedule=(settings, costs),
            fixed=True,
            labels=settings.private,
        )

    def check_without_public(self, facts: PublicFacts) -> None:
        """Raises if this method cannot do without a public table on such a domain."""
        if self.collapse:
            raise UsageError("option collapse", "pools codes by public counts.", "Give a public table with public=.")
        check_dense(self._settings(facts))

    def not_public(self, facts: PublicFacts) -> tuple[str, ...]:
        """Columns that a public table need not have: the private ones."""
        return self._settings(facts).private

    def run(self, curator: Curator, plan: Plan) -> LabelModel:
        """Grows trees, measures their leaves, column by column; the public cells and the chain are the model."""
        settings, costs = plan.schedule
        synthetic = self.route == "synthetic"
        return LabelRun(curator, settings, costs, self.trees, self.structure_seed, synthetic).model()

    def _settings(self, facts: PublicFacts) -> LabelSettings:
        depth = _MOST_DEPTH if self.max_depth is None else self.max_depth
        return LabelSettings.of(
            facts.domain,
            listed_names("private", self.private),
            named_numbers("weights", self.weights),
            named_numbers("collapse", self.collapse),
            GrowthLimits(self.leaf_size, depth, self.most_leaves, self.per_level),
            leaf_minimum=self.leaf_minimum,
        )

    def _costs(self, settings: LabelSettings, cost: Cost, *, public: bool) -> LabelCosts:
        grows = settings.grows and not public
        shares = (self.total_share, self.growth_share if grows else 0.0)
        change = self.relation == "label_change"
        return LabelCosts.of(cost, len(settings.private), self.trees, shares=shares, label_change=change)

    def _first_steps(self, settings: LabelSettings, costs: LabelCosts, facts: PublicFacts) -> list[Step]:
        steps = []
        if costs.total.epsilon or costs.total.rho:
            steps.append(noisy_step("measure total", costs.total, 1, facts.unit_rows))
        if settings.grows and not facts.has_public:
            # What a node costs follows from the rule of growing; its noise is not that of a count.
            steps += [Step(f"grow tree {number + 1}", costs.tree, 0, None, None) for number in range(self.trees)]
        return steps

    def _table_steps(self, settings: LabelSettings, costs: LabelCosts, facts: PublicFacts) -> list[Step]:
        steps = []
        for place, label in enumerate(settings.private):
            cells = settings.most_leaves(place) * facts.domain.sizes[label]
            for number, part in enumerate(costs.ensemble.split([1.0] * self.trees)):
                name = f"measure leaves of tree {number + 1} for {label}"
                steps.append(noisy_step(name, part, cells, facts.unit_rows))
        return steps

    def _notes(self, settings: LabelSettings, cost: Cost, facts: PublicFacts) -> tuple[str, ...]:
        public = self._costs(settings, cost, public=True)
        table = public.ensemble.split([1.0] * self.trees)[0]
        scale = distribution_for(table, facts.unit_rows, "measure leaves").scale
        notes = [
            f"Columns filled in by the trees, in order: {', '.join(settings.private)}. Cells are upper bounds.",
            f"With a public table, trees are grown at no cost, and leaf tables have noise of scale {scale:.3g}.",
        ]
        if self.relation == "label_change":
            notes.append("The budget pays for a change of private values; adding or removing a unit costs less.")
        return tuple(notes)
