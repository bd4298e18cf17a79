"""What is mutated, which tests must notice, and how many of the mutants must be killed."""

import ast
import functools
from dataclasses import dataclass

from tests.house.tree import ROOT, SOURCE, TESTS
from tests.mutation.mutants import Mutant, mutants_of

SERVERS = {"databases", "datasets", "delta", "iceberg", "postgres", "spark", "spark_tasks", "sqlite", "stores"}
"""Modules of `counts` whose tests start servers or need engines (`make test-engines`)."""

COST_WORDS = {
    "cost", "costs", "split", "share", "shares", "rho", "epsilon", "delta", "granted", "left", "spent", "budget",
    "weights", "rate", "unit_rows", "sensitivity", "variance", "deviation", "noisy_step", "step_of", "fixed",
}  # fmt: skip
"""A statement of a method is about cost if it uses one of these names."""


@dataclass(frozen=True)
class Group:
    """Modules that share a bar. `tests`: files or folders of tests; `shared`: whether the fixtures of all tests are
    needed."""

    name: str
    bar: float
    tests: tuple[str, ...]
    shared: bool = False

    @property
    def modules(self) -> tuple[str, ...]:
        """Names such as `privacy.cost`."""
        if self.name == "statement":
            return ("release.statement",)
        found = sorted(path.stem for path in (SOURCE / self.name).glob("*.py"))
        return tuple(f"{self.name}.{stem}" for stem in found if stem != "__init__" and stem not in SERVERS)

    def mutants(self) -> list[Mutant]:
        """All mutants of the group's modules."""
        every = [mutant for module in self.modules for mutant in mutants_of(module, source_of(module))]
        return [mutant for mutant in every if _is_about_cost(mutant)] if self.name == "methods" else every

    def test_files(self) -> tuple[str, ...]:
        """Paths of test files from the root."""
        found = []
        for name in self.tests:
            path = TESTS / name
            found += sorted(path.glob("test_*.py")) if path.is_dir() else [path]
        return tuple(path.relative_to(ROOT).as_posix() for path in found)


_STATEMENT_TESTS = (
    *("statement", "wording", "account", "card_facts", "label", "earlier_formats", "selection_check", "training"),
    *("unread", "provenance", "check"),
)
GROUPS = {
    group.name: group
    for group in (
        Group("privacy", 0.95, ("privacy", "reference", "statistics", "methods/test_wide.py")),
        Group("counts", 0.90, ("counts", "testing/test_sources.py")),
        Group("codec", 0.90, ("codec",)),
        Group(
            "statement",
            0.90,
            tuple(f"release/test_{name}.py" for name in _STATEMENT_TESTS),
            shared=True,
        ),
        Group("methods", 0.90, ("methods", "reference")),
    )
}


def source_of(module: str) -> str:
    """The text of a module such as `privacy.cost`."""
    return path_of(module).read_text(encoding="utf-8")


def path_of(module: str):
    """Where it lies."""
    return SOURCE.joinpath(*module.split(".")).with_suffix(".py")


def _is_about_cost(mutant: Mutant) -> bool:
    return any(first <= mutant.line <= last for first, last in _cost_lines(mutant.module))


@functools.cache
def _cost_lines(module: str) -> tuple[tuple[int, int], ...]:
    """First and last line of every simple statement, and head of every compound one, that names a cost."""
    found = []
    for node in ast.walk(ast.parse(source_of(module))):
        if not isinstance(node, ast.stmt):
            continue
        inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        parts = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
        if any(_names(part) & COST_WORDS for part in parts):
            last = max((getattr(part, "end_lineno", node.lineno) or 0 for part in parts), default=node.lineno)
            found.append((node.lineno, last if inner else node.end_lineno or last))
    return tuple(found)


def _names(node: ast.AST) -> set[str]:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return names | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
