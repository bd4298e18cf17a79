"""Choosing the columns of a tree: by a public sequence, node by node, or as groups; and when to stop splitting.

Privacy. A record lies in one node of a layer, so the choices of a layer, one per node, act on disjoint records and
cost together what one of them costs (`Curator.select_within`). Layers follow each other and their prices add up. Which
nodes there are, which columns each may take, and how many questions are asked follows from earlier answers alone. The
scores and their bounds are those of `privacy/questions`.

`per node`   −AIC or the information gain of every column not used on the path so far, one draw per node.
`grouped`    one draw for the whole tree among ordered splits of the columns into layers.
`range`      before each layer, a draw between "go on" and "stop" per node: `AicRange`. Stopped nodes stay as they are.
`privtree`   after all columns are chosen, nodes are split or not by noisy counts (`Curator.grow`): one price for all.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from understudy.marginals.domain import Domain
from understudy.mechanisms.tree.node_growth import NodeGrowth
from understudy.models.tree.structure import Structure
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator
from understudy.privacy.quality import WithinQuality
from understudy.privacy.questions.node_aic import GO_ON, AicRange, GroupedAic, NodeAic, ordered_splits
from understudy.privacy.questions.node_information import NodeInformation

__all__ = ["Choice", "ChoiceCosts", "Recipe", "Scaffold", "Stopping", "choose", "splittable"]

Mask = npt.NDArray[np.bool_]
Choice = Literal["node", "grouped"]
Stopping = Literal["none", "range", "privtree"]


@dataclass(frozen=True, slots=True, eq=False)
class Scaffold:
    """A tree whose columns are settled. `counted` are the layers that get noisy counts of their own, in order."""

    structure: Structure
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
class Recipe:
    """The public half of choosing: how many layers, which columns if they are known, which score, when to stop."""

    layers: int
    sequence: tuple[str, ...] = ()
    choice: Choice = "node"
    rows_bound: int | None = None
    """Set for the information gain; None for AIC."""
    published: bool = False
    stopping: Stopping = "none"
    tolerance: int = 100
    theta: int = 0


def splittable(domain: Domain) -> list[str]:
    """Columns with more than one code: the only ones worth splitting by."""
    return [name for name, size in domain.sizes.items() if size > 1]


def choose(curator: Curator, recipe: Recipe, costs: ChoiceCosts) -> Scaffold:
    """The tree, chosen and paid for as the recipe says."""
    if recipe.choice == "grouped":
        return _grouped(curator, recipe, costs)
    structure = _node_by_node(curator, recipe, costs)
    if recipe.stopping == "privtree" and structure.layers:
        live = [curator.domain.sizes[name] for name in splittable(curator.domain)]
        structure = curator.grow(NodeGrowth.of(structure, float(max(live)), recipe.theta), costs.growth).pruned()
    return Scaffold(structure, tuple(range(1, structure.layers + 1)))


def _node_by_node(curator: Curator, recipe: Recipe, costs: ChoiceCosts) -> Structure:
    """Layer by layer: decide where to stop, then choose a column for every node that goes on."""
    structure = Structure.root(curator.domain)
    columns = splittable(curator.domain)
    places = [curator.domain.columns.index(name) for name in columns]
    going = np.ones(1, dtype=bool)
    for layer in range(recipe.layers):
        unused = structure.widths()[:, places] > 1
        if recipe.stopping == "range" and going.any():
            # A stopped node may only stop again, whatever it holds: its scores are not used.
            allowed = np.stack([going, np.ones(going.size, dtype=bool)], axis=1)
            quality = AicRange(f"stop above layer {layer + 1}", columns, unused, allowed, recipe.tolerance)
            decided = curator.select_within(structure.partition(), quality, costs.stop)
            going = going & np.array([one == GO_ON for one in decided])
        if recipe.sequence:
            chosen = [recipe.sequence[layer]] * structure.size()
        elif going.any():
            allowed = _one_each(unused, going)
            chosen = curator.select_within(structure.partition(), _score(curator, recipe, layer, allowed), costs.draw)
        else:
            chosen = [columns[0]] * structure.size()
        structure = structure.split([name if goes else None for name, goes in zip(chosen, going, strict=True)])
        going = structure.columns[structure.starts[-2] :] >= 0
    return structure


def _one_each(unused: Mask, going: Mask) -> Mask:
    """Every unused column for nodes that go on, the first one for the others: nothing to choose, nothing to learn."""
    first = np.zeros_like(unused)
    first[np.arange(unused.shape[0]), unused.argmax(axis=1)] = True
    return np.where(going[:, None], unused, first)


def _score(curator: Curator, recipe: Recipe, layer: int, allowed: Mask) -> WithinQuality[str]:
    name, columns = f"column of layer {layer + 1}", splittable(curator.domain)
    if recipe.rows_bound is None:
        return NodeAic(name, columns, allowed, published=recipe.published)
    levels = [curator.domain.sizes[column] for column in columns]
    return NodeInformation(name, columns, allowed, levels, recipe.rows_bound)


def _grouped(curator: Curator, recipe: Recipe, costs: ChoiceCosts) -> Scaffold:
    """One draw among ordered splits; layer by layer the tree splits by all columns of a group, the last one by none."""
    columns = splittable(curator.domain)
    structure = Structure.root(curator.domain)
    if recipe.layers < 1:
        return Scaffold(structure, ())
    split = curator.select(GroupedAic("columns of all layers", ordered_splits(columns, recipe.layers + 1)), costs.draw)
    counted = []
    for group in split[:-1]:
        for name in group:
            structure = structure.split([name] * structure.size())
        counted.append(structure.layers)
    return Scaffold(structure, tuple(counted))


def _part(cost: Cost, count: int) -> Cost:
    return Cost(cost.epsilon // count, cost.rho // count) if count else Cost()
