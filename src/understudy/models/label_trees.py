"""LabelModel: records whose public columns come from a table of cells and whose private ones are drawn given them.

The public part is a list of cells with probabilities: a public table, or what noisy trees say about the public columns.
The private part is a `LabelChain`. Marginals, draws and conditions are exact: the distribution of the private columns
is written out for every cell of the list.

Trees and ensembles
-------------------
In a tree every combination of codes ends in exactly one leaf. Nodes are numbered layer by layer, children of one node
side by side in the order of their groups. So a tree is one array: for each node the column it splits on, or −1. Where
children stand and which number a leaf has follow from it, also in the file, where all lengths are stated in the
document or follow from the domain, so that every array can be checked before it is cut into pieces.

An ensemble is several trees for one private column, each with a table of label probabilities in every leaf.
A record's label distribution is the mean of the distributions of the leaves that it reaches, one leaf per tree.
(Drawing a tree at random and then a label of its leaf is the same distribution.)

The chain of private columns
----------------------------
The first column is drawn from its ensemble, the next from its own with the first drawn value in place, and so on. Here
that is one table: a line per record, an entry per combination of private codes (row-major in the order of the chain),
each the product of the ensembles' distributions. One draw from a line has the distribution of the chain.

Combinations that a rule excludes for a record get 0 and the rest is scaled up. Where the trees gave everything to
excluded combinations, the possible ones share equally. Where none is possible the rules are set aside: only records
from outside can be like that, and they want a label all the same.
"""

import itertools
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from understudy.arrays import Bools, Floats, Ints
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import UsageError
from understudy.models.model import (
    Codes,
    Contents,
    ModelFiles,
    StoredModel,
    probability_faults,
    query_clique,
    query_codes,
    size_list,
    total_faults,
)
from understudy.models.tables import allowed, code_dtype, cumulative, draw_cells, sub_indices

Groups = npt.NDArray[np.int32]
ROUNDING = 1e-9
"""Expected numbers of records carry rounding: so little below a whole number they count as that number."""


@dataclass(frozen=True, slots=True, eq=False)
class Attributes:
    """Columns that nodes may split on, and for each of them the group (0, 1, …) of every code."""

    names: tuple[str, ...]
    groups: tuple[Ints, ...]

    @classmethod
    def of(cls, groups: Mapping[str, Ints]) -> "Attributes":
        """The columns in this order with these groups."""
        return cls(tuple(groups), tuple(np.asarray(group, dtype=np.int64) for group in groups.values()))

    @property
    def fan_outs(self) -> tuple[int, ...]:
        """Number of groups of each column: the children of a node that splits on it."""
        return tuple(int(group.max()) + 1 for group in self.groups)

    def grouped(self, codes: Mapping[str, npt.NDArray[np.integer]], rows: int) -> Groups:
        """The group of every record, one line per column; lines of columns that `codes` does not name stay 0."""
        found = np.zeros((len(self.names), rows), dtype=np.int32)
        for line, (name, group) in enumerate(zip(self.names, self.groups, strict=True)):
            if name in codes:
                found[line] = group[codes[name]]
        return found

    def faults(self, sizes: Mapping[str, int]) -> list[str]:
        """What is wrong with them, in words; empty if nothing is."""
        if len(set(self.names)) != len(self.names) or any(name not in sizes for name in self.names):
            return ["a tree may split on columns of the domain only, each named once."]
        for name, group in zip(self.names, self.groups, strict=True):
            used = np.unique(group)
            if group.shape != (sizes[name],) or not np.array_equal(used, np.arange(used.size)):
                return ["every code of a column must have a group, and every group a code."]
        return []


@dataclass(frozen=True, eq=False)
class DecisionTree:
    """For each node the position of its column among the attributes, −1 at a leaf; and the attributes' fan-outs."""

    splits: Ints
    fan_outs: tuple[int, ...]

    @classmethod
    def leaf(cls, fan_outs: Sequence[int]) -> "DecisionTree":
        """The tree that is one leaf."""
        return cls(np.full(1, -1, dtype=np.int64), tuple(fan_outs))

    @cached_property
    def leaves(self) -> int:
        """Number of leaves."""
        return int((self.splits < 0).sum())

    @cached_property
    def places(self) -> Ints:
        """For each node its first child, or at a leaf the leaf's number."""
        inner = self.splits >= 0
        children = np.where(inner, np.array([*self.fan_outs, 0])[self.splits], 0)
        first = 1 + np.cumsum(children) - children
        return np.where(inner, first, np.cumsum(~inner) - 1)

    @cached_property
    def parents(self) -> Ints:
        """For each node the one above it; the root is its own."""
        above = np.zeros(self.splits.size, dtype=np.int64)
        inner = np.flatnonzero(self.splits >= 0)
        above[1:] = np.repeat(inner, np.array([*self.fan_outs, 0])[self.splits[inner]])
        return above

    @cached_property
    def layers(self) -> tuple[slice, ...]:
        """The nodes of each layer, from the root down."""
        found = [slice(0, 1)]
        while found[-1].stop < self.splits.size:
            below = int(np.searchsorted(self.parents, found[-1].stop))
            found.append(slice(found[-1].stop, below))
        return tuple(found)

    @cached_property
    def used(self) -> tuple[int, ...]:
        """Positions of the columns that it splits on somewhere."""
        return tuple(int(position) for position in np.unique(self.splits) if position >= 0)

    def leaf_of(self, grouped: Groups) -> Ints:
        """The leaf of each record, given the groups of its codes (one line per attribute)."""
        nodes = np.zeros(grouped.shape[1], dtype=np.int64)
        moving = np.arange(nodes.size) if self.splits[0] >= 0 else np.zeros(0, dtype=np.int64)
        while moving.size:
            here = nodes[moving]
            reached = self.places[here] + grouped[self.splits[here], moving]
            nodes[moving] = reached
            moving = moving[self.splits[reached] >= 0]
        return self.places[nodes]

    def with_leaves_split(self, column: int) -> "DecisionTree":
        """The same tree with every leaf split on that column, nodes numbered anew."""
        splits: list[int] = []
        waiting = deque([0])
        while waiting:
            node = waiting.popleft()
            split = column if node >= 0 > self.splits[node] else int(self.splits[node]) if node >= 0 else -1
            splits.append(split)
            if split >= 0:
                known = node >= 0 and self.splits[node] >= 0
                first, count = int(self.places[node]), self.fan_outs[split]
                waiting.extend(range(first, first + count) if known else [-1] * count)  # -1: a leaf of the larger tree
        return DecisionTree(np.array(splits, dtype=np.int64), self.fan_outs)

    def faults(self) -> list[str]:
        """What is wrong with it, in words; empty if nothing is."""
        splits = self.splits
        if splits.ndim != 1 or not splits.size or splits.min() < -1 or splits.max() >= len(self.fan_outs):
            return ["a node must split on one of the columns, or be a leaf."]
        inner = np.flatnonzero(splits >= 0)
        children = np.array([*self.fan_outs, 0])[splits[inner]]
        if 1 + int(children.sum()) != splits.size or not np.all(self.places[inner] > inner):
            return ["every node but the root must be the child of an earlier one."]
        return []


_SUM_TOLERANCE = 1e-6


def pooled(tree: DecisionTree, counts: Ints, records: Floats, least: int) -> Ints:
    """Leaf counts (one line per leaf, one entry per label), those of small leaves being sums over a branch.

    The branch is the smallest one around the leaf with at least `least` of the `records` that each leaf holds, or the
    whole tree. What is given decides everything: noisy counts and public numbers stay what they are.

    >>> tree = DecisionTree(np.array([0, -1, 0, -1, -1]), (2,))
    >>> pooled(tree, np.array([[50, 9], [2, 0], [1, 4]]), np.array([59.0, 2.0, 5.0]), 6).tolist()
    [[50, 9], [3, 4], [3, 4]]
    """
    leaves = np.flatnonzero(tree.splits < 0)
    sums = np.zeros((tree.splits.size, counts.shape[1]), dtype=np.int64)
    held = np.zeros(tree.splits.size)
    sums[leaves], held[leaves] = counts, records
    for layer in reversed(tree.layers[1:]):
        np.add.at(sums, tree.parents[layer], sums[layer])
        np.add.at(held, tree.parents[layer], held[layer])
    branch = np.arange(tree.splits.size)
    for layer in tree.layers[1:]:
        small = held[layer] < least - ROUNDING
        branch[layer] = np.where(small, branch[tree.parents[layer]], branch[layer])
    return np.asarray(sums[branch[leaves]])


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """The trees of one private column and their leaf tables (one line per leaf, one entry per label)."""

    label: str
    attributes: Attributes
    trees: tuple[DecisionTree, ...]
    tables: tuple[Floats, ...]

    @classmethod
    def of_counts(
        cls, label: str, attributes: Attributes, trees: Sequence[DecisionTree], noisy: Sequence[npt.ArrayLike]
    ) -> "Ensemble":
        """The ensemble of noisy counts, one flat table (leaf by label) a tree. Negatives are 0, nothing is uniform."""
        tables = []
        for tree, counts in zip(trees, noisy, strict=True):
            clipped = np.maximum(np.asarray(counts, dtype=np.float64).reshape(tree.leaves, -1), 0.0)
            sums = clipped.sum(axis=1, keepdims=True)
            even = np.full_like(clipped, 1.0 / clipped.shape[1])
            tables.append(np.divide(clipped, sums, out=even, where=sums > 0.0))
        return cls(label, attributes, tuple(trees), tuple(tables))

    @property
    def labels(self) -> int:
        """Number of labels."""
        return int(self.tables[0].shape[1])

    @property
    def used(self) -> tuple[str, ...]:
        """Columns that some tree splits on."""
        found = {position for tree in self.trees for position in tree.used}
        return tuple(self.attributes.names[position] for position in sorted(found))

    def distribution(self, codes: Mapping[str, npt.NDArray[np.integer]], rows: int) -> Floats:
        """Label probabilities of each record, one line per record; looks at the columns in `used`."""
        grouped = self.attributes.grouped({name: codes[name] for name in self.used}, rows)
        total = np.zeros((rows, self.labels))
        for tree, table in zip(self.trees, self.tables, strict=True):
            total += table[tree.leaf_of(grouped)]
        return total / len(self.trees)

    def faults(self, sizes: Mapping[str, int]) -> list[str]:
        """What is wrong with it, in words; empty if nothing is."""
        found = self.attributes.faults(sizes)
        if self.label not in sizes or self.label in self.attributes.names:
            found.append("the label must be a column of the domain, and no tree may split on it.")
        if found or not self.trees or len(self.trees) != len(self.tables):
            return found or ["an ensemble needs at least one tree, and one table per tree."]
        for tree, table in zip(self.trees, self.tables, strict=True):
            found += tree.faults()
            if tree.fan_outs != self.attributes.fan_outs or table.shape != (tree.leaves, sizes[self.label]):
                return [*found, "a table must have one line per leaf and one entry per label."]
            if not np.all(np.isfinite(table)) or table.min() < 0.0:
                found.append("probabilities must be finite and 0 or more.")
            elif np.abs(table.sum(axis=1) - 1.0).max() > _SUM_TOLERANCE:
                found.append("probabilities of a leaf must add up to 1.")
        return found


CodesByColumn = Mapping[str, npt.NDArray[np.integer]]

MOST_COMBINATIONS = 2**14
"""Most combinations of private codes: a line of the table must stay short."""
_BLOCK_ENTRIES = 2**20


@dataclass(frozen=True, eq=False)
class LabelChain:
    """Ensembles in the order of drawing, and the rules their labels must obey."""

    domain: Domain
    ensembles: tuple[Ensemble, ...]
    structural_zeros: tuple[StructuralZeros, ...] = ()

    @property
    def private(self) -> tuple[str, ...]:
        """Private columns in the order of drawing."""
        return tuple(ensemble.label for ensemble in self.ensembles)

    @cached_property
    def public(self) -> Clique:
        """All other columns, in schema order."""
        return self.domain.clique(set(self.domain.columns) - set(self.private))

    @property
    def combinations(self) -> int:
        """Combinations of private codes."""
        return self.domain.cells(self.private)

    @cached_property
    def drawn(self) -> dict[str, Ints]:
        """The code of each private column in every combination."""
        places = np.unravel_index(np.arange(self.combinations), self.domain.shape(self.private) or (1,))
        return {name: place.astype(np.int64) for name, place in zip(self.private, places, strict=False)}

    def distribution(self, codes: CodesByColumn, rows: int) -> Floats:
        """Probabilities of every combination for each record, given the codes of its public columns."""
        free = self._free(codes, rows)
        possible = self.possible(codes, rows)
        if possible is None:
            return free
        distribution = np.where(possible, free, 0.0)
        left_out = distribution.sum(axis=1) <= 0.0
        some = possible.any(axis=1)
        distribution[left_out & some] = possible[left_out & some]
        distribution[left_out & ~some] = free[left_out & ~some]
        return np.asarray(distribution / distribution.sum(axis=1, keepdims=True))

    def blocks(self, codes: CodesByColumn, rows: int) -> Iterator[tuple[slice, Floats]]:
        """`distribution` for a few records at a time, so that the table never grows large."""
        step = max(1, _BLOCK_ENTRIES // self.combinations)
        for low in range(0, rows, step):
            part = slice(low, min(low + step, rows))
            yield part, self.distribution({name: codes[name][part] for name in self.public}, part.stop - part.start)

    def possible(self, codes: CodesByColumn, rows: int) -> Bools | None:
        """Which combinations the rules allow each record; None if no rule is about private columns."""
        rules = [rule for rule in self.structural_zeros if set(rule.clique) & set(self.private)]
        if not rules:
            return None
        allowed = np.ones((rows, self.combinations), dtype=bool)
        for rule in rules:
            cells = np.zeros((1, 1), dtype=np.int64)
            for name in rule.clique:
                place = self.drawn[name][None, :] if name in self.drawn else np.asarray(codes[name])[:, None]
                cells = cells * self.domain.sizes[name] + place
            allowed &= ~rule.mask[cells]
        return allowed

    def _free(self, codes: CodesByColumn, rows: int) -> Floats:
        """The distribution by the ensembles alone."""
        joint = np.ones((rows, 1))
        for place, ensemble in enumerate(self.ensembles):
            earlier = [name for name in self.private[:place] if name in ensemble.used]
            prior = joint.shape[1]
            if earlier:
                before = np.unravel_index(np.arange(prior), self.domain.shape(self.private[:place]))
                public = [name for name in ensemble.used if name in codes and name not in earlier]
                known = {name: np.repeat(np.asarray(codes[name]), prior) for name in public}
                known |= {name: np.tile(part, rows) for name, part in zip(self.private[:place], before, strict=True)}
                part = ensemble.distribution(known, rows * prior).reshape(rows, prior, -1)
            else:
                part = ensemble.distribution(codes, rows)[:, None, :]
            joint = (joint[:, :, None] * part).reshape(rows, -1)
        return joint

    def faults(self) -> list[str]:
        """What is wrong with it, in words; empty if nothing is."""
        if not self.ensembles or len(set(self.private)) != len(self.private):
            return ["a chain needs at least one ensemble, and one per private column."]
        found = list(itertools.chain.from_iterable(one.faults(self.domain.sizes) for one in self.ensembles))
        for place, ensemble in enumerate(self.ensembles):
            if not set(ensemble.attributes.names) <= {*self.public, *self.private[:place]}:
                found.append("a tree may split on public columns and on private columns drawn before its own.")
        if self.combinations > MOST_COMBINATIONS:
            found.append(f"private columns may have at most {MOST_COMBINATIONS:,} combinations of codes.")
        return found


def pick(distribution: Floats, uniform: Floats) -> Ints:
    """One entry of each line, found by a uniform number in [0, 1); an entry of probability 0 is never picked."""
    steps = np.cumsum(distribution, axis=1)
    steps /= steps[:, -1:]
    return np.asarray((steps[:, :-1] <= uniform[:, None]).sum(axis=1), dtype=np.int64)


_CELL_LIMIT = 2**62
_KEPT_ENTRIES = 2**23


@dataclass(frozen=True, eq=False)
class LabelModel(StoredModel):
    """Cells of the public columns (flat row-major, increasing), their probabilities, and the chain of labels.

    `kept` says which combinations of private codes a condition left (all of them at first).
    """

    kind: ClassVar[str] = "labels"
    stored: ClassVar[Mapping[str, str]] = {
        **{"cells": "<i8", "probabilities": "<f8", "splits": "<i8", "groups": "<i8"},
        **{"tables": "<f8", "forbidden": "<i8", "kept": "<i8"},
    }

    chain: LabelChain
    cells: Ints
    probabilities: Floats
    total: float
    kept: Bools

    def __post_init__(self) -> None:
        for fault in self.faults():
            raise UsageError("label model", fault)

    @classmethod
    def of(cls, chain: LabelChain, cells: Ints, weights: Floats, total: float) -> Self:
        """The model of weighted public cells (increasing); cells that the rules exclude are left out.

        If noise left no weight on possible cells, they all weigh the same: a run that was paid for must end with rows.

        Raises:
            UsageError: if none of the cells is possible.
        """
        possible = allowed(chain.domain, chain.public, cells, chain.structural_zeros)
        cells, weights = cells[possible], np.maximum(weights[possible], 0.0)
        step = max(1, _KEPT_ENTRIES // chain.combinations)
        some = np.ones(cells.size, dtype=bool)
        for low in range(0, cells.size, step):
            part = slice(low, low + step)
            mask = chain.possible(_codes(chain, cells[part]), cells[part].size)
            if mask is not None:
                some[part] = mask.any(axis=1)
        if not some.any():
            raise UsageError("rules", "leave no combination possible.", "Drop or narrow a rule.")
        mass = weights[some] if weights[some].any() else np.ones(int(some.sum()))
        held = cells[some][mass > 0.0]
        kept = np.ones(chain.combinations, dtype=bool)
        return cls(chain, held, mass[mass > 0.0] / mass.sum(), total, kept)

    @property
    def domain(self) -> Domain:
        """The codes it speaks about."""
        return self.chain.domain

    def marginal(self, clique: Clique) -> Floats:
        """Probabilities of the clique's cells, flat row-major.

        Raises:
            ResourceError: if the table would be too large to hold.
        """
        wanted = query_clique(self.domain, clique)
        strides, stride = {}, 1
        for name in reversed(wanted):
            strides[name] = stride
            stride *= self.domain.sizes[name]
        found = np.zeros(stride)
        drawn = self.chain.drawn
        within = sum((drawn[name] * strides[name] for name in wanted if name in drawn), np.zeros(1, dtype=np.int64))
        for part, distribution in self._distributions():
            codes = _codes(self.chain, self.cells[part])
            outer = sum((codes[name] * strides[name] for name in wanted if name in codes), np.zeros(1, np.int64))
            if len(within) == 1:
                places = np.broadcast_to(outer, self.probabilities[part].shape)
                found += np.bincount(places, weights=self.probabilities[part], minlength=stride)
            else:
                places = np.broadcast_to(outer[:, None] + within, distribution.shape).ravel()
                weights = (distribution * self.probabilities[part][:, None]).ravel()
                found += np.bincount(places, weights=weights, minlength=stride)
        return found

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` independent records, as the smallest unsigned integers that hold the codes."""
        places = draw_cells(cumulative(self.probabilities), rows, rng)
        uniform = rng.random(rows)
        chosen = np.zeros(rows, dtype=np.int64)
        # Records sorted by cell meet each block of distributions once.
        order = np.argsort(places, kind="stable")
        for part, distribution in self._distributions():
            low, high = np.searchsorted(places[order], [part.start, part.stop])
            mine = order[low:high]
            chosen[mine] = _picked(distribution, places[mine] - part.start, uniform[mine])
        codes = _codes(self.chain, self.cells[places])
        return self._named(codes, chosen)

    def label(self, codes: Mapping[str, npt.NDArray[np.integer]], rng: np.random.Generator, *, rows: int) -> Codes:
        """Private codes for `rows` given records, each drawn from its own distribution; only public columns are looked
        at."""
        cells = np.zeros(rows, dtype=np.int64)
        for name in self.chain.public:
            cells = cells * self.domain.sizes[name] + np.asarray(codes[name], dtype=np.int64)
        uniform = rng.random(rows)
        different, which = np.unique(cells, return_inverse=True)
        chosen = np.zeros(rows, dtype=np.int64)
        order = np.argsort(which, kind="stable")
        for part, distribution in self.chain.blocks(_codes(self.chain, different), different.size):
            low, high = np.searchsorted(which[order], [part.start, part.stop])
            mine = order[low:high]
            chosen[mine] = _picked(self._kept_part(distribution), which[mine] - part.start, uniform[mine])
        return {name: self._typed(name, drawn[chosen]) for name, drawn in self.chain.drawn.items()}

    def condition(self, where: Mapping[str, npt.NDArray[np.integer]]) -> Self:
        """The distribution given that each named column holds one of the codes; `total` shrinks with its probability.

        Raises:
            UsageError: if a code is outside its column or the condition has probability 0.
        """
        masks = {name: query_codes(self.domain, name, codes) for name, codes in where.items()}
        drawn = self.chain.drawn
        kept = self.kept.copy()
        for name in masks.keys() & drawn.keys():
            kept &= masks[name][drawn[name]]
        probabilities = self.probabilities.copy()
        for name in masks.keys() - drawn.keys():
            probabilities *= masks[name][sub_indices(self.domain, self.chain.public, self.cells, (name,))]
        for part, distribution in self._distributions():
            probabilities[part] *= np.minimum(distribution @ kept.astype(np.float64), 1.0)
        probability = float(probabilities.sum())
        if probability <= 0.0:
            raise UsageError(f"where {', '.join(masks)}", "cannot happen under this model.", "Allow more values.")
        some = probabilities > 0.0
        total = self.total * min(probability, 1.0)
        return type(self)(self.chain, self.cells[some], probabilities[some] / probability, total, kept)

    def contents(self) -> Contents:
        """Document and arrays of its file form."""
        ensembles, rules = self.chain.ensembles, self.chain.structural_zeros
        document = {
            "total": self.total,
            "domain": size_list(self.domain),
            "ensembles": [
                {
                    "label": one.label,
                    "columns": list(one.attributes.names),
                    "trees": [int(tree.splits.size) for tree in one.trees],
                }
                for one in ensembles
            ],
            "rules": [{"columns": list(rule.clique), "cells": int(rule.mask.sum())} for rule in rules],
        }
        return document, {
            "cells": [self.cells],
            "probabilities": [self.probabilities],
            "splits": [tree.splits for one in ensembles for tree in one.trees],
            "groups": [group for one in ensembles for group in one.attributes.groups],
            "tables": [table for one in ensembles for table in one.tables],
            "forbidden": [np.flatnonzero(rule.mask) for rule in rules],
            "kept": [np.flatnonzero(self.kept)],
        }

    @classmethod
    def of_contents(cls, files: ModelFiles) -> Self:
        """The model of its file form."""
        domain = files.domain()
        chain = LabelChain(domain, _stored_ensembles(files, domain), _stored_rules(files, domain))
        _require_sound(chain.faults())
        kept = _marked(files.arrays["kept"], chain.combinations)
        return cls(chain, files.arrays["cells"], files.arrays["probabilities"], files.number("total"), kept)

    def faults(self) -> list[str]:
        """What is wrong with it, in words; empty if nothing is."""
        found = self.chain.faults()
        if found:
            return found
        cells, probabilities = self.cells, self.probabilities
        found += total_faults(self.total)
        most = self.domain.cells(self.chain.public)
        if most >= _CELL_LIMIT or self.kept.shape != (self.chain.combinations,) or not self.kept.any():
            return [*found, "public columns must have fewer than 2⁶² cells, and some combination must be left."]
        if not cells.size or cells.shape != probabilities.shape:
            return [*found, "needs at least one cell, and one probability per cell."]
        if cells[0] < 0 or cells[-1] >= most or not np.all(cells[1:] > cells[:-1]):
            found.append("cell numbers must increase and lie inside the table.")
        return found + probability_faults(probabilities)

    def _distributions(self) -> Iterator[tuple[slice, Floats]]:
        """The distribution of the private columns in every cell, block by block; written out once if it is small."""
        if self.cells.size * self.chain.combinations <= _KEPT_ENTRIES:
            yield slice(0, self.cells.size), self._whole_distribution
        else:
            for part, distribution in self.chain.blocks(_codes(self.chain, self.cells), self.cells.size):
                yield part, self._kept_part(distribution)

    @cached_property
    def _whole_distribution(self) -> Floats:
        blocks = self.chain.blocks(_codes(self.chain, self.cells), self.cells.size)
        return np.concatenate([self._kept_part(distribution) for _, distribution in blocks])

    def _kept_part(self, distribution: Floats) -> Floats:
        if self.kept.all():
            return distribution
        part = np.where(self.kept, distribution, 0.0)
        part[part.sum(axis=1) <= 0.0] = self.kept  # a record that the condition excludes: all that is left
        return np.asarray(part / part.sum(axis=1, keepdims=True))

    def _named(self, public: Mapping[str, Ints], chosen: Ints) -> Codes:
        drawn = self.chain.drawn
        return {
            name: self._typed(name, drawn[name][chosen] if name in drawn else public[name])
            for name in self.domain.columns
        }

    def _typed(self, name: str, codes: Ints) -> npt.NDArray[np.integer]:
        return codes.astype(code_dtype(self.domain.sizes[name]))


def _codes(chain: LabelChain, cells: Ints) -> dict[str, Ints]:
    """The codes of every public column in these cells."""
    return {name: sub_indices(chain.domain, chain.public, cells, (name,)) for name in chain.public}


def _picked(distribution: Floats, places: Ints, uniform: Floats) -> Ints:
    """A combination for each record, given its line of the distribution; a few records at a time."""
    step = max(1, 2**22 // distribution.shape[1])
    parts = [
        pick(distribution[places[low : low + step]], uniform[low : low + step]) for low in range(0, places.size, step)
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


MOST_RULE_CELLS = 2**31
"""Most cells of a rule's table."""


@dataclass(frozen=True, slots=True)
class _StoredEnsemble:
    label: str
    columns: tuple[str, ...]
    trees: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _StoredRule:
    columns: tuple[str, ...]
    cells: int


def _stored_ensembles(files: ModelFiles, domain: Domain) -> tuple[Ensemble, ...]:
    entries: tuple[_StoredEnsemble, ...] = files.value("ensembles", tuple[_StoredEnsemble, ...])
    for one in entries:
        domain.clique((one.label, *one.columns))  # raises for columns that the domain does not have
    groups = iter(files.pieces("groups", [domain.sizes[name] for one in entries for name in one.columns]))
    splits = iter(files.pieces("splits", [nodes for one in entries for nodes in one.trees]))
    grown: list[tuple[Attributes, list[DecisionTree]]] = []
    for one in entries:
        attributes = Attributes(one.columns, tuple(itertools.islice(groups, len(one.columns))))
        _require_sound(attributes.faults(domain.sizes))
        trees = [DecisionTree(tree, attributes.fan_outs) for tree in itertools.islice(splits, len(one.trees))]
        _require_sound([fault for tree in trees for fault in tree.faults()])
        grown.append((attributes, trees))
    sizes = [domain.sizes[one.label] for one in entries]
    leaves = [tree.leaves * size for (_, trees), size in zip(grown, sizes, strict=True) for tree in trees]
    tables = iter(files.pieces("tables", leaves))
    return tuple(
        Ensemble(one.label, attributes, tuple(trees), tuple(next(tables).reshape(-1, size) for _ in trees))
        for one, size, (attributes, trees) in zip(entries, sizes, grown, strict=True)
    )


def _require_sound(faults: Sequence[str]) -> None:
    for fault in faults:
        raise UsageError("label model", fault)


def _stored_rules(files: ModelFiles, domain: Domain) -> tuple[StructuralZeros, ...]:
    entries: tuple[_StoredRule, ...] = files.value("rules", tuple[_StoredRule, ...])
    rules = []
    for one, cells in zip(entries, files.pieces("forbidden", [one.cells for one in entries]), strict=True):
        clique = domain.clique(one.columns)
        if clique != one.columns or domain.cells(clique) > MOST_RULE_CELLS:
            raise UsageError("rules", "columns of a rule must stand in the order of the domain, with a small table.")
        rules.append(StructuralZeros(clique, _marked(cells, domain.cells(clique))))
    return tuple(rules)


def _marked(places: npt.NDArray[Any], size: int) -> Bools:
    """Which of so many places are named; raises if one lies elsewhere."""
    if places.size and (places.min() < 0 or places.max() >= size):
        raise UsageError("label model", "cells of a rule and combinations of codes must lie inside their table.")
    mask = np.zeros(size, dtype=bool)
    mask[places] = True
    return mask
