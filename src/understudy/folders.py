"""Folders that outlive a process: held by one process at a time, closed to others, written durably, taken up again.

What must survive a kill at any moment is kept in such a folder: the state of a run, of a choice, of a study. A process
that works in it holds a lock, which the operating system lets go when the process ends, however it ends. Files appear
as a whole or not at all, and stay. A note says what was asked for, so that work is only taken up for the same request.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

CLOSED_FOLDER, CLOSED_FILE = 0o700, 0o600
"""Modes of what its owner alone may use."""


class KeptFolder:
    """A folder with a note of what was asked for and a lock; which process works in it is the lock's to know."""

    def __init__(self, path: Path, note: str, lock: str = "lock") -> None:
        self.path, self.note_path, self.lock_path = path, path / note, path / lock
        self._lock: int | None = None

    def hold(self) -> bool:
        """Keeps the folder to this process; false if another one has it."""
        try:
            self._lock = locked(self.lock_path)
        except BlockingIOError:
            return False
        return self._lock is not None

    def let_go(self) -> None:
        """Lets another process take it up."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def discard(self) -> None:
        """Removes the folder and all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.let_go()

    def is_own(self) -> bool:
        """Whether it belongs to whoever runs this, and nobody else may use it."""
        facts = self.path.lstat()
        return facts.st_uid == os.geteuid() and not facts.st_mode & 0o077

    def write_note(self, document: Mapping[str, object]) -> None:
        """Notes what was asked for."""
        write_json(self.note_path, document)

    def read_note(self) -> dict[str, object] | None:
        """What was asked for; None if that cannot be read, nothing if it is no object."""
        try:
            document = json.loads(self.note_path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        return document if isinstance(document, dict) else {}


def locked(path: Path) -> int | None:
    """The lock file at `path`, made if need be, opened and locked; None if its holder removed it at that moment.

    Raises:
        BlockingIOError: if another process holds it.
        OSError: if it cannot be opened, or the file system has no locks.
    """
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, CLOSED_FILE)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), path.lstat()):
            return handle
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def write_json(path: Path, document: object) -> None:
    """Writes plain values durably, for their owner alone."""
    write_durably(path, json.dumps(document, indent=1, allow_nan=False).encode() + b"\n")


def write_durably(path: Path, content: bytes, *, for_all: bool = False) -> None:
    """A file that is there in full or not at all, and stays; for its owner alone, or as the umask has it `for_all`."""
    draft = path.with_name(f".{path.name}.part")
    draft.unlink(missing_ok=True)
    flags = os.O_CREAT | os.O_WRONLY | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(draft, flags, 0o666 if for_all else CLOSED_FILE), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.rename(draft, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Waits until a file, or the list of files in a folder, is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
