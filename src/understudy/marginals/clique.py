"""Clique: a set of columns with one spelling."""

from collections.abc import Iterable, Sequence
from typing import Self

from understudy.errors import UsageError, nearest

__all__ = ["Clique"]


class Clique(tuple[str, ...]):
    """A set of columns in schema order, so that a pair has one spelling.

    Build it with `Clique.of(columns, order)` or through `Domain.clique`; the empty clique is the total.
    """

    __slots__ = ()

    @classmethod
    def of(cls, columns: Iterable[str], order: Sequence[str]) -> Self:
        """The clique of these columns, sorted as in `order`; unknown columns raise.

        >>> Clique.of(["b", "a"], ["a", "b", "c"])
        Clique('a', 'b')
        """
        wanted = set(columns)
        for name in sorted(wanted - set(order)):
            raise UsageError(f"column {name!r}", "is not a modelled column of the schema.", nearest(name, order))
        return cls(name for name in order if name in wanted)

    def contains(self, other: Iterable[str]) -> bool:
        """Whether every column of `other` is in this clique."""
        return set(other) <= set(self)

    def __repr__(self) -> str:
        return f"Clique({', '.join(map(repr, self))})"
