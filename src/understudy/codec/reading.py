"""Text, numbers, days and instants out of any Arrow array: a typed column and the same column as text read the same.

Whether and how a value is understood depends on that value alone. A shortcut that accepts more (or less) when the
whole array looks clean would let one record change the codes of others.

Text, by which a value is compared with labels, is not trimmed, folded or normalised here. Text that is not valid UTF-8
is passed on as it is, so it equals no label.

A column may say that text writes its numbers in another form (1.234,50 €); then only that form is read, and typed
numbers are taken as they are all the same.

Days, instants and times are in ISO form or in a strptime format; names of months and days are English whatever the
locale. Moments far outside any calendar are cut at ±3·10¹¹ seconds (some 9,500 years), where they lie beyond every
bound.
"""

import datetime as dt
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.arrays import Bools, Floats, Ints
from understudy.codec.kernels import (
    HAS_OFFSET,
    LEAST_ROWS,
    MATCHED,
    OFFSET,
    SECONDS,
    iso_moments,
    short_reals,
    trimmed,
    whole_numbers,
)
from understudy.schema.columns import Float, Integer, read_moment


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


def is_absent(array: pa.Array) -> Bools:
    """Which values of a `plain` array are not there: null, NaN, or text of nothing but white space.

    >>> is_absent(pa.array(["", " ", "NA", None])).tolist()
    [True, True, False, True]
    """
    if is_text(array.type):
        empty = pc.equal(pc.binary_length(pc.ascii_trim_whitespace(array)), 0)
        absent = pc.fill_null(empty, True)
    else:
        absent = array.is_null(nan_is_null=True)
    found: Bools = absent.to_numpy(zero_copy_only=False)
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
    # 5.0 and 5 are one label, whichever a file or a frame happens to hold.
    if number.is_integer():
        return str(int(number))
    return repr(number) if isinstance(value, float) else str(value)


def _decimal_text(value: Decimal | None) -> str | None:
    if value is None:
        return None
    if value == value.to_integral_value():
        return str(int(value))
    return format(value.normalize(), "f")


Numbers = npt.NDArray[np.number]

_MOST, _LEAST = np.iinfo(np.int64).max, np.iinfo(np.int64).min
# 18 digits always fit 64 bits with a sign.
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

    values: Ints | Floats
    valid: Bools
    exact: Bools


# Spaces that may stand inside a number as text: the plain one and those that do not break lines.
_GAP = "[ \\t\u00a0\u2009\u202f]"
_MARKS = {" ": "[ \u00a0\u2009\u202f]", "'": "['\u2019]", ".": "[.]", ",": ",", "_": "_"}
_NAMED_NUMBERS = "(?i)^([+-]?inf(inity)?|true|false)$"


@dataclass(frozen=True, slots=True)
class NumberForm:
    """How text writes numbers. Marks may be absent, but where they stand they must stand right.

    Digits may come in groups of three with `thousands` between them; `prefix` and `suffix` may have spaces around them;
    a sign comes first or after the prefix; with `parentheses` around it (or around it and its marks) a number is
    negative.
    """

    decimal: str = "."
    thousands: str = ""
    prefix: str = ""
    suffix: str = ""
    parentheses: bool = False

    @classmethod
    def of(cls, column: Integer | Float) -> "NumberForm | None":
        """The form that the column declares; None for the plain one."""
        form = cls(column.decimal or ".", column.thousands, column.prefix, column.suffix, bool(column.parentheses))
        return None if form == cls() else form

    def plain(self, texts: pa.Array) -> pa.Array:
        """Each text in the plain form; null where it is not in this one.

        >>> form = NumberForm(",", ".", "€", "", True)
        >>> form.plain(pa.array(["€ 1.234,5", "-€7", "(12)", "1.23", "1,5 kg"])).to_pylist()
        ['+1234.5', '-7', '-12', None, None]
        """
        found = pc.extract_regex(texts, self._pattern)
        parts = {field.name: pc.struct_field(found, [place]) for place, field in enumerate(found.type)}
        said = {name: pc.fill_null(pc.greater(pc.binary_length(part), 0), False) for name, part in parts.items()}
        opened, closed = pc.xor(said["outer"], said["inner"]), pc.xor(said["first"], said["last"])
        both = pc.or_(pc.and_(said["outer"], said["inner"]), pc.and_(said["first"], said["last"]))
        signs = pc.or_(said["sign"], said["after"])
        wrong = pc.or_(pc.or_(pc.xor(opened, closed), both), pc.and_(said["sign"], said["after"]))
        wrong = pc.or_(wrong, pc.and_(opened, signs))
        minus = pc.or_(opened, pc.or_(*(pc.fill_null(pc.equal(parts[name], "-"), False) for name in ("sign", "after"))))
        digits = self._plain_digits(parts["digits"])
        signed = pc.binary_join_element_wise(
            pc.if_else(minus, pa.scalar("-", texts.type), pa.scalar("+", texts.type)), digits, pa.scalar("", texts.type)
        )
        named = pc.fill_null(pc.match_substring_regex(texts, _NAMED_NUMBERS), False)
        nothing_there = pa.scalar(None, texts.type)
        return pc.if_else(named, texts, pc.if_else(wrong, nothing_there, signed))

    def _plain_digits(self, digits: pa.Array) -> pa.Array:
        if self.thousands:
            digits = pc.replace_substring_regex(digits, _MARKS[self.thousands], "")
        return digits if self.decimal == "." else pc.replace_substring(digits, ",", ".")

    @property
    def _pattern(self) -> str:
        mark = _MARKS.get(self.thousands)
        groups = f"[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+|" if mark else ""
        digits = f"(?:{groups}[0-9]*)(?:{_MARKS[self.decimal]}[0-9]*)?(?:[eE][+-]?[0-9]+)?"
        opening, closing = ("[(]?", "[)]?") if self.parentheses else ("", "")
        before = f"(?:{_literal(self.prefix)})?{_GAP}*" if self.prefix else ""
        after = f"(?:{_GAP}*{_literal(self.suffix)})?" if self.suffix else ""
        gap = f"{_GAP}*" if self.prefix or self.suffix or self.parentheses else ""
        return (
            f"^(?P<sign>[+-]?){gap}(?P<outer>{opening}){gap}{before}(?P<after>[+-]?)(?P<inner>{opening}){gap}"
            f"(?P<digits>{digits}){gap}(?P<first>{closing}){after}{gap}(?P<last>{closing})$"
        )


def _literal(text: str) -> str:
    """The text as a regular expression that matches nothing else."""
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)


def nothing(rows: int) -> Reading:
    """A reading in which no value was understood."""
    return Reading(np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=bool), np.zeros(rows, dtype=bool))


def read_wholes(array: pa.Array, form: NumberForm | None = None) -> Reading:
    """The greatest integer not above each value; text is in the form, or in the plain one where there is none."""
    array = plain(array)
    kind = array.type
    if pa.types.is_boolean(kind):
        return read_wholes(array.cast(pa.int8()))
    if pa.types.is_uint64(kind):
        numbers = _dense(array)
        fits: Bools = np.less_equal(numbers, np.uint64(_MOST))
        # Cut at 64 bits with a sign, beyond every bound that a column can have, and marked as not met exactly.
        return Reading(np.minimum(numbers, np.uint64(_MOST)).astype(np.int64), _valid(array), fits)
    if pa.types.is_integer(kind):
        return Reading(_dense(array).astype(np.int64), _valid(array), np.ones(len(array), dtype=bool))
    if pa.types.is_floating(kind):
        return _floor(_dense(array).astype(np.float64), _valid(array))
    if pa.types.is_decimal(kind):
        return read_wholes(array.cast(pa.string()))
    if is_text(kind):
        texts = _trimmed(array)
        return _wholes_of_text(texts if form is None else form.plain(texts))
    return nothing(len(array))


def read_reals(array: pa.Array, form: NumberForm | None = None) -> Reading:
    """Each value as a float, correctly rounded; NaN is not understood, infinities are. Text is read as for wholes."""
    array = plain(array)
    kind = array.type
    if pa.types.is_boolean(kind):
        return read_reals(array.cast(pa.int8()))
    if pa.types.is_decimal(kind) or pa.types.is_float32(kind):
        # A single float means its shortest decimal form: 0.7 lies at the edge 0.7, not below it.
        return read_reals(array.cast(pa.string()))
    if is_text(kind):
        texts = _trimmed(array)
        return _reals_of_text(texts if form is None else form.plain(texts))
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


def _floor(numbers: Floats, valid: Bools) -> Reading:
    valid = valid & ~np.isnan(numbers)
    floors = np.floor(np.where(valid, numbers, 0.0))
    high, low = floors >= 2.0**63, floors < -(2.0**63)
    # A float beyond 64 bits has no defined value as an integer, so these are put in afterwards.
    values = np.where(high | low, 0.0, floors).astype(np.int64)
    values[high], values[low] = _MOST, _LEAST
    return Reading(values, valid, valid & (floors == numbers) & ~high & ~low)


def _wholes_of_text(texts: pa.Array) -> Reading:
    values, short = _short_wholes(texts)
    reading = Reading(values, short, short.copy())
    if short.all():
        return reading
    # Also "5.0" and "5e0" in a column of whole numbers.
    numbers, real = _short_reals(texts)
    real &= ~short
    if real.any():
        _place(reading, real, _floor(numbers[real], np.ones(int(real.sum()), dtype=bool)))
    _read_rest(texts, reading, ~short & ~real, _whole_of)
    return reading


def _reals_of_text(texts: pa.Array) -> Reading:
    values, short = _short_reals(texts)
    reading = Reading(values + 0.0, short, short.copy())
    _read_rest(texts, reading, ~short, _real_of)
    return reading


def _short_wholes(texts: pa.Array) -> tuple[Ints, Bools]:
    """Short whole numbers, and which texts are some."""
    if len(texts) >= LEAST_ROWS:
        return whole_numbers(texts)
    short = _matches(texts, _WHOLE)
    return _cast_where(texts, short, pa.int64()).astype(np.int64), short


def _short_reals(texts: pa.Array) -> tuple[Floats, Bools]:
    """Short numbers, and which texts are some."""
    if len(texts) >= LEAST_ROWS:
        return short_reals(texts)
    short = _matches(texts, _SHORT_REAL)
    return _cast_where(texts, short, pa.float64()).astype(np.float64), short


def _trimmed(texts: pa.Array) -> pa.Array:
    """Texts without white space at their ends."""
    return trimmed(texts) if len(texts) >= LEAST_ROWS else pc.ascii_trim_whitespace(texts)


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
    rows = np.flatnonzero(where & _valid(texts))
    if not rows.size:
        return
    rest = texts.take(pa.array(rows))
    # ASCII that begins like a number. All other text is unreadable without one slow look for each.
    hopeful = _matches(rest, r"^[+-]?([0-9.]|[iI][nN][fF]|[tT][rR]|[fF][aA])[ -~]*$")
    binary = pa.large_binary() if pa.types.is_large_string(texts.type) else pa.binary()
    for row, raw in zip(rows[hopeful], rest.filter(pa.array(hopeful)).cast(binary).to_pylist(), strict=True):
        found = read(raw.decode("ascii").lower())
        if found is not None:
            reading.values[row], reading.exact[row] = found
            reading.valid[row] = True


def _whole_of(text: str) -> tuple[int, bool] | None:
    if _ANY_WHOLE.fullmatch(text):
        digits = text.lstrip("+-").lstrip("0") or "0"
        # Not int() of a text of any length: Python refuses thousands of digits, and a cell must not raise.
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


SECONDS_A_DAY = 86_400
_FARTHEST = 300_000_000_000
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_OFFSET = "[zZ]|[+-][0-9]{2}:?[0-9]{2}"
_ISO_CLOCK = "^(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:[.][0-9]+)?)?$"
_ISO_MOMENT = (
    "^(?P<Y>[0-9]{4})-(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})"
    "(?:[Tt ](?P<H>[0-9]{1,2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:[.][0-9]+)?)? ?(?P<z>" + _OFFSET + ")?)?$"
)
# fmt: off
_MONTHS = ("january", "february", "march", "april", "may", "june",
           "july", "august", "september", "october", "november", "december")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# fmt: on
_NAMES = {
    "b": [name[:3] for name in _MONTHS],
    "B": _MONTHS,
    "a": [name[:3] for name in _WEEKDAYS],
    "A": _WEEKDAYS,
    "p": ("am", "pm"),
}
# The alternatives are ordered as Python's strptime orders them, so that "%Y%m%d" splits digits alike.
_PARTS = {
    "Y": "[0-9]{4}",
    "y": "[0-9]{2}",
    "m": "1[0-2]|0[1-9]|[1-9]",
    "d": "3[0-1]|[1-2][0-9]|0[1-9]|[1-9]| [1-9]",
    "H": "2[0-3]|[0-1][0-9]|[0-9]",
    "I": "1[0-2]|0[1-9]|[1-9]| [1-9]",
    "M": "[0-5][0-9]|[0-9]",
    "S": "[0-5][0-9]|[0-9]",
    "f": "[0-9]{1,6}",
    "j": "36[0-6]|3[0-5][0-9]|[1-2][0-9][0-9]|0[1-9][0-9]|00[1-9]|[1-9][0-9]|0[1-9]|[1-9]",
    "z": _OFFSET,
    **{key: "|".join(names) for key, names in _NAMES.items()},
}
_WRITTEN_ALIKE = set("YymdHIMSbBaApj%")


@dataclass(frozen=True, slots=True)
class _Moments:
    """Wall-clock seconds since 1970, the offset from UTC where the text says one, and which texts were understood."""

    seconds: Ints
    offsets: Ints
    has_offset: Bools
    valid: Bools


def read_days(array: pa.Array, form: str | None) -> Reading:
    """Days since 1970; a moment counts for the day its own clock shows."""
    moments = _moments(plain(array), form)
    return Reading(moments.seconds // SECONDS_A_DAY, moments.valid, moments.valid)


def read_instants(array: pa.Array, form: str | None, zone: str | None) -> Reading:
    """Seconds since 1970: in UTC when the column has a zone, else by the wall clock the value was written with.

    With a zone, a value that names no offset is taken as local time there; of two readings where clocks go back the
    earlier one counts, and a time that clocks skip counts as the moment they jump.
    """
    moments = _moments(plain(array), form)
    seconds = moments.seconds
    if zone is not None:
        seconds = np.where(moments.has_offset, seconds - moments.offsets, _to_utc(seconds, zone))
    return Reading(seconds, moments.valid, moments.valid)


def read_clock(array: pa.Array, form: str | None) -> Reading:
    """Seconds since midnight."""
    array = plain(array)
    kind = array.type
    if pa.types.is_time(kind):
        ticks = _ticks(array.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64()))
        return Reading(ticks // PER_SECOND[kind.unit], _not_null(array), _not_null(array))
    if pa.types.is_temporal(kind) or not has_text(kind):
        return nothing(len(array))
    moments = _read_text(canonical_text(array), form, _ISO_CLOCK)
    return Reading(moments.seconds % SECONDS_A_DAY, moments.valid, moments.valid)


def _moments(array: pa.Array, form: str | None) -> _Moments:
    kind = array.type
    none = np.zeros(len(array), dtype=bool)
    if pa.types.is_date32(kind):
        # Cut before it is multiplied by 86,400.
        days = np.clip(_ticks(array.cast(pa.int32())), -_FARTHEST // SECONDS_A_DAY, _FARTHEST // SECONDS_A_DAY)
        return _Moments(days * SECONDS_A_DAY, days * 0, none, _not_null(array))
    if pa.types.is_date64(kind):
        days = _ticks(array.cast(pa.int64())) // 86_400_000
        return _Moments(_cut(days * SECONDS_A_DAY), days * 0, none, _not_null(array))
    if pa.types.is_timestamp(kind):
        return _of_stamps(array)
    if pa.types.is_temporal(kind) or not has_text(kind):
        zeros = np.zeros(len(array), dtype=np.int64)
        return _Moments(zeros, zeros, none, none.copy())
    return _read_text(canonical_text(array), form, _ISO_MOMENT)


def _of_stamps(array: pa.Array) -> _Moments:
    kind = array.type
    seconds = _cut(_ticks(array.cast(pa.int64())) // PER_SECOND[kind.unit])
    if kind.tz is None:
        return _Moments(seconds, seconds * 0, np.zeros(len(array), dtype=bool), _not_null(array))
    wall = _to_wall(seconds, kind.tz)
    return _Moments(wall, wall - seconds, np.ones(len(array), dtype=bool), _not_null(array))


def _ticks(array: pa.Array) -> Ints:
    filled = pc.fill_null(array, pa.scalar(0, array.type)) if array.null_count else array
    ticks: Ints = filled.to_numpy(zero_copy_only=False).astype(np.int64)
    return ticks


def _not_null(array: pa.Array) -> Bools:
    known: Bools = array.is_valid().to_numpy(zero_copy_only=False)
    return known


def _cut(seconds: Ints) -> Ints:
    return np.clip(seconds, -_FARTHEST, _FARTHEST)


def _to_wall(seconds: Ints, zone: str) -> Ints:
    try:
        local = pc.local_timestamp(pa.array(seconds, pa.timestamp("s", zone)))
    except pa.ArrowInvalid:
        return seconds  # a zone nobody knows: its storage type says no more than UTC
    return _ticks(local.cast(pa.int64()))


def _to_utc(wall: Ints, zone: str) -> Ints:
    stamps = pa.array(_cut(wall), pa.timestamp("s"))
    # Always an answer: raising, as Arrow does unless told otherwise, would depend on a cell.
    placed = pc.assume_timezone(stamps, zone, ambiguous="earliest", nonexistent="latest")
    return _ticks(placed.cast(pa.timestamp("s", "UTC")).cast(pa.int64()))


def _read_text(texts: pa.Array, form: str | None, iso: str = _ISO_MOMENT) -> _Moments:
    """_Moments out of text in a strptime format, or in the ISO pattern when there is none."""
    bare = _trimmed(texts)
    if form is None and iso == _ISO_MOMENT and len(texts) >= LEAST_ROWS:
        return _of_numbers(iso_moments(bare))
    pattern = iso if form is None else _pattern_of(form)
    return _one_by_one(bare, str(form)) if pattern is None else _by_pattern(bare, pattern)


@lru_cache(maxsize=1024)
def _pattern_of(form: str) -> str | None:
    """The format as a regular expression; None if it uses parts that only Python reads."""
    pattern, used = "(?i)^", set()
    for piece in re.findall(r"%.|\s+|[^%]|%$", form.strip(), re.DOTALL):
        if piece == "%%":
            pattern += "%"
        elif piece.startswith("%"):
            key = piece[1:]
            # A part named twice has two values; only strptime says what becomes of them.
            if key not in _PARTS or key in used:
                return None
            used.add(key)
            pattern += f"(?P<{key}>{_PARTS[key]})"
        elif piece.isspace():
            pattern += r"\s+"
        else:
            pattern += _literal(piece)
    return pattern + "$" if used else None


def _by_pattern(texts: pa.Array, pattern: str) -> _Moments:
    found = pc.extract_regex(texts, pattern)
    valid = found.is_valid().to_numpy(zero_copy_only=False)
    parts = {field.name: pc.struct_field(found, [place]) for place, field in enumerate(found.type)}
    fields = {name: _field(name, part, valid) for name, part in parts.items() if name not in "zaA"}
    days, fits = _days(fields, len(texts))
    hours = fields.get("H", np.zeros(len(texts), dtype=np.int64))
    if "I" in fields:
        hours = fields["I"] % 12 + 12 * fields.get("p", 0)
    minutes = fields.get("M", np.zeros(len(texts), dtype=np.int64))
    seconds = fields.get("S", np.zeros(len(texts), dtype=np.int64))
    valid = valid & fits & (hours <= 23) & (minutes <= 59) & (seconds <= 59)
    offsets, has_offset = _offsets(parts["z"], valid) if "z" in parts else (seconds * 0, np.zeros(len(texts), bool))
    total = days * SECONDS_A_DAY + hours * 3600 + minutes * 60 + seconds
    return _Moments(np.where(valid, total, 0), offsets, has_offset, valid)


def _of_numbers(found: Ints) -> _Moments:
    """_Moments out of the numbers in ISO texts."""
    return _Moments(found[:, SECONDS], found[:, OFFSET], found[:, HAS_OFFSET] == 1, found[:, MATCHED] == 1)


def _field(name: str, part: pa.Array, valid: Bools) -> Ints:
    """One group as numbers; 0 where it is absent."""
    if name in _NAMES:
        known = pa.array(_NAMES[name], part.type)
        numbers = pc.fill_null(pc.index_in(pc.ascii_lower(part), value_set=known), 0).to_numpy()
        named: Ints = numbers.astype(np.int64) + (name in "bB")
        return named
    filled = pc.if_else(pc.equal(pc.binary_length(part), 0), pa.scalar("0", part.type), pc.ascii_trim_whitespace(part))
    numbers = pc.fill_null(filled, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)
    return np.where(valid, numbers, 0)


def _days(fields: dict[str, Ints], rows: int) -> tuple[Ints, Bools]:
    """Days since 1970, and whether the date exists."""
    years = fields.get("Y", np.full(rows, 1900, dtype=np.int64))
    if "y" in fields:
        # As strptime has it: 69 to 99 are of the last century.
        years = fields["y"] + np.where(fields["y"] <= 68, 2000, 1900)
    months = next((fields[name] for name in "mbB" if name in fields), np.ones(rows, dtype=np.int64))
    days = fields.get("d", np.ones(rows, dtype=np.int64))
    if "j" in fields:
        months, days = np.ones(rows, dtype=np.int64), fields["j"]
    since = (years - 1970) * 12 + np.clip(months, 1, 12) - 1
    first = since.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    span = 12 if "j" in fields else 1
    after = (since + span).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return first + days - 1, (months >= 1) & (months <= 12) & (days >= 1) & (days <= after - first)


def _offsets(part: pa.Array, valid: Bools) -> tuple[Ints, Bools]:
    """Seconds east of UTC; "Z" is none."""
    digits = pc.replace_substring_regex(pc.fill_null(part, ""), "[^0-9]", "")
    numbers = pc.if_else(pc.equal(pc.binary_length(digits), 4), digits, "0000").cast(pa.int64()).to_numpy()
    negative = pc.starts_with(pc.fill_null(part, ""), "-").to_numpy(zero_copy_only=False)
    said = pc.greater(pc.binary_length(pc.fill_null(part, "")), 0).to_numpy(zero_copy_only=False)
    seconds = (numbers // 100) * 3600 + (numbers % 100) * 60
    return np.where(negative, -seconds, seconds), valid & said


def _one_by_one(texts: pa.Array, form: str) -> _Moments:
    rows = len(texts)
    found = _Moments(np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows, bool), np.zeros(rows, bool))
    kind = pa.large_binary() if pa.types.is_large_string(texts.type) else pa.binary()
    for row, raw in enumerate(texts.cast(kind).to_pylist()):
        try:
            moment = read_moment(raw.decode("utf-8"), form)
        except (AttributeError, ValueError, OverflowError, re.error):
            continue
        found.valid[row] = True
        found.seconds[row] = (moment.replace(tzinfo=None) - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1)
        offset = moment.utcoffset()
        if offset is not None:
            found.offsets[row], found.has_offset[row] = offset // dt.timedelta(seconds=1), True
    return found


def format_text(stamps: pa.Array, form: str) -> pa.Array:
    """Timestamps in whole seconds (zoned or not) as text; names are English."""
    if set(re.findall("%(.)", form.replace("%%", ""))) <= _WRITTEN_ALIKE | {"z"}:
        return pc.strftime(stamps, format=form, locale="C")
    distinct = stamps.dictionary_encode()
    texts = [None if moment is None else moment.strftime(form) for moment in distinct.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(distinct.indices)


def zone_is_known(zone: str) -> bool:
    """Whether this machine's time zone database knows the zone."""
    try:
        _to_utc(np.zeros(1, dtype=np.int64), zone)
    except pa.ArrowInvalid:
        return False
    return True
