"""Ensemble: noisy tables of many pairs, explained together by a few mixtures of products; rows moved to fit all pairs.

Steps. (1) The number of rows, at `total_share`. (2) Every column's table, at `one_way_share`, less where noise is small
beside the rows and more where it is large; where it is so large that columns take all, independent rows follow. Codes
with a noisy count below `threshold` times σ are pooled, and more of them until `most_codes` are left. A column that
still has more than `WIDE` codes is wide: it keeps them, and steps 5 to 7 leave it out. (3) Every pair scored, at
`selection_share`: how many rows its table is away from the product of its columns as they were measured; of wide
columns, how many beyond a height that noise does not reach (`methods/known_columns.py`). (4) The rest buys residuals of
pairs, what columns do not tell, shared by expected gain (`methods/expected_gain.py`). First come the pairs that wide
columns hang on (and a second one of each, if more is off in it than follows), and strong pairs without circles: those
of `_MANY` codes or more on both sides where at least a quarter of the rows lie elsewhere than columns say. What the
closed form of the strong pairs makes of all pairs between their columns is expected from then on, and these are scored
again. (5) Three mixtures of products, one where noise is large, are fitted to all tables, in groups of neighbouring
codes where there are more than `most_groups`; a pair that was not measured enters as it is expected, trusted as far as
its score allows. A graphical model of the clearest pairs stands beside them (`methods/graphical_member.py`). (6) The
wanted table of a pair has the columns that were measured: it is the mean of what these models make of it, moved to what
is expected as far as the pair's own answers say, and where the pair was measured, drawn towards its noisy residuals
(`models/pair_mixtures.py`). (7) Rows of a small graphical model of the strongest of the wanted tables are moved by
column sweeps until they have those of all pairs. Wide columns are drawn by the column that they hang on, and pooled
codes fall apart.

Privacy. Neighbours differ by the rows of one unit, at most k. The total and every table of a column, pooled or not,
count each row in one cell: they move by at most k in L1 and L2, and Gaussian noise of σ² = k²/(2ρ_i) costs ρ_i.
Residuals of a pair of a × b codes move by about k·√((1 − 1/a)(1 − 1/b)), to which the curator fits their noise. A score
is a distance from a table that is public by then (made of noisy columns, or of noisy columns and residuals), beyond a
public floor or not, so one row moves it by at most one (proof in `privacy/scores.py`, `MarginalError`): P scores move
by at most k√P in L2, to which the curator's `score` fits its noise. The costs add up, also when later ones depend on
earlier answers: step 2 takes what it takes by the noisy total, the second scores take their share of the cost of the
first, residuals have the rest, and the sum of all is what was granted. Which codes are pooled, which columns are wide,
which pairs are strong, which are measured and at which cost, whether pairs are worth their cost, and all of (5) to (7),
look at noisy answers and public facts alone. All noise is Gaussian, so where the schema leaves nothing open (ε, δ) are
those of Gaussian differential privacy (`privacy/gaussian.py`), which holds for costs that depend on answers.

Public table. Every pair is scored twice, each time at half of the cost: against the product of its columns, and against
the public table scaled to the noisy columns (`KnownColumns.like`). Where the second is nearer by the noisy scores, it
is what is expected of that pair from then on, and in doubt as far as its own score says; elsewhere nothing changes.
Counts of rows that protect nobody cost nothing, and what a pair is scored against is made of them and of noisy columns,
so both scores move by at most one: 2P scores, whose costs add up to those of P without such a table. What a misleading
table does is to make scores √2 times as noisy (twice, under pure ε), and to be taken where noise lets it look nearer.
With a public table, pairs are scored even where columns would otherwise take all of the cost: their mean has little
noise then, and whether the public table is nearer on the whole is known.

Pure ε. The same queries, but for residuals: there whole tables of pairs are measured, in which a row lies in one cell,
so that they too move by at most k in L1; and what they say of their columns is joined with the columns. Laplace noise
of scale k/ε_i on every cell costs ε_i. P scores move by at most k·P in L1, to which the curator's `score` fits its
Laplace noise. The ε_i add up to what was granted, also when later ones depend on earlier answers; k tickets buy a k-th
of the noise. Scores take more than `selection_share` where their noise, by the noisy number of rows, would exceed
`_SCORE_NOISE` of the rows.

Where it is weak. It keeps pairs; of three columns at once it knows what its graphical model infers. A wide column keeps
its relations to two other columns, and to others what follows from those. Work and memory grow with the square of all
codes, which are pooled to `most_codes`.
"""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from understudy.arrays import Floats
from understudy.domain import SCORE_UNIT, Clique, Domain, Measurement, ResidualTable, StructuralZeros
from understudy.errors import ResourceError
from understudy.methods.expected_gain import CellGain, expected_scatter, scatter_beyond, tickets
from understudy.methods.graphical_member import graphical_pairs
from understudy.methods.known_columns import PAIR_CELLS, KnownColumns, attached, attached_to_two
from understudy.methods.marginals import alone, at_costs, residuals_at_costs
from understudy.methods.method import (
    Method,
    Plan,
    PublicFacts,
    Step,
    noisy_step,
    rows_of,
    seconds_for,
    tables_bytes,
)
from understudy.methods.privsyn import steadied
from understudy.methods.record_synthesis import (
    LEAST_RECORDS,
    MOST_STEPS,
    Coarsening,
    Rare,
    RecordSynthesis,
    laid_out,
    laid_out_together,
)
from understudy.methods.rounds import RemainingBudget, live_columns, shares_of
from understudy.models.estimation import NoisyTable
from understudy.models.markov_field import fit_forest
from understudy.models.model import Codes
from understudy.models.pair_mixtures import (
    Fitting,
    PairEvidence,
    PairMixture,
    drawn_towards,
    interaction_share,
    raked,
    with_margins,
)
from understudy.models.product import BlockModel
from understudy.models.records import RecordModel, Target, column_sweeps
from understudy.models.tables import check_linked, norm_sub
from understudy.options import check_share, option
from understudy.privacy.cost import UNIT, Cost, Currency, score_distribution
from understudy.privacy.curator import Curator
from understudy.privacy.scores import WEIGHT_UNIT, MarginalError

_RIDGES, _WEAK_RIDGES = (5.0, 15.0, 45.0), (2.0, 6.0, 18.0)
"""Ridge penalties of the members of the ensemble; the weak ones apply where noise is small."""
_MEMBERS_LEFT, _COMPONENTS_LEFT = 2, 60
"""Large tables are fitted with fewer members, then with smaller ones, down to these."""
_MOST_WORK = 2.2e11
"""Multiplications and additions of all fits: about five seconds of one core."""
_WORK_PER_SECOND = 4e10
_PENALTY = 0.3
"""Weight of noise in the gain of a cell: cells that are fitted jointly suffer less than a cell alone would."""
_LEAST_TICKETS, _TICKETS_PER_PAIR, _MOST_TICKETS = 400, 8, 8_000
_STRONG = 0.25
"""The share of rows that columns alone put in a wrong cell of a strong pair."""
_MANY = 40
"""Codes of both columns of a strong pair: a mixture of `components` products follows fewer well by itself."""
_MOST_AGAIN = 10
"""One part in so many of what is left, at most, is for scoring pairs again."""
_LEAST_DOUBT = 0.02
"""How far, as a share, a pair is off that was not measured and shows no excess."""
_MOST_FOR_COLUMNS = Fraction(24, 25)
"""Of what the total left, the most for columns where pairs are scored."""
_IN_PAIRS = 0.64
"""What noise of columns does to pairs, as a share of it (`methods/expected_error.py`)."""
_LITTLE_NOISE, _MIDDLING_NOISE = 0.002, 0.007
"""Mean noise of a column at all of the cost, as a share of the rows: below the first it pays to fit for longer and more
closely; at the second columns get `one_way_share`, and from there on one mixture is enough."""
_LEAST_COLUMNS, _MOST_COLUMNS, _COLUMNS_ALONE = 0.05, 0.7, 0.95
"""The least share of the cost for columns, the most without noise, and the share from which no pair is measured."""
_SCORE_NOISE, _MOST_SCORES, _MOST_OF_LEFT = 0.05, 0.12, 0.3
"""Under pure ε: noise of a score that is aimed at, as a share of the rows, and the most of the cost, and of what
columns left of it, for that."""
_CELL_NOISE = 0.4
"""Half of E|X| of a normal number: noise of one cell moves so many rows, as a share of its scale."""
_CUTS = 3
"""Times a wanted table is shifted to its columns and cut to 0 or more."""
_TOLERANCE = 0.002
_LEAST_SHARE = 0.2
"""Share of a row that a code is given whose noisy count is not above 0."""
_MATRIX_BYTES = 60
"""Per cell of the matrix of all pairs: values, precisions, pulls, three fits, means and targets."""
_PUBLIC_BYTES = 20
"""Per cell of that matrix, of a public table: its counts, and what they make one expect."""
_WIDE_BYTES = 80
"""Per cell of the largest pair of a wide column: counts, noise, residuals, what is expected, and while it is drawn."""
_SWEEP_SECONDS = 1.2e-8
_MOST_CODES = 2**13
WIDE, _WIDEST = 512, 2**13
"""A column with more codes than the first is wide; it keeps at most so many as the second."""


@dataclass(frozen=True, slots=True)
class MixtureEnsemble(Method):
    """Method: columns, scores of all pairs, tables of pairs by expected gain, mixtures that explain them, rows."""

    name: ClassVar[str] = "ensemble"
    summary: ClassVar[str] = "Many noisy pairs, explained together by mixtures; rows are moved to fit all of them."
    source: ClassVar[str] = "Our own (2026); scores and moved rows after PrivSyn (Zhang et al. 2021)."
    needs: ClassVar[str] = "A schema. Up to about a hundred columns."
    limits: ClassVar[str] = "Keeps pairs; of a column of very many codes, two. The model is a set of records."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "zcdp", "gaussian")
    uses_public: ClassVar[bool] = True

    total_share: float = option(0.005, help="share of the cost for the number of rows", share=True)
    one_way_share: float = option(0.4, help="share of the cost for columns at moderate noise", share=True)
    selection_share: float = option(0.03, help="share of the cost for the scores of the pairs", share=True)
    threshold: float = option(2.0, help="values with fewer noisy rows than this many σ are pooled", least=0, most=1e9)
    components: int = option(200, help="number of components of each mixture", least=1, most=2**12)
    steps: int = option(500, help="number of fitting steps at small noise; half as many otherwise", least=1, most=2**16)
    most_codes: int = option(
        2048, help="maximum number of codes after pooling, of all columns except wide ones", least=2, most=_MOST_CODES
    )
    most_groups: int = option(
        1024, help="maximum number of groups of codes that mixtures distinguish", least=2, most=_MOST_CODES
    )
    sweeps: int = option(12, help="maximum number of sweeps over all rows and columns", least=0, most=MOST_STEPS)
    most_records: int = option(2**20, help="maximum number of records in the model", least=1, most=MOST_STEPS)
    structure_seed: int = option(0, help="seed for fitting mixtures and moving records", least=0, most=MOST_STEPS)

    def _check_together(self) -> None:
        check_share(
            "total_share + one_way_share + selection_share",
            self.total_share + self.one_way_share + self.selection_share,
        )

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """Total, columns, scores, tables; refuses rules that tie too much together and codes that cannot be pooled."""
        domain, rules = facts.domain, facts.structural_zeros
        check_linked(domain, alone(domain.columns), rules, f"method {self.name}")
        codes = self._codes(domain, rules)
        columns, whole = live_columns(domain), Cost(cost.epsilon, cost.rho)
        pairs = len(columns) * (len(columns) - 1) // 2
        costs = _EnsembleCosts.of(self, whole, pairs)
        steps = [noisy_step("measure total", costs.total, 1, facts.unit_rows)]
        for name, part in zip(columns, costs.columns.split(_column_weights(domain, columns)), strict=True):
            steps.append(noisy_step(f"measure {name}", part, domain.sizes[name], facts.unit_rows))
        cells = codes * codes // 2 if pairs else 0
        if pairs:
            scored = _score_rounds(facts.has_public) * pairs
            noise = _score_scale(costs.scores, scored, facts.unit_rows)
            what = f"score {pairs} pairs" + (" twice" if facts.has_public else "")
            steps.append(Step(what, costs.scores, scored, noise, None))
        spent = sum((step.cost for step in steps), Cost())
        rest = noisy_step("measure", whole - spent, cells, facts.unit_rows)
        name = "measure chosen pairs" if pairs else "measure columns again"
        steps.append(Step(name, whole - spent, cells, rest.noise_scale, rest.expected_error))
        beside = ", beside columns and beside the public table" if facts.has_public else ""
        groups = min(codes, max(self.most_groups, len(domain.columns)))
        fitting, members = self._fitting(groups, self.steps)
        moved = min(rows_of(facts), self.most_records) * pairs * self.sweeps * _SWEEP_SECONDS
        synthesis = self._synthesis().bytes(domain, cells, rows_of(facts)) + _MATRIX_BYTES * groups * groups
        synthesis += _WIDE_BYTES * self._widest_pair(domain, rules)
        if facts.has_public:
            synthesis += _PUBLIC_BYTES * codes * codes
        return Plan(
            self,
            cost,
            whole,
            tuple(steps),
            cells + sum(domain.sizes.values()),
            synthesis + tables_bytes(facts, pairs, cells),
            seconds_for(facts, cells, pairs) + members * fitting.work(groups) / _WORK_PER_SECOND + moved,
            (
                f"{pairs:,} pairs are scored{beside}. Which of them are scored again and which are measured, and at "
                "what cost, is decided in the run. Where noise is small beside the counts, columns take less of "
                "the cost than shown; where it is large, they take more, up to all of it.",
            ),
            schedule=costs,
            after_counting=synthesis,
        )

    def run(self, curator: Curator, plan: Plan) -> RecordModel:
        """Measures columns, scores pairs, measures those worth it and returns the records made from all of them."""
        remaining = RemainingBudget(curator, plan.granted)
        columns = live_columns(curator.domain)
        # First of all, because every later share of the cost depends on how large noise is beside the rows.
        (total,) = curator.measure([Clique()], plan.schedule.total)
        noise = _column_noise(curator.domain, columns, plan.granted, curator.unit_rows)
        noise /= max(float(total.values[0]), 1.0)
        share = self._column_share(noise)
        if share >= _COLUMNS_ALONE and not curator.has_public:
            return self._of_columns(curator, remaining, float(total.values[0]))
        whole = Cost(plan.granted.epsilon, plan.granted.rho)
        cost = min(whole.share(share), remaining.left.share(_MOST_FOR_COLUMNS), key=_amount)
        known = self._columns(curator, total, cost, noise)
        if not known.pairs and not known.wide.pairs:
            return self._without_pairs(curator, known, remaining)
        scored = _score_rounds(curator.has_public) * len(known.pairs)
        scores = self._scores_cost(plan, remaining.left, scored, known.total / curator.unit_rows)
        measuring = _Measuring(curator, known, remaining, scores)
        excess = measuring.scored()
        lost = _IN_PAIRS * noise * (share ** (-1.0 if whole.epsilon else -0.5) - 1.0)
        if not curator.has_public and not known.wide.names and measuring.mended(excess) < lost:
            return self._without_pairs(curator, known, remaining)
        excess, tables = measuring.measured(excess)
        return _Synthesis(self, known.joined(measuring.whole), curator.structural_zeros, excess, tables).records()

    def _scores_cost(self, plan: Plan, left: Cost, pairs: int, rows: float) -> Cost:
        """Of the scores: as planned; under pure ε, where noise grows with the number of pairs, more if it is much.

        Columns may have taken more than planned where noise is large, and then scores take half of the rest at most.
        """
        planned: Cost = plan.schedule.scores
        if not plan.granted.epsilon:
            return min(planned, left.share(Fraction(1, 2)), key=_amount)
        noise = math.sqrt(2.0) * max(pairs, 1) * UNIT / (plan.granted.epsilon * max(rows, 1.0))
        share = min(max(noise / _SCORE_NOISE, self.selection_share), max(_MOST_SCORES, self.selection_share))
        return min(Cost(plan.granted.epsilon).share(share), left.share(_MOST_OF_LEFT), key=_amount)

    def _column_share(self, noise: float) -> float:
        """The share of the cost for columns, by what their noise would be, as a share of the rows, if they had all."""
        grown = self.one_way_share * math.sqrt(noise / _MIDDLING_NOISE)
        return min(max(grown, _LEAST_COLUMNS), _MOST_COLUMNS + noise, 1.0)

    def _columns(self, curator: Curator, total: Measurement, cost: Cost, noise: float) -> KnownColumns:
        """All columns, and the codes that stay apart; from here on the curator counts pooled codes."""
        domain, columns = curator.domain, live_columns(curator.domain)
        answers = at_costs(curator, alone(columns), cost.split(_column_weights(domain, columns)))
        pooled, wide = self._pooled(domain, dict(zip(columns, answers, strict=True)), curator.structural_zeros)
        curator.merge(pooled.places)
        return KnownColumns.of(
            pooled, total, answers, curator.structural_zeros, noise, wide=wide, most_groups=self.most_groups
        )

    def _pooled(
        self, domain: Domain, answers: dict[str, Measurement], rules: Sequence[StructuralZeros]
    ) -> tuple[Coarsening, frozenset[str]]:
        """Rare codes pooled, and which columns still have so many that they are wide.

        Where the others have too many together, the rarest of those that have most are pooled.
        """
        free = set(answers) - _tied(rules)
        found = Coarsening.of(domain, answers, {name: Rare(self.threshold, most=_WIDEST) for name in free})
        wide = {name for name in free if found.domain.sizes[name] > WIDE}
        if len(wide) == len(domain.columns):
            # Mixtures and rows need one column at least; it is pooled like any other.
            wide.remove(min(wide, key=lambda name: found.domain.sizes[name]))
        low, high = 1, max(domain.sizes.values())
        while low < high:
            most = (low + high + 1) // 2
            found = Coarsening.of(domain, answers, self._rare(free, wide, most))
            fits = sum(size for name, size in found.domain.sizes.items() if name not in wide) <= self.most_codes
            low, high = (most, high) if fits else (low, most - 1)
        return Coarsening.of(domain, answers, self._rare(free, wide, low)), frozenset(wide)

    def _rare(self, free: Iterable[str], wide: Container[str], most: int) -> dict[str, Rare]:
        return {name: Rare(self.threshold, most=_WIDEST if name in wide else most) for name in free}

    def _without_pairs(self, curator: Curator, known: KnownColumns, remaining: RemainingBudget) -> RecordModel:
        """No pair is there, or worth its cost: the rest improves the columns, and rows are independent."""
        domain, names = curator.domain, live_columns(curator.domain)
        if names and _amount(remaining.left) > len(names):  # more than roundings left
            answers = at_costs(curator, alone(names), remaining.left.split(_column_weights(domain, names)))
            known = known.joined(
                [
                    NoisyTable(Clique((name,)), answer.values.astype(np.float64), answer.distribution.variance)
                    for name, answer in zip(names, answers, strict=True)
                ]
            )
        parts = {Clique((name,)): known.wide.counts[name] for name in domain.columns}
        rng = np.random.default_rng(self.structure_seed)
        rows = min(self.most_records, max(round(known.total), LEAST_RECORDS))
        model = BlockModel.of_marginals(domain, parts, curator.structural_zeros, known.total)
        return known.expanded(laid_out(model, rows, rng), known.total, rng)

    def _of_columns(self, curator: Curator, remaining: RemainingBudget, rows: float) -> RecordModel:
        """Columns at all that is left, and independent records.

        Shares by codes^(2/3) are best while noise adds up. Cutting negative counts bounds it at the rows, so codes
        beyond those at which it comes to them, if costs were equal, do not count.
        """
        names = live_columns(curator.domain)
        equal = _deviation(remaining.left, curator.unit_rows, len(names))
        most = max(rows / (_CELL_NOISE * equal), 1.0)
        costs = remaining.left.split([min(curator.domain.sizes[name], most) ** (2.0 / 3.0) for name in names])
        answers = at_costs(curator, alone(names), costs)
        ones = {name: [answer] for name, answer in zip(names, answers, strict=True)}
        return self._synthesis().made(Coarsening(curator.domain, {}), ones, (), curator.structural_zeros)

    def _codes(self, domain: Domain, rules: Sequence[StructuralZeros]) -> int:
        """The most codes that the matrix of all pairs can have; columns of rules are not pooled."""
        tied = sum(domain.sizes[name] for name in _tied(rules))
        free = [size for name, size in domain.sizes.items() if name not in _tied(rules)]
        codes = min(sum(free), max(self.most_codes - tied, 2 * len(free))) + tied
        if codes > _MOST_CODES:
            raise ResourceError(
                f"method {self.name}: {codes:,} codes",
                _MATRIX_BYTES * codes**2,
                _MATRIX_BYTES * _MOST_CODES**2,
                "Use fewer columns, coarser bins, or method mst.",
            )
        return codes

    def _widest_pair(self, domain: Domain, rules: Sequence[StructuralZeros]) -> int:
        """Most cells of a pair with a wide column; 0 if there can be none."""
        sizes = sorted(min(size, _WIDEST) for name, size in domain.sizes.items() if name not in _tied(rules))
        return min(math.prod(sizes[-2:]), PAIR_CELLS) if len(sizes) > 1 and sizes[-1] > WIDE else 0

    def _fitting(self, codes: int, steps: int) -> tuple[Fitting, int]:
        """How mixtures are fitted, and how many: fewer and smaller ones where codes are many."""
        components, members = self.components, len(_RIDGES)
        while members * Fitting(components, steps).work(codes) > _MOST_WORK:
            if members > _MEMBERS_LEFT:
                members -= 1
            elif components > _COMPONENTS_LEFT:
                components = int(components * 0.8)
            else:
                break
        return Fitting(components, steps), members

    def _synthesis(self) -> RecordSynthesis:
        return RecordSynthesis("sweeps", 0, self.sweeps, self.most_records, self.structure_seed)


@dataclass(frozen=True, slots=True)
class _EnsembleCosts:
    """Costs of the total, of columns where noise is middling, and of scores; the rest is for residuals."""

    total: Cost
    columns: Cost
    scores: Cost

    @classmethod
    def of(cls, method: MixtureEnsemble, whole: Cost, pairs: int) -> Self:
        scores = whole.share(method.selection_share) if pairs else Cost()
        return cls(whole.share(method.total_share), whole.share(method.one_way_share), scores)


@dataclass(frozen=True, slots=True, eq=False)
class _Excess:
    """By pair: what is expected of it, and the rows that this puts in a wrong cell, as noisy scores tell."""

    expected: Floats
    """The product of the columns; of `chained` pairs, what the strong pairs that were measured first make of them, or
    the public table."""
    rows: Mapping[Clique, float]
    wide: Mapping[Clique, CellGain]
    """Pairs that wide columns hang on, in the order in which they join, then second ones; what measuring them gains."""
    chained: frozenset[Clique] = frozenset()
    strong: frozenset[Clique] = frozenset()
    told: float = 1.0
    """Of the mean square of the noisy scores, the part that noise does not explain."""
    beside: Mapping[Clique, Clique] = field(default_factory=dict)
    """By pair that a wide column hangs on, a second one of that column."""


@dataclass(frozen=True, slots=True, eq=False)
class _Measuring:
    """From columns to scores of all pairs, to residuals: first of pairs that others follow from."""

    curator: Curator
    known: KnownColumns
    remaining: RemainingBudget
    scores: Cost
    """Cost of scoring all pairs; pairs that are scored a second time cost their part of it once more."""
    whole: list[NoisyTable] = field(default_factory=list)
    """Tables of pairs that were measured as they are, not just what columns do not tell."""

    def measured(self, excess: _Excess) -> tuple[_Excess, dict[Clique, ResidualTable]]:
        """Residuals at all that is left, and what is known of the pairs."""
        strong = self._strong(excess)
        tables: dict[Clique, ResidualTable] = {}
        if strong or excess.wide:
            followed = [pair for pair in _inside(strong, self.known.pairs) if pair not in strong]
            given = self._given(excess, [pair for pair in self.known.pairs if pair not in followed])
            again = self._again(len(followed))
            whole, left = sum(given.values()), self.remaining.left - again
            first = [pair for pair in (*strong, *excess.wide) if given[pair]]
            tables = self._residuals({pair: left.share(Fraction(given[pair], whole)) for pair in first})
            excess = self._scored_again(excess, [pair for pair in strong if pair in tables], tables, again)
        given = self._given(excess, [pair for pair in self.known.pairs if pair not in tables], tables)
        chosen = [pair for pair, number in given.items() if number]
        if chosen and _amount(self.remaining.left) > _TICKETS_PER_PAIR * len(
            self.known.pairs
        ):  # more than roundings left
            costs = self.remaining.left.split([float(given[pair]) for pair in chosen])
            tables |= self._residuals(dict(zip(chosen, costs, strict=True)))
        return excess, tables

    def scored(self) -> _Excess:
        """Scores every pair against its columns; those of wide columns by what is off beyond a floor."""
        known, wide = self.known, self.known.wide
        expected, pairs = known.independent(), wide.pairs
        noise = wide.noise(self.remaining.left - self.scores, self.curator.unit_rows)
        cuts = [wide.cut(pair, noise) for pair in pairs]
        raised = np.array([cut.weight(wide.expected(pair)) for pair, cut in zip(pairs, cuts, strict=True)])
        both = Fraction(1, _score_rounds(self.curator.has_public))
        floors = [cut.floor for cut in cuts]
        noisy, beyond, variance = self._off(expected, known.pairs, pairs, floors, self.scores.share(both))
        rows = _steadied(noisy, variance)
        nearer = (
            self._beside_public(expected, rows, self.scores.share(both)) if self.curator.has_public else frozenset()
        )
        # Counts scatter around the product even of independent columns; only what is off beyond that is a relation.
        beyond -= [scatter_beyond(wide.expected(pair), cut.floor) for pair, cut in zip(pairs, cuts, strict=True)]
        off = wide.clear(dict(zip(pairs, (beyond * raised).tolist(), strict=True)), 2.0 * math.sqrt(variance))
        by_pair = dict(zip(pairs, cuts, strict=True))
        scale, tree = float(noise.scale), wide.tree(off)
        gains = {pair: wide.gain(pair, off, by_pair[pair], scale) for pair in tree}
        by_name = dict(zip(known.pairs, rows.tolist(), strict=True))
        beside = wide.beside(tree, off, by_name)
        gains |= {pair: wide.gain_beside(pair, more, by_pair[pair], scale) for pair, more in beside.values()}
        told = 1.0 - variance / 4.0 / max(float((noisy**2).mean()), 1e-9) if noisy.size else 1.0
        second = {pair: more for pair, (more, _) in beside.items()}
        return _Excess(expected, by_name, gains, nearer, told=max(told, 0.0), beside=second)

    def _beside_public(self, expected: Floats, rows: Floats, cost: Cost) -> frozenset[Clique]:
        """Scores every pair against the public table; where that is nearer, it is `expected`, and `rows` are its own.

        Returns:
            The pairs where it is nearer.
        """
        known, grid = self.known, self.known.grid
        public = known.like(self.curator.public_counts(known.pairs))
        noisy, _, variance = self._off(public, known.pairs, (), (), cost)
        off = _steadied(noisy, variance)
        nearer = frozenset(pair for pair, before, now in zip(known.pairs, rows, off, strict=True) if now < before)
        for pair in nearer:
            grid.put(expected, pair, grid.table(public, pair))
        np.minimum(rows, off, out=rows)
        return nearer

    def _off(
        self, expected: Floats, pairs: Sequence[Clique], wide: Sequence[Clique], floors: Sequence[float], cost: Cost
    ) -> tuple[Floats, Floats, float]:
        """Rows that `expected` puts in a wrong cell of each pair, beyond the scatter of counts; distances beyond the
        floors of wide pairs; the variance of such a distance, which is four times that of the rows."""
        known = self.known

        def estimates(cliques: Sequence[Clique]) -> dict[Clique, Floats]:
            return {
                pair: known.wide.expected(pair).ravel() if pair in beside else known.grid.table(expected, pair).ravel()
                for pair in cliques
            }

        beside = set(wide)
        options, cuts = [*pairs, *wide], [0.0] * len(pairs) + list(floors)
        noisy = self.curator.score(MarginalError("pairs", options, estimates, floors=cuts), cost)
        scores, variance = noisy.scores / WEIGHT_UNIT, noisy.distribution.variance / (SCORE_UNIT * WEIGHT_UNIT) ** 2
        scatter = np.array([float(expected_scatter(known.grid.table(expected, pair)).sum()) for pair in pairs])
        return 0.5 * (scores[: len(pairs)] - scatter), scores[len(pairs) :], variance

    def _strong(self, excess: _Excess) -> list[Clique]:
        """The strongest pairs without a circle of which `_STRONG` of the rows are not as columns would have them.

        Columns that rules name are left out.
        """
        least, tied, shape = (
            _STRONG * self.known.total,
            _tied(self.curator.structural_zeros),
            self.known.grid.domain.shape,
        )
        found: list[Clique] = []
        for pair in sorted(excess.rows, key=lambda pair: -excess.rows[pair]):
            strong = excess.rows[pair] >= least and min(shape(pair)) >= _MANY and not tied & set(pair)
            if strong and not _inside(found, [pair]):
                found.append(pair)
        return found

    def _scored_again(
        self, excess: _Excess, strong: Sequence[Clique], tables: Mapping[Clique, ResidualTable], cost: Cost
    ) -> _Excess:
        """What follows from strong pairs is expected from now on; what is off beyond that is scored anew."""
        known, grid = self.known, self.known.grid
        followed = [pair for pair in _inside(strong, known.pairs) if pair not in tables]
        if not followed or not _amount(cost):
            return excess
        names = {name for pair in strong for name in pair}
        domain = Domain.of({name: size for name, size in grid.domain.sizes.items() if name in names})
        noisy = [known.column(name) for name in domain.columns]
        noisy += [NoisyTable(pair, known.noisy(tables[pair]).ravel(), _variance(tables[pair])) for pair in strong]
        model = fit_forest(domain, noisy, total=known.total)
        expected = excess.expected.copy()
        for pair, table in model.marginals([*strong, *followed]).items():
            grid.put(expected, pair, table.reshape(domain.shape(pair)) * known.total)
        rows, _, variance = self._off(expected, followed, (), (), cost)
        again = dict(zip(followed, _steadied(rows, variance).tolist(), strict=True))
        return _Excess(
            expected,
            {**excess.rows, **again},
            excess.wide,
            excess.chained.union(strong, followed),
            frozenset(strong),
            excess.told,
            excess.beside,
        )

    def _again(self, pairs: int) -> Cost:
        """Cost of scoring so many pairs once more, with the first noise if that costs little of the rest."""
        same = self.scores.share(Fraction(pairs, max(len(self.known.pairs), 1)))
        most = self.remaining.left.share(Fraction(1, _MOST_AGAIN))
        return min(same, most, key=_amount)

    def mended(self, excess: _Excess) -> float:
        """Share of the rows of a mean pair that residuals are expected to bring to their place, as far as noisy scores
        can be believed."""
        pairs = self.known.pairs
        given, gains = self._given(excess, pairs), self._gains(excess, pairs)
        left, whole = self.remaining.left, sum(given.values())
        rows = [
            gains[pair].at(_deviation(left, self.curator.unit_rows, whole / number))
            for pair, number in given.items()
            if number
        ]
        return excess.told * math.fsum(rows) / (2.0 * self.known.total * max(len(pairs), 1))

    def _gains(self, excess: _Excess, pairs: Sequence[Clique]) -> dict[Clique, CellGain]:
        known = self.known
        return {
            pair: CellGain.of(
                known.grid.table(excess.expected, pair), excess.rows[pair], known.total, _PENALTY * _moved(known, pair)
            )
            for pair in pairs
        }

    def _given(self, excess: _Excess, pairs: Sequence[Clique], done: Container[Clique] = ()) -> dict[Clique, int]:
        """Tickets of these pairs and of those of wide columns that are not done."""
        gains = self._gains(excess, pairs)
        off = [excess.rows[pair] for pair in pairs]
        for pair, gain in excess.wide.items():
            if pair not in done:
                gains[pair] = gain
                off.append(self.known.total)
        if not gains:
            return {}
        count = max(_LEAST_TICKETS, min(_TICKETS_PER_PAIR * len(gains), _MOST_TICKETS))
        left = self.remaining.left
        scale, pure = _deviation(left, self.curator.unit_rows, count), bool(left.epsilon)
        given = tickets(list(gains.values()), count, scale, np.array(off), pure=pure)
        return dict(zip(gains, given.tolist(), strict=True))

    def _residuals(self, costs: Mapping[Clique, Cost]) -> dict[Clique, ResidualTable]:
        pairs, parts = list(costs), list(costs.values())
        if pairs and parts[0].epsilon:
            counted = at_costs(self.curator, pairs, parts)
            tables = dict(zip(pairs, counted, strict=True))
            for pair, answer in tables.items():
                self.whole.append(NoisyTable(pair, answer.values.astype(np.float64), answer.distribution.variance))
            shape = self.curator.domain.shape
            return {pair: ResidualTable.of_counts(answer, tuple(pair), shape(pair)) for pair, answer in tables.items()}
        return dict(zip(pairs, residuals_at_costs(self.curator, pairs, parts), strict=True))


def _steadied(rows: Floats, variance: float) -> Floats:
    """Rows drawn towards their mean by what the noise of distances of this variance warrants."""
    return steadied(rows, variance / 4.0) if rows.size else rows


def _inside(strong: Sequence[Clique], pairs: Sequence[Clique]) -> list[Clique]:
    """Those of the pairs whose two columns are joined by strong pairs."""
    trees: list[set[str]] = []
    for edge in strong:
        touched = [tree for tree in trees if tree & set(edge)]
        trees = [tree for tree in trees if tree not in touched]
        trees.append(set(edge).union(*touched))
    return [pair for pair in pairs if any(set(pair) <= tree for tree in trees)]


def _variance(table: ResidualTable) -> float:
    return max(table.variance, 1e-9)


def _moved(known: KnownColumns, pair: Clique) -> float:
    """How far a row moves the residuals of a pair."""
    return math.sqrt(math.prod(1.0 - 1.0 / size for size in known.grid.domain.shape(pair)))


@dataclass(frozen=True, slots=True, eq=False)
class _Synthesis:
    """From answers to records."""

    method: MixtureEnsemble
    known: KnownColumns
    rules: tuple[StructuralZeros, ...]
    excess: _Excess
    tables: dict[Clique, ResidualTable]

    def records(self) -> RecordModel:
        """Fits the members, makes the wanted tables of all pairs, and moves rows towards them."""
        known, rng = self.known, np.random.default_rng(self.method.structure_seed)
        members = self._members(rng)
        columns = self._columns()
        targets = self._targets(members, graphical_pairs(known, self.tables, self.excess.rows, self.rules), columns)
        rows = min(self.method.most_records, max(round(known.total), LEAST_RECORDS))
        domain = known.grid.domain
        parts = {name: columns[known.grid.places(name)] for name in domain.columns}
        start = laid_out_together(domain, targets, parts, self.rules, rows=rows, rng=rng)
        moved = column_sweeps(
            domain,
            start,
            targets,
            seed=int(rng.integers(2**62)),
            sweeps=self.method.sweeps,
            tolerance=_TOLERANCE,
            structural_zeros=self.rules,
        )
        return known.expanded(self._with_wide(moved.codes, rng), known.total, rng)

    def _with_wide(self, codes: Codes, rng: np.random.Generator) -> Codes:
        """The rows with codes of the wide columns, each by its code of the column that it hangs on, if any."""
        found, wide = dict(codes), self.known.wide
        nothing = np.zeros(len(next(iter(codes.values()))), dtype=np.int64)

        def by_counts(name: str) -> None:
            found[name] = attached(wide.counts[name][:, np.newaxis], nothing, rng)

        second = set(self.excess.beside.values())
        for pair in self.excess.wide:
            both = [one for one in (pair, self.excess.beside.get(pair)) if one in self.tables]
            if both and pair not in second:
                if not set(both[0]) & set(found):  # the pair that the first of them hangs on was not worth its cost
                    by_counts(both[0][0])
                (name,) = set(both[0]) - set(found)
                tables = [self._lines(one, name) for one in both]
                others = [found[other] for one in both for other in one if other != name]
                found[name] = attached_to_two(tables, others, rng) if both[1:] else attached(tables[0], others[0], rng)
        for name in sorted(wide.names - set(found)):
            by_counts(name)
        return {name: found[name] for name in wide.domain.columns}

    def _lines(self, pair: Clique, name: str) -> Floats:
        """The wanted table of a pair of a wide column, one line per code of this one."""
        measured = self.tables[pair]
        table = self.known.wide.wanted(pair, measured.residuals, _variance(measured))
        return table if pair[0] == name else table.T

    def _members(self, rng: np.random.Generator) -> list[PairMixture]:
        """Three mixtures; one where noise is large, since a graphical model is worth as much there."""
        known = self.known
        small = known.noise < _LITTLE_NOISE
        steps = self.method.steps if small else -(-self.method.steps // 2)
        fitting, members = self.method._fitting(known.groups.grouped.codes, steps)
        members = 1 if known.noise >= _MIDDLING_NOISE else members
        evidence = self._evidence()
        start = np.maximum(known.groups.sums(known.shares), _LEAST_SHARE / known.total)
        return [
            PairMixture.started(known.groups.grouped, start, fitting.components, rng).fit(evidence, fitting, ridge)
            for ridge in (_WEAK_RIDGES if small else _RIDGES)[:members]
        ]

    def _evidence(self) -> PairEvidence:
        """Measured pairs with their noise; the others as independent, in doubt by their score and their scatter."""
        known, total, groups = self.known, self.known.total, self.known.groups
        counts, variances, members = groups.sums(known.counts), groups.sums(known.variances), groups.members
        evidence = PairEvidence.of_columns(groups.grouped, counts / total, total**2 / variances, members)
        for pair in known.pairs:
            expected = groups.table(pair, known.grid.table(self.excess.expected, pair))
            if pair in self.tables:
                codes = np.outer(*(members[groups.grouped.places(name)] for name in pair))
                noisy = groups.table(pair, self._noisy(pair))
                precisions = np.asarray(total**2 / (_variance(self.tables[pair]) * codes), dtype=np.float64)
                evidence.add_residuals(pair, noisy / total, precisions)
            else:
                doubt = 2.0 * max(self.excess.rows[pair], 0.0) / total + _LEAST_DOUBT
                evidence.add(pair, expected / total, total**2 / ((doubt * expected) ** 2 + expected + 1.0))
        return evidence

    def _noisy(self, pair: Clique) -> Floats:
        return self.known.noisy(self.tables[pair])

    def _between(self, pair: Clique, chained: Floats, mixed: Floats) -> Floats:
        """What strong pairs make of a pair, moved towards the mixtures as far as the pair's own answers say."""
        apart = mixed - chained
        if pair in self.excess.strong:
            # What is expected of a strong pair was made of its own answer, which therefore cannot judge it: mixtures
            # are taken as far as noise alone explains how the answer differs from them.
            noise = _variance(self.tables[pair]) * math.prod(size - 1 for size in apart.shape)
            towards = noise / max(float(((self._noisy(pair) - mixed) ** 2).sum()), 1e-9)
        elif pair in self.tables:
            towards = float(((self._noisy(pair) - chained) * apart).sum()) / max(float((apart**2).sum()), 1e-9)
        else:
            towards = 2.0 * self.excess.rows[pair] / max(float(np.abs(apart).sum()), 1e-9)
        return np.asarray(chained + min(max(towards, 0.0), 1.0) * apart)

    def _columns(self) -> Floats:
        """Counts of all columns with the noisy number of rows; residuals of pairs tell nothing of them."""
        return np.concatenate([self.known.wide.counts[name] for name in self.known.grid.domain.columns])

    def _targets(
        self, members: Sequence[PairMixture], together: Mapping[Clique, Floats], columns: Floats
    ) -> list[Target]:
        """The wanted table of every pair: one without negative counts that has these columns as nearly as it can.

        It begins with the mean of the mixtures and, if there is one, of the graphical model.
        """
        known, grid, total = self.known, self.known.grid, self.known.total
        groups = known.groups
        pairs = np.asarray(np.mean([member.pairs() for member in members], axis=0, dtype=np.float64))
        found = []
        for pair in known.pairs:
            possible = ~grid.table(known.impossible, pair)
            margins = columns[grid.places(pair[0])], columns[grid.places(pair[1])]
            expected = groups.spread(pair, groups.grouped.table(pairs, pair), columns)
            if together:
                expected = (len(members) * expected + together[pair] / total) / (len(members) + 1)
            table = raked(np.where(possible, expected, 0.0), *margins)
            if pair in self.excess.chained or pair not in self.tables:
                table = self._between(pair, raked(grid.table(self.excess.expected, pair), *margins), table)
            if pair in self.tables:
                noisy = with_margins(self._noisy(pair), *margins, possible)
                table = drawn_towards(table, noisy, _variance(self.tables[pair]) * interaction_share(possible))
            for _ in range(_CUTS):
                table = with_margins(table, *margins, possible)
                table[possible] = norm_sub(table[possible], total)
            found.append(Target(pair, table.ravel()))
        return found


def _tied(rules: Sequence[StructuralZeros]) -> set[str]:
    return {name for rule in rules for name in rule.clique}


def _column_weights(domain: Domain, columns: Sequence[str]) -> list[float]:
    return shares_of(domain, alone(columns))


def _column_noise(domain: Domain, columns: Sequence[str], cost: Cost, unit_rows: int) -> float:
    """Mean over columns of half the noise of all cells, in rows.

    Of very many codes most are rare and pooled, so those beyond `WIDE` are left out.
    """
    weights = np.array(_column_weights(domain, columns))
    scales = np.array([_deviation(cost, unit_rows, weights.sum() / weight) for weight in weights])
    return float(np.mean(_CELL_NOISE * np.minimum(domain.shape(columns), WIDE) * scales))


def _score_rounds(has_public: bool) -> int:
    """How often every pair is scored: beside its columns, and beside the public table if there is one."""
    return 2 if has_public else 1


def _amount(cost: Cost) -> int:
    return cost.epsilon or cost.rho


def _deviation(cost: Cost, unit_rows: int, parts: float) -> float:
    """Standard deviation, in rows, of the noise of a table that has the cost divided by `parts`."""
    if cost.epsilon:
        return math.sqrt(2.0) * unit_rows * UNIT * parts / cost.epsilon
    return unit_rows * math.sqrt(UNIT * parts / (2.0 * max(cost.rho, 1)))


def _score_scale(cost: Cost, pairs: int, unit_rows: int) -> float:
    """Noise of one score, in rows."""
    moved = MarginalError("pairs", (), {}).sensitivity * unit_rows
    return score_distribution(cost, pairs, moved, "score pairs").scale / (SCORE_UNIT * WEIGHT_UNIT)
