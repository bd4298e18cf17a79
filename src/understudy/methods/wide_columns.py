"""Columns of so many codes that not all of their pairs can be looked at: each hangs on one other column.

Steps. (1) Every pair of such a column with another is scored by how many rows its table is off beyond a floor: the
height above which little noise lies (`noise_cut` in `rounds.py`), if one pair for every wide column shared half of
what is left. (2) The strongest pairs that join all columns without a circle are kept: a tree that grows from the
columns that are not wide. (3) Their residuals are measured at a cost by expected gain, where each code is taken to go
with one code of the other column (`CellGain.concentrated`). (4) The noisy table is drawn towards independence cell by
cell (`shrink` in `models/estimation.py`), cut to 0 or more, and scaled to both columns. (5) When the rows of all other
columns stand, each gets a code of the wide column, by the table's shares for its code of the other one.

Which columns are wide follows from noisy answers about columns, and which pairs are measured, from noisy scores. The
rest is post-processing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.domain import Clique, Distribution, Domain
from understudy.methods.expected_gain import CellGain
from understudy.methods.rounds import NoiseCut, noise_cut
from understudy.models.estimation import NoisyTable, shrink
from understudy.models.pair_mixtures import raked, with_margins
from understudy.models.tables import code_dtype, cumulative, norm_sub
from understudy.privacy.cost import Cost, distribution_for

PAIR_CELLS = 2**23
"""Most cells of a pair that is scored."""
_CLEAR = 4.0
"""A score counts if it is more than so many times its noise."""


@dataclass(frozen=True, slots=True, eq=False)
class WideColumns:
    """The wide columns of a domain, counts of every column (0 or more), and the number of rows."""

    domain: Domain
    names: frozenset[str]
    counts: Mapping[str, Floats]
    total: float

    @property
    def pairs(self) -> list[Clique]:
        """Pairs with a wide column whose tables are not too large and whose columns have two codes at least."""
        live = [name for name in self.domain.columns if self.domain.sizes[name] > 1]
        pairs = [Clique((one, other)) for at, one in enumerate(live) for other in live[at + 1 :]]
        return [pair for pair in pairs if self.names & set(pair) and self.domain.cells(pair) <= PAIR_CELLS]

    def expected(self, pair: Clique) -> Floats:
        """Counts if the two did not go together, one line per code of the first."""
        first, second = (self.counts[name] for name in pair)
        return np.asarray(np.outer(first, second) / self.total)

    def noise(self, left: Cost, unit_rows: int) -> Distribution:
        """The noise of each pair, if one pair for every wide column shared half of this cost."""
        parts = max(2 * len(self.names), 1)
        share = Cost(max(left.epsilon // parts, 1)) if left.epsilon else Cost(rho=max(left.rho // parts, 1))
        return distribution_for(share, unit_rows, "measure pair")

    def cut(self, pair: Clique, noise: Distribution) -> NoiseCut:
        """The height in the pair's table above which little of that noise lies, and at least its scale."""
        found = noise_cut(noise, self.domain.cells(pair), self.total)
        return replace(found, floor=max(found.floor, float(noise.scale)))

    def tree(self, scores: Mapping[Clique, float]) -> list[Clique]:
        """The strongest of these pairs by which wide columns hang on others, in the order in which they join."""
        joined = set(self.domain.columns) - self.names
        order = sorted(scores, key=lambda pair: -scores[pair])
        found: list[Clique] = []
        while True:
            pair = next((pair for pair in order if len(joined & set(pair)) == 1), None)
            if pair is None:
                return found
            found.append(pair)
            joined |= set(pair)

    def clear(self, scores: Mapping[Clique, float], noise: float) -> dict[Clique, float]:
        """The scores that noise of this standard deviation does not explain."""
        return {pair: score for pair, score in scores.items() if score > _CLEAR * noise}

    def gain(self, pair: Clique, scores: Mapping[Clique, float], cut: NoiseCut, noise: float) -> CellGain:
        """How much measuring the pair is expected to correct; `cut` is that of its score, for noise of that scale.

        All relations of the wide column follow from this pair, so all that is off in them counts.
        """
        wide = self._larger(pair)
        all_off = math.fsum(score for other, score in scores.items() if wide in other)
        times = all_off / scores[pair]
        return CellGain.concentrated(self.counts[wide], scores[pair], noise, cut.floor / noise, times)

    def wanted(self, pair: Clique, residuals: Floats, variance: float) -> Floats:
        """The table that the pair should have: without negative counts, with the counts of both columns."""
        margins, expected = (self.counts[pair[0]], self.counts[pair[1]]), self.expected(pair)
        noisy = with_margins(residuals, *margins, np.ones(expected.shape, dtype=bool))
        drawn = shrink(NoisyTable(pair, noisy.ravel(), variance), expected.ravel()).values
        table = norm_sub(drawn, self.total).reshape(expected.shape)
        # A code that is left with no cell takes part as the columns say.
        lost = [table.sum(axis=axis) <= 0.0 for axis in (1, 0)]
        table = np.where(lost[0][:, np.newaxis] | lost[1][np.newaxis, :], expected, table)
        return raked(table, *margins)

    def _larger(self, pair: Clique) -> str:
        return max(pair, key=self.domain.sizes.__getitem__)


def attached(table: Floats, others: Integers, rng: np.random.Generator) -> Integers:
    """A code for every row, by its code of the other column; `table` has one line per code and one column per other.

    The rows of each other code have its shares up to rounding, in random order.
    """
    dtype = code_dtype(table.shape[0])
    shuffled = rng.permutation(others.size)
    order = shuffled[np.argsort(others[shuffled], kind="stable")]
    found = np.empty(others.size, dtype=dtype)
    ends = np.cumsum(np.bincount(others, minlength=table.shape[1]))
    overall = table.sum(axis=1)
    for other, end in enumerate(ends.tolist()):
        rows = order[ends[other - 1] if other else 0 : end]
        if rows.size:
            shares = table[:, other] if table[:, other].sum() > 0.0 else overall
            spots = (np.arange(rows.size) + rng.random()) / rows.size
            places = np.searchsorted(cumulative(shares), spots, side="right")
            found[rows] = np.minimum(places, table.shape[0] - 1).astype(dtype)
    return found
