"""Contribution bound: at most k rows of each protected unit are counted.

Which k? The first ones in the order of a public keyed hash of the row's codes, ties broken by the codes themselves.
So the choice is the same in every engine, does not depend on the order of the file, and favours no code.

Why removing one unit changes at most k rows: whether a row is kept depends on its own unit's rows only (they are
ranked among themselves, with a hash whose key is a public constant). Take all rows of one unit away: no other unit's
rows change rank, so exactly the rows kept for that unit disappear, and there are at most k of them. Rows that are
equal in all codes are interchangeable: keeping one or the other gives the same counts. Rows without an id belong to
nobody who could be protected and are left out, again row by row, as are rows that a schema with `unreadable: drop`
leaves out: what is ranked is what remains.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.counts.kernels import hash_rows

__all__ = ["HASH_KEY", "kept_rows", "numbered", "row_priority"]

Codes = npt.NDArray[np.unsignedinteger]

HASH_KEY = 0x756E646572737479  # the letters "understy"; public, so that every engine and every run ranks alike


def row_priority(columns: Sequence[Codes], rows: int) -> npt.NDArray[np.uint64]:
    """Rank key of each row: a hash of its codes, smaller first."""
    return hash_rows(columns, HASH_KEY, rows)


def kept_rows(ids: pa.Array | pa.ChunkedArray, columns: Sequence[Codes], rows_per_unit: int) -> npt.NDArray[np.int64]:
    """Positions (increasing) of the rows that count: at most `rows_per_unit` for each id, none for a null id.

    Args:
        ids: canonical text of the unit column, null where there is none.
        columns: the codes of all columns, in domain order.
        rows_per_unit: the bound k, at least one.
    """
    unit = numbered(ids)
    held = np.bincount(unit[unit >= 0], minlength=1)
    crowded = np.zeros(len(held) + 1, np.bool_)  # the last entry serves null ids, numbered −1
    crowded[:-1] = held > rows_per_unit
    contested = np.flatnonzero(crowded[unit])
    simple = np.flatnonzero((unit >= 0) & ~crowded[unit])
    if not len(contested):
        return simple.astype(np.int64)
    order = _ranked(unit[contested], [codes[contested] for codes in columns])
    ranked = unit[contested][order]
    first = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    position = np.arange(len(ranked)) - np.repeat(first, np.diff(np.r_[first, len(ranked)]))
    chosen = contested[order[position < rows_per_unit]]
    return np.sort(np.concatenate([simple, chosen])).astype(np.int64)


def numbered(ids: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """A number per distinct id, −1 for null."""
    joined = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    encoded = joined.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    return np.asarray(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), np.int64)


def _ranked(unit: npt.NDArray[np.int64], columns: Sequence[Codes]) -> npt.NDArray[np.int64]:
    """Order by unit, then priority, then codes; the codes are sorted only in the rare case that hashes collide."""
    priority = row_priority(columns, len(unit))
    order = np.lexsort((priority, unit))
    same = (unit[order][1:] == unit[order][:-1]) & (priority[order][1:] == priority[order][:-1])
    tied = np.flatnonzero(same)
    if any((codes[order[tied]] != codes[order[tied + 1]]).any() for codes in columns):
        order = np.lexsort((*reversed(columns), priority, unit))
    return order
