"""Parquet files that may come from a stranger, opened only when reading them in pieces needs bounded memory.

A few bytes of Parquet can stand for gigabytes: a footer with millions of empty entries, a page that is compressed a
thousandfold, texts that share long beginnings. So footer and page headers are read here first (they are Thrift structs
in the compact protocol: https://parquet.apache.org/docs/file-format/metadata), and only files whose pages are small and
written in the few encodings that releases use are handed to the library. Texts are read as dictionaries, since one long
text may be named by millions of rows.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from understudy.errors import Problem, ReleaseError
from understudy.models.plain_files import open_plain

__all__ = ["batch_rows", "open_parquet"]

MOST_FILE_BYTES = 2**42
MOST_FOOTER_BYTES = 2**26
MOST_FOOTER_VALUES = 8_000_000
MOST_PAGE_VALUES = 16_000_000
"""Values in all page headers together."""
MOST_CHUNKS = 250_000
MOST_PAGE_BYTES = 2**26
MOST_PAGES_BYTES = 2**29
"""The largest pages of all columns of a row group together: about so much is in memory at once."""
BATCH_VALUES = 2**22
MOST_BATCH_ROWS = 2**17
BUFFER_BYTES = 2**16
_MAGIC = b"PAR1"
_PLAIN, _PLAIN_DICTIONARY, _RLE, _BIT_PACKED, _RLE_DICTIONARY = 0, 2, 3, 4, 8
_ENCODINGS = frozenset({_PLAIN, _PLAIN_DICTIONARY, _RLE, _BIT_PACKED, _RLE_DICTIONARY})
_HEADER_BYTES = (2**10, 2**20)

Value: TypeAlias = "int | bytes | list[Value] | dict[int, Value] | None"


@contextmanager
def open_parquet(path: Path, dictionaries: Sequence[str] = (), *, known: bool = False) -> Iterator[pq.ParquetFile]:
    """The file, known to need little memory when it is read in batches; `dictionaries` names columns of text.

    `known` says that the same file was opened here before.

    Raises:
        ReleaseError: if it is no such file, or the library cannot read it.
    """
    try:
        with open_plain(path, MOST_FILE_BYTES) as source:
            if not known:
                _check_pages(source, _chunks(_footer(source)))
            source.seek(0)
            options = {"pre_buffer": False, "buffer_size": BUFFER_BYTES, "read_dictionary": list(dictionaries)}
            with pq.ParquetFile(source, **options) as stored:
                yield stored
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
        if isinstance(error, ReleaseError):
            raise
        rule = f"cannot be read as Parquet ({type(error).__name__})."
        raise ReleaseError([Problem(path.name, rule, "Restore the folder.")]) from error


def batch_rows(columns: int) -> int:
    """How many rows to read at a time, so that a batch of a wide table is as small as one of a narrow table."""
    return max(1, min(MOST_BATCH_ROWS, BATCH_VALUES // max(columns, 1)))


def _footer(source: BinaryIO) -> bytes:
    size = source.seek(0, 2)
    if size < 12:
        raise ValueError("size")
    source.seek(size - 8)
    end = source.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != _MAGIC or length > min(size - 8, MOST_FOOTER_BYTES):
        raise ValueError("footer")
    source.seek(size - 8 - length)
    return source.read(length)


def _chunks(footer: bytes) -> list[list[tuple[int, int]]]:
    """Where the columns of every row group lie in the file: first byte and number of bytes."""
    reader = _Compact(footer)
    groups = []
    for number, kind in reader.fields():
        if (number, kind) == (4, _LIST):
            groups = [_group(reader) for _ in range(reader.structs())]
        else:
            reader.value(kind)
        if sum(map(len, groups)) > MOST_CHUNKS:
            raise ValueError("chunks")
    return groups


def _group(reader: "_Compact") -> list[tuple[int, int]]:
    """Where the columns of a row group lie; nowhere if it has no rows, for then no page is read."""
    chunks: list[tuple[int, int]] = []
    rows: Value = None
    for number, kind in reader.fields():
        if (number, kind) == (1, _LIST):
            chunks = [_place(reader.struct()) for _ in range(reader.structs())]
        else:
            told = reader.value(kind)
            rows = told if number == 3 else rows
    return chunks if rows != 0 else []


def _place(chunk: dict[int, Value]) -> tuple[int, int]:
    facts = chunk.get(3)
    if not isinstance(facts, dict) or 1 in chunk:  # field 1 names another file
        raise ValueError("chunk")
    data, dictionary = _whole(facts.get(9)), facts.get(11)
    start = min(data, _whole(dictionary)) if dictionary else data
    return start, _whole(facts.get(7))


def _check_pages(source: BinaryIO, groups: list[list[tuple[int, int]]]) -> None:
    """Raises ValueError unless every page is small and in an encoding that cannot grow beyond its size."""
    size, budget = source.seek(0, 2), [MOST_PAGE_VALUES]
    for group in groups:
        at_once = 0
        for start, length in group:
            if start + length > size:
                raise ValueError("chunk")
            at_once += _largest_page(source, start, start + length, budget)
            if at_once > MOST_PAGES_BYTES:
                raise ValueError("pages")


def _largest_page(source: BinaryIO, start: int, stop: int, budget: list[int]) -> int:
    """Bytes of the largest page, and of the dictionary, between two places of the file."""
    largest = dictionary = 0
    while start < stop:
        header, length = _page_header(source, start, budget)
        body, packed = _whole(header.get(2)), _whole(header.get(3))
        # A page carries its values (5), a dictionary (7) or values in the second form (8); indices (6) are not read.
        told = [part for key, place in ((5, 2), (7, 2), (8, 4)) if (part := _inner(header, key, place)) is not None]
        if body > MOST_PAGE_BYTES or start + length + packed > stop or not _ENCODINGS.issuperset(told) or not told:
            raise ValueError("page")
        if 7 in header:
            dictionary = max(dictionary, body)
        largest = max(largest, body)
        start += length + packed
    return largest + dictionary


def _page_header(source: BinaryIO, start: int, budget: list[int]) -> tuple[dict[int, Value], int]:
    for size in _HEADER_BYTES:
        source.seek(start)
        reader = _Compact(source.read(size), budget)
        try:
            return reader.struct(), reader.place
        except IndexError:  # cut off: it holds long texts as the smallest and largest value
            if size == _HEADER_BYTES[-1]:
                raise
    raise AssertionError("unreachable")


def _inner(header: dict[int, Value], key: int, place: int) -> int | None:
    part = header.get(key)
    return _whole(part.get(place)) if isinstance(part, dict) else None


def _whole(value: Value) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError("number")
    return value


_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_NUMBERS = (4, 5, 6)
MOST_DEPTH = 16


class _Compact:
    """Reads the compact protocol of Thrift; raises IndexError at the end and ValueError for what is no struct."""

    def __init__(self, content: bytes, budget: list[int] | None = None) -> None:
        self.place = 0
        self._content, self._budget, self._depth = content, budget or [MOST_FOOTER_VALUES], 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and kind of each field of the struct that begins here; the caller reads each value in turn."""
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise ValueError("depth")
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            yield number, head & 15
        self._depth -= 1

    def struct(self) -> dict[int, Value]:
        """The struct that begins here."""
        return {number: self.value(kind) for number, kind in self.fields()}

    def structs(self) -> int:
        """The length of the list of structs that begins here."""
        kind, length = self._list_head()
        if kind != _STRUCT and length:
            raise ValueError("list")
        return length

    def value(self, kind: int) -> Value:
        """The value of that kind that begins here."""
        self._budget[0] -= 1
        if self._budget[0] < 0:
            raise ValueError("too many values")
        if kind in (_TRUE, _FALSE):
            return int(kind == _TRUE)
        if kind in _NUMBERS:
            return self._zigzag()
        if kind == _BYTE:
            return self._byte()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind in (_LIST, _SET):
            inner, length = self._list_head()
            return [self._element(inner) for _ in range(length)]
        if kind == _STRUCT:
            return self.struct()
        raise ValueError("kind")

    def _element(self, kind: int) -> Value:
        return self._byte() if kind in (_TRUE, _FALSE) else self.value(kind)

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        length = self._varint() if head >> 4 == 15 else head >> 4
        if length > MOST_CHUNKS:
            raise ValueError("list")
        return head & 15, length

    def _byte(self) -> int:
        value = self._content[self.place]
        self.place += 1
        return value

    def _bytes(self, length: int) -> bytes:
        if self.place + length > len(self._content):
            raise IndexError("end")
        self.place += length
        return self._content[self.place - length : self.place]

    def _varint(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise ValueError("number")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
