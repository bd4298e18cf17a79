"""Slopes and correlations between levels of columns, each level seen as a 0/1 indicator.

slope of y on x: P(y | x) − P(y | not x); correlation: slope · √(P(x)(1 − P(x)) / (P(y)(1 − P(y)))). Both follow from
the 2-way table. Columns with very many levels are represented by their most frequent ones in the real table.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.evaluate.data.counting import counted
from understudy.evaluate.data.pair import Pair
from understudy.evaluate.data.rows import Rows
from understudy.marginals.clique import Clique

__all__ = ["MOST_LEVELS", "LevelPairs", "correlation_table", "level_pairs", "slope_table"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

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


def level_pairs(pair: Pair, parts: Sequence[Rows], outcomes: Sequence[str], *, both_ways: bool) -> Iterator[LevelPairs]:
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
