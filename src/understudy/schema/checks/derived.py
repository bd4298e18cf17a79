"""What can be wrong with a derived column, given the columns it is computed from."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from understudy.errors import Problem
from understudy.schema.checks.value import number_problem, text_problems
from understudy.schema.column import Boolean, Category, Column, Cut, Derived, Float, Integer, LinearSum, Lookup
from understudy.schema.place import place, shown, suggest
from understudy.schema.rule import labels_for_rules

__all__ = ["derived_problems"]


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
