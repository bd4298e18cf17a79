"""JunctionTree: bags of columns such that every clique lies in a bag and every column forms a connected part.

Elimination
-----------
How large a graphical model over given cliques becomes is known before anything is built. Columns are removed one by
one: first those whose neighbours are tied to each other already (that is never wrong, and leaves a forest of pairs as
it is), else the one whose removal makes the smallest table. The tables made are the bags of the junction tree. One
compiled kernel answers both "how large would it be with this clique?" (asked hundreds of times a round) and "build it",
so a model that was said to fit does fit. Columns with one code add nothing and stay out.

The tree
--------
The tree of an elimination order joins bags along the largest separators, so it is a maximum spanning tree without a
search. Unconnected parts are joined by empty separators: there is always one root, and every other bag splits into
its separator (the columns it shares with its parent) and its fresh columns (which no bag before it holds).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from understudy.arrays import Bools, Floats, Ints
from understudy.compiled import compiled
from understudy.domain import Clique, Domain
from understudy.errors import UsageError

_CELL_BYTES = 8


@dataclass(frozen=True, slots=True)
class Elimination:
    """The bag each step made, in order: the column removed, its bag, and the step that removes its next column."""

    columns: tuple[str, ...]
    bags: tuple[Clique, ...]
    following: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GraphicalSize:
    """How large the model over some cliques is, in exact integers."""

    cells: int
    largest: int

    @classmethod
    def of(cls, domain: Domain, cliques: Iterable[Clique]) -> Self:
        """The size of the model that these cliques make; builds nothing.

        >>> domain = Domain.of({"a": 2, "b": 3, "c": 5})
        >>> GraphicalSize.of(domain, [domain.clique("ab"), domain.clique("bc")]).cells
        21
        """
        found = eliminate(domain, cliques)
        hidden = {found.following[step] for step in range(len(found.bags)) if _absorbs(found, step)}
        sizes = [domain.cells(bag) for step, bag in enumerate(found.bags) if step not in hidden]
        return cls(sum(sizes) or 1, max(sizes, default=1))

    @property
    def bytes(self) -> int:
        """Bytes of the model's tables."""
        return self.cells * _CELL_BYTES


class ModelGrowth:
    """Answers how large a model would become with one clique more; made once per set of cliques.

    Only the connected columns that a candidate touches are eliminated again.
    """

    def __init__(self, domain: Domain, cliques: Iterable[Clique]) -> None:
        self._domain = domain
        self._names, self._adjacent = _graph(domain, cliques)
        self._place = {name: position for position, name in enumerate(self._names)}
        self._sizes = np.array([domain.sizes[name] for name in self._names], dtype=np.float64)
        self._component = _components(self._adjacent)
        count = int(self._component.max(initial=-1)) + 1
        members = [self._component == number for number in range(count)]
        self._cells = np.array([_cells_of(self._adjacent, self._sizes, mask) for mask in members], dtype=np.float64)

    def cells_with(self, candidates: Sequence[Clique]) -> Floats:
        """Cells of the model with each candidate added alone; exact below 2⁵³."""
        width = max((len(clique) for clique in candidates), default=0)
        wanted = np.full((len(candidates), max(width, 1)), -1, dtype=np.int64)
        for row, clique in enumerate(candidates):
            places = [self._place[name] for name in clique if name in self._place]
            wanted[row, : len(places)] = places
        return np.asarray(_cells_with(self._adjacent, self._sizes, self._component, self._cells, wanted))


def eliminate(domain: Domain, cliques: Iterable[Clique]) -> Elimination:
    """The bags of greedy elimination over the columns with two codes or more; ties go to the earlier column."""
    names, adjacent = _graph(domain, cliques)
    sizes = np.array([domain.sizes[name] for name in names], dtype=np.float64)
    count = len(names)
    order, bags = np.zeros(count, dtype=np.int64), np.zeros((count, count), dtype=np.bool_)
    _eliminate(adjacent, sizes, np.ones(count, dtype=np.bool_), order, bags)
    step_of = np.zeros(count, dtype=np.int64)
    step_of[order] = np.arange(count)
    following = []
    for step in range(count):
        later = [int(step_of[place]) for place in np.flatnonzero(bags[step]) if place != order[step]]
        following.append(min(later, default=-1))
    cliques_made = tuple(Clique(names[place] for place in np.flatnonzero(row)) for row in bags)
    return Elimination(tuple(names[place] for place in order), cliques_made, tuple(following))


def _absorbs(found: Elimination, step: int) -> bool:
    """Whether the bag of the next step lies inside this one (it then adds no cell)."""
    after = found.following[step]
    return after >= 0 and len(found.bags[step]) == len(found.bags[after]) + 1


def _graph(domain: Domain, cliques: Iterable[Clique]) -> tuple[list[str], Bools]:
    names = [name for name, size in domain.sizes.items() if size > 1]
    place = {name: position for position, name in enumerate(names)}
    adjacent = np.zeros((len(names), len(names)), dtype=np.bool_)
    for clique in set(cliques):
        members = [place[name] for name in clique if name in place]
        adjacent[np.ix_(members, members)] = True
    np.fill_diagonal(adjacent, val=False)
    return names, adjacent


def _components(adjacent: Bools) -> Ints:
    component = np.full(adjacent.shape[0], -1, dtype=np.int64)
    count = 0
    for start in range(adjacent.shape[0]):
        if component[start] >= 0:
            continue
        stack = [start]
        component[start] = count
        while stack:
            for other in np.flatnonzero(adjacent[stack.pop()]):
                if component[other] < 0:
                    component[other] = count
                    stack.append(int(other))
        count += 1
    return component


@compiled()  # pragma: no cover
def _cost(adjacent: Bools, sizes: Floats, column: int) -> float:
    cells = sizes[column]
    for other in range(sizes.size):
        if adjacent[column, other]:
            cells *= sizes[other]
    return float(cells)


@compiled()  # pragma: no cover
def _tied(adjacent: Bools, column: int) -> bool:
    """Whether all neighbours of the column are neighbours of each other."""
    around = adjacent[column]
    for first in range(around.size):
        if around[first]:
            other = adjacent[first]
            for second in range(first + 1, around.size):
                if around[second] and not other[second]:
                    return False
    return True


@compiled()  # pragma: no cover
def _update(adjacent: Bools, sizes: Floats, ring: Ints, costs: Floats) -> bool:
    """Ties the columns of the ring to each other; whether any two were not tied before."""
    fresh = False
    for first in ring:
        for second in ring:
            if first != second and not adjacent[first, second]:
                adjacent[first, second] = True
                costs[first] *= sizes[second]
                fresh = True
    return fresh


@compiled()  # pragma: no cover
def _cheapest(active: Bools, tied: Bools, costs: Floats) -> int:
    best = -1
    for column in range(costs.size):
        if active[column] and (
            best < 0
            or (tied[column] and not tied[best])
            or (tied[column] == tied[best] and costs[column] < costs[best])
        ):
            best = column
    return best


@compiled()  # pragma: no cover
def _eliminate(adjacent: Bools, sizes: Floats, active: Bools, order: Ints, bags: Bools) -> int:
    """Eliminates the active columns; `adjacent` and `active` are used up. Returns the number of steps."""
    count = sizes.size
    costs, tied, ring = np.empty(count), np.zeros(count, np.bool_), np.empty(count, np.int64)
    for column in range(count):
        if active[column]:
            costs[column], tied[column] = _cost(adjacent, sizes, column), _tied(adjacent, column)
    for steps in range(count):
        best = _cheapest(active, tied, costs)
        if best < 0:
            return steps
        active[best] = False
        order[steps] = best
        around = 0
        for column in range(count):
            bags[steps, column] = adjacent[best, column]
            if adjacent[best, column]:
                ring[around] = column
                around += 1
                adjacent[best, column] = False
                adjacent[column, best] = False
                costs[column] /= sizes[best]
        bags[steps, best] = True
        fresh = not tied[best] and _update(adjacent, sizes, ring[:around], costs)
        for column in ring[:around]:
            tied[column] = _tied(adjacent, column)
        if fresh:  # new ties can make the neighbours of others tied, too
            for column in range(count):
                if active[column] and not tied[column]:
                    tied[column] = _tied(adjacent, column)
    return count


@compiled()  # pragma: no cover
def _sum_of_bags(sizes: Floats, order: Ints, bags: Bools, steps: int) -> float:
    """Cells of the maximal bags: one that its predecessor contains is exactly one column smaller."""
    count = sizes.size
    step_of = np.full(count, count, np.int64)
    for step in range(steps):
        step_of[order[step]] = step
    width = np.zeros(steps, np.int64)
    cells = np.ones(steps)
    following = np.full(steps, count, np.int64)
    for step in range(steps):
        for other in range(count):
            if bags[step, other]:
                width[step] += 1
                cells[step] *= sizes[other]
                if other != order[step] and step_of[other] < following[step]:
                    following[step] = step_of[other]
    for step in range(steps):
        after = following[step]
        if after < count and width[step] == width[after] + 1:
            cells[after] = 0.0
    return float(cells.sum())


@compiled()  # pragma: no cover
def _cells_of(adjacent: Bools, sizes: Floats, members: Bools) -> float:
    count = sizes.size
    order = np.zeros(count, np.int64)
    bags = np.zeros((count, count), np.bool_)
    steps = _eliminate(adjacent.copy(), sizes, members.copy(), order, bags)
    cells: float = _sum_of_bags(sizes, order, bags, steps)
    return cells


@compiled()  # pragma: no cover
def _cells_with(adjacent: Bools, sizes: Floats, component: Ints, cells: Floats, wanted: Ints) -> Floats:
    count = sizes.size
    order = np.zeros(count, np.int64)
    bags = np.zeros((count, count), np.bool_)
    whole = cells.sum()
    result = np.empty(wanted.shape[0])
    for row in range(wanted.shape[0]):
        grown = adjacent.copy()
        fresh = False
        active = np.zeros(count, np.bool_)
        base = whole
        for first in wanted[row]:
            if first >= 0 and not active[first]:
                base -= cells[component[first]]
                for column in range(count):
                    if component[column] == component[first]:
                        active[column] = True
            for second in wanted[row]:
                if first >= 0 and second >= 0 and first != second and not grown[first, second]:
                    grown[first, second] = True
                    fresh = True
        if fresh:
            steps = _eliminate(grown, sizes, active, order, bags)
            result[row] = base + _sum_of_bags(sizes, order, bags, steps)
        else:
            result[row] = whole
    return result


@dataclass(frozen=True)
class JunctionTree:
    """Bags with parents before children; `parents[0]` is −1 and nothing else is."""

    domain: Domain
    bags: tuple[Clique, ...]
    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        for fault in _faults(self.domain, self.bags, self.parents):
            raise UsageError("junction tree", fault)

    @classmethod
    def of(cls, domain: Domain, cliques: Iterable[Clique]) -> Self:
        """The tree greedy elimination finds; the root is the largest bag."""
        found = eliminate(domain, cliques)
        kept, edges = _merged(found.bags, found.following)
        if not kept:
            return cls(domain, (Clique(),), (-1,))
        root = max(kept, key=lambda step: (domain.cells(found.bags[step]), -step))
        order, parent = _walk(root, kept, edges)
        place = {step: position for position, step in enumerate(order)}
        parents = tuple(place[parent[step]] if step in parent else -1 for step in order)
        return cls(domain, tuple(found.bags[step] for step in order), parents)

    @cached_property
    def separators(self) -> tuple[Clique, ...]:
        """Per bag the columns it shares with its parent, in the order of the domain."""
        pairs = zip(self.bags, self.parents, strict=True)
        return tuple(Clique(name for name in bag if parent >= 0 and name in self.bags[parent]) for bag, parent in pairs)

    @cached_property
    def fresh(self) -> tuple[Clique, ...]:
        """Per bag the columns that its parent lacks, in the order of the domain."""
        pairs = zip(self.bags, self.separators, strict=True)
        return tuple(Clique(name for name in bag if name not in separator) for bag, separator in pairs)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Per bag the bags it is the parent of."""
        below: list[list[int]] = [[] for _ in self.bags]
        for bag, parent in enumerate(self.parents):
            if parent >= 0:
                below[parent].append(bag)
        return tuple(map(tuple, below))

    @cached_property
    def home(self) -> dict[str, int]:
        """Per column the first bag that holds it: there it is fresh."""
        return {name: bag for bag, names in enumerate(self.fresh) for name in names}

    def bag_of(self, clique: Iterable[str]) -> int:
        """The smallest bag that holds the clique (columns with one code aside), or −1."""
        wanted = [name for name in clique if self.domain.sizes[name] > 1]
        if not wanted:
            return self._by_size[0]
        rarest = min((self._holders[name] for name in wanted), key=len)
        return next((bag for bag in rarest if all(name in self.bags[bag] for name in wanted)), -1)

    @cached_property
    def _by_size(self) -> tuple[int, ...]:
        """All bags, those with fewer cells first."""
        return tuple(sorted(range(len(self.bags)), key=lambda bag: self.domain.cells(self.bags[bag])))

    @cached_property
    def _holders(self) -> dict[str, list[int]]:
        """Per column the bags that hold it, those with fewer cells first."""
        found: dict[str, list[int]] = {name: [] for name in self.home}
        for bag in self._by_size:
            for name in self.bags[bag]:
                found[name].append(bag)
        return found


def _merged(bags: Sequence[Clique], following: Sequence[int]) -> tuple[list[int], list[tuple[int, int]]]:
    """Maximal bags and the edges between them, by step number."""
    holder = list(range(len(bags)))
    for step, after in enumerate(following):
        if after >= 0 and holder[after] == after and len(bags[step]) == len(bags[after]) + 1:
            holder[after] = holder[step]
    kept = sorted(set(holder))
    edges = []
    for step, after in enumerate(following):
        if after >= 0 and holder[step] != holder[after]:
            edges.append((holder[step], holder[after]))
    return kept, edges


def _walk(root: int, kept: Sequence[int], edges: Iterable[tuple[int, int]]) -> tuple[list[int], dict[int, int]]:
    """Depth-first order from the root; parts the edges do not reach hang below the root."""
    around: dict[int, list[int]] = {step: [] for step in kept}
    for first, second in edges:
        around[first].append(second)
        around[second].append(first)
    order: list[int] = []
    parent: dict[int, int] = {}
    for start in [root, *kept]:
        if start in parent or start in order:
            continue
        if start != root:
            parent[start] = root
        stack = [start]
        while stack:
            step = stack.pop()
            order.append(step)
            for other in around[step]:
                if other != root and other not in parent:
                    parent[other] = step
                    stack.append(other)
    return order, parent


def _faults(domain: Domain, bags: Sequence[Clique], parents: Sequence[int]) -> list[str]:
    if not bags or len(bags) != len(parents) or parents[0] != -1:
        return ["needs a first bag without parent, and one parent per bag."]
    seen: set[str] = set()
    for position, (bag, parent) in enumerate(zip(bags, parents, strict=True)):
        if position and not 0 <= parent < position:
            return ["a parent must come before its bag."]
        if bag != domain.clique(bag) or any(domain.sizes[name] == 1 for name in bag):
            return ["a bag holds columns with two codes or more, in the order of the domain."]
        shared = seen & set(bag)
        if position and not shared <= set(bags[parent]):
            return ["a column must not leave the tree and come back."]
        if position and shared == set(bag):
            return ["every bag must add a column."]
        seen |= set(bag)
    missing = [name for name, size in domain.sizes.items() if size > 1 and name not in seen]
    return ["every column with two codes or more must be in a bag."] if missing else []


_SUM_TOLERANCE = 1e-9


def sum_to(axes: Sequence[str], table: Floats, part: Sequence[str]) -> Floats:
    """The sums of an array with these axes over all but `part`, with the axes of `part` in its order."""
    others = tuple(place for place, name in enumerate(axes) if name not in part)
    order = [name for name in axes if name in part]
    return np.asarray(table.sum(axis=others).transpose([order.index(name) for name in part]))


def table_faults(tree: JunctionTree, tables: Sequence[Floats]) -> list[str]:
    """What keeps these tables from being calibrated, in words; empty if nothing does."""
    if len(tables) != len(tree.bags):
        return ["needs one table per bag."]
    zero_rows: list[Bools] = []
    for bag, table in enumerate(tables):
        shape = (tree.domain.cells(tree.separators[bag]), tree.domain.cells(tree.fresh[bag]))
        if table.shape != shape:
            return [f"table {bag} must have {shape[0]:,} rows and {shape[1]:,} columns."]
        if not np.isfinite(table).all() or table.min() < 0.0:
            return ["probabilities must be finite and 0 or more."]
        sums = table.sum(axis=1)
        zero_rows.append(sums == 0.0)
        if np.any(np.abs(sums[sums > 0.0] - 1.0) > _SUM_TOLERANCE) or not sums.any():
            return ["the probabilities of a row must add up to 1."]
    for bag, parent in enumerate(tree.parents):
        if bag and zero_rows[bag].any():
            axes = (*tree.separators[parent], *tree.fresh[parent])
            reached = sum_to(axes, tables[parent].reshape(tree.domain.shape(axes)), tree.separators[bag]).ravel()
            if np.any(reached[zero_rows[bag]] > 0.0):
                return ["a combination that can occur has no continuation."]
    return []
