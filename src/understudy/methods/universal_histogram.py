"""Universal histogram: a hierarchy of ranges over the full table, every level measured, for accurate range counts.

Source: Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private histograms through consistency"
(2010): one ordered column, a b-ary tree of ranges of its codes, noise on every node of every level, least squares.

One column. Its codes are cut into at most b nearly equal ranges, those again, down to single codes. Where the paper
pads the codes to a power of b, branching is unequal here: padding that is known to be empty changes no estimate.

Several columns. The full table is cut as a k-d tree is: the columns one after the other, a column with more than b
codes in several steps of ranges, and neighbouring steps that together have a fan-out of at most b make up one level.
So every node is a box (one range of codes per column). We do not cross the hierarchies of all columns with each other:
with d columns that measures every record in a product of d depths of nodes, so each node gets a vanishing part of the
budget as soon as there are more than a few columns. The order matters: columns that come first are counted with the
fewest nodes; `first` names them, the others follow in the order of the schema. All columns are part of the full table;
if it is too large the plan refuses, and nothing is modelled as independent behind the user's back.

Branching. Given, or chosen from public numbers: the variance of the estimate of a range of cells, averaged over all
ranges of a line of cells (those of a box follow each other in the order of the cuts), is computed for the fan-outs that
each candidate leads to, all levels at equal cost, and the best is taken (`tree_layers.py`). Budget per level: `equal`,
or `optimal` for that average.

Privacy. The tree follows from the domain and the options, so it is public. Neighbours differ by the rows of one unit,
at most k of them. Each level holds every record once, so it moves by at most k in L1 and in L2: discrete Laplace noise
of scale k/ε_l costs ε_l, discrete Gaussian noise of σ² = k²/(2ρ_l) costs ρ_l. The costs of the levels and (with
`n_policy` "noisy") of the number of rows add up. Queries and costs are fixed before any answer, so with Gaussian
noise and one row per unit the exact distributions are summed. All else is post-processing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from understudy.domain import Domain
from understudy.errors import UsageError
from understudy.methods.method import Method, Plan, PublicFacts, seconds_for
from understudy.methods.tree_layers import (
    LEAF_BYTES,
    TotalPolicy,
    TreeCosts,
    TreeFit,
    average_variance,
    best_shares,
    check_cells,
    fit_tree,
    noise_variance,
    root_above,
    split_exactly,
)
from understudy.models.histogram_tree import LEAF_LIMIT, TreeModel, TreeNegatives, TreeStructure
from understudy.models.tables import Rounding
from understudy.options import option
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import Curator

LevelBudget = Literal["equal", "optimal"]

_MOST_TRIED = 64


class RangeCut(NamedTuple):
    """One step of the tree: every node is cut along a column into at most `parts` ranges."""

    column: str
    parts: int


@dataclass(frozen=True, slots=True)
class UniversalHistogram(Method):
    """Method: a hierarchy of ranges (boxes, with several columns), every level measured, all fitted together."""

    name: ClassVar[str] = "universal_histogram"
    summary: ClassVar[str] = "A hierarchy of ranges over the full table, every level measured: accurate range counts."
    source: ClassVar[str] = "Hay, Rastogi, Miklau and Suciu (2010); branching by the average error of all ranges."
    needs: ClassVar[str] = "A schema whose full table can be written out; made for one ordered column with many codes."
    limits: ClassVar[str] = (
        "At most 2²³ cells (option most_cells). With many columns the first ones are the most accurate."
    )
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "zcdp")
    can_be_fixed: ClassVar[bool] = True

    branching: int | None = option(
        None, help="maximum number of children of a node; none: chosen", least=2, most=LEAF_LIMIT
    )
    first: str = option("", help="columns to split by first, separated by commas")
    allocation: LevelBudget = option("equal", help="budget per level: equal, or optimal for range queries")
    n_policy: TotalPolicy = option(
        "noisy", help="number of rows: measured with total_share (noisy) or from the sums (estimated)"
    )
    total_share: float = option(0.01, help="share of the budget for the number of rows", share=True)
    negatives: TreeNegatives = option("clip_rescale", help="how negative counts are removed: clip_rescale or norm_sub")
    rounding: Rounding = option(
        "multinomial", help="how rows are sampled: independent draws, or controlled rounding of the counts"
    )
    most_cells: int = option(
        2**23, help=f"largest full table (about {LEAF_BYTES} bytes a cell)", least=1, most=LEAF_LIMIT
    )

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """One step per level; refuses a full table that is too large."""
        cells = check_cells(facts, self.most_cells, f"method {self.name}")
        levels = self._levels(facts.domain, cost)
        costs = self._costs(levels, cost)
        sizes = _sizes(facts.domain, levels)
        return Plan(
            self,
            cost,
            costs.spent,
            costs.steps(sizes, cells, facts.unit_rows),
            cells + sum(sizes),
            cells * LEAF_BYTES + sum(sizes[-1:]) * len(facts.domain.columns) * 16,
            seconds_for(facts, cells + sum(sizes)),
            _notes(levels),
            schedule=(levels, costs),
            fixed=True,
        )

    def run(self, curator: Curator, plan: Plan) -> TreeModel:
        """Measures every level and fits the model."""
        levels, costs = plan.schedule
        structure = TreeStructure.root(curator.domain)
        for cut in (cut for level in levels[:-1] for cut in level):
            structure = structure.refine([cut.column] * structure.size(), parts=cut.parts)
        return fit_tree(curator, structure, costs, TreeFit(self.negatives, self.rounding))

    def _levels(self, domain: Domain, cost: Cost) -> list[list[RangeCut]]:
        wanted = [name.strip() for name in self.first.split(",") if name.strip()]
        if len(set(wanted)) != len(wanted):
            raise UsageError("first", "must name each column once.")
        domain.clique(wanted)  # raises for an unknown column, with the closest known one
        order = [*wanted, *(name for name in domain.columns if name not in wanted)]
        branching = self.branching
        if branching is None:
            branching = best_branching(domain, order, zcdp=bool(cost.rho))
        return cut_levels(domain, order, branching)

    def _costs(self, levels: list[list[RangeCut]], cost: Cost) -> TreeCosts:
        """Costs of the steps of the tree: within a level only the last step is measured."""
        root = cost.share(self.total_share if self.n_policy == "noisy" else 0.0)
        rest = Cost(cost.epsilon - root.epsilon, cost.rho - root.rho)
        shares = [1.0] * len(levels)
        if self.allocation == "optimal":
            shares = best_shares(_fanouts(levels), zcdp=bool(cost.rho))
        parts, leaves = split_exactly(rest, shares)
        layers: list[Cost] = []
        for level, part in zip(levels[:-1], parts, strict=True):
            layers += [Cost()] * (len(level) - 1) + [part]
        return TreeCosts(root, tuple(layers), leaves)


def cut_levels(domain: Domain, order: Sequence[str], branching: int) -> list[list[RangeCut]]:
    """The cuts of each level, the full table's last: no level has a fan-out above `branching`, where that can be.

    >>> domain = Domain.of({"sex": 2, "member": 2, "age": 100})
    >>> [[tuple(cut) for cut in level] for level in cut_levels(domain, domain.columns, 10)]
    [[('sex', 2), ('member', 2)], [('age', 10)], [('age', 10)]]
    """
    levels: list[list[RangeCut]] = []
    parts_left = 0
    for name in order:
        size = domain.sizes[name]
        depth = 1
        while branching**depth < size:
            depth += 1
        left = size
        for step in range(depth, 0, -1):
            parts = math.ceil(left ** (1.0 / step) - 1e-9)
            left = -(-left // parts)
            if parts == 1:
                continue
            if parts > parts_left:
                levels.append([])
                parts_left = max(branching, parts)
            levels[-1].append(RangeCut(name, parts))
            parts_left //= parts
    return levels or [[]]


def best_branching(domain: Domain, order: Sequence[str], *, zcdp: bool) -> int:
    """The branching whose levels answer ranges best on average, with the same share of the budget for each."""
    cells = domain.cells(domain.columns)
    candidates = set(range(2, _MOST_TRIED + 1))
    for size in {cells, *domain.sizes.values()}:
        candidates |= {root_above(size, depth) for depth in range(1, size.bit_length() + 1)}

    def error(branching: int) -> float:
        fanouts = _fanouts(cut_levels(domain, order, branching))
        noise = noise_variance(1.0 / len(fanouts), zcdp=zcdp)
        return average_variance(fanouts, [noise] * len(fanouts))

    return min(sorted(candidate for candidate in candidates if 2 <= candidate <= max(cells, 2)), key=error)


def _fanouts(levels: list[list[RangeCut]]) -> list[int]:
    return [math.prod(cut.parts for cut in level) for level in levels]


def _sizes(domain: Domain, levels: list[list[RangeCut]]) -> list[int]:
    """Number of nodes after each cut but those of the last level."""
    ranges = {name: [size] for name, size in domain.sizes.items()}
    sizes = []
    for cut in (cut for level in levels[:-1] for cut in level):
        widths = ranges[cut.column]
        ranges[cut.column] = [
            (piece + 1) * width // pieces - piece * width // pieces
            for width in widths
            for pieces in [min(width, cut.parts)]
            for piece in range(pieces)
        ]
        sizes.append(math.prod(map(len, ranges.values())))
    return sizes


def _notes(levels: list[list[RangeCut]]) -> tuple[str, ...]:
    notes = []
    for number, level in enumerate(levels, start=1):
        cuts = ", ".join(f"{cut.column} into {cut.parts}" for cut in level) or "nothing"
        notes.append(f"Level {number} cuts {cuts}.")
    return tuple(notes)
