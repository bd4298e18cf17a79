"""PrivSyn: noisy scores say which pairs of columns to measure; records are moved until they have those tables.

Source: Zhang, Wang, Li, Honorio, Backes, He, Chen and Zhang, "PrivSyn: Differentially Private Data Synthesis" (2021).

Steps
-----
1. Every column's table, at `one_way_share`; values with a noisy count below `threshold` times σ are pooled.
2. Every pair's InDif = Σ|c − expected under independence|, with noise, at `selection_share`.
3. Pairs are chosen one by one while what is missed without them exceeds the noise they add; a column left alone gets
   its best pair. If `clique_cells` allows it, dense groups of pairs become larger tables.
4. The tables, at the rest, shared by cells^(2/3).
5. Tables are cleaned and made to agree; records laid out by the columns are moved towards them.

Privacy
-------
Neighbours differ by the rows of one unit, at most k. A row falls in one cell of a table, pooled or not: a table moves
by at most k in L1 and L2, so noise at cost ρ_i (σ² = k²/(2ρ_i)) or ε_i (scale k/ε_i) costs just that.

One row moves an InDif by less than 4 (proof in `privacy/dependence.py`), so P scores move by at most 4k√P in L2 and 4kP
in L1, to which the curator's `score` fits its noise. The parts add up to the cost.

Which values are pooled and which pairs are chosen depends on noisy answers alone; so does the number of rows, which is
estimated, never read.

The choice of pairs
-------------------
It weighs what leaving a pair out misses against the noise it adds (post-processing of noisy scores and public sizes).
The noise of a table of c cells measured at ρ_i adds up to ψ = c·√(1/(πρ_i)) in expectation (mean absolute Gaussian
noise times cells). Over all tables Σψ is smallest when ρ_i ∝ c^(2/3), and is then (Σ c^(2/3))^(3/2)/√(πρ). For Laplace
noise ψ = c/ε_i, the best split is ε_i ∝ √c, and Σψ = (Σ √c)²/ε. A unit of k rows multiplies either by k.

Differs from the source
-----------------------
* Discrete noise. Both currencies; with pure ε tables share by √cells, the best split there.
* Noisy scores are drawn towards their mean as far as their noise warrants, so that thousands of pairs are not chosen by
  lucky noise. Pairs count on pooled codes when noise is weighed against score, and a lone column gets the pair whose
  score exceeds its noise by most, not the best score alone.
* Tables, too, are drawn towards independence by what their noise warrants.
* Records are moved by column sweeps, not by the gradual update (`update=gradual` does that, `update=both` one after the
  other); pairs stay pairs (`clique_cells=5000` combines them as the source does); columns get 0.3 of the cost, not 0.1.
* No column is attached afterwards: sweeps reach the tables to within rounding, so nothing would be gained.

These choices were looked at on two tables, Adult and the stroke trial, at ε = 1, δ = 10⁻⁹
(benchmarks/field_privsyn.py prints each of them).

Where it is weak
----------------
The scores of P pairs share one cost, so their noise grows with √P. On the stroke trial (110 columns, 5,995 pairs,
19,434 rows) it is nearly a third of the rows, and `mst`, which draws its pairs, is nearer to the truth (two-way total
variation 0.0385 against 0.0413). On Adult it is 0.0339 against 0.0468 of `mst`.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from understudy.arrays import Floats, Ints
from understudy.domain import SCORE_UNIT, Clique, Domain, Measurement
from understudy.methods.marginals import SCORED_CELLS, alone, at_costs, within
from understudy.methods.method import (
    Method,
    Plan,
    PublicFacts,
    Step,
    noisy_step,
    rows_of,
    scored_bytes,
    seconds_for,
)
from understudy.methods.record_synthesis import MOST_STEPS, Coarsening, Rare, RecordSynthesis, Update
from understudy.methods.rounds import RemainingBudget, live_columns
from understudy.models.records import RecordModel
from understudy.models.tables import check_linked
from understudy.options import check_share, option
from understudy.privacy.cost import UNIT, Cost, Currency, score_distribution
from understudy.privacy.curator import Curator
from understudy.privacy.dependence import IndependenceGap

_MOST_CLIQUES = 100_000
"""Most sets of columns looked at when pairs are combined; beyond it the pairs stay as they are found."""


@dataclass(frozen=True, slots=True)
class SplitNoise:
    """The noise of tables that share a cost in the best way: weights of the split, and the sum of all errors."""

    cost: Cost
    unit_rows: int = 1

    def weight(self, cells: float) -> float:
        """The weight of a table in the split.

        >>> noise = SplitNoise(Cost(rho=UNIT))
        >>> [round(noise.weight(cells) / (noise.weight(4) + noise.weight(32)), 3) for cells in (4, 32)]
        [0.2, 0.8]
        """
        return float(cells**self._exponent)

    def total(self, weights: Floats | float) -> Floats | float:
        """Σψ of tables whose weights add up to this.

        >>> noise = SplitNoise(Cost(rho=UNIT))
        >>> round(noise.total(noise.weight(4) + noise.weight(32)), 4)
        25.2313
        """
        if self.cost.rho:
            return self.unit_rows * weights**1.5 / math.sqrt(math.pi * self.cost.rho / UNIT)
        # Scales go with 1/ε instead of 1/√ρ, so a table's best share is by the root of its cells.
        return self.unit_rows * weights**2.0 / max(self.cost.epsilon / UNIT, 1e-300)

    @property
    def _exponent(self) -> float:
        return 2.0 / 3.0 if self.cost.rho else 0.5


def steadied(scores: Floats, variance: float) -> Floats:
    """Noisy scores drawn towards their mean by as much as their noise warrants (empirical Bayes).

    The spread that noise does not explain is taken for the spread of the scores themselves. Among thousands of pairs
    the best noisy scores would otherwise be those with the luckiest noise.
    """
    centre = float(scores.mean())
    spread = max(float(((scores - centre) ** 2).mean()) - variance, 0.0)
    return np.asarray(centre + spread / max(spread + variance, 1e-300) * (scores - centre))


def chosen_pairs(
    domain: Domain, scores: Mapping[Clique, float], noise: SplitNoise, columns: Sequence[str], *, penalty: float = 1.0
) -> list[Clique]:
    """Pairs in the order chosen: each time the one whose score exceeds what it adds to the noise by most.

    Columns that no pair was worth are joined by the pair for which that difference is largest all the same.

    Args:
        domain: The codes as the pairs would be measured.
        scores: Noisy InDif of each candidate, in rows.
        noise: Of all the pairs together.
        columns: Those that should not be left alone.
        penalty: How much noise counts against score; below 1 for tables that are cleaned before they are used.
    """
    pairs = list(scores)
    missed = np.array([scores[pair] for pair in pairs])
    weights = np.array([noise.weight(domain.cells(pair)) for pair in pairs])
    # Of pairs that weigh the same the one with the highest score is next: only that one is looked at.
    queues = [queue.tolist() for queue in _by_weight(missed, weights)]
    free = np.ones(len(pairs), dtype=bool)
    taken: list[int] = []
    used = 0.0

    def best(places: Ints) -> tuple[int, float]:
        # Not the noise of this table alone: each one more makes all others noisier, for they share one cost.
        added = np.asarray(noise.total(used + weights[places])) - noise.total(used)
        gain = missed[places] - penalty * added
        most = float(gain.max())
        return int(places[gain == most].min()), most

    while queues := [queue for queue in queues if queue]:
        place, gain = best(np.array([queue[-1] for queue in queues], np.int64))
        # From here on a pair adds more noise than it mends. Public programs stop at a tuned gap instead of 0.
        if gain <= 0.0:
            break
        next(queue for queue in queues if queue[-1] == place).pop()
        free[place], used = False, used + weights[place]
        taken.append(place)
    number = {name: position for position, name in enumerate(domain.columns)}
    ends = np.array([[number[name] for name in pair] for pair in pairs], np.int64).reshape(-1, 2)
    for name in columns:
        mine = (ends == number[name]).any(axis=1)
        if mine[free].any() and not mine[taken].any():
            place, _ = best(np.flatnonzero(mine & free))
            free[place], used = False, used + weights[place]
            taken.append(place)
    return [pairs[place] for place in taken]


def _by_weight(missed: Floats, weights: Floats) -> list[Ints]:
    """Places of equal weight, those of the highest score last; of equal scores the first place last."""
    order = np.lexsort((-np.arange(missed.size), missed, weights))
    return np.split(order, np.flatnonzero(np.diff(weights[order])) + 1) if order.size else []


def combined(domain: Domain, pairs: Sequence[Clique], most_cells: int) -> list[Clique]:
    """The pairs with dense groups of them joined to larger tables, and what is left of the pairs.

    Sets of three columns or more, all of whose pairs are there, largest first, are taken if they have fewer than
    `most_cells` cells and share at most two columns with each one taken before.
    """
    place = {name: position for position, name in enumerate(domain.columns)}
    near: dict[str, set[str]] = {}
    for first, second in pairs:
        near.setdefault(first, set()).add(second)
        near.setdefault(second, set()).add(first)
    found = _dense(domain, near, most_cells)
    found.sort(key=lambda names: (-len(names), domain.cells(names), [place[name] for name in names]))
    taken: list[Clique] = []
    for names in found:
        if all(len(set(names) & set(other)) <= 2 for other in taken):
            taken.append(names)
    covered = {frozenset(pair) for names in taken for pair in itertools.combinations(names, 2)}
    return [*taken, *(pair for pair in pairs if frozenset(pair) not in covered)]


def _dense(domain: Domain, near: Mapping[str, set[str]], most_cells: int) -> list[Clique]:
    """Sets of three columns or more that are all paired with each other and fit."""
    columns = [name for name in domain.columns if name in near]
    layer: list[tuple[str, ...]] = [(name,) for name in columns]
    found: list[Clique] = []
    seen = 0
    while layer and seen < _MOST_CLIQUES:
        following = []
        for names in layer:
            rest = columns[columns.index(names[-1]) + 1 :]
            cells = domain.cells(names)
            for name in rest:
                if cells * domain.sizes[name] < most_cells and near[name].issuperset(names):
                    following.append((*names, name))
        seen += len(following)
        found += [Clique(names) for names in following if len(names) > 2]
        layer = following
    return found


_WORTH = 0.13
_LIKELY_TABLES = 10
"""Tables per column that are likely; where all columns of a wide table are related, more are worth their noise."""
_PAIR_SECONDS = 1e-4  # counting one pair, scoring it and drawing noise for the score


@dataclass(frozen=True, slots=True)
class PrivSyn(Method):
    """Method: one-way tables, noisy scores of all pairs, the pairs worth their noise, records moved towards them."""

    name: ClassVar[str] = "privsyn"
    summary: ClassVar[str] = (
        "All columns and as many pairs as are worth their noise; the rows are adjusted to fit them."
    )
    source: ClassVar[str] = "Zhang, Wang, Li, Honorio, Backes, He, Chen and Zhang (2021), PrivSyn."
    needs: ClassVar[str] = "A schema. Columns of up to a few hundred codes, or rare values that may be pooled."
    limits: ClassVar[str] = "Keeps the pairs it chose. The model is a set of records, at most most_records of them."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "zcdp", "gaussian")

    one_way_share: float = option(0.3, help="share of the cost for the one-way tables", share=True)
    selection_share: float = option(0.1, help="share of the cost for the scores of the pairs", share=True)
    threshold: float = option(3.0, help="values with fewer noisy rows than this many σ are pooled", least=0, most=1e9)
    penalty: float = option(1.0, help="weight of noise error against the error of omitting a pair", least=0, most=1e9)
    clique_cells: int = option(
        0, help="largest table (in cells) that a dense group of pairs is merged into", least=0, most=2**27
    )
    table_cells: int = option(2**18, help="largest table (in cells) considered for a pair", least=0, most=2**27)
    update: Update = option("sweeps", help="how records are updated: sweeps, gradual or both")
    rounds: int = option(50, help="rounds of the gradual update", least=0, most=MOST_STEPS)
    sweeps: int = option(10, help="maximum number of sweeps over all rows and columns", least=0, most=MOST_STEPS)
    most_records: int = option(2**20, help="maximum number of records in the model", least=1, most=MOST_STEPS)
    structure_seed: int = option(0, help="seed for initialising and updating the records", least=0, most=MOST_STEPS)

    def _check_together(self) -> None:
        check_share("one_way_share + selection_share", self.one_way_share + self.selection_share)

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """Columns, scores, tables; refuses rules that tie too much together and records that cannot fit."""
        domain, unit_rows = facts.domain, facts.unit_rows
        check_linked(domain, alone(domain.columns), facts.structural_zeros, f"method {self.name}")
        columns, pairs = live_columns(domain), self._pairs(domain)
        costs = self._costs(domain, pairs, cost)
        steps = [
            noisy_step(f"measure {name}", part, domain.sizes[name], unit_rows)
            for name, part in zip(columns, costs.columns, strict=True)
        ]
        widest = sum(sorted((domain.cells(pair) for pair in pairs), reverse=True)[: 3 * len(columns)])
        if pairs:
            moved = IndependenceGap("pairs", pairs, domain).sensitivity * unit_rows
            distribution = score_distribution(costs.scores, len(pairs), moved, "score pairs")
            steps.append(
                Step(f"score {len(pairs)} pairs", costs.scores, len(pairs), distribution.scale / SCORE_UNIT, None)
            )
            each = noisy_step("measure tables", costs.tables, widest, unit_rows)
            steps.append(Step("measure chosen tables", costs.tables, widest, each.noise_scale, each.expected_error))
        sizes = sorted(domain.cells(pair) for pair in pairs)
        counted = sum(sizes)
        cells = sum(domain.sizes[name] for name in columns) + widest
        rows = rows_of(facts)
        worth = _tables_worth(sizes, steps[-1].expected_error or 0.0, rows, pure=bool(cost.epsilon))
        tables = min(worth, _LIKELY_TABLES * len(columns))
        seconds = [
            seconds_for(facts, 3 * cells + counted // 2 + self._synthesis().cell_steps(number, rows), len(pairs))
            + len(pairs) * _PAIR_SECONDS
            for number in (min(worth, len(columns)), tables, worth)
        ]
        synthesis = self._synthesis().bytes(domain, sum(sizes[:tables]), rows)
        return Plan(
            self,
            cost,
            sum((step.cost for step in steps), Cost()),
            tuple(steps),
            cells,
            synthesis + scored_bytes(facts, len(pairs), counted),
            seconds[1],
            (
                f"{len(pairs):,} pairs are scored; which are measured is chosen in the run. Their noise is at least "
                "the one shown, and their cells the most that three pairs per column can have.",
                f"The model is a set of records: as many as the noisy counts say, at most {self.most_records:,}.",
            ),
            schedule=(pairs, costs),
            after_counting=synthesis,
            span=(seconds[0], seconds[2]),
        )

    def run(self, curator: Curator, plan: Plan) -> RecordModel:
        """Measures columns, scores pairs, measures the chosen ones and returns the records made from them."""
        domain, remaining = curator.domain, RemainingBudget(curator, plan.granted)
        columns, (pairs, costs) = live_columns(domain), plan.schedule
        answers = at_costs(curator, alone(columns), costs.columns)
        ones: dict[str, list[Measurement]] = {name: [answer] for name, answer in zip(columns, answers, strict=True)}
        tied = {name for rule in curator.structural_zeros for name in rule.clique}
        rare = {name: Rare(self.threshold) for name in columns if name not in tied}
        coarsening = Coarsening.of(domain, dict(zip(columns, answers, strict=True)), rare)
        chosen: list[Clique] = []
        if pairs:
            noisy = curator.score(IndependenceGap("pairs", pairs, domain), costs.scores)
            scores = steadied(noisy.scores, noisy.distribution.variance / SCORE_UNIT**2)
            chosen = self._chosen(
                coarsening.domain, dict(zip(pairs, scores, strict=True)), remaining.left, curator.unit_rows
            )
        if chosen:
            noise = SplitNoise(remaining.left)
            weights = [noise.weight(coarsening.domain.cells(clique)) for clique in chosen]
            # Coarse tables as partitions, at the same cost: a row lies in one cell of them, too.
            queries = [coarsening.query(clique) for clique in chosen]
            measured = at_costs(curator, queries, remaining.left.split(weights))
            tables = [coarsening.table(clique, answer) for clique, answer in zip(chosen, measured, strict=True)]
            return self._synthesis().made(coarsening, ones, tables, curator.structural_zeros)
        # Without pairs (one column, or none that can be counted) the rest improves the columns.
        again = at_costs(curator, alone(columns), remaining.left.split([1.0] * len(columns)))
        for name, answer in zip(columns, again, strict=True):
            # In front, because pooled codes fall apart by the first answer about their column.
            ones[name].insert(0, answer)
        return self._synthesis().made(coarsening, ones, (), curator.structural_zeros)

    def _chosen(self, domain: Domain, scores: Mapping[Clique, float], left: Cost, unit_rows: int) -> list[Clique]:
        columns = [name for name in domain.columns if domain.sizes[name] > 1]
        # A column pooled into one code holds nothing that a pair could keep.
        worth = {pair: score for pair, score in scores.items() if all(domain.sizes[name] > 1 for name in pair)}
        pairs = chosen_pairs(domain, worth, SplitNoise(left, unit_rows), columns, penalty=self.penalty)
        return combined(domain, pairs, self.clique_cells) if self.clique_cells else pairs

    def _pairs(self, domain: Domain) -> list[Clique]:
        """The candidates: all pairs that are not too large, the largest left out if all could not be counted."""
        columns = live_columns(domain)
        pairs = (Clique(pair) for pair in itertools.combinations(columns, 2))
        return within(domain, (pair for pair in pairs if domain.cells(pair) <= self.table_cells), SCORED_CELLS)

    def _costs(self, domain: Domain, pairs: Sequence[Clique], cost: Cost) -> "_PrivSynCosts":
        whole, columns = Cost(cost.epsilon, cost.rho), live_columns(domain)
        first = whole.share(self.one_way_share)
        parts = first.split([SplitNoise(whole).weight(domain.sizes[name]) for name in columns])
        scores = whole.share(self.selection_share) if pairs else Cost()
        return _PrivSynCosts(parts, scores, whole - sum(parts, Cost()) - scores)

    def _synthesis(self) -> RecordSynthesis:
        return RecordSynthesis(self.update, self.rounds, self.sweeps, self.most_records, self.structure_seed)


def _tables_worth(sizes: Sequence[int], noise: float, rows: int, *, pure: bool) -> int:
    """How many pairs, the smallest first, are likely to be worth their noise; `noise` is that of one table alone.

    Tables that share a cost are noisier, by their number under ε and by its root under ρ. Where columns are related,
    pairs are chosen until their noise comes to about an eighth of the rows.
    """
    number = np.arange(1, len(sizes) + 1)
    each = noise * (number if pure else np.sqrt(number)) * np.cumsum(np.asarray(sizes, np.float64)) / number
    return max(1, int((each <= _WORTH * rows).sum())) if sizes else 0


@dataclass(frozen=True, slots=True)
class _PrivSynCosts:
    """What each column costs, all scores, and all tables chosen by them."""

    columns: Sequence[Cost]
    scores: Cost
    tables: Cost
