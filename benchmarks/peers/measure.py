"""How far synthetic rows are from the table they stand in for: total variation of all two- and three-way tables.

Exact counts of a private table: for benchmarks on public data, never part of a release.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from .contract import Codes

DENSE_CELLS = 5_000_000


def shares(
    columns: Mapping[str, Codes], clique: Sequence[str], cells: Codes | None, sizes: Sequence[int]
) -> npt.NDArray[np.float64]:
    """Share of rows in each cell; `cells` lists the cells to look at where the table is too large to hold."""
    place = cell_of(columns, clique, sizes)
    if cells is None:
        return np.bincount(place, minlength=math.prod(sizes)) / max(1, len(place))
    return np.bincount(np.searchsorted(cells, place), minlength=len(cells)) / max(1, len(place))


def cell_of(columns: Mapping[str, Codes], clique: Sequence[str], sizes: Sequence[int]) -> Codes:
    """Index of each row's cell in the table of some columns."""
    place = np.zeros(len(columns[clique[0]]), dtype=np.int64)
    for name, size in zip(clique, sizes, strict=True):
        place = place * size + columns[name]
    return place


def total_variation(
    real: Mapping[str, Codes], synthetic: Mapping[str, Codes], clique: Sequence[str], domain: Mapping[str, int]
) -> float:
    """Half the sum of absolute differences between two tables of shares: 0 for equal, 1 for disjoint."""
    sizes = [domain[name] for name in clique]
    cells = None
    if math.prod(sizes) > DENSE_CELLS:
        cells = np.unique(np.concatenate([cell_of(real, clique, sizes), cell_of(synthetic, clique, sizes)]))
    difference = shares(real, clique, cells, sizes) - shares(synthetic, clique, cells, sizes)
    return float(np.abs(difference).sum() / 2)


def mean_total_variation(
    real: Mapping[str, Codes],
    synthetic: Mapping[str, Codes],
    domain: Mapping[str, int],
    degree: int,
    *,
    most: int = 1_000,
) -> float:
    """Mean over all tables of that many columns, or over `most` of them picked the same way every time."""
    cliques = list(itertools.combinations(domain, degree))
    if len(cliques) > most:
        picked = np.random.default_rng(0).choice(len(cliques), most, replace=False)
        cliques = [cliques[index] for index in np.sort(picked)]
    return float(np.mean([total_variation(real, synthetic, clique, domain) for clique in cliques]))
