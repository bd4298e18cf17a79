"""Parquet datasets: one table in many Parquet files, in a folder or an object store, perhaps in partitions.

What is looked at before the charge
-----------------------------------
The list of files, and of each file its size, when it was changed (or the store's own mark of its content) and its
footer, of which names and types of columns are used. No row is read, and nothing of the list is released. But folder
names such as `city=Rome` are values of people: which partitions there are is content, as rows are. So messages name the
dataset's root and columns, never a file or a partition, and no count of files is told. Whether the files fit together
is found from that list, and shown to who runs the command: that a dataset is refused says so much about it, as a
damaged file would.

Partitions
----------
A folder `key=value` below the root gives every row in it that value. It arrives as text, and is read as the schema
declares the column, exactly as text in a CSV file is: nothing is inferred from values, so "01" stays "01" where a
category is declared and is 1 where an integer is. `__HIVE_DEFAULT_PARTITION__` is a missing value, and %-signs are
decoded. A column that the files hold as well is read from the files.

One snapshot
------------
The list is fixed at opening. Every pass reads those files and no others, and compares size and mark of each before and
after it is read: one that was changed, replaced or removed ends the run without a word about which. Rows that somebody
adds in new files meanwhile are not seen.
"""

import contextlib
import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq

from understudy.arrays import Bools
from understudy.counts.files import INT96_UNIT, PARQUET, SUFFIXES, columns_read, parquet_batches
from understudy.counts.readers import Header, RowReader
from understudy.counts.source import Batch
from understudy.counts.stores import Place, place_of
from understudy.errors import InputError
from understudy.schema import Schema

DEFAULT_PARTITION = b"__HIVE_DEFAULT_PARTITION__"
FOOTERS_AT_ONCE = {False: 2, True: 16}  # from a disk, and through a network
MARKS = ("etag", "last-modified", "versionid", "version-id", "generation")
OTHER_TABLES = {"_delta_log": "a Delta table: write delta:", ".hoodie": "a Hudi table"}
_PARTITION = re.compile(r"([^=]+)=(.*)", re.DOTALL)
_CHANGED = "was changed while it was read: a file is gone or was replaced."

Mark = tuple[object, ...]
"""What tells whether a file is still the same one."""


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """One file of a table, as it was found at opening. Private: its path and its values are content."""

    path: str
    mark: Mark
    values: Mapping[str, pa.Scalar] = field(default_factory=dict)
    """What all of its rows hold in columns that are not in the file."""
    kept: Bools | None = None
    """Which of its rows still count; None if all do."""


class PinnedFilesReader(RowReader):
    """Rows of Parquet files that were listed and pinned; what lists them is for a subclass to say."""

    def __init__(self, place: Place, pieces: Sequence[PinnedFile], header: Header) -> None:
        self.where = place.where
        self.engine = "Parquet"
        self._place = place
        self._pieces = tuple(pieces)
        self._header = header

    @property
    def header(self) -> Header:
        """Names and storage types of the columns, those of partitions last."""
        return self._header

    def batches(self, columns: Sequence[str], *, memory_bytes: int, threads: int) -> Iterator[Batch]:
        """Rows of these columns, file by file. Private."""
        for piece in self._pieces:
            own = [name for name in columns if name not in piece.values]
            with self._opened(piece) as file:
                found = parquet_batches(file, own, ahead=self._place.remote)
                for rows, batch in found if piece.kept is None else _only(found, piece.kept):
                    whole = {name: _repeated(value, rows) for name, value in piece.values.items() if name in columns}
                    yield rows, {**whole, **batch}
            with self._opened(piece):
                pass  # it is still the file that was pinned

    @contextlib.contextmanager
    def _opened(self, piece: PinnedFile) -> Iterator[pa.NativeFile]:
        file = None
        with contextlib.suppress(OSError, pa.ArrowException):
            file = self._place.store.open_input_file(piece.path)
            if mark_of(self._place, piece.path, file) != piece.mark:
                file.close()
                file = None
        if file is None:
            raise InputError(self.where, _CHANGED, "Run again while nobody is writing to it.")
        with file:
            yield file


def mark_of(place: Place, path: str, file: pa.NativeFile) -> Mark:
    """Size and mark of a file that was just opened: by the store's own words, or by when it was changed."""
    told = {name.lower(): value for name, value in _told(file).items()}
    marks = tuple((name, told[name]) for name in MARKS if name in told)
    if marks:
        return (file.size(), marks)
    found = place.store.get_file_info(path)
    return (file.size(), found.size, found.mtime_ns)


def _told(file: pa.NativeFile) -> Mapping[str, bytes]:
    found: Mapping[Any, bytes] = file.metadata() or {}
    return {name.decode() if isinstance(name, bytes) else str(name): value for name, value in found.items()}


def _repeated(value: pa.Scalar, rows: int) -> pa.Array:
    """A column that holds one value in every row; text as a dictionary, which is coded once."""
    if value.is_valid and pa.types.is_binary(value.type):
        return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([value.as_py()], value.type))
    return pa.repeat(value, rows)


def _only(batches: Iterator[Batch], kept: Bools) -> Iterator[Batch]:
    """The rows that still count: what a mask does not reach is kept, and one that is too long ends the run."""
    start = 0
    for rows, batch in batches:
        known = kept[start : start + rows]
        here = pa.array(np.append(known, np.ones(rows - len(known), np.bool_)))
        start += rows
        yield int(np.count_nonzero(here)), {name: column.filter(here) for name, column in batch.items()}
    if start < len(kept):
        raise ValueError


class DatasetReader(PinnedFilesReader):
    """A folder, pattern or single file of Parquet, on this machine or in an object store."""

    def __init__(self, location: str | Path, schema: Schema | None = None) -> None:
        place = place_of(str(location))
        if place.remote and Path(place.pattern or place.root).suffix.lower() in {*SUFFIXES} - {*PARQUET}:
            fix = "Copy other files to this machine first."
            raise InputError(place.where, "only Parquet (.parquet, .pq) is read from an object store.", fix)
        paths = _listed(place)
        below = [path.removeprefix(place.root).strip("/").split("/")[:-1] for path in paths]
        partitions = _partitions(place.where, below)
        footers = footers_of(place, paths)
        columns = agreed(place.where, [stored for _, stored in footers], schema)
        stored = {name for name, _ in columns}
        pieces = [
            PinnedFile(path, mark, {name: value for name, value in values.items() if name not in stored})
            for path, (mark, _), values in zip(paths, footers, partitions, strict=True)
        ]
        keys = tuple((name, "string") for name in partitions[0] if name not in stored)
        super().__init__(place, pieces, (*columns, *keys))


def _listed(place: Place) -> list[str]:
    """Paths of the files meant, in order; hidden ones are left out, as Hive and Spark do."""
    found = _files_below(place)
    if found is None:
        raise InputError(place.where, "cannot be listed.", "Check that it exists, and that you may read it.")
    below = {path: path.removeprefix(place.root).strip("/") for path in found}
    for name, what in OTHER_TABLES.items():
        if any(name in inside.split("/") for inside in below.values()):
            fix = "Its folder also holds files whose rows were removed."
            raise InputError(place.where, f"is {what}" + (f"{place.where}." if what.endswith(":") else "."), fix)
    shown = {path: inside for path, inside in below.items() if not any(map(_is_hidden, inside.split("/")))}
    pattern = place.pattern.split("/") if place.pattern else ["**"]
    kept = sorted(path for path, inside in shown.items() if path == place.root or _matches(inside.split("/"), pattern))
    if not kept:
        rule = "no file matches this pattern." if place.pattern else "is a folder without Parquet files."
        raise InputError(
            place.where, rule, "Check the path; files and folders whose names begin with _ or . are left out."
        )
    if not all(path.lower().endswith(PARQUET) for path in kept):
        fix = f"Name the Parquet files, such as {place.where.rstrip('/')}/**/*.parquet."
        raise InputError(place.where, "holds files other than Parquet (.parquet, .pq).", fix)
    return kept


def _files_below(place: Place) -> list[str] | None:
    """Paths of all files under the root, or the root if it is a file; None if it is not there or cannot be listed."""
    with contextlib.suppress(OSError, ValueError, pa.ArrowException):
        root = place.store.get_file_info(place.root)
        if root.type == fs.FileType.File and not place.pattern:
            return [root.path]
        if root.type == fs.FileType.Directory:
            found = place.store.get_file_info(fs.FileSelector(place.root, recursive=True))
            return [one.path for one in found if one.type == fs.FileType.File]
    return None


def _is_hidden(name: str) -> bool:
    """Whether Hive and Spark leave a file or folder out; a partition's key may begin with an underscore.

    >>> [_is_hidden(name) for name in ("_SUCCESS", ".part.crc", "_year=2020", "part.parquet")]
    [True, True, False, False]
    """
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether folders and a name fit a pattern, in which ** stands for any number of folders.

    >>> _matches(["a", "b", "c.parquet"], ["**", "*.parquet"]), _matches(["a", "c.parquet"], ["*.parquet"])
    (True, False)
    """
    if not pattern or not parts:
        return not parts and all(part == "**" for part in pattern)
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or _matches(parts[1:], pattern)
    return fnmatch.fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def _partitions(where: str, folders: Sequence[Sequence[str]]) -> list[dict[str, pa.Scalar]]:
    """Keys and values by the folders of each file; every file has the same keys, in the same order."""
    pairs = [[found for part in parts if (found := _PARTITION.fullmatch(part))] for parts in folders]
    keys = [[_decoded(found[1]) for found in parts] for parts in pairs]
    if any(one != keys[0] or len(set(one)) < len(one) for one in keys):
        rule = "its files lie in folders of different keys (key=value), or one has a key twice."
        raise InputError(where, rule, "Every file needs the same keys in the same order.")
    names = [key.decode("utf-8", "replace") for key in keys[0]]
    return [dict(zip(names, (_partition_value(found[2]) for found in parts), strict=True)) for parts in pairs]


def _partition_value(text: str) -> pa.Scalar:
    """The value as bytes of text; what is not UTF-8 is for the codec to say."""
    value = _decoded(text)
    return pa.scalar(None if value == DEFAULT_PARTITION else value, pa.binary())


def _decoded(text: str) -> bytes:
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape"))


def footers_of(place: Place, paths: Sequence[str]) -> list[tuple[Mark, pa.Schema]]:
    """Mark and columns of every file; reads footers only.

    Raises:
        InputError: one of them is gone or is not readable, without a word about which.
    """
    with ThreadPoolExecutor(FOOTERS_AT_ONCE[place.remote]) as readers:
        found = list(readers.map(lambda path: _footer(place, path), paths))
    footers = [footer for footer in found if footer is not None]
    if len(footers) < len(found):
        rule = "holds a file that is gone or no readable Parquet (damaged, truncated, encrypted or in another format)."
        raise InputError(place.where, rule, "Write it again, or name another version.")
    return footers


def _footer(place: Place, path: str) -> tuple[Mark, pa.Schema] | None:
    # The reader's own words may quote the file, so its errors are dropped.
    with (
        contextlib.suppress(pa.ArrowException, OSError, ValueError, TypeError, KeyError, NotImplementedError),
        place.store.open_input_file(path) as file,
    ):
        mark = mark_of(place, path, file)
        with pq.ParquetFile(file, coerce_int96_timestamp_unit=INT96_UNIT) as parquet:
            return mark, parquet.schema_arrow
    return None


def agreed(where: str, stored: Sequence[pa.Schema], schema: Schema | None) -> Header:
    """The one header of all files.

    Text may be stored as plain, large or dictionary text, and whole numbers in any width: the codec reads all of them
    alike. A column without any value in a file may have no type there.

    Raises:
        InputError: names or types differ; only columns that the schema names are named.
    """
    names = stored[0].names
    known = set() if schema is None else set(columns_read(schema))
    odd = sorted({name for one in stored for name in {*names} ^ {*one.names}})
    kinds: dict[str, pa.DataType] = dict.fromkeys(names, pa.null())
    for one in () if odd or any(one.names != names for one in stored) else stored:
        for column in one:
            kind = form_of(column.type)
            if pa.types.is_null(kinds[column.name]):
                kinds[column.name] = kind
            elif kind != kinds[column.name] and not pa.types.is_null(kind):
                odd.append(column.name)
    if odd or any(one.names != names for one in stored):
        shown = ", ".join(repr(name) for name in dict.fromkeys(odd) if name in known)
        rule = "its files differ in the names, order or types of columns" + (f": {shown}." if shown else ".")
        raise InputError(where, rule, "Files of one dataset need the same columns in the same order.")
    return tuple((name, str(kinds[name])) for name in names)


def form_of(kind: pa.DataType) -> pa.DataType:
    """The type that stands for all in which the same values can be stored.

    >>> [str(form_of(kind)) for kind in (pa.dictionary(pa.int8(), pa.large_string()), pa.uint8(), pa.uint64())]
    ['string', 'int64', 'uint64']
    """
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return pa.int64() if pa.types.is_integer(kind) and not pa.types.is_uint64(kind) else kind
