"""Compression: rare values of a column become one code, found out from noisy counts alone.

All of it is post-processing of the noisy one-way tables: which values are merged is as public as the answers are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from understudy.marginals.answer import Measurement
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.mechanisms.challenge.marginal_list import ListedTable
from understudy.models.expanded import Expansion
from understudy.models.graphical.elimination import GraphicalSize, eliminate
from understudy.models.graphical.loss import NoisyTable
from understudy.models.nonnegative import norm_sub

__all__ = ["CoarseTable", "Compression", "Limits", "smallest"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CUT = 10
"""A column that must shrink loses one in this many of its codes at a time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What must fit after merging: cells of every table, bytes of the model over these cliques."""

    table_cells: int
    model_bytes: int
    tables: tuple[Clique, ...]
    others: tuple[Clique, ...] = ()

    def overfull(self, domain: Domain) -> list[Clique]:
        """The tables that are too large, or else the bags of a model that is; the largest first."""
        wide = [clique for clique in self.tables if domain.cells(clique) > self.table_cells]
        if not wide and GraphicalSize.of(domain, self.cliques).bytes > self.model_bytes:
            wide = list(eliminate(domain, self.cliques).bags)
        return sorted(wide, key=domain.cells, reverse=True)

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """All cliques of the model."""
        return (*self.tables, *self.others)


@dataclass(frozen=True, slots=True, eq=False)
class CoarseTable:
    """A partition: the table of a clique with the codes of its columns sent to coarser ones."""

    name: str
    columns: Clique
    places: tuple[Ints, ...]
    shape: tuple[int, ...]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(np.prod(self.shape, dtype=np.int64))

    def assign(self, codes: Mapping[str, npt.NDArray[np.integer]]) -> Ints:
        """The cell of each record."""
        cell: Ints = np.zeros(len(codes[self.columns[0]]), dtype=np.int64)
        for name, places, size in zip(self.columns, self.places, self.shape, strict=True):
            cell = cell * size + places[codes[name]]
        return cell


@dataclass(frozen=True, slots=True, eq=False)
class Compression:
    """How many values of each column stay: `kept` of them, in the order of `ranks`; the others share one code.

    A column that is not in `ranks` is never merged. A single value left over keeps its own code.
    """

    full: Domain
    ranks: Mapping[str, Ints]
    kept: Mapping[str, int]

    @classmethod
    def of(cls, full: Domain, answers: Mapping[str, Measurement], threshold: float) -> Self:
        """Values whose noisy count is at least `threshold` times the noise's σ stay."""
        ranks = {name: np.argsort(-answer.values, kind="stable") for name, answer in answers.items()}
        kept = {name: int((answer.values >= threshold * answer.law.scale).sum()) for name, answer in answers.items()}
        return cls(full, ranks, kept)

    @property
    def domain(self) -> Domain:
        """The merged codes."""
        sizes = {
            name: self.kept[name] + 1 if name in self.kept and self.kept[name] + 1 < size else size
            for name, size in self.full.sizes.items()
        }
        return Domain.of(sizes)

    def within(self, limits: Limits) -> Self:
        """The same with more values merged, those of lower noisy counts first, until everything fits.

        The widest column of the largest table (or bag of the model) loses a tenth of its codes at a time. Ends when
        everything fits or nothing is left to merge.
        """
        kept, domain = dict(self.kept), self.domain
        while True:
            for clique in limits.overfull(domain):
                widths = {name: domain.sizes[name] for name in clique if name in kept and domain.sizes[name] > 1}
                if widths:
                    widest = max(widths, key=widths.__getitem__)
                    kept[widest] = widths[widest] - max(1, widths[widest] // _CUT) - 1
                    break
            else:
                return type(self)(self.full, self.ranks, kept)
            domain = type(self)(self.full, self.ranks, kept).domain

    @property
    def merged(self) -> list[str]:
        """The columns of which values were merged."""
        return [name for name, size in self.domain.sizes.items() if size < self.full.sizes[name]]

    def places(self, name: str) -> Ints:
        """The merged code of each code: kept ones in their order, then the one for all others."""
        if name not in self.merged:
            return np.arange(self.full.sizes[name], dtype=np.int64)
        places = np.full(self.full.sizes[name], self.kept[name], dtype=np.int64)
        places[np.sort(self.ranks[name][: self.kept[name]])] = np.arange(self.kept[name])
        return places

    def question(self, table: ListedTable) -> Clique | CoarseTable:
        """What to measure for a listed table: the clique itself where none of its columns is merged or grouped."""
        if not table.starts and not set(table.clique) & set(self.merged):
            return table.clique
        places = tuple(table.groups(name, self.domain.sizes[name])[self.places(name)] for name in table.clique)
        shape = tuple(int(place.max()) + 1 for place in places)
        return CoarseTable(f"{' × '.join(table.clique)}, coarse", table.clique, places, shape)

    def table(self, listed: ListedTable, answer: Measurement, variance: float) -> NoisyTable:
        """The answer to a listed table's question, as a noisy table over merged codes."""
        groups = None
        if listed.starts:
            groups = np.zeros(1, dtype=np.int64)
            for name in listed.clique:
                axis = listed.groups(name, self.domain.sizes[name])
                groups = np.add.outer(groups * (int(axis.max()) + 1), axis).ravel()
        return NoisyTable(listed.clique, answer.values.astype(np.float64), variance, groups)

    def column(self, name: str, answer: Measurement, variance: float, total: float) -> NoisyTable:
        """The answer about a column as a noisy table over merged codes.

        The code of s merged values is s times as noisy as the others. A noisy table has one variance, so the counts are
        first brought to the total by least squares with the right variances; that takes most of the excess away.
        """
        places = self.places(name)
        counts = np.bincount(places, weights=answer.values, minlength=self.domain.sizes[name]).astype(np.float64)
        if name in self.merged:
            counts += (total - counts.sum()) * np.bincount(places) / places.size
        return NoisyTable(Clique((name,)), counts, variance)

    def expansion(self, name: str, answer: Measurement, mass: float, *, even: bool) -> Expansion:
        """How the merged code of a column falls apart: by its values' noisy counts, or evenly.

        `mass` is the number of records the model gives the merged code; noisy counts are cut to add up to it.
        """
        places = self.places(name)
        rare = places == self.kept[name]
        shares = np.ones(places.size)
        weights = np.ones(int(rare.sum())) if even else norm_sub(answer.values[rare].astype(np.float64), max(mass, 1.0))
        shares[rare] = weights / weights.sum()
        return Expansion(places, shares)


def smallest(full: Domain, mergeable: Sequence[str]) -> Domain:
    """The domain with everything merged that may be."""
    return Domain.of({name: 1 if name in mergeable else size for name, size in full.sizes.items()})
