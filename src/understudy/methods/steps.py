"""STEPS: a tree whose upper layers are the columns that matter most, noisy counts on every layer, all fitted together.

Source: Bowen, Liu, Su, "Differentially private data release via statistical election to partition sequentially" (2019,
2020): "STEPS-L".

Steps. (1) Structure of L layers: by a public `sequence` of columns, or drawn for every node by the exponential
mechanism on −AIC (or −BIC, −deviance, the information gain), or as groups of columns by one draw (`choice` grouped).
(2) Optional stopping: by the range of AIC before each layer, or by PrivTree's rule on noisy counts. (3) Noisy counts of
every node of every layer and of the full table below. (4) Weighted least squares over the tree, negatives removed from
the root downwards. (5) Columns raked towards the sums of the signed estimates (`margins`; the papers have no such
step).

Privacy. Neighbours differ by the rows of one unit, at most k of them. A record lies in one node per layer. A layer's
draws act on disjoint records and cost together what one costs (AIC moves by less than 2 for a row, and every AIC in the
same direction: `privacy/trees.py`). A layer's counts move by at most k in L1 and L2. Of the cost ε (or ρ)

    choice_share      r, in equal parts for the q = min(L, p − 1) draws on a path (the last column is forced); one part
                      for a grouped choice; nothing for a sequence
    stopping_share    in equal parts for the q decisions on a path; one part for PrivTree
    the rest          total_share of it for the number of rows, then `allocation` over the min(L, p − 1) layers and the
                      full table; p columns have more than one code

and the parts add up to the cost exactly: rounding goes to the full table. All else is post-processing.

Several copies made anew (`remeasure`): with `shared_structure` one tree is chosen for all of them with the whole share
of choosing, and each copy pays for its own counts; otherwise each copy chooses its own tree with its part.

Differs from the source. The printed budgets spend up to 1.55 ε at L = 2; ours add up to ε. K in AIC is the number of
codes of the schema, occupied or not. Draws use the rate that monotone scores allow (`choice_form` published: half).
Children are the real codes, not padded to a common number, and weights follow from the variances of the real nodes.
`as_published` does what the papers print, is charged what that truly costs, and makes no claim.

As the papers print it
----------------------
Mistakes included (`as_published`). For studies only: a run like this makes no privacy claim.

Budgets. The papers divide a budget ε_p (per synthetic set) as follows; L layers of p columns, share r for choosing.

    2020   choices   r ε_p/(L − 1) each            true number of choices on a path:  q = min(L, p − 1)
           counts    (1 − r) ε_p/L per layer       true number of counted layers:     Λ = min(L, p − 1) + 1
           true cost ε_p · (r q/(L − 1) + (1 − r) Λ/L): 1.55 ε_p at L = 2, r = 0.1; 1.35 ε_p at L = 3; 1.5 and 1.33
           ε_p for a given sequence (r = 0). It is ε_p for L = p and for groups in two layers: what it was made for.
    2019   counts    c_l ε_p with sensitivity 1/2 for the layers and 1 for the full table; c = 1/(L + 1) each, or half
                     for the full table. Every layer has sensitivity 1, so a layer truly costs 2 c_l ε_p: 1.5 ε_p in
                     all with half_leaf. Its columns were chosen on the private rows for nothing, which the curator does
                     not offer: a sequence must be given.

A run is charged what it truly costs: the ε that is asked for is the true cost E, and the printed budget is ε_p =
E/factor (`printed_factor`), so that the paper's ε_p = 1 at L = 2, r = 0.1 is asked for as ε = 1.55. Any ledger stays
right then. The statement still refuses a claim: under the printed budget ε_p, what such a run is for, it is false.

Counts. All columns are padded to b codes, b the largest number of codes; the b-ary rule of Hay et al. (2010) combines a
node of height l (a cell of the full table has l = 1) with its children's sum S, z = ((b^l − b^(l−1)) y + (b^(l−1) − 1)
S)/(b^l − 1), and hands z + (parent − S)/b to each child. The printed weights do not add up to 1; these are the ones
they were taken from. The padded codes are dropped, so children do not add up to their parents. A full table with more
than b cells below a node is not padded: they share what is missing equally. The papers do not say how signed counts
became rows: negatives are set to 0 and the rest scaled.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal, Self

import numpy as np

from understudy.arrays import Bools, Floats
from understudy.domain import Clique, Domain, Partition
from understudy.errors import UsageError
from understudy.methods.method import Method, Plan, PublicFacts, facts_of, raked_cells, seconds_for
from understudy.methods.steps_tree import (
    Choice,
    ChoiceCosts,
    Scaffold,
    Shape,
    Stopping,
    TreeSettings,
    Wanted,
    choose,
    fit_stopped,
    stopped,
    trimmed_shares,
)
from understudy.methods.tree_layers import (
    LEAF_BYTES,
    Allocation,
    Margins,
    TreeCosts,
    TreeFit,
    allocation_weights,
    check_cells,
    fit_tree,
)
from understudy.models.histogram_tree import LEAF_LIMIT, HistogramTree, TreeModel, TreeNegatives, TreeStructure
from understudy.models.tables import Rounding, allowed, clip_rescale
from understudy.options import option
from understudy.privacy.cost import UNIT, Cost, Currency
from understudy.privacy.curator import Curator
from understudy.privacy.trees import MOST_ROWS, information_sensitivity

Printed = Literal["no", "2019", "2020"]


def printed_shares(
    printed: Printed, layers: int, columns: int, *, share: Fraction, allocation: str = "equal"
) -> tuple[Fraction, list[Fraction]]:
    """What one choice, and each counted layer (the full table last), truly costs in units of the printed budget.

    Args:
        printed: the year of the paper.
        layers: L, from 1 to the number of columns.
        columns: p, columns with more than one code.
        share: r, 0 for a given sequence.
        allocation: equal or half_leaf (2019 only).
    """
    upper = min(layers, columns - 1)
    if printed == "2019":
        weights = allocation_weights(upper, allocation)
        return Fraction(0), [2 * weight for weight in weights[:-1]] + [weights[-1]]
    if share and layers < 2:
        raise UsageError("as_published", "the printed cost of a choice, rε/(L − 1), divides by zero at L = 1.")
    choice = share / (layers - 1) if share else Fraction(0)
    return choice, [(1 - share) / layers] * (upper + 1)


def printed_factor(
    printed: Printed, layers: int, columns: int, *, share: Fraction = Fraction(0), allocation: str = "equal"
) -> Fraction:
    """True cost of a run whose printed budget is 1.

    >>> float(printed_factor("2020", 2, 15, share=Fraction(1, 10)))
    1.55
    """
    choice, counts = printed_shares(printed, layers, columns, share=share, allocation=allocation)
    return choice * min(layers, columns - 1) + sum(counts, Fraction(0))


def fit_printed(curator: Curator, structure: TreeStructure, costs: TreeCosts, fit: TreeFit) -> TreeModel:
    """Measures every layer that was paid for and the full table, and combines them by the padded rule."""
    counted = [place for place, cost in enumerate(costs.layers, start=1) if cost.epsilon]
    targets: list[Clique | Partition] = [structure.partition(place) for place in counted]
    targets.append(structure.domain.everything())
    parts = [*(costs.layers[place - 1] for place in counted), costs.leaves]
    answers = curator.measure(targets, sum(parts, Cost()), [part.epsilon for part in parts])
    tree = _only(structure, counted)
    cells = np.arange(tree.sizes[-1], dtype=np.int64)
    possible = allowed(structure.domain, structure.domain.everything(), cells, curator.structural_zeros)
    noisy = [answer.values.astype(np.float64) for answer in answers]
    noisy[-1] = np.where(possible, noisy[-1], 0.0)
    known = None if fit.known_rows is None else float(fit.known_rows)
    widest = max(int(np.bincount(parents).max()) for parents in tree.parents[:-1]) if counted else 0
    padding = max(2, widest, *structure.domain.sizes.values())
    estimates = padded_counts(tree, noisy, padding, known, possible)
    total = max(0.0, float(estimates[0][0]))
    counts = np.zeros(cells.size)
    counts[possible] = clip_rescale(estimates[-1][possible], max(total, 1.0))
    return TreeModel.of(structure, np.where(possible, estimates[-1], 0.0), counts, total, fit.rounding)


def padded_counts(
    tree: HistogramTree,
    noisy: Sequence[Floats],
    padding: int,
    total: float | None = None,
    possible: Bools | None = None,
) -> list[Floats]:
    """Counts of every level by the padded rule, the root first; `noisy` holds the levels below the root.

    A node hands 1/`padding` of what is missing to each child, or equal parts where the last level has more children.
    """
    depth = len(tree.parents)
    sizes = tree.sizes
    combined: list[Floats] = [*(np.zeros(0) for _ in range(depth)), np.asarray(noisy[-1], dtype=np.float64)]
    sums: list[Floats] = [np.zeros(0) for _ in range(depth)]
    for level in reversed(range(depth)):
        below = np.bincount(tree.parents[level], weights=combined[level + 1], minlength=sizes[level])
        sums[level] = below.astype(np.float64)
        power = float(padding) ** (depth - level)  # b^(l − 1): the last level has height 1, the one above 2
        own = (padding - 1.0) * power / (padding * power - 1.0)
        if level:
            combined[level] = own * noisy[level - 1] + (1.0 - own) * sums[level]
    combined[0] = sums[0] if total is None else np.array([total])
    found = [combined[0]]
    for level, parents in enumerate(tree.parents):
        share = np.full(sizes[level], 1.0 / padding)
        taking = np.ones(sizes[level + 1], dtype=bool)
        if level == depth - 1:
            taking = taking if possible is None else possible
            share = 1.0 / np.maximum(np.bincount(parents, weights=taking, minlength=sizes[level]), padding)
        missing = ((found[level] - sums[level]) * share)[parents]
        found.append(combined[level + 1] + np.where(taking, missing, 0.0))
    return found


def _only(structure: TreeStructure, counted: Sequence[int]) -> HistogramTree:
    """The tree of these layers and the full table; layers in between are skipped."""
    parents = list(structure.parent_places())
    levels, above = [], 0
    for place in [*counted, structure.layers + 1]:
        level = structure.leaf_parents() if place > structure.layers else parents[place - 1]
        for skipped in reversed(parents[above : place - 1]):
            level = skipped[level]
        levels.append(level)
        above = place
    return HistogramTree(tuple(levels))


Utility = Literal["aic", "bic", "deviance", "information_gain"]
Form = Literal["tight", "published"]
RowsPolicy = Literal["noisy", "estimated", "public"]

_MOST_LAYERS = 64
_REPEATED_BYTES = 40
_SECONDS_PER_CODE, _SECONDS_PER_SPLIT = 1e-7, 2e-5
_THOUSAND = 1000


@dataclass(frozen=True, slots=True)
class Steps(Method):
    """Method: a tree of important columns, chosen or given, every layer measured, all fitted together."""

    name: ClassVar[str] = "steps"
    summary: ClassVar[str] = (
        "A tree that splits by the columns that matter most, every layer measured, over the full table."
    )
    source: ClassVar[str] = "Bowen, Liu and Su (2019, 2020), STEPS-L, with corrected budgets."
    needs: ClassVar[str] = "A schema whose full table can be written out; better with a public sequence of columns."
    limits: ClassVar[str] = "At most 2²³ cells (option most_cells). Columns in the first layers are the most accurate."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "zcdp")
    can_be_fixed: ClassVar[bool] = True

    layers: int | None = option(
        None, help="layers above the full table; none: the sequence's length, or 2", least=1, most=_MOST_LAYERS
    )
    sequence: str = option(
        "", help="public order of columns, separated by commas; *: the schema's order; empty: chosen privately"
    )
    choice: Choice = option("node", help="choose one column per node, or (grouped) the columns of all layers at once")
    utility: Utility = option("aic", help="score of a column: aic, bic, deviance or information_gain")
    choice_share: float = option(0.1, help="share of the budget for choosing columns", share=True)
    choice_form: Form = option("tight", help="rate of the exponential mechanism: tight, or the published half of it")
    rows_bound: int | None = option(None, help="public upper bound of the number of rows (for information_gain)")
    allocation: Allocation = option(
        "half_leaf", help="budget per layer: equal, half_leaf (half for the full table) or custom"
    )
    shares: str = option("", help="with custom: shares of the layers and the full table, e.g. 0.2,0.3,0.5")
    stopping: Stopping = option(
        "none", help="rule that stops splitting: none, range (of AIC) or privtree (noisy counts)"
    )
    stopping_share: float = option(0.05, help="share of the budget for stopping", share=True)
    tolerance: float = option(
        0.1, help="with range: stop where AIC differs by less than this share", share=True, also=(0,)
    )
    theta: int = option(0, help="with privtree: least number of rows of a node that is split", least=0, most=MOST_ROWS)
    shared_structure: bool = option(True, help="whether all remeasured copies share one tree")
    n_policy: RowsPolicy = option(
        "noisy", help="number of rows: measured (noisy), summed up (estimated), or known_rows (public)"
    )
    known_rows: int | None = option(None, help="publicly known number of rows, with n_policy=public", least=0)
    total_share: float = option(0.01, help="share of the counts' budget for the number of rows", share=True)
    negatives: TreeNegatives = option("clip_rescale", help="how negative counts are removed: clip_rescale or norm_sub")
    margins: Margins = option(
        "raked", help="one-way tables: summed as in the papers, or raked towards their signed sums"
    )
    rounding: Rounding = option(
        "multinomial", help="how rows are sampled: independent draws, or controlled rounding of the counts"
    )
    most_cells: int = option(
        2**23, help=f"largest full table (about {LEAF_BYTES} bytes a cell)", least=1, most=LEAF_LIMIT
    )
    as_published: Printed = option(
        "no", help="reproduce a paper's budget split (give its year); no privacy claim is made"
    )

    def _check_together(self) -> None:
        _ = self._wanted  # checks what shapes the tree
        if self.utility == "information_gain":
            if self.rows_bound is None:
                rule = "has no bound on how far a row moves it unless the number of rows is bounded."
                raise UsageError("utility information_gain", rule, "Set rows_bound to a publicly known bound.")
            information_sensitivity([2], self.rows_bound)
            if self.choice == "grouped":
                raise UsageError("choice=grouped", "is scored by AIC, BIC or deviance.", "Choose another utility.")
        if (self.n_policy == "public") != (self.known_rows is not None):
            raise UsageError("known_rows", "goes with n_policy=public, and n_policy=public needs it.")
        if self.allocation != "custom":
            allocation_weights(1, self.allocation, self.shares)
        if self.as_published == "no":
            return
        if self.stopping != "none" or self.allocation == "custom" or self.utility != "aic":
            raise UsageError("as_published", "goes with AIC, an equal or half_leaf allocation and no stopping rule.")
        if self.as_published == "2019" and not self.sequence:
            rule = "chose its columns on the private rows at no cost, which is not private, so it is not offered here."
            raise UsageError("as_published 2019", rule, "Give a sequence.")
        if self.choice == "grouped" and self.layers not in (None, 2):
            raise UsageError("as_published", "takes choice=grouped in two layers only.")

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """Choices, then counts; refuses a full table that is too large and a choice among too many."""
        structure = self.structure_cost(facts, cost)
        chosen = self.plan_structure(facts, structure)
        counted = self.plan_with(facts, Cost(cost.epsilon, cost.rho) - chosen.cost)
        return replace(
            counted,
            granted=cost,
            cost=chosen.cost + counted.cost,
            steps=(*chosen.steps, *counted.steps),
            schedule=structure,
            bytes=max(chosen.bytes, counted.bytes),
            seconds=chosen.seconds + counted.seconds,
            notes=(*chosen.notes, *counted.notes),
        )

    def run(self, curator: Curator, plan: Plan) -> TreeModel:
        """Chooses the tree, measures its layers with all that is left and fits the model."""
        cost, before = plan.granted, curator.left
        structure = self.choose_structure(curator, plan.schedule)
        return self.run_with(curator, Cost(cost.epsilon, cost.rho) - (before - curator.left), structure)

    @property
    def structured(self) -> Self | None:
        """Copies made anew have one tree in common, unless told otherwise."""
        return self if self.shared_structure and self.as_published == "no" else None

    def structure_cost(self, facts: PublicFacts, cost: Cost) -> Cost:
        """What choosing takes of this cost."""
        return cost.share(self._structure_share(facts))

    def _structure_share(self, facts: PublicFacts) -> Fraction:
        shape = self._shape(facts.domain)
        if self.as_published != "no":
            draw, counts = self._printed(shape)
            return draw * shape.draws / (draw * shape.draws + sum(counts, Fraction(0)))
        share = Fraction(self.choice_share) if shape.draws else Fraction(0)
        return share + (Fraction(self.stopping_share) if shape.stops else Fraction(0))

    def plan_structure(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The draws and decisions, at `cost` in all."""
        shape = self._shape(facts.domain)
        check_cells(facts, self.most_cells, f"method {self.name}")
        if self.utility == "information_gain" and self.rows_bound is not None and shape.draws:
            information_sensitivity([facts.domain.sizes[name] for name in shape.columns], self.rows_bound)
        held = shape.choice_bytes(f"method {self.name}")
        steps = shape.choice_steps(facts, self._choice_costs(shape, cost))
        spent = sum((step.cost for step in steps), Cost())
        seconds = _SECONDS_PER_SPLIT * shape.splits + _SECONDS_PER_CODE * shape.codes_at_nodes
        return Plan(self, cost, spent, steps, 0, held, seconds, self._notes(shape))

    def plan_with(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The counts of a tree that was chosen before, at `cost` in all."""
        shape = self._shape(facts.domain)
        cells = check_cells(facts, self.most_cells, f"method {self.name}")
        if self.allocation == "custom":
            allocation_weights(shape.upper, self.allocation, self.shares)
        if self.as_published != "no" and not cost.epsilon:
            raise UsageError("as_published", "has Laplace noise and is paid in ε alone.", "Drop delta=.")
        costs, sizes = self._tree_costs(shape, cost), shape.layer_sizes
        return Plan(
            self,
            cost,
            costs.spent,
            costs.steps(sizes, cells, facts.unit_rows),
            cells + sum(sizes),
            cells * (LEAF_BYTES + _REPEATED_BYTES * shape.stops),
            seconds_for(facts, raked_cells(facts, cells, self.margins)),
            fixed=not shape.draws and not shape.stops,
            refused=self._refused(facts, cost),
        )

    def choose_structure(self, curator: Curator, cost: Cost) -> Scaffold:
        """The tree, at `cost` at most; the counts of all copies can be made for it."""
        check_cells(facts_of(curator), self.most_cells, f"method {self.name}")
        shape = self._shape(curator.domain)
        settings = TreeSettings(
            shape.upper,
            shape.sequence,
            self.choice,
            self.rows_bound if self.utility == "information_gain" else None,
            "aic" if self.utility == "information_gain" else self.utility,
            self.choice_form == "published" or self.as_published != "no",
            self.stopping,
            round(_THOUSAND * self.tolerance),
            self.theta,
        )
        return choose(curator, settings, self._choice_costs(shape, cost))

    def run_with(self, curator: Curator, cost: Cost, structure: Scaffold) -> TreeModel:
        """Measures the layers of a tree that was chosen before and fits the model."""
        tree = structure.structure
        costs = self._tree_costs(self._shape(curator.domain), cost)
        by_layer = [Cost()] * tree.layers
        for layer, part in zip(structure.counted, costs.layers, strict=True):
            by_layer[layer - 1] = part
        costs = replace(costs, layers=tuple(by_layer))
        fit = TreeFit(self.negatives, self.rounding, self.known_rows, self.margins)
        if self.as_published != "no":
            return fit_printed(curator, tree, costs, fit)
        if tree.layers and stopped(tree, tree.layers).any():
            return fit_stopped(curator, tree, costs, fit)
        return fit_tree(curator, tree, costs, fit)

    @property
    def _wanted(self) -> Wanted:
        return Wanted(self.layers, self.sequence, self.choice, self.stopping)

    def _shape(self, domain: Domain) -> Shape:
        return Shape.of(self._wanted, domain)

    def _choice_costs(self, shape: Shape, cost: Cost) -> ChoiceCosts:
        draw = Fraction(self.choice_share)
        part = draw / (draw + Fraction(self.stopping_share))
        return ChoiceCosts.of(cost, shape.draws, shape.stops, draw_share=part, stopping=self.stopping)

    def _tree_costs(self, shape: Shape, cost: Cost) -> TreeCosts:
        if self.as_published != "no":
            # `cost` is what the choices left; its parts stand in the proportions of the printed budget.
            _, counts = self._printed(shape)
            layers = tuple(cost.share(part / sum(counts, Fraction(0))) for part in counts[:-1])
            return TreeCosts(Cost(), layers, Cost(cost.epsilon, cost.rho) - sum(layers, Cost()))
        shares = trimmed_shares(self.shares, shape.upper) if self.allocation == "custom" else ""
        total = self.total_share if self.n_policy == "noisy" else 0.0
        return TreeCosts.shared(cost, shape.upper, self.allocation, shares=shares, total_share=total)

    def _printed(self, shape: Shape) -> tuple[Fraction, list[Fraction]]:
        """What a draw and each counted layer cost, in units of the printed budget."""
        layers, columns = self._printed_size(shape)
        share = Fraction(self.choice_share) if shape.draws else Fraction(0)
        return printed_shares(self.as_published, layers, columns, share=share, allocation=self.allocation)

    def _printed_size(self, shape: Shape) -> tuple[int, int]:
        """L and p as the printed formulas mean them: groups in two layers are a full decomposition."""
        columns = max(len(shape.columns), 1) if self.choice == "node" else shape.upper + 1
        return min(self._wanted.depth, columns), columns

    def _refused(self, facts: PublicFacts, cost: Cost) -> str:
        if self.as_published == "no":
            return ""
        shape = self._shape(facts.domain)
        layers, columns = self._printed_size(shape)
        share = Fraction(self.choice_share) if shape.draws else Fraction(0)
        factor = printed_factor(self.as_published, layers, columns, share=share, allocation=self.allocation)
        spent = Fraction(cost.epsilon, UNIT) / (1 - self._structure_share(facts))
        return (
            f"NO CLAIM: steps as published in {self.as_published}. Each measured copy spends ε = {float(spent):.6g}, "
            f"the printed budget says ε = {float(spent / factor):.6g}; children do not add up to their parents"
        )

    def _notes(self, shape: Shape) -> tuple[str, ...]:
        notes = [f"{shape.upper} layers and the full table below them are measured."]
        if shape.sequence:
            notes.append(f"Columns in order: {', '.join(shape.sequence[: shape.upper])}.")
        if self._wanted.depth > shape.upper + 1:
            notes.append(f"{self._wanted.depth} layers were asked for; the columns allow no more.")
        return tuple(notes)
