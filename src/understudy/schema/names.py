"""Names of a table's columns that may not be names at all: a first line that is a row, or has one merged into it.

Such a row belongs to a person, and names are shown: in drafts, messages and statements. So a table is judged by its
names alone, by public rules, before any of them is shown. The rules can be wrong both ways. A real column may be
called "2019", which is why a person can vouch for the names of a draft. And no rule can tell a town from a heading,
which is why messages never list names that the schema does not declare.
"""

import re
from collections import Counter
from collections.abc import Sequence

from understudy.errors import Problem

__all__ = ["looks_like_a_value", "same_but_for_spelling", "undeclared_problems", "unlike_names"]

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


def undeclared_problems(names: Sequence[str]) -> list[Problem]:
    """What is wrong with the names of columns that the schema does not declare; they would be shown as left out."""
    found = []
    odd = sum(map(looks_like_a_value, names))
    if odd:
        rule = f"has columns that the schema does not declare, and {odd} of their names look like values."
        fix = "Is its first line a header, and no row merged into it? Else declare, rename or remove such columns."
        found.append(Problem("table", rule, fix))
    if len(set(names)) < len(names):
        rule = "has several columns of the same name that the schema does not declare."
        found.append(Problem("table", rule, "Is its first line a header? Else rename them."))
    return found


def same_but_for_spelling(name: str, present: Sequence[str]) -> str:
    """The one name in the table that differs from `name` in case, spaces and punctuation alone; else nothing.

    Any other likeness may be the likeness of a value: a header merged with a row ends in one, as in "cityRome".

    >>> same_but_for_spelling("birth_date", ["Sex", " Birth-Date"]), same_but_for_spelling("city", ["cityF"])
    (' Birth-Date', '')
    """
    found = [one for one in present if _letters(one) == _letters(name)]
    return found[0] if len(found) == 1 else ""


def _letters(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
