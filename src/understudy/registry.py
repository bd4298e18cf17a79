"""Names → classes: methods, metrics, models and sources are all found in the same way.

A registry lists the built-in names with the place of each class, as "module:Class", and loads a class only when it is
asked for by its name: who asks for `aim` loads no trees. Another package adds a name by an entry point of that name in
the registry's group (`understudy.methods`, `understudy.metrics`, `understudy.models`, `understudy.sources`). A built-in
name cannot be taken over: what a steward was told about `laplace` stays true.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Generic, TypeVar

from understudy.errors import UnderstudyWarning, UsageError, nearest
from understudy.options import hints_of, read_options

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
        if name in self.names() and self.find(name) is not kind:
            raise UsageError(f"{self.what} {name!r}", "is taken by another class.", "Choose another name.")
        self.built_in[name] = kind

    def _loaded(self, entry: EntryPoint) -> type[Kind]:
        where = f"{self.what} {entry.name!r}"
        try:
            kind: Any = entry.load()
        except (Exception, SystemExit) as error:  # whatever another package does when it is loaded
            rule = f"is offered by a package as {entry.value!r}, which cannot be loaded ({type(error).__name__})."
            raise UsageError(where, rule, "Mend or remove that package.") from error
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
        return vars(self)[self.__name__.rpartition(".")[2]](*arguments, **settings)
