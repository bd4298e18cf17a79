"""What can be wrong with one column taken alone; how it fits the others is checked with the schema."""

import re
from collections.abc import Iterator, Mapping

from understudy.errors import Problem
from understudy.schema.checks.number import MOST_BINS, WHOLE_LIMITS, number_column_problems
from understudy.schema.checks.value import count_problems, label_problems, text_problems
from understudy.schema.column import (
    RARE_RULES,
    STORAGE,
    Boolean,
    Category,
    Cut,
    Date,
    Datetime,
    Derived,
    Float,
    Integer,
    LinearSum,
    Named,
    OpenCategory,
    Time,
)
from understudy.schema.place import place, shown, suggest

__all__ = ["column_problems"]


def column_problems(column: object) -> Iterator[Problem]:
    """Everything wrong with one column by itself; problems with other columns are left to the schema."""
    if isinstance(column, Named):
        yield from _named_problems(column)
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
    yield from text_problems(column.note, f"{here}.note")
    allowed = STORAGE.get(_storage_kind(column), ())
    if column.storage != "" and column.storage not in allowed:
        known = suggest(str(column.storage), allowed)
        yield Problem(f"{here}.storage", f"{shown(column.storage)} does not suit this kind.", known)


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


def _is_whole_text(text: object, low: int, high: int) -> bool:
    return (
        isinstance(text, str)
        and bool(re.fullmatch(r"0|-?[1-9][0-9]{0,19}", text, re.ASCII))
        and low <= int(text) <= high
    )
