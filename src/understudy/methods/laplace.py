"""Laplace: noise on every cell of the full cross-tabulation. The flat sanitizer.

Privacy. Neighbours differ by the rows of one unit, at most k of them. Every row falls in one cell of the full table,
so the table moves by at most k in L1: discrete Laplace noise of scale k/ε on every cell is ε-DP. With `n_policy`
"noisy" a share of ε (1 % by default) buys the total separately, with noise of scale k/ε_n, and the two parts add up;
with "estimated" the total is read off the noisy table. Pure ε only.

Huge tables. A table above `dense_cells` cells is never written out. Noise on all its cells, of which only those at or
above a threshold τ ≥ 1 are kept, is drawn in its sparse form, exactly equal in distribution: the occupied cells get
noise one by one, the number of empty cells that pass is binomial, their places are uniform. τ is chosen from public
numbers: the smallest one at which at most `kept_empty` empty cells are expected to pass. Such cells carry about τ + k/ε
rows each, so a small number of them is wanted; a count below τ is lost. `threshold` fixes τ, for small tables too.

Rules. Impossible cells are dropped after noise, which is the same distribution as never asking about them.

Differs from the published baseline, which does not say how signed counts became rows: negatives are set to 0 and the
rest scaled, the reading that fits its printed distances best; `norm_sub` is there as an option.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from understudy.arrays import Ints
from understudy.domain import Clique, Distribution
from understudy.errors import ResourceError, UsageError
from understudy.methods.method import (
    Method,
    Plan,
    PublicFacts,
    Step,
    noisy_step,
    pass_probability,
    seconds_for,
)
from understudy.models.product import Block, BlockModel
from understudy.models.tables import Negatives, Rounding, allowed, check_linked, check_possible, nonnegative
from understudy.options import option
from understudy.privacy.cost import Cost, Currency, check_sparse, distribution_for
from understudy.privacy.curator import Curator

_CELL_LIMIT = 2**62
_DENSE_BYTES = 80
_KEPT_BYTES = 64
_MOST_DENSE = 2**28
TotalPolicy = Literal["noisy", "estimated"]


@dataclass(frozen=True, slots=True)
class Laplace(Method):
    """Method: the full table with Laplace noise, cleaned, as the model."""

    name: ClassVar[str] = "laplace"
    summary: ClassVar[str] = "Laplace noise on every cell of the full table; sparse form for huge tables."
    source: ClassVar[str] = "The flat sanitizer the STEPS papers compare with; sparse form after Cormode et al. (2012)."
    needs: ClassVar[str] = "A schema. Worth it for small tables: few columns with few codes, many rows."
    limits: ClassVar[str] = "Pure ε only. At most 2⁶² cells; beyond 2²² (option dense_cells) small counts are lost."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure",)

    n_policy: TotalPolicy = option(
        "noisy", help="number of rows: measured with total_share (noisy) or summed up (estimated)"
    )
    total_share: float = option(0.01, help="share of ε for the number of rows", share=True)
    negatives: Negatives = option(
        "clip_rescale", help="how negative counts are removed: clip_rescale, norm_sub or norm_cut"
    )
    dense_cells: int = option(
        2**22, help="largest table written out (about 80 bytes a cell)", least=1, most=_MOST_DENSE
    )
    threshold: int | None = option(
        None,
        help="smallest noisy count kept; none: all (small tables), or chosen (huge tables)",
        least=1,
        most=_CELL_LIMIT,
    )
    kept_empty: int = option(
        100, help="expected number of empty cells of a huge table whose noise passes the threshold", least=1, most=10**7
    )
    rounding: Rounding = option(
        "multinomial", help="how rows are sampled: independent draws, or controlled rounding of the counts"
    )

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The total (if bought) and the table; refuses tables beyond 2⁶² cells and a cost that is not pure ε."""
        cells = facts.domain.cells(facts.domain.columns)
        if cost.rho or not cost.epsilon:
            raise UsageError(f"method {self.name}", "gives pure ε and is paid in ε alone.", "Drop delta=.")
        if cells >= _CELL_LIMIT:
            fix = "Use method independent, coarser bins or fewer columns."
            raise ResourceError(f"method {self.name}: a table of {cells:,} cells", 8 * cells, 8 * _CELL_LIMIT, fix)
        for_total, for_table = self._split(cost)
        steps: tuple[Step, ...] = (noisy_step("measure table", for_table, cells, facts.unit_rows),)
        if self.n_policy == "noisy":
            steps = (noisy_step("measure total", for_total, 1, facts.unit_rows), *steps)
        distribution = distribution_for(for_table, facts.unit_rows, "measure table")
        dense = cells <= self.dense_cells
        notes, held = self._notes(facts, distribution, cells)
        if dense:
            check_possible(facts.domain, facts.structural_zeros)
        else:
            check_sparse(distribution, cells, self._threshold(distribution, cells), f"method {self.name}")
            # If no cell passes, all that remains is the uniform model, which must be able to hold the rules.
            cliques = [facts.domain.clique([name]) for name in facts.domain.columns]
            check_linked(facts.domain, cliques, facts.structural_zeros, f"method {self.name}")
        taken = held * (_DENSE_BYTES if dense else _KEPT_BYTES)
        return Plan(
            self,
            cost,
            for_total + for_table,
            steps,
            cells,
            taken,
            seconds_for(facts, held),
            notes,
            schedule=(for_total, for_table),
            after_counting=taken,
            most_bytes=taken,
        )

    def run(self, curator: Curator, plan: Plan) -> BlockModel:
        """Measures the total and the table, drops impossible cells, removes negatives; the table is the model."""
        for_total, for_table = plan.schedule
        bought = None
        if self.n_policy == "noisy":
            bought = float(curator.measure([Clique()], for_total)[0].values[0])
        everything = curator.domain.everything()
        cells = curator.domain.cells(everything)
        if cells <= self.dense_cells:
            dense = curator.measure([everything], for_table)[0]
            indices, values, distribution = np.arange(cells, dtype=np.int64), dense.values, dense.distribution
            cut = self.threshold
            if cut is not None:
                indices, values = indices[values >= cut], values[values >= cut]
        else:
            cut = self._threshold(distribution_for(for_table, curator.unit_rows, "measure table"), cells)
            sparse = curator.measure_sparse(everything, for_table, cut)
            indices, values, distribution = sparse.indices, sparse.values, sparse.distribution
        possible = allowed(curator.domain, everything, indices, curator.structural_zeros)
        # Thresholded sums are corrected for the noise expected to pass; that covers impossible cells as well.
        kept = values[possible] if cut is None else values
        surplus = 0.0 if cut is None else _expected_noise(distribution, cells, cut)
        total = max(0.0, float(kept.sum()) - surplus if bought is None else bought)
        return self._model(curator, indices[possible], values[possible], total)

    def _model(self, curator: Curator, indices: Ints, values: Ints, total: float) -> BlockModel:
        if not indices.size:
            return replace(BlockModel.uniform(curator.domain, curator.structural_zeros, total), rounding=self.rounding)
        # A table cleaned to a total of 0 would carry no shape at all; any positive total keeps one.
        weights = nonnegative(self.negatives, values, max(total, 1.0))
        block = Block.of(curator.domain.everything(), indices, weights)
        return BlockModel(curator.domain, (block,), total, self.rounding)

    def _split(self, cost: Cost) -> tuple[Cost, Cost]:
        if self.n_policy == "estimated":
            return Cost(), Cost(epsilon=cost.epsilon)
        for_total = cost.share(self.total_share)
        return for_total, Cost(epsilon=cost.epsilon - for_total.epsilon)

    def _threshold(self, distribution: Distribution, cells: int) -> int:
        return (
            self.threshold if self.threshold is not None else smallest_threshold(distribution, cells, self.kept_empty)
        )

    def _notes(self, facts: PublicFacts, distribution: Distribution, cells: int) -> tuple[tuple[str, ...], int]:
        """Notes of the plan and the number of cells expected to be held."""
        notes, held = [], cells
        if cells > self.dense_cells or self.threshold is not None:
            cut = self._threshold(distribution, cells)
            empty = cells * pass_probability(distribution, cut)
            form = "Sparse" if cells > self.dense_cells else "Dense"
            notes.append(
                f"{form} form: noisy counts below {cut} are dropped; about {empty:,.0f} empty cells pass as noise."
            )
            if cells > self.dense_cells:
                held = math.ceil(empty) + (facts.rows_hint or 0)
        if facts.rows_hint is not None:
            average = facts.rows_hint / cells
            text = f"With {facts.rows_hint:,} rows the average cell holds {average:.3g} rows"
            look = ": this will look uniform." if average < distribution.scale else "."
            notes.append(f"{text}, noise has scale {distribution.scale:.3g}{look}")
        return tuple(notes), held


def smallest_threshold(distribution: Distribution, cells: int, kept_empty: int) -> int:
    """The smallest τ ≥ 1 at which at most `kept_empty` of `cells` empty cells are expected to pass.

    >>> from fractions import Fraction
    >>> smallest_threshold(Distribution("laplace", Fraction(1)), 10**15, 100)
    30
    """
    at_one = cells * pass_probability(distribution, 1)
    if at_one <= kept_empty:
        return 1
    return 1 + math.ceil(distribution.scale * math.log(at_one / kept_empty))


def _expected_noise(distribution: Distribution, cells: int, threshold: int) -> float:
    """Expected sum of the noise that passes the threshold in `cells` empty cells: each holds τ + q/(1 − q)."""
    rate = 1.0 / distribution.scale
    return cells * pass_probability(distribution, threshold) * (threshold + math.exp(-rate) / -math.expm1(-rate))
