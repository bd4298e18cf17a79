"""Program: exact propagation along one junction tree, as integer arrays for the compiled interpreter.

The state is the calibrated tree itself: per bag the distribution of its fresh columns given its separator. An update
multiplies the model by the exponential of small tables ("parameters") and calibrates again; since every conditional
distribution sums to one, linear space neither under- nor overflows however extreme the accumulated update becomes.
A cell that a rule forbids is an exact zero of the state and no update can revive it; any other cell stays positive.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.forbidden import Forbidden
from understudy.models.graphical.interpreter import (
    ALONG,
    CONDITION,
    COPY,
    DIVIDE,
    MULTIPLY,
    PRODUCT,
    SCALE,
    SUM,
    Operation,
    run,
)
from understudy.models.graphical.junction_tree import JunctionTree

__all__ = ["FLOOR", "Program"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Scalar = TypeVar("Scalar", bound=np.generic)

FLOOR = 1e-100
"""Least probability of a possible cell given its separator, so that no cell is lost for good to an underflow."""
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

    def reset(self, forbidden: Iterable[Forbidden] = ()) -> None:
        """Makes the state uniform over what the rules (each inside a bag) leave possible."""
        for start, size in zip(self._state, self._bag_cells, strict=True):
            self.data[start : start + size] = 1.0
        for rule in forbidden:
            self._forbid(rule)
        self.data[: self.parameter_cells] = 1.0
        run(self.forward, self.offsets, self.data, 0.0)
        if not self.data[self._joint[0] : self._joint[0] + self._bag_cells[0]].any():
            raise UsageError("rules", "leave no combination possible.", "Drop or narrow a rule.")
        run(self.accept, self.offsets, self.data, 0.0)

    def state(self, bag: int) -> Floats:
        """The bag's conditional table, flat in the order of the domain; a copy."""
        start, size = self._state[bag], self._bag_cells[bag]
        return self.outward(self.tree.bags[bag], self.data[start : start + size])

    def _forbid(self, rule: Forbidden) -> None:
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
