"""The folder as a set of files: exactly those that belong there, plain files only, each with its checksum."""

import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from understudy.errors import Problem, ReleaseError
from understudy.release.folder import FORMAT, MANIFEST, file_digest
from understudy.release.store import read_json

__all__ = ["check_expected", "check_files"]

RESTORE = "Restore the folder from where it was published."
_ARRAY = re.compile(r"model/[1-9][0-9]*/[a-z_]+\.npy")


def check_files(folder: Path) -> list[Problem]:
    """Findings about links, special files, checksums, and files that are missing or too many."""
    present, found = _walk(folder)
    try:
        listed = _manifest(folder)
    except ReleaseError as error:
        return [*found, *error.problems]
    found += [
        Problem(name, "is listed in the manifest but missing.", RESTORE) for name in listed if name not in present
    ]
    extra = [name for name in present if name not in listed and name != MANIFEST]
    found += [Problem(_shown(name), "is not listed in the manifest.", "Remove it.") for name in extra]
    for name in sorted(set(present) & set(listed)):
        size, digest = listed[name]
        path = folder / name
        if path.stat().st_size != size or file_digest(path) != digest:
            found.append(Problem(name, "differs from its checksum in the manifest.", RESTORE))
        if _looks_pickled(path):
            found.append(Problem(name, "looks like a pickle, which a release never holds.", "Do not open it."))
    return found


def check_expected(folder: Path, expected: Sequence[str]) -> list[Problem]:
    """Findings about files that every release of this shape has, and files that none has."""
    present, _ = _walk(folder)
    missing = [
        Problem(name, "is missing from the release folder.", RESTORE) for name in expected if name not in present
    ]
    allowed = {*expected, MANIFEST}
    strange = [name for name in present if name not in allowed and not _ARRAY.fullmatch(name)]
    return missing + [Problem(_shown(name), "does not belong in a release folder.", "Remove it.") for name in strange]


def _walk(folder: Path) -> tuple[list[str], list[Problem]]:
    """Plain files below the folder, and findings about everything that is neither a plain file nor a folder."""
    files: list[str] = []
    found: list[Problem] = []
    for place, folders, names in os.walk(folder, followlinks=False):
        for name in [*folders, *names]:
            path = Path(place) / name
            relative = path.relative_to(folder).as_posix()
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                found.append(Problem(_shown(relative), "is a link; a release holds plain files.", "Remove it."))
            elif stat.S_ISREG(mode):
                files.append(relative)
            elif not stat.S_ISDIR(mode):
                found.append(Problem(_shown(relative), "is not a plain file.", "Remove it."))
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


def _looks_pickled(path: Path) -> bool:
    if path.suffix in {".pkl", ".pickle", ".joblib"}:
        return True
    with path.open("rb") as stream:
        start = stream.read(2)
    return len(start) == 2 and start[0] == 0x80 and start[1] <= 5


def _shown(name: str) -> str:
    return name.encode("unicode_escape").decode()
