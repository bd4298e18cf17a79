"""The files of a folder: how much space they will take, how a folder appears at once, how a stranger's is read.

Space
-----
Forecast from public facts alone, so that what cannot fit is refused beforehand. A column of labels or of few numbers is
written as bit-packed indices, so a row takes about the sum of log₂(values) bits in Parquet; in text it takes as many
bytes as its values have characters, and in memory the width of their types. That is a forecast and no bound: skewed
columns compress better, headers and footers come on top.

A folder that appears at once or not at all
-------------------------------------------
It is written beside its target, synced, listed, then renamed. A process that is killed leaves the target absent and an
unfinished sibling (its name starts with a dot and ends in `.partial`), which the next one that reserves the target
removes (`clear_unfinished`). Names are fixed, links are refused, an existing target is never touched.

What must be on record before anybody can see the target (`completing`) is called when the sibling is complete, just
before the rename. From that call on the sibling stays, unless it was refused: it is the finished folder. If it cannot
be renamed, or the process ends before that, it waits beside the target (`waiting_folders`). The next command that names
the target puts it in place: the one that would write there, or one that would read what is there (`finish_waiting`).

A manifest appears as a whole or not at all, as the last file; so a sibling with a manifest is complete, and one
without is not. Whoever writes a sibling holds a lock on it, which the operating system lets go when the process ends,
however it ends; so nobody finishes or removes what another process is still at work on. Nobody touches a sibling of
another user: in a folder that several people may write to, any of them could leave one. Where the file system has no
locks, nothing is removed, and only who reserved the target finishes anything.

Whoever pays for what goes into a folder reserves the target first (`reserved`), so that a second process is refused
before it pays as well. A reservation is a lock on a file beside the target; the operating system lets go of it when the
process ends, however it ends.

Files and folders carry one fixed time instead of the clock's: how far apart two files were written would tell how long
the work between them took, and that depends on private rows. What cannot be set (when an inode was changed or made)
stays on the disk of the publisher; copies do not take it along.

Folders that may come from a stranger
-------------------------------------
A folder is the set of files that belong there: plain files only, each with its checksum. A few kilobytes on a disk can
stand for terabytes of zeros or billions of rows, so whatever grows with a folder's content has a limit, and what lies
beyond it is named instead of being read, unless `verify` is told to look at everything.

A bill of materials: what was installed
---------------------------------------
One small file in CycloneDX form lists understudy and every installed package that it requires, directly or through
others, by name and version. That depends on the machine and not on any row, so it tells nothing private; it has no time
and no serial number, so that the same installation writes the same bytes.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import BinaryIO

from understudy.codec.axes import Continuum, axis_of
from understudy.errors import InputError, Problem, ReleaseError, ResourceError, UnderstudyError, UsageError
from understudy.folders import locked, sync, write_durably
from understudy.models.model import open_plain, read_json
from understudy.progress import standing
from understudy.schema import Boolean, Category, Column, Cut, Derived, OpenCategory, Schema

MEMORY_SHARE = 0.8
SPARE_BYTES = 2**24
TEXT = (".csv", ".tsv")
STATISTICS = (".dta", ".sav")
"""Files of Stata and SPSS."""
WORKBOOK = ".xlsx"
_WIDE = (*STATISTICS, ".arrow", ".feather")
"""Files that hold every value in full width."""
_WIDE_BITS = 64
_FLOAT_TEXT = 18
_OPEN_LABEL = 16
"""Characters of a label that is not known yet."""


def row_bytes(schema: Schema, suffix: str = ".parquet") -> float:
    """Bytes of one synthetic row in a file of that kind.

    >>> from understudy.schema import Unit
    >>> sex = Category(name="sex", labels=("F", "M"), missing=False)
    >>> row_bytes(Schema(columns=(sex,), unit=Unit(), unreadable="drop"))
    0.125
    """
    if suffix.lower() in (*TEXT, WORKBOOK):  # a workbook is text, compressed about as much as its marks add
        return sum(_characters(column) + 1 for column in schema.columns)
    if suffix.lower() in _WIDE:
        return sum(max(8.0, _characters(column)) for column in schema.columns)
    return sum(_bits(column) for column in schema.columns) / 8


def file_bytes(schema: Schema, rows: int, suffix: str = ".parquet") -> int:
    """Bytes of so many synthetic rows in files of that kind."""
    return rows * math.ceil(8 * row_bytes(schema, suffix)) // 8  # in whole numbers: somebody may ask for 10⁴⁰⁰


def rows_that_fit(schema: Schema, place: Path, copies: int = 1) -> int:
    """How many rows each of that many files can have on the disk that holds `place`."""
    free = max(0, shutil.disk_usage(place).free - SPARE_BYTES)
    return int(free / (copies * row_bytes(schema)))


def check_room(schema: Schema, rows: Iterable[int], place: Path, suffix: str = ".parquet") -> None:
    """Raises ResourceError unless files of so many rows fit on the disk that holds `place`."""
    check_bytes("writing the synthetic rows to disk", file_bytes(schema, sum(rows), suffix), place)


def check_bytes(what: str, needed: int, place: Path) -> None:
    """Raises ResourceError unless so many bytes, and some to spare, are free on the disk that holds `place`."""
    free = shutil.disk_usage(place).free
    if needed + SPARE_BYTES > free:
        fix = "Ask for fewer rows, free some space or choose another disk."
        raise ResourceError(what, needed + SPARE_BYTES, free, fix)


def check_frame(schema: Schema, rows: int) -> None:
    """Raises ResourceError unless a frame of so many rows fits in most of the machine's memory."""
    needed = rows * math.ceil(sum(_frame_bytes(column) for column in schema.columns))
    limit = machine_bytes()
    if needed > limit:
        fix = "Ask for fewer rows, or write them to a file with sample_to, which holds few of them in memory."
        raise ResourceError("holding the synthetic rows in memory", needed, limit, fix)


def machine_bytes() -> int:
    """Most of the machine's memory."""
    return int(MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _labels(column: Column) -> Sequence[str] | None:
    """The labels of a column that has some, as far as they are known."""
    if isinstance(column, Derived):
        formula = column.formula
        return formula.labels if isinstance(formula, Cut) else tuple(getattr(formula, "entries", {}).values()) or None
    if isinstance(column, Boolean):
        return ("false", "true")
    return column.labels if isinstance(column, Category) else None


def _bits(column: Column) -> float:
    """log₂ of how many values the column has, and at least one bit."""
    labels = _labels(column)
    if labels is not None:
        values = len(labels) + (getattr(column, "other", None) is not None)
    elif isinstance(column, OpenCategory):
        values = column.most_labels + 1
    elif isinstance(column, Derived):
        return _WIDE_BITS
    else:
        axis = axis_of(column)
        if isinstance(axis.support, Continuum):
            return _WIDE_BITS
        values = axis.support.points(axis.lower, axis.upper) + 1 + len(getattr(column, "special", ()))
    return min(_WIDE_BITS, max(1.0, math.log2(max(values + column.missing, 1))))


def _characters(column: Column) -> float:
    """Characters of a value, on average over the labels that are known."""
    labels = _labels(column)
    if labels is not None:
        return sum(len(label.encode("utf-8", "replace")) for label in labels) / max(len(labels), 1)
    if isinstance(column, OpenCategory | Derived):
        return _OPEN_LABEL
    axis = axis_of(column)
    wide = _FLOAT_TEXT if isinstance(axis.support, Continuum) and axis.support.decimals is None else 0
    return max(len(axis.text(axis.lower)), len(axis.text(axis.upper)), wide)


def _frame_bytes(column: Column) -> float:
    if _labels(column) is not None or isinstance(column, OpenCategory):
        return 1 if isinstance(column, Boolean) else 4 + _characters(column)
    return 8


FILE_BYTES = 2**34
CELLS = 2**27
NOISY_VALUES = 2**24
MODEL_BYTES = 2**28
PLANNED_COLUMNS = 300
"""Up to so many columns every list of their pairs is planned in ten seconds."""


@dataclass(slots=True)
class Effort:
    """What may still be read, what was not checked, and what cannot be. Without limits all that can be is."""

    file_bytes: float = math.inf
    cells: float = math.inf
    noisy_values: int | None = None
    model_bytes: float = math.inf
    columns: float = math.inf
    unchecked: list[str] = field(default_factory=list)
    believed: list[str] = field(default_factory=list)

    @classmethod
    def limited(cls) -> "Effort":
        """Enough for about 100 million values; at most a minute and a GiB of memory."""
        return cls(FILE_BYTES, CELLS, NOISY_VALUES, MODEL_BYTES, PLANNED_COLUMNS)

    def reads(self, size: int, what: str) -> bool:
        """Whether a file of so many bytes may still be read; if not, `what` is noted as unchecked."""
        if size > self.file_bytes:
            self.unchecked.append(what)
            return False
        self.file_bytes -= size
        return True


MANIFEST = "manifest.json"
SIGNATURE = "signature.json"
"""Written into a folder after it was published, so that no manifest lists it."""
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
    # As it was written and as it resolves: a link inside or around the path could otherwise lead into a release.
    for parent in dict.fromkeys((place, *place.parents, place.resolve(), *place.resolve().parents)):
        if (parent / RELEASE_FILE).is_file():
            rule = "lies in a release folder, which holds what was released and nothing else."
            raise UsageError(f"output {str(target)!r}", rule, "Write it elsewhere.")


def check_free(target: Path) -> None:
    """Raises unless `target` is a possible name, new, outside every release, and its parent can be written."""
    _check_name(target)
    # A link that leads nowhere does not exist and would still be written through.
    if target.is_symlink() or target.exists():
        kind = "link" if target.is_symlink() else "folder" if target.is_dir() else "file"
        raise UsageError(f"output {str(target)!r}", f"is a {kind} that exists already.", "Name another or remove it.")
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
    # A lock and not the file's being there: a process that was killed leaves the file, but never a lock.
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
    while True:  # a holder that removed it between our opening and our locking leaves the name to whoever is next
        try:
            handle = locked(path)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return None
            rule = "is being written by another process."
            fix = "Wait for it or name another folder; nothing was charged."
            raise UsageError(f"output {str(target)!r}", rule, fix) from error
        if handle is not None:
            return handle


@contextmanager
def published(target: Path, completing: Callable[[], None] | None = None) -> Iterator[Path]:
    """An empty folder beside the target; when the block ends well it is listed, synced and renamed to the target.

    `completing` is called in between, for what was paid for; if it refuses (UnderstudyError), the folder goes and
    nothing is published.
    """
    check_free(target)
    final = target.absolute()
    staging, handle = _staging(final)
    try:
        try:
            yield staging
            # Last of all files, so that a folder with a manifest is a whole one.
            _write_manifest(staging)
            seal(staging)
        except BaseException:
            _discard(staging, final)
            raise
        try:
            if completing is not None:
                standing().completing(staging, final)
                # On record before the rename: a release that people can read already must not be made a second time.
                completing()
        except UnderstudyError:  # refused: nobody may see it. Anything else may have struck after it was put on record.
            _discard(staging, final)
            raise
        put_in_place(staging, target)
    finally:
        if handle is not None:
            os.close(handle)


def _discard(staging: Path, final: Path) -> None:
    """Removes a folder; where a disk that failed may keep it, and it may be whole by then, that goes on record."""
    shutil.rmtree(staging, ignore_errors=True)
    try:
        (staging / MANIFEST).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError:
        pass
    standing().unsure(final)


def _staging(final: Path) -> tuple[Path, int | None]:
    """A new folder beside the target, and the lock that says that this process is at work on it (None: no locks)."""
    while True:  # whoever clears up may have taken it for a dead one between its making and its locking
        # Beside the target, because a rename is atomic within one file system only.
        staging = final.parent / f".{final.name}.{secrets.token_hex(NAME_BYTES)}.partial"
        staging.mkdir()
        try:
            handle = _locked_folder(staging)
        except (BlockingIOError, FileNotFoundError):
            continue
        except OSError:
            return staging, None
        if staging.exists():
            return staging, handle
        os.close(handle)


def _locked_folder(folder: Path, kind: int = fcntl.LOCK_EX) -> int:
    """The lock on a folder; raises BlockingIOError if another process holds it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle


def put_in_place(staging: Path, target: Path) -> None:
    """Renames a complete folder to its target; if that cannot be done the folder stays, and the error names it."""
    complete = f"is complete in {str(staging)!r} but could not be put in place"
    fix = "Once the name is free and can be written, run the same command again; do not delete that folder."
    try:
        check_free(target)
        # A folder renamed over an existing one would fail or replace it if it is empty; `check_free` asked just before.
        os.rename(staging, target.absolute())
    except UsageError as error:
        raise InputError(
            f"output {str(target)!r}", f"{complete}: the name has been taken in the meantime.", fix
        ) from error
    except OSError as error:
        raise InputError(f"output {str(target)!r}", f"{complete}.", fix) from error
    with contextlib.suppress(OSError):  # it is in place; only a loss of power in this moment could undo that
        sync(target.absolute().parent)


def waiting_folders(target: Path) -> list[Path]:
    """Complete folders that a process left beside the target because it ended before it could put them in place."""
    return [one for one in _left_beside(target) if (one / MANIFEST).is_file()]


def clear_unfinished(target: Path) -> None:
    """Removes what killed processes left half-written beside a target that this process has reserved."""
    for folder in _left_beside(target):
        if (folder / MANIFEST).exists():
            continue
        with contextlib.suppress(OSError):  # no locks here, or not ours to remove: it stays
            handle = _locked_folder(folder)
            if not (folder / MANIFEST).exists():  # it may have been completed before it could be held
                shutil.rmtree(folder, ignore_errors=True)
            os.close(handle)


def finish_waiting(target: Path) -> bool:
    """Puts the one complete release that waits beside an absent target in place; whether it did.

    For whoever would read the target. It changes nothing where that is not certain to be right: where a process is at
    work, where a run keeps a state to go on from (its ledger must tell which release counts), where files were altered.
    """
    final = target.absolute()
    try:
        if os.path.lexists(final) or not waiting_folders(final):
            return False
        with reserved(final):  # first of all: a run that saw the folder held, and not the name, would pay once more
            return not working_place(final).exists() and any(_finish(one, final) for one in waiting_folders(final))
    except (UnderstudyError, OSError):
        return False


def _finish(folder: Path, final: Path) -> bool:
    """Puts a folder in place if it is a whole release."""
    handle = _locked_folder(folder)
    try:
        # Checked against its own manifest: a disk that failed may have lost parts of it.
        whole = (folder / RELEASE_FILE).is_file() and not check_files(folder)
        if whole:
            seal(folder)
            put_in_place(folder, final)
        return whole
    finally:
        os.close(handle)


def working_place(target: Path) -> Path:
    """Where a run that writes to `target` keeps its state.

    >>> working_place(Path("/data/release")).name
    '.release.working'
    """
    final = target.absolute()
    return final.parent / f".{final.name}.working"


def _left_beside(target: Path) -> list[Path]:
    """Folders of this user under first names of the target that no living process is known to work on."""
    final = target.absolute()
    start = f".{final.name}."
    found = [entry for entry in final.parent.iterdir() if entry.name.startswith(start) and entry.suffix == ".partial"]
    return sorted(one for one in found if _is_own_folder(one) and not _is_at_work(one))


def _is_own_folder(path: Path) -> bool:
    """Whether it is a folder, no link, and this user's: in a shared folder others could leave some under such names."""
    try:
        status = path.lstat()
    except FileNotFoundError:  # put in place or removed since
        return False
    # Ours alone. In a shared folder anybody could leave a folder under this name and have it published as our release.
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _is_at_work(folder: Path) -> bool:
    """Whether another process holds the folder; without locks nobody can tell, and a reservation has to do."""
    try:
        os.close(_locked_folder(folder, fcntl.LOCK_SH))  # shared, so that nobody takes whoever looks for one at work
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def seal(folder: Path) -> None:
    """Gives every file and folder the fixed time and waits until all of it is on disk."""
    for path in [*folder.rglob("*"), folder]:
        # One time for all: how far apart files were written tells how long private rows took.
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
    write_durably(folder / MANIFEST, text.encode() + b"\n", for_all=True)


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
            raise UsageError(f"output {str(target)!r}", rule, "Choose a shorter name.") from error


RESTORE = "Restore the folder from where it was published."
MOST_LISTED_FILE_BYTES = 2**50
MOST_ENTRIES = 50_000
DEEPEST = 2
_PICKLES = {".pkl", ".pickle", ".joblib"}
_ARRAY = re.compile(r"model/[1-9][0-9]*/[a-z_]+\.npy")


def check_files(folder: Path, effort: Effort | None = None) -> list[Problem]:
    """Findings about links, special files, checksums, and files that are missing or too many."""
    present, found = walk(folder)
    try:
        listed = _manifest(folder)
    except ReleaseError as error:
        return [*found, *error.problems]
    found += [
        Problem(_shown(name), "is listed in the manifest but missing.", RESTORE)
        for name in listed
        if name not in set(present)
    ]
    extra = [name for name in present if name not in listed and name not in (MANIFEST, SIGNATURE)]
    found += [Problem(_shown(name), "is not listed in the manifest.", "Remove it.") for name in extra]
    for name in sorted(set(present) & set(listed)):
        found += _content(folder / name, name, listed[name], effort or Effort())
    return found


def _content(path: Path, name: str, listed: tuple[int, str], effort: Effort) -> list[Problem]:
    """Findings about the bytes of one file."""
    with open_plain(path, MOST_LISTED_FILE_BYTES) as source:
        start = source.read(2)
        found = []
        # By its first bytes as well: what opens a file goes by content, whatever the name says.
        if path.suffix in _PICKLES or (len(start) == 2 and start[0] == 0x80 and start[1] <= 5):
            found.append(Problem(_shown(name), "looks like a pickle, which a release never holds.", "Do not open it."))
        size, digest = listed
        # The size first: a file blown up with holes is refused without reading it.
        if os.fstat(source.fileno()).st_size != size:
            return [*found, Problem(_shown(name), "differs from its checksum in the manifest.", RESTORE)]
        if not effort.reads(size, f"the checksum of {_shown(name)}"):
            return found
        source.seek(0)
        if stream_digest(source) != digest:
            found.append(Problem(_shown(name), "differs from its checksum in the manifest.", RESTORE))
    return found


def check_expected(folder: Path, expected: Sequence[str], optional: Sequence[str] = ()) -> list[Problem]:
    """Findings about files that every release of this shape has, and files that none has."""
    present, _ = walk(folder)
    missing = [
        Problem(name, "is missing from the release folder.", RESTORE) for name in expected if name not in present
    ]
    allowed = {*expected, *optional, MANIFEST, SIGNATURE}
    strange = [name for name in present if name not in allowed and not _ARRAY.fullmatch(name)]
    return missing + [Problem(_shown(name), "does not belong in a release folder.", "Remove it.") for name in strange]


def walk(folder: Path) -> tuple[list[str], list[Problem]]:
    """Plain files below the folder, and findings about everything that is neither a plain file nor a folder of it."""
    files: list[str] = []
    found: list[Problem] = []
    waiting = [("", 0)]
    entries = 0
    while waiting:
        inside, depth = waiting.pop()
        # Entry by entry, with a limit: a folder of a stranger may hold millions, or folders without end.
        for entry in os.scandir(folder / inside):
            entries += 1
            if entries > MOST_ENTRIES:
                return sorted(files), [*found, Problem("folder", f"holds more than {MOST_ENTRIES:,} files.", RESTORE)]
            name = f"{inside}{entry.name}"
            if entry.is_symlink():
                found.append(Problem(_shown(name), "is a link; a release holds plain files.", "Remove it."))
            elif entry.is_file(follow_symlinks=False):
                files.append(name)
            elif entry.is_dir(follow_symlinks=False) and depth < DEEPEST:
                waiting.append((f"{name}/", depth + 1))
            else:
                found.append(Problem(_shown(name), "is not a plain file.", "Remove it."))
    return sorted(files), found


def _manifest(folder: Path) -> dict[str, tuple[int, str]]:
    path = folder / MANIFEST
    if not path.is_file() or path.is_symlink():
        raise ReleaseError([Problem(MANIFEST, "is missing, so the folder is not complete.", RESTORE)])
    document = read_json(path)
    files = document.get("files") if isinstance(document, Mapping) and document.get("format") == FORMAT else None
    if not isinstance(files, Mapping):
        raise ReleaseError([Problem(MANIFEST, "does not have the form of a manifest.", RESTORE)])
    listed = {}
    for name, entry in files.items():
        size, digest = (entry.get("bytes"), entry.get("sha256")) if isinstance(entry, Mapping) else (None, None)
        if type(size) is not int or not isinstance(digest, str):
            raise ReleaseError([Problem(MANIFEST, "does not have the form of a manifest.", RESTORE)])
        listed[str(name)] = (size, digest)
    return listed


def _shown(name: str) -> str:
    # Names come from a stranger, and a terminal would obey control characters in them.
    return name.encode("unicode_escape", "backslashreplace").decode("ascii")


PACKAGES_FILE = "packages.cdx.json"
_BILL_KEYS = {"bomFormat", "specVersion", "version", "metadata", "components"}
_FIX = "Get the folder from its publisher again."
_PARTS = {"type", "name", "version", "purl"}
_LONGEST = 1000
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@cache
def packages_text() -> str:
    """The bill of materials of this installation."""
    root, *others = _component("understudy"), *map(_component, _required())
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**root, "type": "application"}},
        "components": others,
    }
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def check_packages(folder: Path) -> list[Problem]:
    """Findings about the form of the bill of materials in a folder; one without it is of an earlier version."""
    if not (folder / PACKAGES_FILE).exists():
        return []
    document = read_json(folder / PACKAGES_FILE)
    try:
        if not isinstance(document, dict) or set(document) != _BILL_KEYS or document["bomFormat"] != "CycloneDX":
            raise ValueError("keys")
        for part in (document["metadata"]["component"], *document["components"]):
            if set(part) != _PARTS or not all(isinstance(text, str) and len(text) < _LONGEST for text in part.values()):
                raise ValueError("component")
    except (ValueError, TypeError, KeyError):
        return [Problem(PACKAGES_FILE, "does not have the form of a bill of materials.", _FIX)]
    return []


def _required() -> list[str]:
    """Normalised names of installed packages that understudy reaches through requirements."""
    found: set[str] = set()
    waiting = ["understudy"]
    while waiting:
        try:
            requires = distribution(waiting.pop()).requires or []
        except PackageNotFoundError:
            continue
        names = {_normal(match[0]) for match in map(_PACKAGE.match, requires) if match}
        fresh = {name for name in names - found - {"understudy"} if _is_installed(name)}
        found |= fresh
        waiting += fresh
    return sorted(found)


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _component(name: str) -> dict[str, str]:
    version = distribution(name).version
    return {"type": "library", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
