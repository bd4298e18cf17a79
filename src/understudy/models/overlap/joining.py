"""Blocks of columns whose records are made apart, and how their records are put together again.

A block that shares columns with what is there already is joined within their codes: each record gets, in random order,
the rest of a record of the block with the same codes there. A block that shares none is joined record by record.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.models.model import Codes

__all__ = ["joined", "separate"]

Ints = npt.NDArray[np.int64]


def separate(domain: Domain, blocks: Sequence[Sequence[Clique]], forbidden: Sequence[Forbidden]) -> list[Clique]:
    """The columns of each block of tables; blocks that a rule ties together become one.

    A rule ties blocks that hold columns of it: records joined from two of them could break it.
    """
    groups = [{name for clique in block for name in clique} for block in blocks]
    for rule in forbidden:
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
