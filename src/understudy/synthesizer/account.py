"""Account: where a run is charged. A lasting ledger, or one made for this run alone; on disk in either case.

A run that keeps checkpoints is charged once as well. If it is interrupted its charge stays open, and it may be taken up
again under it. That its release is complete is recorded before the release can be seen, by whoever holds the run by
then, and once: so a charge yields one release at most.
"""

import json
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from understudy.errors import LedgerError, UnderstudyError, UsageError
from understudy.privacy.cost import DELTA_UNIT, UNIT
from understudy.privacy.ledger import Ledger, Outcome, Receipt
from understudy.privacy.training.keeper import FolderKeeper
from understudy.progress import standing
from understudy.release.statement import LedgerFacts, digest_of
from understudy.release.wording import charge_note
from understudy.schema import Unit
from understudy.synthesizer.design import Design
from understudy.synthesizer.working import Begun, Working

__all__ = ["OWN_PREFIX", "Account", "Place", "unit_words"]

Place = str | os.PathLike[str]
ONLY_RECORD = "That file is the only record of it: keep it, and count it among what this table has spent."
CONTINUABLE = "The same command with --resume continues the run, free of charge."
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
            fix = f"Delete {str(working.path)!r} and run without --resume."
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
        unit=unit_words(design.schema.unit),
        note=charge_note(digest_of(design.schema)),
    )


def _check_charged_for(ledger: Ledger, dataset: str, design: Design, run: str) -> None:
    """Raises unless the run was charged just as this design would be: the files beside it may have been altered."""
    charge = next((entry for entry in ledger.entries() if (entry.kind, entry.run) == ("charge", run)), None)
    if charge is None:
        fix = "Give the ledger that was charged, or delete the working folder and run without --resume."
        raise UsageError(f"run {run!r}", "was not charged to this ledger.", fix)
    budget, schema = design.budget, design.schema
    wanted = (dataset, design.method.name, design.granted, budget.epsilon_units, budget.delta_units)
    paid = (charge.dataset, charge.method, charge.cost, charge.budget_epsilon, charge.budget_delta)
    words = (unit_words(schema.unit), charge_note(digest_of(schema)))
    if paid != wanted or (charge.unit, charge.note) != words:
        fix = "Give the same command as before; nothing was continued or charged."
        raise LedgerError(f"run {run!r}", "was charged for something else than this command asks.", fix)


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
