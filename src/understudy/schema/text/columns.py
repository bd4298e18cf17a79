"""Reads the declaration of one column: which keys each kind has and what they hold."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from understudy.schema.column import (
    Bins,
    Boolean,
    Category,
    Column,
    Cut,
    Date,
    Datetime,
    Derived,
    Float,
    Formula,
    GivenBins,
    Integer,
    LinearSum,
    Lookup,
    Named,
    OpenCategory,
    PrivateBins,
    Time,
    UniformBins,
)
from understudy.schema.place import below, place, shown, suggest
from understudy.schema.text.parse import Entries, Items, Leaf, Tree
from understudy.schema.text.reader import Reader

__all__ = ["FORMULAS", "KINDS", "read_column"]

KINDS: Mapping[str, type[Named]] = {
    kind.kind: kind for kind in (Category, OpenCategory, Boolean, Integer, Float, Date, Datetime, Time, Derived)
}
FORMULAS: Mapping[str, type[Formula]] = {"sum": LinearSum, "lookup": Lookup, "cut": Cut}

# Keys whose empty value means "none" rather than a mistake.
_MAY_BE_NOTHING = ("other", "within", "zone", "format", "otherwise", "decimals", "bins")
_VALUE_READERS: Mapping[str, Callable[[Reader, Tree, str], object]] = {
    "missing": Reader.boolean,
    "storage": Reader.blank_or_text,
    "note": Reader.blank_or_text,
    "labels": Reader.texts,
    "other": Reader.text,
    "groups": Reader.text_map,
    "within": Reader.text,
    "rare": Reader.text,
    "most_labels": Reader.whole,
    "step": Reader.whole,
    "decimals": Reader.whole,
    "zone": Reader.text,
    "resolution": Reader.whole,
    "format": Reader.text,
    "column": Reader.text,
    "entries": Reader.text_map,
    "otherwise": Reader.text,
    "weights": Reader.number_map,
    "constant": Reader.real,
}


def read_column(reader: Reader, name: str, tree: Tree) -> tuple[Column | None, str]:
    """The column, if it could be read, and its kind, if it names one."""
    here = place("columns", name)
    entries = reader.entries(tree, here)
    if entries is None:
        return None, ""
    kind = _kind(reader, entries, here)
    if kind is None:
        return None, ""
    made = KINDS[kind]
    known = [field.name for field in dataclasses.fields(made) if field.name not in ("name", "formula")]
    known += FORMULAS if made is Derived else []
    before = len(reader.problems)
    fields = reader.fields(entries, here, ["kind", *known], _required(made))
    values = {key: _value(reader, fields[key], below(here, key), kind) for key in fields if key in _readable(known)}
    if made is Derived:
        values["formula"] = _formula(reader, fields, entries, here)
    if len(reader.problems) > before:
        return None, kind
    built: Any = made
    column: Column = built(name=name, **values)
    return column, kind


def _kind(reader: Reader, entries: Entries, here: str) -> str | None:
    said = next((value for key, value in entries.pairs if key.text == "kind"), None)
    if said is None:
        reader.refuse(entries, f"{here}.kind", "is not stated.", suggest("", KINDS))
        return None
    kind = reader.text(said, f"{here}.kind")
    if kind is not None and kind not in KINDS:
        reader.refuse(said, f"{here}.kind", f"{shown(kind)} is not a kind of column.", suggest(kind, KINDS))
        return None
    return kind


def _required(made: type[Named] | type[Formula]) -> list[str]:
    nothing = dataclasses.MISSING
    return [
        field.name
        for field in dataclasses.fields(made)
        if field.default is nothing and field.default_factory is nothing and field.name not in ("name", "formula")
    ]


def _readable(known: list[str]) -> list[str]:
    return [key for key in known if key not in FORMULAS]


def _value(reader: Reader, tree: Tree, here: str, kind: str) -> object:
    key = here.rpartition(".")[2]
    if key in _MAY_BE_NOTHING and isinstance(tree, Leaf) and tree.null:
        return None
    match key:
        case "lower" | "upper":
            return reader.point(tree, here, kind)
        case "special" | "split":
            return reader.points(tree, here, kind)
        case "edges":
            return reader.points(tree, here, "float")
        case "bins":
            return _bins(reader, tree, here, kind)
        case _:
            return _VALUE_READERS[key](reader, tree, here)


def _bins(reader: Reader, tree: Tree, here: str, kind: str) -> Bins | None:
    if isinstance(tree, Items):
        edges = reader.points(tree, here, kind)
        return None if edges is None else GivenBins(edges)
    if isinstance(tree, Entries):
        fields = reader.fields(tree, here, ("private", "by"), required=("private",))
        count = reader.whole(fields["private"], f"{here}.private") if "private" in fields else None
        rule = reader.text(fields["by"], f"{here}.by") if "by" in fields else "mass"
        return None if count is None or rule is None else PrivateBins(count, rule)
    count = reader.whole(tree, here)
    return None if count is None else UniformBins(count)


def _formula(reader: Reader, fields: dict[str, Tree], entries: Entries, here: str) -> Formula | None:
    stated = [key for key in FORMULAS if key in fields]
    if len(stated) != 1:
        rule = "needs exactly one formula."
        reader.refuse(entries, here, rule, f"State one of {', '.join(FORMULAS)}.")
        return None
    key = stated[0]
    made = FORMULAS[key]
    inner = reader.entries(fields[key], f"{here}.{key}")
    if inner is None:
        return None
    before = len(reader.problems)
    known = [field.name for field in dataclasses.fields(made)]
    found = reader.fields(inner, f"{here}.{key}", known, _required(made))
    values = {name: _value(reader, found[name], f"{here}.{key}.{name}", "float") for name in found}
    built: Any = made
    formula: Formula | None = built(**values) if len(reader.problems) == before else None
    return formula
