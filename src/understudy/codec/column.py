"""The promise every column codec keeps, and the order of its codes.

Codes of a column always come in this order: regular ones (labels or bins), special numbers, other, missing,
unreadable. A value that is there but cannot be read is never given the code of a label or a bin: it goes to other, to
missing or to a code of its own, and where a column has none of these it gets the number past the last code, which is
no code at all. Whoever counts leaves out the rows that hold such a number.
"""

import mmap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy.arrays import Ints, Unsigned
from understudy.codec.kernels import MOST_KNOWN, ByTable, KnownTexts, OnePass, code_in_one_pass, code_truths

CodeArray = Unsigned
Encode = Callable[[pa.Array], CodeArray]

_CONTENT_ERRORS = (pa.ArrowException, ValueError, TypeError, OverflowError, ArithmeticError, NotImplementedError)


def code_type(size: int) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned type that holds codes below `size`.

    >>> code_type(256).name, code_type(257).name
    ('uint8', 'uint16')
    """
    for kind in (np.uint8, np.uint16):
        if size - 1 <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.uint32)


@dataclass(frozen=True, slots=True)
class Layout:
    """How many codes of each sort a column has, and which code each odd value gets.

    >>> Layout(regular=3, special=1, other=True).missing_code
    5
    >>> Layout(regular=3, missing=False, unreadable=True).unreadable_code
    3
    """

    regular: int
    special: int = 0
    other: bool = False
    missing: bool = True
    unreadable: bool = False

    @property
    def size(self) -> int:
        """Number of codes."""
        return self.regular + self.special + self.other + self.missing + self.unreadable

    @property
    def leaves_out(self) -> bool:
        """Whether there are values without a code: there is neither other, nor missing, nor unreadable."""
        return not (self.other or self.missing or self.unreadable)

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The type of an array of these codes, with room for the number that is no code where that can occur."""
        return code_type(self.size + self.leaves_out)

    @property
    def other_code(self) -> int | None:
        """The code of values outside the list, if declared."""
        return self.regular + self.special if self.other else None

    @property
    def missing_code(self) -> int | None:
        """The code of absent values, if declared."""
        return self.regular + self.special + self.other if self.missing else None

    @property
    def unreadable_code(self) -> int | None:
        """The code of values that cannot be read, if they have one of their own."""
        return self.size - 1 if self.unreadable else None

    @property
    def absent(self) -> int:
        """Where an absent value goes: missing, else unreadable, else other, else to no code (`size`)."""
        return _first(self.missing_code, self.unreadable_code, self.other_code, self.size)

    @property
    def unknown(self) -> int:
        """Where a value that is there but cannot be read goes: other, else unreadable, else missing, else to no code.

        A column has unreadable beside missing only in the codec by which a table is judged.
        """
        return _first(self.other_code, self.unreadable_code, self.missing_code, self.size)


def _first(*codes: int | None) -> int:
    return next(code for code in codes if code is not None)


class CodeReader(Protocol):
    """Values → one column of codes. `encode` looks at one value at a time and never raises on content."""

    @property
    def layout(self) -> Layout:
        """The codes."""
        ...

    def encode(self, array: pa.Array) -> CodeArray:
        """The code of each value, for an array of any Arrow type."""
        ...

    def one_pass(self, kind: pa.DataType) -> OnePass | None:
        """The same codes by one loop over the memory of values of this type; None where there is no such loop."""
        ...

    def describe(self, code: int) -> str:
        """The code in words: a label, "[20, 30)", "missing", "unreadable"."""
        ...

    def codes_matching(self, text: str) -> Ints:
        """The codes that a condition such as "F", "missing", "unreadable", "42" or "20..30" stands for exactly."""
        ...

    def nearest_conditions(self, text: str) -> str:
        """Advice for a condition that no codes stand for exactly: the nearest ones that can be asked; may be empty."""
        ...


class ColumnCodec(CodeReader, Protocol):
    """Values ⇄ codes of one column that is not split."""

    @property
    def arrow_type(self) -> pa.DataType:
        """What `decode` returns, from the schema alone."""
        ...

    def decode(self, codes: CodeArray, rng: np.random.Generator) -> pa.Array:
        """One value per code; values of a bin are drawn evenly from it."""
        ...


def encode_safely(array: pa.Array, encode: Encode, layout: Layout) -> CodeArray:
    """Codes of the array; where Arrow stumbles over a value, only that value counts as one that cannot be read.

    Halving keeps the rule that a code depends on its own value alone: the values around it are coded as ever.
    """
    try:
        return encode(array)
    except _CONTENT_ERRORS:
        if len(array) <= 1:
            return np.full(len(array), layout.unknown, dtype=layout.dtype)
        middle = len(array) // 2
        halves = (array.slice(0, middle), array.slice(middle))
        return np.concatenate([encode_safely(half, encode, layout) for half in halves])


def through_dictionary(array: pa.Array, encode: Encode, layout: Layout) -> CodeArray:
    """Codes of an array by coding its distinct values only; nulls are absent."""
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    # An unreadable entry must not reach the rows that hold other entries.
    of_values = encode_safely(array.dictionary, encode, layout)
    table = np.append(of_values, np.asarray([layout.absent], dtype=of_values.dtype))
    indices = array.indices
    if indices.null_count:
        wide = indices.cast(pa.int64())
        indices = pc.fill_null(wide, len(of_values))
    codes: CodeArray = np.take(table, indices.to_numpy(zero_copy_only=False), mode="clip")
    return codes


LEAST_TOUCHED = 1 << 20
MOST_ENTRIES = 1 << 16
"""Maximum number of entries of a dictionary whose codes are kept for the next array."""
TEXTS_AT_A_TIME = 1 << 16
MOST_OTHERS = 0.5
"""The share of texts not met before from which on looking for them does not pay."""


class ColumnPasses:
    """The loops by which columns are coded, made when a storage type is first met; any number of threads may use it.

    What it keeps of values is in memory alone: a copy of it, and one that is unpickled, is empty.
    """

    def __init__(self) -> None:
        self._texts: dict[tuple[str, pa.DataType], KnownTexts | None] = {}
        self._absent: dict[tuple[str, pa.DataType], int] = {}
        self._ways: dict[tuple[str, pa.DataType], tuple[OnePass | None, int]] = {}
        self._truths: dict[str, CodeArray] = {}
        self._entries: dict[str, tuple[pa.Array, CodeArray]] = {}

    def code(self, name: str, reader: CodeReader, array: pa.Array, codes: CodeArray) -> bool:
        """Fills the codes of a column's array; False, and nothing filled, if only the general way can."""
        kind = array.type
        if pa.types.is_dictionary(kind):
            return self._by_entries(name, reader, array, codes)
        if pa.types.is_large_string(kind) or pa.types.is_string(kind):
            return self._by_known_texts(name, reader, array, codes)
        found = self._ways.get((name, kind))
        if found is None:
            way = reader.one_pass(kind)
            known = way is not None or pa.types.is_boolean(kind)
            found = self._ways[name, kind] = way, _code_of(pa.nulls(1, kind), reader) if known else 0
        way, absent = found
        if pa.types.is_boolean(kind):
            if name not in self._truths:
                self._truths[name] = encode_safely(pa.array([False, True]), reader.encode, reader.layout)
            code_truths(array, self._truths[name], absent, codes)
            return True
        if way is not None:
            code_in_one_pass(way, array, absent, codes)
        return way is not None

    def __reduce__(self) -> tuple[type["ColumnPasses"], tuple[()]]:
        return ColumnPasses, ()

    def _by_known_texts(self, name: str, reader: CodeReader, texts: pa.Array, codes: CodeArray) -> bool:
        """Texts met before by their codes, others the general way; False where a column is seen to hold mostly others.

        Threads may replace each other's texts, which costs time and no more: whoever reads has a table that never
        changes.
        """
        key = name, texts.type
        if key not in self._absent:
            self._absent[key] = _code_of(pa.nulls(1, texts.type), reader)
        if self._texts.setdefault(key, KnownTexts.empty()) is None:
            return False
        for first in range(0, len(texts), TEXTS_AT_A_TIME):
            piece = texts.slice(first, TEXTS_AT_A_TIME)
            self._code_texts(key, reader, piece, codes[first : first + len(piece)])
        return True

    def _code_texts(self, key: tuple[str, pa.DataType], reader: CodeReader, texts: pa.Array, codes: CodeArray) -> None:
        known = self._texts[key]
        if known is None:
            codes[:] = encode_safely(texts, reader.encode, reader.layout)
            return
        others = known.code(texts, self._absent[key], codes)
        if not others.size:
            return
        rest = texts.take(pa.array(others))
        found = encode_safely(rest, reader.encode, reader.layout)
        codes[others] = found
        if known.known and others.size > MOST_OTHERS * len(texts):
            self._texts[key] = None
        elif known.known < MOST_KNOWN:
            self._texts[key] = known.with_texts(rest, found)

    def _by_entries(self, name: str, reader: CodeReader, array: pa.Array, codes: CodeArray) -> bool:
        """Numbers of entries are whole numbers; whatever lies beyond the entries counts as absent."""
        if pa.types.is_uint64(array.type.index_type):
            return False
        entries, table = self._entries.get(name, (None, None))
        if entries is None or entries.type != array.type.value_type or not array.dictionary.equals(entries):
            coded = encode_safely(array.dictionary, reader.encode, reader.layout)
            table = np.append(coded, np.asarray([_code_of(pa.nulls(1, array.type.value_type), reader)], coded.dtype))
            if len(coded) <= MOST_ENTRIES and pa.types.is_string(array.type.value_type):
                self._entries[name] = array.dictionary, table
        assert table is not None
        code_in_one_pass(ByTable(0, table), array.indices, int(table[-1]), codes)
        return True


def _code_of(value: pa.Array, reader: CodeReader) -> int:
    return int(encode_safely(value, reader.encode, reader.layout)[0])


def touched(rows: int, dtype: np.dtype[np.unsignedinteger]) -> CodeArray:
    """An array whose pages are there already: faulting them in one by one can cost more than coding a column."""
    if rows * dtype.itemsize < LEAST_TOUCHED or not hasattr(mmap, "MAP_POPULATE"):
        return np.empty(rows, dtype)
    try:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
        return np.frombuffer(mmap.mmap(-1, rows * dtype.itemsize, flags=flags), dtype)
    except OSError:
        return np.empty(rows, dtype)
