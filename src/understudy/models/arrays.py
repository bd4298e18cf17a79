"""Model files: one JSON document and raw arrays, with fixed names and no pickle.

A model folder may come from a stranger. Everything is checked before it is used: which files are there (no links, no
extras), how large they are, that each array is one-dimensional, of the expected type and exactly as long as its file.
"""

import json
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError

import numpy as np
import numpy.typing as npt

from understudy.errors import Problem, ReleaseError, ResourceError, UsageError
from understudy.marginals.domain import Domain
from understudy.models.plain_files import open_plain, read_json

__all__ = ["DOCUMENT", "ModelFiles", "read_document", "read_model_files", "write_model_files"]

DOCUMENT = "model.json"
_FORMAT = "understudy model"
_VERSION = 1
_ARRAY_BYTES = 2**36
_MEMORY_SHARE = 0.8
_HEADER_BYTES = 1024
_COLUMNS = 100_000
_CODES = 2**32


@dataclass(frozen=True, slots=True, eq=False)
class ModelFiles:
    """What a model folder holds: a JSON document and named one-dimensional arrays."""

    document: Mapping[str, object]
    arrays: Mapping[str, npt.NDArray[np.generic]]

    def number(self, key: str) -> float:
        """A number of the document that a float can hold."""
        value = self.document.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
            return float(value)
        raise _refusal(key, "must be a finite number.")

    def domain(self) -> Domain:
        """The domain stated in the document: a list of [column, number of codes]."""
        entries = self.document.get("domain")
        if not isinstance(entries, list) or not 0 < len(entries) <= _COLUMNS:
            raise _refusal("domain", f"must be a list of 1 to {_COLUMNS:,} columns.")
        sizes: dict[str, int] = {}
        for entry in entries:
            if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str) or entry[0] in sizes:
                raise _refusal("domain", "each entry must be [column, number of codes], each column once.")
            if type(entry[1]) is not int or not 0 < entry[1] <= _CODES:
                raise _refusal("domain", f"a column must have 1 to {_CODES:,} codes.")
            sizes[entry[0]] = entry[1]
        return Domain.of(sizes)


def write_model_files(folder: Path, files: ModelFiles) -> None:
    """Writes the document and the arrays into an existing empty folder, one fixed file name each."""
    if not folder.is_dir() or any(folder.iterdir()):
        raise UsageError(f"folder {folder.name!r}", "must exist and be empty.", "Choose another place.")
    for name, array in files.arrays.items():
        kind = array.dtype.newbyteorder("<")
        with (folder / f"{name}.npy").open("xb") as target:
            np.lib.format.write_array(target, np.ascontiguousarray(array, dtype=kind), (1, 0), allow_pickle=False)
    document = {"format": _FORMAT, "version": _VERSION, **files.document}
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    with (folder / DOCUMENT).open("x", encoding="utf-8") as written:
        written.write(text + "\n")


def read_model_files(folder: Path, kind: str, dtypes: Mapping[str, np.dtype[np.generic]]) -> ModelFiles:
    """Reads a folder that must hold the document and exactly these arrays.

    Raises:
        ReleaseError: if anything is missing, extra, linked, too large or of the wrong type.
    """
    document = read_document(folder)
    if document.get("kind") != kind:
        raise _refusal("kind", f"must be {kind!r}.")
    expected = {DOCUMENT, *(f"{name}.npy" for name in dtypes)}
    present = {entry.name for entry in os.scandir(folder)}
    if present != expected:
        names = ", ".join(sorted(expected))
        raise ReleaseError([Problem("model folder", f"must hold exactly {names}.", "Copy the whole folder again.")])
    return ModelFiles(document, {name: _read_array(folder / f"{name}.npy", dtype) for name, dtype in dtypes.items()})


def read_document(folder: Path) -> Mapping[str, object]:
    """The JSON document of a model folder, known to be an object of this format and version."""
    if folder.is_symlink() or not folder.is_dir():
        raise ReleaseError([Problem("model folder", "must be a folder, not a link.")])
    document = read_json(folder / DOCUMENT)
    if not isinstance(document, dict) or document.get("format") != _FORMAT or document.get("version") != _VERSION:
        raise ReleaseError([Problem(DOCUMENT, f"must state format {_FORMAT!r} and version {_VERSION}.")])
    return document


def _read_array(path: Path, dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    wrong = ReleaseError([Problem(path.name, f"must be a one-dimensional array of {dtype.name}, as long as its file.")])
    with open_plain(path, _ARRAY_BYTES) as source:
        try:
            if np.lib.format.read_magic(source) != (1, 0):
                raise wrong
            shape, _, found = np.lib.format.read_array_header_1_0(source, max_header_size=_HEADER_BYTES)
        except (ValueError, TypeError, SyntaxError, EOFError, KeyError, RecursionError, TokenError) as error:
            raise wrong from error
        body = os.fstat(source.fileno()).st_size - source.tell()
        if found != dtype or len(shape) != 1 or math.prod(shape) * dtype.itemsize != body:
            raise wrong
        _check_memory(path.name, body)
        array = np.fromfile(source, dtype=dtype, count=shape[0])
    if array.size != shape[0]:
        raise wrong
    return array.astype(dtype.newbyteorder("="), copy=False)


def _check_memory(name: str, size: int) -> None:
    limit = int(_MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    if size > limit:  # a file of holes takes no room on a disk
        raise ResourceError(f"array {name!r}", size, limit, "Use a machine with more memory.")


def _refusal(key: str, rule: str) -> ReleaseError:
    return ReleaseError([Problem(f"{DOCUMENT}: {key}", rule)])
