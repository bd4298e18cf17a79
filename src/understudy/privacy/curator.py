"""Curator: the only way to the rows. Methods ask it; it counts, adds noise, keeps the account and the transcript.

Every verb checks what is left before it touches the source, and spends before it reads. The account is kept in
integers. Nothing here logs, and no message depends on a count.

Neighbours are tables that differ by all rows of one unit, at most k = `unit.rows` of them after truncation. The curator
cuts each unit to its k rows itself, for every kind of table (`counts/source.py`): a source only hands over rows, and
what is no `PrivateTable` is refused.

Noisy counts
------------
`measure`   One clique or partition puts every row in one cell, so neighbours differ by at most k in L1 and in L2.
    Laplace noise of scale k/ε_i is ε_i-DP; Gaussian noise with σ_i² = k²/(2ρ_i) is ρ_i-zCDP (Canonne, Kamath,
    Steinke 2020, integer noise on integer counts). A batch splits its cost over its targets; the parts add up.

`measure_residuals`   What the table of one or two columns says beyond the means of its rows and columns. A row moves
    it by √S ≤ 1 row in L2, so Gaussian noise with σ² = k²·S/(2ρ) is ρ-zCDP (proof and S in `gaussian.py`).

`hold_back`   `measure`, for cliques alone: the same noise at the same cost, in answers of a type of their own. The
    check of the finished rows asks it of a curator of its own (`release/check.py`).

`discover`   Labels held by one unit only: at most k of them, noisy count ≥ threshold with probability ≤ δ in all.
    Otherwise Laplace noise of scale k/ε on the counts: (ε, δ)-DP, or (δ, ε²/2)-approximate zCDP.

Choices and scores
------------------
`select`   The exponential mechanism with rate ε/(2Δk), or ε/(Δk) where the quality is monotone. It is ε-DP, and
    ε²/8-zCDP because its privacy loss has range ε (Cesar and Rogers 2021); so ρ buys ε = √(8ρ).

    Draws may be restricted to a part of the options (`among`), one draw after the other, as when a tree of tables is
    grown edge by edge. Which options may be drawn must follow from public facts and earlier answers. All scores of the
    quality are computed at the first of these draws and kept in this object for the later ones, beside the bound they
    were computed under. No score depends on which other options may be drawn. So each draw has the distribution it
    would have if its options were scored anew, at the same cost, and a bound on all scores holds for some of them.
    The quality, which its method holds, is never handed a score.

`select_within`   One choice per cell of a partition. Of a unit's k rows k_c lie in cell c, Σ k_c ≤ k, so its scores
    move by at most Δ·k_c; at the rate of `select` that cell's privacy loss has range ε·k_c/k. The choices are
    independent given the counts: losses add up to ε at most, and Σ (ε·k_c/k)²/8 ≤ ε²/8 in zCDP.

`score`   All P scores with noise: they move by at most P·Δ·k in L1 and √P·Δ·k in L2, as a vector of integers.

Trees and training
------------------
`grow`   A tree that decides by noisy, biased counts which nodes to split: one cost for the whole tree, proved in
    `trees.py`; √(2ρ) where the cost is ρ.

`train`   Steps of an optimiser on noisy sums over sampled units: one cost (ε, δ) for the whole course, proved in
    `training.py`; paid in ε and δ, not in ρ.

Accounted as Gaussian
---------------------
A run in the Gaussian currency asks `measure`, `hold_back`, `measure_residuals` and `score` alone, paid in ρ. Their
noise is wider by `SMOOTHING`, and all of them together are as private as one Gaussian answer (`gaussian.py` proves it,
for queries and costs that depend on earlier answers). Any other verb is refused.

What is kept between queries
----------------------------
Exact counts of cliques stay in memory (up to `KEPT_BYTES`, in this object alone, never on disk), so that many rounds of
choosing among the same tables read the rows once; where families are chosen, wider tables stay instead, out of which
theirs are summed. So do exact scores of families that come back in later choices
(`ScoredByFamily`), under the rule and the bound they were computed under. No method sees either. It changes no answer
and no cost; what is kept depends on the queries, not on the rows, and is dropped when the codes are fixed anew.

A quality whose options are scored each by its own table (`ScoredApart`) is counted part by part, so that not all tables
lie in memory. The scores are the same numbers, and no draw is made before all are known; what the parts are follows
from public sizes.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from understudy.arrays import Bools, Ints
from understudy.codec.table import MergedCodec, TableCodec
from understudy.counts.source import CountSource, OccupiedCells, PrivateTable
from understudy.counts.wide_tables import WideTables
from understudy.domain import (
    GROWTH_UNIT,
    Clique,
    Discovery,
    Domain,
    Grown,
    HeldBack,
    Measurement,
    NoisyScores,
    Partition,
    ResidualTable,
    Selection,
    Selections,
    SparseMeasurement,
    StructuralZeros,
    Trained,
    Transcript,
)
from understudy.errors import BudgetError, UsageError
from understudy.privacy.cost import (
    Cost,
    Currency,
    check_sparse,
    discovery_threshold,
    distribution_for,
    growth_rule,
    residual_distribution,
    score_distribution,
    selection_rate,
)
from understudy.privacy.randomizer import LARGEST_SCORE, Randomizer, Request
from understudy.privacy.scores import Quality, ScoredApart, ScoredByFamily, WithinQuality, parts_of
from understudy.privacy.training import Keeper, Trainer, train, training_distributions
from understudy.privacy.trees import (
    MOST_LAYERS,
    GrowingTree,
    as_decay,
    biased_counts,
    checked_depths,
    checked_theta,
    counts_within,
)
from understudy.progress import Progress, silent

Option = TypeVar("Option")
Tree = TypeVar("Tree", bound=GrowingTree)

KEPT_BYTES = 2**28
"""Most bytes of exact counts kept between queries."""


@dataclass(frozen=True, slots=True)
class _Bound:
    """Most that a score moves for a whole unit, and whether all move in the same direction."""

    sensitivity: Fraction
    monotone: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Scored:
    """Exact scores of a quality's options and the bound they were computed under. Private: they stay in the curator."""

    quality: object
    bound: _Bound
    scores: Ints


class Curator:
    """Holds the private table and a granted cost; answers queries until the cost is spent."""

    def __init__(
        self,
        table: PrivateTable,
        granted: Cost,
        randomizer: Randomizer,
        *,
        public: PrivateTable | None = None,
        progress: Progress = silent,
        keeper: Keeper | None = None,
        currency: Currency | None = None,
    ) -> None:
        self._currency = currency
        self._table = _own(table)
        self._public_table = None if public is None else _own(public)
        self._public: CountSource | None = None
        self._source: CountSource | None = None
        self._codec: TableCodec | None = None
        self._randomizer = randomizer
        self._progress = progress
        self._keeper = keeper
        self._left = granted
        self._unit_rows = table.schema.unit.sensitivity
        self._kept: dict[Clique, Ints] = {}
        self._kept_bytes = 0
        self._scored: _Scored | None = None
        self._wide: WideTables | None = None
        self._families: tuple[tuple[object, ...], dict[Hashable, int]] = ((), {})
        self.transcript = Transcript()
        self.charges: list[tuple[str, Cost]] = []

    @property
    def left(self) -> Cost:
        """What has not been spent yet."""
        return self._left

    @property
    def unit_rows(self) -> int:
        """Most rows one protected unit contributes."""
        return self._unit_rows

    @property
    def domain(self) -> Domain:
        """The codes that can be asked about."""
        return self._fixed().domain

    @property
    def readable(self) -> Domain:
        """The same codes without those for what cannot be read: what a table's noise is weighed by.

        Noise in the cells of such a code harms nobody, for it is drawn only where it clearly stands out of the noise.
        """
        return self._fixed().readable

    @property
    def structural_zeros(self) -> tuple[StructuralZeros, ...]:
        """Cells that public rules exclude."""
        return self._fixed().structural_zeros

    @property
    def taxonomies(self) -> Mapping[str, Ints]:
        """The groups of codes that the schema declares, by column."""
        return self._fixed().taxonomies

    def fix_codec(self, codec: TableCodec) -> None:
        """Fixes the codes all later queries speak about.

        The codec must come from the schema and from earlier answers alone; then this is post-processing and free.
        """
        self._codec = codec
        self._source = PrivateTable.bind(self._table, codec)
        self._public = None if self._public_table is None else PrivateTable.bind(self._public_table, codec)
        self._kept, self._kept_bytes, self._scored, self._wide = {}, 0, None, None
        self._families = ((), {})

    def merge(self, places: Mapping[str, Ints]) -> None:
        """From now on code c of each of these columns counts as code `places[column][c]`, in `domain` as in answers.

        Which codes are merged must follow from the schema and earlier answers alone; then this is post-processing and
        free. A row lies in one cell of a table of merged codes as in any other, so later queries cost what they cost.
        """
        if places:
            self.fix_codec(MergedCodec(self._fixed(), places))

    @property
    def has_public(self) -> bool:
        """Whether a public table was given along."""
        return self._public_table is not None

    def public_counts(self, cliques: Sequence[Clique]) -> Mapping[Clique, Ints]:
        """Exact counts of the public table, free of charge: it is not about the protected units."""
        self._fixed()
        if self._public is None:
            raise UsageError("public table", "none was given.", "Give one with public=.")
        return self._public.counts(list(cliques))

    def public_cells(self, clique: Clique) -> OccupiedCells:
        """Occupied cells of the public table and their counts, free of charge; for tables too large to write out."""
        self._fixed()
        if self._public is None:
            raise UsageError("public table", "none was given.", "Give one with public=.")
        return self._public.occupied(clique)

    def measure(
        self, targets: Sequence[Clique | Partition], cost: Cost, weights: Sequence[float] | None = None
    ) -> list[Measurement]:
        """Noisy counts of every target, at `cost` in all, split by `weights` (equally by default)."""
        if not targets:
            return []
        # All that can be refused is refused up to here and costs nothing: shares, names, noise, a codec that is not
        # fixed.
        parts = cost.split(weights if weights is not None else [1.0] * len(targets))
        names = [self._name(target) for target in targets]
        distributions = [
            distribution_for(part, self._unit_rows, f"measure {name}", currency=self._currency)
            for part, name in zip(parts, names, strict=True)
        ]
        source = self._bound()
        # Spent before the first row is read: whatever fails from here on, no look at the table is left unpaid.
        self._spend([(f"measure {name}", part) for name, part in zip(names, parts, strict=True)])
        cliques = [target for target in targets if isinstance(target, Clique)]
        partitions = [target for target in targets if not isinstance(target, Clique)]
        by_clique = self._counts(source, cliques)
        by_partition = iter(source.partition_counts(partitions)) if partitions else iter(())
        answers = []
        for target, name, distribution in zip(targets, names, distributions, strict=True):
            exact = by_clique[target] if isinstance(target, Clique) else next(by_partition)
            # One bound for both kinds of noise: all k rows of a unit may lie in one cell, and there L1 and L2 are the
            # same.
            request = Request("measure", name, exact.size, distribution, Fraction(self._unit_rows))
            noisy = self._randomizer.add_noise(request, exact)
            columns, shape = self._columns_and_shape(target)
            answers.append(Measurement(name, columns, shape, noisy, distribution))
            self.transcript.append(answers[-1])
        return answers

    def hold_back(
        self, cliques: Sequence[Clique], cost: Cost, weights: Sequence[float] | None = None
    ) -> list[HeldBack]:
        """Noisy counts of every clique for the check of the finished rows, at `cost` in all, split by `weights`."""
        if not cliques:
            return []
        parts = cost.split(weights if weights is not None else [1.0] * len(cliques))
        names, unit = [self._name(clique) for clique in cliques], self._unit_rows
        distributions = [
            distribution_for(part, unit, f"check {name}", currency=self._currency)
            for part, name in zip(parts, names, strict=True)
        ]
        source = self._bound()
        self._spend([(f"check {name}", part) for name, part in zip(names, parts, strict=True)])
        exact = self._counts(source, cliques)
        answers = []
        for clique, name, distribution in zip(cliques, names, distributions, strict=True):
            request = Request("measure", name, exact[clique].size, distribution, Fraction(unit))
            noisy = self._randomizer.add_noise(request, exact[clique])
            answers.append(HeldBack(name, *self._columns_and_shape(clique), noisy, distribution))
            self.transcript.append(answers[-1])
        return answers

    def measure_residuals(
        self, cliques: Sequence[Clique], cost: Cost, weights: Sequence[float] | None = None
    ) -> list[ResidualTable]:
        """Noisy residuals of every clique of one or two columns, at `cost` in all, split by `weights`."""
        if not cliques:
            return []
        parts = cost.split(weights if weights is not None else [1.0] * len(cliques))
        names, unit = [self._name(clique) for clique in cliques], self._unit_rows
        shapes = [self.domain.shape(clique) for clique in cliques]
        distributions = [
            residual_distribution(part, shape, unit, f"measure residuals of {name}", currency=self._currency)
            for part, shape, name in zip(parts, shapes, names, strict=True)
        ]
        source = self._bound()
        self._spend([(f"measure residuals of {name}", part) for name, part in zip(names, parts, strict=True)])
        exact = self._counts(source, cliques)
        answers = []
        for clique, name, shape, distribution in zip(cliques, names, shapes, distributions, strict=True):
            request = Request("residuals", name, exact[clique].size, distribution, Fraction(unit), shape=shape)
            noisy = self._randomizer.add_residual_noise(request, exact[clique])
            answers.append(ResidualTable(name, tuple(clique), shape, noisy, distribution))
            self.transcript.append(answers[-1])
        return answers

    def measure_sparse(self, clique: Clique, cost: Cost, threshold: int) -> SparseMeasurement:
        """Noisy counts ≥ `threshold` of a table too large to hold; in distribution as if all its cells had been
        noised."""
        name = self._name(clique)
        self._refuse_if_gaussian(f"measure {name}")
        cells = self.domain.cells(clique)
        # Places of empty cells are drawn as 64-bit numbers.
        if cells >= 2**62:
            raise UsageError(f"measure {name}", f"a table of {cells:,} cells is too large even for sparse noise.")
        if threshold < 1:
            raise UsageError(f"measure {name}", f"the threshold must be at least 1, got {threshold}.")
        # What passes the threshold by noise alone is drawn by the excess, which has a simple distribution for Laplace
        # only.
        if cost.rho or not cost.epsilon:
            raise UsageError(f"measure {name}", "sparse noise is Laplace noise and is paid in pure ε.")
        distribution = distribution_for(cost, self._unit_rows, f"measure {name}")
        check_sparse(distribution, cells, threshold, f"measure {name}")
        source = self._bound()
        self._spend([(f"measure {name}", cost)])
        request = Request("sparse", name, cells, distribution, Fraction(self._unit_rows), threshold=threshold)
        kept = self._randomizer.add_sparse_noise(request, source.occupied(clique))
        columns, shape = self._columns_and_shape(clique)
        answer = SparseMeasurement(name, columns, shape, kept.indices, kept.counts, distribution, threshold)
        self.transcript.append(answer)
        return answer

    def select(self, quality: Quality[Option], cost: Cost, among: Sequence[int] | Ints | None = None) -> Option:
        """One of the quality's options, better ones exponentially more likely.

        Args:
            quality: The options and their scores.
            cost: The cost of this draw.
            among: Positions of the options that may be drawn, increasing; without it all of them. Given again and again
                with the same quality, its options are scored once.
        """
        step = f"select {quality.name}"
        self._refuse_if_gaussian(step)
        places = None if among is None else _checked_places(among, len(quality.options), step)
        options = len(quality.options) if places is None else places.size
        if not options:
            raise UsageError(step, "needs at least one option.")
        bound = self._bound_of(quality, kept=places is not None)
        rate = selection_rate(cost, bound.sensitivity, step, monotone=bound.monotone)
        source = self._bound()
        self._spend([(step, cost)])
        if places is None:
            scores = self._scores(quality, source)
        else:
            # All options at once: their tables are counted in one go, and no score depends on which of them may be
            # drawn.
            scores = self._scores_once(quality, bound, source)[places]
        request = Request("select", quality.name, options, None, bound.sensitivity, rate, monotone=bound.monotone)
        chosen = self._randomizer.choose(request, scores)
        self.transcript.append(Selection(quality.name, options, chosen, rate, bound.sensitivity, bound.monotone))
        return quality.options[chosen if places is None else int(places[chosen])]

    def _bound_of(self, quality: Quality[Option], *, kept: bool) -> "_Bound":
        """What the scores may move by for a whole unit: of kept ones the bound they were computed under."""
        # Whoever holds the quality may change it between two draws. A bound must never meet scores it was not stated
        # for: kept scores come with their own, scores that are made anew with the one that is stated now.
        if kept and self._scored is not None and self._scored.quality is quality:
            return self._scored.bound
        return _Bound(quality.sensitivity * self._unit_rows, quality.monotone)

    def _scores_once(self, quality: Quality[Option], bound: "_Bound", source: CountSource) -> Ints:
        """The scores of all options, computed unless they were kept."""
        # By identity: two qualities with equal fields may still score differently.
        if self._scored is None or self._scored.quality is not quality:
            self._scored = _Scored(quality, bound, self._scores(quality, source))
        return self._scored.scores

    def _scores(self, quality: Quality[Option], source: CountSource) -> Ints:
        """The scores of all options, part by part where the quality allows it, and once where options come back."""
        if isinstance(quality, ScoredByFamily):
            return self._family_scores(quality, source)
        if not isinstance(quality, ScoredApart):
            return quality.scores(self._counts(source, quality.cliques))
        cliques = quality.cliques
        keep = 8 * sum(self.domain.cells(clique) for clique in cliques) <= KEPT_BYTES
        found = np.zeros(len(cliques), np.int64)
        for places in parts_of(self.domain, cliques):
            part = [cliques[place] for place in places.tolist()]
            found[places] = quality.scores_of(places, self._counts(source, part, keep=keep))
        return found

    def _family_scores(self, quality: ScoredByFamily, source: CountSource) -> Ints:
        """Scores of families; those of an earlier choice by the same rule are kept on this side of the curator."""
        # The stated bound is part of the rule, so that no kept score meets a bound it was not stated for.
        rule = (*quality.rule, quality.sensitivity, quality.monotone)
        if not _is_same_rule(self._families[0], rule):
            self._families = (rule, {})
        known = self._families[1]
        new = [family for family in dict.fromkeys(quality.options) if family not in known]
        if new:
            # Families to come share most of their columns with these: what is counted for them is wide, and kept.
            self._wide = self._wide or WideTables(source)
            exact = _read_only(self._wide.counts(quality.cliques_of(new), KEPT_BYTES - self._kept_bytes))
            known.update(zip(new, quality.unpenalised(new, exact), strict=True))
        return quality.penalised([known[family] for family in quality.options])

    def select_within(self, partition: Partition, quality: WithinQuality[Option], cost: Cost) -> list[Option]:
        """One of the quality's options for every cell of the partition, `cost` for all of them together."""
        step = f"select {quality.name}"
        self._refuse_if_gaussian(step)
        allowed = np.asarray(quality.allowed)
        if allowed.dtype != np.bool_ or allowed.shape != (partition.cells, len(quality.options)):
            raise UsageError(step, "needs a mask of allowed options with one row per cell of the partition.")
        if not allowed.any(axis=1).all():
            raise UsageError(step, "needs at least one allowed option in every cell.")
        sensitivity = quality.sensitivity * self._unit_rows
        rate = selection_rate(cost, sensitivity, step, monotone=quality.monotone)
        source = self._bound()
        self._spend([(step, cost)])
        scores = quality.scores(counts_within(source, self.domain, partition, quality.columns))
        options = len(quality.options)
        request = Request("select within", quality.name, options, None, sensitivity, rate, monotone=quality.monotone)
        chosen = self._randomizer.choose_each(request, scores, allowed)
        self.transcript.append(Selections(quality.name, options, chosen, rate, sensitivity, quality.monotone))
        return [quality.options[at] for at in chosen.tolist()]

    def score(self, quality: Quality[Option], cost: Cost) -> NoisyScores:
        """Every score of the quality with integer noise, for `cost` in all."""
        step, options = f"score {quality.name}", len(quality.options)
        if not options:
            raise UsageError(step, "needs at least one option.")
        sensitivity = quality.sensitivity * self._unit_rows
        distribution = score_distribution(cost, options, sensitivity, step, currency=self._currency)
        source = self._bound()
        self._spend([(step, cost)])
        exact = self._scores(quality, source)
        request = Request("score", quality.name, options, distribution, sensitivity)
        # Cutting takes no two scores further apart, and keeps sums with noise within 64 bits.
        noisy = self._randomizer.add_noise(request, np.clip(exact, -LARGEST_SCORE, LARGEST_SCORE))
        answer = NoisyScores(quality.name, noisy, distribution, sensitivity)
        self.transcript.append(answer)
        return answer

    def grow(self, growth: Tree, cost: Cost) -> Tree:
        """The fully grown tree, `cost` for all of its layers together; it stops after `MOST_LAYERS` at the latest."""
        step = f"grow {growth.name}"
        self._refuse_if_gaussian(step)
        name, decay, theta = growth.name, as_decay(growth.decay, step), checked_theta(growth, step)
        distribution, bias = growth_rule(cost, self._unit_rows, decay, step)
        source = self._bound()
        self._spend([(step, cost)])
        splits: list[Bools] = []
        deepest = -1
        while not growth.finished and len(splits) < MOST_LAYERS:
            depths = checked_depths(growth, deepest, step)
            (counts,) = source.partition_counts([growth.frontier])
            request = Request(
                "grow",
                name,
                depths.size,
                distribution,
                Fraction(self._unit_rows * GROWTH_UNIT),
                threshold=theta * GROWTH_UNIT,
                bias=bias,
                layer=len(splits),
            )
            # Without the last cell, which holds all rows outside of open nodes: nothing is asked about them.
            splits.append(self._randomizer.split(request, biased_counts(counts[:-1], depths, bias, theta)))
            growth = growth.after(splits[-1])
            deepest = int(depths.max(initial=deepest))
        values = np.concatenate([np.zeros(0, np.int64), *splits]).astype(np.int64)
        self.transcript.append(
            Grown(name, tuple(part.size for part in splits), values, distribution, bias, theta, decay)
        )
        return growth

    def train(self, trainer: Trainer, cost: Cost) -> Trained:
        """Puts the trainer through its whole course on sampled units, for `cost` in all, paid in ε and δ.

        Under a keeper the training keeps checkpoints, or goes on from one: its cost was charged before. It is then the
        only query: any other would be asked anew after an interruption, beside a state made with its first answer.
        """
        step = f"train {trainer.name}"
        self._refuse_if_gaussian(step)
        distributions = training_distributions(cost, trainer.course, step)
        source = self._bound()
        self._spend([(step, cost)])
        # By `course`, which is public; how many units a step samples is told to nobody.
        progress = self._progress  # of steps done: their number is public
        kept = self._keeper
        records = source.records()
        answer = train(
            trainer, records, distributions, self._randomizer, delta=cost.delta, progress=progress, keeper=kept
        )
        self.transcript.append(answer)
        return answer

    def discover(self, column: str, cost: Cost) -> Discovery:
        """Labels of an open column that enough units hold. `cost.delta` is the probability that a lone label shows."""
        step = f"discover {column}"
        self._refuse_if_gaussian(step)
        # Laplace noise also where ρ pays: its tail is known in closed form, so the threshold is proved and not
        # estimated.
        distribution = distribution_for(cost, self._unit_rows, step, laplace=True)
        threshold = discovery_threshold(distribution, self._unit_rows, cost.delta, step)
        self._spend([(step, cost)])
        # 0 cells: how many labels there are is private and must not be part of a request.
        request = Request("discover", column, 0, distribution, Fraction(self._unit_rows), threshold=threshold)
        kept = self._randomizer.keep_frequent(request, PrivateTable.label_counts(self._table, column))
        answer = Discovery(step, column, kept.labels, kept.counts, distribution, threshold)
        self.transcript.append(answer)
        return answer

    def _counts(self, source: CountSource, cliques: Sequence[Clique], *, keep: bool = True) -> Mapping[Clique, Ints]:
        """Exact counts, read-only; the rows are read only for what was not kept."""
        found = {clique: self._kept[clique] for clique in cliques if clique in self._kept}
        if self._wide is not None:
            found |= _read_only(self._wide.summed([clique for clique in cliques if clique not in found]))
        missing = [clique for clique in dict.fromkeys(cliques) if clique not in found]
        wide = 0 if self._wide is None else self._wide.bytes
        for clique, counts in _read_only(source.counts(missing) if missing else {}).items():
            found[clique] = counts
            if keep and self._kept_bytes + wide + counts.nbytes <= KEPT_BYTES:
                self._kept[clique] = counts
                self._kept_bytes += counts.nbytes
        return found

    def _refuse_if_gaussian(self, step: str) -> None:
        if self._currency == "gaussian":
            rule = "has no Gaussian noise, and a run accounted as Gaussian allows no other kind."
            raise UsageError(step, rule, "Measure counts or scores.")

    def _spend(self, charges: Sequence[tuple[str, Cost]]) -> None:
        """Takes all of the charges off what is left, or none of them."""
        total = sum((cost for _, cost in charges), Cost())
        if total.epsilon or total.delta:
            self._refuse_if_gaussian(charges[0][0])
        # All of a batch or nothing, so that a refused batch leaves no part of itself charged.
        if not total.fits(self._left):
            step = charges[0][0] if len(charges) == 1 else f"{charges[0][0]} and {len(charges) - 1} more"
            raise BudgetError(step, str(total), str(self._left), "Plan fewer queries or raise the budget.")
        if self._keeper is not None and (self.charges or not charges[0][0].startswith("train ")):
            raise UsageError(charges[0][0], "a run that can be continued asks for one training and for nothing else.")
        self._left = self._left - total
        self.charges.extend(charges)

    def _name(self, target: Clique | Partition) -> str:
        """What charges and transcript call a target; a table of merged codes is not that of its columns."""
        if not isinstance(target, Clique):
            return target.name
        name = " × ".join(target) or "total"
        return f"{name}, coarse" if self._is_merged(target) else name

    def _columns_and_shape(self, target: Clique | Partition) -> tuple[tuple[str, ...], tuple[int, ...]]:
        if not isinstance(target, Clique):
            return tuple(target.columns), (target.cells,)
        shape = (self.domain.cells(target),) if self._is_merged(target) else self.domain.shape(target)
        return tuple(target), shape

    def _is_merged(self, clique: Clique) -> bool:
        return isinstance(self._codec, MergedCodec) and not self._codec.merged.isdisjoint(clique)

    def _fixed(self) -> TableCodec:
        if self._codec is None:
            raise UsageError("curator", "the codec is not fixed yet.", "Call fix_codec first.")
        return self._codec

    def _bound(self) -> CountSource:
        self._fixed()
        assert self._source is not None
        return self._source


def _own(table: object) -> PrivateTable:
    """The table, if it is one whose rows we cut to the unit's bound ourselves."""
    if not isinstance(table, PrivateTable):
        rule = f"{type(table).__name__} is not a PrivateTable, so nothing would limit its rows to the unit's bound."
        raise UsageError("table", rule, "Open it with open_table, or make it a subclass of PrivateTable.")
    return table


def _read_only(counts: Mapping[Clique, Ints]) -> dict[Clique, Ints]:
    """The same arrays for a quality, which gets all of them and may write into none."""
    # If one wrote into them, the next answer would be about another table.
    views = {clique: found.view() for clique, found in counts.items()}
    for view in views.values():
        view.flags.writeable = False
    return views


def _is_same_rule(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    """Whether all parts are the same: numbers by value, everything else by identity."""
    # Codes and levels hold arrays, which may be equal and changed later; numbers are new objects in every choice.
    return len(one) == len(other) and all(
        first is second or (isinstance(first, int | Fraction) and type(first) is type(second) and first == second)
        for first, second in zip(one, other, strict=True)
    )


def _checked_places(among: Sequence[int] | Ints, options: int, step: str) -> Ints:
    """Positions of options as an array, if that is what they are."""
    places = np.array(among, dtype=np.int64)
    inside = places.ndim == 1 and (not places.size or (places[0] >= 0 and places[-1] < options))
    if not inside or (places[1:] <= places[:-1]).any():
        raise UsageError(step, f"needs increasing positions below {options:,} of the options to draw from.")
    return places
