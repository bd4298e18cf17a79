"""Measured: the noisy tables of a run so far, the graphical model fitted to them, and what may still be added.

Post-processing throughout: it sees noisy answers, public rules and public sizes, and nothing else.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Self

import numpy as np
import numpy.typing as npt

from understudy.errors import ResourceError, UsageError
from understudy.marginals.answer import Law, Measurement
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.mechanisms.challenge.compression import Compression
from understudy.mechanisms.forecast import expected_absolute
from understudy.mechanisms.options.checks import check_whole
from understudy.models.expanded import ExpandedField
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
RARE = 3.0
"""A code of a wide column stays if its noisy count is at least this many times the scale of the noise."""
LEAST_CODES = 30
"""Rare codes are merged in columns of more codes than this."""
MOST_CODES = 500
"""The most codes of such a column after merging."""
MOST_PENALTY = 0.1
"""The most that noise takes off a score, as a share of the records; see `noise_cut`."""
LARGE_CELLS = 1_000
"""A table of more cells may cost more than others in rounds of equal price, if"""
DEAR_NOISE = 0.05
"""its noise would add up to more than this share of the records, up to"""
MOST_PRICES = 16
"""times as much."""
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
    merging: "Merging | None" = None

    @classmethod
    def begun(cls, curator: Curator, answers: Sequence[Measurement], model_bytes: int) -> Self:
        """From noisy tables of columns; rare codes of wide ones are merged, at the door too, for all that follows."""
        merging = Merging.of(curator.domain, answers, curator.forbidden)
        curator.merge(merging.places)
        measured = cls(curator.domain, curator.forbidden, model_bytes, merging=merging)
        measured.tables += merging.tables()
        return measured

    @property
    def finished(self) -> MarkovField | ExpandedField:
        """The model of the last fit, with controlled rounding and all codes."""
        model = self.fitted.with_rounding()
        return model if self.merging is None else self.merging.expanded(model)

    def add(self, answers: Iterable[Measurement]) -> None:
        """Keeps noisy answers about cliques for the next fit."""
        for answer in answers:
            values = answer.values.astype(np.float64)
            self.tables.append(NoisyTable(self.domain.clique(answer.columns), values, _variance(answer)))

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

        The score is weight · (Σ max(|M − M̂| − floor, 0) − penalty), floor and penalty by `noise_cut`. A table of very
        many cells is measured at a multiple of the round's price, where the round allows that.
        """
        # Columns never make the model larger, so there is always something to choose.
        columns = [Clique((name,)) for name in live_columns(self.domain)]
        options = self.fitting(list(candidates), price.model_bytes) or columns
        before = self.expected(options)
        weights = [candidates.get(clique, 1.0) for clique in options]
        noises = self.noises(options, price, curator)
        penalties, floors = [noise.cut.penalty for noise in noises], [noise.cut.floor for noise in noises]
        clique = curator.select(MarginalError("table", options, before, weights, penalties, floors), price.select)
        noise = noises[options.index(clique)]
        self.add(curator.measure([clique], noise.price))
        self.refit(price.steps)
        moved = float(np.abs(self.expected([clique])[clique] - before[clique]).sum())
        return Chosen(clique, moved, noise.cut.penalty)

    def noises(self, cliques: Sequence[Clique], price: "Round", curator: Curator) -> "list[Noise]":
        """What measuring each clique's table in this round would cost, and how its noise counts."""
        total = self.fitted.total
        # Noise is weighed by the cells that can be read: see `Curator.readable`.
        sizes = [(self.domain.cells(clique), curator.readable.cells(clique)) for clique in cliques]
        usual = expected_absolute(law_for(price.measure, curator.unit_rows, "measure table"))
        found: dict[tuple[int, int], Noise] = {}
        for cells, weighed in set(sizes):
            paid = price.paid_for(cells, usual * weighed / total)
            law = law_for(paid, curator.unit_rows, "measure table")
            found[cells, weighed] = Noise(paid, noise_cut(law, weighed, total))
        return [found[size] for size in sizes]

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


@dataclass(frozen=True, slots=True, eq=False)
class Merging:
    """Noisy tables of columns, and which of their codes are merged because they are rare by those tables.

    Post-processing of noisy answers. Only columns of more than `LEAST_CODES` codes are looked at that no rule names;
    at most `MOST_CODES` merged codes are left of one.
    """

    answers: Mapping[str, Measurement]
    compression: Compression

    @classmethod
    def of(cls, domain: Domain, answers: Sequence[Measurement], forbidden: Sequence[Forbidden]) -> Self:
        """Codes of a wide column stay if their noisy count is at least `RARE` times σ."""
        by_name = {answer.columns[0]: answer for answer in answers}
        wide = {name: by_name[name] for name in merged_sizes(domain, forbidden) if name in by_name}
        found = Compression.of(domain, wide, RARE)
        kept = {name: min(count, MOST_CODES - 1) for name, count in found.kept.items()}
        return cls(by_name, replace(found, kept=kept))

    @property
    def places(self) -> dict[str, npt.NDArray[np.int64]]:
        """The merged code of each code, for the columns whose codes are merged."""
        return {name: self.compression.places(name) for name in self.compression.merged}

    def tables(self) -> list[NoisyTable]:
        """The answers as noisy tables over merged codes."""
        precisions = [1.0 / (_variance(answer) * answer.values.size) for answer in self.answers.values()]
        sums = [float(answer.values.sum()) for answer in self.answers.values()]
        total = max(1.0, float(np.average(sums, weights=precisions)))
        return [
            self.compression.column(name, answer, _variance(answer), total) for name, answer in self.answers.items()
        ]

    def expanded(self, model: MarkovField) -> MarkovField | ExpandedField:
        """The model with merged codes drawn apart by the noisy counts of what they stand for."""
        merged = self.compression.merged
        if not merged:
            return model
        rare = {name: float(model.marginal(Clique((name,)))[-1]) * model.total for name in merged}
        expansions = {
            name: self.compression.expansion(name, self.answers[name], rare[name], even=False) for name in merged
        }
        return ExpandedField(self.compression.full, model, expansions)


@dataclass(frozen=True, slots=True)
class NoiseCut:
    """How noise counts when a table is chosen: a cell by what it is off beyond `floor`, all less `penalty` rows."""

    floor: float
    penalty: float


@dataclass(frozen=True, slots=True)
class Noise:
    """The price of a table and how the noise bought for it counts."""

    price: Cost
    cut: NoiseCut


def noise_cut(law: Law, cells: int, total: float) -> NoiseCut:
    """How the noise of a table of so many cells counts, the number of records being about `total`.

    Noise X in every cell adds up to cells · E|X|, which is all taken off where it is small. The cells of a large table
    are mostly empty, and a fit without negative counts brings noise there back to 0, at the price of losing what lies
    below some height t: a cell that is off by d is mended by max(|d| − t, 0), and noise above t stays, cells ·
    E max(|X| − t, 0) in all. The lowest t is taken with which that is at most `MOST_PENALTY` of the records. (Taking
    all of the noise off, no table of many cells would ever be worth measuring, however strong its relation.)
    """
    whole, most = expected_absolute(law) * cells, MOST_PENALTY * total
    if whole <= most:
        return NoiseCut(0.0, whole)
    if law.kind == "laplace":
        return NoiseCut(law.scale * math.log(whole / most), most)
    low, high = 0.0, 64.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if law.scale * cells * _beyond(middle) > most else (low, middle)
    return NoiseCut(law.scale * high, most)


def _beyond(height: float) -> float:
    """E max(|X| − height, 0) of a standard normal X."""
    density = math.exp(-(height**2) / 2.0) / math.sqrt(2.0 * math.pi)
    return 2.0 * density - height * math.erfc(height / math.sqrt(2.0))


def merged_sizes(domain: Domain, forbidden: Sequence[Forbidden]) -> dict[str, int]:
    """The columns whose rare codes are merged, with the most codes that are left of each."""
    tied = {name for rule in forbidden for name in rule.clique}
    return {
        name: min(size, MOST_CODES) for name, size in domain.sizes.items() if size > LEAST_CODES and name not in tied
    }


def merged_bound(domain: Domain, forbidden: Sequence[Forbidden]) -> Domain:
    """The domain with the most codes that merging leaves of each column, for plans."""
    return Domain.of({**domain.sizes, **merged_sizes(domain, forbidden)})


@dataclass(frozen=True, slots=True)
class Round:
    """What a round may spend on its draw and its table, how large the model may be after it, and steps of its fit."""

    select: Cost
    measure: Cost
    model_bytes: float
    steps: int
    most: Cost | None = None
    """What a table of very many cells may cost; without it every table costs `measure`."""

    def paid_for(self, cells: int, noise: float) -> Cost:
        """The price of a table whose noise would add up to this share of the records if it cost `measure`.

        Errors of tables that share a cost add up to least if it is shared by cells^(2/3). Large tables cost more by
        that rule, all others the same. A whole number of times `measure`, so that nothing is rounded.
        """
        if self.most is None or cells <= LARGE_CELLS or noise <= DEAR_NOISE:
            return self.measure
        affordable = self.most.rho // max(self.measure.rho, 1)
        return times(self.measure, max(1, min(int((noise / DEAR_NOISE) ** (2.0 / 3.0)), MOST_PRICES, affordable)))


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
        most = None if last else left - select - select - measure  # what is left after it buys a round
        chosen = next_table(Round(select, measure, model_bytes * spent, pace.steps, most), last)
        if chosen is None:
            whole = purse.left.share(Fraction(1, rounds - 1))
            select = whole.share(pace.selection_share)
            measure = whole - select
        elif chosen.moved <= chosen.noise:
            select, measure = times(select, 4), times(measure, 4)


def _variance(answer: Measurement) -> float:
    return max(answer.law.variance, _LEAST_VARIANCE)


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
