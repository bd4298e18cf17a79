"""Schema files: YAML ⇄ Schema, lossless, all problems at once, each with its file, line and key.

A file is refused rather than guessed at: unknown keys, anchors, tags, repeated keys, files above 16 MiB or a million
entries, places that still say DECIDE and lines that are marked as a guess are problems. `write` gives text from which
`read` makes an equal schema.
"""

import bisect
import dataclasses
import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from understudy.errors import Problem, SchemaError, below, place, shown, suggest
from understudy.schema.checks import column_problems, unit_problems
from understudy.schema.columns import (
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
    Point,
    PrivateBins,
    Time,
    UniformBins,
)
from understudy.schema.schema import Dialect, Impossible, Range, Schema, Unit, header_problems
from understudy.schema.yaml_text import (
    MOST_BYTES,
    TOO_LARGE,
    Entries,
    Leaf,
    Tree,
    YamlList,
    guessed_lines,
    parse_yaml,
    schema_to_text,
)

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d\d:\d\d(:\d\d)?", re.ASCII)
_DATETIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z|[-+]\d\d:\d\d(:\d\d)?)?", re.ASCII)

QUESTIONS = {
    "unit": "who is protected (row, or an id column with the most rows one of them may have)",
    "lower": "the lower bound, from public knowledge",
    "upper": "the upper bound, from public knowledge",
    "labels": "the full list of labels, from a codebook",
    "missing": "whether the value may be absent (true or false)",
    "zone": "the time zone, such as Europe/Berlin",
    "kind": "what kind of column this is",
    "rows": "the most rows that one of them may have",
}
"""What a person has to say under a key that is left open."""


def _date(leaf: Leaf) -> Point | None:
    return _made(dt.date.fromisoformat, leaf.text, _DATE)


def _time(leaf: Leaf) -> Point | None:
    return _made(dt.time.fromisoformat, leaf.text, _TIME)


def _datetime(leaf: Leaf) -> Point | None:
    return _made(dt.datetime.fromisoformat, leaf.text, _DATETIME)


def _made(make: Callable[[str], Point], text: str, form: re.Pattern[str]) -> Point | None:
    try:
        return make(text) if form.fullmatch(text) else None
    except ValueError:
        return None


POINTS: Mapping[str, tuple[Callable[[Leaf], Point | None], str]] = {
    "integer": (lambda leaf: leaf.whole, "a whole number without quotes"),
    "float": (lambda leaf: leaf.real, "a number without quotes"),
    "date": (_date, "a date such as 2020-12-31"),
    "datetime": (_datetime, "a date and time such as 2020-12-31T23:59:59 (with an offset if the column has a zone)"),
    "time": (_time, "a time of day such as 23:59:59"),
}
"""How the values of each number kind are read, and what they must look like."""


class Reader:
    """Collects problems and the lines of keys. Its methods return None where the value could not be read."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.problems: list[Problem] = []
        self.lines: dict[str, int] = {}

    def refuse(self, tree: Tree, here: str, rule: str, fix: str = "") -> None:
        """Keeps a problem of what stands at `here`."""
        self.problems.append(Problem(f"{self.where}:{tree.line}: {here}", rule, fix))

    def located(self, problem: Problem) -> Problem:
        """The problem with the file and the line of its key, or of the closest key around it."""
        place = problem.where
        while place and place not in self.lines:
            place = place[: max(place.rfind("."), place.rfind("["), 0)]
        line = f":{self.lines[place]}" if place else ""
        return Problem(f"{self.where}{line}: {problem.where}", problem.rule, problem.fix)

    def leaf(self, tree: Tree, here: str, wanted: str) -> Leaf | None:
        """The scalar, unless a person still has to decide it."""
        if not isinstance(tree, Leaf):
            given = "a list" if isinstance(tree, YamlList) else "a mapping"
            self.refuse(tree, here, f"must not be {given}.", wanted)
        elif tree.undecided:
            key = re.split(r"[.\[]", here)[-1]
            question = QUESTIONS.get(key, "a value")
            self.refuse(tree, here, "still says DECIDE:", f"state {question}.")
        else:
            return tree
        return None

    def entries(self, tree: Tree, here: str) -> Entries | None:
        """The mapping."""
        if isinstance(tree, Entries):
            return tree
        if isinstance(tree, YamlList) or self.leaf(tree, here, "") is not None:
            self.refuse(tree, here, "must be a mapping of keys to values.", "Write one `key: value` per line.")
        return None

    def items(self, tree: Tree, here: str) -> YamlList | None:
        """The list."""
        if isinstance(tree, YamlList):
            return tree
        if isinstance(tree, Entries) or self.leaf(tree, here, "") is not None:
            self.refuse(tree, here, "must be a list.", "Write it as [first, second].")
        return None

    def fields(self, tree: Entries, here: str, known: Sequence[str], required: Sequence[str] = ()) -> dict[str, Tree]:
        """The values under known keys; unknown and absent keys become problems."""
        found: dict[str, Tree] = {}
        for key, value in tree.pairs:
            place = below(here, key.text)
            self.lines[place] = key.line
            if key.text in known:
                found[key.text] = value
            else:
                self.refuse(key, place, "is not a key that belongs here.", suggest(key.text, known))
        for name in required:
            if name not in found:
                question = QUESTIONS.get(name)
                self.refuse(tree, below(here, name), "is not stated.", f"State {question}." if question else "Add it.")
        return found

    def text(self, tree: Tree, here: str) -> str | None:
        """Text as written; plain true, false and null are refused, because their meaning is not text."""
        leaf = self.leaf(tree, here, "It must be text.")
        if leaf is None:
            return None
        if leaf.null or leaf.boolean is not None:
            said = leaf.text or "nothing"
            self.refuse(tree, here, f"says {said} where text is needed.", 'Put quotes around it if it is text: "…".')
            return None
        return leaf.text

    def blank_or_text(self, tree: Tree, here: str) -> str | None:
        """Text, empty where nothing stands."""
        return "" if isinstance(tree, Leaf) and tree.null else self.text(tree, here)

    def nothing_or_text(self, tree: Tree, here: str) -> str | None:
        """Text, or None where nothing stands (or on a problem, which is kept)."""
        return None if isinstance(tree, Leaf) and tree.null else self.text(tree, here)

    def texts(self, tree: Tree, here: str) -> tuple[str, ...] | None:
        """A list of texts."""
        listed = self.items(tree, here)
        if listed is None:
            return None
        found = [self.text(value, here) for value in listed.values]
        return None if None in found else tuple(text for text in found if text is not None)

    def filled_text(self, tree: Tree, here: str) -> str | None:
        """Text that is not empty."""
        text = self.text(tree, here)
        if text == "":
            self.refuse(tree, here, "is empty.", "Write what it is, or leave the key out.")
        return text or None

    def words(self, tree: Tree, here: str) -> tuple[str, ...] | None:
        """A list of texts in which even a plain null or true is the word that it is."""
        listed = self.items(tree, here)
        if listed is None:
            return None
        found = [self.leaf(value, here, "It must be text.") for value in listed.values]
        return None if None in found else tuple(leaf.text for leaf in found if leaf is not None)

    def text_map(self, tree: Tree, here: str) -> dict[str, str] | None:
        """Texts by text."""
        entries = self.entries(tree, here)
        if entries is None:
            return None
        pairs = [(self.text(key, here), self.text(value, here)) for key, value in entries.pairs]
        found = {key: value for key, value in pairs if key is not None and value is not None}
        return found if len(found) == len(pairs) else None

    def number_map(self, tree: Tree, here: str) -> dict[str, float] | None:
        """Numbers by text."""
        entries = self.entries(tree, here)
        if entries is None:
            return None
        pairs = [(self.text(key, here), self.real(value, here)) for key, value in entries.pairs]
        found = {key: value for key, value in pairs if key is not None and value is not None}
        return found if len(found) == len(pairs) else None

    def boolean(self, tree: Tree, here: str) -> bool | None:
        """True or false."""
        leaf = self.leaf(tree, here, "It must be true or false.")
        if leaf is not None and leaf.boolean is None:
            self.refuse(tree, here, f"{shown(leaf.text)} must be true or false.")
        return None if leaf is None else leaf.boolean

    def point(self, tree: Tree, here: str, kind: str) -> Point | None:
        """A value of a number, date or time column of that kind."""
        read, wanted = POINTS[kind]
        leaf = self.leaf(tree, here, f"It must be {wanted}.")
        if leaf is None:
            return None
        value = read(leaf)
        if value is None:
            self.refuse(tree, here, f"{shown(leaf.text) if leaf.text else 'nothing'} must be {wanted}.")
        return value

    def points(self, tree: Tree, here: str, kind: str) -> tuple[Point, ...] | None:
        """A list of such values."""
        listed = self.items(tree, here)
        if listed is None:
            return None
        found = [self.point(value, here, kind) for value in listed.values]
        return None if None in found else tuple(value for value in found if value is not None)

    def whole(self, tree: Tree, here: str) -> int | None:
        """A whole number."""
        value = self.point(tree, here, "integer")
        return value if isinstance(value, int) else None

    def real(self, tree: Tree, here: str) -> float | None:
        """A number."""
        value = self.point(tree, here, "float")
        return value if isinstance(value, float) else None

    def rule_label(self, tree: Tree, here: str, kind: str) -> tuple[str | None, ...]:
        """The label a rule names, alone in a tuple: None is missing; nothing on a problem."""
        if isinstance(tree, Leaf) and tree.null:
            return (None,)
        if isinstance(tree, Leaf) and kind == "boolean" and tree.boolean is not None:
            return (str(tree.boolean).lower(),)
        if isinstance(tree, Leaf) and kind == "integer" and tree.whole is not None:
            return (str(tree.whole),)
        if isinstance(tree, Leaf) and kind == "float" and tree.real is not None:
            return (str(tree.real),)
        text = self.text(tree, here)
        return () if text is None else (text,)


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
    "title": Reader.blank_or_text,
    "description": Reader.blank_or_text,
    "missing_values": Reader.words,
    "ignore_case": Reader.boolean,
    "ordered": Reader.boolean,
    "meanings": Reader.text_map,
    "decimal": Reader.filled_text,
    "thousands": Reader.filled_text,
    "prefix": Reader.filled_text,
    "suffix": Reader.filled_text,
    "parentheses": Reader.boolean,
    "measured_in": Reader.blank_or_text,
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
    if isinstance(tree, YamlList):
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


FORMAT = 1
_KEYS = ("understudy", "title", "note", "unit", "unreadable", "missing_values", "file", "columns", "rules")


def read_schema(path: Path) -> Schema:
    """The schema in that file; raises SchemaError with all problems at once."""
    return schema_from_text(text_of(path), str(path))


def file_header_problems(path: Path, names: Sequence[str]) -> list[Problem]:
    """What keeps a table with these column names from being read under a schema file that may itself be faulty.

    It goes by the names that the file declares, as far as it can be parsed at all; otherwise nothing is found.
    """
    try:
        top = _entries(parse_yaml(text_of(path), str(path)))
    except SchemaError:
        return []
    columns, unit = _entries(top.get("columns")), _entries(top.get("unit")).get("column")
    derived = [name for name, tree in columns.items() if _said(_entries(tree).get("kind")) == "derived"]
    modelled = [name for name in columns if name not in derived]
    return header_problems(names, modelled, derived, _said(unit)) if modelled else []


def file_dialect(path: Path) -> Dialect | None:
    """How the table's file is written, by a schema file that may itself be unfinished; None if it does not say."""
    try:
        reader = Reader(str(path))
        said = _entries(parse_yaml(text_of(path), str(path))).get("file")
        found = None if said is None else _file(reader, said)
    except SchemaError:
        return None
    return None if reader.problems or found is None or found.problems() else found


def _entries(tree: Tree | None) -> dict[str, Tree]:
    return {key.text: value for key, value in tree.pairs} if isinstance(tree, Entries) else {}


def _said(tree: Tree | None) -> str | None:
    return tree.text if isinstance(tree, Leaf) and not tree.null and not tree.undecided else None


def text_of(path: Path) -> str:
    """The text of a schema file; raises SchemaError if there is none."""
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
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SchemaError([Problem(f"{where}:{line}", "is not UTF-8.", "Save the file as UTF-8.")]) from error


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
    missing_values = reader.words(fields["missing_values"], "missing_values") if "missing_values" in fields else None
    file = _file(reader, fields["file"]) if "file" in fields else None
    columns, kinds = _columns(reader, fields.get("columns"))
    rules = _rules(reader, fields["rules"], kinds) if "rules" in fields else []
    guesses = _guess_problems(text, tree, where)
    if guesses:
        reader.problems = sorted([*reader.problems, *guesses], key=lambda problem: _line_of(problem, where))
    if reader.problems or unit is None:
        names = frozenset(column.name for column in columns)
        more = [found for column in columns for found in column_problems(column)]
        more += [] if unit is None else unit_problems(unit, names)
        raise SchemaError([*reader.problems, *map(reader.located, more)])
    try:
        said = {"title": title or "", "note": note or "", "unreadable": unreadable or ""}
        return Schema(tuple(columns), unit, tuple(rules), **said, missing_values=missing_values, file=file)
    except SchemaError as error:
        raise SchemaError([reader.located(problem) for problem in error.problems]) from error


def _guess_problems(text: str, tree: Tree, where: str) -> list[Problem]:
    """One problem for every line that is marked as a guess and that nobody has confirmed."""
    fix = "Delete the comment to confirm it, or correct the line."
    held = key_at(tree)
    places = [(line, place(*held(line)[0])) for line in guessed_lines(text)]
    return [Problem(f"{where}:{line}: {here}", "is a guess that nobody has confirmed.", fix) for line, here in places]


def _line_of(problem: Problem, where: str) -> int:
    found = re.match(r":(\d+)", problem.where.removeprefix(where))
    return int(found[1]) if found else 0


def key_at(tree: Tree) -> Callable[[int], tuple[tuple[str, ...], Tree | None]]:
    """Gives for a line of the file the outermost key in it, or the last key before it: its path and what it holds."""
    starts: dict[int, tuple[tuple[str, ...], Tree]] = {}
    for path, line, value in keys_of(tree):
        starts.setdefault(line, (path, value))
    lines = sorted(starts)

    def found(line: int) -> tuple[tuple[str, ...], Tree | None]:
        before = bisect.bisect_right(lines, line)
        return starts[lines[before - 1]] if before else ((), None)

    return found


def keys_of(tree: Tree, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int, Tree]]:
    """Every key of the file in order: its path, its line and what it holds."""
    if isinstance(tree, Entries):
        for key, value in tree.pairs:
            path = (*above, key.text)
            yield path, key.line, value
            yield from keys_of(value, path)
    if isinstance(tree, YamlList):
        for item in tree.values:
            yield from keys_of(item, above)


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


_FILE_KEYS = ("delimiter", "encoding", "decimal", "header", "names", "multiline")


def _file(reader: Reader, tree: Tree) -> Dialect | None:
    """How the text file is written; what is wrong with it is told under its keys when the schema is made."""
    entries = reader.entries(tree, "file")
    if entries is None:
        return None
    fields = reader.fields(entries, "file", _FILE_KEYS)
    texts = [reader.filled_text(fields[key], f"file.{key}") if key in fields else None for key in _FILE_KEYS[:3]]
    header = reader.boolean(fields["header"], "file.header") if "header" in fields else None
    names = reader.texts(fields["names"], "file.names") if "names" in fields else None
    multiline = reader.boolean(fields["multiline"], "file.multiline") if "multiline" in fields else None
    if header is False and "names" not in fields:
        reader.refuse(fields["header"], "file.header", "is false, so names must list the column names.")
        return None
    delimiter, encoding, decimal = texts
    # Without names a header is what every file has, and with them no header is what they mean.
    unusual = header if header == (names is not None) else None
    return Dialect(delimiter, encoding, decimal, names, multiline, unusual)


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
    if not isinstance(said, YamlList):
        reader.refuse(said, here, "must be a list of labels or a range.", "For example [yes] or {from: 0, to: 17}.")
        return None
    labels = [reader.rule_label(value, here, kind) for value in said.values]
    return None if () in labels else tuple(label for found in labels for label in found)
