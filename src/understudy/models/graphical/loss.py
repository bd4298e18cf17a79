"""The loss of a fit: squared distance to the noisy tables, each cell in units of its noise variance.

Tables of one clique are averaged into one, tables inside a larger measured clique are read off that clique's marginal,
and a table may be measured coarsely: a public map sends the cells of its clique to groups and there is one noisy value
per group. Cells that a rule forbids carry no information (their count is known to be 0) and are left out.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.errors import UsageError
from understudy.marginals.answer import Measurement
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.models.graphical.program import Program
from understudy.models.restrict import allowed, sub_indices

__all__ = ["Folded", "NoisyTable", "estimate_total", "evaluate", "fold", "known_cells", "maximal"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTable:
    """Noisy counts of a clique's cells (flat row-major), or of groups of its cells.

    `groups[cell]` is the position in `values` that the cell counts towards; without it there is one value per cell.
    """

    clique: Clique
    values: Floats
    variance: float
    groups: Ints | None = None

    @classmethod
    def of(cls, answer: Measurement, domain: Domain) -> Self:
        """The noisy table of an answer that measured a clique of the domain."""
        return cls(domain.clique(answer.columns), answer.values.astype(np.float64), answer.law.variance)

    def check(self, domain: Domain) -> None:
        """Raises UsageError if shapes, ranges or the variance are wrong."""
        where = f"measured table {' × '.join(self.clique) or 'total'}"
        cells = domain.cells(domain.clique(self.clique))
        if self.clique != domain.clique(self.clique):
            raise UsageError(where, "the columns must stand in the order of the domain.")
        if not (math.isfinite(self.variance) and self.variance > 0.0 and np.isfinite(self.values).all()):
            raise UsageError(where, "needs finite values and a variance above 0.")
        if self.groups is None and self.values.shape != (cells,):
            raise UsageError(where, f"needs {cells:,} values, got {self.values.size:,}.")
        if self.groups is not None:
            inside = self.groups.size and self.groups.min() >= 0 and self.groups.max() < self.values.size
            if self.groups.shape != (cells,) or not inside:
                raise UsageError(where, f"needs one group between 0 and {self.values.size - 1:,} for each cell.")


class Folded(NamedTuple):
    """The loss over a program's marginals: per parameter cell a precision and a target, and sums of cells likewise.

    Row i of `sums` is (first parameter cell, cells, first entry of `maps`, first group, groups).
    """

    precision: Floats
    target: Floats
    sums: Ints
    maps: npt.NDArray[np.int32]
    group_precision: Floats
    group_target: Floats
    constant: float


def maximal(cliques: Iterable[Clique]) -> list[Clique]:
    """The cliques that no other one contains, each once."""
    ordered = sorted(dict.fromkeys(cliques), key=len, reverse=True)
    kept: list[Clique] = []
    for clique in ordered:
        if not any(set(clique) <= set(other) for other in kept):
            kept.append(clique)
    return kept


def known_cells(domain: Domain, table: NoisyTable, forbidden: Sequence[Forbidden]) -> Bools:
    """Which values of the table can be other than 0 under the rules inside its clique."""
    if not any(set(rule.clique) <= set(table.clique) for rule in forbidden):
        return np.ones(table.values.size, dtype=bool)
    cells = np.arange(domain.cells(table.clique), dtype=np.int64)
    possible = allowed(domain, table.clique, cells, forbidden)
    if table.groups is None:
        return possible
    return np.bincount(table.groups, weights=possible, minlength=table.values.size) > 0.0


def estimate_total(domain: Domain, tables: Sequence[NoisyTable], forbidden: Sequence[Forbidden] = ()) -> float:
    """Number of records: the inverse-variance mean of the tables' sums, at least 1."""
    weighted, weights = 0.0, 0.0
    for table in tables:
        possible = known_cells(domain, table, forbidden)
        count = int(possible.sum())
        if count:
            weight = 1.0 / (table.variance * count)
            weighted += weight * float(table.values[possible].sum())
            weights += weight
    if weights == 0.0:
        raise UsageError("total", "cannot be estimated without a measured table.", "State the total.")
    return max(1.0, weighted / weights)


def fold(program: Program, tables: Sequence[NoisyTable], forbidden: Sequence[Forbidden] = ()) -> Folded:
    """The tables' loss, folded onto the program's parameters; every clique must lie inside one of them."""
    domain = program.tree.domain
    precision, pulled = np.zeros(program.parameter_cells), np.zeros(program.parameter_cells)
    places = {clique: number for number, clique in enumerate(program.parameters)}
    nested: dict[tuple[Clique, int], list[NoisyTable]] = {}
    constant = 0.0
    for number, table in enumerate(tables):
        possible = known_cells(domain, table, forbidden)
        constant += 0.5 * float((table.values[possible] ** 2).sum()) / table.variance
        if table.groups is None and table.clique in places:
            start, end = program.bounds[places[table.clique] :][:2]
            precision[start:end] += program.inward(table.clique, possible.astype(np.float64)) / table.variance
            pulled[start:end] += program.inward(table.clique, table.values * possible) / table.variance
        else:
            # Plain tables of one clique share a row, a grouped table has its own.
            nested.setdefault((table.clique, -1 if table.groups is None else number), []).append(table)
    target = np.divide(pulled, precision, out=np.zeros_like(pulled), where=precision > 0.0)
    rows: list[tuple[int, int, int, int, int]] = []
    maps: list[npt.NDArray[np.int32]] = [np.zeros(0, dtype=np.int32)]
    weights, targets = [np.zeros(0)], [np.zeros(0)]
    used, groups = 0, 0
    for (clique, _), alike in nested.items():
        host = _host(program, clique)
        plan = _map(program, clique, program.parameters[host], alike[0].groups)
        weight, aim = _average(alike, [known_cells(domain, table, forbidden) for table in alike])
        rows.append((int(program.bounds[host]), plan.size, used, groups, weight.size))
        maps.append(plan)
        weights.append(weight)
        targets.append(aim)
        used += plan.size
        groups += weight.size
    group_precision, group_target = np.concatenate(weights), np.concatenate(targets)
    constant -= 0.5 * float((precision * target**2).sum() + (group_precision * group_target**2).sum())
    sums = np.array(rows, dtype=np.int64).reshape(-1, 5)
    return Folded(precision, target, sums, np.concatenate(maps), group_precision, group_target, constant)


def _average(alike: Sequence[NoisyTable], possible: Sequence[Bools]) -> tuple[Floats, Floats]:
    precision, pulled = np.zeros(alike[0].values.size), np.zeros(alike[0].values.size)
    for table, known in zip(alike, possible, strict=True):
        precision += known / table.variance
        pulled += np.where(known, table.values, 0.0) / table.variance
    return precision, np.divide(pulled, precision, out=np.zeros_like(pulled), where=precision > 0.0)


def _host(program: Program, clique: Clique) -> int:
    """The number of the smallest parameter that contains the clique."""
    holders = [number for number, parameter in enumerate(program.parameters) if set(clique) <= set(parameter)]
    if not holders:
        raise UsageError(f"measured table {' × '.join(clique)}", "lies inside no parameter of the model.")
    return min(holders, key=lambda number: program.tree.domain.cells(program.parameters[number]))


def _map(program: Program, clique: Clique, host: Clique, groups: Ints | None) -> npt.NDArray[np.int32]:
    """For each cell of the host parameter, in the program's order, the group it counts towards."""
    domain = program.tree.domain
    cells = sub_indices(domain, host, np.arange(domain.cells(host), dtype=np.int64), clique)
    if groups is not None:
        cells = groups[cells]
    return program.inward(host, cells).astype(np.int32)


@compiled()  # pragma: no cover
def evaluate(folded: Folded, marginals: Floats, gradient: Floats) -> float:
    """The loss at these marginals (counts, not shares); writes its gradient."""
    loss = 0.0
    for cell in range(marginals.size):
        gap = marginals[cell] - folded.target[cell]
        pull = folded.precision[cell] * gap
        gradient[cell] = pull
        loss += pull * gap
    for row in range(folded.sums.shape[0]):
        start, cells, at, first, groups = folded.sums[row]
        plan = folded.maps[at : at + cells]
        pulls = np.zeros(groups)
        for cell in range(cells):
            pulls[plan[cell]] += marginals[start + cell]
        for group in range(groups):
            gap = pulls[group] - folded.group_target[first + group]
            pulls[group] = folded.group_precision[first + group] * gap
            loss += pulls[group] * gap
        for cell in range(cells):
            gradient[start + cell] += pulls[plan[cell]]
    return 0.5 * loss + folded.constant
