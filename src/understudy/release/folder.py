"""A folder that appears at once or not at all: written beside its target, synced, listed, then renamed.

A process that is killed leaves the target absent; the unfinished sibling (its name starts with a dot and ends in
`.partial`) can be deleted. Names are fixed, links are refused, an existing target is never touched.

What must be on record before anybody can see the target (`completing`) is called when the sibling is complete, just
before the rename. From that call on the sibling stays, unless it was refused: it is the finished folder, to be renamed
by hand if the process ends before that.
"""

import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from understudy.errors import InputError, UnderstudyError, UsageError
from understudy.progress import standing

__all__ = [
    "MANIFEST",
    "RELEASE_FILE",
    "check_free",
    "file_digest",
    "listed_files",
    "published",
    "refuse_release_folder",
    "sync",
    "sync_folder",
]

MANIFEST = "manifest.json"
RELEASE_FILE = "statement.json"
FORMAT = "understudy manifest, format 1"
DIGEST_BYTES = 2**20
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
        sync_folder(staging)
        check_free(target)
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
    try:
        os.rename(staging, final)
        sync(final.parent)
    except OSError as error:
        rule = f"cannot be put in place, but is complete in {str(staging)!r}."
        raise InputError(f"output {str(target)!r}", rule, "Rename that folder by hand.") from error


def listed_files(folder: Path) -> list[str]:
    """Every file below the folder but the manifest, as sorted relative names with forward slashes."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or path.is_file()]
    return sorted(name for name in names if name != MANIFEST)


def file_digest(path: Path) -> str:
    """SHA-256 of a file, read in bounded pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
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
