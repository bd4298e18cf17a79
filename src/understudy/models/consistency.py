"""Consistency: overlapping noisy tables corrected until they agree wherever they overlap, and hold no negative count.

Post-processing of noisy answers, free of charge; no randomness.

For a set A of columns that several tables share, every table i says how many records lie in a cell of A: the sum S_i
of its L_i cells there, of variance L_i σ_i². What they should all say is the inverse-variance mean T of these sums;
each table's cells are shifted by (T − S_i)/L_i. Where cells of one table differ in variance, the variance of a sum is
the sum of variances, and the shift is shared out in proportion to them. This is the projection, in the metric of the
noise, on tables that agree on A. Sets are taken in an order where subsets come first. The sets are closed under
intersection, so with equal variances a later set undoes nothing (its shift adds up to 0 on everything it shares with
an earlier one) and one pass is exact; with unequal variances passes are repeated and converge to the least-squares
solution (projections in turn on subspaces).

Then every table is cut to counts of 0 or more with the common total, which makes them disagree again, and so on in
turn. Cells that rules exclude are known to be 0: they have variance 0 and stay there.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from understudy.arrays import Bools, Floats, Ints
from understudy.compiled import compiled
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import UsageError
from understudy.models.tables import allowed, norm_cut, sub_indices

_PASSES = 30
_TOLERANCE = 1e-9
_LEFT_OVER = 1e-6
"""Negative counts that together are no more than this share of the total are cut off and that is that."""
_MOST_PARTS = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class OverlapTable:
    """Noisy counts of a clique's cells (flat row-major) and the variance of each; one number if all are alike."""

    clique: Clique
    values: Floats
    variances: Floats | float


class Consistent(NamedTuple):
    """The tables' counts in their order, rounds taken, and the largest disagreement left, in records."""

    counts: tuple[Floats, ...]
    rounds: int
    gap: float


def common_parts(domain: Domain, cliques: Iterable[Clique]) -> list[Clique]:
    """Sets of columns on which tables overlap: the empty one, all intersections, closed under intersection.

    Subsets come before supersets.

    >>> domain = Domain.of({"a": 2, "b": 2, "c": 2, "d": 2})
    >>> [tuple(part) for part in common_parts(domain, map(Clique, ["abc", "bcd", "ab"]))]
    [(), ('b',), ('a', 'b'), ('b', 'c')]
    """
    place = {name: position for position, name in enumerate(domain.columns)}
    # Sets of columns as bits of whole numbers: thousands of tables have millions of pairs.
    listed = Counter(sum(1 << place[name] for name in clique) for clique in cliques)
    found = {0, *(names for names, times in listed.items() if times > 1)}
    for position, first in enumerate(listed):
        found.update({first & second for second in itertools.islice(listed, position)})
    fresh = set(found)
    while fresh:
        fresh = {first & second for first in fresh for second in found} - found
        found |= fresh
        if len(found) > _MOST_PARTS:
            raise UsageError("tables", f"overlap in more than {_MOST_PARTS:,} ways.", "Measure fewer columns at once.")
    parts = [Clique(name for name in domain.columns if bits >> place[name] & 1) for bits in found]
    return sorted(parts, key=lambda part: (len(part), [place[name] for name in part]))


def agreed(
    domain: Domain, tables: Sequence[OverlapTable], structural_zeros: Sequence[StructuralZeros] = ()
) -> Consistent:
    """The least-squares tables that agree wherever they overlap; counts may be negative."""
    layout = _Layout.of(domain, tables, structural_zeros)
    gap = layout.agree()
    return Consistent(layout.split(), 1, gap)


def consistent(
    domain: Domain,
    tables: Sequence[OverlapTable],
    structural_zeros: Sequence[StructuralZeros] = (),
    *,
    rounds: int = 100,
    way: Literal["norm_sub", "norm_cut"] = "norm_sub",
) -> Consistent:
    """Tables that agree and hold no negative count, as far as so many rounds of one and the other come.

    What is negative after the last round is set to 0, so the tables may then disagree by that much (`gap`).
    """
    layout = _Layout.of(domain, tables, structural_zeros)
    taken = 0
    for taken in range(1, rounds + 1):
        layout.agree()
        total = max(layout.total, 1.0)
        if -np.minimum(layout.values, 0.0).sum() <= _LEFT_OVER * total * len(tables) or taken == rounds:
            break
        layout.cut(total, way)
    np.maximum(layout.values, 0.0, out=layout.values)
    if layout.total <= 0.0:  # nothing but noise below 0: any possible record is as good as another
        layout.values[:] = layout.variances > 0.0
    return Consistent(layout.split(), taken, layout.gap())


class _Layout(NamedTuple):
    """All tables in one array, and for each common part the tables that hold it.

    Table i lies from starts[i] to starts[i + 1]; its columns have `sizes[i]`. Part p has `cells[p]` cells and the
    members firsts[p] to firsts[p + 1]: table `members[m]`, whose columns move the place in the part by `strides[m]`.
    """

    values: Floats
    variances: Floats
    starts: Ints
    sizes: Ints
    cells: Ints
    firsts: Ints
    members: Ints
    strides: Ints

    @classmethod
    def of(
        cls, domain: Domain, tables: Sequence[OverlapTable], structural_zeros: Sequence[StructuralZeros]
    ) -> "_Layout":
        if not tables:
            raise UsageError("tables", "there must be at least one.")
        cliques = [table.clique for table in tables]
        for table in tables:
            _check(domain, table)
        starts = np.cumsum([0, *(domain.cells(clique) for clique in cliques)])
        width = max(1, *(len(clique) for clique in cliques))
        sizes = np.ones((len(tables), width), dtype=np.int64)
        for place, clique in enumerate(cliques):
            sizes[place, : len(clique)] = domain.shape(clique)
        parts = common_parts(domain, cliques)
        held = [[place for place, clique in enumerate(cliques) if set(part) <= set(clique)] for part in parts]
        kept = [place for place in range(len(parts)) if len(held[place]) > 1 or not parts[place]]
        members = np.array([member for place in kept for member in held[place]], dtype=np.int64)
        strides = np.zeros((members.size, width), dtype=np.int64)
        for row, (part, member) in enumerate((parts[place], member) for place in kept for member in held[place]):
            stride = 1
            for name in reversed(part):
                strides[row, cliques[member].index(name)] = stride
                stride *= domain.sizes[name]
        firsts = np.cumsum([0, *(len(held[place]) for place in kept)])
        cells = np.array([domain.cells(parts[place]) for place in kept], dtype=np.int64)
        values = np.concatenate([table.values for table in tables]).astype(np.float64)
        variances = np.concatenate([np.broadcast_to(table.variances, table.values.shape) for table in tables])
        layout = cls(values, variances.astype(np.float64), starts, sizes, cells, firsts, members, strides)
        layout.variances[_impossible(domain, cliques, parts, structural_zeros)] = 0.0
        layout.values[layout.variances == 0.0] = 0.0
        return layout

    @property
    def total(self) -> float:
        """The number of records of the first table; the same in all once they agree."""
        return float(self.values[: self.starts[1]].sum())

    def split(self) -> tuple[Floats, ...]:
        """The counts of each table."""
        return tuple(self.values[low:high] for low, high in itertools.pairwise(self.starts))

    def gap(self) -> float:
        """The largest disagreement: a table's sum in a cell of a part from the tables' mean there."""
        return float(_agree(*self[:2], self[2:], False))

    def agree(self) -> float:
        """Shifts all tables until they agree; the disagreement left."""
        scale = max(1.0, float(np.abs(self.values).max()))
        for _ in range(_PASSES):
            # The first pass reports what it found; with equal variances the second finds nothing left to do.
            gap = float(_agree(*self[:2], self[2:], True))
            if gap <= _TOLERANCE * scale:
                break
        return gap

    def cut(self, total: float, way: str) -> None:
        """Makes every table's counts 0 or more, with that total."""
        for low, high in itertools.pairwise(self.starts):
            if way == "norm_sub":
                _cut(self.values[low:high], self.variances[low:high], total)
                continue
            possible = self.variances[low:high] > 0.0
            if possible.any():
                self.values[low:high][possible] = norm_cut(self.values[low:high][possible], total)


def _check(domain: Domain, table: OverlapTable) -> None:
    where = f"table {' × '.join(table.clique) or 'total'}"
    if table.clique != domain.clique(table.clique) or table.values.shape != (domain.cells(table.clique),):
        raise UsageError(where, "needs its columns in the order of the domain and one value per cell.")
    variances = np.asarray(table.variances)
    if variances.shape not in ((), table.values.shape):
        raise UsageError(where, "needs one variance, or one per cell.")
    if not (np.isfinite(table.values).all() and np.isfinite(variances).all() and (variances > 0.0).all()):
        raise UsageError(where, "needs finite values and variances above 0.")


def _impossible(
    domain: Domain, cliques: Sequence[Clique], parts: Sequence[Clique], structural_zeros: Sequence[StructuralZeros]
) -> Bools:
    """Which cells of all tables are excluded by rules, in their own table or in one they overlap with."""
    every = [np.arange(domain.cells(clique), dtype=np.int64) for clique in cliques]
    possible = [allowed(domain, clique, cells, structural_zeros) for clique, cells in zip(cliques, every, strict=True)]
    changed = not all(part.all() for part in possible)
    while changed:
        changed = False
        for part in parts:
            held = [place for place, clique in enumerate(cliques) if set(part) <= set(clique)]
            places = {place: sub_indices(domain, cliques[place], every[place], part) for place in held}
            open_cells = np.ones(domain.cells(part), dtype=bool)
            for place in held:
                open_cells &= np.bincount(places[place], weights=possible[place], minlength=open_cells.size) > 0.0
            for place in held:
                narrowed = possible[place] & open_cells[places[place]]
                changed |= bool((narrowed != possible[place]).any())
                possible[place] = narrowed
    return ~np.concatenate(possible)


@compiled()  # pragma: no cover
def _fold(values, sizes, strides, sums):  # type: ignore[no-untyped-def]
    """Adds each value to the place of its cell in a part."""
    digits = np.zeros(sizes.size, np.int64)
    place = 0
    for cell in range(values.size):
        sums[place] += values[cell]
        place = _advance(digits, sizes, strides, place)


@compiled()  # pragma: no cover
def _spread(values, variances, sizes, strides, shifts):  # type: ignore[no-untyped-def]
    """Adds to each value its variance times the shift of its place in a part."""
    digits = np.zeros(sizes.size, np.int64)
    place = 0
    for cell in range(values.size):
        values[cell] += variances[cell] * shifts[place]
        place = _advance(digits, sizes, strides, place)


@compiled()  # pragma: no cover
def _advance(digits, sizes, strides, place):  # type: ignore[no-untyped-def]
    """The place of the next cell, row-major."""
    for axis in range(sizes.size - 1, -1, -1):
        digits[axis] += 1
        place += strides[axis]
        if digits[axis] < sizes[axis]:
            return place
        place -= strides[axis] * sizes[axis]
        digits[axis] = 0
    return place


@compiled()  # pragma: no cover
def _agree(values, variances, layout, change):  # type: ignore[no-untyped-def]
    """One pass over all parts; returns the largest distance of a table's sum from the tables' mean."""
    starts, sizes, cells, firsts, members, strides = layout
    gap = 0.0
    for part in range(cells.size):
        count = firsts[part + 1] - firsts[part]
        sums, spans = np.zeros((count, cells[part])), np.zeros((count, cells[part]))
        for place in range(count):
            row = firsts[part] + place
            low, high = starts[members[row]], starts[members[row] + 1]
            _fold(values[low:high], sizes[members[row]], strides[row], sums[place])
            _fold(variances[low:high], sizes[members[row]], strides[row], spans[place])
        for cell in range(cells[part]):
            weighted, weights = 0.0, 0.0
            for place in range(count):
                if spans[place, cell] > 0.0:
                    weighted += sums[place, cell] / spans[place, cell]
                    weights += 1.0 / spans[place, cell]
            for place in range(count):
                if spans[place, cell] > 0.0:
                    away = weighted / weights - sums[place, cell]
                    gap = max(gap, abs(away))
                    sums[place, cell] = away / spans[place, cell]
                else:
                    sums[place, cell] = 0.0
        for place in range(count if change else 0):
            row = firsts[part] + place
            low, high = starts[members[row]], starts[members[row] + 1]
            _spread(values[low:high], variances[low:high], sizes[members[row]], strides[row], sums[place])
    return gap


@compiled()  # pragma: no cover
def _cut(values, variances, total):  # type: ignore[no-untyped-def]
    """The nearest counts of 0 or more with that total, in place: a level is taken off until it fixes."""
    level, kept = -np.inf, values.size + 1
    while True:  # fewer cells are kept each time, so it ends
        mass, count = 0.0, 0
        for cell in range(values.size):
            if variances[cell] > 0.0 and values[cell] > level:
                mass += values[cell]
                count += 1
        if count == 0 or count >= kept:
            break
        kept, level = count, (mass - total) / count
    for cell in range(values.size):
        values[cell] = max(values[cell] - level, 0.0) if variances[cell] > 0.0 else 0.0
