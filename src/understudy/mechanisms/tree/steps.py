"""STEPS: a tree whose upper layers are the columns that matter most, noisy counts on every layer, all fitted together.

Source: Bowen, Liu, Su, "Differentially private data release via statistical election to partition sequentially" (2019,
2020): "STEPS-L".

Steps. (1) Structure of L layers: by a public `sequence` of columns, or drawn for every node by the exponential
mechanism on −AIC (or the information gain), or as groups of columns by one draw (`choice` grouped). (2) Optional
stopping: by the range of AIC before each layer, or by PrivTree's rule on noisy counts. (3) Noisy counts of every node
of every layer and of the full table below. (4) Weighted least squares over the tree, negatives removed from the root
downwards. (5) Columns raked towards the sums of the signed estimates (`margins`; the papers have no such step).

Privacy. Neighbours differ by the rows of one unit, at most k of them. A record lies in one node per layer. A layer's
draws act on disjoint records and cost together what one costs (AIC moves by less than 2 for a row, and every AIC in the
same direction: `privacy/questions/node_aic.py`). A layer's counts move by at most k in L1 and L2. Of the cost ε (or ρ)

    choice_share      r, in equal parts for the q = min(L, p − 1) draws on a path (the last column is forced); one part
                      for a grouped choice; nothing for a sequence
    stopping_share    in equal parts for the q decisions on a path; one part for PrivTree
    the rest          total_share of it for the number of rows, then `allocation` over the min(L, p − 1) layers and the
                      full table; p columns have more than one code

and the parts add up to the cost exactly: rounding goes to the full table. All else is post-processing.

Several copies made anew (`resanitize`): with `shared_structure` one tree is chosen for all of them with the whole share
of choosing, and each copy pays for its own counts; otherwise each copy chooses its own tree with its part.

Differs from the source. The printed budgets spend up to 1.55 ε at L = 2; ours add up to ε. K in AIC is the number of
codes of the schema, occupied or not. Draws use the rate that monotone scores allow (`choice_form` published: half).
Children are the real codes, not padded to a common number, and weights follow from the variances of the real nodes.
`as_published` does what the papers print, is charged what that truly costs, and makes no claim (`as_printed.py`).
"""

from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, Literal, get_args

from understudy.errors import UsageError
from understudy.marginals.domain import Domain
from understudy.mechanisms.forecast import facts_of, raked_cells, seconds_for
from understudy.mechanisms.mechanism import Plan, PublicFacts
from understudy.mechanisms.options.checks import check_choice, check_share, check_whole
from understudy.mechanisms.tree.as_printed import Printed, fit_printed, printed_factor, printed_shares
from understudy.mechanisms.tree.choosing import Choice, ChoiceCosts, Recipe, Scaffold, Stopping, choose
from understudy.mechanisms.tree.layers import (
    LEAF_BYTES,
    Allocation,
    Margins,
    TreeCosts,
    TreeFit,
    allocation_weights,
    check_cells,
    fit_tree,
)
from understudy.mechanisms.tree.steps_shape import Shape, Wanted, trimmed_shares
from understudy.mechanisms.tree.stopped_paths import fit_stopped, stopped
from understudy.models.draw import Rounding
from understudy.models.tree.projection import TreeNegatives
from understudy.models.tree.tree_model import LEAF_LIMIT, TreeModel
from understudy.privacy.cost import UNIT, Cost, Currency
from understudy.privacy.curator import Curator
from understudy.privacy.questions.node_information import MOST_ROWS, information_sensitivity

__all__ = ["Steps"]

Utility = Literal["aic", "information_gain"]
Form = Literal["tight", "published"]
RowsPolicy = Literal["noisy", "estimated", "public"]

_MOST_LAYERS = 64
_REPEATED_BYTES = 40
_SECONDS_PER_CODE, _SECONDS_PER_SPLIT = 1e-7, 2e-5
_THOUSAND = 1000


@dataclass(frozen=True, slots=True)
class Steps:
    """Recipe: a tree of important columns, chosen or given, every layer measured, all fitted together."""

    name: ClassVar[str] = "steps"
    summary: ClassVar[str] = (
        "A tree that splits by the columns that matter most, every layer measured, over the full table."
    )
    source: ClassVar[str] = "Bowen, Liu and Su (2019, 2020), STEPS-L, with corrected budgets."
    needs: ClassVar[str] = "A schema whose full table can be written out; better with a public sequence of columns."
    limits: ClassVar[str] = "At most 2²³ cells (option most_cells). Columns in the first layers come out best."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "concentrated")

    layers: int | None = field(
        default=None, metadata={"help": "layers above the full table; none: the sequence's length, or 2"}
    )
    sequence: str = field(
        default="",
        metadata={"help": "public order of columns, comma between names; * the schema's order; empty: chosen"},
    )
    choice: Choice = field(
        default="node", metadata={"help": "one column per node, or grouped: columns in layers at once"}
    )
    utility: Utility = field(default="aic", metadata={"help": "score of a column: aic, or information_gain"})
    choice_share: float = field(default=0.1, metadata={"help": "share of the budget for choosing columns"})
    choice_form: Form = field(default="tight", metadata={"help": "rate of a draw: tight, or the published half of it"})
    rows_bound: int | None = field(
        default=None, metadata={"help": "public bound of the number of rows (information_gain)"}
    )
    allocation: Allocation = field(
        default="half_leaf", metadata={"help": "budget per layer: equal, half_leaf (half for the full table) or custom"}
    )
    shares: str = field(default="", metadata={"help": "with custom: shares of the layers and the table, 0.2,0.3,0.5"})
    stopping: Stopping = field(default="none", metadata={"help": "none, range (of AIC) or privtree (noisy counts)"})
    stopping_share: float = field(default=0.05, metadata={"help": "share of the budget for stopping"})
    tolerance: float = field(default=0.1, metadata={"help": "range: stop where AIC differs by less than this share"})
    theta: int = field(default=0, metadata={"help": "privtree: rows above which a node is worth splitting"})
    shared_structure: bool = field(default=True, metadata={"help": "one tree for all copies made anew"})
    n_policy: RowsPolicy = field(
        default="noisy",
        metadata={"help": "number of rows: bought (noisy), summed up (estimated), or known_rows (public)"},
    )
    known_rows: int | None = field(
        default=None, metadata={"help": "publicly known number of rows, with n_policy=public"}
    )
    total_share: float = field(default=0.01, metadata={"help": "share of the counts' budget for the number of rows"})
    negatives: TreeNegatives = field(
        default="clip_rescale", metadata={"help": "how negative counts are removed: clip_rescale or norm_sub"}
    )
    margins: Margins = field(
        default="raked", metadata={"help": "columns: summed as in the papers, or raked towards their signed sums"}
    )
    rounding: Rounding = field(
        default="multinomial", metadata={"help": "rows: independent draws, or controlled rounding of the counts"}
    )
    most_cells: int = field(default=2**23, metadata={"help": f"largest full table (about {LEAF_BYTES} bytes a cell)"})
    as_published: Printed = field(default="no", metadata={"help": "no, or the year of a paper: its budgets; no claim"})

    def __post_init__(self) -> None:
        if self.layers is not None:
            check_whole("layers", self.layers, 1, _MOST_LAYERS)
        if self.tolerance != 0:
            check_share("tolerance", self.tolerance)
        for name in ("choice_share", "stopping_share", "total_share"):
            check_share(name, getattr(self, name))
        check_whole("theta", self.theta, 0, MOST_ROWS)
        check_whole("most_cells", self.most_cells, 1, LEAF_LIMIT)
        for name, known in (
            ("choice", Choice),
            ("utility", Utility),
            ("choice_form", Form),
            ("allocation", Allocation),
            ("stopping", Stopping),
            ("n_policy", RowsPolicy),
            ("as_published", Printed),
        ):
            check_choice(name, getattr(self, name), get_args(known))
        if type(self.sequence) is not str or type(self.shares) is not str:
            raise UsageError("sequence and shares", "must be text.")
        TreeFit(self.negatives, self.rounding, self.known_rows, self.margins)
        _ = self._wanted
        _check_together(self)

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """Choices, then counts; refuses a full table that is too large and a choice among too many."""
        chosen = self.plan_structure(facts, cost.share(self.structure_share(facts)))
        counted = self.plan_with(facts, Cost(cost.epsilon, cost.rho) - chosen.cost)
        return replace(
            counted,
            cost=chosen.cost + counted.cost,
            steps=(*chosen.steps, *counted.steps),
            bytes=max(chosen.bytes, counted.bytes),
            seconds=chosen.seconds + counted.seconds,
            notes=(*chosen.notes, *counted.notes),
        )

    def run(self, curator: Curator, cost: Cost) -> TreeModel:
        """Chooses the tree, measures its layers and fits the model."""
        before = curator.left
        structure = self.choose_structure(curator, cost.share(self.structure_share(facts_of(curator))))
        return self.run_with(curator, Cost(cost.epsilon, cost.rho) - (before - curator.left), structure)

    @property
    def shares_structure(self) -> bool:
        """Whether copies made anew have one tree in common."""
        return self.shared_structure and self.as_published == "no"

    def structure_share(self, facts: PublicFacts) -> Fraction:
        """The share of the cost that choosing takes."""
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
        return Plan(self.name, spent, steps, 0, held, seconds, self._notes(shape), asdict(self))

    def plan_with(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The counts of a tree that was chosen before, at `cost` in all."""
        shape = self._shape(facts.domain)
        cells = check_cells(facts, self.most_cells, f"method {self.name}")
        if self.allocation == "custom":
            allocation_weights(shape.upper, self.allocation, self.shares)
        if self.as_published != "no" and not cost.epsilon:
            raise UsageError("as_published", "has Laplace noise and is paid in ε alone.", "Drop --delta.")
        costs, sizes = self._tree_costs(shape, cost), shape.layer_sizes
        return Plan(
            self.name,
            costs.spent,
            costs.steps(sizes, cells, facts.unit_rows),
            cells + sum(sizes),
            cells * (LEAF_BYTES + _REPEATED_BYTES * shape.stops),
            seconds_for(facts, raked_cells(facts, cells, self.margins)),
            (),
            asdict(self),
            fixed=not shape.draws and not shape.stops,
            refused=self._refused(facts, cost),
        )

    def choose_structure(self, curator: Curator, cost: Cost) -> Scaffold:
        """The tree, at `cost` at most; the counts of all copies can be made for it."""
        check_cells(facts_of(curator), self.most_cells, f"method {self.name}")
        shape = self._shape(curator.domain)
        recipe = Recipe(
            shape.upper,
            shape.sequence,
            self.choice,
            self.rows_bound if self.utility == "information_gain" else None,
            self.choice_form == "published" or self.as_published != "no",
            self.stopping,
            round(_THOUSAND * self.tolerance),
            self.theta,
        )
        return choose(curator, recipe, self._choice_costs(shape, cost))

    def run_with(self, curator: Curator, cost: Cost, structure: Scaffold) -> TreeModel:
        """Measures the layers of a tree that was chosen before and fits the model."""
        tree = structure.structure
        costs = self._tree_costs(self._shape(curator.domain), cost)
        prices = [Cost()] * tree.layers
        for layer, price in zip(structure.counted, costs.layers, strict=True):
            prices[layer - 1] = price
        costs = replace(costs, layers=tuple(prices))
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
        spent = Fraction(cost.epsilon, UNIT) / (1 - self.structure_share(facts))
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


def _check_together(method: Steps) -> None:
    """Raises where two options do not go together."""
    if method.utility == "information_gain":
        if method.rows_bound is None:
            rule = "has no bound on how far a row moves it unless the number of rows is bounded."
            raise UsageError("utility information_gain", rule, "Set rows_bound to a publicly known bound.")
        information_sensitivity([2], method.rows_bound)
        if method.choice == "grouped":
            raise UsageError("choice grouped", "is scored by AIC.", "Drop utility.")
    if (method.n_policy == "public") != (method.known_rows is not None):
        raise UsageError("known_rows", "goes with n_policy=public, and n_policy=public needs it.")
    if method.allocation != "custom":
        allocation_weights(1, method.allocation, method.shares)
    if method.as_published == "no":
        return
    if method.stopping != "none" or method.allocation == "custom" or method.utility != "aic":
        raise UsageError("as_published", "goes with AIC, an equal or half_leaf allocation and no stopping rule.")
    if method.as_published == "2019" and not method.sequence:
        rule = "chose its columns on the private rows without paying, which cannot be had here."
        raise UsageError("as_published 2019", rule, "Give a sequence.")
    if method.choice == "grouped" and method.layers not in (None, 2):
        raise UsageError("as_published", "has groups in two layers only.")
