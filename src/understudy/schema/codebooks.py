"""Public codebooks, read into facts about columns: what a form, a database or an earlier file says about a table.

A codebook never holds rows of the private table: it is a Stata, SPSS or SAS file of which only the metadata is read, a
Frictionless table schema or data package, CSVW metadata, a JSON Schema, SQL with CREATE TABLE (see `ddl`), or a data
dictionary in CSV. Which of them a file is, is told by its suffix and its content. What a file does not say stays
unsaid; a file that cannot be understood, or that says something impossible, is refused with the place.

Facts are keys of a schema file with their values. They are not checked against each other here: `draft` does that.
"""

import datetime as dt
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from understudy.errors import Problem, SchemaError, UsageError, place, shown
from understudy.schema.columns import Point
from understudy.schema.schema import spellings

MOST_BYTES = 1 << 24
"""The largest codebook that is read, in bytes. Files of statistics packages are not bounded: their rows stay unread."""
AN_IDENTIFIER = "an identifier"
"""How the reason begins for which a column that tells units apart is left out."""
_MOST_COLUMNS = 100_000
_MOST_LABELS = 1_000_000
_MOST_LINKS = 8
_STATISTICS = (".dta", ".sav", ".zsav", ".por", ".sas7bdat", ".xpt")
_SUFFIXES = (*_STATISTICS, ".json", ".sql", ".ddl", ".csv", ".tsv")
_WHOLE = re.compile(r"[-+]?\d{1,40}", re.ASCII)
_REAL = re.compile(r"[-+]?(\d{1,300}\.?\d*|\.\d+)([eE][-+]?\d{1,3})?", re.ASCII)
_MEANS_MISSING = re.compile(
    r"missing|refused?|don.?t know|do not know|not applicable|n/?a|no answer|not stated|not asked|unknown|unbekannt"
    r"|keine angabe|weiss nicht|weiß nicht|trifft nicht zu|inapplicable|no response|ne sait pas|no sabe|sin dato",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What one public source says about one column.

    `said` maps keys of a column (`kind`, `lower`, `labels`, `title` …) to their values. `storage` is the Arrow type
    that a declared type comes to, for guesses where nothing else is said. `left_out` says why the column is not one
    to release. `doubt` says why a person should confirm it all. `shown` are the values of a public table, if there are
    few; None for a codebook. `heading` is that of the column of a data dictionary under which the name stands.
    """

    name: str
    said: Mapping[str, object] = field(default_factory=dict)
    origin: str = ""
    storage: str = ""
    left_out: str = ""
    doubt: str = ""
    shown: tuple[str, ...] | None = None
    heading: str = ""


class Misread(ValueError):
    """What keeps a codebook from being read: the place in the file, the rule, the next step."""

    def __init__(self, where: str, rule: str, fix: str = "") -> None:
        self.where, self.rule, self.fix = where, rule, fix
        super().__init__(rule)


def read_codebook(path: str | Path, names: Collection[str] = ()) -> list[ColumnFacts]:
    """What the codebook says, column by column.

    Args:
        path: the file.
        names: those of the table; where a data dictionary names its columns under several headings, they choose one.

    Raises:
        SchemaError: the file cannot be read or understood; the problem names the place.
        UsageError: a library that reads such files is not installed.
    """
    file = Path(path)
    origin = f"the codebook {file.name}"
    try:
        found = list(_bounded(_reader(file, names)(file), origin))
        if not found:
            raise Misread("", "describes no column.")
        return found
    except Misread as error:
        where = f"{file}{error.where}" if error.where.startswith(":") else f"{file}: {error.where}".removesuffix(": ")
        raise SchemaError([Problem(where, error.rule, error.fix)]) from error
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise SchemaError([Problem(str(file), f"cannot be read: {reason}.", "Check the path.")]) from error


def _bounded(facts: Iterable[ColumnFacts], origin: str) -> Iterator[ColumnFacts]:
    """The facts with their origin, as long as they are not too many: a short file may name a long list many times."""
    labels = 0
    for number, fact in enumerate(facts):
        found = fact.said.get("labels", ())
        labels += len(found) if isinstance(found, tuple) else 0
        if number >= _MOST_COLUMNS or labels > _MOST_LABELS:
            raise Misread("", f"describes more than {_MOST_COLUMNS:,} columns or {_MOST_LABELS:,} labels.")
        yield _named(fact, origin)


def _named(facts: ColumnFacts, origin: str) -> ColumnFacts:
    said = dict(facts.said)
    for key in ("title", "description"):
        given = said.pop(key, "")
        said |= {key: tidy(given)} if isinstance(given, str) else {}
    absent, labels = said.get("missing_values"), said.get("labels", ())
    if isinstance(absent, tuple) and isinstance(labels, tuple):
        said["missing_values"] = tuple(text for text in absent if text not in labels)  # a label is no missing value
    kept = {key: value for key, value in said.items() if value not in (None, "", (), {})}
    single = isinstance(labels, tuple) and len(labels) == 1 and kept.get("kind") == "category"
    doubt = "a list of one label; is this all that can occur?" if single else facts.doubt
    return replace(facts, said=kept, origin=origin, doubt=doubt)


def _reader(file: Path, names: Collection[str]) -> Callable[[Path], Iterator[ColumnFacts]]:
    suffix = file.suffix.lower()
    if suffix in _STATISTICS:
        return _statistics
    text = _text(file)
    if suffix == ".json" or (suffix not in _SUFFIXES and text.lstrip()[:1] in "{["):
        return lambda _: _json(text)
    if suffix in (".sql", ".ddl") or (suffix not in _SUFFIXES and re.search(r"\bcreate\s+table\b", text, re.I)):
        from understudy.schema.ddl import tables_of

        return lambda _: tables_of(text)
    if suffix in (".csv", ".tsv"):
        return lambda _: _dictionary(text, names)
    raise Misread("", "is not a known kind of codebook.", f"Known: {', '.join(_SUFFIXES)}.")


def _text(file: Path) -> str:
    with file.open("rb") as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise Misread("", f"is larger than {MOST_BYTES >> 20} MiB.", "A codebook lists public facts, not data.")
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Misread(f":{line}", "is not UTF-8.", "Save the file as UTF-8.") from error
    if "\0" in text:
        raise Misread("", "holds zero bytes, so it is not text.", "Save it as text in UTF-8.")
    return text


# What several kinds of codebook share


def tidy(value: object) -> str:
    """A text on one line, without characters that cannot be seen.

    >>> tidy(" Age at\\n  admission ")
    'Age at admission'
    """
    words = " ".join(str(value).split())
    return "".join(character for character in words if character.isprintable())[:1000]


def label_text(value: object) -> str:
    """A code or label as text; whole numbers without a fraction.

    >>> label_text(1.0), label_text(True), label_text("01")
    ('1', 'true', '01')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def point_of(value: object, kind: str, where: str) -> Point | None:
    """A bound of a column of that kind; None if the codebook leaves it open.

    Raises:
        Misread: if it is no such value.
    """
    if value is None or value == "" or isinstance(value, bool):
        return None
    text = label_text(value).strip()
    try:
        match kind:
            case "integer" if _WHOLE.fullmatch(text):
                return int(text)
            case "float" | "integer" if _REAL.fullmatch(text):
                number = float(text)
                if not math.isfinite(number):
                    raise ValueError(text)
                return number if kind == "float" else math.floor(number)
            case "date":
                return dt.date.fromisoformat(text[:10])
            case "datetime":
                return dt.datetime.fromisoformat(text).replace(microsecond=0)
            case "time":
                return dt.time.fromisoformat(text).replace(microsecond=0)
    except ValueError as error:
        raise Misread(
            where, f"{shown(text)} is not a value that a column of kind {kind} can hold.", "Correct it."
        ) from error
    raise Misread(where, f"{shown(text)} is not a value that a column of kind {kind} can hold.", "Correct it.")


def bounds(low: object, high: object, kind: str, where: str) -> dict[str, object]:
    """The bounds that are stated; instants with an offset come with a zone."""
    ends = {"lower": point_of(low, kind, f"{where}.minimum"), "upper": point_of(high, kind, f"{where}.maximum")}
    said: dict[str, object] = {key: value for key, value in ends.items() if value is not None}
    zoned = any(isinstance(end, dt.datetime) and end.tzinfo for end in ends.values())
    return said | ({"zone": "UTC"} if zoned else {})


def listed(pairs: Sequence[tuple[str, str]], *, ordered: bool = False) -> dict[str, object]:
    """Labels, and their meanings where these differ; a label that means nothing more than itself has none.

    Empty text is no label: it is how files write that there is no value.
    """
    pairs = [(label, meaning) for label, meaning in pairs if label.strip()]
    unique = dict(reversed(pairs))
    labels = tuple(dict.fromkeys(label for label, _ in pairs))
    meanings = {label: tidy(unique[label]) for label in labels if tidy(unique[label]) not in ("", label)}
    said: dict[str, object] = {"kind": "category", "labels": labels, "meanings": meanings}
    return said | ({"ordered": True} if ordered else {})


def coded(
    pairs: Sequence[tuple[str, str]], stated: Mapping[str, object], *, ordered: bool = False
) -> dict[str, object]:
    """A number column some codes of which have meanings; or a category, where no bound is stated.

    Codes that mean a missing value become `missing_values`, other codes outside the bounds `special` values.
    """
    absent = tuple(label for label, meaning in pairs if meaning and _MEANS_MISSING.fullmatch(meaning.strip()))
    if len(absent) == len(pairs) and pairs:
        return {**stated, "missing_values": absent}
    if not {"lower", "upper"} <= set(stated):
        return listed(pairs, ordered=ordered)
    lower, upper = stated["lower"], stated["upper"]
    read = float if stated["kind"] == "float" else int
    numbers = [read(label) for label, _ in pairs if label not in absent and _WHOLE.fullmatch(label)]
    special = tuple(number for number in numbers if not lower <= number <= upper)  # type: ignore[operator]
    return {**stated, "special": special, "missing_values": absent or None}


# JSON: Frictionless, CSVW, JSON Schema


def _json(text: str) -> Iterator[ColumnFacts]:
    try:
        tree = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except RecursionError as error:
        raise Misread("", "is nested too deeply.", "A codebook needs only a few levels.") from error
    except json.JSONDecodeError as error:
        raise Misread(f":{error.lineno}", f"is not valid JSON: {error.msg}.") from error
    except ValueError as error:
        raise Misread("", f"is not valid JSON: {tidy(error)}.") from error
    if not isinstance(tree, dict):
        raise Misread("", "must be a JSON object.", _JSON_KINDS)
    if "tableSchema" in tree or "tables" in tree or "csvw" in str(tree.get("@context", "")):
        return _csvw(tree)
    if "fields" in tree or "resources" in tree:
        return _frictionless(tree)
    if "properties" in tree or "items" in tree or "$schema" in tree:
        return _json_schema(tree)
    raise Misread("", "is not a codebook of a known kind.", _JSON_KINDS)


_JSON_KINDS = (
    "It needs `fields` or `resources` (Frictionless), `tableSchema` (CSVW) or `properties` (JSON Schema) at the top."
)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key appears twice in one object")
    return found


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Misread(where, "must be an object of keys and values.")
    return value


def _array(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise Misread(where, "must be a list.")
    if len(value) > _MOST_COLUMNS:
        raise Misread(where, f"has more than {_MOST_COLUMNS:,} entries.")
    return value


def _name(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise Misread(where, "must be the name of a column.")
    return value


def _scalars(value: object, where: str) -> list[str]:
    entries = _array(value, where)
    if any(isinstance(entry, dict | list) for entry in entries):
        raise Misread(where, "must hold plain values.")
    return [label_text(entry) for entry in entries if entry is not None]


_JSON_TYPES = {
    "integer": ("integer", "int64"),
    "year": ("integer", "int64"),
    "number": ("float", "double"),
    "boolean": ("boolean", "bool"),
    "date": ("date", "date32[day]"),
    "datetime": ("datetime", "timestamp[us]"),
    "date-time": ("datetime", "timestamp[us]"),
    "time": ("time", "time64[us]"),
    "string": ("", "string"),
    "any": ("", ""),
}


def _typed(said: str, low: object, high: object, where: str) -> tuple[dict[str, object], str]:
    """Keys for a declared type and its bounds, and the storage type; without bounds a number's kind stays open."""
    kind, storage = _JSON_TYPES.get(said, ("", ""))
    if not kind:
        return {}, storage
    ends = bounds(low, high, kind, where) if kind != "boolean" else {}
    known = ends or kind in ("boolean", "time")
    return ({"kind": kind, **ends} if known else {}), storage


def _frictionless(tree: dict[str, Any]) -> Iterator[ColumnFacts]:
    if "resources" not in tree:
        yield from _fields(tree, "")
        return
    for number, resource in enumerate(_array(tree["resources"], "resources")):
        where = place("resources", number)
        schema = _object(resource, where).get("schema")
        if isinstance(schema, str):
            raise Misread(f"{where}.schema", "names another file.", "Give that file as codebook=.")
        if schema is not None:
            yield from _fields(_object(schema, f"{where}.schema"), f"{where}.schema.")


def _fields(schema: dict[str, Any], above: str) -> Iterator[ColumnFacts]:
    keys = schema.get("primaryKey", [])
    identifying = [keys] if isinstance(keys, str) else _scalars(keys, f"{above}primaryKey")
    absent = _scalars(schema.get("missingValues", []), f"{above}missingValues")
    for number, entry in enumerate(_array(schema.get("fields"), f"{above}fields")):
        where = above + place("fields", number)
        declared = _object(entry, where)
        name = _name(declared.get("name"), f"{where}.name")
        said, storage = _field(declared, where)
        own = _scalars(declared["missingValues"], f"{where}.missingValues") if "missingValues" in declared else absent
        if [text for text in own if text]:
            said.setdefault("missing_values", tuple(dict.fromkeys(own)))
        said |= {key: declared.get(key) for key in ("title", "description")}
        why = "a primary key, as the codebook says" if identifying == [name] else ""
        yield ColumnFacts(name, said, storage=storage, left_out=why)


def _field(declared: dict[str, Any], where: str) -> tuple[dict[str, object], str]:
    rules = _object(declared.get("constraints", {}), f"{where}.constraints")
    said, storage = _typed(str(declared.get("type", "any")), rules.get("minimum"), rules.get("maximum"), where)
    if "enum" in rules or "categories" in declared:
        entries = _array(rules.get("enum", declared.get("categories")), f"{where}.enum")
        pairs = [
            (label_text(_value_of(one)), str(one.get("label", "")) if isinstance(one, dict) else "") for one in entries
        ]
        said = listed(pairs, ordered=declared.get("categoriesOrdered") is True)
    form = declared.get("format")
    if said.get("kind") in ("date", "datetime", "time") and isinstance(form, str) and "%" in form:
        said["format"] = form
    if said.get("kind") in ("integer", "float"):
        marks = {"decimal": declared.get("decimalChar"), "thousands": declared.get("groupChar")}
        said |= {key: mark for key, mark in marks.items() if isinstance(mark, str) and mark != "."}
    if isinstance(rules.get("required"), bool):
        said["missing"] = not rules["required"]
    return said, storage


def _value_of(entry: object) -> object:
    return entry.get("value") if isinstance(entry, dict) else entry


_CSVW_TYPES = {
    **dict.fromkeys(("integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger"), "integer"),
    **dict.fromkeys(("unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte", "gYear"), "integer"),
    **dict.fromkeys(("number", "decimal", "double", "float"), "number"),
    **dict.fromkeys(("datetime", "dateTime", "dateTimeStamp"), "datetime"),
    **{name: name for name in ("date", "time", "boolean", "string")},
}


def _csvw(tree: dict[str, Any]) -> Iterator[ColumnFacts]:
    tables = _array(tree["tables"], "tables") if "tables" in tree else [tree]
    for number, entry in enumerate(tables):
        above = f"{place('tables', number)}." if "tables" in tree else ""
        schema = _object(_object(entry, above or "the file").get("tableSchema", {}), f"{above}tableSchema")
        keys = schema.get("primaryKey", [])
        identifying = [keys] if isinstance(keys, str) else _scalars(keys, f"{above}primaryKey")
        for position, column in enumerate(_array(schema.get("columns", []), f"{above}tableSchema.columns")):
            yield from _csvw_column(column, f"{above}tableSchema.{place('columns', position)}", identifying)


def _csvw_column(column: object, where: str, identifying: list[str]) -> Iterator[ColumnFacts]:
    declared = _object(column, where)
    if declared.get("virtual") is True:
        return
    given = declared.get("datatype", "string")
    kind = _object({"base": given} if isinstance(given, str) else given, f"{where}.datatype")
    low = kind.get("minimum", kind.get("minInclusive"))
    high = kind.get("maximum", kind.get("maxInclusive"))
    base = str(kind.get("base", "string"))
    low = 0 if low is None and base in ("nonNegativeInteger", "unsignedByte", "unsignedShort", "unsignedInt") else low
    said, storage = _typed(_CSVW_TYPES.get(base, "any"), low, high, where)
    form = kind.get("format")
    pattern = form.get("pattern") if isinstance(form, dict) else form
    if said.get("kind") in ("date", "datetime", "time") and isinstance(pattern, str):
        said["format"] = _strptime(pattern)
    if said.get("kind") == "category" or (base == "string" and isinstance(pattern, str)):
        labels = pattern.split("|") if isinstance(pattern, str) else []
        if labels and all(re.fullmatch(r"[\w -]+", label) for label in labels):
            said |= listed([(label, "") for label in labels])
    if isinstance(declared.get("required"), bool):
        said["missing"] = not declared["required"]
    absent = declared.get("null", [])
    said["missing_values"] = tuple(
        filter(None, [absent] if isinstance(absent, str) else _scalars(absent, f"{where}.null"))
    )
    titles = _language_text(declared.get("titles"))
    said |= {"title": titles, "description": declared.get("dc:description") or declared.get("dcterms:description")}
    names = list(dict.fromkeys(filter(None, (titles, declared.get("name")))))
    if not names:
        raise Misread(f"{where}.name", "must be the name of a column.")
    for name in names:
        why = "a primary key, as the codebook says" if identifying == [declared.get("name")] else ""
        yield ColumnFacts(_name(name, f"{where}.name"), dict(said), storage=storage, left_out=why)


def _language_text(titles: object) -> str:
    if isinstance(titles, dict):
        titles = next(iter(titles.values()), "")
    if isinstance(titles, list):
        titles = titles[0] if titles else ""
    return titles if isinstance(titles, str) else ""


_DATE_PARTS = {"yyyy": "Y", "MM": "m", "M": "m", "dd": "d", "d": "d", "HH": "H", "mm": "M", "ss": "S"}


def _strptime(pattern: str) -> str | None:
    """A date pattern of CSVW as a strptime format; None for ISO dates and for what cannot be told.

    >>> _strptime("dd.MM.yyyy"), _strptime("M/d/yyyy"), _strptime("yyyy-MM-dd")
    ('%d.%m.%Y', '%m/%d/%Y', None)
    """
    parts = re.findall(r"yyyy|MM|dd|HH|mm|ss|M|d|[^A-Za-z]", pattern)
    form = "".join(f"%{_DATE_PARTS[part]}" if part in _DATE_PARTS else part for part in parts)
    return None if "".join(parts) != pattern or form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S") else form


def _json_schema(tree: dict[str, Any]) -> Iterator[ColumnFacts]:
    top = _linked(tree, tree, "the file")
    if "properties" not in top and isinstance(top.get("items"), dict):
        top = _linked(top["items"], tree, "items")
    required = _scalars(top.get("required", []), "required")
    for name, entry in _object(top.get("properties"), "properties").items():
        where = place("properties", name)
        declared = _linked(entry, tree, where)
        said, storage = _property(declared, where)
        said.setdefault("missing", None if name not in required else False)
        if name in required and said["missing"] is None:
            said["missing"] = False
        said |= {key: declared.get(key) for key in ("title", "description")}
        if name:
            yield ColumnFacts(name, said, storage=storage)


def _linked(entry: object, tree: dict[str, Any], where: str) -> dict[str, Any]:
    """The object, or the one in the same file that its `$ref` names, with the keys beside the link on top."""
    found = _object(entry, where)
    for _ in range(_MOST_LINKS):
        link = found.get("$ref")
        if link is None:
            return found
        target: object = tree
        if not isinstance(link, str) or not link.startswith("#/"):
            raise Misread(f"{where}.$ref", "must name a part of the same file, such as #/$defs/age.")
        for part in link[2:].split("/"):
            target = target.get(part) if isinstance(target, dict) else None
        found = {**_object(target, f"{where}.$ref"), **{key: value for key, value in found.items() if key != "$ref"}}
    raise Misread(f"{where}.$ref", f"leads through more than {_MOST_LINKS} references.")


def _property(declared: dict[str, Any], where: str) -> tuple[dict[str, object], str]:
    types = declared.get("type", [])
    types = [types] if isinstance(types, str) else _scalars(types, f"{where}.type")
    plain = [kind for kind in types if kind != "null"]
    nullable = "null" in types
    choices = declared.get("oneOf", declared.get("anyOf"))
    if isinstance(choices, list) and choices and all(isinstance(one, dict) and "const" in one for one in choices):
        pairs = [(label_text(one["const"]), str(one.get("title", ""))) for one in choices if one["const"] is not None]
        return {**listed(pairs), "missing": nullable or None}, ""
    if "enum" in declared:
        entries = _array(declared["enum"], f"{where}.enum")
        labels = [(label, "") for label in _scalars(entries, f"{where}.enum")]
        flags = plain == ["boolean"] or (entries and all(isinstance(one, bool) for one in entries))
        said: dict[str, object] = {"kind": "boolean"} if flags else listed(labels)
        return said | {"missing": (nullable or None in entries) or None}, ""
    kind = plain[0] if len(plain) == 1 else "any"
    form = str(declared.get("format", ""))
    kind = form if kind == "string" and form in ("date", "date-time", "time") else kind
    low, high = _open_ends(declared, kind)
    typed, storage = _typed(kind if kind in _JSON_TYPES else "any", low, high, where)
    if typed.get("kind") == "integer" and isinstance(declared.get("multipleOf"), int) and declared["multipleOf"] > 1:
        typed["step"] = declared["multipleOf"]
    return {**typed, "missing": nullable or None}, storage


def _open_ends(declared: dict[str, Any], kind: str) -> tuple[object, object]:
    """The bounds; excluded ones of whole numbers are moved inwards by one."""
    step = 1 if kind == "integer" else 0
    low, high = declared.get("minimum"), declared.get("maximum")
    below, above = declared.get("exclusiveMinimum"), declared.get("exclusiveMaximum")
    if low is None and isinstance(below, int | float) and not isinstance(below, bool):
        low = below + step
    if high is None and isinstance(above, int | float) and not isinstance(above, bool):
        high = above - step
    return low, high


# Data dictionaries in CSV

_HEADINGS = {
    "name": "name|variable|variable name|variable / field name|field|field name|column|column name|attribute|item|var"
    "|spalte|feld|merkmal|nom|champ|campo|nombre",
    "type": "type|kind|data type|datatype|field type|variable type|storage|format type|class|typ|tipo",
    "check": "text validation type or show slider number|validation",
    "low": "min|minimum|lower|lower bound|from|low|text validation min|min value|minimum value|von",
    "high": "max|maximum|upper|upper bound|to|high|text validation max|max value|maximum value|bis",
    "values": "values|value|levels|codes|labels|categories|allowed values|value labels|options|enum|permitted values"
    "|choices|choices, calculations, or slider labels|domain|coding|werte|modalites|valores",
    "title": "label|title|variable label|field label|short description|caption|bezeichnung|libelle|etiqueta",
    "description": "description|definition|meaning|notes|comment|details|explanation|beschreibung|descripcion",
    "absent": "missing|nullable|may be missing|can be missing|optional|null allowed|null",
    "needed": "required|mandatory|required field?|not null|pflicht|obligatoire",
    "missing_values": "missing values|missing codes|na values|missing value codes|na",
    "measured_in": "unit|units|unit of measure|measured in|einheit|unite|unidad",
    "format": "format|date format",
    "decimals": "decimals|decimal places|digits",
    "ordered": "ordered|ordinal",
}
_FIELD_OF = {heading: key for key, headings in _HEADINGS.items() for heading in headings.split("|")}
_TYPE_WORDS = (
    ("identifier", r"id|identifier|key|uuid|guid|primary key|pk"),
    ("text", r"notes|free ?text|file|signature|descriptive|memo|clob|blob"),
    ("boolean", r"bool(ean)?|logical|yes ?no|true ?false|binary|flag|dichotomous|indicator|bit"),
    (
        "category",
        r"categor(y|ical)|cat|enum(erated)?|factor|nominal|coded?( list)?|radio|dropdown|select( one)?|list|levels",
    ),
    ("ordinal", r"ordinal|ordered|likert|ordered factor"),
    ("integer", r"u?int(eger)?( ?\d+)?|whole( number)?|count|discrete|long|short|smallint|bigint|tinyint|year|slider"),
    (
        "float",
        r"float( ?\d+)?|double|real|num(eric|ber)?(_\w+)?|decimal|continuous|calc|scale|quantitative|currency|money",
    ),
    ("datetime", r"date ?time(_\w+)?|timestamp"),
    ("date", r"date(_\w+)?"),
    ("time", r"time(_\w+)?"),
    ("string", r"string|str|text|char(acter)?|varchar|object|utf8|alphanumeric"),
)
_STORAGE_OF = {
    "integer": "int64",
    "float": "double",
    "boolean": "bool",
    "date": "date32[day]",
    "datetime": "timestamp[us]",
    "time": "time64[us]",
    "string": "string",
}
_TRUE, _FALSE = (
    ("yes", "y", "true", "t", "1", "x", "ja", "oui", "si"),
    ("no", "n", "false", "f", "0", "", "nein", "non"),
)


def _dictionary(text: str, names: Collection[str]) -> Iterator[ColumnFacts]:
    lines = list(_cells(text))
    first, header = lines[0] if lines else (1, [])
    fields = [_FIELD_OF.get(" ".join(cell.lower().replace("_", " ").split()), "") for cell in header]
    fields = [key if key not in fields[:at] else "" for at, key in enumerate(fields)]
    usual = fields.index("name") if "name" in fields else None
    at = _best_heading(lines[1:], names, usual)
    if at is not None and at != usual:
        fields = ["name" if position == at else "" if key == "name" else key for position, key in enumerate(fields)]
    if at is None or len([key for key in fields if key]) < 2:
        rule = "its first line does not name the columns of a data dictionary."
        raise Misread(f":{first}", rule, "It needs `name` and at least one of type, min, max, values and description.")
    commas = any("choices" in cell.lower() for cell in header)
    seen: set[str] = set()
    for line, cells in lines[1:]:
        if not any(cells):
            continue
        if len(cells) > len(fields) and any(cells[len(fields) :]):
            raise Misread(
                f":{line}", f"has {len(cells)} fields, but the first line has {len(fields)}.", "Quote its cells."
            )
        row = {key: cell.strip() for key, cell in zip(fields, cells, strict=False) if key}
        name = row.get("name", "")
        if not name or name in seen:
            if at != usual:
                continue
            raise Misread(f":{line}", "names a column twice." if name else "names no column.")
        seen.add(name)
        yield replace(_entry(name, row, f":{line}", commas=commas), heading=tidy(header[at]))


def _best_heading(lines: Sequence[tuple[int, Sequence[str]]], names: Collection[str], usual: int | None) -> int | None:
    """The position under which most of the table's columns are named; the usual one, unless another has more."""
    exact, known = set(names), spellings(tuple(names))
    found: Counter[int] = Counter()
    for _, cells in lines if names else ():
        found.update(at for at, cell in enumerate(cells) if cell.strip() and (cell in exact or known(cell.strip())))
    if usual is not None:
        found[usual] += 0
    return max(found, key=lambda at: (found[at], at == usual, -at), default=None)


def _cells(text: str) -> Iterator[tuple[int, list[str]]]:
    """Lines of delimited text with the number of the line each begins in; quoted cells may hold anything."""
    heading = text.split("\n", 1)[0]
    delimiter = max(",;\t|", key=lambda mark: (heading.count(mark), -",;\t|".index(mark)))
    cell = re.compile(rf'"((?:[^"]|"")*)"[^{re.escape(delimiter)}\r\n]*|([^{re.escape(delimiter)}\r\n]*)')
    start, line, cells = 0, 1, []
    begins = 1
    while start < len(text):
        found = cell.match(text, start)
        assert found is not None  # the second form matches nothing, too
        if text.startswith('"', start) and found[1] is None:
            raise Misread(f":{line}", "opens a quote that is never closed.")
        cells.append(found[1].replace('""', '"') if found[1] is not None else found[2])
        line += found[0].count("\n")
        end = found.end()
        if text.startswith(delimiter, end):
            start = end + 1
            cells += [""] if start >= len(text) else []
            continue
        start = end + (2 if text.startswith("\r\n", end) else 1)
        yield begins, cells
        line, cells = line + 1, []
        begins = line
    if cells:
        yield begins, cells


def _entry(name: str, row: Mapping[str, str], where: str, *, commas: bool) -> ColumnFacts:
    word = row.get("type", "")
    kind = _type_of(row.get("check", "")) or _type_of(word)
    values = row.get("values", "")
    if _ONLY_A_TYPE.fullmatch(values.strip()):
        kind, values = kind or _type_of(values.replace("n/a", "")), ""
    texts = {key: row.get(key, "") for key in ("title", "description")}
    if kind in ("identifier", "text"):
        why = AN_IDENTIFIER if kind == "identifier" else "free text"
        return ColumnFacts(name, texts, left_out=f"{why}, as the codebook says")
    low, high = row.get("low", ""), row.get("high", "")
    span = None if len(values) > _LONGEST_TERM else _SPAN.fullmatch(values)
    values = "" if span and kind in ("integer", "float") else values
    if span and not values:
        low, high = low or span[1], high or span[2]
    said = _said(kind, low, high, values_of(values, commas=commas), where)
    number = said.get("kind") in ("integer", "float")
    said |= {**texts, **_extras(row, where, number=number, kind=str(said.get("kind", "")))}
    return ColumnFacts(name, said, storage=_STORAGE_OF.get(kind, ""))


_SPAN = re.compile(r"\[?\s*(-?[\d.]+)\s*(?:\.\.\.?|…|–|—|-|to|bis|;|,)\s*(-?[\d.]+)\s*\]?")
_LONGEST_TERM = 200  # characters of a cell that may be a range or the name of a type; longer ones are neither
_ONLY_A_TYPE = re.compile(
    r"continuous|numeric(al)?|number|integer|int|real|float|decimal|text|string|free ?text|character|date|datetime|time"
    r"|n/?a|none|-|any|varies|various|open",
    re.IGNORECASE,
)


def _type_of(word: str) -> str:
    plain = " ".join(
        re.sub(r"\([^()]*\)", "", word[:_LONGEST_TERM].lower()).replace("-", " ").replace("/", " ").split()
    )
    return next((kind for kind, form in _TYPE_WORDS if re.fullmatch(form, plain)), "")


def _said(kind: str, low: str, high: str, pairs: list[tuple[str, str]], where: str) -> dict[str, object]:
    if kind in ("boolean", "time") and not pairs:
        return {"kind": kind}
    if kind in ("category", "ordinal", "string", "boolean"):
        if not pairs and kind == "string":
            return {}
        return listed(pairs, ordered=kind == "ordinal") if pairs else {"kind": "category"}
    if not kind and (low or high) and not pairs:
        kind = "integer" if all(_WHOLE.fullmatch(end) for end in (low, high) if end) else "float"
    if kind not in ("integer", "float", "date", "datetime"):
        return listed(pairs) if pairs else {}
    ends = bounds(low, high, kind, where)
    stated: dict[str, object] = {"kind": kind, **ends} if ends else {}
    return coded(pairs, stated) if pairs and kind in ("integer", "float") else stated


def values_of(text: str, *, commas: bool = False) -> list[tuple[str, str]]:
    """Labels and their meanings, as dictionaries write them.

    >>> values_of("1=yes; 2=no"), values_of("a|b"), values_of("1, yes | 2, no", commas=True)
    ([('1', 'yes'), ('2', 'no')], [('a', ''), ('b', '')], [('1', 'yes'), ('2', 'no')])
    """
    if not text.strip():
        return []
    if text.lstrip().startswith("["):
        try:
            return [(label_text(value), "") for value in json.loads(text) if value is not None]
        except (ValueError, TypeError, RecursionError):
            pass
    mark = next((mark for mark in ("|", "\n", ";", ",") if mark in text), "\n")
    parts = [part.strip() for part in text.split(mark)]
    parts = [part for part in parts if part]
    for between in ("=", ":", *("," if commas and mark != "," else "")):
        form = re.compile(rf"([^{between}<>!]*[^{between}<>!\s])\s*{between}\s*(\S.*)", re.DOTALL)
        cut = [form.fullmatch(part) for part in parts]
        if all(cut):
            return [(found[1], found[2]) for found in cut if found]
    return [(re.sub(r"^(['\"])(.*)\1$", r"\2", part, flags=re.DOTALL), "") for part in parts]


def _extras(row: Mapping[str, str], where: str, *, number: bool, kind: str) -> dict[str, object]:
    said: dict[str, object] = {}
    for key, true in (("absent", True), ("needed", False)):
        word = row.get(key, "").lower()
        if word in _TRUE or (word in _FALSE and word):
            said["missing"] = (word in _TRUE) == true
        elif word:
            raise Misread(where, f"{shown(word)} must be yes or no.")
    if row.get("missing_values"):
        said["missing_values"] = tuple(dict.fromkeys(label for label, _ in values_of(row["missing_values"])))
    if number and row.get("measured_in"):
        said["measured_in"] = tidy(row["measured_in"])
    if kind == "float" and row.get("decimals", "").isdecimal():
        said["decimals"] = int(row["decimals"][:3])
    if kind in ("date", "datetime", "time") and "%" in row.get("format", ""):
        said["format"] = row["format"]
    if kind == "category" and row.get("ordered", "").lower() in _TRUE:
        said["ordered"] = True
    return said


# Files of statistics packages: metadata only


def _statistics(file: Path) -> Iterator[ColumnFacts]:
    try:
        import pyreadstat
    except ImportError as error:
        fix = "Install it with `pip install 'understudy[stats]'`."
        raise UsageError(str(file), "is read by the library pyreadstat, which is not installed.", fix) from error

    readers = {
        ".dta": pyreadstat.read_dta,
        ".por": pyreadstat.read_por,
        ".sas7bdat": pyreadstat.read_sas7bdat,
        ".xpt": pyreadstat.read_xport,
    }
    read: Any = readers.get(file.suffix.lower(), pyreadstat.read_sav)
    file.open("rb").close()  # so that a file that is not there is told in our own words
    extra = {"user_missing": True} if file.suffix.lower() in (".sav", ".zsav", ".dta") else {}
    try:
        _, about = read(str(file), metadataonly=True, **extra)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, ValueError, OverflowError, UnicodeError) as error:
        raise Misread("", "is not a valid file of its kind, or is damaged.") from error
    for name in about.column_names:
        yield _variable(str(name), about)


def _variable(name: str, about: Any) -> ColumnFacts:
    title = about.column_names_to_labels.get(name) or ""
    absent = _missing_codes(about.missing_ranges.get(name, []), about.missing_user_values.get(name, []))
    pairs = [
        (label_text(value), tidy(meaning)) for value, meaning in (about.variable_value_labels.get(name) or {}).items()
    ]
    measure = about.variable_measure.get(name, "")
    form = str(about.original_variable_types.get(name, ""))
    storage, decimals = _stored(str(about.readstat_variable_types.get(name, "")), form)
    rest = [(label, meaning) for label, meaning in pairs if label not in absent]
    told = [label for label, meaning in rest if _MEANS_MISSING.fullmatch(meaning)]
    said: dict[str, object] = {}
    if rest and len(told) < len(rest) and measure != "scale":
        said = listed(rest, ordered=measure == "ordinal")
    elif told:
        absent = (*absent, *told)
    if storage == "double" and not said and decimals:
        said["decimals"] = decimals
    return ColumnFacts(name, {**said, "title": title, "missing_values": tuple(dict.fromkeys(absent))}, storage=storage)


def _missing_codes(ranges: Sequence[Mapping[str, object]], single: Sequence[object]) -> tuple[str, ...]:
    """Every code that is declared missing; ranges that are wide or open name none of their codes."""
    found = [label_text(value) for value in single]
    for span in ranges:
        low, high = span.get("lo"), span.get("hi")
        if low == high:
            found.append(label_text(low))
        elif isinstance(low, int | float) and isinstance(high, int | float) and 0 < high - low <= 100:
            found += [str(code) for code in range(math.ceil(low), math.floor(high) + 1)]
    return tuple(dict.fromkeys(found))


def _stored(kind: str, form: str) -> tuple[str, int]:
    """The Arrow type of a variable of a statistics package, by its type and display format, and its decimals."""
    shape = form.upper().lstrip("%-")
    if kind == "string" or re.match(r"A\d|STR|\$", shape):
        return "string", 0
    if re.match(r"TC|DATETIME|YMDHMS", shape):
        return "timestamp[us]", 0
    if re.match(r"TD|DATE|ADATE|EDATE|SDATE|JDATE|YYMMDD|DDMMYY|MMDDYY", shape):
        return "date32[day]", 0
    if re.match(r"TIME|MTIME|HHMM", shape):
        return "time64[us]", 0
    digits = re.fullmatch(r"(?:F|COMMA|DOLLAR|N|PCT)?\d+\.?(\d*)[A-Z]?", shape)
    places = int(digits[1]) if digits and digits[1] else 0
    if kind.startswith("int") or (digits and not places and not shape.endswith("G")):
        return "int64", 0
    return "double", places
