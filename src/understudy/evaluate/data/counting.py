"""Counts of several tables over the same cliques, batch by batch, so that thousands of tables fit in memory.

Cells that are empty in every table say nothing to a distance, so tables too large to hold are counted over the cells
that occur in at least one of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.counts.cover import cover_for, project
from understudy.counts.kernels import TableCounter, flat_index
from understudy.evaluate.data.rows import Rows
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain

__all__ = ["Counted", "counted", "total_variation"]

Ints = npt.NDArray[np.int64]

DENSE_CELLS = 1 << 22
LEAST_DENSE_CELLS = 1 << 14
BATCH_CELLS = 1 << 24
BATCH_CLIQUES = 400


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts of one clique in every table, over the same cells.

    `cells` holds flat row-major cell numbers, or None when the counts are of all cells in order.
    """

    clique: Clique
    cells: Ints | None
    counts: tuple[Ints, ...]


def counted(parts: Sequence[Rows], cliques: Sequence[Clique]) -> Iterator[Counted]:
    """The cliques with their counts in every part, in the order asked for."""
    domain = parts[0].domain
    # Sorting a few thousand cells that occur beats adding up millions that do not.
    dense = min(DENSE_CELLS, max(LEAST_DENSE_CELLS, 8 * max(part.count for part in parts)))
    for batch in _batches(domain, cliques, dense):
        if domain.cells(batch[0]) > dense:
            yield _occupied(parts, batch[0])
            continue
        cover = cover_for(domain, batch)
        totals = [_totals(part, cover.tables) for part in parts]
        for clique in batch:
            place = cover.source[clique]
            counts = tuple(project(domain, cover.tables[place], total[place], clique) for total in totals)
            yield Counted(clique, None, counts)


def _batches(domain: Domain, cliques: Sequence[Clique], dense: int) -> Iterator[list[Clique]]:
    """Runs of cliques small enough to count together; a table too large to hold is a run of its own."""
    batch: list[Clique] = []
    used = 0
    for clique in cliques:
        cells = domain.cells(clique)
        large = cells > dense
        if batch and (large or used + cells > BATCH_CELLS or len(batch) >= BATCH_CLIQUES):
            yield batch
            batch, used = [], 0
        if large:
            yield [clique]
            continue
        batch.append(clique)
        used += cells
    if batch:
        yield batch


def _totals(rows: Rows, tables: Sequence[Clique]) -> list[Ints]:
    columns = [name for name in rows.domain.columns if any(name in table for table in tables)]
    place = {name: position for position, name in enumerate(columns)}
    counter = TableCounter(rows.domain.shape(columns), [[place[name] for name in table] for table in tables])
    counter.add([rows.codes[name] for name in columns], 0, rows.count)
    return list(counter.totals())


def _occupied(parts: Sequence[Rows], clique: Clique) -> Counted:
    sizes = parts[0].domain.shape(clique)
    indices = [flat_index([part.codes[name] for name in clique], sizes) for part in parts]
    cells, places = np.unique(np.concatenate(indices), return_inverse=True)
    starts = np.cumsum([0, *(part.count for part in parts)])
    spans = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    counts = tuple(np.bincount(places[low:high], minlength=len(cells)).astype(np.int64) for low, high in spans)
    return Counted(clique, cells, counts)


def total_variation(first: Ints, second: Ints) -> float:
    """Half the L1 distance of the two tables of shares: the share of rows that would have to move.

    >>> total_variation(np.array([5, 3, 2, 0]), np.array([6, 1, 0, 3]))
    0.4
    """
    return min(1.0, float(np.abs(first / first.sum() - second / second.sum()).sum() / 2))
