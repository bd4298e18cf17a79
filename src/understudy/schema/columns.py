"""Column kinds and their bins: what a column may hold, stated by a person and never read from the rows.

Every kind carries `missing` (may the value be absent? then absence is a code of its own in every table; otherwise there
is a code for what cannot be read, unless the schema says to drop such rows), `storage`
(the Arrow type written out, "" for the kind's default), `note` (where the bound or list comes from), `title` and
`description` (what people call the column and what it holds) and `missing_values` (texts that mean that there is no
value; None for those of the table, else `MISSING_VALUES`).
The rules these values must obey are checked all at once: of number columns taken alone here, all else in `checks.py`.

Where bins lie follows from public facts alone: one definition for rules, codec and plans. Every number column has an
axis: integers and floats are themselves, dates count days from 1970-01-01, datetimes count seconds from there (in UTC
when the column has a zone, else by the wall clock), times count seconds from midnight. All axes but the float's hold
whole numbers, and the values that can be written are `lower`, `lower + step`, and so on.

A rule that is broken comes back as a sentence to be shown. Declarations are public, so they are quoted.
"""

import datetime as dt
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, TypeGuard
from zoneinfo import ZoneInfo, available_timezones

from understudy.errors import Problem, place, shown, suggest

Point = int | float | dt.date | dt.datetime | dt.time

MOST_LABEL_BYTES = 1024
"""The longest label, in bytes of UTF-8. Longer values of a table are unreadable: they equal no label."""

MISSING_VALUES = ("NA", "NULL", "N/A", ".", "-", "")
"""The texts that mean "no value" where neither a column nor its table lists its own; a declared label comes first."""

BOOLEAN_WORDS: Mapping[str, int] = {
    word: value for value, words in enumerate(("false f no n 0 0.0", "true t yes y 1 1.0")) for word in words.split()
}
"""The words that booleans understand, in any case, with 0 for false and 1 for true."""

DECIMALS = (".", ",")
"""What may stand before the decimals of a number."""

THOUSANDS = (",", ".", "'", " ", "_")
"""What may stand between groups of three digits."""

_WHOLE = ("int64", "int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64")
_TEXT = ("string", "large_string")

STORAGE: Mapping[str, tuple[str, ...]] = {
    "category": (*_TEXT, *_WHOLE),
    "open_category": _TEXT,
    "boolean": ("bool",),
    "integer": (*_WHOLE, "double"),
    "float": ("double", "float"),
    "date": ("date32", *_TEXT),
    "datetime": ("timestamp[us]", "timestamp[s]", "timestamp[ms]", "timestamp[ns]", *_TEXT),
    "time": ("time64[us]", "time32[s]", *_TEXT),
    "derived sum": ("double", "float", *_WHOLE),
    "derived lookup": _TEXT,
    "derived cut": _TEXT,
}
"""Arrow types a kind may be written as; the first is what an empty `storage` means."""


def _freeze(target: object, *fields: str) -> None:
    """Turns lists given for tuples into tuples, so that equal declarations are equal values."""
    for name in fields:
        value = getattr(target, name)
        if isinstance(value, list):
            object.__setattr__(target, name, tuple(value))


@dataclass(frozen=True, slots=True)
class UniformBins:
    """`count` bins of equal width between the bounds."""

    count: int


@dataclass(frozen=True, slots=True)
class GivenBins:
    """Bins between consecutive `edges`; the first and last edge are the bounds. [a, b), the last one [a, b]."""

    edges: tuple[Point, ...]

    def __post_init__(self) -> None:
        _freeze(self, "edges")


@dataclass(frozen=True, slots=True)
class PrivateBins:
    """At most `count` bins, chosen through the curator and paid for.

    `by` says how: "mass" (neighbouring cells of a noisy fine grid, of similar noisy mass), "quantiles" (cuts drawn one
    layer after the other, so that the rows fall apart evenly) or "privtree" (ranges halved where enough rows lie).
    """

    count: int
    by: str = "mass"


Bins = UniformBins | GivenBins | PrivateBins

BIN_RULES = ("mass", "quantiles", "privtree")
"""How private bins may be chosen."""

RARE_RULES = ("keep", "private")
"""What may become of the rare labels of a category."""

UNREADABLE_RULES = ("keep", "drop")
"""What may become of values that cannot be read, where a column has neither missing nor other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What all columns share."""

    name: str
    missing: bool = True
    storage: str = ""
    note: str = ""
    title: str = ""
    description: str = ""
    missing_values: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _freeze(self, "missing_values")


@dataclass(frozen=True, slots=True, kw_only=True)
class Category(Named):
    """A closed list of labels (always text; `storage: int64` writes them out as integers).

    `other` names the code for values outside the list; without it they count as missing or as unreadable. `groups` maps
    labels to a coarser level (city → state); `within` names the column that must then hold the group. `rare: private`
    gives all labels of low noisy count one code (paid for), from which they are drawn by their noisy counts when rows
    are made. With `ignore_case` a value meets a label that differs from it in case alone, `ordered` says that the
    labels are listed from lowest to highest, and `meanings` says what they stand for ("1" → "yes"); a label that is not
    in it means itself.
    """

    kind: ClassVar[str] = "category"
    labels: tuple[str, ...]
    other: str | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    within: str | None = None
    rare: str = "keep"
    ignore_case: bool = False
    ordered: bool = False
    meanings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _freeze(self, "labels", "missing_values")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCategory(Named):
    """Labels unknown beforehand: discovered under δ, paid for, rare ones merged into `other`."""

    kind: ClassVar[str] = "open_category"
    other: str = "other"
    most_labels: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Boolean(Named):
    """False or true."""

    kind: ClassVar[str] = "boolean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer(Named):
    """Whole numbers between public bounds, both included. `special` values (999998, 0) are codes of their own.

    Without `bins`: a code per integer up to 100 of them, else 32 bins of equal width. Values come back as multiples
    of `step` counted from `lower`.

    `split` lists divisors, for amounts that people round: the column is then modelled as two, how large a value is (its
    bin) and of which kind (the first divisor that it is a multiple of, or none), and comes back as one.

    `decimal`, `thousands`, `prefix`, `suffix` and `parentheses` (for negative numbers) say how text writes such
    numbers; typed ones are taken as they are. `measured_in` says what the numbers count: kg, euros, days.
    """

    kind: ClassVar[str] = "integer"
    lower: int
    upper: int
    bins: Bins | None = None
    special: tuple[int, ...] = ()
    step: int = 1
    split: tuple[int, ...] = ()
    decimal: str = ""
    thousands: str = ""
    prefix: str = ""
    suffix: str = ""
    parentheses: bool = False
    measured_in: str = ""

    def __post_init__(self) -> None:
        _freeze(self, "special", "split", "missing_values")


@dataclass(frozen=True, slots=True, kw_only=True)
class Float(Named):
    """Real numbers between public bounds, written with `decimals` digits. Without `bins`: 32 of equal width.

    How text writes them is said as for integers.
    """

    kind: ClassVar[str] = "float"
    lower: float
    upper: float
    bins: Bins | None = None
    special: tuple[float, ...] = ()
    decimals: int | None = None
    decimal: str = ""
    thousands: str = ""
    prefix: str = ""
    suffix: str = ""
    parentheses: bool = False
    measured_in: str = ""

    def __post_init__(self) -> None:
        _freeze(self, "special", "missing_values")


@dataclass(frozen=True, slots=True, kw_only=True)
class Date(Named):
    """Calendar days between public bounds. `format` (strptime) when the file holds text in another form than ISO."""

    kind: ClassVar[str] = "date"
    lower: dt.date
    upper: dt.date
    bins: Bins | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Datetime(Named):
    """Instants (with `zone`) or wall-clock times (without), to whole multiples of `resolution` seconds."""

    kind: ClassVar[str] = "datetime"
    lower: dt.datetime
    upper: dt.datetime
    bins: Bins | None = None
    zone: str | None = None
    resolution: int = 1
    format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Time(Named):
    """Times of day between public bounds, to whole multiples of `resolution` seconds."""

    kind: ClassVar[str] = "time"
    lower: dt.time = dt.time(0, 0, 0)
    upper: dt.time = dt.time(23, 59, 59)
    bins: Bins | None = None
    resolution: int = 1
    format: str | None = None


@dataclass(frozen=True, slots=True)
class LinearSum:
    """constant + Σ weight × column, over number columns; missing if any of them is missing or special."""

    weights: Mapping[str, float]
    constant: float = 0.0


@dataclass(frozen=True, slots=True)
class Lookup:
    """The text found under the source column's label; `otherwise` (or missing) where the map has no entry."""

    column: str
    entries: Mapping[str, str]
    otherwise: str | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """Bands of a number column: labels[i] where edges[i] ≤ value < edges[i+1] (the last band includes its end)."""

    column: str
    edges: tuple[float, ...]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        _freeze(self, "edges", "labels")


Formula = LinearSum | Lookup | Cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Named):
    """Left out of the model and recomputed on output from other columns, so it is always consistent with them."""

    kind: ClassVar[str] = "derived"
    formula: Formula


Column = Category | OpenCategory | Boolean | Integer | Float | Date | Datetime | Time | Derived
NumberColumn = Integer | Float | Date | Datetime | Time


def code_names(column: Column) -> tuple[str, ...]:
    """The names under which a column is counted and modelled: its own, or those of its size and its kind if split.

    >>> code_names(Integer(name="income", lower=0, upper=999, split=(100, 10)))
    ('income.size', 'income.kind')
    """
    if isinstance(column, Integer) and column.split:
        return f"{column.name}.size", f"{column.name}.kind"
    return (column.name,)


_SPACES = " \t\n\r\v\f"  # what counts as white space at the ends of a value: that of ASCII
_ZEROS = re.compile(r"(-?(?:0|[1-9][0-9]{0,19}))\.0+", re.ASCII)


def trimmed(text: str) -> str:
    """The text without white space at its ends.

    >>> trimmed(" Bern\\n")
    'Bern'
    """
    return text.strip(_SPACES)


def plain_label(text: str) -> str:
    """The text without white space at its ends; of a whole number, without zeros after a decimal point.

    >>> plain_label(" Bern "), plain_label("1.0"), plain_label("-0.0"), plain_label("01.0")
    ('Bern', '1', '0', '01.0')
    """
    text = trimmed(text)
    whole = _ZEROS.fullmatch(text)
    text = whole[1] if whole else text
    return "0" if text == "-0" else text


def missing_texts(column: Named) -> tuple[str, ...]:
    """The texts that mean "no value" in this column, without white space at their ends; the empty one always does."""
    listed = MISSING_VALUES if column.missing_values is None else column.missing_values
    return tuple(dict.fromkeys([*map(trimmed, listed), ""]))


def read_moment(text: str, form: str) -> dt.datetime:
    """What the text stands for in a strptime format; a format that names no year means 1900, as it always did.

    Python is about to give up that rule and warns where a day of a month has no year, so the year is said here.

    >>> read_moment("24.12", "%d.%m"), read_moment("24.12.99", "%d.%m.%y")
    (datetime.datetime(1900, 12, 24, 0, 0), datetime.datetime(1999, 12, 24, 0, 0))
    """
    parts = set(re.findall("%(.)", form))
    if "d" in parts and parts.isdisjoint("YyG"):
        text, form = f"1900;{text}", f"%Y;{form}"
    return dt.datetime.strptime(text, form)


MOST_SINGLE_VALUES = 100
USUAL_BINS = 32


def number_of(point: Point) -> int | float:
    """The place of a bound, edge or value on its column's axis.

    >>> number_of(dt.date(1970, 1, 2)), number_of(dt.time(0, 1)), number_of(7)
    (1, 60, 7)
    """
    if isinstance(point, dt.datetime):
        start = dt.datetime(1970, 1, 1, tzinfo=dt.UTC if point.tzinfo else None)
        return (point - start) // dt.timedelta(seconds=1)
    if isinstance(point, dt.date):
        return point.toordinal() - dt.date(1970, 1, 1).toordinal()
    if isinstance(point, dt.time):
        return point.hour * 3600 + point.minute * 60 + point.second
    return point


def step_of(column: NumberColumn) -> int | None:
    """The distance between neighbouring values on the axis; None where values are not whole numbers."""
    match column:
        case Float():
            return None
        case Integer():
            return column.step
        case Date():
            return 1
        case _:
            return column.resolution


def values_between(column: NumberColumn) -> int | None:
    """How many values can be written between the bounds, both included; None for floats."""
    step = step_of(column)
    if step is None:
        return None
    return int(number_of(column.upper) - number_of(column.lower)) // step + 1


def bin_starts(column: NumberColumn) -> tuple[int | float, ...] | None:
    """The first place of every bin, in order; None while the bins are still to be chosen privately.

    A bin ends before the next one starts; the last one ends with the upper bound, included. Without `bins` there is
    one bin per integer up to 100 of them, else 32 of equal width. On whole-number axes "equal" means equally many
    values up to one, so no bin is empty.

    >>> from understudy.schema.columns import UniformBins
    >>> bin_starts(Integer(name="age", lower=0, upper=9, bins=UniformBins(4)))
    (0, 2, 5, 7)
    >>> bin_starts(Float(name="share", lower=0.0, upper=1.0, bins=UniformBins(4)))
    (0.0, 0.25, 0.5, 0.75)
    """
    bins = column.bins
    if isinstance(bins, PrivateBins):
        return None
    if isinstance(bins, GivenBins):
        return tuple(number_of(edge) for edge in bins.edges[:-1])
    step, values = step_of(column), values_between(column)
    if step is None or values is None:
        count = bins.count if bins else USUAL_BINS
        return tuple(_between(column.lower, column.upper, i / count) for i in range(count))
    if bins:
        count = bins.count
    else:
        single = isinstance(column, Integer) and values <= MOST_SINGLE_VALUES
        count = values if single else min(values, USUAL_BINS)
    return tuple(number_of(column.lower) + step * (i * values // count) for i in range(count))


def _between(lower: Point, upper: Point, share: float) -> float:
    # Not lower + share × width: this form ends exactly on the upper bound.
    return float(number_of(lower)) * (1.0 - share) + float(number_of(upper)) * share


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
        rule = f"{shown(column.thousands)} is also the decimal mark."
        yield Problem(f"{here}.thousands", rule, 'State another decimal, such as ",".')
    for key, said in (("prefix", column.prefix), ("suffix", column.suffix)):
        yield from text_problems(said, f"{here}.{key}")
        if isinstance(said, str) and any(character.isdecimal() for character in said):
            yield Problem(f"{here}.{key}", f"{shown(said)} holds a digit.", "Leave digits to the numbers.")
        elif isinstance(said, str) and said != trimmed(said):
            rule = f"{shown(said)} begins or ends with white space."
            yield Problem(f"{here}.{key}", rule, "Remove the white space: spaces beside a number are ignored anyway.")
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
                rule = f"{shown(bins.by)} is not a way to choose bins."
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
            yield Problem(where, rule, "Sort the edges and drop duplicates.")
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
