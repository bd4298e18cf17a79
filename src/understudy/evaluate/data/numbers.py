"""Numbers of number columns, as the codec reads them: clamped to the bounds, none where missing or special."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.codec.axis import Axis, axis_of
from understudy.codec.bins import special_of
from understudy.codec.text import is_text, plain
from understudy.schema.column import NumberColumn

__all__ = ["Floats", "read_numbers"]

Floats = npt.NDArray[np.float64]

_CONTENT_ERRORS = (pa.ArrowException, ValueError, TypeError, OverflowError, ArithmeticError, NotImplementedError)


def read_numbers(column: NumberColumn, values: pa.Array | pa.ChunkedArray) -> Floats:
    """Each value on the column's axis (days for dates, seconds for times); NaN where missing, special or unreadable."""
    axis, special = axis_of(column), np.asarray(special_of(column), dtype=np.float64)
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    parts = [_read_safely(axis, special, chunk) for chunk in chunks]
    return np.concatenate([np.empty(0), *parts])


def _read_safely(axis: Axis, special: Floats, array: pa.Array, *, distinct: bool = False) -> Floats:
    """Where Arrow stumbles over a value, only that value is unreadable."""
    try:
        return _read_plain(axis, special, plain(array)) if distinct else _read(axis, special, array)
    except _CONTENT_ERRORS:
        if len(array) <= 1:
            return np.full(len(array), np.nan)
        middle = len(array) // 2
        halves = (array.slice(0, middle), array.slice(middle))
        return np.concatenate([_read_safely(axis, special, half, distinct=distinct) for half in halves])


def _read(axis: Axis, special: Floats, array: pa.Array) -> Floats:
    """What is read through its text is read once for each distinct value."""
    array = plain(array)
    if pa.types.is_null(array.type):
        return np.full(len(array), np.nan)
    if is_text(array.type) or pa.types.is_decimal(array.type) or pa.types.is_float32(array.type):
        array = array.dictionary_encode()
    if not pa.types.is_dictionary(array.type):
        return _read_plain(axis, special, array)
    table = np.append(_read_safely(axis, special, array.dictionary, distinct=True), np.nan)
    indices = pc.fill_null(array.indices.cast(pa.int64()), len(table) - 1)
    found: Floats = np.take(table, indices.to_numpy(zero_copy_only=False), mode="clip")
    return found


def _read_plain(axis: Axis, special: Floats, array: pa.Array) -> Floats:
    reading = axis.read(array)
    numbers = reading.values.astype(np.float64)
    regular = reading.valid & ~(np.isin(numbers, special) & reading.exact)
    return np.where(regular, np.clip(numbers, float(axis.lower), float(axis.upper)), np.nan)
