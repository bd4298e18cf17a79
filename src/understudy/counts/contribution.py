"""Contribution bound: at most k rows of each protected unit are counted.

Which k? The first ones in the order of a public hash of the unit's id and the row's codes, ties broken by the codes.
So the choice is the same in every source and in every run, does not depend on the order of the file, and favours no
code: without the id the same codes would win in every unit that holds them, and counts would lean to them.

Why removing one unit changes at most k rows: whether a row is kept depends on its own unit's id and rows only (they
are ranked among themselves, under keys that are public constants). Take all rows of one unit away: no other unit's
rows change rank, so exactly the rows kept for that unit disappear, and there are at most k of them. Rows that are
equal in all codes are interchangeable: keeping one or the other gives the same counts. Rows without an id belong to
nobody who could be protected and are left out, again row by row, as are rows that a schema with `unreadable: drop`
leaves out: what is ranked is what remains.

Streams. A table that does not fit in memory is cut as it passes (`UnitRows`): a row that is not among the first k of
some rows of its unit is not among the first k of all of them, so it may be dropped at any time. There a unit is known
by a keyed hash of its id, 128 bits, so that neither the text of an id nor its length reaches a buffer or a temporary
file. The key is drawn from the operating system for each pass and forgotten with it. Two ids with the same hash would
count as one unit, and that is not merely stricter: taking one of them away could bring back k rows of the other, so
that 2k rows change. For any table this has probability at most n²/2¹²⁹ for n units (2⁻⁷⁰ for 700 million of them),
whatever ids people gave themselves, because nobody knows the key. Up to an event of that probability p the counts are
those of exact ids; a guarantee (ε, δ) for these is thus (ε, δ + (1 + e^ε)·p) for those. Frames in memory compare ids
themselves. The order within a unit needs no secret: equal order hashes of two units change neither's rank.

What a stream leaves on disk are codes and such hashes, in temporary files without a name: nobody else can open them,
and the operating system frees them when the process ends, however it ends.
"""

import secrets
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.counts.kernels import hash_rows
from understudy.counts.labels import HashKey, Texts, Words
from understudy.counts.source import Ints

__all__ = ["ORDER_KEY", "ColumnBlocks", "UnitRows", "kept_rows", "row_priority"]

Codes = npt.NDArray[np.unsignedinteger]
Column = npt.NDArray[Any]  # codes are unsigned, numbers of units are not
Records = npt.NDArray[np.void]

HASH_KEY = 0x756E646572737479  # the letters "understy"; public, so that every source and every run ranks alike
ORDER_KEY: HashKey = (0x756E646572737479, 0x6F72646572206B31)

BUCKET_BITS = 10
BLOCK_ROWS = 1 << 17


def row_priority(ids: Texts, columns: Sequence[Codes]) -> Words:
    """Rank key of each row within its unit, smaller first: a public hash of the id and the codes."""
    return hash_rows([ids.hashes(ORDER_KEY)[:, 0], *columns], HASH_KEY, len(ids.places))


def kept_rows(ids: Texts, columns: Sequence[Codes], rows_per_unit: int) -> Ints:
    """Positions (increasing) of the rows that count: at most `rows_per_unit` for each id, none for rows without one.

    Args:
        ids: the text of the unit column.
        columns: the codes of all columns, in domain order.
        rows_per_unit: the bound k, at least one.
    """
    return _first_rows(ids.numbers(), row_priority(ids, columns), columns, rows_per_unit)


def _first_rows(unit: Ints, priority: Words, columns: Sequence[Codes], bound: int) -> Ints:
    """Positions (increasing) of each unit's first rows; none of unit −1."""
    held = np.bincount(unit[unit >= 0], minlength=1)
    crowded = np.zeros(len(held) + 1, np.bool_)  # the last entry serves null ids, numbered −1
    crowded[:-1] = held > bound
    contested = np.flatnonzero(crowded[unit])
    simple = np.flatnonzero((unit >= 0) & ~crowded[unit])
    if not len(contested):
        return simple.astype(np.int64)
    ranked = _ranked(contested, unit, priority, columns)
    owner = unit[ranked]
    first = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    position = np.arange(len(owner)) - np.repeat(first, np.diff(np.r_[first, len(owner)]))
    return np.sort(np.concatenate([simple, ranked[position < bound]])).astype(np.int64)


def _ranked(rows: Ints, unit: Ints, priority: Words, columns: Sequence[Codes]) -> Ints:
    """These rows by unit, then priority, then codes; codes are sorted only in the rare case that hashes collide."""
    order = rows[np.lexsort((priority[rows], unit[rows]))]
    one, other = order[:-1], order[1:]
    tied = (unit[one] == unit[other]) & (priority[one] == priority[other])
    one, other = one[tied], other[tied]
    if any((codes[one] != codes[other]).any() for codes in columns):
        codes_last_first = [codes[rows] for codes in reversed(columns)]
        order = rows[np.lexsort((*codes_last_first, priority[rows], unit[rows]))]
    return order


class UnitRows:
    """The rows of each unit up to its bound, out of a stream of rows in any order, within a limit of memory.

    Rows wait in memory. When they fill their share, those beyond the bound are dropped; if that does not make room, all
    of them go to a temporary file, in buckets by the hash of their unit, and each bucket is cut once more at the end.
    """

    def __init__(self, kinds: Sequence[np.dtype[np.unsignedinteger]], bound: int, memory_bytes: int) -> None:
        self._places = [f"c{place}" for place in range(len(kinds))]
        head = [(name, np.dtype(np.uint64)) for name in ("first", "second", "priority")]
        self._record = np.dtype([*head, *zip(self._places, kinds, strict=True)])
        self._key: HashKey = (secrets.randbits(64), secrets.randbits(64))
        self._bound = bound
        self._room = memory_bytes // 4  # beside it: a joined copy, what is kept of it, and the sorting
        self._waiting: list[Records] = []
        self._bytes = 0
        self._buckets: list[list[tuple[int, int]]] = []
        self._file: _NamelessFile | None = None

    def add(self, ids: Texts, columns: Sequence[Codes]) -> None:
        """Takes rows in: the text of their ids, and the codes of all columns."""
        valid = ids.places >= 0
        hashes = ids.hashes(self._key)[valid]
        rows = np.empty(len(hashes), self._record)
        rows["first"], rows["second"] = hashes[:, 0], hashes[:, 1]
        rows["priority"] = row_priority(ids, columns)[valid]
        for place, codes in zip(self._places, columns, strict=True):
            rows[place] = codes[valid]
        self._waiting.append(rows)
        self._bytes += rows.nbytes
        if self._bytes > self._room:
            self._make_room()

    def blocks(self) -> Iterator[tuple[Ints, list[Codes]]]:
        """The rows that count, block by block: the number of each row's unit, and the codes of all columns."""
        if self._file is None:
            yield from self._in_blocks(*self._cut())
            return
        self._spill(self._cut()[0])
        file, units = self._file, 0
        for bucket in self._buckets:
            self._waiting = [np.frombuffer(file.read(start, size), self._record) for start, size in bucket]
            rows, numbers = self._cut()
            yield from self._in_blocks(rows, numbers + units)
            units += int(numbers.max(initial=-1)) + 1

    def _in_blocks(self, rows: Records, units: Ints) -> Iterator[tuple[Ints, list[Codes]]]:
        for low in range(0, len(rows), BLOCK_ROWS):
            here = rows[low : low + BLOCK_ROWS]
            yield units[low : low + BLOCK_ROWS], [np.ascontiguousarray(here[place]) for place in self._places]

    def _cut(self) -> tuple[Records, Ints]:
        """What waits, without the rows beyond the bound, and numbers of their units; nothing waits after it."""
        whole = np.concatenate([np.empty((0, self._record.itemsize), np.uint8), *map(_as_bytes, self._waiting)])
        self._waiting, self._bytes = [], 0
        rows = whole.view(self._record)[:, 0]
        unit = _numbered_pairs(rows["first"], rows["second"])
        kept = _first_rows(unit, rows["priority"], [rows[place] for place in self._places], self._bound)
        return whole.take(kept, axis=0).view(self._record)[:, 0], unit[kept]

    def _make_room(self) -> None:
        rows, _ = self._cut()
        if self._file is None and rows.nbytes <= self._room // 2:
            self._waiting, self._bytes = [rows], rows.nbytes
        else:
            self._spill(rows)

    def _spill(self, rows: Records) -> None:
        if self._file is None:
            self._file = _NamelessFile()
            self._buckets = [[] for _ in range(1 << BUCKET_BITS)]
        bucket = (rows["first"] >> np.uint64(64 - BUCKET_BITS)).astype(np.int64)
        ends = np.cumsum(np.bincount(bucket, minlength=1 << BUCKET_BITS)) * rows.itemsize
        start = self._file.append(_as_bytes(rows).take(np.argsort(bucket, kind="stable"), axis=0))
        for held, low, high in zip(self._buckets, np.r_[0, ends[:-1]].tolist(), ends.tolist(), strict=True):
            if high > low:
                held.append((start + low, high - low))


def _as_bytes(rows: Records) -> npt.NDArray[np.uint8]:
    """One line of bytes per row: NumPy copies these as they are, and fields one by one."""
    return rows.view(np.uint8).reshape(len(rows), rows.itemsize)


def _numbered_pairs(first: Words, second: Words) -> Ints:
    """A number per distinct pair of words: 0, 1, 2, …"""
    order = np.argsort(first, kind="stable")
    differs = first[order[1:]] != first[order[:-1]]
    if (~differs & (second[order[1:]] != second[order[:-1]])).any():
        order = np.lexsort((second, first))
        differs = (first[order[1:]] != first[order[:-1]]) | (second[order[1:]] != second[order[:-1]])
    numbers = np.empty(len(first), np.int64)
    numbers[order] = np.r_[0, np.cumsum(differs)][: len(first)]
    return numbers


class ColumnBlocks:
    """Columns of rows in blocks, to be read again and again: in memory up to a limit, beyond it in a temporary file."""

    def __init__(self, memory_bytes: int) -> None:
        self._left = memory_bytes
        self._blocks: list[tuple[int, list[Column | _OnDisk]]] = []
        self._file: _NamelessFile | None = None

    def append(self, columns: Sequence[Column]) -> None:
        """Keeps one block: arrays of equal length."""
        self._left -= sum(column.nbytes for column in columns)
        rows = len(columns[0])
        if self._left >= 0:
            self._blocks.append((rows, list(columns)))
            return
        self._file = file = self._file or _NamelessFile()
        self._blocks.append((rows, [_OnDisk(file.append(column), column.dtype) for column in columns]))

    def read(self, places: Sequence[int]) -> Iterator[tuple[int, list[Column]]]:
        """The number of rows and the columns at these places, block by block."""
        for rows, columns in self._blocks:
            yield rows, [self._column(columns[place], rows) for place in places]

    def _column(self, held: "Column | _OnDisk", rows: int) -> Column:
        if not isinstance(held, _OnDisk):
            return held
        assert self._file is not None
        return np.frombuffer(self._file.read(held.start, rows * held.kind.itemsize), held.kind)


@dataclass(frozen=True, slots=True)
class _OnDisk:
    start: int
    kind: np.dtype[Any]


class _NamelessFile:
    """A temporary file that has no name, so that nothing stays of it whatever becomes of the process."""

    def __init__(self) -> None:
        self._stream = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it lives as long as this object
        self._end = 0

    def append(self, array: npt.NDArray[np.generic]) -> int:
        """Writes the array's bytes and returns where they start. A full disk raises the system's own OSError."""
        start = self._end
        self._stream.seek(start)
        left = np.ascontiguousarray(array).view(np.uint8).reshape(-1).data
        while len(left):
            left = left[self._stream.write(left) :]
        self._end = start + array.nbytes
        return start

    def read(self, start: int, size: int) -> bytearray:
        """These bytes, which were written before."""
        found = bytearray(size)
        left = memoryview(found)
        self._stream.seek(start)
        while len(left):
            got = self._stream.readinto(left)
            assert got, "a temporary file ends before its end"
            left = left[got:]
        return found
