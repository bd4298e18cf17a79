"""Days, instants and times of day out of any Arrow array, and back into text.

Typed and textual forms of a value read the same, each value by itself alone. Text is in ISO form or in a strptime
format; names of months and days are English whatever the locale. _Moments far outside any calendar are cut at ±3·10¹¹
seconds (some 9,500 years), where they lie beyond every bound.
"""

import datetime as dt
import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.codec.reading import Reading, nothing
from understudy.codec.text import canonical_text, has_text, plain
from understudy.schema.column import read_moment

__all__ = ["format_text", "read_clock", "read_days", "read_instants", "zone_is_known"]

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_SECONDS_A_DAY = 86_400
_FARTHEST = 300_000_000_000
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
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

    seconds: Integers
    offsets: Integers
    has_offset: Bools
    valid: Bools


def read_days(array: pa.Array, form: str | None) -> Reading:
    """Days since 1970; a moment counts for the day its own clock shows."""
    moments = _moments(plain(array), form)
    return Reading(moments.seconds // _SECONDS_A_DAY, moments.valid, moments.valid)


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
        return Reading(ticks // _PER_SECOND[kind.unit], _valid(array), _valid(array))
    if pa.types.is_temporal(kind) or not has_text(kind):
        return nothing(len(array))
    moments = _read_text(canonical_text(array), form, _ISO_CLOCK)
    return Reading(moments.seconds % _SECONDS_A_DAY, moments.valid, moments.valid)


def _moments(array: pa.Array, form: str | None) -> _Moments:
    kind = array.type
    none = np.zeros(len(array), dtype=bool)
    if pa.types.is_date32(kind):
        days = np.clip(_ticks(array.cast(pa.int32())), -_FARTHEST // _SECONDS_A_DAY, _FARTHEST // _SECONDS_A_DAY)
        return _Moments(days * _SECONDS_A_DAY, days * 0, none, _valid(array))
    if pa.types.is_date64(kind):
        days = _ticks(array.cast(pa.int64())) // 86_400_000
        return _Moments(_cut(days * _SECONDS_A_DAY), days * 0, none, _valid(array))
    if pa.types.is_timestamp(kind):
        return _of_stamps(array)
    if pa.types.is_temporal(kind) or not has_text(kind):
        zeros = np.zeros(len(array), dtype=np.int64)
        return _Moments(zeros, zeros, none, none.copy())
    return _read_text(canonical_text(array), form, _ISO_MOMENT)


def _of_stamps(array: pa.Array) -> _Moments:
    kind = array.type
    seconds = _cut(_ticks(array.cast(pa.int64())) // _PER_SECOND[kind.unit])
    if kind.tz is None:
        return _Moments(seconds, seconds * 0, np.zeros(len(array), dtype=bool), _valid(array))
    wall = _to_wall(seconds, kind.tz)
    return _Moments(wall, wall - seconds, np.ones(len(array), dtype=bool), _valid(array))


def _ticks(array: pa.Array) -> Integers:
    filled = pc.fill_null(array, pa.scalar(0, array.type)) if array.null_count else array
    ticks: Integers = filled.to_numpy(zero_copy_only=False).astype(np.int64)
    return ticks


def _valid(array: pa.Array) -> Bools:
    known: Bools = array.is_valid().to_numpy(zero_copy_only=False)
    return known


def _cut(seconds: Integers) -> Integers:
    return np.clip(seconds, -_FARTHEST, _FARTHEST)


def _to_wall(seconds: Integers, zone: str) -> Integers:
    try:
        local = pc.local_timestamp(pa.array(seconds, pa.timestamp("s", zone)))
    except pa.ArrowInvalid:
        return seconds  # a zone nobody knows: its storage type says no more than UTC
    return _ticks(local.cast(pa.int64()))


def _to_utc(wall: Integers, zone: str) -> Integers:
    stamps = pa.array(_cut(wall), pa.timestamp("s"))
    placed = pc.assume_timezone(stamps, zone, ambiguous="earliest", nonexistent="latest")
    return _ticks(placed.cast(pa.timestamp("s", "UTC")).cast(pa.int64()))


def _read_text(texts: pa.Array, form: str | None, iso: str = _ISO_MOMENT) -> _Moments:
    """_Moments out of text in a strptime format, or in the ISO pattern when there is none."""
    trimmed = pc.ascii_trim_whitespace(texts)
    pattern = iso if form is None else _pattern_of(form)
    return _one_by_one(trimmed, str(form)) if pattern is None else _by_pattern(trimmed, pattern)


@lru_cache(maxsize=1024)
def _pattern_of(form: str) -> str | None:
    """The format as a regular expression; None if it uses parts that only Python reads."""
    pattern, used = "(?i)^", set()
    for piece in re.findall(r"%.|\s+|[^%]|%$", form.strip(), re.DOTALL):
        if piece == "%%":
            pattern += "%"
        elif piece.startswith("%"):
            key = piece[1:]
            if key not in _PARTS or key in used:
                return None
            used.add(key)
            pattern += f"(?P<{key}>{_PARTS[key]})"
        elif piece.isspace():
            pattern += r"\s+"
        else:
            pattern += re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", piece)
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
    total = days * _SECONDS_A_DAY + hours * 3600 + minutes * 60 + seconds
    return _Moments(np.where(valid, total, 0), offsets, has_offset, valid)


def _field(name: str, part: pa.Array, valid: Bools) -> Integers:
    """One group as numbers; 0 where it is absent."""
    if name in _NAMES:
        known = pa.array(_NAMES[name], part.type)
        numbers = pc.fill_null(pc.index_in(pc.ascii_lower(part), value_set=known), 0).to_numpy()
        named: Integers = numbers.astype(np.int64) + (name in "bB")
        return named
    filled = pc.if_else(pc.equal(pc.binary_length(part), 0), pa.scalar("0", part.type), pc.ascii_trim_whitespace(part))
    numbers = pc.fill_null(filled, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)
    return np.where(valid, numbers, 0)


def _days(fields: dict[str, Integers], rows: int) -> tuple[Integers, Bools]:
    """Days since 1970, and whether the date exists."""
    years = fields.get("Y", np.full(rows, 1900, dtype=np.int64))
    if "y" in fields:
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


def _offsets(part: pa.Array, valid: Bools) -> tuple[Integers, Bools]:
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
