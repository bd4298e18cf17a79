"""JunctionTree: bags of columns such that every clique lies in a bag and every column forms a connected part.

The tree of an elimination order joins bags along the largest separators, so it is a maximum spanning tree without a
search. Unconnected parts are joined by empty separators: there is always one root, and every other bag splits into
its separator (the columns it shares with its parent) and its fresh columns (which no bag before it holds).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.models.graphical.elimination import eliminate

__all__ = ["JunctionTree"]


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
