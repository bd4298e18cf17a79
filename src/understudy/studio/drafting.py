"""What a schema looks like as a form, and how a form changes it; the text of the schema stays what counts.

A column is a line of fields. Problems stand beside the field that they are about, in the words of `schema check`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import understudy as us
from understudy.studio.workspace import DraftTable

KINDS = {
    "category": "one of a list of labels",
    "open_category": "text from a list that is not known",
    "boolean": "yes or no",
    "integer": "a whole number",
    "float": "a number with decimals",
    "date": "a date",
    "datetime": "a date with time",
    "time": "a time of day",
}
_CLASSES = (
    us.schema.Category, us.schema.OpenCategory, us.schema.Boolean, us.schema.Integer, us.schema.Float,
    us.schema.Date, us.schema.Datetime, us.schema.Time,
)  # fmt: skip
_KEYS = {one.kind: {"kind", *(field.name for field in fields(one))} for one in _CLASSES}
"""What a column of each kind may say."""
_BOUNDED = ("integer", "float", "date", "datetime", "time")
_FIELDS = ("kind", "lower", "upper", "format", "labels", "missing", "title", "description", "note")
_PROSE = ("title", "description", "note")
_OPEN = "DECIDE"
_GUESSED = "is a guess"
_NO_REASON = "no reason is noted"
_UNIT = re.compile(r"(?:^|: )unit\b")
_MOST_SUMMED = 8
"""Labels that are listed at one glance."""
_MOST_VALUES = 2000
"""Values that a rule is offered; columns beyond that are named in the text."""
_CHANGED_ELSEWHERE = "The schema was changed in another tab. This is how it is now; please make your change again."


@dataclass(frozen=True, slots=True)
class ColumnForm:
    """One column as a line of fields."""

    number: int
    name: str
    kind: str
    said: Mapping[str, Any]
    labels: str | None
    """One in each line; None where they are not text that lines could hold."""
    more: tuple[str, ...]
    """Keys that only the text can change, each with its value."""
    guess: str
    """Why it was guessed; empty if nothing is a guess. That it is one is no problem to be said beside it."""
    problems: Mapping[str, tuple[str, ...]]
    """Field → what is wrong there; the empty name is for the whole column."""

    @property
    def shows_bounds(self) -> bool:
        """Whether this kind has a least and a greatest value."""
        return self.kind in _BOUNDED

    @property
    def shows_labels(self) -> bool:
        """Whether this kind has a list of labels."""
        return self.kind == "category" and self.labels is not None

    @property
    def shows_format(self) -> bool:
        """Whether this kind has a written form."""
        return self.kind in ("date", "datetime", "time")

    def text(self, key: str) -> str:
        """What a field of one line shows; empty for what is open and for what such a field cannot hold."""
        value = self.said.get(key, "")
        return value if isinstance(value, str) and value != _OPEN else ""

    @property
    def summary(self) -> str:
        """What is said of it, at one glance."""
        listed = ", ".join(self.values[:_MOST_SUMMED]) + (" …" if len(self.values) > _MOST_SUMMED else "")
        bounds = f"{self.text('lower')} to {self.text('upper')}" if self.text("lower") and self.text("upper") else ""
        found = [self.text("title"), bounds if self.shows_bounds else listed if self.kind == "category" else ""]
        found.append("never absent" if self.text("missing") == "false" else "")
        return "; ".join(one for one in found if one)

    @property
    def values(self) -> tuple[str, ...]:
        """The values of which a rule may name one; empty for kinds that have no list of them."""
        labels = self.said.get("labels", ())
        if self.kind == "boolean":
            return ("false", "true")
        return tuple(labels) if self.kind == "category" and not isinstance(labels, str) else ()

    @property
    def is_fine(self) -> bool:
        """Whether nothing is open or wrong."""
        return not self.problems and not self.guess


@dataclass(frozen=True, slots=True)
class SchemaForm:
    """A whole schema as a form."""

    columns: tuple[ColumnForm, ...]
    unit: Mapping[str, str]
    unit_decided: bool
    unit_guess: str
    unit_problems: tuple[str, ...]
    left_out: tuple[str, ...]
    problems: tuple[str, ...]
    """What is wrong, as `schema check` lists it."""
    general: tuple[str, ...]
    """Those of them that stand beside no field."""
    rules: tuple[Any, ...]
    """What never occurs together: columns with their values, and why."""

    @property
    def may_be_ids(self) -> tuple[str, ...]:
        """Names that are known here, one of which may tell people apart."""
        left = (one.partition(";")[0].strip() for one in self.left_out)
        named = (self.unit.get("column", ""), *(one.name for one in self.columns), *left)
        return tuple(dict.fromkeys(one for one in named if one))

    @property
    def choosable(self) -> tuple[ColumnForm, ...]:
        """The columns whose values a rule is offered."""
        room, found = _MOST_VALUES, []
        for column in self.columns:
            if 0 < len(column.values) <= room:
                room -= len(column.values)
                found.append(column)
        return tuple(found)

    @property
    def is_finished(self) -> bool:
        """Whether a run could be made with it."""
        return not self.problems


def form_of(text: str) -> SchemaForm:
    """The form of a schema's text.

    Raises:
        SchemaError: if the text is no YAML; then there is only the text to work on.
    """
    editor = us.Schema.edit(text, "schema.yaml")
    columns = tuple(_column_form(number, one) for number, one in enumerate(editor.columns))
    beside = {str(problem) for one in editor.columns for problem in one.problems}
    places = [one for one in editor.open if not one.column and one.key.split(".")[0] == "unit"]
    guess = next((one.hint or _NO_REASON for one in places if one.guess), "")
    said = tuple(str(problem) for problem in editor.problems)
    unit = {str(one): _without_place(one) for one in editor.problems if _UNIT.search(one.where)}
    general = tuple(one for one in said if one not in beside and one not in unit)
    beside_unit = tuple(one for one in unit.values() if not one.startswith(_GUESSED))
    return SchemaForm(
        columns, editor.unit, not places, guess, beside_unit, editor.left_out, said, general, tuple(editor.rules)
    )


def _without_place(problem: Any) -> str:
    """A problem that stands beside what it is about."""
    return f"{problem.rule} {problem.fix}".strip()


def _column_form(number: int, column: Any) -> ColumnForm:
    said = dict(column.said)
    labels = column.said.get("labels", ())
    labels = labels if isinstance(labels, tuple) else ()
    listed = "\n".join(labels) if all(one.strip() and one.splitlines() == [one] for one in labels) else None
    shown = set(_FIELDS) - ({"labels"} if listed is None else set())
    more = tuple(
        f"{key}: {value if isinstance(value, str) else ', '.join(value)}"
        for key, value in column.said.items()
        if key not in shown
    )
    guess = next((one.hint or _NO_REASON for one in column.open if one.guess), "")
    return ColumnForm(
        number,
        column.name,
        str(said.get("kind", "")),
        said,
        listed,
        more,
        guess,
        _by_field(column.name, column.problems),
    )


def _by_field(name: str, problems: Sequence[Any]) -> dict[str, tuple[str, ...]]:
    """Problems by the field that they are about, the text of a problem without its place."""
    here = us.errors.place("columns", name)
    found: dict[str, tuple[str, ...]] = {}
    for problem in problems:
        rest = problem.where.rpartition(here)[2].lstrip(".")
        key = rest.split(".")[0].split("[")[0]
        key = key if key in _FIELDS else ""
        if not problem.rule.startswith(_GUESSED):  # said by a mark, beside the button that confirms it
            found[key] = (*found.get(key, ()), _without_place(problem))
    return found


def stated(form: Mapping[str, str]) -> dict[str, str | Sequence[str]]:
    """What the fields of one column say, for `SchemaEditor.state`; a field that was not shown says nothing."""
    said: dict[str, str | Sequence[str]] = {}
    for key in _FIELDS:
        if key in form and key != "labels":
            said[key] = " ".join(form[key].split()) if key in _PROSE else form[key].strip()
    if "labels" in form:
        lines = form["labels"].replace("\r\n", "\n").split("\n")
        said["labels"] = [line for line in lines if line.strip()]
    return said


def unchanged(form: Mapping[str, str], column: ColumnForm) -> dict[str, str | Sequence[str]]:
    """What the form says otherwise than the schema does."""
    now: dict[str, str | Sequence[str]] = {
        key: "" if _is_open(key, value) else value for key, value in column.said.items()
    }
    now |= {key: " ".join(column.text(key).split()) for key in _PROSE}  # as a field of one line shows it
    now["labels"] = column.labels.split("\n") if column.labels else []
    return {key: value for key, value in stated(form).items() if value != now.get(key, "")}


def _is_open(key: str, value: object) -> bool:
    """Whether a field that was left empty still stands for what is open."""
    return key != "kind" and value == _OPEN


def change(draft: DraftTable, action: str, form: Mapping[str, str]) -> list[str]:
    """Makes one change of a draft; returns the reasons if it cannot be made, and then nothing changes."""
    late = made_late(draft, form)
    if late:
        return late
    if action == "undo":
        return [] if draft.undo() else ["There is nothing to undo."]
    if action == "text":
        return _replaced(draft, form.get("text", "").replace("\r\n", "\n"))
    editor = us.Schema.edit(draft.text, "schema.yaml")
    reasons = _changed(editor, action, form)
    if not reasons and editor.text != draft.text:
        draft.write(editor.text)
    return reasons


def made_late(draft: DraftTable, form: Mapping[str, str]) -> list[str]:
    """Why a form cannot be taken any more: the text is not the one that it was made for."""
    return [] if form.get("version", "") == draft.version else [_CHANGED_ELSEWHERE]


def shown_in(form: Mapping[str, str], column: ColumnForm | None) -> list[str]:
    """The fields of a form that a column of this kind has."""
    if column is None:
        return []
    hidden = set() if column.shows_bounds else {"lower", "upper"}
    hidden |= (set() if column.shows_labels else {"labels"}) | (set() if column.shows_format else {"format"})
    return [key for key in _FIELDS if key in form and key not in hidden]


def _replaced(draft: DraftTable, text: str) -> list[str]:
    try:
        us.Schema.edit(text, "schema.yaml")
    except us.errors.SchemaError as error:
        return [str(problem) for problem in error.problems]
    if text != draft.text:
        draft.write(text)
    return []


def _changed(editor: Any, action: str, form: Mapping[str, str]) -> list[str]:
    column = _column_named(editor.text, form)
    name = form.get("column", "") if column is None else column.name
    match action:
        case "column":
            if column is None:
                return ["There is no such column any more."]
            return restated(editor, column, unchanged(form, column))
        case "confirm":
            return list(editor.confirm(name))
        case "drop":
            return list(editor.drop(name))
        case "unit":
            several = form.get("several") == "yes"
            if several and not form.get("id", "").strip():
                return ["Name the column that tells people apart."]
            return list(
                editor.protect(form["id"].strip(), form.get("rows", "").strip()) if several else editor.protect()
            )
        case "rule":
            return _ruled(editor, form)
        case "allow":
            number = form.get("rule", "")
            return list(editor.allow(int(number))) if number.isdecimal() and len(number) < 10 else ["Choose a rule."]
    return ["This cannot be done here."]


def _ruled(editor: Any, form: Mapping[str, str]) -> list[str]:
    parts = [_value_of(editor, form.get(f"when_{end}", "")) for end in ("a", "b")]
    when = {name: [value] for name, value in filter(None, parts)}
    if len(when) != len(parts):
        return ["Choose values of two different columns."]
    note = " ".join(form.get("rule_note", "").split())
    before = {str(problem) for problem in editor.problems}
    reasons = list(editor.forbid(when, note))
    fresh = [str(problem) for problem in editor.problems if "rules[" in problem.where and str(problem) not in before]
    if not reasons and fresh:
        editor.undo()
    return reasons or fresh


def _value_of(editor: Any, chosen: str) -> tuple[str, str] | None:
    """Column and value of a choice such as "2.0": the first value of the third column."""
    column, _, value = chosen.partition(".")
    columns = form_of(editor.text).columns
    if not column.isdecimal() or not value.isdecimal() or len(chosen) > 20 or int(column) >= len(columns):
        return None
    values = columns[int(column)].values
    return (columns[int(column)].name, values[int(value)]) if int(value) < len(values) else None


def restated(editor: Any, column: ColumnForm, said: Mapping[str, str | Sequence[str]]) -> list[str]:
    """States what a form says of a column; what a kind that was chosen instead does not have goes with the old one."""
    if not said:
        return []
    kind = str(said.get("kind", ""))
    foreign = [key for key in column.said if key not in _KEYS[kind]] if kind in _KEYS else []
    return list(editor.state(column.name, dict(said) | dict.fromkeys(foreign, "")))


@dataclass(frozen=True, slots=True)
class TriedColumn:
    """How a column would stand with what is in its fields now; nothing of it is kept."""

    column: ColumnForm | None
    reasons: tuple[str, ...]
    """What cannot be written at all, and what is newly wrong with the column as a whole."""


def tried(text: str, form: Mapping[str, str]) -> TriedColumn:
    """What the column that the form is about would have against it.

    Raises:
        SchemaError: if the text is no YAML.
    """
    before = _column_named(text, form)
    if before is None:
        return TriedColumn(None, ())
    editor = us.Schema.edit(text, "schema.yaml")
    reasons = restated(editor, before, unchanged(form, before))
    after = _column_named(editor.text, form)
    fresh = [one for one in after.problems.get("", ()) if one not in before.problems.get("", ())] if after else []
    return TriedColumn(after, (*reasons, *fresh))


def _column_named(text: str, form: Mapping[str, str]) -> ColumnForm | None:
    name = _in_one_way(form.get("column", ""))
    return next((one for one in form_of(text).columns if _in_one_way(one.name) == name), None)


def _in_one_way(name: str) -> str:
    """A name whose lines end in one way: browsers send every end of a line as two characters."""
    return name.replace("\r\n", "\n").replace("\r", "\n")


def filled(draft: DraftTable, made: str) -> int:
    """Takes what another draft of the same table knows into columns that are open here; returns how many it changed.

    What was confirmed stays.
    """
    editor = us.Schema.edit(draft.text, "schema.yaml")
    known = {one.name: one for one in us.Schema.edit(made, "schema.yaml").columns}
    changes = 0
    for column in form_of(draft.text).columns:
        said = dict(_news(column, known[column.name])) if column.name in known else {}
        if said and not restated(editor, column, said):
            changes += 1
    if editor.text != draft.text:
        draft.write(editor.text)
    return changes


def _news(column: ColumnForm, known: Any) -> Iterator[tuple[str, str | Sequence[str]]]:
    """What is known of a column, without guesses, that is not said here, or only guessed."""
    undecided = {place.key.split(".")[0] for place in known.open}
    if "" in undecided:
        return
    for key in _FIELDS:
        here = column.said.get(key, "")
        is_open = bool(column.guess) or here == "DECIDE"
        value = known.said.get(key, "")
        if value and key not in undecided and value != here and (is_open or not here):
            yield key, value
