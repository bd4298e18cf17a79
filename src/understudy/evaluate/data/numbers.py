"""Numbers of number columns, as the codec reads them and as the file has them."""

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


def read_numbers(column: NumberColumn, values: pa.Array | pa.ChunkedArray) -> tuple[Floats, Floats]:
    """Each value on the column's axis (days for dates, seconds for times), twice: as the codec reads it, and raw.

    The first is clamped to the bounds, and NaN where the value is missing, special or unreadable. The second is the
    number that the file holds, special ones and those beyond the bounds included; NaN where it holds none.
    """
    axis, special = axis_of(column), np.asarray(special_of(column), dtype=np.float64)
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    parts = [_read_safely(axis, special, chunk) for chunk in chunks]
    both = np.concatenate([np.empty((2, 0)), *parts], axis=1)
    return both[0], both[1]


def _read_safely(axis: Axis, special: Floats, array: pa.Array, *, distinct: bool = False) -> Floats:
    """Where Arrow stumbles over a value, only that value is unreadable."""
    try:
        return _read_plain(axis, special, plain(array)) if distinct else _read(axis, special, array)
    except _CONTENT_ERRORS:
        if len(array) <= 1:
            return np.full((2, len(array)), np.nan)
        middle = len(array) // 2
        halves = (array.slice(0, middle), array.slice(middle))
        return np.concatenate([_read_safely(axis, special, half, distinct=distinct) for half in halves], axis=1)


def _read(axis: Axis, special: Floats, array: pa.Array) -> Floats:
    """What is read through its text is read once for each distinct value."""
    array = plain(array)
    if pa.types.is_null(array.type):
        return np.full((2, len(array)), np.nan)
    if is_text(array.type) or pa.types.is_decimal(array.type) or pa.types.is_float32(array.type):
        array = array.dictionary_encode()
    if not pa.types.is_dictionary(array.type):
        return _read_plain(axis, special, array)
    known = _read_safely(axis, special, array.dictionary, distinct=True)
    table = np.append(known, np.full((2, 1), np.nan), axis=1)
    indices = pc.fill_null(array.indices.cast(pa.int64()), table.shape[1] - 1)
    found: Floats = np.take(table, indices.to_numpy(zero_copy_only=False), axis=1, mode="clip")
    return found


def _read_plain(axis: Axis, special: Floats, array: pa.Array) -> Floats:
    reading = axis.read(array)
    numbers = reading.values.astype(np.float64)
    regular = reading.valid & ~(np.isin(numbers, special) & reading.exact)
    clamped = np.clip(numbers, float(axis.lower), float(axis.upper))
    return np.stack([np.where(regular, clamped, np.nan), np.where(reading.valid, numbers, np.nan)])
