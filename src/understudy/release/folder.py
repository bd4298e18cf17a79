"""A folder that appears at once or not at all: written beside its target, synced, listed, then renamed.

A process that is killed leaves the target absent; the unfinished sibling (its name starts with a dot and ends in
`.partial`) can be deleted. Names are fixed, links are refused, an existing target is never touched.

What must be on record before anybody can see the target (`completing`) is called when the sibling is complete, just
before the rename. From that call on the sibling stays, unless it was refused: it is the finished folder. If it cannot
be renamed, or the process ends before that, it waits beside the target (`waiting_folders`) and can be put in place.

Whoever pays for what goes into a folder reserves the target first (`reserved`), so that a second process is refused
before it pays as well. A reservation is a lock on a file beside the target; the operating system lets go of it when the
process ends, however it ends.

Files and folders carry one fixed time instead of the clock's: how far apart two files were written would tell how long
the work between them took, and that depends on private rows. What cannot be set (when an inode was changed or made)
stays on the disk of the publisher; copies do not take it along.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from understudy.errors import InputError, UnderstudyError, UsageError
from understudy.progress import standing

__all__ = [
    "FILE_TIME",
    "MANIFEST",
    "RELEASE_FILE",
    "check_free",
    "file_digest",
    "listed_files",
    "published",
    "put_in_place",
    "refuse_release_folder",
    "reserved",
    "settle",
    "stream_digest",
    "sync",
    "sync_folder",
    "waiting_folders",
]

MANIFEST = "manifest.json"
RELEASE_FILE = "statement.json"
FORMAT = "understudy manifest, format 1"
DIGEST_BYTES = 2**20
FILE_TIME = 946_684_800
"""Seconds of 2000-01-01 00:00 UTC: the time that every file and folder of a release carries."""
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)
NAME_BYTES = 6


def refuse_release_folder(target: Path) -> None:
    """Raises when `target` is a release folder or lies inside one: nothing may be added to what was published.

    Every command asks this of every output before it charges or writes anything.
    """
    place = target.absolute()
    for parent in dict.fromkeys((place, *place.parents, place.resolve(), *place.resolve().parents)):
        if (parent / RELEASE_FILE).is_file():
            rule = "lies in a release folder, which holds what was released and nothing else."
            raise UsageError(f"output {str(target)!r}", rule, "Write it elsewhere.")


def check_free(target: Path) -> None:
    """Raises unless `target` is a possible name, new, outside every release, and its parent can be written."""
    _check_name(target)
    if target.is_symlink() or target.exists():
        raise UsageError(f"output {str(target)!r}", "exists already.", "Name a new folder or remove this one.")
    refuse_release_folder(target)
    parent = target.absolute().parent
    if not parent.is_dir():
        raise InputError(f"output {str(target)!r}", "is inside a folder that does not exist.", "Create it first.")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"output {str(target)!r}", "is inside a folder that cannot be written.", "Choose another.")


@contextmanager
def reserved(target: Path) -> Iterator[None]:
    """Keeps the target's name to this process until the block ends; raises if it is taken or reserved by another.

    A reservation whose process has died does not count. On a file system without locks there is none: then two
    processes may both do the work, and the later one keeps its folder beside the target.
    """
    check_free(target)
    final = target.absolute()
    path = final.parent / f".{final.name}.reserved"
    handle = _reserving(path, target)
    try:
        check_free(target)  # the holder before us may have put it in place
        yield
    finally:
        if handle is not None:
            path.unlink(missing_ok=True)  # while it is locked, so that nobody removes a successor's
            os.close(handle)


def _reserving(path: Path, target: Path) -> int | None:
    """The locked reservation file; None where the file system has no locks."""
    while True:
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_same_file(handle, path):
                return handle
        except OSError as error:
            os.close(handle)
            if error.errno in _NO_LOCKS:
                return None
            rule = "is being written by another process."
            fix = "Wait for it or name another folder; nothing was charged."
            raise UsageError(f"output {str(target)!r}", rule, fix) from error
        os.close(handle)  # its holder removed it between our opening and our locking: there may be a new one


def _is_same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


@contextmanager
def published(target: Path, completing: Callable[[], None] | None = None) -> Iterator[Path]:
    """An empty folder beside the target; when the block ends well it is listed, synced and renamed to the target.

    `completing` is called in between, for what was paid for; if it refuses (UnderstudyError), the folder goes and
    nothing is published.
    """
    check_free(target)
    final = target.absolute()
    staging = final.parent / f".{final.name}.{secrets.token_hex(NAME_BYTES)}.partial"
    staging.mkdir()
    try:
        yield staging
        _write_manifest(staging)
        settle(staging)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    try:
        if completing is not None:
            standing().completing(staging, final)
            completing()
    except UnderstudyError:  # refused: nobody may see it. Anything else may have struck after it was put on record.
        shutil.rmtree(staging, ignore_errors=True)
        raise
    put_in_place(staging, target)


def put_in_place(staging: Path, target: Path) -> None:
    """Renames a complete folder to its target; if that cannot be done the folder stays, and the error names it."""
    complete = f"is complete in {str(staging)!r} but could not be put in place"
    fix = "Rename that folder by hand; do not delete it."
    try:
        check_free(target)
        os.rename(staging, target.absolute())
    except UsageError as error:
        raise InputError(f"output {str(target)!r}", f"{complete}: the name is taken by now.", fix) from error
    except OSError as error:
        raise InputError(f"output {str(target)!r}", f"{complete}.", fix) from error
    with contextlib.suppress(OSError):  # it is in place; only a loss of power in this moment could undo that
        sync(target.absolute().parent)


def waiting_folders(target: Path) -> list[Path]:
    """Complete folders that a process left beside the target because it ended before it could put them in place."""
    final = target.absolute()
    start = f".{final.name}."
    found = [entry for entry in final.parent.iterdir() if entry.name.startswith(start) and entry.suffix == ".partial"]
    return sorted(one for one in found if not one.is_symlink() and (one / MANIFEST).is_file())


def settle(folder: Path) -> None:
    """Gives every file and folder the fixed time and waits until all of it is on disk."""
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (FILE_TIME, FILE_TIME), follow_symlinks=False)
    sync_folder(folder)


def listed_files(folder: Path) -> list[str]:
    """Every file below the folder but the manifest, as sorted relative names with forward slashes."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or path.is_file()]
    return sorted(name for name in names if name != MANIFEST)


def file_digest(path: Path) -> str:
    """SHA-256 of a file, read in bounded pieces."""
    with path.open("rb") as stream:
        return stream_digest(stream)


def stream_digest(stream: BinaryIO) -> str:
    """SHA-256 of what an open file still holds, read in bounded pieces."""
    digest = hashlib.sha256()
    while piece := stream.read(DIGEST_BYTES):
        digest.update(piece)
    return digest.hexdigest()


def sync_folder(folder: Path) -> None:
    """Waits until every file and folder below `folder` is on disk."""
    for path in sorted(folder.rglob("*")):
        sync(path)
    sync(folder)


def _write_manifest(folder: Path) -> None:
    files = {
        name: {"sha256": file_digest(folder / name), "bytes": (folder / name).stat().st_size}
        for name in listed_files(folder)
    }
    text = json.dumps({"format": FORMAT, "files": files}, indent=1, ensure_ascii=True)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def sync(path: Path) -> None:
    """Waits until a file, or the list of files in a folder, is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _check_name(target: Path) -> None:
    """Raises unless the target's name can be written as text and leaves room for the longer names of its siblings."""
    final = target.absolute()
    try:
        str(final).encode()
    except UnicodeEncodeError as error:
        rule = "has a name that is not valid UTF-8, so that it could not be written into any file or message."
        raise UsageError(f"output {str(target)!r}", rule, "Name another folder.") from error
    try:
        os.lstat(final.parent / f".{final.name}.{'0' * 2 * NAME_BYTES}.partial" / MANIFEST)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            rule = "has a name that is too long for the names that are made from it."
            raise UsageError(f"output {str(target)!r}", rule, "Name it more shortly.") from error
