"""Pieces of files, so that several threads can read one table at the same time.

Parquet is cut between row groups, text where a line begins. A piece is a function of the file's outside and, for text,
of where lines end; every row lies in exactly one of them. How many there are is told to nobody.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pyarrow.parquet as pq

Span = tuple[Path, int, int]
"""A file and a span of it: of row groups, or of bytes."""

LEAST_SPAN_BYTES = 1 << 22
"""Of text for one thread."""
_HEAD_BYTES = 1 << 16
_STEP_BYTES = 1 << 20
_BLANK = b"\xef\xbb\xbf\r\n"


def row_groups(path: Path) -> list[tuple[Span, int]]:
    """The row groups of a Parquet file, with the rows of each."""
    with pq.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    return [((path, group, group + 1), rows) for group, rows in enumerate(sizes)]


def line_spans(path: Path, most: int) -> list[tuple[Span, int]]:
    """A text file as at most that many spans that begin and end with lines, with the bytes of each.

    The header line is in the first span. So a file that begins with many empty lines, behind which it might lie, is one
    span.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        begun = len(head) - len(head.lstrip(_BLANK))  # within the header line
        whole = size < most * LEAST_SPAN_BYTES or begun == len(head)
        inner = [] if whole else [_line_start(file, max(begun, size * part // most)) for part in range(1, most)]
    bounds = [0, *(place for place in dict.fromkeys(inner) if place < size), size]
    return [((path, low, high), high - low) for low, high in itertools.pairwise(bounds)]


def _line_start(file: IO[bytes], place: int) -> int:
    """Where the first line begins that starts behind that place; the end of the file if none does.

    Between CR and LF an empty line may seem to begin, which is none by the rules of text.
    """
    file.seek(place)
    while piece := file.read(_STEP_BYTES):
        ends = [end for end in (piece.find(b"\n"), piece.find(b"\r")) if end >= 0]
        if ends:
            return place + min(ends) + 1
        place += len(piece)
    return place


def shared_out(sized: Sequence[tuple[Span, int]], most: int) -> list[list[Span]]:
    """Pieces for at most that many readers: in order, about as much for each, neighbours in a file as one.

    >>> one, other = Path("one"), Path("other")
    >>> [len(part) for part in shared_out([((one, 0, 1), 5), ((one, 1, 2), 5), ((other, 0, 1), 9)], 2)]
    [1, 1]
    """
    total, done = sum(size for _, size in sized), 0
    parts: list[list[Span]] = [[] for _ in range(most)]
    for (path, start, stop), size in sized:
        part = parts[min(most - 1, (2 * done + size) * most // max(1, 2 * total))]
        done += size
        if part and part[-1][0] == path and part[-1][2] == start:
            part[-1] = (path, part[-1][1], stop)
        else:
            part.append((path, start, stop))
    return [part for part in parts if part]
