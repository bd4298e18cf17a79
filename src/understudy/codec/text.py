"""The text by which a value is compared with labels, the same whether it came from a text file or a typed column.

Nothing is trimmed, folded or normalised here. Text that is not valid UTF-8 is passed on as it is, so it equals no
label.
"""

import math
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["canonical_text", "has_text", "is_absent", "is_text", "plain"]


def plain(array: pa.Array) -> pa.Array:
    """The same values without wrapping: storage of extension types, decoded runs, plain instead of view layouts."""
    if isinstance(array, pa.ExtensionArray):
        return plain(array.storage)
    if pa.types.is_run_end_encoded(array.type):
        return plain(pc.run_end_decode(array))
    if pa.types.is_decimal(array.type) and array.type.bit_width < 128:
        # Arrow has few functions for the narrow ones.
        return array.cast(pa.decimal128(array.type.precision, array.type.scale))
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(array.type):
        return _as_string(array.cast(pa.large_binary()))
    if pa.types.is_fixed_size_binary(array.type):
        return _as_string(array.cast(pa.binary()))
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        return _as_string(array)
    return array


def _as_string(array: pa.Array) -> pa.Array:
    # Unsafe on purpose: a checked cast raises for the whole array when one value is not UTF-8.
    kind = pa.large_string() if pa.types.is_large_binary(array.type) else pa.string()
    return pc.cast(array, options=pc.CastOptions.unsafe(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether `plain` arrays of this type hold text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def has_text(kind: pa.DataType) -> bool:
    """Whether values of this type can equal a label at all (lists, structs, durations cannot)."""
    known = (
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_date,
        pa.types.is_timestamp,
        pa.types.is_time,
    )
    return is_text(kind) or any(test(kind) for test in known)


def is_absent(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Which values of a `plain` array are not there: null, NaN, or text of nothing but white space.

    >>> is_absent(pa.array(["", " ", "NA", None])).tolist()
    [True, True, False, True]
    """
    if is_text(array.type):
        empty = pc.equal(pc.binary_length(pc.ascii_trim_whitespace(array)), 0)
        absent = pc.fill_null(empty, True)
    else:
        absent = array.is_null(nan_is_null=True)
    found: npt.NDArray[np.bool_] = absent.to_numpy(zero_copy_only=False)
    return found


def canonical_text(array: pa.Array) -> pa.Array:
    """The text of each value: 5 and 5.0 are "5", other floats as Python writes them, true, dates in ISO form.

    Nulls and NaN stay null. The type must satisfy `has_text` after `plain`.

    >>> canonical_text(pa.array([5.0, 0.25, float("nan")])).to_pylist()
    ['5', '0.25', None]
    """
    array = plain(array)
    kind = array.type
    if is_text(kind):
        return array
    if pa.types.is_floating(kind):
        return pa.array([_float_text(value) for value in _float_scalars(array)], pa.string())
    if pa.types.is_decimal(kind):
        return pa.array([_decimal_text(value) for value in array.to_pylist()], pa.string())
    if pa.types.is_date64(kind):
        return canonical_text(array.cast(pa.timestamp("ms")).cast(pa.date32(), safe=False))
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        without = pc.replace_substring_regex(array.cast(pa.string()), r"\.0+(\D|$)", r"\1")
        return pc.replace_substring_regex(without, r"(\.\d*[1-9])0+(\D|$)", r"\1\2")
    return array.cast(pa.string())


def _float_scalars(array: pa.Array) -> list[np.floating | float | None]:
    # Python has one float type; half and single floats keep theirs, so that 0.1 is not written 0.10000000149.
    if pa.types.is_float64(array.type):
        return list(array.to_pylist())
    numbers = array.to_numpy(zero_copy_only=False)
    return [None if math.isnan(value) else value for value in numbers]


def _float_text(value: np.floating | float | None) -> str | None:
    if value is None or math.isnan(value):
        return None
    number = float(value)
    if number.is_integer():
        return str(int(number))
    return repr(number) if isinstance(value, float) else str(value)


def _decimal_text(value: Decimal | None) -> str | None:
    if value is None:
        return None
    if value == value.to_integral_value():
        return str(int(value))
    return format(value.normalize(), "f")
