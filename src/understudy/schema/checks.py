"""Every problem of a schema, all at once: columns, rules and unit, each named by file, line and key.

Whether a single declared value is what its key asks for: text, a count, or a place on a column's axis.

Each rule comes back as a sentence to be shown, empty when all is well. Declarations are public, so they are quoted.

What can be wrong with a number, date or time column taken alone.

What can be wrong with one column taken alone; how it fits the others is checked with the schema.

What can be wrong with a derived column, given the columns it is computed from.

What can be wrong with an impossible combination, given the columns it names.

Every problem of a schema, all at once: what its columns, rules and unit must obey before anything is read.
"""

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, TypeGuard
from zoneinfo import ZoneInfo, available_timezones

from understudy.errors import Problem, below, place, shown, suggest
from understudy.schema.columns import (
    BIN_RULES,
    BOOLEAN_WORDS,
    DECIMALS,
    MOST_LABEL_BYTES,
    RARE_RULES,
    STORAGE,
    THOUSANDS,
    UNREADABLE_RULES,
    Boolean,
    Category,
    Column,
    Cut,
    Date,
    Datetime,
    Derived,
    Float,
    GivenBins,
    Integer,
    LinearSum,
    Lookup,
    Named,
    NumberColumn,
    OpenCategory,
    Point,
    PrivateBins,
    Time,
    UniformBins,
    bin_starts,
    code_names,
    number_of,
    plain_label,
    read_moment,
    step_of,
    trimmed,
    values_between,
)
from understudy.schema.dialect import Dialect
from understudy.schema.schema import Impossible, Range, Unit, bins_inside, labels_for_rules

if TYPE_CHECKING:
    from understudy.schema.schema import Schema


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


def column_problems(column: object) -> Iterator[Problem]:
    """Everything wrong with one column by itself; problems with other columns are left to the schema."""
    if isinstance(column, Named):
        yield from _named_problems(column)
        yield from _missing_problems(column)
    match column:
        case Category():
            yield from _category_problems(column)
        case OpenCategory():
            yield from text_problems(column.other, place("columns", column.name, "other"))
            yield from count_problems(column.most_labels, place("columns", column.name, "most_labels"), MOST_BINS)
        case Integer() | Float() | Date() | Datetime() | Time():
            yield from number_column_problems(column)
        case Boolean() | Derived():
            pass
        case _:
            yield Problem("columns", f"{shown(column)} is not a column.", "Use Category, Integer, Date and so on.")


def _named_problems(column: Named) -> Iterator[Problem]:
    here = place("columns", column.name)
    yield from text_problems(column.name, here)
    if column.name == "":
        yield Problem("columns", "a name is empty.", "Give every column a name.")
    elif "\0" in str(column.name):
        yield Problem(here, "the name contains the NUL character.", "Rename the column.")
    if column.missing not in (True, False):
        yield Problem(f"{here}.missing", f"{shown(column.missing)} must be true or false.")
    for key in ("note", "title", "description"):
        yield from text_problems(getattr(column, key), f"{here}.{key}")
    allowed = STORAGE.get(_storage_kind(column), ())
    if column.storage != "" and column.storage not in allowed:
        known = suggest(str(column.storage), allowed)
        yield Problem(f"{here}.storage", f"{shown(column.storage)} does not suit this kind.", known)


def missing_list_problems(listed: object, where: str) -> Iterator[Problem]:
    """Whether this is a list of texts, each once, or nothing."""
    if listed is None:
        return
    if not isinstance(listed, tuple):
        yield Problem(where, f"{shown(listed)} must be a list of texts.", 'Write it as [NA, "-99"].')
        return
    yield from label_problems(listed, where)


def _missing_problems(column: Named) -> Iterator[Problem]:
    """What is wrong with the texts that mean "no value"; those of the table give way to labels and special values."""
    where = place("columns", column.name, "missing_values")
    listed: object = column.missing_values
    problems = list(missing_list_problems(listed, where))
    yield from problems
    if problems or not isinstance(listed, tuple):
        return
    if isinstance(column, Derived):
        yield Problem(where, "belongs to columns that are read, and a derived one is computed.", "Leave it out.")
    known: dict[str, str] = {}
    if isinstance(column, Category) and isinstance(column.labels, tuple):
        known = {_met_as(label, column): "label" for label in column.labels if isinstance(label, str)}
    elif isinstance(column, (Integer, Float)) and isinstance(column.special, tuple):
        known = {plain_label(str(value)): "special value" for value in column.special}
    elif isinstance(column, Boolean):
        known = dict.fromkeys(BOOLEAN_WORDS, "word for true or false")
    for text in listed:
        met = _met_as(text, column)
        if met in known and met != "":
            yield Problem(where, f"{shown(text)} is also a {known[met]}.", "Keep it in one of the two.")


def _met_as(text: str, column: Named) -> str:
    """What is left of a text when all is taken away that a value may differ in and still meet it."""
    plain = plain_label(text)
    folded = isinstance(column, Boolean) or (isinstance(column, Category) and column.ignore_case is True)
    return plain.casefold() if folded else plain


def _storage_kind(column: Named) -> str:
    if isinstance(column, Derived):
        formula = column.formula
        return f"derived {'sum' if isinstance(formula, LinearSum) else 'cut' if isinstance(formula, Cut) else 'lookup'}"
    return str(getattr(column, "kind", ""))


def _category_problems(column: Category) -> Iterator[Problem]:
    here = place("columns", column.name)
    labels: object = column.labels
    if not isinstance(labels, tuple) or not labels:
        yield Problem(f"{here}.labels", "must list at least one label.", "Use open_category if the list is unknown.")
        return
    yield from label_problems(labels, f"{here}.labels")
    if column.other is not None:
        yield from text_problems(column.other, f"{here}.other")
        if column.other in column.labels:
            yield Problem(f"{here}.other", f"{shown(column.other)} is also a label.", "Name it differently.")
    if column.storage in WHOLE_LIMITS:
        texts = column.labels if column.other is None else (*column.labels, column.other)
        bad = next((text for text in texts if not _is_whole_text(text, *WHOLE_LIMITS[column.storage])), None)
        if bad is not None:
            rule = f"{shown(bad)} cannot be written as {column.storage}."
            yield Problem(f"{here}.labels", rule, "Use storage: string, or labels such as 7 (not 07).")
    yield from _group_problems(column)
    yield from _spelling_problems(column)
    if column.rare not in RARE_RULES:
        yield Problem(f"{here}.rare", f"{shown(column.rare)} is not known.", suggest(str(column.rare), RARE_RULES))
    elif column.rare == "private" and (column.groups or column.within):
        rule = "rare labels may share one code, so that groups of labels would be torn apart."
        yield Problem(f"{here}.rare", rule, "Drop groups and within, or keep rare labels.")


def _group_problems(column: Category) -> Iterator[Problem]:
    here = place("columns", column.name)
    groups: object = column.groups
    if not isinstance(groups, Mapping):
        yield Problem(f"{here}.groups", "must map labels to their group.")
        return
    known = {text for text in column.labels if isinstance(text, str)}
    for label, group in groups.items():
        if not isinstance(label, str) or label not in known:
            known_labels = suggest(str(label), known)
            yield Problem(f"{here}.groups", f"{shown(label)} is not a label.", known_labels)
        yield from text_problems(group, f"{here}.groups")
    if column.within is not None:
        yield from text_problems(column.within, f"{here}.within")
    if column.within is not None and not groups:
        yield Problem(f"{here}.within", "needs groups that say where each label belongs.", "Add groups.")


def _spelling_problems(column: Category) -> Iterator[Problem]:
    """What is wrong with the case, the order and the meanings of the labels."""
    here = place("columns", column.name)
    for key in ("ignore_case", "ordered"):
        if getattr(column, key) not in (True, False):
            yield Problem(f"{here}.{key}", f"{shown(getattr(column, key))} must be true or false.")
    if column.ignore_case is True:
        first: dict[str, str] = {}
        for label in dict.fromkeys(text for text in column.labels if isinstance(text, str)):
            met = first.setdefault(trimmed(label).casefold(), label)
            if met != label:
                rule = f"labels {shown(met)} and {shown(label)} are the same but for case."
                yield Problem(f"{here}.ignore_case", rule, "Keep one of them, or tell case apart.")
    meanings: object = column.meanings
    if not isinstance(meanings, Mapping):
        yield Problem(f"{here}.meanings", "must map labels to what they mean.", 'Write it as {"1": yes, "2": no}.')
        return
    known = {text for text in column.labels if isinstance(text, str)}
    for label, meaning in meanings.items():
        if not isinstance(label, str) or label not in known:
            yield Problem(f"{here}.meanings", f"{shown(label)} is not a label.", suggest(str(label), known))
        yield from text_problems(meaning, f"{here}.meanings")


def _is_whole_text(text: object, low: int, high: int) -> bool:
    return (
        isinstance(text, str)
        and bool(re.fullmatch(r"0|-?[1-9][0-9]{0,19}", text, re.ASCII))
        and low <= int(text) <= high
    )


def derived_problems(column: Derived, columns: Mapping[str, Column]) -> Iterator[Problem]:
    """Everything wrong with the formula."""
    here = place("columns", column.name)
    formula: object = column.formula
    match formula:
        case LinearSum():
            yield from _sum_problems(formula, f"{here}.sum", columns)
        case Lookup():
            yield from _lookup_problems(formula, f"{here}.lookup", columns)
        case Cut():
            yield from _cut_problems(formula, f"{here}.cut", columns)
        case _:
            yield Problem(here, f"{shown(formula)} is not a formula.", "Use LinearSum, Lookup or Cut.")


def _source_problems(name: object, where: str, columns: Mapping[str, Column], *, numbers: bool) -> Iterator[Problem]:
    source = columns.get(name) if isinstance(name, str) else None
    if source is None:
        yield Problem(where, f"column {shown(name)} is not in the schema.", suggest(str(name), columns))
    elif isinstance(source, Derived):
        yield Problem(where, f"column {shown(name)} is derived itself.", "Use the columns it is computed from.")
    elif not isinstance(source, (Integer, Float) if numbers else (Category, Boolean)):
        wanted = "an integer or float" if numbers else "a closed category or boolean"
        yield Problem(where, f"column {shown(name)} must be {wanted} column, not {source.kind}.")


def _sum_problems(formula: LinearSum, here: str, columns: Mapping[str, Column]) -> Iterator[Problem]:
    weights: object = formula.weights
    if not isinstance(weights, Mapping) or not weights:
        yield Problem(f"{here}.weights", "must give a weight to at least one column.")
        return
    for name, weight in weights.items():
        yield from _source_problems(name, f"{here}.weights", columns, numbers=True)
        if rule := number_problem(weight):
            yield Problem(f"{here}.weights", f"{shown(name)}: {rule}")
    if rule := number_problem(formula.constant):
        yield Problem(f"{here}.constant", rule)


def _lookup_problems(formula: Lookup, here: str, columns: Mapping[str, Column]) -> Iterator[Problem]:
    problems = list(_source_problems(formula.column, f"{here}.column", columns, numbers=False))
    yield from problems
    entries: object = formula.entries
    if not isinstance(entries, Mapping) or not entries:
        yield Problem(f"{here}.entries", "must have at least one entry.")
        return
    known = frozenset(() if problems else labels_for_rules(columns[formula.column]))
    for label, text in entries.items():
        if not problems and label not in known:
            rule = f"{shown(label)} is not a label of column {shown(formula.column)}."
            yield Problem(f"{here}.entries", rule, suggest(str(label), known))
        yield from text_problems(text, f"{here}.entries")
    if formula.otherwise is not None:
        yield from text_problems(formula.otherwise, f"{here}.otherwise")


def _cut_problems(formula: Cut, here: str, columns: Mapping[str, Column]) -> Iterator[Problem]:
    yield from _source_problems(formula.column, f"{here}.column", columns, numbers=True)
    edges: object = formula.edges
    labels: object = formula.labels
    if not isinstance(edges, tuple) or len(edges) < 2:
        yield Problem(f"{here}.edges", "must list at least two edges.")
        return
    wrong = [Problem(f"{here}.edges", rule) for rule in map(number_problem, edges) if rule]
    yield from wrong
    if not wrong and any(left >= right for left, right in pairwise(edges)):
        yield Problem(f"{here}.edges", "must increase.", "Sort the edges and drop doubles.")
    if not isinstance(labels, tuple) or len(labels) != len(edges) - 1:
        yield Problem(f"{here}.labels", f"must list {len(edges) - 1} labels, one per band between two edges.")
        return
    for label in labels:
        yield from text_problems(label, f"{here}.labels")


def rule_problems(rule: object, index: int, columns: Mapping[str, Column]) -> Iterator[Problem]:
    """Everything wrong with the rule at that place in the list."""
    here = place("rules", index)
    if not isinstance(rule, Impossible):
        yield Problem(here, f"{shown(rule)} is not a rule.", "Use Impossible.")
        return
    yield from text_problems(rule.note, f"{here}.note")
    when: object = rule.when
    if not isinstance(when, Mapping) or not when:
        yield Problem(f"{here}.impossible", "must state at least one condition.", "Name a column and its labels.")
        return
    problems = [found for name in when for found in _condition_problems(name, when[name], here, columns)]
    yield from problems
    if not problems and all(_covers(columns[name], said) for name, said in rule.when.items()):
        yield Problem(f"{here}.impossible", "excludes every possible record.", "Leave some codes out of it.")


def _condition_problems(name: object, said: object, rule: str, columns: Mapping[str, Column]) -> Iterator[Problem]:
    here = below(rule, str(name))
    column = columns.get(name) if isinstance(name, str) else None
    if column is None:
        yield Problem(here, f"column {shown(name)} is not in the schema.", suggest(str(name), columns))
    elif isinstance(column, Derived):
        yield Problem(here, "is a derived column, which follows from others.", "State the rule on its sources.")
    elif isinstance(column, OpenCategory):
        yield Problem(here, "is an open category: its labels are not known beforehand.", "Make it a closed category.")
    elif isinstance(column, Category) and column.rare == "private":
        rule = "its rare labels may share one code, so that no rule can tell them apart."
        yield Problem(here, rule, "Keep the rare labels of this column, or drop the condition.")
    elif isinstance(said, Range):
        yield from _range_problems(column, said, here)
    elif isinstance(said, tuple) and said:
        yield from _label_condition_problems(column, said, here)
    else:
        yield Problem(here, f"{shown(said)} must be a list of labels or a range.", "For example [yes] or {to: 17}.")


def _label_condition_problems(column: Column, said: tuple[object, ...], here: str) -> Iterator[Problem]:
    if said.count(None) > 1:
        yield Problem(here, "names missing twice.", "Remove one.")
    if None in said and not column.missing:
        yield Problem(here, "names missing, but the column says missing: false.", "Drop ~ or allow missing values.")
    texts = tuple(label for label in said if label is not None)
    yield from label_problems(texts, here)
    known = labels_for_rules(column)
    for label in texts:
        if isinstance(label, str) and label not in known:
            number = isinstance(column, (Integer, Float, Date, Datetime, Time))
            fix = "For values use a range such as {from: 0, to: 17}. " * number + suggest(label, known)
            yield Problem(here, f"{shown(label)} is not a label of this column.", fix)


def _range_problems(column: Column, said: Range, here: str) -> Iterator[Problem]:
    if not isinstance(column, (Integer, Float, Date, Datetime, Time)):
        yield Problem(here, "a range needs a number, date or time column.", "List labels instead.")
        return
    ends = [(key, end) for key, end in (("from", said.lower), ("to", said.upper)) if end is not None]
    if not ends:
        yield Problem(here, "the range has neither from nor to.", "State at least one of them.")
        return
    wrong = [Problem(f"{here}.{key}", rule) for key, end in ends if (rule := point_problem(column, end))]
    yield from wrong
    if wrong:
        return
    low, high = _ends(column, said)
    if low > high:
        yield Problem(here, "the range holds no value: from must not be above to, and it must meet the bounds.")
        return
    inside = bins_inside(column, said)
    if inside is None:
        yield _misfit(column, said, here)
    elif not any(inside):
        yield Problem(here, "the range holds no bin of the column.", "Widen the range or drop the condition.")


def _ends(column: NumberColumn, said: Range) -> tuple[float, float]:
    low, high = number_of(column.lower), number_of(column.upper)
    if said.lower is not None:
        low = max(low, number_of(said.lower))
    if said.upper is not None:
        high = min(high, number_of(said.upper))
    return low, high


def _misfit(column: NumberColumn, said: Range, here: str) -> Problem:
    starts = bin_starts(column)
    if starts is None:
        rule = "a range needs bins known beforehand, but this column chooses them privately."
        return Problem(here, rule, "Give the column bins, or drop the condition.")
    whole = not isinstance(column, Float)
    last = number_of(column.upper)
    ends = [*(start - 1 if whole else start for start in starts[1:]), last]
    near: list[str] = []
    for key, end, fitting in (("from", said.lower, starts), ("to", said.upper, ends)):
        if end is not None:
            given = number_of(end)
            below = [number for number in fitting if number <= given][-1:]
            above = [number for number in fitting if number >= given][:1]
            near += [f"{key}: {_on_axis(column, number)}" for number in dict.fromkeys(below + above)]
    return Problem(here, "the range cuts a bin in two.", f"What fits nearest: {', '.join(near)}. Or state other bins.")


def _on_axis(column: NumberColumn, number: float) -> str:
    """The value at that place of the axis, as the schema file would show it."""
    match column:
        case Date():
            return (dt.date(1970, 1, 1) + dt.timedelta(days=int(number))).isoformat()
        case Datetime():
            start = dt.datetime(1970, 1, 1, tzinfo=dt.UTC if column.zone else None)
            return (start + dt.timedelta(seconds=int(number))).isoformat()
        case Time():
            return (dt.datetime(1970, 1, 1) + dt.timedelta(seconds=int(number))).time().isoformat()
        case _:
            return shown(number)


def _covers(column: Column, said: tuple[str | None, ...] | Range) -> bool:
    """Whether the condition holds whatever code the column has."""
    if isinstance(said, Range):
        if column.missing or labels_for_rules(column) or not isinstance(column, (Integer, Float, Date, Datetime, Time)):
            return False
        return all(bins_inside(column, said) or [False])
    if isinstance(column, (Integer, Float, Date, Datetime, Time)):
        return False
    return set(labels_for_rules(column)) <= set(said) and (not column.missing or None in said)


MOST_UNIT_ROWS = 1_000_000_000


def _file_problems(file: object, columns: tuple[object, ...]) -> Iterator[Problem]:
    """What is wrong with how the text file is said to be written."""
    if file is None:
        return
    if not isinstance(file, Dialect):
        yield Problem("file", f"{shown(file)} must be a Dialect.")
        return
    for problem in file.problems():
        yield Problem(f"file.{problem.where}", problem.rule, problem.fix)
    for column in columns:
        if isinstance(column, Integer | Float) and not column.decimal and column.thousands == file.decimal != "":
            rule = f"{shown(column.thousands)} stands before the decimals in the whole file."
            yield Problem(f"columns.{column.name}.thousands", rule, "State another, or a decimal of the column.")


def problems_of(schema: "Schema") -> list[Problem]:
    """Everything that keeps this schema from being used; empty when it is sound."""
    declared: object = schema.columns
    columns: tuple[object, ...] = declared if isinstance(declared, tuple) else ()
    found = [*text_problems(schema.title, "title"), *text_problems(schema.note, "note")]
    if schema.unreadable not in UNREADABLE_RULES:
        known_rules = suggest(str(schema.unreadable), UNREADABLE_RULES)
        found.append(Problem("unreadable", f"{shown(schema.unreadable)} is not known.", known_rules))
    found += missing_list_problems(schema.missing_values, "missing_values")
    found += _file_problems(schema.file, columns)
    if not columns:
        found.append(Problem("columns", "must list at least one column.", "Declare what the table holds."))
    elif all(isinstance(column, Derived) for column in columns):
        found.append(Problem("columns", "are all derived.", "Declare the columns they are computed from."))
    own = [list(column_problems(column)) for column in columns]
    found += [problem for problems in own for problem in problems]
    named = [column for column in columns if isinstance(column, Named) and isinstance(column.name, str)]
    found += _name_problems(named)
    found += _part_problems(named, schema.unit)
    found += unit_problems(schema.unit, frozenset(column.name for column in named))
    rules: object = schema.rules
    if not isinstance(rules, tuple):
        return [*found, Problem("rules", f"{shown(rules)} must be a list of rules.")]
    broken = {_name(column) for column, problems in zip(columns, own, strict=True) if problems}
    known = {column.name: column for column in schema.columns if isinstance(column, Named)}
    # What rests on a broken column would only repeat its problem, so it is judged once that column is mended.
    for column in known.values():
        if not broken & {column.name, *_sources(column)}:
            found += _relation_problems(column, known)
    for index, rule in enumerate(rules):
        if not broken & set(getattr(rule, "when", ())):
            found += rule_problems(rule, index, known)
    return found


def _name(column: object) -> object:
    return column.name if isinstance(column, Named) else None


def _sources(column: Column) -> list[object]:
    """The columns this one refers to."""
    if isinstance(column, Category):
        return [column.within]
    if not isinstance(column, Derived):
        return []
    if isinstance(column.formula, LinearSum):
        return list(column.formula.weights)
    return [getattr(column.formula, "column", None)]


def _name_problems(columns: list[Named]) -> Iterator[Problem]:
    for name, times in Counter(column.name for column in columns).items():
        if times > 1:
            yield Problem(place("columns", name), f"is declared {times} times.", "Keep one declaration.")


def _part_problems(columns: list[Named], unit: object) -> Iterator[Problem]:
    """Parts of a split column need names that nothing else has."""
    taken = {column.name for column in columns} | ({unit.column} if isinstance(unit, Unit) else set())
    for column in columns:
        if isinstance(column, Integer) and column.split:
            for name in code_names(column):
                if name in taken:
                    rule = f"makes a part called {shown(name)}, which is a column already."
                    yield Problem(place("columns", column.name, "split"), rule, "Rename that column.")


def unit_problems(unit: object, names: frozenset[str]) -> Iterator[Problem]:
    """What is wrong with the privacy unit, given the names of the declared columns."""
    if not isinstance(unit, Unit):
        yield Problem("unit", f"{shown(unit)} must be a Unit.", "State who is protected: a row, or an id column.")
        return
    yield from text_problems(unit.note, "unit.note")
    rows = list(count_problems(unit.rows, "unit.rows", MOST_UNIT_ROWS))
    yield from rows
    if unit.column is None:
        if not rows and unit.rows != 1:
            rule = f"{unit.rows} rows per unit need an id column to count them by."
            yield Problem("unit.rows", rule, "Name the column, or protect one row.")
        return
    yield from text_problems(unit.column, "unit.column")
    if unit.column == "":
        yield Problem("unit.column", "is empty.", "Name the id column, or protect one row.")
    elif unit.column in names:
        rule = f"{shown(unit.column)} is also declared under columns, so ids would be released."
        yield Problem("unit.column", rule, "Delete that column from columns.")


def _relation_problems(column: Column, columns: Mapping[str, Column]) -> Iterator[Problem]:
    if isinstance(column, Derived):
        yield from derived_problems(column, columns)
    elif isinstance(column, Category) and column.within is not None:
        yield from _within_problems(column, column.within, columns)


def _within_problems(column: Category, within: str, columns: Mapping[str, Column]) -> Iterator[Problem]:
    here = place("columns", column.name)
    parent = columns.get(within)
    if within == column.name:
        yield Problem(f"{here}.within", "names the column itself.", "Name the coarser column.")
    elif parent is None:
        yield Problem(f"{here}.within", f"column {shown(within)} is not in the schema.", suggest(within, columns))
    elif not isinstance(parent, Category):
        yield Problem(f"{here}.within", f"column {shown(within)} must be a category, not {parent.kind}.")
    elif parent.rare == "private":
        rule = f"rare labels of column {shown(within)} may share one code, so that nothing can lie within them."
        yield Problem(f"{here}.within", rule, "Keep the rare labels of that column, or drop within.")
    else:
        labels = frozenset(parent.labels)
        for group in dict.fromkeys(column.groups.values()):
            if group not in labels:
                rule = f"{shown(group)} is not a label of column {shown(within)}."
                yield Problem(f"{here}.groups", rule, suggest(group, parent.labels))
