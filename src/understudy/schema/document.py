"""Schema files: YAML ⇄ Schema, lossless, all problems at once, each with its file, line and key.

A file is refused rather than guessed at: unknown keys, anchors, tags, repeated keys, files above 16 MiB or a million
entries, and places that still say DECIDE are problems. `write` gives text from which `read` makes an equal schema.
"""

from pathlib import Path

from understudy.errors import Problem, SchemaError
from understudy.schema.check import unit_problems
from understudy.schema.checks.column import column_problems
from understudy.schema.column import Column
from understudy.schema.place import below, place, shown, suggest
from understudy.schema.rule import Impossible, Range
from understudy.schema.table import Schema
from understudy.schema.text.columns import read_column
from understudy.schema.text.emit import schema_to_text
from understudy.schema.text.parse import MOST_BYTES, TOO_LARGE, Entries, Items, Tree, parse_yaml
from understudy.schema.text.reader import POINTS, Reader
from understudy.schema.unit import Unit

__all__ = ["read_schema", "schema_from_text", "schema_to_text", "write_schema"]

FORMAT = 1
_KEYS = ("understudy", "title", "note", "unit", "unreadable", "columns", "rules")


def read_schema(path: Path) -> Schema:
    """The schema in that file; raises SchemaError with all problems at once."""
    where = str(path)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise SchemaError([Problem(where, f"cannot be read: {reason}.", "Check the path.")]) from error
    if len(content) > MOST_BYTES:
        raise SchemaError([Problem(where, f"is {TOO_LARGE}.", "A schema lists public facts, not data.")])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SchemaError([Problem(f"{where}:{line}", "is not UTF-8.", "Save the file as UTF-8.")]) from error
    return schema_from_text(text, where)


def write_schema(schema: Schema, path: Path) -> None:
    """Writes a file from which `read_schema` makes an equal schema."""
    path.write_text(schema_to_text(schema), encoding="utf-8", newline="\n")


def schema_from_text(text: str, where: str) -> Schema:
    """The schema in the text; `where` names its origin in messages."""
    tree = parse_yaml(text, where)
    reader = Reader(where)
    top = reader.entries(tree, "the file")
    if top is None:
        raise SchemaError(reader.problems)
    fields = reader.fields(top, "", _KEYS, required=("understudy", "unit", "columns"))
    _check_format(reader, fields)
    title = reader.blank_or_text(fields["title"], "title") if "title" in fields else ""
    note = reader.blank_or_text(fields["note"], "note") if "note" in fields else ""
    unit = _unit(reader, fields["unit"]) if "unit" in fields else None
    unreadable = reader.text(fields["unreadable"], "unreadable") if "unreadable" in fields else "keep"
    columns, kinds = _columns(reader, fields.get("columns"))
    rules = _rules(reader, fields["rules"], kinds) if "rules" in fields else []
    if reader.problems or unit is None:
        names = frozenset(column.name for column in columns)
        more = [found for column in columns for found in column_problems(column)]
        more += [] if unit is None else unit_problems(unit, names)
        raise SchemaError([*reader.problems, *map(reader.located, more)])
    try:
        said = {"title": title or "", "note": note or "", "unreadable": unreadable or ""}
        return Schema(tuple(columns), unit, tuple(rules), **said)
    except SchemaError as error:
        raise SchemaError([reader.located(problem) for problem in error.problems]) from error


def _check_format(reader: Reader, fields: dict[str, Tree]) -> None:
    if "understudy" in fields:
        version = reader.whole(fields["understudy"], "understudy")
        if version is not None and version != FORMAT:
            fix = "Write `understudy: 1`, or use the version of understudy that wrote the file."
            reader.refuse(fields["understudy"], "understudy", f"{version} is a format this version cannot read.", fix)


def _unit(reader: Reader, tree: Tree) -> Unit | None:
    form = "Write `unit: row`, or `unit: {column: person_id, rows: 3}`."
    if not isinstance(tree, Entries):
        said = reader.leaf(tree, "unit", form)
        if said is None or said.text == "row":
            return None if said is None else Unit()
        reader.refuse(tree, "unit", f"{shown(said.text)} is not a unit.", form)
        return None
    before = len(reader.problems)
    fields = reader.fields(tree, "unit", ("column", "rows", "note"), required=("column",))
    column = reader.nothing_or_text(fields["column"], "unit.column") if "column" in fields else None
    rows = reader.whole(fields["rows"], "unit.rows") if "rows" in fields else 1
    if column is not None and "rows" not in fields:
        reader.refuse(tree, "unit.rows", "is not stated.", "State how many rows one unit may have at most.")
    note = reader.blank_or_text(fields["note"], "unit.note") if "note" in fields else ""
    if len(reader.problems) > before or rows is None or note is None:
        return None
    return Unit(column, rows, note)


def _columns(reader: Reader, tree: Tree | None) -> tuple[list[Column], dict[str, str]]:
    """The columns that could be read, and the kind of all that name one."""
    declared = None if tree is None else reader.entries(tree, "columns")
    columns: list[Column] = []
    kinds: dict[str, str] = {}
    for key, value in declared.pairs if declared else ():
        name = reader.text(key, place("columns", key.text))
        if name is not None:
            reader.lines[place("columns", name)] = key.line
            column, kind = read_column(reader, name, value)
            kinds[name] = kind
            columns += [] if column is None else [column]
    return columns, kinds


def _rules(reader: Reader, tree: Tree, kinds: dict[str, str]) -> list[Impossible]:
    rules: list[Impossible] = []
    listed = reader.items(tree, "rules")
    for index, value in enumerate(listed.values if listed else ()):
        here = place("rules", index)
        reader.lines[here] = value.line
        entries = reader.entries(value, here)
        if entries is None:
            continue
        fields = reader.fields(entries, here, ("impossible", "note"), required=("impossible",))
        note = reader.blank_or_text(fields["note"], f"{here}.note") if "note" in fields else ""
        stated = reader.entries(fields["impossible"], f"{here}.impossible") if "impossible" in fields else None
        when: dict[str, tuple[str | None, ...] | Range] = {}
        for key, said in stated.pairs if stated else ():
            condition = _condition(reader, key.text, said, below(here, key.text), kinds)
            if condition is not None:
                when[key.text] = condition
        if stated is not None and len(when) == len(stated.pairs):
            rules.append(Impossible(when, note or ""))
    return rules


def _condition(
    reader: Reader, name: str, said: Tree, here: str, kinds: dict[str, str]
) -> tuple[str | None, ...] | Range | None:
    reader.lines[here] = said.line
    if name not in kinds:
        rule = f"column {shown(name)} is not in the schema."
        reader.refuse(said, here, rule, suggest(name, kinds))
        return None
    kind = kinds[name]
    if isinstance(said, Entries):
        if kind not in POINTS:
            reader.refuse(said, here, "a range needs a number, date or time column.", "List labels instead.")
            return None
        fields = reader.fields(said, here, ("from", "to"))
        before = len(reader.problems)
        ends = {key: reader.point(fields[key], f"{here}.{key}", kind) for key in fields}
        return Range(ends.get("from"), ends.get("to")) if len(reader.problems) == before else None
    if not isinstance(said, Items):
        reader.refuse(said, here, "must be a list of labels or a range.", "For example [yes] or {from: 0, to: 17}.")
        return None
    labels = [reader.rule_label(value, here, kind) for value in said.values]
    return None if () in labels else tuple(label for found in labels for label in found)
