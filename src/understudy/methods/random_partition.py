"""Random partition: a tree whose layers split by columns drawn at random, with the full table below it.

Source: the modified universal histogram that the STEPS papers compare with ("UH-L", "Random Partition-2"): L layers,
each split by a column drawn without looking at the data, then the full cross-tabulation of the rest; every layer gets
noise, and all layers are fitted together.

Privacy. The columns are drawn from `structure_seed`, an option, so the tree is public and the choice is free.
Neighbours differ by the rows of one unit, at most k of them. A record lies in one node per layer and in one cell of the
full table, so each layer moves by at most k in L1 and in L2: discrete Laplace noise of scale k/ε_l costs ε_l, discrete
Gaussian noise of σ² = k²/(2ρ_l) costs ρ_l. The costs of the L layers, of the full table and (with `n_policy` "noisy")
of the number of rows add up to the whole. Queries and costs are fixed before any answer, so with Gaussian noise and
one row per unit the exact distributions are summed. All else is post-processing.

Differs from the source. Children are the real codes, never padded to a common branching; weights follow from the
variances of the real nodes (its printed weights do not add up to 1); L layers and a full table share the cost in
L + 1 parts (the source divides by L and so spends more than it says). Splitting by all columns but one is the most
there is: the full table is the last layer then. Copies made by `remeasure` share the seed and so the tree.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from understudy.domain import Domain
from understudy.errors import UsageError
from understudy.methods.method import Method, Plan, PublicFacts, raked_cells, seconds_for
from understudy.methods.tree_layers import (
    LEAF_BYTES,
    Allocation,
    Margins,
    TotalPolicy,
    TreeCosts,
    TreeFit,
    allocation_weights,
    check_cells,
    fit_tree,
)
from understudy.models.histogram_tree import LEAF_LIMIT, TreeModel, TreeNegatives, TreeStructure
from understudy.models.tables import Rounding
from understudy.options import option
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import Curator

_MOST_LAYERS = 64
_LARGEST_SEED = 2**63 - 1
DrawnBy = Literal["layer", "node"]


@dataclass(frozen=True, slots=True)
class RandomPartition(Method):
    """Method: a public random tree, every layer measured, all fitted together."""

    name: ClassVar[str] = "random_partition"
    summary: ClassVar[str] = "A tree that splits by columns drawn at random, every layer measured, over the full table."
    source: ClassVar[str] = "The modified universal histogram of the STEPS papers (2019, 2020)."
    needs: ClassVar[str] = "A schema whose full table can be written out. A baseline for trees with chosen columns."
    limits: ClassVar[str] = "At most 2²³ cells (option most_cells). Columns in the first layers are the most accurate."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "zcdp")
    can_be_fixed: ClassVar[bool] = True

    layers: int = option(
        2, help="layers above the full table (at most one fewer than columns)", least=0, most=_MOST_LAYERS
    )
    drawn_by: DrawnBy = option("layer", help="one column per layer, or one per node")
    structure_seed: int = option(0, help="public seed with which the columns are drawn", least=0, most=_LARGEST_SEED)
    allocation: Allocation = option(
        "equal", help="budget per layer: equal, half_leaf (half for the full table) or custom"
    )
    shares: str = option("", help="with custom: shares of the layers and the full table, e.g. 0.2,0.3,0.5")
    n_policy: TotalPolicy = option(
        "noisy", help="number of rows: measured with total_share (noisy) or from the sums (estimated)"
    )
    total_share: float = option(0.01, help="share of the budget for the number of rows", share=True)
    negatives: TreeNegatives = option("clip_rescale", help="how negative counts are removed: clip_rescale or norm_sub")
    margins: Margins = option(
        "summed", help="one-way tables: summed as in the papers, or raked towards their signed sums"
    )
    rounding: Rounding = option(
        "multinomial", help="how rows are sampled: independent draws, or controlled rounding of the counts"
    )
    most_cells: int = option(
        2**23, help=f"largest full table (about {LEAF_BYTES} bytes a cell)", least=1, most=LEAF_LIMIT
    )

    def _check_together(self) -> None:
        allocation_weights(self.layers, self.allocation, self.shares)

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """One step per layer and one for the full table; refuses a full table that is too large."""
        cells = check_cells(facts, self.most_cells, f"method {self.name}")
        structure, costs = self._structure(facts.domain, cost)
        sizes = [structure.size(layer) for layer in range(1, structure.layers + 1)]
        return Plan(
            self,
            cost,
            costs.spent,
            costs.steps(sizes, cells, facts.unit_rows),
            cells + sum(sizes),
            cells * LEAF_BYTES,
            seconds_for(facts, raked_cells(facts, cells, self.margins)),
            self._notes(structure),
            schedule=(structure, costs),
            fixed=True,
        )

    def run(self, curator: Curator, plan: Plan) -> TreeModel:
        """Measures every layer of the tree and fits the model."""
        structure, costs = plan.schedule
        return fit_tree(curator, structure, costs, TreeFit(self.negatives, self.rounding, margins=self.margins))

    def _structure(self, domain: Domain, cost: Cost) -> tuple[TreeStructure, TreeCosts]:
        structure = random_structure(domain, self.layers, self.structure_seed, self.drawn_by)
        if structure.layers < self.layers and self.allocation == "custom":
            raise UsageError(
                "layers", f"{self.layers} are asked for, but the columns allow {structure.layers}.", "Set fewer layers."
            )
        total_share = self.total_share if self.n_policy == "noisy" else 0.0
        return structure, TreeCosts.shared(
            cost, structure.layers, self.allocation, shares=self.shares, total_share=total_share
        )

    def _notes(self, structure: TreeStructure) -> tuple[str, ...]:
        notes = []
        for layer in range(1, structure.layers + 1):
            names = dict.fromkeys(node.column for node in structure.nodes(layer) if node.column is not None)
            notes.append(f"Layer {layer} splits by {', '.join(names)}: {structure.size(layer):,} nodes.")
        if structure.layers < self.layers:
            notes.append(f"{structure.layers} layers are all that the columns allow.")
        return tuple(notes)


def random_structure(domain: Domain, layers: int, seed: int, drawn_by: str) -> TreeStructure:
    """A tree of at most that many layers; the seed and the domain decide it.

    Columns with one code are left out, and one column at least stays for the full table.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    structure = TreeStructure.root(domain)
    live = np.array([size > 1 for size in domain.sizes.values()])
    names = np.array(domain.columns, dtype=object)
    for _ in range(min(layers, max(int(live.sum()) - 1, 0))):
        # A column is open at a node while more than one of its codes is left. The largest key wins.
        keys = rng.random((structure.size() if drawn_by == "node" else 1, names.size))
        chosen = np.where(structure.widths() > 1, keys, -1.0).argmax(axis=1)
        structure = structure.split(names[chosen].tolist())
    return structure
