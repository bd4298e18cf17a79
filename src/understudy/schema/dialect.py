"""How the text file that holds a table is written: declared by a person, never found out from rows.

A dialect is public. What it leaves unsaid has a default: comma or tab by the suffix of the file, UTF-8, a point in
numbers, names in the first line, one line per row. It can be declared in a schema (`file:`), by arguments, or as part
of the location itself, which is text and so can be handed on everywhere:
`people.csv::delimiter=semicolon&encoding=latin-1`.
"""

import codecs
import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from understudy.errors import Problem, UsageError, shown

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
    quoted fields hold line ends.
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
            found.append(Problem("encoding", rule, "Usual are utf-8, latin-1, cp1252, utf-16, shift_jis and gb18030."))
        if self.decimal is not None and self.decimal not in _DECIMALS:
            found.append(Problem("decimal", f'must be "." or ",", got {shown(self.decimal)}.'))
        if self.decimal is not None and self.decimal == self.delimiter:
            found.append(Problem("decimal", "is the delimiter too.", "Declare another delimiter."))
        for key in ("multiline", "header"):
            given: object = getattr(self, key)
            if given is not None and not isinstance(given, bool):
                found.append(Problem(key, f"must be true or false, got {shown(given)}."))
        if self.header is False and self.names is None:
            found.append(Problem("header", "is false, so names must say what the columns are called."))
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
    rule = f"must be one ASCII character that is no letter, digit, quote or line end, got {shown(delimiter)}."
    return [Problem("delimiter", rule, f"Or one of the words {', '.join(WORDS)}.")]


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
        return f"{shown(encoding)} is neither UTF-16 nor an encoding in which ASCII is ASCII."
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
