"""Rdt: private labels for records whose other columns are public, by ensembles of random decision trees.

Source: Duke University Synthetic Data Project, "Differentially private synthetic attribute generation using variable
depth random decision trees" (2018), after Jagannathan, Pillaipakkamnatt, Wright (2012).

Steps.
1. Codes of public columns that are rare in the public table are pooled (`collapse`).
2. For a private column T trees are grown: a node with at least `leaf_size` public records splits on a column drawn by
   weight among those not used above it, one child per group of codes. Nothing private is looked at.
3. Every leaf of every tree gets a noisy count of every label: negatives become 0, nothing positive is uniform.
4. A record's label is drawn from the mean of the laws of its T leaves.
5. The next private column is done in the same way, with the columns before it among those that a node may split on; the
   public records take part with every earlier label, weighted by how likely it is. Records are labelled in order, each
   label following from the labels drawn before it.

Without a public table T trees over the public columns are grown by noisy counts (PrivTree, see
`privacy/questions/growth.py`) with `leaf_size` as the threshold, for `growth_share` of the cost, and serve all private
columns; their leaves are then split by the earlier private columns. The model's public columns are then spread evenly
within leaves, which is rough: the method is meant for public records.

Privacy. Neighbours differ by the k rows of one unit. Leaf × label is a partition of the records (`leaves.py`), so a
table moves by at most k in L1 and L2; every table, the number of records and every grown tree are paid for separately,
and the parts add up. Which trees are grown depends on public data, on the public structure seed and on answers paid for
before. `recipe.py` says what label-change costs and how `relation` provides for it.

Routing (`route`). The source replaces the first private column in the authentic table by synthetic values before it
counts leaves for the second ("synthetic"). But a synthetic value is drawn without looking at the second column, so
given the public columns the two are independent, and their association survives only as far as public columns explain
it. Routing by the record's own value ("true", the default) estimates the law of the second given the first, which is
what the chain needs: it is applied to first values with nearly the same law. Both cost the same. Measured on 50,000
members of the armed forces (ε = 2, five trees each, mean of five runs): the table gender × race of labelled records is
off by 0.011 in total variation with "true" and by 0.095 with "synthetic".

Differs from the source. Tables list every label, not only those seen in a leaf; labels are pooled by public counts, not
by private ones; the ensemble's total is T times a tree's cost for each column; Δ under label-change is 2; noise is
integer noise; the published pseudo-code filters a new column by the labels of the previous one, here every node filters
by its own.
"""

from dataclasses import asdict, dataclass, field
from typing import ClassVar, Literal, get_args

from understudy.errors import UsageError
from understudy.mechanisms.forecast import facts_of, noisy_step, seconds_for
from understudy.mechanisms.labels.growth import Limits
from understudy.mechanisms.labels.leaf_size import Relation
from understudy.mechanisms.labels.named_numbers import listed_names, named_numbers
from understudy.mechanisms.labels.recipe import DENSE_CELLS, Prices, Recipe
from understudy.mechanisms.labels.run import LabelRun, check_dense
from understudy.mechanisms.mechanism import Plan, PublicFacts, Step
from understudy.mechanisms.options.checks import check_choice, check_flag, check_number, check_whole
from understudy.models.labels.label_model import LabelModel
from understudy.models.restrict import check_linked
from understudy.privacy.calibrate import law_for
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import Curator

__all__ = ["Rdt", "Route"]

Route = Literal["true", "synthetic"]
_MOST_DEPTH = 1000
_ROWS_UNKNOWN = 1_000_000


@dataclass(frozen=True, slots=True)
class Rdt:
    """Recipe: ensembles of random trees, grown in public, with noisy label counts in their leaves."""

    name: ClassVar[str] = "rdt"
    summary: ClassVar[str] = "Labels for public records: random decision trees with noisy leaf tables."
    source: ClassVar[str] = "Duke University Synthetic Data Project (2018); Jagannathan et al. (2012)."
    needs: ClassVar[str] = "Private columns (private=sex,race) and a public table of the others (--public)."
    limits: ClassVar[str] = "Private columns of at most 2¹⁴ combinations; without --public, public ones of 2²⁰ cells."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "concentrated")
    uses_public: ClassVar[bool] = True

    private: str = field(default="", metadata={"help": "private columns in order, as sex,race; none: the last column"})
    weights: str = field(default="", metadata={"help": "how often nodes split on a column, as occupation:60; else 1"})
    leaf_size: int = field(default=1000, metadata={"help": "public records below which a node is not split"})
    trees: int = field(default=5, metadata={"help": "trees for each private column"})
    collapse: str = field(default="", metadata={"help": "pool codes with fewer public records, as occupation:200"})
    per_level: bool = field(default=False, metadata={"help": "all nodes of a layer split on the same column"})
    max_depth: int | None = field(default=None, metadata={"help": "most splits above a leaf; none: every column once"})
    structure_seed: int = field(default=0, metadata={"help": "public seed of the trees' random columns"})
    route: Route = field(default="true", metadata={"help": "training rows go by their true or a synthetic first label"})
    relation: Relation = field(
        default="add_remove", metadata={"help": "what the budget pays for: add_remove or label_change"}
    )
    total_share: float = field(default=0.01, metadata={"help": "share for the number of records; 0: from leaf tables"})
    growth_share: float = field(default=0.25, metadata={"help": "share for growing trees without a public table"})
    most_leaves: int = field(default=50_000, metadata={"help": "most leaves of a tree"})

    def __post_init__(self) -> None:
        listed_names("private", self.private)
        named_numbers("weights", self.weights)
        named_numbers("collapse", self.collapse)
        for name, least, most in (
            ("leaf_size", 0, 2**40), ("trees", 1, 100), ("structure_seed", 0, 2**63 - 1), ("most_leaves", 1, 2**24),
        ):  # fmt: skip
            check_whole(name, getattr(self, name), least, most)
        if self.max_depth is not None:
            check_whole("max_depth", self.max_depth, 0, _MOST_DEPTH)
        check_choice("route", self.route, get_args(Route))
        check_choice("relation", self.relation, get_args(Relation))
        check_flag("per_level", self.per_level)
        check_number("total_share", self.total_share, 0.0, 0.5)
        check_number("growth_share", self.growth_share, 0.0, 0.5)
        if not self.growth_share:
            raise UsageError("growth_share", "must be above 0: it pays for trees where no public table is given.")

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """All questions of a run; with a public table growing is free and tables get its share."""
        recipe, public = self._recipe(facts), facts.has_public
        if self.relation == "label_change" and facts.prepared:
            names = ", ".join(facts.prepared)
            rule = f"label_change cannot be provided for: {names} are settled from private rows before the trees."
            raise UsageError("option relation", rule, "List their labels or bins in the schema.")
        singles = [facts.domain.clique([name]) for name in facts.domain.columns]
        check_linked(facts.domain, singles, facts.forbidden, f"method {self.name}")
        prices = self._prices(recipe, cost, public=public)
        steps = [*self._first_steps(recipe, prices, facts), *self._table_steps(recipe, prices, facts)]
        cells = sum(step.cells for step in steps)
        rows = facts.rows_hint if facts.rows_hint is not None else _ROWS_UNKNOWN
        held = min(facts.domain.cells(recipe.public), max(rows, DENSE_CELLS))
        line = 24 + 16 * min(facts.domain.cells(recipe.private), 2**24 // max(held, 1) + 1)
        return Plan(
            self.name,
            sum((step.cost for step in steps), Cost()),
            tuple(steps),
            cells,
            24 * cells + held * line + 2**26,
            seconds_for(facts, cells) + 1e-6 * held * self.trees * len(recipe.private),
            self._notes(recipe, cost, facts),
            asdict(self),
            fixed=True,
            labels=recipe.private,
        )

    def check_without_public(self, facts: PublicFacts) -> None:
        """Raises if this recipe cannot do without a public table on such a domain."""
        if self.collapse:
            raise UsageError("option collapse", "pools codes by public counts.", "Give a public table with --public.")
        check_dense(self._recipe(facts))

    def not_public(self, facts: PublicFacts) -> tuple[str, ...]:
        """Columns that a public table need not have: the private ones."""
        return self._recipe(facts).private

    def run(self, curator: Curator, cost: Cost) -> LabelModel:
        """Grows trees, measures their leaves, column by column; the public cells and the chain are the model."""
        facts = facts_of(curator)
        recipe = self._recipe(facts)
        prices = self._prices(recipe, cost, public=curator.has_public)
        synthetic = self.route == "synthetic"
        return LabelRun(curator, recipe, prices, self.trees, self.structure_seed, synthetic).model()

    def _recipe(self, facts: PublicFacts) -> Recipe:
        depth = _MOST_DEPTH if self.max_depth is None else self.max_depth
        return Recipe.of(
            facts.domain,
            listed_names("private", self.private),
            named_numbers("weights", self.weights),
            named_numbers("collapse", self.collapse),
            Limits(self.leaf_size, depth, self.most_leaves, self.per_level),
        )

    def _prices(self, recipe: Recipe, cost: Cost, *, public: bool) -> Prices:
        grows = recipe.grows and not public
        shares = (self.total_share, self.growth_share if grows else 0.0)
        change = self.relation == "label_change"
        return Prices.of(cost, len(recipe.private), self.trees, shares=shares, label_change=change)

    def _first_steps(self, recipe: Recipe, prices: Prices, facts: PublicFacts) -> list[Step]:
        steps = []
        if prices.total.epsilon or prices.total.rho:
            steps.append(noisy_step("measure total", prices.total, 1, facts.unit_rows))
        if recipe.grows and not facts.has_public:
            # What a node costs follows from the rule of growing; its noise is not that of a count.
            steps += [Step(f"grow tree {number + 1}", prices.tree, 0, None, None) for number in range(self.trees)]
        return steps

    def _table_steps(self, recipe: Recipe, prices: Prices, facts: PublicFacts) -> list[Step]:
        steps = []
        for place, label in enumerate(recipe.private):
            cells = recipe.most_leaves(place) * facts.domain.sizes[label]
            for number, part in enumerate(prices.ensemble.split([1.0] * self.trees)):
                name = f"measure leaves of tree {number + 1} for {label}"
                steps.append(noisy_step(name, part, cells, facts.unit_rows))
        return steps

    def _notes(self, recipe: Recipe, cost: Cost, facts: PublicFacts) -> tuple[str, ...]:
        public = self._prices(recipe, cost, public=True)
        table = public.ensemble.split([1.0] * self.trees)[0]
        scale = law_for(table, facts.unit_rows, "measure leaves").scale
        notes = [
            f"Private columns, in order: {', '.join(recipe.private)}. Cells are upper bounds.",
            f"With a public table trees are grown free of charge and leaf tables have noise of scale {scale:.3g}.",
        ]
        if self.relation == "label_change":
            notes.append("The budget pays for a change of private values; adding or removing a unit costs less.")
        return tuple(notes)
