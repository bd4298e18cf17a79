"""Every exception and warning of the package.

An error is an output: it says where, which rule, what was given and what to do next, and it never carries a value,
count or position taken from private rows. Each class also derives from the built-in a caller would expect, and
carries fields for programs. The command line turns `exit_code` into the exit status.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

PREDICATE = re.compile(
    r"\(|(?:"
    "and|answers|appears|applies|are|asks?|belongs|broke|can|cannot|contains|continues|costs?|could|differs?|do|does|ends?|"
    "exceeds|excludes|exists|expands|fits|follows|gets|gives|goes|hands|has|have|holds?|is|lacks|leads|leaves?|"
    "lets|lies|looks|makes|matches|may|must|names|needs?|opens|overlap|pays|pools|protects|reads|says|speaks|"
    "still|suggests|takes|uses|was|were|would"
    r")\b(?!,)"
)
"""How a rule begins that continues its place to one sentence; any other rule is a sentence of its own."""
_LINE = re.compile(r"(?::\d+|: ?)\Z")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: the place as the user wrote it, the rule (with what was given), the next step.

    >>> str(Problem("delta", "must be a number.")), str(Problem("copies_mode", "'some' is not known."))
    ('delta must be a number.', "copies_mode: 'some' is not known.")
    """

    where: str
    rule: str
    fix: str = ""

    def __str__(self) -> str:
        joint = " " if PREDICATE.match(self.rule) and not _LINE.search(self.where) else ": "
        return f"{self.where}{joint}{self.rule} {self.fix}".rstrip()


class UnderstudyError(Exception):
    """Base of all errors raised on purpose."""

    exit_code: ClassVar[int] = 1


class UnderstudyWarning(UserWarning):
    """A hazard in what was asked for, told by public facts alone; the run goes on. A note on the command line."""


class ColumnWarning(UnderstudyWarning):
    """What noisy answers show of a column that was hardly read; the command line tells it with the release."""


class UsageError(UnderstudyError, ValueError):
    """A call, an option or a name is wrong; nothing was read, charged or written."""

    exit_code: ClassVar[int] = 2

    def __init__(self, where: str, rule: str, fix: str = "") -> None:
        self.problem = Problem(where, rule, fix)
        super().__init__(str(self.problem))


class InputError(UsageError):
    """The container of the private table (not its rows) cannot be used: file missing, header wrong, format broken."""


class SchemaError(UnderstudyError, ValueError):
    """The schema has problems; all of them are listed at once."""

    exit_code: ClassVar[int] = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class BudgetError(UnderstudyError, ValueError):
    """A step asked for more privacy budget than is left; nothing was read."""

    exit_code: ClassVar[int] = 3

    def __init__(self, step: str, requested: str, left: str, fix: str) -> None:
        self.step, self.requested, self.left, self.fix = step, requested, left, fix
        super().__init__(str(Problem(step, f"asks for {requested}, but {left} is left.", fix)))


class LedgerError(UnderstudyError, RuntimeError):
    """The ledger cannot be read, written or trusted."""

    exit_code: ClassVar[int] = 3

    def __init__(self, where: str, rule: str, fix: str = "") -> None:
        self.problem = Problem(where, rule, fix)
        super().__init__(str(self.problem))


class DamagedLedgerError(LedgerError):
    """The ledger's file is damaged: an input that cannot be used, not a refusal of budget."""

    exit_code: ClassVar[int] = 2


class ResourceError(UnderstudyError, MemoryError):
    """The plan needs more memory or disk than allowed."""

    exit_code: ClassVar[int] = 4

    def __init__(self, where: str, needed_bytes: int, limit_bytes: int, fix: str) -> None:
        self.needed_bytes, self.limit_bytes = needed_bytes, limit_bytes
        needed = size_text(needed_bytes)
        about = needed if needed.startswith("over") else f"about {needed}"
        super().__init__(str(Problem(where, f"needs {about}, but the limit is {size_text(limit_bytes)}.", fix)))


class ReleaseError(UnderstudyError, ValueError):
    """A release folder is incomplete, altered or cannot be written; all findings are listed at once."""

    exit_code: ClassVar[int] = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def size_text(size: int) -> str:
    """A number of bytes as people write it.

    >>> size_text(500), size_text(64 * 1024**2), size_text(3 * 1024**3 // 2)
    ('500 bytes', '64 MiB', '1.5 GiB')
    """
    if size > 2**70:  # nobody has that much, and a float could not hold any size
        return "over 1,000,000 PiB"
    value, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:,.0f} {unit}" if unit == "bytes" or value == int(value) else f"{value:,.1f} {unit}"


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence that lists the known names and the closest one.

    >>> nearest("laplce", ["independent", "laplace"])
    'Did you mean "laplace"? Known: independent, laplace.'
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f'Did you mean "{close[0]}"? ' if close else ""
    return f"{hint}Known: {', '.join(names)}."


_LONGEST = 60
_MOST_LISTED = 12
_MOST_COMPARED = 2000
_PLAIN = re.compile(r"[^\W\d][\w-]*")


def place(*parts: str | int) -> str:
    """The path of a key as a person would say it.

    >>> place("columns", "age", "upper"), place("rules", 0), place("columns", "first name")
    ('columns.age.upper', 'rules[0]', "columns['first name']")
    """
    text = ""
    for part in parts:
        text = below(text, part)
    return text


def below(here: str, part: str | int) -> str:
    """The place of a part of what lies at `here`.

    >>> below("rules[0]", "age")
    'rules[0].age'
    """
    if isinstance(part, str) and len(part) <= _LONGEST and _PLAIN.fullmatch(part):
        return f"{here}.{part}" if here else part
    return f"{here}[{shown(part)}]"


def shown(value: object) -> str:
    """The value as Python would write it, cut after 60 characters, with unprintable characters escaped.

    >>> shown("a\\nb"), len(shown("x" * 10_000))
    ("'a\\\\nb'", 60)
    """
    if isinstance(value, str):
        value = str(value[:_LONGEST])
    elif isinstance(value, int) and abs(value) >= 10**_LONGEST:
        return "a number of more than 60 digits"
    try:
        text = repr(value)
    except ValueError:  # a huge integer somewhere inside
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def suggest(name: str, known: Iterable[str]) -> str:
    """The closest known name, with the whole list where it is short enough to read."""
    names = [text for text in known if len(text) <= _LONGEST and text.isprintable()]
    if not names or len(names) > _MOST_COMPARED:
        return ""
    sentence = nearest(name[:_LONGEST], names)
    return sentence if len(names) <= _MOST_LISTED else sentence.partition("Known: ")[0].strip()
