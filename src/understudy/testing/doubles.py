"""Test doubles for the noise. NOT PRIVATE: never use them on a table you mean to protect.

They exist because a test must be able to reproduce its noise. They mark themselves (`private = False`), and a release
made with one says so in its statement and fails verification.
"""

from dataclasses import dataclass

import numpy as np

from understudy.arrays import Bools, Ints
from understudy.counts.source import LabelCounts, OccupiedCells, Records
from understudy.domain import RESIDUAL_UNIT
from understudy.privacy.randomizer import Request, contrasts
from understudy.testing.replay import coins_of

MOST_SPURIOUS = 1000
"""The double invents at most this many empty cells; the real distribution may keep more, replay does not need them."""


class SeededRandomizer:
    """Reproducible noise of roughly the right size, from a seed. Not private, not exact."""

    private = False

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def add_noise(self, request: Request, exact: Ints) -> Ints:
        """The exact counts plus rounded noise of the requested scale."""
        return exact + self._noise(request, exact.size)

    def add_residual_noise(self, request: Request, exact: Ints) -> Ints:
        """Contrasts of the exact counts plus rounded noise of the requested scale."""
        return contrasts(exact * RESIDUAL_UNIT + self._noise(request, exact.size), request.shape)

    def add_sparse_noise(self, request: Request, occupied: OccupiedCells) -> OccupiedCells:
        """Noisy occupied cells and a few spurious ones, at or above the threshold."""
        noisy = occupied.counts + self._noise(request, occupied.counts.size)
        spurious = self._rng.integers(0, request.cells, size=min(MOST_SPURIOUS, request.cells) // 2, dtype=np.int64)
        spurious = np.setdiff1d(np.unique(spurious), occupied.indices)
        indices = np.concatenate([occupied.indices, spurious])
        values = np.concatenate([noisy, np.full(spurious.size, request.threshold, dtype=np.int64)])
        keep = values >= request.threshold
        order = np.argsort(indices[keep], kind="stable")
        return OccupiedCells(indices[keep][order], values[keep][order])

    def keep_frequent(self, request: Request, exact: LabelCounts) -> LabelCounts:
        """Labels whose noisy count reaches the threshold, in code point order."""
        noisy = exact.counts + self._noise(request, exact.counts.size)
        kept = sorted((label, int(value)) for label, value in zip(exact.labels, noisy, strict=True))
        kept = [(label, value) for label, value in kept if value >= request.threshold]
        values = np.array([value for _, value in kept], dtype=np.int64)
        return LabelCounts(tuple(label for label, _ in kept), values)

    def choose(self, request: Request, scores: Ints) -> int:
        """An index drawn by the exponential distribution in floating point."""
        exponent = float(request.rate) * (scores - scores.max()).astype(np.float64)
        weights = np.exp(exponent)
        return int(self._rng.choice(scores.size, p=weights / weights.sum()))

    def choose_each(self, request: Request, scores: Ints, allowed: Bools) -> Ints:
        """Indices drawn by the exponential distribution in floating point."""
        lowered = np.where(allowed, (scores - scores.max(axis=1, keepdims=True, where=allowed, initial=-(2**62))), 0)
        weights = np.where(allowed, np.exp(float(request.rate) * lowered.astype(np.float64)), 0.0)
        sums = np.cumsum(weights, axis=1)
        places = self._rng.random(len(scores)) * sums[:, -1]
        return np.asarray(np.argmax(sums > places[:, np.newaxis], axis=1), dtype=np.int64)

    def split(self, request: Request, biased: Ints) -> Bools:
        """Biased counts plus rounded noise of the requested scale, above the threshold or not."""
        return biased + self._noise(request, biased.size) > request.threshold

    def sample(self, request: Request, records: Records) -> Ints:
        """The units whose hash says so, whatever the order of rows."""
        return coins_of(request, records)

    def _noise(self, request: Request, size: int) -> Ints:
        assert request.distribution is not None
        if request.distribution.kind == "laplace":
            draws = self._rng.laplace(0.0, request.distribution.scale, size)
        else:
            draws = self._rng.normal(0.0, request.distribution.scale, size)
        return np.rint(draws).astype(np.int64)


@dataclass(frozen=True, slots=True)
class NoNoise:
    """Answers exactly: what a method would see if privacy were off. Not private."""

    private: bool = False

    def add_noise(self, request: Request, exact: Ints) -> Ints:
        """The exact counts."""
        return exact.copy()

    def add_residual_noise(self, request: Request, exact: Ints) -> Ints:
        """Contrasts of the exact counts."""
        return contrasts(exact * RESIDUAL_UNIT, request.shape)

    def add_sparse_noise(self, request: Request, occupied: OccupiedCells) -> OccupiedCells:
        """The occupied cells at or above the threshold."""
        keep = occupied.counts >= request.threshold
        return OccupiedCells(occupied.indices[keep], occupied.counts[keep])

    def keep_frequent(self, request: Request, exact: LabelCounts) -> LabelCounts:
        """The labels at or above the threshold, in code point order."""
        pairs = sorted(zip(exact.labels, exact.counts.tolist(), strict=True))
        kept = [(label, value) for label, value in pairs if value >= request.threshold]
        return LabelCounts(tuple(label for label, _ in kept), np.array([value for _, value in kept], dtype=np.int64))

    def choose(self, request: Request, scores: Ints) -> int:
        """The best option."""
        return int(np.argmax(scores))

    def choose_each(self, request: Request, scores: Ints, allowed: Bools) -> Ints:
        """The best allowed option of every row."""
        return np.asarray(np.argmax(np.where(allowed, scores, np.iinfo(np.int64).min), axis=1), dtype=np.int64)

    def split(self, request: Request, biased: Ints) -> Bools:
        """Which biased counts lie above the threshold."""
        return biased > request.threshold

    def sample(self, request: Request, records: Records) -> Ints:
        """The units whose hash says so, whatever the order of rows."""
        return coins_of(request, records)
