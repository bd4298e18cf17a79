"""Trees of `steps`: their shape, the choice of columns, growth node by node, and stopped paths.

Shape
-----
Public: it follows from the options and the domain before anything is asked. With p columns of more than one code and L
layers asked for, u = min(L, p − 1) layers lie between the root and the full table, which is the last layer (for L = p
the last column is forced, so the full table is layer p itself). A path passes u draws, u decisions to stop, and u + 1
counted layers, the full table among them. Groups of columns in L layers are chosen by one draw; the last group is the
full table.

The choice of columns
---------------------
Privacy. A record lies in one node of a layer, so the choices of a layer, one per node, act on disjoint records and
cost together what one of them costs (`Curator.select_within`). Layers follow each other and their costs add up. Which
nodes there are, which columns each may take, and how many queries are asked follows from earlier answers alone. The
scores and their bounds are those of `privacy/trees.py`.

`per node`   −AIC (BIC, deviance) or the information gain of every column not used on the path so far, one draw a node.
`grouped`    one draw for the whole tree among ordered splits of the columns into layers.
`range`      before each layer, a draw between "go on" and "stop" per node: `AicRange`. Stopped nodes stay as they are.
`privtree`   after all columns are chosen, nodes are split or not by noisy counts (`Curator.grow`): one cost for all.

The tree that PrivTree's rule cuts back is public or was chosen before. From the root downwards the rule decides about
every node whose parent was split (proved in `privacy/trees.py`): a child's cell lies inside its parent's, and its depth
is its layer.

Paths that end early
--------------------
What a path does not spend on layers goes to its cells of the full table. A node that is not split needs no counts of
its own below it. In the layers that other paths still have, its records are counted by cells of the full table instead:
such a layer's partition has the split nodes and those cells. Each record lies in one cell of it, so the layer costs
what it always costs, and the cells of a path that ended early are counted once with the full table and once more with
every layer the path left out. The repeated counts are averaged with weights inverse to their variances: with Gaussian
noise as good as one count at the sum of their costs, with Laplace noise a little worse (precisions add up, not costs).
Costs of draws that such a path no longer takes part in stay unused, because a draw for some nodes and counts for others
cannot be charged as one query.

All of this follows from the structure, which is public or was paid for. The fit is post-processing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self

import numpy as np

from understudy.arrays import Bools, Floats, Integers, Ints
from understudy.domain import Clique, Domain, Measurement, Partition
from understudy.errors import ResourceError, UsageError
from understudy.methods.method import PublicFacts, Step
from understudy.methods.tree_layers import TreeCosts, TreeFit, model_of_levels
from understudy.models.histogram_tree import HistogramTree, TreeModel, TreeStructure
from understudy.privacy.cost import Cost, growth_rule, selection_rate
from understudy.privacy.curator import Curator
from understudy.privacy.scores import WithinQuality
from understudy.privacy.trees import (
    GO_ON,
    MOST_SPLITS,
    AicRange,
    Criterion,
    GroupedCriterion,
    NodeCriterion,
    NodeInformation,
    ordered_splits,
    split_count,
)


@dataclass(frozen=True, slots=True, eq=False)
class LayerFrontier:
    """The open nodes of a layer as cells, and one last cell for all other records."""

    structure: TreeStructure
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

    def assign(self, codes: Mapping[str, Integers]) -> Ints:
        """The open node of each record, or the last cell."""
        place = np.full(self.structure.size(self.layer), self.open.size, dtype=np.int64)
        place[self.open] = np.arange(self.open.size)
        return np.asarray(place[self.structure.partition(self.layer).assign(codes)])


@dataclass(frozen=True, slots=True, eq=False)
class NodeGrowth:
    """How far the tree has grown: the open nodes of the current layer, and what was decided above it."""

    structure: TreeStructure
    decay: float
    theta: int
    open: Ints
    splits: tuple[Bools, ...] = ()
    """For every layer so far and every node of it, whether it was split."""

    @classmethod
    def of(cls, structure: TreeStructure, decay: float, theta: int) -> Self:
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
    def frontier(self) -> LayerFrontier:
        """The open nodes, and one cell for all other records."""
        return LayerFrontier(self.structure, self.layer, self.open)

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

    def pruned(self) -> TreeStructure:
        """The same number of layers, with nodes that were not split passed on as they are."""
        tree, names = TreeStructure.root(self.structure.domain), self.structure.domain.columns
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


Choice = Literal["node", "grouped"]
Stopping = Literal["none", "range", "privtree"]


@dataclass(frozen=True, slots=True, eq=False)
class Scaffold:
    """A tree whose columns are fixed. `counted` are the layers that get noisy counts of their own, in order."""

    structure: TreeStructure
    counted: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChoiceCosts:
    """What is paid for the structure: one draw among columns, one decision to stop (each per layer), one growth."""

    draw: Cost
    stop: Cost
    growth: Cost

    @classmethod
    def of(cls, cost: Cost, draws: int, stops: int, *, draw_share: Fraction, stopping: Stopping) -> "ChoiceCosts":
        """The cost shared out: `draw_share` of it for the draws, the rest for stopping; equal parts per layer."""
        for_draws = cost.share(draw_share) if draws else Cost()
        for_stops = Cost(cost.epsilon - for_draws.epsilon, cost.rho - for_draws.rho)
        if stopping == "none":
            for_draws, for_stops = (Cost(cost.epsilon, cost.rho) if draws else Cost()), Cost()
        if stopping == "privtree":
            return cls(_part(for_draws, draws), Cost(), for_stops if stops else Cost())
        return cls(_part(for_draws, draws), _part(for_stops, stops), Cost())


@dataclass(frozen=True, slots=True)
class TreeSettings:
    """The public half of choosing: how many layers, which columns if they are known, which score, when to stop."""

    layers: int
    sequence: tuple[str, ...] = ()
    choice: Choice = "node"
    rows_bound: int | None = None
    """Set for the information gain; None for a criterion."""
    criterion: Criterion = "aic"
    published: bool = False
    stopping: Stopping = "none"
    tolerance: int = 100
    theta: int = 0


def splittable(domain: Domain) -> list[str]:
    """Columns with more than one code: the only ones worth splitting by."""
    return [name for name, size in domain.sizes.items() if size > 1]


def choose(curator: Curator, settings: TreeSettings, costs: ChoiceCosts) -> Scaffold:
    """The tree, chosen and paid for as the method says."""
    if settings.choice == "grouped":
        return _grouped(curator, settings, costs)
    structure = _node_by_node(curator, settings, costs)
    if settings.stopping == "privtree" and structure.layers:
        live = [curator.domain.sizes[name] for name in splittable(curator.domain)]
        structure = curator.grow(NodeGrowth.of(structure, float(max(live)), settings.theta), costs.growth).pruned()
    return Scaffold(structure, tuple(range(1, structure.layers + 1)))


def _node_by_node(curator: Curator, settings: TreeSettings, costs: ChoiceCosts) -> TreeStructure:
    """Layer by layer: decide where to stop, then choose a column for every node that goes on."""
    structure = TreeStructure.root(curator.domain)
    columns = splittable(curator.domain)
    places = [curator.domain.columns.index(name) for name in columns]
    going = np.ones(1, dtype=bool)
    for layer in range(settings.layers):
        unused = structure.widths()[:, places] > 1
        if settings.stopping == "range" and going.any():
            # A stopped node may only stop again, whatever it holds: its scores are not used.
            allowed = np.stack([going, np.ones(going.size, dtype=bool)], axis=1)
            quality = AicRange(f"stop above layer {layer + 1}", columns, unused, allowed, settings.tolerance)
            decided = curator.select_within(structure.partition(), quality, costs.stop)
            going = going & np.array([one == GO_ON for one in decided])
        if settings.sequence:
            chosen = [settings.sequence[layer]] * structure.size()
        elif going.any():
            allowed = _one_each(unused, going)
            chosen = curator.select_within(structure.partition(), _score(curator, settings, layer, allowed), costs.draw)
        else:
            chosen = [columns[0]] * structure.size()
        structure = structure.split([name if goes else None for name, goes in zip(chosen, going, strict=True)])
        going = structure.columns[structure.starts[-2] :] >= 0
    return structure


def _one_each(unused: Bools, going: Bools) -> Bools:
    """Every unused column for nodes that go on, the first one for the others: nothing to choose, nothing to learn."""
    first = np.zeros_like(unused)
    first[np.arange(unused.shape[0]), unused.argmax(axis=1)] = True
    return np.where(going[:, None], unused, first)


def _score(curator: Curator, settings: TreeSettings, layer: int, allowed: Bools) -> WithinQuality[str]:
    name, columns = f"column of layer {layer + 1}", splittable(curator.domain)
    if settings.rows_bound is None:
        return NodeCriterion(name, columns, allowed, settings.criterion, published=settings.published)
    levels = [curator.domain.sizes[column] for column in columns]
    return NodeInformation(name, columns, allowed, levels, settings.rows_bound)


def _grouped(curator: Curator, settings: TreeSettings, costs: ChoiceCosts) -> Scaffold:
    """One draw among ordered splits; layer by layer the tree splits by all columns of a group, the last one by none."""
    columns = splittable(curator.domain)
    structure = TreeStructure.root(curator.domain)
    if settings.layers < 1:
        return Scaffold(structure, ())
    splits = ordered_splits(columns, settings.layers + 1)
    split = curator.select(GroupedCriterion("columns of all layers", splits, settings.criterion), costs.draw)
    counted = []
    for group in split[:-1]:
        for name in group:
            structure = structure.split([name] * structure.size())
        counted.append(structure.layers)
    return Scaffold(structure, tuple(counted))


def _part(cost: Cost, count: int) -> Cost:
    return Cost(cost.epsilon // count, cost.rho // count) if count else Cost()


IN_ORDER = "*"
"""As a sequence: the columns in the order of the schema."""

_MOST_CODES_AT_NODES = 2**27
_CODE_BYTES = 24
_SPLIT_BYTES = 2000


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options that shape a tree."""

    layers: int | None = None
    sequence: str = ""
    choice: Choice = "node"
    stopping: Stopping = "none"

    def __post_init__(self) -> None:
        names = named_columns(self.sequence)
        if len(set(names)) < len(names) or not all(names):
            raise UsageError("sequence", "must name columns, each of them once, with commas between the names.")
        if names and self.layers is not None and self.layers > len(names):
            raise UsageError("sequence", f"names fewer columns than {self.layers} layers.", "Name more or set fewer.")
        if self.choice == "grouped" and (self.sequence or self.stopping != "none"):
            clash = "a sequence" if self.sequence else "a stopping rule"
            raise UsageError("choice=grouped", f"cannot be combined with {clash}.")

    @property
    def depth(self) -> int:
        """L: as given, or as many as the sequence has, or 2."""
        return self.layers if self.layers is not None else len(named_columns(self.sequence)) or 2


@dataclass(frozen=True, slots=True)
class Shape:
    """A tree before its columns are chosen."""

    wanted: Wanted
    domain: Domain
    columns: tuple[str, ...]
    """Columns with more than one code."""
    sequence: tuple[str, ...]
    """Those of a given sequence, in order; empty if columns are drawn."""

    @classmethod
    def of(cls, wanted: Wanted, domain: Domain) -> "Shape":
        """The shape of a tree over that domain; raises for unknown columns in the sequence."""
        names = list(domain.columns) if wanted.sequence == IN_ORDER else named_columns(wanted.sequence)
        domain.clique(names)  # raises for an unknown column, with the closest known one
        live = splittable(domain)
        return cls(wanted, domain, tuple(live), tuple(name for name in names if name in live))

    @property
    def upper(self) -> int:
        """Counted layers between the root and the full table."""
        most = max(len(self.columns) - 1, 0)
        if self.wanted.choice == "grouped":
            return min(self.wanted.depth - 1, most)
        return min(self.wanted.depth, most, len(self.sequence) if self.wanted.sequence else most)

    @property
    def draws(self) -> int:
        """Paid draws among columns on a path from the root to the full table."""
        if self.wanted.sequence or not self.upper:
            return 0
        return 1 if self.wanted.choice == "grouped" else self.upper

    @property
    def stops(self) -> int:
        """Decisions to stop on a path."""
        return self.upper if self.wanted.stopping != "none" else 0

    @property
    def layer_sizes(self) -> list[int]:
        """Nodes of every counted layer, at most."""
        sizes = sorted((self.domain.sizes[name] for name in self.columns), reverse=True)
        if self.wanted.choice == "grouped":
            return [self.domain.cells(self.domain.columns) // sizes[-1]] * self.upper if self.upper else []
        if self.sequence:
            sizes = [self.domain.sizes[name] for name in self.sequence]
        found, nodes = list[int](), 1
        for size in sizes[: self.upper]:
            nodes *= size
            found.append(nodes)
        return found

    @property
    def codes_at_nodes(self) -> int:
        """Most counts that choosing for one layer needs: every code of every column at every node above it."""
        queries = (self.draws and self.wanted.choice == "node") or (self.stops and self.wanted.stopping == "range")
        nodes = [1, *self.layer_sizes][max(self.upper - 1, 0)]
        return nodes * sum(self.domain.sizes[name] for name in self.columns) if queries else 0

    @property
    def splits(self) -> int:
        """Ways to put the columns in groups, where that is asked for."""
        return split_count(len(self.columns), self.upper + 1) if self.wanted.choice == "grouped" and self.draws else 0

    def choice_bytes(self, where: str) -> int:
        """Memory for choosing; refuses too many options and too many nodes."""
        if self.splits > MOST_SPLITS:
            fix = "Set fewer layers, give a sequence or choose node by node."
            step = f"{where}: scoring {self.splits:,} ways to group {len(self.columns)} columns"
            raise ResourceError(step, _SPLIT_BYTES * self.splits, _SPLIT_BYTES * MOST_SPLITS, fix)
        if self.codes_at_nodes > _MOST_CODES_AT_NODES:
            needed, most = _CODE_BYTES * self.codes_at_nodes, _CODE_BYTES * _MOST_CODES_AT_NODES
            fix = "Set fewer layers or give a sequence."
            raise ResourceError(f"{where}: choosing for every node of {self.upper} layers", needed, most, fix)
        return _SPLIT_BYTES * self.splits + _CODE_BYTES * self.codes_at_nodes

    def choice_steps(self, facts: PublicFacts, costs: ChoiceCosts) -> tuple[Step, ...]:
        """The queries of choosing, in order; raises where a share is too small for a draw."""
        if self.splits:
            return (_drawn("select columns of all layers", costs.draw, self.splits),)
        steps = list[Step]()
        for layer in range(1, self.upper + 1):
            if self.wanted.stopping == "range":
                steps.append(_drawn(f"select stop above layer {layer}", costs.stop, 2))
            if self.draws:
                steps.append(_drawn(f"select column of layer {layer}", costs.draw, len(self.columns) - layer + 1))
        if self.wanted.stopping == "privtree" and self.stops:
            largest = max(self.domain.sizes[name] for name in self.columns)
            growth_rule(costs.growth, facts.unit_rows, Fraction(largest), "grow tree")
            steps.append(Step("grow tree", costs.growth, sum([1, *self.layer_sizes[:-1]]), None, None))
        return tuple(steps)


def named_columns(sequence: str) -> list[str]:
    """The names of a sequence, none for an empty one and for the schema's order.

    >>> named_columns("voted, college")
    ['voted', 'college']
    """
    return [name.strip() for name in sequence.split(",")] if sequence and sequence != IN_ORDER else []


def trimmed_shares(shares: str, upper: int) -> str:
    """The first shares and the last one, scaled to add up to 1: open columns may turn out to have one code only.

    >>> trimmed_shares("0.2,0.3,0.5", 1)
    '2/7,5/7'
    """
    parts = [Fraction(part.strip()) for part in shares.split(",")]
    kept = [*parts[:-1][:upper], parts[-1]]
    whole = sum(kept, Fraction(0))
    return ",".join(str(part / whole) for part in kept)


def _drawn(name: str, cost: Cost, options: int) -> Step:
    selection_rate(cost, Fraction(1), name, monotone=True)
    return Step(name, cost, options, None, None)


_LEAST_VARIANCE = 1e-200


def stopped(structure: TreeStructure, layer: int) -> Bools:
    """Which nodes of a layer were passed on from the layer above, unsplit."""
    here = slice(structure.starts[layer], structure.starts[layer + 1])
    return np.asarray(structure.columns[here] < 0) if layer else np.zeros(1, dtype=bool)


@dataclass(frozen=True, slots=True, eq=False)
class NodesOrCells:
    """A layer's split nodes in order, then the cells of the full table below its other nodes, in row-major order."""

    structure: TreeStructure
    layer: int
    nodes: Ints
    """The split nodes of the layer."""
    leaves: Ints
    """The cells of the full table counted one by one."""

    @classmethod
    def of(cls, structure: TreeStructure, layer: int) -> "NodesOrCells":
        """The partition of one layer."""
        ended = stopped(structure, layer)
        cells = np.flatnonzero(ended[_node_of_cell(structure, layer)])
        return cls(structure, layer, np.flatnonzero(~ended), cells)

    @property
    def name(self) -> str:
        """The layer's name."""
        return f"layer {self.layer}"

    @property
    def columns(self) -> Clique:
        """All columns: cells of the full table are among the cells."""
        return self.structure.domain.everything()

    @property
    def cells(self) -> int:
        """Split nodes and single cells."""
        return self.nodes.size + self.leaves.size

    def assign(self, codes: Mapping[str, Integers]) -> Ints:
        """The node or cell of each record."""
        node = self.structure.partition(self.layer).assign(codes)
        flat = np.zeros(node.size, dtype=np.int64)
        for name in self.columns:
            flat = flat * self.structure.domain.sizes[name] + codes[name]
        single = self.nodes.size + np.searchsorted(self.leaves, flat)
        return np.where(stopped(self.structure, self.layer)[node], single, np.searchsorted(self.nodes, node))


def fit_stopped(curator: Curator, structure: TreeStructure, costs: TreeCosts, fit: TreeFit) -> TreeModel:
    """As `layers.fit_tree`, for a tree some of whose paths end early."""
    targets: list[tuple[int, Clique | Partition, Cost]] = [(0, Clique(), costs.root)]
    for place, cost in enumerate(costs.layers, start=1):
        targets.append((place, NodesOrCells.of(structure, place), cost))
    targets.append((structure.layers + 1, structure.domain.everything(), costs.leaves))
    bought = [target for target in targets if target[2].epsilon or target[2].rho]
    whole = sum((cost for _, _, cost in bought), Cost())
    answers = curator.measure(
        [target for _, target, _ in bought], whole, [cost.epsilon + cost.rho for *_, cost in bought]
    )
    tree = HistogramTree.of(structure)
    values: list[Floats] = [np.zeros(size) for size in tree.sizes]
    variances: list[Floats] = [np.full(size, math.inf) for size in tree.sizes]
    repeated = _Repeated.of(tree.sizes[-1])
    for (place, target, _), answer in zip(bought, answers, strict=True):
        if isinstance(target, NodesOrCells):
            values[place][target.nodes] = answer.values[: target.nodes.size]
            variances[place][target.nodes] = answer.distribution.variance
            repeated.add(target.leaves, answer.values[target.nodes.size :], answer)
        elif place:
            repeated.add(slice(None), answer.values, answer)
        else:
            values[0], variances[0] = answer.values.astype(np.float64), np.array([answer.distribution.variance])
    values[-1], variances[-1] = repeated.averages()
    return model_of_levels(curator, structure, tree, (list(values), list(variances)), fit)


@dataclass(frozen=True, slots=True, eq=False)
class _Repeated:
    """Weighted sums of the counts of every cell of the full table."""

    sums: Floats
    weights: Floats

    @classmethod
    def of(cls, cells: int) -> "_Repeated":
        return cls(np.zeros(cells), np.zeros(cells))

    def add(self, where: Ints | slice, values: Ints, answer: Measurement) -> None:
        weight = 1.0 / max(answer.distribution.variance, _LEAST_VARIANCE)
        self.sums[where] += weight * values
        self.weights[where] += weight

    def averages(self) -> tuple[Floats, Floats]:
        """Averages and their variances."""
        return self.sums / self.weights, 1.0 / self.weights


def _node_of_cell(structure: TreeStructure, layer: int) -> Ints:
    """For every cell of the full table the node of that layer it lies in."""
    found = structure.leaf_parents()
    for parents in reversed(list(structure.parent_places())[layer:]):
        found = parents[found]
    return found
