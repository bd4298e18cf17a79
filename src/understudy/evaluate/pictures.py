"""The numbers behind a report's pictures that are no scores: shares, associations, groups, a map, nearest rows.

Everything is a `Detail`, so that each picture has its table as JSON and CSV too. Real rows are compared with the copies
of the stand-in together (shares are averaged), associations and groups from the 2-way tables of all pairs of columns.
Sampling of rows follows from the seed alone. Nothing here is a measure of privacy.

Associations are Cramér's V with Bergsma's correction, which does not rise with the number of levels. Groups are the
labels of a column: within each, the mean distance of all other columns, beside the same for the halves of the group
that lie in the two halves of the real table. The map is a principal component analysis of indicators and standardised
numbers, fitted to real rows. Nearest rows are counted in columns that differ (numbers by their bin), from synthetic
rows and from real rows of one half to the rows of the other half.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa

from understudy.arrays import Floats, Ints
from understudy.codec.table import TableCodec
from understudy.domain import Clique
from understudy.evaluate.metric import (
    Counted,
    Detail,
    Rows,
    TablePair,
    Unavailable,
    counted,
    declared_size,
    table_of,
)
from understudy.schema import Boolean, Category, OpenCategory
from understudy.schema.columns import NumberColumn

ColumnPairs = Sequence[tuple[str, str]]
MOST_CELLS = 250_000
"""Cells of a 2-way table above which groups within it are not looked at."""


def pictures_of(pair: TablePair, drawn: ColumnPairs) -> tuple[Detail, ...]:
    """Every table behind a picture; `drawn` names the pairs of columns to show cell by cell."""
    found = [_columns(pair)]
    if drawn:
        found.append(_pairs(pair, drawn))
    found += _between_columns(pair)
    rng = np.random.default_rng([pair.seed, 0xD2A3])
    found += _map(pair, rng)
    found += _nearest(pair, rng)
    return tuple(found)


def _kinds(codec: TableCodec, name: str) -> list[str]:
    """What each code of a column is: a bin of numbers, a label, or something the schema sets apart."""
    layout = codec.layout(name)
    number = isinstance(codec.schema.column(codec.origin(name)), NumberColumn)
    kinds = ["bin" if number else "label"] * layout.regular + ["special"] * layout.special
    return kinds + ["other"] * layout.other + ["missing"] * layout.missing + ["unreadable"] * layout.unreadable


def _columns(pair: TablePair) -> Detail:
    """Shares of every code of every column, in order."""
    rows: list[tuple[str, str, str, float, float]] = []
    domain = pair.codec.domain
    for table in counted([pair.real, *pair.copies], [Clique([name]) for name in domain.columns]):
        name = table.clique[0]
        real, made = _shares(table)
        kinds, declared = _kinds(pair.codec, name), declared_size(pair.codec, name)
        codes = range(domain.sizes[name]) if table.cells is None else table.cells.tolist()
        for place, code in enumerate(codes):
            if code < declared or real[place] or made[place]:
                rows.append(
                    (name, pair.codec.describe(name, code), kinds[code], float(real[place]), float(made[place]))
                )
    kinds_of = {"column": pa.string(), "label": pa.string(), "kind": pa.string()}
    kinds_of |= {"real_share": pa.float64(), "synthetic_share": pa.float64()}
    columns = {key: [row[place] for row in rows] for place, key in enumerate(kinds_of)}
    return Detail(
        "columns", "Share of each label or bin in both tables, in the schema's order.", table_of(columns, kinds_of)
    )


def _shares(table: Counted) -> tuple[Floats, Floats]:
    """Shares in the real table, and the mean of the copies."""
    shares = [counts / max(counts.sum(), 1) for counts in table.counts]
    return shares[0], np.mean(shares[1:], axis=0)


MOST_SIDE = 10
"""Levels of a column that are shown in the picture of a pair."""


MOST_PAIR_CELLS = 7_500
"""Cells of all pictures of pairs together, names counted as cells: so many keep the page of 50 columns below 3 MB."""


def named_pair(text: str, columns: Sequence[str]) -> tuple[str, str] | None:
    """The two columns that a text such as "sex,age" names; None if it names no two. Names may hold commas.

    >>> named_pair("age, net", ["age", "net"]), named_pair("age", ["age", "net"])
    (('age', 'net'), None)
    """
    parts = text.split(",")
    for cut in range(1, len(parts)):
        first, second = ",".join(parts[:cut]).strip(), ",".join(parts[cut:]).strip()
        if first in columns and second in columns and first != second:
            return first, second
    return None


def pairs_to_draw(pair: TablePair, asked: ColumnPairs, others: ColumnPairs) -> list[tuple[str, str]]:
    """Those asked for, and then as many of the others, in their order, as `MOST_PAIR_CELLS` has room for."""
    sizes, used = pair.codec.domain.sizes, 0
    found: dict[frozenset[str], tuple[str, str]] = {}
    for place, names in enumerate([*asked, *others]):
        if frozenset(names) in found:
            continue
        used += math.prod(min(sizes[name], MOST_SIDE) + 1 for name in names)
        if place >= len(asked) and used > MOST_PAIR_CELLS:
            break
        found[frozenset(names)] = names
    return list(found.values())


def _pairs(pair: TablePair, drawn: ColumnPairs) -> Detail:
    """Joint shares of pairs, in their order; many levels are put together."""
    cliques = [pair.codec.domain.clique(names) for names in drawn]
    levels = {name: _levels(pair, name) for name in {name for names in drawn for name in names}}
    found: list[tuple[str, str, str, str, float, float]] = []
    for table in counted([pair.real, *pair.copies], cliques):
        first, second = table.clique
        sides = [levels[name] for name in table.clique]
        size = pair.codec.domain.sizes[second]
        places = np.arange(len(table.counts[0])) if table.cells is None else table.cells
        rows, columns = sides[0].place[places // size], sides[1].place[places % size]
        width = len(sides[1].names)
        real, made = (
            np.bincount(rows * width + columns, shares, len(sides[0].names) * width) for shares in _shares(table)
        )
        found += [
            (first, one, second, other, float(real[row * width + column]), float(made[row * width + column]))
            for row, one in enumerate(sides[0].names)
            for column, other in enumerate(sides[1].names)
        ]
    kinds = dict.fromkeys(("column_1", "label_1", "column_2", "label_2"), pa.string())
    kinds |= dict.fromkeys(("real_share", "synthetic_share"), pa.float64())
    columns_of = {key: [row[place] for row in found] for place, key in enumerate(kinds)}
    caption = "Joint shares of pairs of columns: those asked for, then the furthest off first."
    return Detail("drawn_pairs", caption, table_of(columns_of, kinds))


@dataclass(frozen=True, slots=True)
class _Levels:
    """Levels as a picture shows them: the place of each code, and the names of the places."""

    place: Ints
    names: list[str]


def _levels(pair: TablePair, name: str) -> _Levels:
    """Bins, and many ascending numbers, in runs of neighbours; of labels the most frequent and the others together."""
    size, codec = pair.codec.domain.sizes[name], pair.codec
    kinds = _kinds(codec, name)
    often = np.sum([np.bincount(rows.codes[name], minlength=size) for rows in (pair.real, *pair.copies)], axis=0)
    place = np.zeros(size, np.int64)
    names: list[str] = []
    bins, numbers = kinds.count("bin"), _numbers(codec, name, kinds.count("label"))
    room = max(3, MOST_SIDE - sum(bool(often[code]) for code in range(bins + numbers, size)))
    runs = _even_runs(bins, room) if bins else _frequent_runs(often[:numbers], room)
    for start, stop in runs:
        place[start:stop] = len(names)
        names.append(_run_name(codec.describe(name, start), codec.describe(name, stop - 1), bins=bool(bins)))
    rest = [code for code in range(bins + numbers, size) if often[code]]
    order = sorted(rest, key=lambda code: -int(often[code]))
    kept = sorted(order if len(order) <= MOST_SIDE else order[: MOST_SIDE - 1])
    for code in kept:
        place[code] = len(names)
        names.append(codec.describe(name, code))
    others = [code for code in rest if code not in set(kept)]
    if others:
        place[others] = len(names)
        names.append("others")
    return _Levels(place, names)


def _numbers(codec: TableCodec, name: str, labels: int) -> int:
    """How many labels there are if they are ascending numbers, too many to be shown one by one; else 0."""
    try:
        values = [float(codec.describe(name, code)) for code in range(labels)]
    except ValueError:
        return 0
    return labels if labels > MOST_SIDE and all(one < other for one, other in pairwise(values)) else 0


def _even_runs(size: int, room: int) -> list[tuple[int, int]]:
    run = math.ceil(size / room)
    return [(start, min(start + run, size)) for start in range(0, size, run)]


def _frequent_runs(often: Ints, room: int) -> list[tuple[int, int]]:
    """Runs of neighbours with about as many rows each.

    >>> _frequent_runs(np.array([8, 1, 1, 1, 1, 4]), 3)
    [(0, 1), (1, 4), (4, 6)]
    """
    if not often.size:
        return []
    middles = (np.cumsum(often) - often / 2) / max(int(often.sum()), 1)
    part = np.minimum((middles * room).astype(np.int64), room - 1)
    ends = [*(np.flatnonzero(np.diff(part)) + 1).tolist(), len(often)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _run_name(first: str, last: str, *, bins: bool) -> str:
    if first == last:
        return first
    return f"{first.split(',')[0]},{last.split(',')[-1]}" if bins else f"{first} to {last}"


LEAST_GROUP = 100
MOST_LEVELS = 30


@dataclass(slots=True)
class _Sum:
    """Distances of the other columns within the groups of one column, summed up as pairs are met."""

    distance: Floats
    yardstick: Floats
    columns: int = 0


def _between_columns(pair: TablePair) -> Iterator[Detail]:
    """Associations of all pairs of columns, and how groups fare, in one pass over the 2-way tables."""
    domain, halves = pair.codec.domain, pair.halves
    parts = [pair.real, *pair.copies, *(() if isinstance(halves, Unavailable) else halves[:1])]
    cliques = [Clique(names) for names in combinations(domain.columns, 2)]
    grouped = {name: _Sum(*np.zeros((2, domain.sizes[name]))) for name in domain.columns if _is_grouping(pair, name)}
    rows: list[tuple[str, str, float | None, float | None]] = []
    for table in counted(parts, cliques):
        shape = (domain.sizes[table.clique[0]], domain.sizes[table.clique[1]])
        made = [_association(counts, shape, table.cells) for counts in table.counts[1 : 1 + len(pair.copies)]]
        known = [one for one in made if one is not None]
        mean = math.fsum(known) / len(known) if known else None
        rows.append((*table.clique, _association(table.counts[0], shape, table.cells), mean))
        if table.cells is None and shape[0] * shape[1] <= MOST_CELLS:
            squares = [counts.reshape(shape) for counts in table.counts]
            for axis, name in enumerate(table.clique):
                if name in grouped and pair.codec.origin(table.clique[1 - axis]) != pair.codec.origin(name):
                    _add(grouped[name], [square if axis == 0 else square.T for square in squares], len(pair.copies))
    kinds = {"column_1": pa.string(), "column_2": pa.string(), "real": pa.float64(), "synthetic": pa.float64()}
    columns = {key: [row[place] for row in rows] for place, key in enumerate(kinds)}
    yield Detail("associations", "Cramér's V of every pair of columns.", table_of(columns, kinds))
    if not isinstance(halves, Unavailable):
        yield _groups(pair, grouped)


def _is_grouping(pair: TablePair, name: str) -> bool:
    column = pair.schema.column(pair.codec.origin(name))
    return isinstance(column, Category | OpenCategory | Boolean) and pair.codec.domain.sizes[name] <= MOST_LEVELS


def _association(counts: Ints, shape: tuple[int, int], cells: Ints | None) -> float | None:
    """Cramér's V with Bergsma's correction; None where one of the columns does not vary."""
    from understudy.evaluate.marginals import chi_square  # a metric, which others do not load

    found = chi_square(counts, shape, cells)
    total = float(counts.sum())
    if found is None or total < 2:
        return None
    statistic, (rows, columns) = found
    phi = max(0.0, statistic / total - (rows - 1) * (columns - 1) / (total - 1))
    least = min(rows - (rows - 1) ** 2 / (total - 1), columns - (columns - 1) ** 2 / (total - 1)) - 1
    return min(1.0, math.sqrt(phi / least)) if least > 0 else None


def _add(sums: _Sum, squares: Sequence[Ints], copies: int) -> None:
    """Adds the distances of one more column within every group; a group without synthetic rows is 1 away."""
    real, half = squares[0], squares[-1]
    for copy in squares[1 : 1 + copies]:
        sums.distance += _by_group(real, copy) / copies
    sums.yardstick += _by_group(half, real - half)
    sums.columns += 1


def _by_group(first: Ints, second: Ints) -> Floats:
    totals = first.sum(axis=1, keepdims=True), second.sum(axis=1, keepdims=True)
    shares = [table / np.maximum(total, 1) for table, total in zip((first, second), totals, strict=True)]
    found: Floats = np.abs(shares[0] - shares[1]).sum(axis=1) / 2
    empty = np.logical_xor(totals[0][:, 0] == 0, totals[1][:, 0] == 0)
    return np.where(empty, 1.0, found)


def _groups(pair: TablePair, grouped: dict[str, _Sum]) -> Detail:
    """The groups with enough real rows, those furthest beyond their yardstick first."""
    rows: list[tuple[str, str, int, float, float, float]] = []
    for name, sums in grouped.items():
        often = np.bincount(pair.real.codes[name], minlength=len(sums.distance))
        made = [np.bincount(copy.codes[name], minlength=len(sums.distance)) / copy.count for copy in pair.copies]
        for code in np.flatnonzero(often >= LEAST_GROUP).tolist():
            if sums.columns:
                distance, line = sums.distance[code] / sums.columns, sums.yardstick[code] / sums.columns
                share = float(np.mean([one[code] for one in made]))
                label = pair.codec.describe(name, code)
                rows.append((name, label, int(often[code]), share * pair.real.count, float(distance), float(line)))
    rows.sort(key=lambda row: row[5] - row[4])
    kinds = {"column": pa.string(), "group": pa.string(), "real_rows": pa.int64(), "synthetic_rows": pa.float64()}
    kinds |= {"distance": pa.float64(), "yardstick": pa.float64()}
    columns = {key: [row[place] for row in rows] for place, key in enumerate(kinds)}
    caption = (
        f"Mean distance of all other columns within each group of at least {LEAST_GROUP} real rows, furthest beyond "
        "two real halves of the group first. Synthetic rows are scaled to the size of the real table."
    )
    return Detail("groups", caption, table_of(columns, kinds))


MAP_ROWS, MAP_POINTS = 4000, 1000
MOST_FEATURES = 1500
LEAST_SHARE = 0.01


def _map(pair: TablePair, rng: np.random.Generator) -> list[Detail]:
    """Points of both tables on the first two components of the real one."""
    real, made = _sampled(pair.real, rng, MAP_ROWS), _sampled(pair.copies[0], rng, MAP_POINTS)
    ours, names = _features(pair, real, real)
    theirs, _ = _features(pair, real, made)
    if ours.shape[1] < 2 or real.count < 3:
        return []
    centre = ours.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov((ours - centre).T))
    axes = vectors[:, [-1, -2]]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    if values[-2] <= 1e-12:
        return []
    points = [(one - centre) @ axes for one in (ours[:: max(1, real.count // MAP_POINTS)][:MAP_POINTS], theirs)]
    columns = {
        "table": ["real"] * len(points[0]) + ["synthetic"] * len(points[1]),
        "x": np.concatenate(points)[:, 0].tolist(),
        "y": np.concatenate(points)[:, 1].tolist(),
    }
    kinds = {"table": pa.string(), "x": pa.float64(), "y": pa.float64()}
    shares = (values[[-1, -2]] / max(values.sum(), 1e-300)).tolist()
    telling = [_telling(axes[:, place], names) for place in range(2)]
    legend = {"axis": ["x", "y"], "share_of_variance": shares, "columns": [", ".join(one) for one in telling]}
    legend_kinds = {"axis": pa.string(), "share_of_variance": pa.float64(), "columns": pa.string()}
    caption = "Rows of both tables on the two directions in which real rows vary most."
    axes_caption = "Columns with the largest weights in the two directions of the map."
    return [
        Detail("map", caption, table_of(columns, kinds)),
        Detail("map_axes", axes_caption, table_of(legend, legend_kinds)),
    ]


def _sampled(rows: Rows, rng: np.random.Generator, most: int) -> Rows:
    if rows.count <= most:
        return rows
    return rows.take(np.sort(rng.choice(rows.count, most, replace=False)))


def _features(pair: TablePair, real: Rows, rows: Rows) -> tuple[Floats, list[str]]:
    """Standardised numbers and indicators of frequent labels, scaled by what is frequent in the real rows."""
    columns: list[Floats] = []
    names: list[str] = []
    for name in pair.codec.domain.columns:
        origin = pair.codec.origin(name)
        if origin in rows.numbers and origin not in names:
            known = real.numbers[origin]
            known = known[~np.isnan(known)]
            middle, spread = (float(known.mean()), float(known.std())) if len(known) else (0.0, 0.0)
            numbers = rows.numbers[origin]
            columns.append(np.where(np.isnan(numbers), 0.0, (numbers - middle) / (spread or 1.0)))
            names.append(origin)
        shares = np.bincount(real.codes[name], minlength=pair.codec.domain.sizes[name]) / max(real.count, 1)
        kinds = _kinds(pair.codec, name)
        for code in np.flatnonzero((shares >= LEAST_SHARE) & (shares < 1.0)).tolist():
            if kinds[code] != "bin" and len(columns) < MOST_FEATURES:
                columns.append((rows.codes[name] == code) / math.sqrt(shares[code]))
                names.append(origin)
    if not columns:
        return np.empty((rows.count, 0)), names
    return np.stack(columns, axis=1).astype(np.float64), names


def _telling(axis: Floats, names: Sequence[str]) -> list[str]:
    """The columns that weigh most on an axis."""
    weights: dict[str, float] = {}
    for name, weight in zip(names, (axis**2).tolist(), strict=True):
        weights[name] = weights.get(name, 0.0) + weight
    return sorted(weights, key=lambda name: -weights[name])[:3]


NEAREST_ROWS, REFERENCE_ROWS = 1000, 10_000


def _nearest(pair: TablePair, rng: np.random.Generator) -> list[Detail]:
    """In how many columns synthetic rows, and real rows held apart, differ from the nearest row of a real half."""
    halves = pair.halves
    if isinstance(halves, Unavailable):
        return []
    reference = _matrix(_sampled(halves[0], rng, REFERENCE_ROWS))
    width = reference.shape[0]
    found = [
        np.bincount(_fewest_differing(reference, _matrix(_sampled(rows, rng, NEAREST_ROWS))), minlength=width + 1)
        for rows in (halves[1], pair.copies[0])
    ]
    shares = [(counts / counts.sum()).tolist() for counts in found]
    kinds = {"columns_that_differ": pa.int64(), "holdout_share": pa.float64(), "synthetic_share": pa.float64()}
    columns: dict[str, Sequence[object]] = {
        "columns_that_differ": list(range(width + 1)),
        "holdout_share": shares[0],
        "synthetic_share": shares[1],
    }
    caption = (
        f"Of {width} columns of codes, in how many a row differs from the nearest of {reference.shape[1]:,} real rows: "
        "real rows of the other half (holdout) and synthetic rows."
    )
    return [Detail("nearest", caption, table_of(columns, kinds))]


def _matrix(rows: Rows) -> Ints:
    return np.stack([rows.codes[name].astype(np.int32) for name in rows.domain.columns])


def _fewest_differing(reference: Ints, rows: Ints) -> Ints:
    """For each row the smallest number of columns in which it differs from a row of the reference."""
    fewest = np.empty(rows.shape[1], np.int64)
    for place in range(rows.shape[1]):
        differing = np.zeros(reference.shape[1], np.int16)
        for one, value in zip(reference, rows[:, place].tolist(), strict=True):
            differing += one != value
        fewest[place] = differing.min()
    return fewest
