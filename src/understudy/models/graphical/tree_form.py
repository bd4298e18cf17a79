"""Closed form for forests: when the measured pairs form no circle, no iteration over the model is needed.

With the total known, least squares falls apart into pieces that know nothing of each other. A column's distribution
is the inverse-variance mean of its own table and the margins of its pairs, cut to what is possible. A pair's table is
the nearest table of 0 or more with the margins just found. The maximum-entropy model with these tables is the product
of their conditionals. Pairs are drawn towards independence by as much as the noise warrants (empirical Bayes: the
spread around independence that the noise does not explain is estimated from the noisy table itself).
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.models.graphical.conditionals import from_bag_order
from understudy.models.graphical.junction_tree import JunctionTree
from understudy.models.graphical.loss import NoisyTable, known_cells
from understudy.models.nonnegative import norm_sub
from understudy.models.restrict import allowed

__all__ = ["forest_factors", "head_start", "is_forest", "shrink", "towards_independence"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

_SWEEPS = 500
_TOLERANCE = 1e-10
_TRACE = 1e-9
"""Share of a pair's mass spread as under independence, so that no possible combination is lost for good."""


@dataclass(frozen=True, slots=True, eq=False)
class _Mean:
    """The inverse-variance mean of all tables of one clique."""

    values: Floats
    variance: float


def is_forest(domain: Domain, tables: Sequence[NoisyTable], forbidden: Sequence[Forbidden]) -> bool:
    """Whether the closed form applies: ungrouped tables of one or two columns, pairs without a circle, rules inside."""
    live = [frozenset(n for n in table.clique if domain.sizes[n] > 1) for table in tables]
    if any(table.groups is not None for table in tables) or any(len(names) > 2 for names in live):
        return False
    for rule in forbidden:
        names = frozenset(n for n in rule.clique if domain.sizes[n] > 1)
        if len(names) > 1 and names not in live:
            return False
    pairs = {Clique(sorted(names)) for names in live if len(names) == 2}
    return len(_without_circles(pairs)) == len(pairs)


def head_start(
    domain: Domain, tables: Sequence[NoisyTable], forbidden: Sequence[Forbidden], total: float
) -> dict[Clique, Floats]:
    """Log-potentials of a closed-form fit to the strongest forest among the measured pairs and margins of tables.

    A descent that starts there needs a tenth of the steps, and stopped early it leans towards the forest instead of
    towards equal counts.
    """
    small = [table for table in tables if table.groups is None]
    pieces = [margin for table in small for margin in _margins(domain, table)]
    means = _means(domain, pieces)
    nodes = {name: _node(domain, name, means, forbidden, total) for name, size in domain.sizes.items() if size > 1}
    strength: dict[Clique, float] = {}
    for pair, mean in means.items():
        if len(pair) == 2:
            independent = np.outer(nodes[pair[0]], nodes[pair[1]]).ravel() / total
            noise = math.sqrt(2.0 * mean.variance / math.pi) * mean.values.size
            strength[pair] = float(np.abs(mean.values - independent).sum()) - noise
    ordered = sorted((pair for pair in strength if strength[pair] > 0.0), key=lambda pair: -strength[pair])
    forest = _without_circles(ordered)
    inside = [rule for rule in forbidden if any(set(rule.clique) <= set(part) for part in (*forest, *means))]
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

    Each true count is taken to lie around its expectation with a variance proportional to it; the factor is what the
    noisy table's distance leaves once its noise is accounted for. Looks at nothing but the arguments, so it is free.
    """
    known = np.ones(table.values.size, dtype=bool) if possible is None else possible
    return replace(table, values=_drawn(table.values, expected, table.variance, known))


def towards_independence(
    domain: Domain, tables: Sequence[NoisyTable], forbidden: Sequence[Forbidden], total: float
) -> list[NoisyTable]:
    """The tables with those of two columns or more drawn towards the product of their columns' distributions."""
    plain = [table for table in tables if table.groups is None]
    means = _means(domain, plain)
    nodes = {name: _node(domain, name, means, forbidden, total) for name, size in domain.sizes.items() if size > 1}
    drawn = []
    for table in tables:
        live = [name for name in table.clique if domain.sizes[name] > 1]
        expected = np.full(1, total)
        for name in live:
            expected = np.multiply.outer(expected, nodes[name] / total).ravel()
        if table.groups is not None:
            expected = np.bincount(table.groups, weights=expected, minlength=table.values.size)
        possible = known_cells(domain, table, forbidden)
        drawn.append(shrink(table, expected, possible) if len(live) > 1 and (expected * possible).any() else table)
    return drawn


def _drawn(values: Floats, expected: Floats, variance: float, possible: Bools) -> Floats:
    centre = np.maximum(expected, 1e-9)
    excess = float((((values - centre) ** 2 - variance) * possible).sum())
    spread = max(excess / float((centre * possible).sum()), 1e-9) * centre
    return np.asarray(centre + spread / (spread + variance) * (values - centre))


def forest_factors(
    tree: JunctionTree, tables: Sequence[NoisyTable], forbidden: Sequence[Forbidden], total: float, *, shrunk: bool
) -> list[Floats]:
    """One factor per bag of the forest's junction tree; their product is the model."""
    domain = tree.domain
    means = _means(domain, tables)
    nodes = {name: _node(domain, name, means, forbidden, total) for name in tree.home}
    factors = []
    for bag, names in enumerate(tree.bags):
        if len(names) < 2:
            factors.append(from_bag_order(tree, bag, nodes[names[0]] if names else np.ones(1)))
            continue
        possible = _possible(domain, names, forbidden)
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


def _possible(domain: Domain, names: Clique, forbidden: Sequence[Forbidden]) -> Bools:
    return allowed(domain, names, np.arange(domain.cells(names), dtype=np.int64), forbidden).reshape(
        domain.shape(names)
    )


def _node(
    domain: Domain, name: str, means: dict[Clique, _Mean], forbidden: Sequence[Forbidden], total: float
) -> Floats:
    """A column's counts: weighted mean of all that was measured about it, 0 or more, adding up to the total."""
    weighted, weights = np.zeros(domain.sizes[name]), np.zeros(domain.sizes[name])
    possible = _possible(domain, Clique((name,)), forbidden)
    for clique, mean in means.items():
        if name not in clique:
            continue
        cells = _possible(domain, clique, forbidden)
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
