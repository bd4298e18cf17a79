"""Small tables of columns compared: distances (marginals, crosstab_l1), associations (slopes, correlations, chi2).

marginals and crosstab_l1
-------------------------
How far are the two tables apart in every small table, and in the full one? `marginals` is the total variation distance
of every 1-, 2- and 3-way table, worst first: ½ Σ|f − g| over shares, the part of the rows that would have to move for
the tables to agree. Every column, pair and triple is counted on all rows; when there are more triples than
`most_triples`, that many are drawn with the seed and the result says so.

`crosstab_l1` is the distance of the full cross-tabulations over all columns at once: L1 = Σ|x − x̂| over every cell
that occurs, half of it (rows that would have to move), and the same for shares. The yardstick of the counts is that of
two halves, scaled up to tables of the real size.

slopes and correlations
-----------------------
Are columns as strongly related as in the real table? Each level is a 0/1 indicator. slope of y on x: P(y | x) − P(y |
not x); correlation: slope · √(P(x)(1 − P(x)) / (P(y)(1 − P(y)))). Both follow from the 2-way table. `slopes` takes
every level y of an outcome column with every level x of any other; its panels are those of a decision-tree study of
federal personnel records: slopes synthetic against real, and joint shares of chosen columns with their correlation.
`correlations` takes every level of a column with every level of another. Columns with very many levels are represented
by their most frequent ones in the real table.

Where a number cannot be computed from the synthetic table (a level does not occur, or nothing else does) while the
real table has one, the synthetic one counts as 0: nobody would see an association there.

The headline is the agreement over all pairs. Most levels of most columns have hardly anything to do with each other, so
a mean of differences is small whether or not the few strong relations were kept; it comes last and says so.

chi2
----
Does a test of independence reach the same verdict on both tables, for every pair of columns? Pearson's test without
continuity correction on all pairs; empty rows and columns of a table are left out of its degrees of freedom. Several
copies are pooled by the rule of Li, Meng, Raghunathan and Rubin on the degrees of freedom of the public domain. Pairs
that a rule ties together (structural zeros) are kept and flagged. A pair that cannot be tested in the real table is
left out; one that cannot be tested in the synthetic table counts as "no association found".
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from scipy.optimize import brentq
from scipy.stats import chi2

from understudy.arrays import Floats, Ints
from understudy.codec.table import TableCodec
from understudy.domain import Clique
from understudy.evaluate.metric import (
    Context,
    Counted,
    Detail,
    Metric,
    Outcome,
    Result,
    Rows,
    Scale,
    Score,
    TablePair,
    Unavailable,
    check_columns,
    counted,
    declared_size,
    joint_counts,
    mean_outcome,
    table_of,
    total_variation,
    wholly_unread,
)
from understudy.evaluate.pooling_rules import pool_chi_squares
from understudy.options import option
from understudy.schema import Schema

WORDS = {1: "one_way", 2: "two_way", 3: "three_way"}
NOUNS = {1: "columns", 2: "pairs", 3: "triples"}


def _scales() -> tuple[Scale, ...]:
    found = []
    for ways in (2, 1, 3):
        noun = NOUNS[ways]
        found.append(Scale(f"{WORDS[ways]}_mean", f"mean total variation distance over {noun}"))
        found.append(Scale(f"{WORDS[ways]}_worst", f"largest total variation distance over {noun}"))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Marginals(Metric):
    """Distances of small tables."""

    name: ClassVar[str] = "marginals"
    question: ClassVar[str] = "Do columns, pairs and triples of columns have the same distribution?"
    scales: ClassVar[tuple[Scale, ...]] = _scales()

    ways: int = option(3, help="largest number of columns in a table, 1 to 3", least=1, most=3)
    most_triples: int = option(
        20_000, help="maximum number of triples; above it, a random sample of this size", least=1
    )

    def compare(self, pair: TablePair, context: Context) -> Result:
        """Mean and worst distance for each number of columns."""
        found = {ways: self._distances(pair, context, ways) for ways in range(1, self.ways + 1)}
        scores = dict(_scored(self.scales, found, self.ways))
        details = [_distance_detail(distances, ways) for ways, distances in found.items() if distances.cliques]
        notes = [distances.note for distances in found.values() if distances.note]
        return Result(
            self.name,
            self.question,
            tuple(scores[scale.name] for scale in self.scales),
            (*details, _cells(pair)),
            tuple(notes),
        )

    def _distances(self, pair: TablePair, context: Context, ways: int) -> "_Distances":
        names = pair.codec.domain.columns
        number = math.comb(len(names), ways)
        cliques = [Clique(chosen) for chosen in itertools.combinations(names, ways)]
        note = ""
        if ways == 3 and number > self.most_triples:
            chosen = np.sort(context.rng("triples").choice(number, self.most_triples, replace=False))
            cliques = [cliques[place] for place in chosen.tolist()]
            note = f"{self.most_triples:,} of {number:,} triples, drawn at random, were compared."
        halves = pair.halves
        parts = [pair.real, *pair.copies, pair.independent]
        if not isinstance(halves, Unavailable):
            parts.append(halves[0])
        values, lines, bottoms = np.zeros((3, len(cliques)))
        for place, table in enumerate(counted(parts, cliques)):
            copies = table.counts[1 : 1 + len(pair.copies)]
            values[place] = math.fsum(total_variation(table.counts[0], copy) for copy in copies) / len(copies)
            bottoms[place] = _from_baseline(pair, table, table.counts[1 + len(copies)])
            if not isinstance(halves, Unavailable):
                lines[place] = total_variation(table.counts[-1], table.counts[0] - table.counts[-1])
            if place % 64 == 0:
                context.done((ways - 1 + place / len(cliques)) / self.ways)
        context.done(ways / self.ways)
        return _Distances(cliques, values, halves if isinstance(halves, Unavailable) else lines, note, bottoms)


def _from_baseline(pair: TablePair, table: Counted, independent: Ints) -> float:
    """How far the real table is from columns drawn by themselves, a single column from all values equally often."""
    real = table.counts[0]
    if len(table.clique) > 1:
        return total_variation(real, independent)
    declared = declared_size(pair.codec, table.clique[0])
    places = np.arange(len(real)) if table.cells is None else table.cells
    even = np.where(places < declared, 1.0 / declared, 0.0)
    return min(1.0, float(np.abs(real / real.sum() - even).sum() + max(0.0, 1.0 - even.sum())) / 2)


@dataclass(frozen=True, slots=True, eq=False)
class _Distances:
    cliques: Sequence[Clique]
    values: Floats
    lines: Floats | Unavailable
    note: str
    bottoms: Floats


def _scored(scales: Sequence[Scale], found: dict[int, _Distances], ways: int) -> Iterator[tuple[str, Score]]:
    by_name = {scale.name: scale for scale in scales}
    for number, word in WORDS.items():
        mean, worst = by_name[f"{word}_mean"], by_name[f"{word}_worst"]
        if number not in found:
            reason = f"only tables of up to {ways} columns were asked for"
        elif not found[number].cliques:
            reason = f"the table has fewer than {number} columns"
        else:
            distances = found[number]
            low, high = float(distances.bottoms.mean()), float(distances.bottoms.max())
            yield mean.name, mean.score(float(distances.values.mean()), _line(distances.lines, np.mean), low)
            yield worst.name, worst.score(float(distances.values.max()), _line(distances.lines, np.max), high)
            continue
        yield mean.name, mean.missing(reason)
        yield worst.name, worst.missing(reason)


def _line(lines: Floats | Unavailable, summary: object) -> Outcome:
    if isinstance(lines, Unavailable):
        return lines
    return float(lines.max() if summary is np.max else lines.mean())


def _distance_detail(distances: _Distances, ways: int) -> Detail:
    order = np.argsort(-distances.values, kind="stable")
    lines = distances.lines
    columns: dict[str, Sequence[object]] = {
        f"column_{axis + 1}": [distances.cliques[place][axis] for place in order.tolist()] for axis in range(ways)
    }
    columns["distance"] = distances.values[order].tolist()
    columns["yardstick"] = [None] * len(order) if isinstance(lines, Unavailable) else lines[order].tolist()
    kinds = {name: pa.string() for name in list(columns)[:ways]} | {"distance": pa.float64(), "yardstick": pa.float64()}
    caption = f"Total variation distance of {NOUNS[ways]}, largest first; the yardstick is that of two real halves."
    return Detail(NOUNS[ways], caption, table_of(columns, kinds))


def _cells(pair: TablePair) -> Detail:
    """Shares of every label or bin of every column."""
    domain = pair.codec.domain
    cliques = [Clique([name]) for name in domain.columns]
    rows: list[tuple[str, str, float, float, int]] = []
    for table in counted([pair.real, *pair.copies], cliques):
        name = table.clique[0]
        real = table.counts[0] / table.counts[0].sum()
        copies = [counts / counts.sum() for counts in table.counts[1:]]
        synthetic = sum(copies[1:], copies[0]) / len(copies)
        codes = range(domain.sizes[name]) if table.cells is None else table.cells.tolist()
        declared = declared_size(pair.codec, name)
        for place, code in enumerate(codes):
            if code >= declared and not real[place] and not synthetic[place]:
                continue  # nothing of what the schema does not expect
            rows.append((name, pair.codec.describe(name, code), float(real[place]), float(synthetic[place]), code))
    rows.sort(key=lambda row: -abs(row[3] - row[2]))
    kinds = {
        "column": pa.string(),
        "label": pa.string(),
        "real_share": pa.float64(),
        "synthetic_share": pa.float64(),
        "code": pa.int64(),
    }
    columns = {name: [row[place] for row in rows] for place, name in enumerate(kinds)}
    return Detail(
        "cells", "Share of each label or bin in both tables, largest difference first.", table_of(columns, kinds)
    )


@dataclass(frozen=True, slots=True)
class CrosstabDistance(Metric):
    """Distance of the joint tables of all columns."""

    name: ClassVar[str] = "crosstab_l1"
    question: ClassVar[str] = "How many rows would have to change for all columns together to agree?"
    scales: ClassVar[tuple[Scale, ...]] = (
        Scale("total_variation", "half the sum of |differences| of shares over all cells of the full table"),
        Scale("l1", "sum of |differences| of counts over all cells of the full table", highest=None),
        Scale("half_l1", "half of that sum", highest=None),
    )

    def compare(self, pair: TablePair, context: Context) -> Result:
        """Distances of shares and of counts."""
        found = [_distances(pair.real, copy) for copy in pair.copies]
        lines = pair.between_halves(lambda one, other: _scaled_up(pair.real, one, other), len(self.scales))
        bottoms = _distances(pair.real, pair.independent)
        scores = [
            scale.score(mean_outcome([one[place] for one in found]), lines[place], bottoms[place])
            for place, scale in enumerate(self.scales)
        ]
        context.done(1.0)
        return Result(self.name, self.question, tuple(scores))


def _scaled_up(real: Rows, one: Rows, other: Rows) -> list[Outcome]:
    """The distances of two halves; those of counts, all but the first, as tables of the real size would have them."""
    first, *counts = _distances(one, other)
    factor = real.count / one.count
    return [first, *(line if isinstance(line, Unavailable) else line * factor for line in counts)]


def _distances(first: Rows, second: Rows) -> list[Outcome]:
    one, other = joint_counts(first, second)
    distance = float(np.abs(one - other).sum())
    return [total_variation(one, other), distance, distance / 2]


MOST_LEVELS = 40


def slope_table(table: Ints) -> Floats:
    """Slope of every row level on every column level; NaN where a column level is empty or everything.

    >>> float(slope_table(np.array([[30, 10], [20, 40]]))[0, 0].round(6))
    0.4
    """
    counts = table.astype(np.float64)
    total = counts.sum()
    outcome, given = counts.sum(axis=1, keepdims=True), counts.sum(axis=0, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes: Floats = counts / given - (outcome - counts) / (total - given)
    return slopes


def correlation_table(table: Ints) -> Floats:
    """Correlation of every row level with every column level; NaN where one of them does not vary."""
    counts = table.astype(np.float64)
    shares = counts / counts.sum()
    outcome, given = shares.sum(axis=1, keepdims=True), shares.sum(axis=0, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.sqrt(given * (1 - given) / (outcome * (1 - outcome)))
        found: Floats = np.clip(slope_table(table) * ratio, -1.0, 1.0)
    return np.where(np.isfinite(found), found, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class LevelPairs:
    """One pair of columns: the levels looked at, and the table of counts in every part."""

    outcome: str
    given: str
    outcome_codes: Ints
    given_codes: Ints
    tables: tuple[Ints, ...]


def level_pairs(
    pair: TablePair, parts: Sequence[Rows], outcomes: Sequence[str], *, both_ways: bool
) -> Iterator[LevelPairs]:
    """Every outcome column with every other column; once per pair unless both directions are wanted."""
    domain = pair.codec.domain
    levels = {name: _levels(pair.real, name) for name in domain.columns}
    cliques = [
        Clique(names)
        for names in itertools.combinations(domain.columns, 2)
        if any(pair.codec.origin(name) in outcomes for name in names)
    ]
    for table in counted(parts, cliques):
        first, second = table.clique
        whole = [
            _square(counts, table.cells, domain.shape(table.clique), levels, table.clique) for counts in table.counts
        ]
        directions = [(first, second), (second, first)]
        wanted = [names for names in directions if pair.codec.origin(names[0]) in outcomes]
        for outcome, given in wanted if both_ways else wanted[:1]:
            tables = tuple(one if outcome == first else one.T for one in whole)
            # The last row and column gather all other levels, so that shares are of all rows.
            yield LevelPairs(outcome, given, levels[outcome], levels[given], tables)


def _levels(rows: Rows, name: str) -> Ints:
    counts = np.bincount(rows.codes[name], minlength=rows.domain.sizes[name])
    often = np.argsort(-counts, kind="stable")[:MOST_LEVELS]
    return np.sort(often[counts[often] > 0])


def _square(counts: Ints, cells: Ints | None, shape: tuple[int, ...], levels: dict[str, Ints], clique: Clique) -> Ints:
    """The table over the chosen levels of both columns, with one more row and column for all others."""
    places = np.arange(len(counts)) if cells is None else cells
    maps = []
    for axis, name in enumerate(clique):
        table = np.full(shape[axis], len(levels[name]), np.int64)
        table[levels[name]] = np.arange(len(levels[name]))
        maps.append(table)
    rows, columns = maps[0][places // shape[1]], maps[1][places % shape[1]]
    sizes = (len(levels[clique[0]]) + 1, len(levels[clique[1]]) + 1)
    flat = np.bincount(rows * sizes[1] + columns, counts, sizes[0] * sizes[1])
    return np.rint(flat).astype(np.int64).reshape(sizes)


Measure = Callable[[Ints], Floats]

NEAR_ZERO = "; small wherever most pairs of levels are unrelated"
"""What a reader of a mean over all pairs of levels must know."""


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One real and one synthetic number for each pair of levels; `columns` and `codes` say which (both sides)."""

    columns: tuple[Ints, Ints]
    codes: tuple[Ints, Ints]
    real: Floats
    synthetic: Floats
    lost: int

    def outcomes(self) -> list[Outcome]:
        """Agreement, largest and mean difference: the order of the scales."""
        return [self.agreement(), self.largest_difference(), self.mean_difference()]

    def mean_difference(self) -> Outcome:
        """Mean of |synthetic − real|."""
        return self._summary(lambda gaps: float(gaps.mean()))

    def largest_difference(self) -> Outcome:
        """Largest |synthetic − real|."""
        return self._summary(lambda gaps: float(gaps.max()))

    def _summary(self, summary: Callable[[Floats], float]) -> Outcome:
        if not len(self.real):
            return Unavailable("no two columns of the real table have two values that can be read")
        return summary(np.abs(self.synthetic - self.real))

    def agreement(self) -> Outcome:
        """Correlation of the synthetic with the real numbers."""
        return agreement(self.real, self.synthetic)


def agreement(real: Floats, synthetic: Floats) -> Outcome:
    """Pearson's correlation, unless one side does not vary."""
    if len(real) < 3:
        return Unavailable("fewer than three points have no meaningful correlation")
    spreads = float(real.std()), float(synthetic.std())
    if min(spreads) <= 1e-12:
        return Unavailable(f"the {'real' if spreads[0] <= 1e-12 else 'synthetic'} values do not vary")
    return float(np.clip(np.corrcoef(real, synthetic)[0, 1], -1.0, 1.0))


def panel_of(
    pair: TablePair, real: Rows, copies: Sequence[Rows], measure: Measure, *, outcomes: Sequence[str], both_ways: bool
) -> Panel:
    """The numbers of every pair of levels; copies are averaged."""
    number = {name: place for place, name in enumerate(pair.codec.domain.columns)}
    places: list[Ints] = [np.empty((0, 4), np.int64)]
    ours: list[Floats] = [np.empty(0)]
    theirs: list[Floats] = [np.empty(0)]
    lost = 0
    for found in level_pairs(pair, [real, *copies], outcomes, both_ways=both_ways):
        numbers = [_inner(found, measure(table)) for table in found.tables]
        known = ~np.isnan(numbers[0])
        others = [np.where(np.isnan(one), 0.0, one)[known] for one in numbers[1:]]
        lost += int(sum(np.isnan(one[known]).sum() for one in numbers[1:]))
        ours.append(numbers[0][known])
        theirs.append(np.mean(others, axis=0))
        rows, columns = np.nonzero(known)
        names = np.full((len(rows), 2), [number[found.outcome], number[found.given]], np.int64)
        places.append(np.column_stack([names, found.outcome_codes[rows], found.given_codes[columns]]))
    where = np.concatenate(places)
    return Panel(
        (where[:, 0], where[:, 1]), (where[:, 2], where[:, 3]), np.concatenate(ours), np.concatenate(theirs), lost
    )


def _inner(found: LevelPairs, numbers: Floats) -> Floats:
    return numbers[: len(found.outcome_codes), : len(found.given_codes)]


def panel_detail(pair: TablePair, panel: Panel, name: str, caption: str) -> Detail:
    """Every pair of levels with both numbers, largest difference first."""
    order = np.argsort(-np.abs(panel.synthetic - panel.real), kind="stable")
    domain = pair.codec.domain
    starts = np.cumsum([0, *domain.sizes.values()])[:-1]
    words = [pair.codec.describe(one, code) for one, size in domain.sizes.items() for code in range(size)]
    columns: dict[str, pa.Array] = {}
    for side, prefix in enumerate(("", "other_")):
        names, codes = panel.columns[side][order], panel.codes[side][order]
        columns[f"{prefix}column"] = pa.array(domain.columns, pa.string()).take(pa.array(names))
        columns[f"{prefix}level"] = pa.array(words, pa.string()).take(pa.array(starts[names] + codes))
    columns["real"], columns["synthetic"] = pa.array(panel.real[order]), pa.array(panel.synthetic[order])
    return Detail(name, caption, pa.table(columns))


def panel_notes(pair: TablePair, panel: Panel) -> tuple[str, ...]:
    """What was left out or had to be taken as 0."""
    notes = []
    wide = [name for name, size in pair.codec.domain.sizes.items() if size > MOST_LEVELS]
    if wide:
        notes.append(f"Of columns with more than {MOST_LEVELS} levels, the most frequent ones: {', '.join(wide)}.")
    if panel.lost:
        notes.append(f"{panel.lost} numbers cannot be computed from the synthetic rows and count as 0.")
    return tuple(notes)


@dataclass(frozen=True, slots=True)
class Slopes(Metric):
    """Slopes between levels of columns."""

    name: ClassVar[str] = "slopes"
    question: ClassVar[str] = "Does one column change the probabilities of another as much as in the real table?"
    scales: ClassVar[tuple[Scale, ...]] = (
        Scale("agreement", "correlation of synthetic with real slopes", "higher", -1.0, 1.0, 1.0),
        Scale("worst_difference", "largest |synthetic slope − real slope|", highest=2.0),
        Scale("mean_difference", f"mean of |synthetic slope − real slope|{NEAR_ZERO}", highest=2.0),
        Scale("joint_shares", "correlation of joint shares of the chosen columns", "higher", -1.0, 1.0, 1.0),
    )

    outcomes: tuple[str, ...] = option((), help="columns whose labels are the outcomes; all by default")
    groups: tuple[str, ...] = option((), help="columns whose joint shares are compared")

    def check(self, schema: Schema) -> None:
        """Raises for a column that is not in the schema."""
        check_columns("slopes", (*self.outcomes, *self.groups), schema)

    def compare(self, pair: TablePair, context: Context) -> Result:
        """Agreement and differences of slopes."""
        panel = self._panel(pair, pair.real, pair.copies)
        context.done(0.5)
        shares = _joint_shares(pair, self.groups, pair.real, pair.copies)
        values = _outcomes(panel, shares)
        lines = pair.between_halves(
            lambda one, other: _outcomes(
                self._panel(pair, one, (other,)), _joint_shares(pair, self.groups, one, (other,))
            ),
            len(self.scales),
        )
        scores = tuple(scale.score(value, line) for scale, value, line in zip(self.scales, values, lines, strict=True))
        caption = "Slope of level y (first) on level x (second), largest difference first."
        details = [panel_detail(pair, panel, "levels", caption)]
        if not isinstance(shares, Unavailable):
            details.append(_share_detail(pair, self.groups, shares))
        return Result(self.name, self.question, scores, tuple(details), panel_notes(pair, panel))

    def _panel(self, pair: TablePair, real: Rows, copies: Sequence[Rows]) -> Panel:
        chosen = self.outcomes or pair.schema.names
        return panel_of(pair, real, copies, slope_table, outcomes=chosen, both_ways=True)


def _outcomes(panel: Panel, shares: tuple[Ints, Floats, Floats] | Unavailable) -> list[Outcome]:
    joint = shares if isinstance(shares, Unavailable) else agreement(shares[1], shares[2])
    return [*panel.outcomes(), joint]


def _joint_shares(
    pair: TablePair, groups: Sequence[str], real: Rows, copies: Sequence[Rows]
) -> tuple[Ints, Floats, Floats] | Unavailable:
    """Occupied cells of the joint table of the chosen columns and their shares in both tables."""
    if not groups:
        return Unavailable("no columns were chosen for joint shares (option groups)")
    names = [part for part in pair.codec.domain.columns if pair.codec.origin(part) in groups]
    table = next(counted([real, *copies], [pair.codec.domain.clique(names)]))
    shares = [counts / counts.sum() for counts in table.counts]
    theirs = np.mean(shares[1:], axis=0)
    used = np.flatnonzero((shares[0] > 0) | (theirs > 0))
    cells = used if table.cells is None else table.cells[used]
    return cells, shares[0][used], theirs[used]


def _share_detail(pair: TablePair, groups: Sequence[str], shares: tuple[Ints, Floats, Floats]) -> Detail:
    cells, real, theirs = shares
    names = [part for part in pair.codec.domain.columns if pair.codec.origin(part) in groups]
    order = np.argsort(-np.abs(real - theirs), kind="stable")
    codes = np.unravel_index(cells[order], pair.codec.domain.shape(names))
    columns: dict[str, list[object]] = {
        name: [pair.codec.describe(name, code) for code in codes[axis].tolist()] for axis, name in enumerate(names)
    }
    columns["real share"], columns["synthetic share"] = real[order].tolist(), theirs[order].tolist()
    kinds = dict.fromkeys(names, pa.string()) | {"real share": pa.float64(), "synthetic share": pa.float64()}
    return Detail(
        "joint_shares", "Joint shares of the chosen columns, largest difference first.", table_of(columns, kinds)
    )


@dataclass(frozen=True, slots=True)
class Correlations(Metric):
    """Correlations between levels of columns."""

    name: ClassVar[str] = "correlations"
    question: ClassVar[str] = "Are columns as strongly related as in the real table?"
    scales: ClassVar[tuple[Scale, ...]] = (
        Scale("agreement", "correlation of synthetic with real correlations", "higher", -1.0, 1.0, 1.0),
        Scale("worst_difference", "largest |synthetic correlation − real correlation|", highest=2.0),
        Scale("mean_difference", f"mean of |synthetic correlation − real correlation|{NEAR_ZERO}", highest=2.0),
    )

    outcomes: tuple[str, ...] = option((), help="columns on one side of each pair; all by default")

    def check(self, schema: Schema) -> None:
        """Raises for a column that is not in the schema."""
        check_columns("correlations", self.outcomes, schema)

    def compare(self, pair: TablePair, context: Context) -> Result:
        """Agreement and differences of correlations."""
        chosen = self.outcomes or pair.schema.names

        def panel_between(real: Rows, *copies: Rows) -> Panel:
            return panel_of(pair, real, copies, correlation_table, outcomes=chosen, both_ways=False)

        panel = panel_between(pair.real, *pair.copies)
        context.done(0.5)
        lines = pair.between_halves(lambda one, other: panel_between(one, other).outcomes(), len(self.scales))
        bottoms = panel_between(pair.real, pair.independent).outcomes()
        rows = zip(self.scales, panel.outcomes(), lines, bottoms, strict=True)
        scores = tuple(scale.score(value, line, bottom) for scale, value, line, bottom in rows)
        caption = "Correlation of two levels, largest difference first."
        detail = panel_detail(pair, panel, "levels", caption)
        return Result(self.name, self.question, scores, (detail,), panel_notes(pair, panel))


LEAST_P = 1e-290


@dataclass(frozen=True, slots=True)
class Tested:
    """The statistic on the rows and columns that occur, its degrees of freedom, its p-value, and the same p-value as
    a statistic on the degrees of freedom of the whole table."""

    statistic: float
    degrees: int
    p_value: float
    common: float


def pearson(
    counts: Ints, shape: tuple[int, int], cells: Ints | None = None, *, common: int | None = None
) -> Tested | None:
    """The test without continuity correction; None if fewer than two rows or columns occur.

    Args:
        counts: the counts of all cells in row-major order, or of those named in `cells`.
        shape: rows and columns of the whole table.
        cells: flat numbers of the cells counted.
        common: the common degrees of freedom, when they are not those of the whole table.
    """
    found = chi_square(counts, shape, cells)
    if found is None:
        return None
    statistic, used = found
    degrees = (used[0] - 1) * (used[1] - 1)
    p_value = float(chi2.sf(statistic, degrees))
    shared = (shape[0] - 1) * (shape[1] - 1) if common is None else common
    return Tested(statistic, degrees, p_value, converted(statistic, degrees, shared))


def chi_square(counts: Ints, shape: tuple[int, int], cells: Ints | None = None) -> tuple[float, tuple[int, int]] | None:
    """Pearson's statistic and how many rows and columns occur; None if fewer than two of either do."""
    places = np.arange(len(counts)) if cells is None else cells
    kept = counts > 0
    observed, places = counts[kept].astype(np.float64), places[kept]
    rows, columns = places // shape[1], places % shape[1]
    by_row = np.bincount(rows, observed, shape[0])
    by_column = np.bincount(columns, observed, shape[1])
    used = int((by_row > 0).sum()), int((by_column > 0).sum())
    if min(used) < 2:
        return None
    expected = by_row[rows] * by_column[columns] / float(observed.sum())
    # Σ(O − E)²/E = Σ O²/E − n; summed as (O/E − 1)·O, which loses less.
    return max(0.0, float(((observed / expected - 1.0) * observed).sum())), used


def converted(statistic: float, degrees: int, common: int) -> float:
    """The statistic on `common` degrees of freedom with the same p-value, also where that is below all floats."""
    if degrees == common:
        return statistic
    p_value = float(chi2.sf(statistic, degrees))
    if p_value > LEAST_P:
        return float(chi2.isf(p_value, common))
    target = _log_tail(statistic, degrees)
    low, high = float(common), statistic + 2.0 * common
    while _log_tail(high, common) > target:
        high *= 2
    return float(brentq(lambda place: _log_tail(place, common) - target, low, high, xtol=1e-9, rtol=1e-12))


def _log_tail(statistic: float, degrees: int) -> float:
    """log P(χ² > statistic) far in the tail: y^(a−1) e^(−y) / Γ(a) / (1 − (a − 1)/y) with y = x/2, a = k/2."""
    place, shape = statistic / 2, degrees / 2
    lead = (shape - 1) * math.log(place) - place - math.lgamma(shape)
    return lead - math.log1p(-min((shape - 1) / place, 0.999_999))


LEVELS = {"at_5_percent": 0.05, "at_1_percent": 0.01, "at_10_percent": 0.10}


@dataclass(frozen=True, slots=True)
class ChiSquare(Metric):
    """Agreement of tests of independence."""

    name: ClassVar[str] = "chi2"
    question: ClassVar[str] = "Would a test find the same associations between columns?"
    scales: ClassVar[tuple[Scale, ...]] = tuple(
        Scale(name, f"share of pairs with the same verdict at the {level:.0%} level", "higher", 0.0, 1.0, 1.0)
        for name, level in LEVELS.items()
    )

    def compare(self, pair: TablePair, context: Context) -> Result:
        """The share of pairs with the same verdict, at three levels."""
        found, skipped = _verdicts(pair, pair.real, pair.copies, context)
        lines = pair.between_halves(
            lambda one, other: _rates(_verdicts(pair, one, (other,), context)[0]), len(self.scales)
        )
        scores = [
            scale.score(value, line) for scale, value, line in zip(self.scales, _rates(found), lines, strict=True)
        ]
        notes = []
        if skipped:
            notes.append(_why_skipped(pair, skipped))
        if any(one.structural for one in found):
            notes.append(f"{sum(one.structural for one in found)} pairs have cells that a rule makes impossible.")
        return Result(self.name, self.question, tuple(scores), (_verdict_detail(found),) if found else (), tuple(notes))


@dataclass(frozen=True, slots=True)
class _Verdict:
    clique: Clique
    real: float
    synthetic: float
    statistic: float
    structural: bool


def _verdicts(
    pair: TablePair, original: Rows, copies: tuple[Rows, ...], context: Context
) -> tuple[list[_Verdict], int]:
    domain, sizes = pair.codec.domain, _sizes(pair.codec, original, *copies)
    cliques = [Clique(names) for names in itertools.combinations(domain.columns, 2)]
    tied = [
        set(structural_zeros.clique) for structural_zeros in pair.codec.structural_zeros if structural_zeros.mask.any()
    ]
    found: list[_Verdict] = []
    for place, table in enumerate(counted([original, *copies], cliques)):
        shape = (domain.sizes[table.clique[0]], domain.sizes[table.clique[1]])
        common = (sizes[table.clique[0]] - 1) * (sizes[table.clique[1]] - 1)
        tested = _tested(table, shape, common)
        if tested[0] is not None:
            structural = any(names <= set(table.clique) for names in tied)
            combined = _combined(tested[1:], common)
            found.append(_Verdict(table.clique, tested[0].p_value, combined, tested[0].statistic, structural))
        if place % 64 == 0:
            context.done(place / len(cliques))
    return found, len(cliques) - len(found)


def _sizes(codec: TableCodec, *tables: Rows) -> dict[str, int]:
    """Codes of each column: those that the schema declares, and of the others those that occur."""
    found = {}
    for name in codec.domain.columns:
        declared = declared_size(codec, name)
        odd = {int(code) for rows in tables for code in np.unique(rows.codes[name]).tolist() if code >= declared}
        found[name] = declared + len(odd)
    return found


def _why_skipped(pair: TablePair, skipped: int) -> str:
    """Why pairs cannot be tested: what cannot be read is not called a single value, for it may be many."""
    unread = [name for name in pair.codec.domain.columns if wholly_unread(pair.real, name)]
    if unread:
        words = f"the schema can read no value of {', '.join(unread)}, or a column holds a single value"
        return f"{skipped} pairs were left out: in the real table {words}."
    return f"{skipped} pairs were left out: a column holds a single value in the real table."


def _tested(table: Counted, shape: tuple[int, int], common: int) -> list[Tested | None]:
    return [pearson(counts, shape, table.cells, common=common) for counts in table.counts]


def _combined(tested: list[Tested | None], common: int) -> float:
    """The p-value of all copies together; a copy that cannot be tested found nothing."""
    if len(tested) == 1:
        return 1.0 if tested[0] is None else tested[0].p_value
    return pool_chi_squares([0.0 if one is None else one.common for one in tested], common).p_value


def _rates(verdicts: list[_Verdict]) -> list[Outcome]:
    """The share of equal verdicts at every level, in the order of the scales."""
    if not verdicts:
        reason = "no pair of columns can be tested: fewer than two columns have two values that can be read"
        return [Unavailable(reason) for _ in LEVELS]
    return [
        sum((one.real < level) == (one.synthetic < level) for one in verdicts) / len(verdicts)
        for level in LEVELS.values()
    ]


def _verdict_detail(verdicts: list[_Verdict]) -> Detail:
    def badness(one: _Verdict) -> tuple[int, float]:
        wrong = sum((one.real < level) != (one.synthetic < level) for level in LEVELS.values())
        return -wrong, -one.statistic

    ordered = sorted(verdicts, key=badness)
    columns: dict[str, list[object]] = {
        "column_1": [one.clique[0] for one in ordered],
        "column_2": [one.clique[1] for one in ordered],
        "real_p_value": [one.real for one in ordered],
        "synthetic_p_value": [one.synthetic for one in ordered],
        "same_at_5_percent": [(one.real < 0.05) == (one.synthetic < 0.05) for one in ordered],
        "structural_zero": [one.structural for one in ordered],
    }
    kinds = {
        "column_1": pa.string(), "column_2": pa.string(), "real_p_value": pa.float64(),
        "synthetic_p_value": pa.float64(), "same_at_5_percent": pa.bool_(), "structural_zero": pa.bool_(),
    }  # fmt: skip
    return Detail("pairs", "Tests of independence of every pair, different verdicts first.", table_of(columns, kinds))
