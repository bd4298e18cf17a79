"""Partial counts: vectors of integers in pieces, and how very many of them become one.

Where rows are counted in many places, every place has a vector of counts for each table that was asked about, and what
is wanted is their sum. A vector travels in pieces of at most `PIECE_CELLS` cells, in the narrowest integers that hold
it, and pieces without a row do not travel at all. Pieces of the same cells meet in one place, which holds one total for
each of them and none of the parts: so nobody, and the driver of a cluster least of all, ever holds the vectors of all
places. Where there are more places than `FAN_IN`, they are merged group by group first, and then the groups.

Sums are exact: 64-bit integers, whatever the order. Everything here is exact and therefore private.
"""

import abc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from understudy.arrays import Ints
from understudy.counts.source import OccupiedCells
from understudy.counts.streaming import SortedCells

PIECE_CELLS = 1 << 16
FAN_IN = 64
CELL_RANGES = 256


@dataclass(frozen=True, slots=True)
class PartialCounts:
    """Counts of some cells of one vector: `width` bytes each, from cell `start` on, little end first."""

    vector: int
    start: int
    width: int
    values: bytes


class Merge(abc.ABC):
    """Adds up pieces as they come."""

    @abc.abstractmethod
    def add(self, piece: PartialCounts) -> None:
        """Takes a piece in."""

    @abc.abstractmethod
    def pieces(self) -> Iterator[PartialCounts]:
        """The sum so far, in pieces."""


def pieces_of(vectors: Iterable[Ints]) -> Iterator[PartialCounts]:
    """The vectors in pieces, without those that hold no row.

    >>> [(piece.vector, piece.start, piece.width) for piece in pieces_of([np.array([0, 0]), np.array([1, 300])])]
    [(1, 0, 2)]
    """
    for number, vector in enumerate(vectors):
        for start in range(0, len(vector), PIECE_CELLS):
            cells = vector[start : start + PIECE_CELLS]
            if cells.any():
                yield _piece(number, start, cells)


def _piece(vector: int, start: int, cells: Ints) -> PartialCounts:
    width = np.min_scalar_type(int(cells.max())).itemsize
    return PartialCounts(vector, start, width, cells.astype(f"<u{width}").tobytes())


class VectorMerge(Merge):
    """Adds up pieces of vectors, with one total per run of cells.

    >>> merge = VectorMerge()
    >>> for piece in pieces_of([np.array([250, 0])]):
    ...     merge.add(piece)
    ...     merge.add(piece)
    >>> merge.vector(0, 2).tolist()
    [500, 0]
    """

    def __init__(self) -> None:
        self._totals: dict[tuple[int, int], Ints] = {}

    def add(self, piece: PartialCounts) -> None:
        """Takes a piece in."""
        cells = np.frombuffer(piece.values, f"<u{piece.width}").astype(np.int64)
        total = self._totals.get((piece.vector, piece.start))
        if total is None:
            self._totals[piece.vector, piece.start] = cells
        else:
            total += cells

    def pieces(self) -> Iterator[PartialCounts]:
        """The sum so far, in pieces."""
        for (vector, start), total in self._totals.items():
            yield _piece(vector, start, total)

    def vector(self, number: int, cells: int) -> Ints:
        """One vector as a whole; its pieces are given away."""
        whole = np.zeros(cells, np.int64)
        for start in range(0, cells, PIECE_CELLS):
            part = self._totals.pop((number, start), None)
            if part is not None:
                whole[start : start + len(part)] = part
        return whole


class CellMerge(Merge):
    """Adds up occupied cells of tables too large to hold; a piece holds cells of one range, and then their counts."""

    def __init__(self) -> None:
        self._ranges: dict[int, SortedCells] = {}

    def add(self, piece: PartialCounts) -> None:
        """Takes a piece in."""
        indices, counts = np.frombuffer(piece.values, "<i8").reshape(2, -1).astype(np.int64)
        self._ranges.setdefault(piece.start, SortedCells()).add(indices, counts)

    def pieces(self) -> Iterator[PartialCounts]:
        """The sum so far, in pieces."""
        for start, cells in self._ranges.items():
            found = cells.all()
            yield _cells_piece(start, found.indices, found.counts)

    def cells(self) -> OccupiedCells:
        """All cells in increasing order."""
        whole = SortedCells()
        for one in self._ranges.values():
            found = one.all()
            whole.add(found.indices, found.counts)
        return whole.all()


def pieces_of_cells(found: OccupiedCells) -> Iterator[PartialCounts]:
    """Occupied cells in pieces, by the remainder of their number: which piece a cell is in depends on nothing else."""
    ranges = found.indices % CELL_RANGES
    order = np.argsort(ranges, kind="stable")
    ends = np.cumsum(np.bincount(ranges, minlength=CELL_RANGES)).tolist()
    for start, (low, high) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        if high > low:
            here = order[low:high]
            yield _cells_piece(start, found.indices[here], found.counts[here])


def _cells_piece(start: int, indices: Ints, counts: Ints) -> PartialCounts:
    return PartialCounts(0, start, 8, np.concatenate([indices, counts]).astype("<i8").tobytes())


def merge_in_groups(partials: Iterable[Iterable[PartialCounts]], fan_in: int = FAN_IN) -> VectorMerge:
    """The sum of partial counts as a cluster adds them up: groups of `fan_in` first, then the groups."""
    whole, group, held = VectorMerge(), VectorMerge(), 0
    for partial in partials:
        for piece in partial:
            group.add(piece)
        held += 1
        if held == fan_in:
            _add_all(group, whole)
            group, held = VectorMerge(), 0
    _add_all(group, whole)
    return whole


def _add_all(part: Merge, whole: Merge) -> None:
    for piece in part.pieces():
        whole.add(piece)
