"""Progress: how a long run tells its caller where it stands, and what it has charged and completed so far.

Stage names are fixed and public, shares follow from public plans only. No count, label or file content ever passes
through here: a progress bar is an output like any other.

`Standing` is the one place that knows what a command has charged and which folders are complete. Whoever charges a
ledger or completes a folder records it here at that moment, and whoever reports how the command ended reads it from
here. So an error message never has to guess. Run names, costs and paths are fixed before any row is read.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

STAGES = ("check", "charge", "prepare", "measure", "draw", "write")
"""Every stage a run may report, in order; a stage that is not needed is skipped."""


class Progress(Protocol):
    """Receives the stage that is running and the share of that stage already done."""

    def stage(self, name: str, done: float) -> None:
        """Called at the start (0.0), now and then, and at the end (1.0) of each stage."""
        ...


class _Silent:
    """Says nothing."""

    def stage(self, name: str, done: float) -> None:
        """Ignores the report."""


silent: Progress = _Silent()


@dataclass(slots=True)
class _Charge:
    """One charge: `stands` is None while nobody can tell whether it is on disk."""

    run: str
    amount: str
    ledger: Path
    stands: bool | None = None
    remark: str = ""

    @property
    def words(self) -> str:
        return f"{self.amount} (run {self.run})"


class Standing:
    """What was charged and what is complete, whatever happens next."""

    def __init__(self) -> None:
        self._charges: dict[str, _Charge] = {}
        self._folders: list[tuple[os.stat_result, Path, Path]] = []
        self._unsure: list[Path] = []

    def charging(self, run: str, amount: str, ledger: Path) -> None:
        """A charge is about to be written; until `charged` is called it may or may not be on disk."""
        self._charges[run] = _Charge(run, amount, ledger)

    def charged(self, run: str, *, stands: bool | None) -> None:
        """Whether the charge is on disk; None if that could not be found out."""
        if run in self._charges:
            self._charges[run].stands = stands

    def uncharged(self, run: str) -> None:
        """The charge is not on disk any more, and nothing was read under it."""
        self._charges.pop(run, None)

    def remark(self, run: str, text: str) -> None:
        """A sentence to be said of the charge for as long as no release came of it."""
        if run in self._charges:
            self._charges[run].remark = text

    def completing(self, staging: Path, final: Path) -> None:
        """A folder is complete under its first name and about to get its final one."""
        self._folders.append((staging.stat(), staging, final))

    def unsure(self, final: Path) -> None:
        """What was written for a folder may be whole, and could neither be put in place nor removed."""
        self._unsure.append(final)

    @property
    def is_unsure(self) -> bool:
        """Whether a release may wait beside its place although the command failed."""
        return bool(self._unsure)

    @property
    def is_charged(self) -> bool:
        """Whether a charge stands, or may stand."""
        return any(charge.stands is not False for charge in self._charges.values())

    @property
    def complete(self) -> list[Path]:
        """Complete folders that exist, each under the name it has now; what others put under that name is not ours."""
        return [place for made, *names in self._folders for place in names if _is_there(place, made)]

    def sentence(self) -> str:
        """What was charged and what exists, in words that are true at this moment."""
        stands = [charge for charge in self._charges.values() if charge.stands]
        unknown = [charge for charge in self._charges.values() if charge.stands is None]
        parts = [_stands(stands, self.complete, self._unsure)] if stands else []
        parts += [
            f"It is not known whether {charge.words} was charged to {charge.ledger}; `understudy ledger show` tells."
            for charge in unknown
        ]
        if not parts and self.complete:
            return f"The folder is complete in {_listed(self.complete)}."
        return " ".join(parts) or "Nothing was charged."


def _stands(charges: list[_Charge], complete: list[Path], unsure: list[Path]) -> str:
    one = len(charges) == 1
    words = ", ".join(charge.words for charge in charges)
    if complete:
        released = f"The release is complete in {_listed(complete)}" if len(complete) == 1 else ""
        released = released or f"Releases are complete in {_listed(complete)}"
        return f"{released}; the {'charge' if one else 'charges'} of {words} {'stands' if one else 'stand'}."
    ledgers = _listed(list(dict.fromkeys(charge.ledger for charge in charges)))
    said = f"The {'charge' if one else 'charges'} of {words} in {ledgers} {'stands' if one else 'stand'}; "
    if unsure:
        tells = "the same command, run again, puts it in place if it was"
        return f"{said}it is not known whether the release in {_listed(unsure)} was complete; {tells}."
    remarks = dict.fromkeys(charge.remark for charge in charges if charge.remark)
    return " ".join([said + "no release was written.", *remarks])


def _is_there(place: Path, made: os.stat_result) -> bool:
    try:
        return os.path.samestat(place.stat(), made)
    except OSError:
        return False


def _listed(paths: list[Path]) -> str:
    return ", ".join(str(path) for path in paths)


_RECORD: ContextVar[Standing | None] = ContextVar("standing", default=None)


def standing() -> Standing:
    """The record of the command that is running; one that nobody reads if there is none."""
    return _RECORD.get() or Standing()


@contextmanager
def recorded() -> Iterator[Standing]:
    """The record of everything charged and completed inside the block; a block inside another has the same record.

    An exception that leaves the outermost block carries what was charged as a note.
    """
    outer = _RECORD.get()
    if outer is not None:
        yield outer
        return
    record = Standing()
    token = _RECORD.set(record)
    try:
        yield record
    except BaseException as error:
        if record.is_charged:
            error.add_note(record.sentence())
        raise
    finally:
        _RECORD.reset(token)
