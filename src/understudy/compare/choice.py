"""choose: one release with each of several methods, and the best of them picked privately, all charged to a ledger.

Privacy
-------
Each candidate makes a release of its own at (ε, δ), charged as any release is. The best of them is then drawn by the
exponential mechanism on how far the private table is from each set of released rows over all pairs of columns
(`StandInError`, with its sensitivity), at ε_choice. Releases are public by then, so the parts add up: with K candidates
(K ε + ε_choice, K δ) in all. The ledger must cover all of it before anything begins, and each part is charged before a
row is read for it. Everything may be published: the chosen release, the others, and which one was chosen. A method that
makes no claim of its own is refused. Comparing without paying (`compare`) is confidential; choosing by it leaks.

Every run of a choice is named after it: CHOICE-PART-ATTEMPT. So the ledger itself is the record of what was charged,
whatever became of the process, and a second attempt at a part has a name of its own. Amounts are sums of whole units;
as numbers they are rounded up.

The folder
----------
OUT holds releases and at the end `choice.json`, which may be published (a training that is not finished keeps its state
in there too, hidden and for its owner alone; then that goes). Beside it, until the choice is made, `.OUT.choosing` is
open to its owner alone and to one process at a time. It keeps the name of the choice, what was asked, a lock, and the
fingerprint of the table, which depends on every private value. It goes when `choice.json` is there, or if nothing was
charged.

Resuming
--------
After a kill the same command goes on in the same folder. It keeps every finished release as it is: that is public
output, paid for by a charge that must be in the ledger, as must the newest charge (an older copy is refused). It
charges and makes what is missing. A part that was charged but left no release, or no finished `choice.json`, is charged
anew under a name of its own; only a training that kept its state goes on under its charge (see `privacy/ledger.py`).
Why this is sound: charged parts, each chosen after seeing earlier ones, are an adaptive composition whose costs add up,
and no charge yields two answers. What was charged stays charged, and the published total counts all of it, also
attempts that left nothing. How many attempts there are is fixed from outside: no row's content can stop a run (see
`synthesizer/pipeline.py`), and whether to go on is decided by what is asked, what is on disk and what the ledger says.
Should somebody stop a run because of what was released before, then costs were chosen on the way, and the cap of the
ledger is what holds (see `privacy/ledger.py`); `choice.json` says so.

One thing private is compared: the fingerprint of the table, so that releases of two tables are not put side by side. It
is first computed when the first part has been charged, is kept for the owner alone, and goes into nothing that is
released. On one and the same table it always agrees, so it tells nothing about the rows. Privacy does not rest on it:
parts of different tables of a dataset add up as well.
"""

import contextlib
import functools
import itertools
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from understudy.codec.table import TableCodec
from understudy.compare.study import Candidate, fingerprint
from understudy.counts.opening import open_table
from understudy.counts.source import PrivateTable
from understudy.domain import Clique
from understudy.errors import BudgetError, InputError, ReleaseError, ResourceError, UnderstudyError, UsageError
from understudy.folders import CLOSED_FOLDER, KeptFolder, sync, write_durably
from understudy.privacy.cost import Budget, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.ledger import Ledger
from understudy.privacy.ledger_file import Entry
from understudy.privacy.scores import StandInError
from understudy.progress import Progress, recorded, silent
from understudy.release.files import MANIFEST, check_files, refuse_release_folder, working_place
from understudy.release.release import Release
from understudy.release.statement import digest_of
from understudy.release.wording import NEIGHBOURS, charge_note, unit_text
from understudy.schema import OpenCategory, PrivateBins, Schema, Unit
from understudy.synthesizer import synthesize
from understudy.synthesizer.account import unit_words
from understudy.synthesizer.design import Design, check_disk, check_memory, check_without_public
from understudy.synthesizer.pipeline import Environment


@dataclass(frozen=True, slots=True)
class Bill:
    """The charges of the choice named `choice`, in one dataset of a ledger."""

    ledger: Ledger
    dataset: str
    choice: str

    def charges(self, part: str = "") -> list[Entry]:
        """Every charge of the choice in order, or those of one part of it."""
        start = f"{self.choice}-{part}-" if part else f"{self.choice}-"
        entries = self.ledger.entries(self.dataset)
        return [entry for entry in entries if entry.kind == "charge" and entry.run.startswith(start)]

    def next_run(self, part: str) -> str:
        """The name of the next attempt at a part."""
        return f"{self.choice}-{part}-{len(self.charges(part)) + 1}"

    def open_run(self, part: str) -> str | None:
        """The last attempt at a part, if it was charged and has not ended."""
        charges = self.charges(part)
        ended = {entry.run for entry in self.ledger.entries(self.dataset) if entry.kind == "finish"}
        return charges[-1].run if charges and charges[-1].run not in ended else None

    def released(self, part: str) -> set[str]:
        """Attempts at a part that are on record as released."""
        entries = self.ledger.entries(self.dataset)
        ended = {entry.run for entry in entries if entry.kind == "finish" and entry.outcome == "released"}
        return ended & {entry.run for entry in self.charges(part)}

    def total(self, missing: Sequence[Budget] = ()) -> Budget:
        """Everything charged so far, attempts without a release too, and what is missing.

        Raises:
            UsageError: if it is more than a budget may be.
        """
        charges = self.charges()
        epsilon = sum(entry.budget_epsilon for entry in charges) + sum(one.epsilon_units for one in missing)
        delta = sum(entry.budget_delta for entry in charges) + sum(one.delta_units for one in missing)
        try:
            return claimed(epsilon, delta)
        except UsageError as error:
            where = f"all releases and the choice together: {error.problem.where}"
            fix = "Lower ε or δ, or choose among fewer methods."
            raise UsageError(where, error.problem.rule, fix) from None

    def check_covered(self, missing: Sequence[tuple[Cost, Budget]]) -> None:
        """Raises unless the total is a budget and the ledger covers all that is missing; charges nothing."""
        self.total([budget for _, budget in missing])
        before = after = self.ledger.balance(self.dataset)
        for cost, budget in missing:
            units = {"budget_epsilon": budget.epsilon_units, "budget_delta": budget.delta_units}
            after = after.after(after.deduction(cost, **units))
        if not after.is_within_limit():
            releases = len(missing) - 1
            needed = f"{releases} release{'' if releases == 1 else 's'} and the choice" if releases else "the choice"
            fix = "Choose among fewer methods, lower ε, or use a public proxy."
            raise BudgetError("choose", needed, str(before.left), fix)

    def check_unit(self, unit: str) -> None:
        """Raises if the dataset was charged for another unit: guarantees for different units do not add up."""
        entries = self.ledger.entries(self.dataset)
        before = next((entry.unit for entry in reversed(entries) if entry.kind == "charge"), unit)
        if before != unit:
            rule = f"is charged for the unit {before!r}, got {unit!r}."
            raise UsageError(f"dataset {self.dataset!r}", rule, "Protect the same unit in all releases of a dataset.")


def claimed(epsilon_units: int, delta_units: int) -> Budget:
    """Whole units as numbers that are not below them.

    >>> claimed(800_000_000_000, 0).epsilon
    0.8
    """
    return Budget(*Budget(1.0).claim(Cost(epsilon=epsilon_units, delta=delta_units)))


FORMAT = "understudy unfinished choice, format 1"
RESULT = "choice.json"
DRAFT_BYTES = 2**16
"""Bytes set aside for the result before the draw is charged."""
WORDS = {"schema": "another schema", "ledger": "another ledger", "dataset": "another dataset"}


class ChoiceFolder:
    """Where a choice is made: `place` for what may be published, `work` beside it for what may not."""

    def __init__(self, place: Path) -> None:
        self.place, self.work = place, place.absolute().parent / f".{place.absolute().name}.choosing"
        self._kept = KeptFolder(self.work, "settings.json")

    @property
    def where(self) -> str:
        """The folder, as errors name it."""
        return f"output {str(self.place)!r}"

    @property
    def parent(self) -> Path:
        """The nearest folder above that is there."""
        return next(one for one in self.work.parents if one.is_dir())

    def check(self) -> bool:
        """Whether an unfinished choice waits here; writes nothing, but what a finished one left beside it goes.

        Raises:
            UsageError: if the choice is finished, or the folder belongs to something else.
        """
        refuse_release_folder(self.place)
        begun = self._kept.note_path.is_file()
        if (self.place / RESULT).exists():
            shutil.rmtree(self.work, ignore_errors=True)  # of a process that was killed after the choice was written
            raise UsageError(self.where, f"holds a finished choice, see its {RESULT}.", "Give a new folder.")
        if not begun and (self.place.exists() or self.place.is_symlink()):
            raise UsageError(self.where, "exists already.", "Give a new folder.")
        return begun

    @contextlib.contextmanager
    def held(self, request: Mapping[str, object], name: str) -> Iterator[str]:
        """Keeps the choice to this process until the block ends. Gives its name: `name`, or that of the one waiting.

        Raises:
            UsageError: if another process is at work here, or the one waiting was begun with something else.
        """
        self._hold()
        try:
            yield self._begun(request, name)
        finally:
            self._kept.let_go()

    def release_place(self, part: str, method: str) -> Path:
        """Where the release of a part goes."""
        return self.place / f"{part}-{method}"

    def keeps_state_of(self, run: str | None, target: Path) -> bool:
        """Whether the state of that run waits for its release to be made; the state of any other run is removed."""
        working = working_place(target)
        try:
            found = json.loads((working / "run.json").read_text(encoding="utf-8"))["run"]
        except (OSError, ValueError, KeyError, TypeError):
            found = None
        if run is not None and found == run:
            return True
        shutil.rmtree(working, ignore_errors=True)
        return False

    def put_in_place(self, target: Path, released: set[str]) -> None:
        """Renames a complete release that a killed process had put on record, but not in place; others go."""
        for left in self.place.glob(f".{target.name}.*.partial"):
            if not target.exists() and _run_of(left) in released:
                left.rename(target)
                sync(self.place)
            else:
                shutil.rmtree(left, ignore_errors=True)

    def note_head(self, head: str) -> None:
        """Keeps the hash of the ledger's last line, which stands for all charges so far."""
        write_durably(self._head, head.encode())

    def require_head(self, known: Set[str]) -> None:
        """Raises if the ledger lacks what was charged to it before: an older copy would not count that."""
        if self._head.is_file() and self._head.read_text(encoding="utf-8") not in known:
            rule = "holds a choice whose charges are not all in this ledger: it is an older copy, or another one."
            raise UsageError(self.where, rule, "Give the ledger that was charged last.")

    def note_table(self, fingerprint: str) -> None:
        """Keeps what the table is known by."""
        write_durably(self._table, fingerprint.encode())

    def knows_table(self) -> bool:
        """Whether a fingerprint was kept: it is, before a row is read for the first release."""
        return self._table.is_file()

    def require_table(self, fingerprint: str) -> None:
        """Raises if the table is not the one that releases were made of."""
        if self._table.read_bytes() != fingerprint.encode():
            raise UsageError(self.where, "holds a choice that was begun with another table.", _SAME)

    def prepare(self) -> None:
        """Makes sure that the result can be written, before it is paid for.

        Raises:
            InputError: if it cannot.
        """
        try:
            self._draft.write_bytes(bytes(DRAFT_BYTES))
            sync(self._draft)
        except OSError as error:
            raise InputError(
                self.where, "cannot be written.", "Free some space, then run the same command again."
            ) from error

    def finish(self, write: Callable[[Path], None]) -> None:
        """Puts the result, written by `write`, in place in one step; what may not be published goes."""
        write(self._draft)
        sync(self._draft)
        self._draft.rename(self.place / RESULT)
        sync(self.place)
        shutil.rmtree(self.work, ignore_errors=True)

    def discard(self) -> None:
        """Leaves nothing behind; for a choice of which nothing was charged."""
        with contextlib.suppress(OSError):  # it is there and holds something: not ours to remove
            self.place.rmdir()
        shutil.rmtree(self.work, ignore_errors=True)

    @property
    def _table(self) -> Path:
        return self.work / "table.txt"

    @property
    def _head(self) -> Path:
        return self.work / "head.txt"

    @property
    def _draft(self) -> Path:
        return self.place / f".{RESULT}.part"

    def _hold(self) -> None:
        try:
            self.work.parent.mkdir(parents=True, exist_ok=True)
            self.work.mkdir(mode=CLOSED_FOLDER, exist_ok=True)
            if not self._kept.is_own():
                rule = f"has {str(self.work)!r} beside it, which belongs to somebody else or is open to others."
                raise UsageError(self.where, rule, "Give a new folder.")
            held = self._kept.hold()
        except OSError as error:
            raise InputError(self.where, "cannot be written.", "Choose another place.") from error
        if not held:
            raise UsageError(self.where, "is in use by another process.", "Wait for it.")

    def _begun(self, request: Mapping[str, object], name: str) -> str:
        if self.check():
            found = self._read()
            _require_same(found, request, self.where)
            name = str(found["choice"])
        else:
            self._kept.write_note({"format": FORMAT, "choice": name, **request})
        self.place.mkdir(exist_ok=True)
        for folder in (self.work, self.place, self.work.parent):  # charges are durable, so their names must be
            sync(folder)
        return name

    def _read(self) -> Mapping[str, object]:
        document = self._kept.read_note()
        if document is None or document.get("format") != FORMAT or not document.get("choice"):
            rule = f"has {str(self.work)!r} beside it, which does not say what choice was begun."
            raise UsageError(self.where, rule, "Go on with the version that began it, or give a new folder.")
        return document


def _run_of(folder: Path) -> str | None:
    """The run of a release folder that is complete; None for anything less."""
    if not (folder / MANIFEST).is_file() or check_files(folder):
        return None
    try:
        return str(json.loads((folder / "statement.json").read_text(encoding="utf-8"))["run"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


_SAME = "Give the same settings as before; finished releases are not charged again. Or give a new folder."


def _require_same(before: Mapping[str, object], now: Mapping[str, object], where: str) -> None:
    apart = [WORDS.get(key, f"other {key}") for key in now if before.get(key) != now[key]]
    if apart:
        raise UsageError(where, f"holds a choice that was begun with {' and '.join(apart)}.", _SAME)


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
    schema: Schema | str | Path,
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
    """Makes a release with each of K methods and chooses one privately. Costs (K ε + ε_choice, K δ), all charged.

    Args:
        data: the private table.
        schema: what it may contain; no open labels and no private bins.
        methods: candidates, each a name with options as in "steps layers=2".
        epsilon: ε of each candidate's release.
        delta: δ of each candidate's release.
        choice_epsilon: ε of the choice.
        ledger: each part is charged to it before a row is read for that part; refused in advance if not all is covered.
        dataset: name of the dataset in the ledger.
        out: a folder with one release folder for each candidate; an unfinished choice in it is continued.

    Raises:
        UsageError, SchemaError, ResourceError, BudgetError, LedgerError: before a charge, as far as public facts tell.
    """
    schema, candidates = Schema.of(schema), [Candidate.read(text) for text in methods]
    _check(candidates, schema)
    environment = _environment or Environment.real()
    account = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    bill = Bill(account, dataset if dataset is not None else _only(account), environment.run())
    request = _Request(tuple(candidates), _designs(candidates, schema, epsilon, delta), Budget(choice_epsilon))
    bill.check_unit(unit_words(schema.unit))
    folder = None if out is None else ChoiceFolder(Path(out))
    if folder is None or not folder.check():
        bill.check_covered(request.costs)
    if folder is not None:
        for design in request.designs:
            check_disk(design.plan, folder.parent)
    opened = _Opened(data, open_table(data, schema), environment)
    if folder is None:
        return _made(opened, request, bill, None, progress=progress)
    with _begun(folder, request, bill) as begun:
        found = _made(opened, request, begun, folder, progress=progress)
        folder.finish(found.write)
    return found


@dataclass(frozen=True, slots=True)
class _Request:
    """The candidates, the designs of their releases, and the budget of the choice."""

    candidates: tuple[Candidate, ...]
    designs: tuple[Design, ...]
    last: Budget

    @property
    def costs(self) -> list[tuple[Cost, Budget]]:
        """What each release costs, in order, and at last the choice."""
        return [*((design.granted, design.budget) for design in self.designs), (self.last.cost("pure"), self.last)]

    def settings(self, bill: Bill) -> dict[str, object]:
        """What must be the same when the choice is taken up again."""
        units = [[budget.epsilon_units, budget.delta_units] for _, budget in self.costs]
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
def _begun(folder: ChoiceFolder, request: _Request, bill: Bill) -> Iterator[Bill]:
    """The bill of the choice that is made in the folder: a new one, or the one that was interrupted."""
    with folder.held(request.settings(bill), bill.choice) as name:
        folder.require_head({entry.hash for entry in bill.ledger.entries()})
        begun = replace(bill, choice=name)
        try:
            yield begun
        except BaseException:
            with suppress(UnderstudyError):  # a ledger that cannot be read: leave the folder as it is
                if name == bill.choice and not begun.charges():
                    folder.discard()
            raise


def _made(opened: _Opened, request: _Request, bill: Bill, folder: ChoiceFolder | None, *, progress: Progress) -> Choice:
    """Makes what is missing and draws the best. From the first charge on, charges stand, whatever happens."""
    found: dict[str, Release] = {}
    continued: set[str] = set()
    if folder is not None:
        if folder.knows_table():
            folder.require_table(fingerprint(opened.data, opened.table.schema))
        found, continued = _found(folder, request, bill, opened.table)
        ready = continued | set(found)
        names = [*(one.name for one in request.candidates), None]
        bill.check_covered([cost for name, cost in zip(names, request.costs, strict=True) if name not in ready])
    inner = silent if folder is None else _OnceCharged(folder, opened, bill.ledger)
    releases: dict[str, Release] = {}
    for part, (one, design) in enumerate(zip(request.candidates, request.designs, strict=True), start=1):
        progress.stage("measure", (part - 1) / (len(request.candidates) + 1))
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
            progress=inner,
            _environment=replace(opened.environment, run=functools.partial(bill.next_run, str(part))),
        )
    draw = bill.next_run(DRAW)
    if folder is not None:
        folder.prepare()
    chosen = _drawn(opened, releases, bill, draw, budget=request.last, inner=inner)
    progress.stage("measure", 1.0)
    return Choice(chosen, releases, bill.total(), draw, tuple(bill.charges()))


def _found(
    folder: ChoiceFolder, request: _Request, bill: Bill, table: PrivateTable
) -> tuple[dict[str, Release], set[str]]:
    """The releases that are finished, and the candidates whose training can go on under its charge."""
    found: dict[str, Release] = {}
    continued: set[str] = set()
    for number, one in enumerate(request.candidates, start=1):
        part = str(number)
        target = folder.release_place(part, one.method)
        folder.put_in_place(target, bill.released(part))
        finished = target.exists()
        if finished:
            found[one.name] = _finished(target, table, [entry.run for entry in bill.charges(part)])
        if folder.keeps_state_of(None if finished else bill.open_run(part), target):
            continued.add(one.name)
    return found, continued


def _finished(target: Path, table: PrivateTable, charged: Sequence[str]) -> Release:
    """A release as it was finished before; raises if it was altered, or not charged for this choice."""
    problems = check_files(target)
    if problems:
        raise ReleaseError(problems)
    release = Release.load(target, frame_kind=table.frame_kind, frame_types=table.column_types)
    if release.statement.run not in charged:
        fix = "Give the ledger that was charged, or a new folder."
        raise UsageError(f"release {str(target)!r}", "was not charged to this ledger for this choice.", fix)
    return release


def _drawn(
    opened: _Opened, releases: Mapping[str, Release], bill: Bill, run: str, *, budget: Budget, inner: Progress
) -> str:
    """The name of the chosen release; the choice is charged before a row is read for it."""
    schema = opened.table.schema
    query, cost = _query(releases, schema), budget.cost("pure")
    bill.ledger.charge(
        bill.dataset,
        run=run,
        method="choice",
        cost=cost,
        budget=budget,
        unit=unit_words(schema.unit),
        note=charge_note(digest_of(schema)),
    )
    inner.stage("charge", 1.0)
    curator = Curator(opened.table, cost, opened.environment.randomizer)
    curator.fix_codec(TableCodec.of(schema))
    chosen = curator.select(query, Cost(epsilon=cost.epsilon))
    with suppress(UnderstudyError):  # the note is for the owner's reading; the charge stands without it
        bill.ledger.finish(run, "released")
    return chosen


def _query(releases: Mapping[str, Release], schema: Schema) -> StandInError:
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
        raise ResourceError("choice: counting all pairs of columns", 8 * cells, 8 * MOST_CELLS, fix)


def _check_nothing_open(schema: Schema) -> None:
    """Raises if a release would first fix labels or bins: each its own, so that no two could be put side by side."""
    opened = [column.name for column in schema.modelled if isinstance(column, OpenCategory)]
    cut = [column.name for column in schema.modelled if isinstance(getattr(column, "bins", None), PrivateBins)]
    if opened or cut:
        parts = [("an open list of labels", opened), ("private bins", cut)]
        named = "; ".join(f"{what}: {', '.join(names)}" for what, names in parts if names)
        rule = f"a private choice needs a schema that fixes all labels and bins, but this one has {named}."
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
            rule = "makes no privacy claim with these options, so no claim could be made for the choice."
            raise UsageError(f"method {one.name!r}", rule, "Choose other options or another method.")
        designs.append(design)
    return tuple(designs)


def _only(ledger: Ledger) -> str:
    known = ledger.datasets()
    if len(known) != 1:
        rule = f"must be named, because the ledger has {len(known)} datasets."
        raise UsageError("dataset", rule, f"Known: {', '.join(known)}." if known else "Open one in it first.")
    return known[0]
