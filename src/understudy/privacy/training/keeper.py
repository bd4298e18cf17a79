"""FolderKeeper: checkpoints as files of their owner, each recorded in the ledger; only the newest recorded one counts.

A file is written under a temporary name with mode 0600, synced, renamed to its digest, its folder synced; then the
ledger takes its mark; then older files go. A kill at any moment leaves the newest recorded checkpoint in place. Files
that the ledger does not know are never read.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from understudy.errors import LedgerError
from understudy.privacy.ledger import Ledger, Mark, Receipt
from understudy.privacy.training.checkpoint import Checkpoint, from_bytes, to_bytes

__all__ = ["FolderKeeper", "write_durably"]

PATTERN = "checkpoint-*"


class FolderKeeper:
    """Keeps the checkpoints of one charged run in a folder. `configuration` is the digest of all public settings."""

    def __init__(self, folder: Path, ledger: Ledger, run: str, configuration: str) -> None:
        self._folder, self._ledger, self._run, self._configuration = folder, ledger, run, configuration
        self._receipt: Receipt | None = None
        self._found: Checkpoint | None = None

    def begun(self, receipt: Receipt) -> None:
        """Told by whoever charged the run just now."""
        self._receipt = receipt

    def take_up(self) -> Receipt:
        """Reads the newest recorded checkpoint and takes the run over; what does not fit is refused, without a trace.

        Raises:
            LedgerError: if the file is missing or altered, or the ledger does not let the run be continued.
        """
        mark = self._ledger.newest(self._run)
        found = None if mark is None else self._read(mark)
        self._receipt = self._ledger.take_up(self._run, mark)
        self._found = found
        self._tidy(mark)
        return self._receipt

    def newest(self) -> Checkpoint | None:
        """The checkpoint that was taken up."""
        return self._found

    def keep(self, checkpoint: Checkpoint) -> None:
        """Writes the checkpoint durably and records it.

        Raises:
            LedgerError: if the ledger does not take it; the run can be continued from the one before.
        """
        assert self._receipt is not None
        content = to_bytes(checkpoint, self._about(self._receipt.hash))
        mark = Mark(checkpoint.step, hashlib.sha256(content).hexdigest())
        write_durably(self._folder / _name(mark), content)
        try:
            self._ledger.checkpoint(self._run, mark, holder=self._receipt.holder)
        except LedgerError as error:
            where, rule = error.problem.where, error.problem.rule
            raise LedgerError(where, rule, "The run stopped and its charge stands; it can be continued.") from error
        self._tidy(mark)

    def _read(self, mark: Mark) -> Checkpoint:
        try:
            content = (self._folder / _name(mark)).read_bytes()
        except OSError as error:
            raise LedgerError("checkpoint", f"of step {mark.step} is missing.", "Restore its file.") from error
        if hashlib.sha256(content).hexdigest() != mark.digest:
            raise LedgerError("checkpoint", f"of step {mark.step} does not match the ledger.", "Restore its file.")
        charge = next(entry for entry in self._ledger.entries() if (entry.kind, entry.run) == ("charge", self._run))
        found = from_bytes(content, self._about(charge.hash))
        if found.step != mark.step:
            raise LedgerError("checkpoint", f"is not of step {mark.step}.", "Restore its file.")
        return found

    def _about(self, charge: str) -> dict[str, str]:
        return {"run": self._run, "charge": charge, "configuration": self._configuration}

    def _tidy(self, mark: Mark | None) -> None:
        """Removes every checkpoint but this one."""
        for path in self._folder.glob(PATTERN):
            if mark is None or path.name != _name(mark):
                with suppress(OSError):  # a file left over is never read
                    path.unlink()


def write_durably(path: Path, content: bytes) -> None:
    """A file for its owner only that is there in full or not at all, and stays."""
    draft = path.with_name(f"{path.name}.part")
    handle = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.rename(draft, path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _name(mark: Mark) -> str:
    return f"checkpoint-{mark.digest}"
