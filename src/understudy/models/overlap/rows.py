"""Rows and wanted tables as the kernels of this folder see them, and the rules that no change may break."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.models.draw import code_dtype
from understudy.models.model import Codes

__all__ = ["Rules", "Stacked", "Target", "Updated", "breaks", "checked", "stacked", "unstacked"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
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
    def of(cls, domain: Domain, forbidden: Sequence[Forbidden]) -> "Rules":
        """The rules over the columns of the domain."""
        width = max((len(rule.clique) for rule in forbidden), default=1)
        picks = np.full((len(forbidden), width), -1, dtype=np.int64)
        strides = np.zeros((len(forbidden), width), dtype=np.int64)
        starts = np.zeros(len(forbidden), dtype=np.int64)
        masks = [np.zeros(0, dtype=bool)]
        for place, rule in enumerate(forbidden):
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
