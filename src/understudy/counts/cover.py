"""Covers: which tables to count so that every wanted clique can be summed out of one of them, and in what memory.

Counting one table of four columns is cheaper than counting its six pairs, as long as it fits the processor's cache.
The choice depends on the domain and the cliques alone, never on rows, so it may be made (and refused) beforehand.
All cell numbers are exact Python integers.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.counts.kernels import table_bytes
from understudy.errors import ResourceError, UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain

__all__ = ["Cover", "answer_bytes", "check_memory", "counting_bytes", "cover_for", "passes", "project"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

CACHE_CELLS = (1 << 12, 1 << 14, 1 << 15)
MOST_COLUMNS = 12
MOST_CELLS = 1 << 32
ANSWER_BYTES_PER_CELL = 8


@dataclass(frozen=True, slots=True)
class Cover:
    """Tables to count, and for each wanted clique the position of the table it is summed from."""

    tables: tuple[Clique, ...]
    source: Mapping[Clique, int]


def cover_for(domain: Domain, cliques: Iterable[Clique]) -> Cover:
    """The cheapest of a few greedy covers of the cliques (the empty clique needs no table and is left out)."""
    wanted = sorted({clique for clique in cliques if clique}, key=lambda clique: (len(clique), clique))
    if not wanted:
        return Cover((), {})
    order = domain.columns
    logs = np.log([float(size) for size in domain.sizes.values()])
    asked = _Asked.of(wanted, order)
    candidates = [_greedy(asked, logs, math.log(cells)) for cells in CACHE_CELLS]
    padded = np.append(logs, 0.0)  # place -1 stands for no column
    chosen = min(candidates, key=lambda tables: sum(map(_cost, np.exp(padded[tables].sum(axis=1)).tolist())))
    tables = tuple(Clique(order[column] for column in sorted(table) if column >= 0) for table in chosen.tolist())
    cells = [domain.cells(table) for table in tables]
    by_size = np.array(sorted(range(len(cells)), key=lambda table: (cells[table], table)), np.int64)
    source = _smallest_holding(asked.columns, asked.first_columns(logs.size), chosen, by_size)
    return Cover(tables, dict(zip(wanted, source.tolist(), strict=True)))


@dataclass(frozen=True, slots=True)
class _Asked:
    """Cliques as places of columns, one row each, filled up with -1; nowhere is there a clique × column table."""

    columns: Ints

    @classmethod
    def of(cls, wanted: Sequence[Clique], order: Sequence[str]) -> "_Asked":
        place = {name: position for position, name in enumerate(order)}
        columns = np.full((len(wanted), max(map(len, wanted))), -1, np.int64)
        for row, clique in enumerate(wanted):
            columns[row, : len(clique)] = sorted(place[name] for name in clique)
        return cls(columns)

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


def _greedy(asked: _Asked, logs: Floats, limit: float) -> Ints:
    """Starts from the largest clique left, adds the column that completes most cliques per doubling of the table."""
    order = np.argsort(-np.append(logs, 0.0)[asked.columns].sum(axis=1), kind="stable")
    tables: Ints = _grow_tables(asked.columns, asked.holders(logs.size), logs, (limit, MOST_COLUMNS), order)
    return tables


@compiled()  # pragma: no cover
def _grow_tables(
    columns: Ints, by_column: tuple[Ints, Ints], logs: Floats, limits: tuple[float, int], order: Ints
) -> Ints:
    """The tables, as places of columns filled up with -1; `holders[first[c] : first[c + 1]]` are the cliques of c.

    `counts` tells, for each column, how many cliques left lack it alone, and how many it and one more. Those that
    share no column with a table are counted once for all tables, so that a table costs only the cliques it touches.
    """
    (holders, first), (limit, most) = by_column, limits
    cliques, width = columns.shape
    holders, last = holders.copy(), first[1:].copy()  # cliques that are covered leave their columns' lists
    tables = np.full((cliques, max(width, most)), -1, np.int64)
    counts, untouched = np.zeros((2, logs.size), np.int64), np.zeros((2, logs.size), np.int64)
    left, nothing = np.ones(cliques, np.bool_), np.zeros(logs.size, np.bool_)
    short = np.zeros(cliques, np.int64)
    for clique in range(cliques):
        short[clique] = _lacking(columns[clique], nothing)
        _count(columns[clique], nothing, short[clique], untouched, 1)
    sizes, table = short.copy(), nothing.copy()
    made, least = 0, logs.min()
    for start in order:
        if not left[start]:
            continue
        total, held, wanted = 0.0, sizes[start], columns[start]
        for column in wanted[:held]:
            total += logs[column]
        tables[made, :held] = wanted[:held]
        if total + least <= limit:  # otherwise nothing can be added, and nothing needs counting
            counts[:] = untouched
            for column in wanted[:held]:
                _add_column(column, table, holders[first[column] : last[column]], (columns, short), counts)
            while held < most:
                chosen = _best(table, logs, limit - total, counts)
                if chosen < 0:
                    break
                _add_column(chosen, table, holders[first[chosen] : last[chosen]], (columns, short), counts)
                total += logs[chosen]
                tables[made, held] = chosen
                held += 1
        table[tables[made, :held]] = True
        for column in tables[made, :held]:
            spot = slice(first[column], last[column])
            last[column] = first[column] + _leave(holders[spot], table, (columns, short, sizes), left, untouched)
        table[:] = False
        made += 1
    return tables[:made].copy()


@compiled()  # pragma: no cover
def _add_column(chosen: int, table: Bools, holders: Ints, cliques: tuple[Ints, Ints], counts: Ints) -> None:
    """Puts a column into the table: its cliques are uncounted, then counted again with what they lack now."""
    columns, short = cliques
    for clique in holders:
        _count(columns[clique], table, short[clique], counts, -1)
    table[chosen] = True
    for clique in holders:
        short[clique] -= 1
        _count(columns[clique], table, short[clique], counts, 1)


@compiled()  # pragma: no cover
def _leave(holders: Ints, table: Bools, cliques: tuple[Ints, Ints, Ints], left: Bools, untouched: Ints) -> int:
    """Drops what the table covers from a column's cliques, moves the rest to the front and says how many they are."""
    columns, short, sizes = cliques
    kept = 0
    for clique in holders:
        short[clique] = sizes[clique]
        if _lacking(columns[clique], table) > 0:
            holders[kept] = clique
            kept += 1
        elif left[clique]:
            left[clique] = False
            if sizes[clique] <= 2:
                untouched[sizes[clique] - 1, columns[clique, : sizes[clique]]] -= 1
    return kept


@compiled()  # pragma: no cover
def _lacking(clique: Ints, table: Bools) -> int:
    lacking = 0
    for column in clique:
        if column >= 0 and not table[column]:
            lacking += 1
    return lacking


@compiled()  # pragma: no cover
def _count(clique: Ints, table: Bools, short: int, counts: Ints, sign: int) -> None:
    """Counts (or uncounts) a clique that lacks one or two columns, for each of these."""
    if short == 1 or short == 2:
        for column in clique:
            if column >= 0 and not table[column]:
                counts[short - 1, column] += sign


@compiled()  # pragma: no cover
def _best(table: Bools, logs: Floats, room: float, counts: Ints) -> int:
    """The column to add, or −1 if none fits and helps."""
    best, most = -1, 0.0
    nearly, later = counts
    for column in range(logs.size):
        if not table[column] and logs[column] <= room:
            gain = (nearly[column] + 0.01 * later[column]) / max(logs[column], 0.1)
            if gain > most:
                best, most = column, gain
    return best


@compiled()  # pragma: no cover
def _smallest_holding(columns: Ints, by_first: tuple[Ints, Ints], tables: Ints, order: Ints) -> Ints:
    """For each clique the first table in this order that holds it; only cliques that begin in a table are tried."""
    starting, first = by_first
    found = np.full(columns.shape[0], -1, np.int64)
    held = np.zeros(first.size - 1, np.bool_)
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
    return found


def project(domain: Domain, table: Clique, counts: Ints, clique: Clique) -> Ints:
    """Flat counts of a clique summed out of the counts of a table that holds its columns (both in domain order)."""
    away = tuple(axis for axis, name in enumerate(table) if name not in set(clique))
    return counts.reshape(domain.shape(table)).sum(axis=away).ravel() if away else counts


def answer_bytes(domain: Domain, cliques: Iterable[Clique]) -> int:
    """Memory for the counts handed back."""
    return sum(domain.cells(clique) for clique in set(cliques)) * ANSWER_BYTES_PER_CELL


def counting_bytes(domain: Domain, cliques: Iterable[Clique]) -> int:
    """Memory for the answers and for the largest single table, the least that counting these cliques needs."""
    wanted = set(cliques)
    largest = max((domain.cells(clique) for clique in wanted), default=0)
    return answer_bytes(domain, wanted) + table_bytes(largest) + largest * ANSWER_BYTES_PER_CELL


def check_memory(domain: Domain, cliques: Iterable[Clique], limit_bytes: int) -> None:
    """Raises ResourceError, from the domain alone, when these cliques cannot be counted within the limit."""
    wanted = list(cliques)
    for clique in wanted:
        unknown = [name for name in clique if name not in domain.sizes]
        if unknown:
            raise UsageError(f"clique {clique!r}", f"column {unknown[0]!r} is not part of the domain.")
    needed = counting_bytes(domain, wanted)
    if needed > limit_bytes or any(domain.cells(clique) > MOST_CELLS for clique in wanted):
        largest = max(wanted, key=domain.cells)
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
