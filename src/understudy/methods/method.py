"""Method: a frozen dataclass of options, a plan made without data, a run through the curator; and all methods by name.

What a query will cost in noise, memory and time is computed from public numbers, before any private row is read. Times
are CPU seconds of a run whose kernels are compiled already, rough: constants measured on one core of a small machine
(`benchmarks/forecasts.py` holds them against runs). Bytes are the most that a run is expected to take beyond the
program with its libraries. Where noisy answers decide how much that is, a plan also says the most it can be, and a run
is refused by that.

Another package adds a method by an entry point in the group `understudy.methods` that points to a subclass of `Method`.
"""

import abc
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from understudy.domain import Clique, Distribution, Domain, StructuralZeros
from understudy.errors import UsageError, size_text
from understudy.models.model import CHUNK_ROWS, Model
from understudy.notebook import counted, shown_as_html
from understudy.options import Catalogue, Option, Registry, WithOptions, described
from understudy.privacy.cost import Budget, Cost, Currency, distribution_for
from understudy.privacy.curator import KEPT_BYTES, Curator
from understudy.privacy.scores import PART_CELLS
from understudy.schema import OpenCategory, Schema

if TYPE_CHECKING:
    from understudy.report import Pictures

PublicCounts = Callable[[Sequence[Clique]], Mapping[Clique, npt.NDArray[np.int64]]]
"""Exact counts of a public table, which is about nobody who is protected."""


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """All a plan may know: domain, structural zeros, rows per unit, a hint of the number of rows, a public table."""

    domain: Domain
    structural_zeros: tuple[StructuralZeros, ...]
    unit_rows: int
    rows_hint: int | None = None
    prepared: tuple[str, ...] = ()
    """Columns whose labels or bins are fixed from private rows, and paid for, before the method runs."""
    public: PublicCounts | None = None
    has_public: bool = False
    """Whether a public table is given along, even one that lacks columns and so cannot be counted in a plan."""


@dataclass(frozen=True, slots=True)
class Step:
    """One query of the plan: its share of the cost and the noise that follows from it."""

    name: str
    cost: Cost
    cells: int
    noise_scale: float | None
    expected_error: float | None
    """Expected absolute error of one cell, in rows."""


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will ask and need, known before any private row is read, and what it follows."""

    by: "Method"
    """The method that runs it."""
    granted: Cost
    """What a run may spend. `cost`, which the queries add up to, is never above it."""
    cost: Cost
    steps: tuple[Step, ...]
    cells: int
    bytes: int
    seconds: float
    notes: tuple[str, ...] = ()
    schedule: Any = field(default=None, repr=False, compare=False)
    """Queries and costs as `run` follows them, in the form the method likes; for these codes and this cost only."""
    fixed: bool = False
    """Whether a run asks just these queries at just these costs, whatever the answers: then the exact distributions
    of the noise can be summed beforehand, which buys less noise for the same (ε, δ) than adding up ρ does. Only for
    plain measurements: scores, choices and trees are not summed in this way."""
    refused: str = ""
    """Why no privacy claim may be made about such a run (a method as it was published, with its mistakes)."""
    after_counting: int = 0
    """How many of the bytes are taken only when all rows were read, and so do not add to what reading takes."""
    most_bytes: int = 0
    """Where memory depends on noisy answers, or may be taken while rows are read: the most it may come to, by which a
    run is refused; else 0."""
    span: tuple[float, float] | None = None
    """Where time depends on noisy answers: least and most seconds; `seconds` lie in between."""
    reads: int = 1
    """How often the table is read at most, as long as the codes of its rows can be kept; else again and again."""
    code_bytes: int = 0
    """Size of one row that is kept for the next question."""
    temporary_bytes: int = 0
    """Disk that codes take which memory is not for, in a temporary file without a name."""
    labels: tuple[str, ...] = ()
    """Private columns of a method that labels public records: the statement also says what a change of them costs."""

    def __repr__(self) -> str:
        work = f"{counted(len(self.steps), 'query', 'queries')}, {counted(self.cells, 'cell')}"
        needs = f"about {size_text(self.bytes)} and {self.seconds:,.1f} CPU s"
        return f"<Plan: {self.method}, {self.cost}, {work}, {needs}{', NO CLAIM' if self.refused else ''}>"

    def _repr_html_(self) -> str:
        """For notebooks: what a run would ask, spend and need."""
        facts = [
            ("spent", str(self.cost)),
            ("cells to measure", f"{self.cells:,}"),
            ("memory", f"about {size_text(self.bytes)}, at most {size_text(self.limit_bytes)}"),
            ("time", f"about {self.seconds:,.1f} CPU s"),
            *(("note", note) for note in self.notes),
            *([("no privacy claim", self.refused)] if self.refused else []),
        ]
        rows = [
            (one.name, one.cost, f"{one.cells:,}", _rounded(one.noise_scale), _rounded(one.expected_error))
            for one in self.steps
        ]
        header = ("step", "cost", "cells", "noise scale", "expected error, rows")
        return shown_as_html(f"Plan of {self.method}", facts, header, rows, "Made without private data.")

    def plot(self) -> "Pictures":
        """How the budget is shared among the queries, as a chart; made without private data."""
        from understudy.charts import Amounts, SharesChart
        from understudy.report import Figure, Pictures

        spent = [float(step.cost.epsilon or step.cost.rho) for step in self.steps]
        whole = math.fsum(spent) or 1.0
        shares = Amounts("made", "share of the budget", tuple(part / whole for part in spent))
        chart = SharesChart(f"Budget of {self.method} by query", tuple(step.name for step in self.steps), (shares,))
        return Pictures((Figure(chart, remark=f"{self.cost} in all."),))

    @property
    def limit_bytes(self) -> int:
        """What a limit of memory or disk must allow: nothing may run out after the charge, whatever the answers.

        Where no most is known, runs were measured to take up to a third more than what is expected.
        """
        return max(self.bytes, self.most_bytes or self.bytes * 7 // 5)

    @property
    def method(self) -> str:
        """The name of the method that runs it."""
        return self.by.name

    @property
    def options(self) -> Mapping[str, object]:
        """The options of that method."""
        return asdict(self.by)


@dataclass(frozen=True, slots=True)
class Method(WithOptions, abc.ABC):
    """A method: a frozen dataclass whose fields are its options, checked when it is made.

    All that the rest of the package may know about a method is stated here, with what holds unless a method says more.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    needs: ClassVar[str]
    limits: ClassVar[str]
    currencies: ClassVar[tuple[Currency, ...]]
    uses_public: ClassVar[bool] = False
    """Whether it can use a public table."""
    spends_delta: ClassVar[bool] = False
    """Whether it pays in ε and δ by itself, as training does."""
    can_be_fixed: ClassVar[bool] = False
    """Whether its plans may be fixed (`Plan.fixed`); where no plan ever is, nobody needs to make one to know."""
    keeps_checkpoints: ClassVar[bool] = False
    """Whether an interrupted run can be continued. Only for methods whose one query is a training: answers to other
    queries are not kept."""

    @property
    def pure_share(self) -> Fraction:
        """The share of ε that a run with δ keeps for steps paid in pure ε."""
        return Fraction(0)

    @property
    def structured(self) -> "Structured | None":
        """The two halves of a run, for a method whose copies have one structure in common when each is measured anew.

        It is then chosen and paid for once. None for all other methods.
        """
        return None

    @abc.abstractmethod
    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The queries, their cost (never above `cost`), memory and time; raises ResourceError in advance."""

    @abc.abstractmethod
    def run(self, curator: Curator, plan: Plan) -> Model:
        """Asks the curator as planned for its codes, spends at most what was granted, fits and returns a model."""

    def fit(self, curator: Curator, cost: Cost) -> Model:
        """Plans for the codes that the curator has, and runs that plan."""
        # For the codes that are fixed by now; `plan.by`, because `auto` hands over to another method.
        plan = self.plan(facts_of(curator), cost)
        return plan.by.run(curator, plan)

    def informed(self, facts: PublicFacts) -> Self:
        """The same method with the options that it takes from a public table, once, before anything is planned."""
        return self

    def not_public(self, facts: PublicFacts) -> tuple[str, ...]:
        """Columns that a public table need not have: the private ones of a method that labels public records."""
        return ()

    def check_without_public(self, facts: PublicFacts) -> None:
        """Raises if this method cannot do without a public table on such a domain."""


class Structured(Protocol):
    """A run in two halves, the choice of a structure and the queries about it.

    `run` of such a method is the same as `choose_structure` followed by `run_with`, at `structure_cost` and what is
    left of the cost.
    """

    def structure_cost(self, facts: PublicFacts, cost: Cost) -> Cost:
        """What fixing the structure takes of this cost; nothing if there is nothing to pay for."""
        ...

    def plan_structure(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The queries of `choose_structure`."""
        ...

    def plan_with(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The queries of `run_with`."""
        ...

    def choose_structure(self, curator: Curator, cost: Cost) -> Any:
        """The structure, from answers that cost at most `cost`."""
        ...

    def run_with(self, curator: Curator, cost: Cost, structure: Any) -> Model:
        """Asks the curator about that structure, spends at most `cost`, fits and returns a model."""
        ...


_CELLS_PER_SECOND = 5e6  # noise, clipping and normalising
_ROW_SECONDS = 1.5e-10  # one row in one of many tables; several of them are summed from one larger table
_START_SECONDS = 0.05
_TABLE_SECONDS = 1.2e-4  # one candidate in a round: whether it fits, what the model expects there, its score
_CANDIDATE_CELLS_PER_SECOND = 2e7
_COLUMN_STEP_SECONDS = 5e-6  # one step of a fit, for each column
_MODEL_CELLS_PER_SECOND = 1.2e8  # one step of a fit
_EXPECTING_STEPS = 10  # what the model expects of all candidates takes as long as that many steps
_LIKELY_NOISE = 3.0  # what the noise of a table of average size may come to: a third of the rows
_LIKELY_SHARE = 0.75  # of the rounds that the rows carry: 0.4 to 1 were seen, more for related columns and little noise
_COLUMNS_TIED = 2.5
_MEASURED_TABLES = 20  # a model holds at most that many times the cells of its measured tables
_RUN_BYTES = 16 << 20  # readers, writers and the pages of any run
_PAGE_BYTES = 1 << 20  # of every column, while a Parquet file is read
_READ_BYTES = 20  # of one value in a batch of rows
_BATCH_ROWS, _BATCH_VALUES = 1 << 17, 1 << 22
_DRAWN_BYTES, _DECODED_BYTES = 10, 14  # of one synthetic value; of one in the piece that is decoded and written
_DECODED_VALUES = 1 << 22
_TABLE_BYTES = 1_200  # of one table in a list of many, beside its cells
_CELL_BYTES = 24  # of one cell: an exact count, an expected one, and what a score needs
_COUNTED_LOG = 14.0  # tables that others are summed from have up to about 2¹⁴ cells
_OVERLAP = 1.2  # pairs that lie in several of them
_COUNTING_BYTES = 1 << 29  # tables of one pass over the rows
KEPT_ROWS_BYTES = 1 << 29
"""Most bytes of coded rows of a file that are kept for the next query."""
_READ_SECONDS = 2.3e-8  # reading and encoding one value
_WRITTEN_SECONDS = 4e-8  # drawing, decoding and writing one value
_COLUMN_SECONDS = 5.5e-3  # of one column: its codes, its part of the model and of the card
_RELEASE_SECONDS = 0.2
ROWS_UNKNOWN = 1_000_000
"""The number of rows that estimates are for when no hint is given."""


def facts_of(curator: Curator) -> PublicFacts:
    """The public facts of a curator whose codes are fixed."""
    # As a function: a plan that never looks at the public table should not have it counted.
    public = curator.public_counts if curator.has_public else None
    return PublicFacts(
        curator.domain, curator.structural_zeros, curator.unit_rows, public=public, has_public=curator.has_public
    )


def expected_absolute(distribution: Distribution) -> float:
    """Expected absolute value of one draw.

    Discrete Laplace: Σ|k|P(k) = 2q/(1 − q²) with q = e^(−1/scale). Gaussian: σ√(2/π), an upper bound for small σ.
    """
    if distribution.kind == "gaussian":
        return distribution.scale * math.sqrt(2.0 / math.pi)
    rate = 1.0 / distribution.scale
    return 2.0 * math.exp(-rate) / -math.expm1(-2.0 * rate)


def pass_probability(distribution: Distribution, threshold: int) -> float:
    """P(noise ≥ threshold) of discrete Laplace noise, threshold ≥ 1: q^threshold/(1 + q).

    >>> from fractions import Fraction
    >>> round(pass_probability(Distribution("laplace", Fraction(2)), 1), 6)
    0.377541
    """
    rate = 1.0 / distribution.scale
    return math.exp(-threshold * rate) / (1.0 + math.exp(-rate))


def noisy_step(name: str, cost: Cost, cells: int, unit_rows: int) -> Step:
    """The step of a plan that measures a table of `cells` cells at that cost."""
    distribution = distribution_for(cost, unit_rows, name)
    return Step(name, cost, cells, distribution.scale, expected_absolute(distribution))


def rows_of(facts: PublicFacts) -> int:
    """The number of rows that estimates are for."""
    return facts.rows_hint if facts.rows_hint is not None else ROWS_UNKNOWN


def seconds_for(facts: PublicFacts, cells: int, tables: int = 0) -> float:
    """Rough time of handling that many cells and counting so many tables; reading the rows is not in it."""
    return _START_SECONDS + cells / _CELLS_PER_SECOND + tables * rows_of(facts) * _ROW_SECONDS


def with_rows(plan: Plan, facts: PublicFacts) -> Plan:
    """The plan of a method with what every run takes on top of it: reading the rows, drawing and writing new ones.

    Rows pass in pieces: what they take grows with their number only up to a piece, and with the columns without end.
    """
    rows, columns = rows_of(facts), len(facts.domain.columns)
    row = sum(1 if size <= 1 << 8 else 2 if size <= 1 << 16 else 4 for size in facts.domain.sizes.values())
    kept = rows * row
    # As readers cut batches (`counts/readers.py`): wide tables come in fewer rows at a time.
    batch = min(rows, _BATCH_ROWS, _BATCH_VALUES // columns)
    coded = min(kept, KEPT_ROWS_BYTES)
    read = columns * (min(8 * rows, _PAGE_BYTES) + _READ_BYTES * batch) + coded
    values = columns * min(rows, CHUNK_ROWS)
    drawn = _DRAWN_BYTES * values + _DECODED_BYTES * min(values, _DECODED_VALUES)
    seconds = rows * columns * (_READ_SECONDS + _WRITTEN_SECONDS) + columns * _COLUMN_SECONDS
    seconds += _RELEASE_SECONDS
    counting = plan.bytes - plan.after_counting
    return replace(
        plan,
        # Rows are drawn beside the fitted model, when about half of what fitting took is given back.
        bytes=_RUN_BYTES + max(read + counting, drawn + plan.after_counting // 2, coded + plan.bytes),
        seconds=plan.seconds + seconds,
        most_bytes=_RUN_BYTES + max(read, drawn) + plan.most_bytes if plan.most_bytes else 0,
        span=(plan.span[0] + seconds, plan.span[1] + seconds) if plan.span else None,
        code_bytes=row,
        temporary_bytes=kept - coded,
    )


def tables_bytes(facts: PublicFacts, tables: int, cells: int) -> int:
    """Memory of counting and scoring that many tables at once."""
    return tables * _TABLE_BYTES + cells * _CELL_BYTES + counted_bytes(facts.domain, tables)


def scored_bytes(facts: PublicFacts, tables: int, cells: int) -> int:
    """Memory of counting and scoring these tables part by part, with the counts that the curator keeps if all fit."""
    kept = 8 * cells if 8 * cells <= KEPT_BYTES else 0
    part = min(cells, PART_CELLS)
    together = math.ceil(tables * part / max(1, cells))
    return tables * _TABLE_BYTES + kept + part * _CELL_BYTES + counted_bytes(facts.domain, together)


def counted_bytes(domain: Domain, tables: int) -> int:
    """Memory of the larger tables out of which tables of two columns are summed, as far as one pass holds them."""
    live = [math.log2(size) for size in domain.sizes.values() if size > 1]
    mean = sum(live) / max(1, len(live))
    columns = max(2, min(12, int(_COUNTED_LOG / max(mean, 1.0))))
    cells = tables / math.comb(columns, 2) * 2.0 ** min(60.0, columns * mean)
    return int(min(4 * _OVERLAP * cells, _COUNTING_BYTES))


def raked_cells(facts: PublicFacts, cells: int, margins: str) -> int:
    """Cells to handle when a full table's columns are raked, as many as stand for the time; else the table's own."""
    return cells * (1 + len(facts.domain.columns) // 2) if margins == "raked" else cells


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds of a run that depends on noisy answers: from `least` to `most`, and what is `likely`.

    The least are for columns that hardly depend on each other, the most for all rounds that may be needed.
    """

    least: float
    likely: float
    most: float
    cells: int
    """Number of cells of the model at its largest likely size."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """What the time of a method depends on that chooses, measures and fits, round after round."""

    fewest: int
    most: int
    candidates: int
    candidate_cells: int
    first_cells: int
    """Number of cells of the model before the first round."""
    most_cells: int
    """Maximum number of cells of the model, by its limit of bytes."""
    noise: float
    """Expected absolute error of one cell of a table that a round measures."""
    steps: tuple[int, int, int]
    """Steps of the first fit, of one in a round and of the last."""


def seconds_of_rounds(facts: PublicFacts, rounds: Rounds) -> Span:
    """From few rounds with the first model to all of them with a model that grows evenly to its largest.

    Likely are three quarters of the planned rounds, as far as the rows carry them: a table of average size with noise
    of a third of the rows in all still moves a model of related columns (measured on tables of 10 to 50 columns); with
    more noise rounds become fewer and dearer.
    """
    noise = max(rounds.noise, 1e-9)
    average = rounds.candidate_cells / max(1, rounds.candidates)
    carried = rows_of(facts) / (_LIKELY_NOISE * noise * max(1.0, average))
    likely = max(rounds.fewest, round(_LIKELY_SHARE * rounds.most * min(1.0, carried)))
    small = replace(rounds, most_cells=rounds.first_cells)
    return Span(
        _seconds_of(facts, small, rounds.fewest),
        _seconds_of(facts, rounds, likely),
        _seconds_of(facts, rounds, rounds.most),
        int(_largest_model(facts, rounds, likely)),
    )


def _largest_model(facts: PublicFacts, rounds: Rounds, number: int) -> float:
    """Cells of the model after that many rounds.

    A table is worth measuring only if its noise does not exceed twice the number of rows, so noise bounds its cells.
    And tables tie columns together: those of the model span about 5 columns after two tables per column and 7 after
    four (measured on tables of 10 to 50 columns).
    """
    sizes = [math.log(size) for size in facts.domain.sizes.values() if size > 1]
    useful = 2.0 * rows_of(facts) / max(rounds.noise, 1e-9)
    spanned = 1.0 + _COLUMNS_TIED * (number / max(1, len(sizes))) ** 0.75
    tied = math.exp(min(500.0, spanned * sum(sizes) / max(1, len(sizes)))) * len(sizes)
    grown = min(rounds.first_cells + _MEASURED_TABLES * number * useful, tied, float(rounds.most_cells))
    return max(float(rounds.first_cells), grown)


def _seconds_of(facts: PublicFacts, rounds: Rounds, number: int) -> float:
    """Seconds of that many rounds."""
    largest = _largest_model(facts, rounds, number)
    columns = len(facts.domain.columns) * _COLUMN_STEP_SECONDS
    first_step = columns + rounds.first_cells / _MODEL_CELLS_PER_SECOND
    last_step = columns + largest / _MODEL_CELLS_PER_SECOND
    score = rounds.candidates * _TABLE_SECONDS + rounds.candidate_cells / _CANDIDATE_CELLS_PER_SECOND
    first, each, last = rounds.steps
    start = seconds_for(facts, rounds.candidate_cells, rounds.candidates) + first * first_step
    growing = (first_step + last_step) / 2.0
    return start + number * (score + (each + _EXPECTING_STEPS) * growing) + last * last_step


METHODS: Registry[Method] = Registry(
    "method",
    {
        "aim": "understudy.methods.aim:Aim",
        "auto": "understudy.methods.auto:Auto",
        "dpsyn": "understudy.methods.dpsyn:DpSyn",
        "dpwgan": "understudy.methods.dpwgan:DpWgan",
        "ensemble": "understudy.methods.ensemble:MixtureEnsemble",
        "fieldgroups": "understudy.methods.fieldgroups:FieldGroups",
        "independent": "understudy.methods.independent:Independent",
        "laplace": "understudy.methods.laplace:Laplace",
        "mst": "understudy.methods.mst:Mst",
        "mwem": "understudy.methods.mwem:Mwem",
        "nist_mst": "understudy.methods.nist_mst:NistMst",
        "pfr": "understudy.methods.pfr:Pfr",
        "privbayes": "understudy.methods.privbayes:PrivBayes",
        "privsyn": "understudy.methods.privsyn:PrivSyn",
        "random_partition": "understudy.methods.random_partition:RandomPartition",
        "rdt": "understudy.methods.rdt:Rdt",
        "steps": "understudy.methods.steps:Steps",
        "universal_histogram": "understudy.methods.universal_histogram:UniversalHistogram",
    },
    (Method,),
)
_GUARANTEES: dict[Currency, str] = {
    "pure": "ε (pure, δ = 0)",
    "zcdp": "(ε, δ) through ρ-zCDP",
    "gaussian": "(ε, δ) through Gaussian DP",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Description:
    """What a person needs to know to pick a method."""

    name: str
    summary: str
    guarantee: str
    currencies: tuple[Currency, ...]
    needs: str
    limits: str
    source: str
    options: tuple[Option, ...]


def methods() -> Catalogue[Description]:
    """All methods with what each does and guarantees; `methods()["aim"]` has needs, limits, source and options too."""
    return Catalogue(("name", "guarantee", "summary"), METHODS.described(describe_method))


def method_named(name: str, options: Mapping[str, object] | None = None) -> Method:
    """The method of that name with these options; text values are read by the type of the option.

    Raises:
        UsageError: for an unknown method or option, with the closest known one, or a value that does not fit.
    """
    return METHODS.make(name, options)


def describe_method(name: str) -> Description:
    """Guarantee, needs, limits, source and options of a method."""
    kind = METHODS.find(name)
    guarantee = " or ".join(_GUARANTEES[currency] for currency in kind.currencies)
    guarantee = "(ε, δ) through Rényi divergences" if kind.spends_delta else guarantee
    facts = (kind.currencies, kind.needs, kind.limits, kind.source)
    return Description(name, kind.summary, guarantee, *facts, described(kind))


def currency_for(method: Method, budget: Budget, schema: Schema | None = None) -> Currency:
    """The currency of a run: pure for δ = 0, concentrated for δ > 0 where the method supports it.

    A method that is pure only takes δ > 0 just for discovering open categories of the schema, or because it pays in ε
    and δ by itself: both add up, so such a run is kept in the pure currency too.

    Raises:
        UsageError: if the method cannot use the δ it is given, or needs one and has none.
    """
    # In units, not as a float: a δ too small to be kept in them has been refused before.
    if budget.delta_units == 0:
        if "pure" not in method.currencies or method.spends_delta:
            raise UsageError(f"method {method.name}", "needs δ above 0.", "Give delta=, for example 1e-9.")
        return "pure"
    # Whatever a method could do with pure ε: where δ is granted, adding up ρ buys less noise for many queries.
    if "zcdp" in method.currencies:
        return "zcdp"
    if method.spends_delta:
        return "pure"
    if schema is None or not any(isinstance(column, OpenCategory) for column in schema.modelled):
        raise UsageError(
            f"method {method.name}", f"gives pure ε, so delta ({budget.delta!r}) would buy nothing.", "Drop delta=."
        )
    return "pure"
