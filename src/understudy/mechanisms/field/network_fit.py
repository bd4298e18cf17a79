"""NetworkFit: one run of PrivBayes, from the first question to the network. Settings say which variant it is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError
from understudy.marginals.answer import Measurement
from understudy.marginals.clique import Clique
from understudy.marginals.partition import Partition
from understudy.mechanisms.field.conditionals import (
    parents_joint,
    plain_conditional,
    possible_cells,
    refined_conditional,
)
from understudy.mechanisms.field.parents import FamilyTable, Search, best_degree, halved, largest_table, of_equal_mass
from understudy.mechanisms.field.structure import Structure, drawn, from_pairs, pairs_of
from understudy.mechanisms.forecast import expected_absolute
from understudy.mechanisms.measured import Purse, live_columns
from understudy.models.network.bayesian import BayesianNetwork
from understudy.models.network.node import Conditional
from understudy.models.nonnegative import norm_sub
from understudy.models.overlap.consistency import OverlapTable, consistent
from understudy.models.restrict import allowed
from understudy.privacy.calibrate import law_for
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator
from understudy.privacy.quality import Quality
from understudy.privacy.questions.association import Dependence
from understudy.privacy.questions.binary_fit import BinaryFit
from understudy.privacy.questions.family import Family
from understudy.privacy.questions.mutual_information import Information

__all__ = ["Costs", "NetworkFit", "Settings"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_TABLE = 2e5
_LEVELS = 3


@dataclass(frozen=True, slots=True)
class Costs:
    """What the opening questions cost, all of the structure, and one draw of it."""

    opening: Cost
    structure: Cost
    draw: Cost


@dataclass(frozen=True, slots=True)
class Settings:
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

    def costs(self, cost: Cost, columns: int) -> Costs:
        """The prices of a run over that many live columns."""
        draws = columns - 1
        if self.refined and not draws:
            return Costs(Cost(cost.epsilon, cost.rho), Cost(), Cost())
        opening = cost.share(self.one_way_share if self.refined else self.total_share)
        if not draws:
            return Costs(opening, Cost(), Cost())
        return Costs(opening, cost.share(self.structure_share), cost.share(self.structure_share / draws))

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
    settings: Settings
    total: float = 1.0
    own: dict[str, tuple[Floats, float]] = field(default_factory=dict)
    """Refined: per column its noisy counts and their variance."""
    coarser: dict[str, list[Ints]] = field(default_factory=dict)

    def network(self) -> BayesianNetwork:
        """Asks everything and fits."""
        domain, purse = self.curator.domain, Purse(self.curator, self.cost)
        live = live_columns(domain)
        costs = self.settings.costs(self.cost, len(live))
        self._open(live, costs)
        self._make_levels(live)
        structure = Structure((Family(live[0]),)) if len(live) == 1 else self._structure(live, costs)
        if self.settings.refined:  # every column has a table of its own to agree with
            structure = Structure(structure.families)
        tables = [FamilyTable(family, domain, self.coarser) for family in structure.measured]
        answers: list[Measurement] = []
        if purse.left.epsilon or purse.left.rho:
            weights = self.settings.weights(self.cost, [table.cells for table in tables])
            answers = self.curator.measure([_target(table) for table in tables], purse.left, weights)
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

    def _open(self, live: Sequence[str], costs: Costs) -> None:
        """The columns on their own (refined), or the number of rows."""
        if not self.settings.refined:
            if self.settings.rows is not None:
                self.total = float(self.settings.rows)
            else:
                self.total = max(1.0, float(self.curator.measure([Clique()], costs.opening)[0].values[0]))
            return
        ones = [Clique((name,)) for name in live]
        weights = self.settings.weights(self.cost, [self.curator.domain.sizes[name] for name in live])
        answers = self.curator.measure(ones, costs.opening, weights)
        for answer in answers:
            self.own[answer.columns[0]] = (answer.values.astype(np.float64), answer.law.variance)
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
                counts = [size // factor ** (level + 1) for level in range(_LEVELS)]
                self.coarser[name] = of_equal_mass(self._share(name), [count for count in counts if count >= 2])
            else:
                self.coarser[name] = halved(size, factor)
            declared = self.curator.taxonomies.get(name)
            if declared is not None and 1 < int(declared.max()) + 1 < size:
                self.coarser[name].insert(0, declared)

    def _share(self, name: str) -> Floats:
        """A column's own distribution, with what rules on it alone exclude left out."""
        values, _ = self.own[name]
        possible = allowed(self.curator.domain, (name,), np.arange(values.size), self.curator.forbidden)
        found = np.zeros(values.size)
        found[possible] = norm_sub(values[possible], 1.0 * self.total) / self.total
        return found

    def _structure(self, live: Sequence[str], costs: Costs) -> Structure:
        domain, settings = self.curator.domain, self.settings
        left = Cost(self.cost.epsilon, self.cost.rho) - costs.opening - costs.structure

        def scale(tables: int) -> float:
            law = law_for(left.share(1 / tables), self.curator.unit_rows, "measure tables")
            return law.scale * (2.0 if law.kind == "laplace" else 1.0)

        degree = settings.degree
        if settings.refined:
            noise = expected_absolute(law_for(left.share(1 / len(live)), self.curator.unit_rows, "measure tables"))
            limit = min(_MOST_TABLE, 2.0 * self.total / max(noise, 1e-9))
        else:
            noise = 0.0
            limit = min(_MOST_TABLE, largest_table(self.total, settings.theta, scale(len(live))))
            if degree is None and settings.binary and not settings.pairs:
                degree = best_degree(self.total, len(live), settings.theta, scale)
        search = Search(
            domain,
            self.curator.forbidden,
            limit,
            self.coarser,
            degree,
            maximal=not settings.refined or settings.score == "I",
            most_candidates=settings.most_candidates,
        )
        if settings.pairs:
            pairs = pairs_of(domain)
            scores = self.curator.score(Dependence("pairs", pairs, domain), costs.structure).scores
            return from_pairs(
                search, {domain.clique(pair.columns): float(x) for pair, x in zip(pairs, scores, strict=True)}
            )
        if degree == 0:
            return Structure(tuple(Family(name, search.forced(name, live[:at])) for at, name in enumerate(live)))
        return drawn(
            self.curator, search, self._first(live), lambda offers: self._scored(offers, search, noise), costs.draw
        )

    def _first(self, live: Sequence[str]) -> str:
        if self.settings.refined:
            return max(live, key=lambda name: self.curator.domain.sizes[name])
        return live[int(np.random.default_rng(self.settings.structure_seed).integers(len(live)))]

    def _scored(self, families: Sequence[Family], search: Search, noise: float) -> Quality[Family]:
        domain, settings = self.curator.domain, self.settings
        penalties = [0.5 * noise * search.cells(family) if family.parents else 0.0 for family in families]
        if settings.score == "F":
            return BinaryFit("parents", families, domain, self.coarser, penalties)
        if settings.score == "I":
            rows = min(2**40, max(1, math.ceil(2.0 * self.total)))
            return Information("parents", families, domain, rows, self.coarser)
        return Dependence("parents", families, domain, self.coarser, penalties)

    def _refined(self, tables: Sequence[FamilyTable], answers: Sequence[Measurement]) -> list[Conditional]:
        """Conditionals that agree with the columns and with the parents."""
        measured = dict(zip((table.family.child for table in tables), answers, strict=False))
        grids = {name: _grid(table, measured[name]) for table in tables if (name := table.family.child) in measured}
        for name, grid in grids.items():
            self.own[name] = _mean(self.own[name], (grid.sum(axis=0), grid.shape[0] * measured[name].law.variance))
        self._count()
        found: list[Conditional] = []
        for table in tables:
            family, name = table.family, table.family.child
            possible = possible_cells(table, self.curator.forbidden)
            if not family.parents or name not in grids:
                found.append(Conditional(name, (), self._share(name)[None, :]))
                continue
            noisy, variance = grids[name] / self.total, measured[name].law.variance / self.total**2
            joint = parents_joint(self.curator.domain, found, table)
            if joint is None:
                joint = norm_sub(noisy.sum(axis=1), 1.0)
            chances = refined_conditional(noisy, variance, self._share(name), joint, possible)
            found.append(Conditional(name, family.parents, chances, table.groups))
        return found

    def _plain(
        self, structure: Structure, tables: Sequence[FamilyTable], answers: Sequence[Measurement]
    ) -> list[Conditional]:
        """Conditionals as published; those of the first columns are sums of the first table."""
        if not answers:
            raise UsageError("method privbayes", "has nothing left for its tables.", "Lower structure_share.")
        grids = [_grid(table, answer) for table, answer in zip(tables, answers, strict=True)]
        if self.settings.pairs:
            grids = self._agreed(tables, answers)
        found = list[Conditional]()
        first = tables[0]
        kept = np.maximum(np.where(possible_cells(first, self.curator.forbidden), grids[0], 0.0), 0.0)
        joint = kept.reshape(*first.sizes, -1)
        for family in structure.families[: structure.derived]:
            names = [*first.family.parents, first.family.child]
            wanted = [*family.parents, family.child]
            summed = joint.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in wanted))
            order = [name for name in names if name in wanted]
            turned = summed.transpose([order.index(name) for name in wanted])
            own = FamilyTable(family, self.curator.domain, self.coarser)
            counts = np.ascontiguousarray(turned).reshape(-1, self.curator.domain.sizes[family.child])
            chances = plain_conditional(counts, possible_cells(own, self.curator.forbidden))
            found.append(Conditional(family.child, family.parents, chances))
        for table, grid in zip(tables, grids, strict=True):
            chances = plain_conditional(grid, possible_cells(table, self.curator.forbidden))
            found.append(Conditional(table.family.child, table.family.parents, chances, table.groups))
        return found

    def _agreed(self, tables: Sequence[FamilyTable], answers: Sequence[Measurement]) -> list[Floats]:
        """The tables made to agree wherever they overlap, by inverse variance."""
        domain = self.curator.domain
        listed = [
            OverlapTable(
                domain.clique(answer.columns), answer.values.astype(np.float64), max(answer.law.variance, 1e-9)
            )
            for answer in answers
        ]
        cleaned = consistent(domain, listed, self.curator.forbidden).counts
        return [_turned(table, counts) for table, counts in zip(tables, cleaned, strict=True)]


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
