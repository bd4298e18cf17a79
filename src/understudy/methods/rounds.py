"""Rounds that choose a table, measure it and refit: what `aim`, `mwem` and `mst` share.

Which rare values of a column become one code follows from the noisy one-way tables, so it is as public as they are. The
model of a run and what may still be added to it follow from noisy answers, public rules and public sizes alone.

Rounds with a public table
--------------------------
Such a round chooses between measuring a table and taking it from public data.

Source: Fuentes, Mullins, McKenna, Miklau, Sheldon, "Joint selection: adaptively incorporating public information for
private synthetic data" (JAM, 2024).

A round draws a clique r together with a source (`privacy/scores.py`: `PublicOrPrivate`). Private: r is measured
with noise and fitted. Public: the public table of r, scaled to the estimated number of records, is fitted as if it had
been measured; that costs nothing beyond the draw, and what the measurement would have cost is spread evenly over the
rounds that are left. The last round is always private, so nothing stays unspent. A public table is taken at most once,
and every public pick leaves one round less, so there are never more rounds than were planned.

Variance of a public table (how much the fit trusts it): the variance of the round's noise or the mean variance of its
cells as a sample of n records scaled to N, N²/n · (1 − Σ p_x²)/cells, whichever is larger. Both are public numbers. It
does not cover how far the public population is from the private one: the score does, when the table is chosen. The
number of records is estimated from private measurements alone.

Privacy. Exact private counts are touched by draws and measurements only, both through the curator and both paid for. A
score moves by at most k · `sensitivity` for the k rows of one unit (proof there), so a draw at ε costs ε²/8 of ρ. The
public table holds no protected unit, hence its counts are the same on neighbouring tables; sizes, costs and options
depend on them, on earlier answers and on public sizes. Costs are taken off one account as they arise (zCDP composes
adaptively).

Differs from the source. Its program gives both kinds of score the same sensitivity, though a public one can move twice
as far; here public scores are halved. Columns are measured before the rounds, and noise is halved when rounds teach
nothing, as in `aim`.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Self

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Ints
from understudy.domain import Clique, Distribution, Domain, Measurement, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.marginals import ListedTable
from understudy.methods.method import Method, Plan, PublicFacts, Rounds, Step, expected_absolute, seconds_of_rounds
from understudy.models.estimation import NoisyTable, estimate_total, is_forest, shrink, towards_independence
from understudy.models.junction_tree import GraphicalSize, JunctionTree, ModelGrowth, eliminate
from understudy.models.markov_field import ExpandedField, Expansion, MarkovField, fit, fit_forest
from understudy.models.propagation import CACHED_CELLS, MESSAGE_CELLS
from understudy.models.tables import norm_sub
from understudy.privacy.cost import Cost, distribution_for
from understudy.privacy.curator import Curator
from understudy.privacy.scores import MarginalError, PublicOrPrivate, Sourced

_CUT = 10
"""A column that must shrink loses one in this many of its codes at a time."""


@dataclass(frozen=True, slots=True)
class MergingLimits:
    """What must fit after merging: cells of every table, bytes of the model over these cliques."""

    table_cells: int
    model_bytes: int
    tables: tuple[Clique, ...]
    others: tuple[Clique, ...] = ()

    def overfull(self, domain: Domain) -> list[Clique]:
        """The tables that are too large, or else the bags of a model that is; the largest first."""
        wide = [clique for clique in self.tables if domain.cells(clique) > self.table_cells]
        if not wide and GraphicalSize.of(domain, self.cliques).bytes > self.model_bytes:
            wide = list(eliminate(domain, self.cliques).bags)
        return sorted(wide, key=domain.cells, reverse=True)

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """All cliques of the model."""
        return (*self.tables, *self.others)


@dataclass(frozen=True, slots=True, eq=False)
class CoarseTable:
    """A partition: the table of a clique with the codes of its columns sent to coarser ones."""

    name: str
    columns: Clique
    places: tuple[Ints, ...]
    shape: tuple[int, ...]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(np.prod(self.shape, dtype=np.int64))

    def assign(self, codes: Mapping[str, npt.NDArray[np.integer]]) -> Ints:
        """The cell of each record."""
        cell: Ints = np.zeros(len(codes[self.columns[0]]), dtype=np.int64)
        for name, places, size in zip(self.columns, self.places, self.shape, strict=True):
            cell = cell * size + places[codes[name]]
        return cell


@dataclass(frozen=True, slots=True, eq=False)
class Compression:
    """How many values of each column stay: `kept` of them, in the order of `ranks`; the others share one code.

    A column that is not in `ranks` is never merged. A single value left over keeps its own code.
    """

    full: Domain
    ranks: Mapping[str, Ints]
    kept: Mapping[str, int]

    @classmethod
    def of(cls, full: Domain, answers: Mapping[str, Measurement], threshold: float) -> Self:
        """Values whose noisy count is at least `threshold` times the noise's σ stay."""
        # By noisy counts alone: exact ones are not even within reach here, and merging stays free.
        ranks = {name: np.argsort(-answer.values, kind="stable") for name, answer in answers.items()}
        kept = {
            name: int((answer.values >= threshold * answer.distribution.scale).sum())
            for name, answer in answers.items()
        }
        return cls(full, ranks, kept)

    @property
    def domain(self) -> Domain:
        """The merged codes."""
        sizes = {
            name: self.kept[name] + 1 if name in self.kept and self.kept[name] + 1 < size else size
            for name, size in self.full.sizes.items()
        }
        return Domain.of(sizes)

    def within(self, limits: MergingLimits) -> Self:
        """The same with more values merged, those of lower noisy counts first, until everything fits.

        The widest column of the largest table (or bag of the model) loses a tenth of its codes at a time. Ends when
        everything fits or nothing is left to merge.
        """
        kept, domain = dict(self.kept), self.domain
        while True:
            for clique in limits.overfull(domain):
                widths = {name: domain.sizes[name] for name in clique if name in kept and domain.sizes[name] > 1}
                if widths:
                    widest = max(widths, key=widths.__getitem__)
                    # One less for the common code, which counts among the codes of the merged column.
                    kept[widest] = widths[widest] - max(1, widths[widest] // _CUT) - 1
                    break
            else:
                return type(self)(self.full, self.ranks, kept)
            domain = type(self)(self.full, self.ranks, kept).domain

    @property
    def merged(self) -> list[str]:
        """The columns of which values were merged."""
        return [name for name, size in self.domain.sizes.items() if size < self.full.sizes[name]]

    def places(self, name: str) -> Ints:
        """The merged code of each code: kept ones in their order, then the one for all others."""
        if name not in self.merged:
            return np.arange(self.full.sizes[name], dtype=np.int64)
        places = np.full(self.full.sizes[name], self.kept[name], dtype=np.int64)
        places[np.sort(self.ranks[name][: self.kept[name]])] = np.arange(self.kept[name])
        return places

    def query(self, table: ListedTable) -> Clique | CoarseTable:
        """What to measure for a listed table: the clique itself where none of its columns is merged or grouped."""
        if not table.starts and not set(table.clique) & set(self.merged):
            return table.clique
        places = tuple(table.groups(name, self.domain.sizes[name])[self.places(name)] for name in table.clique)
        shape = tuple(int(place.max()) + 1 for place in places)
        return CoarseTable(f"{' × '.join(table.clique)}, coarse", table.clique, places, shape)

    def table(self, listed: ListedTable, answer: Measurement, variance: float) -> NoisyTable:
        """The answer to a listed table's query, as a noisy table over merged codes."""
        groups = None
        if listed.starts:
            groups = np.zeros(1, dtype=np.int64)
            for name in listed.clique:
                axis = listed.groups(name, self.domain.sizes[name])
                groups = np.add.outer(groups * (int(axis.max()) + 1), axis).ravel()
        return NoisyTable(listed.clique, answer.values.astype(np.float64), variance, groups)

    def column(self, name: str, answer: Measurement, variance: float, total: float) -> NoisyTable:
        """The answer about a column as a noisy table over merged codes.

        The code of s merged values is s times as noisy as the others. A noisy table has one variance, so the counts are
        first brought to the total by least squares with the right variances; that takes most of the excess away.
        """
        places = self.places(name)
        counts = np.bincount(places, weights=answer.values, minlength=self.domain.sizes[name]).astype(np.float64)
        if name in self.merged:
            # By the number of merged codes, which is how much of the column's noise each of them holds.
            counts += (total - counts.sum()) * np.bincount(places) / places.size
        return NoisyTable(Clique((name,)), counts, variance)

    def expansion(
        self, name: str, answer: Measurement, mass: float, *, even: bool = False, shrunk: bool = False
    ) -> Expansion:
        """How the merged code of a column falls apart: by its values' noisy counts, or evenly.

        `mass` is the number of records the model gives the merged code; noisy counts are cut to add up to it, and
        `shrunk` ones are first drawn towards their mean by what noise explains of their spread.
        """
        places = self.places(name)
        rare = places == self.kept[name]
        shares = np.ones(places.size)
        counts = answer.values[rare].astype(np.float64)
        if shrunk:
            counts = shrunk_counts(counts, answer.distribution.variance)
        # Cut to the mass that the model gives, or noise on hundreds of rare codes would outweigh it.
        weights = np.ones(counts.size) if even else norm_sub(counts, max(mass, 1.0))
        shares[rare] = weights / weights.sum()
        return Expansion(places, shares)


def shrunk_counts(counts: Floats, variance: float) -> Floats:
    """Noisy counts drawn towards their mean, the more of their spread noise of that variance explains (James, Stein).

    >>> shrunk_counts(np.array([0.0, 6.0, 0.0]), 6.0).tolist(), shrunk_counts(np.array([0.0, 6.0, 0.0]), 20.0).tolist()
    ([1.0, 4.0, 1.0], [2.0, 2.0, 2.0])
    """
    apart = counts - counts.mean()
    spread = float((apart**2).sum())
    kept = max(0.0, 1.0 - (counts.size - 1) * variance / spread) if spread else 0.0
    return np.asarray(counts.mean() + kept * apart)


def smallest(full: Domain, mergeable: Sequence[str]) -> Domain:
    """The domain with everything merged that may be."""
    return Domain.of({name: 1 if name in mergeable else size for name, size in full.sizes.items()})


WORKING_TABLES = 6
"""Bytes of a fit per byte of its model: tables, messages, measured tables and their indices."""
RARE = 3.0
"""A code of a wide column stays if its noisy count is at least this many times the scale of the noise."""
LEAST_CODES = 30
"""Rare codes are merged in columns of more codes than this."""
PAIR_CELLS = 200_000
"""Cells of a pair with a narrow column that limit how many codes of it stay, unless the method allows more."""
MOST_CUT = 0.2
"""The most records of two wide columns that may lose their codes to make room for the pair of both."""
# Subtracting all of the noise, as AIM does, no pair of a column with 1,000 codes would ever be measured.
MOST_PENALTY = 0.1
"""The most that noise takes off a score, as a share of the records; see `noise_cut`."""
LARGE_CELLS = 1_000
"""A table of more cells may cost more than others in rounds of equal cost, if"""
DEAR_NOISE = 0.05
"""its noise would add up to more than this share of the records, up to"""
MOST_ROUND_COSTS = 16
"""times as much."""
_LEAST_VARIANCE = 1e-9
"""Noise that is surely 0 still needs a weight; only ratios of variances matter."""
LEAST_MODEL_BYTES, MOST_MODEL_BYTES = 2**10, 2**36


@dataclass(slots=True)
class RemainingBudget:
    """What a method may still spend of the cost it was given, read off the curator's own account."""

    curator: Curator
    cost: Cost
    _before: Cost = field(init=False)

    def __post_init__(self) -> None:
        self._before = self.curator.left

    @property
    def left(self) -> Cost:
        """The rest of the cost, exact to the unit."""
        # Read off the curator, so that what a query took can never be counted otherwise than it was charged.
        return Cost(self.cost.epsilon, self.cost.rho) - self.spent

    @property
    def spent(self) -> Cost:
        """What this run has spent so far."""
        return self._before - self.curator.left


@dataclass(slots=True)
class Measured:
    """Noisy tables and the model fitted to them; `model` is None until the first `refit`."""

    domain: Domain
    structural_zeros: Sequence[StructuralZeros]
    model_bytes: int
    tables: list[NoisyTable] = field(default_factory=list)
    model: MarkovField | None = None
    merging: "Merging | None" = None
    drawn: dict[int, NoisyTable] = field(default_factory=dict)
    """By place in `tables`: very noisy tables of rounds, drawn towards what the model expected, for the last fit."""

    @classmethod
    def begun(
        cls, curator: Curator, answers: Sequence[Measurement], model_bytes: int, pair_cells: int = PAIR_CELLS
    ) -> Self:
        """From noisy tables of columns; rare codes of wide ones are merged, by the curator too, from here on."""
        merging = Merging.of(curator.domain, answers, curator.structural_zeros, pair_cells)
        curator.merge(merging.places)
        measured = cls(curator.domain, curator.structural_zeros, model_bytes, merging=merging)
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
        return estimate_total(self.domain, self.tables, self.structural_zeros)

    def refit(self, steps: int, *, tables: Sequence[NoisyTable] | None = None, warm: bool = True) -> MarkovField:
        """The model of all tables so far (or of `tables`, cleaned versions of them), from the earlier one if warm."""
        self.model = fit(
            self.domain,
            self.tables if tables is None else tables,
            self.structural_zeros,
            start=self.model if warm else None,
            total=self.total,
            steps=steps,
            model_bytes=self.model_bytes,
        )
        return self.model

    @property
    def last_tables(self) -> list[NoisyTable]:
        """The tables for the last fit: those whose noise adds up to much as `drawn`."""
        return [self.drawn.get(place, table) for place, table in enumerate(self.tables)]

    def fit_tree(self, steps: int) -> MarkovField:
        """The model of tables that form a forest, drawn towards independence; closed form where the rules allow it."""
        tree = JunctionTree.of(self.domain, self._cliques())
        if is_forest(self.domain, self.tables, self.structural_zeros) and max(map(len, tree.bags)) <= 2:
            self.model = fit_forest(self.domain, self.tables, self.structural_zeros, total=self.total)
            return self.model
        drawn = towards_independence(self.domain, self.tables, self.structural_zeros, self.total)
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

    def next_table(self, curator: Curator, candidates: Mapping[Clique, float], cost: "Round") -> "Chosen":
        """One round: draws the candidate whose table is predicted worst beyond its noise, measures it, and refits.

        The score is weight · (Σ max(|M − M̂| − floor, 0) − penalty), floor and penalty by `noise_cut`, and the weight
        raised by what the floor hides (`NoiseCut.weight`); all of them are public. A table of very
        many cells is measured at a multiple of the round's cost, where the round allows that.
        """
        # Columns never make the model larger, so there is always something to choose.
        columns = [Clique((name,)) for name in live_columns(self.domain)]
        options = self.fitting(list(candidates), cost.model_bytes) or columns
        before = self.expected(options)
        noises = self.noises(options, cost, curator)
        raised = [noise.cut.weight(before[clique]) for clique, noise in zip(options, noises, strict=True)]
        weights = [candidates.get(clique, 1.0) * more for clique, more in zip(options, raised, strict=True)]
        penalties = [noise.cut.penalty / more for noise, more in zip(noises, raised, strict=True)]
        floors = [noise.cut.floor for noise in noises]
        clique = curator.select(MarginalError("table", options, before, weights, penalties, floors), cost.select)
        noise = noises[options.index(clique)]
        self.measure(curator, clique, noise.cost, before[clique])
        self.refit(cost.steps)
        moved = float(np.abs(self.expected([clique])[clique] - before[clique]).sum())
        return Chosen(clique, moved, noise.cut.penalty)

    def measure(self, curator: Curator, clique: Clique, cost: Cost, expected: Floats) -> None:
        """Measures the table of a round; one whose noise adds up to much is also drawn towards what was expected."""
        self.add(curator.measure([clique], cost))
        table = self.tables[-1]
        # For the last fit only. Drawn towards the model from the start, a table could never move it.
        if len(clique) > 1 and math.sqrt(table.variance) * table.values.size > DEAR_NOISE * self.fitted.total:
            self.drawn[len(self.tables) - 1] = shrink(table, expected)

    def noises(self, cliques: Sequence[Clique], cost: "Round", curator: Curator) -> "list[Noise]":
        """What measuring each clique's table in this round would cost, and how its noise counts."""
        total = self.fitted.total
        # Noise is weighed by the cells that can be read: see `Curator.readable`.
        sizes = [(self.domain.cells(clique), curator.readable.cells(clique)) for clique in cliques]
        usual = expected_absolute(distribution_for(cost.measure, curator.unit_rows, "measure table"))
        found: dict[tuple[int, int], Noise] = {}
        for cells, weighed in set(sizes):
            paid = cost.paid_for(cells, usual * weighed / total)
            distribution = distribution_for(paid, curator.unit_rows, "measure table")
            found[cells, weighed] = Noise(paid, noise_cut(distribution, weighed, total))
        return [found[size] for size in sizes]

    def fitting(self, candidates: Sequence[Clique], model_bytes: float, extra: Sequence[Clique] = ()) -> list[Clique]:
        """The candidates with which the model (with `extra` cliques) stays within these bytes, or does not grow."""
        cliques = [*self._cliques(), *extra]
        growth = ModelGrowth(self.domain, cliques)
        now = GraphicalSize.of(self.domain, cliques).cells
        limit = max(model_bytes / 8.0, now)
        return [
            clique for clique, cells in zip(candidates, growth.cells_with(candidates), strict=True) if cells <= limit
        ]

    def bytes_with(self, extra: Sequence[Clique]) -> int:
        """Bytes of the model's tables with these cliques more."""
        return GraphicalSize.of(self.domain, [*self._cliques(), *extra]).bytes

    def _cliques(self) -> list[Clique]:
        return [*(table.clique for table in self.tables), *(rule.clique for rule in self.structural_zeros)]


@dataclass(frozen=True, slots=True, eq=False)
class Merging:
    """Noisy tables of columns, and which of their codes are merged because they are rare by those tables.

    Post-processing of noisy answers. Only columns of more than `LEAST_CODES` codes are looked at that no rule names;
    no pair with a narrow column has more than `pair_cells` cells. Where two columns are
    so wide that their pair has more, their codes are cut to make room for it if few records are lost by that
    (`MOST_CUT`, by noisy counts); else they stay, for what ties them to narrow columns, and their pair is too large.
    """

    answers: Mapping[str, Measurement]
    compression: Compression

    @classmethod
    def of(
        cls,
        domain: Domain,
        answers: Sequence[Measurement],
        structural_zeros: Sequence[StructuralZeros],
        pair_cells: int = PAIR_CELLS,
    ) -> Self:
        """Codes of a wide column stay if their noisy count is at least `RARE` times σ, the most frequent first."""
        by_name = {answer.columns[0]: answer for answer in answers}
        most = merged_sizes(domain, structural_zeros, pair_cells)
        found = Compression.of(domain, {name: by_name[name] for name in most if name in by_name}, RARE)
        # One place of the most is for the common code.
        kept = {name: count if count < most[name] else most[name] - 1 for name, count in found.kept.items()}
        alike = math.isqrt(pair_cells)
        wide = [name for name, count in kept.items() if count >= alike]
        for name in wide if len(wide) > 1 else ():
            counts = by_name[name].values[found.ranks[name]]
            if counts[alike - 1 : kept[name]].sum() <= MOST_CUT * counts[: kept[name]].sum():
                kept[name] = alike - 1
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

    def weight(self, expected: Floats) -> float:
        """What makes up for rows that the floor hides although measuring the table would mend them: from 1 to 2.

        Rows too many in some cells are rows too few in others, so either half of the distance says the same. Of the
        rows too few a floor leaves at most Σ max(expected − floor, 0): none where all cells are expected to be small.
        """
        if not self.floor:
            return 1.0
        return 2.0 / (1.0 + float(np.maximum(expected - self.floor, 0.0).sum() / max(expected.sum(), 1.0)))


@dataclass(frozen=True, slots=True)
class Noise:
    """The cost of a table and how the noise bought for it counts."""

    cost: Cost
    cut: NoiseCut


def noise_cut(distribution: Distribution, cells: int, total: float) -> NoiseCut:
    """How the noise of a table of so many cells counts, the number of records being about `total`.

    Noise X in every cell adds up to cells · E|X|, which is all taken off where it is small. The cells of a large table
    are mostly empty, and a fit without negative counts brings noise there back to 0, at the cost of losing what lies
    below some height t: a cell that is off by d is mended by max(|d| − t, 0), and noise above t stays, cells ·
    E max(|X| − t, 0) in all. The lowest t is taken with which that is at most `MOST_PENALTY` of the records. (Taking
    all of the noise off, no table of many cells would ever be worth measuring, however strong its relation.)
    """
    whole, most = expected_absolute(distribution) * cells, MOST_PENALTY * total
    if whole <= most:
        return NoiseCut(0.0, whole)
    if distribution.kind == "laplace":
        return NoiseCut(distribution.scale * math.log(whole / most), most)
    low, high = 0.0, 64.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if distribution.scale * cells * _beyond(middle) > most else (low, middle)
    return NoiseCut(distribution.scale * high, most)


def _beyond(height: float) -> float:
    """E max(|X| − height, 0) of a standard normal X."""
    density = math.exp(-(height**2) / 2.0) / math.sqrt(2.0 * math.pi)
    return 2.0 * density - height * math.erfc(height / math.sqrt(2.0))


def merged_sizes(
    domain: Domain, structural_zeros: Sequence[StructuralZeros], pair_cells: int = PAIR_CELLS
) -> dict[str, int]:
    """The columns whose rare codes are merged, with the most codes that are left of each."""
    tied = {name for rule in structural_zeros for name in rule.clique}
    narrow = max((size for size in domain.sizes.values() if size <= math.isqrt(pair_cells)), default=1)
    most = pair_cells // narrow
    return {name: min(size, most) for name, size in domain.sizes.items() if size > LEAST_CODES and name not in tied}


def merged_bound(domain: Domain, structural_zeros: Sequence[StructuralZeros], pair_cells: int = PAIR_CELLS) -> Domain:
    """The domain with the most codes that merging leaves of each column, for plans."""
    return Domain.of({**domain.sizes, **merged_sizes(domain, structural_zeros, pair_cells)})


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
        """The cost of a table whose noise would add up to this share of the records if it cost `measure`.

        Errors of tables that share a cost add up to least if it is shared by cells^(2/3). Large tables cost more by
        that rule, all others the same. A whole number of times `measure`, so that nothing is rounded.
        """
        if self.most is None or cells <= LARGE_CELLS or noise <= DEAR_NOISE:
            return self.measure
        affordable = self.most.rho // max(self.measure.rho, 1)
        return times(self.measure, max(1, min(int((noise / DEAR_NOISE) ** (2.0 / 3.0)), MOST_ROUND_COSTS, affordable)))


@dataclass(frozen=True, slots=True)
class RoundCosts:
    """Costs of a planned round, the part of a cost that its draw takes, and steps of its fit."""

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
    remaining: RemainingBudget,
    round_costs: RoundCosts,
    model_bytes: int,
    next_table: Callable[[Round, bool], Chosen | None],
) -> None:
    """Round after round until the remaining budget is empty; the model may grow with what is spent.

    A round whose table moved the model by no more than its noise makes later rounds four times as dear. A round that
    paid for its draw only leaves the cost of its table to the rounds after it. The last round takes all that is left.

    Args:
        remaining: what may be spent.
        round_costs: costs of the first round.
        model_bytes: most bytes of the model when all is spent.
        next_table: does a round, given its costs and whether it is the last; None if no table was measured in it,
            which must not happen in the last one.
    """
    select, measure = round_costs.select, round_costs.measure
    while remaining.left.rho:
        left = remaining.left
        # Less than two rounds: as one of them the rest buys a better table than as a round and a remainder.
        last = left.rho < 2 * (select + measure).rho
        if last:
            select = left.share(round_costs.selection_share)
            measure = left - select
        rounds = left.rho // (select + measure).rho
        spent = 1.0 - (left - select - measure).rho / remaining.cost.rho
        most = None if last else left - select - select - measure  # what is left after it buys a round
        chosen = next_table(Round(select, measure, model_bytes * spent, round_costs.steps, most), last)
        # A public pick cost its draw alone; what its table would have cost is spread over the rounds that are left.
        if chosen is None:
            whole = remaining.left.share(Fraction(1, rounds - 1))
            select = whole.share(round_costs.selection_share)
            measure = whole - select
        # The measurement told no more than its noise. Half of σ costs four times as much.
        elif chosen.moved <= chosen.noise:
            select, measure = times(select, 4), times(measure, 4)


def _variance(answer: Measurement) -> float:
    return max(answer.distribution.variance, _LEAST_VARIANCE)


def live_columns(domain: Domain) -> list[str]:
    """Columns with two codes or more: only about them is there anything to learn. The first one if there is none."""
    return [name for name in domain.columns if domain.sizes[name] > 1] or list(domain.columns[:1])


def shares_of(domain: Domain, cliques: Iterable[Clique]) -> list[float]:
    """How tables share a cost: by cells^(2/3).

    Noise of scale σ_i on m_i cells adds up to ∝ m_i σ_i, and σ_i ∝ ρ_i^(−1/2); the sum is smallest for this split.
    """
    return [float(domain.cells(clique)) ** (2.0 / 3.0) for clique in cliques]


def times(cost: Cost, count: int) -> Cost:
    """That cost paid `count` times."""
    return Cost(cost.epsilon * count, cost.rho * count)


def start_size(domain: Domain, structural_zeros: Sequence[StructuralZeros]) -> GraphicalSize:
    """The size of the smallest model: every column on its own, and what rules tie together."""
    return GraphicalSize.of(
        domain, [*(Clique((name,)) for name in domain.columns), *(rule.clique for rule in structural_zeros)]
    )


def fitting_bytes(domain: Domain, model_bytes: int) -> tuple[int, int]:
    """The most that a model may hold of these bytes, and what fitting and asking it takes."""
    held = min(model_bytes, 8 * domain.cells(domain.columns))
    return held, WORKING_TABLES * held + answering_bytes(domain, held)


def answering_bytes(domain: Domain, model_bytes: int) -> int:
    """The most that expecting many tables at once takes, as long as no column alone needs more than all are given.

    For all cells of separators the probabilities of all other codes, and sums of the model's tables that are kept. A
    column that is no separator's has two codes at least, so separators have half as many cells as the model.
    """
    messages = min(MESSAGE_CELLS, model_bytes // 16 * sum(domain.sizes.values()))
    return 8 * (messages + min(CACHED_CELLS, messages))


def likely_bytes(domain: Domain, cells: int) -> int:
    """What fitting and asking a model of so many cells is expected to take.

    Each column lies beyond an edge in one direction only: messages have half the cells that are set aside for them.
    """
    held, most = fitting_bytes(domain, 8 * cells)
    return most - 4 * min(MESSAGE_CELLS, held // 16 * sum(domain.sizes.values()))


def plan_of_rounds(
    method: Method, cost: Cost, steps: Sequence[Step], facts: PublicFacts, rounds: Rounds, *, counting: int, most: int
) -> Plan:
    """The plan of a method that works in rounds: `counting` bytes while rows are read, at most `most` to fit."""
    seconds = seconds_of_rounds(facts, rounds)
    fitting = likely_bytes(facts.domain, seconds.cells)
    return Plan(
        method,
        cost,
        sum((step.cost for step in steps), Cost()),
        tuple(steps),
        sum(step.cells for step in steps),
        fitting + counting,
        seconds.likely,
        after_counting=fitting,
        most_bytes=most + counting,
        span=(seconds.least, seconds.most),
    )


def check_start(domain: Domain, structural_zeros: Sequence[StructuralZeros], model_bytes: int, method: str) -> None:
    """Refuses in advance rules that tie more together than the model may hold."""
    needed = start_size(domain, structural_zeros).bytes
    if needed > model_bytes:
        fix = "Raise model_bytes, use coarser bins for the columns that rules name, or drop a rule."
        raise ResourceError(f"method {method}: the model of columns and rules alone", needed, model_bytes, fix)


@dataclass(slots=True)
class PublicRounds:
    """The rounds of a run with a public table, and the public tables taken so far."""

    curator: Curator
    measured: Measured
    candidates: Mapping[Clique, float]
    counts: Mapping[Clique, npt.NDArray[np.int64]]
    rows: int
    taken: dict[Clique, float] = field(default_factory=dict)
    """The variance of the noise in the round that took each public table."""

    @classmethod
    def of(cls, curator: Curator, measured: Measured, candidates: Mapping[Clique, float]) -> Self:
        """Rounds over these weighted candidates; a public table without rows is never chosen."""
        counts = curator.public_counts([Clique(), *candidates])
        return cls(curator, measured, candidates, counts, int(counts[Clique()][0]))

    def run(self, remaining: RemainingBudget, round_costs: RoundCosts) -> None:
        """Chooses, measures and takes tables until the remaining budget is empty."""
        most = self.measured.model_bytes
        spend_in_rounds(remaining, round_costs, most, lambda cost, last: self.next_table(cost, public=not last))

    def next_table(self, cost: Round, *, public: bool) -> Chosen | None:
        """One round: draws a candidate and its source, adds its table and refits; None if it was a public one."""
        distribution = distribution_for(cost.measure, self.curator.unit_rows, "measure table")
        options = self._options(cost, public=public)
        cliques = list(dict.fromkeys(clique for clique, _ in options))
        before, total = self.measured.expected(cliques), self.measured.total
        noises = dict(zip(cliques, self.measured.noises(cliques, cost, self.curator), strict=True))
        scaled = {clique: self._scaled(clique, total) for clique, source in options if source == "public"}
        # What a floor hides is made up for where there is a floor, that is for tables to be measured.
        raised = [
            noises[clique].cut.weight(before[clique]) if source == "private" else 1.0 for clique, source in options
        ]
        weights = [self.candidates.get(clique, 1.0) * more for (clique, _), more in zip(options, raised, strict=True)]
        penalties = [
            noises[clique].cut.penalty / more if source == "private" else 0.0
            for (clique, source), more in zip(options, raised, strict=True)
        ]
        floors = [noises[clique].cut.floor for clique, _ in options]
        quality = PublicOrPrivate("table", options, before, scaled, weights, penalties, floors)
        clique, source = self.curator.select(quality, cost.select)
        if source == "public":
            self.taken[clique] = distribution.variance
        else:
            self.measured.measure(self.curator, clique, noises[clique].cost, before[clique])
        self.measured.refit(cost.steps, tables=self.tables)
        if source == "public":
            return None
        moved = float(np.abs(self.measured.expected([clique])[clique] - before[clique]).sum())
        return Chosen(clique, moved, noises[clique].cut.penalty)

    @property
    def tables(self) -> list[NoisyTable]:
        """All that the model is fitted to: measured tables, and public ones scaled to the present total."""
        return [*self.measured.tables, *self._public()]

    @property
    def last_tables(self) -> list[NoisyTable]:
        """The same for the last fit; see `Measured.last_tables`."""
        return [*self.measured.last_tables, *self._public()]

    def _public(self) -> list[NoisyTable]:
        total = self.measured.total
        return [self._as_noisy(clique, total) for clique in self.taken]

    def _options(self, cost: Round, *, public: bool) -> list[Sourced]:
        """Every table to be measured, and every public one that was not taken yet, within the model's bytes."""
        # Public tables that were taken are part of the model and of its size, though none of them was measured.
        open_now = self.measured.fitting(list(self.candidates), cost.model_bytes, list(self.taken))
        # Columns never make the model larger, so there is always something to measure.
        private = open_now or [Clique((name,)) for name in live_columns(self.measured.domain)]
        options: list[Sourced] = [(clique, "private") for clique in private]
        if public and self.rows:
            options += [(clique, "public") for clique in open_now if clique not in self.taken]
        return options

    def _scaled(self, clique: Clique, total: float) -> Floats:
        return self.counts[clique].astype(np.float64) * (total / self.rows)

    def _as_noisy(self, clique: Clique, total: float) -> NoisyTable:
        """A public table for the fit; see the module for its variance."""
        shares = self.counts[clique].astype(np.float64) / self.rows
        sampling = total**2 / self.rows * (1.0 - float(shares @ shares)) / shares.size
        # A public table is never trusted more than a measurement of its round would be.
        return NoisyTable(clique, self._scaled(clique, total), max(self.taken[clique], sampling, 1e-9))
