"""What a run of `ensemble` knows of columns: noisy counts, what follows for pairs, how pooled codes fall apart.

Answers about columns, and whole tables of pairs where those were measured, are weighed by their precisions. All of it
is post-processing.

Wide columns
------------
These have so many codes that not all of their pairs can be looked at: each hangs on one other column, or on two.

Steps. (1) Every pair of such a column with another is scored by how many rows its table is off beyond a floor: the
height above which little noise lies (`noise_cut` in `rounds.py`), if one pair for every wide column shared half of what
is left. (2) The strongest pairs that join all columns without a circle are kept: a tree that grows from the columns
that are not wide. (3) Their residuals are measured at a cost by expected gain, where each code is taken to go with one
code of the other column (`CellGain.concentrated`). (4) Codes are expected to go with the other column like other codes
do (`models/code_profiles.py`); the table is drawn from that towards the noisy one, cut to 0 or more, and scaled to both
columns. (5) When the rows of all other columns stand, each gets a code of the wide column, by the table's shares for
its code of the other one.

A second pair. Where a wide column goes with a, and a with b, the wide one goes with b, too: by no more than a does
(what is passed on through a can only become less). What is off in the pair with b beyond that is a relation of its own,
and the pair where this is most is measured as well. Given the code of the wide column, a and b are taken to have
nothing to do with each other: a row gets code w with a chance that goes as T(w, a) · T(w, b) / count of w.

Which columns are wide follows from noisy answers about columns, and which pairs are measured, from noisy scores. The
rest is post-processing.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from understudy.arrays import Bools, Floats, Integers, Ints
from understudy.domain import Clique, Distribution, Domain, Measurement, ResidualTable, StructuralZeros
from understudy.methods.expected_gain import CellGain
from understudy.methods.record_synthesis import Coarsening, expanded_codes
from understudy.methods.rounds import NoiseCut, noise_cut
from understudy.models.code_profiles import drawn_by_profiles
from understudy.models.consistency import OverlapTable
from understudy.models.estimation import NoisyTable, estimate_total
from understudy.models.model import Codes
from understudy.models.pair_mixtures import CodeGroups, PairGrid, raked
from understudy.models.records import RecordModel
from understudy.models.tables import code_dtype, cumulative, norm_sub
from understudy.privacy.cost import Cost, distribution_for

PAIR_CELLS = 2**23
"""Most cells of a pair that is scored."""
_THREE_CELLS = 2**25
"""Most cells of a wide column and the two that it goes with, which are looked at line by line."""
_CLEAR = 4.0
"""A score counts if it is more than so many times its noise."""


@dataclass(frozen=True, slots=True, eq=False)
class WideColumns:
    """The wide columns of a domain, counts of every column (0 or more), and the number of rows."""

    domain: Domain
    names: frozenset[str]
    counts: Mapping[str, Floats]
    total: float

    @property
    def pairs(self) -> list[Clique]:
        """Pairs with a wide column whose tables are not too large and whose columns have two codes at least."""
        live = [name for name in self.domain.columns if self.domain.sizes[name] > 1]
        pairs = [Clique((one, other)) for at, one in enumerate(live) for other in live[at + 1 :]]
        return [pair for pair in pairs if self.names & set(pair) and self.domain.cells(pair) <= PAIR_CELLS]

    def expected(self, pair: Clique) -> Floats:
        """Counts if the two did not go together, one line per code of the first."""
        first, second = (self.counts[name] for name in pair)
        return np.asarray(np.outer(first, second) / self.total)

    def noise(self, left: Cost, unit_rows: int) -> Distribution:
        """The noise of each pair, if one pair for every wide column shared half of this cost."""
        parts = max(2 * len(self.names), 1)
        share = Cost(max(left.epsilon // parts, 1)) if left.epsilon else Cost(rho=max(left.rho // parts, 1))
        return distribution_for(share, unit_rows, "measure pair")

    def cut(self, pair: Clique, noise: Distribution) -> NoiseCut:
        """The height in the pair's table above which little of that noise lies, and at least its scale."""
        found = noise_cut(noise, self.domain.cells(pair), self.total)
        return replace(found, floor=max(found.floor, float(noise.scale)))

    def tree(self, scores: Mapping[Clique, float]) -> list[Clique]:
        """The strongest of these pairs by which wide columns hang on others, in the order in which they join."""
        joined = set(self.domain.columns) - self.names
        order = sorted(scores, key=lambda pair: -scores[pair])
        found: list[Clique] = []
        while True:
            pair = next((pair for pair in order if len(joined & set(pair)) == 1), None)
            if pair is None:
                return found
            found.append(pair)
            joined |= set(pair)

    def beside(
        self, tree: Sequence[Clique], scores: Mapping[Clique, float], rows: Mapping[Clique, float]
    ) -> dict[Clique, tuple[Clique, float]]:
        """For pairs of the tree another pair of their wide column, with what is off in it beyond what follows.

        What a column b shows beside a wide one, because both go with a, is no more than it shows beside a.

        Args:
            tree: Pairs by which wide columns hang on others.
            scores: What is off in pairs of wide columns, in rows too many or too few.
            rows: By pair of the other columns, how many rows are elsewhere than expected.
        """
        found = {}
        for pair in tree:
            wide = self._larger(pair)
            (one,) = set(pair) - {wide}
            most: tuple[Clique, float] | None = None
            for other, score in scores.items():
                (name,) = set(other) - {wide} if wide in other else {wide}
                if one in self.names or name in self.names or name == one:
                    continue
                off = score - 2.0 * max(rows[self.domain.clique([one, name])], 0.0)
                if off > (most[1] if most else 0.0) and self._three(wide, one, name) <= _THREE_CELLS:
                    most = other, off
            if most is not None:
                found[pair] = most
        return found

    def _three(self, *names: str) -> int:
        return math.prod(self.domain.sizes[name] for name in names)

    def clear(self, scores: Mapping[Clique, float], noise: float) -> dict[Clique, float]:
        """The scores that noise of this standard deviation does not explain."""
        return {pair: score for pair, score in scores.items() if score > _CLEAR * noise}

    def gain_beside(self, pair: Clique, off: float, cut: NoiseCut, noise: float) -> CellGain:
        """How much measuring a second pair of a wide column is expected to correct, if so much is off in it alone."""
        return CellGain.concentrated(self.counts[self._larger(pair)], off, noise, cut.floor / noise, 1.0)

    def gain(self, pair: Clique, scores: Mapping[Clique, float], cut: NoiseCut, noise: float) -> CellGain:
        """How much measuring the pair is expected to correct; `cut` is that of its score, for noise of that scale.

        All relations of the wide column follow from this pair, so all that is off in them counts.
        """
        wide = self._larger(pair)
        all_off = math.fsum(score for other, score in scores.items() if wide in other)
        times = all_off / scores[pair]
        return CellGain.concentrated(self.counts[wide], scores[pair], noise, cut.floor / noise, times)

    def wanted(self, pair: Clique, residuals: Floats, variance: float) -> Floats:
        """The table that the pair should have: without negative counts, with the counts of both columns."""
        margins, apart = (self.counts[pair[0]], self.counts[pair[1]]), self.expected(pair)
        drawn = drawn_by_profiles(np.asarray(residuals), *margins, variance)
        table = norm_sub(drawn.ravel(), self.total).reshape(apart.shape)
        # A code that is left with no cell takes part as the columns say.
        lost = [table.sum(axis=axis) <= 0.0 for axis in (1, 0)]
        table = np.where(lost[0][:, np.newaxis] | lost[1][np.newaxis, :], apart, table)
        return raked(table, *margins)

    def _larger(self, pair: Clique) -> str:
        return max(pair, key=self.domain.sizes.__getitem__)


def attached(table: Floats, others: Integers, rng: np.random.Generator) -> Integers:
    """A code for every row, by its code of the other column; `table` has one line per code and one column per other.

    The rows of each other code have its shares up to rounding, in random order.
    """
    overall = np.asarray(table.sum(axis=1))

    def shares(other: int) -> Floats:
        return np.asarray(table[:, other] if table[:, other].sum() > 0.0 else overall)

    return _drawn(table.shape, others, shares, rng)


def attached_to_two(tables: Sequence[Floats], others: Sequence[Integers], rng: np.random.Generator) -> Integers:
    """A code for every row, by its codes of two other columns, which are taken to have nothing to do with each other
    beside the code; one table for each, as in `attached`."""
    counts: Floats = np.maximum(tables[0].sum(axis=1), 1e-30)
    size = tables[1].shape[1]

    def shares(both: int) -> Floats:
        first, second = tables[0][:, both // size], tables[1][:, both % size]
        for found in (first * second / counts, first, second):
            if found.sum() > 0.0:
                return np.asarray(found)
        return counts

    both = others[0].astype(np.int64) * size + others[1]
    return _drawn((counts.size, tables[0].shape[1] * size), both, shares, rng)


def _drawn(
    shape: tuple[int, ...], others: Integers, shares: Callable[[int], Floats], rng: np.random.Generator
) -> Integers:
    dtype = code_dtype(shape[0])
    shuffled = rng.permutation(others.size)
    order = shuffled[np.argsort(others[shuffled], kind="stable")]
    found = np.empty(others.size, dtype=dtype)
    ends = np.cumsum(np.bincount(others, minlength=shape[1]))
    for other, end in enumerate(ends.tolist()):
        rows = order[ends[other - 1] if other else 0 : end]
        if rows.size:
            spots = (np.arange(rows.size) + rng.random()) / rows.size
            places = np.searchsorted(cumulative(shares(other)), spots, side="right")
            found[rows] = np.minimum(places, shape[0] - 1).astype(dtype)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class KnownColumns:
    """What the columns told: pooled codes, their noisy counts with variances, and the number of rows.

    The grid, and all arrays with one number per code, leave out wide columns.
    """

    coarsening: Coarsening
    answers: dict[str, list[Measurement]]
    grid: PairGrid
    groups: CodeGroups
    wide: WideColumns
    total: float
    counts: Floats
    variances: Floats
    impossible: Bools
    noise: float
    """Mean noise of a column at all of the cost, as a share of the rows."""

    @classmethod
    def of(
        cls,
        coarsening: Coarsening,
        total: Measurement,
        answers: Sequence[Measurement],
        rules: Sequence[StructuralZeros],
        noise: float,
        *,
        wide: frozenset[str] = frozenset(),
        most_groups: int = 2**13,
    ) -> Self:
        """From the answers about the total and about all columns with two codes or more."""
        domain = coarsening.domain
        grid = PairGrid.of(Domain.of({name: size for name, size in domain.sizes.items() if name not in wide}))
        by_name = {answer.columns[0]: answer for answer in answers}
        columns = {name: coarsening.column(name, answer) for name, answer in by_name.items()}
        tables = [NoisyTable(Clique(), total.values.astype(np.float64), max(total.distribution.variance, 1e-9))]
        for table in columns.values():
            tables.append(NoisyTable(table.clique, table.values, float(np.mean(table.variances))))
        rows = estimate_total(domain, tables, ())
        # A column of one code was not asked about.
        told = {
            name: columns.get(name, OverlapTable(Clique((name,)), np.array([rows]), 1.0)) for name in domain.columns
        }
        counts = {name: _of_all_rows(table, rows) for name, table in told.items()}
        noisy = np.concatenate([told[name].values for name in grid.domain.columns])
        shares = np.concatenate([norm_sub(told[name].values, rows) for name in grid.domain.columns]) / rows
        ones = {name: [answer] for name, answer in by_name.items()}
        return cls(
            coarsening,
            ones,
            grid,
            CodeGroups.of(grid, shares, most_groups),
            WideColumns(domain, wide, counts, rows),
            rows,
            noisy,
            np.concatenate([_variances(told[name]) for name in grid.domain.columns]),
            grid.impossible(rules),
            noise,
        )

    def joined(self, tables: Sequence[NoisyTable]) -> "KnownColumns":
        """With what whole tables of columns and pairs say of columns, each answer weighted by its precision."""
        sizes, precisions = self.grid.domain.sizes, 1.0 / self.variances
        sums = self.counts * precisions
        for table in tables:
            shape = [self.wide.domain.sizes[name] for name in table.clique]
            for axis, name in enumerate(table.clique):
                if name in sizes:
                    lines = np.moveaxis(table.values.reshape(shape), axis, 0).reshape(shape[axis], -1)
                    precision = 1.0 / (max(table.variance, 1e-9) * lines.shape[1])
                    sums[self.grid.places(name)] += precision * lines.sum(axis=1)
                    precisions[self.grid.places(name)] += precision
        if not tables:
            return self
        counts, variances = sums / precisions, 1.0 / precisions
        told = dict(self.wide.counts)
        for name in sizes:
            place = self.grid.places(name)
            told[name] = _of_all_rows(OverlapTable(Clique((name,)), counts[place], variances[place]), self.total)
        return replace(self, counts=counts, variances=variances, wide=replace(self.wide, counts=told))

    @property
    def pairs(self) -> list[Clique]:
        """Pairs of columns that have two codes or more each."""
        sizes = self.grid.domain.sizes
        return [pair for pair in self.grid.pairs if all(sizes[name] > 1 for name in pair)]

    @property
    def shares(self) -> Floats:
        """Shares of codes, 0 or more, each column adding up to 1."""
        return np.concatenate([norm_sub(self.counts[part], self.total) for part in self.grid.blocks()]) / self.total

    def column(self, name: str) -> NoisyTable:
        """What was told about a column of the grid."""
        place = self.grid.places(name)
        return NoisyTable(Clique((name,)), self.counts[place], float(np.mean(self.variances[place])))

    def noisy(self, table: ResidualTable) -> Floats:
        """Measured residuals on top of what the columns told; 0 where a rule forbids rows."""
        first, second = table.columns
        rows, columns = self.counts[self.grid.places(first)], self.counts[self.grid.places(second)]
        means = rows[:, np.newaxis] / columns.size + columns[np.newaxis, :] / rows.size
        values = table.residuals + means - self.total / (rows.size * columns.size)
        return np.where(self.grid.table(self.impossible, Clique(table.columns)), 0.0, values)

    def independent(self) -> Floats:
        """Expected counts of all pairs if columns did not go together; 0 where a rule forbids it."""
        return np.where(self.impossible, 0.0, np.outer(self.shares, self.shares) * self.total)

    def like(self, counts: Mapping[Clique, Ints]) -> Floats:
        """Expected counts of all pairs if columns went together as in these tables of other rows.

        To each table come as many rows as the root of their number that are as the columns say, which bounds the
        error of shares that few rows tell; then all is scaled to the columns.
        """
        shares, found = self.shares, self.independent()
        for pair, table in counts.items():
            first, second = (shares[self.grid.places(name)] for name in pair)
            apart = self.grid.table(found, pair) / self.total
            rows = float(table.sum())
            mixed = table.reshape(apart.shape) + max(math.sqrt(rows), 1.0) * apart
            possible = np.where(self.grid.table(self.impossible, pair), 0.0, mixed)
            self.grid.put(found, pair, raked(possible, first, second) * self.total)
        return found

    def expanded(self, codes: Codes, total: float, rng: np.random.Generator) -> RecordModel:
        """The records with pooled codes drawn apart."""
        found = expanded_codes(self.coarsening, self.answers, codes, total, rng)
        return RecordModel(self.coarsening.full, found, total)


def _variances(table: OverlapTable) -> Floats:
    found = np.asarray(np.maximum(table.variances, 1e-9), dtype=np.float64)  # noise of a huge budget rounds to none
    return np.broadcast_to(found, table.values.shape)


def _of_all_rows(table: OverlapTable, total: float) -> Floats:
    """Noisy counts of a column brought to the number of rows, and to 0 or more."""
    # What a column has too many is taken where it is least certain; then it is cut to 0 or more.
    weights = _variances(table) / _variances(table).sum()
    return norm_sub(table.values + (total - table.values.sum()) * weights, total)
