"""Drawing records from conditional tables, bag by bag, with compiled kernels.

Two laws. Independent records: every record takes its fresh codes from an alias table, one random word per bag.
Controlled rounding: of the records that share a separator cell, each continuation gets its expected number up to one,
with exact expectations. There the records of a group are shuffled first: handing out rounded counts in row order would
make children of one parent rise together. Either way a cell of probability 0 is never drawn, and the records depend
on the generator's next words only.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.models.draw import code_dtype

__all__ = ["Sampler", "Steps"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_BLOCK = 1 << 14
_SHORT = 1 << 16


class Steps(Protocol):
    """An order of drawing: at each step fresh columns, given columns drawn before."""

    @property
    def domain(self) -> Domain:
        """The codes."""
        ...

    @property
    def separators(self) -> tuple[Clique, ...]:
        """Per step the columns it depends on, in the order of its table's rows."""
        ...

    @property
    def fresh(self) -> tuple[Clique, ...]:
        """Per step the columns it draws."""
        ...


class Sampler:
    """Draws coded records of one model; made once, used for any number of draws."""

    def __init__(self, tree: Steps, tables: Sequence[Floats]) -> None:
        self._domain = tree.domain
        self._tables = [np.ascontiguousarray(table) for table in tables]
        place = {name: position for position, name in enumerate(tree.domain.columns)}
        self._plans: list[tuple[Ints, Ints, Ints, Ints]] = []
        for separator, fresh in zip(tree.separators, tree.fresh, strict=True):
            factors = [tree.domain.cells(separator[position + 1 :]) for position in range(len(separator))]
            self._plans.append(
                (
                    np.array([place[name] for name in separator], dtype=np.int64),
                    np.array(factors, dtype=np.int64),
                    np.array([place[name] for name in fresh], dtype=np.int64),
                    np.array(tree.domain.shape(fresh), dtype=np.int64),
                )
            )
        self._aliases: list[Words] | None = None

    def independent(self, rows: int, rng: np.random.Generator) -> dict[str, npt.NDArray[np.integer]]:
        """`rows` independent records."""
        if self._aliases is None:
            self._aliases = [_alias(table) for table in self._tables]
        words = rng.integers(0, 2**64, size=4, dtype=np.uint64)
        drawn = self._empty(rows)
        block = np.zeros((len(drawn), min(rows, _BLOCK)), dtype=np.uint32)
        cells = np.zeros(block.shape[1], dtype=np.uint32)
        for start in range(0, rows, _BLOCK):
            count = min(_BLOCK, rows - start)
            for (separator, factors, fresh, sizes), table, aliases in zip(
                self._plans, self._tables, self._aliases, strict=True
            ):
                _locate(block, count, separator, factors, cells)
                _draw(cells, count, aliases, table.shape[1], words)
                _unpack(cells, count, fresh, sizes, block)
            for position, codes in enumerate(drawn.values()):
                codes[start : start + count] = block[position, :count]
        return drawn

    def rounded(self, rows: int, rng: np.random.Generator) -> dict[str, npt.NDArray[np.integer]]:
        """`rows` records whose counts are the expected ones up to rounding, in random order."""
        words = rng.integers(0, 2**64, size=4, dtype=np.uint64)
        drawn = self._empty(rows)
        block = np.zeros((len(drawn), rows), dtype=np.uint32)
        cells, order = np.zeros(rows, dtype=np.uint32), np.zeros(rows, dtype=np.int64)
        for (separator, factors, fresh, sizes), table in zip(self._plans, self._tables, strict=True):
            _locate(block, rows, separator, factors, cells)
            _round(cells, rows, table, order, words)
            _unpack(cells, rows, fresh, sizes, block)
        for position, codes in enumerate(drawn.values()):
            codes[:] = block[position]
        return drawn

    def _empty(self, rows: int) -> dict[str, npt.NDArray[np.integer]]:
        return {name: np.zeros(rows, dtype=code_dtype(size)) for name, size in self._domain.sizes.items()}


@compiled()  # pragma: no cover
def _next(words):  # type: ignore[no-untyped-def]
    """The next 64 random bits (xoshiro256++, Blackman and Vigna 2019)."""
    total = words[0] + words[3]
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + words[0]
    shifted = words[1] << np.uint64(17)
    words[2] ^= words[0]
    words[3] ^= words[1]
    words[1] ^= words[2]
    words[0] ^= words[3]
    words[2] ^= shifted
    words[3] = (words[3] << np.uint64(45)) | (words[3] >> np.uint64(19))
    return result


@compiled()  # pragma: no cover
def _alias_row(weights, share, small, large, packed):  # type: ignore[no-untyped-def]
    """Alias table of one distribution (Vose 1991): each entry is threshold · 2³² + other cell."""
    size = weights.size
    total, best = 0.0, 0
    for cell in range(size):
        total += weights[cell]
        if weights[cell] > weights[best]:
            best = cell
    few = many = 0
    for cell in range(size):
        share[cell] = weights[cell] * size / total if total > 0.0 else 1.0
        # Whatever rounding leaves over: a possible cell keeps its own slot, an impossible one sends to the likeliest.
        packed[cell] = np.uint64(cell) if weights[cell] > 0.0 else np.uint64(best)
        if share[cell] < 1.0:
            small[few] = cell
            few += 1
        else:
            large[many] = cell
            many += 1
    while few > 0 and many > 0:
        few -= 1
        low, high = small[few], large[many - 1]
        packed[low] = (np.uint64(share[low] * 4294967296.0) << np.uint64(32)) | np.uint64(high)
        share[high] -= 1.0 - share[low]
        if share[high] < 1.0:
            many -= 1
            small[few] = high
            few += 1


@compiled()  # pragma: no cover
def _alias(table: Floats) -> Words:
    rows, size = table.shape
    packed = np.zeros(rows * size, np.uint64)
    share = np.empty(size)
    small, large = np.empty(size, np.int64), np.empty(size, np.int64)
    for row in range(rows):
        _alias_row(table[row], share, small, large, packed[row * size : (row + 1) * size])
    return packed


@compiled()  # pragma: no cover
def _locate(block, rows, columns, factors, cells):  # type: ignore[no-untyped-def]
    for row in range(rows):
        cells[row] = 0
    for position in range(columns.size):
        codes = block[columns[position]]
        factor = np.uint32(factors[position])
        for row in range(rows):
            cells[row] += codes[row] * factor


@compiled()  # pragma: no cover
def _draw(cells, rows, packed, size, words):  # type: ignore[no-untyped-def]
    """Replaces each separator cell by a drawn cell of the fresh columns."""
    low = np.uint64(0xFFFFFFFF)
    for row in range(rows):
        word = _next(words)
        if size <= _SHORT:
            slot = ((word >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32)
        else:
            slot = np.uint64((_next(words) >> np.uint64(11)) * (size / 9007199254740992.0))
        entry = packed[np.int64(cells[row]) * size + np.int64(slot)]
        cells[row] = np.uint32(slot if (word & low) < (entry >> np.uint64(32)) else entry & low)


@compiled()  # pragma: no cover
def _unpack(cells, rows, columns, sizes, block):  # type: ignore[no-untyped-def]
    """Writes the codes of the fresh columns; `cells` is used up."""
    for position in range(columns.size - 1, 0, -1):
        codes = block[columns[position]]
        size = np.uint32(sizes[position])
        for row in range(rows):
            rest = cells[row] // size
            codes[row] = cells[row] - rest * size
            cells[row] = rest
    if columns.size:
        codes = block[columns[0]]
        for row in range(rows):
            codes[row] = cells[row]


@compiled()  # pragma: no cover
def _group(cells, rows, groups, order, words):  # type: ignore[no-untyped-def]
    """Rows sorted by cell (`order`), shuffled within each; returns where each cell's rows start."""
    start = np.zeros(groups + 1, np.int64)
    for row in range(rows):
        start[np.int64(cells[row]) + 1] += 1
    for group in range(groups):
        start[group + 1] += start[group]
    filled = start[:-1].copy()
    for row in range(rows):
        at = np.int64(cells[row])
        order[filled[at]] = row
        filled[at] += 1
    for group in range(groups):
        low, count = start[group], start[group + 1] - start[group]
        for position in range(count - 1, 0, -1):
            other = np.int64((_next(words) >> np.uint64(11)) * ((position + 1) / 9007199254740992.0))
            order[low + position], order[low + other] = order[low + other], order[low + position]
    return start


@compiled()  # pragma: no cover
def _round(cells, rows, table, order, words):  # type: ignore[no-untyped-def]
    """Replaces separator cells by fresh cells: group of n gets ⌊c + u⌋ − ⌊c' + u⌋ of each (c, c': running sums · n)."""
    groups, size = table.shape
    start = _group(cells, rows, groups, order, words)
    for group in range(groups):
        low, high = start[group], start[group + 1]
        if low == high:
            continue
        total = 0.0
        for cell in range(size):
            total += table[group, cell]
        offset = (_next(words) >> np.uint64(11)) / 9007199254740992.0
        reached, done, last = 0.0, low, 0
        for cell in range(size):
            if table[group, cell] <= 0.0:
                continue
            last = cell
            reached += table[group, cell] / total * (high - low)
            end = min(low + np.int64(np.floor(reached + offset)), high)
            while done < end:
                cells[order[done]] = cell
                done += 1
        while done < high:
            cells[order[done]] = last
            done += 1
