"""The shape of the tree in numbers: `python -m tests.house.shape`."""

import ast
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from tests.house.tree import SOURCE, functions, source_files, syntax

__all__ = [
    "duplicated_classes",
    "files_of_runs",
    "function_lengths",
    "import_share",
    "lines_by_package",
    "modules",
    "single_importers",
    "small_folders",
]

LEAST_IN_FOLDER = 4


def modules() -> list[Path]:
    """Every file of code, those that only name a package left out."""
    return [path for path in source_files() if path.name != "__init__.py"]


def lines_by_package() -> Counter[str]:
    """Lines of every package, those at the top under their own name."""
    found: Counter[str] = Counter()
    for path in source_files():
        found[path.relative_to(SOURCE).parts[0]] += len(path.read_text(encoding="utf-8").splitlines())
    return found


def import_share() -> float:
    """Share of code lines (neither empty, nor comment, nor docstring) that are imports or `__all__`."""
    imports = code = 0
    for path in source_files():
        tree = syntax(path)
        words = {
            line
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        lines = path.read_text(encoding="utf-8").splitlines()
        told = {n for n, line in enumerate(lines, 1) if not line.strip() or line.lstrip().startswith("#")}
        brought = {
            line
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        code += len(lines) - len(words | told)
        imports += len(brought - words - told)
    return imports / code


def small_folders() -> list[str]:
    """Packages with fewer than four modules."""
    inside = Counter(path.parent for path in modules())
    return [folder.relative_to(SOURCE).as_posix() for folder, number in inside.items() if number < LEAST_IN_FOLDER]


def duplicated_classes() -> dict[str, list[str]]:
    """Names that more than one class has, and where."""
    where: dict[str, list[str]] = defaultdict(list)
    for path in source_files():
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.ClassDef):
                where[node.name].append(path.relative_to(SOURCE).as_posix())
    return {name: places for name, places in where.items() if len(places) > 1}


def _dotted(path: Path) -> str:
    return ".".join(["understudy", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")


def single_importers() -> dict[str, str]:
    """Modules that exactly one other imports, and which."""
    known = {_dotted(path) for path in source_files()}
    importers: dict[str, set[str]] = defaultdict(set)
    for path in source_files():
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    importers[whole if whole in known else node.module].add(_dotted(path))
    return {
        _dotted(path): next(iter(importers[_dotted(path)])) for path in modules() if len(importers[_dotted(path)]) == 1
    }


def function_lengths() -> list[int]:
    """Lines of every function, sorted."""
    return sorted(
        (node.end_lineno or 0) - node.lineno + 1 for path in source_files() for node in functions(syntax(path))
    )


_TRACED = """
import inspect, sys, threading
from understudy.__main__ import main

source, found = sys.argv.pop(1), set()

def called(frame, event, _):
    code = frame.f_code
    if event != "call" or code.co_filename in found or not code.co_filename.startswith(source):
        return
    if not code.co_filename.endswith(".py") or not code.co_flags & inspect.CO_OPTIMIZED:
        return
    while (frame := frame.f_back) is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(source):
            return  # a file that is only being loaded
    found.add(code.co_filename)

threading.setprofile(called)
sys.setprofile(called)
try:
    main()
finally:
    sys.setprofile(None)
    print(len(found), file=sys.stderr)
"""
_SCHEMA = """\
understudy: 1
unit: row
columns:
  sex: {kind: category, labels: [F, M]}
  age: {kind: integer, lower: 0, upper: 99, bins: 10}
  city: {kind: category, labels: [Rome, Oslo, Bern]}
"""
_RUNS = {
    "synthesize --method aim": (
        "synthesize people.csv --schema schema.yaml --method aim --epsilon 1 --delta 1e-9 --quiet -o release"
    ),
    "evaluate": "evaluate people.csv release --quiet -o report.html",
}


def files_of_runs() -> dict[str, int]:
    """Files of which some function is called by a command, other than while modules are loaded."""
    with tempfile.TemporaryDirectory() as folder:
        cities = ("Rome", "Oslo", "Bern")
        rows = [f"{'FM'[row % 2]},{row * 7 % 90},{cities[row * row % 3]}" for row in range(500)]
        Path(folder, "people.csv").write_text("\n".join(["sex,age,city", *rows]), encoding="utf-8")
        Path(folder, "schema.yaml").write_text(_SCHEMA, encoding="utf-8")
        return {name: _files_of(command.split(), folder) for name, command in _RUNS.items()}


def _files_of(words: list[str], folder: str) -> int:
    command = [sys.executable, "-c", _TRACED, str(SOURCE), *words]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return int(run.stderr.splitlines()[-1])


def _print() -> None:
    lengths = [len(path.read_text(encoding="utf-8").splitlines()) for path in modules()]
    lines = lines_by_package()
    print(f"modules: {len(modules())} ({len(source_files())} files with the packages' own)")
    print(f"lines: {sum(lines.values()):,}; longest module {max(lengths)}, median {sorted(lengths)[len(lengths) // 2]}")
    print(
        "lines by package: "
        + ", ".join(f"{name.removesuffix('.py')} {number:,}" for name, number in lines.most_common())
    )
    print(f"imports: {100 * import_share():.1f} % of code lines")
    print(f"folders below {LEAST_IN_FOLDER} modules: {small_folders() or 0}")
    print(f"class names used twice: {duplicated_classes() or 0}")
    functions_ = function_lengths()
    print(f"functions: {len(functions_):,}, median {functions_[len(functions_) // 2]} lines, longest {functions_[-1]}")
    print("files that a run passes through: " + ", ".join(f"{one} {number}" for one, number in files_of_runs().items()))
    print("imported by one other module: " + ", ".join(f"{one} ({by})" for one, by in single_importers().items()))


if __name__ == "__main__":
    _print()
