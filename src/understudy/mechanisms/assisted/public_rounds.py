"""Rounds that choose between measuring a table and taking it from public data.

Source: Fuentes, Mullins, McKenna, Miklau, Sheldon, "Joint selection: adaptively incorporating public information for
private synthetic data" (JAM, 2024).

A round draws a clique r together with a source (`privacy/marginal_error.py`: `PublicOrPrivate`). Private: r is measured
with noise and fitted. Public: the public table of r, scaled to the estimated number of records, is fitted as if it had
been measured; that costs nothing beyond the draw, and what the measurement would have cost is spread evenly over the
rounds that are left. The last round is always private, so nothing stays unspent. A public table is taken at most once,
and every public pick leaves one round less, so there are never more rounds than were planned.

Variance of a public table (how much the fit trusts it): the variance of the round's noise or the mean variance of its
cells as a sample of n records scaled to N, N²/n · (1 − Σ p_x²)/cells, whichever is larger. Both are public numbers. It
does not cover how far the public population is from the private one: the score does, when the table is chosen. The
number of records is estimated from private measurements alone.

Privacy. Exact private counts are touched by draws and measurements only, both through the curator and both paid for. A
score moves by at most k · `sensitivity` for the k rows of one unit (proof there), so a draw at ε costs ε²/8 of ρ. The
public table holds no protected unit, hence its counts are the same on neighbouring tables; sizes, prices and options
depend on them, on earlier answers and on public sizes. Costs are taken off one account as they arise (zCDP composes
adaptively).

Differs from the source. Its program gives both kinds of score the same sensitivity, though a public one can move twice
as far; here public scores are halved. Columns are measured before the rounds, and noise is halved when rounds teach
nothing, as in `aim`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from understudy.marginals.clique import Clique
from understudy.mechanisms.measured import Chosen, Measured, Pace, Purse, Round, live_columns, spend_in_rounds
from understudy.models.graphical.estimate import NoisyTable
from understudy.privacy.calibrate import law_for
from understudy.privacy.curator import Curator
from understudy.privacy.marginal_error import PublicOrPrivate, Sourced

__all__ = ["PublicRounds"]

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class PublicRounds:
    """The rounds of a run with a public table, and the public tables taken so far."""

    curator: Curator
    measured: Measured
    candidates: Mapping[Clique, float]
    counts: Mapping[Clique, npt.NDArray[np.int64]]
    rows: int
    taken: dict[Clique, float] = field(default_factory=dict)
    """The variance of the noise in the round that took each public table."""

    @classmethod
    def of(cls, curator: Curator, measured: Measured, candidates: Mapping[Clique, float]) -> Self:
        """Rounds over these weighted candidates; a public table without rows is never chosen."""
        counts = curator.public_counts([Clique(), *candidates])
        return cls(curator, measured, candidates, counts, int(counts[Clique()][0]))

    def run(self, purse: Purse, pace: Pace) -> None:
        """Chooses, measures and takes tables until the purse is empty."""
        most = self.measured.model_bytes
        spend_in_rounds(purse, pace, most, lambda price, last: self.next_table(price, public=not last))

    def next_table(self, price: Round, *, public: bool) -> Chosen | None:
        """One round: draws a candidate and its source, adds its table and refits; None if it was a public one."""
        law = law_for(price.measure, self.curator.unit_rows, "measure table")
        options = self._options(price, public=public)
        cliques = list(dict.fromkeys(clique for clique, _ in options))
        before, total = self.measured.expected(cliques), self.measured.total
        noises = dict(zip(cliques, self.measured.noises(cliques, price, self.curator.unit_rows), strict=True))
        scaled = {clique: self._scaled(clique, total) for clique, source in options if source == "public"}
        weights = [self.candidates.get(clique, 1.0) for clique, _ in options]
        penalties = [noises[clique].cut.penalty if source == "private" else 0.0 for clique, source in options]
        floors = [noises[clique].cut.floor for clique, _ in options]
        quality = PublicOrPrivate("table", options, before, scaled, weights, penalties, floors)
        clique, source = self.curator.select(quality, price.select)
        if source == "public":
            self.taken[clique] = law.variance
        else:
            self.measured.add(self.curator.measure([clique], noises[clique].price))
        self.measured.refit(price.steps, tables=self.tables)
        if source == "public":
            return None
        moved = float(np.abs(self.measured.expected([clique])[clique] - before[clique]).sum())
        return Chosen(clique, moved, noises[clique].cut.penalty)

    @property
    def tables(self) -> list[NoisyTable]:
        """All that the model is fitted to: measured tables, and public ones scaled to the present total."""
        total = self.measured.total
        return [*self.measured.tables, *(self._as_noisy(clique, total) for clique in self.taken)]

    def _options(self, price: Round, *, public: bool) -> list[Sourced]:
        """Every table to be measured, and every public one that was not taken yet, within the model's bytes."""
        open_now = self.measured.fitting(list(self.candidates), price.model_bytes, list(self.taken))
        # Columns never make the model larger, so there is always something to measure.
        private = open_now or [Clique((name,)) for name in live_columns(self.measured.domain)]
        options: list[Sourced] = [(clique, "private") for clique in private]
        if public and self.rows:
            options += [(clique, "public") for clique in open_now if clique not in self.taken]
        return options

    def _scaled(self, clique: Clique, total: float) -> Floats:
        return self.counts[clique].astype(np.float64) * (total / self.rows)

    def _as_noisy(self, clique: Clique, total: float) -> NoisyTable:
        """A public table for the fit; see the module for its variance."""
        shares = self.counts[clique].astype(np.float64) / self.rows
        sampling = total**2 / self.rows * (1.0 - float(shares @ shares)) / shares.size
        return NoisyTable(clique, self._scaled(clique, total), max(self.taken[clique], sampling, 1e-9))
