"""RecordModel: synthetic records themselves as the model, moved until they have wanted tables.

The distribution is the one of the records: each equally likely. Drawing takes every record the same number of times
and the rest without repeats, in random order; as many rows as there are records give back just these. So rows drawn in
one piece hold the tables they were made for and nothing is lost to sampling. Records that rules exclude were never
made, so none is drawn.

Moving records is post-processing: it sees wanted counts, which come from noisy answers, and public rules. Given those
and a seed the rows are always the same; nothing depends on the number of threads. Rows are picked from a random place
onward. Their order means nothing, so that is as good as picking at random, and it reads memory in order. A change that
would break a rule is not made.

Gradual update
--------------
Source: DPSyn (Li, Zhang, Wang 2019) and PrivSyn (Zhang et al. 2021).

One step looks at one table. Cells that hold too few rows get more: at most a share α of what they hold, or α of what
they should hold if they are empty. As many rows leave the cells that hold too many: at most a share β of each, β such
that the numbers match. A row that leaves is overwritten, either by a copy of a whole row of the cell that needs one
("duplicate"), or in the columns of this table alone ("replace"); empty cells are always filled by replacing. Even
rounds do half of each, odd rounds duplicate only. Fractions of rows are rounded along the running sum with one random
offset, so that small wants are met in the long run.

Where few tables overlap the distance falls until it is small. Where many do, each step undoes part of the others and it
stays where it is: 200 pairs of 21 columns, 10⁶ rows, 50 rounds: total variation 0.127 before and 0.142 after, where 10
column sweeps end at 0.0001 (benchmarks/gradual_update.py). They have no such limit, and methods use them unless told
otherwise.

Column sweeps
-------------
A step of the gradual update moves whole rows at random, which shakes every other table: the distance stays where the
shaking balances the gain, at about the number of tables times their cells, in rows. Here a value is changed only if the
sum of squared distances over all tables falls, so the distance never rises and ends near what rounding to whole rows
allows (benchmarks/gradual_update.py).

One sweep goes through the columns in a random order and through all rows. With gaps e = rows − wanted, changing a row's
code from x to x' changes the sum of squares by 2·Σ (1 + e(x') − e(x)) over the tables that hold the column, their other
codes as in the row; x' is the code where that is lowest, if it is below 0.

Blocks of columns
-----------------
A block that shares columns with what is there already is joined within their codes: each record gets, in random order,
the rest of a record of the block with the same codes there. A block that shares none is joined record by record.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Ints
from understudy.compiled import compiled
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import UsageError
from understudy.models.model import (
    Codes,
    Contents,
    ModelFiles,
    StoredModel,
    query_clique,
    query_codes,
    size_list,
    total_faults,
)
from understudy.models.tables import code_dtype

Stacked = npt.NDArray[np.unsignedinteger]
"""Codes, one line per column and one place per row."""


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A table the rows should have: counts of 0 or more, flat row-major; only their shares matter."""

    clique: Clique
    counts: Floats

    def wanted(self, rows: int) -> Floats:
        """The counts, scaled to that many rows."""
        return np.asarray(self.counts * (rows / float(self.counts.sum())))


class Updated(NamedTuple):
    """The rows, and after each round the sum over all tables of |rows − wanted|."""

    codes: Codes
    errors: tuple[float, ...]


class Rules(NamedTuple):
    """Rules in flat arrays: rule r looks at picks[r, :] (−1: none) with strides[r, :], its mask is from starts[r]."""

    picks: Ints
    strides: Ints
    starts: Ints
    masks: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, domain: Domain, structural_zeros: Sequence[StructuralZeros]) -> "Rules":
        """The rules over the columns of the domain."""
        width = max((len(rule.clique) for rule in structural_zeros), default=1)
        picks = np.full((len(structural_zeros), width), -1, dtype=np.int64)
        strides = np.zeros((len(structural_zeros), width), dtype=np.int64)
        starts = np.zeros(len(structural_zeros), dtype=np.int64)
        masks = [np.zeros(0, dtype=bool)]
        for place, rule in enumerate(structural_zeros):
            stride = 1
            for axis in reversed(range(len(rule.clique))):
                picks[place, axis] = domain.columns.index(rule.clique[axis])
                strides[place, axis] = stride
                stride *= domain.sizes[rule.clique[axis]]
            starts[place] = sum(mask.size for mask in masks)
            masks.append(rule.mask)
        return cls(picks, strides, starts, np.concatenate(masks))

    def touching(self, columns: Iterable[int]) -> Ints:
        """The rules that look at one of these columns."""
        return np.flatnonzero(np.isin(self.picks, list(columns)).any(axis=1)).astype(np.int64)


def checked(domain: Domain, target: Target) -> Target:
    """The target itself, or UsageError if its shape or its counts are wrong."""
    where = f"target {' × '.join(target.clique)}"
    cells = math.prod(domain.shape(domain.clique(target.clique)))
    if domain.clique(target.clique) != target.clique or target.counts.shape != (cells,):
        raise UsageError(where, "needs its columns in the order of the domain and one count per cell.")
    mass = float(target.counts.sum())
    if not np.isfinite(mass) or mass <= 0.0 or target.counts.min() < 0.0:
        raise UsageError(where, "needs finite counts of 0 or more, not all 0.")
    return target


def stacked(domain: Domain, codes: Codes) -> Stacked:
    """A copy of the rows, one line per column, in the smallest type that holds all codes."""
    dtype = code_dtype(max(domain.sizes.values()))
    return np.stack([np.asarray(codes[name]).astype(dtype) for name in domain.columns])


def unstacked(domain: Domain, columns: Stacked) -> Codes:
    """The rows by column name, each column in the smallest type that holds its codes."""
    return {name: columns[place].astype(code_dtype(domain.sizes[name])) for place, name in enumerate(domain.columns)}


@compiled()  # pragma: no cover
def breaks(columns, row, watched, rules):  # type: ignore[no-untyped-def]
    """Whether a row lies in a cell that one of the watched rules excludes."""
    for rule in watched:
        cell = rules.starts[rule]
        for axis in range(rules.picks.shape[1]):
            if rules.picks[rule, axis] >= 0:
                cell += np.int64(columns[rules.picks[rule, axis], row]) * rules.strides[rule, axis]
        if rules.masks[cell]:
            return True
    return False


def separate(
    domain: Domain, blocks: Sequence[Sequence[Clique]], structural_zeros: Sequence[StructuralZeros]
) -> list[Clique]:
    """The columns of each block of tables; blocks that a rule ties together become one.

    A rule ties blocks that hold columns of it: records joined from two of them could break it.
    """
    groups = [{name for clique in block for name in clique} for block in blocks]
    for rule in structural_zeros:
        touched = [group for group in groups if group & set(rule.clique)]
        if touched:
            groups = [group for group in groups if group not in touched]
            groups.append(set(rule.clique).union(*touched))
    return [domain.clique(group) for group in groups if group]


def joined(domain: Domain, start: Codes, pieces: Sequence[Codes], rng: np.random.Generator) -> Codes:
    """Records with the columns of all pieces (equally many records each); other columns are as at the start."""
    found: dict[str, npt.NDArray[np.integer]] = {}
    for piece in pieces:
        shared = domain.clique(name for name in piece if name in found)
        places = np.arange(len(next(iter(piece.values()))))
        if found:
            places = _matched(_cells(domain, shared, found), _cells(domain, shared, piece), rng)
        found |= {name: codes[places] for name, codes in piece.items() if name not in found}
    return {name: found.get(name, start[name]) for name in domain.columns}


def _cells(domain: Domain, shared: Clique, codes: Codes) -> Ints:
    cells = np.zeros(len(next(iter(codes.values()))), dtype=np.int64)
    for name in shared:
        cells = cells * domain.sizes[name] + codes[name]
    return cells


def _matched(wanted: Ints, offered: Ints, rng: np.random.Generator) -> Ints:
    """For each record a place in the offered ones of the same cell, each as often as any other there, or any place."""
    order = rng.permutation(wanted.size)
    order = order[np.argsort(wanted[order], kind="stable")]
    stock = rng.permutation(offered.size)
    stock = stock[np.argsort(offered[stock], kind="stable")]
    values, first = np.unique(offered[stock], return_index=True)
    counts = np.diff(np.append(first, stock.size))
    which = np.minimum(np.searchsorted(values, wanted[order]), values.size - 1)
    same = values[which] == wanted[order]
    # The how-manieth of its cell each record is: the place in order less the place where its cell begins.
    begins = np.searchsorted(wanted[order], wanted[order], side="left")
    turn = np.arange(order.size) - begins
    picks = np.where(same, stock[first[which] + turn % counts[which]], rng.integers(stock.size, size=order.size))
    found = np.empty(wanted.size, dtype=np.int64)
    found[order] = picks
    return found


@dataclass(frozen=True, eq=False)
class RecordModel(StoredModel):
    """A distribution over `domain` given by synthetic records, each column in the smallest type that holds it."""

    kind: ClassVar[str] = "records"
    stored: ClassVar[Mapping[str, str]] = {"bytes": "<u1", "words": "<u2", "long_words": "<u4"}
    """The columns of one width, one after the other."""

    domain: Domain
    codes: Codes
    total: float

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise UsageError("records", fault)

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.codes[self.domain.columns[0]])

    def marginal(self, clique: Clique) -> Floats:
        """Shares of records in the clique's cells, flat row-major.

        Raises:
            ResourceError: if the table would be too large to hold.
        """
        wanted = query_clique(self.domain, clique)
        cells: npt.NDArray[np.int64] = np.zeros(self.records, dtype=np.int64)
        for name in wanted:
            cells *= self.domain.sizes[name]
            cells += self.codes[name]
        return np.bincount(cells, minlength=self.domain.cells(wanted)) / self.records

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` records: each equally often, the rest picked without repeats, in random order."""
        if rows < 0:
            raise UsageError("rows", f"must be 0 or more, got {rows}.")
        places = np.tile(np.arange(self.records), -(-rows // self.records)) if rows else np.zeros(0, dtype=np.int64)
        full = rows - rows % self.records
        # Without repeats, so that no record stands out in the part that does not come out even.
        places[full:] = rng.permutation(self.records)[: places.size - full]
        places = rng.permutation(places[:rows])
        return {name: self.codes[name][places] for name in self.domain.columns}

    def condition(self, where: Mapping[str, npt.NDArray[np.integer]]) -> Self:
        """The records whose named columns hold one of the codes; `total` shrinks with their share.

        Raises:
            UsageError: if a code is outside its column or no record is like that.
        """
        kept = np.ones(self.records, dtype=bool)
        for name, wanted in where.items():
            kept &= query_codes(self.domain, name, wanted)[self.codes[name]]
        if not kept.any():
            names = ", ".join(where)
            raise UsageError(
                f"where {names}", "no synthetic record of this release is like that.", "Allow more values."
            )
        codes = {name: self.codes[name][kept] for name in self.domain.columns}
        return type(self)(self.domain, codes, self.total * float(kept.mean()))

    def contents(self) -> Contents:
        """Document and arrays of its file form."""
        document = {"total": self.total, "records": self.records, "domain": size_list(self.domain)}
        columns = {key: _columns(self.domain, np.dtype(width)) for key, width in self.stored.items()}
        return document, {key: [self.codes[name] for name in names] for key, names in columns.items()}

    @classmethod
    def of_contents(cls, files: ModelFiles) -> Self:
        """The model of its file form."""
        domain, records = files.domain(), files.value("records", int)
        codes: dict[str, npt.NDArray[np.integer]] = {}
        for key, width in cls.stored.items():
            names = _columns(domain, np.dtype(width))
            codes |= dict(zip(names, files.pieces(key, [records] * len(names)), strict=True))
        return cls(domain, {name: codes[name] for name in domain.columns}, files.number("total"))

    def _faults(self) -> list[str]:
        if set(self.codes) != set(self.domain.columns) or len({len(codes) for codes in self.codes.values()}) != 1:
            return ["every column of the domain must have one code per record."]
        if not self.records:
            return ["there must be at least one."]
        if total_faults(self.total):
            return total_faults(self.total)
        for name, size in self.domain.sizes.items():
            if self.codes[name].dtype != code_dtype(size):
                return [f"column {name}: codes must have the smallest type that holds them."]
            if int(self.codes[name].max()) >= size:
                return [f"column {name}: codes must lie between 0 and {size - 1}."]
        return []


def _columns(domain: Domain, width: np.dtype[np.unsignedinteger]) -> list[str]:
    """The columns whose codes have that width, in order."""
    return [name for name, size in domain.sizes.items() if np.dtype(code_dtype(size)).itemsize == width.itemsize]


_COPIES = 4
"""Small tables are counted in this many places at once: neighbours that fall in one cell would wait for each other."""
_FEW_CELLS = 4096
# 2⁶⁴ divided by the golden ratio, odd: splitmix64 passes through all numbers by it.
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


def gradual_update(
    domain: Domain,
    codes: Codes,
    targets: Sequence[Target],
    *,
    seed: int,
    schedule: Schedule | None = None,
    structural_zeros: Sequence[StructuralZeros] = (),
) -> Updated:
    """The rows after all rounds: as many as before, their tables nearer to the targets.

    Args:
        domain: The codes.
        codes: The rows to begin with, all columns of the domain; they must obey the rules and are not changed.
        targets: The wanted tables. They should agree with each other and with the rules.
        seed: Of the choices between equally good rows.
        schedule: Rounds and step sizes.
        structural_zeros: Cells that rules exclude; no step puts a row there.
    """
    plan = schedule or Schedule()
    columns = stacked(domain, codes)
    rows = columns.shape[1]
    rules = Rules.of(domain, structural_zeros)
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

    Both kinds of rows are found on one way through the rows, without branches. The lists have space for one place more
    than there are moves, which is written and never read.
    """
    victims, sources, wants = lists
    kept, moves, found = np.zeros(counts.size, np.int64), 0, 0
    for cell in range(counts.size):
        kept[cell] = min(whole[cell], counts[cell])
        if whole[cell] > 0:
            moves += whole[cell]
            found += kept[cell]
    gone, place = 0, 0
    for step in range(cells.size):
        if gone == moves and place == found:
            break
        row = start + step
        if row >= cells.size:
            row -= cells.size
        cell = cells[row]
        left = kept[cell]
        leaves, stays = int(left < 0), int(left > 0)
        victims[gone], sources[place], wants[place] = row, row, cell
        gone += leaves
        place += stays
        kept[cell] = left + leaves - stays
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


def column_sweeps(
    domain: Domain,
    codes: Codes,
    targets: Sequence[Target],
    *,
    seed: int,
    sweeps: int = 10,
    tolerance: float = 0.0,
    structural_zeros: Sequence[StructuralZeros] = (),
) -> Updated:
    """The rows after so many sweeps, or fewer if nothing moves any more; the errors after each.

    Args:
        domain: The codes.
        codes: The rows to begin with, all columns of the domain; they must obey the rules and are not changed.
        targets: The wanted tables. They should agree with each other and with the rules.
        seed: Of the order of columns and where among the rows a sweep begins.
        sweeps: Most passes over all rows and columns.
        tolerance: Sweeps end once one has changed no more values than this share of the rows.
        structural_zeros: Cells that rules exclude; no change puts a row there.
    """
    rng = np.random.default_rng(seed)
    columns = stacked(domain, codes)
    rows = columns.shape[1]
    wanted = [checked(domain, target) for target in targets if len(target.clique)]
    gaps = [_gaps(domain, codes, target, rows) for target in wanted]
    rules = Rules.of(domain, structural_zeros)
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
        if moved <= tolerance * rows:
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


_CHUNK = 256
"""Rows whose places in all tables are worked out side by side."""


@compiled()  # pragma: no cover
def _sweep(columns, view, rules, watched, start):  # type: ignore[no-untyped-def]
    """One column in all rows; returns how many were changed.

    Nearly all rows stay, so which might move is worked out for many rows at a time, and again for each of those alone.
    """
    size, gaps, tables, rows = view.size, view.gaps, view.starts.size, columns.shape[1]
    least = np.empty(gaps.size // size)  # at most the gaps of a block: of cells that differ in this column alone
    for block in range(least.size):
        least[block] = gaps[block * size : (block + 1) * size].min()
    scores, blocks, missed = np.zeros(size), np.empty((tables, _CHUNK), np.int64), np.empty(_CHUNK)
    moved = 0
    for begin, end in ((start, rows), (0, start)):
        for low in range(begin, end, _CHUNK):
            column = columns[view.pick, low : min(low + _CHUNK, end)]
            _find_blocks(columns, view, low, column, blocks, missed)
            for place in range(column.size):
                if missed[place] <= 0.0:  # the row is missed where it is
                    continue
                code, here, lowest = column[place], 0.0, 0.0
                for table in range(tables):
                    block = blocks[table, place]
                    here += gaps[block * size + code]
                    lowest += least[block]
                # A move changes each table's squares by 2·(1 + e(x′) − e(x)): not even the lowest gaps would make the
                # sum negative.
                if here <= 0.0 or lowest >= here - tables:
                    continue
                scores[:] = 0.0
                for table in range(tables):
                    first = blocks[table, place] * size
                    for other in range(size):
                        scores[other] += gaps[first + other]
                best, best_score = code, here - tables
                for other in range(size):
                    if scores[other] < best_score:
                        best, best_score = other, scores[other]
                if best == code:
                    continue
                column[place] = best
                if watched.size and breaks(columns, low + place, watched, rules):
                    column[place] = code
                    continue
                for table in range(tables):
                    block = blocks[table, place]
                    # At once, and not at the end of the sweep, or all rows would run to the same cell.
                    gaps[block * size + code] -= 1.0
                    gaps[block * size + best] += 1.0
                    least[block] = min(least[block], gaps[block * size + code])
                moved += 1
    return moved


@compiled()  # pragma: no cover
def _find_blocks(columns, view, low, column, blocks, missed):  # type: ignore[no-untyped-def]
    """Fills in each row's block in each table, and the sum of the gaps where it is."""
    gaps, rows = view.gaps, column.size
    missed[:rows] = 0.0
    for table in range(view.starts.size):
        block = blocks[table]
        block[:] = view.starts[table] // view.size
        for axis in range(view.others.shape[1]):
            if view.others[table, axis] >= 0:
                other = columns[view.others[table, axis], low : low + rows]
                stride = view.strides[table, axis] // view.size
                for place in range(rows):
                    block[place] += other[place] * stride
        for place in range(rows):
            missed[place] += gaps[np.uint64(block[place] * view.size + column[place])]  # never below 0
