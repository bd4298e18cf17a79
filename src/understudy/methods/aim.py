"""AIM: round after round, the table that the model predicts worst is chosen, measured and fitted.

Source: McKenna, Mullins, Sheldon, Miklau, "AIM: an adaptive and iterative mechanism" (2022).

Steps
-----
1. Every column's table, at `one_way_share` of ρ. In columns of more than 30 codes, those whose noisy count is below 3σ
   are merged into one code; from here on all is counted and measured on merged codes.
2. T rounds are planned (`rounds`, or 4 per column). A round draws one candidate (any part of a workload table) by the
   exponential mechanism with the score w_r · (‖M_r − M̂_r‖₁ − √(2/π) σ cells_r), at a tenth of its cost, and measures it
   with the rest.
3. If that moved the model by less than the noise, rounds have become too noisy: from the next one on σ is halved and ε
   is doubled (four times the cost).
4. When less than two rounds' cost is left, the last round takes all of it.
5. A longer fit, in which tables whose noise adds up to more than 5 % of the records are drawn towards what the model
   expected before them, each cell as far as its noise warrants. A merged code is drawn apart by the noisy counts of the
   codes it stands for.

Large tables
------------
Where the noise of a table adds up to more than a tenth of the records, only as much is taken off its score, cells that
are off by less than some height do not count, and the weight is raised by what that hides (`noise_cut` and
`NoiseCut.weight` in `rounds.py`; all of it follows from earlier answers).

A table of more than 1,000 cells whose noise would exceed 5 % of the records costs up to 16 times a round's cost
(`Round.paid_for`), as far as that leaves a round.

Privacy
-------
Neighbours differ by the rows of one unit, at most k. Which codes are merged follows from noisy answers, and a row lies
in one cell of a table, merged or not.

A table costs k²/(2σ²) of ρ; a score moves by at most k · max w (see `privacy/scores.py`), and a draw at ε costs ε²/8.
The cost of a table depends on which one was drawn. Costs are taken off one account as they arise and add up to ρ,
however the rounds turn out (zCDP composes adaptively). All initial tables are counted. Candidates, their order and the
size limit depend on earlier answers and public sizes only.

Size
----
A candidate is open to a round only if the model with it stays within `model_bytes` times the share of ρ spent after the
round, or does not grow at all.

Public data
-----------
With a public table of the same columns a round may also take a table from there, at the cost of the draw
(`methods/rounds.py`, which holds the privacy argument). Without one nothing differs.

Differs from the source
-----------------------
* Discrete noise and exact draws; the number of rows is estimated.
* Columns get their own share, split by cells^(2/3), instead of the cost of one round each (`one_way_share=none` does
  that), and 4 rounds per column are planned instead of 16: both lower the error at equal ρ.
* Codes are merged, and large tables are scored and paid for as said above: the source subtracts all of their noise, so
  that the strongest relation of a column with 1,000 codes was never measured.
* Few steps of mirror descent per round, from the model of the last one.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from understudy.domain import Clique, Domain
from understudy.methods.marginals import Workload, check_workload
from understudy.methods.method import (
    Method,
    Plan,
    PublicFacts,
    Rounds,
    Step,
    noisy_step,
    tables_bytes,
)
from understudy.methods.rounds import (
    LEAST_MODEL_BYTES,
    MOST_MODEL_BYTES,
    Measured,
    PublicRounds,
    RemainingBudget,
    RoundCosts,
    check_start,
    fitting_bytes,
    live_columns,
    merged_bound,
    plan_of_rounds,
    shares_of,
    spend_in_rounds,
    times,
)
from understudy.models.markov_field import ExpandedField, MarkovField
from understudy.options import option
from understudy.privacy.cost import UNIT, Cost, Currency, selection_rate
from understudy.privacy.curator import Curator
from understudy.privacy.noise import LARGEST_VARIANCE

# The source plans 16: four at four times the cost each gave less error at equal ρ (see above).
_ROUNDS_PER_COLUMN = 4
_FIRST_STEPS, _ROUND_STEPS, _LAST_STEPS = 300, 50, 300
_FEWER_ROUNDS = 12
"""Rounds become dearer where the noise is large: seen on tables, down to a twelfth of those planned."""
_PUBLIC_BYTES = 24
"""Per cell of a candidate: its public count, the scaled one, and the table it is summed from."""


@dataclass(frozen=True, slots=True)
class Aim(Method):
    """Method: columns first, then rounds of choosing and measuring what the model predicts worst."""

    name: ClassVar[str] = "aim"
    summary: ClassVar[str] = "Measures, round after round, the table of the workload that the model predicts worst."
    source: ClassVar[str] = "McKenna, Mullins, Sheldon and Miklau (2022)."
    needs: ClassVar[str] = "A schema. A workload (the tables that matter) and a public table help."
    limits: ClassVar[str] = (
        "δ above 0. The model stays below model_bytes; a larger limit keeps more relations and takes longer."
    )
    currencies: ClassVar[tuple[Currency, ...]] = ("zcdp",)
    uses_public: ClassVar[bool] = True

    workload: str = option(
        "pairs", help="pairs, triples, or tables with weights such as sex×age:2, age×income", check=check_workload
    )
    rounds: int | None = option(None, help="number of planned rounds; none: 4 per column", least=1, most=10**9)
    one_way_share: float | None = option(
        0.4, help="share of ρ for the one-way tables; none: the cost of one round each", share=True
    )
    selection_share: float = option(0.1, help="share of a round's ρ for choosing its table", share=True)
    model_bytes: int = option(
        2**22, help="largest size of the model's tables, in bytes", least=LEAST_MODEL_BYTES, most=MOST_MODEL_BYTES
    )
    table_cells: int = option(250_000, help="largest table (in cells) that can be chosen", least=1, most=10**9)

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """Columns and planned rounds; refuses rules that tie more together than `model_bytes` holds."""
        domain = facts.domain
        check_start(domain, facts.structural_zeros, self.model_bytes, self.name)
        schedule = self._schedule(domain, facts.unit_rows, cost)
        columns = [Clique((name,)) for name in live_columns(domain)]
        parts = schedule.columns.split(shares_of(domain, columns) if self.one_way_share else [1.0] * len(columns))
        steps = [
            noisy_step(f"measure {clique[0]}", part, domain.cells(clique), facts.unit_rows)
            for clique, part in zip(columns, parts, strict=True)
        ]
        merged = merged_bound(domain, facts.structural_zeros)
        candidates = Workload.of(self.workload, merged).candidates(merged, self.table_cells)
        cells = sum(map(merged.cells, candidates))
        noise = 0.0
        if schedule.rounds:
            steps += self._round_steps(facts, schedule, candidates, cost)
            noise = steps[-1].expected_error or 0.0
        held, most = fitting_bytes(domain, self.model_bytes)
        notes = [
            f"{len(candidates):,} tables can be chosen; rounds become fewer and larger as the model improves.",
            f"The model's tables stay within {self.model_bytes:,} bytes.",
        ]
        rounds = Rounds(
            max(1, schedule.rounds // _FEWER_ROUNDS),
            schedule.rounds,
            len(candidates),
            cells,
            sum(domain.sizes.values()),
            held // 8,
            noise,
            (_FIRST_STEPS, _ROUND_STEPS, _LAST_STEPS),
        )
        public = _PUBLIC_BYTES * cells if facts.public else 0
        notes += [f"Counts of the public table take {public:,} bytes."] if public else []
        counting = tables_bytes(facts, len(candidates), cells) + public
        planned = plan_of_rounds(self, cost, steps, facts, rounds, counting=counting, most=most)
        return replace(planned, notes=tuple(notes), schedule=schedule)

    def run(self, curator: Curator, plan: Plan) -> MarkovField | ExpandedField:
        """Measures columns, then chooses and measures tables until the cost is spent; returns the fitted model."""
        domain, remaining = curator.domain, RemainingBudget(curator, plan.granted)
        schedule: _Schedule = plan.schedule
        columns = [Clique((name,)) for name in live_columns(domain)]
        weights = shares_of(domain, columns) if self.one_way_share else None
        answers = curator.measure(columns, schedule.columns, weights)
        measured = Measured.begun(curator, answers, self.model_bytes)
        measured.refit(_FIRST_STEPS)
        # One live column: there is nothing to choose.
        if not schedule.rounds:
            measured.refit(_LAST_STEPS)
            return measured.finished
        candidates = Workload.of(self.workload, curator.domain).candidates(curator.domain, self.table_cells)
        round_costs = RoundCosts(schedule.select, schedule.measure, self.selection_share, _ROUND_STEPS)
        if curator.has_public:
            assisted = PublicRounds.of(curator, measured, candidates)
            assisted.run(remaining, round_costs)
            # Longer than in a round, and with very noisy tables drawn towards what was expected before them.
            measured.refit(_LAST_STEPS, tables=assisted.last_tables)
            return measured.finished
        spend_in_rounds(
            remaining, round_costs, self.model_bytes, lambda paid, _: measured.next_table(curator, candidates, paid)
        )
        measured.refit(_LAST_STEPS, tables=measured.last_tables)
        return measured.finished

    def _round_steps(
        self, facts: PublicFacts, schedule: "_Schedule", candidates: Iterable[Clique], cost: Cost
    ) -> list[Step]:
        merged = merged_bound(facts.domain, facts.structural_zeros)
        cells = [merged.cells(clique) for clique in candidates]
        rest = Cost(rho=cost.rho) - schedule.columns
        draws = rest.share(self.selection_share)
        selection_rate(schedule.select, Fraction(1), "select table", monotone=False)
        table = noisy_step("measure table", schedule.measure, max(cells), facts.unit_rows)
        count = schedule.rounds
        return [
            Step(f"select up to {count} tables", draws, len(cells), None, None),
            replace(table, name=f"measure up to {count} tables", cost=rest - draws),
        ]

    def _schedule(self, domain: Domain, unit_rows: int, cost: Cost) -> "_Schedule":
        """Costs of the columns and of a planned round."""
        whole, columns = Cost(rho=cost.rho), live_columns(domain)
        if len(columns) < 2:
            return _Schedule(whole, 0, Cost(), Cost())
        # Rounds so small that their noise could not even be drawn are planned fewer and larger.
        least = max(1.0 / self.selection_share, UNIT * unit_rows**2 / float(LARGEST_VARIANCE))
        wanted = self.rounds or _ROUNDS_PER_COLUMN * len(columns)
        rounds = max(1, min(wanted, math.floor(whole.rho / 2.0 / least)))
        if self.one_way_share is None:
            rounds = max(rounds, 2 * len(columns))  # columns take a round's cost each, and rounds must be left
            select = whole.share(self.selection_share / rounds)
            measure = whole.share((1.0 - self.selection_share) / rounds)
            return _Schedule(times(measure, len(columns)), rounds, select, measure)
        first = whole.share(self.one_way_share)
        rest = whole - first
        select = rest.share(self.selection_share / rounds)
        # As a difference, so that what rounding takes off a draw is spent on its table.
        return _Schedule(first, rounds, select, rest.share(1.0 / rounds) - select)


@dataclass(frozen=True, slots=True)
class _Schedule:
    """Costs: all columns together, the number of planned rounds, one draw, one table."""

    columns: Cost
    rounds: int
    select: Cost
    measure: Cost
