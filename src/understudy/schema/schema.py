"""Schema: the ordered columns of a table, who is protected, the rules known beforehand, and how its file is written.

A unit says who is protected, and how many rows one of them may contribute. Rules are combinations of columns that
cannot occur, known without looking at the data.

Names that may not be names
---------------------------
The first line of a table may be a row, or have one merged into it. Such a row belongs to a person, and names are shown:
in drafts, messages and statements. So a table is judged by its names alone, by public rules, before any of them is
shown. The rules can be wrong both ways. A real column may be called "2019", which is why a person can vouch for the
names of a draft. And no rule can tell a town from a heading, which is why messages never list names that the schema
does not declare.

How a text file is written
--------------------------
A dialect is declared by a person, never found out from rows. What it leaves unsaid has a default: comma or tab by the
suffix of the file, UTF-8, a point in numbers, names in the first line, one line per row. It can be declared in a schema
(`file:`), by arguments, or as part of the location itself, which is text and so can be handed on everywhere:
`people.csv::delimiter=semicolon&encoding=latin-1`.
"""

import codecs
import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from understudy.errors import Problem, SchemaError, UsageError, nearest, shown
from understudy.notebook import counted, shown_as_html
from understudy.schema.columns import (
    Boolean,
    Category,
    Column,
    Date,
    Datetime,
    Derived,
    Float,
    Integer,
    NumberColumn,
    Point,
    Time,
    bin_starts,
    code_names,
    number_of,
)
from understudy.schema.table_check import TableCheck

if TYPE_CHECKING:
    from understudy.schema.draft import Draft
    from understudy.schema.edit import SchemaEditor


WORDS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}
"""Names of delimiters that are awkward to type."""
MOST_NAMES = 100_000
_DECIMALS = (".", ",")
_NO_DELIMITER = re.compile(r'[^\x01-\x7f]|[0-9A-Za-z"\r\n]')
_ASCII = "".join(map(chr, range(128)))
_ESCAPES = r"\u0041 \x41 +AGE- ~{ &#65; %41 =41"
_KEYS = ("delimiter", "encoding", "decimal", "header", "names", "multiline", "most_bytes")
_DECLARED = re.compile(rf"(.*?)::((?:(?:{'|'.join(_KEYS)})=[^&:]*)(?:&(?:{'|'.join(_KEYS)})=[^&:]*)*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What was said about a text file; None where nothing was.

    `names` says what its columns are called: the file has no header line then or, where `header` is true, one whose
    names these stand for. `decimal` is the sign in numbers of columns that do not declare their own. `multiline` lets
    quoted fields contain line breaks.
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    names: tuple[str, ...] | None = None
    multiline: bool | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.delimiter, str):
            object.__setattr__(self, "delimiter", WORDS.get(self.delimiter.lower(), self.delimiter))
        names: object = self.names
        if isinstance(names, list):
            object.__setattr__(self, "names", tuple(names))

    @property
    def said(self) -> dict[str, object]:
        """What was declared, by name."""
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    def over(self, other: "Dialect | None") -> "Dialect":
        """This, with what it leaves unsaid taken from the other."""
        return self if other is None else dataclasses.replace(other, **self.said)  # type: ignore[arg-type]

    def problems(self) -> list[Problem]:
        """Everything that is wrong with it, under the names of its fields."""
        found = [*_delimiter_problems(self.delimiter), *_names_problems(self.names)]
        if self.encoding is not None and (rule := _encoding_rule(self.encoding)):
            found.append(
                Problem("encoding", rule, "Common ones are utf-8, latin-1, cp1252, utf-16, shift_jis and gb18030.")
            )
        if self.decimal is not None and self.decimal not in _DECIMALS:
            found.append(Problem("decimal", f'must be "." or ",", got {shown(self.decimal)}.'))
        if self.decimal is not None and self.decimal == self.delimiter:
            found.append(Problem("decimal", "is the delimiter too.", "Declare another delimiter."))
        for key in ("multiline", "header"):
            given: object = getattr(self, key)
            if given is not None and not isinstance(given, bool):
                found.append(Problem(key, f"must be true or false, got {shown(given)}."))
        if self.header is False and self.names is None:
            found.append(Problem("header", "is false, so names must list the column names."))
        return found

    @property
    def first_line_names(self) -> bool:
        """Whether the first line names columns, be it by names that others stand for, and is no row."""
        return self.names is None or bool(self.header)


def _delimiter_problems(delimiter: object) -> list[Problem]:
    if delimiter is None:
        return []
    if isinstance(delimiter, str) and len(delimiter) == 1 and not _NO_DELIMITER.fullmatch(delimiter):
        return []
    rule = f"must be one ASCII character other than a letter, digit, quote or line end, got {shown(delimiter)}."
    return [Problem("delimiter", rule, f"You may also give one of the words {', '.join(WORDS)}.")]


def _names_problems(names: object) -> list[Problem]:
    if names is None:
        return []
    if not isinstance(names, tuple) or not names or not all(isinstance(name, str) and name for name in names):
        return [Problem("names", "must list the names of all columns, none of them empty.")]
    if len(names) > MOST_NAMES:
        return [Problem("names", f"must be at most {MOST_NAMES:,}, got {len(names):,}.")]
    if len(set(names)) < len(names):
        return [Problem("names", "must differ from each other.")]
    return []


def _encoding_rule(encoding: object) -> str:
    """What keeps Python from reading text files in that encoding, if anything does."""
    if isinstance(encoding, str) and is_wide(encoding):
        return ""
    try:
        known = isinstance(encoding, str) and encoding.isascii() and codecs.lookup(encoding) is not None
    except (LookupError, ValueError):
        known = False
    if not known:
        return f"{shown(encoding)} is not known."
    try:
        one_by_one = "".join(bytes([byte]).decode(str(encoding)) for byte in range(128))
        whole = _ASCII.encode("ascii").decode(str(encoding))
        one_by_one += _ESCAPES.encode("ascii").decode(str(encoding))
        bytes(range(128, 256)).decode(str(encoding), "replace")  # it must be able to go on after an error
    except (LookupError, ValueError, TypeError):
        one_by_one = whole = ""
    if one_by_one != _ASCII + _ESCAPES or whole != _ASCII:
        return f"{shown(encoding)} is neither UTF-16 nor an extension of ASCII."
    return ""


def plain_encoding(encoding: str | None) -> str:
    """The name Python has for an encoding; a declared UTF-8 with or without its mark is the default.

    >>> plain_encoding("Latin-1"), plain_encoding("UTF-8-SIG"), plain_encoding(None)
    ('iso8859-1', 'utf-8', 'utf-8')
    """
    name = codecs.lookup(encoding or "utf-8").name
    return "utf-8" if name in ("utf-8-sig", "ascii") else name


def is_wide(encoding: str) -> bool:
    """Whether it is UTF-16, in either order of bytes."""
    return re.sub(r"[-_ ]", "", encoding.lower()) in ("utf16", "utf16le", "utf16be")


def require_dialect(dialect: Dialect) -> Dialect:
    """The dialect, if nothing is wrong with it.

    Raises:
        UsageError: naming the argument.
    """
    found = dialect.problems()
    if found:
        raise UsageError(found[0].where, found[0].rule, found[0].fix)
    return dialect


def located(location: str, dialect: Dialect, most_bytes: int | None = None) -> str:
    """The location with what is declared about it, as one text.

    >>> located("people.csv", Dialect(delimiter=";", names=("a", "b,c")))
    'people.csv::delimiter=%3B&names=a%2Cb%252Cc'
    """
    where, before, limit = parted(location)
    said = dialect.over(before).said
    pairs = {key: value for key, value in said.items() if key != "names"}
    if "names" in said:
        pairs["names"] = ",".join(quote(name, safe="") for name in dialect.over(before).names or ())
    limit = limit if most_bytes is None else most_bytes
    pairs |= {} if limit is None else {"most_bytes": limit}
    written = "&".join(f"{key}={quote(str(value), safe='')}" for key, value in pairs.items())
    return f"{where}::{written}" if written else where


def parted(location: str) -> tuple[str, Dialect, int | None]:
    """The place, what the location declares about it, and the most bytes it may expand to.

    >>> parted("people.csv::delimiter=%3B&names=a%2Cb")[1].said
    {'delimiter': ';', 'names': ('a', 'b')}
    """
    declared = _DECLARED.fullmatch(location)
    if declared is None:
        return location, Dialect(), None
    pairs = dict(pair.split("=", 1) for pair in declared[2].split("&"))
    said: dict[str, str] = {key: unquote(value) for key, value in pairs.items()}
    return declared[1], require_dialect(_from_texts(said)), _most_bytes(said.get("most_bytes"))


def _from_texts(said: Mapping[str, str]) -> Dialect:
    names = tuple(unquote(name) for name in said["names"].split(",")) if "names" in said else None
    multiline, header = (
        said[key].lower() in ("true", "1", "yes") if key in said else None for key in ("multiline", "header")
    )
    return Dialect(said.get("delimiter"), said.get("encoding"), said.get("decimal"), names, multiline, header)


def _most_bytes(text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"[1-9][0-9]{0,18}", text):
        raise UsageError("most_bytes", f"must be a whole number of bytes above 0, got {shown(text)}.")
    return int(text)


_TEXT_STORAGE = re.compile("(?i)string|char|text|utf8")
LONGEST = 256
"""No system that names columns allows more; survey questions used as headings stay below, too."""
_NOTHING = frozenset({"na", "n/a", "nan", "null", "none", "nil", "true", "false", "inf", "-inf", "+inf", "infinity"})
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DIGITS_ALONE = re.compile(r"[^a-z]*\d[^a-z]*")  # numbers, amounts, dates, times, telephone numbers
_WITH_LETTERS = re.compile(
    rf"""[+-]?[\d.,]*\d[\d.,]*e[+-]?\d+                                # 1.5e-3
    | \d{{1,4}}[-/.]\d{{1,2}}[-/.]\d{{1,4}}[t\ ].*\d.*                 # 2020-05-05T10:00:00Z
    | \d{{1,2}}:\d{{2}}(:\d{{2}}(\.\d+)?)?\ ?([ap]\.?m\.?|z)           # 10:30 am
    | \d{{1,2}}(st|nd|rd|th)?\.?[-\ ]?{_MONTH},?[-\ ]?(\d{{2}}|\d{{4}}) # 5 May 2020
    | {_MONTH}\ \d{{1,2}}(st|nd|rd|th)?,?\ \d{{4}}                     # May 5, 2020
    | [^@\s]+@[^@\s]+\.[^@\s]+                                         # somebody@example.org
    | https?://\S+
    | [0-9a-f]{{8}}-([0-9a-f]{{4}}-){{3}}[0-9a-f]{{12}}                # a UUID
    | [$€£¥]\ ?\d.* | \d[\d.,\ ]*(eur|usd|gbp|chf|jpy)""",
    re.VERBOSE | re.IGNORECASE,
)


def looks_like_a_value(name: str) -> bool:
    """Whether the name reads as a number, amount, date, time, address, id or absent value; judged by itself alone.

    >>> [looks_like_a_value(name) for name in ("2019", "6'2", "2020-05-05", "a@b.org", "NA", "1e5", "€ 12.00")]
    [True, True, True, True, True, True, True]
    >>> [looks_like_a_value(name) for name in ("age", "V162", "2nd dose", "B19001_001E", "May", "q1", "€", "")]
    [False, False, False, False, False, False, False, False]
    """
    text = name.strip().casefold()
    if len(text) > LONGEST or text in _NOTHING:
        return True
    letters = any(character.isalpha() for character in text)
    return bool((_WITH_LETTERS if letters else _DIGITS_ALONE).fullmatch(text))


_PEOPLE = (
    "person|people|patient|customer|client|employee|student|pupil|respondent|participant|member|user|citizen|voter"
)
_LIKE_AN_ID = re.compile(
    rf"""(?i:(^|[_\W])(id|uuid|guid|ssn|key|e[_\W]?mail([_\W]?address)?)$)
    | (?i:(^|[_\W])({_PEOPLE}|passport|social[_\W]?security)[_\W]?(id|no|nr|num|number|code|key)$)
    | (?i:^(person|patient|customer|client|employee|respondent|participant|username|full[_\W]?name)$)
    | [a-z]I[dD]$""",
    re.VERBOSE,
)


def looks_like_an_id(name: str) -> bool:
    """Whether the name reads as that of a column which tells people, or other units, apart.

    >>> [looks_like_an_id(name) for name in ("id", "patient_id", "personId", "Person", "SSN", "e-mail", "Patient No")]
    [True, True, True, True, True, True, True]
    >>> [looks_like_an_id(name) for name in ("covid", "paid", "age", "number_of_persons", "member", "email_sent", "")]
    [False, False, False, False, False, False, False]
    """
    return bool(_LIKE_AN_ID.search(name.strip()))


def unlike_names(names: Sequence[str]) -> int:
    """How many of these columns have a name that looks like a value, appears twice, or is absent.

    A first or last column without a name is nothing unusual: an index is written so, and a delimiter at the line's end.

    >>> unlike_names(["", "age", "city"]), unlike_names(["F", "31", "", "Rome"]), unlike_names(["a", "b", "a"])
    (0, 2, 2)
    """
    times = Counter(names)
    inside = range(1, len(names) - 1)
    return sum(
        looks_like_a_value(name) or (times[name] > 1 and name != "") or (not name.strip() and position in inside)
        for position, name in enumerate(names)
    )


def header_problems(
    present: Sequence[str], modelled: Sequence[str], derived: Sequence[str], unit: str | None
) -> list[Problem]:
    """What keeps a table with the names `present` from being read under a schema that declares the others."""
    wanted = [*modelled, *([] if unit is None else [unit])]
    if not set(wanted) & set(present) and not any(same_but_for_spelling(name, present) for name in wanted):
        # Most likely the first line is a row, not a header: then none of its values may be quoted.
        fix = f"Its first line must name them as the schema does: {', '.join(wanted)}."
        return [Problem("table", "holds none of the columns that the schema declares.", fix)]
    others = [name for name in present if name not in {*wanted, *derived}]
    found = [_absent(name, others) for name in wanted if name not in present]
    repeated = [name for name in dict.fromkeys([*wanted, *derived]) if present.count(name) > 1]
    found += [Problem(f"column {name!r}", "appears twice in the table.", "Rename one.") for name in repeated]
    return found + _undeclared_problems(others)


def _absent(name: str, others: Sequence[str]) -> Problem:
    """A declared column that the table lacks. Other names in the table are not listed: they may be a row's values."""
    spelled = same_but_for_spelling(name, others)
    side_by_side = f"Names must be equal: schema {shown(name)}, file {shown(spelled)}."
    fix = side_by_side if spelled else "Write the name as in the table's header, or remove the column from the schema."
    return Problem(f"column {name!r}", "is declared in the schema but not in the table.", fix)


def _undeclared_problems(names: Sequence[str]) -> list[Problem]:
    """What is wrong with the names of columns that the schema does not declare; they would be shown as left out."""
    found = []
    odd = sum(map(looks_like_a_value, names))
    if odd:
        rule = f"has columns that the schema does not declare, and {odd} of their names look like values."
        fix = "Check that its first line is a header with no row merged into it. If so, declare, rename or remove them."
        found.append(Problem("table", rule, fix))
    if len(set(names)) < len(names):
        rule = "has several columns of the same name that the schema does not declare."
        found.append(Problem("table", rule, "Check that its first line is a header. If so, rename them."))
    return found


def same_but_for_spelling(name: str, present: Sequence[str]) -> str:
    """The one name in the table that differs from `name` in case, spaces and punctuation alone; else nothing.

    Any other likeness may be the likeness of a value: a header merged with a row ends in one, as in "cityRome".

    >>> same_but_for_spelling("birth_date", ["Sex", " Birth-Date"]), same_but_for_spelling("city", ["cityF"])
    (' Birth-Date', '')
    """
    return spellings(present)(name)


def spellings(present: Sequence[str]) -> Callable[[str], str]:
    """`same_but_for_spelling` among these names, for many names."""
    found: dict[str, list[str]] = {}
    for one in present:
        found.setdefault(_letters(one), []).append(one)

    def spelled(name: str) -> str:
        same = found.get(_letters(name), [])
        return same[0] if len(same) == 1 else ""

    return spelled


def _letters(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


@dataclass(frozen=True, slots=True)
class Unit:
    """The privacy unit: one row (no `column`), or everybody named in an id column with at most `rows` rows each.

    Neighbouring tables differ by all rows of one unit (added or removed). Rows beyond the bound are left out before
    counting, so one unit moves any partition of the rows by at most `rows`.
    """

    column: str | None = None
    rows: int = 1
    note: str = ""

    @property
    def sensitivity(self) -> int:
        """Most rows one unit may contribute, so the L1 (and L2) distance of neighbouring counts."""
        return self.rows


@dataclass(frozen=True, slots=True)
class Range:
    """Values from `lower` to `upper`, both included; None leaves a side open."""

    lower: Point | None = None
    upper: Point | None = None


@dataclass(frozen=True, slots=True)
class Impossible:
    """No record satisfies all conditions at once. A condition is a set of labels (None for missing) or a range.

    Such cells are never emitted: a model gives them no mass. Rows that claim one still count, in every table they are
    part of, because leaving them out would change nothing that is released about the possible cells. A range
    covers bins only: special values are named as labels, by their text, and missing as None.
    """

    when: Mapping[str, tuple[str | None, ...] | Range]
    note: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.when, Mapping):
            object.__setattr__(self, "when", {name: _frozen(said) for name, said in self.when.items()})


def _frozen(said: object) -> object:
    return tuple(said) if isinstance(said, list) else said


def labels_for_rules(column: Column) -> tuple[str, ...]:
    """The texts by which a rule may name codes of this column, in code order, missing apart.

    >>> labels_for_rules(Integer(name="income", lower=0, upper=9, special=(998, 999)))
    ('998', '999')
    """
    match column:
        case Category():
            return column.labels if column.other is None else (*column.labels, column.other)
        case Boolean():
            return ("false", "true")
        case Integer():
            return tuple(str(value) for value in column.special)
        case Float():
            return tuple(str(float(value)) for value in column.special)
        case _:
            return ()


def bins_inside(column: NumberColumn, said: Range) -> list[bool] | None:
    """Which bins lie wholly in the range; None if some bin lies half in it, or if bins are chosen privately.

    Both ends of the range are included. On a float axis an end that equals an edge, up to rounding, fits it.

    >>> bins_inside(Integer(name="age", lower=0, upper=3), Range(upper=1))
    [True, True, False, False]
    """
    starts = bin_starts(column)
    if starts is None:
        return None
    whole = not isinstance(column, Float)
    first, last = number_of(column.lower), number_of(column.upper)
    # On whole numbers a bin that starts at 20 with the next at 30 holds 20 … 29.
    ends = [start - 1 if whole else start for start in starts[1:]] + [last]
    slack = 0 if whole else abs(last - first) * 1e-9
    low = first if said.lower is None else number_of(said.lower)
    high = last if said.upper is None else number_of(said.upper)
    inside = [low - slack <= start and end <= high + slack for start, end in zip(starts, ends, strict=True)]
    for start, end, fits in zip(starts, ends, inside, strict=True):
        apart = end < low or start > high if whole else end <= low + slack or start >= high - slack
        if not fits and not apart:
            return None
    return inside


def _held(column: Column) -> str:
    """What a column may hold, on one short line."""
    labels = getattr(column, "labels", None)
    if labels is not None:
        more = f", … ({len(labels):,} in all)" if len(labels) > SHOWN_LABELS else ""
        return ", ".join(labels[:SHOWN_LABELS]) + more
    ends = [getattr(column, end, None) for end in ("lower", "upper")]
    return "" if None in ends else f"{ends[0]} to {ends[1]}"


SHOWN_LABELS = 6


@dataclass(frozen=True, slots=True)
class Schema:
    """Public knowledge about a table. Checked at construction: a `Schema` that exists is a valid one.

    Raises:
        SchemaError: with every problem found, not only the first.
    """

    columns: tuple[Column, ...]
    unit: Unit
    rules: tuple[Impossible, ...] = ()
    title: str = ""
    note: str = ""
    unreadable: str = "keep"
    """What becomes of values that cannot be read in columns with neither missing nor other: `keep` gives them a code of
    their own, `drop` leaves out the rows that hold one."""
    missing_values: tuple[str, ...] | None = None
    """The texts that mean "no value" in all columns that do not list their own; None for `MISSING_VALUES`."""
    file: Dialect | None = None
    """How the text file that holds the private table is written, where arguments do not say otherwise."""

    def __repr__(self) -> str:
        named = f" {self.title!r}" if self.title else ""
        held = f"{counted(len(self.columns), 'column')}, {counted(len(self.rules), 'rule')}"
        return f"<Schema{named}: {held}, unit {self.unit.column or 'row'}>"

    def _repr_html_(self) -> str:
        """For notebooks: each column with its kind and what it may hold."""
        facts = [("unit", self.unit.column or "row"), ("most rows of one unit", f"{self.unit.rows:,}")]
        facts += [("rules", f"{len(self.rules):,}")] if self.rules else []
        rows = [(one.name, type(one).__name__, _held(one), getattr(one, "title", "")) for one in self.columns]
        return shown_as_html(self.title or "Schema", facts, ("column", "kind", "holds", "title"), rows, self.note)

    def __post_init__(self) -> None:
        from understudy.schema.checks import problems_of  # `check` needs the types above

        for field in ("columns", "rules", "missing_values"):
            given = getattr(self, field)
            if isinstance(given, list):
                object.__setattr__(self, field, tuple(given))
        found = problems_of(self)
        if found:
            raise SchemaError(found)

    @property
    def names(self) -> tuple[str, ...]:
        """All column names in output order, derived ones included."""
        return tuple(column.name for column in self.columns)

    @property
    def titles(self) -> dict[str, str]:
        """The title and the unit of measurement of every column that has one."""
        said = {}
        for column in self.columns:
            unit = getattr(column, "measured_in", "")
            said[column.name] = " ".join(part for part in (column.title, unit and f"({unit})") if part)
        return {name: title for name, title in said.items() if title}

    @property
    def modelled(self) -> tuple[Column, ...]:
        """The columns that are counted and modelled: all but the derived ones, with the table's missing values."""
        return tuple(self._complete(column) for column in self.columns if not isinstance(column, Derived))

    def column(self, name: str) -> Column:
        """The column of that name, with the table's missing values; an unknown name raises with the closest one."""
        for column in self.columns:
            if column.name == name:
                return self._complete(column)
        raise UsageError(f"column {name!r}", "is not in the schema.", nearest(name, self.names))

    def _complete(self, column: Column) -> Column:
        """The column with the missing values of the table, where it lists none of its own."""
        if self.missing_values is None or column.missing_values is not None or isinstance(column, Derived):
            return column
        return replace(column, missing_values=self.missing_values)

    def header_problems(self, names: Iterable[str]) -> list[Problem]:
        """What keeps a table with these column names from being read under this schema."""
        derived = [column.name for column in self.columns if isinstance(column, Derived)]
        modelled = [column.name for column in self.modelled]
        return header_problems(list(names), modelled, derived, self.unit.column)

    def unit_remark(self, header: Iterable[str] = ()) -> str:
        """That rows may be protected where people are meant, judged by names alone; empty if nothing hints at it.

        Args:
            header: the column names of the table, of which the schema may declare only some.
        """
        likely = [name for name in dict.fromkeys([*self.names, *header]) if looks_like_an_id(name)]
        if self.unit.column is not None or not likely:
            return ""
        one = len(likely) == 1
        names = ", ".join(map(shown, likely))
        return (
            f"{'column' if one else 'columns'} {names} {'looks like an identifier' if one else 'look like identifiers'}"
            " of people, but the unit of protection is one row: a person with several rows is protected less (3 rows: 3"
            " times the ε). If people can have several rows, name the column under unit and not under columns:"
            f" `unit: {{column: {likely[0]}, rows: the most rows of one person}}`."
        )

    def format_remark(self, header: Iterable[tuple[str, str]]) -> str:
        """Which dates and times are text without a stated form, so that only ISO is read; empty if none are.

        Args:
            header: names and storage types of the table's columns.
        """
        moments = [column for column in self.columns if isinstance(column, Date | Datetime | Time)]
        formless = {column.name for column in moments if column.format is None}
        names = [name for name, storage in header if name in formless and _TEXT_STORAGE.search(storage)]
        if not names:
            return ""
        columns = f"column {shown(names[0])} is" if len(names) == 1 else f"columns {', '.join(map(shown, names))} are"
        return (
            f"{columns} text in the table. Dates and times that are not in ISO form (2024-12-31, 18:05:00) need a"
            ' `format`, such as `format: "%d/%m/%Y"`; without one they cannot be read.'
        )

    @classmethod
    def from_yaml(cls, source: str | Path) -> "Schema":
        """Reads a schema file; raises SchemaError with all problems at once."""
        from understudy.schema.document import read_schema  # keeps YAML out of programs that build schemas in Python

        return read_schema(Path(source))

    @classmethod
    def draft(
        cls,
        table: object,
        *,
        like: object = None,
        codebook: "str | Path | Iterable[str | Path]" = (),
        unit: "Unit | str | None" = None,
        names_are_right: bool = False,
    ) -> "Draft":
        """A first schema for a table, of which only names and storage types are read, with what is open marked.

        Args:
            table: a frame, or the path of a file.
            like: a public table with columns of the same names; it is read.
            codebook: one or more files that describe the columns.
            unit: who is protected, if that is decided; "row" is `Unit()`.
            names_are_right: take names that look like values as names.

        Raises:
            InputError: a table cannot be used.
            SchemaError: a codebook cannot be understood, or what is said contradicts itself.
        """
        # Tables are opened above this package, which reads none; so the way there is not an import.
        made = import_module("understudy.counts.public").draft
        return made(table, like=like, codebook=codebook, unit=unit, names_are_right=names_are_right)  # type: ignore[no-any-return]

    @classmethod
    def edit(cls, text: str, where: str = "schema") -> "SchemaEditor":
        """An editor of a schema's text, finished or not, that keeps its comments and can go back.

        Raises:
            SchemaError: if the text is no YAML.
        """
        from understudy.schema.edit import SchemaEditor  # keeps YAML out of programs that build schemas in Python

        return SchemaEditor(text, where)

    @classmethod
    def of(cls, given: object) -> "Schema":
        """The schema itself, or the one in the file that is named.

        Raises:
            UsageError: for anything else.
        """
        if isinstance(given, str | Path):
            return cls.from_yaml(given)
        if not isinstance(given, Schema):
            raise UsageError("schema", f"must be a Schema or the path of its file, got a {type(given).__name__}.")
        return given

    def check(
        self,
        data: object,
        *,
        rows: bool = False,
        epsilon: float | None = None,
        delta: float = 0.0,
        ledger: object | None = None,
        dataset: str | None = None,
    ) -> TableCheck:
        """What a table looks like under this schema: its header and, with `rows=True`, how its values are read.

        A look at the rows is confidential. With `epsilon` (and `delta`) it has noise instead, is charged to `dataset`
        in `ledger` before a row is read, and may be shown to anybody.

        Args:
            data: a frame, a path or an opened table; without `rows` only its column names are looked at.
            rows: whether to look at the rows.
            epsilon, delta: the budget of a look with noise; none for an exact one.
            ledger, dataset: the ledger to charge, and the name in it.

        Raises:
            SchemaError, InputError: the header does not fit; every problem is listed.
        """
        verb = import_module("understudy.synthesizer.checking").check_table  # it reads rows, so it lies above
        paid = {"epsilon": epsilon, "delta": delta, "ledger": ledger, "dataset": dataset}
        found: TableCheck = verb(self, data, rows=rows, **paid)
        return found

    def to_yaml(self, target: str | Path) -> None:
        """Writes the schema so that `from_yaml` returns an equal one."""
        from understudy.schema.document import write_schema

        write_schema(self, Path(target))


def without_columns(schema: Schema, names: Collection[str]) -> Schema:
    """The modelled columns that are not named (as columns, or as parts of a split one), protecting nobody.

    Derived columns are left out, and so are rules and hierarchies about columns that are.

    Raises:
        SchemaError: if no column is left.
    """
    named = set(names)
    kept = [column for column in schema.modelled if column.name not in named and not named & set(code_names(column))]
    left = {column.name for column in kept}
    rules = tuple(rule for rule in schema.rules if set(rule.when) <= left)
    return replace(schema, unit=Unit(), rules=rules, columns=tuple(_alone(column, left) for column in kept))


def _alone(column: Column, left: set[str]) -> Column:
    """The column without its hierarchy, if the coarser column is left out."""
    if isinstance(column, Category) and column.within is not None and column.within not in left:
        return replace(column, within=None)
    return column
