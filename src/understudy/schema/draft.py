"""A first schema file from names, storage types and public facts, with DECIDE or a guess wherever a person must speak.

No value of the table is ever read for it. What a codebook or a public table says is taken over with a note of where it
comes from. What only the name suggests is written as a guess, on a line that ends in `# guess: why`; such a line, like
DECIDE, keeps the file from being loaded until a person has confirmed it by deleting the comment. A table whose names
look like a row of values is refused without showing them, unless a person vouches for its names.
"""

import dataclasses
import datetime as dt
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from understudy.errors import Problem, SchemaError, UsageError, shown
from understudy.schema.checks import column_problems
from understudy.schema.codebooks import AN_IDENTIFIER, ColumnFacts, tidy
from understudy.schema.columns import STORAGE, Column
from understudy.schema.document import KINDS, QUESTIONS, key_at, keys_of, schema_from_text
from understudy.schema.guesses import AN_ID, Guess, guess_of, measured_in
from understudy.schema.schema import Schema, Unit, looks_like_an_id, spellings, unlike_names
from understudy.schema.yaml_text import (
    DECIDE,
    Leaf,
    guessed_lines,
    key_lines,
    parse_yaml,
    said_flow,
    said_lines,
    text_token,
    written,
)

_HEAD = """\
# A draft made from {sources}; no value of the table was read.
# Replace every DECIDE with public knowledge (a codebook, a form, a law), never with something seen in the rows, and say
# in `note` where it comes from. A line with `# guess: …` is a proposal: correct it, then delete the comment to confirm
# it. A column that you delete here is left out of the release. A column is declared as one of
#   {kind: category, labels: [first, second]}, {kind: open_category} (labels are found for a part of the budget),
#   {kind: integer, lower: 0, upper: 99}, {kind: float, lower: 0, upper: 1}, {kind: boolean},
#   {kind: date, lower: 2020-01-01, upper: 2029-12-31}, {kind: datetime, lower: …, upper: …}, {kind: time}.
# Values may be missing in every column; say `missing: false` where they cannot be.
understudy: 1
"""
_UNIT = """\
# Who is protected? `row`, or everybody in an id column: {column: NAME, rows: the most rows one of them may have}.
"""
_WIDTH = 112
_BOUND_FORMS = {
    "date": ", such as 1900-01-01",
    "datetime": ", such as 1900-01-01T00:00:00",
    "time": ", such as 08:00:00",
}
_WHICH_KIND = "category, open_category, boolean, integer, float, date, datetime or time; see above"
_REMARK = re.compile(r"\bDECIDE\b[^#]*\s#\s*(?:guess:\s*)?(.*)")
_OF_PEOPLE = re.compile(
    r"person|patient|customer|client|employee|student|pupil|respondent|participant|member|user|ssn", re.I
)
_KINDS = (
    (r"u?int\d+", "integer"),
    (r"double|float|halffloat|decimal.*", "float"),
    (r"bool", "boolean"),
    (r"date(32|64).*", "date"),
    (r"timestamp\[.*", "datetime"),
    (r"time(32|64).*", "time"),
    (r"(large_)?string(_view)?|(large_)?utf8|dictionary<.*", "category"),
)


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


@dataclass(frozen=True, slots=True)
class Draft:
    """A schema file that may still have open places."""

    text: str

    @property
    def open(self) -> tuple[OpenPlace, ...]:
        """What a person has still to fill in or to confirm."""
        return tuple(open_places(self.text, "the draft"))

    def save(self, path: str | Path) -> None:
        """Writes the text to a new file.

        Raises:
            UsageError: if there is such a file already.
        """
        try:
            with Path(path).open("x", encoding="utf-8", newline="\n") as file:
                file.write(self.text)
        except FileExistsError as error:
            raise UsageError(str(path), "exists already and is never overwritten.", "Choose another name.") from error

    def schema(self) -> Schema:
        """The schema, once nothing is open.

        Raises:
            SchemaError: with every open place.
        """
        return schema_from_text(self.text, "the draft")

    def __str__(self) -> str:
        return self.text


def draft_schema(
    header: Sequence[tuple[str, str]],
    *,
    facts: Sequence[ColumnFacts] = (),
    unit: Unit | None = None,
    names_are_right: bool = False,
) -> str:
    """The text of a schema file for a table with these (name, Arrow type) columns.

    Args:
        header: names and types; a table in which every type is "string" is taken for a text file.
        facts: what codebooks and public tables say; where two speak of the same key, the first one is believed.
        unit: who is protected, if that is known.
        names_are_right: take names that look like values as names.

    Raises:
        SchemaError: names look like values and nobody says that they are names, a name appears twice, or the facts
            contradict themselves or are about other columns.
    """
    _check_names(header, names_are_right=names_are_right)
    untyped = all(storage in ("string", "large_string") for _, storage in header)
    by_name = _facts_by_name([name for name, _ in header], facts)
    sources = ", ".join(["column names and storage types", *dict.fromkeys(tidy(fact.origin) for fact in facts)])
    lines = [_HEAD.replace("{sources}", sources), _UNIT, *_unit_lines(_likely_ids(header, by_name), unit), "columns:\n"]
    own = None if unit is None else unit.column
    names = [name for name, _ in header]
    problems: list[Problem] = []
    for name, storage in header:
        if name != own:
            typed = "" if untyped else storage
            said = [_fitted(fact, typed) for fact in by_name.get(name, [])]
            lines += [f"{line}\n" for line in _column(name, typed, said, problems, names)]
    if problems:
        raise SchemaError(problems)
    return "".join(lines)


def _check_names(header: Sequence[tuple[str, str]], *, names_are_right: bool) -> None:
    odd = 0 if names_are_right else unlike_names([name for name, _ in header])
    if odd:
        rule = f"{odd} of its {len(header)} columns have a name that looks like a value, appears twice or is missing."
        fix = "If its first line is a row, give header=False with names=, one for each column."
        fix += " If these are names, give names_are_right=True."
        unlike = Problem("table", rule, fix)
        # Beside other names that look like values, equal ones are most likely values, too.
        only_repeated = not unlike_names(list(dict.fromkeys(name for name, _ in header)))
        raise SchemaError([unlike, *(_repeated(header) if only_repeated else ())])
    repeated = _repeated(header)
    if repeated:
        raise SchemaError(repeated)


def _repeated(header: Sequence[tuple[str, str]]) -> list[Problem]:
    """Columns of the same name, by position: if the first line is a row, its values are not to be shown."""
    positions: dict[str, list[int]] = {}
    for position, (name, _) in enumerate(header, 1):
        if name:
            positions.setdefault(name, []).append(position)
    several = [(", ".join(map(str, at[:-1])), at[-1]) for at in positions.values() if len(at) > 1]
    fix = "Rename all but one."
    return [Problem("table", f"columns {first} and {last} have the same name.", fix) for first, last in several]


def _facts_by_name(names: Sequence[str], facts: Iterable[ColumnFacts]) -> dict[str, list[ColumnFacts]]:
    """The facts about each column, in the order in which they were given; spelling may differ in case and spaces."""
    known, plain = set(names), spellings(names)
    found: dict[str, list[ColumnFacts]] = {}
    met: dict[str, bool] = {}
    headings: dict[str, str] = {}
    for fact in facts:
        name = fact.name if fact.name in known else plain(fact.name)
        met[fact.origin] = met.get(fact.origin, False) or bool(name)
        headings[fact.origin] = fact.heading
        if name:
            found.setdefault(name, []).append(fact)
    strange = [origin for origin, any_met in met.items() if not any_met]
    if strange:
        rule, fix = "names none of the table's columns", "Check that it is about this table."
        under = {origin: f" under its heading {shown(headings[origin])}" if headings[origin] else "" for origin in met}
        raise SchemaError([Problem(origin, f"{rule}{under[origin]}.", fix) for origin in strange])
    return found


def _likely_ids(header: Sequence[tuple[str, str]], facts: Mapping[str, Sequence[ColumnFacts]]) -> list[str]:
    """Columns that tell units apart, by what codebooks say or by name; those of people first."""
    told = [name for name, said in facts.items() if any(fact.left_out.startswith(AN_IDENTIFIER) for fact in said)]
    named = [name for name, _ in header if looks_like_an_id(name) or guess_of(name) == AN_ID]
    return sorted(dict.fromkeys([*told, *named]), key=lambda name: (not _OF_PEOPLE.search(name), name not in told))


def _unit_lines(likely: Sequence[str], unit: Unit | None) -> Iterator[str]:
    if unit is not None:
        column = "" if unit.column is None else f"{{column: {text_token(unit.column)}, rows: {unit.rows}}}"
        yield f"unit: {column or 'row'}\n"
        return
    if not likely:
        yield f"unit: {DECIDE}\n"
        return
    if len(likely) > 1:
        yield f"# These may be ids, too: {', '.join(map(text_token, likely[1:]))}.\n"
    why = f"{text_token(likely[0])} seems to identify people; if nobody has more than one row, `unit: row`"
    yield f"unit: {{column: {text_token(likely[0])}, rows: {DECIDE}}}  # guess: {why}\n"


def _column(
    name: str, storage: str, facts: Sequence[ColumnFacts], problems: list[Problem], beside: Sequence[str]
) -> Iterator[str]:
    if not name or "\0" in name:
        yield "  # Left out: a column without a usable name. Rename it in the table to keep it."
        return
    stored = _kind_of(storage)
    if storage and stored is None:
        yield f"  # Left out: {text_token(name)} has the type {text_token(storage)}, which no kind of column can hold."
        return
    said = _merged(facts)
    storage = storage or next((fact.storage for fact in facts if fact.storage), "")
    stored = stored or _kind_of(storage)
    reason = next((fact.left_out for fact in facts if fact.left_out), "")
    if reason:
        yield f"  # Left out: {text_token(name)}; {reason}. Declare it to keep it, if it may be released."
        return
    guess = guess_of(name, storage, title=str(said.get("title", "")), beside=beside)
    if "kind" not in said and guess is not None and not guess.said:
        yield f"  # Left out: {text_token(name)}; {guess.why}. Declare it to keep it, if it may be released."
        return
    certain = storage and stored != "category" and (guess is None or not guess.kind or "tz=" in storage)
    if "kind" not in said and certain:
        said = {"kind": stored, **said}
    if "kind" in said:
        said = _with_storage(_measured(said), storage)
        doubt = next((fact.doubt for fact in facts if "kind" in fact.said), "")
        yield from _declared(name, said, guess, storage, doubt)
        problems += _contradictions(name, said, facts)
    else:
        yield from _guessed(name, said, guess, storage)


def _kind_of(storage: str) -> str | None:
    return next((kind for form, kind in _KINDS if re.fullmatch(form, storage)), None)


def _measured(said: Mapping[str, object]) -> dict[str, object]:
    """The keys with the unit of measurement that the title of a number names."""
    unit = measured_in(str(said.get("title", ""))) if said.get("kind") in ("integer", "float") else ""
    return {**said, "measured_in": unit} if unit and "measured_in" not in said else dict(said)


def _fitted(fact: ColumnFacts, storage: str) -> ColumnFacts:
    """What a public table shows, for a column whose own storage type decides the kind; codebooks are believed."""
    stored, kind = _kind_of(storage), fact.said.get("kind")
    whole = all(re.fullmatch(r"-?\d+", label) for label in fact.shown or ("",))
    if fact.shown is None or stored is None or kind is None or storage == "string" or storage == "large_string":
        return fact
    shared = {key: value for key, value in fact.said.items() if key in _SHARED}
    lower, upper = fact.said.get("lower"), fact.said.get("upper")
    said: dict[str, object] = {"kind": stored, **shared}
    match stored, kind:
        case "category", "integer" | "float" | "date" | "datetime" | "time" | "boolean":
            said = {"kind": "category", "labels": fact.shown, **shared} if fact.shown else shared
        case ("integer" | "float", "category") if whole:
            said = dict(fact.said)
        case ("integer", "integer") | ("float", "float") | ("category", _):
            said = dict(fact.said)
        case "float", "integer":
            # The public numbers are whole, but this column could hold others.
            said |= {"lower": float(str(lower)), "upper": float(str(upper))}
        case "integer", "float":
            assert isinstance(lower, float)
            assert isinstance(upper, float)
            said |= {"lower": math.floor(lower), "upper": math.ceil(upper)}
        case "date" | "datetime", "date" | "datetime" if lower is not None:
            said |= _days_or_instants(stored, lower, upper)
        case "integer" | "float", _:
            said = shared
    return dataclasses.replace(fact, said=said)


def _days_or_instants(kind: str, *ends: object) -> dict[str, object]:
    """Bounds as days, or as the first and the last second of them."""
    said: dict[str, object] = {}
    for key, end, time in zip(("lower", "upper"), ends, (dt.time(), dt.time(23, 59, 59)), strict=True):
        assert isinstance(end, dt.date)
        day = dt.date(end.year, end.month, end.day)
        said[key] = dt.datetime.combine(day, time) if kind == "datetime" else day
    return said


def _merged(facts: Sequence[ColumnFacts]) -> dict[str, object]:
    """What all facts say together: the kind of the first that states one, and keys that such a column has."""
    kind = next((fact.said["kind"] for fact in facts if "kind" in fact.said), None)
    said: dict[str, object] = {} if kind is None else {"kind": kind}
    allowed = _keys_of_kind(str(kind)) if kind is not None else _SHARED
    used: list[str] = []
    for fact in facts:
        fits = fact.said.get("kind", kind) == kind
        new = {
            key: value for key, value in fact.said.items() if key not in said and key in (allowed if fits else _SHARED)
        }
        said |= new
        if new or (fits and "kind" in fact.said):
            used.append(fact.origin)
    if used:
        said["note"] = f"from {' and '.join(dict.fromkeys(used))}"
    return said


_SHARED = frozenset({"missing", "title", "description", "missing_values"})


def _keys_of_kind(kind: str) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(KINDS[kind])) - {"name", "storage", "note"}


def _with_storage(said: Mapping[str, object], storage: str) -> dict[str, object]:
    kept = re.sub(r", tz=.*\]", "]", storage)
    kind = str(said["kind"])
    made = dict(said)
    if kept in STORAGE[kind][1:] and "storage" not in said and _holds(kept, said):
        made["storage"] = kept
    if kind == "datetime" and "tz=" in storage and "zone" not in made:
        zone = storage.partition("tz=")[2].rstrip("]")
        # A fixed offset such as +02:00 is no zone: only a person knows which zone it stood for.
        made["zone"] = zone if zone[:1].isalpha() else None
    for key, value in made.items():
        if isinstance(value, dt.datetime):
            made[key] = value.replace(tzinfo=dt.UTC) if "zone" in made and value.tzinfo is None else value
    return made


def _holds(storage: str, said: Mapping[str, object]) -> bool:
    """Whether numbers of that type can be written for what is said; labels such as "n/a" or "01" cannot."""
    labels = said.get("labels")
    if "int" not in storage or not isinstance(labels, tuple):
        return True
    return all(re.fullmatch(r"-?(0|[1-9]\d*)", str(label)) for label in labels)


def _required(kind: str) -> tuple[str, ...]:
    return {"category": ("labels",), "time": ()}.get(kind, ("lower", "upper") if kind in _NUMBERS else ())


_NUMBERS = ("integer", "float", "date", "datetime")


def _declared(
    name: str, said: Mapping[str, object], guess: Guess | None, storage: str, doubt: str = ""
) -> Iterator[str]:
    """A column whose kind is known; what its kind needs and nobody said is a guess or open."""
    kind = str(said["kind"])
    before, start = key_lines(text_token(name), 2)
    yield from [*before, f"{start}  # guess: {doubt}" if doubt else start]
    yield from said_lines({"kind": kind}, 4)
    fitting = guess.said if guess is not None and guess.kind == kind else {}
    for key in _required(kind):
        if key in said:
            yield from said_lines({key: said[key]}, 4)
        elif key in fitting and guess is not None:
            yield f"    {key}: {said_flow(fitting[key])}  # guess: {guess.why}"
        else:
            torn = f" ({guess.why})" if guess is not None and guess.said and not guess.kind else ""
            yield f"    {key}: {DECIDE}  # {_hint(kind, key, storage)}{torn}"
    if "zone" in said and said["zone"] is None:
        yield f"    zone: {DECIDE}"
    rest = {key: value for key, value in said.items() if key not in ("kind", *_required(kind))}
    rest = {key: value for key, value in rest.items() if value is not None}
    yield from said_lines({"missing": True, **rest} if "missing" not in rest else rest, 4)
    if _may_pile_up_at_zero(said):
        yield "    # special: [0] gives exact zeros a code of their own, if many rows hold one"


def _may_pile_up_at_zero(said: Mapping[str, object]) -> bool:
    """Whether zero shares a bin with other values, by bounds that somebody stated."""
    lower, upper = said.get("lower"), said.get("upper")
    if not isinstance(lower, int | float) or not isinstance(upper, int | float) or "bins" in said or "special" in said:
        return False
    return lower <= 0 <= upper and (said["kind"] == "float" or upper - lower >= 100)


def _hint(kind: str, key: str, storage: str) -> str:
    if key == "labels":
        return "the full list, as [first, second]; if unknown, `kind: open_category`"
    form = _BOUND_FORMS.get(kind, "") + ("+00:00" if "tz=" in storage else "")
    return f"the least value that can occur{form}" if key == "lower" else "the greatest value that can occur"


def _guessed(name: str, said: Mapping[str, object], guess: Guess | None, storage: str) -> Iterator[str]:
    """A column of which nobody said the kind: a guess as a whole, or open."""
    before, start = key_lines(text_token(name), 2)
    if guess is None or not guess.kind:
        hint = _WHICH_KIND if guess is None else guess.why
        yield from [*before, start, f"    kind: {DECIDE}  # {hint}"]
        yield from said_lines(said, 4)
        return
    # What a codebook said about a key that the guessed kind shares is better than the guess.
    whole = _with_storage(_measured({**guess.said, **said}), storage)
    line = f"{start} {said_flow(whole)}  # guess: {guess.why}"
    if len(line) <= _WIDTH or not said:
        yield from [*before, line]
    else:
        yield from [*before, f"{start}  # guess: {guess.why}"]
        yield from said_lines(whole, 4)


def _contradictions(name: str, said: Mapping[str, object], facts: Sequence[ColumnFacts]) -> list[Problem]:
    """What keeps a column that is said completely from being a valid one; told under the names of its sources."""
    kind = str(said["kind"])
    if any(key not in said for key in _required(kind)) or ("zone" in said and said["zone"] is None):
        return []
    built: type[Column] = KINDS[kind]  # type: ignore[assignment]
    column = built(name=name, **{key: value for key, value in said.items() if key != "kind"})  # type: ignore[arg-type]
    origin = " and ".join(dict.fromkeys(fact.origin for fact in facts)) or "the table"
    return [dataclasses.replace(problem, where=f"{origin}: {problem.where}") for problem in column_problems(column)]
