"""Measured: the noisy tables of a run so far, the graphical model fitted to them, and what may still be added.

Post-processing throughout: it sees noisy answers, public rules and public sizes, and nothing else.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from understudy.errors import ResourceError, UsageError
from understudy.marginals.answer import Measurement
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.mechanisms.forecast import expected_absolute
from understudy.mechanisms.options.checks import check_whole
from understudy.models.graphical.answers import MESSAGE_CELLS
from understudy.models.graphical.estimate import (
    GraphicalSize,
    Growth,
    NoisyTable,
    estimate_total,
    fit,
    fit_forest,
    is_forest,
    towards_independence,
)
from understudy.models.graphical.junction_tree import JunctionTree
from understudy.models.graphical.markov_field import MarkovField
from understudy.privacy.calibrate import law_for
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator
from understudy.privacy.marginal_error import MarginalError

__all__ = [
    "WORKING_TABLES",
    "Chosen",
    "Measured",
    "Pace",
    "Purse",
    "Round",
    "answering_bytes",
    "check_model_bytes",
    "check_start",
    "fitting_bytes",
    "live_columns",
    "shares_of",
    "spend_in_rounds",
    "start_size",
    "times",
]

Floats = npt.NDArray[np.float64]

WORKING_TABLES = 6
"""Bytes of a fit per byte of its model: tables, messages, measured tables and their indices."""
_LEAST_VARIANCE = 1e-9
"""Noise that is surely 0 still needs a weight; only ratios of variances matter."""
_MOST_MODEL_BYTES = 2**36


@dataclass(slots=True)
class Purse:
    """What a method may still spend of the cost it was given, read off the curator's own account."""

    curator: Curator
    cost: Cost
    _before: Cost = field(init=False)

    def __post_init__(self) -> None:
        self._before = self.curator.left

    @property
    def left(self) -> Cost:
        """The rest of the cost, exact to the unit."""
        return Cost(self.cost.epsilon, self.cost.rho) - self.spent

    @property
    def spent(self) -> Cost:
        """What this run has spent so far."""
        return self._before - self.curator.left


@dataclass(slots=True)
class Measured:
    """Noisy tables and the model fitted to them; `model` is None until the first `refit`."""

    domain: Domain
    forbidden: Sequence[Forbidden]
    model_bytes: int
    tables: list[NoisyTable] = field(default_factory=list)
    model: MarkovField | None = None

    def add(self, answers: Iterable[Measurement]) -> None:
        """Keeps noisy answers about cliques for the next fit."""
        for answer in answers:
            values = answer.values.astype(np.float64)
            variance = max(answer.law.variance, _LEAST_VARIANCE)
            self.tables.append(NoisyTable(self.domain.clique(answer.columns), values, variance))

    @property
    def total(self) -> float:
        """Number of records by all answers so far, at least 1."""
        return estimate_total(self.domain, self.tables, self.forbidden)

    def refit(self, steps: int, *, tables: Sequence[NoisyTable] | None = None, warm: bool = True) -> MarkovField:
        """The model of all tables so far (or of `tables`, cleaned versions of them), from the earlier one if warm."""
        self.model = fit(
            self.domain,
            self.tables if tables is None else tables,
            self.forbidden,
            start=self.model if warm else None,
            total=self.total,
            steps=steps,
            model_bytes=self.model_bytes,
        )
        return self.model

    def fit_tree(self, steps: int) -> MarkovField:
        """The model of tables that form a forest, drawn towards independence; closed form where the rules allow it."""
        tree = JunctionTree.of(self.domain, self._cliques())
        if is_forest(self.domain, self.tables, self.forbidden) and max(map(len, tree.bags)) <= 2:
            self.model = fit_forest(self.domain, self.tables, self.forbidden, total=self.total)
            return self.model
        drawn = towards_independence(self.domain, self.tables, self.forbidden, self.total)
        return self.refit(steps, tables=drawn, warm=False)

    def expected(self, cliques: Iterable[Clique]) -> dict[Clique, Floats]:
        """Counts that the model expects in each clique's table."""
        total = self.fitted.total
        return {clique: table * total for clique, table in self.fitted.marginals(cliques).items()}

    @property
    def fitted(self) -> MarkovField:
        """The model of the last fit."""
        if self.model is None:
            raise UsageError("model", "was not fitted yet.")
        return self.model

    def next_table(self, curator: Curator, candidates: Mapping[Clique, float], price: "Round") -> "Chosen":
        """One round: draws the candidate whose table is predicted worst beyond its noise, measures it, and refits.

        The score is weight · (‖M − M̂‖₁ − expected noise). A table whose noise alone is expected to exceed the largest
        possible distance, twice the number of records, is no candidate; columns on their own always are.
        """
        noise = expected_absolute(law_for(price.measure, curator.unit_rows, "measure table"))
        worth = [
            clique
            for clique in candidates
            if len(clique) < 2 or noise * self.domain.cells(clique) <= 2.0 * self.fitted.total
        ]
        # Columns never make the model larger, so there is always something to choose.
        columns = [Clique((name,)) for name in live_columns(self.domain)]
        options = self.fitting(worth or list(candidates), price.model_bytes) or columns
        before = self.expected(options)
        weights = [candidates.get(clique, 1.0) for clique in options]
        penalties = [noise * self.domain.cells(clique) for clique in options]
        clique = curator.select(MarginalError("table", options, before, weights, penalties), price.select)
        self.add(curator.measure([clique], price.measure))
        self.refit(price.steps)
        moved = float(np.abs(self.expected([clique])[clique] - before[clique]).sum())
        return Chosen(clique, moved, noise * self.domain.cells(clique))

    def fitting(self, candidates: Sequence[Clique], model_bytes: float, extra: Sequence[Clique] = ()) -> list[Clique]:
        """The candidates with which the model (with `extra` cliques) stays within these bytes, or does not grow."""
        cliques = [*self._cliques(), *extra]
        growth = Growth(self.domain, cliques)
        now = GraphicalSize.of(self.domain, cliques).cells
        limit = max(model_bytes / 8.0, now)
        return [
            clique for clique, cells in zip(candidates, growth.cells_with(candidates), strict=True) if cells <= limit
        ]

    def bytes_with(self, extra: Sequence[Clique]) -> int:
        """Bytes of the model's tables with these cliques more."""
        return GraphicalSize.of(self.domain, [*self._cliques(), *extra]).bytes

    def _cliques(self) -> list[Clique]:
        return [*(table.clique for table in self.tables), *(rule.clique for rule in self.forbidden)]


@dataclass(frozen=True, slots=True)
class Round:
    """What a round may spend on its draw and its table, how large the model may be after it, and steps of its fit."""

    select: Cost
    measure: Cost
    model_bytes: float
    steps: int


@dataclass(frozen=True, slots=True)
class Pace:
    """Prices of a planned round, the part of a price that its draw takes, and steps of its fit."""

    select: Cost
    measure: Cost
    selection_share: float
    steps: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """The table of a round, how far it moved the model there, and how much noise it was expected to hold (L1)."""

    clique: Clique
    moved: float
    noise: float


def spend_in_rounds(
    purse: Purse, pace: Pace, model_bytes: int, next_table: Callable[[Round, bool], Chosen | None]
) -> None:
    """Round after round until the purse is empty; the model may grow with what is spent.

    A round whose table moved the model by no more than its noise makes later rounds four times as dear. A round that
    paid for its draw only leaves the price of its table to the rounds after it. The last round takes all that is left.

    Args:
        purse: what may be spent.
        pace: prices of the first round.
        model_bytes: most bytes of the model when all is spent.
        next_table: does a round, given its prices and whether it is the last; None if no table was measured in it,
            which must not happen in the last one.
    """
    select, measure = pace.select, pace.measure
    while purse.left.rho:
        left = purse.left
        last = left.rho < 2 * (select + measure).rho
        if last:
            select = left.share(pace.selection_share)
            measure = left - select
        rounds = left.rho // (select + measure).rho
        spent = 1.0 - (left - select - measure).rho / purse.cost.rho
        chosen = next_table(Round(select, measure, model_bytes * spent, pace.steps), last)
        if chosen is None:
            whole = purse.left.share(Fraction(1, rounds - 1))
            select = whole.share(pace.selection_share)
            measure = whole - select
        elif chosen.moved <= chosen.noise:
            select, measure = times(select, 4), times(measure, 4)


def live_columns(domain: Domain) -> list[str]:
    """Columns with two codes or more: only about them is there anything to learn. The first one if there is none."""
    return [name for name in domain.columns if domain.sizes[name] > 1] or list(domain.columns[:1])


def shares_of(domain: Domain, cliques: Iterable[Clique]) -> list[float]:
    """How tables share a cost: by cells^(2/3).

    Noise of scale σ_i on m_i cells adds up to ∝ m_i σ_i, and σ_i ∝ ρ_i^(−1/2); the sum is smallest for this split.
    """
    return [float(domain.cells(clique)) ** (2.0 / 3.0) for clique in cliques]


def times(cost: Cost, count: int) -> Cost:
    """That price paid `count` times."""
    return Cost(cost.epsilon * count, cost.rho * count)


def start_size(domain: Domain, forbidden: Sequence[Forbidden]) -> GraphicalSize:
    """The size of the smallest model: every column on its own, and what rules tie together."""
    return GraphicalSize.of(
        domain, [*(Clique((name,)) for name in domain.columns), *(rule.clique for rule in forbidden)]
    )


def fitting_bytes(domain: Domain, model_bytes: int) -> tuple[int, int]:
    """The most that a model may hold of these bytes, and what fitting and asking it takes."""
    held = min(model_bytes, 8 * domain.cells(domain.columns))
    return held, WORKING_TABLES * held + answering_bytes(domain, held)


def answering_bytes(domain: Domain, model_bytes: int) -> int:
    """The most that expecting many tables at once takes: for all cells of separators the chances of all other codes."""
    return 8 * min(MESSAGE_CELLS, 2 * (model_bytes // 8) * sum(domain.sizes.values()))


def check_start(domain: Domain, forbidden: Sequence[Forbidden], model_bytes: int, method: str) -> None:
    """Refuses in advance rules that tie more together than the model may hold."""
    needed = start_size(domain, forbidden).bytes
    if needed > model_bytes:
        fix = "Raise model_bytes, use coarser bins for the columns that rules name, or drop a rule."
        raise ResourceError(f"method {method}: columns and rules alone", needed, model_bytes, fix)


def check_model_bytes(model_bytes: object) -> None:
    """Raises UsageError unless this is a sensible number of bytes."""
    check_whole("model_bytes", model_bytes, 2**10, _MOST_MODEL_BYTES)
