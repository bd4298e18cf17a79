"""What a run of `ensemble` knows of columns: noisy counts, what follows for pairs, how pooled codes fall apart.

Answers about columns, and whole tables of pairs where those were measured, are weighed by their precisions. All of it
is post-processing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from understudy.arrays import Bools, Floats, Ints
from understudy.domain import Clique, Domain, Measurement, ResidualTable, StructuralZeros
from understudy.methods.record_synthesis import Coarsening, expanded_codes
from understudy.methods.wide_columns import WideColumns
from understudy.models.consistency import OverlapTable
from understudy.models.estimation import NoisyTable, estimate_total
from understudy.models.model import Codes
from understudy.models.pair_mixtures import CodeGroups, PairGrid, raked
from understudy.models.records import RecordModel
from understudy.models.tables import norm_sub


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
