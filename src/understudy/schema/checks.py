"""Every problem of a schema, all at once, each under its key: columns alone, columns together, rules, unit and file.

Declarations are public, so they are quoted. Number columns taken alone are checked in `columns.py`.
"""

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from understudy.errors import Problem, below, place, shown, suggest
from understudy.schema.columns import (
    BOOLEAN_WORDS,
    RARE_RULES,
    STORAGE,
    UNREADABLE_RULES,
    Boolean,
    Category,
    Column,
    Cut,
    Date,
    Datetime,
    Derived,
    Float,
    Integer,
    LinearSum,
    Lookup,
    Named,
    NumberColumn,
    OpenCategory,
    Time,
    bin_starts,
    code_names,
    number_of,
    plain_label,
    trimmed,
)
from understudy.schema.schema import Dialect, Impossible, Range, Unit, bins_inside, labels_for_rules

if TYPE_CHECKING:
    from understudy.schema.schema import Schema


from understudy.schema.columns import (
    MOST_BINS,
    WHOLE_LIMITS,
    count_problems,
    label_problems,
    number_column_problems,
    number_problem,
    point_problem,
    text_problems,
)


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
        yield Problem(where, "applies to columns that are read; a derived column is computed.", "Leave it out.")
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
        rule = "rare labels may share one code, so groups of labels would be split."
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
                rule = f"labels {shown(met)} and {shown(label)} differ only in case."
                yield Problem(f"{here}.ignore_case", rule, "Keep one of them, or drop ignore_case.")
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
        yield Problem(f"{here}.edges", "must increase.", "Sort the edges and drop duplicates.")
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
        rule = "its rare labels may share one code, so no rule can tell them apart."
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
        yield Problem(here, "the range contains no value: from must not be above to, and it must meet the bounds.")
        return
    inside = bins_inside(column, said)
    if inside is None:
        yield _misfit(column, said, here)
    elif not any(inside):
        yield Problem(here, "the range contains no bin of the column.", "Widen the range or drop the condition.")


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
    return Problem(
        here, "the range cuts a bin in two.", f"The nearest ranges that fit: {', '.join(near)}. Or state other bins."
    )


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
            rule = f"{shown(column.thousands)} is the decimal mark of the whole file."
            yield Problem(
                f"columns.{column.name}.thousands",
                rule,
                "State another thousands separator, or a decimal for this column.",
            )


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
                    rule = f"makes a part called {shown(name)}, which is the name of another column."
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
        rule = f"rare labels of column {shown(within)} may share one code, so nothing can lie within them."
        yield Problem(f"{here}.within", rule, "Keep the rare labels of that column, or drop within.")
    else:
        labels = frozenset(parent.labels)
        for group in dict.fromkeys(column.groups.values()):
            if group not in labels:
                rule = f"{shown(group)} is not a label of column {shown(within)}."
                yield Problem(f"{here}.groups", rule, suggest(group, parent.labels))
