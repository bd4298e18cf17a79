"""Numbers out of any Arrow array, one value at a time: a typed column and the same column as text read the same.

Whether and how a value is understood depends on that value alone. A shortcut that accepts more (or less) when the
whole array looks clean would let one record change the codes of others.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.codec.text import is_text, plain

__all__ = ["Bools", "Reading", "nothing", "read_reals", "read_wholes"]

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.number]

_MOST, _LEAST = np.iinfo(np.int64).max, np.iinfo(np.int64).min
_WHOLE = r"^[+-]?[0-9]{1,18}$"
# Forms Arrow surely parses without overflow; everything else goes through Python, which rounds alike.
_SHORT_REAL = r"^[+-]?[0-9]{1,18}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,2})?$"
_ANY_WHOLE = re.compile(r"[+-]?[0-9]+")
_ANY_REAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WORD = {"true": 1, "false": 0}
_INFINITE = re.compile(r"([+-]?)inf(inity)?")


@dataclass(frozen=True, slots=True)
class Reading:
    """Numbers, which of them were understood, and which were met exactly (neither floored nor cut at 64 bits)."""

    values: Integers | Reals
    valid: Bools
    exact: Bools


def nothing(rows: int) -> Reading:
    """A reading in which no value was understood."""
    return Reading(np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=bool), np.zeros(rows, dtype=bool))


def read_wholes(array: pa.Array) -> Reading:
    """The greatest integer not above each value."""
    array = plain(array)
    kind = array.type
    if pa.types.is_boolean(kind):
        return read_wholes(array.cast(pa.int8()))
    if pa.types.is_uint64(kind):
        numbers = _dense(array)
        fits: Bools = np.less_equal(numbers, np.uint64(_MOST))
        return Reading(np.minimum(numbers, np.uint64(_MOST)).astype(np.int64), _valid(array), fits)
    if pa.types.is_integer(kind):
        return Reading(_dense(array).astype(np.int64), _valid(array), np.ones(len(array), dtype=bool))
    if pa.types.is_floating(kind):
        return _floor(_dense(array).astype(np.float64), _valid(array))
    if pa.types.is_decimal(kind):
        return read_wholes(array.cast(pa.string()))
    if is_text(kind):
        return _wholes_of_text(pc.ascii_trim_whitespace(array))
    return nothing(len(array))


def read_reals(array: pa.Array) -> Reading:
    """Each value as a float, correctly rounded; NaN is not understood, infinities are."""
    array = plain(array)
    kind = array.type
    if pa.types.is_boolean(kind):
        return read_reals(array.cast(pa.int8()))
    if pa.types.is_decimal(kind) or pa.types.is_float32(kind):
        # A single float means its shortest decimal form: 0.7 lies at the edge 0.7, not below it.
        return read_reals(array.cast(pa.string()))
    if is_text(kind):
        return _reals_of_text(pc.ascii_trim_whitespace(array))
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return nothing(len(array))
    # Adding zero turns -0.0 into 0.0.
    numbers = _dense(array).astype(np.float64) + 0.0
    valid = _valid(array) & ~np.isnan(numbers)
    return Reading(np.where(valid, numbers, 0.0), valid, valid)


def _dense(array: pa.Array) -> Numbers:
    filled = pc.fill_null(array, pa.scalar(0, array.type)) if array.null_count else array
    numbers: Numbers = filled.to_numpy(zero_copy_only=False)
    return numbers


def _valid(array: pa.Array) -> Bools:
    if not array.null_count:
        return np.ones(len(array), dtype=bool)
    known: Bools = array.is_valid().to_numpy(zero_copy_only=False)
    return known


def _floor(numbers: Reals, valid: Bools) -> Reading:
    valid = valid & ~np.isnan(numbers)
    floors = np.floor(np.where(valid, numbers, 0.0))
    high, low = floors >= 2.0**63, floors < -(2.0**63)
    values = np.where(high | low, 0.0, floors).astype(np.int64)
    values[high], values[low] = _MOST, _LEAST
    return Reading(values, valid, valid & (floors == numbers) & ~high & ~low)


def _wholes_of_text(texts: pa.Array) -> Reading:
    short = _matches(texts, _WHOLE)
    values = _cast_where(texts, short, pa.int64()).astype(np.int64)
    reading = Reading(values, short, short.copy())
    real = ~short & _matches(texts, _SHORT_REAL)
    if real.any():
        part = _floor(
            _cast_where(texts, real, pa.float64())[real].astype(np.float64), np.ones(int(real.sum()), dtype=bool)
        )
        _place(reading, real, part)
    _read_rest(texts, reading, ~short & ~real, _whole_of)
    return reading


def _reals_of_text(texts: pa.Array) -> Reading:
    short = _matches(texts, _SHORT_REAL)
    values = _cast_where(texts, short, pa.float64()).astype(np.float64) + 0.0
    reading = Reading(values, short, short.copy())
    _read_rest(texts, reading, ~short, _real_of)
    return reading


def _matches(texts: pa.Array, pattern: str) -> Bools:
    found: Bools = pc.fill_null(pc.match_substring_regex(texts, pattern), False).to_numpy(zero_copy_only=False)
    return found


def _cast_where(texts: pa.Array, chosen: Bools, kind: pa.DataType) -> Numbers:
    bare = pc.ascii_ltrim(texts, characters="+")
    picked = pc.if_else(pa.array(chosen), bare, pa.scalar("0", texts.type))
    numbers: Numbers = picked.cast(kind).to_numpy(zero_copy_only=False)
    return numbers


def _place(reading: Reading, where: Bools, part: Reading) -> None:
    reading.values[where] = part.values
    reading.valid[where] = part.valid
    reading.exact[where] = part.exact


def _read_rest(
    texts: pa.Array, reading: Reading, where: Bools, read: Callable[[str], tuple[int | float, bool] | None]
) -> None:
    """Reads the values the quick patterns did not cover, one by one."""
    hopeful = where & _matches(texts, r"^[+-]?([0-9.]|[iI][nN][fF]|[tT][rR]|[fF][aA])[ -~]*$")
    rows = np.flatnonzero(hopeful)
    binary = pa.large_binary() if pa.types.is_large_string(texts.type) else pa.binary()
    for row, raw in zip(rows, texts.take(pa.array(rows)).cast(binary).to_pylist(), strict=True):
        found = read(raw.decode("ascii").lower())
        if found is not None:
            reading.values[row], reading.exact[row] = found
            reading.valid[row] = True


def _whole_of(text: str) -> tuple[int, bool] | None:
    if _ANY_WHOLE.fullmatch(text):
        digits = text.lstrip("+-").lstrip("0") or "0"
        number = int(digits) if len(digits) <= 19 else _MOST + 2
        number = -number if text.startswith("-") else number
        return min(max(number, _LEAST), _MOST), _LEAST <= number <= _MOST
    found = _real_of(text)
    if found is None:
        return None
    part = _floor(np.asarray([found[0]], dtype=np.float64), np.ones(1, dtype=bool))
    return int(part.values[0]), bool(part.exact[0])


def _real_of(text: str) -> tuple[float, bool] | None:
    if text in _WORD:
        return float(_WORD[text]), True
    infinite = _INFINITE.fullmatch(text)
    if infinite:
        return (-math.inf if infinite[1] == "-" else math.inf), True
    return (float(text) + 0.0, True) if _ANY_REAL.fullmatch(text) else None
