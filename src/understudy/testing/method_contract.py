"""The contract of methods: what a method must show before anybody trusts it.

One call runs everything: budget, replay on designed and random neighbours, recovery at a huge budget, improvement with
the budget, edge shapes, rules, validity of the output, the same answer through every source, the model's file form,
and a statistical audit of the noise it really got: all answers of whole runs with the secure randomizer, held against
the distributions that were asked for. That these distributions are the ones its cost allows is what the replay checks.
"""

import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from understudy.codec.table import TableCodec
from understudy.errors import UsageError
from understudy.models.model import load_model, save_model
from understudy.privacy.cost import Budget, Cost
from understudy.privacy.randomizer import Randomizer, SecureRandomizer
from understudy.release import Release
from understudy.schema import Schema
from understudy.testing import cases as tables
from understudy.testing.cases import Case, released_bytes
from understudy.testing.contracts import checking, require
from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.replay import (
    Exchange,
    NeighbourPair,
    Pipeline,
    Recorder,
    check_noise,
    check_pair,
    cost_of,
    designed_pairs,
    draws_of,
    random_pairs,
    to_table,
)

HUGE = 1e5
FEWEST_DRAWS, WANTED_DRAWS = 512, 700
"""Draws of noise below which the audit of a method's noise would have no power, and how many are aimed at."""

Put = Callable[[pa.Table, Path], object]
"""Puts a table of text columns somewhere (a folder for files comes along); returns what is then opened."""


def _halves(table: pa.Table, folder: Path) -> str:
    """Two Parquet files, as a pattern."""
    half = table.num_rows // 2
    for name, part in (("first", table.slice(0, half)), ("second", table.slice(half))):
        pyarrow.parquet.write_table(part, folder / f"half-{name}.parquet")
    return str(folder / "half-*.parquet")


def _parquet(table: pa.Table, folder: Path) -> Path:
    pyarrow.parquet.write_table(table, folder / "table.parquet", row_group_size=7)
    return folder / "table.parquet"


def _delimited(suffix: str, delimiter: str) -> Put:
    def put(table: pa.Table, folder: Path) -> str:
        path = str(folder / f"table{suffix}")
        pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(delimiter=delimiter))
        return f"{path}::multiline"  # hostile labels hold line ends

    return put


PLACES: Mapping[str, Put] = {
    "pandas": lambda table, _: table.to_pandas(),
    "csv": _delimited(".csv", ","),
    "tsv": _delimited(".tsv", "\t"),
    "parquet": _parquet,
    "pattern of Parquet files": _halves,
}
"""Where a table can lie beside an Arrow table, as far as no other package is needed to put it there."""


def check_method(checks: "MethodChecks") -> None:
    """Runs every check; raises AssertionError (or `Leak`, which is one) at the first that fails.

    The message says which method, at which budget and on which columns, what is wrong, and what to do.
    """
    for name in CHECKS:
        getattr(checks, name)()


CHECKS = (
    "budget_is_kept",
    "replays_on_neighbours",
    "recovers_at_a_huge_budget",
    "improves_with_the_budget",
    "shows_what_cannot_be_read",
    "survives_edge_shapes",
    "honours_rules_and_schema",
    "agrees_through_every_source",
    "model_survives_its_files",
    "noise_follows_its_distribution",
)
"""The checks of the contract, cheapest to understand first: each is a method of `MethodChecks`."""


@dataclass(frozen=True, slots=True)
class MethodChecks:
    """A method under test: name, budgets in each currency it supports, options that make it quick.

    `keeps` names groups of columns whose joint distribution a huge budget must reproduce; of `registered`, `voted` and
    `age`. It is empty for a method that promises no distribution at all, such as a flat baseline.
    """

    method: str
    budgets: Sequence[Budget]
    keeps: Sequence[Sequence[str]]
    options: Mapping[str, object] = field(default_factory=dict)
    pairs: int = 500
    part: tuple[int, int] = (0, 1)
    """Which of how many parts of the designed neighbours and edge shapes: a suite of methods may share them out."""
    public: Callable[[Schema], pa.Table | None] = lambda _: None
    """The public table to give along under a schema, if any."""
    places: Mapping[str, Put] = field(default_factory=lambda: PLACES)
    """The ways in beside an Arrow table through which the release must be the same."""

    def __post_init__(self) -> None:
        place, parts = self.part
        if not 0 <= place < parts:  # such a part is empty: neighbours and shapes would be left out without a word
            raise UsageError("part", f"must be one of the parts from 0 to {parts - 1}, got {place}.")

    def schemas(self) -> Iterator[Schema]:
        """Row level, unit level, every column kind, and a column modelled as two."""
        yield tables.small()
        yield tables.several_rows()
        yield tables.every_kind()
        yield tables.split_amounts()

    def cases(self) -> Iterator[Case]:
        """Every schema under every budget."""
        for schema in self.schemas():
            for budget in self.budgets:
                yield Case(schema, self.method, budget, self.options, public=self.public(schema))

    def budget_is_kept(self) -> None:
        """The queries cost no more than was granted and charged, and nearly all of it; the plan says the same."""
        for case in self.cases():
            recorder = Recorder(NoNoise())
            with self._checking(case.schema, case.budget):
                release = case.release(tables.some_rows(case.schema, 40, seed=1), recorder)
                requests = [exchange.request for exchange in recorder.log]
                spent, granted = release.statement.spent, release.statement.granted
                queries = cost_of(requests, zcdp=granted.rho > 0)
                fix = "Pay for every query through the curator, out of what the plan was granted."
                require(queries.fits(spent), f"the queries cost {queries}, charged were {spent}.", fix)
                require(spent.fits(granted), f"charged were {spent}, granted {granted}.", fix)
                part, fix = _part(spent, granted), "Split the whole `cost` among the queries (`cost.split`)."
                require(part > 0.99, f"{part:.0%} of the budget is used.", fix)
                claimed = replace(release.statement, refused="").claim  # what the claim would be with secure noise
                kept = claimed and claimed[0] <= case.budget.epsilon and claimed[1] <= case.budget.delta
                require(kept, f"the statement claims {claimed}.", "Claim no more than the budget; see Plan.")

    def replays_on_neighbours(self) -> None:
        """No leak on `pairs` designed and random neighbours; some of them with the release folder, copies and files.

        Both modes of copies come first, so that every method meets them however few pairs it gets. If there are fewer
        than designed ones, the budgets of a schema share these out among themselves: every schema meets all of them,
        or its `part` of them.
        """
        case_list = list(self.cases())
        per_case = max(2, self.pairs // len(case_list))
        place, parts = self.part
        for number, case in enumerate(case_list):
            turn = number % len(self.budgets) * parts + place, len(self.budgets) * parts
            for index, pair in enumerate(_some_pairs(case.schema, per_case, seed=number, turn=turn)):
                variant = case
                if index % 25 < 2:
                    mode = ("resample", "remeasure")[index % 25]
                    variant = replace(case, with_folder=True, copies=2, copies_mode=mode)
                with self._checking(case.schema, case.budget), checking(f"neighbours ({pair.name})"):
                    check_pair(_answered(variant.pipeline()), pair.table, pair.neighbour, SeededRandomizer(index))

    def recovers_at_a_huge_budget(self) -> None:
        """At a huge ε the columns in `keeps` come back as they were."""
        schema = tables.small()
        table = tables.possible_rows(schema, 400, seed=3)
        for budget in self.budgets:
            huge = replace(budget, epsilon=HUGE)
            with self._checking(schema, huge):
                release = self._released(schema, table, huge, SecureRandomizer())
                for columns in self.keeps:
                    distance = _distance(release, table, columns)
                    broken = f"total variation of {' × '.join(columns)} is {distance:.3f} where noise hardly counts."
                    fix = "Measure and fit these columns, or name in `keeps` only what the method promises."
                    require(distance < 0.03, broken, fix)
                total, rows = release.model.total, table.num_rows
                fix = "Estimate `total` from the answers."
                require(abs(total - rows) < 1.0, f"the model's total is {total:.1f} for {rows} rows.", fix)

    def improves_with_the_budget(self) -> None:
        """Averaged over repeats, a hundred times the budget halves the error of what is in `keeps` at least."""
        schema = tables.small()
        table = tables.possible_rows(schema, 400, seed=3)
        for budget in self.budgets if self.keeps else ():
            with self._checking(schema, budget):
                low, high = (self._error(schema, table, replace(budget, epsilon=epsilon)) for epsilon in (0.05, 5.0))
                broken = f"the error is {low:.3f} at ε = 0.05 and {high:.3f} at ε = 5."
                require(high < low / 2, broken, "Fit the noisy answers, and name in `keeps` what is fitted.")

    def _error(self, schema: Schema, table: pa.Table, budget: Budget) -> float:
        """The mean total variation over `keeps` and five runs."""
        repeats = [
            _distance(self._released(schema, table, budget, SecureRandomizer()), table, columns)
            for columns in self.keeps
            for _ in range(5)
        ]
        return float(np.mean(repeats))

    def shows_what_cannot_be_read(self) -> None:
        """Values that match no label are empty in the rows and named in the statement; where there are none, neither.

        Only for methods that keep the column; and columns of which a method takes the public table's word are left
        out, because it cannot know about private ones.
        """
        schema = tables.small()
        table = tables.possible_rows(schema, 400, seed=3)
        known = self.public(schema)
        if known is not None and "voted" in known.column_names and "age" not in known.column_names:
            return
        if not any("voted" in columns for columns in self.keeps):
            return
        odd = [value if row % 2 else "YES" for row, value in enumerate(table.column("voted").to_pylist())]
        table = table.set_column(table.column_names.index("voted"), "voted", pa.array(odd))
        for budget in self.budgets:
            huge = replace(budget, epsilon=HUGE)
            with self._checking(schema, huge), checking("every second value of voted unreadable"):
                release = self._released(schema, table, huge, SecureRandomizer())
                rows = _sampled(release)
                empty, fix = rows.column("voted").null_count / 2000, "Fit all codes of a column, unreadable ones too."
                require(abs(empty - 0.5) < 0.08, f"{empty:.0%} of voted is empty, not half of it.", fix)
                others = rows.column("registered").null_count
                require(others == 0, f"{others:,} rows of registered are empty, which has no such values.", fix)
                told = [one.column for one in release.statement.odd]
                require(told == ["voted"], f"the statement names {told} as unreadable, not voted alone.", fix)

    def survives_edge_shapes(self) -> None:
        """No rows, one row, one column, a constant column, all missing; tiny and huge budgets.

        Currencies take turns: every shape meets each of them at one ε or two, and every ε meets each on several shapes.
        Of these cases a `part` has every second one, or however many parts there are.
        """
        turns, (place, parts) = itertools.cycle(self.budgets), self.part
        number = itertools.count()
        one_column = Schema((tables.small().columns[2],), tables.small().unit)
        for schema in (tables.small(), tables.every_kind(), one_column):
            shapes = {
                "no rows": to_table(schema, []),
                "one row": tables.some_rows(schema, 1, seed=1),
                "the same row nine times": tables.some_rows(schema, 9, seed=2).take([3] * 9),
                "nothing but missing values": to_table(schema, [dict.fromkeys(schema.names)] * 7),
            }
            for shape, table in shapes.items():
                for epsilon in (0.001, 1.0, HUGE):
                    if next(number) % parts != place:
                        continue
                    at = replace(next(turns), epsilon=epsilon)
                    with self._checking(schema, at), checking(f"a table with {shape}"):
                        release = self._released(schema, table, at, SecureRandomizer())
                        same = release.table.schema == TableCodec.of(schema).arrow_schema
                        fix = "Return a model over the curator's whole domain."
                        require(same, "the rows have other columns or types than the schema.", fix)

    def honours_rules_and_schema(self) -> None:
        """No impossible record, whatever the noise; every value within the schema; the requested number of rows."""
        for schema in (tables.small(), tables.split_amounts()):
            for budget in self.budgets:
                with self._checking(schema, budget):
                    release = self._released(schema, tables.some_rows(schema, 50, seed=5), budget, SecureRandomizer())
                    rows = _sampled(release)
                    _check_rules(release, rows)
                    whole = ("age", range(18, 23)) if "age" in schema.names else ("wage", [*range(401), 998, 999])
                    for name, allowed in (("registered", {"yes", "no"}), (whole[0], {None, *whole[1]})):
                        outside = set(rows.column(name).to_pylist()) - allowed
                        fix = "Draw codes of the curator's domain only."
                        require(not outside, f"{name} holds values outside the schema: {outside}.", fix)

    def agrees_through_every_source(self) -> None:
        """Frames and files give the same release, given the same noise.

        What each source counts is the contract of sources; here every place is opened once and every case meets one at
        least, so that a method that asks in a way of its own is noticed.
        """
        cases, places = list(self.cases()), list(self.places.items())
        rows = [tables.some_rows(case.schema, 60, seed=6) for case in cases]
        wanted = [_left(case, table) for case, table in zip(cases, rows, strict=True)]
        for number in range(max(len(cases), len(places))):
            at, (place, put) = number % len(cases), places[number % len(places)]
            with self._checking(cases[at].schema, cases[at].budget), checking(place):
                with tempfile.TemporaryDirectory() as folder:
                    left = _left(cases[at], put(rows[at], Path(folder)))
                fix = "Ask the curator only, and use nothing else about the table."
                require(left == wanted[at], "the source changed the release.", fix)

    def model_survives_its_files(self) -> None:
        """Saved and loaded, the model draws the same rows; its files hold no private row."""
        schema, budget = tables.small(), self.budgets[0]
        with self._checking(schema, budget):
            release = self._released(schema, tables.some_rows(schema, 30, seed=7), budget, SecureRandomizer())
            with tempfile.TemporaryDirectory() as folder:
                save_model(release.model, Path(folder))
                again = load_model(Path(folder))
            first = release.model.draw(200, np.random.default_rng(1))
            second = again.draw(200, np.random.default_rng(1))
            same = all(np.array_equal(first[name], second[name]) for name in release.model.domain.columns)
            fix = "Hold the model against `check_model` first."
            require(same, f"the loaded model ({release.model.kind}) draws other rows than the saved one.", fix)

    def noise_follows_its_distribution(self) -> None:
        """Every answer of whole runs with the secure randomizer follows the distribution of its request, drawn afresh.

        How many runs make enough draws is found with a double of the noise, so that it does not depend on the noise.
        """
        cases = [(case, tables.some_rows(case.schema, 40, seed=8)) for case in self.cases()]

        def log(case: Case, table: pa.Table, randomizer: Randomizer) -> list[Exchange]:
            recorder = Recorder(randomizer)
            case.release(table, recorder)
            return recorder.log

        with checking(f"method {self.method}"):
            counted = (exchange for case, table in cases for exchange in log(case, table, SeededRandomizer(0)))
            drawn = sum(draws_of(exchange) for exchange in counted)
            repeats = max(2, -(-WANTED_DRAWS // max(1, drawn)))
            runs = [log(case, table, SecureRandomizer()) for case, table in cases for _ in range(repeats)]
            check_noise(runs, fewest=FEWEST_DRAWS)

    def _released(self, schema: Schema, table: pa.Table, budget: Budget, randomizer: Randomizer) -> Release:
        case = Case(schema, self.method, budget, self.options, public=self.public(schema))
        return case.release(table, randomizer)

    def _checking(self, schema: Schema, budget: Budget) -> AbstractContextManager[None]:
        """Names method, budget and columns in whatever goes wrong inside."""
        spent = f"ε = {budget.epsilon:g}" + (f", δ = {budget.delta:g}" if budget.delta else "")
        unit = f" by {schema.unit.column}" if schema.unit.column else ""
        return checking(f"method {self.method} at {spent} on {', '.join(schema.names)}{unit}")


def _answered(pipeline: Pipeline) -> Pipeline:
    """The same pipeline, which must not be refused: two equal refusals would replay without a difference."""

    def run(table: pa.Table, randomizer: Randomizer) -> tuple[bytes, Cost]:
        left, granted = pipeline(table, randomizer)
        broken = f"the run was refused: {left.decode(errors='replace')}"
        require(granted != Cost(), broken, "Refuse in `plan`, by public facts; a run that was planned must answer.")
        return left, granted

    return run


def _left(case: Case, data: object) -> bytes:
    """All that leaves, with rows as Arrow tables of the schema's types: what comes back follows what went in."""
    return released_bytes(replace(case.release(data, SeededRandomizer(1)), frame_kind="arrow", frame_types={}))


def _check_rules(release: Release, rows: pa.Table) -> None:
    """No row is in a cell that rules exclude, and the model gives such cells no mass."""
    codec = release.codec
    for structural_zeros in codec.structural_zeros:
        shape = codec.domain.shape(structural_zeros.clique)
        codes = tuple(
            codec.encode(name, rows.column(codec.origin(name))).astype(np.int64) for name in structural_zeros.clique
        )
        shown, fix = " × ".join(structural_zeros.clique), "Fit the model under `curator.structural_zeros`."
        broken = int(structural_zeros.mask[np.ravel_multi_index(codes, shape)].sum())
        require(not broken, f"{broken:,} of {rows.num_rows:,} rows break a rule on {shown}.", fix)
        mass = float(release.model.marginal(structural_zeros.clique)[structural_zeros.mask].sum())
        require(mass < 1e-9, f"the model gives {mass:.3g} to combinations of {shown} that rules exclude.", fix)


def _sampled(release: Release) -> pa.Table:
    """2,000 rows, exactly."""
    rows = release.sample(2000, seed=1)
    assert isinstance(rows, pa.Table), "a release of an Arrow table gives Arrow tables"
    require(rows.num_rows == 2000, f"{rows.num_rows:,} rows came where 2,000 were asked for.", "Draw `rows` records.")
    return rows


def _part(spent: Cost, granted: Cost) -> float:
    parts = ((spent.rho, granted.rho), (spent.epsilon, granted.epsilon))
    return min(used / whole for used, whole in parts if whole)


def _some_pairs(schema: Schema, count: int, *, seed: int, turn: tuple[int, int]) -> Iterator[NeighbourPair]:
    """Half of them from the designed list (all of it over the cases), half at random.

    The first of `turn` says which of so many takes turns at the designed list where `count` is too small for all.
    """
    rng = np.random.default_rng(seed)
    fixed = list(itertools.takewhile(lambda pair: not _is_hostile(pair), designed_pairs(schema)))
    fixed = fixed if count >= len(fixed) else fixed[turn[0] :: turn[1]]
    hostile: list[NeighbourPair] = []
    if count // 2 > len(fixed):  # hundreds of tables, which are made only where some are wanted
        hostile = [pair for pair in designed_pairs(schema) if _is_hostile(pair)]
        rng.shuffle(hostile)
    chosen = (fixed + hostile)[: max(len(fixed), count // 2)]
    yield from chosen
    yield from random_pairs(schema, max(0, count - len(chosen)), rng)


def _is_hostile(pair: NeighbourPair) -> bool:
    """Whether it is one of the pairs with a hostile value, which come last in the designed list."""
    return pair.name.startswith("hostile")


def _distance(release: Release, table: pa.Table, columns: Sequence[str]) -> float:
    """Total variation between the model and the table on the named columns."""
    codec = release.codec
    clique = codec.domain.clique(columns)
    codes = tuple(codec.encode(name, table.column(name)).astype(np.int64) for name in clique)
    shape = codec.domain.shape(clique)
    exact = np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape))) / table.num_rows
    return float(np.abs(exact - release.model.marginal(clique)).sum() / 2)
