"""A list of marginals from a public table, by the rule of the challenge's winner.

THE TABLE MUST BE PUBLIC: the list is computed from its exact counts, and whoever sees the list learns about them. An
earlier year, another region, a published sample; never the table to be protected.

Pairs: the maximum spanning tree of mutual information. Triples: for each column with two neighbours or more in the
tree, neighbours b and c are linked if ‖P(a, b, c) − P(a, b)·P(a, c)/P(a)‖₁ is at least `LEAST_GAP`; the links of a
maximum spanning tree among them give the pair (b, c) and the triple (a, b, c). Mutual information is corrected for the
number of occupied cells (Miller and Madow): a small table makes wide columns look dependent. Tables beyond `MOST_CELLS`
are not listed.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.mechanisms.challenge.marginal_list import written
from understudy.mechanisms.mechanism import PublicCounts

__all__ = ["BATCH_CELLS", "LEAST_GAP", "MOST_CELLS", "counting_bytes", "marginals_from_public"]

Ints = npt.NDArray[np.int64]

LEAST_GAP = 0.1
MOST_CELLS = 10**6
BATCH_CELLS = 2**22
"""Cells of public tables counted and held at a time."""
_CELL_BYTES = 32
"""Per such cell: its count, the table it is summed from, and the shares compared."""
_FAVOUR = 100.0


def marginals_from_public(counts: PublicCounts, domain: Domain, together: Sequence[str] = ()) -> str:
    """The list of marginals, as `nist_mst` takes it, that a PUBLIC table suggests.

    Args:
        counts: gives exact counts of public rows.
        domain: the codes that are counted.
        together: columns whose pairs come first, and whose pairs (and triple, if they are three) are always listed.

    Raises:
        UsageError: if the public table has no rows, or no table of two columns is small enough.
    """
    names = [name for name in domain.columns if domain.sizes[name] > 1]
    favoured = domain.clique(together)
    if not int(counts([Clique()])[Clique()][0]):
        raise UsageError("public table", "has no rows.", "Give one with rows, or write the list of marginals.")
    if len(names) < 2:
        return written([domain.columns[:1]])
    pairs = [Clique(pair) for pair in itertools.combinations(names, 2) if domain.cells(pair) <= MOST_CELLS]
    strength = {
        pair: _information(table.reshape(domain.shape(pair))) + _FAVOUR * (set(pair) <= set(favoured))
        for pair, table in _tables(counts, domain, pairs)
    }
    tree = _spanning(strength)
    found = dict.fromkeys([*tree, *(Clique(pair) for pair in itertools.combinations(favoured, 2))])
    if len(favoured) == 3:
        found[favoured] = None
    for pair, triple in _triples(counts, domain, tree):
        found |= dict.fromkeys((pair, triple))
    if not found:
        rule = f"suggests no table of two columns: all have more than {MOST_CELLS:,} cells."
        raise UsageError("public table", rule, "Use coarser bins, or write the list of marginals.")
    return written(found)


def counting_bytes(domain: Domain) -> int:
    """Most memory that making the list takes, for a plan."""
    live = [size for size in domain.sizes.values() if size > 1]
    pairs = (sum(live) ** 2 - sum(size**2 for size in live)) // 2
    # A triple may come alone into a batch, but never with more cells than a pair may have.
    return _CELL_BYTES * min(BATCH_CELLS, max(pairs, MOST_CELLS if len(live) > 2 else 0))


def _triples(counts: PublicCounts, domain: Domain, tree: Sequence[Clique]) -> Iterator[tuple[Clique, Clique]]:
    """Pairs of neighbours in the tree that the column between them does not explain, with that column."""
    centres = {
        Clique(pair): centre
        for centre in domain.columns
        for pair in itertools.combinations(_neighbours(domain, tree, centre), 2)
        if domain.cells((centre, *pair)) <= MOST_CELLS
    }
    wanted = {domain.clique((centre, *pair)): (centre, pair) for pair, centre in centres.items()}
    gaps: dict[str, dict[Clique, float]] = {centre: {} for centre in domain.columns}
    for clique, table in _tables(counts, domain, list(wanted)):
        centre, pair = wanted[clique]
        gap = _gap(np.moveaxis(table.reshape(domain.shape(clique)), clique.index(centre), 0))
        if gap >= LEAST_GAP:
            gaps[centre][pair] = gap
    for centre, links in gaps.items():
        for pair in _spanning(links):
            yield pair, domain.clique((centre, *pair))


def _neighbours(domain: Domain, tree: Sequence[Clique], centre: str) -> list[str]:
    near = {name for pair in tree if centre in pair for name in pair if name != centre}
    return [name for name in domain.columns if name in near]


def _tables(counts: PublicCounts, domain: Domain, cliques: Sequence[Clique]) -> Iterator[tuple[Clique, Ints]]:
    """Each clique with its counts, no more of them in memory at a time than a batch holds."""
    start, room = 0, BATCH_CELLS
    for place, clique in enumerate(cliques):
        cells = domain.cells(clique)
        if cells > room and place > start:
            yield from counts(cliques[start:place]).items()
            start, room = place, BATCH_CELLS
        room -= cells
    if start < len(cliques):
        yield from counts(cliques[start:]).items()


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


def _information(table: Ints) -> float:
    """Mutual information of a table of two columns, corrected for the number of occupied cells."""
    return _entropy(table.sum(axis=1)) + _entropy(table.sum(axis=0)) - _entropy(table.ravel())


def _entropy(counts: Ints) -> float:
    held = counts[counts > 0]
    rows = int(held.sum())
    shares = held / rows
    return float(-(shares * np.log(shares)).sum()) + (held.size - 1) / (2.0 * rows)


def _gap(table: Ints) -> float:
    """‖P(a, b, c) − P(a, b)·P(a, c)/P(a)‖₁ of a table over a, b and c."""
    shares = table / table.sum()
    one = shares.sum(axis=(1, 2), keepdims=True)
    product = shares.sum(axis=2, keepdims=True) * shares.sum(axis=1, keepdims=True)
    return float(np.abs(shares - product / np.where(one > 0.0, one, 1.0)).sum())
