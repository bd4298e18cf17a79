"""Fitting a graphical model to noisy tables: loss, closed form for forests, entropic mirror descent.

Loss
----
Squared distance to the noisy tables, each cell in units of its noise variance. Tables of one clique are averaged into
one, tables inside a larger measured clique are read off that clique's marginal, and a table may be measured coarsely: a
public map sends the cells of its clique to groups and there is one noisy value per group. Cells that a rule forbids
carry no information (their count is known to be 0) and are left out.

Forests
-------
When the measured pairs form no circle, no iteration over the model is needed. With the total known, least squares falls
apart into pieces that know nothing of each other. A column's distribution is the inverse-variance mean of its own table
and the margins of its pairs, cut to what is possible. A pair's table is the nearest table of 0 or more with the margins
just found. The maximum-entropy model with these tables is the product of their conditionals. Pairs are drawn towards
independence by as much as the noise warrants (empirical Bayes: how counts are spread around independence is estimated
from the noisy table itself, noise accounted for).

Mirror descent
--------------
The model is multiplied by exp(−rate · gradient) until the loss is low. The step is accepted if the loss falls by half
of what its gradient promises; the rate halves after a failure and grows after a success: by half until the first
failure, by a little from then on. The whole loop is compiled once, whatever the structure. A fit can start from an
earlier one, and it stops after a number of steps or as soon as the loss is what the noise alone explains: going on
would fit noise.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from understudy.arrays import Bools, Floats, Ints, Shorts
from understudy.compiled import compiled
from understudy.domain import Clique, Domain, Measurement, StructuralZeros
from understudy.errors import UsageError
from understudy.models.junction_tree import JunctionTree
from understudy.models.propagation import FLOOR, Program, from_bag_order, run
from understudy.models.tables import allowed, norm_sub, sub_indices


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
        return cls(domain.clique(answer.columns), answer.values.astype(np.float64), answer.distribution.variance)

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
    maps: Shorts
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


def known_cells(domain: Domain, table: NoisyTable, structural_zeros: Sequence[StructuralZeros]) -> Bools:
    """Which values of the table can be other than 0 under the rules inside its clique."""
    if not any(set(rule.clique) <= set(table.clique) for rule in structural_zeros):
        return np.ones(table.values.size, dtype=bool)
    cells = np.arange(domain.cells(table.clique), dtype=np.int64)
    possible = allowed(domain, table.clique, cells, structural_zeros)
    if table.groups is None:
        return possible
    return np.bincount(table.groups, weights=possible, minlength=table.values.size) > 0.0


def estimate_total(
    domain: Domain, tables: Sequence[NoisyTable], structural_zeros: Sequence[StructuralZeros] = ()
) -> float:
    """Number of records: the inverse-variance mean of the tables' sums, at least 1."""
    weighted, weights = 0.0, 0.0
    for table in tables:
        possible = known_cells(domain, table, structural_zeros)
        count = int(possible.sum())
        if count:
            # A sum over many cells holds the noise of all of them.
            weight = 1.0 / (table.variance * count)
            weighted += weight * float(table.values[possible].sum())
            weights += weight
    if weights == 0.0:
        raise UsageError("total", "cannot be estimated without a measured table.", "State the total.")
    # Noise may bring the sum to 0 or below, and a model needs a record to speak of.
    return max(1.0, weighted / weights)


def fold(program: Program, tables: Sequence[NoisyTable], structural_zeros: Sequence[StructuralZeros] = ()) -> Folded:
    """The tables' loss, folded onto the program's parameters; every clique must lie inside one of them."""
    domain = program.tree.domain
    precision, pulled = np.zeros(program.parameter_cells), np.zeros(program.parameter_cells)
    places = {clique: number for number, clique in enumerate(program.parameters)}
    nested: dict[tuple[Clique, int], list[NoisyTable]] = {}
    constant = 0.0
    for number, table in enumerate(tables):
        possible = known_cells(domain, table, structural_zeros)
        # What averaging tables of one clique drops from the loss; with it `explained` can be compared with noise.
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
    maps: list[Shorts] = [np.zeros(0, dtype=np.int32)]
    weights, targets = [np.zeros(0)], [np.zeros(0)]
    used, groups = 0, 0
    for (clique, _), alike in nested.items():
        host = _host(program, clique)
        plan = _map(program, clique, program.parameters[host], alike[0].groups)
        weight, aim = _average(alike, [known_cells(domain, table, structural_zeros) for table in alike])
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
    # The smallest, since its cells are added up in every step.
    return min(holders, key=lambda number: program.tree.domain.cells(program.parameters[number]))


def _map(program: Program, clique: Clique, host: Clique, groups: Ints | None) -> Shorts:
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


_SWEEPS = 500
_TOLERANCE = 1e-10
_TRACE = 1e-9
"""Share of a pair's mass spread as under independence, so that no possible combination is lost for good."""
_LIFT_STEP, _LIFT_WIDTH = 1.6, 0.25
"""Lifts from one distribution to the next, as a factor, and the width of a distribution as a share of its centre:
neighbours overlap."""
_LIFTS_BELOW, _LEAST_LIFT = 5, 0.02
"""Distributions between lifts 0 and 1, and the width of the narrowest."""
_MIXTURE_STEPS = 60
_LOOKED_AT = 2**15
"""Cells from which the spread of lifts is estimated, and cells handled at a time."""
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, slots=True, eq=False)
class _Mean:
    """The inverse-variance mean of all tables of one clique."""

    values: Floats
    variance: float


def is_forest(domain: Domain, tables: Sequence[NoisyTable], structural_zeros: Sequence[StructuralZeros]) -> bool:
    """Whether the closed form applies: ungrouped tables of one or two columns, pairs without a circle, rules inside."""
    live = [frozenset(n for n in table.clique if domain.sizes[n] > 1) for table in tables]
    if any(table.groups is not None for table in tables) or any(len(names) > 2 for names in live):
        return False
    for rule in structural_zeros:
        names = frozenset(n for n in rule.clique if domain.sizes[n] > 1)
        if len(names) > 1 and names not in live:
            return False
    pairs = {Clique(sorted(names)) for names in live if len(names) == 2}
    return len(_without_circles(pairs)) == len(pairs)


def head_start(
    domain: Domain, tables: Sequence[NoisyTable], structural_zeros: Sequence[StructuralZeros], total: float
) -> dict[Clique, Floats]:
    """Log-potentials of a closed-form fit to the strongest forest among the measured pairs and margins of tables.

    A descent that starts there needs a tenth of the steps, and stopped early it leans towards the forest instead of
    towards equal counts.
    """
    small = [table for table in tables if table.groups is None]
    pieces = [margin for table in small for margin in _margins(domain, table)]
    means = _means(domain, pieces)
    nodes = {
        name: _node(domain, name, means, structural_zeros, total) for name, size in domain.sizes.items() if size > 1
    }
    strength: dict[Clique, float] = {}
    for pair, mean in means.items():
        if len(pair) == 2:
            independent = np.outer(nodes[pair[0]], nodes[pair[1]]).ravel() / total
            noise = math.sqrt(2.0 * mean.variance / math.pi) * mean.values.size
            # Less the distance that noise alone would show, or large tables would always look strongest.
            strength[pair] = float(np.abs(mean.values - independent).sum()) - noise
    ordered = sorted((pair for pair in strength if strength[pair] > 0.0), key=lambda pair: -strength[pair])
    forest = _without_circles(ordered)
    inside = [rule for rule in structural_zeros if any(set(rule.clique) <= set(part) for part in (*forest, *means))]
    tree = JunctionTree.of(domain, forest)
    chosen = [piece for piece in pieces if len(piece.clique) < 2 or piece.clique in forest]
    factors = forest_factors(tree, chosen, inside, total, shrunk=True)
    potentials = {}
    for bag, factor in enumerate(factors):
        axes = (*tree.separators[bag], *tree.fresh[bag])
        turned = factor.reshape(domain.shape(axes)).transpose([axes.index(name) for name in tree.bags[bag]]).ravel()
        potentials[tree.bags[bag]] = np.log(turned, out=np.zeros(turned.size), where=turned > 0.0)
    return potentials


def _margins(domain: Domain, table: NoisyTable) -> list[NoisyTable]:
    """The table without its one-code columns, or all its pairs if it has more than two others."""
    live = Clique(name for name in table.clique if domain.sizes[name] > 1)
    if len(live) <= 2:
        return [replace(table, clique=live)]
    values = table.values.reshape(domain.shape(live))
    found = []
    for pair in itertools.combinations(live, 2):
        others = tuple(axis for axis, name in enumerate(live) if name not in pair)
        sums = values.sum(axis=others).ravel()
        found.append(NoisyTable(Clique(pair), sums, table.variance * values.size / sums.size))
    return found


def _without_circles(pairs: Iterable[Clique]) -> list[Clique]:
    """The pairs in order, without those that would close a circle."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    kept = []
    for pair in pairs:
        first, second = map(find, pair)
        if first != second:
            leader[first] = second
            kept.append(pair)
    return kept


def shrink(table: NoisyTable, expected: Floats, possible: Bools | None = None) -> NoisyTable:
    """The table drawn towards expected counts by as much as its noise warrants (empirical Bayes).

    Each true count is taken to be a multiple of its expectation, and how such multiples are spread over the cells is
    estimated from the noisy table itself (`_Lifts`); the result is the mean of the true count given the noisy one.
    Looks at nothing but the arguments, so it is free.
    """
    known = np.ones(table.values.size, dtype=bool) if possible is None else possible
    return replace(table, values=_drawn(table.values, expected, table.variance, known))


def towards_independence(
    domain: Domain, tables: Sequence[NoisyTable], structural_zeros: Sequence[StructuralZeros], total: float
) -> list[NoisyTable]:
    """The tables with those of two columns or more drawn towards the product of their columns' distributions."""
    plain = [table for table in tables if table.groups is None]
    means = _means(domain, plain)
    nodes = {
        name: _node(domain, name, means, structural_zeros, total) for name, size in domain.sizes.items() if size > 1
    }
    drawn = []
    for table in tables:
        live = [name for name in table.clique if domain.sizes[name] > 1]
        expected = np.full(1, total)
        for name in live:
            expected = np.multiply.outer(expected, nodes[name] / total).ravel()
        if table.groups is not None:
            expected = np.bincount(table.groups, weights=expected, minlength=table.values.size)
        possible = known_cells(domain, table, structural_zeros)
        drawn.append(shrink(table, expected, possible) if len(live) > 1 and (expected * possible).any() else table)
    return drawn


def _drawn(values: Floats, expected: Floats, variance: float, possible: Bools) -> Floats:
    # Lifts are multiples of what is expected, so that must not be 0.
    centre = np.maximum(expected, 1e-9)
    lifts = _Lifts.of(values[possible], centre[possible], variance)
    pieces = [slice(start, start + _LOOKED_AT) for start in range(0, values.size, _LOOKED_AT)]
    return np.concatenate([lifts.means(values[piece], centre[piece], variance) for piece in pieces])


@dataclass(frozen=True, slots=True, eq=False)
class _Lifts:
    """How a table's lifts (counts as multiples of what is expected) are spread: a mixture of normal distributions.

    A few cells far above what is expected and all others near 0, as in a sparse table, are kept apart, where one
    normal distribution around the expectation would pull down the former and leave the noise of the latter.
    """

    centres: Floats
    widths: Floats
    shares: Floats

    @classmethod
    def of(cls, values: Floats, expected: Floats, variance: float) -> Self:
        """The spread that noisy counts let one see, by expectation maximisation."""
        # A count c of n records is expected to be at least c²/n from its margins, so no lift is beyond n/c.
        most = 10.0 * max(float(expected.sum()), 1.0) / math.sqrt(variance)
        above = _LIFT_STEP ** np.arange(0.0, max(math.log(most, _LIFT_STEP), 0.0) + 1.0)
        below = _LIFT_STEP ** np.arange(-_LIFTS_BELOW, 0.0)
        centres = np.concatenate(([1.0, 0.0, _LEAST_LIFT], below, above))
        widths = np.maximum(_LIFT_WIDTH * centres, _LEAST_LIFT)
        widths[0] = _LEAST_LIFT  # cells that are as expected: noise alone must not pass for a relation
        lifts = cls(centres, widths, np.full(centres.size, 1.0 / centres.size))
        if values.size > _LOOKED_AT:
            # Multiples of the golden ratio take cells evenly from everywhere, whatever the order of codes.
            chosen = np.arange(values.size) * _GOLDEN % 1.0 < _LOOKED_AT / values.size
            values, expected = values[chosen], expected[chosen]
        return lifts._maximised(values, expected, variance) if values.size else lifts

    def means(self, values: Floats, expected: Floats, variance: float) -> Floats:
        """The mean of each true count, given its noisy one."""
        probabilities = self._probabilities(values, expected, variance) * self.shares[:, None]
        spreads, middles = (self.widths[:, None] * expected) ** 2, self.centres[:, None] * expected
        each = middles + spreads / (spreads + variance) * (values - middles)
        return np.asarray((probabilities * each).sum(axis=0) / probabilities.sum(axis=0))

    def _maximised(self, values: Floats, expected: Floats, variance: float) -> Self:
        probabilities, shares = self._probabilities(values, expected, variance), self.shares
        for _ in range(_MIXTURE_STEPS):
            mixed = np.einsum("ij,i->j", probabilities, shares)
            shares = shares * np.einsum("ij,j->i", probabilities, 1.0 / mixed) / values.size
        return replace(self, shares=np.maximum(shares, 1e-12))

    def _probabilities(self, values: Floats, expected: Floats, variance: float) -> Floats:
        """The density of each noisy count under each distribution, up to a factor for the cell."""
        whole = (self.widths[:, None] * expected) ** 2 + variance
        logs = -0.5 * ((values - self.centres[:, None] * expected) ** 2 / whole + np.log(whole))
        # Relative to the likeliest, so that far from all of them not every density is 0.
        return np.asarray(np.exp(logs - logs.max(axis=0)))


def forest_factors(
    tree: JunctionTree,
    tables: Sequence[NoisyTable],
    structural_zeros: Sequence[StructuralZeros],
    total: float,
    *,
    shrunk: bool,
) -> list[Floats]:
    """One factor per bag of the forest's junction tree; their product is the model."""
    domain = tree.domain
    means = _means(domain, tables)
    nodes = {name: _node(domain, name, means, structural_zeros, total) for name in tree.home}
    factors = []
    for bag, names in enumerate(tree.bags):
        if len(names) < 2:
            factors.append(from_bag_order(tree, bag, nodes[names[0]] if names else np.ones(1)))
            continue
        possible = _possible(domain, names, structural_zeros)
        joint = _edge(means.get(names), nodes[names[0]], nodes[names[1]], possible, shrunk=shrunk)
        table = from_bag_order(tree, bag, joint.ravel())
        sums = table.sum(axis=1, keepdims=True)
        if tree.separators[bag]:
            table = np.divide(table, sums, out=np.zeros_like(table), where=sums > 0.0)
        factors.append(table)
    return factors


def _means(domain: Domain, tables: Sequence[NoisyTable]) -> dict[Clique, _Mean]:
    found: dict[Clique, _Mean] = {}
    for table in tables:
        names = Clique(name for name in table.clique if domain.sizes[name] > 1)
        known = found.get(names, _Mean(np.zeros(table.values.size), np.inf))
        weight, other = 1.0 / table.variance, 1.0 / known.variance
        values = (table.values * weight + known.values * other) / (weight + other)
        found[names] = _Mean(values, 1.0 / (weight + other))
    return found


def _possible(domain: Domain, names: Clique, structural_zeros: Sequence[StructuralZeros]) -> Bools:
    return allowed(domain, names, np.arange(domain.cells(names), dtype=np.int64), structural_zeros).reshape(
        domain.shape(names)
    )


def _node(
    domain: Domain, name: str, means: dict[Clique, _Mean], structural_zeros: Sequence[StructuralZeros], total: float
) -> Floats:
    """A column's counts: weighted mean of all that was measured about it, 0 or more, adding up to the total."""
    weighted, weights = np.zeros(domain.sizes[name]), np.zeros(domain.sizes[name])
    possible = _possible(domain, Clique((name,)), structural_zeros)
    for clique, mean in means.items():
        if name not in clique:
            continue
        cells = _possible(domain, clique, structural_zeros)
        others = tuple(axis for axis, other in enumerate(clique) if other != name)
        counted = cells.sum(axis=others)
        possible &= counted > 0
        weight = np.divide(1.0, mean.variance * counted, out=np.zeros(counted.size), where=counted > 0)
        weighted += weight * (mean.values.reshape(cells.shape) * cells).sum(axis=others)
        weights += weight
    result = np.zeros(possible.size)
    if possible.any():
        informed = np.divide(weighted, weights, out=np.zeros_like(weighted), where=weights > 0.0)
        result[possible] = norm_sub(informed[possible], total) if weights.any() else total / possible.sum()
    return result


def _edge(mean: _Mean | None, rows: Floats, columns: Floats, possible: Bools, *, shrunk: bool) -> Floats:
    """A pair's counts: 0 or more, 0 where impossible, margins as given wherever the rules allow that."""
    total = rows.sum()
    independent: Floats = np.outer(rows, columns) / total * possible
    if mean is None:
        return independent
    values = mean.values
    if shrunk and independent.sum() > 0.0:
        values = _drawn(values, independent.ravel(), mean.variance, possible.ravel())
    values = values.reshape(possible.shape)
    nearest = _project(np.where(possible, values, -np.inf), rows, columns)
    uniform = possible * (total / max(int(possible.sum()), 1))
    # A trace everywhere: the nearest table is 0 in most cells, and descent only multiplies.
    return np.asarray((1.0 - _TRACE) * nearest + 0.5 * _TRACE * (independent + uniform))


@compiled()  # pragma: no cover
def _threshold(values, total, start):  # type: ignore[no-untyped-def]
    """t with Σ max(0, value − t) = total, by Newton steps on that piecewise linear function."""
    most = values.max()
    if total <= 0.0 or not np.isfinite(most):
        return most if np.isfinite(most) else 0.0
    level = min(start, most)
    for _ in range(100):
        mass, count = 0.0, 0
        for value in values:
            if value > level:
                mass += value
                count += 1
        following = (mass - total) / count if count else most - total
        if abs(following - level) <= 1e-13 * (1.0 + abs(level)):
            return following
        level = following
    return level


@compiled()  # pragma: no cover
def _project(values: Floats, row_sums: Floats, column_sums: Floats) -> Floats:
    """The nearest table of 0 or more with these margins: exact row and column shifts in turn (dual ascent)."""
    rows, columns = values.shape
    down, across = np.zeros(rows), np.zeros(columns)
    line, column = np.empty(columns), np.empty(rows)
    total = row_sums.sum()
    for _ in range(_SWEEPS):
        for i in range(rows):
            for j in range(columns):
                line[j] = values[i, j] - across[j]
            down[i] = _threshold(line, row_sums[i], down[i])
        gap = 0.0
        for j in range(columns):
            mass = 0.0
            for i in range(rows):
                column[i] = values[i, j] - down[i]
                mass += max(column[i] - across[j], 0.0)
            gap += abs(mass - column_sums[j])
            across[j] = _threshold(column, column_sums[j], across[j])
        if gap <= _TOLERANCE * total:
            break
    result = np.zeros((rows, columns))
    for i in range(rows):
        for j in range(columns):
            result[i, j] = max(values[i, j] - down[i] - across[j], 0.0)
    return result


Potentials = Mapping[Clique, Floats]

_DEEPEST = 32.0
"""Most that one update may lower the logarithm of a cell."""
_FAILURES = 40


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """How a fit ended: its loss, steps taken, last rate, and the log-potentials another fit can start from."""

    loss: float
    steps: int
    rate: float
    potentials: Potentials


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """When to stop: after `steps`, or once the loss is at most `enough`."""

    steps: int
    enough: float = -np.inf


def descend(program: Program, folded: Folded, total: float, stopping: Stopping, start: Fit | None = None) -> Fit:
    """Fits the program's state, which must have been reset, to the folded tables; a start's rate of 0 is no rate."""
    theta = _inherited(program, start)
    if theta.any():
        _apply(program.forward, program.accept, program.offsets, program.data, theta)
    steepest = float(folded.precision.max(initial=0.0))
    groups = (folded.group_precision[row[3] : row[3] + row[4]] for row in folded.sums)
    steepest += math.fsum(float(group.max(initial=0.0)) for group in groups)
    rate = start.rate if start is not None and start.rate > 0.0 else 2.0 / (max(steepest, 1e-300) * total)
    loss, steps, rate = _descend(
        program.forward,
        program.accept,
        program.offsets,
        program.data,
        program.bounds,
        program.marginals_at,
        folded,
        theta,
        total,
        stopping.steps,
        stopping.enough,
        rate,
    )
    pieces = zip(program.parameters, program.bounds[:-1], program.bounds[1:], strict=True)
    potentials = {clique: program.outward(clique, theta[low:high]) for clique, low, high in pieces}
    return Fit(float(loss), int(steps), float(rate), potentials)


def _inherited(program: Program, start: Fit | None) -> Floats:
    """Log-potentials of the earlier fit, each added to the first parameter that contains its clique."""
    theta = np.zeros(program.parameter_cells)
    sizes = program.tree.domain.sizes
    for clique, table in (start.potentials if start is not None else {}).items():
        for number, parameter in enumerate(program.parameters):
            if set(clique) <= set(parameter):
                axes = program.axes(parameter)
                piece = theta[program.bounds[number] : program.bounds[number + 1]].reshape([sizes[a] for a in axes])
                piece += program.inward(clique, table).reshape([sizes[a] if a in clique else 1 for a in axes])
                break
    return theta


@compiled()  # pragma: no cover
def _exponential(exponents, result):  # type: ignore[no-untyped-def]
    """exp of numbers in [−32, 0] to 11 digits: a polynomial of x/64 squared six times, which vectorises."""
    for i in range(exponents.size):
        x = exponents[i] * (1.0 / 64.0)
        y = 1.0 + x * (1.0 / 11.0)
        y = 1.0 + x * y * (1.0 / 10.0)
        y = 1.0 + x * y * (1.0 / 9.0)
        y = 1.0 + x * y * (1.0 / 8.0)
        y = 1.0 + x * y * (1.0 / 7.0)
        y = 1.0 + x * y * (1.0 / 6.0)
        y = 1.0 + x * y * (1.0 / 5.0)
        y = 1.0 + x * y * (1.0 / 4.0)
        y = 1.0 + x * y * (1.0 / 3.0)
        y = 1.0 + x * y * (1.0 / 2.0)
        y = 1.0 + x * y
        y *= y
        y *= y
        y *= y
        y *= y
        y *= y
        result[i] = y * y


@compiled()  # pragma: no cover
def _update(gradient, rate, bounds, change):  # type: ignore[no-untyped-def]
    """change = −rate · gradient, shifted to at most 0 in every table and cut at the deepest allowed."""
    for table in range(bounds.size - 1):
        piece = gradient[bounds[table] : bounds[table + 1]]
        least = piece.min()
        result = change[bounds[table] : bounds[table + 1]]
        for cell in range(piece.size):
            # Shifted to 0 at the top, for a factor common to a table cancels; so only the lower end can be too extreme.
            result[cell] = max(rate * (least - piece[cell]), -_DEEPEST)


@compiled()  # pragma: no cover
def _marginals(data, bounds, start, total, result):  # type: ignore[no-untyped-def]
    """The marginals that the last run left behind, each scaled to the total."""
    for table in range(bounds.size - 1):
        low, high = bounds[table], bounds[table + 1]
        mass = 0.0
        for cell in range(low, high):
            mass += data[start + cell]
        scale = total / mass
        for cell in range(low, high):
            result[cell] = data[start + cell] * scale


@compiled()  # pragma: no cover
def _apply(forward, accept, offsets, data, theta):  # type: ignore[no-untyped-def]
    """Multiplies the state by exp(theta), in steps that neither under- nor overflow."""
    deepest = 0.0
    for value in theta:
        deepest = max(deepest, abs(value))
    pieces = int(deepest / (0.5 * _DEEPEST)) + 1
    for _ in range(pieces):
        for cell in range(theta.size):
            data[cell] = np.exp(theta[cell] / pieces)
        run(forward, offsets, data, FLOOR)
        run(accept, offsets, data, FLOOR)


@compiled()  # pragma: no cover
def _descend(  # type: ignore[no-untyped-def]
    forward, accept, offsets, data, bounds, start, folded, theta, total, steps, enough, rate
):
    size = theta.size
    current, trial, change = np.empty(size), np.empty(size), np.empty(size)
    gradient, slope = np.empty(size), np.empty(size)
    data[:size] = 1.0
    run(forward, offsets, data, FLOOR)
    _marginals(data, bounds, start, total, current)
    loss = evaluate(folded, current, gradient)
    failures, failed = 0, False
    step = 0
    while step < steps and loss > enough and failures < _FAILURES:
        step += 1
        _update(gradient, rate, bounds, change)
        _exponential(change, data[:size])
        run(forward, offsets, data, FLOOR)
        _marginals(data, bounds, start, total, trial)
        reached = evaluate(folded, trial, slope)
        promised = 0.0
        for cell in range(size):
            promised += gradient[cell] * (current[cell] - trial[cell])
        # Rounding has eaten what the gradient promises: as near to the minimum as floats come.
        if promised <= 0.0:
            break
        # At least half of what the gradient promises; with less, steps that overshoot would be taken again and again.
        if loss - reached >= 0.5 * promised:
            run(accept, offsets, data, FLOOR)
            for cell in range(size):
                theta[cell] += change[cell]
            current, trial = trial, current
            gradient, slope = slope, gradient
            loss = reached
            rate *= 1.02 if failed else 1.5
            failures = 0
        else:
            rate *= 0.5
            failures += 1
            failed = True
    return loss, step, rate
