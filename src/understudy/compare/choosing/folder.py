"""The folder of a private choice, for one process at a time, and taken up again by the same command after a kill.

OUT holds releases and at the end `choice.json`, which may be published (a training that is not finished keeps its state
in there too, hidden and for its owner alone; then that goes). Beside it, until the choice is made, `.OUT.choosing` is
open to its owner alone. It keeps the name of the choice, what was asked, a lock, and the fingerprint of the table,
which depends on every private value. It goes when `choice.json` is there, or if nothing was charged. What has been
charged is the ledger's to know (`bill.py`).
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Set
from pathlib import Path

from understudy.compare.job import write_json
from understudy.compare.study import take_lock
from understudy.errors import InputError, UsageError
from understudy.evaluate.store import CLOSED_FILE, CLOSED_FOLDER, write_closed
from understudy.release.checks.files import check_files
from understudy.release.folder import MANIFEST, refuse_release_folder, sync
from understudy.synthesizer.working import working_place

__all__ = ["ChoiceFolder"]

FORMAT = "understudy unfinished choice, format 1"
RESULT = "choice.json"
ROOM = 2**16
"""Bytes set aside for the result before the draw is charged."""
WORDS = {"schema": "another schema", "ledger": "another ledger", "dataset": "another dataset"}


class ChoiceFolder:
    """Where a choice is made: `place` for what may be published, `work` beside it for what may not."""

    def __init__(self, place: Path) -> None:
        self.place, self.work = place, place.absolute().parent / f".{place.absolute().name}.choosing"

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
        begun = self._settings.is_file()
        if (self.place / RESULT).exists():
            shutil.rmtree(self.work, ignore_errors=True)  # of a process that was killed after the choice was written
            raise UsageError(self.where, f"holds a finished choice, see its {RESULT}.", "Give a new folder.")
        if not begun and (self.place.exists() or self.place.is_symlink()):
            raise UsageError(self.where, "exists already.", "Give a new folder.")
        return begun

    @contextlib.contextmanager
    def held(self, asked: Mapping[str, object], name: str) -> Iterator[str]:
        """Keeps the choice to this process until the block ends. Gives its name: `name`, or that of the one waiting.

        Raises:
            UsageError: if another process is at work here, or the one waiting was begun with something else.
        """
        handle = self._locked()
        try:
            yield self._begun(asked, name)
        finally:
            os.close(handle)

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
        write_closed(self._head, head.encode())

    def require_head(self, known: Set[str]) -> None:
        """Raises if the ledger lacks what was charged to it before: an older copy would not count that."""
        if self._head.is_file() and self._head.read_text(encoding="utf-8") not in known:
            rule = "holds a choice whose charges are not all in this ledger: it is an older copy, or another one."
            raise UsageError(self.where, rule, "Give the ledger that was charged last.")

    def note_table(self, fingerprint: str) -> None:
        """Keeps what the table is known by."""
        write_closed(self._table, fingerprint.encode())

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
            self._draft.write_bytes(bytes(ROOM))
            sync(self._draft)
        except OSError as error:
            raise InputError(self.where, "cannot be written.", "Make room in it, then give the same again.") from error

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
    def _settings(self) -> Path:
        return self.work / "settings.json"

    @property
    def _table(self) -> Path:
        return self.work / "table.txt"

    @property
    def _head(self) -> Path:
        return self.work / "head.txt"

    @property
    def _draft(self) -> Path:
        return self.place / f".{RESULT}.part"

    def _locked(self) -> int:
        try:
            self.work.parent.mkdir(parents=True, exist_ok=True)
            self.work.mkdir(mode=CLOSED_FOLDER, exist_ok=True)
            facts = self.work.lstat()
            if facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
                rule = f"has {str(self.work)!r} beside it, which belongs to somebody else or is open to others."
                raise UsageError(self.where, rule, "Give a new folder.")
            flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(self.work / "lock", flags, CLOSED_FILE)
        except OSError as error:
            raise InputError(self.where, "cannot be written.", "Choose another place.") from error
        if not take_lock(handle, self.work / "lock"):
            os.close(handle)
            raise UsageError(self.where, "is being worked on by another process.", "Wait for it.")
        return handle

    def _begun(self, asked: Mapping[str, object], name: str) -> str:
        if self.check():
            found = self._read()
            _require_same(found, asked, self.where)
            name = str(found["choice"])
        else:
            write_json(self._settings, {"format": FORMAT, "choice": name, **asked})
        self.place.mkdir(exist_ok=True)
        for folder in (self.work, self.place, self.work.parent):  # charges are durable, so their names must be
            sync(folder)
        return name

    def _read(self) -> Mapping[str, object]:
        try:
            document = json.loads(self._settings.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            document = None
        if not isinstance(document, dict) or document.get("format") != FORMAT or not document.get("choice"):
            rule = f"has {str(self.work)!r} beside it, which does not tell what was begun."
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


_SAME = "Give the same as before: finished releases are not charged again. Or give a new folder."


def _require_same(before: Mapping[str, object], now: Mapping[str, object], where: str) -> None:
    apart = [WORDS.get(key, f"other {key}") for key in now if before.get(key) != now[key]]
    if apart:
        raise UsageError(where, f"holds a choice that was begun with {' and '.join(apart)}.", _SAME)
