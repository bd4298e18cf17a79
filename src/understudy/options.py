"""What is chosen by its name, with its options: methods, metrics, models and sources.

Options
-------
Methods and metrics are frozen dataclasses whose fields are their options. A field says what its values may be, by its
type (a choice of words, a whole number, a number, true or false, text) and by `option` (limits, a share, a check of its
own); `WithOptions` holds every new instance against that. Each message names the option, the rule and what was given,
and is raised before anything is charged.

As text, names are separated by commas; a name that holds a comma or a quote stands in double quotes, as in a CSV line.
A number follows the last colon: `occupation:60,"pay, monthly":1`.

Names
-----
A registry lists the built-in names with the place of each class, as "module:Class", and loads a class only when it is
asked for by its name: who asks for `aim` loads no trees. Another package adds a name by an entry point of that name in
the registry's group (`understudy.methods`, `understudy.metrics`, `understudy.models`, `understudy.sources`). A built-in
name cannot be taken over: what a steward was told about `laplace` stays true.
"""

import csv
import dataclasses
import functools
import inspect
import math
import numbers
import types
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Generic, TypeVar

from understudy.errors import UnderstudyWarning, UsageError, nearest


@dataclasses.dataclass(frozen=True, slots=True)
class OptionRule:
    """What an option's value must be, beyond its type. `least` and `most` are allowed, `above` and `below` are not."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    share: bool = False
    """Between 0 and 1, both excluded."""
    also: tuple[object, ...] = ()
    """Values that are taken although they break the rule, as 0 for a share that may be left out."""
    check: Callable[[str, Any], object] | None = None
    """Takes the option's name and a value, and raises UsageError."""


def option(
    default: object,
    *,
    help: str,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    share: bool = False,
    also: tuple[object, ...] = (),
    check: Callable[[str, Any], object] | None = None,
) -> Any:
    """A field of a method or metric: its default, what it is for, and its rule (see `OptionRule`).

    Which words it may be, and whether none is allowed, is said by the type of the field alone.
    """
    rule = OptionRule(least, most, above, below, share, also, check)
    return dataclasses.field(default=default, metadata={"help": help, "rule": rule})


@dataclasses.dataclass(frozen=True, slots=True)
class WithOptions:
    """Base of methods and metrics: frozen options, checked when an instance is made."""

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for field, hint in _typed_fields(kind):
            rule = field.metadata.get("rule", OptionRule())
            _check_value(self._where(field.name), getattr(self, field.name), hint, rule)
        self._check_together()

    def _check_together(self) -> None:
        """Raises UsageError where options do not go together, in a class that has such options."""

    def _where(self, option: str) -> str:
        """What a message calls an option."""
        return option


@functools.cache
def _typed_fields(kind: type[Any]) -> tuple[tuple["dataclasses.Field[Any]", object], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((field, hints[field.name]) for field in dataclasses.fields(kind))


def _check_value(name: str, value: object, hint: object, rule: OptionRule) -> None:
    """Raises UsageError unless a value fits the type and the rule of its option."""
    kinds = _alternatives(hint)
    words = tuple(word for kind in kinds if typing.get_origin(kind) is typing.Literal for word in typing.get_args(kind))
    listed = type(value) in (str, int, float) and value in (*words, *rule.also)
    if listed or (value is None and type(None) in kinds):
        return
    if rule.share:
        check_share(name, value)
    elif float in kinds:
        _check_range(name, value, rule)
    elif int in kinds:
        _check_whole_range(name, value, rule)
    elif bool in kinds:
        check_flag(name, value)
    elif words:
        check_choice(name, value, words)
    elif kinds == (str,) and not isinstance(value, str):
        raise UsageError(name, f"must be text, got {value!r}.")
    if rule.check is not None:
        rule.check(name, value)


def _check_whole_range(name: str, value: object, rule: OptionRule) -> None:
    least, most = rule.least, rule.most
    if least is not None and most is not None:
        check_whole(name, value, int(least), int(most))
    elif type(value) is not int or (least is not None and value < least) or (most is not None and value > most):
        limit = "" if least is None else f", at least {int(least):,}"
        limit = limit if most is None else f", at most {int(most):,}"
        raise UsageError(name, f"must be a whole number{limit}, got {value!r}.")


def _check_range(name: str, value: object, rule: OptionRule) -> None:
    """Raises UsageError unless the value is a number within the rule's limits."""
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    least, most, above, below = rule.least, rule.most, rule.above, rule.below
    lower = (least is None or number >= least) and (above is None or number > above)
    upper = (most is None or number <= most) and (below is None or number < below)
    if math.isnan(number) or not lower or not upper:
        raise UsageError(name, f"must be a number{_range_words(rule)}, got {value!r}.")


def _range_words(rule: OptionRule) -> str:
    """The limits in words, as " from 0 to 0.5" or " above 0 and at most 1"."""
    words, joint = "", " "
    if rule.least is not None:
        words, joint = f" from {_spelled(rule.least)}", " to "
    if rule.above is not None:
        words, joint = f" above {_spelled(rule.above)}", " and "
    if rule.most is not None:
        words += f"{joint}{'' if rule.least is not None else 'at most '}{_spelled(rule.most)}"
    if rule.below not in (None, math.inf):
        words += f"{joint}below {_spelled(rule.below)}"
    return words


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
    _check_range(name, value, OptionRule(least, most))


def check_flag(name: str, value: object) -> None:
    """Raises UsageError unless the value is true or false."""
    if type(value) is not bool:
        raise UsageError(name, f"must be true or false, got {value!r}.")


def _spelled(number: float) -> str:
    return f"{number:,.12f}".rstrip("0").rstrip(".")


_WORDS: Mapping[object, str] = {
    int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "none"
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """One option of a method or metric, as a user may set it."""

    name: str
    kind: str
    default: object
    help: str


def described(kind: Any) -> tuple[Option, ...]:
    """The options of a method or metric: name, type in words, default and help."""
    hints = hints_of(kind)
    return tuple(
        Option(field.name, spelled(hints[field.name]), field.default, str(field.metadata.get("help", "")))
        for field in dataclasses.fields(kind)
    )


def hints_of(kind: Any) -> dict[str, object]:
    """The types of the options of a method or metric, by name.

    Raises:
        UsageError: if the class is not a dataclass of its own, so that its fields would be no options.
    """
    if "__dataclass_fields__" not in vars(kind):
        raise UsageError(f"class {kind.__name__}", "must be a dataclass whose fields are its options.")
    return {field.name: hint for field, hint in _typed_fields(kind)}


def read_options(whose: str, hints: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """The options that were given, text read by the type of the option, everything else as it is.

    Args:
        whose: what has these options, for messages, as "method laplace".
        hints: name → type of every option there is.
        given: name → value or text.

    Raises:
        UsageError: for an unknown option, with the closest known one, or text that the type does not take.
    """
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise UsageError("options", f"must be names with their values, as in {{'name': value}}, got {given!r}.")
    read: dict[str, object] = {}
    for name, value in ((name, plain(value)) for name, value in given.items()):
        if name not in hints:
            fix = nearest(name, hints) if hints else "It has no options."
            raise UsageError(f"option {name!r}", f"is not an option of {whose}.", fix)
        read[name] = _read(value, hints[name], name, whose) if isinstance(value, str) else value
    return read


def plain(value: object) -> object:
    """A number or text of another library, or of an enumeration, as Python's own; everything else as it is."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


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


Kind = TypeVar("Kind")
Described = TypeVar("Described")


@dataclass(frozen=True, slots=True)
class Registry(Generic[Kind]):
    """The classes of one kind by name, each loaded when it is first asked for."""

    what: str
    """One of them in a word; the group of entry points is its plural."""
    built_in: dict[str, str | type[Kind]]
    """Name → "module:Class", or the class itself."""
    base: tuple[type, ...] = (object,)
    """What a class of another package must inherit from, one of these."""

    @property
    def group(self) -> str:
        """The group of entry points by which other packages add names."""
        return f"understudy.{self.what}s"

    def names(self) -> tuple[str, ...]:
        """All names: the built-in ones in their order, then those of other packages in alphabetical order."""
        return (*self.built_in, *sorted(self.offered()))

    def __contains__(self, name: object) -> bool:
        """Whether a class of that name is known; what other packages add is looked up for other names only."""
        return name in self.built_in or name in self.offered()

    def offered(self) -> dict[str, EntryPoint]:
        """What other packages add, not loaded."""
        return {entry.name: entry for entry in entry_points(group=self.group) if entry.name not in self.built_in}

    def find(self, name: str) -> type[Kind]:
        """The class of that name.

        Raises:
            UsageError: if there is none, with the closest name, or if the package that offers it has none to show.
        """
        if not isinstance(name, str):
            raise UsageError(self.what, f"must be a name, got {name!r}.")
        if name in self.built_in:
            place = self.built_in[name]
            return _at(place) if isinstance(place, str) else place
        offered = self.offered()
        if name not in offered:
            raise UsageError(f"{self.what} {name!r}", "is not known.", nearest(name, self.names()))
        return self._loaded(offered[name])

    def described(self, describe: Callable[[str], Described]) -> dict[str, Described]:
        """All of them in words, by name. One of another package that cannot be loaded is left out with a warning."""
        found: dict[str, Described] = {}
        for name in self.names():
            try:
                found[name] = describe(name)
            except UsageError as error:
                if name in self.built_in:
                    raise
                warnings.warn(str(error), UnderstudyWarning, stacklevel=4)
        return found

    def make(self, name: str, options: Mapping[str, object] | None = None) -> Kind:
        """The one of that name with these options; text is read by the type of the option.

        Raises:
            UsageError: for an unknown name or option, with the closest known one, or a value that does not fit.
        """
        kind = self.find(name)
        return kind(**read_options(f"{self.what} {name}", hints_of(kind), options or {}))

    def register(self, name: str, kind: type[Kind]) -> None:
        """Makes a class known under a name in this process; a name that is taken raises."""
        if name in self and self.find(name) is not kind:
            raise UsageError(f"{self.what} {name!r}", "is taken by another class.", "Choose another name.")
        self.built_in[name] = kind

    def _loaded(self, entry: EntryPoint) -> type[Kind]:
        where = f"{self.what} {entry.name!r}"
        try:
            kind: Any = entry.load()
        except (Exception, SystemExit) as error:  # whatever another package does when it is loaded
            rule = f"is offered by a package as {entry.value!r}, which cannot be loaded ({type(error).__name__})."
            raise UsageError(where, rule, "Fix or remove that package.") from error
        if not isinstance(kind, type) or not set(self.base) & set(kind.__mro__):
            names = " or ".join(base.__name__ for base in self.base)
            rule = f"is offered by a package as {entry.value!r}, which is no subclass of {names}."
            places = " or ".join(f"{base.__module__}.{base.__name__}" for base in self.base)
            raise UsageError(where, rule, f"Derive it from {places}.")
        return kind


def _at(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


class Catalogue(Mapping[str, Described]):
    """Descriptions by name, which show themselves as a table."""

    def __init__(self, columns: tuple[str, ...], described: Mapping[str, Described]) -> None:
        self._columns, self._described = columns, dict(described)

    def __getitem__(self, name: str) -> Described:
        if name not in self._described:
            raise KeyError(f"{name!r} is not known. {nearest(name, self._described)}")
        return self._described[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._described)

    def __len__(self) -> int:
        return len(self._described)

    def __repr__(self) -> str:
        rows = [[str(getattr(one, column)) for column in self._columns] for one in self._described.values()]
        lines = [list(self._columns), *rows]
        widths = [max(len(line[place]) for line in lines) for place in range(len(self._columns))]
        lines.insert(1, ["-" * width for width in widths])
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )


class VerbPackage(ModuleType):
    """A package that bears the name of its one verb, as `understudy.evaluate`, and can be called like it.

    Once any file of such a package is loaded, `understudy.evaluate` means the package rather than the function.
    """

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        """What the verb returns."""
        return self._verb()(*arguments, **settings)

    @property
    def __signature__(self) -> inspect.Signature:
        """The verb's own, so that help and completion show its arguments whatever was loaded before."""
        return inspect.signature(self._verb())

    def _verb(self) -> Callable[..., Any]:
        verb: Callable[..., Any] = vars(self)[self.__name__.rpartition(".")[2]]
        return verb
