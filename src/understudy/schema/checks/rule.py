"""What can be wrong with an impossible combination, given the columns it names."""

import datetime as dt
from collections.abc import Iterator, Mapping

from understudy.errors import Problem
from understudy.schema.bins import bin_starts, number_of
from understudy.schema.checks.value import label_problems, point_problem, text_problems
from understudy.schema.column import (
    Category,
    Column,
    Date,
    Datetime,
    Derived,
    Float,
    Integer,
    NumberColumn,
    OpenCategory,
    Time,
)
from understudy.schema.place import below, place, shown, suggest
from understudy.schema.rule import Impossible, Range, bins_inside, labels_for_rules

__all__ = ["rule_problems"]


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
