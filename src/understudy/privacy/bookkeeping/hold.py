"""Who holds a charged run, and how far it has come: the lines `checkpoint` and `continue`.

A run that trains for hours keeps its state from time to time. Each kept state is a line of the ledger: the number of
steps behind it and the SHA-256 of its bytes. After an interruption the run may be continued without a new charge, from
the newest of these states and from no other. Whoever continues is the holder from then on. Only the holder may keep
further states or end the run, and a run ends once. Every rule is checked in the transaction that writes the line.

So the states of one charge, in the order of their lines, form a single sequence with rising steps: no two branches
are ever recorded, whatever is copied, restored or started twice. One charge yields one release, because the end is
recorded before a release may be seen (`synthesizer/pipeline.py`). Why continuing costs nothing:
`training/checkpoint.py`.

The lines hold nothing but public numbers and a digest of noisy answers, and their day without the hour.
"""

import re
from dataclasses import dataclass

from understudy.errors import LedgerError
from understudy.privacy.bookkeeping.entry import Entry
from understudy.privacy.bookkeeping.store import Store

__all__ = ["Mark", "check_newest", "check_open", "check_rising", "holder_of", "mark_of", "newest_mark"]

BEGINNING = "from the beginning"
_NOTE = re.compile(r"step ([0-9]{1,10}), sha256 ([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Mark:
    """A kept state: how many steps lie behind it, and the digest of its bytes."""

    step: int
    digest: str

    @property
    def note(self) -> str:
        """The words of its line."""
        return f"step {self.step}, sha256 {self.digest}"


def mark_of(note: str) -> Mark | None:
    """The mark that these words stand for; None for the beginning.

    Raises:
        ValueError: for any other words.

    >>> mark_of("step 20, sha256 " + "0" * 64).step
    20
    """
    if note == BEGINNING:
        return None
    found = _NOTE.fullmatch(note)
    if found is None:
        raise ValueError("does not name a checkpoint")
    return Mark(int(found[1]), found[2])


def holder_of(store: Store, charge: Entry) -> str:
    """Hash of the line by which the run is held: its last continuation, or else its charge."""
    return next((line.hash for line in reversed(store.held(charge.run)) if line.kind == "continue"), charge.hash)


def newest_mark(store: Store, run: str) -> Mark | None:
    """The newest kept state of a run, if there is one."""
    notes = [line.note for line in store.held(run) if line.kind == "checkpoint"]
    return mark_of(notes[-1]) if notes else None


def check_open(store: Store, charge: Entry, holder: str | None) -> None:
    """Raises LedgerError if the run has ended, or is held by somebody else than `holder` (None: by its charge)."""
    where = f"run {charge.run!r}"
    if store.of_run("finish", charge.run):
        raise LedgerError(where, "is finished already.", "A run ends once, and one charge yields one release.")
    if holder_of(store, charge) != (holder or charge.hash):
        raise LedgerError(where, "was continued by another process since.", "Leave it to that one.")


def check_rising(store: Store, run: str, mark: Mark) -> None:
    """Raises LedgerError unless the mark lies behind the newest one."""
    newest = newest_mark(store, run)
    if newest is not None and mark.step <= newest.step:
        rule = f"has a checkpoint of step {newest.step} already, got one of step {mark.step}."
        raise LedgerError(f"run {run!r}", rule, "Go on from the newest one.")


def check_newest(store: Store, run: str, mark: Mark | None) -> None:
    """Raises LedgerError unless `mark` is the newest one (None: there is none yet)."""
    newest = newest_mark(store, run)
    if mark != newest:
        rule = "can be continued from its newest checkpoint only" + (f", step {newest.step}." if newest else ".")
        raise LedgerError(f"run {run!r}", rule, "Restore that checkpoint; an older one would be a second branch.")
