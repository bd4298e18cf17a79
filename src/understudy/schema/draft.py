"""A first schema file from names and storage types only, with DECIDE wherever a person must say something.

No value is ever read for it. What a name suggests is said in comments; nothing a name suggests is decided. A table
whose names look like a row of values is refused without showing them, unless a person vouches for its names.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from understudy.errors import Problem, SchemaError, place
from understudy.schema.columns import STORAGE
from understudy.schema.document import QUESTIONS, key_at, keys_of
from understudy.schema.schema import looks_like_an_id, unlike_names
from understudy.schema.yaml_text import DECIDE, Leaf, guessed_lines, key_lines, parse_yaml, text_token, written

_HEAD = """\
# A draft made from column names and storage types only; no value was read.
# Replace every DECIDE with public knowledge (a codebook, a form, a law), never with something seen in the rows,
# and say in `note` where it comes from. A column that you delete here is left out of the release.
understudy: 1
"""
_UNIT = """\
# Who is protected? `row`, or everybody in an id column: {column: NAME, rows: the most rows one of them may have}.
"""
_REMARK = re.compile(r"\bDECIDE\b[^#]*\s#\s*(?:guess:\s*)?(.*)")
_ABSENT = "# true if the value may be absent"
_KINDS = (
    (r"u?int\d+", "integer"),
    (r"double|float|halffloat|decimal.*", "float"),
    (r"bool", "boolean"),
    (r"date(32|64).*", "date"),
    (r"timestamp\[.*", "datetime"),
    (r"time(32|64).*", "time"),
    (r"(large_)?string(_view)?|(large_)?utf8|dictionary<.*", "category"),
)
_LIKE_A_DATE = re.compile(r"date|datum|birth|dob|(^|_)day$|_(at|on)$", re.IGNORECASE)
_LIKE_A_NUMBER = re.compile(
    r"(^|[_\W])(age|year|count|amount|income|salary|price|weight|height|number|score|total)s?([_\W]|$)", re.IGNORECASE
)
_LIKE_A_CODE = re.compile(r"code|type|status|class|category|group|flag|zip|county|state", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OpenPlace:
    """A place of a schema file that a person still has to fill in (DECIDE) or to confirm (a guess)."""

    line: int
    column: str
    """The column's name; empty for keys of the whole table."""
    key: str
    """The key below the column, such as `upper`; empty if the whole column is meant. For the table: `unit`."""
    hint: str
    """What to state, or why it was guessed."""
    guess: str
    """The guessed value as YAML on one line; empty where the file says DECIDE."""


def open_places(text: str, where: str = "schema") -> list[OpenPlace]:
    """The places of a schema text that say DECIDE or are marked as a guess, in order of their lines.

    Raises:
        SchemaError: if the text is no YAML.
    """
    tree = parse_yaml(text, where)
    lines = text.splitlines()
    found: list[OpenPlace] = []
    for path, _, value in keys_of(tree):
        if isinstance(value, Leaf) and value.undecided:
            said = _REMARK.search(lines[value.line - 1]) if value.line <= len(lines) else None
            question = QUESTIONS.get(path[-1], "a value")
            found.append(_open(path, value.line, said[1].strip() if said else question))
    held = key_at(tree)
    for line, why in guessed_lines(text).items():
        named, holds = held(line)
        found.append(_open(named, line, why, "" if holds is None else written(holds)))
    return sorted(found, key=lambda place: (place.line, place.guess == ""))


def _open(path: tuple[str, ...], line: int, hint: str, guess: str = "") -> OpenPlace:
    inside = path[:1] == ("columns",) and len(path) > 1
    column, keys = (path[1], path[2:]) if inside else ("", path)
    return OpenPlace(line, column, ".".join(keys), hint, guess)


def draft_schema(header: Sequence[tuple[str, str]], *, names_are_right: bool = False) -> str:
    """The text of a schema file for a table with these (name, Arrow type) columns.

    Raises:
        SchemaError: names look like values and nobody says that they are names, or a name appears twice.
    """
    odd = 0 if names_are_right else unlike_names([name for name, _ in header])
    if odd:
        rule = f"{odd} of its {len(header)} columns have a name that looks like a value, appears twice or is absent."
        fix = "If its first line is a row, put a line of names above it. If these are names, give names_are_right=True."
        raise SchemaError([Problem("table", rule, fix)])
    repeated = [name for name, times in Counter(name for name, _ in header).items() if times > 1 and name]
    if repeated:
        rule = "appears twice in the table, so a schema cannot tell them apart."
        raise SchemaError([Problem(place("columns", name), rule, "Rename one.") for name in repeated])
    lines = [_HEAD, _UNIT]
    likely = [text_token(name) for name, _ in header if looks_like_an_id(name)]
    if likely:
        lines.append(f"# By name this may be an id: {', '.join(likely)}.\n")
    lines.append(f"unit: {DECIDE}\ncolumns:\n")
    for name, storage in header:
        lines += [f"{line}\n" for line in _column(name, storage)]
    return "".join(lines)


def _column(name: str, storage: str) -> Iterator[str]:
    if not name or "\0" in name:
        yield "  # Left out: a column without a usable name. Rename it in the table to keep it."
        return
    kind = next((kind for form, kind in _KINDS if re.fullmatch(form, storage)), None)
    if kind is None:
        yield f"  # Left out: {text_token(name)} has the type {text_token(storage)}, which no kind of column holds."
        return
    yield from (f"  # {hint}" for hint in _hints(name, kind))
    before, start = key_lines(text_token(name), 2)
    yield from [*before, start, f"    kind: {kind}"]
    if kind == "category":
        yield f"    labels: {DECIDE}  # the full list, as [first, second]; if unknown, `kind: open_category`"
    if kind in ("integer", "float", "date", "datetime", "time"):
        form = {
            "date": ", such as 1900-01-01",
            "datetime": ", such as 1900-01-01T00:00:00" + "+00:00" * ("tz=" in storage),
            "time": ", such as 08:00:00",
        }
        yield f"    lower: {DECIDE}  # the least value that can occur{form.get(kind, '')}"
        yield f"    upper: {DECIDE}  # the greatest value that can occur"
    if kind == "datetime" and "tz=" in storage:
        zone = storage.partition("tz=")[2].rstrip("]")
        # A fixed offset such as +02:00 is no zone: only a person knows which zone it stood for.
        yield f"    zone: {text_token(zone) if zone[:1].isalpha() else DECIDE}"
    yield f"    missing: {DECIDE}  {_ABSENT}"
    kept = re.sub(r", tz=.*\]", "]", storage)
    if kept in STORAGE[kind][1:]:
        yield f"    storage: {text_token(kept)}"


def _hints(name: str, kind: str) -> Iterator[str]:
    """What the name alone suggests."""
    if looks_like_an_id(name):
        yield "By name this may be an id. It belongs under unit, or nowhere: delete it here, ids must not be released."
    if kind == "category" and _LIKE_A_DATE.search(name):
        yield "By name this may be a date: `kind: date` with lower, upper and, if not ISO, format."
    elif kind == "category" and _LIKE_A_NUMBER.search(name):
        yield "By name this may be a number: `kind: integer` or `kind: float` with lower and upper."
    elif kind == "integer" and _LIKE_A_CODE.search(name):
        yield "By name this may be a code: `kind: category` with labels; storage keeps it a number."
