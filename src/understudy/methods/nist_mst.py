"""NistMst: all columns, then a public list of marginals on merged codes, as a graphical model.

Source: the winning system of Match 3 of the 2018 NIST challenge (McKenna 2019), with the estimation of Private-PGM
(McKenna, Sheldon, Miklau 2019). Generalised: any schema, any list of marginals; the challenge's own list is a preset.

Steps. (1) Every column's table, at `one_way_share` of ρ. (2) Values with a noisy count below `threshold` times σ are
merged, column by column. (3) The listed tables over merged codes, at the rest of ρ; columns may be counted in public
groups of codes. (4) The model: maximum entropy over merged codes, starting from the strongest forest among the
tables. (5) Merged codes fall apart by the noisy counts of their values.

Privacy. Neighbours differ by the rows of one unit, at most k. A row falls in one cell of each table, merged or not, so
a table moves by at most k in L2: Gaussian noise with σ_i² = k²/(2ρ_i) costs ρ_i, and the parts add up. Within a round
ρ_i ∝ w_i²; this is the noise of weighted queries w_i·count at sensitivity 1, on integers. Which values are merged
depends on the first round's noisy answers alone. The queries of the second round therefore depend on answers, their
costs do not: they are fixed beforehand, every query is dominated by one and the same pair of Gaussians whatever
the merging, and with one row per unit the exact distributions are summed, which buys a larger ρ for the same (ε, δ).

Public data. Without a list of its own the method takes one from a public table (`marginals.py`), before anything is
planned: which tables are measured is then fixed by public counts, and the run is as if the list had been written down.

Differs from the source. Integer noise on integer counts. The source drops tables of 10⁶ cells or more after merging;
the cost of a table cannot depend on answers here, so none is dropped: where a table has more than `table_cells` cells,
or the model more than `model_bytes`, more values are merged, those of lower noisy counts first. Columns in rules and
columns counted in groups are never merged, and more can be named in `keep`; the plan refuses what then cannot fit. The
number of rows is estimated, never read. The first round gets 0.3 of ρ, not half: at ε = 1 that was nearer to the truth,
or as near, on two tables (benchmarks/nist_mst.py). Merged values come back by their noisy counts, drawn towards their
mean by what noise explains of their spread (`expand=by_noise`; post-processing): of the whole ε of a challenge's set,
counts as they are lost 150,000 points of the match score against even ones at ε = 0.003, and even ones 33,000 against
counts at ε = 0.03 (fire calls of the study of the challenge, three runs each); at ε = 0.3 all were alike.
The source reads the value lists of geographic columns from the rows and does not merge them; here their code lists are
public like any other, and they are merged like any other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from understudy.domain import Clique, Domain, Measurement, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.marginals import (
    ListedTable,
    MarginalList,
    alone,
    at_costs,
    counting_bytes,
    marginals_from_public,
    parse_tables,
)
from understudy.methods.match_three import match3_marginals
from understudy.methods.method import Method, Plan, PublicFacts, noisy_step, seconds_for
from understudy.methods.rounds import (
    LEAST_MODEL_BYTES,
    MOST_MODEL_BYTES,
    WORKING_TABLES,
    Compression,
    MergingLimits,
    live_columns,
    smallest,
)
from understudy.models.estimation import NoisyTable, is_forest
from understudy.models.junction_tree import GraphicalSize, JunctionTree
from understudy.models.markov_field import ExpandedField, MarkovField, fit, fit_forest
from understudy.options import option
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import Curator

Expand = Literal["by_noise", "counts", "evenly"]
Preset = Literal["none", "match3"]

_LEAST_VARIANCE = 1e-9
"""Noise that is surely 0 still needs a weight; only ratios of variances matter."""
_CELL_BYTES = 40
"""Per measured cell: an answer, its float, what it is drawn towards, and its place in the model."""
_STEP_SPEED = 20
"""A step of the fit handles this many cells in the time that noise takes for one."""


@dataclass(frozen=True, slots=True)
class NistMst(Method):
    """Method: one-way tables, rare values merged, listed marginals on merged codes, one graphical model."""

    name: ClassVar[str] = "nist_mst"
    summary: ClassVar[str] = (
        "All columns and a public list of marginals, rare values merged, fitted by a graphical model."
    )
    source: ClassVar[str] = "McKenna (2019), winner of Match 3 of the 2018 NIST challenge, generalised."
    needs: ClassVar[str] = "A schema and a list of marginals (or the preset match3), or a public table to take it from."
    limits: ClassVar[str] = "Keeps the relations that are listed. δ above 0. The model stays below model_bytes."
    currencies: ClassVar[tuple[Currency, ...]] = ("zcdp",)
    can_be_fixed: ClassVar[bool] = True
    uses_public: ClassVar[bool] = True

    marginals: str = option("", help="tables to measure: a×b:2, b×c; or pairs, or triples")
    preset: Preset = option("none", help="match3: the challenge's 147 tables, instead of a list")
    together: str = option("", help="columns that always stand together when a public table gives the list, e.g. a,b,c")
    one_way_share: float = option(0.3, help="share of ρ for the one-way tables", share=True)
    threshold: float = option(
        3.0, help="values with fewer noisy rows than this many σ are merged", least=0, below=math.inf
    )
    keep: str = option("", help="columns never merged, separated by commas")
    expand: Expand = option(
        "by_noise", help="how merged values are expanded: counts, evenly, or counts as far as they exceed their noise"
    )
    table_cells: int = option(2**18, help="largest table (in cells) after merging", least=1, most=2**27)
    model_bytes: int = option(
        2**26, help="largest size of the model's tables, in bytes", least=LEAST_MODEL_BYTES, most=MOST_MODEL_BYTES
    )
    steps: int = option(1000, help="maximum number of steps of the fit", least=1, most=2**27)

    def _check_together(self) -> None:
        if self.marginals.strip() and self.preset != "none":
            raise UsageError("marginals", "and preset cannot both be given.", "Drop one of them.")
        if self.together.strip() and self._has_list:
            raise UsageError("together", "is for lists taken from a public table.", "Drop it or the list.")

    @property
    def _has_list(self) -> bool:
        return bool(self.marginals.strip()) or self.preset != "none"

    def informed(self, facts: PublicFacts) -> Self:
        """The same with the list of marginals that the public table suggests; itself if there is none."""
        if facts.public is not None and self._has_list:
            raise UsageError(
                "public", "is not used when a list of marginals is given.", "Drop the list or the public table."
            )
        return self._listing(facts)

    def _listing(self, facts: PublicFacts) -> Self:
        if facts.public is None or self._has_list:
            return self
        together = [name for names, _ in parse_tables(self.together) for name in names] if self.together.strip() else ()
        listed = marginals_from_public(facts.public, facts.domain, together)
        return replace(self, marginals=listed, together="")

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """Columns, then listed tables; refuses what cannot fit however much is merged."""
        if facts.public is not None and not self._has_list:
            return self._listing(facts).plan(facts, cost)
        domain, unit_rows = facts.domain, facts.unit_rows
        queries = self._queries(domain, facts.structural_zeros, cost)
        steps = [
            noisy_step(f"measure {name}", part, domain.sizes[name], unit_rows)
            for name, part in zip(queries.columns, queries.column_costs, strict=True)
        ]
        for table, part in zip(queries.tables, queries.table_costs, strict=True):
            cells = min(domain.cells(table.clique), self.table_cells)
            steps.append(noisy_step(f"measure {' × '.join(table.clique)}", part, cells, unit_rows))
        cells = sum(step.cells for step in steps)
        model = min(self.model_bytes, GraphicalSize.of(domain, queries.limits.cliques).bytes)
        return Plan(
            self,
            cost,
            sum((step.cost for step in steps), Cost()),
            tuple(steps),
            cells,
            WORKING_TABLES * model + _CELL_BYTES * cells + (counting_bytes(domain) if facts.public else 0),
            seconds_for(facts, 20 * cells + self.steps * (model // 8) // _STEP_SPEED),
            (*_notes(queries, domain, self.threshold), *(_public_notes(domain) if facts.public else ())),
            schedule=queries,
            fixed=True,
        )

    def run(self, curator: Curator, plan: Plan) -> ExpandedField:
        """Measures columns, merges rare values, measures the listed tables and returns the fitted model."""
        domain = curator.domain
        queries: _ListedQueries = plan.schedule
        ones = dict(zip(queries.columns, at_costs(curator, alone(queries.columns), queries.column_costs), strict=True))
        rare = {name: ones[name] for name in queries.columns if name not in queries.kept}
        compression = Compression.of(domain, rare, self.threshold).within(queries.limits)
        answers = at_costs(curator, [compression.query(table) for table in queries.tables], queries.table_costs)
        total = _total([*ones.values(), *answers])
        tables = [compression.column(name, answer, _variance(answer), total) for name, answer in ones.items()]
        tables += [
            compression.table(listed, answer, _variance(answer))
            for listed, answer in zip(queries.tables, answers, strict=True)
        ]
        merged = self._fitted(compression.domain, tables, curator.structural_zeros, total).with_rounding()
        expansions = {
            name: compression.expansion(
                name,
                ones[name],
                float(merged.marginal(Clique((name,)))[-1]) * total,
                even=self.expand == "evenly",
                shrunk=self.expand == "by_noise",
            )
            for name in compression.merged
        }
        return ExpandedField(domain, merged, expansions)

    def _fitted(
        self, domain: Domain, tables: Sequence[NoisyTable], structural_zeros: Sequence[StructuralZeros], total: float
    ) -> MarkovField:
        tree = JunctionTree.of(domain, [*(t.clique for t in tables), *(rule.clique for rule in structural_zeros)])
        if is_forest(domain, tables, structural_zeros) and max(map(len, tree.bags)) <= 2:
            return fit_forest(domain, tables, structural_zeros, total=total, shrunk=False)
        return fit(domain, tables, structural_zeros, total=total, steps=self.steps, model_bytes=self.model_bytes)

    def _listed(self, domain: Domain, cost: Cost) -> MarginalList:
        if self.preset == "match3":
            return MarginalList.listed(match3_marginals(cost), domain)
        if not self.marginals.strip():
            raise UsageError(
                f"method {self.name}",
                "needs a public list of marginals.",
                "Give options={'marginals': 'sex×age:2, age×income'} with your columns, options={'marginals': "
                "'pairs'}, or, for the challenge's table, options={'preset': 'match3'}; or a public table with "
                "public=, which gives the list.",
            )
        return MarginalList.of(self.marginals, domain)

    def _queries(self, domain: Domain, structural_zeros: Sequence[StructuralZeros], cost: Cost) -> "_ListedQueries":
        listed = self._listed(domain, cost)
        columns, whole = live_columns(domain), Cost(rho=cost.rho)
        first = whole.share(self.one_way_share) if listed.tables else whole
        weights = [listed.columns.get(name, 1.0) ** 2 for name in columns]
        kept = {name for rule in structural_zeros for name in rule.clique} | {
            n for t in listed.tables for n in t.starts
        }
        if self.keep.strip():
            for names, _ in parse_tables(self.keep):
                kept |= set(domain.clique(names))
        rules = tuple(rule.clique for rule in structural_zeros)
        cliques = tuple(table.clique for table in listed.tables)
        limits = MergingLimits(self.table_cells, self.model_bytes, cliques, (*alone(domain.columns), *rules))
        least = smallest(domain, [name for name in columns if name not in kept])
        _check_fits(limits, least, self.name)
        second = (whole - first).split([table.weight**2 for table in listed.tables]) if listed.tables else []
        return _ListedQueries(columns, first.split(weights), listed.tables, second, frozenset(kept), limits)


@dataclass(frozen=True, slots=True)
class _ListedQueries:
    """The queries of a run and their costs, columns that are never merged, and what must fit."""

    columns: Sequence[str]
    column_costs: Sequence[Cost]
    tables: Sequence[ListedTable]
    table_costs: Sequence[Cost]
    kept: frozenset[str]
    limits: MergingLimits


def _check_fits(limits: MergingLimits, least: Domain, method: str) -> None:
    """Refuses in advance columns that may not be merged and do not fit."""
    fix = "Raise the limit, use coarser bins, or let more columns be merged (keep, groups of codes, rules)."
    widest = max((least.cells(clique) for clique in limits.tables), default=0)
    if widest > limits.table_cells:
        raise ResourceError(f"method {method}: a table", widest * 8, limits.table_cells * 8, fix)
    needed = GraphicalSize.of(least, limits.cliques).bytes
    if needed > limits.model_bytes:
        raise ResourceError(f"method {method}: the model", needed, limits.model_bytes, fix)


def _variance(answer: Measurement) -> float:
    return max(answer.distribution.variance, _LEAST_VARIANCE)


def _total(answers: Sequence[Measurement]) -> float:
    """Number of rows: the inverse-variance mean of the tables' sums, at least 1."""
    precisions = np.array([1.0 / (_variance(answer) * answer.values.size) for answer in answers])
    sums = np.array([float(answer.values.sum()) for answer in answers])
    return max(1.0, float(precisions @ sums / precisions.sum()))


def _notes(queries: _ListedQueries, domain: Domain, threshold: float) -> tuple[str, ...]:
    wide = sum(domain.cells(table.clique) > queries.limits.table_cells for table in queries.tables)
    notes = [
        f"Listed tables: {len(queries.tables):,}. Values with a noisy count below {threshold:g} σ are merged before "
        "the tables are measured: the cells shown are upper bounds."
    ]
    if wide:
        notes.append(f"{wide:,} tables are beyond table_cells in full; more values are merged until they fit.")
    return tuple(notes)


def _public_notes(domain: Domain) -> tuple[str, ...]:
    return (f"The list comes from the public table; counting it takes up to {counting_bytes(domain):,} bytes.",)
