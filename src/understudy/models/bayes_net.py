"""BayesianNetwork: a distribution given by each column's probabilities given its parents.

    P(record) ∝ Π P(column | parents)

Drawing goes column by column and needs no more memory than the tables. Marginals are exact, by elimination over the
columns asked about and their ancestors; where that would not fit, they are refused, never estimated. Conditions are
exact as well: the whole network as a junction tree, refused where it would not fit.

A parent that is taken at a coarser level becomes a hidden column: a function of the parent, with a table of ones and
zeros. Then a network with coarser parents is a plain network, and nothing else has to know about levels.

Rules were applied when the tables were made: structural zeros have probability 0 given their parents. Where that leaves
some combination of parents without any code for a child (a dead end), the combination is impossible, and the
distribution is the product above, normalised: drawn through the junction tree, or by starting a record anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from understudy.arrays import Bools, Floats, Ints
from understudy.domain import Clique, Domain
from understudy.errors import ResourceError, UsageError
from understudy.models.junction_tree import GraphicalSize, JunctionTree
from understudy.models.markov_field import MarkovField, Sampler
from understudy.models.model import (
    Codes,
    Contents,
    ModelFiles,
    StoredModel,
    query_clique,
    query_codes,
    size_list,
    total_faults,
)
from understudy.models.propagation import spread

_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """The probabilities of a child's codes, one row per combination of its parents (row-major in their order).

    `groups[i]` gives the group of every code of parent i where it is taken at a coarser level, else None.
    """

    child: str
    parents: tuple[str, ...]
    table: Floats
    groups: tuple[Ints | None, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class NetworkNode:
    """A column of the whole domain with its parents there, and its conditional table.

    A row of the table is a distribution, or all zero: then that combination of parents cannot be.
    """

    child: str
    parents: tuple[str, ...]
    table: Floats


@dataclass(frozen=True, slots=True, eq=False)
class NetworkLayout:
    """The whole domain (hidden columns last), which of its columns are hidden, and the nodes, parents first."""

    whole: Domain
    hidden: tuple[str, ...]
    nodes: tuple[NetworkNode, ...]

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

    def above(self, columns: Iterable[str]) -> tuple[NetworkNode, ...]:
        """The nodes of these columns and of all their ancestors, parents first."""
        wanted = set(columns)
        kept = []
        for node in reversed(self.nodes):
            if node.child in wanted:
                wanted |= set(node.parents)
                kept.append(node)
        return tuple(reversed(kept))


def layout_of(domain: Domain, conditionals: Sequence[Conditional]) -> NetworkLayout:
    """The network of these conditionals, in their order, with a hidden column for every coarser level in use."""
    sizes, nodes = dict(domain.sizes), list[NetworkNode]()
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
        nodes.append(NetworkNode(given.child, tuple(parents), np.ascontiguousarray(given.table)))
    layout = NetworkLayout(Domain.of(sizes), tuple(name for name in sizes if name not in domain.sizes), tuple(nodes))
    for fault in node_faults(layout):
        raise UsageError("Bayesian network", fault)
    return layout


def _unused(name: str, taken: Iterable[str]) -> str:
    number = 1
    while f"{name} ↓{number}" in taken:
        number += 1
    return f"{name} ↓{number}"


def _coarser(found: str, groups: Ints, known: Sequence[tuple[str, Ints]]) -> NetworkNode:
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
    return NetworkNode(found, (source,), table)


def node_faults(layout: NetworkLayout) -> list[str]:
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


FIELD_BYTES = 2**27
"""Most bytes of the tables of a junction tree made to answer a question."""
_TRIES = 10_000


@dataclass(frozen=True, eq=False)
class BayesianNetwork(StoredModel):
    """A network and, after `condition`, the codes that are still possible (`evidence`).

    With `rounding`, `draw` gives every combination its expected number of records up to rounding (in random order)
    instead of independent records.
    """

    kind: ClassVar[str] = "bayesian_network"
    stored: ClassVar[Mapping[str, str]] = {"probabilities": "<f8", "evidence": "u1"}

    layout: NetworkLayout
    total: float
    rounding: bool = False
    evidence: Mapping[str, Bools] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for fault in _faults(self.layout, self.total, self.evidence):
            raise UsageError("Bayesian network", fault)

    @classmethod
    def of(cls, domain: Domain, conditionals: Sequence[Conditional], total: float, *, rounding: bool = False) -> Self:
        """The network of conditionals that come in an order in which parents precede children."""
        return cls(layout_of(domain, conditionals), total, rounding)

    @cached_property
    def domain(self) -> Domain:
        """The codes it speaks about (hidden columns aside)."""
        return self.layout.visible

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self.layout, [node.table for node in self.layout.nodes])

    @cached_property
    def _plain(self) -> bool:
        """Whether drawing column by column gives the distribution."""
        return not self.evidence and not self.layout.dead_ends

    @cached_property
    def _field(self) -> MarkovField | None:
        """The whole network as a junction tree, or None where it would not fit."""
        if field_bytes(self.layout.whole, self.layout.nodes) > FIELD_BYTES:
            return None
        whole = field_of(self.layout.whole, self.layout.nodes, 1.0)
        if self.evidence:
            whole = whole.condition({name: np.flatnonzero(mask) for name, mask in self.evidence.items()})
        return whole.with_rounding() if self.rounding else whole

    def marginal(self, clique: Clique) -> Floats:
        """Probabilities of the clique's cells, flat row-major.

        Raises:
            ResourceError: if the table, or one needed on the way, would be too large to hold.
        """
        wanted = query_clique(self.domain, clique)
        if self._field is not None:
            return self._field.marginal(wanted)
        where = f"marginal {' × '.join(wanted)}"
        if not self._plain:
            raise ResourceError(where, self._needed(self.layout.nodes), FIELD_BYTES, "Ask the drawn rows instead.")
        nodes = self.layout.above(wanted)
        if self._needed([*nodes], wanted) > FIELD_BYTES:
            raise ResourceError(where, self._needed(nodes, wanted), FIELD_BYTES, "Ask about fewer columns.")
        part = Domain.of({name: size for name, size in self.layout.whole.sizes.items() if _holds(nodes, name)})
        return field_of(part, nodes, 1.0).marginal(wanted)

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` records as the smallest unsigned integers that hold the codes; see `rounding`.

        Raises:
            UsageError: if rules leave so little possible that no record is found.
        """
        if rows < 0:
            raise UsageError("rows", f"must be 0 or more, got {rows}.")
        if self._plain:
            drawn = self._sampler.rounded(rows, rng) if self.rounding else self._sampler.independent(rows, rng)
        elif self._field is not None:
            drawn = dict(self._field.draw(rows, rng))
        else:
            drawn = self._draw_anew(rows, rng)
        return {name: drawn[name] for name in self.domain.columns}

    def condition(self, where: Mapping[str, npt.NDArray[np.integer]]) -> Self:
        """The distribution given that each named column holds one of the codes; `total` shrinks with its probability.

        Raises:
            UsageError: if a code is outside its column or the condition has probability 0.
            ResourceError: if the network is too wide to be conditioned exactly.
        """
        masks = {name: query_codes(self.domain, name, codes) for name, codes in where.items()}
        if self._field is None:
            fix = "Draw rows and keep those that meet the condition."
            raise ResourceError("condition on a network", self._needed(self.layout.nodes), FIELD_BYTES, fix)
        given = self._field.condition({name: np.flatnonzero(mask) for name, mask in masks.items()})
        joined = {name: mask & self.evidence.get(name, mask) for name, mask in masks.items()}
        probability = given.total / self._field.total
        return replace(self, total=self.total * probability, evidence={**self.evidence, **joined})

    def contents(self) -> Contents:
        """Document and arrays of its file form."""
        nodes = self.layout.nodes
        document = {
            "total": self.total,
            "rounding": self.rounding,
            "domain": size_list(self.layout.whole),
            "hidden": list(self.layout.hidden),
            "nodes": [{"child": node.child, "parents": list(node.parents)} for node in nodes],
            "evidence": list(self.evidence),
        }
        return document, {"probabilities": [node.table for node in nodes], "evidence": list(self.evidence.values())}

    @classmethod
    def of_contents(cls, files: ModelFiles) -> Self:
        """The model of its file form."""
        whole = files.domain()
        hidden, evidence = (files.value(key, tuple[str, ...]) for key in ("hidden", "evidence"))
        entries: tuple[_StoredNode, ...] = files.value("nodes", tuple[_StoredNode, ...])
        named = {name for entry in entries for name in (entry.child, *entry.parents)}
        if not named | {*evidence} <= set(whole.columns) or not set(hidden) < set(whole.columns):
            raise UsageError("nodes", "nodes, evidence and hidden columns must be of the domain, and not all hidden.")
        tables = files.pieces("probabilities", [whole.cells((one.child, *one.parents)) for one in entries])
        nodes = [
            NetworkNode(one.child, one.parents, table.reshape(-1, whole.sizes[one.child]))
            for one, table in zip(entries, tables, strict=True)
        ]
        masks = files.pieces("evidence", whole.shape(evidence))
        found = {name: mask.astype(bool) for name, mask in zip(evidence, masks, strict=True)}
        if len(found) != len(evidence):
            raise UsageError("evidence", "must name each column once.")
        layout = NetworkLayout(whole, hidden, tuple(nodes))
        return cls(layout, files.number("total"), files.value("rounding", bool), found)

    def _draw_anew(self, rows: int, rng: np.random.Generator) -> dict[str, npt.NDArray[np.integer]]:
        """Independent records, those that end in a dead end drawn anew."""
        if self.evidence:
            raise ResourceError("draw", self._needed(self.layout.nodes), FIELD_BYTES, "Drop the condition.")
        parts, missing = list[dict[str, npt.NDArray[np.integer]]](), rows
        for _ in range(_TRIES):
            if not missing:
                break
            drawn = self._sampler.independent(max(missing, 1024), rng)
            alive = np.flatnonzero(_possible(self.layout, drawn))[:missing]
            parts.append({name: codes[alive] for name, codes in drawn.items()})
            missing -= alive.size
        if missing:
            raise UsageError("rules", "leave next to nothing possible under this model.", "Drop or narrow a rule.")
        empty = self._sampler.independent(0, rng)
        return {name: np.concatenate([codes, *(part[name] for part in parts)]) for name, codes in empty.items()}

    def _needed(self, nodes: Sequence[NetworkNode], extra: Clique | None = None) -> int:
        return field_bytes(self.layout.whole, nodes, [] if extra is None else [extra])


def field_bytes(whole: Domain, nodes: Iterable[NetworkNode], extra: Iterable[Clique] = ()) -> int:
    """Bytes of the tables of the junction tree of these nodes."""
    cliques = [whole.clique((node.child, *node.parents)) for node in nodes]
    return GraphicalSize.of(whole, [*cliques, *extra]).bytes


def field_of(domain: Domain, nodes: Sequence[NetworkNode], total: float) -> MarkovField:
    """The junction tree of these nodes; each node's table is a factor of a bag that holds it."""
    cliques = [domain.clique((node.child, *node.parents)) for node in nodes]
    tree = JunctionTree.of(domain, cliques)
    axes = [(*separator, *fresh) for separator, fresh in zip(tree.separators, tree.fresh, strict=True)]
    factors = [np.ones(domain.shape(names)) for names in axes]
    for node, clique in zip(nodes, cliques, strict=True):
        live = [name for name in (*node.parents, node.child) if domain.sizes[name] > 1]
        if not live:
            continue
        bag = tree.bag_of(clique)
        ordered = domain.clique(live)
        turned = node.table.reshape(domain.shape(live)).transpose([live.index(name) for name in ordered])
        factors[bag] = factors[bag] * spread(domain, axes[bag], ordered, np.ascontiguousarray(turned))
    shapes = [
        (domain.cells(separator), domain.cells(fresh))
        for separator, fresh in zip(tree.separators, tree.fresh, strict=True)
    ]
    flat = [np.ascontiguousarray(factor).reshape(shape) for factor, shape in zip(factors, shapes, strict=True)]
    return MarkovField.of_factors(tree, flat, total)


def _holds(nodes: Iterable[NetworkNode], name: str) -> bool:
    return any(name == node.child for node in nodes)


def _possible(layout: NetworkLayout, drawn: Mapping[str, npt.NDArray[np.integer]]) -> Bools:
    """Which records met no dead end (there the sampler draws an arbitrary code)."""
    alive = np.ones(next(iter(drawn.values())).size, dtype=bool)
    for node in layout.nodes:
        cells = np.zeros(alive.size, dtype=np.int64)
        for name in node.parents:
            cells = cells * layout.whole.sizes[name] + drawn[name]
        alive &= node.table[cells, drawn[node.child]] > 0.0
    return alive


def _faults(layout: NetworkLayout, total: float, evidence: Mapping[str, Bools]) -> list[str]:
    found = total_faults(total)
    for name, mask in evidence.items():
        if name not in layout.visible.sizes or mask.shape != (layout.whole.sizes[name],) or not mask.any():
            found.append("evidence must name columns and leave each a code.")
    return found + node_faults(layout)


@dataclass(frozen=True, slots=True)
class _StoredNode:
    child: str
    parents: tuple[str, ...]
