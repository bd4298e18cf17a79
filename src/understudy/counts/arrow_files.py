"""Arrow files (Feather, IPC) as batches, whose structure is not trusted and whose values are not judged.

A file is a list of record batches, which are read whole, one at a time, so each must fit in memory. Their sizes stand
in the file, and are looked up before anything is expanded; a value counts as a byte at least, since columns of nothing
and of empty structs have any number of rows in no bytes. Arrow's own reader takes offsets and indices as they are;
wrong ones are found here before any value is touched, which is damage to the container. Bytes that are not UTF-8 are
a matter of content and stay. Lists, structs and other nests of values are unreadable, value by value.
"""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from understudy.counts.streams import UNREADABLE, most_expanded, too_large
from understudy.errors import InputError, ResourceError

ARROW_ERRORS = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, NotImplementedError, struct.error)
_MAGIC = b"ARROW1"
_MOST_FOOTER = 1 << 28
_BLOCK = struct.Struct("<qi4xq")
_BUFFER = struct.Struct("<qq")
_MOST_ROWS = 1 << 17
_MOST_VALUES = 1 << 22
_SWAPPED = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}


class _Flat:
    """One table of a FlatBuffer, read by the numbers of its fields; places outside the bytes raise ValueError."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place
        self._fields = place - self.number("<i", place)
        self._width = self.number("<H", self._fields)

    def number(self, form: str, place: int) -> int:
        """The number at that place."""
        if not 0 <= place <= len(self._data) - struct.calcsize(form):
            raise ValueError("outside")
        return int(struct.unpack_from(form, self._data, place)[0])

    def field(self, number: int) -> int:
        """Where that field lies; 0 if it is not there."""
        entry = 4 + 2 * number
        offset = self.number("<H", self._fields + entry) if entry + 2 <= self._width else 0
        return self._place + offset if offset else 0

    def table(self, number: int) -> "_Flat | None":
        """The table in that field."""
        place = self.field(number)
        return _Flat(self._data, place + self.number("<I", place)) if place else None

    def value(self, number: int, form: str) -> int:
        """The number in that field, 0 if it is not there."""
        place = self.field(number)
        return self.number(form, place) if place else 0

    def structs(self, number: int, form: struct.Struct) -> list[tuple[int, ...]]:
        """The list of structs in that field."""
        place = self.field(number)
        if not place:
            return []
        place += self.number("<I", place)
        length = self.number("<I", place)
        if place + 4 + length * form.size > len(self._data):
            raise ValueError("outside")
        return [form.unpack_from(self._data, place + 4 + one * form.size) for one in range(length)]


def _root(data: bytes) -> _Flat:
    return _Flat(data, struct.unpack_from("<I", data, 0)[0])


def arrow_header(path: Path) -> list[tuple[str, str]]:
    """Column names and types.

    Raises:
        InputError: it is no Arrow file.
    """
    try:
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as file:
            return [(field.name, str(field.type)) for field in file.schema]
    except ARROW_ERRORS:
        pass
    rule = "is not a readable Arrow file (damaged, truncated or in another format)."
    raise InputError(str(path), rule, "Check the file, or write it again.")


def _sizes(path: Path, columns: int) -> list[tuple[int, int]]:
    """For every batch of rows and of labels, the number of its values and the bytes it expands to."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 10))
        tail = file.read(10)
        if len(tail) < 10 or tail[4:] != _MAGIC:
            raise ValueError("no footer")
        length = struct.unpack_from("<i", tail)[0]
        if not 0 < length <= min(size - 10, _MOST_FOOTER):
            raise ValueError("no footer")
        file.seek(size - 10 - length)
        footer = _root(file.read(length))
        found = []
        blocks = [(1, block) for block in footer.structs(2, _BLOCK)]
        blocks += [(max(1, columns), block) for block in footer.structs(3, _BLOCK)]
        for width, (offset, metadata, body) in blocks:
            if offset < 0 or not 8 <= metadata <= _MOST_FOOTER or body < 0 or offset + metadata + body > size:
                raise ValueError("outside")
            file.seek(offset)
            head = file.read(metadata)
            rows, expanded = _batch_size(head, file, offset + metadata, body)
            found.append((rows * width, expanded))
    return found


def _batch_size(head: bytes, file: IO[bytes], start_of_body: int, body: int) -> tuple[int, int]:
    """Rows and bytes of one message."""
    start = 8 if head[:4] == b"\xff\xff\xff\xff" else 4
    message = _root(head[start:])
    batch = message.table(2)
    if batch is not None and message.value(1, "<B") == 2:  # labels of a dictionary
        batch = batch.table(1)
    if batch is None:
        raise ValueError("no batch")
    rows, buffers = batch.value(0, "<q"), batch.structs(2, _BUFFER)
    if rows < 0:
        raise ValueError("outside")
    if not batch.field(3):
        return rows, body
    size = 0
    for offset, length in buffers:
        if not 0 <= offset <= body or not 0 <= length <= body - offset:
            raise ValueError("outside")
        if length:
            file.seek(start_of_body + offset)
            (expanded,) = struct.unpack("<q", file.read(8))
            size += length if expanded < 0 else expanded
    return rows, size


def check_arrow(path: Path, most_bytes: int | None, memory_bytes: int) -> None:
    """Reads all batches, to nothing, after a look at their sizes.

    Raises:
        InputError: the file is damaged, or expands to more than the limit.
        ResourceError: a batch does not fit in memory.
    """
    limit = most_expanded(path, most_bytes)
    names = [name for name, _ in arrow_header(path)]
    try:
        sizes = _sizes(path, len(names))
    except ARROW_ERRORS:
        sizes = None
    if sizes is None:
        raise InputError(str(path), "is damaged.", "Write it again.")
    if sum(values + size for values, size in sizes) > limit + path.stat().st_size:
        raise too_large(path, limit)
    largest = max([0, *(size for _, size in sizes)])
    if largest > memory_bytes:
        raise ResourceError(str(path), largest, memory_bytes, "Write it in smaller batches, or raise the memory limit.")
    try:
        for _ in _sound_batches(path, names):
            pass
        return
    except ARROW_ERRORS:
        pass
    raise InputError(str(path), "is damaged.", "Write it again.")


def arrow_batches(path: Path, wanted: Sequence[str]) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    """Number of rows and the wanted columns, batch by batch."""
    most = max(1024, min(_MOST_ROWS, _MOST_VALUES // max(1, len(wanted))))
    for whole, columns in _sound_batches(path, wanted):
        for low in range(0, whole, most):
            rows = min(most, whole - low)
            yield rows, {name: _without_nests(column.slice(low, rows)) for name, column in columns.items()}


def _sound_batches(path: Path, wanted: Sequence[str]) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    """The batches as they are stored, with nests of values, of which nothing is built."""
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as file:
        places = {name: file.schema.names.index(name) for name in wanted}
        for number in range(file.num_record_batches):
            batch = file.get_batch(number)
            columns = {name: _sound(batch.column(place)) for name, place in places.items()}
            if any(len(column) != batch.num_rows for column in columns.values()):
                raise ValueError("columns of different lengths")
            yield batch.num_rows, columns


def _is_nest(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind) or pa.types.is_run_end_encoded(kind) or pa.types.is_union(kind))


def _without_nests(array: pa.Array) -> pa.Array:
    """The same values, but for nests, which are unreadable where they are not absent."""
    coded = pa.types.is_dictionary(array.type)
    kind = array.type.value_type if coded else array.type
    if not _is_nest(kind):
        return array
    known = array.indices if coded else array
    absent = pa.repeat(pa.scalar(False), len(array)) if pa.types.is_union(known.type) else pc.is_null(known)
    nothing, unreadable = pa.scalar(None, pa.large_binary()), pa.scalar(UNREADABLE, pa.large_binary())
    return pc.if_else(absent, nothing, unreadable)


def _sound(array: pa.Array) -> pa.Array:
    """The same values, after a look at whatever could lead outside the array's memory."""
    array.validate()
    if isinstance(array, pa.ExtensionArray):
        return _sound(array.storage)
    kind = array.type
    if pa.types.is_dictionary(kind):
        entries = _sound(array.dictionary)
        known = pc.drop_null(array.indices)
        if len(known) and not 0 <= pc.min(known).as_py() <= pc.max(known).as_py() < len(entries):
            raise ValueError("outside")
        return pa.DictionaryArray.from_arrays(array.indices, entries, safe=False)
    if kind in _SWAPPED:
        # As bytes, since a full look at text would judge whether it is UTF-8.
        array = pa.Array.from_buffers(_SWAPPED[kind], len(array), array.buffers(), array.null_count, array.offset)
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type) or array.type == pa.binary_view():
        array.validate(full=True)
    return array
