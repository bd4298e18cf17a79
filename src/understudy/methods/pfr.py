"""pfr: a READING of an entry of the 2018 challenge; no program or write-up of it is public.

Source: the outline in Bowen and Snoke (2021). What they leave open is our own (marked *), and the results are not
those of the team.

Steps. (1) Columns computable from others are derived columns of the schema: left out and recomputed. Restricted domains
are its rules: impossible cells are no cells. (2) Disjoint groups of columns, given by `groups` (the entry had three:
place, time, call); (3) ε in proportion to the number of columns of a group; (4) Laplace noise on each group's table;
(5) denoising: noise on an empty cell is symmetric, so twice the number of negative counts estimates (slightly
over-estimates) the empty cells Ê; counts below τ = b · ln(max(1, Ê/(2κ))) become 0, b the scale of the noise, κ
(`kept_empty`) the accepted number of false survivors*; (6) columns in no group are uniform, as is a group that wants
more rows than there are (`a+b >= 10000`); its share goes to the others; (7) rows are drawn group by group.

Privacy. Neighbours differ by the rows of one unit, at most k. The number of rows, bought with `total_share`* unless
`rows` gives a public one, decides which groups are asked. Each group's table puts a row in one cell: Laplace noise of
scale k/ε_g. All parts add up to ε. Everything else is post-processing. Pure ε only. (Done as told, with rules or
domains read off the private rows, it would leak.)

Tables above `dense_cells` cells are never written out: there nearly all cells are empty, so Ê is taken to be their
number, and the threshold is applied in sparse form, exactly equal in distribution*.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from understudy.arrays import Floats
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import UsageError
from understudy.methods.fieldgroups import (
    Group,
    block_of,
    check_group,
    check_groups,
    measured_group,
    parse_groups,
    tied,
    uniform_blocks,
    written_cells,
)
from understudy.methods.laplace import smallest_threshold
from understudy.methods.method import Method, Plan, PublicFacts, Step, noisy_step, seconds_for
from understudy.methods.rounds import RemainingBudget
from understudy.models.product import Block, BlockModel
from understudy.models.tables import check_linked
from understudy.options import option
from understudy.privacy.cost import Cost, Currency, check_sparse, distribution_for
from understudy.privacy.curator import Curator

_BLOCK_BYTES = 80


@dataclass(frozen=True, slots=True)
class Pfr(Method):
    """Method: one denoised table per group of columns, ε by the number of columns."""

    name: ClassVar[str] = "pfr"
    summary: ClassVar[str] = "A reading of the entry pfr: one denoised table per group, ε split by number of columns."
    source: ClassVar[str] = "Our reading of the outline in Bowen and Snoke (2021); the entry itself is not public."
    needs: ClassVar[str] = "A schema with its rules and derived columns; groups of columns that go together."
    limits: ClassVar[str] = (
        "Pure ε only. Keeps no relation between groups; other columns are uniform. 2⁶² cells per group."
    )
    currencies: ClassVar[tuple[Currency, ...]] = ("pure",)

    groups: str = option(
        "", help="groups such as place+station,day+hour >= 1000; empty: every column on its own", check=check_groups
    )
    kept_empty: int = option(
        1, help="expected number of empty cells of a table that survive denoising", least=1, most=10**7
    )
    total_share: float = option(0.01, help="share of ε for the number of rows", share=True)
    rows: int | None = option(None, help="public number of rows, instead of a noisy one", least=1, most=2**40)
    dense_cells: int = option(2**20, help="largest table written out (about 80 bytes a cell)", least=1, most=2**28)

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """Total (unless public) and tables; refuses groups beyond 2⁶² cells."""
        if cost.rho or not cost.epsilon:
            raise UsageError(f"method {self.name}", "gives pure ε and is paid in ε alone.", "Drop delta=.")
        domain = facts.domain
        groups = self._groups(domain, facts.structural_zeros)
        rest = [Clique((name,)) for name in domain.columns]
        check_linked(domain, rest, facts.structural_zeros, f"method {self.name}")
        for_total = Cost() if self.rows is not None else Cost(epsilon=cost.epsilon).share(self.total_share)
        steps = [] if self.rows is not None else [noisy_step("measure total", for_total, 1, facts.unit_rows)]
        left = Cost(epsilon=cost.epsilon) - for_total
        for group, part in zip(groups, left.split(budget_weights(groups)), strict=True):
            check_group(domain, group, self.name)
            cells = domain.cells(group.columns)
            name = f"measure {' × '.join(group.columns)}"
            steps.append(noisy_step(name, part, cells, facts.unit_rows))
            if cells > self.dense_cells:
                distribution = distribution_for(part, facts.unit_rows, name)
                check_sparse(
                    distribution, cells, smallest_threshold(distribution, cells, self.kept_empty), f"method {self.name}"
                )
        cells = written_cells(domain, groups, self.dense_cells)
        named = {name for group in groups for name in group.columns}
        alone = [name for name in domain.columns if name not in named]
        notes = ["This is a reading of an outline: the entry's own program and denoising are not public."]
        if alone:
            notes.append(f"Columns in no group, which come out uniform: {', '.join(alone)}.")
        return Plan(
            self,
            cost,
            for_total + left,
            _with_rest(steps, for_total + left),
            cells,
            _BLOCK_BYTES * cells + 64 * (facts.rows_hint or 0),
            seconds_for(facts, cells),
            tuple(notes),
            schedule=(for_total, groups),
        )

    def run(self, curator: Curator, plan: Plan) -> BlockModel:
        """Measures the total and the groups that are asked, denoises them; the rest is uniform."""
        domain, remaining = curator.domain, RemainingBudget(curator, plan.granted)
        for_total, groups = plan.schedule
        total = float(self.rows or 0)
        if self.rows is None:
            total = max(0.0, float(curator.measure([Clique()], for_total)[0].values[0]))
        # A group that wants more rows is left out; if all do, the one that wants least is asked after all.
        queries = [group for group in groups if group.least_rows <= total] or [min(groups, key=lambda g: g.least_rows)]
        parts = remaining.left.split(budget_weights(queries))
        blocks = list[Block]()
        for place, (group, part) in enumerate(zip(queries, parts, strict=True)):
            paid = part if place + 1 < len(queries) else remaining.left
            distribution = distribution_for(paid, curator.unit_rows, "measure group")
            threshold = smallest_threshold(distribution, domain.cells(group.columns), self.kept_empty)
            noisy = measured_group(curator, group, paid, self.dense_cells, threshold)
            values = noisy.values.astype(np.float64)
            kept = denoised(values, noisy.distribution.scale, self.kept_empty) if noisy.threshold is None else values
            blocks += block_of(domain, noisy, kept, curator.structural_zeros)
        named = {name for group in queries for name in group.columns}
        alone = [Group(Clique((name,))) for name in domain.columns if name not in named]
        for group in tied(domain, alone, [rule for rule in curator.structural_zeros if not named & set(rule.clique)]):
            blocks += uniform_blocks(domain, group.columns, curator.structural_zeros)
        return BlockModel(domain, tuple(blocks), total)

    def _groups(self, domain: Domain, structural_zeros: Sequence[StructuralZeros]) -> list[Group]:
        """Groups as written, joined where rules tie them; a rule that reaches outside takes those columns in."""
        given = parse_groups(self.groups, domain, "groups")
        if not given:
            return tied(domain, [Group(Clique((name,))) for name in domain.columns], structural_zeros)
        named = {name for group in given for name in group.columns}
        whole = tied(
            domain, [*given, *(Group(Clique((n,))) for n in domain.columns if n not in named)], structural_zeros
        )
        return [group for group in whole if named & set(group.columns)]


def budget_weights(groups: Sequence[Group]) -> list[float]:
    """Each group's share of ε: its number of columns."""
    return [float(len(group.columns)) for group in groups]


def denoised(values: Floats, scale: float, kept_empty: float) -> Floats:
    """Counts below τ = scale · ln(max(1, Ê/(2κ))) set to 0, with Ê = 2 · number of negative counts.

    >>> denoised(np.array([5.2, -0.4, 0.3, 1.1, -0.9, 0.2]), 1.0, 1).tolist()
    [5.2, 0.0, 0.0, 1.1, 0.0, 0.0]
    """
    empty = 2.0 * float((values < 0.0).sum())
    threshold = scale * math.log(max(1.0, empty / (2.0 * kept_empty)))
    return np.where((values >= threshold) & (values > 0.0), values, 0.0)


def _with_rest(steps: Sequence[Step], cost: Cost) -> tuple[Step, ...]:
    """The steps, the last of which takes what rounding leaves."""
    spent = sum((step.cost for step in steps[:-1]), Cost())
    last = steps[-1]
    return (*steps[:-1], Step(last.name, cost - spent, last.cells, last.noise_scale, last.expected_error))
