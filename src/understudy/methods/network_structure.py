"""The structure of a Bayesian network: which parents a column may get, families in order, and their tables.

Which parents a column may get
------------------------------
All of it is public: it depends on sizes, rules, levels and numbers that were paid for.

Limits of a step (public, so that the number of candidates never depends on a row). Parent sets hold at most as many
columns as keep the number of candidates, counted before any is left out for its size, within `most_candidates`; at
least one. Candidates whose tables of full codes would exceed `COUNTED` cells are left out, and of the rest the
largest, until those of a step fit together in `STEP_CELLS`. The candidate without parents (or with those that rules
force) always stays. A rule whose last column is the child forces its other columns into the parents, so that the
conditional table can hold the rule.

What all draws together come to is expected from sizes alone (`SearchSize`): tables of random columns stand for those
that a step offers, since it is not known beforehand which columns will have been chosen.

Families in order
-----------------
`drawn`     one family after the other by the exponential mechanism; each draw costs the same.
`from_pairs`  noisy scores of all pairs of columns, paid for once; the rest is post-processing: a first table grows from
            the pair with the best score per cell, by the column that adds most, while it stays useful; then the
            column with the best sum of pair scores over a parent set that stays useful is added, again and again.

From noisy tables to conditional tables
---------------------------------------
Post-processing throughout.

As published (`plain_conditional`): negatives set to 0, each combination of parents scaled to 1; a combination without
mass takes the child's own distribution, from the sums of the same table.

Refined (`refined_conditional`), where the columns were measured on their own first and the network so far says how the
parents are distributed: the noisy table is drawn towards independence of child and parents as far as its noise
warrants (empirical Bayes), negatives are removed by projection, and the table is scaled in turn until its sums are the
network's distribution of the parents and the child's own one (iterative proportional fitting), so that the noise of
many cells does not move what was measured well.

Cells that rules exclude have probability 0. A combination of parents that rules leave no code is all 0 (see
`models/bayes_net.py`).
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from understudy.arrays import Bools, Floats, Ints
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.methods.marginals import COUNTED_CELLS, within
from understudy.models.bayes_net import FIELD_BYTES, Conditional, field_bytes, field_of, layout_of
from understudy.models.estimation import NoisyTable, shrink
from understudy.models.tables import allowed, norm_sub
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator
from understudy.privacy.dependence import Family
from understudy.privacy.scores import Quality

Taken = tuple[tuple[str, int], ...]
"""Columns and the level at which each is taken."""

COUNTED = 2**20
STEP_CELLS = 2**23
_SAMPLES = 1_000


def usefulness(rows: float, cells: float, noise: float) -> float:
    """Average count of a cell over the scale of its noise.

    >>> round(usefulness(44_821, 2**9, 2 * (15 - 8) / 0.7), 2)  # 8 parents of two codes, published noise
    4.38
    """
    return rows / (cells * noise)


def best_degree(rows: float, columns: int, theta: float, noise: Callable[[int], float]) -> int:
    """The largest degree k ≥ 1 at which tables of k + 1 columns of two codes are θ-useful; 0 if there is none.

    `noise` gives the scale of the noise if so many tables are measured: columns − k of them.
    """
    degrees = range(1, columns)
    return max((k for k in degrees if usefulness(rows, 2.0 ** (k + 1), noise(columns - k)) >= theta), default=0)


def largest_table(rows: float, theta: float, noise: float) -> float:
    """τ: most cells of a θ-useful table at that noise.

    >>> round(largest_table(44_821, 4.0, 2 * 15 / 0.7), 1)  # published noise of 15 tables
    261.5
    """
    return rows / (theta * noise)


def maximal_sets(sizes: Mapping[str, Sequence[int]], limit: float, most: int | None = None) -> list[Taken]:
    """All sets of columns, each at one of its levels (sizes finest first), that fit the limit and cannot be made finer.

    `most` bounds the number of columns of a set. The recursion is that of Zhang et al. (2017).

    >>> sorted(map(dict, maximal_sets({"a": [2], "b": [3]}, 3)), key=str)
    [{'a': 0}, {'b': 0}]
    """
    if limit < 1:
        return []
    if not sizes or most == 0:
        return [()]
    (name, levels), *others = sizes.items()
    rest = dict(others)
    fewer = None if most is None else most - 1
    found, used = list[Taken](), set[Taken]()
    for level, size in enumerate(levels):
        for smaller in maximal_sets(rest, limit / size, fewer):
            if smaller not in used:
                used.add(smaller)
                found.append(((name, level), *smaller))
    found += [smaller for smaller in maximal_sets(rest, limit, most) if smaller not in used]
    return found


def halved(size: int, factor: int) -> list[Ints]:
    """Coarser levels of a column: `factor` neighbours merged, again and again, while 4 groups or more remain."""
    levels, merged = list[Ints](), factor
    while factor > 1 and math.ceil(size / merged) >= 4:
        levels.append(np.arange(size, dtype=np.int64) // merged)
        merged *= factor
    return levels


def of_equal_mass(shares: Floats, groups: Sequence[int]) -> list[Ints]:
    """Coarser levels with about these numbers of groups: neighbouring codes merged to about equal mass.

    `shares` are noisy and paid for, so this is free. A code that alone holds a group's mass is a group of its own.
    """
    levels = list[Ints]()
    middle = np.cumsum(shares) - shares / 2.0
    for count in groups:
        if count >= shares.size:
            continue
        raw = np.minimum((middle * count).astype(np.int64), count - 1)
        level = np.unique(np.maximum.accumulate(raw), return_inverse=True)[1].astype(np.int64)
        if level.max() > 0 and not any(np.array_equal(level, other) for other in levels):
            levels.append(level)
    return levels


@dataclass(frozen=True, slots=True, eq=False)
class FamilyTable:
    """The table of a family as a partition of the records: parents at their levels, then the child."""

    family: Family
    domain: Domain
    coarser: Mapping[str, Sequence[Ints]]

    @property
    def name(self) -> str:
        """What the transcript calls it."""
        parents = [
            f"{name} in {size}" if self.family.level(place) else name
            for place, (name, size) in enumerate(zip(self.family.parents, self.sizes, strict=True))
        ]
        return " × ".join([*parents, self.family.child])

    @property
    def columns(self) -> Clique:
        """Child and parents."""
        return self.domain.clique(self.family.columns)

    @property
    def sizes(self) -> list[int]:
        """Groups of each parent."""
        return [
            int(self.coarser[name][self.family.level(place) - 1].max()) + 1
            if self.family.level(place)
            else self.domain.sizes[name]
            for place, name in enumerate(self.family.parents)
        ]

    @property
    def cells(self) -> int:
        """Combinations of parents times codes of the child."""
        return math.prod(self.sizes) * self.domain.sizes[self.family.child]

    @property
    def groups(self) -> tuple[Ints | None, ...]:
        """Per parent the group of each code, or None where it is taken as it is."""
        return tuple(
            self.coarser[name][self.family.level(place) - 1] if self.family.level(place) else None
            for place, name in enumerate(self.family.parents)
        )

    def assign(self, codes: Mapping[str, npt.NDArray[np.integer]]) -> Ints:
        """The cell of each record."""
        cell = np.zeros(codes[self.family.child].shape, dtype=np.int64)
        for name, size, groups in zip(self.family.parents, self.sizes, self.groups, strict=True):
            cell *= size
            cell += codes[name] if groups is None else groups[codes[name]]
        return np.asarray(cell * self.domain.sizes[self.family.child] + codes[self.family.child])


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """The public side of choosing parents: what may be offered at a step."""

    domain: Domain
    structural_zeros: Sequence[StructuralZeros]
    limit: float
    """Most cells of a table of a column and its parents."""
    coarser: Mapping[str, Sequence[Ints]] = field(default_factory=dict)
    degree: int | None = None
    """Parents exactly, as far as there are so many columns; None: any number."""
    maximal: bool = False
    """Only parent sets that nothing can be added to."""
    most_candidates: int = 4000
    _level_sizes: Mapping[str, tuple[int, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sizes = {
            name: (size, *(int(level.max()) + 1 for level in self.coarser.get(name, ())))
            for name, size in self.domain.sizes.items()
        }
        object.__setattr__(self, "_level_sizes", sizes)

    def families(self, chosen: Sequence[str], left: Sequence[str]) -> list[Family]:
        """What may be chosen next: a column that is left, with parents among those chosen."""
        most = self._most_parents(chosen, len(left))
        found = list[Family]()
        for child in left:
            forced = self.forced(child, chosen)
            sets = list(self._parents(child, forced, chosen, most))
            if not self.maximal and self.degree is None:
                sets.append(Family(child, forced))
            found += dict.fromkeys(sets)
        kept = self._counted(found)
        offered = {family.child for family in kept}
        return kept + [Family(child, self.forced(child, chosen)) for child in left if child not in offered]

    def forced(self, child: str, chosen: Sequence[str]) -> tuple[str, ...]:
        """Columns that rules force among the child's parents, in the order they were chosen."""
        names = {
            name
            for rule in self.structural_zeros
            if child in rule.clique and set(rule.clique) <= {child, *chosen}
            for name in rule.clique
            if name != child
        }
        return tuple(name for name in chosen if name in names)

    def cells(self, family: Family) -> int:
        """Cells of the family's table, parents at their levels."""
        sizes = (self._level_sizes[name][family.level(place)] for place, name in enumerate(family.parents))
        return math.prod(sizes) * self.domain.sizes[family.child]

    def _parents(self, child: str, forced: tuple[str, ...], chosen: Sequence[str], most: int) -> Iterator[Family]:
        free = [name for name in chosen if name not in forced]
        limit = self.limit / self.domain.sizes[child] / self.domain.cells(forced)
        if self.degree is not None:
            wanted = max(0, min(self.degree, len(chosen)) - len(forced))
            for names in itertools.combinations(free, min(wanted, most)):
                yield Family(child, (*forced, *names))
        elif self.maximal:
            for taken in maximal_sets({name: self._level_sizes[name] for name in free}, limit, most):
                yield _family(child, forced, taken)
        else:
            for width in range(1, most + 1):
                for names in itertools.combinations(free, width):
                    for levels in itertools.product(*(enumerate(self._level_sizes[name]) for name in names)):
                        if math.prod(size for _, size in levels) <= limit:
                            yield _family(
                                child, forced, tuple((n, level) for n, (level, _) in zip(names, levels, strict=True))
                            )

    def _most_parents(self, chosen: Sequence[str], left: int) -> int:
        """The largest number of parents at which a step stays within its candidates; see the module."""
        # Number of sets of each width: the elementary symmetric polynomials of the numbers of levels.
        counts = [1] + [0] * len(chosen)
        for name in chosen:
            for width in range(len(chosen), 0, -1):
                counts[width] += counts[width - 1] * (1 if self.degree is not None else len(self._level_sizes[name]))
        most, running = 0, 0
        for width in range(1, len(chosen) + 1):
            running = counts[width] if self.degree is not None else running + counts[width]
            if width > 1 and running * left > self.most_candidates:
                break
            most = width
        return most

    def _counted(self, found: list[Family]) -> list[Family]:
        # Once for columns that come at many levels.
        cliques = {columns: self.domain.clique(columns) for columns in {family.columns for family in found}}
        sizes = {columns: self.domain.cells(clique) for columns, clique in cliques.items()}
        used, kept, seen = 0, set[Family](), set[Clique]()
        for family in sorted(found, key=lambda family: sizes[family.columns]):
            clique, cells = cliques[family.columns], sizes[family.columns]
            fresh = 0 if clique in seen else cells
            if cells <= COUNTED and used + fresh <= STEP_CELLS:
                used += fresh
                kept.add(family)
                seen.add(clique)
        return [family for family in found if family in kept]


@dataclass(frozen=True, slots=True)
class SearchSize:
    """What the draws of a network are expected to come to."""

    candidates: float
    """Number of candidates of all draws."""
    kept_cells: float
    """Number of cells of all tables counted for them, each table once."""
    peak_cells: float
    """Number of cells of the tables that are kept and of those that a step counts, at the worst step."""

    @classmethod
    def of(cls, search: Search, levels: Mapping[str, Sequence[int]], kept_cells: int) -> "SearchSize":
        """Expected if columns have levels of these sizes (finest first) and at most `kept_cells` are kept."""
        columns = len(levels)
        samples = _Samples(search, levels)
        candidates = kept = peak = 0.0
        before = 0
        for chosen in range(1, columns):
            left = columns - chosen
            most = samples.most_parents(chosen, left)
            cells = fresh = 0.0
            for width in range(1, most + 1):
                if search.degree is not None and width != min(search.degree, most):
                    continue
                sets = float(left * math.comb(chosen, width))
                offers, counted = samples.means(width, chosen, last=width == most)
                candidates += sets * offers
                cells += sets * counted
                # Sets without the column chosen last were counted before, unless sets of that width are new.
                fresh += sets * counted * (width / chosen if width <= before else 1.0)
            scale = min(1.0, STEP_CELLS / max(cells, 1.0))
            held = min(float(kept_cells), kept + fresh * scale)
            peak = max(peak, kept + 1.5 * fresh * scale)  # while counting, half as much again
            kept, before = held, most
        return cls(candidates + columns, kept, peak)


class _Samples:
    """Tables of random columns: which fit, how many levels of parents they have, and their cells."""

    def __init__(self, search: Search, levels: Mapping[str, Sequence[int]]) -> None:
        self._search = search
        widest = max(map(len, levels.values()))
        self._levels = np.array([[*sizes, *[sizes[-1]] * (widest - len(sizes))] for sizes in levels.values()], float)
        self._counts = np.array([len(sizes) for sizes in levels.values()])
        self._rng = np.random.default_rng(0)  # public: sizes of tables, no noise
        self._drawn: dict[int, tuple[Floats, Floats, Floats]] = {}

    def most_parents(self, chosen: int, left: int) -> int:
        """The largest number of parents that a step offers; as `Search` has it, for columns of average levels."""
        average = 1.0 if self._search.degree is not None else float(self._counts.mean())
        most, running = 0, 0.0
        for width in range(1, chosen + 1):
            sets = math.comb(chosen, width) * average**width
            running = sets if self._search.degree is not None else running + sets
            if width > 1 and running * left > self._search.most_candidates:
                break
            most = width
        return most

    def means(self, width: int, chosen: int, *, last: bool) -> tuple[float, float]:
        """Per set of columns: candidates, and cells of the table that is counted for them."""
        if width not in self._drawn:
            self._drawn[width] = self._draw(width)
        offers, cells, extending = self._drawn[width]
        if self._search.maximal and not last:
            alone = (1.0 - extending) ** (chosen - width)  # no column that was chosen could be added
            return float((offers * alone).mean()), float((cells * alone).mean())
        return float(offers.mean()), float(cells.mean())

    def _draw(self, width: int) -> tuple[Floats, Floats, Floats]:
        """For random columns, a child and its parents: candidates, cells to count, share of columns that still fit."""
        limit = self._search.limit if self._search.degree is None else math.inf
        order = np.argsort(self._rng.random((_SAMPLES, len(self._counts))), axis=1)[:, : width + 1]
        child, parents = self._levels[order[:, 0], 0], order[:, 1:]
        level = (self._rng.random(parents.shape) * self._counts[parents]).astype(np.int64)
        taken = child * self._levels[parents, level].prod(axis=1)
        full, least = (child * self._levels[parents, at].prod(axis=1) for at in (0, -1))
        counted = full <= COUNTED
        offers = np.where(counted & (taken <= limit), self._counts[parents].prod(axis=1), 0)
        smallest = np.sort(self._levels[:, -1])
        extending = np.searchsorted(smallest, limit / taken, side="right") / smallest.size
        return offers.astype(float), np.where(counted & (least <= limit), full, 0.0), extending


def _family(child: str, forced: tuple[str, ...], taken: Taken) -> Family:
    names, levels = tuple(name for name, _ in taken), tuple(level for _, level in taken)
    if not any(levels):
        return Family(child, (*forced, *names))
    return Family(child, (*forced, *names), (*(0 for _ in forced), *levels))


_UNSCORED = -1e15
"""Below every score: pairs too large to be counted are never taken."""
Scored = Callable[[Sequence[Family]], Quality[Family]]


@dataclass(frozen=True, slots=True)
class NetworkStructure:
    """Families, parents first. The tables of the first `derived` of them are sums of the next one's."""

    families: tuple[Family, ...]
    derived: int = 0

    @property
    def measured(self) -> tuple[Family, ...]:
        """The families that need a table."""
        return self.families[self.derived :]


def drawn(curator: Curator, search: Search, first: str, scored: Scored, draw: Cost) -> NetworkStructure:
    """A network of the live columns, grown from the first one; every step is one draw at that cost."""
    live = [name for name, size in search.domain.sizes.items() if size > 1]
    families, left = [Family(first)], [name for name in live if name != first]
    while left:
        chosen = [family.child for family in families]
        family = curator.select(scored(search.families(chosen, left)), draw)
        families.append(family)
        left.remove(family.child)
    return NetworkStructure(tuple(families), _nested(families, search.degree or 0))


def _nested(families: Sequence[Family], degree: int) -> int:
    """The degree, if the first families up to it all depend on everything before them, else 0."""
    first = families[: degree + 1]
    nested = all(
        set(family.parents) == {other.child for other in first[:place]} and not any(family.levels)
        for place, family in enumerate(first)
    )
    return degree if nested and len(first) == degree + 1 else 0


def pairs_of(domain: Domain) -> list[Family]:
    """Every pair of live columns once, as families (R does not ask which of the two is the child).

    The largest are left out where all could not be counted together.
    """
    live = [name for name, size in domain.sizes.items() if size > 1]
    pairs = within(domain, (Clique(pair) for pair in itertools.combinations(live, 2)), COUNTED_CELLS)
    return [Family(second, (first,)) for first, second in pairs]


def from_pairs(search: Search, scores: Mapping[Clique, float]) -> NetworkStructure:
    """The network that noisy pair scores suggest; see the module."""
    domain = search.domain
    live = [name for name, size in domain.sizes.items() if size > 1]
    if len(live) == 1:
        return NetworkStructure((Family(live[0]),))

    def score(first: str, second: str) -> float:
        return scores.get(domain.clique((first, second)), _UNSCORED)

    fitting = [pair for pair in scores if domain.cells(pair) <= search.limit] or list(scores)
    per_cell = {pair: scores[pair] / domain.cells(pair) for pair in fitting}
    start: Clique = max(per_cell, key=lambda pair: per_cell[pair])
    table = list(start)
    while True:
        widening = [name for name in live if name not in table and domain.cells((*table, name)) <= search.limit]
        if not widening:
            break
        table.append(max(widening, key=lambda name: math.fsum(score(name, other) for other in table)))
    families = [Family(name, tuple(table[:place])) for place, name in enumerate(table)]
    left = [name for name in live if name not in table]
    while left:
        chosen = [family.child for family in families]
        offers = [(_parents(search, name, chosen, score), name) for name in left]
        gains = {name: math.fsum(score(name, other) for other in parents) for parents, name in offers}
        parents, name = max(offers, key=lambda offer: gains[offer[1]])
        families.append(Family(name, parents))
        left.remove(name)
    return NetworkStructure(_with_rules(search, families), len(table) - 1)


def _parents(search: Search, child: str, chosen: Sequence[str], score: Callable[[str, str], float]) -> tuple[str, ...]:
    """Parents by falling score, each taken if the table stays within the limit and its score is above 0."""
    found = list(search.forced(child, chosen))
    for name in sorted(chosen, key=lambda other: -score(child, other)):
        cells = search.domain.cells((child, name, *found))
        if name not in found and score(child, name) > 0.0 and cells <= search.limit:
            found.append(name)
    return tuple(found)


def _with_rules(search: Search, families: Sequence[Family]) -> tuple[Family, ...]:
    """Families whose parents hold all that rules force."""
    found = []
    for place, family in enumerate(families):
        forced = search.forced(family.child, [other.child for other in families[:place]])
        found.append(Family(family.child, tuple(dict.fromkeys((*forced, *family.parents)))))
    return tuple(found)


_ROUNDS = 50
_CLOSE = 1e-9


def possible_cells(table: FamilyTable, structural_zeros: Sequence[StructuralZeros]) -> Bools:
    """Which cells of the family's table (combinations × codes) rules allow; rules with a coarsened parent are left out.

    (Rules force their columns into the parents at full detail, so a rule whose last column is the child is never.)
    """
    family, domain = table.family, table.domain
    fine = [name for place, name in enumerate(family.parents) if not family.level(place)]
    names = [*fine, family.child]
    shape = [size if name in fine else 1 for name, size in zip(family.parents, table.sizes, strict=True)]
    cells = np.arange(domain.cells(names), dtype=np.int64)
    found = allowed(domain, names, cells, structural_zeros).reshape(*shape, domain.sizes[family.child])
    whole = np.broadcast_to(found, (*table.sizes, domain.sizes[family.child]))
    return np.ascontiguousarray(whole).reshape(-1, domain.sizes[family.child])


def plain_conditional(counts: Floats, possible: Bools) -> Floats:
    """Probabilities of the child given each combination, from noisy counts of the same shape."""
    kept = np.where(possible, np.maximum(counts, 0.0), 0.0)
    own = kept.sum(axis=0)
    return _scaled(kept, own if own.sum() > 0.0 else np.ones(own.size), possible)


def refined_conditional(noisy: Floats, variance: float, own: Floats, joint: Floats, possible: Bools) -> Floats:
    """Probabilities of the child given each combination.

    Args:
        noisy: Noisy counts as shares of the records, combinations × codes.
        variance: Of each of them.
        own: The child's own distribution.
        joint: How likely the network so far says each combination is.
        possible: Cells that rules allow.
    """
    expected = np.where(possible, np.multiply.outer(joint, own), 0.0)
    if not expected.sum() > 0.0:
        return plain_conditional(noisy, possible)
    flat = NoisyTable(Clique(), noisy.ravel(), max(variance, 1e-18))
    drawn = shrink(flat, expected.ravel(), possible.ravel()).values
    table = np.zeros(possible.size)
    table[possible.ravel()] = norm_sub(drawn[possible.ravel()], 1.0)
    fitted = _proportional(np.ascontiguousarray(table.reshape(possible.shape)), joint, own)
    return _scaled(fitted, own, possible)


def parents_joint(domain: Domain, conditionals: Sequence[Conditional], table: FamilyTable) -> Floats | None:
    """How likely the network so far says each combination of the family's parents is; None where that does not fit."""
    family = table.family
    if not family.parents:
        return np.ones(1)
    wanted = domain.clique(family.parents)
    part = Domain.of({item.child: domain.sizes[item.child] for item in conditionals})
    layout = layout_of(part, conditionals)
    nodes = layout.above(wanted)
    cells = domain.cells(wanted)
    if (
        8 * cells > FIELD_BYTES // 16
        or field_bytes(layout.whole, nodes, [layout.whole.clique(wanted)]) > FIELD_BYTES // 16
    ):
        return None
    names = {node.child for node in nodes}
    whole = Domain.of({name: size for name, size in layout.whole.sizes.items() if name in names})
    found = field_of(whole, nodes, 1.0).marginal(whole.clique(wanted))
    order = [name for name in whole.columns if name in wanted]
    turned = found.reshape(whole.shape(order)).transpose([order.index(name) for name in family.parents])
    for axis, groups in enumerate(table.groups):
        if groups is not None:
            size = int(groups.max()) + 1
            moved = np.moveaxis(turned, axis, 0)
            merged = np.zeros((size, *moved.shape[1:]))
            np.add.at(merged, groups, moved)
            turned = np.moveaxis(merged, 0, axis)
    return np.ascontiguousarray(turned).ravel()


def _proportional(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """The table scaled in turn towards these sums; where they cannot be met (zero cells), as near as that brings it."""
    for _ in range(_ROUNDS):
        sums = table.sum(axis=0)
        table = table * np.divide(columns, sums, out=np.zeros_like(sums), where=sums > 0.0)
        sums = table.sum(axis=1)
        scale = np.divide(rows, sums, out=np.zeros_like(sums), where=sums > 0.0)
        table = table * scale[:, None]
        if np.abs(table.sum(axis=0) - columns).sum() < _CLOSE:
            break
    return table


def _scaled(table: Floats, own: Floats, possible: Bools) -> Floats:
    """Rows that add up to 1; those without mass take the child's own distribution as far as rules allow it."""
    sums = table.sum(axis=1)
    empty = ~(sums > 1e-300)
    instead = np.where(possible[empty], own, 0.0)
    bare = ~(instead.sum(axis=1) > 1e-300)
    instead[bare] = possible[empty][bare]
    filled = table.copy()
    filled[empty] = instead
    sums = filled.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(filled, sums, out=np.zeros_like(filled), where=sums > 0.0))
