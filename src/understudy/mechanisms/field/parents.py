"""Which parents a column may get: usefulness, maximal parent sets, coarser levels, and the limits of a step.

All of it is public: it depends on sizes, rules, levels and numbers that were paid for.

Limits of a step (public, so that the number of candidates never depends on a row). Parent sets hold at most as many
columns as keep the number of candidates, counted before any is left out for its size, within `most_candidates`; at
least one. Candidates whose tables of full codes would exceed `COUNTED` cells are left out, and of the rest the
largest, until those of a step fit together in `STEP_CELLS`. The candidate without parents (or with those that rules
force) always stays. A rule whose last column is the child forces its other columns into the parents, so that the
conditional table can hold the rule.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.privacy.questions.family import Family

__all__ = [
    "COUNTED",
    "STEP_CELLS",
    "FamilyTable",
    "Search",
    "best_degree",
    "halved",
    "largest_table",
    "maximal_sets",
    "of_equal_mass",
    "usefulness",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Taken = tuple[tuple[str, int], ...]
"""Columns and the level at which each is taken."""

COUNTED = 2**20
STEP_CELLS = 2**23


def usefulness(rows: float, cells: float, noise: float) -> float:
    """Average count of a cell over the scale of its noise.

    >>> round(usefulness(44_821, 2**9, 2 * (15 - 8) / 0.7), 2)  # 8 parents of two codes, published noise
    4.38
    """
    return rows / (cells * noise)


def best_degree(rows: float, columns: int, theta: float, noise: Callable[[int], float]) -> int:
    """The largest degree k ≥ 1 at which tables of k + 1 columns of two codes are θ-useful; 0 if there is none.

    `noise` gives the scale of the noise if so many tables are measured: columns − k of them.
    """
    degrees = range(1, columns)
    return max((k for k in degrees if usefulness(rows, 2.0 ** (k + 1), noise(columns - k)) >= theta), default=0)


def largest_table(rows: float, theta: float, noise: float) -> float:
    """τ: most cells of a θ-useful table at that noise.

    >>> round(largest_table(44_821, 4.0, 2 * 15 / 0.7), 1)  # published noise of 15 tables
    261.5
    """
    return rows / (theta * noise)


def maximal_sets(sizes: Mapping[str, Sequence[int]], limit: float, most: int | None = None) -> list[Taken]:
    """All sets of columns, each at one of its levels (sizes finest first), that fit the limit and cannot be made finer.

    `most` bounds the number of columns of a set. The recursion is that of Zhang et al. (2017).

    >>> [dict(found) for found in maximal_sets({"a": [2], "b": [3]}, 3)]
    [{'b': 0}, {'a': 0}]
    """
    if limit < 1:
        return []
    if not sizes or most == 0:
        return [()]
    (name, levels), *others = sizes.items()
    rest = dict(others)
    fewer = None if most is None else most - 1
    found, used = list[Taken](), set[Taken]()
    for level, size in enumerate(levels):
        for smaller in maximal_sets(rest, limit / size, fewer):
            if smaller not in used:
                used.add(smaller)
                found.append(((name, level), *smaller))
    found += [smaller for smaller in maximal_sets(rest, limit, most) if smaller not in used]
    return found


def halved(size: int, factor: int) -> list[Ints]:
    """Coarser levels of a column: `factor` neighbours merged, again and again, while 4 groups or more remain."""
    levels, merged = list[Ints](), factor
    while factor > 1 and math.ceil(size / merged) >= 4:
        levels.append(np.arange(size, dtype=np.int64) // merged)
        merged *= factor
    return levels


def of_equal_mass(shares: Floats, groups: Sequence[int]) -> list[Ints]:
    """Coarser levels with about these numbers of groups: neighbouring codes merged to about equal mass.

    `shares` are noisy and paid for, so this is free. A code that alone holds a group's mass is a group of its own.
    """
    levels = list[Ints]()
    middle = np.cumsum(shares) - shares / 2.0
    for count in groups:
        if count >= shares.size:
            continue
        raw = np.minimum((middle * count).astype(np.int64), count - 1)
        level = np.unique(np.maximum.accumulate(raw), return_inverse=True)[1].astype(np.int64)
        if level.max() > 0 and not any(np.array_equal(level, other) for other in levels):
            levels.append(level)
    return levels


@dataclass(frozen=True, slots=True, eq=False)
class FamilyTable:
    """The table of a family as a partition of the records: parents at their levels, then the child."""

    family: Family
    domain: Domain
    coarser: Mapping[str, Sequence[Ints]]

    @property
    def name(self) -> str:
        """What the transcript calls it."""
        parents = [
            f"{name} in {size}" if self.family.level(place) else name
            for place, (name, size) in enumerate(zip(self.family.parents, self.sizes, strict=True))
        ]
        return " × ".join([*parents, self.family.child])

    @property
    def columns(self) -> Clique:
        """Child and parents."""
        return self.domain.clique(self.family.columns)

    @property
    def sizes(self) -> list[int]:
        """Groups of each parent."""
        return [
            int(self.coarser[name][self.family.level(place) - 1].max()) + 1
            if self.family.level(place)
            else self.domain.sizes[name]
            for place, name in enumerate(self.family.parents)
        ]

    @property
    def cells(self) -> int:
        """Combinations of parents times codes of the child."""
        return math.prod(self.sizes) * self.domain.sizes[self.family.child]

    @property
    def groups(self) -> tuple[Ints | None, ...]:
        """Per parent the group of each code, or None where it is taken as it is."""
        return tuple(
            self.coarser[name][self.family.level(place) - 1] if self.family.level(place) else None
            for place, name in enumerate(self.family.parents)
        )

    def assign(self, codes: Mapping[str, npt.NDArray[np.integer]]) -> Ints:
        """The cell of each record."""
        cell = np.zeros(codes[self.family.child].shape, dtype=np.int64)
        for name, size, groups in zip(self.family.parents, self.sizes, self.groups, strict=True):
            cell *= size
            cell += codes[name] if groups is None else groups[codes[name]]
        return np.asarray(cell * self.domain.sizes[self.family.child] + codes[self.family.child])


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """The public side of choosing parents: what may be offered at a step."""

    domain: Domain
    forbidden: Sequence[Forbidden]
    limit: float
    """Most cells of a table of a column and its parents."""
    coarser: Mapping[str, Sequence[Ints]] = field(default_factory=dict)
    degree: int | None = None
    """Parents exactly, as far as there are so many columns; None: any number."""
    maximal: bool = False
    """Only parent sets that nothing can be added to."""
    most_candidates: int = 4000
    _level_sizes: Mapping[str, tuple[int, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sizes = {
            name: (size, *(int(level.max()) + 1 for level in self.coarser.get(name, ())))
            for name, size in self.domain.sizes.items()
        }
        object.__setattr__(self, "_level_sizes", sizes)

    def families(self, chosen: Sequence[str], left: Sequence[str]) -> list[Family]:
        """What may be chosen next: a column that is left, with parents among those chosen."""
        most = self._most_parents(chosen, len(left))
        found = list[Family]()
        for child in left:
            forced = self.forced(child, chosen)
            sets = list(self._parents(child, forced, chosen, most))
            if not self.maximal and self.degree is None:
                sets.append(Family(child, forced))
            found += dict.fromkeys(sets)
        kept = self._counted(found)
        offered = {family.child for family in kept}
        return kept + [Family(child, self.forced(child, chosen)) for child in left if child not in offered]

    def forced(self, child: str, chosen: Sequence[str]) -> tuple[str, ...]:
        """Columns that rules force among the child's parents, in the order they were chosen."""
        names = {
            name
            for rule in self.forbidden
            if child in rule.clique and set(rule.clique) <= {child, *chosen}
            for name in rule.clique
            if name != child
        }
        return tuple(name for name in chosen if name in names)

    def cells(self, family: Family) -> int:
        """Cells of the family's table, parents at their levels."""
        sizes = (self._level_sizes[name][family.level(place)] for place, name in enumerate(family.parents))
        return math.prod(sizes) * self.domain.sizes[family.child]

    def _parents(self, child: str, forced: tuple[str, ...], chosen: Sequence[str], most: int) -> Iterator[Family]:
        free = [name for name in chosen if name not in forced]
        limit = self.limit / self.domain.sizes[child] / self.domain.cells(forced)
        if self.degree is not None:
            wanted = max(0, min(self.degree, len(chosen)) - len(forced))
            for names in itertools.combinations(free, min(wanted, most)):
                yield Family(child, (*forced, *names))
        elif self.maximal:
            for taken in maximal_sets({name: self._level_sizes[name] for name in free}, limit, most):
                yield _family(child, forced, taken)
        else:
            for width in range(1, most + 1):
                for names in itertools.combinations(free, width):
                    for levels in itertools.product(*(enumerate(self._level_sizes[name]) for name in names)):
                        if math.prod(size for _, size in levels) <= limit:
                            yield _family(
                                child, forced, tuple((n, level) for n, (level, _) in zip(names, levels, strict=True))
                            )

    def _most_parents(self, chosen: Sequence[str], left: int) -> int:
        """The largest number of parents at which a step stays within its candidates; see the module."""
        # Number of sets of each width: the elementary symmetric polynomials of the numbers of levels.
        counts = [1] + [0] * len(chosen)
        for name in chosen:
            for width in range(len(chosen), 0, -1):
                counts[width] += counts[width - 1] * (1 if self.degree is not None else len(self._level_sizes[name]))
        most, running = 0, 0
        for width in range(1, len(chosen) + 1):
            running = counts[width] if self.degree is not None else running + counts[width]
            if width > 1 and running * left > self.most_candidates:
                break
            most = width
        return most

    def _counted(self, found: list[Family]) -> list[Family]:
        sizes = {family: self.domain.cells(family.columns) for family in found}
        used, kept, seen = 0, set[Family](), set[Clique]()
        for family in sorted(found, key=lambda family: sizes[family]):
            clique = self.domain.clique(family.columns)
            fresh = 0 if clique in seen else sizes[family]
            if sizes[family] <= COUNTED and used + fresh <= STEP_CELLS:
                used += fresh
                kept.add(family)
                seen.add(clique)
        return [family for family in found if family in kept]


def _family(child: str, forced: tuple[str, ...], taken: Taken) -> Family:
    names, levels = tuple(name for name, _ in taken), tuple(level for _, level in taken)
    if not any(levels):
        return Family(child, (*forced, *names))
    return Family(child, (*forced, *names), (*(0 for _ in forced), *levels))
