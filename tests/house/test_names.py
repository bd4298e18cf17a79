"""Names say what a file holds; Greek is spelled."""

import ast
import re
from pathlib import Path

import pytest

from tests.house.tree import relative, source_files, syntax

BANNED = {"utils", "util", "common", "helpers", "helper", "misc", "base", "core", "manager", "new", "old"}
ABBREVIATIONS = re.compile(r"(^|_)(eps|cl|wgt|df\d*|cfg|tmp|mech|meas|priv|marg)($|_)")


@pytest.mark.parametrize("path", source_files(), ids=relative)
def test_file_name_says_something(path: Path) -> None:
    words = set(path.stem.split("_"))
    assert not words & BANNED
    assert not re.search(r"(^|_)v?\d+$", path.stem), "a version number is not a name"


@pytest.mark.parametrize("path", source_files(), ids=relative)
def test_names_are_words(path: Path) -> None:
    names = {node.id for node in ast.walk(syntax(path)) if isinstance(node, ast.Name)}
    names |= {node.arg for node in ast.walk(syntax(path)) if isinstance(node, ast.arg)}
    short = sorted(name for name in names if ABBREVIATIONS.search(name.lower()))
    assert not short
