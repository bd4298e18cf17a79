"""Counting kernels: many tables in one pass over rows, in blocks that stay in the processor's cache.

A block of rows is copied once into a small column-major buffer; for each table the cell numbers of the block are
computed in the narrowest integer that holds them (a loop the compiler vectorises) and then counted in a second loop.
Tables of a few cells get four copies side by side, because successive rows that hit the same cell would otherwise
wait for each other. Counts are kept in 32 bits and moved to 64 before they could overflow.

Refuses to know what a code means: it sees integers below the stated sizes and nothing else.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled

__all__ = ["TableCounter", "flat_index", "hash_rows", "hash_texts", "look_up", "table_bytes"]

Codes = npt.NDArray[np.unsignedinteger]
Ints = npt.NDArray[np.int64]

BLOCK_ROWS = 32_768
INTERLEAVED_CELLS = 512  # tables up to this size are kept four times
COPIES = 4
FLUSH_ROWS = (1 << 32) - 1
MOST_CELLS = 1 << 32


@compiled()  # pragma: no cover
def _locate(block, rows, picks, factors, index):  # type: ignore[no-untyped-def]
    """Cell numbers of the block's rows; arithmetic wraps in the index's own width, which holds every cell."""
    first = block[picks[0]]
    factor = index.dtype.type(factors[0])
    if picks.size == 1:
        for i in range(rows):
            index[i] = index.dtype.type(first[i]) * factor
        return
    second = block[picks[1]]
    other = index.dtype.type(factors[1])
    for i in range(rows):
        index[i] = index.dtype.type(first[i]) * factor + index.dtype.type(second[i]) * other
    done = 2
    while done + 1 < picks.size:
        first = block[picks[done]]
        second = block[picks[done + 1]]
        factor = index.dtype.type(factors[done])
        other = index.dtype.type(factors[done + 1])
        for i in range(rows):
            index[i] += index.dtype.type(first[i]) * factor + index.dtype.type(second[i]) * other
        done += 2
    if done < picks.size:
        first = block[picks[done]]
        factor = index.dtype.type(factors[done])
        for i in range(rows):
            index[i] += index.dtype.type(first[i]) * factor


@compiled()  # pragma: no cover
def _tally(index, rows, cells):  # type: ignore[no-untyped-def]
    for i in range(rows):
        cells[np.intp(index[i])] += np.uint32(1)


@compiled()  # pragma: no cover
def _tally_interleaved(index, rows, cells):  # type: ignore[no-untyped-def]
    size = cells.size // 4
    first, second, third, fourth = cells[:size], cells[size : 2 * size], cells[2 * size : 3 * size], cells[3 * size :]
    whole = rows - rows % 4
    for i in range(0, whole, 4):
        first[np.intp(index[i])] += np.uint32(1)
        second[np.intp(index[i + 1])] += np.uint32(1)
        third[np.intp(index[i + 2])] += np.uint32(1)
        fourth[np.intp(index[i + 3])] += np.uint32(1)
    for i in range(whole, rows):
        first[np.intp(index[i])] += np.uint32(1)


@compiled()  # pragma: no cover
def _count_block(block, rows, picks, factors, widths, layout, cells, narrow, wide):  # type: ignore[no-untyped-def]
    for table in range(widths.size):
        columns = picks[table, : widths[table]]
        weights = factors[table, : widths[table]]
        start, size, copies = layout[table]
        target = cells[start : start + size * copies]
        if size <= 65536:
            _locate(block, rows, columns, weights, narrow)
            if copies == 1:
                _tally(narrow, rows, target)
            else:
                _tally_interleaved(narrow, rows, target)
        else:
            _locate(block, rows, columns, weights, wide)
            _tally(wide, rows, target)


@dataclass(frozen=True, slots=True)
class _Group:
    """Tables whose widest column has the same code width, laid out in one run of cells."""

    tables: tuple[int, ...]
    columns: tuple[int, ...]
    block: Codes
    picks: Ints
    factors: Ints
    widths: Ints
    layout: Ints
    cells: npt.NDArray[np.uint32]


class TableCounter:
    """Counts of several tables over rows that arrive in chunks.

    Args:
        sizes: number of codes of each column.
        tables: for each table the positions of its columns, in the order of its axes; at least one each.

    >>> counter = TableCounter([2, 3], [(0, 1), (1,)])
    >>> counter.add([np.array([1, 0, 1], np.uint8), np.array([2, 0, 2], np.uint8)])
    >>> [table.tolist() for table in counter.totals()]
    [[1, 0, 0, 0, 0, 2], [1, 0, 2]]
    """

    def __init__(self, sizes: Sequence[int], tables: Sequence[Sequence[int]]) -> None:
        self._cells = [math.prod(sizes[column] for column in table) for table in tables]
        if any(cells > MOST_CELLS for cells in self._cells):
            raise ValueError("a dense table has at most 2³² cells")
        byte_widths = [_code_width(size) for size in sizes]
        by_width: dict[int, list[int]] = {}
        for position, table in enumerate(tables):
            by_width.setdefault(max(byte_widths[column] for column in table), []).append(position)
        self._groups = [
            _grouped(width, members, tables, sizes, cells=self._cells) for width, members in by_width.items()
        ]
        self._narrow = np.empty(BLOCK_ROWS, np.uint16)
        self._wide = np.empty(BLOCK_ROWS, np.uint32)
        self._flushed: list[Ints] | None = None
        self._pending = 0

    def add(self, columns: Sequence[Codes | None], start: int = 0, stop: int | None = None) -> None:
        """Counts rows start..stop of a chunk; columns that no table uses may be None."""
        if stop is None:
            stop = max((len(column) for column in columns if column is not None), default=0)
        for low in range(start, stop, BLOCK_ROWS):
            rows = min(BLOCK_ROWS, stop - low)
            if self._pending + rows > FLUSH_ROWS:
                self._flush()
            self._pending += rows
            for group in self._groups:
                for place, column in enumerate(group.columns):
                    codes = columns[column]
                    assert codes is not None
                    group.block[place, :rows] = codes[low : low + rows]
                _count_block(
                    group.block,
                    rows,
                    group.picks,
                    group.factors,
                    group.widths,
                    group.layout,
                    group.cells,
                    self._narrow,
                    self._wide,
                )

    def totals(self) -> Iterator[Ints]:
        """Flat counts of every table, in the order they were asked for; made one at a time, as they are taken."""
        places = {table: (group, row) for group in self._groups for row, table in enumerate(group.tables)}
        for table in range(len(self._cells)):
            group, row = places[table]
            start, size, copies = group.layout[row].tolist()
            run = group.cells[start : start + size * copies]
            fresh = run.reshape(copies, size).sum(axis=0, dtype=np.int64)
            yield fresh if self._flushed is None else self._flushed[table] + fresh

    def _flush(self) -> None:
        self._flushed = list(self.totals())
        for group in self._groups:
            group.cells[:] = 0
        self._pending = 0


def table_bytes(cells: int) -> int:
    """Memory of a table while rows are counted into it."""
    return cells * 4 * _copies(cells)


def _copies(cells: int) -> int:
    return COPIES if cells <= INTERLEAVED_CELLS else 1


def _code_width(size: int) -> int:
    return 1 if size <= 1 << 8 else 2 if size <= 1 << 16 else 4


def _grouped(
    width: int, members: Sequence[int], tables: Sequence[Sequence[int]], sizes: Sequence[int], *, cells: Sequence[int]
) -> _Group:
    columns = sorted({column for table in members for column in tables[table]})
    place = {column: position for position, column in enumerate(columns)}
    longest = max(len(tables[table]) for table in members)
    picks = np.zeros((len(members), longest), np.int64)
    factors = np.zeros((len(members), longest), np.int64)
    layout = np.zeros((len(members), 3), np.int64)
    end = 0
    for row, table in enumerate(members):
        factor = 1
        for axis in reversed(range(len(tables[table]))):
            picks[row, axis] = place[tables[table][axis]]
            factors[row, axis] = factor
            factor *= sizes[tables[table][axis]]
        copies = _copies(cells[table])
        layout[row] = end, cells[table], copies
        end += cells[table] * copies
    block = np.zeros((len(columns), BLOCK_ROWS), np.dtype(f"u{width}"))
    lengths = np.array([len(tables[table]) for table in members], np.int64)
    return _Group(tuple(members), tuple(columns), block, picks, factors, lengths, layout, np.zeros(end, np.uint32))


def flat_index(columns: Sequence[Codes], sizes: Sequence[int]) -> Ints:
    """Row-major cell number of each row in a table of fewer than 2⁶³ cells.

    >>> flat_index([np.array([1], np.uint8), np.array([2], np.uint8)], [2, 3]).tolist()
    [5]
    """
    if math.prod(sizes) >= 1 << 63:
        raise ValueError("cell numbers need fewer than 2⁶³ cells")
    index = np.zeros(len(columns[0]) if columns else 0, np.int64)
    for codes, size in zip(columns, sizes, strict=True):
        index *= size
        index += codes
    return index


@compiled()  # pragma: no cover
def look_up(values, table, codes):  # type: ignore[no-untyped-def]
    """codes[i] = table[values[i]], for values that are bytes or 16-bit words."""
    for i in range(values.size):
        codes[i] = table[values[i]]


@compiled()  # pragma: no cover
def _mix_into(state, codes):  # type: ignore[no-untyped-def]
    """One round of the splitmix64 finaliser per row; wraps modulo 2⁶⁴ on purpose."""
    for i in range(state.size):
        word = state[i] ^ np.uint64(codes[i])
        word = (word + np.uint64(0x9E3779B97F4A7C15)) & np.uint64(0xFFFFFFFFFFFFFFFF)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state[i] = word ^ (word >> np.uint64(31))


def hash_rows(columns: Sequence[Codes], key: int, rows: int) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each row's codes under a public key: equal codes, equal hash, on every platform."""
    state = np.full(rows, key, np.uint64)
    for codes in columns:
        _mix_into(state, codes)
    return state


@numba.njit(nogil=True, inline="always")  # pragma: no cover
def _sip_round(v0, v1, v2, v3):  # type: ignore[no-untyped-def]
    v0 = v0 + v1
    v1 = ((v1 << np.uint64(13)) | (v1 >> np.uint64(51))) ^ v0
    v0 = (v0 << np.uint64(32)) | (v0 >> np.uint64(32))
    v2 = v2 + v3
    v3 = ((v3 << np.uint64(16)) | (v3 >> np.uint64(48))) ^ v2
    v0 = v0 + v3
    v3 = ((v3 << np.uint64(21)) | (v3 >> np.uint64(43))) ^ v0
    v2 = v2 + v1
    v1 = ((v1 << np.uint64(17)) | (v1 >> np.uint64(47))) ^ v2
    v2 = (v2 << np.uint64(32)) | (v2 >> np.uint64(32))
    return v0, v1, v2, v3


@compiled()  # pragma: no cover
def _sip_texts(data, offsets, first, second, out):  # type: ignore[no-untyped-def]
    """SipHash-2-4 with 128 bits of output of each text; arithmetic wraps modulo 2⁶⁴ on purpose."""
    for row in range(out.shape[0]):
        start, stop = offsets[row], offsets[row + 1]
        v0 = first ^ np.uint64(0x736F6D6570736575)
        v1 = second ^ np.uint64(0x646F72616E646F6D) ^ np.uint64(0xEE)
        v2 = first ^ np.uint64(0x6C7967656E657261)
        v3 = second ^ np.uint64(0x7465646279746573)
        words = (stop - start) // 8
        for word in range(words + 1):
            message = np.uint64(0)
            place = start + 8 * word
            for byte in range(min(8, stop - place)):
                message |= np.uint64(data[place + byte]) << np.uint64(8 * byte)
            if word == words:
                message |= np.uint64((stop - start) & 0xFF) << np.uint64(56)
            v3 ^= message
            v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
            v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
            v0 ^= message
        v2 ^= np.uint64(0xEE)
        for half in range(2):
            for _ in range(4):
                v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
            out[row, half] = v0 ^ v1 ^ v2 ^ v3
            v1 ^= np.uint64(0xDD)


def hash_texts(data: npt.NDArray[np.uint8], offsets: Ints, key: tuple[int, int]) -> npt.NDArray[np.uint64]:
    """A keyed hash of 128 bits (SipHash-2-4) of each text, as two words; text i is data[offsets[i]:offsets[i + 1]].

    >>> [hex(word) for word in hash_texts(np.zeros(0, np.uint8), np.zeros(2, np.int64), (0, 0))[0].tolist()]
    ['0x7de0a38047d74950', '0xf4f2ced447ab0242']
    """
    out = np.empty((len(offsets) - 1, 2), np.uint64)
    _sip_texts(data, offsets, np.uint64(key[0]), np.uint64(key[1]), out)
    return out
