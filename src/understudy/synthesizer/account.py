"""Account: what a run is charged to, and the state of a run that can be continued.

A run is charged to a lasting ledger, or to one made for this run alone; on disk in either case, and once. If a run that
keeps checkpoints is interrupted its charge stays open, and it may be taken up again under it. That its release is
complete is recorded before the release can be seen, by whoever holds the run by then, and once: so a charge yields one
release at most.

The working folder
------------------
A run that can be continued keeps its state in a folder beside the output until its release. It holds the name of the
run, the digest of its settings, the newest checkpoint and, without a lasting ledger, the ledger made for this run
alone. It belongs to its owner only and is confidential until the release is complete; then it goes. A process that
works in it holds a lock, which the operating system lets go when the process ends, however it ends. What must hold even
where locks do not (a folder copied, another machine) is the ledger's part.

Releases that wait
------------------
They are complete and paid for, but not in place, because their process ended just before the rename. The next
`synthesize` of the same output puts the release in place, with `resume` or without. Nothing is drawn, read or charged
for that. If it was made as is asked for now, it is what was asked for; if not, the call is refused with what was done,
because the output is taken. One charge yields one release: of a run that can be continued from a checkpoint only the
release that is on record in its ledger counts, since the run may have gone on without any other. Commands that read the
output put it in place as well, where no ledger is needed to tell (`finish_waiting` in `release/files.py`).
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from understudy.errors import LedgerError, UnderstudyError, UsageError
from understudy.folders import CLOSED_FOLDER, KeptFolder
from understudy.models.model import read_as
from understudy.privacy.cost import DELTA_UNIT, UNIT
from understudy.privacy.ledger import Ledger, Outcome, Receipt
from understudy.privacy.training import FolderKeeper
from understudy.progress import standing
from understudy.release.files import check_files, put_in_place, seal, waiting_folders, working_place
from understudy.release.release import Release, present_mode
from understudy.release.statement import LedgerFacts, digest_of
from understudy.release.verify import check_ledger
from understudy.release.wording import charge_note
from understudy.schema import Unit
from understudy.synthesizer.design import Copies, Design

FORMAT = "understudy run, format 1"
_NOTES, _LEDGER = "run.json", "ledger.db"


@dataclass(frozen=True, slots=True)
class Begun:
    """What a run is known by: its name, the settings' digest, the dataset it is charged to, the seed."""

    run: str
    configuration: str
    dataset: str | None
    seed: int


def is_continuable(design: Design) -> bool:
    """Whether a run of this design keeps checkpoints: one training, and nothing that is asked besides it."""
    return design.method.keeps_checkpoints and not design.preparation and design.runs == 1


def check_continuable(design: Design) -> None:
    """Raises UsageError unless runs of this design keep checkpoints."""
    if is_continuable(design):
        return
    fix = "Run it without resume=True; it is charged as a run of its own."
    if not design.method.keeps_checkpoints:
        raise UsageError("resume", f"method {design.method.name} keeps no checkpoints.", fix)
    rule = "a run that first fixes labels or bins, or measures every copy anew, keeps no checkpoints."
    raise UsageError("resume", rule, fix)


def configuration_digest(design: Design, copies: Copies, left_out: Sequence[str]) -> str:
    """SHA-256 of everything public that a run depends on; a run is continued under the same settings only."""
    granted = design.granted
    facts = {
        "version": version("understudy"),
        "method": design.method.name,
        "options": dict(design.plan.options),
        "schema": digest_of(design.schema),
        "budget": [design.budget.epsilon_units, design.budget.delta_units],
        "granted": [granted.epsilon, granted.rho, granted.delta],
        "copies": [copies.count, copies.mode, copies.rows],
        "left out": list(left_out),
    }
    if design.check is not None:
        facts["check"] = [design.check.share, design.check.criteria]
    return hashlib.sha256(json.dumps(facts, sort_keys=True, ensure_ascii=True, default=str).encode()).hexdigest()


class Working(KeptFolder):
    """The folder of one run; `begun` says which, once it is known."""

    def __init__(self, path: Path, begun: Begun | None = None) -> None:
        super().__init__(path, _NOTES)
        self.begun = begun

    @classmethod
    def unused(cls, target: Path) -> "Working":
        """The folder of a run that is still to begin.

        Raises:
            UsageError: if an interrupted run is waiting there.
        """
        path = working_place(target)
        if path.exists() or path.is_symlink():
            own = (path / _LEDGER).exists()
            record = "this folder is the only record of them" if own else "the ledger records them"
            spent = f"If you delete the folder instead, its ε and δ are spent all the same: {record}."
            fix = f"Continue it with resume=True, free of charge. {spent}"
            raise UsageError(f"output {str(target)!r}", f"an interrupted run is waiting in {str(path)!r}.", fix)
        return cls(path)

    @classmethod
    def interrupted(cls, target: Path, wanted: Begun, *, seed: int | None) -> "Working":
        """The folder of an interrupted run, locked, with the same settings as `wanted`; a given seed must be its own.

        Raises:
            UsageError: if there is none, another process works in it, or it was begun under other settings.
        """
        path = working_place(target)
        if path.is_symlink() or not (path / _NOTES).is_file():
            fix = "Run without resume=True, or name the output of the interrupted run."
            raise UsageError(f"output {str(target)!r}", "has no interrupted run beside it.", fix)
        found = cls(path)
        if not found.is_own():
            fix = "Only its owner can continue a run, from a folder of mode 0700."
            raise UsageError(f"folder {str(path)!r}", "belongs to somebody else, or others may use it.", fix)
        found.hold_alone()
        try:
            found.begun = _read(found)
            _check_same(found.begun, wanted, seed)
        except BaseException:
            found.let_go()
            raise
        return found

    def hold_alone(self) -> None:
        """Keeps the run to this process; raises UsageError if another one is at work on it."""
        with suppress(OSError):
            if self.hold():
                return
        raise UsageError(f"folder {str(self.path)!r}", "another process is working on this run.", "Wait for it.")

    def drop_unrecorded(self) -> None:
        """Removes complete releases of this output that never came on record.

        To be called once the run was taken up: from then on they cannot be recorded any more, and together with what
        the continued run releases they would be a second release under one charge.
        """
        name = self.path.name.removeprefix(".").removesuffix(".working")
        for folder in waiting_folders(self.path.with_name(name)):
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def ledger_path(self) -> Path:
        """Where a ledger for this run alone is kept."""
        return self.path / _LEDGER

    def begin(self, begun: Begun) -> None:
        """Makes the folder, for its owner only, and notes which run works in it."""
        try:
            self.path.mkdir(mode=CLOSED_FOLDER)
        except FileExistsError as error:
            fix = "Wait for it, or continue it with resume=True."
            raise UsageError(f"folder {str(self.path)!r}", "belongs to another run.", fix) from error
        try:
            self.hold_alone()
            self.begun = begun
            self.write_note({"format": FORMAT, **asdict(begun)})
        except BaseException:
            self.discard()
            raise


def _read(working: Working) -> Begun:
    try:
        document = read_as(Mapping[str, Any], working.read_note())
        if document["format"] != FORMAT:
            raise ValueError("format")
        return read_as(Begun, document)  # type: ignore[no-any-return]
    except (ValueError, KeyError, TypeError) as error:
        where = f"file {str(working.note_path)!r}"
        raise UsageError(where, "does not say which run was interrupted.", "Restore it.") from error


def _check_same(begun: Begun, wanted: Begun, seed: int | None) -> None:
    if begun.dataset != wanted.dataset:
        rule = f"the interrupted run was charged to {_named(begun.dataset)}, got {_named(wanted.dataset)}."
        raise UsageError("resume", rule, "Name the same ledger and dataset as before.")
    if begun.configuration != wanted.configuration:
        rule = "the interrupted run had other settings (method, options, schema, budget, rows, copies or version)."
        raise UsageError("resume", rule, "Give the same settings as before; nothing was continued or charged.")
    if seed not in (None, begun.seed):
        raise UsageError("seed", f"the interrupted run has seed {begun.seed}, got {seed}.", "Leave it out.")


def _named(dataset: str | None) -> str:
    return "no lasting ledger" if dataset is None else f"dataset {dataset!r}"


Place = str | os.PathLike[str]
ONLY_RECORD = "That file is the only record of it: keep it, and count it among what this table has spent."
CONTINUABLE = "The same call with resume=True continues the run, free of charge."
OWN_PREFIX = ".understudy-"
"""How the name begins of a folder that holds the ledger made for one run alone."""


@dataclass(frozen=True, slots=True)
class Account:
    """A ledger and a dataset in it; without a lasting ledger, the folder in which one for this run will be made."""

    ledger: Ledger | None
    dataset: str | None
    place: Path | None

    @classmethod
    def of(cls, ledger: Ledger | Place | None, dataset: str | None, target: Path | None) -> "Account":
        """The account to charge, known to exist.

        Raises:
            LedgerError, UsageError: if the ledger cannot be opened or does not know the dataset.
        """
        if ledger is None:
            if dataset is not None:
                raise UsageError("dataset", "is a name in a ledger, but no ledger is given.", "Name the ledger too.")
            return cls(None, None, None if target is None else target.absolute().parent)
        opened = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
        if dataset is None:
            known = opened.datasets()
            if len(known) != 1:
                listed = ", ".join(known)
                raise UsageError("dataset", "must be named, because the ledger has several.", f"Known: {listed}.")
            dataset = known[0]
        opened.balance(dataset)
        return cls(opened, dataset, None)

    def charge(self, design: Design, run: str) -> "Charged":
        """The whole cost of the run, on disk; whoever holds what this returns may read rows."""
        if self.ledger is not None and self.dataset is not None:
            return Charged(_charge(self.ledger, self.dataset, design, run), self.ledger, self.dataset, None)
        folder = Path(tempfile.mkdtemp(prefix=OWN_PREFIX, dir=self.place))
        try:
            ledger = Ledger.single_use(folder / "ledger.db", design.budget)
            receipt = _charge(ledger, ledger.datasets()[0], design, run)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            standing().uncharged(run)  # nothing was read, and the ledger of this run alone is gone
            raise
        standing().remark(run, ONLY_RECORD)
        return Charged(receipt, ledger, None, folder)

    def begin(self, design: Design, begun: Begun, working: Working) -> "Charged":
        """The whole cost of a run that keeps checkpoints, on disk; its folder goes again if the charge is refused."""
        working.begin(begun)
        try:
            ledger = self.ledger or Ledger.single_use(working.ledger_path, design.budget)
            receipt = _charge(ledger, self.dataset or ledger.datasets()[0], design, begun.run)
        except BaseException:
            working.discard()
            if self.ledger is None:
                standing().uncharged(begun.run)  # nothing was read, and the ledger of this run alone is gone
            raise
        standing().remark(begun.run, CONTINUABLE)
        keeper = FolderKeeper(working.path, ledger, begun.run, begun.configuration)
        keeper.begun(receipt)
        return Charged(receipt, ledger, self.dataset, None, working, keeper)

    def take_up(self, design: Design, begun: Begun, working: Working) -> "Charged":
        """The charge of an interrupted run, taken up again. Nothing is charged.

        Raises:
            UsageError, LedgerError: if it was never charged or for something else, has ended, or its newest checkpoint
                is not at hand.
        """
        if self.ledger is None and not working.ledger_path.is_file():
            fix = f"Delete {str(working.path)!r} and run without resume=True."
            raise UsageError("resume", "the run was interrupted before it was charged.", fix)
        ledger = self.ledger or Ledger.open(working.ledger_path)
        _check_charged_for(ledger, self.dataset or ledger.datasets()[0], design, begun.run)
        _check_unreleased(ledger, begun.run, working)
        keeper = FolderKeeper(working.path, ledger, begun.run, begun.configuration)
        receipt = keeper.take_up()
        standing().remark(begun.run, CONTINUABLE)
        working.drop_unrecorded()
        return Charged(receipt, ledger, self.dataset, None, working, keeper)


@dataclass(frozen=True, slots=True)
class Charged:
    """A charge on disk. It is never taken back. A run that keeps checkpoints has a folder to work in, and a keeper."""

    receipt: Receipt
    ledger: Ledger
    dataset: str | None
    folder: Path | None
    working: Working | None = None
    keeper: FolderKeeper | None = None

    @property
    def facts(self) -> LedgerFacts:
        """What the statement says about the ledger."""
        claim = self.receipt.balance.claim()
        releases = self.receipt.balance.releases
        return LedgerFacts(self.dataset, self.receipt.hash, releases, claim.epsilon / UNIT, claim.delta / DELTA_UNIT)

    def extract(self) -> tuple[str, ...]:
        """The ledger's lines up to this charge, as published with the release."""
        entries = self.ledger.extract(run=self.receipt.run)
        return tuple(json.dumps(entry, sort_keys=True, ensure_ascii=True, separators=(",", ":")) for entry in entries)

    def complete(self) -> None:
        """Records the release before anybody can see it; of a run that could be continued, only if it may be released.

        Raises:
            LedgerError: if a release was completed before, or another process holds the run; nothing may be published.
        """
        if self.working is None:
            with suppress(UnderstudyError):  # the note is for the owner's reading; the charge stands without it
                self.ledger.finish(self.receipt.run, "released")
            return
        try:
            self.ledger.finish(self.receipt.run, "released", holder=self.receipt.holder)
        except LedgerError as error:
            where, rule = error.problem.where, error.problem.rule
            raise LedgerError(where, rule, "Nothing was released; the charge stands.") from error

    def close(self, outcome: Outcome) -> None:
        """Notes how the run ended. A ledger of its own goes with the release and stays behind when there is none.

        A run with checkpoints that failed stays open.
        """
        if self.working is not None:
            if outcome == "released":
                self.working.discard()
            self.working.let_go()
            return
        if outcome == "failed" and standing().is_unsure:
            return  # its release may be whole, and then the next command puts it in place
        with suppress(UnderstudyError):  # noted before, or a note for the owner's reading that cannot be written
            self.ledger.finish(self.receipt.run, outcome)
        if self.folder is not None and outcome == "released":
            shutil.rmtree(self.folder, ignore_errors=True)


def _charge(ledger: Ledger, dataset: str, design: Design, run: str) -> Receipt:
    return ledger.charge(
        dataset,
        run=run,
        method=design.method.name,
        cost=design.granted,
        budget=design.budget,
        variances=design.variances,
        currency=design.currency,
        unit=unit_words(design.schema.unit),
        note=charge_note(digest_of(design.schema)),
    )


def _check_charged_for(ledger: Ledger, dataset: str, design: Design, run: str) -> None:
    """Raises unless the run was charged just as this design would be: the files beside it may have been altered."""
    charge = next((entry for entry in ledger.entries() if (entry.kind, entry.run) == ("charge", run)), None)
    if charge is None:
        fix = "Give the ledger that was charged, or delete the working folder and run without resume=True."
        raise UsageError(f"run {run!r}", "was not charged to this ledger.", fix)
    budget, schema = design.budget, design.schema
    wanted = (dataset, design.method.name, design.granted, budget.epsilon_units, budget.delta_units)
    paid = (charge.dataset, charge.method, charge.cost, charge.budget_epsilon, charge.budget_delta)
    words = (unit_words(schema.unit), charge_note(digest_of(schema)))
    if paid != wanted or (charge.unit, charge.note) != words:
        fix = "Give the same settings as before; nothing was continued or charged."
        raise LedgerError(f"run {run!r}", "was charged for something other than this run.", fix)


def _check_unreleased(ledger: Ledger, run: str, working: Working) -> None:
    """Raises if the release of a run was recorded already."""
    if any((entry.kind, entry.run) == ("finish", run) for entry in ledger.entries()):
        fix = f"Delete {str(working.path)!r}; one charge yields one release."
        raise LedgerError(f"run {run!r}", "is finished already.", fix)


def unit_words(unit: Unit) -> str:
    """The same words for the same unit, so that a ledger can refuse to add up different ones.

    >>> unit_words(Unit("person", 3))
    "each 'person', at most 3 rows"
    """
    return "one row" if unit.column is None else f"each {unit.column!a}, at most {unit.rows} rows"


def place_waiting(
    target: Path, design: Design, wanted: Copies, account: Account, *, seed: int | None, resume: bool
) -> bool:
    """Puts the complete release of this output in place, if one waits; whether it did, and it is what is asked for.

    Raises:
        UsageError: if it was made with other settings than these, or not charged to this ledger. With `resume` it then
            stays where it is; without, it is in place by then, since whoever names an output need not know of it.
    """
    for folder in waiting_folders(target):
        release = _loaded(folder)
        if release is None:
            continue
        record = _Record.of(target, account, release.statement.run)
        if is_continuable(design) and record.outcome != "released":
            continue
        if record.outcome == "failed" and not resume:  # it is on record that there is no release
            continue
        refused = _refusal(folder, release, design, wanted, record, seed=seed)
        if refused is not None and resume:
            raise refused
        seal(folder)
        record.complete()
        put_in_place(folder, target)
        record.tidy(target)
        if refused is None:
            return True
        rule = "holds the release of an earlier run, which was complete and is now in place."
        fix = f"Check it, and name another folder for another release. The two runs differ: {refused.problem.rule}"
        raise UsageError(f"output {str(target)!r}", rule, fix)
    return False


def _refusal(
    folder: Path, release: Release, design: Design, wanted: Copies, record: "_Record", *, seed: int | None
) -> UsageError | None:
    """Why a waiting release is not what these settings ask for; None if it is."""
    try:
        _check_same_settings(folder, release, design, wanted, seed=seed)
        record.require_charge(folder)
    except UsageError as error:
        return error
    return None


def _loaded(folder: Path) -> Release | None:
    """The release in a folder if every file is there, unaltered, and agrees with its charge."""
    try:
        if check_files(folder):
            return None
        release = Release.load(folder)
        return None if check_ledger(release.statement, release.ledger) else release
    except (UnderstudyError, OSError):
        return None


@dataclass(frozen=True, slots=True)
class _Record:
    """What a ledger says about the run of a waiting release: the lasting one, or the one made for that run alone."""

    run: str
    ledger: Ledger | None
    own: Path | None
    charged: bool
    outcome: str

    @classmethod
    def of(cls, target: Path, account: Account, run: str) -> "_Record":
        ledger, own = (account.ledger, None) if account.ledger is not None else _own_ledger(target, run)
        entries = [entry for entry in ledger.entries() if entry.run == run] if ledger is not None else []
        charged = any(entry.kind == "charge" for entry in entries)
        return cls(run, ledger, own, charged, next((one.outcome for one in entries if one.kind == "finish"), ""))

    def require_charge(self, folder: Path) -> None:
        """Raises unless the run was charged to the ledger that was named; one made for it alone may be gone."""
        if self.ledger is not None and (not self.charged or self.outcome == "failed"):
            rule = f"the release in {str(folder)!r} is not one that this ledger was charged for."
            raise UsageError("resume", rule, "Name the same ledger and dataset as before.")

    def complete(self) -> None:
        """Notes that the release is complete, if its process could not."""
        if self.ledger is not None and not self.outcome:
            self.ledger.finish(self.run, "released")

    def tidy(self, target: Path) -> None:
        """Removes what was kept for that run alone."""
        shutil.rmtree(working_place(target), ignore_errors=True)
        if self.own is not None:
            shutil.rmtree(self.own, ignore_errors=True)


def _own_ledger(target: Path, run: str) -> tuple[Ledger | None, Path | None]:
    """The ledger made for a run alone, and its folder, if they are still beside the target."""
    parent = target.absolute().parent
    for place in (working_place(target), *sorted(parent.glob(f"{OWN_PREFIX}*"))):
        with suppress(UnderstudyError, OSError):
            ledger = Ledger.open(place / "ledger.db")
            if any(entry.run == run for entry in ledger.entries()):
                return ledger, place
    return None, None


def _check_same_settings(folder: Path, release: Release, design: Design, wanted: Copies, *, seed: int | None) -> None:
    """Raises unless these settings are those of the release."""
    config, statement = release.config, release.statement
    pairs = {
        "method": (config.method, design.method.name),
        "options": (_plain(config.options), _plain(design.plan.options)),
        "budget": (statement.budget, design.budget),
        "schema": (statement.schema_digest, digest_of(design.schema)),
        "copies": ((config.copies, present_mode(config.copies_mode)), (wanted.count, wanted.mode)),
        "rows": (set(config.rows), {wanted.rows} if wanted.rows is not None else set(config.rows)),
        "seed": (config.seed, config.seed if seed is None else seed),
        "check": (
            statement.check and (statement.check.share, statement.check.criteria),
            design.check and (design.check.share, design.check.criteria),
        ),
    }
    differs = [name for name, (made, given) in pairs.items() if made != given]
    if differs:
        rule = f"the release in {str(folder)!r} was made with other settings ({', '.join(differs)})."
        raise UsageError("resume", rule, "Give the same settings as before; nothing was charged.")


def _plain(options: object) -> str:
    return json.dumps(options, sort_keys=True, default=str)
