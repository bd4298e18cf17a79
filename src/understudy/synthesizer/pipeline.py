"""From a private table to a release, in one fixed order.

1. Everything public is checked: schema, method, options, budget, memory, the output's place, the table's header.
2. The whole cost of the run is charged to a ledger, on disk.
3. Only then are rows read, through the curator and nothing else; last of all for the check of the rows, if one is paid
   for, through a curator of its own.
4. Rows are drawn from the fitted model with a seed; that costs nothing and can be repeated.

Whatever fails before step 2 costs nothing. After it, the charge stays, and nothing in a row's content can stop the run.

A method that trains keeps checkpoints beside the output. An interrupted run of it can be taken up again with the same
settings: step 2 then finds its charge and charges nothing, and step 3 goes on from the newest checkpoint. The ledger
notes that the release is complete before it can be seen, so a charge yields one release.
"""

import functools
import inspect
import secrets
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import KW_ONLY, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Concatenate, ParamSpec, cast

from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
from understudy.counts.readers import RowReader
from understudy.counts.source import DEFAULT_MEMORY_BYTES, PrivateTable
from understudy.domain import Transcript
from understudy.errors import ColumnWarning, UnderstudyWarning, UsageError
from understudy.methods.preparation import prepare
from understudy.privacy.cost import Budget
from understudy.privacy.curator import Curator
from understudy.privacy.ledger import Ledger
from understudy.privacy.randomizer import Randomizer, SecureRandomizer
from understudy.progress import Progress, recorded, silent
from understudy.release.check import Check
from understudy.release.files import check_free, clear_unfinished, file_bytes, reserved, rows_that_fit
from understudy.release.release import (
    NOISY_TOTAL,
    Fitted,
    Release,
    RunConfig,
    checked_release,
    installed_versions,
    mode_remark,
)
from understudy.release.statement import Charge, Statement, charges_of, digest_of
from understudy.release.store import save_release
from understudy.release.wording import TEST_DOUBLE, odd_values
from understudy.schema import Schema
from understudy.synthesizer.account import (
    Account,
    Begun,
    Charged,
    Place,
    Working,
    check_continuable,
    configuration_digest,
    is_continuable,
    place_waiting,
)
from understudy.synthesizer.design import (
    Copies,
    CriteriaGiven,
    Design,
    Options,
    check_disk,
    check_file_size,
    check_memory,
    check_uses_public,
    check_without_public,
    delta_remark,
    public_schema,
)


@dataclass(frozen=True, slots=True)
class Environment:
    """Noise, clock, name and seed of a run: what it takes from the machine. Only tests and audits replace it.

    The seed is that of drawing rows, where none is given. With a randomizer that does not call itself private, the
    release makes no claim and `verify` rejects it.
    """

    randomizer: Randomizer
    now: Callable[[], datetime]
    run: Callable[[], str]
    seed: Callable[[], int] = lambda: secrets.randbits(63)

    def begun(self) -> "Environment":
        """The same with a clock that has stopped now, so that nothing later can tell how long a run took."""
        moment = self.now()
        return replace(self, now=lambda: moment)

    @classmethod
    def real(cls) -> "Environment":
        """Secure noise, the clock in UTC, a random name."""
        return cls(SecureRandomizer(), lambda: datetime.now(UTC), lambda: uuid.uuid4().hex)


@dataclass(eq=False)
class RunSettings:
    """What a run is told besides the private table: the one list of these arguments, for functions and estimator alike.

    Stored as given and checked when a run begins. Not frozen, because the settings of an estimator may be changed.
    """

    schema: Schema | Place
    _: KW_ONLY
    method: str = "auto"
    epsilon: float
    delta: float = 0.0
    rows: int | None = None
    copies: int = 1
    copies_mode: str = "resample"
    options: Options | None = None
    ledger: Ledger | Place | None = None
    dataset: str | None = None
    seed: int | None = None
    out: Place | None = None
    memory_bytes: int | None = None
    public: object | None = None
    check_share: float | None = None
    criteria: CriteriaGiven = None
    resume: bool = False
    progress: Progress | None = None
    _environment: Environment | None = None


PLACED = (
    "The release of an earlier run with these settings was complete but had not been moved into place; it is there "
    "now. Nothing more was charged."
)
_Given = ParamSpec("_Given")


def _with_arguments_of(
    settings: Callable[_Given, RunSettings],
) -> Callable[[Callable[[object, RunSettings], Release]], Callable[Concatenate[object, _Given], Release]]:
    """Lets a function of data and settings be called with the settings one by one, which is also what `help` shows."""

    def spread(run: Callable[[object, RunSettings], Release]) -> Callable[Concatenate[object, _Given], Release]:
        def called(data: object, *args: _Given.args, **kwargs: _Given.kwargs) -> Release:
            try:
                given = settings(*args, **kwargs)
            except TypeError as error:  # it names the settings, which whoever called knows nothing of
                raise TypeError(str(error).replace("RunSettings.__init__()", f"{run.__name__}()")) from None
            return run(data, given)

        whole, parts = inspect.signature(run), inspect.signature(settings).parameters.values()
        public = [one for one in parts if not one.name.startswith("_")]
        vars(called)["__signature__"] = whole.replace(parameters=[whole.parameters["data"], *public])
        return cast("Callable[Concatenate[object, _Given], Release]", functools.wraps(run)(called))

    return spread


@_with_arguments_of(RunSettings)
def synthesize(data: object, settings: RunSettings) -> Release:
    """A release of synthetic rows that together with its statement satisfies (ε, δ)-differential privacy.

    Costs (ε, δ) for neighbours that differ by one unit of the schema, charged on disk before the first row is read.

    Args:
        data: the private table: a frame, a path (CSV, TSV, Parquet, glob, DuckDB file), a location or an opened table.
        schema: what the table may contain, or the file of a schema.
        method: name of a method; `methods()` lists them.
        options: options of the method.
        epsilon: the budget's ε.
        delta: the budget's δ; 0 means pure ε.
        rows: number of rows of each copy; the noisy total if omitted.
        copies: number of synthetic tables.
        copies_mode: "resample" draws all copies from one model, "remeasure" measures anew for each.
        ledger: a lasting ledger to charge; without one the statement says that other runs are not counted.
        dataset: name of the dataset in the ledger.
        seed: seed for sampling rows; noise is never seeded. It is recorded, and drawn afresh if omitted.
        out: a new folder to save the release in.
        progress: a function to call with the stage that is running.
        memory_bytes: refuse plans that need more; most of the machine's memory if omitted.
        public: a public table with the same columns, for methods that use one; it has no privacy cost.
        check_share: share of the budget (at most 0.5) that is held back to measure how far off the rows are.
        criteria: a file of limits for that check (docs/check.md).
        resume: continue the interrupted run of `out`, under its charge and the same settings; nothing is charged.

    Raises:
        UsageError, SchemaError, ResourceError: before anything is charged or read.
        BudgetError, LedgerError: the ledger refused; nothing was read.
    """
    return run(data, settings)


@recorded()
def run(data: object, settings: RunSettings) -> Release:
    """What `synthesize` does, with the settings as one value."""
    seed, public, memory = settings.seed, settings.public, settings.memory_bytes
    environment = settings._environment or Environment.real()
    progress = settings.progress or silent
    progress.stage("check", 0.0)
    wanted = Copies(settings.copies, settings.copies_mode, settings.rows, environment.seed() if seed is None else seed)
    budget = Budget(settings.epsilon, settings.delta)
    design = Design.of(
        Schema.of(settings.schema),
        settings.method,
        budget,
        options=settings.options,
        runs=wanted.runs,
        public=public,
        check_share=settings.check_share,
        criteria=settings.criteria,
    )
    target, wanted = _checked_target(design, wanted, settings.out, memory)
    tables = _tables(data, public, design, memory)
    with tables.closed_after(data, public), nullcontext() if target is None else reserved(target):
        account = Account.of(settings.ledger, settings.dataset, target)
        if target is not None and place_waiting(target, design, wanted, account, seed=seed, resume=settings.resume):
            _warn(None if settings.resume else PLACED)
            private = tables.private
            return Release.load(target, frame_kind=private.frame_kind, frame_types=private.column_types)
        installed_versions()  # raises if one is not known: not after the charge, nor with an interrupted run locked
        places = _Places(account, target)
        places, wanted = _begun_or_fresh(tables, design, wanted, places, seed=seed, resume=settings.resume)
        schema = design.schema
        remarks = delta_remark(budget, schema.unit), schema.unit_remark(tables.private.undeclared)
        _warn(*remarks, mode_remark(settings.copies_mode))
        progress.stage("check", 1.0)
        release = _paid(tables, design, wanted, places, environment=environment, progress=progress)
        with suppress(UnderstudyWarning):  # where warnings are made errors, what was paid for must not be lost
            _warn(release.config.remark)
            _warn(*(odd.text for odd in release.statement.odd), kind=ColumnWarning)
        return release


def _warn(*remarks: str | None, kind: type[UnderstudyWarning] = UnderstudyWarning) -> None:
    """Warns of what public facts and released answers tell; before the charge it costs nothing to think again."""
    for remark in filter(None, remarks):
        warnings.warn(remark, kind, stacklevel=6)  # whoever called `synthesize`


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a run is charged, where its release goes, and where a run that can be continued keeps its state."""

    account: Account
    target: Path | None
    working: Working | None = None


def _begun_or_fresh(
    tables: "_Tables", design: Design, wanted: Copies, places: _Places, *, seed: int | None, resume: bool
) -> tuple[_Places, Copies]:
    """Where a new run keeps its checkpoints, if it keeps any; or the interrupted run, locked, and the seed it had.

    Raises if a run waits there that should be continued first, or if there is none to continue.
    """
    if not resume:
        if places.target is None:
            return places, wanted
        clear_unfinished(places.target)
        working = Working.unused(places.target) if is_continuable(design) else None
        return replace(places, working=working), wanted
    check_continuable(design)
    if places.target is None:
        raise UsageError("resume", "needs the output of the run that was interrupted.", "Name its folder.")
    same = _begun("", tables, design, wanted, places)
    working = Working.interrupted(places.target, same, seed=seed)
    assert working.begun is not None
    return replace(places, working=working), replace(wanted, seed=working.begun.seed)


def _begun(run: str, tables: "_Tables", design: Design, wanted: Copies, places: _Places) -> Begun:
    configuration = configuration_digest(design, wanted, tables.private.undeclared)
    return Begun(run, configuration, places.account.dataset, wanted.seed)


def _checked_target(
    design: Design, wanted: Copies, out: Place | None, memory_bytes: int | None
) -> tuple[Path | None, Copies]:
    """Where the release goes, if anywhere, with no more rows than fit there should the noisy total ask for more.

    Raises unless memory and disk suffice and the place is free.
    """
    plan = design.whole
    check_memory(plan, memory_bytes)
    if out is None:
        return None, wanted
    target = Path(out)
    check_free(target)
    place = target.absolute().parent
    check_disk(plan, place, file_bytes(design.schema, (wanted.rows or 0) * wanted.count))
    check_file_size(plan)
    fitting = rows_that_fit(design.schema, place, wanted.count)
    return target, replace(wanted, most_rows=min(wanted.most_rows, fitting))


def _tables(data: object, public: object | None, design: Design, memory_bytes: int | None) -> "_Tables":
    """Both tables, with memory to count whatever the plan, which was checked, may ask."""
    counting = max(design.whole.limit_bytes, DEFAULT_MEMORY_BYTES) if memory_bytes is None else memory_bytes
    return _Tables(_opened(data, design.schema, counting), _opened_public(public, design, counting))


def _opened(data: object, schema: Schema, memory_bytes: int) -> PrivateTable:
    """The private table, of which only the header was looked at."""
    table = open_table(data, schema, memory_bytes=memory_bytes)
    if table.schema != schema:
        raise UsageError("data", "was opened under another schema.", "Open it under the schema given here.")
    return table


@dataclass(frozen=True, slots=True)
class _Tables:
    """The private table and, for methods that use one, a public table of the same columns."""

    private: PrivateTable
    public: PrivateTable | None

    @contextmanager
    def closed_after(self, *given: object) -> Iterator[None]:
        """Gives back at the end what was opened here; a table or reader that the caller opened stays the caller's."""
        try:
            yield
        finally:
            for table, data in zip((self.private, self.public), given, strict=True):
                if table is not None and not isinstance(data, PrivateTable | RowReader):
                    table.close()


def _opened_public(public: object | None, design: Design, memory_bytes: int) -> PrivateTable | None:
    """The public table, read under the same schema (less private columns); its rows are nobody's units."""
    if public is None:
        check_without_public(design)
        return None
    check_uses_public(design.method)
    return _opened(public, public_schema(design), memory_bytes)


def _paid(
    tables: _Tables, design: Design, wanted: Copies, places: _Places, *, environment: Environment, progress: Progress
) -> Release:
    """Charges, and only then runs. From here on the charge stands, whatever happens."""
    environment = environment.begun()  # how late it is when the run ends depends on the rows
    charged = _charged(tables, design, wanted, places, environment=environment)
    try:
        progress.stage("charge", 1.0)
        release = _release(tables, design, wanted, charged, environment=environment, progress=progress)
        if places.target is not None:
            statement = save_release(release, places.target, progress, charged.complete)
            release = replace(release, statement=statement, folder=places.target.absolute())
        else:
            release = checked_release(release)
    except BaseException:
        charged.close("failed")
        raise
    charged.close("released")
    return release


def _charged(tables: _Tables, design: Design, wanted: Copies, places: _Places, *, environment: Environment) -> Charged:
    """The charge of the run: a new one, or that of the interrupted run it continues."""
    working = places.working
    if working is None:
        return places.account.charge(design, environment.run())
    if working.begun is None:
        begun = _begun(environment.run(), tables, design, wanted, places)
        return places.account.begin(design, begun, working)
    try:
        return places.account.take_up(design, working.begun, working)
    except BaseException:
        working.let_go()
        raise


def _release(
    tables: _Tables,
    design: Design,
    copies: Copies,
    charged: Charged,
    *,
    environment: Environment,
    progress: Progress,
) -> Release:
    """Measures, fits and writes down what happened. Everything after the last answer is post-processing."""
    fits: list[Fitted] = []
    charges: list[Charge] = []
    fixed: _FixedRun | None = None
    codes: TableCodec | None = None
    for run in range(1, copies.runs + 1):
        part = _Part(progress, run - 1, copies.runs)
        curator = Curator(
            tables.private,
            design.granted_in(run),
            environment.randomizer,
            public=tables.public,
            progress=part,
            keeper=charged.keeper,
            currency=design.currency,
        )
        progress.stage("prepare", (run - 1) / copies.runs)
        fixed = _fix_codec(curator, design, fixed)
        codes = codes or fixed.codec
        progress.stage("measure", (run - 1) / copies.runs)
        fits.append(_fit(curator, design, fixed))
        charges += charges_of(run, curator.charges, curator.transcript.answers)
        progress.stage("measure", run / copies.runs)
        del curator  # and with it exact counts that were kept between its queries
    if codes is not None:
        charges += _held_back(tables.private, design, codes, fits, environment)
    statement = _stated(design, copies, charges, charged, tables=tables, environment=environment)
    statement = replace(statement, odd=odd_values(fits[0].codec, fits[0].transcript, fits[0].model))
    rows, rows_from = _rows(fits, copies)
    config = _settled(design, copies, statement, rows=rows, rows_from=rows_from)
    private, extract = tables.private, charged.extract()
    kind, types = private.frame_kind, private.column_types
    return Release(design.schema, tuple(fits), statement, config, extract, kind, frame_types=types)


def _held_back(
    private: PrivateTable, design: Design, codec: TableCodec, fits: list[Fitted], environment: Environment
) -> list[Charge]:
    """Adds the check's answers to the first run's, when every method is done; their curator has the check's cost."""
    if design.check is None:
        return []
    curator = Curator(private, design.check_cost, environment.randomizer, currency=design.currency)
    curator.fix_codec(codec)
    cliques = [curator.domain.clique(clique) for clique in design.check.tables]
    curator.hold_back(cliques, design.check_cost, design.check.weights)
    fits[0] = replace(fits[0], transcript=Transcript([*fits[0].transcript, *curator.transcript]))
    return charges_of(1, curator.charges, curator.transcript.answers)


def _settled(
    design: Design, copies: Copies, statement: Statement, *, rows: tuple[int, ...], rows_from: str
) -> RunConfig:
    """The settings as the release records them."""
    return RunConfig(
        method=design.method.name,
        options=design.plan.options,
        epsilon=design.budget.epsilon,
        delta=design.budget.delta,
        rows=rows,
        rows_from=rows_from,
        copies_mode=copies.mode,
        seed=copies.seed,
        versions=statement.versions,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """Progress of one run out of several."""

    progress: Progress
    before: int
    runs: int

    def stage(self, name: str, done: float) -> None:
        """Passes on the share of all runs together."""
        self.progress.stage(name, (self.before + done) / self.runs)


def _stated(
    design: Design,
    copies: Copies,
    charges: Sequence[Charge],
    charged: Charged,
    *,
    tables: _Tables,
    environment: Environment,
) -> Statement:
    """The statement of what ran, and whether the run kept to its plan."""
    statement = Statement(
        run=charged.receipt.run,
        date=environment.now().date().isoformat(),
        title=design.schema.title,
        titles=design.schema.titles,
        method=design.method.name,
        currency=design.currency,
        budget=design.budget,
        unit=design.schema.unit,
        schema_digest=digest_of(design.schema),
        charges=tuple(charges),
        granted=design.granted,
        ledger=charged.facts,
        copies=copies.count,
        copies_mode=copies.mode,
        as_planned=design.fixed and [charge.cost for charge in charges] == design.planned,
        left_out=tuple(tables.private.undeclared),
        labels=design.plan.labels,
        refused="; ".join(filter(None, ["" if environment.randomizer.private else TEST_DOUBLE, design.plan.refused])),
        versions=installed_versions(),
        drops_unreadable=design.schema.unreadable == "drop",
        check=None if design.check is None else Check(design.check.share, design.check.criteria),
    )
    if statement.claim is not None and statement.claim[0] > design.budget.epsilon:
        raise AssertionError("the run did not keep to its plan, so its claim would exceed the budget")
    return statement


@dataclass(frozen=True, slots=True)
class _FixedRun:
    """Codes and, where all runs share one, the structure. Made of answers that were paid for."""

    codec: TableCodec
    structure: object


def _fix_codec(curator: Curator, design: Design, fixed: _FixedRun | None) -> _FixedRun:
    """What is fixed before a run counts: anew, or taken over from the first run where all share one structure."""
    halves = design.method.structured
    if design.structure is None or halves is None:
        return _FixedRun(prepare(curator, design.schema, design.preparation), None)
    if fixed is None:
        codec = prepare(curator, design.schema, design.preparation)
        return _FixedRun(codec, halves.choose_structure(curator, design.structure))
    curator.fix_codec(fixed.codec)
    return fixed


def _fit(curator: Curator, design: Design, fixed: _FixedRun) -> Fitted:
    """Asks the queries and fits the model."""
    method, halves = design.method, design.method.structured
    if design.structure is not None and halves is not None:
        model = halves.run_with(curator, design.rest, fixed.structure)
    elif design.preparation:  # the codes are known only now, so the plan is made once more, for them
        model = method.fit(curator, design.rest)
    else:
        assert curator.domain == design.facts.domain, "the plan is for other codes"
        model = method.run(curator, design.plan)
    return Fitted(fixed.codec.without_values(), curator.transcript, model)


def _rows(fits: list[Fitted], copies: Copies) -> tuple[tuple[int, ...], str]:
    """Rows of each copy, and where that number comes from. The noisy total is public, so this is post-processing."""
    if copies.rows is not None:
        return (copies.rows,) * copies.count, "given"
    totals = [round(fitted.model.total) for fitted in fits]
    rows = [min(total, copies.most_rows) for total in totals]
    source = NOISY_TOTAL if rows == totals else f"{NOISY_TOTAL}, at most {copies.most_rows}"
    return tuple(rows if len(rows) == copies.count else rows * copies.count), source
