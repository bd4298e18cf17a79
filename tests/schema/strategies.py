"""Hypothesis strategies for valid schemas; other rooms test against them too.

`schemas()` covers all kinds, hostile names and labels, derived columns and rules. Whatever it gives is valid:
building it would raise otherwise.
"""

import dataclasses
import datetime as dt
from collections.abc import Callable, Sequence
from itertools import pairwise

from hypothesis import strategies as st

from understudy.schema import (
    Boolean,
    Category,
    Column,
    Cut,
    Date,
    Datetime,
    Derived,
    Float,
    GivenBins,
    Impossible,
    Integer,
    LinearSum,
    Lookup,
    OpenCategory,
    PrivateBins,
    Range,
    Schema,
    Time,
    UniformBins,
    Unit,
)
from understudy.schema.columns import BIN_RULES, NumberColumn, bin_starts, trimmed, values_between
from understudy.schema.schema import labels_for_rules

__all__ = ["COLUMNS", "HOSTILE", "HOSTILE_LABELS", "columns", "labels", "names", "schemas"]

HOSTILE = (
    "yes",
    "No",
    "null",
    "~",
    "true",
    "1",
    "007",
    "1e3",
    "2020-01-01",
    "08:00",
    " ",
    " leading",
    "trailing ",
    ": #",
    "- a",
    "a: b",
    "{x}",
    "[x]",
    "&a",
    "*a",
    "!tag",
    "%d",
    "<<",
    "=",
    "DECIDE",
    "kind",
    "columns",
    "'single'",
    '"double"',
    "back\\slash",
    "line\nbreak",
    "tab\there",
    "return\r",
    "next\x85line",
    "separator\u2028",
    "no\u00a0break",
    "\ufeff",
    "bell\x07",
    "e\u0301",
    "🎭",
    "👩‍👩‍👧",
    "שלום",
    "\u202eright to left",
    "汉字",
    "; drop table people",
    "a.b",
    "a,b",
    "x" * 1100,
)

HOSTILE_LABELS = (*(text for text in HOSTILE if len(text) <= 1024), "x" * 1024)  # a name may be longer than a label


def names() -> st.SearchStrategy[str]:
    """Column names a table may really have, and some it should not."""
    return st.sampled_from(HOSTILE) | st.text(
        st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8
    )


def labels() -> st.SearchStrategy[str]:
    """Labels; the empty one is a label too."""
    return st.sampled_from((*HOSTILE_LABELS, "", "\0")) | st.text(st.characters(codec="utf-8"), max_size=6)


def _shared(*storage: str) -> dict[str, st.SearchStrategy[object]]:
    notes = st.just("") | labels()
    return {
        "missing": st.booleans(),
        "storage": st.sampled_from(("", *storage)),
        "note": notes,
        "title": notes,
        "description": notes,
        "missing_values": missing_values(),
    }


def missing_values() -> st.SearchStrategy[tuple[str, ...] | None]:
    """Lists of texts that mean "no value"; none of them is a label or a number that the other strategies give."""
    words = st.sampled_from(("NA", "n/a", "?", " none ", "NULL", "-77777", "77777.5", "1900-01-01", ""))
    return st.none() | st.lists(words, max_size=3, unique=True).map(tuple)


def _writing(draw: st.DrawFn) -> dict[str, object]:
    """How text writes numbers."""
    decimal, thousands = draw(st.sampled_from((("", ""), ("", ""), (",", "."), (".", "'"), ("", ","), (",", " "))))
    prefix, suffix = draw(st.sampled_from((("", ""), ("", ""), ("€", ""), ("", "%"), ("US$", "m²"))))
    said = {"decimal": decimal, "thousands": thousands, "prefix": prefix, "suffix": suffix}
    return said | {"parentheses": draw(st.booleans()), "measured_in": draw(st.sampled_from(("", "kg", "no: 1")))}


@st.composite
def categories(draw: st.DrawFn, name: str) -> Category:
    """Closed lists, some written as integers, some with groups."""
    shared = {key: draw(value) for key, value in _shared("string", "large_string").items()}
    if draw(st.booleans()):
        numbers = draw(st.lists(st.integers(-128, 127), min_size=1, max_size=5, unique=True))
        shared["storage"] = draw(st.sampled_from(("int8", "int64", "string")))
        return Category(name=name, labels=tuple(map(str, numbers)), **shared)
    listed = draw(st.lists(labels(), min_size=1, max_size=5, unique=True))
    met = {trimmed(text).casefold() for text in listed}
    shared["ignore_case"] = len(met) == len(listed) and draw(st.booleans())
    shared["ordered"] = draw(st.booleans())
    shared["meanings"] = draw(st.dictionaries(st.sampled_from(listed), labels(), max_size=3))
    absent = draw(missing_values())
    shared["missing_values"] = None if met & {trimmed(text).casefold() for text in absent or ()} else absent
    other = draw(st.none() | labels().filter(lambda text: text not in listed))
    if draw(st.integers(0, 3)) == 0:
        return Category(name=name, labels=tuple(listed), other=other, rare="private", **shared)
    groups = draw(st.dictionaries(st.sampled_from(listed), labels(), max_size=3))
    return Category(name=name, labels=tuple(listed), other=other, groups=groups, **shared)


@st.composite
def open_categories(draw: st.DrawFn, name: str) -> OpenCategory:
    """Open lists."""
    shared = {key: draw(value) for key, value in _shared("string", "large_string").items()}
    return OpenCategory(name=name, other=draw(labels()), most_labels=draw(st.integers(1, 5000)), **shared)


@st.composite
def booleans(draw: st.DrawFn, name: str) -> Boolean:
    """Booleans."""
    return Boolean(name=name, **{key: draw(value) for key, value in _shared("bool").items()})


@st.composite
def _binned(draw: st.DrawFn, column: NumberColumn, point: Callable[[int], object]) -> NumberColumn:
    """The column with bins that suit it; `point` makes a value from a count of steps above the lower bound."""
    values = values_between(column) or 50
    choices: list[object] = [
        None,
        UniformBins(draw(st.integers(1, min(values, 40)))),
        PrivateBins(draw(st.integers(1, 9)), draw(st.sampled_from(BIN_RULES))),
    ]
    if values > 1:
        inner = draw(st.lists(st.integers(1, values - 1), max_size=4, unique=True))
        edges = [column.lower, *map(point, sorted(inner)), column.upper]
        if all(left < right for left, right in pairwise(edges)):  # type: ignore[operator]
            choices.append(GivenBins(tuple(edges)))
    bins = draw(st.sampled_from(choices))
    return dataclasses.replace(column, bins=bins)


@st.composite
def integers(draw: st.DrawFn, name: str) -> NumberColumn:
    """Integers, single-valued ones included."""
    lower = draw(st.integers(-1000, 1000) | st.sampled_from((-(2**30), 0)))
    upper = lower + draw(st.integers(0, 300) | st.just(10**6))
    step = draw(st.integers(1, max(1, min(7, upper - lower))))
    special = draw(st.lists(st.integers(lower - 9, upper + 9) | st.just(999_998), max_size=3, unique=True))
    shared = {key: draw(value) for key, value in _shared("int64", "int32", "double").items()}
    split = draw(st.sampled_from(((), (), (100, 20, 50, 25, 10, 5, 2), (7,), (6, 4))))
    shared |= _writing(draw)
    column = Integer(name=name, lower=lower, upper=upper, special=tuple(special), step=step, split=split, **shared)
    return draw(_binned(column, lambda count: lower + count * step))


@st.composite
def floats(draw: st.DrawFn, name: str) -> NumberColumn:
    """Floats over narrow and wide bounds."""
    lower = draw(st.floats(-1e6, 1e6, allow_subnormal=False) | st.sampled_from((0.0, -0.0, 0.1, -1e15)))
    upper = lower + draw(st.floats(0.5, 1e6) | st.sampled_from((1.0, 1e16)))
    special = draw(
        st.lists(st.floats(-1e7, 1e7, allow_subnormal=False), max_size=3, unique_by=lambda value: value + 0.0)
    )
    shared = {key: draw(value) for key, value in _shared("double", "float").items()}
    decimals = draw(st.none() | st.integers(0, 12))
    shared |= _writing(draw)
    column = Float(name=name, lower=lower, upper=upper, special=tuple(special), decimals=decimals, **shared)
    return draw(_binned(column, lambda count: lower + (upper - lower) * (count / 50)))


@st.composite
def dates(draw: st.DrawFn, name: str) -> NumberColumn:
    """Dates."""
    lower = draw(st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)))
    upper = lower + dt.timedelta(days=draw(st.integers(0, 400) | st.just(40_000)))
    form = draw(st.sampled_from((None, "%d.%m.%Y", "%Y%m%d")))
    shared = {key: draw(value) for key, value in _shared("date32", "string").items()}
    column = Date(name=name, lower=lower, upper=upper, format=form, **shared)
    return draw(_binned(column, lambda count: lower + dt.timedelta(days=count)))


@st.composite
def datetimes(draw: st.DrawFn, name: str) -> NumberColumn:
    """Instants in a zone, or wall-clock times."""
    zone = draw(st.sampled_from((None, "UTC", "Europe/Berlin", "America/St_Johns")))
    start = draw(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))).replace(microsecond=0, fold=0)
    offset = dt.timezone(dt.timedelta(minutes=draw(st.sampled_from((0, 60, -210)))))
    lower = start if zone is None else start.replace(tzinfo=offset)
    resolution = draw(st.sampled_from((1, 60, 3600, 7)))
    upper = lower + dt.timedelta(seconds=draw(st.integers(0, 90) | st.just(10**6)) * resolution)
    shared = {key: draw(value) for key, value in _shared("timestamp[us]", "timestamp[s]", "string").items()}
    column = Datetime(name=name, lower=lower, upper=upper, zone=zone, resolution=resolution, **shared)
    return draw(_binned(column, lambda count: lower + dt.timedelta(seconds=count * resolution)))


@st.composite
def times(draw: st.DrawFn, name: str) -> NumberColumn:
    """Times of day."""
    resolution = draw(st.sampled_from((1, 60, 900)))
    low, high = sorted(draw(st.tuples(st.integers(0, 95), st.integers(0, 95))))
    lower, upper = _clock(low * 900), _clock(high * 900)
    shared = {key: draw(value) for key, value in _shared("time32[s]", "time64[us]", "string").items()}
    column = Time(name=name, lower=lower, upper=upper, resolution=resolution if high > low else 1, **shared)
    return draw(_binned(column, lambda count: _clock(low * 900 + count * column.resolution)))


def _clock(seconds: int) -> dt.time:
    return (dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)).time()


COLUMNS: dict[str, Callable[[str], st.SearchStrategy[Column]]] = {
    "category": categories,
    "open_category": open_categories,
    "boolean": booleans,
    "integer": integers,
    "float": floats,
    "date": dates,
    "datetime": datetimes,
    "time": times,
}


@st.composite
def columns(draw: st.DrawFn, name: str, kinds: Sequence[str] = tuple(COLUMNS)) -> Column:
    """A column of one of the kinds."""
    return draw(COLUMNS[draw(st.sampled_from(kinds))](name))


def _formulas(modelled: Sequence[Column]) -> list[st.SearchStrategy[object]]:
    numbers = [column.name for column in modelled if isinstance(column, (Integer, Float))]
    found: list[st.SearchStrategy[object]] = []
    weights = st.floats(-1e3, 1e3, allow_subnormal=False)
    if numbers:
        chosen = st.dictionaries(st.sampled_from(numbers), weights, min_size=1, max_size=3)
        found.append(st.builds(LinearSum, chosen, weights))
        cuts = (Cut(name, (0.0, 10.0, 20.5), ("low", "yes")) for name in numbers)
        found.append(st.sampled_from(list(cuts)))
    for column in modelled:
        if isinstance(column, (Category, Boolean)):
            keys = st.sampled_from(labels_for_rules(column))
            entries = st.dictionaries(keys, labels(), min_size=1, max_size=3)
            found.append(st.builds(Lookup, st.just(column.name), entries, st.none() | labels()))
    return found


@st.composite
def _conditions(draw: st.DrawFn, column: Column) -> tuple[str | None, ...] | Range | None:
    """A condition that some, not all, codes of the column meet; None if it has none."""
    if isinstance(column, Category) and column.rare == "private":
        return None
    if isinstance(column, (Category, Boolean)):
        codes = [*labels_for_rules(column), *([None] if column.missing else [])]
        most = len(codes) - 1
        return tuple(draw(st.lists(st.sampled_from(codes), min_size=1, max_size=most, unique=True))) if most else None
    if isinstance(column, OpenCategory):
        return None
    starts = bin_starts(column)
    if starts is None or len(starts) < 2 or draw(st.booleans()):
        return (None,) if column.missing else None
    cut = starts[draw(st.integers(1, len(starts) - 1))]
    match column:
        case Integer():
            return Range(None, int(cut) - 1) if draw(st.booleans()) else Range(int(cut), None)
        case Float():
            return Range(column.lower, cut)
        case Date():
            return Range(None, dt.date(1970, 1, 1) + dt.timedelta(days=cut - 1))
        case Datetime():
            start = dt.datetime(1970, 1, 1, tzinfo=dt.UTC if column.zone else None)
            return Range(start + dt.timedelta(seconds=cut), column.upper)
        case Time():
            return Range(_clock(int(cut)), None)
    return None


@st.composite
def schemas(draw: st.DrawFn, kinds: Sequence[str] = tuple(COLUMNS), most_columns: int = 5) -> Schema:
    """Valid schemas of one to `most_columns` columns of these kinds, with derived columns, rules and a unit."""
    listed = draw(st.lists(names(), min_size=3, max_size=most_columns + 2, unique=True))
    *used, unit_name, derived_name = listed
    declared: list[Column] = [draw(columns(name, kinds)) for name in used]
    rules = []
    for _ in range(draw(st.integers(0, 2))):
        chosen = draw(st.lists(st.sampled_from(declared), min_size=1, max_size=2, unique_by=lambda column: column.name))
        when = {column.name: draw(_conditions(column)) for column in chosen}
        if None not in when.values():
            rules.append(Impossible(when, draw(labels())))
    formulas = _formulas(declared)
    if formulas and draw(st.booleans()):
        formula = draw(draw(st.sampled_from(formulas)))
        place = draw(st.integers(0, len(declared)))
        declared.insert(place, Derived(name=derived_name, formula=formula, missing=draw(st.booleans())))
    unit = draw(
        st.sampled_from((Unit(), Unit(note="each row is a person"), Unit(unit_name, 3), Unit(unit_name, 1, "x: y")))
    )
    said = {"title": draw(labels()), "note": draw(labels()), "missing_values": draw(missing_values())}
    return Schema(tuple(declared), unit, tuple(rules), **said)
