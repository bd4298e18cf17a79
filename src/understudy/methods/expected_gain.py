"""How pairs of columns share a cost: tickets go, one by one, to where they are expected to correct most.

What a pair lacks under independence is known from its noisy score (`excess`, in rows). It is taken to be spread over
the cells as their expected counts λ are, so a cell is off by s·λ, s = 2t, t = excess/n. Measured with noise of scale σ,
a cell is mended by what it is off less `penalty`·σ, or left alone; and counts scatter around what is expected, which a
measurement finds as far as its noise is smaller than the scatter:

    gain(σ) = Σ over cells of max(s·λ − penalty·σ, 0) + max(E|Poisson(λ) − λ| − σ, 0).

No cell can lack more rows than are expected there. Where t > ½, rows must therefore come together in cells with at most
1 − t of those expected: each cell counts as 1 − t of a cell that is off by λt/(1 − t) and t of one that is off by λ.

The cost is cut into equal tickets; k of them buy σ = σ₁/√k. A first ticket may gain nothing where eight gain much, so
several are tried at once, and the best gain per ticket wins. All of this looks at public sizes and noisy answers alone.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import gammaln, pdtr

from understudy.arrays import Floats, Ints

_TRIED = (1, 2, 4, 8, 16, 32, 64, 256, 1024)
_HALVINGS = 40
_BINNED = 2000
"""Cells are taken together by their means where there are more."""
_LEAST_SHARE = 1e-3
"""Least share of the expected rows, in cells to which all rows belong."""


def expected_scatter(expected: Floats) -> Floats:
    """E|N − λ| of a Poisson count N with mean λ: how far a cell is off although nothing is wrong.

    >>> expected_scatter(np.array([0.0, 0.5, 100.0])).round(3).tolist()
    [0.0, 0.607, 7.972]
    """
    floor = np.floor(expected)
    logs = (floor + 1.0) * np.log(np.maximum(expected, 1e-300)) - expected - gammaln(floor + 1.0)
    return np.asarray(2.0 * np.exp(logs))


def scatter_beyond(expected: Floats, floor: float) -> float:
    """Σ E max(|N − λ| − floor, 0) of Poisson counts N with means λ, of very many cells to about a hundredth.

    >>> scatter_beyond(np.array([100.0]), 0.0).__round__(2), scatter_beyond(np.array([100.0]), 100.0) < 1e-9
    (7.97, True)
    """
    # No count is off by six standard deviations and ten rows.
    cells = expected[expected > (max(floor - 10.0, 0.0) / 6.0) ** 2]
    if not cells.size:
        return 0.0
    means, numbers = cells, np.ones(cells.size)
    if cells.size > _BINNED:
        edges = np.geomspace(cells.min(), cells.max() * 1.001, _BINNED + 1)
        places = np.searchsorted(edges, cells, side="right")
        numbers = np.bincount(places, minlength=_BINNED + 2).astype(np.float64)
        means = np.bincount(places, weights=cells, minlength=_BINNED + 2) / np.maximum(numbers, 1.0)
        means, numbers = means[numbers > 0.0], numbers[numbers > 0.0]
    high, low = means + floor, np.maximum(means - floor, 0.0)
    least, most = np.ceil(high), np.floor(low)
    above = means * (1.0 - _at_most(least - 2.0, means)) - high * (1.0 - _at_most(least - 1.0, means))
    below = low * _at_most(most, means) - means * _at_most(most - 1.0, means)
    return float((numbers * (np.maximum(above, 0.0) + np.maximum(below, 0.0))).sum())


def _at_most(count: Floats, means: Floats) -> Floats:
    """P(N ≤ count) of Poisson counts; 0 below 0."""
    return np.where(count < 0.0, 0.0, pdtr(np.maximum(count, 0.0), means))


@dataclass(frozen=True, slots=True, eq=False)
class _Lacking:
    """What each cell lacks, largest first, sums of it, and what noise of scale 1 takes away."""

    cells: Floats
    sums: Floats
    penalty: float
    times: float = 1.0
    """How often each cell counts."""

    @classmethod
    def of(cls, lacking: Floats, penalty: float, times: float = 1.0) -> Self:
        falling = np.sort(lacking.ravel())[::-1]
        return cls(falling, np.concatenate([np.zeros(1), np.cumsum(falling)]), penalty, times)

    def beyond(self, scale: float) -> float:
        cut = self.penalty * scale
        cells = int(np.searchsorted(-self.cells, -cut))
        return self.times * (float(self.sums[cells]) - cells * cut)


@dataclass(frozen=True, slots=True, eq=False)
class CellGain:
    """The gain of measuring one pair, as a function of the scale of the noise."""

    parts: tuple[_Lacking, ...]

    @classmethod
    def of(cls, expected: Floats, excess: float, total: float, penalty: float) -> Self:
        """From what is expected in each cell and the rows that are expected wrongly."""
        scatter = _Lacking.of(expected_scatter(expected), 1.0)
        wrong = min(max(excess, 0.0) / total, 1.0 - _LEAST_SHARE)
        if wrong <= 0.5:
            return cls((_Lacking.of(2.0 * wrong * expected, penalty), scatter))
        full = 1.0 - wrong
        return cls(
            (_Lacking.of(wrong / full * expected, penalty, full), _Lacking.of(expected, penalty, wrong), scatter)
        )

    @classmethod
    def concentrated(cls, counts: Floats, beyond: float, scale: float, penalty: float, times: float) -> Self:
        """The gain for a column of many codes with these counts, each of which goes with one code of the other column.

        Rows too many there are too few elsewhere, so every row counts twice.
        `beyond`: by how many rows cells are off beyond `penalty` times the noise `scale`, by a noisy score.
        `times`: how often what is mended counts, because other pairs follow from it.
        """
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            found = 2.0 * float(np.maximum(middle * counts - penalty * scale, 0.0).sum())
            low, high = (low, middle) if found > beyond else (middle, high)
        return cls((_Lacking.of(high * counts, penalty, 2.0 * times),))

    def at(self, scale: float) -> float:
        """Number of rows that a measurement with noise of that scale corrects."""
        return math.fsum(part.beyond(scale) for part in self.parts)


def tickets(gains: Sequence[CellGain], count: int, scale: float, fallback: Floats, *, pure: bool = False) -> Ints:
    """How many of `count` tickets each pair gets; one ticket buys noise of that scale.

    Where nothing is worth its noise, the best quarter of the pairs by `fallback` get one each. What is not given out
    goes to those that have some, in proportion: the caller pays all of the cost by these numbers as weights.
    """
    power = 1.0 if pure else 0.5
    given = np.zeros(len(gains), dtype=np.int64)
    have = [0.0] * len(gains)
    queue: list[tuple[float, int, int]] = []

    def offer(pair: int) -> None:
        rates = []
        for more in _TRIED:
            gained = gains[pair].at(scale / (given[pair] + more) ** power) - have[pair]
            rates.append((gained / more, more))
        # By gain per ticket, since one ticket may buy noise that still hides all of what eight would show.
        rate, more = max(rates, key=lambda one: one[0])
        if rate > 0.0:
            heapq.heappush(queue, (-rate, pair, more))

    for pair in range(len(gains)):
        offer(pair)
    left = count
    while left and queue:
        _, pair, more = heapq.heappop(queue)
        more = min(more, left)
        given[pair] += more
        left -= more
        have[pair] = gains[pair].at(scale / given[pair] ** power)
        offer(pair)
    if not given.any():
        # The cost is spent in any case; left over it would help nobody.
        given[np.argsort(-fallback, kind="stable")[: max(1, len(gains) // 4)]] = 1
    return given
