"""Disjoint groups of columns, each with a table of its own: how they are written, tied by rules, measured and kept.

Written as `sex+age, income+city`: columns of a group joined by `+`, groups separated by commas. A column whose name
holds one of these signs (or quotes, or blanks at an end) stands in double quotes, a quote inside them doubled. `>= N`
behind a group is a least number of rows, for methods that know what to do with it.

Columns that a rule ties together must share a table, so groups that a rule touches are joined, whatever was written.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.errors import ResourceError, UsageError, nearest
from understudy.marginals.answer import Law
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.models.blocks import Block, BlockModel
from understudy.models.restrict import allowed, linked
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator

__all__ = [
    "CELL_LIMIT",
    "Group",
    "NoisyGroup",
    "block_of",
    "check_group",
    "check_groups",
    "measured_group",
    "parse_groups",
    "tied",
    "uniform_blocks",
    "written_cells",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CELL_LIMIT = 2**62
"""Tables beyond this cannot even be sparse."""
_TOKEN = re.compile(r'\s*("(?:[^"]|"")*"|[+,]|>=\s*[0-9]+|[^+,">]+)')


@dataclass(frozen=True, slots=True)
class Group:
    """Columns that share a table; asked about only where there are at least so many rows."""

    columns: Clique
    least_rows: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class NoisyGroup:
    """Noisy counts of a group: of all its cells, or of those at or above `threshold` (None: all)."""

    group: Group
    indices: Ints
    values: Ints
    law: Law
    cells: int
    threshold: int | None = None


def parse_groups(text: str, domain: Domain, where: str, *, ignore_unknown: bool = False) -> list[Group]:
    """The groups that a text names, in its order.

    >>> [tuple(group.columns) for group in parse_groups("b + a, c", Domain.of({"a": 2, "b": 2, "c": 2}), "groups")]
    [('a', 'b'), ('c',)]

    Raises:
        UsageError: for a text that is not of this form, an unknown column, or one named twice.
    """
    found, seen = list[Group](), set[str]()
    for names, least in _read(text, where):
        known = [name for name in names if name in domain.sizes or not ignore_unknown]
        for name in known:
            if name not in domain.sizes:
                raise UsageError(f"{where}: column {name!r}", "is not in the schema.", nearest(name, domain.columns))
            if name in seen:
                raise UsageError(f"{where}: column {name!r}", "is named twice.", "Groups must not overlap.")
            seen.add(name)
        if known:
            found.append(Group(domain.clique(known), least))
    return found


def check_groups(text: object, where: str) -> None:
    """Raises UsageError unless this is text of the form that `parse_groups` reads."""
    if not isinstance(text, str):
        raise UsageError(where, f"must be text such as 'sex+age, income', got {text!r}.")
    _read(text, where)


def tied(domain: Domain, groups: Iterable[Group], forbidden: Sequence[Forbidden]) -> list[Group]:
    """The groups with those that rules tie together joined, in the order of the domain."""
    by_clique = {group.columns: group.least_rows for group in groups}
    return [
        Group(domain.clique(name for part in parts for name in part), max(by_clique[part] for part in parts))
        for parts in linked(domain, by_clique, forbidden)
    ]


def check_group(domain: Domain, group: Group, method: str) -> None:
    """Refuses a group whose table would be too large even in sparse form."""
    cells = domain.cells(group.columns)
    if cells >= CELL_LIMIT:
        where = f"method {method}: group {' + '.join(group.columns)} of {cells:,} cells"
        raise ResourceError(where, 8 * cells, 8 * CELL_LIMIT, "Split the group or use coarser bins.")


def measured_group(curator: Curator, group: Group, cost: Cost, dense_cells: int, threshold: int) -> NoisyGroup:
    """The group's table with Laplace noise: whole up to `dense_cells` cells, above that what reaches the threshold."""
    cells = curator.domain.cells(group.columns)
    if cells <= dense_cells:
        dense = curator.measure([group.columns], cost)[0]
        return NoisyGroup(group, np.arange(cells, dtype=np.int64), dense.values, dense.law, cells)
    sparse = curator.measure_sparse(group.columns, cost, threshold)
    return NoisyGroup(group, sparse.indices, sparse.values, sparse.law, cells, threshold)


def block_of(domain: Domain, noisy: NoisyGroup, weights: Floats, forbidden: Sequence[Forbidden]) -> list[Block]:
    """The group as a block of a model; uniform over what rules allow if nothing has weight."""
    possible = allowed(domain, noisy.group.columns, noisy.indices, forbidden)
    kept = np.where(possible, np.maximum(weights, 0.0), 0.0)
    if not kept.sum() > 0.0:
        return uniform_blocks(domain, noisy.group.columns, forbidden)
    return [Block.of(noisy.group.columns, noisy.indices, kept)]


def uniform_blocks(domain: Domain, columns: Clique, forbidden: Sequence[Forbidden]) -> list[Block]:
    """Every code of these columns equally likely, as far as rules allow."""
    part = Domain.of({name: domain.sizes[name] for name in columns})
    rules = [rule for rule in forbidden if set(rule.clique) <= set(columns)]
    return list(BlockModel.uniform(part, rules, 1.0).blocks)


def _read(text: str, where: str) -> list[tuple[list[str], int]]:
    found, names, least = list[tuple[list[str], int]](), list[str](), 0
    wanted, place = True, 0
    while place < len(text.rstrip()):
        token = _TOKEN.match(text, place)
        if token is None:
            raise UsageError(where, f"cannot be read from {text[place : place + 20]!r} on.", "Write a+b, c+d.")
        place = token.end()
        part = token.group(1).strip()
        if part in "+,":
            if wanted or (part == "+" and least):
                raise UsageError(where, f"has a {part!r} where a column should be.", "Write a+b, c+d.")
            if part == ",":
                found.append((names, least))
                names, least = [], 0
            wanted = True
        elif part.startswith(">="):
            if wanted:
                raise UsageError(where, "has a number of rows before any column.", "Write a+b >= 1000.")
            least = int(part[2:])
        else:
            if not wanted:
                raise UsageError(where, f"lacks a '+' or ',' before {part!r}.", "Write a+b, c+d.")
            names.append(part[1:-1].replace('""', '"') if part.startswith('"') else part)
            wanted = False
    if names or found:
        if wanted:
            raise UsageError(where, "ends where a column should be.", "Write a+b, c+d.")
        found.append((names, least))
    return found


def written_cells(domain: Domain, groups: Iterable[Group], dense_cells: int) -> int:
    """Cells that are written out, for plans."""
    return sum(min(math.prod(domain.shape(group.columns)), dense_cells) for group in groups)
