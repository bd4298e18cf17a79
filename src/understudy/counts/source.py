"""A private table, before and after its codes are fixed, and the bound of k rows per protected unit.

Nothing here is noisy. Exact counts may be handed to `privacy` and to `evaluate`, to nobody else. No message raised
in this package may depend on the content of a row; content never raises at all (see `codec`).

Labels and ids
--------------
Both are text by one rule for all sources, so that a file and a frame name the same things. Text that is empty counts as
absent, as it does for categories. Nothing here raises on content.

Labels. A value whose bytes are not valid UTF-8, or that is longer than `MOST_LABEL_BYTES`, is unreadable: it equals no
label and never becomes one. The rule is the same for text files, Parquet, databases and frames, and nothing is guessed:
text in another encoding has to be converted first. So a value's own bytes decide how it is coded, and what is counted
as a label is always short and can always be written to a file.

Ids need not be readable. They are compared byte by byte, whatever they hold and however long they are. What a container
could not read at all (a list as an id, a line that is no JSON) is no id, and its row is left out: as one id it would
make one unit of different people, and the rows of one could decide which rows of another count.

Contribution bound
------------------
At most k rows of each protected unit are counted. Which k? The first ones in the order of a public hash of the unit's
id and the row's codes, ties broken by the codes. So the choice is the same in every source and in every run, does not
depend on the order of the file, and favours no code: without the id the same codes would win in every unit that holds
them, and counts would lean to them.

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

import abc
import datetime
import decimal
import hashlib
import math
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.arrays import Bools, Bytes, Ints, Unsigned, Words
from understudy.codec.column import plain_labels
from understudy.codec.reading import canonical_text, has_text, plain
from understudy.codec.table import TableCodec
from understudy.counts.kernels import hash_rows, hash_texts
from understudy.counts.streams import UNREADABLE
from understudy.domain import Clique, Domain, Partition
from understudy.errors import InputError, SchemaError
from understudy.schema import Schema
from understudy.schema.columns import MOST_LABEL_BYTES, plain_label

Batch = tuple[int, Mapping[str, pa.Array | pa.ChunkedArray]]
"""A number of rows and their values by column."""

DEFAULT_MEMORY_BYTES = 2 << 30
LEAST_BATCH_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class ColumnType:
    """How a frame stores a column, from its type alone and never from its values.

    `values` is the Arrow type of what it holds, None where the type does not tell. `labels` says how labels are kept:
    "" as they are, "category" by number (pandas, polars, Arrow dictionaries) or "enum" (polars). `native` is a type of
    the frame's own library that has no Arrow counterpart.
    """

    values: pa.DataType | None = None
    labels: str = ""
    ordered: bool = False
    native: object = None


@dataclass(frozen=True, slots=True)
class LabelCounts:
    """Every distinct label of an open column with its number of rows (missing values are not listed)."""

    labels: tuple[str, ...]
    counts: Ints


@dataclass(frozen=True, slots=True)
class OccupiedCells:
    """Cells of a clique's table with at least one row: flat row-major indices (increasing) and their counts."""

    indices: Ints
    counts: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Coded rows, one line each with the columns in domain order; rows starts[u] to starts[u + 1] are of unit u."""

    codes: Unsigned
    starts: Ints

    @property
    def units(self) -> int:
        """How many units hold a row."""
        return self.starts.size - 1


class CountSource(Protocol):
    """Exact counts of coded records, after the unit's bound on rows was applied."""

    @property
    def domain(self) -> Domain:
        """The codes being counted."""
        ...

    def counts(self, cliques: Sequence[Clique]) -> Mapping[Clique, Ints]:
        """Flat row-major counts of each clique, as few passes over the rows as memory allows; () is the total."""
        ...

    def partition_counts(self, partitions: Sequence[Partition]) -> list[Ints]:
        """Counts of each partition's cells."""
        ...

    def occupied(self, clique: Clique) -> OccupiedCells:
        """Only the occupied cells of a table too large to hold (fewer than 2⁶³ cells)."""
        ...

    def records(self) -> Records:
        """The rows themselves, in memory, grouped by unit; for training, which the curator alone does."""
        ...


class PrivateTable(abc.ABC):
    """A private table of which only public facts are known: column names and storage types.

    Opening and checking it reads headers, never rows. A table of one's own is a subclass with one duty, `batches`:
    hand over the rows as they are. Coding, counting and the bound of k rows per unit are done here, for every table
    alike, and cannot be replaced, so no source can forget them.
    """

    def __init__(
        self, names: Sequence[str], schema: Schema, *, memory_bytes: int = DEFAULT_MEMORY_BYTES, threads: int = 1
    ) -> None:
        """Checks the header against the schema.

        Raises:
            SchemaError: with every problem of the header.
        """
        problems = schema.header_problems(names)
        if problems:
            raise SchemaError(problems)
        self._names = tuple(names)
        self._schema = schema
        self.memory_bytes = memory_bytes
        self.threads = threads

    closed = False
    """Whether what opening took was given back, so that no rows can be read."""

    def __init_subclass__(cls) -> None:
        """Refuses a subclass that would count by itself."""
        # Here, when a class is made, and not when it is used: a source that counts by itself could simply forget the
        # bound.
        replaced = sorted({"bind", "label_counts", "schema"} & set(vars(cls)))
        if replaced:
            rule = f"replaces {' and '.join(replaced)}, which cut each unit to its bound for every table alike."
            raise TypeError(f"{cls.__name__} {rule} Hand over rows by batches and leave the rest.")

    @property
    def schema(self) -> Schema:
        """The public schema it will be read under."""
        return self._schema

    @property
    def batch_bytes(self) -> int:
        """The part of the memory limit that is for batches in flight."""
        # A quarter, because tables of counts, kept codes and rows that await their bound take one each
        # (`streaming.py`).
        return max(LEAST_BATCH_BYTES, self.memory_bytes // 4)

    @property
    def undeclared(self) -> tuple[str, ...]:
        """Columns present in the table but not in the schema: left out."""
        declared = {*self._schema.names, self._schema.unit.column}
        return tuple(name for name in self._names if name not in declared)

    @property
    def frame_kind(self) -> str:
        """What to hand back to the user: "pandas", "polars" or "arrow" (also for files)."""
        return "arrow"

    @property
    def column_types(self) -> Mapping[str, ColumnType]:
        """How the columns of a frame are stored, so that synthetic rows can be handed back alike. Public."""
        return {}

    @abc.abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Number of rows and the values of these columns, batch by batch, every row once and before any bound.

        Private. Beside the two methods below, only comparisons with the private table and looks at its values
        (`profile.py`) read it; those are confidential.
        """

    def parts(self, columns: Sequence[str], most: int) -> "Sequence[Iterator[Batch]]":
        """The same rows as at most that many streams, which threads may read at the same time. Private.

        One after the other they give the rows in the order of `batches`. A table has one stream unless it can be read
        in several places at once.
        """
        return [self.batches(columns)]

    def label_counts(self, column: str) -> LabelCounts:
        """Labels of an open column, after the unit's bound on rows was applied (to rows that have a label)."""
        from understudy.counts.opening import label_counts_of  # which knows every kind of table

        return label_counts_of(self, column)

    def bind(self, codec: TableCodec) -> CountSource:
        """The same rows seen through fixed codes, after the unit's bound. Reads nothing yet."""
        from understudy.counts.opening import source_of

        return source_of(self, codec)

    @staticmethod
    def header_of(data: Any) -> list[tuple[str, str]]:  # noqa: ARG004 - of this kind none tells
        """Names and storage types of the columns of a table that is not opened yet, for a draft; reads no row."""
        raise InputError("table", "does not describe its own columns.", "Write the schema by hand.")

    def close(self) -> None:  # noqa: B027 - frames hold nothing
        """Gives back what opening took, such as a connection. Afterwards no rows can be read."""


HashKey = tuple[int, int]

KNOWN = (decimal.Decimal, datetime.date, datetime.time, np.datetime64)
"""Types of single objects that Arrow may be asked to type; it guesses for no others."""
CONTENT_ERRORS = (pa.ArrowException, ValueError, TypeError, OverflowError, AttributeError, ArithmeticError, KeyError)


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """The text of each row of a column: its place among `values` (large_binary, not all different), −1 for none.

    A text may be any bytes of any length, and is held once however many rows of a dictionary name it.
    """

    values: pa.Array
    places: Ints

    def hashes(self, key: HashKey) -> Words:
        """128 bits of keyed hash of each row's text, as two words; zeros where there is none."""
        table = np.zeros((len(self.values) + 1, 2), np.uint64)  # the last entry serves rows without a text
        if len(self.values):
            _, places, data = self.values.buffers()
            offsets = np.frombuffer(places, np.int64)[self.values.offset : self.values.offset + len(self.values) + 1]
            table[:-1] = hash_texts(np.frombuffer(data or b"", np.uint8), offsets, key)
        return table[self.places]

    def numbers(self) -> Ints:
        """A number per distinct text, −1 for none."""
        distinct = pc.fill_null(self.values.dictionary_encode().indices, -1).to_numpy(zero_copy_only=False)
        return np.append(distinct, -1).astype(np.int64)[self.places]

    def only_ids(self) -> "Texts":
        """The same as ids: what a container could not read at all tells nobody apart, so it is no id.

        Readers mark it by one value. Counted as an id, it would make one unit of different people.
        """
        # One shared mark as an id would join strangers to one unit, and the rows of one would push out those of
        # another.
        marked = pc.fill_null(pc.equal(self.values, pa.scalar(UNREADABLE, pa.large_binary())), False)
        named = ~np.append(marked.to_numpy(zero_copy_only=False), True)[self.places]
        return self.where(named)

    def where(self, chosen: Bools) -> "Texts":
        """The same, with no text for rows that are not chosen."""
        return Texts(self.values, np.where(chosen, self.places, -1))

    def only_at(self, rows: Ints | None) -> "Texts":
        """The same, with no text for rows other than these; None stands for all rows."""
        if rows is None:
            return self
        chosen = np.zeros(len(self.places), np.bool_)
        chosen[rows] = True
        return self.where(chosen)

    def only_labels(self, absent: Sequence[str] = ()) -> "Texts":
        """The same as labels: trimmed and with whole numbers written plainly, as the codec compares them.

        Text that is not UTF-8 or longer than `MOST_LABEL_BYTES` can be no label, and neither can white space alone, nor
        one of the texts that mean "no value".
        """
        # A label may be released, so it must always fit a file; and one huge value must not decide whether a run
        # succeeds.
        short = pc.less_equal(pc.fill_null(pc.binary_length(self.values), 0), MOST_LABEL_BYTES)
        values = pc.if_else(short, self.values, pa.scalar(None, pa.large_binary()))
        try:
            values.cast(pa.large_string())
        except pa.ArrowInvalid:
            values = pa.array([value if _is_utf8(value) else None for value in values.to_pylist()], pa.large_binary())
        plainly = plain_labels(values.cast(pa.large_string()))
        if absent:
            none = pa.array(list(map(plain_label, absent)), plainly.type)
            plainly = pc.if_else(pc.is_in(plainly, value_set=none), pa.scalar(None, plainly.type), plainly)
        values = plainly.cast(pa.large_binary())
        return Texts(values, _known_places(values, self.places))


def texts_of(values: pa.Array | pa.ChunkedArray) -> Texts:
    """Canonical text of each value; none where it is absent, empty or has no text."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    parts = [_texts_of_chunk(chunk) for chunk in chunks]
    starts = np.cumsum([0, *(len(part.values) for part in parts)]).tolist()
    places = [np.where(part.places < 0, -1, part.places + start) for part, start in zip(parts, starts, strict=False)]
    joined = pa.concat_arrays([pa.array([], pa.large_binary()), *(part.values for part in parts)])
    return Texts(joined, np.concatenate([np.zeros(0, np.int64), *places]))


def _texts_of_chunk(chunk: pa.Array) -> Texts:
    try:
        array = plain(chunk)
        if pa.types.is_dictionary(array.type):
            return _texts_of_dictionary(array)
        text = canonical_text(array) if has_text(array.type) else _text_one_by_one(array)
        raw = text.cast(pa.large_binary())
    except CONTENT_ERRORS:
        raw = _text_one_by_one(chunk)
    return Texts(raw, _known_places(raw, np.arange(len(raw), dtype=np.int64)))


def _texts_of_dictionary(array: pa.DictionaryArray) -> Texts:
    """By the texts of the entries that some row names: a file may hand over far more entries than rows."""
    rows = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    named, entry = np.unique(array.indices.take(pa.array(rows)).to_numpy(zero_copy_only=False), return_inverse=True)
    entries = _texts_of_chunk(array.dictionary.take(pa.array(named)))
    places = np.full(len(array), -1, np.int64)
    places[rows] = entries.places[entry]
    return Texts(entries.values, places)


def _known_places(values: pa.Array, places: Ints) -> Ints:
    """The places, −1 where the value is null or empty."""
    known = pc.fill_null(pc.greater(pc.binary_length(values), 0), False).to_numpy(zero_copy_only=False)
    return np.where(np.append(known, False)[places], places, -1)


def _text_one_by_one(array: pa.Array) -> pa.Array:
    return pa.array([_scalar_bytes(array, row) for row in range(len(array))], pa.large_binary())


def _scalar_bytes(array: pa.Array, row: int) -> bytes | None:
    try:
        return object_bytes(array[row].as_py())
    except CONTENT_ERRORS:
        return None


def object_bytes(value: object) -> bytes | None:
    """UTF-8 of `object_text`; bytes as they are, and half of a surrogate pair as bytes that are not UTF-8."""
    if isinstance(value, bytes):
        return value
    text = object_text(value)
    return None if text is None else text.encode("utf-8", errors="surrogatepass")


def object_text(value: object) -> str | None:
    """Text of one Python object out of a column of mixed ones, by the rule of `canonical_text` where it applies.

    >>> [object_text(value) for value in (5.0, True, None, float("nan"))]
    ['5', 'true', None, None]
    """
    try:
        if value is None or value != value:  # NaN, NaT and their kin differ from themselves
            return None
        if isinstance(value, str):
            return value
        if isinstance(value, bool | np.bool_):
            return "true" if value else "false"
        if isinstance(value, float | np.floating):
            number = float(value)
            # 5.0 and 5 are one label: a column of whole numbers with a gap comes as floats from pandas.
            return str(int(number)) if math.isfinite(number) and number.is_integer() else repr(number)
        if isinstance(value, int | np.integer):
            return str(int(value))
        if isinstance(value, KNOWN):
            typed = pa.array([value])
            return str(canonical_text(typed)[0].as_py()) if has_text(typed.type) else _shown(value)
        return _shown(value)
    except CONTENT_ERRORS:
        return _shown(value)


def _shown(value: object) -> str | None:
    try:
        text = str(value)
    # Content never raises: whether a run fails would tell what a cell holds.
    except Exception:  # noqa: BLE001 - the object is private content and may do anything
        return None
    return text if text != "<NA>" else None


def _is_utf8(value: bytes | None) -> bool:
    try:
        (value or b"").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class LabelNumbers:
    """Numbers for labels in the order of their first appearance, over any number of batches."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    def of(self, labels: Texts) -> Unsigned:
        """The number of each row's label; where there is none, any number."""
        coded = labels.values.dictionary_encode()
        known = self._known
        numbers = [known.setdefault(label, len(known)) for label in coded.dictionary.to_pylist()]
        of_values = np.array([*numbers, 0], np.uint64)[pc.fill_null(coded.indices, len(numbers))]
        return np.append(of_values, np.uint64(0))[labels.places]

    def counted(self, times: Ints) -> LabelCounts:
        """Labels in code point order with the number of rows that hold each; only labels that some row holds."""
        # Without those that the bound left no row of. The threshold of a discovery counts on at most k labels of one
        # unit; with a thousand of them, all but k at 0, the unit would have a thousand chances to show one.
        held = sorted(label for label, number in self._known.items() if times[number])  # as UTF-8 sorts
        counts = np.array([times[self._known[label]] for label in held], np.int64)
        return LabelCounts(tuple(label.decode("utf-8") for label in held), counts)

    def __len__(self) -> int:
        return len(self._known)


def label_keys(labels: pa.Array) -> Words:
    """A public hash of each label, by which the rows of one unit are ranked before labels are counted."""
    raw = labels.cast(pa.large_binary()).to_pylist()
    # A public key: ranks must be the same in every source and every run.
    digests = b"".join(hashlib.blake2b(label or b"", digest_size=8, key=b"understudy").digest() for label in raw)
    return np.frombuffer(digests, "<u8").astype(np.uint64)


KeyedRows = npt.NDArray[np.void]

HASH_KEY = 0x756E646572737479  # the letters "understy"; public, so that every source and every run ranks alike
# Public as well. A secret one would rank the rows of a unit anew in every run, and two answers of one table would be
# about different rows.
ORDER_KEY: HashKey = (0x756E646572737479, 0x6F72646572206B31)

# Each of 1,024 buckets holds about a thousandth of the rows that did not fit, and is cut by itself.
BUCKET_BITS = 10
BLOCK_ROWS = 1 << 17


def new_key() -> HashKey:
    """A key for one pass, from the operating system."""
    # Secret, unlike the key of ranks: two ids with one hash would count as one unit, and with a known key somebody
    # could look for such ids.
    return secrets.randbits(64), secrets.randbits(64)


def row_priority(ids: Texts, columns: Sequence[Unsigned]) -> Words:
    """Rank key of each row within its unit, smaller first: a public hash of the id and the codes."""
    # With the id. By codes alone the same ones would win in every unit that holds them, and counts would lean to them.
    return hash_rows([ids.hashes(ORDER_KEY)[:, 0], *columns], HASH_KEY, len(ids.places))


def kept_rows(ids: Texts, columns: Sequence[Unsigned], rows_per_unit: int) -> Ints:
    """Positions (increasing) of the rows that count: at most `rows_per_unit` for each id, none for rows without one.

    Args:
        ids: the text of the unit column.
        columns: the codes of all columns, in domain order.
        rows_per_unit: the bound k, at least one.
    """
    return _first_rows(ids.numbers(), row_priority(ids, columns), columns, rows_per_unit)


def _first_rows(unit: Ints, priority: Words, columns: Sequence[Unsigned], bound: int) -> Ints:
    """Positions (increasing) of each unit's first rows; none of unit −1."""
    held = np.bincount(unit[unit >= 0], minlength=1)
    crowded = np.zeros(len(held) + 1, np.bool_)  # the last entry serves null ids, numbered −1
    # Only units beyond their bound need an order.
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


def _ranked(rows: Ints, unit: Ints, priority: Words, columns: Sequence[Unsigned]) -> Ints:
    """These rows by unit, then priority, then codes; codes are sorted only in the rare case that hashes collide."""
    order = rows[np.lexsort((priority[rows], unit[rows]))]
    one, other = order[:-1], order[1:]
    tied = (unit[one] == unit[other]) & (priority[one] == priority[other])
    one, other = one[tied], other[tied]
    # Ties go by the codes, so that the order of the rows decides nothing; rows with equal codes are interchangeable.
    if any((codes[one] != codes[other]).any() for codes in columns):
        codes_last_first = [codes[rows] for codes in reversed(columns)]
        order = rows[np.lexsort((*codes_last_first, priority[rows], unit[rows]))]
    return order


class UnitRows:
    """The rows of each unit up to its bound, out of a stream of rows in any order, within a limit of memory.

    Rows wait in memory. When they fill their share, those beyond the bound are dropped; if that does not make room, all
    of them go to a temporary file, in buckets by the hash of their unit, and each bucket is cut once more at the end.
    """

    def __init__(
        self,
        kinds: Sequence[np.dtype[np.unsignedinteger]],
        bound: int,
        memory_bytes: int,
        key: HashKey | None = None,
    ) -> None:
        """Where several processes cut one stream, they share a key; else one is drawn here."""
        self._places = [f"c{place}" for place in range(len(kinds))]
        head = [(name, np.dtype(np.uint64)) for name in ("first", "second", "priority")]
        self._record = np.dtype([*head, *zip(self._places, kinds, strict=True)])
        self._key = new_key() if key is None else key
        self._bound = bound
        self._room = memory_bytes // 4  # beside it: a joined copy, what is kept of it, and the sorting
        self._waiting: list[KeyedRows] = []
        self._bytes = 0
        self._buckets: list[list[tuple[int, int]]] = []
        self._file: NamelessFile | None = None

    def add(self, ids: Texts, columns: Sequence[Unsigned], ranking: Sequence[Unsigned] | None = None) -> None:
        """Takes rows in: the text of their ids, and the codes of all columns; see `keyed`."""
        self.add_keyed(self.keyed(ids, columns, ranking))

    def keyed(self, ids: Texts, columns: Sequence[Unsigned], ranking: Sequence[Unsigned] | None = None) -> KeyedRows:
        """Rows that have an id: its keyed hash, their rank key, and their codes; no id and no value.

        Args:
            ids: the text of the unit column.
            columns: what is kept of each row.
            ranking: what a unit's rows are ranked by, if not all of `columns`. Nothing in it may depend on rows of
                other units, or these would decide which rows of a unit count.
        """
        valid = ids.places >= 0
        # From here on an id is 128 keyed bits: neither its text nor its length reaches a buffer or the disk.
        hashes = ids.hashes(self._key)[valid]
        rows = np.empty(len(hashes), self._record)
        rows["first"], rows["second"] = hashes[:, 0], hashes[:, 1]
        rows["priority"] = row_priority(ids, columns if ranking is None else ranking)[valid]
        for place, codes in zip(self._places, columns, strict=True):
            rows[place] = codes[valid]
        return rows

    def read(self, rows: bytes) -> KeyedRows:
        """Keyed rows again, out of the bytes of such rows."""
        return np.frombuffer(rows, self._record)

    def add_keyed(self, rows: KeyedRows) -> None:
        """Takes rows in that were keyed under the same key."""
        self._waiting.append(rows)
        self._bytes += rows.nbytes
        if self._bytes > self._room:
            self._make_room()

    def blocks(self) -> Iterator[tuple[Ints, list[Unsigned]]]:
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

    def _in_blocks(self, rows: KeyedRows, units: Ints) -> Iterator[tuple[Ints, list[Unsigned]]]:
        for low in range(0, len(rows), BLOCK_ROWS):
            here = rows[low : low + BLOCK_ROWS]
            yield units[low : low + BLOCK_ROWS], [np.ascontiguousarray(here[place]) for place in self._places]

    def _cut(self) -> tuple[KeyedRows, Ints]:
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

    def _spill(self, rows: KeyedRows) -> None:
        if self._file is None:
            self._file = NamelessFile()
            self._buckets = [[] for _ in range(1 << BUCKET_BITS)]
        # By the keyed hash alone: no unit is split over buckets, and without the key nobody can fill one of them on
        # purpose.
        bucket = (rows["first"] >> np.uint64(64 - BUCKET_BITS)).astype(np.int64)
        ends = np.cumsum(np.bincount(bucket, minlength=1 << BUCKET_BITS)) * rows.itemsize
        start = self._file.append(_as_bytes(rows).take(np.argsort(bucket, kind="stable"), axis=0))
        for held, low, high in zip(self._buckets, np.r_[0, ends[:-1]].tolist(), ends.tolist(), strict=True):
            if high > low:
                held.append((start + low, high - low))


def _as_bytes(rows: KeyedRows) -> Bytes:
    """One line of bytes per row: NumPy copies these as they are, and fields one by one."""
    return rows.view(np.uint8).reshape(len(rows), rows.itemsize)


def _numbered_pairs(first: Words, second: Words) -> Ints:
    """A number per distinct pair of words: 0, 1, 2, …"""
    order = np.argsort(first, kind="stable")
    # One word tells nearly all units apart; both are sorted by only if that one is tied.
    differs = first[order[1:]] != first[order[:-1]]
    if (~differs & (second[order[1:]] != second[order[:-1]])).any():
        order = np.lexsort((second, first))
        differs = (first[order[1:]] != first[order[:-1]]) | (second[order[1:]] != second[order[:-1]])
    numbers = np.empty(len(first), np.int64)
    numbers[order] = np.r_[0, np.cumsum(differs)][: len(first)]
    return numbers


class NamelessFile:
    """A temporary file that has no name, so that nothing stays of it whatever becomes of the process."""

    def __init__(self) -> None:
        # Unlinked as it is made: nobody else can open it, and a kill leaves nothing behind.
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
