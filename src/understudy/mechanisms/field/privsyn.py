"""PrivSyn: noisy scores say which pairs of columns to measure; records are moved until they have those tables.

Source: Zhang, Wang, Li, Honorio, Backes, He, Chen and Zhang, "PrivSyn: Differentially Private Data Synthesis" (2021).

Steps. (1) Every column's table, at `one_way_share`; values with a noisy count below `threshold` times σ are pooled.
(2) Every pair's InDif = Σ|c − expected under independence|, with noise, at `selection_share`. (3) Pairs are chosen one
by one while what is missed without them exceeds the noise they add; a column left alone gets its best pair. If
`clique_cells` allows it, dense groups of pairs become larger tables. (4) The tables, at the rest, shared by
cells^(2/3). (5) Tables are cleaned and made to agree; records laid out by the columns are moved towards them.

Privacy. Neighbours differ by the rows of one unit, at most k. A row falls in one cell of a table, pooled or not: a
table moves by at most k in L1 and L2, so noise at cost ρ_i (σ² = k²/(2ρ_i)) or ε_i (scale k/ε_i) costs just that. One
row moves an InDif by less than 4 (proof in `privacy/questions/association.py`), so P scores move by at most 4k√P in L2
and 4kP in L1, to which the door's `score` fits its noise. The parts add up to the cost. Which values are pooled and
which pairs are chosen depends on noisy answers alone; so does the number of rows, which is estimated, never read.

Differs from the source. Discrete noise. Both currencies; with pure ε tables share by √cells, the best split there.
Noisy scores are drawn towards their mean as far as their noise warrants, so that thousands of pairs are not chosen by
lucky noise. Pairs count on pooled codes when noise is weighed against score, and a lone column gets the pair whose
score exceeds its noise by most, not the best score alone. Tables, too, are drawn towards independence by what their
noise warrants. Records are moved by column sweeps, not by the gradual update (`update=gradual` does that, `update=both`
one after the other); pairs stay pairs (`clique_cells=5000` combines them as the source does); columns get 0.3 of the
cost, not 0.1. These choices were looked at on two tables, Adult and the stroke trial, at ε = 1, δ = 10⁻⁹
(benchmarks/field_privsyn.py prints each of them). No column is attached afterwards: sweeps reach the tables to within
rounding, so nothing would be gained.

Where it is weak. The scores of P pairs share one price, so their noise grows with √P. On the stroke trial (110 columns,
5,995 pairs, 19,434 rows) it is nearly a third of the rows, and `mst`, which draws its pairs, is nearer to the truth
(two-way total variation 0.0385 against 0.0413). On Adult it is 0.0339 against 0.0468 of `mst`.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import ClassVar

import numpy as np

from understudy.marginals.answer import Measurement
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.mechanisms.challenge.asking import alone, at_prices
from understudy.mechanisms.field.overlap.coarsening import Coarsening, Rare
from understudy.mechanisms.field.overlap.making import Making, Update
from understudy.mechanisms.field.overlap.pair_choice import SplitNoise, chosen_pairs, combined, steadied
from understudy.mechanisms.forecast import facts_of, noisy_step, rows_of, seconds_for, tables_bytes
from understudy.mechanisms.measured import Purse, live_columns
from understudy.mechanisms.mechanism import Plan, PublicFacts, Step
from understudy.mechanisms.options.checks import check_number, check_share, check_whole
from understudy.mechanisms.workload import COUNTED_CELLS, within
from understudy.models.overlap.records import RecordModel
from understudy.models.restrict import check_linked
from understudy.privacy.calibrate import score_law
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import Curator
from understudy.privacy.quality import SCORE_UNIT
from understudy.privacy.questions.association import IndependenceGap

__all__ = ["PrivSyn"]
_WORTH = 0.13


@dataclass(frozen=True, slots=True)
class PrivSyn:
    """Recipe: one-way tables, noisy scores of all pairs, the pairs worth their noise, records moved towards them."""

    name: ClassVar[str] = "privsyn"
    summary: ClassVar[str] = "All columns and as many pairs as are worth their noise; the rows are moved to fit them."
    source: ClassVar[str] = "Zhang, Wang, Li, Honorio, Backes, He, Chen and Zhang (2021), PrivSyn."
    needs: ClassVar[str] = "A schema. Columns of up to a few hundred codes, or rare values that may be pooled."
    limits: ClassVar[str] = "Keeps the pairs it chose. The model is a set of records, at most most_records of them."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "concentrated")

    one_way_share: float = field(default=0.3, metadata={"help": "share of the cost for the columns' own tables"})
    selection_share: float = field(default=0.1, metadata={"help": "share of the cost for the scores of the pairs"})
    threshold: float = field(default=3.0, metadata={"help": "values with fewer noisy rows than this many σ are pooled"})
    penalty: float = field(default=1.0, metadata={"help": "how much noise counts against what a pair would mend"})
    clique_cells: int = field(default=0, metadata={"help": "most cells of tables that dense groups of pairs become"})
    table_cells: int = field(default=2**18, metadata={"help": "pairs with more cells are no candidates"})
    update: Update = field(default="sweeps", metadata={"help": "how records are moved: sweeps, gradual or both"})
    rounds: int = field(default=50, metadata={"help": "rounds of the gradual update"})
    sweeps: int = field(default=10, metadata={"help": "most sweeps over all rows and columns"})
    most_records: int = field(default=2**20, metadata={"help": "most records of the model"})
    structure_seed: int = field(default=0, metadata={"help": "seed of how records are laid out and moved"})

    def __post_init__(self) -> None:
        check_share("one_way_share", self.one_way_share)
        check_share("selection_share", self.selection_share)
        check_share("one_way_share + selection_share", self.one_way_share + self.selection_share)
        for name, number in (("threshold", self.threshold), ("penalty", self.penalty)):
            check_number(name, number, 0.0, 1e9)
        for name, cells in (("clique_cells", self.clique_cells), ("table_cells", self.table_cells)):
            check_whole(name, cells, 0, 2**27)
        self._making()

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """Columns, scores, tables; refuses rules that tie too much together and records that cannot fit."""
        domain, unit_rows = facts.domain, facts.unit_rows
        check_linked(domain, alone(domain.columns), facts.forbidden, f"method {self.name}")
        columns, pairs, prices = live_columns(domain), self._pairs(domain), self._prices(domain, cost)
        steps = [
            noisy_step(f"measure {name}", part, domain.sizes[name], unit_rows)
            for name, part in zip(columns, prices.columns, strict=True)
        ]
        widest = sum(sorted((domain.cells(pair) for pair in pairs), reverse=True)[: 3 * len(columns)])
        if pairs:
            moved = IndependenceGap("pairs", pairs, domain).sensitivity * unit_rows
            law = score_law(prices.scores, len(pairs), moved, "score pairs")
            steps.append(Step(f"score {len(pairs)} pairs", prices.scores, len(pairs), law.scale / SCORE_UNIT, None))
            each = noisy_step("measure tables", prices.tables, widest, unit_rows)
            steps.append(Step("measure chosen tables", prices.tables, widest, each.noise_scale, each.expected_error))
        sizes = sorted(domain.cells(pair) for pair in pairs)
        counted = sum(sizes)
        cells = sum(domain.sizes[name] for name in columns) + widest
        rows = rows_of(facts)
        tables = _tables_worth(sizes, steps[-1].expected_error or 0.0, rows, pure=bool(cost.epsilon))
        work = self._making().cell_steps(tables, rows)
        making = self._making().bytes(domain, sum(sizes[:tables]), rows)
        return Plan(
            self.name,
            sum((step.cost for step in steps), Cost()),
            tuple(steps),
            cells,
            making + tables_bytes(facts, len(pairs), counted),
            seconds_for(facts, 3 * cells + counted // 2 + work, len(pairs)),
            (
                f"{len(pairs):,} pairs are scored; which are measured is chosen in the run. Their noise is at least "
                "the one shown, and their cells the most that three pairs per column can have.",
                f"The model is a set of records: as many as there are by noisy counts, at most {self.most_records:,}.",
            ),
            asdict(self),
            after_counting=making,
        )

    def run(self, curator: Curator, cost: Cost) -> RecordModel:
        """Measures columns, scores pairs, measures the chosen ones and returns the records made from them."""
        self.plan(facts_of(curator), cost)
        domain, purse, prices = curator.domain, Purse(curator, cost), self._prices(curator.domain, cost)
        columns, pairs = live_columns(domain), self._pairs(domain)
        answers = at_prices(curator, alone(columns), prices.columns)
        ones: dict[str, list[Measurement]] = {name: [answer] for name, answer in zip(columns, answers, strict=True)}
        tied = {name for rule in curator.forbidden for name in rule.clique}
        rare = {name: Rare(self.threshold) for name in columns if name not in tied}
        coarsening = Coarsening.of(domain, dict(zip(columns, answers, strict=True)), rare)
        chosen: list[Clique] = []
        if pairs:
            noisy = curator.score(IndependenceGap("pairs", pairs, domain), prices.scores)
            scores = steadied(noisy.scores, noisy.law.variance / SCORE_UNIT**2)
            chosen = self._chosen(
                coarsening.domain, dict(zip(pairs, scores, strict=True)), purse.left, curator.unit_rows
            )
        if chosen:
            noise = SplitNoise(purse.left)
            weights = [noise.weight(coarsening.domain.cells(clique)) for clique in chosen]
            asked = [coarsening.question(clique) for clique in chosen]
            measured = at_prices(curator, asked, purse.left.split(weights))
            tables = [coarsening.table(clique, answer) for clique, answer in zip(chosen, measured, strict=True)]
            return self._making().made(coarsening, ones, tables, curator.forbidden)
        # Without pairs (one column, or none that can be counted) the rest improves the columns.
        again = at_prices(curator, alone(columns), purse.left.split([1.0] * len(columns)))
        for name, answer in zip(columns, again, strict=True):
            ones[name].insert(0, answer)
        return self._making().made(coarsening, ones, (), curator.forbidden)

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
        return within(domain, (pair for pair in pairs if domain.cells(pair) <= self.table_cells), COUNTED_CELLS)

    def _prices(self, domain: Domain, cost: Cost) -> "_Prices":
        whole = Cost(cost.epsilon, cost.rho)
        columns, pairs = live_columns(domain), self._pairs(domain)
        first = whole.share(self.one_way_share)
        parts = first.split([SplitNoise(whole).weight(domain.sizes[name]) for name in columns])
        scores = whole.share(self.selection_share) if pairs else Cost()
        return _Prices(parts, scores, whole - sum(parts, Cost()) - scores)

    def _making(self) -> Making:
        return Making(self.update, self.rounds, self.sweeps, self.most_records, self.structure_seed)


def _tables_worth(sizes: Sequence[int], noise: float, rows: int, *, pure: bool) -> int:
    """How many pairs, the smallest first, are likely to be worth their noise; `noise` is that of one table alone.

    Tables that share a cost are noisier, by their number under ε and by its root under ρ. Where columns are related,
    pairs are chosen until their noise comes to about an eighth of the rows.
    """
    number = np.arange(1, len(sizes) + 1)
    each = noise * (number if pure else np.sqrt(number)) * np.cumsum(np.asarray(sizes, np.float64)) / number
    return max(1, int((each <= _WORTH * rows).sum())) if sizes else 0


@dataclass(frozen=True, slots=True)
class _Prices:
    """What each column costs, all scores, and all tables chosen by them."""

    columns: Sequence[Cost]
    scores: Cost
    tables: Cost
