"""Checks of an option's value: one of several words, a whole number, a share, a number, true or false.

Every check names the option, the rule and what was given, and raises UsageError before anything is charged.
"""

from understudy.errors import UsageError, nearest

__all__ = ["check_choice", "check_flag", "check_number", "check_share", "check_whole"]


def check_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    """Raises UsageError unless the value is one of the known words; the message names the nearest."""
    if value not in known:
        raise UsageError(f"{name} {value!r}", "is not a known choice.", nearest(str(value), known))


def check_whole(name: str, value: object, least: int, most: int) -> None:
    """Raises UsageError unless the value is a whole number in that range, both ends included."""
    if type(value) is not int or not least <= value <= most:
        raise UsageError(name, f"must be a whole number from {least:,} to {most:,}, got {value!r}.")


def check_share(name: str, value: object) -> None:
    """Raises UsageError unless the value is a number between 0 and 1, both excluded."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < 1.0:
        raise UsageError(name, f"must lie between 0 and 1, both excluded, got {value!r}.")


def check_number(name: str, value: object, least: float, most: float) -> None:
    """Raises UsageError unless the value is a number in that range, both ends included."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise UsageError(name, f"must be a number from {_spelled(least)} to {_spelled(most)}, got {value!r}.")


def check_flag(name: str, value: object) -> None:
    """Raises UsageError unless the value is true or false."""
    if type(value) is not bool:
        raise UsageError(name, f"must be true or false, got {value!r}.")


def _spelled(number: float) -> str:
    return f"{number:,.12f}".rstrip("0").rstrip(".")
