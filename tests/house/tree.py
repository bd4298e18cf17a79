"""What the house tests look at: the source tree, parsed once."""

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "understudy"
TESTS = ROOT / "tests"


@cache
def source_files() -> tuple[Path, ...]:
    return tuple(sorted(SOURCE.rglob("*.py")))


@cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def excused(rule: str) -> set[str]:
    listed = tomllib.loads((TESTS / "house" / "exceptions.toml").read_text(encoding="utf-8"))
    for path, entry in listed.items():
        assert entry.get("reason"), f"{path}: an exception needs a reason"
        assert entry.get("owner"), f"{path}: an exception needs an owner"
        assert (ROOT / path).exists(), f"{path}: excused but gone; delete the exception"
    return {path for path, entry in listed.items() if entry["rule"] == rule}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
