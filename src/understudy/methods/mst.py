"""MST: all columns, then a tree of pairs chosen by how much independence misses them.

Source: McKenna, Miklau, Sheldon, "Winning the NIST contest" (2021), with the estimation of Private-PGM (2019).

Steps
-----
1. Every column's table, at `one_way_share` of ρ. In columns of more than 30 codes, those whose noisy count is below 3σ
   are merged into one code; from here on all is counted and measured on merged codes.
2. Kruskal's algorithm with the exponential mechanism: among the pairs that join two parts of the tree so far, one is
   drawn by what measuring it would mend, w · (Σ max(|M − M̂| − floor, 0) − penalty). M̂ is what the columns alone
   predict. Weight, floor and penalty are public (`noise_cut` and `NoiseCut.weight` in `rounds.py`), for the noise that
   the pair would have if the others drawn were of the middle size. There are d − 1 draws at equal cost,
   `selection_share` of ρ in all.
3. The chosen pairs, at all that is left.
4. The model: maximum entropy on the tree, in closed form where the rules allow it. A merged code is drawn apart by the
   noisy counts of the codes it stands for.

Privacy
-------
Neighbours differ by the rows of one unit, at most k. Which codes are merged follows from noisy answers, and a row lies
in one cell of a table whether its codes are merged or not: a table moves by at most k in L2, and Gaussian noise with
σ² = k²/(2ρ_i) costs ρ_i.

A score moves by at most k · max w (see `privacy/scores.py`), and weights follow from earlier answers, since M̂ and the
number of rows are estimated from them; a draw at ε_e costs ε_e²/8. All parts add up to ρ.

Which pairs may be drawn depends on sizes, rules and earlier answers only. The scores of all pairs are computed once and
stay in the curator (`Curator.select` with `among`).

Differs from the source
-----------------------
* Discrete noise and an exact draw. The number of rows is estimated, never read.
* The cost is not split in thirds (`one_way_share` = `selection_share` = 1/3 does that): a draw needs less, because
  scores differ by much more than one row, and columns are worth more. Tables share their cost by cells^(2/3), which
  makes the sum of their errors smallest.
* Noise counts in the score, because a wide sparse pair is far from any prediction: all of it in a small table; in a
  large one only what a fit without negative counts leaves of it, and cells that are off by less than the noise do not
  count.
* Noisy pairs are drawn towards independence, each cell as far as its noise warrants. That alone does not make up for
  merging: on pairs of a column with 1,000 codes the noise of all cells together exceeds any relation, so such a pair
  was never drawn before codes were merged. Columns that rules name are not merged.
* Pairs that would make the model larger than `model_bytes`, and the largest ones where all cannot be counted together
  in memory, are not candidates.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from understudy.arrays import Ints
from understudy.domain import Clique, Domain
from understudy.methods.marginals import SCORED_CELLS, within
from understudy.methods.method import Method, Plan, PublicFacts, Step, noisy_step, scored_bytes, seconds_for
from understudy.methods.rounds import (
    LEAST_MODEL_BYTES,
    MOST_MODEL_BYTES,
    WORKING_TABLES,
    Measured,
    NoiseCut,
    RemainingBudget,
    check_start,
    live_columns,
    merged_bound,
    noise_cut,
    shares_of,
    times,
)
from understudy.models.markov_field import ExpandedField, MarkovField
from understudy.options import check_share, option
from understudy.privacy.cost import Cost, Currency, distribution_for, selection_rate
from understudy.privacy.curator import Curator
from understudy.privacy.scores import MarginalError, parts_of

_STEPS = 1000
_PAIR_CELLS = 2**20
"""Codes of wide columns are merged until no pair has more cells: the model is a tree, so large pairs cost little."""
# Room for eight models of this size, so that one pair more cannot matter.
_AMPLE = 8
_PAIR_SECONDS = 1.2e-4  # counting, expecting and scoring one pair, once
_DRAW_SECONDS = 7e-8  # one pair in one draw


@dataclass(frozen=True, slots=True)
class Mst(Method):
    """Method: one-way tables, a spanning tree of pairs chosen privately, the tree's tables."""

    name: ClassVar[str] = "mst"
    summary: ClassVar[str] = "All columns and a privately chosen tree of pairs; the rows follow the tree."
    source: ClassVar[str] = "McKenna, Miklau and Sheldon (2021), the general form of the winner of a NIST contest."
    needs: ClassVar[str] = "A schema. In columns with many codes, only frequent codes keep their relations."
    limits: ClassVar[str] = "Keeps pairs along one tree. δ above 0. The model stays below model_bytes."
    currencies: ClassVar[tuple[Currency, ...]] = ("zcdp",)

    one_way_share: float = option(0.4, help="share of ρ for the one-way tables", share=True)
    selection_share: float = option(0.1, help="share of ρ for choosing the pairs", share=True)
    model_bytes: int = option(
        2**27, help="largest size of the model's tables, in bytes", least=LEAST_MODEL_BYTES, most=MOST_MODEL_BYTES
    )

    def _check_together(self) -> None:
        check_share("one_way_share + selection_share", self.one_way_share + self.selection_share)

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """Columns, draws, pairs; refuses rules that tie more together than `model_bytes` holds."""
        domain = facts.domain
        check_start(domain, facts.structural_zeros, self.model_bytes, self.name)
        columns = live_columns(domain)
        costs = self._costs(domain, cost)
        steps = [
            noisy_step(f"measure {name}", part, domain.sizes[name], facts.unit_rows)
            for name, part in zip(columns, costs.columns, strict=True)
        ]
        merged = merged_bound(domain, facts.structural_zeros, _PAIR_CELLS)
        pairs = sorted((merged.cells(pair) for pair in _pairs(merged)), reverse=True)
        widest = sum(pairs[: costs.draws])
        if costs.draws:
            selection_rate(costs.draw, Fraction(1), "select pair", monotone=False)
            steps.append(Step(f"select {costs.draws} pairs", times(costs.draw, costs.draws), len(pairs), None, None))
            pair = noisy_step("measure pairs", costs.pair, widest, facts.unit_rows)
            steps.append(replace(pair, name=f"measure {costs.draws} pairs", cost=costs.pairs))
        cells = sum(domain.sizes[name] for name in columns)
        largest = domain.cells(domain.columns) if facts.structural_zeros else cells + widest
        model = min(self.model_bytes, 8 * largest)
        return Plan(
            self,
            cost,
            sum((step.cost for step in steps), Cost()),
            tuple(steps),
            cells + widest,
            WORKING_TABLES * model + scored_bytes(facts, len(pairs), cells + sum(pairs)),
            seconds_for(facts, cells + (widest + sum(pairs)) // 4, len(pairs))
            + len(pairs) * (_PAIR_SECONDS + costs.draws * _DRAW_SECONDS),
            ("The cells shown for pairs are upper bounds; which pairs are measured is chosen in the run.",),
            schedule=costs,
        )

    def run(self, curator: Curator, plan: Plan) -> MarkovField | ExpandedField:
        """Measures columns, draws a tree, measures its pairs and returns the fitted model."""
        domain, remaining = curator.domain, RemainingBudget(curator, plan.granted)
        costs: _MstCosts = plan.schedule
        ones = [Clique((name,)) for name in live_columns(domain)]
        answers = curator.measure(ones, costs.all_columns, shares_of(domain, ones))
        measured = Measured.begun(curator, answers, self.model_bytes, _PAIR_CELLS)
        measured.fit_tree(_STEPS)
        pairs = self._tree(curator, measured, costs) if costs.draws else []
        if remaining.left.rho:
            # Without pairs (one column, or none that fits the model) the rest improves the columns.
            targets = pairs or ones
            measured.add(curator.measure(targets, remaining.left, shares_of(curator.domain, targets)))
            measured.fit_tree(_STEPS)
        return measured.finished

    def _costs(self, domain: Domain, cost: Cost) -> "_MstCosts":
        columns = [Clique((name,)) for name in live_columns(domain)]
        whole, draws = Cost(rho=cost.rho), len(columns) - 1
        if not draws:
            return _MstCosts(whole, [whole], 0, Cost(), Cost())
        first = whole.share(self.one_way_share)
        parts = first.split(shares_of(domain, columns))
        # Equal draws: later ones choose among fewer pairs, but none of them is known to matter less.
        draw = whole.share(self.selection_share / draws)
        # The pairs get the rest to the last unit, with all that rounding down left over.
        return _MstCosts(first, parts, draws, draw, whole - sum(parts, Cost()) - times(draw, draws))

    def _tree(self, curator: Curator, measured: Measured, costs: "_MstCosts") -> list[Clique]:
        """Pairs without a circle that join as many columns as fit, each drawn by how much measuring it would correct.

        The scores of all pairs stand from the start; a draw is among those that join two parts.
        """
        domain = curator.domain
        candidates = _pairs(domain)
        cuts = costs.cuts(curator, candidates, measured.fitted.total)
        weights = _weights(measured, candidates, cuts)
        penalties = [cut.penalty / weight for cut, weight in zip(cuts, weights, strict=True)]
        floors = [cut.floor for cut in cuts]
        quality = MarginalError("pair", candidates, measured.expected, weights, penalties, floors)
        forest = _Forest(measured, candidates, self.model_bytes)
        while (among := forest.open_places()).size:
            forest.join(curator.select(quality, costs.draw, among))
        return forest.pairs


class _Forest:
    """The pairs drawn so far, and which candidates would join two of its parts and fit the model."""

    def __init__(self, measured: Measured, candidates: Sequence[Clique], model_bytes: int) -> None:
        self.pairs: list[Clique] = []
        self._measured, self._candidates, self._model_bytes = measured, candidates, model_bytes
        self._node = {name: number for number, name in enumerate(measured.domain.columns)}
        self._ends = np.array([[self._node[name] for name in pair] for pair in candidates], np.int64).reshape(-1, 2)
        self._part = np.arange(len(self._node))
        self._widest = max(map(measured.domain.cells, candidates), default=0)
        self._bytes = self._size([])

    def open_places(self) -> Ints:
        """Positions of the candidates that join two parts and with which the model stays within its bytes."""
        parts = self._part[self._ends]
        places = np.flatnonzero(parts[:, 0] != parts[:, 1])
        # Looking up every candidate's size takes long for wide tables; a model with ample room needs no look.
        if not places.size or _AMPLE * (self._bytes + 8 * self._widest) <= self._model_bytes:
            return places
        joining = {self._candidates[place]: place for place in places.tolist()}
        fitting = self._measured.fitting(list(joining), self._model_bytes, extra=self.pairs)
        return np.array([joining[pair] for pair in fitting], np.int64)

    def join(self, pair: Clique) -> None:
        """Takes the pair if the model still fits with it; its parts are one either way, so no pair is drawn twice."""
        size = self._size([*self.pairs, pair])
        if size <= self._model_bytes:
            self.pairs.append(pair)
            self._bytes = size
        # Also if it was too large to keep: offered again and again it could take every draw that is left.
        first, second = (self._part[self._node[name]] for name in pair)
        self._part[self._part == second] = first

    def _size(self, pairs: Sequence[Clique]) -> int:
        """Bytes of the model with these pairs; without rules its tables are the pairs and the columns beside them."""
        if self._measured.structural_zeros:
            return self._measured.bytes_with(pairs)
        domain = self._measured.domain
        paired = {name for pair in pairs for name in pair}
        alone = sum(size for name, size in domain.sizes.items() if name not in paired)
        return 8 * (sum(map(domain.cells, pairs)) + alone)


@dataclass(frozen=True, slots=True)
class _MstCosts:
    """Costs: all columns, each column, the number of draws, one draw, all pairs."""

    all_columns: Cost
    columns: Sequence[Cost]
    draws: int
    draw: Cost
    pairs: Cost

    @property
    def pair(self) -> Cost:
        """One pair if all cost the same."""
        return self.pairs.share(Fraction(1, self.draws))

    def cuts(self, curator: Curator, pairs: Sequence[Clique], total: float) -> list[NoiseCut]:
        """How the noise of each pair counts, if the others drawn with it are as large as the middle one of all."""
        if not pairs:
            return []
        readable = curator.readable
        sizes = {pair: readable.cells(pair) for pair in pairs}
        weights = dict(zip(pairs, shares_of(curator.domain, pairs), strict=True))
        # Which pairs will be drawn with it nobody knows yet; looking at the scores to find out would have to be paid
        # for.
        others = (self.draws - 1) * float(np.median(list(weights.values())))
        found: dict[tuple[int, float], NoiseCut] = {}
        for pair in pairs:
            key = sizes[pair], weights[pair]
            if key not in found:
                cost = self.pairs.split([weights[pair], others])[0] if others else self.pairs
                found[key] = noise_cut(distribution_for(cost, curator.unit_rows, "measure pairs"), sizes[pair], total)
        return [found[sizes[pair], weights[pair]] for pair in pairs]


def _weights(measured: Measured, pairs: Sequence[Clique], cuts: Sequence[NoiseCut]) -> list[float]:
    """`NoiseCut.weight` of every pair; what the model expects is worked out part by part."""
    found = [1.0] * len(pairs)
    floored = [place for place, cut in enumerate(cuts) if cut.floor]
    for part in parts_of(measured.domain, [pairs[place] for place in floored]):
        places = [floored[row] for row in part.tolist()]
        expected = measured.expected([pairs[place] for place in places])
        for place in places:
            found[place] = cuts[place].weight(expected[pairs[place]])
    return found


def _pairs(domain: Domain) -> list[Clique]:
    """All pairs, without the largest if scoring all of them would take too long."""
    pairs = (Clique(pair) for pair in itertools.combinations(live_columns(domain), 2))
    return within(domain, pairs, SCORED_CELLS)
