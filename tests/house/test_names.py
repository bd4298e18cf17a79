"""Names say what a file holds; Greek is spelled; messages name arguments, and only the command line names its flags."""

import ast
import re

from tests.house.tree import ROOT, relative, source_files, syntax

BANNED = {"utils", "util", "common", "helpers", "helper", "misc", "base", "core", "manager", "new", "old"}
FLAG = re.compile(r"(?<![\w-])--[a-z]")
ABBREVIATIONS = re.compile(r"(^|_)(eps|cl|wgt|df\d*|cfg|tmp|mech|meas|priv|marg)($|_)")


def test_file_names_say_something() -> None:
    for path in source_files():
        assert not set(path.stem.split("_")) & BANNED, relative(path)
        assert not re.search(r"(^|_)v?\d+$", path.stem), f"{relative(path)}: a version number is not a name"


def test_names_are_words() -> None:
    for path in source_files():
        names = {node.id for node in ast.walk(syntax(path)) if isinstance(node, ast.Name)}
        names |= {node.arg for node in ast.walk(syntax(path)) if isinstance(node, ast.arg)}
        short = sorted(name for name in names if ABBREVIATIONS.search(name.lower()))
        assert not short, relative(path)


def test_no_message_outside_the_command_line_names_a_flag() -> None:
    named = [
        f"{relative(path)}:{node.lineno}: {node.value!r}"
        for path in source_files()
        if "cli" not in path.parts
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and FLAG.search(node.value)
    ]
    assert not named, "name the argument, as in delta=; cli/console.py makes a flag of it"


def test_modules_named_in_docstrings_exist() -> None:
    known = [path.as_posix() for folder in ("src", "benchmarks", "tests") for path in (ROOT / folder).rglob("*.py")]
    for path in source_files():
        for node in ast.walk(syntax(path)):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                continue
            for name in re.findall(r"(?<![\w/])(?:\w+/)*\w+\.py\b", ast.get_docstring(node) or ""):
                assert any(one.endswith(f"/{name}") for one in known), f"{relative(path)}: {name}"
