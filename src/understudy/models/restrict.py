"""Rules as zero cells: which cells of a table are possible, and which tables a rule ties together.

One implementation serves fitting and drawing alike, so a rule cannot hold in one and be forgotten in the other. All
of it depends on the domain and the rules only, so a plan can refuse a table that is too large before anything is
charged.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from understudy.errors import ResourceError, UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden

__all__ = ["BLOCK_CELLS", "allowed", "check_linked", "check_possible", "linked", "sub_indices"]

Ints = npt.NDArray[np.int64]

BLOCK_CELLS = 10**7
"""Most cells of a table that rules force to be held jointly (about 400 MB while it is built)."""


def sub_indices(domain: Domain, clique: Sequence[str], indices: Ints, part: Iterable[str]) -> Ints:
    """For cells of `clique` (flat, row-major) the cell of `part` each of them lies in; `part` ⊆ `clique`.

    >>> domain = Domain.of({"a": 2, "b": 3})
    >>> sub_indices(domain, ("a", "b"), np.arange(6), ("b",)).tolist()
    [0, 1, 2, 0, 1, 2]
    """
    strides, stride = {}, 1
    for name in reversed(clique):
        strides[name] = stride
        stride *= domain.sizes[name]
    cells = np.zeros(indices.size, dtype=np.int64)
    for name in part:
        size = domain.sizes[name]
        if size > 1:
            cells *= size
            cells += (indices // strides[name]) % size
    return cells


def allowed(
    domain: Domain, clique: Sequence[str], indices: Ints, forbidden: Iterable[Forbidden]
) -> npt.NDArray[np.bool_]:
    """Whether each cell of `clique` is possible under the rules whose columns it covers."""
    possible = np.ones(indices.size, dtype=bool)
    for rule in forbidden:
        if set(rule.clique) <= set(clique):
            possible &= ~rule.mask[sub_indices(domain, clique, indices, rule.clique)]
    return possible


def check_possible(domain: Domain, forbidden: Sequence[Forbidden]) -> None:
    """Raises UsageError if the rules leave no combination of all columns possible. Looks at every cell there is."""
    everything = domain.everything()
    cells = np.arange(domain.cells(everything) if forbidden else 0, dtype=np.int64)
    if forbidden and not allowed(domain, everything, cells, forbidden).any():
        raise UsageError("rules", "leave no combination possible.", "Drop or narrow a rule.")


def linked(domain: Domain, cliques: Iterable[Clique], forbidden: Iterable[Forbidden]) -> list[list[Clique]]:
    """Disjoint cliques grouped so that every rule lies within one group, in the order of the domain."""
    groups = [[clique] for clique in cliques]
    for rule in forbidden:
        touched = [group for group in groups if any(set(rule.clique) & set(clique) for clique in group)]
        if len(touched) > 1:
            groups = [group for group in groups if group not in touched]
            groups.append([clique for group in touched for clique in group])
    place = {name: position for position, name in enumerate(domain.columns)}
    for group in groups:
        group.sort(key=lambda clique: place[clique[0]])
    return sorted(groups, key=lambda group: place[group[0][0]])


def check_linked(domain: Domain, cliques: Iterable[Clique], forbidden: Sequence[Forbidden], where: str) -> int:
    """Cells of the largest table the rules tie together.

    Raises:
        ResourceError: if that table is too large to hold.
        UsageError: if the rules leave no combination of some columns possible.
    """
    largest = 1
    for group in linked(domain, cliques, forbidden):
        clique = domain.clique(name for part in group for name in part)
        cells = domain.cells(clique)
        largest = max(largest, cells)
        if not any(set(rule.clique) <= set(clique) for rule in forbidden):
            continue
        names = ", ".join(clique)
        if cells > BLOCK_CELLS:
            raise ResourceError(
                f"{where}: rules tie {names} into one table of {cells:,} cells",
                cells * 40,
                BLOCK_CELLS * 40,
                "Use coarser bins for these columns or drop a rule.",
            )
        if not allowed(domain, clique, np.arange(cells, dtype=np.int64), forbidden).any():
            raise UsageError(f"{where}: rules over {names}", "leave no combination possible.", "Drop or narrow a rule.")
    return largest
