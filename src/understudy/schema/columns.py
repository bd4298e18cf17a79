"""Column kinds and their bins: what a column may hold, stated by a person and never read from the rows.

Every kind carries `missing` (may the value be absent? then absence is a code of its own in every table; otherwise there
is a code for what cannot be read, unless the schema says to drop such rows), `storage`
(the Arrow type written out, "" for the kind's default), `note` (where the bound or list comes from), `title` and
`description` (what people call the column and what it holds) and `missing_values` (texts that mean that there is no
value; None for those of the table, else `MISSING_VALUES`).
The rules these values must obey are checked in `checks.py` and `number_checks.py`, all at once.

Where bins lie follows from public facts alone: one definition for rules, codec and plans. Every number column has an
axis: integers and floats are themselves, dates count days from 1970-01-01, datetimes count seconds from there (in UTC
when the column has a zone, else by the wall clock), times count seconds from midnight. All axes but the float's hold
whole numbers, and the values that can be written are `lower`, `lower + step`, and so on.
"""

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

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
    """At most `count` bins, chosen through the door and paid for.

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
