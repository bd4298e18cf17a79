"""The promise every column codec keeps, the order of its codes, and the codec of labels.

Codes of a column always come in this order: regular ones (labels or bins), special numbers, other, missing,
unreadable. A value that is there but cannot be read is never given the code of a label or a bin: it goes to other, to
missing or to a code of its own, and where a column has none of these it gets the number past the last code, which is
no code at all. Whoever counts leaves out the rows that hold such a number.

Labels
------
The codec of categories, open categories and truth values is here too: a list of labels, and the rule by which a value
meets one.

A value meets a label by the first of these that holds, whatever the source and the type it comes in:

1. its text is the label;
2. its text is the label but for white space at either end (space, tab, line ends) of the one or the other;
3. both are the same whole number written out, with or without zeros after a decimal point: 1, 1.0 and 1.00;
4. in columns that ignore case: both are the same once trimmed and case-folded.

Where several labels fit, the one that is written in the plainer form wins (without spaces, without zeros), then the one
declared first. Nothing else is taken for the same: neither "f" and "F" nor "1" and "01". Texts that mean "no value" are
met by the first three rules, after all labels. Each value is looked at alone.

Rare labels may share one code (`PoolCodec`). Which are rare was found out from noisy counts that were paid for
(`methods/preparation.py`); with each goes a share, and a row of the common code is written as one of them, drawn by the
shares. Kept labels come first, in their order, then the common code, then other, missing and unreadable as ever.
"""

import mmap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy.arrays import Integers, Ints, Unsigned
from understudy.codec.kernels import (
    FARTHEST,
    MOST_KNOWN,
    ByTable,
    KnownTexts,
    OnePass,
    code_in_one_pass,
    code_truths,
    is_whole,
)
from understudy.codec.plain_texts import code_plain_texts
from understudy.codec.reading import canonical_text, has_text, is_text, plain
from understudy.errors import UsageError
from understudy.schema.columns import BOOLEAN_WORDS, plain_label, trimmed

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
        # The number past the last code has to fit too, or it would wrap to 0 and be counted as the first label.
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
        # Never to a regular code: that would invent a label where there is none.
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

    @property
    def text_kind(self) -> pa.DataType | None:
        """The storage type as whose values texts are coded (see `plain_texts`); None where they are labels or such.

        "12" is then coded as 12, "2.5" as 2.5, and "2024-05-10" as that day, whatever stands around it.
        """
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
        # Halves until the value that Arrow stumbled over stands alone; all others are coded as if it were not there.
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
    # An index beyond the entries, in a damaged file, is absent: content never raises.
    codes: CodeArray = np.take(table, indices.to_numpy(zero_copy_only=False), mode="clip")
    return codes


LEAST_TOUCHED = 1 << 20
MOST_ENTRIES = 1 << 16
"""Maximum number of entries of a dictionary whose codes are kept for the next array."""
TEXTS_AT_A_TIME, FIRST_TEXTS = 1 << 16, 1 << 12
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
        self._entries: dict[str, tuple[pa.Array, ByTable]] = {}

    def code(self, name: str, reader: CodeReader, array: pa.Array, codes: CodeArray) -> bool:
        """Fills the codes of a column's array; False, and nothing filled, if only the general way can."""
        kind = array.type
        if pa.types.is_dictionary(kind):
            return self._by_entries(name, reader, array, codes)
        if pa.types.is_large_string(kind) or pa.types.is_string(kind):
            return self._by_plain_texts(name, reader, array, codes)
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

    def _by_plain_texts(self, name: str, reader: CodeReader, texts: pa.Array, codes: CodeArray) -> bool:
        """Numbers, dates and moments in plain form as what they say; other texts by those met before."""
        kind = reader.text_kind
        if kind is not None and (name, kind) not in self._ways:
            self._ways[name, kind] = reader.one_pass(kind), _code_of(pa.nulls(1, texts.type), reader)
        way, absent = (None, 0) if kind is None else self._ways[name, kind]
        if way is None:
            return self._by_known_texts(name, reader, texts, codes)
        others = code_plain_texts(kind, way, texts, absent, codes)
        if others.size:
            rest = texts if others.size == len(texts) else texts.take(pa.array(others))
            found = np.empty(len(rest), codes.dtype)
            if not self._by_known_texts(name, reader, rest, found):
                found = encode_safely(rest, reader.encode, reader.layout)
            codes[others] = found
        return True

    def _by_known_texts(self, name: str, reader: CodeReader, texts: pa.Array, codes: CodeArray) -> bool:
        """Texts met before by their codes, others the general way; False where a column is seen to hold mostly others.

        Threads may replace each other's texts, which costs time and no more: whoever reads has a table that never
        changes.
        """
        key = name, texts.type
        if key not in self._absent:
            self._absent[key] = _code_of(pa.nulls(1, texts.type), reader)
        # None: seen to hold mostly new texts, where looking for known ones does not pay.
        if self._texts.setdefault(key, KnownTexts.empty()) is None:
            return False
        first = 0
        while first < len(texts):
            # Few at first: as soon as most texts are known, one loop codes the others.
            known = self._texts[key]
            most = TEXTS_AT_A_TIME if known is None or known.known else FIRST_TEXTS
            piece = texts.slice(first, most)
            self._code_texts(key, reader, piece, codes[first : first + len(piece)])
            first += len(piece)
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
        # Which way is taken depends on the rows, what comes out does not: both give the same codes.
        if known.known and others.size > MOST_OTHERS * len(texts):
            self._texts[key] = None
        elif known.known < MOST_KNOWN:
            self._texts[key] = known.with_texts(rest, found)

    def _by_entries(self, name: str, reader: CodeReader, array: pa.Array, codes: CodeArray) -> bool:
        """Numbers of entries are whole numbers; whatever lies beyond the entries counts as absent."""
        if pa.types.is_uint64(array.type.index_type):
            return False
        entries, way = self._entries.get(name, (None, None))
        # Batches of one file bring the same dictionary again and again; comparing it is quicker than coding it.
        known = entries is not None and entries.type == array.type.value_type and array.dictionary.equals(entries)
        if way is None or not known:
            coded = encode_safely(array.dictionary, reader.encode, reader.layout)
            table = np.append(coded, np.asarray([_code_of(pa.nulls(1, array.type.value_type), reader)], coded.dtype))
            way = ByTable(-1, np.append(table[:1], table))
            if len(coded) <= MOST_ENTRIES and pa.types.is_string(array.type.value_type):
                self._entries[name] = array.dictionary, way
        code_in_one_pass(way, array.indices, int(way.table[-1]), codes)
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


# A label list such as 0…120 or county codes spans little; beyond this the table would cost more than hashing.
_WIDEST_TABLE = 1 << 20

_MOST_ENTRIES = 1 << 12

# A whole number with zeros after the point, and its plain form.
_ZEROS = r"^(-?(?:0|[1-9][0-9]{0,19}))\.0+$"


class LabelCodec:
    """Labels ⇄ codes. Integers, dates and other typed values are compared by their canonical text."""

    def __init__(
        self,
        labels: Sequence[str],
        layout: Layout,
        arrow_type: pa.DataType,
        *,
        other: str | None = None,
        words: Mapping[str, int] | None = None,
        values: pa.Array | None = None,
        absent: Sequence[str] = (),
        ignore_case: bool = False,
    ) -> None:
        self.labels = tuple(labels)
        self.layout = layout
        self.arrow_type = arrow_type
        self.other = other
        # With `words`, input is trimmed and folded before it is looked up; labels proper are never touched.
        self._folded = words is not None
        known = dict(words) if words is not None else _spellings(self.labels)
        self._folds = _folds(known) if ignore_case else {}
        # Where both go to one code there is nothing to tell apart.
        if layout.absent != layout.unknown:
            for text in absent:
                self._add_absent(known, text)
        # Last, so that a label that is the empty text, where there is one, is met first.
        known.setdefault("", layout.absent)
        self._texts = pa.array(list(known), pa.string())
        # One entry more than texts: what is not found points there.
        self._codes = np.asarray([*known.values(), layout.unknown], dtype=layout.dtype)
        self._low, self._table = _integer_table(known, layout)
        shown: list[str | None] = [*self.labels]
        shown += [other] if layout.other else []
        shown += [None] * (layout.missing + layout.unreadable)
        self._values = labels_as(shown, arrow_type) if values is None else values
        whole = pa.types.is_integer(self._values.type) and not self._values.null_count
        self._plain_values: Integers | None = self._values.to_numpy() if whole else None

    def _add_absent(self, known: dict[str, int], text: str) -> None:
        """Lets a text that means "no value" be met as a label would be, unless a label is."""
        for form in (trimmed(text), plain_label(text)):
            if self._folded:
                known.setdefault(form.lower(), self.layout.absent)
            elif form.casefold() not in self._folds:
                known.setdefault(form, self.layout.absent)

    def encode(self, array: pa.Array) -> CodeArray:
        """The code of each value."""
        array = plain(array)
        kind = array.type
        if pa.types.is_dictionary(kind):
            return through_dictionary(array, self.encode, self.layout)
        if pa.types.is_null(kind):
            return np.full(len(array), self.layout.absent, dtype=self.layout.dtype)
        if is_text(kind):
            return self._encode_text(array)
        if pa.types.is_integer(kind) and not pa.types.is_uint64(kind) and self._table is not None:
            return self._encode_integers(array, self._table)
        if has_text(kind):
            return through_dictionary(array, self._encode_distinct, self.layout)
        return self._with_nulls(np.full(len(array), self.layout.unknown, dtype=self.layout.dtype), array)

    text_kind: pa.DataType | None = None

    def one_pass(self, kind: pa.DataType) -> ByTable | None:
        """Whole numbers by a table that begins and ends with the code of all that are no label."""
        if not is_whole(kind) or self._table is None or abs(self._low) >= FARTHEST:
            return None
        return ByTable(self._low - 1, np.append(self._table[-1:], self._table))

    def _encode_distinct(self, array: pa.Array) -> CodeArray:
        return self._encode_text(canonical_text(array))

    def _encode_text(self, array: pa.Array) -> CodeArray:
        if self._folded:
            array = pc.ascii_lower(pc.ascii_trim_whitespace(array))
        known = self._texts.cast(array.type)
        found = pc.fill_null(pc.index_in(array, value_set=known), len(known)).to_numpy(zero_copy_only=False)
        rest = np.flatnonzero((found == len(known)) & array.is_valid().to_numpy(zero_copy_only=False))
        if rest.size:
            found = found.copy()
            found[rest] = self._found_plain(array.take(pa.array(rest)), known)
        codes = np.take(self._codes, found, mode="clip")
        if self._folds:
            rest = rest[found[rest] == len(known)]
            codes[rest] = self._met_by_case(array.take(pa.array(rest)))
        return self._with_nulls(codes, array)

    def _met_by_case(self, texts: pa.Array) -> CodeArray:
        """Codes of texts that no label is met by as they are written."""
        distinct = texts.dictionary_encode()
        binary = pa.large_binary() if pa.types.is_large_string(texts.type) else pa.binary()
        table = [
            self._folds.get(_case_folded(raw), self.layout.unknown)
            for raw in distinct.dictionary.cast(binary).to_pylist()
        ]
        codes: CodeArray = np.asarray(table, dtype=self.layout.dtype)[distinct.indices.to_numpy(zero_copy_only=False)]
        return codes

    def _found_plain(self, texts: pa.Array, known: pa.Array) -> Integers:
        """Places of the texts among those known once spaces, then zeros after a point, are taken off."""
        trimmed, whole = pc.ascii_trim_whitespace(texts), plain_labels(texts)
        found = pc.coalesce(pc.index_in(trimmed, value_set=known), pc.index_in(whole, value_set=known))
        places: Integers = pc.fill_null(found, len(known)).to_numpy(zero_copy_only=False)
        return places

    def _encode_integers(self, array: pa.Array, table: CodeArray) -> CodeArray:
        numbers = (pc.fill_null(array, 0) if array.null_count else array).to_numpy(zero_copy_only=False)
        # Unsigned differences wrap, so that one comparison finds values on either side of the table.
        offsets = numbers.astype(np.int64).view(np.uint64) - np.uint64(self._low & 0xFFFF_FFFF_FFFF_FFFF)
        np.minimum(offsets, np.uint64(len(table) - 1), out=offsets)
        return self._with_nulls(np.take(table, offsets.view(np.int64), mode="clip"), array)

    def _with_nulls(self, codes: CodeArray, array: pa.Array) -> CodeArray:
        if array.null_count:
            codes[array.is_null().to_numpy(zero_copy_only=False)] = self.layout.absent
        return codes

    def decode(self, codes: CodeArray, rng: np.random.Generator) -> pa.Array:
        """The label of each code."""
        if self._plain_values is not None:
            return pa.array(np.take(self._plain_values, codes))
        return self._values.take(pa.array(codes))

    def entries(self, codes: CodeArray) -> pa.Array:
        """The same as entries of a dictionary, where labels are not too many; else as `decode` gives them.

        Whoever writes a file need then not look for repeated texts.
        """
        named = self.layout.size - self.layout.missing - self.layout.unreadable
        if named > _MOST_ENTRIES:
            return self._values.take(pa.array(codes))
        places = pa.array(codes, mask=codes >= named if named < self.layout.size else None)
        return pa.DictionaryArray.from_arrays(places, self._values.slice(0, named), safe=False)

    def describe(self, code: int) -> str:
        """The label, the name of other, "missing" or "unreadable"."""
        if code == self.layout.missing_code:
            return "missing"
        if code == self.layout.unreadable_code:
            return "unreadable"
        if code == self.layout.other_code:
            return str(self.other)
        return self.labels[code]

    def codes_matching(self, text: str) -> Ints:
        """The code of that label; labels come before the name of other and the words "missing" and "unreadable"."""
        if text in self.labels:
            return np.asarray([self.labels.index(text)], dtype=np.int64)
        if self.layout.other and text == self.other:
            return np.asarray([self.layout.other_code], dtype=np.int64)
        if self.layout.missing and text == "missing":
            return np.asarray([self.layout.missing_code], dtype=np.int64)
        if self.layout.unreadable and text == "unreadable":
            return np.asarray([self.layout.unreadable_code], dtype=np.int64)
        code = int(self.encode(pa.array([text], pa.string()))[0])  # as a value of a file would be read
        return np.asarray([code] if code < self.layout.regular else [], dtype=np.int64)

    def nearest_conditions(self, text: str) -> str:
        """Nothing: a label is either known or not."""
        return ""


def plain_labels(texts: pa.Array) -> pa.Array:
    """Each text without white space at its ends, and a whole number without zeros after a decimal point.

    >>> plain_labels(pa.array([" Bern ", "1.0", "-0.0", "01.0"])).to_pylist()
    ['Bern', '1', '0', '01.0']
    """
    whole = pc.replace_substring_regex(pc.ascii_trim_whitespace(texts), _ZEROS, r"\1")
    return pc.if_else(pc.equal(whole, "-0"), pa.scalar("0", whole.type), whole)


def boolean_codec(layout: Layout, arrow_type: pa.DataType, absent: Sequence[str] = ()) -> LabelCodec:
    """False is 0, true is 1; the usual words and 0/1 are understood in any case."""
    values = pa.array([False, True, None, None][: layout.size]).cast(arrow_type)
    return LabelCodec(("false", "true"), layout, arrow_type, words=BOOLEAN_WORDS, values=values, absent=absent)


def labels_as(labels: Sequence[str | None], kind: pa.DataType) -> pa.Array:
    """The labels in the wanted type; a label that cannot be written in it becomes null.

    >>> labels_as(["1", "x", None], pa.int64()).to_pylist()
    [1, None, None]
    """
    texts = pa.array(labels, pa.string())
    try:
        return texts.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.concat_arrays([pa.array([], kind), *(_label_as(label, kind) for label in labels)])


def _label_as(label: str | None, kind: pa.DataType) -> pa.Array:
    try:
        return pa.array([label], pa.string()).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(1, kind)


def _spellings(labels: Sequence[str]) -> dict[str, int]:
    """The code of every text that a label can be met by; labels as declared come first, plainer forms of them last."""
    known = {label: code for code, label in enumerate(labels)}
    for form in (trimmed, plain_label):
        for code, label in enumerate(labels):
            if trimmed(label):
                known.setdefault(form(label), code)
    return known


def _folds(known: Mapping[str, int]) -> dict[str, int]:
    """The code of every text that a label can be met by when case is ignored."""
    found: dict[str, int] = {}
    for text, code in known.items():
        if trimmed(text):
            found.setdefault(trimmed(text).casefold(), code)
    return found


def _case_folded(raw: bytes) -> str:
    try:
        return plain_label(raw.decode("utf-8")).casefold()
    except UnicodeDecodeError:
        return ""


def _integer_table(known: Mapping[str, int], layout: Layout) -> tuple[int, CodeArray | None]:
    """Codes by integer value minus the first returned number; the last entry is for all other integers."""
    codes = {int(text): code for text, code in known.items() if _is_integer_text(text)}
    low, high = (min(codes), max(codes)) if codes else (0, -1)
    # Labels may be written with 20 digits, more than a column of integers can hold.
    if high - low >= _WIDEST_TABLE or low < -(2**63) or high >= 2**63:
        return 0, None
    table = np.full(high - low + 2, layout.unknown, dtype=layout.dtype)
    for number, code in codes.items():
        table[number - low] = code
    return low, table


def _is_integer_text(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 20 and str(int(text)) == text


Pool = tuple[tuple[str, float], ...]
"""The rare labels of a column and the share of each, in the order of its labels."""


class PoolCodec:
    """Labels ⇄ codes by way of the codes of all labels."""

    def __init__(self, full: LabelCodec, pool: Pool) -> None:
        self.full = full
        self.arrow_type = full.arrow_type
        rare = dict(pool)
        kept = [code for code, label in enumerate(full.labels) if label not in rare]
        self._members = np.array([code for code, label in enumerate(full.labels) if label in rare], dtype=np.int64)
        shares = np.array([rare[full.labels[code]] for code in self._members], dtype=np.float64)
        # Shares were paid for (`methods/preparation.py`); which label a row gets is post-processing.
        self._steps = np.cumsum(shares / shares.sum())
        self.layout = replace(full.layout, regular=len(kept) + 1)
        self.pooled_code = len(kept)
        beyond = range(full.layout.regular, full.layout.size)
        # From a code of this column to one of all labels (any member for the common code), and back.
        self._wide = np.array([*kept, self._members[0], *beyond], dtype=np.int64)
        self._places = np.full(full.layout.size + 1, self.pooled_code, dtype=self.layout.dtype)
        self._places[self._wide] = np.arange(self.layout.size)
        self._places[self._members] = self.pooled_code
        if full.layout.leaves_out:
            self._places[full.layout.size] = self.layout.size  # no code is no code here either

    def encode(self, array: pa.Array) -> CodeArray:
        """The code of each value."""
        codes: CodeArray = np.take(self._places, self.full.encode(array))
        return codes

    text_kind: pa.DataType | None = None

    def one_pass(self, kind: pa.DataType) -> OnePass | None:
        """The loop for all labels, with the codes of this column in its table."""
        way = self.full.one_pass(kind)
        return None if way is None else ByTable(way.low, np.take(self._places, way.table))

    def decode(self, codes: CodeArray, rng: np.random.Generator) -> pa.Array:
        """The label of each code; for the common code one of the rare labels, drawn by their shares."""
        wide = self._wide[codes]
        pooled = np.flatnonzero(codes == self.pooled_code)
        drawn = np.searchsorted(self._steps, rng.random(pooled.size), side="right")
        wide[pooled] = self._members[np.minimum(drawn, self._members.size - 1)]
        return self.full.decode(wide.astype(self.full.layout.dtype), rng)

    def describe(self, code: int) -> str:
        """The label, the name of other, "missing", or what stands for the rare labels."""
        if code == self.pooled_code:
            return f"one of {self._members.size:,} rare labels"
        return self.full.describe(int(self._wide[code]))

    def codes_matching(self, text: str) -> Ints:
        """The code of that label or description; none for a rare label, which no count can tell from the others."""
        if text == self.describe(self.pooled_code):
            return np.asarray([self.pooled_code], dtype=np.int64)
        codes = self._places[self.full.codes_matching(text)]
        return np.asarray(codes[codes != self.pooled_code], dtype=np.int64)

    def nearest_conditions(self, text: str) -> str:
        """For a rare label, the condition that holds all of them; else nothing."""
        known = self._places[self.full.codes_matching(text)]
        if not (known == self.pooled_code).any():
            return ""
        return f'It is rare and shares a code; ask for all of these labels with "{self.describe(self.pooled_code)}".'


def checked_pool(column: str, labels: Sequence[str], pool: Pool) -> Pool:
    """The pool, if it names two or more labels of the column once each, with shares that can be drawn by."""
    names = [label for label, _ in pool]
    shares = [share for _, share in pool]
    if len(names) < 2 or len(set(names)) < len(names) or not set(names) <= set(labels):
        raise UsageError(f"column {column!r}", "needs at least two of its labels, each once, as its rare labels.")
    if not all(np.isfinite(share) and share >= 0 for share in shares) or not sum(shares) > 0:
        raise UsageError(f"column {column!r}", "needs shares of its rare labels that are 0 or more, not all 0.")
    return pool
