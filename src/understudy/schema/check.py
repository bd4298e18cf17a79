"""Every problem of a schema, all at once: what its columns, rules and unit must obey before anything is read."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from understudy.errors import Problem
from understudy.schema.checks.column import column_problems
from understudy.schema.checks.derived import derived_problems
from understudy.schema.checks.rule import rule_problems
from understudy.schema.checks.value import count_problems, text_problems
from understudy.schema.column import (
    UNREADABLE_RULES,
    Category,
    Column,
    Derived,
    Integer,
    LinearSum,
    Named,
    code_names,
)
from understudy.schema.place import place, shown, suggest
from understudy.schema.unit import Unit

if TYPE_CHECKING:
    from understudy.schema.table import Schema

__all__ = ["problems_of", "unit_problems"]

MOST_UNIT_ROWS = 1_000_000_000


def problems_of(schema: "Schema") -> list[Problem]:
    """Everything that keeps this schema from being used; empty when it is sound."""
    declared: object = schema.columns
    columns: tuple[object, ...] = declared if isinstance(declared, tuple) else ()
    found = [*text_problems(schema.title, "title"), *text_problems(schema.note, "note")]
    if schema.unreadable not in UNREADABLE_RULES:
        known_rules = suggest(str(schema.unreadable), UNREADABLE_RULES)
        found.append(Problem("unreadable", f"{shown(schema.unreadable)} is not known.", known_rules))
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
