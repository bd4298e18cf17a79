"""The folder as a set of files: exactly those that belong there, plain files only, each with its checksum."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from understudy.errors import Problem, ReleaseError
from understudy.models.plain_files import open_plain, read_json
from understudy.release.checks.effort import Effort
from understudy.release.folder import FORMAT, MANIFEST, stream_digest

__all__ = ["check_expected", "check_files", "walk"]

RESTORE = "Restore the folder from where it was published."
MOST_FILE_BYTES = 2**50
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
    extra = [name for name in present if name not in listed and name != MANIFEST]
    found += [Problem(_shown(name), "is not listed in the manifest.", "Remove it.") for name in extra]
    for name in sorted(set(present) & set(listed)):
        found += _content(folder / name, name, listed[name], effort or Effort())
    return found


def _content(path: Path, name: str, listed: tuple[int, str], effort: Effort) -> list[Problem]:
    """Findings about the bytes of one file."""
    with open_plain(path, MOST_FILE_BYTES) as source:
        start = source.read(2)
        found = []
        if path.suffix in _PICKLES or (len(start) == 2 and start[0] == 0x80 and start[1] <= 5):
            found.append(Problem(_shown(name), "looks like a pickle, which a release never holds.", "Do not open it."))
        size, digest = listed
        if os.fstat(source.fileno()).st_size != size:
            return [*found, Problem(_shown(name), "differs from its checksum in the manifest.", RESTORE)]
        if not effort.reads(size, f"the checksum of {_shown(name)}"):
            return found
        source.seek(0)
        if stream_digest(source) != digest:
            found.append(Problem(_shown(name), "differs from its checksum in the manifest.", RESTORE))
    return found


def check_expected(folder: Path, expected: Sequence[str]) -> list[Problem]:
    """Findings about files that every release of this shape has, and files that none has."""
    present, _ = walk(folder)
    missing = [
        Problem(name, "is missing from the release folder.", RESTORE) for name in expected if name not in present
    ]
    allowed = {*expected, MANIFEST}
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
    return name.encode("unicode_escape", "backslashreplace").decode("ascii")
