"""How a place or a given value is shown in a message: short, on one line, with nothing a terminal could act on."""

import re
from collections.abc import Iterable

from understudy.errors import nearest

__all__ = ["below", "place", "shown", "suggest"]

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
