"""Short files, short functions, few files a folder, few positional parameters."""

import ast
from pathlib import Path

import pytest

from tests.house.tree import SOURCE, excused, files_of_tests, functions, relative, source_files, syntax

MOST_FILE_LINES = 400
MOST_FUNCTION_LINES = 50
MOST_FILES = 12
MOST_POSITIONAL = 5


@pytest.mark.parametrize("path", source_files() + files_of_tests(), ids=relative)
def test_file_is_short(path: Path) -> None:
    if relative(path) in excused("file_lines"):
        return
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_FILE_LINES, f"{lines} lines; split it by purpose"


@pytest.mark.parametrize("path", source_files(), ids=relative)
def test_functions_are_short(path: Path) -> None:
    if relative(path) in excused("function_lines"):
        return
    long = {
        node.name: node.end_lineno - node.lineno + 1
        for node in functions(syntax(path))
        if node.end_lineno and node.end_lineno - node.lineno + 1 > MOST_FUNCTION_LINES
    }
    assert not long


def test_folders_are_small() -> None:
    for folder in [SOURCE, *(path for path in SOURCE.rglob("*") if path.is_dir())]:
        files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(files) <= MOST_FILES, f"{relative(folder)} holds {len(files)} files"


def _positional(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    names = [argument.arg for argument in node.args.posonlyargs + node.args.args]
    return len([name for name in names if name not in ("self", "cls")])


def _is_kernel(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    # numba compiles positional arguments only; kernels are private to their file.
    return any(name in ast.unparse(decorator) for decorator in node.decorator_list for name in ("njit", "compiled"))


def _is_command(path: Path) -> bool:
    # Typer reads a command's options from its signature; users name them on the command line.
    return "cli" in path.parts


@pytest.mark.parametrize("path", source_files(), ids=relative)
def test_few_positional_parameters(path: Path) -> None:
    if relative(path) in excused("positional") or _is_command(path):
        return
    many = [
        node.name for node in functions(syntax(path)) if _positional(node) > MOST_POSITIONAL and not _is_kernel(node)
    ]
    assert not many, "make the rest keyword-only"
