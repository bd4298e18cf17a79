"""Domain: how many codes each column has. Exact Python integers, so products never overflow."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from understudy.errors import UsageError
from understudy.marginals.clique import Clique

__all__ = ["Domain"]


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
