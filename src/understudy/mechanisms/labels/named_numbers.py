"""Options written as text: lists of column names, and numbers by column name.

Names are separated by commas; a name that holds a comma or a quote stands in double quotes, as in a CSV line. A number
follows the last colon: `occupation:60,"pay, monthly":1`.
"""

import csv
import math

from understudy.errors import UsageError

__all__ = ["listed_names", "named_numbers"]


def listed_names(option: str, text: str) -> tuple[str, ...]:
    """The names in a text, in order.

    >>> listed_names("private", 'sex, "race, self-reported"')
    ('sex', 'race, self-reported')
    """
    if not isinstance(text, str) or "\n" in text or "\r" in text:
        raise UsageError(option, f"must be column names separated by commas, got {text!r}.")
    if not text.strip():
        return ()
    names = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True)))
    if not all(names) or len(set(names)) != len(names):
        raise UsageError(option, f"must name every column once, got {text!r}.")
    return names


def named_numbers(option: str, text: str) -> dict[str, float]:
    """Numbers by name, each 0 or more.

    >>> named_numbers("weights", "occupation:60, age:1")
    {'occupation': 60.0, 'age': 1.0}
    """
    found: dict[str, float] = {}
    for entry in listed_names(option, text):
        name, colon, number = entry.rpartition(":")
        name = name.strip()
        try:
            value = float(number) if colon and name else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < 0.0 or name in found:
            rule = f"must be COLUMN:NUMBER, separated by commas, numbers of 0 or more, got {entry!r}."
            raise UsageError(option, rule, 'For example "occupation:60,age:1".')
        found[name] = value
    return found
