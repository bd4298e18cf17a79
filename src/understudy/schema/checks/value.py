"""Whether a single declared value is what its key asks for: text, a count, or a place on a column's axis.

Each rule comes back as a sentence to be shown, empty when all is well. Declarations are public, so they are quoted.
"""

import datetime as dt
import math
from collections.abc import Iterator
from typing import TypeGuard

from understudy.errors import Problem
from understudy.schema.column import MOST_LABEL_BYTES, Date, Datetime, Float, Integer, NumberColumn, Time
from understudy.schema.place import shown

__all__ = [
    "count_problems",
    "is_whole",
    "label_problems",
    "number_problem",
    "point_problem",
    "text_problems",
    "written",
]

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
