"""PrivBayes: every column given a few parents, chosen privately; the rows follow the network.

Source: Zhang, Cormode, Procopiuc, Srivastava, Xiao, "PrivBayes" (2014, 2017); the preset `nist` after the description
of the team of that name in the 2018 challenge.

Steps
-----
1. Every column on its own, at `one_way_share` (presets: the number of rows, at `total_share`).
2. The network: from a first column, drawn by `structure_seed` or the widest, column after column by the exponential
   mechanism, d − 1 draws at equal cost, `structure_share` in all, among columns that are left with parents among those
   chosen.
3. The tables of every column and its parents, at all that is left.
4. Conditional tables, post-processing.

Privacy
-------
Neighbours differ by the rows of one unit, at most k. Tables move by at most k in L1 and L2: Laplace noise of scale
k/ε_i or Gaussian noise of variance k²/(2ρ_i).

The scores move by at most 2k rows (R), ¾k (F) or k·g(N) (I); see `privacy/dependence.py`. A draw costs ε_e, or ρ_e with
ε_e = √(8ρ_e). In the preset `nist` all pair scores are measured at once with noise instead. All parts add up to the
cost. Which parents may be drawn depends on sizes, rules and earlier answers only.

Differs from the source
-----------------------
The original proof is for replace-one neighbours with n public; here rows are added or removed, n is noisy, scores are
in rows, and noise is half as large for the same ε. By default (preset `refined`):

* columns are measured on their own first, so that the noise of many cells does not move what one-way tables know;
* parents are chosen by score − ½ · expected absolute noise of their table, among all sets, instead of by score among
  maximal θ-useful sets: a table is worth it if it says more than its noise takes away;
* wide parents are offered at coarser levels: the `groups` of the schema, and others of about equal noisy mass;
* tables share their cost by cells^(1/2) (ε) or cells^(2/3) (ρ), are drawn towards independence as far as their noise
  warrants and made to agree with the columns and the parents (`network_structure.py`);
* rows are drawn by controlled rounding.

Presets
-------
`published` (β = 0.3, θ = 4, score F if all columns have two codes, else R), `steps_paper` (k = 2, β = 0.5, score I; the
setting of the STEPS papers) and `nist` keep equal shares, the usefulness of the paper (with its noise, twice ours, in τ
and k), negatives set to 0, and independent rows. Coarser parents by halving are an option of `published` (`coarsen`).

`groups` of a category are offered as a coarser parent in every preset. Hierarchies across columns (`within`) are rules:
they tie columns, so the coarser column is a parent of the finer one, or the other way round, in every network. Limits
of a step: see `network_structure.py`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from understudy.arrays import Floats, Ints
from understudy.domain import Clique, Domain, Measurement, Partition
from understudy.errors import ResourceError, UsageError
from understudy.methods.marginals import COUNTED_CELLS
from understudy.methods.method import (
    Method,
    Plan,
    PublicFacts,
    Step,
    expected_absolute,
    noisy_step,
    rows_of,
    seconds_for,
)
from understudy.methods.network_structure import (
    COUNTED,
    STEP_CELLS,
    FamilyTable,
    NetworkStructure,
    Search,
    SearchSize,
    best_degree,
    drawn,
    from_pairs,
    halved,
    largest_table,
    of_equal_mass,
    pairs_of,
    parents_joint,
    plain_conditional,
    possible_cells,
    refined_conditional,
)
from understudy.methods.rounds import RemainingBudget, live_columns, times
from understudy.models.bayes_net import BayesianNetwork, Conditional
from understudy.models.consistency import OverlapTable, consistent
from understudy.models.tables import BLOCK_CELLS, allowed, check_linked, linked, norm_sub
from understudy.options import check_share, option
from understudy.privacy.cost import Cost, Currency, distribution_for, selection_rate
from understudy.privacy.curator import KEPT_BYTES, Curator
from understudy.privacy.dependence import BinaryFit, Dependence, Family, Information
from understudy.privacy.scores import Quality

LARGEST_TABLE_CELLS = 2e5
"""Most cells of a table that is measured, unless rules force more."""
_LEVELS = 3


@dataclass(frozen=True, slots=True)
class NetworkCosts:
    """What the opening queries cost, all of the structure, and one draw of it."""

    opening: Cost
    structure: Cost
    draw: Cost


@dataclass(frozen=True, slots=True)
class PrivBayesSettings:
    """A variant of PrivBayes: shares of the cost, usefulness, degree, and how tables become conditionals."""

    structure_share: float
    one_way_share: float
    total_share: float
    theta: float
    degree: int | None
    refined: bool = False
    pairs: bool = False
    score: str = "R"
    coarsen: int = 0
    rows: int | None = None
    most_candidates: int = 4000
    structure_seed: int = 0
    binary: bool = False

    @property
    def maximal(self) -> bool:
        """Whether only parent sets that nothing can be added to are offered."""
        return not self.refined or self.score == "I"

    def level_sizes(self, size: int) -> tuple[int, ...]:
        """Sizes of a column of so many codes and of its coarser levels, about; declared ones are not known here."""
        if self.coarsen < 2:
            return (size,)
        if not self.refined:
            return (size, *(int(level.max()) + 1 for level in halved(size, self.coarsen)))
        return (size, *self.groups(size))

    def groups(self, size: int) -> list[int]:
        """How many groups the coarser levels of a column have, if refined."""
        counts = (size // self.coarsen ** (level + 1) for level in range(_LEVELS))
        return [count for count in counts if count >= 2]

    def costs(self, cost: Cost, columns: int) -> NetworkCosts:
        """The costs of a run over that many live columns."""
        draws = columns - 1
        if self.refined and not draws:
            return NetworkCosts(Cost(cost.epsilon, cost.rho), Cost(), Cost())
        opening = cost.share(self.one_way_share if self.refined else self.total_share)
        if not draws:
            return NetworkCosts(opening, Cost(), Cost())
        return NetworkCosts(opening, cost.share(self.structure_share), cost.share(self.structure_share / draws))

    def most_cells(self, left: Cost, columns: int, unit_rows: int, total: float) -> float:
        """Most cells of the table of a column and its parents, if tables of so many columns share that cost."""
        if self.refined:
            # Two tables of n rows are never more than 2n apart: with that much noise a table tells nothing.
            return min(LARGEST_TABLE_CELLS, 2.0 * total / max(self.noise(left, columns, unit_rows), 1e-9))
        return min(LARGEST_TABLE_CELLS, largest_table(total, self.theta, paper_noise(left, columns, unit_rows)))

    def noise(self, left: Cost, columns: int, unit_rows: int) -> float:
        """Expected absolute noise of a cell, by which refined tables are judged."""
        return expected_absolute(distribution_for(left.share(1 / columns), unit_rows, "measure tables"))

    def weights(self, cost: Cost, cells: Sequence[int]) -> list[float]:
        """How tables share a cost: equally, or (refined) so that the sum of their errors is smallest."""
        # Noise of scale s_i on m_i cells adds up to Σ m_i s_i; s_i ∝ 1/ε_i or ρ_i^(−1/2).
        power = 0.0 if not self.refined else 2.0 / 3.0 if cost.rho else 0.5
        return [float(count) ** power for count in cells]


@dataclass(slots=True)
class NetworkFit:
    """A run: what was asked so far, and the network at the end."""

    curator: Curator
    cost: Cost
    settings: PrivBayesSettings
    total: float = 1.0
    own: dict[str, tuple[Floats, float]] = field(default_factory=dict)
    """Refined: per column its noisy counts and their variance."""
    coarser: dict[str, list[Ints]] = field(default_factory=dict)

    def network(self) -> BayesianNetwork:
        """Asks everything and fits."""
        domain, remaining = self.curator.domain, RemainingBudget(self.curator, self.cost)
        live = live_columns(domain)
        costs = self.settings.costs(self.cost, len(live))
        self._open(live, costs)
        self._make_levels(live)
        structure = NetworkStructure((Family(live[0]),)) if len(live) == 1 else self._structure(live, costs)
        if self.settings.refined:  # every column has a table of its own to agree with
            structure = NetworkStructure(structure.families)
        tables = [FamilyTable(family, domain, self.coarser) for family in structure.measured]
        answers: list[Measurement] = []
        if remaining.left.epsilon or remaining.left.rho:
            weights = self.settings.weights(self.cost, [table.cells for table in tables])
            answers = self.curator.measure([_target(table) for table in tables], remaining.left, weights)
        fixed = [
            Conditional(name, (), np.ones((1, 1)))
            for name, size in domain.sizes.items()
            if size == 1 and name not in live
        ]
        if self.settings.refined:
            conditionals = [*fixed, *self._refined(tables, answers)]
        else:
            conditionals = [*fixed, *self._plain(structure, tables, answers)]
        return BayesianNetwork.of(domain, conditionals, self.total, rounding=self.settings.refined)

    def _open(self, live: Sequence[str], costs: NetworkCosts) -> None:
        """The columns on their own (refined), or the number of rows."""
        if not self.settings.refined:
            if self.settings.rows is not None:
                self.total = float(self.settings.rows)
            else:
                # Noisy, and paid for. The source takes n for public, and with it a neighbour relation under which noise
                # is doubled.
                self.total = max(1.0, float(self.curator.measure([Clique()], costs.opening)[0].values[0]))
            return
        ones = [Clique((name,)) for name in live]
        weights = self.settings.weights(self.cost, [self.curator.domain.sizes[name] for name in live])
        answers = self.curator.measure(ones, costs.opening, weights)
        for answer in answers:
            self.own[answer.columns[0]] = (answer.values.astype(np.float64), answer.distribution.variance)
        self._count()

    def _count(self) -> None:
        """Number of rows: the inverse-variance mean of the sums of all columns."""
        sums = np.array([values.sum() for values, _ in self.own.values()])
        precisions = np.array([1.0 / max(values.size * variance, 1e-18) for values, variance in self.own.values()])
        found = float((sums * precisions).sum() / precisions.sum())
        self.total = max(1.0, found) if self.settings.rows is None else float(self.settings.rows)

    def _make_levels(self, live: Sequence[str]) -> None:
        factor = self.settings.coarsen
        for name in live:
            size = self.curator.domain.sizes[name]
            if factor < 2:
                self.coarser[name] = []
            elif self.settings.refined:
                self.coarser[name] = of_equal_mass(self._share(name), self.settings.groups(size))
            else:
                self.coarser[name] = halved(size, factor)
            declared = self.curator.taxonomies.get(name)
            if declared is not None and 1 < int(declared.max()) + 1 < size:
                self.coarser[name].insert(0, declared)

    def _share(self, name: str) -> Floats:
        """A column's own distribution, with what rules on it alone exclude left out."""
        values, _ = self.own[name]
        possible = allowed(self.curator.domain, (name,), np.arange(values.size), self.curator.structural_zeros)
        found = np.zeros(values.size)
        found[possible] = norm_sub(values[possible], 1.0 * self.total) / self.total
        return found

    def _structure(self, live: Sequence[str], costs: NetworkCosts) -> NetworkStructure:
        domain, settings = self.curator.domain, self.settings
        left = Cost(self.cost.epsilon, self.cost.rho) - costs.opening - costs.structure

        unit_rows, degree = self.curator.unit_rows, settings.degree
        noise = settings.noise(left, len(live), unit_rows) if settings.refined else 0.0
        if degree is None and settings.binary and not (settings.refined or settings.pairs):
            degree = best_degree(
                self.total, len(live), settings.theta, lambda tables: paper_noise(left, tables, unit_rows)
            )
        search = Search(
            domain,
            self.curator.structural_zeros,
            settings.most_cells(left, len(live), unit_rows, self.total),
            self.coarser,
            degree,
            maximal=settings.maximal,
            most_candidates=settings.most_candidates,
        )
        if settings.pairs:
            pairs = pairs_of(domain)
            scores = self.curator.score(Dependence("pairs", pairs, domain), costs.structure).scores
            return from_pairs(
                search, {domain.clique(pair.columns): float(x) for pair, x in zip(pairs, scores, strict=True)}
            )
        if degree == 0:
            return NetworkStructure(tuple(Family(name, search.forced(name, live[:at])) for at, name in enumerate(live)))
        return drawn(
            self.curator, search, self._first(live), lambda offers: self._scored(offers, search, noise), costs.draw
        )

    def _first(self, live: Sequence[str]) -> str:
        if self.settings.refined:
            return max(live, key=lambda name: self.curator.domain.sizes[name])
        # A public seed: which column is first follows from no row.
        return live[int(np.random.default_rng(self.settings.structure_seed).integers(len(live)))]

    def _scored(self, families: Sequence[Family], search: Search, noise: float) -> Quality[Family]:
        domain, settings = self.curator.domain, self.settings
        # Half, because R is half of a distance.
        penalties = [0.5 * noise * search.cells(family) if family.parents else 0.0 for family in families]
        if settings.score == "F":
            return BinaryFit("parents", families, domain, self.coarser, penalties)
        if settings.score == "I":
            # Twice the noisy number, so that the score is exact for nearly every table; the bound grows with its
            # logarithm only.
            rows = min(2**40, max(1, math.ceil(2.0 * self.total)))
            return Information("parents", families, domain, rows, self.coarser)
        return Dependence("parents", families, domain, self.coarser, penalties)

    def _refined(self, tables: Sequence[FamilyTable], answers: Sequence[Measurement]) -> list[Conditional]:
        """Conditionals that agree with the columns and with the parents."""
        measured = dict(zip((table.family.child for table in tables), answers, strict=False))
        grids = {name: _grid(table, measured[name]) for table in tables if (name := table.family.child) in measured}
        for name, grid in grids.items():
            self.own[name] = _mean(
                self.own[name], (grid.sum(axis=0), grid.shape[0] * measured[name].distribution.variance)
            )
        self._count()
        found: list[Conditional] = []
        for table in tables:
            family, name = table.family, table.family.child
            possible = possible_cells(table, self.curator.structural_zeros)
            if not family.parents or name not in grids:
                found.append(Conditional(name, (), self._share(name)[None, :]))
                continue
            noisy, variance = grids[name] / self.total, measured[name].distribution.variance / self.total**2
            joint = parents_joint(self.curator.domain, found, table)
            if joint is None:
                joint = norm_sub(noisy.sum(axis=1), 1.0)
            probabilities = refined_conditional(noisy, variance, self._share(name), joint, possible)
            found.append(Conditional(name, family.parents, probabilities, table.groups))
        return found

    def _plain(
        self, structure: NetworkStructure, tables: Sequence[FamilyTable], answers: Sequence[Measurement]
    ) -> list[Conditional]:
        """Conditionals as published; those of the first columns are sums of the first table."""
        if not answers:
            raise UsageError("method privbayes", "has nothing left for its tables.", "Lower structure_share.")
        grids = [_grid(table, answer) for table, answer in zip(tables, answers, strict=True)]
        if self.settings.pairs:
            grids = self._agreed(tables, answers)
        found = list[Conditional]()
        first = tables[0]
        kept = np.maximum(np.where(possible_cells(first, self.curator.structural_zeros), grids[0], 0.0), 0.0)
        joint = kept.reshape(*first.sizes, -1)
        for family in structure.families[: structure.derived]:
            names = [*first.family.parents, first.family.child]
            wanted = [*family.parents, family.child]
            summed = joint.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in wanted))
            order = [name for name in names if name in wanted]
            turned = summed.transpose([order.index(name) for name in wanted])
            own = FamilyTable(family, self.curator.domain, self.coarser)
            counts = np.ascontiguousarray(turned).reshape(-1, self.curator.domain.sizes[family.child])
            probabilities = plain_conditional(counts, possible_cells(own, self.curator.structural_zeros))
            found.append(Conditional(family.child, family.parents, probabilities))
        for table, grid in zip(tables, grids, strict=True):
            probabilities = plain_conditional(grid, possible_cells(table, self.curator.structural_zeros))
            found.append(Conditional(table.family.child, table.family.parents, probabilities, table.groups))
        return found

    def _agreed(self, tables: Sequence[FamilyTable], answers: Sequence[Measurement]) -> list[Floats]:
        """The tables made to agree wherever they overlap, by inverse variance."""
        domain = self.curator.domain
        listed = [
            OverlapTable(
                domain.clique(answer.columns), answer.values.astype(np.float64), max(answer.distribution.variance, 1e-9)
            )
            for answer in answers
        ]
        cleaned = consistent(domain, listed, self.curator.structural_zeros).counts
        return [_turned(table, counts) for table, counts in zip(tables, cleaned, strict=True)]


def paper_noise(left: Cost, tables: int, unit_rows: int) -> float:
    """The scale of the noise if so many tables share that cost; as in the paper, where Laplace noise is twice ours."""
    distribution = distribution_for(left.share(1 / tables), unit_rows, "measure tables")
    return distribution.scale * (2.0 if distribution.kind == "laplace" else 1.0)


def _target(table: FamilyTable) -> Clique | Partition:
    """What is measured: a clique where every parent is taken as it is."""
    return table if any(table.family.levels) else table.columns


def _grid(table: FamilyTable, answer: Measurement) -> Floats:
    """Noisy counts in the shape (combinations of parents, codes of the child)."""
    values = answer.values.astype(np.float64)
    if any(table.family.levels):
        return values.reshape(-1, table.domain.sizes[table.family.child])
    return _turned(table, values)


def _turned(table: FamilyTable, values: Floats) -> Floats:
    """Counts of the family's clique in the shape (combinations of parents, codes of the child)."""
    clique = table.columns
    order = [clique.index(name) for name in (*table.family.parents, table.family.child)]
    turned = values.reshape(table.domain.shape(clique)).transpose(order)
    return np.ascontiguousarray(turned).reshape(-1, table.domain.sizes[table.family.child])


def _mean(first: tuple[Floats, float], second: tuple[Floats, float]) -> tuple[Floats, float]:
    """Two noisy versions of the same counts, weighted by inverse variance."""
    one, two = 1.0 / max(first[1], 1e-18), 1.0 / max(second[1], 1e-18)
    return (first[0] * one + second[0] * two) / (one + two), 1.0 / (one + two)


Preset = Literal["refined", "published", "steps_paper", "nist"]
Score = Literal["auto", "R", "F", "I"]

_PRESETS: dict[str, PrivBayesSettings] = {
    "refined": PrivBayesSettings(0.1, 0.4, 0.0, 4.0, None, refined=True),
    "published": PrivBayesSettings(0.3, 0.0, 0.01, 4.0, None),
    "steps_paper": PrivBayesSettings(0.5, 0.0, 0.01, 4.0, 2),
    "nist": PrivBayesSettings(0.1, 0.0, 0.01, 5.0, None, pairs=True),
}
_CANDIDATE_SECONDS, _CELL_SECONDS = 6e-5, 2e-8
_TABLE_BYTES = 32  # of one cell of a table that is measured: noisy, as a grid, what is possible, and the conditional


@dataclass(frozen=True, slots=True)
class PrivBayes(Method):
    """Method: a Bayesian network chosen by private draws, its tables with noise."""

    name: ClassVar[str] = "privbayes"
    summary: ClassVar[str] = "A Bayesian network with privately chosen parents; the rows follow the network."
    source: ClassVar[str] = (
        "Zhang, Cormode, Procopiuc, Srivastava and Xiao (2017), refined; presets keep the originals."
    )
    needs: ClassVar[str] = "A schema. Columns of up to a few hundred codes."
    limits: ClassVar[str] = "With many columns each has few parents. Very dense networks cannot answer conditions."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "zcdp")

    preset: Preset = option("refined", help="refined, or as in the sources: published, steps_paper, nist")
    score: Score = option("auto", help="score function: R, F (columns of two codes), I, or auto")
    structure_share: float | None = option(None, help="share of the cost for choosing parents", share=True)
    theta: float | None = option(
        None, help="θ-usefulness: least ratio of a cell's average count to its noise", above=0, below=1e9
    )
    degree: int | None = option(None, help="number of parents; none: as many as are useful", least=0, most=1000)
    coarsen: int | None = option(
        None, help="weight of coarser parent levels; 0: no coarser levels; none: as in the preset", least=0, most=1000
    )
    rows: int | None = option(None, help="public number of rows, instead of a noisy one", least=1, most=2**40)
    most_candidates: int = option(4000, help="maximum number of candidates of one choice", least=1, most=10**6)
    structure_seed: int = option(
        0, help="public seed that picks the first column (not a seed for noise)", least=0, most=2**63
    )

    def _check_together(self) -> None:
        if self.structure_share is not None:
            settings = _PRESETS[self.preset]
            check_share("all shares together", self.structure_share + settings.one_way_share + settings.total_share)

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """Columns or total, draws, tables; refuses rules that force a table too large to count."""
        domain, settings = facts.domain, self._settings(facts.domain)
        columns = live_columns(domain)
        _check_rules(facts)
        if settings.degree is not None and settings.degree > 0:
            _check_degree(domain, columns, settings.degree)
        costs = settings.costs(cost, len(columns))
        steps = list[Step]()
        if settings.refined:
            parts = costs.opening.split(settings.weights(cost, [domain.sizes[name] for name in columns]))
            for name, part in zip(columns, parts, strict=True):
                steps.append(noisy_step(f"measure {name}", part, domain.sizes[name], facts.unit_rows))
        elif self.rows is None:
            steps.append(noisy_step("measure total", costs.opening, 1, facts.unit_rows))
        draws = len(columns) - 1
        if draws and settings.pairs:
            pairs = len(pairs_of(domain))
            steps.append(Step(f"score {pairs} pairs", costs.structure, pairs, None, None))
        elif draws:
            selection_rate(costs.draw, Fraction(1), "select parents", monotone=False)
            steps.append(
                Step(f"select {draws} parent sets", times(costs.draw, draws), self.most_candidates, None, None)
            )
        if not settings.refined or draws:
            spent = sum((step.cost for step in steps), Cost())
            tables = Cost(cost.epsilon, cost.rho) - spent
            distribution = distribution_for(tables.share(1 / len(columns)), facts.unit_rows, "measure tables")
            steps.append(Step(f"measure {len(columns)} tables", tables, 0, distribution.scale, None))
        size = self._search_size(facts, settings, cost)
        most = (COUNTED_CELLS if settings.pairs else STEP_CELLS) + sum(domain.sizes.values())
        notes = [
            f"At most {self.most_candidates:,} candidates per draw; tables of up to {COUNTED:,} cells are counted."
        ]
        if self.preset != "refined":
            notes.append(f"Preset {self.preset} computes usefulness with the noise of the paper, twice ours.")
        return Plan(
            self,
            cost,
            sum((step.cost for step in steps), Cost()),
            tuple(steps),
            int(size.kept_cells),
            int(8 * size.peak_cells),
            seconds_for(facts, 0) + size.candidates * _CANDIDATE_SECONDS + size.kept_cells * _CELL_SECONDS,
            tuple(notes),
            schedule=settings,
            after_counting=int(8 * size.peak_cells),  # rows are read for the columns' own tables, and kept as codes
            most_bytes=KEPT_BYTES + 24 * most + _TABLE_BYTES * _table_cells(facts) * len(columns),
        )

    def run(self, curator: Curator, plan: Plan) -> BayesianNetwork:
        """Measures columns or the total, draws the network, measures its tables and returns it."""
        return NetworkFit(curator, plan.granted, plan.schedule).network()

    def _search_size(self, facts: PublicFacts, settings: PrivBayesSettings, cost: Cost) -> SearchSize:
        """What the draws come to, for as many rows as are hinted at."""
        domain, columns = facts.domain, live_columns(facts.domain)
        if settings.pairs:
            pairs = pairs_of(domain)
            cells = float(sum(domain.cells(pair.columns) for pair in pairs))
            return SearchSize(len(pairs), cells, 1.5 * cells)
        costs = settings.costs(cost, len(columns))
        left = Cost(cost.epsilon, cost.rho) - costs.opening - costs.structure
        if len(columns) < 2 or not (left.epsilon or left.rho):
            return SearchSize(0.0, 0.0, 0.0)
        rows = float(self.rows or rows_of(facts))
        limit = settings.most_cells(left, len(columns), facts.unit_rows, rows)
        search = Search(
            domain,
            facts.structural_zeros,
            limit,
            degree=settings.degree,
            maximal=settings.maximal,
            most_candidates=settings.most_candidates,
        )
        levels = {name: settings.level_sizes(domain.sizes[name]) for name in columns}
        return SearchSize.of(search, levels, KEPT_BYTES // 8)

    def _settings(self, domain: Domain) -> PrivBayesSettings:
        settings = _PRESETS[self.preset]
        binary = all(domain.sizes[name] == 2 for name in live_columns(domain))
        score = self.score
        if score == "auto":
            score = "I" if self.preset == "steps_paper" else "F" if binary and self.preset == "published" else "R"
        if score == "F" and not binary:
            raise UsageError("score F", "needs columns of two codes only.", "Use R.")
        return PrivBayesSettings(
            settings.structure_share if self.structure_share is None else self.structure_share,
            settings.one_way_share,
            0.0 if self.rows is not None else settings.total_share,
            settings.theta if self.theta is None else self.theta,
            settings.degree if self.degree is None else self.degree,
            refined=settings.refined,
            pairs=settings.pairs,
            score=score,
            coarsen=(4 if settings.refined else 0) if self.coarsen is None else self.coarsen,
            rows=self.rows,
            most_candidates=self.most_candidates,
            structure_seed=self.structure_seed,
            binary=binary,
        )


def _table_cells(facts: PublicFacts) -> int:
    """Most cells of the table of a column and its parents."""
    forced = max((facts.domain.cells(rule.clique) for rule in facts.structural_zeros), default=0)
    return min(facts.domain.cells(facts.domain.columns), max(int(LARGEST_TABLE_CELLS), min(forced, COUNTED)))


def _check_rules(facts: PublicFacts) -> None:
    """Refuses rules that leave nothing possible, or force more columns into one table than can be counted."""
    domain, cliques = facts.domain, [Clique((name,)) for name in facts.domain.columns]
    groups = linked(domain, cliques, facts.structural_zeros)
    if all(domain.cells(name for part in group for name in part) <= BLOCK_CELLS for group in groups):
        check_linked(domain, cliques, facts.structural_zeros, "method privbayes")
    for child in domain.columns:
        tied = {name for rule in facts.structural_zeros if child in rule.clique for name in rule.clique}
        cells = domain.cells(tied)
        if cells > COUNTED:
            where = f"method privbayes: the one table into which rules force {', '.join(domain.clique(tied))}"
            raise ResourceError(where, 8 * cells, 8 * COUNTED, "Use coarser bins for these columns or drop a rule.")


def _check_degree(domain: Domain, columns: list[str], degree: int) -> None:
    """Refuses a degree at which no parent set of some column could be counted."""
    smallest = sorted(columns, key=lambda name: domain.sizes[name])
    widest = smallest[-1]
    cells = domain.cells((widest, *smallest[: min(degree, len(columns) - 1)]))
    if cells > COUNTED:
        where = f"method privbayes: the table of {widest} with {degree} parents"
        raise ResourceError(where, 8 * cells, 8 * COUNTED, "Lower the degree or use coarser bins.")
