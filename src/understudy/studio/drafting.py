"""What a schema looks like as a form, and how a form changes it; the text of the schema stays what counts.

A column is a line of fields. Problems stand beside the field that they are about, in the words of `schema check`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
_BOUNDED = ("integer", "float", "date", "datetime", "time")
_FIELDS = ("kind", "lower", "upper", "format", "labels", "missing", "title", "description", "note")
_PROSE = ("title", "description", "note")
_CHANGED_ELSEWHERE = (
    "The schema was changed in another tab meanwhile. This is how it stands now; make your change again."
)


@dataclass(frozen=True, slots=True)
class ColumnForm:
    """One column as a line of fields."""

    number: int
    name: str
    kind: str
    said: Mapping[str, str]
    labels: str | None
    """One in each line; None where they are not text that lines could hold."""
    more: tuple[str, ...]
    """Keys that only the text can change, each with its value."""
    guess: str
    """Why it was guessed; empty if nothing is a guess."""
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
    left_out: tuple[str, ...]
    problems: tuple[str, ...]
    """What is wrong, as `schema check` lists it."""
    general: tuple[str, ...]
    """Those of them that stand beside no field."""

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
    guess = next((one.hint for one in places if one.guess), "")
    said = tuple(str(problem) for problem in editor.problems)
    general = tuple(one for one in said if one not in beside)
    return SchemaForm(columns, editor.unit, not places, guess, editor.left_out, said, general)


def _column_form(number: int, column: Any) -> ColumnForm:
    said = {key: value for key, value in column.said.items() if isinstance(value, str)}
    labels = column.said.get("labels", ())
    labels = labels if isinstance(labels, tuple) else ()
    listed = "\n".join(labels) if all(one.strip() and one.splitlines() == [one] for one in labels) else None
    shown = set(_FIELDS) - ({"labels"} if listed is None else set())
    more = tuple(
        f"{key}: {value if isinstance(value, str) else ', '.join(value)}"
        for key, value in column.said.items()
        if key not in shown
    )
    guess = next((one.hint for one in column.open if one.guess), "")
    return ColumnForm(
        number, column.name, said.get("kind", ""), said, listed, more, guess, _by_field(column.name, column.problems)
    )


def _by_field(name: str, problems: Sequence[Any]) -> dict[str, tuple[str, ...]]:
    """Problems by the field that they are about, the text of a problem without its place."""
    here = us.errors.place("columns", name)
    found: dict[str, tuple[str, ...]] = {}
    for problem in problems:
        rest = problem.where.rpartition(here)[2].lstrip(".")
        key = rest.split(".")[0].split("[")[0]
        key = key if key in _FIELDS else ""
        found[key] = (*found.get(key, ()), f"{problem.rule} {problem.fix}".strip())
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
    now: dict[str, str | Sequence[str]] = dict(column.said)
    now |= {key: " ".join(column.said.get(key, "").split()) for key in _PROSE}  # as a field of one line shows it
    now["labels"] = column.labels.split("\n") if column.labels else []
    return {key: value for key, value in stated(form).items() if value != now.get(key, "")}


def change(draft: DraftTable, action: str, form: Mapping[str, str]) -> list[str]:
    """Makes one change of a draft; returns the reasons if it cannot be made, and then nothing changes."""
    if form.get("version", "") != draft.version:
        return [_CHANGED_ELSEWHERE]
    if action == "undo":
        return [] if draft.undo() else ["There is nothing to undo."]
    if action == "text":
        return _replaced(draft, form.get("text", "").replace("\r\n", "\n"))
    editor = us.Schema.edit(draft.text, "schema.yaml")
    reasons = _changed(editor, action, form)
    if not reasons and editor.text != draft.text:
        draft.write(editor.text)
    return reasons


def _replaced(draft: DraftTable, text: str) -> list[str]:
    try:
        us.Schema.edit(text, "schema.yaml")
    except us.errors.SchemaError as error:
        return [str(problem) for problem in error.problems]
    if text != draft.text:
        draft.write(text)
    return []


def _changed(editor: Any, action: str, form: Mapping[str, str]) -> list[str]:
    name = form.get("column", "")
    match action:
        case "column":
            column = next((one for one in form_of(editor.text).columns if one.name == name), None)
            if column is None:
                return ["There is no such column any more."]
            said = unchanged(form, column)
            return list(editor.state(name, said)) if said else []
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
    return ["This cannot be done here."]


def _ruled(editor: Any, form: Mapping[str, str]) -> list[str]:
    parts = [(form.get(f"column_{end}", ""), form.get(f"value_{end}", "").strip()) for end in ("a", "b")]
    if not all(name and value for name, value in parts) or parts[0][0] == parts[1][0]:
        return ["Choose two different columns and a value of each."]
    note = " ".join(form.get("rule_note", "").split())
    before = {str(problem) for problem in editor.problems}
    reasons = list(editor.forbid({name: [value] for name, value in parts}, note))
    fresh = [str(problem) for problem in editor.problems if "rules[" in problem.where and str(problem) not in before]
    if not reasons and fresh:
        editor.undo()
    return reasons or fresh
