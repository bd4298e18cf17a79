"""Where noise is drawn: requests go in with exact integers, noisy answers come out.

There is one implementation for releases (`SecureRandomizer`): exact integer noise, no seed, no state. Test doubles that
record and replay answers live in `understudy.testing` and mark themselves as not private.

Counts are int64 in [0, 2⁵³), noise is int64, answers are int64 cut at ±2⁶¹. Noise beyond ±2⁶² arrives as ±2⁶²; the
sum is cut all the same, so the cut answer equals the cut of count + true noise: post-processing, which costs nothing.
Scores, which may be negative, lie in ±2⁶⁰ and obey the same argument.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from understudy.arrays import Bools, Ints
from understudy.counts.source import LabelCounts, OccupiedCells, Records
from understudy.domain import Distribution
from understudy.errors import UsageError
from understudy.privacy.cost import check_sparse
from understudy.privacy.noise import discrete_gaussian, discrete_laplace, geometric, rare_positions, sampled_positions
from understudy.privacy.selection import choose_each, choose_exponentially


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, in public terms: everything the noise depends on except the private numbers.

    `sensitivity` is the most the exact input may move between neighbours: L1 distance for Laplace noise, L2 for
    Gaussian noise, largest single change for scores (`select`, `score`), the largest change of each cell summed over
    the cells for choices within cells, L1 distance in grid units for every layer of a tree. Replay tests hold each
    input against it.

    `bias` and `layer` belong to growing trees: how much a node's count is lowered per level, and which layer is asked
    (the first one, 0, carries the cost of the whole tree).

    Training: `sensitivity` bounds the L2 norm of a unit's vector, `layer` is the step (0: a look at all units), a unit
    takes part with probability 1 − e^(−rate), and `delta` (in units) is the δ of the whole training.
    """

    kind: str
    name: str
    cells: int
    distribution: Distribution | None
    sensitivity: Fraction
    rate: Fraction = Fraction(0)
    threshold: int = 0
    monotone: bool = False
    bias: int = 0
    layer: int = 0
    delta: int = 0


class Randomizer(Protocol):
    """Turns exact integers into answers that may leave."""

    @property
    def private(self) -> bool:
        """Whether its answers may be released."""
        ...

    def add_noise(self, request: Request, exact: Ints) -> Ints:
        """exact + one fresh draw of `request.distribution` per cell, as int64."""
        ...

    def add_sparse_noise(self, request: Request, occupied: OccupiedCells) -> OccupiedCells:
        """Equal in distribution to noise on all `request.cells` cells, keeping those ≥ `request.threshold` (≥ 1)."""
        ...

    def keep_frequent(self, request: Request, exact: LabelCounts) -> LabelCounts:
        """Labels whose noisy count reaches `request.threshold`, with that noisy count, in code point order."""
        ...

    def choose(self, request: Request, scores: Ints) -> int:
        """Index drawn with probability ∝ exp(rate × score); scores are integers (fixed point)."""
        ...

    def choose_each(self, request: Request, scores: Ints, allowed: Bools) -> Ints:
        """For every row of `scores` an index of an allowed option, drawn with probability ∝ exp(rate × score)."""
        ...

    def split(self, request: Request, biased: Ints) -> Bools:
        """Whether each biased count plus one fresh draw of `request.distribution` lies above `request.threshold`."""
        ...

    def sample(self, request: Request, records: Records) -> Ints:
        """Which units take part, increasing: each on its own, with probability 1 − e^(−request.rate)."""
        ...


LARGEST_ANSWER = 1 << 61
LARGEST_SCORE = 1 << 60
_LARGEST_COUNT = 1 << 53


class SecureRandomizer:
    """Answers with noise from the operating system's generator; two calls never share a draw."""

    private = True

    def add_noise(self, request: Request, exact: Ints) -> Ints:
        """exact + one fresh draw of `request.distribution` per cell, as int64."""
        if request.kind in ("score", "train"):
            _check_whole(request, exact, LARGEST_SCORE)
        else:
            _check_counts(request, exact)
        if exact.size != request.cells:
            raise UsageError(_where(request), "the counts do not have the announced number of cells.")
        return _noisy(_distribution(request), exact)

    def add_sparse_noise(self, request: Request, occupied: OccupiedCells) -> OccupiedCells:
        """Equal in distribution to noise on all `request.cells` cells, keeping those ≥ `request.threshold` (≥ 1)."""
        distribution = _distribution(request)
        check_sparse(distribution, request.cells, request.threshold, _where(request))
        _check_counts(request, occupied.counts)
        _check_cells(request, occupied.indices)
        noisy = _noisy(distribution, occupied.counts)
        kept = noisy >= request.threshold
        scale = distribution.parameter
        ranks = rare_positions(request.cells - occupied.indices.size, scale, request.threshold)
        # The r-th empty cell is cell r plus the number of occupied cells before it.
        skipped = np.searchsorted(occupied.indices - np.arange(occupied.indices.size), ranks, side="right")
        extra = np.minimum(geometric(ranks.size, scale), LARGEST_ANSWER - request.threshold) + request.threshold
        indices = np.concatenate([occupied.indices[kept], ranks + skipped])
        counts = np.concatenate([noisy[kept], extra])
        order = np.argsort(indices, kind="stable")
        return OccupiedCells(indices[order], counts[order])

    def keep_frequent(self, request: Request, exact: LabelCounts) -> LabelCounts:
        """Labels whose noisy count reaches `request.threshold`, with that noisy count, in code point order."""
        _check_counts(request, exact.counts)
        noisy = _noisy(_distribution(request), exact.counts)
        kept = sorted((exact.labels[at], int(noisy[at])) for at in np.flatnonzero(noisy >= request.threshold))
        return LabelCounts(tuple(label for label, _ in kept), np.array([count for _, count in kept], dtype=np.int64))

    def choose(self, request: Request, scores: Ints) -> int:
        """Index drawn with probability ∝ exp(rate × score); scores are integers (fixed point)."""
        if scores.dtype != np.int64 or scores.ndim != 1 or scores.size != request.cells:
            raise UsageError(_where(request), "the scores must be one int64 number per option.")
        return choose_exponentially(scores, request.rate)

    def choose_each(self, request: Request, scores: Ints, allowed: Bools) -> Ints:
        """For every row of `scores` an index of an allowed option, drawn with probability ∝ exp(rate × score)."""
        if scores.shape[1:] != (request.cells,):
            raise UsageError(_where(request), "the scores do not have the announced number of options.")
        return choose_each(scores, allowed, request.rate)

    def split(self, request: Request, biased: Ints) -> Bools:
        """Whether each biased count plus one fresh draw of `request.distribution` lies above `request.threshold`."""
        _check_whole(request, biased, LARGEST_ANSWER)
        if biased.size != request.cells:
            raise UsageError(_where(request), "the counts do not have the announced number of nodes.")
        return _noisy(_distribution(request), biased) > request.threshold

    def sample(self, request: Request, records: Records) -> Ints:
        """Which units take part, increasing: each on its own, with probability 1 − e^(−request.rate)."""
        if request.rate <= 0:
            raise UsageError(_where(request), "was asked to sample at no rate.")
        return sampled_positions(records.units, Fraction(request.rate.denominator, request.rate.numerator))


def _noisy(distribution: Distribution, exact: Ints) -> Ints:
    draw = discrete_laplace if distribution.kind == "laplace" else discrete_gaussian
    noise = draw(exact.size, Fraction(distribution.parameter))
    noise += exact
    return np.clip(noise, -LARGEST_ANSWER, LARGEST_ANSWER, out=noise)


def _distribution(request: Request) -> Distribution:
    if request.distribution is None:
        raise UsageError(_where(request), "was asked without a distribution of noise.")
    return request.distribution


def _where(request: Request) -> str:
    return f"{request.kind} {request.name}"


def _check_counts(request: Request, exact: Ints) -> None:
    """Refuses what no table can count to; the message says nothing about the counts."""
    if exact.dtype != np.int64 or exact.ndim != 1:
        raise UsageError(_where(request), "counts must be a flat int64 array.")
    if exact.size and (int(exact.min()) < 0 or int(exact.max()) >= _LARGEST_COUNT):
        raise UsageError(_where(request), "the count source is broken: counts must lie in [0, 2^53).")


def _check_whole(request: Request, exact: Ints, largest: int) -> None:
    """Refuses what is not a flat array of whole numbers within the bounds that rule out an overflow."""
    if exact.dtype != np.int64 or exact.ndim != 1:
        raise UsageError(_where(request), "scores and biased counts must be a flat int64 array.")
    if exact.size and (int(exact.min()) < -largest or int(exact.max()) > largest):
        raise UsageError(_where(request), "scores and biased counts must be cut before noise is added.")


def _check_cells(request: Request, indices: Ints) -> None:
    if indices.dtype != np.int64 or indices.ndim != 1:
        raise UsageError(_where(request), "cell numbers must be a flat int64 array.")
    if indices.size and (
        int(indices[0]) < 0 or int(indices[-1]) >= request.cells or bool((indices[1:] <= indices[:-1]).any())
    ):
        raise UsageError(_where(request), "the count source is broken: cells must increase and lie in the table.")
