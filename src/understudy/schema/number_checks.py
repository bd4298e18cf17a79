"""What can be wrong with a number, date or time column taken alone, and with a single value on its axis.

Each rule comes back as a sentence to be shown, empty when all is well. Declarations are public, so they are quoted.
"""

import datetime as dt
import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, TypeGuard
from zoneinfo import ZoneInfo, available_timezones

from understudy.errors import Problem, place, shown, suggest
from understudy.schema.columns import (
    BIN_RULES,
    DECIMALS,
    MOST_LABEL_BYTES,
    STORAGE,
    THOUSANDS,
    Date,
    Datetime,
    Float,
    GivenBins,
    Integer,
    NumberColumn,
    Point,
    PrivateBins,
    Time,
    UniformBins,
    number_of,
    read_moment,
    step_of,
    trimmed,
    values_between,
)

if TYPE_CHECKING:
    pass


_WIDEST = 2**64


def text_problems(value: object, where: str) -> Iterator[Problem]:
    """Whether the value is text that can be written to a file."""
    if not isinstance(value, str):
        yield Problem(where, f"{shown(value)} must be text.")
        return
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        yield Problem(where, "contains half of a surrogate pair, which is not text.", "Remove that character.")


def label_problems(labels: tuple[object, ...], where: str) -> Iterator[Problem]:
    """Whether all labels are text that can be told apart: no two alike, none longer than a label may be."""
    seen: set[object] = set()
    for label in labels:
        yield from text_problems(label, where)
        if isinstance(label, str) and label in seen:
            yield Problem(where, f"{shown(label)} appears twice.", "Remove one.")
        if isinstance(label, str) and len(label.encode("utf-8", errors="replace")) > MOST_LABEL_BYTES:
            rule = f"{shown(label[:40])}… is longer than {MOST_LABEL_BYTES:,} bytes, so no value could equal it."
            yield Problem(where, rule, "Shorten it, in the table too.")
        seen.add(label if isinstance(label, str) else None)


def count_problems(value: object, where: str, most: int) -> Iterator[Problem]:
    """Whether the value is a whole number from 1 to `most`."""
    if not is_whole(value):
        yield Problem(where, f"{shown(value)} must be a whole number.")
    elif not 1 <= value <= most:
        yield Problem(where, f"{shown(value)} must be between 1 and {most:,}.")


def is_whole(value: object) -> TypeGuard[int]:
    """Whether the value is an integer (true and false are not)."""
    return isinstance(value, int) and not isinstance(value, bool)


def number_problem(value: object) -> str:
    """Why the value is no finite number that a double holds exactly, or nothing."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"{shown(value)} must be a number."
    try:
        exact = float(value) == value
    except OverflowError:
        exact = False
    return "" if exact and math.isfinite(value) else f"{shown(value)} must be finite and exact in double precision."


def _whole_problem(value: object) -> str:
    if not is_whole(value):
        return f"{shown(value)} must be a whole number."
    return "" if -_WIDEST < value < _WIDEST else f"{shown(value)} must fit in 64 bits."


def _date_problem(value: object) -> str:
    is_date = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    return "" if is_date else f"{shown(value)} must be a date such as 2020-12-31."


def _time_problem(value: object) -> str:
    fits = isinstance(value, dt.time) and value.tzinfo is None and value.microsecond == 0
    return "" if fits else f"{shown(value)} must be a time of day in whole seconds, without zone, such as 23:59:59."


def _datetime_problem(value: object, *, zoned: bool) -> str:
    if not isinstance(value, dt.datetime) or value.microsecond != 0:
        return f"{shown(value)} must be a date and time in whole seconds, such as 2020-12-31T23:59:59."
    if zoned and value.utcoffset() is None:
        return f"{value.isoformat()} must say its offset because the column has a zone: add +00:00 for UTC."
    if not zoned and value.tzinfo is not None:
        return f"{value.isoformat()} has an offset, but the column has no zone: state the zone or drop the offset."
    if zoned and value.utcoffset() != value.replace(fold=1 - value.fold).utcoffset():
        return f"{value.isoformat()} is ambiguous where clocks change: write it in UTC."
    return ""


def point_problem(column: NumberColumn, value: object) -> str:
    """Why the value is no place on this column's axis, or nothing."""
    match column:
        case Integer():
            return _whole_problem(value)
        case Float():
            return number_problem(value)
        case Date():
            return _date_problem(value)
        case Time():
            return _time_problem(value)
        case Datetime():
            return _datetime_problem(value, zoned=column.zone is not None)


def written(value: object) -> str:
    """The value as the schema file would show it."""
    return value.isoformat() if isinstance(value, (dt.date, dt.time)) else shown(value)


MOST_BINS = 1_000_000
MOST_DECIMALS = 12
MOST_DIVISORS = 100
MOST_RESIDUES = 1_000_000
WHOLE_LIMITS = {
    f"{sign}int{bits}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}
# Widths of bins must fit 64 bits too.
_LARGEST_BOUND = 2**62
_LARGEST_EXACT_IN_DOUBLE = 2**53
_LARGEST_SINGLE = 3.4028234663852886e38
_NANOSECOND_YEARS = (1678, 2261)


def number_column_problems(column: NumberColumn) -> Iterator[Problem]:
    """Everything wrong with bounds, bins, special values, step, zone, storage and format."""
    here = place("columns", column.name)
    found = [
        Problem(f"{here}.{key}", rule)
        for key, value in (("lower", column.lower), ("upper", column.upper))
        if (rule := point_problem(column, value))
    ]
    found += _step_problems(column)
    if isinstance(column, Datetime) and column.zone is not None:
        found += _zone_problems(column.zone, f"{here}.zone")
    if not found:
        found += _order_problems(column)
    yield from found
    yield from _special_problems(column)
    if isinstance(column, (Integer, Float)):
        yield from _writing_problems(column)
    if isinstance(column, Integer):
        yield from _split_problems(column.split, f"{here}.split")
    if not found:
        yield from _bin_problems(column)
        yield from _fit_problems(column)
        yield from _format_problems(column)


def _order_problems(column: NumberColumn) -> Iterator[Problem]:
    here = place("columns", column.name)
    low, high = number_of(column.lower), number_of(column.upper)
    lower, upper = written(column.lower), written(column.upper)
    if high < low or (high == low and isinstance(column, Float)):
        yield Problem(f"{here}.upper", f"({upper}) must be above lower ({lower}).", "Fix the bounds.")
    elif isinstance(column, Integer) and max(abs(low), abs(high)) > _LARGEST_BOUND:
        yield Problem(f"{here}.upper", f"({upper}) and lower ({lower}) must lie within ±2^62.", "Narrow the bounds.")
    elif not math.isfinite(high - low):
        yield Problem(f"{here}.upper", f"({upper}) is too far from lower ({lower}).", "Narrow the bounds.")
    elif low < high < low + (step_of(column) or 0):
        key = "step" if isinstance(column, Integer) else "resolution"
        yield Problem(f"{here}.{key}", f"({step_of(column)}) must not exceed upper - lower ({high - low}).")


def _step_problems(column: NumberColumn) -> Iterator[Problem]:
    here = place("columns", column.name)
    match column:
        case Integer():
            yield from count_problems(column.step, f"{here}.step", 2**63 - 1)
        case Float():
            decimals: object = column.decimals
            if decimals is not None and not (is_whole(decimals) and 0 <= decimals <= MOST_DECIMALS):
                rule = f"{shown(decimals)} must be a whole number from 0 to {MOST_DECIMALS}."
                yield Problem(f"{here}.decimals", rule)
        case Datetime() | Time():
            yield from count_problems(column.resolution, f"{here}.resolution", 10**9)
        case Date():
            pass


def _zone_problems(zone: object, where: str) -> Iterator[Problem]:
    problems = list(text_problems(zone, where))
    if problems or not isinstance(zone, str):
        yield from problems
        return
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        fix = suggest(zone, available_timezones()) or "Use a name such as Europe/Berlin or UTC."
        yield Problem(where, f"{shown(zone)} is not a known time zone.", fix)


def _special_problems(column: NumberColumn) -> Iterator[Problem]:
    if not isinstance(column, (Integer, Float)):
        return
    where = place("columns", column.name, "special")
    special: object = column.special
    if not isinstance(special, tuple):
        yield Problem(where, f"{shown(special)} must be a list of numbers.")
        return
    seen: set[object] = set()
    for value in special:
        rule = point_problem(column, value)
        if rule:
            yield Problem(where, rule)
        elif value in seen:
            yield Problem(where, f"{shown(value)} appears twice.", "Remove one.")
        else:
            seen.add(value)


def _writing_problems(column: Integer | Float) -> Iterator[Problem]:
    """What is wrong with the way in which text writes the numbers."""
    here = place("columns", column.name)
    if column.decimal not in ("", *DECIMALS):
        yield Problem(f"{here}.decimal", f'{shown(column.decimal)} must be "." or ",".')
    if column.thousands not in ("", *THOUSANDS):
        listed = ", ".join(f'"{mark}"' for mark in THOUSANDS)
        yield Problem(f"{here}.thousands", f"{shown(column.thousands)} must be one of {listed}.")
    elif column.thousands == (column.decimal or "."):
        rule = f"{shown(column.thousands)} also stands before the decimals."
        yield Problem(f"{here}.thousands", rule, 'State another decimal, such as ",".')
    for key, said in (("prefix", column.prefix), ("suffix", column.suffix)):
        yield from text_problems(said, f"{here}.{key}")
        if isinstance(said, str) and any(character.isdecimal() for character in said):
            yield Problem(f"{here}.{key}", f"{shown(said)} holds a digit.", "Digits belong to the numbers.")
        elif isinstance(said, str) and said != trimmed(said):
            rule = f"{shown(said)} has white space at an end."
            yield Problem(f"{here}.{key}", rule, "Drop it: spaces are understood.")
    if column.parentheses not in (True, False):
        yield Problem(f"{here}.parentheses", f"{shown(column.parentheses)} must be true or false.")
    yield from text_problems(column.measured_in, f"{here}.measured_in")


def _split_problems(split: object, where: str) -> Iterator[Problem]:
    if not isinstance(split, tuple) or len(split) > MOST_DIVISORS:
        yield Problem(where, f"{shown(split)} must be a list of at most {MOST_DIVISORS} divisors.")
        return
    wrong = [Problem(where, f"{shown(one)} must be a whole number above 1.") for one in split if not _divides(one)]
    yield from wrong
    if wrong:
        return
    if math.lcm(*split) > MOST_RESIDUES:
        rule = f"the least common multiple of the divisors must not exceed {MOST_RESIDUES:,}."
        yield Problem(where, rule, "Leave out the divisors that matter least.")
    for place_of, divisor in enumerate(split):
        earlier = next((one for one in split[:place_of] if divisor % one == 0), None)
        if earlier is not None:
            rule = f"multiples of {divisor} are multiples of {earlier}, which comes first."
            yield Problem(where, rule, "List larger divisors first, each once.")


def _divides(value: object) -> bool:
    return is_whole(value) and value > 1


def _bin_problems(column: NumberColumn) -> Iterator[Problem]:
    where = place("columns", column.name, "bins")
    bins: object = column.bins
    match bins:
        case None:
            pass
        case UniformBins() | PrivateBins():
            problems = list(count_problems(bins.count, where, MOST_BINS))
            yield from problems
            if isinstance(bins, PrivateBins) and bins.by not in BIN_RULES:
                rule = f"{shown(bins.by)} is no way to choose bins."
                yield Problem(f"{where}.by", rule, suggest(str(bins.by), BIN_RULES))
            values = values_between(column)
            if not problems and isinstance(bins, UniformBins) and values is not None and bins.count > values:
                rule = f"{bins.count} bins are more than the {values} values between the bounds."
                yield Problem(where, rule, "Ask for fewer bins, or leave bins out.")
        case GivenBins():
            yield from _edge_problems(column, bins.edges, where)
        case _:
            yield Problem(where, f"{shown(bins)} must be UniformBins, GivenBins or PrivateBins.")


def _edge_problems(column: NumberColumn, edges: object, where: str) -> Iterator[Problem]:
    if not isinstance(edges, tuple) or not 2 <= len(edges) <= MOST_BINS + 1:
        yield Problem(where, f"must have between 2 and {MOST_BINS + 1:,} edges.")
        return
    wrong = [Problem(where, rule) for rule in (point_problem(column, edge) for edge in edges) if rule]
    yield from wrong
    if wrong:
        return
    for left, right in pairwise(edges):
        if number_of(left) >= number_of(right):
            rule = f"edge {written(right)} must be above the one before it ({written(left)})."
            yield Problem(where, rule, "Sort the edges and drop doubles.")
            return
    ends = (("first", edges[0], "lower", column.lower), ("last", edges[-1], "upper", column.upper))
    for name, edge, key, bound in ends:
        if number_of(edge) != number_of(bound):
            rule = f"the {name} edge ({written(edge)}) must equal {key} ({written(bound)})."
            yield Problem(where, rule, "Change one of them.")
            return
    yield from _hollow_bin_problems(column, edges, where)


def _hollow_bin_problems(column: NumberColumn, edges: tuple[Point, ...], where: str) -> Iterator[Problem]:
    step = step_of(column)
    if step is None:
        return
    lower, upper = number_of(column.lower), number_of(column.upper)
    for left, right in pairwise(edges):
        start, stop = number_of(left), number_of(right)
        first_value = lower - (lower - start) // step * step
        if first_value > stop or (first_value == stop != upper):
            rule = f"no value lies in the bin from {written(left)} to {written(right)}."
            yield Problem(where, rule, "Widen that bin or make the step smaller.")


def _fit_problems(column: NumberColumn) -> Iterator[Problem]:
    """Whether bounds and special values can be stored as declared."""
    here = place("columns", column.name)
    storage = column.storage or STORAGE[column.kind][0]
    named: list[tuple[str, object]] = [("lower", column.lower), ("upper", column.upper)]
    if isinstance(column, (Integer, Float)):
        named += [("special", value) for value in column.special if not point_problem(column, value)]
    for key, value in named:
        if not _fits(storage, value, whole=isinstance(column, Integer)):
            yield Problem(f"{here}.{key}", f"{written(value)} does not fit in {storage}.", "Choose a wider storage.")


def _fits(storage: str, value: object, *, whole: bool) -> bool:
    if isinstance(value, dt.datetime):
        return storage != "timestamp[ns]" or _NANOSECOND_YEARS[0] <= value.year <= _NANOSECOND_YEARS[1]
    if not isinstance(value, (int, float)):
        return True
    low, high = WHOLE_LIMITS.get(storage, (-math.inf, math.inf))
    if storage == "double" and whole:
        return abs(value) <= _LARGEST_EXACT_IN_DOUBLE
    if storage == "float":
        return abs(value) <= _LARGEST_SINGLE
    return low <= value <= high


def _format_problems(column: NumberColumn) -> Iterator[Problem]:
    if isinstance(column, (Integer, Float)) or column.format is None:
        return
    where = place("columns", column.name, "format")
    problems = list(text_problems(column.format, where))
    yield from problems
    if not problems and not _round_trips(column, column.format):
        rule = f"{shown(column.format)} does not give back every value between the bounds."
        yield Problem(where, rule, "Use strptime codes for all parts, for example %d.%m.%Y.")


def _round_trips(column: Date | Datetime | Time, form: str) -> bool:
    values, step = values_between(column) or 1, step_of(column) or 1
    for index in sorted({0, min(1, values - 1), values - 1} | {values * i // 40 for i in range(40)}):
        moment = _moment(column, index * step)
        try:
            back = read_moment(moment.strftime(form), form)
        except (ValueError, re.error):
            return False
        if isinstance(column, Time):
            same = back.time() == moment.time()
        elif back.tzinfo:
            same = back.astimezone(dt.UTC) == moment.astimezone(dt.UTC)
        else:
            same = back == moment.replace(tzinfo=None)
        if not same:
            return False
    return True


def _moment(column: Date | Datetime | Time, offset: int) -> dt.datetime:
    """The value that lies `offset` above the lower bound, as a date and time."""
    match column:
        case Date():
            return dt.datetime.combine(column.lower + dt.timedelta(days=offset), dt.time())
        case Time():
            # strptime fills in this day where the format names none
            return dt.datetime.combine(dt.date(1900, 1, 1), column.lower) + dt.timedelta(seconds=offset)
        case Datetime():
            moment = column.lower + dt.timedelta(seconds=offset)
            return moment if column.zone is None else _in_zone(column.lower, offset, column.zone)


def _in_zone(lower: dt.datetime, offset: int, zone: str) -> dt.datetime:
    return (lower.astimezone(dt.UTC) + dt.timedelta(seconds=offset)).astimezone(ZoneInfo(zone))
