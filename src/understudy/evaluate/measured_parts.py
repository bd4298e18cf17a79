"""Sums over a table that was measured in parts only: an estimate, its noise, and how far the rest can be off at most.

Of the table of several columns, parts were measured: tables of some of the columns, and residuals of pairs. Wanted is
Σ h·x over its cells, with x the counts and h known. Nothing private is read, and nothing that a method assumed takes
part: all follows from the parts.

*What parts can tell.* A sum of functions of the parts, one of each, is a function g of the cells, and Σ g·x is known
up to noise: each part answers Σ g_part·y, and their noises are independent. The value of residuals is Σ u·R, with u
what is left of g_part without the means of rows and columns; those means are asked of the two columns.

*Estimate.* Counts w that agree with the parts, and otherwise with a reference q that was fitted to them:
w = q + QAᵀ(AQAᵀ)⁻(b − Aq), with b the answers, A the sums that they are of, and Q weights of cells. The inverse is the
one with the least noise; it is found by steps with a little of the noise added. So Σ h·w = Σ h·q + g·(b − Aq) with
g = (AQAᵀ)⁻AQh, the function of the parts nearest to h. Its error is the noise of g·b, and what h − g makes of the
difference between x and q.

*Bounds.* No bound on that difference is needed. Let k be any function of the parts with k ≥ h in every cell. Then
Σ h·x ≤ Σ k·x, as counts are not negative, and Σ k·x is known up to noise: an upper end, whatever the joint table is.
Linear programming finds, beside g, the k that gives the least of them, with a penalty for the noise that it brings; if
it were not the best it would still be a bound. The lower end is found in the same way. Where h is itself a function of
the parts, both ends meet, and only noise is left: so it is in a linear regression without products, if all pairs were
measured, but for rows that it leaves out (missing and unreadable values, rare levels).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linprog
from scipy.sparse import csr_array, identity, vstack

from understudy.arrays import Floats, Ints
from understudy.domain import Clique, Domain, Measurement, ResidualTable, centred
from understudy.errors import ResourceError, UsageError
from understudy.release.release import Fitted
from understudy.release.wording import is_table

MOST_CELLS, MOST_ANSWERS = 2**17, 4_000
"""Cells of the whole table, and of all parts together, that are worked with."""
MOST_BOUNDED = 2**14
"""Cells for which bounds are looked for by linear programming."""
_ROUNDS = 40
_FLOOR = 1e-3
"""Share of the reference that is spread evenly, so that no cell is ruled out by it."""
_SPREAD, _RIDGE, _STEPS = 0.05, 1e-4, 8
"""Weight of every cell beside its reference, share of the noise that is added, and how often it is taken off again."""
_ROUNDING = 1e-8
"""Share of the diagonal that is added where there is next to no noise: rounding must not make it singular."""
_NOTHING = 1e-6
"""A function of the parts that is so near, relative to the largest value, is taken for h itself."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredPart:
    """Noisy counts (or residuals) of some columns, flat; of each value the variance of its noise and its tails."""

    columns: tuple[str, ...]
    shape: tuple[int, ...]
    values: Floats
    variance: float
    kurtosis: float
    residuals: bool
    step: float
    """Steps in which the noise moves: 1 for counts, next to nothing for means of several and residuals."""


def measured_parts(fits: Sequence[Fitted], columns: Sequence[str]) -> list[MeasuredPart]:
    """Every answer about one or more of the columns, those of the same kind and columns averaged by precision."""
    domain = fits[0].codec.domain
    groups: dict[tuple[tuple[str, ...], bool], list[MeasuredPart]] = {}
    for fitted in fits:
        for answer in fitted.transcript.of(Measurement):
            part = _of_table(answer, columns, domain) if is_table(answer, fitted.codec.domain) else None
            if part is not None:
                groups.setdefault((part.columns, False), []).append(part)
        for one in fitted.transcript.of(ResidualTable):
            if set(one.columns) <= set(columns) and one.shape == domain.shape(one.columns) and len(one.columns) == 2:
                part = MeasuredPart(one.columns, one.shape, one.residuals.ravel(), one.variance, 0.0, True, 0.0)
                groups.setdefault((one.columns, True), []).append(part)
    found = [_averaged(parts) for parts in groups.values()]
    alone = {part.columns for part in found if not part.residuals}
    return [part for part in found if not part.residuals or all((name,) in alone for name in part.columns)]


def _of_table(answer: Measurement, columns: Sequence[str], domain: Domain) -> MeasuredPart | None:
    kept = tuple(name for name in answer.columns if name in columns)
    if not kept:
        return None
    others = tuple(axis for axis, name in enumerate(answer.columns) if name not in kept)
    values = answer.table.sum(axis=others).astype(np.float64).ravel()
    cells = answer.values.size / values.size
    noise = answer.distribution
    tails = noise.excess_kurtosis / cells
    return MeasuredPart(kept, domain.shape(kept), values, cells * noise.variance, tails, False, 1.0)


def _averaged(parts: Sequence[MeasuredPart]) -> MeasuredPart:
    first = parts[0]
    if len(parts) == 1:
        return first
    weights = np.array([1.0 / max(part.variance, 1e-200) for part in parts])
    shares = weights / weights.sum()
    tails = float(shares**2 @ [part.kurtosis for part in parts])
    values = shares @ np.stack([part.values for part in parts])
    return MeasuredPart(first.columns, first.shape, values, 1.0 / float(weights.sum()), tails, first.residuals, 0.0)


@dataclass(frozen=True, slots=True)
class NoiseOfSum:
    """Variance of the noise of a sum, its excess kurtosis, and the largest step in which it moves."""

    variance: float
    kurtosis: float
    step: float


@dataclass(frozen=True, slots=True, eq=False)
class BoundedSum:
    """A bound on Σ h·x from one side, up to noise, and the noise."""

    value: float
    noise: NoiseOfSum


class PartsOfTable:
    """The table of some columns as far as its parts tell."""

    def __init__(self, domain: Domain, columns: Clique, parts: Sequence[MeasuredPart]) -> None:
        self.columns, self.shape = columns, domain.shape(columns)
        self.cells = math.prod(self.shape)
        self.parts = sorted(parts, key=lambda part: (len(part.columns), part.residuals))
        answers = sum(part.values.size for part in self.parts)
        if self.cells > MOST_CELLS or answers > MOST_ANSWERS:
            fix = "Name fewer columns, or use coarser bins in the next release."
            raise ResourceError(f"table {' × '.join(columns)}", self.cells * 8, MOST_CELLS * 8, fix)
        places = np.unravel_index(np.arange(self.cells), self.shape)
        self._codes: Mapping[str, Ints] = dict(zip(columns, places, strict=True))
        blocks = [self._sums(part) for part in self.parts]
        self._sums_of_cells = csr_array(vstack(blocks, format="csr"))
        ends = np.cumsum([0, *(part.values.size for part in self.parts)])
        self._rows = [slice(int(start), int(stop)) for start, stop in pairwise(ends)]

    @property
    def sources(self) -> tuple[str, ...]:
        """The parts in words, larger ones first."""
        names = (" × ".join(part.columns) for part in reversed(self.parts) if len(part.columns) > 1)
        return tuple(dict.fromkeys(names))

    def unmeasured(self) -> list[tuple[str, str]]:
        """Pairs of columns that no part holds together."""
        held = {frozenset(pair) for part in self.parts for pair in combinations(part.columns, 2)}
        return [pair for pair in combinations(self.columns, 2) if frozenset(pair) not in held]

    def _sums(self, part: MeasuredPart) -> csr_array:
        rows = np.ravel_multi_index([self._codes[name] for name in part.columns], part.shape)
        lines = np.arange(self.cells)
        return csr_array((np.ones(self.cells), (rows, lines)), shape=(part.values.size, self.cells))

    @cached_property
    def answers(self) -> Floats:
        """Noisy counts of every part; those of residuals are put together with the counts of their columns."""
        alone = {part.columns[0]: part.values for part in self.parts if len(part.columns) == 1}
        found = []
        for part in self.parts:
            if not part.residuals:
                found.append(part.values)
                continue
            first, second = (alone[name] for name in part.columns)
            rows, columns = part.shape
            means = first[:, None] / columns + (second - second.mean()) / rows
            found.append(part.values + means.ravel())
        return np.concatenate(found)

    @cached_property
    def _deviations(self) -> Floats:
        sizes = [np.full(part.values.size, math.sqrt(max(part.variance, 1e-12))) for part in self.parts]
        return np.concatenate(sizes)

    @cached_property
    def reference(self) -> Floats:
        """Counts above 0 that roughly agree with the parts, by iterative proportional fitting."""
        wanted = np.maximum(self.answers, 0.0)
        totals = [float(self.answers[rows].sum()) for rows in self._rows]
        weights = [part.values.size * part.variance for part in self.parts]
        total = max(float(np.average(totals, weights=1.0 / np.maximum(weights, 1e-12))), 1.0)
        found = np.full(self.cells, total / self.cells)
        for _ in range(_ROUNDS):
            for part, rows in zip(self.parts, self._rows, strict=True):
                goal = wanted[rows]
                goal = goal * (total / max(float(goal.sum()), 1e-300))
                index = np.ravel_multi_index([self._codes[name] for name in part.columns], part.shape)
                now = np.bincount(index, found, part.values.size)
                found = found * np.divide(goal, now, out=np.zeros_like(goal), where=now > 0)[index]
        even = found.sum() / self.cells
        return np.asarray((1 - _FLOOR) * found + _FLOOR * even)

    @cached_property
    def _solver(self) -> tuple[csr_array, Floats, object]:
        """AQ, AQAᵀ, and a factor of it with a little of the noise added."""
        spread = self.reference + _SPREAD * self.reference.mean()
        weighted = self._sums_of_cells.multiply(spread[None, :]).tocsr()
        matrix = (weighted @ self._sums_of_cells.T).toarray()
        ridge = _RIDGE * self._deviations**2 + _ROUNDING * matrix.diagonal()
        factor = cho_factor(matrix + np.diag(ridge))
        return weighted, matrix, factor

    def _solved(self, right: Floats) -> Floats:
        """x with AQAᵀx = right where there is one, of those with the least noise: each step takes off what is left."""
        _, matrix, factor = self._solver
        found = np.zeros_like(right)
        for _ in range(_STEPS):
            found = found + cho_solve(factor, right - matrix @ found)
        return np.asarray(found)

    def nearest(self, weights: Floats) -> Floats:
        """The function of the parts that is nearest to weights of cells, a number for every answer."""
        return self._solved(self._solver[0] @ weights)

    @cached_property
    def counts(self) -> Floats:
        """Counts w of all cells that agree with the answers; some may be negative."""
        off = self.answers - self._sums_of_cells @ self.reference
        return np.asarray(self.reference + self._solver[0].T @ self._solved(off))

    def noise(self, function: Floats) -> NoiseOfSum:
        """The noise of a function of the parts."""
        variance = fourth = step = 0.0
        for part, weights in zip(self.parts, self._asked(function), strict=True):
            squares = float((weights**2).sum())
            variance += part.variance * squares
            fourth += part.kurtosis * part.variance**2 * float((weights**4).sum())
            step = max(step, part.step * float(np.abs(weights).max(initial=0.0)))
        return NoiseOfSum(variance, fourth / variance**2 if variance > 0 else 0.0, step)

    def _asked(self, function: Floats) -> list[Floats]:
        """What is asked of each part: of residuals what means do not tell, of their columns the means."""
        found = [function[rows].copy() for rows in self._rows]
        alone = {part.columns[0]: place for place, part in enumerate(self.parts) if len(part.columns) == 1}
        for place, part in enumerate(self.parts):
            if part.residuals:
                table = found[place].reshape(part.shape)
                found[place] = centred(table).ravel()
                found[alone[part.columns[0]]] += table.mean(axis=1)
                found[alone[part.columns[1]]] += table.mean(axis=0) - table.mean()
        return found

    def upper(self, weights: Floats, nearest: Floats) -> BoundedSum:
        """An upper bound of Σ weights·x.

        Raises:
            UsageError: if there are too many cells to look for one.
        """
        rest = weights - self._sums_of_cells.T @ nearest
        scale = float(np.abs(weights).max(initial=0.0))
        function = nearest
        if float(np.abs(rest).max(initial=0.0)) > _NOTHING * max(scale, 1e-300):
            function = nearest + self._above(rest)
        return BoundedSum(float(function @ self.answers), self.noise(function))

    def _above(self, rest: Floats) -> Floats:
        """The function of the parts that is nowhere below these values and has the least sum, noise included."""
        if self.cells > MOST_BOUNDED:
            raise UsageError(
                f"table {' × '.join(self.columns)}", f"has more than {MOST_BOUNDED:,} cells, too many to bound."
            )
        rows, sums = self._sums_of_cells.shape[0], self._sums_of_cells
        scale = float(np.abs(rest).max())
        fitted = sums @ self.reference
        size = float(self.reference.sum())
        # Dual: shares of rows in all cells that agree with the fitted parts up to one standard deviation each.
        matrix = csr_array(_beside(sums, identity(rows, format="csr")))
        cost = np.concatenate([-rest / scale, np.zeros(rows)])
        slack = self._deviations / size
        bounds = np.concatenate([np.tile([0.0, np.inf], (self.cells, 1)), np.stack([-slack, slack], axis=1)])
        solved = linprog(cost, A_eq=matrix, b_eq=fitted / size, bounds=bounds, method="highs")
        if solved.status != 0:
            return self._everywhere(scale)
        found = -np.asarray(solved.eqlin.marginals) * scale
        short = float((rest - sums.T @ found).max())
        return found + self._everywhere(max(short, 0.0))

    def _everywhere(self, value: float) -> Floats:
        """The function that has this value in every cell, asked of the part that tells the total best."""
        spread = [part.values.size * part.variance if not part.residuals else math.inf for part in self.parts]
        found = np.zeros(len(self.answers))
        found[self._rows[int(np.argmin(spread))]] = value
        return found


def _beside(first: csr_array, second: csr_array) -> csr_array:
    return csr_array(vstack([first.T, second.T], format="csc").T)
