"""Cliques, domains, structural zeros and partitions: the small language every package speaks.

Clique: a set of columns with one spelling.

Domain: how many codes each column has. Exact Python integers, so products never overflow.

StructuralZeros: cells that a public rule excludes.

Partition: a public rule that puts each record in exactly one cell.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, Self, runtime_checkable

from understudy.arrays import Bools, Integers, Ints
from understudy.errors import UsageError, nearest


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


@dataclass(frozen=True, slots=True)
class Domain:
    """Column name → number of codes, in schema order.

    >>> domain = Domain.of({"sex": 2, "age": 5})
    >>> domain.cells(domain.clique(["age", "sex"]))
    10
    """

    sizes: Mapping[str, int]

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> "Domain":
        """A domain from any mapping; every size must be a positive integer."""
        for name, size in sizes.items():
            if not isinstance(size, int) or size < 1:
                raise UsageError(f"domain: column {name!r}", f"needs at least one code, got {size!r}.")
        return cls(MappingProxyType(dict(sizes)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names in schema order."""
        return tuple(self.sizes)

    def clique(self, columns: Iterable[str]) -> Clique:
        """The clique of these columns, spelled in schema order."""
        return Clique.of(columns, self.columns)

    def everything(self) -> Clique:
        """The clique of all columns."""
        return Clique(self.columns)

    def shape(self, clique: Iterable[str]) -> tuple[int, ...]:
        """Codes per column of the clique."""
        return tuple(self.sizes[name] for name in clique)

    def cells(self, clique: Iterable[str]) -> int:
        """Number of cells of the clique's table, exact (1 for the empty clique)."""
        return math.prod(self.shape(clique))


@dataclass(frozen=True, slots=True)
class StructuralZeros:
    """Cells of a small table in which no record can be: `mask[cell]` is True there (flat row-major)."""

    clique: Clique
    mask: Bools


@runtime_checkable
class Partition(Protocol):
    """A public rule over codes: the leaves of a tree, a coarsening, a group of columns.

    The rule must be fixed before the counts are read (or depend on earlier answers only) and must look at one record
    at a time. Then one record moves one cell by one, so a partition costs what a clique costs.
    """

    @property
    def name(self) -> str:
        """What the transcript calls it; unique within a run."""
        ...

    @property
    def columns(self) -> Clique:
        """The columns the rule looks at."""
        ...

    @property
    def cells(self) -> int:
        """Number of cells."""
        ...

    def assign(self, codes: Mapping[str, Integers]) -> Ints:
        """The cell of each record, in [0, cells), given the codes of `columns` (arrays of equal length)."""
        ...
