"""Trees whose paths end at different depths: what a path does not spend on layers goes to its cells of the full table.

A node that is not split needs no counts of its own below it. In the layers that other paths still have, its records are
counted by cells of the full table instead: such a layer's partition has the split nodes and those cells. Each record
lies in one cell of it, so the layer costs what it always costs, and the cells of a path that ended early are counted
once with the full table and once more with every layer the path left out. The repeated counts are averaged with weights
inverse to their variances: with Gaussian noise as good as one count at the sum of their prices, with Laplace noise a
little worse (precisions add up, not prices). Prices of draws that such a path no longer takes part in stay unused,
because a draw for some nodes and counts for others cannot be charged as one question.

All of this follows from the structure, which is public or was paid for. The fit is post-processing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.marginals.answer import Measurement
from understudy.marginals.clique import Clique
from understudy.marginals.partition import Partition
from understudy.mechanisms.tree.layers import TreeCosts, TreeFit, model_of_levels
from understudy.models.tree.least_squares import HistogramTree
from understudy.models.tree.structure import Structure
from understudy.models.tree.tree_model import TreeModel
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator

__all__ = ["NodesOrCells", "fit_stopped", "stopped"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_LEAST_VARIANCE = 1e-200


def stopped(structure: Structure, layer: int) -> Bools:
    """Which nodes of a layer were passed on from the layer above, unsplit."""
    here = slice(structure.starts[layer], structure.starts[layer + 1])
    return np.asarray(structure.columns[here] < 0) if layer else np.zeros(1, dtype=bool)


@dataclass(frozen=True, slots=True, eq=False)
class NodesOrCells:
    """A layer's split nodes in order, then the cells of the full table below its other nodes, in row-major order."""

    structure: Structure
    layer: int
    nodes: Ints
    """The split nodes of the layer."""
    leaves: Ints
    """The cells of the full table counted one by one."""

    @classmethod
    def of(cls, structure: Structure, layer: int) -> "NodesOrCells":
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

    def assign(self, codes: Mapping[str, npt.NDArray[np.integer]]) -> Ints:
        """The node or cell of each record."""
        node = self.structure.partition(self.layer).assign(codes)
        flat = np.zeros(node.size, dtype=np.int64)
        for name in self.columns:
            flat = flat * self.structure.domain.sizes[name] + codes[name]
        single = self.nodes.size + np.searchsorted(self.leaves, flat)
        return np.where(stopped(self.structure, self.layer)[node], single, np.searchsorted(self.nodes, node))


def fit_stopped(curator: Curator, structure: Structure, costs: TreeCosts, fit: TreeFit) -> TreeModel:
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
            variances[place][target.nodes] = answer.law.variance
            repeated.add(target.leaves, answer.values[target.nodes.size :], answer)
        elif place:
            repeated.add(slice(None), answer.values, answer)
        else:
            values[0], variances[0] = answer.values.astype(np.float64), np.array([answer.law.variance])
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
        weight = 1.0 / max(answer.law.variance, _LEAST_VARIANCE)
        self.sums[where] += weight * values
        self.weights[where] += weight

    def averages(self) -> tuple[Floats, Floats]:
        """Averages and their variances."""
        return self.sums / self.weights, 1.0 / self.weights


def _node_of_cell(structure: Structure, layer: int) -> Ints:
    """For every cell of the full table the node of that layer it lies in."""
    found = structure.leaf_parents()
    for parents in reversed(list(structure.parent_places())[layer:]):
        found = parents[found]
    return found
