"""Column sweeps: rows changed one value at a time, each change bringing all tables together nearer to wanted ones.

Why it exists. A step of `gradual_update` looks at one table and moves whole rows at random, which shakes every other
table: the distance settles where the shaking balances the gain, at about the number of tables times their cells, in
rows. Here a value is changed only if the sum of squared distances over all tables falls, so the distance never rises
and ends near what rounding to whole rows allows (benchmarks/gradual_update.py).

One sweep goes through the columns in a random order and through all rows from a random place onward. With gaps
e = rows − wanted, changing a row's code from x to x' changes the sum of squares by 2·Σ (1 + e(x') − e(x)) over the
tables that hold the column, their other codes as in the row; x' is the code where that is lowest, if it is below 0. A
change that would break a rule is not made.

Post-processing, like `gradual_update`: given the wanted tables and a seed the rows are always the same.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.models.model import Codes
from understudy.models.overlap.rows import Rules, Target, Updated, breaks, checked, stacked, unstacked

__all__ = ["column_sweeps"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def column_sweeps(
    domain: Domain,
    codes: Codes,
    targets: Sequence[Target],
    *,
    seed: int,
    sweeps: int = 10,
    forbidden: Sequence[Forbidden] = (),
) -> Updated:
    """The rows after so many sweeps, or fewer if nothing moves any more; the errors after each.

    Args:
        domain: The codes.
        codes: The rows to begin with, all columns of the domain; they must obey the rules and are not changed.
        targets: The wanted tables. They should agree with each other and with the rules.
        seed: Of the order of columns and where among the rows a sweep begins.
        sweeps: Most passes over all rows and columns.
        forbidden: Cells that rules exclude; no change puts a row there.
    """
    rng = np.random.default_rng(seed)
    columns = stacked(domain, codes)
    rows = columns.shape[1]
    wanted = [checked(domain, target) for target in targets if len(target.clique)]
    gaps = [_gaps(domain, codes, target, rows) for target in wanted]
    rules = Rules.of(domain, forbidden)
    held = [[place for place, t in enumerate(wanted) if name in t.clique] for name in domain.columns]
    errors: list[float] = []
    for _ in range(sweeps if rows else 0):
        moved = 0
        for pick in rng.permutation(len(domain.columns)):
            start = int(rng.integers(rows))
            if held[pick] and domain.sizes[domain.columns[pick]] > 1:
                view = _View.of(domain, wanted, gaps, held[pick], int(pick))
                watched = rules.touching([int(pick)])
                moved += _sweep(columns, view, rules, watched, start)
                view.write_back(domain, wanted, gaps, held[pick])
        errors.append(sum(float(np.abs(gap).sum()) for gap in gaps))
        if not moved:
            break
    return Updated(unstacked(domain, columns), tuple(errors))


def _gaps(domain: Domain, codes: Codes, target: Target, rows: int) -> Floats:
    """Rows in each cell less the rows wanted there."""
    cells = np.zeros(rows, dtype=np.int64)
    for name in target.clique:
        cells *= domain.sizes[name]
        cells += codes[name]
    return np.bincount(cells, minlength=target.counts.size) - target.wanted(rows)


class _View(NamedTuple):
    """The tables that hold one column, that column last, one after the other in one array.

    The other columns of table t are others[t, :] (−1: none) with strides[t, :]; it begins at starts[t].
    """

    pick: int
    size: int
    gaps: Floats
    starts: Ints
    others: Ints
    strides: Ints

    @classmethod
    def of(
        cls, domain: Domain, wanted: Sequence[Target], gaps: Sequence[Floats], held: Sequence[int], pick: int
    ) -> "_View":
        name = domain.columns[pick]
        width = max(1, *(len(wanted[place].clique) - 1 for place in held))
        others = np.full((len(held), width), -1, dtype=np.int64)
        strides = np.zeros((len(held), width), dtype=np.int64)
        starts = np.cumsum([0, *(gaps[place].size for place in held)])[:-1]
        turned = []
        for row, place in enumerate(held):
            clique = wanted[place].clique
            table = gaps[place].reshape(domain.shape(clique))
            turned.append(np.moveaxis(table, clique.index(name), -1).ravel())
            stride = domain.sizes[name]
            for axis, other in reversed(list(enumerate(other for other in clique if other != name))):
                others[row, axis], strides[row, axis] = domain.columns.index(other), stride
                stride *= domain.sizes[other]
        return cls(pick, domain.sizes[name], np.concatenate(turned), starts, others, strides)

    def write_back(self, domain: Domain, wanted: Sequence[Target], gaps: list[Floats], held: Sequence[int]) -> None:
        """Puts the gaps back in the order of their tables."""
        name = domain.columns[self.pick]
        for start, place in zip(self.starts, held, strict=True):
            clique = wanted[place].clique
            shape = (*(domain.sizes[other] for other in clique if other != name), self.size)
            table = self.gaps[start : start + gaps[place].size].reshape(shape)
            gaps[place] = np.moveaxis(table, -1, clique.index(name)).ravel()


@compiled()  # pragma: no cover
def _sweep(columns, view, rules, watched, start):  # type: ignore[no-untyped-def]
    """One column in all rows; returns how many were changed."""
    column, gaps, tables, rows = columns[view.pick], view.gaps, view.starts.size, columns.shape[1]
    scores, bases, moved = np.zeros(view.size), np.empty(tables, np.int64), 0
    for step in range(rows):
        row = start + step
        if row >= rows:
            row -= rows
        code, here = column[row], 0.0
        for table in range(tables):
            place = view.starts[table]
            for axis in range(view.others.shape[1]):
                if view.others[table, axis] >= 0:
                    place += np.int64(columns[view.others[table, axis], row]) * view.strides[table, axis]
            bases[table] = place
            here += gaps[place + code]
        if here <= 0.0:  # the row is missed where it is
            continue
        scores[:] = 0.0
        for table in range(tables):
            place = bases[table]
            for other in range(view.size):
                scores[other] += gaps[place + other]
        best, low = code, here - tables
        for other in range(view.size):
            if scores[other] < low:
                best, low = other, scores[other]
        if best == code:
            continue
        column[row] = best
        if watched.size and breaks(columns, row, watched, rules):
            column[row] = code
            continue
        for table in range(tables):
            gaps[bases[table] + code] -= 1.0
            gaps[bases[table] + best] += 1.0
        moved += 1
    return moved
