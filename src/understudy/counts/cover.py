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
TABLE_BYTES_PER_CELL = 12  # 4 while counting, 8 in the answer
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
    place = {name: position for position, name in enumerate(order)}
    members = np.zeros((len(wanted), len(order)), np.bool_)
    for row, clique in enumerate(wanted):
        members[row, [place[name] for name in clique]] = True
    logs = np.log([float(size) for size in domain.sizes.values()])
    candidates = [_greedy(members, logs, math.log(cells)) for cells in CACHE_CELLS]
    chosen = min(candidates, key=lambda tables: sum(_cost(float(np.exp(logs[table].sum()))) for table in tables))
    tables = tuple(Clique(order[column] for column in np.flatnonzero(table)) for table in chosen)
    return Cover(tables, _assign(members, np.array(chosen), wanted, [domain.cells(table) for table in tables]))


def _cost(cells: float) -> float:
    """Nanoseconds per row of one table (measured): writing beyond the first and second cache level is dearer."""
    return 0.5 if cells <= 1 << 12 else 0.65 if cells <= 1 << 14 else 0.8 if cells <= 1 << 16 else 1.6


def _greedy(members: Bools, logs: Floats, limit: float) -> list[Bools]:
    """Starts from the largest clique left, adds the column that completes most cliques per doubling of the table."""
    order = np.argsort(-(members @ logs), kind="stable")
    width = int(members.sum(axis=1).max())
    columns = np.full((len(members), width), -1, np.int64)
    for row, held in enumerate(members):
        places = np.flatnonzero(held)
        columns[row, : places.size] = places
    by_column = np.argsort(columns.ravel(), kind="stable")
    first = np.searchsorted(columns.ravel()[by_column], np.arange(logs.size + 1))
    return list(_grow_tables(columns, by_column // width, first, logs, (limit, MOST_COLUMNS), order))


@compiled()  # pragma: no cover
def _grow_tables(
    columns: Ints, holders: Ints, first: Ints, logs: Floats, limits: tuple[float, int], order: Ints
) -> Bools:
    """The tables; `holders[first[c] : first[c + 1]]` are the cliques of column c. Only those are looked at for it."""
    limit, most = limits
    cliques, count = columns.shape[0], logs.size
    tables = np.zeros((cliques, count), np.bool_)
    left, short = np.ones(cliques, np.bool_), np.zeros(cliques, np.int64)
    nearly, later = np.zeros(count, np.int64), np.zeros(count, np.int64)
    made = 0
    for start in order:
        if not left[start]:
            continue
        table = tables[made]
        made += 1
        nearly[:], later[:] = 0, 0
        for clique in range(cliques):  # how many columns each clique lacks
            if left[clique]:
                short[clique] = _lacking(columns[clique], table)
                _count(columns[clique], table, short[clique], nearly, later, 1)
        total, held, wanted = 0.0, 0, columns[start]
        while True:
            begun = held < wanted.size and wanted[held] >= 0
            chosen = wanted[held] if begun else _best(table, logs, limit - total, nearly, later)
            if not begun and (held >= most or chosen < 0):
                break
            for sign in (-1, 1):  # uncounted, then counted again with the column
                for place in range(first[chosen], first[chosen + 1]):
                    clique = holders[place]
                    if left[clique]:
                        short[clique] -= sign > 0
                        _count(columns[clique], table, short[clique], nearly, later, sign)
                table[chosen] = True
            total += logs[chosen]
            held += 1
        for clique in range(cliques):
            left[clique] = left[clique] and short[clique] > 0
    return tables[:made]


@compiled()  # pragma: no cover
def _lacking(clique: Ints, table: Bools) -> int:
    lacking = 0
    for column in clique:
        if column >= 0 and not table[column]:
            lacking += 1
    return lacking


@compiled()  # pragma: no cover
def _count(clique: Ints, table: Bools, short: int, nearly: Ints, later: Ints, sign: int) -> None:
    """Counts (or uncounts) a clique that lacks one or two columns, for each of these."""
    if short == 1 or short == 2:
        for column in clique:
            if column >= 0 and not table[column]:
                if short == 1:
                    nearly[column] += sign
                else:
                    later[column] += sign


@compiled()  # pragma: no cover
def _best(table: Bools, logs: Floats, room: float, nearly: Ints, later: Ints) -> int:
    """The column to add, or −1 if none fits and helps."""
    best, most = -1, 0.0
    for column in range(logs.size):
        if not table[column] and logs[column] <= room:
            gain = (nearly[column] + 0.01 * later[column]) / max(logs[column], 0.1)
            if gain > most:
                best, most = column, gain
    return best


def _assign(members: Bools, chosen: Bools, wanted: Sequence[Clique], cells: Sequence[int]) -> dict[Clique, int]:
    """Each clique from the smallest table that holds it."""
    # Whole numbers below 2²⁴ are exact as single floats, and those are multiplied fast.
    uncovered = members.astype(np.float32) @ (~chosen).astype(np.float32).T
    rank = np.empty(len(cells), np.int64)
    rank[sorted(range(len(cells)), key=lambda table: (cells[table], table))] = np.arange(len(cells))
    best = np.argmin(np.where(uncovered == 0, rank, len(cells)), axis=1)
    return {clique: int(table) for clique, table in zip(wanted, best, strict=True)}


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
    return (
        answer_bytes(domain, wanted)
        + max((domain.cells(clique) for clique in wanted), default=0) * TABLE_BYTES_PER_CELL
    )


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
        needed = domain.cells(table) * TABLE_BYTES_PER_CELL
        if not batches or used + needed > limit_bytes:
            batches.append([])
            used = 0
        batches[-1].append(position)
        used += needed
    return batches
