"""marginals and crosstab_l1: how far the two tables are apart in every small table, and in the full one.

`marginals` is the total variation distance of every 1-, 2- and 3-way table, worst first: ½ Σ|f − g| over shares, the
part of the rows that would have to move for the tables to agree. Every column, pair and triple is counted on all rows;
when there are more triples than `most_triples`, that many are drawn with the seed and the result says so.

`crosstab_l1` is the distance of the full cross-tabulations over all columns at once: L1 = Σ|x − x̂| over every cell
that occurs, half of it (rows that would have to move), and the same for shares. The yardstick of the counts is that of
two halves, scaled up to tables of the real size.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from understudy.arrays import Floats
from understudy.domain import Clique
from understudy.evaluate.data import Rows, counted, declared_size, joint_counts, total_variation
from understudy.evaluate.metric import (
    Context,
    Detail,
    Metric,
    Outcome,
    Result,
    Scale,
    Score,
    TablePair,
    Unavailable,
    mean_outcome,
    table_of,
)
from understudy.options import option

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
        details = [_detail(distances, ways) for ways, distances in found.items() if distances.cliques]
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
        parts = [pair.real, *pair.copies]
        if not isinstance(halves, Unavailable):
            parts.append(halves[0])
        values = np.zeros(len(cliques))
        lines = np.zeros(len(cliques))
        for place, table in enumerate(counted(parts, cliques)):
            copies = table.counts[1 : 1 + len(pair.copies)]
            values[place] = math.fsum(total_variation(table.counts[0], copy) for copy in copies) / len(copies)
            if not isinstance(halves, Unavailable):
                lines[place] = total_variation(table.counts[-1], table.counts[0] - table.counts[-1])
            if place % 64 == 0:
                context.done((ways - 1 + place / len(cliques)) / self.ways)
        context.done(ways / self.ways)
        return _Distances(cliques, values, halves if isinstance(halves, Unavailable) else lines, note)


@dataclass(frozen=True, slots=True, eq=False)
class _Distances:
    cliques: Sequence[Clique]
    values: Floats
    lines: Floats | Unavailable
    note: str


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
            yield mean.name, mean.score(float(distances.values.mean()), _line(distances.lines, np.mean))
            yield worst.name, worst.score(float(distances.values.max()), _line(distances.lines, np.max))
            continue
        yield mean.name, mean.missing(reason)
        yield worst.name, worst.missing(reason)


def _line(lines: Floats | Unavailable, summary: object) -> Outcome:
    if isinstance(lines, Unavailable):
        return lines
    return float(lines.max() if summary is np.max else lines.mean())


def _detail(distances: _Distances, ways: int) -> Detail:
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
        scores = [
            scale.score(mean_outcome([one[place] for one in found]), lines[place])
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
