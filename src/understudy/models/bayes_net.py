"""BayesianNetwork: each column given its parents, with coarser versions of columns as parents.

Nodes of a Bayesian network: conditional tables, and coarser versions of a column as columns of their own.

A parent that is taken at a coarser level becomes a hidden column: a function of the parent, with a table of ones and
zeros. Then a network with coarser parents is a plain network, and nothing else has to know about levels.

BayesianNetwork: a distribution given by each column's chances given its parents.

    P(record) ∝ Π P(column | parents)

Drawing goes column by column and needs no more memory than the tables. Marginals are exact, by elimination over the
columns asked about and their ancestors; where that would not fit, they are refused, never estimated. Conditions are
exact as well: the whole network as a junction tree, refused where it would not fit.

Rules were applied when the tables were made: structural zeros have probability 0 given their parents. Where that leaves
some combination of parents without any code for a child (a dead end), the combination is impossible, and the
distribution is the product above, normalised: drawn through the junction tree, or by starting a record anew.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from understudy.arrays import Bools, Floats, Ints
from understudy.domain import Clique, Domain
from understudy.errors import Problem, ReleaseError, ResourceError, UsageError
from understudy.models.junction_tree import GraphicalSize, JunctionTree
from understudy.models.markov_field import MarkovField, Sampler
from understudy.models.model import Codes, ModelFiles, query_clique, query_codes, read_model_files, write_model_files
from understudy.models.propagation import spread

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
class BayesianNetwork:
    """A network and, after `condition`, the codes that are still possible (`evidence`).

    With `rounding`, `draw` gives every combination its expected number of records up to rounding (in random order)
    instead of independent records.
    """

    kind: ClassVar[str] = "bayesian_network"

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
        """The distribution given that each named column holds one of the codes; `total` shrinks with its chance.

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

    def save(self, folder: Path) -> None:
        """Writes `model.json` and two raw arrays into an existing empty folder."""
        document = {
            "kind": self.kind,
            "total": self.total,
            "rounding": self.rounding,
            "domain": [[name, size] for name, size in self.layout.whole.sizes.items()],
            "hidden": list(self.layout.hidden),
            "nodes": [{"child": node.child, "parents": list(node.parents)} for node in self.layout.nodes],
            "evidence": list(self.evidence),
        }
        flat = np.concatenate([node.table.ravel() for node in self.layout.nodes])
        masks = [mask.astype(np.uint8) for mask in self.evidence.values()]
        arrays = {"probabilities": flat, "evidence": np.concatenate([*masks, np.zeros(0, dtype=np.uint8)])}
        write_model_files(folder, ModelFiles(document, arrays))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads what `save` wrote.

        Raises:
            ReleaseError: if a file is missing, altered, too large or of the wrong type.
        """
        files = read_model_files(folder, cls.kind, {"probabilities": np.dtype("<f8"), "evidence": np.dtype("u1")})
        rounding = files.document.get("rounding")
        if not isinstance(rounding, bool):
            raise _refusal("rounding", "must be true or false.")
        layout = _layout(files)
        evidence = _evidence(files, layout.whole)
        total = files.number("total")
        for fault in _faults(layout, total, evidence):
            raise ReleaseError([Problem("model", fault)])
        return cls(layout, total, rounding, evidence)

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
    found = [] if math.isfinite(total) and total >= 0.0 else ["the total must be finite and 0 or more."]
    for name, mask in evidence.items():
        if name not in layout.visible.sizes or mask.shape != (layout.whole.sizes[name],) or not mask.any():
            found.append("evidence must name columns and leave each a code.")
    return found + node_faults(layout)


def _layout(files: ModelFiles) -> NetworkLayout:
    whole, document = files.domain(), files.document
    hidden, entries = document.get("hidden"), document.get("nodes")
    if not isinstance(hidden, list) or not set(map(str, hidden)) < set(whole.columns):
        raise _refusal("hidden", "must be a list of columns of the domain, not of all of them.")
    if not isinstance(entries, list) or len(entries) != len(whole.columns):
        raise _refusal("nodes", "must be a list with one entry per column.")
    pairs = []
    for entry in entries:
        child = entry.get("child") if isinstance(entry, dict) else None
        parents = entry.get("parents") if isinstance(entry, dict) else None
        if (
            child not in whole.sizes
            or not isinstance(parents, list)
            or any(name not in whole.sizes for name in parents)
        ):
            raise _refusal("nodes", "each needs `child` and `parents`, columns of the domain.")
        pairs.append((str(child), tuple(map(str, parents))))
    ends = [0, *itertools.accumulate(whole.cells((child, *parents)) for child, parents in pairs)]
    flat = files.arrays["probabilities"].astype(np.float64, copy=False)
    if flat.size != ends[-1]:
        raise _refusal("nodes", "the cells do not match the length of the array.")
    nodes = tuple(
        NetworkNode(child, parents, flat[low:high].reshape(-1, whole.sizes[child]))
        for (child, parents), low, high in zip(pairs, ends[:-1], ends[1:], strict=True)
    )
    return NetworkLayout(whole, tuple(map(str, hidden)), nodes)


def _evidence(files: ModelFiles, whole: Domain) -> dict[str, Bools]:
    names = files.document.get("evidence")
    if (
        not isinstance(names, list)
        or len(set(map(str, names))) != len(names)
        or any(n not in whole.sizes for n in names)
    ):
        raise _refusal("evidence", "must be a list of columns of the domain, each once.")
    ends = [0, *itertools.accumulate(whole.sizes[str(name)] for name in names)]
    flat = files.arrays["evidence"].astype(bool)
    if flat.size != ends[-1]:
        raise _refusal("evidence", "the codes do not match the length of the array.")
    return {str(name): flat[low:high] for name, low, high in zip(names, ends[:-1], ends[1:], strict=True)}


def _refusal(key: str, rule: str) -> ReleaseError:
    return ReleaseError([Problem(f"model.json: {key}", rule)])
