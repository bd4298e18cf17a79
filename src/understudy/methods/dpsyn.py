"""DPSyn: a public list of marginals in blocks, rare values merged, records moved until they have those tables.

Source: Li, Zhang and Wang, second in all three matches of the 2018 NIST challenge (2019). Generalised: any schema, any
list; the team's own list for Match 3 is a preset.

Steps. (1) Every column's table. (2) Values with a noisy count below max(`threshold`·σ, `least_count`), or beyond the
`most_values` largest, are merged; columns with public bins are counted by bins instead. (3) The listed tables on merged
codes. (4) All tables are made to agree; each block's records are moved towards its tables. (5) Blocks are joined:
within the columns they share, or record by record. Merged values and bins fall apart by the columns' tables.

Privacy. Neighbours differ by the rows of one unit, at most k. A row falls in one cell of each table, merged or not, so
a table moves by at most k in L1 and in L2: Gaussian noise with σ² = k²/(2ρ_i) costs ρ_i, Laplace noise of scale k/ε_i
costs ε_i, and the parts add up. Tables in `reserve` get the stated share of the whole cost; columns and tables share
the rest so that all have the same noise (tables by their weights; `one_way_share` gives columns a share of their own).
With δ > 0 the reserved shares are shares of ε and pay Laplace noise, ε₁ in all, as in the source; ρ(ε − ε₁, δ) pays
Gaussian noise for all others, and (ε, δ) holds for both together (`privacy/cost.py` has the proof).
`reserve_noise=gaussian` takes the same shares of ρ instead. With δ = 0 everything is Laplace.
Which values are merged depends on noisy answers alone. Queries depend on answers, costs do not.

Which is better depends on what is reserved. Pure ε adds up, ρ adds up too but is worth √ρ: a few tables are cheaper in
ε (at ε = 1, δ = 10⁻⁹ a quarter of ε gives noise of 5.7 rows, a quarter of ρ 11.6), and ρ(2ε/3) is 0.46 of ρ(ε), so
that all others have 1.48 times the noise instead of 1.22 times. A ledger that adds up in ρ counts ε₁ as ε₁²/2, which
is much.

Differs from the source. Noise is discrete. A column product is a table of its columns. Tables are also drawn towards
independence, and records moved by column sweeps; `update=gradual` is the source's update. Where merged tables exceed
`table_cells` more values are merged. The leaks of the source (code lists of places read from rows; the true size of a
dissolved remainder) are not here: code lists are the schema's, and no remainder is dissolved.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from understudy.domain import Clique, Domain, Measurement, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.marginals import ListedTable, MarginalList, alone, at_costs, parse_tables
from understudy.methods.match_three import match3_blocks, reserved_shares
from understudy.methods.method import (
    Method,
    Plan,
    PublicFacts,
    noisy_step,
    rows_of,
    seconds_for,
    tables_bytes,
)
from understudy.methods.record_synthesis import MOST_STEPS, Coarsening, Rare, RecordSynthesis, Update
from understudy.methods.rounds import live_columns, smallest
from understudy.models.records import RecordModel
from understudy.models.tables import check_linked
from understudy.options import option
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import Curator

Preset = Literal["none", "match3"]
ReserveNoise = Literal["laplace", "gaussian"]

_BLOCKS = re.compile(r'((?:[^;"]|"(?:[^"]|"")*")*)(?:;|$)')


def _check_reserve(name: str, text: str) -> None:
    """Raises UsageError unless every table has a share below 1, and all of them together less than 1."""
    shares = parse_tables(text) if text.strip() else []
    for names, share in shares:
        if share >= 1.0:  # what a table without a number after it stands for
            table = "×".join(names)
            fix = f"Write COLUMN:SHARE, for example {table}:0.1; shares must add up to less than 1."
            raise UsageError(name, f"{table!r} has no share below 1.", fix)
    if math.fsum(share for _, share in shares) >= 1.0:
        raise UsageError(name, "the shares must add up to less than 1.", "Write smaller numbers.")


@dataclass(frozen=True, slots=True)
class DpSyn(Method):
    """Method: one-way tables, rare values merged, listed marginals in blocks, records moved towards them."""

    name: ClassVar[str] = "dpsyn"
    summary: ClassVar[str] = (
        "All columns and a public list of marginals, rare values merged; rows are adjusted to fit them."
    )
    source: ClassVar[str] = "Li, Zhang and Wang (2019), second in the 2018 NIST challenge, generalised."
    needs: ClassVar[str] = "A schema and a public list of marginals (or the preset match3)."
    limits: ClassVar[str] = "Keeps the relations that are listed. The model is a set of records."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "zcdp")
    can_be_fixed: ClassVar[bool] = True

    marginals: str = option("", help="tables to measure: a×b:2, b×c; semicolons separate blocks")
    preset: Preset = option("none", help="match3: the team's tables of Match 3, instead of a list")
    reserve: str = option("", help="tables with their own share of the cost, e.g. income:0.05", check=_check_reserve)
    reserve_noise: ReserveNoise = option(
        "laplace", help="laplace: reserved shares are shares of ε; gaussian: of ρ (where δ > 0)"
    )
    one_way_share: float = option(
        0.0, help="share of the cost for the one-way tables; 0: the same noise for all tables", least=0, below=1
    )
    threshold: float = option(4.5, help="values with fewer noisy rows than this many σ are merged", least=0, below=1e9)
    least_count: float = option(
        0.0, help="values with fewer noisy rows than this are merged as well", least=0, below=1e15
    )
    most_values: int = option(0, help="maximum number of values that a column keeps; 0: no limit", least=0, most=2**27)
    keep: str = option("", help="columns never merged, separated by commas")
    table_cells: int = option(2**18, help="largest table (in cells) after merging", least=1, most=2**27)
    update: Update = option("sweeps", help="how records are updated: sweeps, gradual or both")
    rounds: int = option(100, help="rounds of the gradual update", least=0, most=MOST_STEPS)
    sweeps: int = option(10, help="maximum number of sweeps over all rows and columns", least=0, most=MOST_STEPS)
    most_records: int = option(2**20, help="maximum number of records in the model", least=1, most=MOST_STEPS)
    structure_seed: int = option(0, help="seed for initialising and updating the records", least=0, most=MOST_STEPS)

    def _check_together(self) -> None:
        if self.marginals.strip() and self.preset != "none":
            raise UsageError("marginals", "and preset cannot both be given.", "Drop one of them.")

    @property
    def pure_share(self) -> Fraction:
        """The share of ε that reserved tables take as it is, in a run with δ."""
        if self.reserve_noise == "gaussian":
            return Fraction(0)
        if self.preset == "match3":
            return sum(map(Fraction, reserved_shares().values()), Fraction(0))
        named = parse_tables(self.reserve) if self.reserve.strip() else []
        return sum((Fraction(share) for _, share in named), Fraction(0))

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """Columns, then listed tables; refuses what cannot fit however much is merged."""
        domain, unit_rows = facts.domain, facts.unit_rows
        check_linked(domain, alone(domain.columns), facts.structural_zeros, f"method {self.name}")
        queries = self._queries(domain, facts.structural_zeros, cost)
        steps = [
            noisy_step(f"measure {name}", paid, domain.sizes[name], unit_rows)
            for name, paid in zip(queries.columns, queries.column_costs, strict=True)
        ]
        for clique, paid in zip(queries.tables, queries.table_costs, strict=True):
            cells = min(domain.cells(clique), self.table_cells)
            steps.append(noisy_step(f"measure {' × '.join(clique)}", paid, cells, unit_rows))
        cells = sum(step.cells for step in steps)
        rows = rows_of(facts)
        synthesis = self._synthesis().bytes(domain, cells, rows)
        return Plan(
            self,
            cost,
            sum((step.cost for step in steps), Cost()),
            tuple(steps),
            cells,
            synthesis + tables_bytes(facts, len(queries.tables), cells),
            seconds_for(facts, 3 * cells + self._synthesis().cell_steps(len(queries.tables), rows)),
            (
                f"Listed tables: {len(queries.tables):,}, blocks: {len(queries.blocks):,}. Rare values are merged "
                "before the tables are measured: the cells shown are upper bounds.",
                f"The model is a set of records: as many as the noisy counts say, at most {self.most_records:,}.",
            ),
            schedule=queries,
            fixed=True,
            after_counting=synthesis,
        )

    def run(self, curator: Curator, plan: Plan) -> RecordModel:
        """Measures columns, merges rare values, measures the listed tables and returns the records made from them."""
        domain = curator.domain
        queries: _Queries = plan.schedule
        answers = dict(
            zip(queries.columns, at_costs(curator, alone(queries.columns), queries.column_costs), strict=True)
        )
        coarsening = self._coarsening(domain, answers, queries)
        measured = at_costs(curator, [coarsening.query(clique) for clique in queries.tables], queries.table_costs)
        tables = [coarsening.table(clique, answer) for clique, answer in zip(queries.tables, measured, strict=True)]
        ones = {name: [answer] for name, answer in answers.items()}
        return self._synthesis().made(coarsening, ones, tables, curator.structural_zeros, queries.blocks)

    def _coarsening(self, domain: Domain, answers: Mapping[str, Measurement], queries: "_Queries") -> Coarsening:
        """Rare values merged, and more of them, a tenth of the widest column at a time, until every table fits."""
        most = dict.fromkeys((name for name in answers if name not in queries.kept), queries.rare.most)
        while True:
            rare = {name: Rare(queries.rare.threshold, queries.rare.least, number) for name, number in most.items()}
            found = Coarsening.of(domain, answers, rare, starts=queries.starts)
            sizes = found.domain
            wide = max(queries.tables, key=sizes.cells, default=Clique(()))
            if sizes.cells(wide) <= self.table_cells:
                return found
            widest = max((name for name in wide if name in most), key=sizes.sizes.__getitem__)
            most[widest] = max(1, (sizes.sizes[widest] - 1) * 9 // 10)

    def _queries(self, domain: Domain, structural_zeros: Sequence[StructuralZeros], cost: Cost) -> "_Queries":
        """The queries of a run and their costs, from public facts alone."""
        whole = Cost(cost.epsilon, cost.rho)
        tied = frozenset(name for rule in structural_zeros for name in rule.clique)
        lists, reserved, rare = self._lists(domain, cost, tied)
        starts = _column_starts([table for block in lists for table in block.tables])
        columns = live_columns(domain)
        weights = {name: weight for block in lists for name, weight in block.columns.items()}
        tables = {table.clique: table.weight for block in lists for table in block.tables}
        kept = tied | set(starts)
        for names, _ in parse_tables(self.keep) if self.keep.strip() else []:
            kept |= set(domain.clique(names))
        for name in tied & set(starts):
            raise UsageError(f"groups of column {name!r}", "cannot be used: a rule names its codes.", "Drop them.")
        shared = Cost(rho=cost.rho) if cost.rho else whole
        costs = self._costs(shared, [weights.get(name, 1.0) for name in columns], list(tables.values()))
        column_costs, table_costs = costs
        if reserved:
            column_costs, table_costs = _with_reserved(whole, columns, list(tables), reserved, costs)
        least = smallest(domain, [name for name in columns if name not in kept])
        least = Domain.of({n: len(starts[n]) + 1 if n in starts else size for n, size in least.sizes.items()})
        widest = max((least.cells(clique) for clique in tables), default=0)
        if widest > self.table_cells:
            fix = "Raise table_cells, use coarser bins, or let more columns be merged (keep, groups of codes, rules)."
            raise ResourceError(f"method {self.name}: a table", widest * 8, self.table_cells * 8, fix)
        blocks = [[table.clique for table in block.tables] for block in lists if block.tables]
        return _Queries(columns, column_costs, list(tables), table_costs, blocks, starts, frozenset(kept), rare)

    def _lists(
        self, domain: Domain, cost: Cost, tied: frozenset[str]
    ) -> tuple[list[MarginalList], dict[Clique, float], Rare]:
        """The blocks of tables, the reserved shares, and which values are rare."""
        rare = Rare(self.threshold, self.least_count, self.most_values)
        if self.preset == "match3":
            team = match3_blocks(cost)
            # A rule ties the parts of a split amount together, so the amount is counted by its own codes.
            starts = {name: codes for name, codes in team.starts.items() if name not in tied}
            lists = [
                MarginalList.listed([_listed(names, starts, domain) for names in block], domain)
                for block in team.blocks
            ]
            shares = {domain.clique(names): share for names, share in team.reserved.items()}
            return lists, shares, Rare(self.threshold, self.least_count or team.least_count, team.most_values)
        if not self.marginals.strip():
            raise UsageError(
                f"method {self.name}",
                "needs a public list of marginals.",
                "Give options={'marginals': 'sex×age:2, age×income; city×rent'} with your columns, "
                "options={'marginals': 'pairs'}, or, for the challenge's table, options={'preset': 'match3'}.",
            )
        texts = [text for text in _BLOCKS.findall(self.marginals) if text.strip()]
        lists = [MarginalList.of(text, domain) for text in texts]
        named = parse_tables(self.reserve) if self.reserve.strip() else []
        return lists, {domain.clique(names): share for names, share in named}, rare

    def _costs(self, whole: Cost, columns: Sequence[float], tables: Sequence[float]) -> tuple[list[Cost], list[Cost]]:
        """What each column and each table costs, nothing being reserved."""
        power = 2.0 if whole.rho else 1.0
        first, second = [weight**power for weight in columns], [weight**power for weight in tables]
        if not self.one_way_share or not tables:
            parts = whole.split([*first, *second])
            return parts[: len(first)], parts[len(first) :]
        share = whole.share(self.one_way_share)
        return share.split(first), (whole - share).split(second)

    def _synthesis(self) -> RecordSynthesis:
        return RecordSynthesis(self.update, self.rounds, self.sweeps, self.most_records, self.structure_seed)


@dataclass(frozen=True, slots=True)
class _Queries:
    """Columns and tables with their costs, blocks of tables, public bins, columns never merged, and what is rare."""

    columns: Sequence[str]
    column_costs: Sequence[Cost]
    tables: Sequence[Clique]
    table_costs: Sequence[Cost]
    blocks: Sequence[Sequence[Clique]]
    starts: Mapping[str, tuple[int, ...]]
    kept: frozenset[str]
    rare: Rare


def _with_reserved(
    whole: Cost,
    columns: Sequence[str],
    tables: Sequence[Clique],
    reserved: Mapping[Clique, float],
    costs: tuple[Sequence[Cost], Sequence[Cost]],
) -> tuple[list[Cost], list[Cost]]:
    """The costs with the reserved shares taken out first; what is left goes to the others in the same proportions."""
    names = [*alone(columns), *tables]
    for clique in reserved:
        if clique not in names:
            raise UsageError(f"reserve {' × '.join(clique)}", "is not a listed table.", "List it among the marginals.")
    if whole.epsilon and whole.rho:  # ε is there for the reserved tables alone
        left, kept = (
            Cost(rho=whole.rho),
            dict(zip(reserved, Cost(whole.epsilon).split([*reserved.values()]), strict=True)),
        )
    else:
        left = whole.share(1.0 - math.fsum(reserved.values()))
        kept = {clique: whole.share(share) for clique, share in reserved.items()}
    weights = [
        0 if clique in reserved else paid.rho or paid.epsilon
        for clique, paid in zip(names, [*costs[0], *costs[1]], strict=True)
    ]
    shared = left.split(weights) if any(weights) else [Cost()] * len(names)
    found = [kept[clique] if clique in reserved else part for clique, part in zip(names, shared, strict=True)]
    return found[: len(columns)], found[len(columns) :]


def _listed(names: Sequence[str], starts: Mapping[str, tuple[int, ...]], domain: Domain) -> ListedTable:
    clique = domain.clique(names)
    return ListedTable(clique, 1.0, {name: starts[name] for name in clique if name in starts})


def _column_starts(tables: Sequence[ListedTable]) -> dict[str, tuple[int, ...]]:
    """The bins of each column; a column is binned everywhere or nowhere."""
    found: dict[str, tuple[int, ...]] = {}
    for table in tables:
        for name, starts in table.starts.items():
            if found.setdefault(name, starts) != starts:
                raise UsageError(f"groups of column {name!r}", "must be the same in all tables of this method.")
    return found
