"""Nodes of a Bayesian network: conditional tables, and coarser versions of a column as columns of their own.

A parent that is taken at a coarser level becomes a hidden column: a function of the parent, with a table of ones and
zeros. Then a network with coarser parents is a plain network, and nothing else has to know about levels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain

__all__ = ["Conditional", "Layout", "Node", "layout_of", "node_faults"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """The chances of a child's codes, one row per combination of its parents (row-major in their order).

    `groups[i]` gives the group of every code of parent i where it is taken at a coarser level, else None.
    """

    child: str
    parents: tuple[str, ...]
    table: Floats
    groups: tuple[Ints | None, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A column of the whole domain with its parents there, and its conditional table.

    A row of the table is a distribution, or all zero: then that combination of parents cannot be.
    """

    child: str
    parents: tuple[str, ...]
    table: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The whole domain (hidden columns last), which of its columns are hidden, and the nodes, parents first."""

    whole: Domain
    hidden: tuple[str, ...]
    nodes: tuple[Node, ...]

    @property
    def visible(self) -> Domain:
        """The domain without hidden columns."""
        return Domain.of({name: size for name, size in self.whole.sizes.items() if name not in self.hidden})

    @property
    def domain(self) -> Domain:
        """The whole domain: what is drawn, step by step."""
        return self.whole

    @property
    def separators(self) -> tuple[Clique, ...]:
        """Per node the columns that must be drawn before."""
        return tuple(Clique(node.parents) for node in self.nodes)

    @property
    def fresh(self) -> tuple[Clique, ...]:
        """Per node the column it draws."""
        return tuple(Clique((node.child,)) for node in self.nodes)

    @property
    def dead_ends(self) -> bool:
        """Whether some combination of parents leaves its child no code."""
        return any(not node.table.sum(axis=1).all() for node in self.nodes)

    def above(self, columns: Iterable[str]) -> tuple[Node, ...]:
        """The nodes of these columns and of all their ancestors, parents first."""
        wanted = set(columns)
        kept = []
        for node in reversed(self.nodes):
            if node.child in wanted:
                wanted |= set(node.parents)
                kept.append(node)
        return tuple(reversed(kept))


def layout_of(domain: Domain, conditionals: Sequence[Conditional]) -> Layout:
    """The network of these conditionals, in their order, with a hidden column for every coarser level in use."""
    sizes, nodes = dict(domain.sizes), list[Node]()
    levels: dict[str, list[tuple[str, Ints]]] = {}
    for given in conditionals:
        parents = []
        for place, name in enumerate(given.parents):
            groups = given.groups[place] if given.groups else None
            if groups is None:
                parents.append(name)
                continue
            known = levels.setdefault(name, [(name, np.arange(domain.sizes[name], dtype=np.int64))])
            found = next((level for level, other in known[1:] if np.array_equal(other, groups)), None)
            if found is None:
                found = _unused(name, sizes)
                sizes[found] = int(groups.max()) + 1
                nodes.append(_coarser(found, groups, known))
                known.append((found, groups))
            parents.append(found)
        nodes.append(Node(given.child, tuple(parents), np.ascontiguousarray(given.table)))
    layout = Layout(Domain.of(sizes), tuple(name for name in sizes if name not in domain.sizes), tuple(nodes))
    for fault in node_faults(layout):
        raise UsageError("Bayesian network", fault)
    return layout


def _unused(name: str, taken: Iterable[str]) -> str:
    number = 1
    while f"{name} ↓{number}" in taken:
        number += 1
    return f"{name} ↓{number}"


def _coarser(found: str, groups: Ints, known: Sequence[tuple[str, Ints]]) -> Node:
    """The node of a level, a function of the coarsest known level that it only merges."""
    size = int(groups.max()) + 1
    source, fine = known[0]
    for level, other in known[1:]:
        merged = np.full(int(other.max()) + 1, -1, dtype=np.int64)
        merged[other] = groups
        if np.array_equal(merged[other], groups) and other.max() < fine.max():
            source, fine = level, other
    table = np.zeros((int(fine.max()) + 1, size))
    table[fine, groups] = 1.0
    return Node(found, (source,), table)


def node_faults(layout: Layout) -> list[str]:
    """What keeps these nodes from being a network, in words; empty if nothing does."""
    sizes, seen = layout.whole.sizes, set[str]()
    for node in layout.nodes:
        if node.child not in sizes or node.child in seen or not set(node.parents) <= seen:
            return ["every column must come once, after its parents."]
        if len(set(node.parents)) != len(node.parents):
            return ["a column must not be a parent twice."]
        seen.add(node.child)
        shape = (layout.whole.cells(node.parents), sizes[node.child])
        if node.table.shape != shape:
            return [f"the table of {node.child!r} must have {shape[0]:,} rows and {shape[1]:,} columns."]
        if not np.isfinite(node.table).all() or node.table.min() < 0.0:
            return ["probabilities must be finite and 0 or more."]
        sums = node.table.sum(axis=1)
        if np.any(np.abs(sums[sums > 0.0] - 1.0) > _SUM_TOLERANCE) or not sums.any():
            return ["the probabilities of every possible row must add up to 1."]
    return [] if seen == set(sizes) else ["every column needs a node."]
