"""Coarsening: each column's codes sent to fewer ones, by public bins or because values are rare, and the way back.

Which values are merged is found out from the noisy one-way tables alone, so all of this is post-processing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from understudy.marginals.answer import Measurement
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.mechanisms.challenge.compression import CoarseTable
from understudy.models.expanded import Expansion
from understudy.models.nonnegative import norm_sub
from understudy.models.overlap.consistency import OverlapTable

__all__ = ["Coarsening", "Rare"]

Ints = npt.NDArray[np.int64]

_LEAST_VARIANCE = 1e-9
"""Noise that is surely 0 still needs a weight; only ratios of variances matter."""


@dataclass(frozen=True, slots=True)
class Rare:
    """Which values are rare: a noisy count below `threshold` times σ or below `least`, or beyond the `most` largest.

    `most` = 0: as many as there are.
    """

    threshold: float = 3.0
    least: float = 0.0
    most: int = 0

    def kept(self, answer: Measurement) -> Ints:
        """The codes that keep a code of their own, in order."""
        counts = answer.values
        frequent = counts >= max(self.threshold * answer.law.scale, self.least)
        order = np.argsort(-counts, kind="stable")[: self.most or counts.size]
        return np.intersect1d(np.flatnonzero(frequent), order)


@dataclass(frozen=True, slots=True, eq=False)
class Coarsening:
    """`places[column][code]` is the coarser code; columns that are not in it keep their codes."""

    full: Domain
    places: Mapping[str, Ints]

    @classmethod
    def of(
        cls,
        full: Domain,
        answers: Mapping[str, Measurement],
        rare: Mapping[str, Rare],
        *,
        starts: Mapping[str, Sequence[int]] | None = None,
    ) -> Self:
        """Public bins where `starts` has some for a column, else rare values merged where `rare` names it."""
        places: dict[str, Ints] = {}
        for name, answer in answers.items():
            codes = np.arange(full.sizes[name], dtype=np.int64)
            if starts and name in starts:
                places[name] = np.searchsorted(list(starts[name]), codes, side="right").astype(np.int64)
            elif name in rare:
                stay = rare[name].kept(answer)
                if stay.size + 1 < codes.size:
                    places[name] = np.full(codes.size, stay.size, dtype=np.int64)
                    places[name][stay] = np.arange(stay.size)
        return cls(full, places)

    @property
    def domain(self) -> Domain:
        """The coarser codes."""
        return Domain.of(
            {
                name: int(self.places[name].max()) + 1 if name in self.places else size
                for name, size in self.full.sizes.items()
            }
        )

    def question(self, clique: Clique) -> Clique | CoarseTable:
        """What to measure for the clique: itself where none of its columns is coarser."""
        if not set(clique) & set(self.places):
            return clique
        sizes = self.domain.sizes
        places = tuple(self.places.get(name, np.arange(sizes[name], dtype=np.int64)) for name in clique)
        return CoarseTable(f"{' × '.join(clique)}, coarse", clique, places, tuple(sizes[name] for name in clique))

    def column(self, name: str, answer: Measurement) -> OverlapTable:
        """The answer about a column in coarser codes; merged cells add up values and variances."""
        variance = max(answer.law.variance, _LEAST_VARIANCE)
        values = answer.values.astype(np.float64)
        if name not in self.places:
            return OverlapTable(Clique((name,)), values, variance)
        size = self.domain.sizes[name]
        sums = np.bincount(self.places[name], weights=values, minlength=size).astype(np.float64)
        members = np.bincount(self.places[name], minlength=size).astype(np.float64)
        return OverlapTable(Clique((name,)), sums, variance * members)

    def table(self, clique: Clique, answer: Measurement) -> OverlapTable:
        """The answer to `question(clique)`."""
        return OverlapTable(clique, answer.values.astype(np.float64), max(answer.law.variance, _LEAST_VARIANCE))

    def expansion(self, name: str, answer: Measurement, total: float) -> Expansion:
        """How each coarser code falls apart: by the noisy counts of its values, cut to 0 or more."""
        counts = norm_sub(answer.values.astype(np.float64), max(total, 1.0))
        places = self.places[name]
        sums = np.bincount(places, weights=counts)
        members = np.bincount(places)
        even = sums[places] <= 0.0
        shares = np.where(even, 1.0 / members[places], counts / np.where(even, 1.0, sums[places]))
        return Expansion(places, shares)
