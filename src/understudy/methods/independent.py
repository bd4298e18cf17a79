"""Independent: every column's own distribution, nothing about how columns go together. The baseline.

Privacy. Neighbours differ by the rows of one unit, at most k of them. Every column is counted once; a row falls in one
cell of each count, so one column's table moves by at most k in L1 and in L2. With d columns the cost is split into d
equal parts, and the parts add up (ε under pure DP with discrete Laplace noise of scale dk/ε, ρ under zCDP with
discrete Gaussian noise of σ² = dk²/(2ρ)). Queries and costs are fixed before any answer, so with one row per unit
the exact distributions of the noise are summed, which buys a larger ρ for the same (ε, δ). All else is post-processing.

Total. The cells of each table add up to a noisy number of rows of its own; they are averaged with weights inverse to
their variance (cells × variance of the noise), so it costs nothing extra.

Rules. Columns that rules tie together become one joint table on the possible combinations, scaled to the measured
columns as far as the rules allow.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from understudy.domain import Measurement
from understudy.methods.method import Method, Plan, PublicFacts, noisy_step, seconds_for
from understudy.models.product import BlockModel
from understudy.models.tables import Negatives, Rounding, check_linked, nonnegative
from understudy.options import option
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import Curator

_CELL_BYTES = 64
_LINKED_BYTES = 40


@dataclass(frozen=True, slots=True)
class Independent(Method):
    """Method: one noisy table per column, their product as the model."""

    name: ClassVar[str] = "independent"
    summary: ClassVar[str] = "One noisy table per column; columns are drawn independently, except where rules tie them."
    source: ClassVar[str] = "The usual baseline; discrete noise after Canonne, Kamath and Steinke (2020)."
    needs: ClassVar[str] = "A schema. Nothing else."
    limits: ClassVar[str] = "Keeps no relation between columns. Rules may tie at most 10⁷ combinations together."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "zcdp")
    can_be_fixed: ClassVar[bool] = True

    negatives: Negatives = option(
        "norm_sub", help="how negative counts are removed: clip_rescale, norm_sub or norm_cut"
    )
    rounding: Rounding = option(
        "multinomial", help="how rows are sampled: independent draws, or controlled rounding of the counts"
    )

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """One step per column, at equal cost; refuses rules that tie too much together or leave nothing possible."""
        domain = facts.domain
        cliques = [domain.clique([name]) for name in domain.columns]
        largest = check_linked(domain, cliques, facts.structural_zeros, f"method {self.name}")
        parts = cost.split([1.0] * len(cliques))
        steps = tuple(
            noisy_step(f"measure {clique[0]}", part, domain.cells(clique), facts.unit_rows)
            for clique, part in zip(cliques, parts, strict=True)
        )
        cells = sum(domain.sizes.values())
        return Plan(
            self,
            cost,
            sum(parts, Cost()),
            steps,
            cells,
            cells * _CELL_BYTES + largest * _LINKED_BYTES,
            seconds_for(facts, cells + largest),
            ("Relations between columns are not kept.", *_rows_note(facts, steps[0].expected_error)),
            schedule=cliques,
            fixed=True,
        )

    def run(self, curator: Curator, plan: Plan) -> BlockModel:
        """Measures every column once and returns the product of the cleaned tables."""
        domain, cliques = curator.domain, plan.schedule
        answers = curator.measure(cliques, plan.granted)
        total = weighted_total(answers)
        # A table cleaned to a total of 0 would carry no shape at all; any positive total keeps one.
        parts = {
            clique: nonnegative(self.negatives, answer.values, max(total, 1.0))
            for clique, answer in zip(cliques, answers, strict=True)
        }
        return replace(BlockModel.of_marginals(domain, parts, curator.structural_zeros, total), rounding=self.rounding)


def weighted_total(answers: Sequence[Measurement]) -> float:
    """The number of rows, from tables that each count every row once; never below 0.

    Each table's sum has variance cells × noise variance; the weights are inverse to it. Floats that reach a release are
    added by `fsum`: the built-in `sum` rounds them otherwise from Python 3.12 on.
    """
    weights = [1.0 / (answer.values.size * max(answer.distribution.variance, 1e-300)) for answer in answers]
    sums = [float(answer.values.sum()) for answer in answers]
    estimate = math.fsum(weight * part for weight, part in zip(weights, sums, strict=True)) / math.fsum(weights)
    return max(0.0, estimate)


def _rows_note(facts: PublicFacts, error: float | None) -> tuple[str, ...]:
    if facts.rows_hint is None or error is None:
        return ()
    widest = max(facts.domain.sizes.values())
    average = facts.rows_hint / widest
    return (
        f"With {facts.rows_hint:,} rows the widest column holds {average:,.1f} rows per code, ± {error:,.1f} noise.",
    )
