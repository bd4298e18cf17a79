"""Options as text: the value that a text stands for, by the type of the option, and that type in words.

Methods and metrics are frozen dataclasses whose fields are their options, so one reading serves both.
"""

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping

from understudy.errors import UsageError, nearest

__all__ = ["Option", "described", "hints_of", "read_options", "spelled"]

_WORDS: Mapping[object, str] = {
    int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "none"
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """One option of a method or metric, as `--set` takes it."""

    name: str
    kind: str
    default: object
    help: str


def described(kind: type, fields: Iterable[dataclasses.Field[object]]) -> tuple[Option, ...]:
    """Those fields as options: name, type in words, default and help."""
    kept = tuple(fields)
    hints = hints_of(kind, kept)
    return tuple(
        Option(field.name, spelled(hints[field.name]), field.default, str(field.metadata.get("help", "")))
        for field in kept
    )


def hints_of(kind: type, fields: Iterable[dataclasses.Field[object]]) -> dict[str, object]:
    """The types of those fields, by name."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields}


def read_options(whose: str, hints: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """The options that were given, text read by the type of the option, everything else as it is.

    Args:
        whose: what has these options, for messages, as "method laplace".
        hints: name → type of every option there is.
        given: name → value or text.

    Raises:
        UsageError: for an unknown option, with the closest known one, or text that the type does not take.
    """
    read: dict[str, object] = {}
    for name, value in given.items():
        if name not in hints:
            fix = nearest(name, hints) if hints else "It has no options."
            raise UsageError(f"option {name!r}", f"is not an option of {whose}.", fix)
        read[name] = _read(value, hints[name], name, whose) if isinstance(value, str) else value
    return read


def spelled(hint: object) -> str:
    """The type of an option in words, as "a whole number or none"; kinds that no text stands for are left out."""
    parts = []
    for kind in _alternatives(hint):
        if typing.get_origin(kind) is typing.Literal:
            parts += [str(choice) for choice in typing.get_args(kind)]
        elif typing.get_origin(kind) is tuple:
            parts.append("words with commas between them")
        elif kind in _WORDS:
            parts.append(_WORDS[kind])
    return " or ".join(parts)


def _alternatives(hint: object) -> tuple[object, ...]:
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if union else (hint,)


def _read(text: str, hint: object, name: str, whose: str) -> object:
    """The value a text stands for: the first alternative of the type that accepts it."""
    for kind in _alternatives(hint):
        if kind is type(None) and text.lower() in ("", "none"):
            return None
        if typing.get_origin(kind) is typing.Literal and text in typing.get_args(kind):
            return text
        if typing.get_origin(kind) is tuple:
            return tuple(part.strip() for part in text.split(",") if part.strip())
        if kind is bool and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if kind is str:
            return text
        if kind in (int, float):
            try:
                return int(text) if kind is int else float(text)
            except ValueError:
                continue
    raise UsageError(f"option {name!r} of {whose}", f"must be {spelled(hint)}, got {text!r}.")
