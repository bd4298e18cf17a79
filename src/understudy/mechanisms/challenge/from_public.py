"""A list of marginals from a public table, by the rule of the challenge's winner.

THE TABLE MUST BE PUBLIC: the list is computed from its exact counts, and whoever sees the list learns about them. An
earlier year, another region, a published sample; never the table to be protected.

Pairs: the maximum spanning tree of mutual information. Triples: for each column with two neighbours or more in the
tree, neighbours b and c are linked if ‖P(a, b, c) − P(a, b)·P(a, c)/P(a)‖₁ is at least `least_gap`; the links of a
maximum spanning tree among them give the pair (b, c) and the triple (a, b, c). Mutual information is corrected for the
number of occupied cells (Miller and Madow): a small table makes wide columns look dependent. Tables beyond `most_cells`
are not listed.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.codec.table_codec import TableCodec
from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.mechanisms.challenge.marginal_list import written
from understudy.schema import Schema

__all__ = ["marginals_from_public"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_DENSE_CELLS = 2**22
_FAVOUR = 100.0


def marginals_from_public(
    table: pa.Table,
    schema: Schema,
    *,
    together: Sequence[str] = (),
    least_gap: float = 0.1,
    most_cells: int = 10**6,
) -> str:
    """The list of marginals, as `nist_mst` takes it, that a PUBLIC table suggests.

    Args:
        table: public rows with the columns of the schema.
        schema: of the private table, with settled codes.
        together: columns whose pairs come first, and whose pairs (and triple, if they are three) are always listed.
        least_gap: least distance from conditional independence for a triple.
        most_cells: tables with more cells, before any merging, are left out.
    """
    if not table.num_rows:
        raise UsageError("public table", "has no rows.")
    codec = TableCodec.of(schema)
    domain = codec.domain
    favoured = domain.clique(together)
    names = [name for name in domain.columns if domain.sizes[name] > 1]
    codes = {name: codec.encode(name, table.column(name)).astype(np.int64) for name in names}
    strength = {
        Clique(pair): _information(domain, codes, pair) + _FAVOUR * (set(pair) <= set(favoured))
        for pair in itertools.combinations(names, 2)
        if domain.cells(pair) <= most_cells
    }
    tree = _spanning(strength)
    found = dict.fromkeys(tree)
    found |= dict.fromkeys(Clique(pair) for pair in itertools.combinations(favoured, 2))
    if len(favoured) == 3:
        found[favoured] = None
    for centre in names:
        near = [next(name for name in pair if name != centre) for pair in tree if centre in pair]
        gaps = {
            Clique(pair): _gap(domain, codes, centre, pair)
            for pair in itertools.combinations(sorted(near, key=names.index), 2)
            if domain.cells((centre, *pair)) <= most_cells
        }
        for pair in _spanning({pair: gap for pair, gap in gaps.items() if gap >= least_gap}):
            found |= dict.fromkeys((pair, domain.clique((centre, *pair))))
    if not found:
        raise UsageError("public table", "suggests no table of two columns.", "Raise most_cells, or write a list.")
    return written(found)


def _spanning(strength: Mapping[Clique, float]) -> list[Clique]:
    """Kruskal's maximum spanning forest; ties go to the earlier pair."""
    part: dict[str, str] = {name: name for pair in strength for name in pair}
    chosen = []
    for pair in sorted(strength, key=lambda pair: -strength[pair]):
        first, second = part[pair[0]], part[pair[1]]
        if first != second:
            chosen.append(pair)
            part = {name: first if other == second else other for name, other in part.items()}
    return chosen


def _information(domain: Domain, codes: Mapping[str, Ints], pair: Iterable[str]) -> float:
    first, second = pair
    rows = codes[first].size
    alone = [_counts(domain, codes, (name,))[1] for name in (first, second)]
    both = _counts(domain, codes, (first, second))[1]
    entropies = [_entropy(counts, rows) for counts in (*alone, both)]
    return entropies[0] + entropies[1] - entropies[2]


def _entropy(counts: Ints, rows: int) -> float:
    shares = counts / rows
    return float(-(shares * np.log(shares)).sum()) + (counts.size - 1) / (2.0 * rows)


def _gap(domain: Domain, codes: Mapping[str, Ints], centre: str, pair: Iterable[str]) -> float:
    """‖P(a, b, c) − P(a, b)·P(a, c)/P(a)‖₁, with the product's mass on unoccupied cells counted by what is left."""
    first, second = pair
    rows = codes[centre].size
    cells, counts = _counts(domain, codes, (centre, first, second))
    wide, narrow = domain.sizes[first], domain.sizes[second]
    a, rest = np.divmod(cells, wide * narrow)
    b, c = np.divmod(rest, narrow)
    one = np.bincount(codes[centre], minlength=domain.sizes[centre])
    left = np.bincount(codes[centre] * wide + codes[first], minlength=domain.sizes[centre] * wide)
    right = np.bincount(codes[centre] * narrow + codes[second], minlength=domain.sizes[centre] * narrow)
    product = left[a * wide + b] / rows * (right[a * narrow + c] / one[a])
    return float(np.abs(counts / rows - product).sum()) + max(0.0, 1.0 - float(product.sum()))


def _counts(domain: Domain, codes: Mapping[str, Ints], names: Sequence[str]) -> tuple[Ints, Ints]:
    """Occupied cells and their counts."""
    cell: Ints = codes[names[0]]
    for name in names[1:]:
        cell = cell * domain.sizes[name] + codes[name]
    if math.prod(domain.shape(names)) > _DENSE_CELLS:
        found, counts = np.unique(cell, return_counts=True)
        return found, counts
    counts = np.bincount(cell)
    found = np.flatnonzero(counts)
    return found, counts[found]
