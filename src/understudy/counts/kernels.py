"""Counting kernels: many tables in one pass over the rows, and which tables to count so that all can be summed out.

A block of rows is copied once into a column-major buffer, and counted into one table after the other, so that a table
stays in the processor's cache for the block. The cell numbers are computed strip by strip, in the narrowest integer
that holds them (a loop the compiler vectorises), and then counted in a second loop. Tables of a few cells get four
copies side by side, because successive rows that hit the same cell would otherwise wait for each other. Counts are kept
in 32 bits and moved to 64 before they could overflow. Large tables drive each other out of the cache, so there blocks
are longer: each table is fetched once a block.

Kernels do not know what a code means: they see integers below the stated sizes and nothing else.

Covers are the tables that are counted, so that every wanted clique can be summed out of one of them. Counting one table
of four columns is cheaper than counting its six pairs, as long as it fits the processor's cache. The choice depends on
the domain and the cliques alone, never on rows, so it may be made (and refused) beforehand. All cell numbers are exact
Python integers.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.arrays import Bools, Bytes, Floats, Ints, Unsigned, Words
from understudy.compiled import compiled, within_kernels
from understudy.domain import Clique, Domain
from understudy.errors import ResourceError, UsageError

BLOCK_ROWS, LEAST_BLOCK_ROWS, BLOCK_VALUES = 131_072, 32_768, 1 << 22
LARGE_CELLS, LONG_BLOCK_ROWS, LONG_BLOCK_VALUES = 1 << 15, 524_288, 1 << 23
STRIP_ROWS = 8_192
INTERLEAVED_CELLS = 512  # tables up to this size are kept four times
COPIES = 4
# Even if all of them fall in one cell, its 32 bits do not wrap.
FLUSH_ROWS = (1 << 32) - 1
# Cell numbers are 32-bit numbers in the kernels.
MOST_CELLS = 1 << 32


@compiled(allocates=False)  # pragma: no cover
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


@compiled(allocates=False)  # pragma: no cover
def _tally(index, rows, cells):  # type: ignore[no-untyped-def]
    for i in range(rows):
        # No bounds are checked here. A number beyond the stated sizes would write into other memory, so rows without a
        # code have to be gone by now (`rows_with_codes`).
        cells[np.intp(index[i])] += np.uint32(1)


@compiled(allocates=False)  # pragma: no cover
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


@compiled(allocates=False)  # pragma: no cover
def _count_block(block, rows, picks, factors, widths, layout, cells, narrow, wide):  # type: ignore[no-untyped-def]
    for table in range(widths.size):
        columns = picks[table, : widths[table]]
        weights = factors[table, : widths[table]]
        start, size, copies = layout[table]
        target = cells[start : start + size * copies]
        for low in range(0, rows, narrow.size):
            strip = block[:, low : min(low + narrow.size, rows)]
            here = strip.shape[1]
            # Sixteen bits number all cells, so twice as many rows fit each vector instruction.
            if size <= 65536:
                _locate(strip, here, columns, weights, narrow)
                if copies == 1:
                    _tally(narrow, here, target)
                else:
                    _tally_interleaved(narrow, here, target)
            else:
                _locate(strip, here, columns, weights, wide)
                _tally(wide, here, target)


@dataclass(frozen=True, slots=True)
class _Group:
    """Tables whose widest column has the same code width, laid out in one run of cells."""

    tables: tuple[int, ...]
    columns: tuple[int, ...]
    block: Unsigned
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
        self._block_rows = min((group.block.shape[1] for group in self._groups), default=BLOCK_ROWS)
        self._narrow = np.empty(STRIP_ROWS, np.uint16)
        self._wide = np.empty(STRIP_ROWS, np.uint32)
        self._flushed: list[Ints] | None = None
        self._pending = 0
        self._held = 0

    def add(self, columns: Sequence[Unsigned | None], start: int = 0, stop: int | None = None) -> None:
        """Counts rows start..stop of a chunk; columns that no table uses may be None."""
        if stop is None:
            stop = max((len(column) for column in columns if column is not None), default=0)
        low = start
        while low < stop:
            rows = min(self._block_rows - self._held, stop - low)
            for group in self._groups:
                for place, column in enumerate(group.columns):
                    codes = columns[column]
                    assert codes is not None
                    group.block[place, self._held : self._held + rows] = codes[low : low + rows]
            self._held += rows
            low += rows
            if self._held == self._block_rows:
                self._count_held()

    def totals(self) -> Iterator[Ints]:
        """Flat counts of every table, in the order they were asked for; made one at a time, as they are taken."""
        self._count_held()
        yield from self._sums()

    def _count_held(self) -> None:
        """Counts the rows of the block, which is empty then."""
        # Before they are counted, because afterwards the 32 bits could have wrapped.
        if self._pending + self._held > FLUSH_ROWS:
            self._flush()
        self._pending += self._held
        for group in self._groups if self._held else ():
            _count_block(
                group.block,
                self._held,
                group.picks,
                group.factors,
                group.widths,
                group.layout,
                group.cells,
                self._narrow,
                self._wide,
            )
        self._held = 0

    def _sums(self) -> Iterator[Ints]:
        places = {table: (group, row) for group in self._groups for row, table in enumerate(group.tables)}
        for table in range(len(self._cells)):
            group, row = places[table]
            start, size, copies = group.layout[row].tolist()
            run = group.cells[start : start + size * copies]
            # In 64 bits from here on: this is what noise is added to.
            fresh = run.reshape(copies, size).sum(axis=0, dtype=np.int64)
            yield fresh if self._flushed is None else self._flushed[table] + fresh

    def _flush(self) -> None:
        self._flushed = list(self._sums())
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
    is_long = end > LARGE_CELLS * len(members)
    most, values = (LONG_BLOCK_ROWS, LONG_BLOCK_VALUES) if is_long else (BLOCK_ROWS, BLOCK_VALUES)
    rows = max(LEAST_BLOCK_ROWS, min(most, values // len(columns)))
    block = np.zeros((len(columns), rows), np.dtype(f"u{width}"))
    lengths = np.array([len(tables[table]) for table in members], np.int64)
    return _Group(tuple(members), tuple(columns), block, picks, factors, lengths, layout, np.zeros(end, np.uint32))


def flat_index(columns: Sequence[Unsigned], sizes: Sequence[int]) -> Ints:
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


@compiled(allocates=False)  # pragma: no cover
def _mix_into(state, codes):  # type: ignore[no-untyped-def]
    """One round of the splitmix64 finaliser per row; wraps modulo 2⁶⁴ on purpose."""
    for i in range(state.size):
        word = state[i] ^ np.uint64(codes[i])
        word = (word + np.uint64(0x9E3779B97F4A7C15)) & np.uint64(0xFFFFFFFFFFFFFFFF)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state[i] = word ^ (word >> np.uint64(31))


def hash_rows(columns: Sequence[Unsigned], key: int, rows: int) -> Words:
    """A 64-bit hash of each row's codes under a public key: equal codes, equal hash, on every platform."""
    # Not a cryptographic hash, and it need not be one: it orders the rows of one unit, under a key that is public.
    state = np.full(rows, key, np.uint64)
    for codes in columns:
        _mix_into(state, codes)
    return state


@within_kernels(inline="always")  # pragma: no cover
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


@compiled(allocates=False)  # pragma: no cover
def _sip_texts(data, offsets, first, second, out):  # type: ignore[no-untyped-def]
    """SipHash-2-4 with 128 bits of output of each text; arithmetic wraps modulo 2⁶⁴ on purpose."""
    for row in range(out.shape[0]):
        start, stop = offsets[row], offsets[row + 1]
        # SipHash's own constants. Ids come from the table, so somebody may have chosen them: only a keyed hash resists
        # that.
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


def hash_texts(data: Bytes, offsets: Ints, key: tuple[int, int]) -> Words:
    """A keyed hash of 128 bits (SipHash-2-4) of each text, as two words; text i is data[offsets[i]:offsets[i + 1]].

    >>> [hex(word) for word in hash_texts(np.zeros(0, np.uint8), np.zeros(2, np.int64), (0, 0))[0].tolist()]
    ['0x7de0a38047d74950', '0xf4f2ced447ab0242']
    """
    out = np.empty((len(offsets) - 1, 2), np.uint64)
    _sip_texts(data, offsets, np.uint64(key[0]), np.uint64(key[1]), out)
    return out


CACHE_CELLS = (1 << 12, 1 << 14, 1 << 15)
MOST_COLUMNS = 12
ANSWER_BYTES_PER_CELL = 8


@dataclass(frozen=True, slots=True)
class Cover:
    """Tables to count, and for each wanted clique the position of the table it is summed from."""

    tables: tuple[Clique, ...]
    source: Mapping[Clique, int]

    @property
    def wanted(self) -> list[list[Clique]]:
        """The cliques that are summed from each table."""
        found: list[list[Clique]] = [[] for _ in self.tables]
        for clique, position in self.source.items():
            found[position].append(clique)
        return found


def cover_for(domain: Domain, cliques: Iterable[Clique]) -> Cover:
    """The cheapest of a few greedy covers of the cliques (the empty clique needs no table and is left out)."""
    wanted = sorted({clique for clique in cliques if clique}, key=lambda clique: (len(clique), clique))
    if not wanted:
        return Cover((), {})
    order = domain.columns
    logs = np.log([float(size) for size in domain.sizes.values()])
    queries = _Cliques.of(wanted, order)
    candidates = [_greedy(queries, logs, math.log(cells)) for cells in CACHE_CELLS]
    padded = np.append(logs, 0.0)  # place -1 stands for no column
    chosen = min(candidates, key=lambda tables: sum(map(_cost, np.exp(padded[tables].sum(axis=1)).tolist())))
    tables = tuple(Clique(order[column] for column in sorted(table) if column >= 0) for table in chosen.tolist())
    cells = [domain.cells(table) for table in tables]
    by_size = np.array(sorted(range(len(cells)), key=lambda table: (cells[table], table)), np.int64)
    source = np.full(len(wanted), -1, np.int64)
    marks = np.zeros(logs.size, np.bool_)
    _smallest_holding(queries.columns, *queries.first_columns(logs.size), chosen, by_size, marks, source)
    return Cover(tables, dict(zip(wanted, source.tolist(), strict=True)))


@dataclass(frozen=True, slots=True)
class _Cliques:
    """Cliques as places of columns, one row each, filled up with -1; nowhere is there a clique × column table."""

    columns: Ints

    @classmethod
    def of(cls, wanted: Sequence[Clique], order: Sequence[str]) -> "_Cliques":
        place = {name: position for position, name in enumerate(order)}
        width = max(map(len, wanted))
        rows = [[*sorted([place[name] for name in clique]), *[-1] * (width - len(clique))] for clique in wanted]
        return cls(np.array(rows, np.int64))

    def holders(self, count: int) -> tuple[Ints, Ints]:
        """Cliques column by column, and where those of each column begin (and the last ones end)."""
        flat = self.columns.ravel()
        by_column = np.argsort(flat, kind="stable")
        return by_column // self.columns.shape[1], np.searchsorted(flat[by_column], np.arange(count + 1))

    def first_columns(self, count: int) -> tuple[Ints, Ints]:
        """The same with every clique under its first column only."""
        first = self.columns[:, 0]
        by_column = np.argsort(first, kind="stable")
        return by_column, np.searchsorted(first[by_column], np.arange(count + 1))


def _cost(cells: float) -> float:
    """Nanoseconds per row of one table (measured): writing beyond the first and second cache level is dearer."""
    return 0.5 if cells <= 1 << 12 else 0.65 if cells <= 1 << 14 else 0.8 if cells <= 1 << 16 else 1.6


def _greedy(queries: _Cliques, logs: Floats, limit: float) -> Ints:
    """Starts from the largest clique left, adds the column that completes most cliques per doubling of the table."""
    order = np.argsort(-np.append(logs, 0.0)[queries.columns].sum(axis=1), kind="stable")
    cliques, width = queries.columns.shape
    holders, first = queries.holders(logs.size)
    tables = np.full((cliques, max(width, MOST_COLUMNS)), -1, np.int64)
    # All memory is made here: arrays made or assigned as a whole in a kernel take it many times as long to compile.
    columns, marks = np.zeros((5, logs.size), np.int64), np.zeros(logs.size, np.bool_)
    columns[4] = first[1:]
    lists = (holders.copy(), np.ones(cliques, np.bool_), np.zeros((2, cliques), np.int64))
    made = _grow_tables(queries.columns, first, logs, limit, order, float(logs.min()), tables, columns, marks, lists)
    return tables[:made]


@compiled(allocates=False)  # pragma: no cover
def _grow_tables(columns, first, logs, limit, order, least, tables, counts, table, lists):  # type: ignore[no-untyped-def]
    """Fills the tables, as places of columns, and says how many they are.

    `holders[first[c] : last[c]]` are the cliques of column c; those that are covered leave their columns' lists. The
    first two rows of `counts` tell, for each column, how many cliques left lack it alone, and how many it and one more;
    the next two the same of an empty table. So a table costs only the cliques it touches. The fifth row is `last`.
    """
    holders, left, (short, sizes) = lists
    untouched, last = counts[2:4], counts[4]
    for clique in range(columns.shape[0]):
        short[clique] = sizes[clique] = _lacking(columns[clique], table)
        _count(columns[clique], table, short[clique], untouched, 1)
    made = 0
    for start in order:
        if not left[start]:
            continue
        total, held, new = 0.0, sizes[start], tables[made]
        for place in range(held):
            new[place] = columns[start, place]
            total += logs[new[place]]
        if total + least <= limit:  # otherwise nothing can be added, and nothing needs counting
            for column in range(logs.size):
                counts[0, column], counts[1, column] = untouched[0, column], untouched[1, column]
            for place in range(held):
                _add_column(new[place], table, holders[first[new[place]] : last[new[place]]], columns, short, counts)
            while held < MOST_COLUMNS:
                chosen = _best(table, logs, limit - total, counts)
                if chosen < 0:
                    break
                _add_column(chosen, table, holders[first[chosen] : last[chosen]], columns, short, counts)
                total += logs[chosen]
                new[held] = chosen
                held += 1
        for place in range(held):
            table[new[place]] = True
        for place in range(held):
            column = new[place]
            rest = holders[first[column] : last[column]]
            last[column] = first[column] + _leave(rest, table, columns, short, sizes, left, untouched)
        for place in range(held):
            table[new[place]] = False
        made += 1
    return made


@compiled(allocates=False)  # pragma: no cover
def _add_column(chosen, table, holders, columns, short, counts):  # type: ignore[no-untyped-def]
    """Puts a column into the table: its cliques are uncounted, then counted again with what they lack now."""
    for clique in holders:
        _count(columns[clique], table, short[clique], counts, -1)
    table[chosen] = True
    for clique in holders:
        short[clique] -= 1
        _count(columns[clique], table, short[clique], counts, 1)


@compiled(allocates=False)  # pragma: no cover
def _leave(holders, table, columns, short, sizes, left, untouched):  # type: ignore[no-untyped-def]
    """Drops what the table covers from a column's cliques, moves the rest to the front and says how many they are."""
    kept = 0
    for clique in holders:
        short[clique] = sizes[clique]
        if _lacking(columns[clique], table) > 0:
            holders[kept] = clique
            kept += 1
        elif left[clique]:
            left[clique] = False
            for place in range(sizes[clique] if sizes[clique] <= 2 else 0):
                untouched[sizes[clique] - 1, columns[clique, place]] -= 1
    return kept


@compiled(allocates=False)  # pragma: no cover
def _lacking(clique: Ints, table: Bools) -> int:
    lacking = 0
    for column in clique:
        if column >= 0 and not table[column]:
            lacking += 1
    return lacking


@compiled(allocates=False)  # pragma: no cover
def _count(clique: Ints, table: Bools, short: int, counts: Ints, sign: int) -> None:
    """Counts (or uncounts) a clique that lacks one or two columns, for each of these."""
    if short == 1 or short == 2:
        for column in clique:
            if column >= 0 and not table[column]:
                counts[short - 1, column] += sign


@compiled(allocates=False)  # pragma: no cover
def _best(table: Bools, logs: Floats, limit: float, counts: Ints) -> int:
    """The column to add, or −1 if none fits and helps."""
    best, most = -1, 0.0
    nearly, later = counts[0], counts[1]
    for column in range(logs.size):
        if not table[column] and logs[column] <= limit:
            # Completing a clique counts a hundred times as much as coming near one; a column of one code doubles
            # nothing, and must not divide by 0.
            gain = (nearly[column] + 0.01 * later[column]) / max(logs[column], 0.1)
            if gain > most:
                best, most = column, gain
    return best


@compiled(allocates=False)  # pragma: no cover
def _smallest_holding(columns, starting, first, tables, order, held, found):  # type: ignore[no-untyped-def]
    """For each clique the first table in this order that holds it; only cliques that begin in a table are tried."""
    for table in order:
        for column in tables[table]:
            if column >= 0:
                held[column] = True
        for column in tables[table]:
            if column >= 0:
                for clique in starting[first[column] : first[column + 1]]:
                    if found[clique] < 0 and _lacking(columns[clique], held) == 0:
                        found[clique] = table
        for column in tables[table]:
            if column >= 0:
                held[column] = False


def projected(domain: Domain, table: Clique, counts: Ints, cliques: Sequence[Clique]) -> Iterator[tuple[Clique, Ints]]:
    """Each clique with its flat counts, summed out of the counts of a table that holds its columns.

    All are summed on one way through the table. Columns stand in domain order, of the table as of the cliques.
    """
    smaller = [clique for clique in cliques if len(clique) < len(table)]
    axis = {name: place for place, name in enumerate(table)}
    strides = np.zeros((len(smaller), len(table)), np.int64)
    starts = np.zeros(len(smaller) + 1, np.int64)
    for row, clique in enumerate(smaller):
        cells = 1
        for name in reversed(clique):
            strides[row, axis[name]] = cells
            cells *= domain.sizes[name]
        starts[row + 1] = starts[row] + cells
    found = np.zeros(starts[-1], np.int64)
    if smaller:
        code = np.zeros(len(table), np.int64)
        _sum_out(counts, np.array(domain.shape(table), np.int64), strides, starts[:-1].copy(), code, found)
    yield from zip(smaller, (found[start:end] for start, end in itertools.pairwise(starts.tolist())), strict=True)
    yield from ((clique, counts) for clique in cliques if len(clique) == len(table))


@compiled(allocates=False)  # pragma: no cover
def _sum_out(counts, sizes, strides, places, code, found):  # type: ignore[no-untyped-def]
    """Adds every count to its cell of each clique; `places` are the cells of the present codes, moved along."""
    last = sizes.size - 1
    width = sizes[last]
    for start in range(0, counts.size, width):
        for clique in range(places.size):
            place = places[clique]
            if strides[clique, last]:  # the last column of both, whose cells lie side by side
                for cell in range(width):
                    found[place + cell] += counts[start + cell]
            else:
                for cell in range(width):
                    found[place] += counts[start + cell]
        axis = last - 1
        while axis >= 0:  # the next codes: the last column but one moves on, those that end begin anew
            code[axis] += 1
            if code[axis] < sizes[axis]:
                for clique in range(places.size):
                    places[clique] += strides[clique, axis]
                break
            for clique in range(places.size):
                places[clique] -= strides[clique, axis] * (sizes[axis] - 1)
            code[axis] = 0
            axis -= 1


def counting_bytes(domain: Domain, cliques: Iterable[Clique]) -> int:
    """Memory for the answers and for the largest single table, the least that counting these cliques needs."""
    cells = [domain.cells(clique) for clique in set(cliques)]
    largest = max(cells, default=0)
    return (sum(cells) + largest) * ANSWER_BYTES_PER_CELL + table_bytes(largest)


def check_memory(domain: Domain, cliques: Iterable[Clique], limit_bytes: int) -> None:
    """Raises ResourceError, from the domain alone, when these cliques cannot be counted within the limit."""
    wanted = list(cliques)
    for name in {name for clique in wanted for name in clique}:
        if name not in domain.sizes:
            clique = next(clique for clique in wanted if name in clique)
            raise UsageError(f"clique {clique!r}", f"column {name!r} is not part of the domain.")
    # From sizes alone, so that whether it is refused can be known before anything is charged.
    needed = counting_bytes(domain, wanted)
    largest = max(wanted, key=domain.cells, default=Clique())
    if needed > limit_bytes or domain.cells(largest) > MOST_CELLS:
        where = f"counting {len(set(wanted))} tables, the largest over {', '.join(largest)}"
        fix = "Ask about fewer columns at once, give columns fewer bins or labels, or raise the memory limit."
        raise ResourceError(where, needed, limit_bytes, fix)


def passes(domain: Domain, tables: Sequence[Clique], limit_bytes: int) -> list[list[int]]:
    """Positions of the tables, split into as few passes over the rows as the limit allows (one table at least)."""
    batches: list[list[int]] = []
    used = 0
    for position, table in enumerate(tables):
        needed = table_bytes(domain.cells(table))
        if not batches or used + needed > limit_bytes:
            batches.append([])
            used = 0
        batches[-1].append(position)
        used += needed
    return batches
