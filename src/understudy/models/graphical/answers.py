"""Marginals of a calibrated junction tree: inside a bag, along the tree, any clique, all pairs and triples at once.

For many pairs or triples, every edge of the tree carries one matrix per direction: the chances of each column beyond
it given its separator. A pair is then one matrix product, and a triple is joined at the bag where the three ways meet.
Any other clique is answered by eliminating what is not asked for, along the part of the tree that it spans.
"""

import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.errors import ResourceError
from understudy.marginals.clique import Clique
from understudy.models.graphical.conditionals import sum_to
from understudy.models.graphical.junction_tree import JunctionTree

__all__ = ["MESSAGE_CELLS", "WORKING_CELLS", "Answers"]

Floats = npt.NDArray[np.float64]

WORKING_CELLS = 2**27
"""Most cells of a table needed on the way to an answer (1 GiB)."""
MESSAGE_CELLS = 2**24
"""Most cells of all messages along the tree at a time, when many pairs or triples are answered (128 MiB)."""
_CACHED_CELLS = 2**22


@dataclass(frozen=True, slots=True, eq=False)
class _Beyond:
    """Chances of the columns beyond an edge, given its separator: one row per separator cell."""

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
            if self._tree.bag_of(wanted) >= 0 or len(wanted) > 3:
                yield clique, self.one(clique)
            else:
                (pairs if len(wanted) == 2 else triples).setdefault(wanted, []).append(clique)
        for batch, together in ((pairs, self._pairs), (triples, self._triples)):
            for wanted, table in together(list(batch)):
                for clique in batch[wanted]:
                    yield clique, table

    def _live(self, clique: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in clique if self._tree.domain.sizes[name] > 1)

    def _local(self, bag: int, names: Sequence[str]) -> Floats:
        """The marginal of columns of one bag, with axes in the order given."""
        key = (bag, tuple(names))
        if key not in self._cache:
            table = np.array(sum_to(self._axes[bag], self._tables[bag], names), order="C")
            if table.size > _CACHED_CELLS:
                return table
            self._cache[key] = table
        return self._cache[key]

    def _given(self, bag: int, separator: Sequence[str], others: Sequence[str]) -> Floats:
        """Chances of `others` given `separator` inside a bag, with axes (separator, others); 0 where it has no mass."""
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
        """Chances of the wanted columns on this side of `source` given the separator to it: (columns, axes sep + them).

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
        asked = [name for name in wanted if name in reached or name in here]
        self._guard([*separator, *asked])
        label = {name: number for number, name in enumerate(dict.fromkeys([*separator, *local, *asked]))}
        operands = [(self._given(bag, separator, local), [label[name] for name in (*separator, *local)])]
        for edge, columns, table in parts:
            operands.append((table, [label[name] for name in (*edge, *columns)]))
        result = _contract(operands, [label[name] for name in (*separator, *asked)])
        return asked, result

    def _guard(self, names: Sequence[str]) -> None:
        cells = self._tree.domain.cells(names)
        if cells > WORKING_CELLS:
            raise ResourceError("marginal outside the model", cells * 8, WORKING_CELLS * 8, "Ask about fewer columns.")

    def _messages(self, columns: Sequence[str]) -> dict[tuple[int, int], _Beyond]:
        """For every directed edge the chances of these columns beyond it."""
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
        chances = self._given(bag, (*shared, *only), inner)
        kernel = chances.reshape(domain.cells(shared), domain.cells(only), domain.cells(inner))
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
        asked = set(pairs)
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
                    if (first, second) in asked:
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
    return np.ascontiguousarray(np.einsum(f"{spelled}->{result}", *arrays, optimize=("greedy", WORKING_CELLS)))
