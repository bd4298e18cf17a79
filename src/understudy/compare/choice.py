"""A choice of method that is paid for: every candidate's release and the choice itself are charged to a ledger.

Privacy. Each candidate makes a release of its own at (ε, δ), charged as any release is. The best of them is then drawn
by the exponential mechanism on how far the private table is from each set of released rows over all pairs of columns
(`StandInError`, with its sensitivity), at ε_choice. Releases are public by then, so the parts add up: with K candidates
(K ε + ε_choice, K δ) in all. The ledger must cover all of it before anything begins, and each part is charged before a
row is read for it. Everything may be published: the chosen release, the others, and which one was chosen. A method that
makes no claim of its own is refused. Comparing without paying (`compare`) is confidential; choosing by it leaks.

Taking up. After a kill the same command goes on in the same folder. It keeps every finished release as it is: that is
public output, paid for by a charge that must be in the ledger, as must the newest charge (an older copy is refused). It
charges and makes what is missing. A part that was charged but left no release, or no finished `choice.json`, is charged
anew under a name of its own; only a training that kept its state goes on under its charge (see `hold.py`). Why this is
sound: charged parts, each chosen after seeing earlier ones, are an adaptive composition whose prices add up, and no
charge yields two answers. What was charged stays charged, and the published total counts all of it, also attempts that
left nothing. How many attempts there are is settled from outside: no row's content can stop a run (see `pipeline.py`),
and whether to go on is decided by what is asked, what is on disk and what the ledger says. Should somebody stop a run
because of what was released before, then prices were chosen on the way, and the cap of the ledger is what holds (see
`balance.py`); `choice.json` says so.

One thing private is compared: the fingerprint of the table, so that releases of two tables are not put side by side. It
is first computed when the first part has been charged, is kept for the owner alone, and goes into nothing that is
released. On one and the same table it always agrees, so it tells nothing about the rows. Privacy does not rest on it:
parts of different tables of a dataset add up as well.
"""

import functools
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from understudy.codec.table_codec import TableCodec
from understudy.compare.choosing.bill import Bill, claimed
from understudy.compare.choosing.folder import ChoiceFolder
from understudy.compare.fingerprint import fingerprint
from understudy.compare.settings import Candidate
from understudy.counts.open import open_table
from understudy.counts.source import PrivateTable
from understudy.errors import ReleaseError, ResourceError, UnderstudyError, UsageError
from understudy.marginals.clique import Clique
from understudy.privacy.cost import Budget, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.ledger import Entry, Ledger
from understudy.privacy.questions.stand_in_error import StandInError
from understudy.progress import Progress, recorded, silent
from understudy.release.checks.files import check_files
from understudy.release.release import Release
from understudy.release.statement import digest_of
from understudy.release.wording import NEIGHBOURS, charge_note, unit_text
from understudy.schema import OpenCategory, PrivateBins, Schema, Unit
from understudy.synthesizer import synthesize
from understudy.synthesizer.account import unit_words
from understudy.synthesizer.design import Design, check_disk, check_memory
from understudy.synthesizer.environment import Environment
from understudy.synthesizer.public_schema import check_without_public

__all__ = ["Choice", "choose"]

MOST_CELLS = 2**26
NOTICE = (
    "All candidates and the choice among them together satisfy this (ε, δ), interrupted attempts included; the "
    "statement of one release covers that release alone. Which one is published depends on all of them."
)
INTERRUPTED = " This holds if no attempt was stopped because of a release; else the cap of the ledger is what holds."
DRAW = "choice"
"""The part of a choice that is not a release; releases are parts 1, 2, …"""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen method's release, the releases of all candidates, and what everything cost together."""

    chosen: str
    releases: Mapping[str, Release]
    cost: Budget
    draw: str
    """The run that chose."""
    charges: tuple[Entry, ...]
    """Every charge, in the order of the ledger."""

    def document(self) -> dict[str, object]:
        """What must go with any of these releases: their own statements do not know of the choice."""
        charges = {entry.run: entry for entry in self.charges}
        runs = {name: release.statement.run for name, release in self.releases.items()}
        lost = [entry for entry in self.charges if entry.run not in {*runs.values(), self.draw}]
        return {
            "format": "understudy choice, format 1",
            "chosen": self.chosen,
            "epsilon": self.cost.epsilon,
            "delta": self.cost.delta,
            "unit": unit_text(self.release.schema.unit),
            "neighbours": NEIGHBOURS,
            "schema": digest_of(self.release.schema),
            "dataset": charges[self.draw].dataset,
            "releases": [
                {"candidate": name, "folder": _folder_name(self.releases[name]), **_paid(charges[run])}
                for name, run in runs.items()
            ],
            "choice": _paid(charges[self.draw]),
            "interrupted": [_paid(entry) for entry in lost],
            "notice": NOTICE + (INTERRUPTED if lost else ""),
        }

    def write(self, path: Path) -> None:
        """Writes the document, which may be published, as a file."""
        path.write_text(json.dumps(self.document(), indent=1, allow_nan=False) + "\n", encoding="utf-8")

    @property
    def release(self) -> Release:
        """The release of the chosen method."""
        return self.releases[self.chosen]


def _paid(charge: Entry) -> dict[str, object]:
    budget = claimed(charge.budget_epsilon, charge.budget_delta)
    return {"run": charge.run, "epsilon": budget.epsilon, "delta": budget.delta}


def _folder_name(release: Release) -> str | None:
    return None if release.folder is None else release.folder.name


@recorded()
def choose(
    data: object,
    schema: Schema,
    *,
    methods: Sequence[str],
    epsilon: float,
    delta: float = 0.0,
    choice_epsilon: float,
    ledger: Ledger | str | Path,
    dataset: str | None = None,
    out: str | Path | None = None,
    progress: Progress = silent,
    _environment: Environment | None = None,
) -> Choice:
    """Runs every method, then draws the best one privately. Costs (K ε + ε_choice, K δ) for K methods, all charged.

    Args:
        data, schema: the private table, and what it may contain (no open labels, no private bins).
        methods: candidates, each a name with options as in "steps layers=2".
        epsilon, delta: budget of each candidate's release.
        choice_epsilon: budget of the choice.
        ledger, dataset: each part is charged before a row is read for it; refused in advance if not all is covered.
        out: a folder with one release folder for each candidate; an unfinished choice in it is taken up again.

    Raises:
        UsageError, SchemaError, ResourceError, BudgetError, LedgerError: before a charge, as far as public facts tell.
    """
    candidates = [Candidate.read(text) for text in methods]
    _check(candidates, schema)
    environment = _environment or Environment.real()
    account = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    bill = Bill(account, dataset if dataset is not None else _only(account), environment.run())
    asked = _Asked(tuple(candidates), _designs(candidates, schema, epsilon, delta), Budget(choice_epsilon))
    bill.check_unit(unit_words(schema.unit))
    folder = None if out is None else ChoiceFolder(Path(out))
    if folder is None or not folder.check():
        bill.check_covered(asked.prices)
    if folder is not None:
        for design in asked.designs:
            check_disk(design.plan, folder.parent)
    opened = _Opened(data, open_table(data, schema), environment)
    if folder is None:
        return _made(opened, asked, bill, None, progress=progress)
    with _begun(folder, asked, bill) as begun:
        found = _made(opened, asked, begun, folder, progress=progress)
        folder.finish(found.write)
    return found


@dataclass(frozen=True, slots=True)
class _Asked:
    """The candidates, the designs of their releases, and the budget of the choice."""

    candidates: tuple[Candidate, ...]
    designs: tuple[Design, ...]
    last: Budget

    @property
    def prices(self) -> list[tuple[Cost, Budget]]:
        """What each release costs, in order, and at last the choice."""
        return [*((design.granted, design.budget) for design in self.designs), (self.last.cost("pure"), self.last)]

    def settings(self, bill: Bill) -> dict[str, object]:
        """What must be the same when the choice is taken up again."""
        units = [[budget.epsilon_units, budget.delta_units] for _, budget in self.prices]
        return {
            "schema": digest_of(self.designs[0].schema),
            "ledger": bill.ledger.entries(bill.dataset)[0].hash,
            "dataset": bill.dataset,
            "methods": [one.name for one in self.candidates],
            "budgets": units,
        }


@dataclass(frozen=True, slots=True)
class _Opened:
    """The private table as it was given and as it was opened, and what a run takes from the machine."""

    data: object
    table: PrivateTable
    environment: Environment


@dataclass(frozen=True, slots=True)
class _OnceCharged:
    """Keeps the ledger's head when a charge is on disk, and the table's fingerprint: not before, for it reads rows."""

    folder: ChoiceFolder
    opened: _Opened
    ledger: Ledger

    def stage(self, name: str, done: float) -> None:
        """Called by the run at each stage."""
        if name != "charge":
            return
        self.folder.note_head(self.ledger.head())
        if not self.folder.knows_table():
            self.folder.note_table(fingerprint(self.opened.data, self.opened.table.schema))


@contextmanager
def _begun(folder: ChoiceFolder, asked: _Asked, bill: Bill) -> Iterator[Bill]:
    """The bill of the choice that is made in the folder: a new one, or the one that was interrupted."""
    with folder.held(asked.settings(bill), bill.choice) as name:
        folder.require_head({entry.hash for entry in bill.ledger.entries()})
        begun = replace(bill, choice=name)
        try:
            yield begun
        except BaseException:
            with suppress(UnderstudyError):  # a ledger that cannot be read: leave the folder as it is
                if name == bill.choice and not begun.charges():
                    folder.discard()
            raise


def _made(opened: _Opened, asked: _Asked, bill: Bill, folder: ChoiceFolder | None, *, progress: Progress) -> Choice:
    """Makes what is missing and draws the best. From the first charge on, charges stand, whatever happens."""
    found: dict[str, Release] = {}
    continued: set[str] = set()
    if folder is not None:
        if folder.knows_table():
            folder.require_table(fingerprint(opened.data, opened.table.schema))
        found, continued = _found(folder, asked, bill, opened.table.frame_kind)
        settled = continued | set(found)
        names = [*(one.name for one in asked.candidates), None]
        bill.check_covered([price for name, price in zip(names, asked.prices, strict=True) if name not in settled])
    told = silent if folder is None else _OnceCharged(folder, opened, bill.ledger)
    releases: dict[str, Release] = {}
    for part, (one, design) in enumerate(zip(asked.candidates, asked.designs, strict=True), start=1):
        progress.stage("measure", (part - 1) / (len(asked.candidates) + 1))
        releases[one.name] = found.get(one.name) or synthesize(
            opened.table,
            opened.table.schema,
            method=one.method,
            options=dict(one.options),
            epsilon=design.budget.epsilon,
            delta=design.budget.delta,
            ledger=bill.ledger,
            dataset=bill.dataset,
            out=None if folder is None else folder.release_place(str(part), one.method),
            resume=one.name in continued,
            progress=told,
            _environment=replace(opened.environment, run=functools.partial(bill.next_run, str(part))),
        )
    draw = bill.next_run(DRAW)
    if folder is not None:
        folder.prepare()
    chosen = _drawn(opened, releases, bill, draw, budget=asked.last, told=told)
    progress.stage("measure", 1.0)
    return Choice(chosen, releases, bill.total(), draw, tuple(bill.charges()))


def _found(folder: ChoiceFolder, asked: _Asked, bill: Bill, frame_kind: str) -> tuple[dict[str, Release], set[str]]:
    """The releases that are finished, and the candidates whose training can go on under its charge."""
    found: dict[str, Release] = {}
    continued: set[str] = set()
    for number, one in enumerate(asked.candidates, start=1):
        part = str(number)
        target = folder.release_place(part, one.method)
        folder.put_in_place(target, bill.released(part))
        finished = target.exists()
        if finished:
            found[one.name] = _finished(target, frame_kind, [entry.run for entry in bill.charges(part)])
        if folder.keeps_state_of(None if finished else bill.open_run(part), target):
            continued.add(one.name)
    return found, continued


def _finished(target: Path, frame_kind: str, charged: Sequence[str]) -> Release:
    """A release as it was finished before; raises if it was altered, or not charged for this choice."""
    problems = check_files(target)
    if problems:
        raise ReleaseError(problems)
    release = Release.load(target, frame_kind=frame_kind)
    if release.statement.run not in charged:
        fix = "Give the ledger that was charged, or a new folder."
        raise UsageError(f"release {str(target)!r}", "was not charged to this ledger for this choice.", fix)
    return release


def _drawn(
    opened: _Opened, releases: Mapping[str, Release], bill: Bill, run: str, *, budget: Budget, told: Progress
) -> str:
    """The name of the chosen release; the choice is charged before a row is read for it."""
    schema = opened.table.schema
    question, cost = _question(releases, schema), budget.cost("pure")
    bill.ledger.charge(
        bill.dataset,
        run=run,
        method="choice",
        cost=cost,
        budget=budget,
        unit=unit_words(schema.unit),
        note=charge_note(digest_of(schema)),
    )
    told.stage("charge", 1.0)
    curator = Curator(opened.table, cost, opened.environment.randomizer)
    curator.settle(TableCodec.of(schema))
    chosen = curator.select(question, Cost(epsilon=cost.epsilon))
    with suppress(UnderstudyError):  # the note is for the owner's reading; the charge stands without it
        bill.ledger.finish(run, "released")
    return chosen


def _question(releases: Mapping[str, Release], schema: Schema) -> StandInError:
    """All pairs of columns: what each release says about them, in rows."""
    codec = TableCodec.of(schema)
    cliques = _pairs(codec)
    estimates: dict[str, dict[Clique, npt.NDArray[np.float64]]] = {}
    for name, release in releases.items():
        rows = open_table(release.table, _free(schema)).bind(codec).counts(cliques)
        total = max(1, release.config.rows[0])
        scale = release.fits[0].model.total / total
        estimates[name] = {clique: counts.astype(np.float64) * scale for clique, counts in rows.items()}
    return StandInError("method", list(releases), cliques, estimates)


def _pairs(codec: TableCodec) -> list[Clique]:
    names = codec.domain.columns
    pairs = [codec.domain.clique(pair) for pair in itertools.combinations(names, 2)]
    return pairs or [codec.domain.clique(names)]


def _free(schema: Schema) -> Schema:
    """The same columns without a unit: released rows belong to nobody."""
    return replace(schema, unit=Unit())


def _check(candidates: Sequence[Candidate], schema: Schema) -> None:
    if len(candidates) < 2 or len({one.name for one in candidates}) < len(candidates):
        raise UsageError("methods", "must name at least two different methods.")
    _check_nothing_open(schema)
    codec = TableCodec.of(schema)
    cells = sum(codec.domain.cells(clique) for clique in _pairs(codec)) * (len(candidates) + 1)
    if cells > MOST_CELLS:  # of every release and of the private table
        fix = "Use coarser bins, fewer columns or fewer methods."
        raise ResourceError("choice: all pairs of columns", 8 * cells, 8 * MOST_CELLS, fix)


def _check_nothing_open(schema: Schema) -> None:
    """Raises if a release would first settle labels or bins: each its own, so that no two could be put side by side."""
    opened = [column.name for column in schema.modelled if isinstance(column, OpenCategory)]
    cut = [column.name for column in schema.modelled if isinstance(getattr(column, "bins", None), PrivateBins)]
    if opened or cut:
        parts = [("an open list of labels", opened), ("private bins", cut)]
        named = "; ".join(f"{what}: {', '.join(names)}" for what, names in parts if names)
        rule = f"a private choice needs a schema that leaves nothing to be settled privately, but this one has {named}."
        fix = "List the labels and give edges or a number of even bins in the schema, or choose on a public table."
        raise UsageError("schema", rule, fix)


def _designs(candidates: Sequence[Candidate], schema: Schema, epsilon: float, delta: float) -> tuple[Design, ...]:
    """The design of every release; raises unless all of them can be made and will make a claim."""
    designs = []
    for one in candidates:
        design = Design.of(schema, one.method, one.budget(epsilon, delta), options=dict(one.options))
        check_memory(design.plan, None)
        check_without_public(design)
        if design.plan.refused:
            rule = "makes no privacy claim with these options, so nothing could be said of the choice."
            raise UsageError(f"method {one.name!r}", rule, "Choose other options or another method.")
        designs.append(design)
    return tuple(designs)


def _only(ledger: Ledger) -> str:
    known = ledger.datasets()
    if len(known) != 1:
        rule = f"must be named, because the ledger has {len(known)} datasets."
        raise UsageError("dataset", rule, f"Known: {', '.join(known)}." if known else "Open one in it first.")
    return known[0]
