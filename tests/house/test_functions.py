"""Short functions and few positional parameters."""

import ast
from pathlib import Path

from tests.house.tree import functions, relative, source_files, syntax

MOST_FUNCTION_LINES = 50
MOST_POSITIONAL = 5


def test_functions_are_short() -> None:
    long = [
        f"{relative(path)}: {node.name}, {node.end_lineno - node.lineno + 1} lines"
        for path in source_files()
        for node in functions(syntax(path))
        if node.end_lineno and node.end_lineno - node.lineno + 1 > MOST_FUNCTION_LINES
    ]
    assert not long


def _positional(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    names = [argument.arg for argument in node.args.posonlyargs + node.args.args]
    return len([name for name in names if name not in ("self", "cls")])


def _is_kernel(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    # numba compiles positional arguments only; kernels are private to their file.
    return any(
        name in ast.unparse(decorator)
        for decorator in node.decorator_list
        for name in ("njit", "compiled", "within_kernels")
    )


def _is_command(path: Path) -> bool:
    # Typer reads a command's options from its signature; users name them on the command line.
    return "cli" in path.parts


def test_few_positional_parameters() -> None:
    many = [
        f"{relative(path)}: {node.name}"
        for path in source_files()
        if not _is_command(path)
        for node in functions(syntax(path))
        if _positional(node) > MOST_POSITIONAL and not _is_kernel(node)
    ]
    assert not many, "make the rest keyword-only"
