"""Columns of coded rows, kept to be read again and again: in memory, and beyond a limit in a temporary file.

What is on disk: codes, and for tables whose units may hold several rows also numbers of units, column after column and
block after block, as the narrowest unsigned integers that hold them; no value, no label and no id. The file has no
name: it is unlinked as it is made, so nobody else can open it, and the operating system frees it when the process ends,
however it ends. How large it grows follows from the number of rows and the schema.

A copy that only saves time (`KeptCodes`) is given up where the disk has no room for it or will not take it. The rows
are then read again from where they lie: a run that was charged never fails because a copy could not be kept.
"""

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[Any]  # codes are unsigned, numbers of units are not
Block = tuple[int, list[Column]]
"""A number of rows and some of their columns."""

SPARE_BYTES = 1 << 30
"""What a copy that only saves time leaves free on the disk."""


class ColumnBlocks:
    """Columns of rows in blocks. Blocks are appended by one thread; any number of threads may read them then."""

    def __init__(self, memory_bytes: int) -> None:
        self._left = memory_bytes
        self._blocks: list[tuple[int, list[Column | _OnDisk]]] = []
        self._file: NamelessFile | None = None

    def append(self, columns: Sequence[Column], rows: int | None = None) -> None:
        """Keeps one block: arrays of equal length, which is the number of rows unless that is said."""
        self._left -= sum(column.nbytes for column in columns)
        rows = len(columns[0]) if rows is None else rows
        if self._left >= 0:
            self._blocks.append((rows, list(columns)))
            return
        self._file = file = self._file or NamelessFile()
        self._blocks.append((rows, [_OnDisk(file.append(column), column.dtype) for column in columns]))

    def fits(self, size: int) -> bool:
        """Whether a block of so many bytes has room, in memory or on the disk beside what is left free there."""
        return size <= self._left or shutil.disk_usage(tempfile.gettempdir()).free >= size + SPARE_BYTES

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(rows for rows, _ in self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)

    def read(self, places: Sequence[int], start: int = 0, stop: int | None = None) -> Iterator[Block]:
        """The number of rows and the columns at these places, block by block."""
        for rows, columns in self._blocks[start:stop]:
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


class NamelessFile:
    """A temporary file that has no name, so that nothing stays of it whatever becomes of the process."""

    def __init__(self) -> None:
        self._stream = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it lives as long as this object
        self._end = 0

    def append(self, array: npt.NDArray[np.generic]) -> int:
        """Writes the array's bytes and returns where they start. A full disk raises the system's own OSError."""
        start = self._end
        left = np.ascontiguousarray(array).view(np.uint8).reshape(-1).data
        while len(left):
            done = os.pwrite(self._stream.fileno(), left, self._end)
            self._end += done
            left = left[done:]
        return start

    def read(self, start: int, size: int) -> bytearray:
        """These bytes, which were written before; threads may read at the same time."""
        found = bytearray(size)
        left = memoryview(found)
        while len(left):
            got = os.preadv(self._stream.fileno(), [left], start)
            assert got, "a temporary file ends before its end"
            start += got
            left = left[got:]
        return found


class KeptCodes:
    """The codes of some columns of a whole table, in the order of its rows, as one pass in several parts met them."""

    def __init__(self, columns: Sequence[str], parts: int, memory_bytes: int) -> None:
        self.columns = tuple(columns)
        self._parts: list[ColumnBlocks] | None = [ColumnBlocks(memory_bytes // parts) for _ in range(parts)]
        self._open = [True] * parts

    def append(self, part: int, rows: int, columns: Sequence[Column]) -> None:
        """Keeps a block of a part; gives all of them up where there is no room. One thread appends to each part."""
        parts = self._parts
        if parts is None:
            return
        try:
            if parts[part].fits(sum(column.nbytes for column in columns)):
                parts[part].append(columns, rows)
                return
        except OSError:  # a full disk, a limit of the process, a folder that vanished
            pass
        self._parts = None

    def close(self, part: int) -> None:
        """Says that a part is complete."""
        self._open[part] = False

    @property
    def given_up(self) -> bool:
        """Whether there was no room."""
        return self._parts is None

    @property
    def complete(self) -> bool:
        """Whether every row is kept."""
        return not any(self._open) and not self.given_up

    @property
    def rows(self) -> int:
        """How many rows are kept."""
        return sum(part.rows for part in self._parts or ())

    def split(self, columns: Sequence[str], most: int) -> list[Iterator[Block]]:
        """The rows in at most that many streams of blocks, one after the other in the order of the rows."""
        places = [self.columns.index(name) for name in columns]
        every = [(part, place) for part in self._parts or () for place in range(len(part))]
        bounds = np.linspace(0, len(every), max(1, min(most, len(every))) + 1).astype(int).tolist()
        return [_blocks_of(every[low:high], places) for low, high in itertools.pairwise(bounds)]


def _blocks_of(chosen: Sequence[tuple[ColumnBlocks, int]], places: Sequence[int]) -> Iterator[Block]:
    for blocks, number in chosen:
        yield from blocks.read(places, number, number + 1)
