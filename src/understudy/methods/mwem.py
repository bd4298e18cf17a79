"""MWEM with a graphical model: a fixed number of rounds, each measuring the table that the model predicts worst.

Source: Hardt, Ligett, McSherry, "A simple and practical algorithm" (2012), with the graphical model of McKenna et al.
(2019) in place of multiplicative weights over all records.

Steps. (1) Every column's table, at `one_way_share` of the cost; with 0 only the number of rows is bought, at 1 %. (2) T
rounds (`rounds`, or two per column) at equal cost. A round draws one table of the workload by the exponential mechanism
with the score ‖M_r − M̂_r‖₁ − noise_r, at a tenth of its cost, measures it with the rest, and refits. Noise_r is what
measuring is expected to add, so a table is worth choosing only if its error exceeds its noise; how the noise of large
tables counts is said at `noise_cut` in `rounds.py`. In columns of more than 30 codes, those of low noisy count are
merged after step 1, as in `aim`; with `one_way_share=0` none are.

Privacy. Neighbours differ by the rows of one unit, at most k: a table moves by at most k in L1 and in L2, a score by at
most k times the largest weight. Concentrated: Gaussian noise with σ² = k²/(2ρ_i), draws at ε²/8. Pure: Laplace noise
of scale k/ε_i, draws at ε_i. The parts add up to the cost; the last round takes what rounding left over.

Size. In round i of T a table is a candidate only if the model with it stays within `model_bytes` · i/T, or as it is.

Differs from the source. Discrete noise and exact draws. The number of rows is bought, not read. Columns come first,
because every table is better predicted then (`one_way_share=0` leaves that out), and there are two rounds per column
instead of one; both lower the error at equal cost. The noise in the score is the expected one, not one row per cell.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from understudy.domain import Clique, Domain
from understudy.methods.marginals import ROUND_CELLS, Workload, check_workload, within
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
    RemainingBudget,
    Round,
    check_start,
    fitting_bytes,
    live_columns,
    merged_bound,
    plan_of_rounds,
    shares_of,
    times,
)
from understudy.models.markov_field import ExpandedField, MarkovField
from understudy.options import option
from understudy.privacy.cost import Cost, Currency, selection_rate
from understudy.privacy.curator import Curator

_FIRST_STEPS, _ROUND_STEPS, _LAST_STEPS = 300, 50, 300
_TOTAL_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Mwem(Method):
    """Method: columns, then a fixed number of rounds of choosing and measuring the worst table."""

    name: ClassVar[str] = "mwem"
    summary: ClassVar[str] = "A fixed number of rounds, each measuring the table that the model predicts worst."
    source: ClassVar[str] = "Hardt, Ligett and McSherry (2012) with the graphical model of McKenna et al. (2019)."
    needs: ClassVar[str] = "A schema; better with a workload. Also for pure ε."
    limits: ClassVar[str] = "Measures one table per round. The model stays below model_bytes."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "zcdp")

    workload: str = option(
        "pairs", help="pairs, triples, or tables such as sex×age, age×income (weights multiply)", check=check_workload
    )
    rounds: int | None = option(None, help="number of rounds; none: two per column", least=1, most=10**6)
    one_way_share: float = option(
        0.4, help="share of the cost for the one-way tables; 0: only the number of rows", share=True, also=(0,)
    )
    selection_share: float = option(0.1, help="share of a round's cost for choosing its table", share=True)
    model_bytes: int = option(
        2**22, help="largest size of the model's tables, in bytes", least=LEAST_MODEL_BYTES, most=MOST_MODEL_BYTES
    )
    table_cells: int = option(250_000, help="largest table (in cells) that can be chosen", least=1, most=10**6)

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """First tables and rounds at equal cost; refuses rules that tie more together than `model_bytes` holds."""
        domain = facts.domain
        check_start(domain, facts.structural_zeros, self.model_bytes, self.name)
        costs = self._costs(domain, cost)
        targets = self._first(domain)
        parts = costs.first.split(shares_of(domain, targets))
        steps = [
            noisy_step(f"measure {' '.join(clique) or 'total'}", part, domain.cells(clique), facts.unit_rows)
            for clique, part in zip(targets, parts, strict=True)
        ]
        merged = merged_bound(domain, facts.structural_zeros) if self.one_way_share else domain
        cells = [merged.cells(clique) for clique in self._candidates(merged)]
        if costs.rounds:
            selection_rate(costs.select, Fraction(1), "select table", monotone=False)
            table = noisy_step("measure table", costs.measure, max(cells), facts.unit_rows)
            steps.append(
                Step(f"select {costs.rounds} tables", times(costs.select, costs.rounds), len(cells), None, None)
            )
            measure = times(costs.measure, costs.rounds)
            steps.append(replace(table, name=f"measure {costs.rounds} tables", cost=measure))
        held, most = fitting_bytes(domain, self.model_bytes)
        noise = (steps[-1].expected_error or 0.0) if costs.rounds else 0.0
        rounds = Rounds(
            costs.rounds,
            costs.rounds,
            len(cells),
            sum(cells),
            sum(domain.sizes.values()),
            held // 8,
            noise,
            (_FIRST_STEPS, _ROUND_STEPS, _LAST_STEPS),
        )
        counting = tables_bytes(facts, len(cells), sum(cells))
        notes = (
            f"{len(cells):,} tables can be chosen.",
            f"The model's tables stay within {self.model_bytes:,} bytes.",
        )
        planned = plan_of_rounds(self, cost, steps, facts, rounds, counting=counting, most=most)
        return replace(planned, notes=notes, schedule=(targets, costs))

    def run(self, curator: Curator, plan: Plan) -> MarkovField | ExpandedField:
        """Measures the first tables, then one chosen table a round; returns the fitted model."""
        domain, remaining = curator.domain, RemainingBudget(curator, plan.granted)
        targets, costs = plan.schedule
        answers = curator.measure(targets, costs.first, shares_of(domain, targets))
        if targets == [Clique()]:
            measured = Measured(domain, curator.structural_zeros, self.model_bytes)
            measured.add(answers)
        else:
            measured = Measured.begun(curator, answers, self.model_bytes)
        measured.refit(_FIRST_STEPS)
        candidates = self._candidates(curator.domain)
        for number in range(1, costs.rounds + 1):
            measure = costs.measure if number < costs.rounds else remaining.left - costs.select
            limit = self.model_bytes * number / costs.rounds
            measured.next_table(curator, candidates, Round(costs.select, measure, limit, _ROUND_STEPS))
        measured.refit(_LAST_STEPS)
        return measured.finished

    def _first(self, domain: Domain) -> list[Clique]:
        columns = live_columns(domain)
        if self.one_way_share or len(columns) < 2:
            return [Clique((name,)) for name in columns]
        return [Clique()]

    def _candidates(self, domain: Domain) -> dict[Clique, float]:
        """The tables of the workload that may be held, with their weights; columns if there is no such table."""
        weights = Workload.of(self.workload, domain).weights
        small = [clique for clique in weights if domain.cells(clique) <= self.table_cells]
        kept = {clique: weights[clique] for clique in within(domain, small, ROUND_CELLS)}
        return kept or {Clique((name,)): 1.0 for name in live_columns(domain)}

    def _costs(self, domain: Domain, cost: Cost) -> "_MwemCosts":
        whole, columns = Cost(cost.epsilon, cost.rho), len(live_columns(domain))
        if columns < 2:
            return _MwemCosts(whole, 0, Cost(), Cost())
        rounds = self.rounds or 2 * columns
        first = whole.share(self.one_way_share or _TOTAL_SHARE)
        each = (whole - first).share(Fraction(1, rounds))
        select = each.share(self.selection_share)
        return _MwemCosts(first, rounds, select, each - select)


@dataclass(frozen=True, slots=True)
class _MwemCosts:
    """Costs: the first tables together, the number of rounds, one draw, one table."""

    first: Cost
    rounds: int
    select: Cost
    measure: Cost
