"""Labels and ids as text: one rule for all sources, so that a file and a frame name the same things.

Text that is empty counts as absent, as it does for categories. Nothing here raises on content.

Labels. A value whose bytes are not valid UTF-8, or that is longer than `MOST_LABEL_BYTES`, is unreadable: it equals no
label and never becomes one. The rule is the same for text files, Parquet, databases and frames, and nothing is guessed:
text in another encoding has to be converted first. So a value's own bytes decide how it is coded, and what is counted
as a label is always short and can always be written to a file.

Ids need not be readable. They are compared byte by byte, whatever they hold and however long they are.
"""

import datetime
import decimal
import hashlib
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.codec.label_codec import plain_labels
from understudy.codec.text import canonical_text, has_text, plain
from understudy.counts.kernels import hash_texts
from understudy.counts.source import Ints, LabelCounts
from understudy.schema.column import MOST_LABEL_BYTES

__all__ = [
    "CONTENT_ERRORS",
    "HashKey",
    "LabelNumbers",
    "Texts",
    "Words",
    "label_keys",
    "object_bytes",
    "object_text",
    "texts_of",
]

Codes = npt.NDArray[np.unsignedinteger]
Words = npt.NDArray[np.uint64]
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

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Texts":
        """The same, with no text for rows that are not chosen."""
        return Texts(self.values, np.where(chosen, self.places, -1))

    def only_at(self, rows: Ints | None) -> "Texts":
        """The same, with no text for rows other than these; None stands for all rows."""
        if rows is None:
            return self
        chosen = np.zeros(len(self.places), np.bool_)
        chosen[rows] = True
        return self.where(chosen)

    def only_labels(self) -> "Texts":
        """The same as labels: trimmed and with whole numbers written plainly, as the codec compares them.

        Text that is not UTF-8 or longer than `MOST_LABEL_BYTES` can be no label, and neither can white space alone.
        """
        short = pc.less_equal(pc.fill_null(pc.binary_length(self.values), 0), MOST_LABEL_BYTES)
        values = pc.if_else(short, self.values, pa.scalar(None, pa.large_binary()))
        try:
            values.cast(pa.large_string())
        except pa.ArrowInvalid:
            values = pa.array([value if _is_utf8(value) else None for value in values.to_pylist()], pa.large_binary())
        values = plain_labels(values.cast(pa.large_string())).cast(pa.large_binary())
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

    def of(self, labels: Texts) -> Codes:
        """The number of each row's label; where there is none, any number."""
        coded = labels.values.dictionary_encode()
        known = self._known
        numbers = [known.setdefault(label, len(known)) for label in coded.dictionary.to_pylist()]
        of_values = np.array([*numbers, 0], np.uint64)[pc.fill_null(coded.indices, len(numbers))]
        return np.append(of_values, np.uint64(0))[labels.places]

    def counted(self, times: Ints) -> LabelCounts:
        """Labels in code point order with the number of rows that hold each; only labels that some row holds."""
        held = sorted(label for label, number in self._known.items() if times[number])  # as UTF-8 sorts
        counts = np.array([times[self._known[label]] for label in held], np.int64)
        return LabelCounts(tuple(label.decode("utf-8") for label in held), counts)

    def __len__(self) -> int:
        return len(self._known)


def label_keys(labels: pa.Array) -> npt.NDArray[np.uint64]:
    """A public hash of each label, by which the rows of one unit are ranked before labels are counted."""
    raw = labels.cast(pa.large_binary()).to_pylist()
    digests = b"".join(hashlib.blake2b(label or b"", digest_size=8, key=b"understudy").digest() for label in raw)
    return np.frombuffer(digests, "<u8").astype(np.uint64)
