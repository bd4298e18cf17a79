"""The studio sees public names, charts and pages; and its extra is needed only when it is started."""

import ast
import subprocess
import sys
from pathlib import Path

import understudy
from tests.house.tree import SOURCE, relative, syntax

FILES = tuple(sorted((SOURCE / "studio").glob("*.py")))
ALLOWED = ("understudy.studio", "understudy.report", "understudy.charts")
ENGINES = {"numpy", "pyarrow", "duckdb", "pandas", "polars", "narwhals", "sqlite3", "yaml", "importlib"}


def strange_names(tree: ast.AST) -> set[str]:
    """What a file takes from behind the wall: modules, names that are not public, what others keep to themselves."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {
                one.name
                for one in node.names
                if _is_behind(one.name) or (one.name != "understudy" and one.asname == "us")
            }
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} if _is_behind(node.module) else set()
            found |= {one.name for one in node.names if node.module == "understudy" and one.name not in ("studio",)}
        elif isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if isinstance(node.value, ast.Name) and node.value.id == "us" and node.attr not in understudy.__all__:
                found.add(f"us.{node.attr}")
            if node.attr.startswith("_") and not own and node.attr not in ("__name__", "__init__"):
                found.add(node.attr)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "import_module",
            "getattr",
            "vars",
            "__import__",
        ):
            found |= _asked_of(node)
    return found


def _is_behind(module: str) -> bool:
    top = module.split(".")[0]
    if top == "understudy":
        return module != "understudy" and not module.startswith(ALLOWED)
    return top in ENGINES and module != "importlib.util"


def _asked_of(node: ast.Call) -> set[str]:
    asked = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    harmless = (
        all(not one.startswith("_") or one == "__notes__" for one in asked) and ast.unparse(node.func) == "getattr"
    )
    return set() if asked and harmless else {ast.unparse(node)}


def test_the_studio_uses_public_names_alone() -> None:
    assert len(FILES) > 5
    for path in FILES:
        assert strange_names(syntax(path)) == set(), relative(path)


def test_a_name_from_behind_the_wall_is_noticed() -> None:
    code = "import understudy as us, numpy\nfrom understudy.counts.files import x\nfrom understudy import privacy\n"
    code += "us.open_secret(); us.Ledger._wait; getattr(us, '_x'); import understudy.counts.files as us\n"
    found = {"numpy", "understudy.counts.files", "privacy", "us.open_secret", "_wait", "getattr(us, '_x')"}
    assert strange_names(ast.parse(code)) == found


def test_nothing_but_the_process_of_a_run_gets_rows() -> None:
    """Names that would open a table are not even mentioned."""
    for path in FILES:
        used = {ast.unparse(node) for node in ast.walk(syntax(path)) if isinstance(node, ast.Attribute)}
        assert not used & {"us.open_table", "us.read_table", "us.read_database", "us.choose"}, relative(path)
        if path.name != "worker.py":
            assert not used & {"us.synthesize", "us.evaluate", "us.Synthesizer", "us.compare"}, relative(path)


def test_methods_are_compared_on_public_rows_alone() -> None:
    calls = [node for node in ast.walk(syntax(SOURCE / "studio" / "worker.py")) if isinstance(node, ast.Call)]
    (compared,) = [node for node in calls if ast.unparse(node.func) == "us.compare"]
    assert {one.arg: ast.unparse(one.value) for one in compared.keywords}["public_proxy"] == "True"


def test_the_command_line_does_without_the_extra(tmp_path: Path) -> None:
    for name in ("starlette", "uvicorn"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not installed')", encoding="utf-8")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from understudy.__main__ import main; sys.exit(main())"
    run = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    hidden = "import sys, importlib.util as util; found = util.find_spec; "
    hidden += "util.find_spec = lambda name, *rest: None if name == 'starlette' else found(name, *rest); "
    hidden += "from understudy.__main__ import main; sys.exit(main())"
    run = subprocess.run([sys.executable, "-c", hidden, "studio"], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "understudy[studio]" in run.stderr
