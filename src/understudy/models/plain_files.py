"""Files that may come from a stranger: opened as plain files of bounded size, parsed within bounded memory.

A folder that somebody sends may hold links to devices, pipes that never end, files with a terabyte of holes, and small
documents that grow a thousandfold when they are parsed. Whoever reads a release folder opens its files here.
"""

import json
import os
import stat
from pathlib import Path
from typing import BinaryIO

from understudy.errors import Problem, ReleaseError

__all__ = ["MOST_DOCUMENT_BYTES", "open_plain", "parse_json", "read_json", "read_plain"]

MOST_DOCUMENT_BYTES = 2**26
MOST_VALUES = 4_000_000
"""Values of a JSON document at most: each takes up to 100 bytes when it is parsed."""


def open_plain(path: Path, most_bytes: int) -> BinaryIO:
    """The file opened for reading; links, devices, pipes and oversized files are refused, and none is waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise ReleaseError([Problem(_name(path), "is missing, unreadable or a link.")]) from error
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > most_bytes:
        os.close(descriptor)
        raise ReleaseError([Problem(_name(path), f"must be a plain file of at most {most_bytes:,} bytes.")])
    return os.fdopen(descriptor, "rb")


def read_plain(path: Path, most_bytes: int = MOST_DOCUMENT_BYTES) -> bytes:
    """The content of a plain file of bounded size."""
    with open_plain(path, most_bytes) as source:
        content = source.read(most_bytes + 1)  # it may have grown since it was opened
    if len(content) > most_bytes:
        raise ReleaseError([Problem(_name(path), f"must be a plain file of at most {most_bytes:,} bytes.")])
    return content


def read_json(path: Path, most_bytes: int = MOST_DOCUMENT_BYTES) -> object:
    """The JSON document in a plain file of bounded size."""
    return parse_json(read_plain(path, most_bytes), _name(path))


def parse_json(content: bytes, name: str) -> object:
    """The JSON document: UTF-8, every key once, finite numbers, and not more values than memory is kept for."""
    try:
        if sum(content.count(mark) for mark in (b",", b"[", b"{", b":")) > MOST_VALUES:
            raise ValueError("too many values")
        return json.loads(content.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ReleaseError([Problem(name, "is not a JSON document.", "Restore the folder.")]) from error


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears twice")
    return found


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is not a number")


def _name(path: Path) -> str:
    return path.name.encode("unicode_escape", "backslashreplace").decode("ascii")
