"""Gradual update: rows moved step by step until their tables are near given ones, without ever fitting a model.

Source: the gradual update method of DPSyn (Li, Zhang, Wang 2019) and PrivSyn (Zhang et al. 2021). Post-processing: it
sees wanted counts, which come from noisy answers, and public rules. Given those and a seed the rows are always the
same; nothing depends on the number of threads.

One step looks at one table. Cells that hold too few rows get more: at most a share α of what they hold, or α of what
they should hold if they are empty. As many rows leave the cells that hold too many: at most a share β of each, β such
that the numbers match. A row that leaves is overwritten, either by a copy of a whole row of the cell that needs one
("duplicate"), or in the columns of this table alone ("replace"); empty cells are always filled by replacing. Even
rounds do half of each, odd rounds duplicate only. Fractions of rows are rounded along the running sum with one random
offset, so that small wants are met in the long run. A replacement that would break a rule is not made.

Where few tables overlap the distance falls until it is small. Where many do, each step undoes part of the others and it
stays where it is: 200 pairs of 21 columns, 10⁶ rows, 50 rounds: total variation 0.127 before and 0.142 after, where 10
column sweeps end at 0.0001 (benchmarks/gradual_update.py). They have no such limit, and methods use them unless told
otherwise.

Rows are picked from a random place onward. Their order means nothing, so that is as good as picking at random, and it
reads memory in order.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.errors import UsageError
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.models.draw import code_dtype
from understudy.models.model import Codes
from understudy.models.overlap.rows import Rules, Stacked, Target, Updated, breaks, checked, stacked, unstacked

__all__ = ["Changes", "Schedule", "changes", "gradual_update", "working_bytes"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_COPIES = 4
"""Small tables are counted in this many places at once: neighbours that fall in one cell would wait for each other."""
_FEW_CELLS = 4096
_STEP = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class Schedule:
    """How many rounds, and α: `first` in the beginning, multiplied by `decay` after every `every` rounds."""

    rounds: int = 50
    first: float = 1.0
    decay: float = 0.84
    every: int = 20

    def __post_init__(self) -> None:
        if type(self.rounds) is not int or self.rounds < 0 or type(self.every) is not int or self.every < 1:
            raise UsageError("rounds", "must be a whole number, 0 or more, and their period 1 or more.")
        if not 0.0 < self.first <= 1.0 or not 0.0 < self.decay <= 1.0:
            raise UsageError("α", "and its decay must lie above 0 and be at most 1.")

    def alpha(self, number: int) -> float:
        """α of a round, counted from 0.

        >>> [round(Schedule().alpha(number), 4) for number in (0, 19, 20, 40)]
        [1.0, 1.0, 0.84, 0.7056]
        """
        return self.first * self.decay ** (number // self.every)


class Changes(NamedTuple):
    """How many rows each cell gains (or loses, below 0), before and after rounding, and the share β."""

    raw: Floats
    whole: Ints
    beta: float


def changes(current: Ints, wanted: Floats, alpha: float, offset: float = 0.5) -> Changes:
    """What one step does to a table, given the rows in each cell and the rows wanted there (equal sums).

    >>> changes(np.array([4, 3, 3, 0]), np.array([2.0, 4.0, 3.0, 1.0]), 1.0).whole.tolist()
    [-2, 1, 0, 1]
    """
    raw, whole = np.zeros(current.size), np.zeros(current.size, dtype=np.int64)
    beta, _ = _changes(
        np.asarray(current, dtype=np.int64), np.asarray(wanted, dtype=np.float64), alpha, offset, raw, whole
    )
    return Changes(raw, whole, beta)


def working_bytes(domain: Domain, rows: int, cells: int) -> int:
    """Bytes that an update of that many rows needs, the largest table having `cells` cells."""
    width = np.dtype(code_dtype(max(domain.sizes.values()))).itemsize
    return rows * (2 * len(domain.columns) * width + 16) + (8 * (_COPIES + 4)) * cells


def gradual_update(
    domain: Domain,
    codes: Codes,
    targets: Sequence[Target],
    *,
    seed: int,
    schedule: Schedule | None = None,
    forbidden: Sequence[Forbidden] = (),
) -> Updated:
    """The rows after all rounds: as many as before, their tables nearer to the targets.

    Args:
        domain: The codes.
        codes: The rows to begin with, all columns of the domain; they must obey the rules and are not changed.
        targets: The wanted tables. They should agree with each other and with the rules.
        seed: Of the choices between equally good rows.
        schedule: Rounds and step sizes.
        forbidden: Cells that rules exclude; no step puts a row there.
    """
    plan = schedule or Schedule()
    columns = stacked(domain, codes)
    rows = columns.shape[1]
    rules = Rules.of(domain, forbidden)
    tables = [_Table.of(domain, checked(domain, target), rows, rules) for target in targets if len(target.clique)]
    state = np.array([seed % 2**64], dtype=np.uint64)
    scratch = _Scratch(np.empty(rows, dtype=np.uint32), np.empty((3, rows + 1), dtype=np.int32), state)
    last = np.full(len(tables), math.inf)
    errors = []
    for number in range(plan.rounds if rows else 0):
        how = _How(plan.alpha(number), number % 2 == 0)
        for place in np.argsort(-last, kind="stable"):
            table = tables[place]
            last[place] = _step(columns, table, rules, scratch, how)
        errors.append(float(last.sum()))
    return Updated(unstacked(domain, columns), tuple(errors))


class _Scratch(NamedTuple):
    """The cell of each row; rows that leave, rows to copy and cells to come to; the state of the generator."""

    cells: npt.NDArray[np.uint32]
    places: npt.NDArray[np.int32]
    state: npt.NDArray[np.uint64]


class _How(NamedTuple):
    """α of a round, and whether half of the rows are replaced in the table's columns only."""

    alpha: float
    halves: bool


class _Table(NamedTuple):
    """A target as the kernels want it: its columns, their strides and sizes, wanted rows per cell, rules to look at."""

    picks: Ints
    strides: Ints
    sizes: Ints
    wanted: Floats
    watched: Ints

    @classmethod
    def of(cls, domain: Domain, target: Target, rows: int, rules: Rules) -> "_Table":
        shape = np.array(domain.shape(target.clique), dtype=np.int64)
        strides = np.concatenate([np.cumprod(shape[:0:-1])[::-1], np.ones(1, dtype=np.int64)])
        picks = np.array([domain.columns.index(name) for name in target.clique], dtype=np.int64)
        return cls(picks, strides, shape, target.wanted(rows), rules.touching(picks.tolist()))


def _step(columns: Stacked, table: _Table, rules: Rules, scratch: "_Scratch", how: "_How") -> float:
    """One table: moves the rows, and returns the distance it had before."""
    cells, places, state = scratch
    alpha, halves = how
    size = table.wanted.size
    _locate(columns, table.picks, table.strides, cells)
    counts = np.zeros((_COPIES if size <= _FEW_CELLS else 1, size), dtype=np.int64)
    _tally(cells, counts)
    counts[0] = counts.sum(axis=0)
    raw, whole = np.zeros(size), np.zeros(size, dtype=np.int64)
    offset = float(_draw(state)) / 2.0**64
    _, moved = _changes(counts[0], table.wanted, alpha, offset, raw, whole)
    if moved:
        start = int(_draw(state)) % cells.size
        _pick(cells, counts[0], whole, start, (places[0], places[1], places[2]))
        _apply(columns, table, rules, (places[0, :moved], places[1, :moved], places[2, :moved]), halves, state)
    return float(np.abs(counts[0] - table.wanted).sum())


@compiled()  # pragma: no cover
def _draw(state):  # type: ignore[no-untyped-def]
    """The next 64 random bits (splitmix64)."""
    state[0] += np.uint64(_STEP)
    bits = state[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@compiled()  # pragma: no cover
def _locate(columns, picks, strides, cells):  # type: ignore[no-untyped-def]
    """The cell of every row; two columns at a time, in loops the compiler can vectorise."""
    first, factor = columns[picks[0]], np.uint32(strides[0])
    if picks.size == 1:
        for row in range(cells.size):
            cells[row] = np.uint32(first[row]) * factor
        return
    second, other = columns[picks[1]], np.uint32(strides[1])
    for row in range(cells.size):
        cells[row] = np.uint32(first[row]) * factor + np.uint32(second[row]) * other
    for pick in range(2, picks.size):
        first, factor = columns[picks[pick]], np.uint32(strides[pick])
        for row in range(cells.size):
            cells[row] += np.uint32(first[row]) * factor


@compiled()  # pragma: no cover
def _tally(cells, counts):  # type: ignore[no-untyped-def]
    """Rows per cell; with four copies, row i is counted in copy i mod 4."""
    whole = 0
    if counts.shape[0] == 4:
        whole = cells.size - cells.size % 4
        one, two, three, four = counts[0], counts[1], counts[2], counts[3]
        for row in range(0, whole, 4):
            one[cells[row]] += 1
            two[cells[row + 1]] += 1
            three[cells[row + 2]] += 1
            four[cells[row + 3]] += 1
    one = counts[0]
    for row in range(whole, cells.size):
        one[cells[row]] += 1


@compiled()  # pragma: no cover
def _share(counts, wanted, gained, beta):  # type: ignore[no-untyped-def]
    """β at which Σ min(excess, β · rows) is what other cells gain: Newton's method, from a β that is not too large.

    The sum is concave in β, so every step ends below the solution or on it, and there are finitely many pieces.
    """
    while True:
        mass, slope = 0.0, 0.0
        for cell in range(counts.size):
            excess = counts[cell] - wanted[cell]
            if excess > 0.0:
                if excess <= beta * counts[cell]:
                    mass += excess
                else:
                    slope += counts[cell]
        following = (gained - mass) / slope if slope > 0.0 else beta
        if not following - beta > 1e-12:
            return min(beta, 1.0)
        beta = following


@compiled()  # pragma: no cover
def _changes(counts, wanted, alpha, offset, raw, whole):  # type: ignore[no-untyped-def]
    """Fills in gains and losses per cell, raw and whole; returns β and the whole number of rows moved."""
    gained, held = 0.0, 0.0
    for cell in range(counts.size):
        gap = wanted[cell] - counts[cell]
        if gap > 0.0:
            raw[cell] = alpha * wanted[cell] if counts[cell] == 0 else min(gap, alpha * counts[cell])
            gained += raw[cell]
        elif gap < 0.0:
            held += counts[cell]
    if gained <= 0.0 or held <= 0.0:
        raw[:] = 0.0
        return 0.0, 0
    beta = _share(counts, wanted, gained, gained / held)
    up, down, ups, downs = offset, offset, 0, 0
    for cell in range(counts.size):
        excess = counts[cell] - wanted[cell]
        if excess > 0.0:
            raw[cell] = -min(excess, beta * counts[cell])
            down -= raw[cell]
            whole[cell] = downs - math.floor(down)
            downs -= whole[cell]
        elif raw[cell] > 0.0:
            up += raw[cell]
            whole[cell] = math.floor(up) - ups
            ups += whole[cell]
    for cell in range(counts.size - 1, -1, -1):  # sums that differ in the last digit may differ by one row
        while ups > downs and whole[cell] > 0:
            whole[cell] -= 1
            ups -= 1
        while downs > ups and whole[cell] < 0:
            whole[cell] += 1
            downs -= 1
    return beta, ups


@compiled()  # pragma: no cover
def _pick(cells, counts, whole, start, lists):  # type: ignore[no-untyped-def]
    """Fills in the rows that leave, a row of the cell each of them comes to (−1 if that is empty), and that cell.

    Both kinds of rows are found on one way through the rows, without branches. The lists have room for one place more
    than there are moves, which is written and never read.
    """
    victims, sources, wants = lists
    room, moves, found = np.zeros(counts.size, np.int64), 0, 0
    for cell in range(counts.size):
        room[cell] = min(whole[cell], counts[cell])
        if whole[cell] > 0:
            moves += whole[cell]
            found += room[cell]
    gone, place = 0, 0
    for step in range(cells.size):
        if gone == moves and place == found:
            break
        row = start + step
        if row >= cells.size:
            row -= cells.size
        cell = cells[row]
        left = room[cell]
        leaves, stays = int(left < 0), int(left > 0)
        victims[gone], sources[place], wants[place] = row, row, cell
        gone += leaves
        place += stays
        room[cell] = left + leaves - stays
    for cell in range(counts.size):  # what a cell needs beyond the rows it has can only be made by replacing
        for _ in range(whole[cell] - counts[cell]):
            sources[place], wants[place] = -1, cell
            place += 1


@compiled()  # pragma: no cover
def _apply(columns, table, rules, moves, halves, state):  # type: ignore[no-untyped-def]
    """Overwrites every row that leaves."""
    victims, sources, wants = moves
    before = np.empty(table.picks.size, columns.dtype)
    bits, copies = np.uint64(0), 0
    for place in range(victims.size):
        if place % 64 == 0:
            bits = _draw(state)
        copying = sources[place] >= 0 and not (halves and bits & np.uint64(1))
        bits >>= np.uint64(1)
        row = victims[place]
        if not copying:
            for axis in range(table.picks.size):
                before[axis] = columns[table.picks[axis], row]
                code = (wants[place] // table.strides[axis]) % table.sizes[axis]
                columns[table.picks[axis], row] = code
            if breaks(columns, row, table.watched, rules):
                copying = sources[place] >= 0
                for axis in range(table.picks.size):
                    columns[table.picks[axis], row] = before[axis]
        if copying:  # no row both leaves and is copied, so copying can wait
            victims[copies], sources[copies] = row, sources[place]
            copies += 1
    for column in columns:  # one column at a time: it stays in the processor's cache
        for place in range(copies):
            column[victims[place]] = column[sources[place]]
