"""Names say what a file holds; the tests mirror the source; Greek is spelled."""

import ast
import re
from pathlib import Path

import pytest

from tests.house.tree import SOURCE, TESTS, excused, relative, source_files, syntax

BANNED = {"utils", "util", "common", "helpers", "helper", "misc", "base", "core", "manager", "new", "old"}
ABBREVIATIONS = re.compile(r"(^|_)(eps|cl|wgt|df\d*|cfg|tmp|mech|meas|priv|marg)($|_)")


@pytest.mark.parametrize("path", source_files(), ids=relative)
def test_file_name_says_something(path: Path) -> None:
    words = set(path.stem.split("_"))
    assert not words & BANNED
    assert not re.search(r"(^|_)v?\d+$", path.stem), "a version number is not a name"


@pytest.mark.parametrize("path", source_files(), ids=relative)
def test_every_file_has_its_test_file(path: Path) -> None:
    if path.name in ("__init__.py", "__main__.py") or relative(path) in excused("mirror"):
        return
    mirror = TESTS / path.relative_to(SOURCE).parent / f"test_{path.name}"
    assert mirror.exists(), f"expected {relative(mirror)}"


@pytest.mark.parametrize("path", source_files(), ids=relative)
def test_names_are_words(path: Path) -> None:
    names = {node.id for node in ast.walk(syntax(path)) if isinstance(node, ast.Name)}
    names |= {node.arg for node in ast.walk(syntax(path)) if isinstance(node, ast.arg)}
    short = sorted(name for name in names if ABBREVIATIONS.search(name.lower()))
    assert not short
