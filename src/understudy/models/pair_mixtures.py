"""Mixtures of products fitted to noisy tables of all pairs of columns, and the tables that several of them agree on.

All pairs lie in one square matrix: one line and one column per code of the table, the columns of the table one after
the other (`PairGrid`). A mixture of K products with weights π and chances A (one line per component, summing to 1
within each column of the table) has the pair tables Aᵀ diag(π) A, so one matrix product gives all of them, and two
more give the gradient of

    Σ over cells of W (P − Y)² / 2  +  the same for columns  +  ridge · Σ_k π_k ‖L_k − mean L‖² / 2,

with Y the noisy shares, W their precisions and L the logarithms of the chances before they are scaled. Adam takes a
fixed number of steps with a rate that falls to nearly 0. The ridge holds components together: without it a few of
them would follow the noise of single cells. Members of an ensemble differ in ridge and start, and their mean has less
error than any of them.

Measured tables then keep part of what the mixtures did not explain (`drawn_towards`, empirical Bayes): with λ what is
expected and σ² the variance of the noise, residuals r are taken to have variance κ·t² + σ², t² = λ + aλ². In most cells
κ is 1; in some the mixtures are much nearer or much farther off than usual, so κ is one of `_FARTHER`, as often as the
residuals of the table say (expectation and maximisation). A cell becomes λ + r · E[κt²/(κt² + σ²)], the mean over what
κ may be there: large residuals, which noise does not explain, are kept, and small ones are let go. Both tables first
get the columns that are known by then: the expected one is raked, the noisy one shifted, so that only how columns go
together is left to judge, at less variance (`with_margins`).

Codes may be too many for one matrix. Mixtures then speak of groups of neighbouring codes (`CodeGroups`): noisy tables
are added up to groups, and what a mixture expects of two groups is spread over their codes by the columns. With u the
share of a group among the codes of its column, what margins add to a table of groups is even in u, and the precision
of a cell is divided by the number of codes on either side: residuals of groups are then judged as those of codes are.

Everything here is post-processing of noisy answers. It draws from a seed. Matrix products are those of the linear
algebra library, so that the last digits, and with them a few rows, may differ from machine to machine.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt

from understudy.arrays import Bools, Floats, Ints
from understudy.domain import Clique, Domain, StructuralZeros

Singles = npt.NDArray[np.float32]
Cell = TypeVar("Cell", bound=np.generic)

# Equal components would have equal gradients for ever.
_SPREAD = 0.3
"""Standard deviation of the logarithms of chances at the start."""
_MEAN_DECAY, _SQUARE_DECAY, _TINY = 0.9, 0.99, 1e-12
_LAST_RATE = 1e-4
_RAKINGS = 3
_FARTHER = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""How many times its usual variance what mixtures did not explain of a cell may have."""
_USUAL_CELLS, _OTHER_CELLS = 20.0, 0.1
"""Beside the cells of a table so many count for the usual variance, and for each other one, before it is looked at."""
_JUDGED, _JUDGINGS = 2**14, 30
"""Cells by which a table is judged at most, and that are looked at together; and how often shares are made better."""


@dataclass(frozen=True, slots=True, eq=False)
class PairGrid:
    """Where the codes of each column lie among the codes of all columns."""

    domain: Domain
    starts: Ints

    @classmethod
    def of(cls, domain: Domain) -> Self:
        """The grid of all columns of the domain."""
        return cls(domain, np.cumsum([0, *domain.sizes.values()], dtype=np.int64))

    @property
    def codes(self) -> int:
        """How many codes all columns have together."""
        return int(self.starts[-1])

    @property
    def pairs(self) -> list[Clique]:
        """All pairs of columns, in the order of the domain."""
        names = self.domain.columns
        return [Clique((one, other)) for at, one in enumerate(names) for other in names[at + 1 :]]

    def places(self, name: str) -> slice:
        """Where the codes of a column lie."""
        at = self.domain.columns.index(name)
        return slice(int(self.starts[at]), int(self.starts[at + 1]))

    def blocks(self) -> Iterator[slice]:
        """Where the codes of each column lie, column after column."""
        for low, high in zip(self.starts[:-1], self.starts[1:], strict=True):
            yield slice(int(low), int(high))

    def table(self, matrix: npt.NDArray[Cell], pair: Clique) -> npt.NDArray[Cell]:
        """The part of the matrix that holds this pair, one line per code of its first column."""
        return matrix[self.places(pair[0]), self.places(pair[1])]

    def put(self, matrix: npt.NDArray[np.floating], pair: Clique, table: npt.NDArray[np.floating] | float) -> None:
        """Writes the table of a pair in both places that belong to it."""
        first, second = self.places(pair[0]), self.places(pair[1])
        matrix[first, second] = table
        matrix[second, first] = matrix[first, second].T

    def impossible(self, structural_zeros: Sequence[StructuralZeros]) -> npt.NDArray[np.bool_]:
        """Cells of pairs that a rule about just these columns excludes."""
        found = np.zeros((self.codes, self.codes), dtype=bool)
        for rule in structural_zeros:
            if len(rule.clique) == 2 and set(rule.clique) <= set(self.domain.columns):
                first, second = self.places(rule.clique[0]), self.places(rule.clique[1])
                found[first, second] |= rule.mask.reshape(self.domain.shape(rule.clique))
                found[second, first] = found[first, second].T
        return found


@dataclass(frozen=True, slots=True, eq=False)
class CodeGroups:
    """Codes that lie next to each other, taken together: `places` has the group of every code of the grid."""

    grid: PairGrid
    grouped: PairGrid
    places: Ints

    @classmethod
    def of(cls, grid: PairGrid, shares: Floats, most: int) -> Self:
        """At most so many groups (one per column at least): a code joins the one before if both stay below some share.

        The share is the least with which groups are few enough, so codes that are frequent stay alone.
        """
        starts = _starts(grid, shares, 0.0)
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS if starts.sum() > most else 0):
            middle = (low + high) / 2.0
            tried = _starts(grid, shares, middle)
            if tried.sum() > most:
                low = middle
            else:
                high, starts = middle, tried
        if starts.sum() > most:
            starts = _starts(grid, shares, 2.0)
        sizes = {name: int(starts[grid.places(name)].sum()) for name in grid.domain.columns}
        return cls(grid, PairGrid.of(Domain.of(sizes)), np.cumsum(starts) - 1)

    @property
    def members(self) -> Ints:
        """How many codes each group has."""
        return np.bincount(self.places, minlength=self.grouped.codes)

    def sums(self, values: Floats) -> Floats:
        """One number per code, added up to groups."""
        return np.bincount(self.places, weights=values, minlength=self.grouped.codes).astype(np.float64)

    def table(self, pair: Clique, counts: Floats) -> Floats:
        """The table of a pair, added up to groups."""
        if self.grid.codes == self.grouped.codes:
            return counts
        for axis, name in enumerate(pair):
            starts = np.flatnonzero(np.diff(self.places[self.grid.places(name)], prepend=-1))
            counts = np.add.reduceat(counts, starts, axis=axis)
        return counts

    def spread(self, pair: Clique, table: Floats, shares: Floats) -> Floats:
        """A table of groups, spread over their codes by these shares of all codes."""
        if self.grid.codes == self.grouped.codes:
            return table
        within = shares / np.maximum(self.sums(shares)[self.places], 1e-30)
        first, second = (self.grid.places(name) for name in pair)
        groups = [self.places[part] - self.places[part.start] for part in (first, second)]
        return np.asarray(table[np.ix_(*groups)] * np.outer(within[first], within[second]))


_HALVINGS = 40


def _starts(grid: PairGrid, shares: Floats, most: float) -> Bools:
    """Which codes begin a group: the first of a column, and those that would lift the group before above `most`."""
    found = np.zeros(grid.codes, dtype=bool)
    for block in grid.blocks():
        held = math.inf
        for code, share in enumerate(shares[block].tolist(), block.start):
            held += share
            if held > most:
                found[code], held = True, share
    return found


@dataclass(frozen=True, slots=True, eq=False)
class PairEvidence:
    """What is known about pairs and columns, in shares of all rows: a value and a precision (0: nothing) per cell.

    Of a pair that is known by its residuals alone, only these are compared: means of rows and columns do not count.
    """

    grid: PairGrid
    values: Singles
    precisions: Singles
    column_values: Singles
    column_precisions: Singles
    by_residuals: Singles
    """1 for cells of pairs known by residuals, 0 for others."""
    evenly: Singles
    """For every code one divided by the number of codes of its column; for a group, that times its codes."""

    @classmethod
    def of_columns(cls, grid: PairGrid, shares: Floats, precisions: Floats, members: Ints | None = None) -> Self:
        """Evidence about columns alone; pairs are written into it. `members`: how many codes each group has."""
        empty = np.zeros((grid.codes, grid.codes), dtype=np.float32)
        counts = np.ones(grid.codes) if members is None else members
        evenly = np.concatenate([counts[block] / counts[block].sum() for block in grid.blocks()])
        columns = shares.astype(np.float32), precisions.astype(np.float32)
        return cls(grid, empty, empty.copy(), *columns, empty.copy(), evenly.astype(np.float32))

    def add(self, pair: Clique, shares: Floats, precisions: Floats | float) -> None:
        """Writes what is known of one pair."""
        self.grid.put(self.values, pair, shares)
        self.grid.put(self.precisions, pair, precisions)

    def add_residuals(self, pair: Clique, shares: Floats, precisions: Floats | float) -> None:
        """Writes a table of which only the residuals are known; its means may be any.

        One precision, or for groups of a and b codes that of one code divided by a·b.
        """
        self.add(pair, shares, precisions)
        self.grid.put(self.by_residuals, pair, 1.0)


@dataclass(frozen=True, slots=True)
class Fitting:
    """How a mixture is fitted."""

    components: int = 200
    steps: int = 250
    rate: float = 0.1

    def work(self, codes: int) -> float:
        """Multiplications and additions of one fit."""
        return 4.0 * codes * codes * self.components * self.steps


@dataclass(slots=True, eq=False)
class PairMixture:
    """A mixture while it is fitted: logarithms of chances and of weights, and what Adam remembers of both."""

    grid: PairGrid
    logits: Singles
    log_weights: Singles

    @classmethod
    def started(cls, grid: PairGrid, shares: Floats, components: int, rng: np.random.Generator) -> Self:
        """Components scattered around the product of the columns; `shares` must be above 0."""
        scattered = rng.standard_normal((components, grid.codes)) * _SPREAD
        return cls(grid, (np.log(shares) + scattered).astype(np.float32), np.zeros(components, dtype=np.float32))

    @property
    def chances(self) -> Singles:
        """One line per component, summing to 1 within each column of the table."""
        found = np.empty_like(self.logits)
        for block in self.grid.blocks():
            part = np.exp(self.logits[:, block] - self.logits[:, block].max(axis=1, keepdims=True))
            found[:, block] = part / part.sum(axis=1, keepdims=True)
        return found

    @property
    def weights(self) -> Singles:
        """Weights of the components, which sum to 1."""
        part = np.exp(self.log_weights - self.log_weights.max())
        return np.asarray(part / part.sum())

    def pairs(self) -> Singles:
        """All pair tables."""
        chances = self.chances
        return np.asarray((chances.T * self.weights) @ chances)

    def fit(self, evidence: PairEvidence, how: Fitting, ridge: float) -> Self:
        """Moves the mixture towards the evidence."""
        moments = [(np.zeros_like(part), np.zeros_like(part)) for part in (self.logits, self.log_weights)]
        for step in range(how.steps):
            rate = how.rate * 0.5 * (1.0 + math.cos(math.pi * step / how.steps)) + _LAST_RATE
            slopes = self._slopes(evidence, ridge)
            for part, slope, (mean, square) in zip((self.logits, self.log_weights), slopes, moments, strict=True):
                mean *= _MEAN_DECAY
                mean += (1.0 - _MEAN_DECAY) * slope
                square *= _SQUARE_DECAY
                square += (1.0 - _SQUARE_DECAY) * slope * slope
                # Both running means start at 0 and are brought up to size (Adam; Kingma and Ba 2015).
                reach = np.sqrt(square / (1.0 - _SQUARE_DECAY ** (step + 1))) + _TINY
                part -= (rate / (1.0 - _MEAN_DECAY ** (step + 1))) * (mean / reach)
        return self

    def _slopes(self, evidence: PairEvidence, ridge: float) -> tuple[Singles, Singles]:
        """The gradient: of the logarithms of chances, and of those of weights.

        Where a pair is known by residuals, rows and columns of its pulls G are centred: pᵀGq becomes (p − u)ᵀG(q − u),
        u spreading evenly. Taking u off q changes nothing, because what is even over a column moves no chance.
        """
        chances, weights = self.chances, self.weights
        pulls = self.pairs()
        pulls -= evidence.values
        pulls *= evidence.precisions
        column_pulls = (weights @ chances - evidence.column_values) * evidence.column_precisions
        slopes: Singles = np.asarray(chances @ pulls, dtype=np.float32)
        pulls *= evidence.by_residuals
        even_pulls = pulls @ evidence.evenly
        by_weight = 0.5 * np.einsum("kc,kc->k", chances, slopes) + chances @ (column_pulls - even_pulls)
        by_weight += 0.5 * float(even_pulls @ evidence.evenly)
        slopes += column_pulls - even_pulls
        slopes *= weights[:, np.newaxis]
        for block in self.grid.blocks():
            part = slopes[:, block]
            part -= (chances[:, block] * part).sum(axis=1, keepdims=True)
            part *= chances[:, block]
        slopes += (ridge * weights)[:, np.newaxis] * (self.logits - weights @ self.logits)
        return slopes, weights * (by_weight - float(weights @ by_weight))


def drawn_towards(expected: Floats, noisy: Floats, variance: float) -> Floats:
    """Counts between what is expected and what was measured, by how much of the difference noise explains.

    >>> drawn_towards(np.array([100.0, 50.0]), np.array([101.0, 49.0]), 1e12).round(3).tolist()
    [100.0, 50.0]
    """
    residuals = noisy - expected
    trust = 1.0 / (variance + expected + 1e-12) ** 2
    weight = float((trust * expected**4).sum())
    # Less what noise and the scatter of counts explain by themselves.
    beyond = float((trust * expected**2 * (residuals**2 - variance - expected)).sum())
    usual = expected + max(beyond / weight if weight > 0.0 else 0.0, 0.0) * expected**2
    kept = _kept(residuals.ravel(), usual.ravel(), max(variance, 1e-12))
    return np.asarray(expected + residuals * kept.reshape(expected.shape))


def _kept(residuals: Floats, usual: Floats, variance: float) -> Floats:
    """Of every residual the share that is kept, if residuals have some of `_FARTHER` times their usual variances."""
    step = -(-residuals.size // _JUDGED)
    shares = np.array([_USUAL_CELLS if times == 1.0 else _OTHER_CELLS for times in _FARTHER])
    prior, shares = shares, shares / shares.sum()
    likelihoods, _ = _by_spread(residuals[::step], usual[::step], variance)
    for _ in range(_JUDGINGS):
        found = likelihoods * shares
        found /= found.sum(axis=1, keepdims=True)
        shares = step * found.sum(axis=0) + prior
        shares /= shares.sum()
    kept = np.empty(residuals.size)
    for low in range(0, residuals.size, _JUDGED):
        part = slice(low, low + _JUDGED)
        likelihoods, weights = _by_spread(residuals[part], usual[part], variance)
        found = likelihoods * shares
        kept[part] = (found * weights).sum(axis=1) / found.sum(axis=1)
    return kept


def _by_spread(residuals: Floats, usual: Floats, variance: float) -> tuple[Floats, Floats]:
    """By cell and by how much farther it is off: how likely the residual is, up to a factor, and what is kept of it."""
    spread = usual[:, np.newaxis] * np.array(_FARTHER)
    whole = spread + variance
    logs = -0.5 * (np.log(whole) + residuals[:, np.newaxis] ** 2 / whole)
    return np.exp(logs - logs.max(axis=1, keepdims=True)), spread / whole


def raked(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """The table scaled to have these sums, row by row and column by column in turn; cells of 0 stay 0.

    >>> raked(np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([3.0, 1.0]), np.array([2.0, 2.0])).tolist()
    [[1.5, 1.5], [0.5, 0.5]]
    """
    found = np.maximum(table, 0.0)
    for _ in range(_RAKINGS):
        found = found * (rows / np.maximum(found.sum(axis=1), 1e-30))[:, np.newaxis]
        found = found * (columns / np.maximum(found.sum(axis=0), 1e-30))
    return found


def with_margins(table: Floats, rows: Floats, columns: Floats, possible: Bools) -> Floats:
    """The table shifted to have these sums, which must agree: the nearest one, where every cell is possible.

    >>> whole = np.ones((2, 2), dtype=bool)
    >>> with_margins(np.array([[5.0, 1.0], [1.0, 1.0]]), np.array([4.0, 4.0]), np.array([4.0, 4.0]), whole).tolist()
    [[3.0, 1.0], [1.0, 3.0]]
    """
    down = (rows - table.sum(axis=1)) / np.maximum(possible.sum(axis=1), 1)
    found = table + down[:, np.newaxis] * possible
    across = (columns - found.sum(axis=0)) / np.maximum(possible.sum(axis=0), 1)
    return np.asarray(found + across * possible)


def interaction_share(possible: Bools) -> float:
    """Of the variance of a table's cells, what is left when its margins are known: (1 − 1/a)(1 − 1/b) if all may be."""
    cells = int(possible.sum())
    return float(max(cells - sum(possible.shape) + 1, 1) / max(cells, 1))
