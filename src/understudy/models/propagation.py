"""Exact propagation along a junction tree, and the marginals it answers.

Tables
------
A bag's table has one row per cell of its separator and one column per cell of its fresh columns (both row-major, in
the order of the domain). In calibrated form a row is a distribution or all zero, and a zero row is never reached:
the parent gives it no mass. So records can be drawn bag by bag, and any such tables are a valid model.

The program
-----------
The state is the calibrated tree itself: per bag the distribution of its fresh columns given its separator. An update
multiplies the model by the exponential of small tables ("parameters") and calibrates again; since every conditional
distribution sums to one, linear space neither under- nor overflows however extreme the accumulated update becomes.
A cell that a rule forbids is an exact zero of the state and no update can revive it; any other cell stays positive.

A model's structure is data to these kernels, not code: they are compiled once per machine, whatever the junction tree
is. Tables live side by side in one array of doubles. An operation walks a bag's cells in memory order as `outer` runs
of `inner` cells; `offsets` says where in the smaller table each run belongs, and the operation's variant says whether
the run moves along the smaller table (ALONG) or stays on one of its cells (ACROSS).

The compiler's cache does not notice that a kernel called from another file has changed: after an edit here (or of
`estimation.evaluate`) remove this folder's `__pycache__`.

Marginals
---------
For many pairs or triples, every edge of the tree carries one matrix per direction: the probabilities of each column
beyond it given its separator. A pair is then one matrix product, and a triple is joined at the bag where the three ways
meet. Any other clique is answered by eliminating what is not asked for, along the part of the tree that it spans.
"""

import math
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Ints
from understudy.compiled import compiled
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.models.junction_tree import JunctionTree, sum_to


def spread(domain: Domain, axes: Sequence[str], part: Clique, values: npt.NDArray[np.generic]) -> Floats:
    """A flat table of `part`, shaped so that it multiplies an array with these axes."""
    order = [name for name in axes if name in part]
    turned = values.reshape(domain.shape(part)).transpose([part.index(name) for name in order])
    return np.asarray(turned.reshape([domain.sizes[name] if name in part else 1 for name in axes]))


def from_bag_order(tree: JunctionTree, bag: int, table: Floats) -> Floats:
    """A flat table of the bag in the order of the domain, as rows (separator) and columns (fresh)."""
    names, separator, fresh = tree.bags[bag], tree.separators[bag], tree.fresh[bag]
    turned = table.reshape(tree.domain.shape(names)).transpose([names.index(name) for name in (*separator, *fresh)])
    return np.ascontiguousarray(turned).reshape(tree.domain.cells(separator), tree.domain.cells(fresh))


def calibrate(tree: JunctionTree, factors: Sequence[Floats]) -> tuple[tuple[Floats, ...], float]:
    """The conditional tables of the distribution proportional to the product of the factors, and its log mass.

    Zero where a factor is zero. The log mass is −inf if nothing is left.
    """
    domain = tree.domain
    tables: list[Floats] = [np.zeros(0)] * len(factors)
    messages: list[Floats] = [np.ones(1)] * len(factors)
    logarithm = 0.0
    for bag in reversed(range(len(factors))):
        axes = (*tree.separators[bag], *tree.fresh[bag])
        product = factors[bag].reshape(domain.shape(axes))
        for child in tree.children[bag]:
            product = product * spread(domain, axes, tree.separators[child], messages[child])
        rows = np.ascontiguousarray(product).reshape(factors[bag].shape)
        sums = rows.sum(axis=1)
        # Dividing by a subnormal sum could overflow; such a row has no mass that could matter.
        live = sums > 1e-300
        tables[bag] = np.where(live[:, None], rows / np.where(live, sums, 1.0)[:, None], 0.0)
        most = float(sums.max())
        if most <= 1e-300:
            return tuple(factors), -math.inf
        # Scaled to at most 1, and the factor kept as a logarithm: products of many bags would leave the range of
        # floats.
        messages[bag] = np.where(live, sums, 0.0) / most
        logarithm += math.log(most)
    return tuple(tables), logarithm


def joints(tree: JunctionTree, tables: Sequence[Floats]) -> tuple[Floats, ...]:
    """The joint distribution of every bag, as arrays with the axes (separator, fresh)."""
    domain = tree.domain
    found: list[Floats] = []
    for bag, table in enumerate(tables):
        rows = table
        if bag:
            parent = tree.parents[bag]
            axes = (*tree.separators[parent], *tree.fresh[parent])
            rows = table * sum_to(axes, found[parent], tree.separators[bag]).reshape(-1, 1)
        found.append(rows.reshape(domain.shape((*tree.separators[bag], *tree.fresh[bag]))))
    return tuple(found)


COPY, DIVIDE, SCALE = 0, 1, 2
MULTIPLY, PRODUCT, SUM, CONDITION = 4, 6, 8, 10
ACROSS, ALONG = 0, 1

# Dividing by less could overflow.
_FAINT = 1e-280


class Operation(NamedTuple):
    """One row of a program: what to do, the large table, the small one, how to walk, and a third table."""

    code: int
    large: int
    small: int
    outer: int
    inner: int
    offsets: int
    small_size: int
    third: int


@compiled()  # pragma: no cover
def _multiply(row, offsets, data, source):  # type: ignore[no-untyped-def]
    """large = source · small."""
    _, large, small, outer, inner, at, _, _ = row
    for o in range(outer):
        start = large + o * inner
        result = data[start : start + inner]
        factor = data[source + o * inner : source + o * inner + inner]
        if row[0] & 1:
            place = small + offsets[at + o]
            other = data[place : place + inner]
            for j in range(inner):
                result[j] = factor[j] * other[j]
        else:
            value = data[small + offsets[at + o]]
            for j in range(inner):
                result[j] = factor[j] * value


@compiled()  # pragma: no cover
def _sum(row, offsets, data):  # type: ignore[no-untyped-def]
    """small = sums of large."""
    _, large, small, outer, inner, at, size, _ = row
    for j in range(size):
        data[small + j] = 0.0
    for o in range(outer):
        cells = data[large + o * inner : large + o * inner + inner]
        if row[0] & 1:
            place = small + offsets[at + o]
            sums = data[place : place + inner]
            for j in range(inner):
                sums[j] += cells[j]
        else:
            total = 0.0
            for j in range(inner):
                total += cells[j]
            data[small + offsets[at + o]] += total


@compiled()  # pragma: no cover
def _condition(row, offsets, data, floor):  # type: ignore[no-untyped-def]
    """large = third / small where small has mass; elsewhere large stays. A positive cell stays above the floor."""
    _, large, small, outer, inner, at, _, third = row
    for o in range(outer):
        result = data[large + o * inner : large + o * inner + inner]
        joint = data[third + o * inner : third + o * inner + inner]
        for j in range(inner):
            mass = data[small + offsets[at + o] + (j if row[0] & 1 else 0)]
            # A 0 is a rule and stays one; where the parent has no mass the earlier row is as good as any.
            if mass > _FAINT and result[j] > 0.0:
                result[j] = max(joint[j] / mass, floor)


@compiled()  # pragma: no cover
def _divide(row, data):  # type: ignore[no-untyped-def]
    """large = large / small, with 0/0 = 0."""
    for j in range(row[4]):
        value = data[row[2] + j]
        # 0/0: where the bag's own message is 0, a rule leaves nothing, and the parent says the same.
        data[row[1] + j] = data[row[1] + j] / value if value > 0.0 else 0.0


@compiled()  # pragma: no cover
def _scale(row, data):  # type: ignore[no-untyped-def]
    """large = large / its largest cell."""
    most = 0.0
    for j in range(row[4]):
        most = max(most, data[row[1] + j])
    if most > 0.0:
        for j in range(row[4]):
            data[row[1] + j] /= most


@compiled()  # pragma: no cover
def run(program: Ints, offsets: Ints, data: Floats, floor: float) -> None:
    """Carries out the operations in order; `floor` is the least value a positive conditional cell may take."""
    for step in range(program.shape[0]):
        row = program[step]
        kind = row[0] & ~1
        if kind == MULTIPLY:
            _multiply(row, offsets, data, row[1])
        elif kind == PRODUCT:
            _multiply(row, offsets, data, row[7])
        elif kind == SUM:
            _sum(row, offsets, data)
        elif kind == CONDITION:
            _condition(row, offsets, data, floor)
        elif row[0] == COPY:
            for j in range(row[4]):
                data[row[1] + j] = data[row[2] + j]
        elif row[0] == DIVIDE:
            _divide(row, data)
        else:
            _scale(row, data)


Scalar = TypeVar("Scalar", bound=np.generic)

FLOOR = 1e-100
"""Least probability of a possible cell given its separator, so that no cell is lost for good to an underflow."""
# Tables begin every 64 bytes, as vector loads and cache lines like it.
_LANE = 8


class Program:
    """Operations and memory of one tree whose updates are tables over `parameters` (each inside a bag)."""

    def __init__(self, tree: JunctionTree, parameters: Sequence[Clique]) -> None:
        self.tree, self.parameters = tree, tuple(parameters)
        sizes = tree.domain.sizes
        place = {name: position for position, name in enumerate(tree.domain.columns)}
        # Columns with many codes last: the inner runs become long.
        self._rank = {name: (sizes[name], place[name]) for name in sizes}
        self._homes = [tree.bag_of(clique) for clique in self.parameters]
        if min(self._homes, default=0) < 0:
            raise UsageError("program", "every parameter must lie inside a bag.")
        self._plans: dict[tuple[Clique, Clique], tuple[int, int, int, int]] = {}
        self._offsets: list[Ints] = []
        self._used = 0
        self._allocate()
        self.forward = np.array(self._collect() + self._distribute(), dtype=np.int64).reshape(-1, 8)
        self.accept = np.array(self._rebase(), dtype=np.int64).reshape(-1, 8)
        self.offsets = np.concatenate([np.zeros(1, dtype=np.int64), *self._offsets])
        self.data = np.zeros(self._top)

    def axes(self, clique: Iterable[str]) -> list[str]:
        """The clique's columns (one-code columns left out) in the order in which this program stores them."""
        return sorted((name for name in clique if self.tree.domain.sizes[name] > 1), key=self._rank.__getitem__)

    def inward(self, clique: Clique, table: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """A flat table in the order of the domain, flat in the order of this program."""
        kept = [name for name in clique if self.tree.domain.sizes[name] > 1]
        turned = table.reshape(self.tree.domain.shape(kept)).transpose([kept.index(name) for name in self.axes(clique)])
        return np.ascontiguousarray(turned).ravel()

    def outward(self, clique: Clique, table: Floats) -> Floats:
        """A flat table in the order of this program, flat in the order of the domain."""
        axes = self.axes(clique)
        kept = [name for name in clique if self.tree.domain.sizes[name] > 1]
        turned = table.reshape(self.tree.domain.shape(axes)).transpose([axes.index(name) for name in kept])
        return np.ascontiguousarray(turned).ravel()

    def reset(self, structural_zeros: Iterable[StructuralZeros] = ()) -> None:
        """Makes the state uniform over what the rules (each inside a bag) leave possible."""
        for start, size in zip(self._state, self._bag_cells, strict=True):
            self.data[start : start + size] = 1.0
        for rule in structural_zeros:
            self._exclude(rule)
        self.data[: self.parameter_cells] = 1.0
        run(self.forward, self.offsets, self.data, 0.0)
        if not self.data[self._joint[0] : self._joint[0] + self._bag_cells[0]].any():
            raise UsageError("rules", "leave no combination possible.", "Drop or narrow a rule.")
        run(self.accept, self.offsets, self.data, 0.0)

    def state(self, bag: int) -> Floats:
        """The bag's conditional table, flat in the order of the domain; a copy."""
        start, size = self._state[bag], self._bag_cells[bag]
        return self.outward(self.tree.bags[bag], self.data[start : start + size])

    def _exclude(self, rule: StructuralZeros) -> None:
        bag = self.tree.bag_of(rule.clique)
        if bag < 0:
            raise UsageError("program", "every rule must lie inside a bag.")
        axes, inner = self.axes(self.tree.bags[bag]), self.axes(rule.clique)
        shape = [self.tree.domain.sizes[name] if name in inner else 1 for name in axes]
        mask = self.inward(rule.clique, rule.mask).reshape(shape)
        table = self.data[self._state[bag] : self._state[bag] + self._bag_cells[bag]]
        table.reshape(self.tree.domain.shape(axes))[...] *= ~mask

    def _allocate(self) -> None:
        """Memory: parameters first (one run), their marginals next (one run), then bags and messages."""
        domain, tree = self.tree.domain, self.tree
        cells = [domain.cells(clique) for clique in self.parameters]
        self.bounds = np.concatenate([[0], np.cumsum(cells)]).astype(np.int64)
        self.parameter_cells = int(self.bounds[-1])
        self._top = 0
        self._reserve(self.parameter_cells)
        self.marginals_at = self._reserve(self.parameter_cells)
        self._bag_cells = [domain.cells(bag) for bag in tree.bags]
        message_cells = [domain.cells(separator) for separator in tree.separators]
        self._state = [self._reserve(size) for size in self._bag_cells]
        self._joint = [self._reserve(size) for size in self._bag_cells]
        self._up = [self._reserve(size) for size in message_cells]
        self._down = [self._reserve(size) for size in message_cells]

    def _reserve(self, cells: int) -> int:
        start = self._top
        self._top += -(-cells // _LANE) * _LANE
        return start

    def _plan(self, bag: Clique, part: Clique) -> tuple[int, int, int, int]:
        """(ALONG or ACROSS, outer runs, inner cells, where the offsets start) of walking `bag` against `part`."""
        if (bag, part) not in self._plans:
            along, inner, offsets = _walk([(self.tree.domain.sizes[name], name in part) for name in self.axes(bag)])
            self._offsets.append(offsets)
            self._plans[bag, part] = (along, offsets.size, inner, 1 + self._used)
            self._used += offsets.size
        return self._plans[bag, part]

    def _with_part(self, code: int, large: int, bag: int, small: int, part: Clique, *, third: int = 0) -> Operation:
        along, outer, inner, at = self._plan(self.tree.bags[bag], part)
        return Operation(code | along, large, small, outer, inner, at, self.tree.domain.cells(part), third)

    def _collect(self) -> list[Operation]:
        """Leaves to root: each bag times its parameters and its children's messages, summed for its parent."""
        found = []
        for bag in reversed(range(len(self.tree.bags))):
            factors = [
                (int(self.bounds[number]), self.parameters[number])
                for number, home in enumerate(self._homes)
                if home == bag
            ]
            factors += [(self._up[child], self.tree.separators[child]) for child in self.tree.children[bag]]
            joint, state = self._joint[bag], self._state[bag]
            if not factors:
                found.append(Operation(COPY, joint, state, 0, self._bag_cells[bag], 0, 0, 0))
            for number, (small, part) in enumerate(factors):
                code = MULTIPLY if number else PRODUCT
                found.append(self._with_part(code, joint, bag, small, part, third=state))
            if bag:
                separator = self.tree.separators[bag]
                found.append(self._with_part(SUM, joint, bag, self._up[bag], separator))
                # Factors of a message cancel when the joint is scaled to the total; unscaled, they would under- or
                # overflow.
                found.append(Operation(SCALE, self._up[bag], 0, 0, self.tree.domain.cells(separator), 0, 0, 0))
        return found

    def _distribute(self) -> list[Operation]:
        """Root to leaves: each bag times what its parent knows beyond the bag's own message, then the marginals."""
        found = []
        for bag, parent in enumerate(self.tree.parents):
            if bag:
                separator = self.tree.separators[bag]
                cells = self.tree.domain.cells(separator)
                found.append(self._with_part(SUM, self._joint[parent], parent, self._down[bag], separator))
                # Without what the bag itself sent up, or it would be counted twice.
                found.append(Operation(DIVIDE, self._down[bag], self._up[bag], 0, cells, 0, 0, 0))
                found.append(Operation(SCALE, self._down[bag], 0, 0, cells, 0, 0, 0))
                found.append(self._with_part(MULTIPLY, self._joint[bag], bag, self._down[bag], separator))
            for number, home in enumerate(self._homes):
                if home == bag:
                    target = self.marginals_at + int(self.bounds[number])
                    found.append(self._with_part(SUM, self._joint[bag], bag, target, self.parameters[number]))
        return found

    def _rebase(self) -> list[Operation]:
        """State = joint given the separator; taken when an update is accepted."""
        found = []
        for bag, separator in enumerate(self.tree.separators):
            joint, down = self._joint[bag], self._down[bag]
            found.append(self._with_part(SUM, joint, bag, down, separator))
            found.append(self._with_part(CONDITION, self._state[bag], bag, down, separator, third=joint))
        return found


def _walk(axes: Sequence[tuple[int, bool]]) -> tuple[int, int, Ints]:
    """(ALONG or ACROSS, inner cells, offset of each run) for axes given as (size, whether the part has it)."""
    groups: list[tuple[int, bool]] = []
    for size, kept in axes:
        if groups and groups[-1][1] == kept:
            groups[-1] = (groups[-1][0] * size, kept)
        else:
            groups.append((size, kept))
    if not groups:
        return ALONG, 1, np.zeros(1, dtype=np.int64)
    strides, stride = [0] * len(groups), 1
    for number in reversed(range(len(groups))):
        if groups[number][1]:
            strides[number] = stride
            stride *= groups[number][0]
    offsets = np.zeros(1, dtype=np.int64)
    for (size, _), step in zip(groups[:-1], strides[:-1], strict=True):
        offsets = (offsets[:, None] + np.arange(size, dtype=np.int64) * step).ravel()
    return int(groups[-1][1]), groups[-1][0], offsets


WORKING_CELLS = 2**27
"""Most cells of a table needed on the way to an answer (1 GiB)."""
MESSAGE_CELLS = 2**23
"""Most cells of all messages along the tree at a time, when many pairs or triples are answered (64 MiB).

A column whose messages alone have more is still answered, on its own."""
CACHED_CELLS = 2**21
"""Most cells of all sums of bags that are kept for later answers (16 MiB)."""


@dataclass(frozen=True, slots=True, eq=False)
class _Beyond:
    """Probabilities of the columns beyond an edge, given its separator: one row per separator cell."""

    columns: dict[str, slice]
    matrix: Floats

    def of(self, name: str) -> Floats:
        return self.matrix[:, self.columns[name]]


class Answers:
    """Answers about one tree, given the joint table of every bag (axes: separator, then fresh columns)."""

    def __init__(self, tree: JunctionTree, tables: Sequence[Floats]) -> None:
        self._tree, self._tables = tree, tables
        self._axes = [(*tree.separators[bag], *tree.fresh[bag]) for bag in range(len(tree.bags))]
        self._cache: dict[tuple[int, tuple[str, ...]], Floats] = {}
        self._cached = 0

    def one(self, clique: Clique) -> Floats:
        """The clique's probabilities, flat row-major.

        Raises:
            ResourceError: if a table needed on the way is too large.
        """
        wanted = self._live(clique)
        bag = self._tree.bag_of(wanted)
        if bag >= 0:
            return self._local(bag, wanted).ravel()
        return self._reach(self._tree.home[wanted[0]], -1, wanted)[1].ravel()

    def many(self, cliques: Iterable[Clique]) -> Iterator[tuple[Clique, Floats]]:
        """Each clique with its probabilities; the order may differ from the one asked in."""
        pairs: dict[tuple[str, ...], list[Clique]] = {}
        triples: dict[tuple[str, ...], list[Clique]] = {}
        for clique in dict.fromkeys(cliques):
            wanted = self._live(clique)
            if len(wanted) == 2 and self._component[wanted[0]] != self._component[wanted[1]]:
                yield clique, np.multiply.outer(self._column(wanted[0]), self._column(wanted[1])).ravel()
            elif self._tree.bag_of(wanted) >= 0 or len(wanted) > 3:
                yield clique, self.one(clique)
            else:
                (pairs if len(wanted) == 2 else triples).setdefault(wanted, []).append(clique)
        for batch, together in ((pairs, self._pairs), (triples, self._triples)):
            for wanted, table in together(list(batch)):
                for clique in batch[wanted]:
                    yield clique, table

    @cached_property
    def _component(self) -> dict[str, int]:
        """A number per column, the same for columns that some chain of bags ties together; others are independent."""
        tree = self._tree
        number = list(range(len(tree.bags)))
        for bag in range(1, len(tree.bags)):
            if tree.separators[bag]:
                # Parents come before their children, so one pass is enough.
                number[bag] = number[tree.parents[bag]]
        return {name: number[bag] for name, bag in tree.home.items()}

    def _column(self, name: str) -> Floats:
        return self._local(self._tree.home[name], (name,))

    def _live(self, clique: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in clique if self._tree.domain.sizes[name] > 1)

    def _local(self, bag: int, names: Sequence[str]) -> Floats:
        """The marginal of columns of one bag, with axes in the order given."""
        key = (bag, tuple(names))
        if key not in self._cache:
            table = np.array(sum_to(self._axes[bag], self._tables[bag], names), order="C")
            if self._cached + table.size > CACHED_CELLS:
                return table
            self._cache[key] = table
            self._cached += table.size
        return self._cache[key]

    def _given(self, bag: int, separator: Sequence[str], others: Sequence[str]) -> Floats:
        """Probabilities of `others` given `separator` in a bag, axes (separator, others); 0 where it has no mass."""
        joint = self._local(bag, (*separator, *others))
        mass = self._local(bag, separator).reshape(joint.shape[: len(separator)] + (1,) * len(others))
        return np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0.0)

    @cached_property
    def _around(self) -> list[list[int]]:
        parents, children = self._tree.parents, self._tree.children
        return [[*children[bag], *([parents[bag]] if bag else [])] for bag in range(len(parents))]

    def _edge(self, first: int, second: int) -> Clique:
        return self._tree.separators[first if self._tree.parents[first] == second else second]

    @cached_property
    def _hops(self) -> list[dict[str, int]]:
        """Per bag and column outside it: the neighbour behind which the column lies."""
        tree = self._tree
        below: list[set[str]] = [set(bag) for bag in tree.bags]
        for bag in reversed(range(1, len(below))):
            below[tree.parents[bag]] |= below[bag]
        hops: list[dict[str, int]] = []
        for bag, names in enumerate(tree.bags):
            way = {name: child for child in tree.children[bag] for name in below[child] if name not in names}
            up = tree.parents[bag]
            hops.append(way | {name: up for name in tree.home if name not in names and name not in way})
        return hops

    def _reach(self, bag: int, source: int, wanted: Sequence[str]) -> tuple[list[str], Floats]:
        """Probabilities of the wanted columns on this side of `source` given the separator to it: (columns, axes both).

        Without a source (−1) these are all wanted columns, in the order asked for.
        """
        separator = self._edge(bag, source) if source >= 0 else Clique()
        hops = self._hops[bag]
        beyond = sorted({hops[name] for name in wanted if name in hops} - {source})
        parts = [(self._edge(bag, other), *self._reach(other, bag, wanted)) for other in beyond]
        here = [name for name in wanted if name not in hops and name not in separator]
        needed = {name for part in parts for name in part[0]} | set(here)
        local = [name for name in self._axes[bag] if name in needed and name not in separator]
        reached = {name for _, columns, _ in parts for name in columns}
        queries = [name for name in wanted if name in reached or name in here]
        self._guard([*separator, *queries])
        label = {name: number for number, name in enumerate(dict.fromkeys([*separator, *local, *queries]))}
        operands = [(self._given(bag, separator, local), [label[name] for name in (*separator, *local)])]
        for edge, columns, table in parts:
            operands.append((table, [label[name] for name in (*edge, *columns)]))
        result = _contract(operands, [label[name] for name in (*separator, *queries)])
        return queries, result

    def _guard(self, names: Sequence[str]) -> None:
        cells = self._tree.domain.cells(names)
        if cells > WORKING_CELLS:
            raise ResourceError("a marginal across the model", cells * 8, WORKING_CELLS * 8, "Ask about fewer columns.")

    def _messages(self, columns: Sequence[str]) -> dict[tuple[int, int], _Beyond]:
        """For every directed edge the probabilities of these columns beyond it."""
        found: dict[tuple[int, int], _Beyond] = {}
        for bag in reversed(range(1, len(self._tree.bags))):
            found[bag, self._tree.parents[bag]] = self._message(bag, self._tree.parents[bag], columns, found)
        for bag in range(1, len(self._tree.bags)):
            found[self._tree.parents[bag], bag] = self._message(self._tree.parents[bag], bag, columns, found)
        return found

    def _message(self, bag: int, target: int, columns: Sequence[str], known: dict[tuple[int, int], _Beyond]) -> _Beyond:
        separator = self._edge(bag, target)
        rows = self._tree.domain.cells(separator)
        own = [name for name in self._tree.bags[bag] if name in columns and name not in separator]
        names, blocks = list(own), [self._given(bag, separator, [name]).reshape(rows, -1) for name in own]
        alike: dict[Clique, list[_Beyond]] = {}
        for other in self._around[bag]:
            if other != target and known[other, bag].columns:
                alike.setdefault(self._edge(bag, other), []).append(known[other, bag])
        for edge, group in alike.items():
            names += [name for beyond in group for name in beyond.columns]
            stacked = group[0].matrix if len(group) == 1 else np.hstack([beyond.matrix for beyond in group])
            blocks.append(self._push(bag, separator, edge, stacked))
        slices, start = {}, 0
        for name in names:
            slices[name] = slice(start, start + self._tree.domain.sizes[name])
            start += self._tree.domain.sizes[name]
        return _Beyond(slices, np.hstack(blocks) if blocks else np.zeros((rows, 0)))

    def _push(self, bag: int, separator: Clique, edge: Clique, matrix: Floats) -> Floats:
        """Rows given `edge` turned into rows given `separator`, through the bag that holds both."""
        if separator == edge:
            return matrix
        domain = self._tree.domain
        shared = [name for name in separator if name in edge]
        only, inner = ([name for name in names if name not in shared] for names in (separator, edge))
        probabilities = self._given(bag, (*shared, *only), inner)
        kernel = probabilities.reshape(domain.cells(shared), domain.cells(only), domain.cells(inner))
        order = [edge.index(name) for name in (*shared, *inner)]
        table = matrix.reshape(*domain.shape(edge), -1).transpose(*order, len(edge))
        stacked = np.ascontiguousarray(table).reshape(domain.cells(shared), domain.cells(inner), -1)
        pushed = _products(np.ascontiguousarray(kernel), stacked)
        mixed = [*shared, *only]
        turned = pushed.reshape(*domain.shape(mixed), -1).transpose(
            *(mixed.index(name) for name in separator), len(mixed)
        )
        return np.ascontiguousarray(turned).reshape(domain.cells(separator), -1)

    def _chunks(self, columns: Sequence[str]) -> Iterator[list[str]]:
        """The columns in runs whose messages fit in the memory set aside for them."""
        rows = 2 * sum(self._tree.domain.cells(separator) for separator in self._tree.separators)
        chunk: list[str] = []
        width = 0
        for name in columns:
            size = self._tree.domain.sizes[name]
            if chunk and rows * (width + size) > MESSAGE_CELLS:
                yield chunk
                chunk, width = [], 0
            chunk.append(name)
            width += size
        if chunk:
            yield chunk

    def _pairs(self, pairs: Sequence[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], Floats]]:
        """Pairs that no bag holds, each once."""
        queries = set(pairs)
        oriented = [self._oriented(first, second) for first, second in pairs]
        for chunk in self._chunks(list(dict.fromkeys(second for _, second in oriented))):
            messages = self._messages(chunk)
            ways: dict[tuple[str, int], list[str]] = {}
            for first, second in oriented:
                if second in chunk:
                    ways.setdefault((first, self._hops[self._tree.home[first]][second]), []).append(second)
            for (first, other), seconds in ways.items():
                bag = self._tree.home[first]
                beyond = messages[other, bag]
                local = self._local(bag, (first, *(n for n in self._edge(bag, other) if n != first)))
                left = np.ascontiguousarray(self._left(first, self._edge(bag, other), local))
                right = np.ascontiguousarray(beyond.matrix if len(seconds) > 1 else beyond.of(seconds[0]))
                product = _products(left[None], right[None])[0]
                for second in seconds:
                    table = product[:, beyond.columns[second]] if len(seconds) > 1 else product
                    if (first, second) in queries:
                        yield (first, second), np.ascontiguousarray(table).ravel()
                    else:
                        yield (second, first), np.ascontiguousarray(table.T).ravel()

    def _oriented(self, first: str, second: str) -> tuple[str, str]:
        """The pair with that column first whose bag has the smaller separator towards the other."""
        near, far = self._tree.home[first], self._tree.home[second]
        forth = self._tree.domain.cells(self._edge(near, self._hops[near][second]))
        back = self._tree.domain.cells(self._edge(far, self._hops[far][first]))
        return (first, second) if forth <= back else (second, first)

    def _left(self, first: str, edge: Clique, local: Floats) -> Floats:
        """P(first, edge) as a matrix, from a table with axes (first, the rest of the edge)."""
        size = self._tree.domain.sizes[first]
        if first not in edge:
            return local.reshape(size, -1)
        axis = edge.index(first)
        full = np.zeros((size, *self._tree.domain.shape(edge)))
        moved = np.moveaxis(full, axis + 1, 1)
        moved[np.arange(size), np.arange(size)] = local
        return full.reshape(size, -1)

    def _triples(self, triples: Sequence[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], Floats]]:
        """Triples that no bag holds, each once."""
        columns = list(dict.fromkeys(name for triple in triples for name in triple))
        chunks = list(self._chunks(columns))
        if len(chunks) > 1:
            for triple in triples:
                yield triple, self.one(Clique(triple))
            return
        messages = self._messages(columns) if chunks else {}
        for triple in triples:
            yield triple, self._triple(triple, messages)

    def _triple(self, triple: tuple[str, ...], messages: dict[tuple[int, int], _Beyond]) -> Floats:
        domain = self._tree.domain
        first, second, third = triple
        bag = self._tree.home[first]
        while self._hops[bag].get(second, -1) == self._hops[bag].get(third, -2):
            bag = self._hops[bag][second]
        hops = self._hops[bag]
        needed = [name for name in triple if name not in hops]
        operands: list[tuple[Floats, list[int]]] = []
        label: dict[str, int] = {}
        for name in triple:
            if name in hops:
                edge = self._edge(bag, hops[name])
                needed += [column for column in edge if column not in needed]
                numbers = [label.setdefault(column, len(label)) for column in (*edge, name)]
                operands.append((messages[hops[name], bag].of(name).reshape(*domain.shape(edge), -1), numbers))
        joint = (self._local(bag, needed), [label.setdefault(column, len(label)) for column in needed])
        return _contract([joint, *operands], [label[name] for name in triple]).ravel()


@compiled()  # pragma: no cover
def _products(left, right):  # type: ignore[no-untyped-def]
    """Matrix products of two stacks. Not BLAS: its threads cost more than these small products when cores are busy."""
    stack, rows, depth = left.shape
    result = np.zeros((stack, rows, right.shape[2]))
    for s in range(stack):
        for i in range(rows):
            sums = result[s, i]
            for k in range(0, depth - 3, 4):
                w, x, y, z = left[s, i, k], left[s, i, k + 1], left[s, i, k + 2], left[s, i, k + 3]
                a, b, c, d = right[s, k], right[s, k + 1], right[s, k + 2], right[s, k + 3]
                for j in range(sums.size):
                    sums[j] += w * a[j] + x * b[j] + y * c[j] + z * d[j]
            for k in range(depth - depth % 4, depth):
                w, a = left[s, i, k], right[s, k]
                for j in range(sums.size):
                    sums[j] += w * a[j]
    return result


def _contract(operands: Sequence[tuple[Floats, list[int]]], wanted: Sequence[int]) -> Floats:
    """The sum over all axes but the wanted ones of the product of arrays, each given with its axis numbers."""
    spelled = ",".join("".join(string.ascii_letters[axis] for axis in axes) for _, axes in operands)
    result = "".join(string.ascii_letters[axis] for axis in wanted)
    arrays = [array for array, _ in operands]
    # Greedy and bounded: the best order takes exponential time to find, and the quickest may need more memory.
    return np.ascontiguousarray(np.einsum(f"{spelled}->{result}", *arrays, optimize=("greedy", WORKING_CELLS)))
