"""Parquet: rows written from codes, and files of strangers looked at before a library reads them.

Writing
-------
Rows that are drawn are codes, and Parquet keeps columns of few values as codes: the library's writer spends most of its
time on finding out again what was known. So pages are laid out here (`benchmarks/scale.py` measures both): labels and
whole numbers of a small span as packed entries of a dictionary, all else as it lies in memory. Only what every reader
knows is used: version 1 of data pages, the encodings PLAIN and RLE_DICTIONARY, Zstandard or no compression. The
columns' description is the one that the library writes for the same schema, taken from an empty file. If a column is
neither a number, a time, a truth value nor text, the library writes the whole file.

Bytes follow from the rows and the version of the compressor alone. There are no statistics: rows come in no order, so
the least and most of a part are those of the column.

Reading what may come from a stranger
-------------------------------------
A few bytes of Parquet can stand for gigabytes: a footer with millions of empty entries, a page that is compressed a
thousandfold, texts that share long beginnings. So footer and page headers are read here first (they are Thrift structs
in the compact protocol: https://parquet.apache.org/docs/file-format/metadata), and only files whose pages are small and
written in the few encodings that releases use are handed to the library. Texts are read as dictionaries, since one long
text may be named by millions of rows.
"""

import base64
import io
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from understudy.errors import Problem, ReleaseError
from understudy.models.model import open_plain

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
            found_value = reader.value(kind)
            rows = found_value if number == 3 else rows
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
        found_value = [
            part for key, place in ((5, 2), (7, 2), (8, 4)) if (part := _inner(header, key, place)) is not None
        ]
        if (
            body > MOST_PAGE_BYTES
            or start + length + packed > stop
            or not _ENCODINGS.issuperset(found_value)
            or not found_value
        ):
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


PAGE_ROWS = 2**17
_BOOLEAN, _INT32, _INT64, _FLOAT32, _FLOAT64, _BYTE_ARRAY = 0, 1, 2, 4, 5, 6
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_FACTS = {_DATA_PAGE: 5, _DICTIONARY_PAGE: 7}
"""Field of a page's header that tells its kind more."""
_UNCOMPRESSED, _ZSTD = 0, 6
_I32, _I64 = 5, 6
_WORTH = 0.9
"""A column is compressed if that brings its first page below this share of its size."""
_ENTRIES_PER_ROW = 1 / 8
"""Whole numbers become entries of a dictionary if that is no longer than this share of the rows."""
_MOST_SPAN = 2**16
_ZSTANDARD = pa.Codec("zstd")

Fields = Sequence[tuple[int, int, Any]]
Plain = npt.NDArray[Any]


def write_parquet(path: Path, schema: pa.Schema, pieces: Iterable[pa.Table]) -> None:
    """Columns have the types of the schema when they are read, also those that come as entries of a dictionary."""
    said = {**(schema.metadata or {}), b"ARROW:schema": base64.b64encode(schema.serialize().to_pybytes())}
    coming = iter(pieces)
    first = next(coming, schema.empty_table())
    stored = pa.schema([field.remove_metadata() for field in first.schema])
    if all(_physical(field.type) is not None for field in stored):
        pieces = itertools.chain((first,), coming)
        del first
        with path.open("xb") as target:
            _write_pages(target, stored, pieces, said)
        return
    # A dictionary of floats holds nearly every value once: it would be begun, hashed into and given up again.
    listed = [field.name for field in schema if not pa.types.is_floating(field.type)]
    options = {"compression": "zstd", "use_dictionary": listed, "write_statistics": False, "store_schema": False}
    with pq.ParquetWriter(path, stored, **options) as writer:
        writer.add_key_value_metadata(said)
        writer.write_table(pa.table(first.columns, schema=stored))
        del first  # or it would lie in memory beside the next one
        for piece in coming:
            writer.write_table(pa.table(piece.columns, schema=stored))
            del piece


def _write_pages(target: BinaryIO, stored: pa.Schema, pieces: Iterable[pa.Table], said: Mapping[bytes, bytes]) -> None:
    """Every piece is a row group; one without rows is none."""
    target.write(_MAGIC)
    groups, rows = [], 0
    for piece in pieces:
        if piece.num_rows:
            groups.append(_write_group(target, stored, piece))
            rows += piece.num_rows
        del piece  # or it would lie in memory beside the next one
    pairs = [[(1, _BINARY, key), (2, _BINARY, value)] for key, value in said.items()]
    by = f"understudy version {version('understudy')}".encode()
    described = ((3, _I64, rows), (4, _LIST, (_STRUCT, groups)), (5, _LIST, (_STRUCT, pairs)), (6, _BINARY, by))
    footer = _fields(((1, _I32, 2),)) + _columns_field(stored) + _fields(described, after=2) + b"\x00"
    target.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)


def _columns_field(stored: pa.Schema) -> bytes:
    """Field 2 of the footer, which follows field 1: the columns' description, as the library writes it."""
    written = io.BytesIO()
    pq.write_table(stored.empty_table(), written, store_schema=False)
    footer = _footer(written)
    reader = _Compact(footer)
    for number, kind in reader.fields():
        start = reader.place
        reader.value(kind)
        if number == 2:
            return bytes([(1 << 4) | kind]) + footer[start : reader.place]
    raise AssertionError("a footer without columns")


def _write_group(target: BinaryIO, stored: pa.Schema, piece: pa.Table) -> Fields:
    """The columns of a piece, and the struct that says where they lie."""
    chunks, size = [], 0
    for place, field in enumerate(stored):
        values = piece.column(place)
        column = values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
        chunk = _Column.of(column.chunk(0) if isinstance(column, pa.ChunkedArray) else column, field)
        start = target.tell()
        facts = chunk.written(target, field.name)
        chunks.append([(2, _I64, start), (3, _STRUCT, facts)])
        size += next(value for number, _, value in facts if number == 6)
    return [(1, _LIST, (_STRUCT, chunks)), (2, _I64, size), (3, _I64, piece.num_rows)]


def _physical(kind: pa.DataType) -> tuple[int, str] | None:
    """How a type is stored, and as which integers or floats; None if it is left to the library."""
    if pa.types.is_dictionary(kind):
        return _physical(kind.value_type)
    if pa.types.is_boolean(kind):
        return _BOOLEAN, "?"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _BYTE_ARRAY, ""
    if pa.types.is_floating(kind) and kind.bit_width >= 32:
        return (_FLOAT32, "<f4") if kind.bit_width == 32 else (_FLOAT64, "<f8")
    if pa.types.is_timestamp(kind) and kind.unit == "s":
        return None  # Parquet has no seconds: the library turns them into milliseconds
    if pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        if pa.types.is_time32(kind) and kind.unit == "s":
            return None
        return (_INT32, "<i4") if kind.bit_width <= 32 else (_INT64, "<i8")
    return None


@dataclass(frozen=True, slots=True)
class _Column:
    """The values of a column that are there, and which ones these are (None: all).

    With a dictionary the values are places in it.
    """

    kind: int
    values: Plain
    dictionary: bytes | None
    entries: int
    present: npt.NDArray[np.bool_] | None
    optional: bool

    @classmethod
    def of(cls, array: pa.Array, field: pa.Field) -> "_Column":
        """The column of one array, whose type is that of the field."""
        stored = _physical(field.type)
        assert stored is not None
        if array.null_count and not field.nullable:
            raise ValueError(f"column {field.name!r} has missing values, and its type allows none")
        present = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
        there = array.drop_null() if array.null_count else array
        if stored[0] == _BYTE_ARRAY and not pa.types.is_dictionary(array.type):
            there = there.dictionary_encode()
        if stored[0] == _BOOLEAN and pa.types.is_dictionary(array.type):
            there = there.dictionary_decode()  # readers know no dictionary of truth values
        if isinstance(there, pa.DictionaryArray):
            places = there.indices.to_numpy(zero_copy_only=False)
            entries = _plain_bytes(there.dictionary, stored)
            return cls(stored[0], places, entries, len(there.dictionary), present, field.nullable)
        values = _as_numbers(there, stored[1])
        spanned = _spanned(values) if stored[0] in (_INT32, _INT64) else None
        if spanned is None:
            return cls(stored[0], values, None, 0, present, field.nullable)
        low, span = spanned
        listed = np.arange(low, low + span, dtype=np.int64).astype(stored[1])
        return cls(stored[0], (values - low).astype(np.uint16), listed.tobytes(), span, present, field.nullable)

    def written(self, target: BinaryIO, name: str) -> Fields:
        """Writes its pages, and says where they are."""
        start, pages = target.tell(), list(self._pages())
        body = pages[0][1]
        codec = _ZSTD if body and len(_compressed(body)) < _WORTH * len(body) else _UNCOMPRESSED
        dictionary, whole = None, 0
        if self.dictionary is not None:
            dictionary = start
            facts = [(1, _I32, self.entries), (2, _I32, _PLAIN)]
            whole += _write_page(target, _DICTIONARY_PAGE, facts, self.dictionary, codec=codec)
        data = target.tell()
        for rows, body in pages:
            encoding = _PLAIN if self.dictionary is None else _RLE_DICTIONARY
            facts = [(1, _I32, rows), (2, _I32, encoding), (3, _I32, _RLE), (4, _I32, _RLE)]
            whole += _write_page(target, _DATA_PAGE, facts, body, codec=codec)
        encodings = (_PLAIN, _RLE) if self.dictionary is None else (_PLAIN, _RLE, _RLE_DICTIONARY)
        said: list[tuple[int, int, Any]] = [
            (1, _I32, self.kind),
            (2, _LIST, (_I32, encodings)),
            (3, _LIST, (_BINARY, (name.encode(),))),
            (4, _I32, codec),
            (5, _I64, sum(rows for rows, _ in pages)),
            (6, _I64, whole),
            (7, _I64, target.tell() - start),
            (9, _I64, data),
        ]
        return said if dictionary is None else [*said, (11, _I64, dictionary)]

    def _pages(self) -> Iterator[tuple[int, bytes]]:
        """Number of rows and content of each page."""
        rows = len(self.values) if self.present is None else len(self.present)
        end = 0
        for low in range(0, rows, PAGE_ROWS):
            high = min(low + PAGE_ROWS, rows)
            here = None if self.present is None else self.present[low:high]
            begin, end = end, end + (high - low if here is None else int(np.count_nonzero(here)))
            yield high - low, self._levels(high - low, here) + self._content(self.values[begin:end])

    def _levels(self, rows: int, here: npt.NDArray[np.bool_] | None) -> bytes:
        """Which rows hold a value, as runs of bits behind their length in bytes; nothing if every row must hold one."""
        if not self.optional:
            return b""
        if here is None:
            runs = _varint(rows << 1) + b"\x01"
        else:
            bits = np.packbits(here, bitorder="little").tobytes()
            runs = _varint(len(bits) << 1 | 1) + bits
        return len(runs).to_bytes(4, "little") + runs

    def _content(self, values: Plain) -> bytes:
        if self.kind == _BOOLEAN:
            return np.packbits(values, bitorder="little").tobytes()
        return values.tobytes() if self.dictionary is None else packed_places(values, self.entries)


def packed_places(places: Plain, entries: int) -> bytes:
    """Places in a dictionary as one run of packed bits: their width, the number of eights, the bits.

    Up to 256 entries get as many bits as they need, more of them 16 or 32, which compress as well and are only copied.

    >>> packed_places(np.array([0, 1, 2, 3, 0, 1, 2, 3]), 4).hex(" ")
    '02 03 e4 e4'
    """
    eights = -(-len(places) // 8)
    width = max(1, (entries - 1).bit_length())
    width = width if width <= 8 else 16 if width <= 16 else 32
    padded = np.zeros(eights * 8, f"<u{1 if width <= 8 else width // 8}")
    padded[: len(places)] = places
    head = bytes([width]) + _varint(eights << 1 | 1)
    if width in (8, 16, 32):
        return head + padded.tobytes()
    rows, words = padded.reshape(eights, 8), np.zeros(eights, "<u8")
    for place in range(8):
        words |= rows[:, place].astype(np.uint64) << np.uint64(width * place)
    return head + words.view(np.uint8).reshape(eights, 8)[:, :width].tobytes()


def _as_numbers(array: pa.Array, kind: str) -> Plain:
    """Without missing values, as they are stored."""
    if kind == "?":
        return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    # Unsigned numbers beyond the signed ones keep their bits.
    found: Plain = array.to_numpy(zero_copy_only=False).astype(kind, copy=False)
    return found


def _plain_bytes(array: pa.Array, stored: tuple[int, str]) -> bytes:
    """The entries of a dictionary, one after the other."""
    if stored[0] == _BYTE_ARRAY:
        texts = [text.encode() for text in array.to_pylist()]
        return b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    return _as_numbers(array, stored[1]).tobytes()


def _spanned(values: Plain) -> tuple[int, int] | None:
    """Least value and how many whole numbers lie up to the largest, if these are few beside the values."""
    if not len(values):
        return None
    low, high = int(values.min()), int(values.max())
    span = high - low + 1
    return (low, span) if span <= min(_MOST_SPAN, len(values) * _ENTRIES_PER_ROW) else None


def _compressed(body: bytes) -> bytes:
    found: bytes = _ZSTANDARD.compress(body, asbytes=True)
    return found


def _write_page(target: BinaryIO, kind: int, facts: Fields, body: bytes, *, codec: int) -> int:
    """Writes header and body; the bytes that both take when the body is expanded."""
    stored = _compressed(body) if codec == _ZSTD else body
    header = _struct([(1, _I32, kind), (2, _I32, len(body)), (3, _I32, len(stored)), (_FACTS[kind], _STRUCT, facts)])
    target.write(header)
    target.write(stored)
    return len(header) + len(body)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes(found) + bytes([number])


def _struct(fields: Fields) -> bytes:
    """A Thrift struct in the compact protocol."""
    return _fields(fields) + b"\x00"


def _fields(fields: Fields, after: int = 0) -> bytes:
    """Fields of a struct; `after` is the number of the field before the first one."""
    found = []
    for number, kind, value in fields:
        assert 0 < number - after < 16
        found.append(bytes([(number - after) << 4 | kind]) + _value(kind, value))
        after = number
    return b"".join(found)


def _value(kind: int, value: Any) -> bytes:
    if kind in (_I32, _I64):
        return _varint(value << 1 if value >= 0 else (-value << 1) - 1)
    if kind == _BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == _STRUCT:
        return _struct(value)
    inner, items = value
    length = bytes([len(items) << 4 | inner]) if len(items) < 15 else bytes([0xF0 | inner]) + _varint(len(items))
    return length + b"".join(_value(inner, item) for item in items)
