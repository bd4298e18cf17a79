"""Labels and ids as text: one rule for all sources, so that a file and a frame name the same things.

Text that is empty counts as absent, as it does for categories. Nothing here raises on content: a value that has no
text, or whose text is not Unicode, names nothing.
"""

import datetime
import decimal
import hashlib
import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.codec.text import canonical_text, has_text, plain
from understudy.counts.source import LabelCounts

__all__ = ["CONTENT_ERRORS", "counted_labels", "label_keys", "object_text", "text_of"]

KNOWN = (decimal.Decimal, datetime.date, datetime.time, np.datetime64)
"""Types of single objects that Arrow may be asked to type; it guesses for no others."""
CONTENT_ERRORS = (pa.ArrowException, ValueError, TypeError, OverflowError, AttributeError, ArithmeticError, KeyError)


def text_of(values: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """Canonical text of each value (large_string), null where it is absent, empty or has no text."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    return pa.chunked_array([_text_of_chunk(chunk) for chunk in chunks], pa.large_string())


def _text_of_chunk(chunk: pa.Array) -> pa.Array:
    try:
        array = plain(chunk)
        if pa.types.is_dictionary(array.type):
            of_values = _text_of_chunk(array.dictionary)
            return of_values.take(array.indices)
        text = canonical_text(array) if has_text(array.type) else _text_one_by_one(array)
        text = text.cast(pa.large_string())
    except CONTENT_ERRORS:
        text = _text_one_by_one(chunk)
    return pc.if_else(pc.equal(pc.binary_length(text), 0), pa.scalar(None, pa.large_string()), text)


def _text_one_by_one(array: pa.Array) -> pa.Array:
    return pa.array([_scalar_text(array, row) for row in range(len(array))], pa.large_string())


def _scalar_text(array: pa.Array, row: int) -> str | None:
    try:
        return object_text(array[row].as_py())
    except CONTENT_ERRORS:
        return None


def object_text(value: object) -> str | None:
    """Text of one Python object out of a column of mixed ones, by the rule of `canonical_text` where it applies.

    >>> [object_text(value) for value in (5.0, True, b"x", None, float("nan"))]
    ['5', 'true', 'x', None, None]
    """
    try:
        if value is None or value != value:  # NaN, NaT and their kin differ from themselves
            return None
        if isinstance(value, str):
            return value if _is_unicode(value) else None
        if isinstance(value, bytes):
            return value.decode("utf-8", errors="replace")
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
    return text if _is_unicode(text) and text != "<NA>" else None


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def counted_labels(parts: Iterable[tuple[pa.Array, pa.Array]]) -> LabelCounts:
    """Distinct labels in code point order with their counts, from (text, count) pairs of arrays; nulls are skipped."""
    totals: dict[str, int] = {}
    for texts, counts in parts:
        raw = texts.cast(pa.large_binary())
        for label, count in zip(raw.to_pylist(), counts.to_pylist(), strict=True):
            text = None if label is None else _decoded(label)
            if text:
                totals[text] = totals.get(text, 0) + count
    ordered = sorted(totals)
    return LabelCounts(tuple(ordered), np.array([totals[label] for label in ordered], np.int64))


def _decoded(label: bytes) -> str | None:
    try:
        return label.decode("utf-8")
    except UnicodeDecodeError:
        return None


def label_keys(labels: pa.Array) -> npt.NDArray[np.uint64]:
    """A public hash of each label, by which the rows of one unit are ranked before labels are counted."""
    raw = labels.cast(pa.large_binary()).to_pylist()
    digests = b"".join(hashlib.blake2b(label or b"", digest_size=8, key=b"understudy").digest() for label in raw)
    return np.frombuffer(digests, "<u8").astype(np.uint64)
