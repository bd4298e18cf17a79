"""Promises about the project as a whole: light, silent, documented, and silent about whoever built it."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from tests.house.tree import ROOT, SOURCE, relative, source_files, syntax

MOST_DEPENDENCIES = 12
MOST_FILE_BYTES = 200_000
MOST_IMPORT_SECONDS = 0.4
MOST_HELP_SECONDS = 1.0
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _cpu_seconds(code: str) -> tuple[float, str]:
    before = os.times()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used, run.stdout + run.stderr


def test_import_is_silent_and_light() -> None:
    _cpu_seconds("import understudy")  # writes the byte code
    bare = min(_cpu_seconds("pass")[0] for _ in range(3))
    runs = [_cpu_seconds("import understudy") for _ in range(3)]
    assert {output for _, output in runs} == {""}
    assert min(seconds for seconds, _ in runs) - bare <= MOST_IMPORT_SECONDS


def test_import_loads_no_engine() -> None:
    heavy = "numba duckdb pyarrow scipy pandas polars yaml jinja2 typer rich"
    code = f"import sys, understudy; print([name for name in {heavy.split()!r} if name in sys.modules])"
    assert _cpu_seconds(code)[1].strip() == "[]"


def test_base_install_is_small_and_bounded_below() -> None:
    required = PROJECT["project"]["dependencies"]
    assert len(required) <= MOST_DEPENDENCIES
    extras = [entry for entries in PROJECT["project"]["optional-dependencies"].values() for entry in entries]
    for entry in required + PROJECT["dependency-groups"]["dev"] + extras:
        assert ">=" in entry or entry.startswith("understudy["), f"{entry} needs a lower bound"
        assert "<" not in entry, f"{entry}: an upper bound needs a known break"
        assert "==" not in entry


def test_every_extra_has_code_that_imports_it() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    for extra, entries in PROJECT["project"]["optional-dependencies"].items():
        for entry in entries:
            package = re.split(r"[>=[]", entry)[0].replace("-", "_")
            package = {"scikit_learn": "sklearn"}.get(package, package)
            imported = rf"\b(?:import|from) {package}\b|import_module\(\"{package}[.\"]"
            assert re.search(imported, code), f"{extra}: {package}"


@pytest.mark.parametrize(
    "module", ["understudy", "understudy.counts.kernels", "understudy.models.histogram_tree", "numpy.x"]
)
def test_an_invalid_number_in_any_package_fails_the_suite(module: str) -> None:
    divide = compile("np.array([1.0]) / np.array([0.0])", "planted.py", "eval")
    with pytest.raises(RuntimeWarning, match="divide by zero"):
        eval(divide, {"np": np, "__name__": module})  # noqa: S307 - numpy blames the module whose globals these are


def test_ci_runs_what_a_contributor_runs() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_architecture_names_no_file_that_is_gone() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", text))
    real = {path.relative_to(SOURCE).as_posix() for path in source_files()}
    assert named - real == set()


def test_every_module_says_what_it_is_for() -> None:
    silent = [relative(path) for path in source_files() if not ast.get_docstring(syntax(path))]
    assert not silent


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split(
        "\n"
    )
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def test_repo_holds_no_machine_path() -> None:
    pattern = re.compile("/(" + "|".join(["w" + "ork", "r" + "oot", "h" + "ome"]) + ")/[a-z.]")
    for path in _tracked():
        if path.suffix in {".py", ".md", ".toml", ".yaml", ".yml", ".html", ".txt", ""}:
            assert not pattern.search(path.read_text(encoding="utf-8", errors="ignore")), relative(path)


def _undocumented(names: Iterable[str], *documents: str) -> list[str]:
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in documents)
    return [name for name in names if f"| `{name}` |" not in text]


def test_every_method_has_its_line_in_the_page_on_methods() -> None:
    from understudy.methods.method import METHODS

    assert _undocumented(METHODS.names(), "docs/methods/README.md") == []


def test_every_metric_has_its_line_in_the_page_on_evaluation() -> None:
    from understudy.evaluate.metric import METRICS

    assert _undocumented(METRICS.names(), "docs/evaluate.md") == []


def test_a_name_without_its_line_is_noticed() -> None:
    assert _undocumented(["marginals", "an_unknown_metric"], "docs/evaluate.md") == ["an_unknown_metric"]


@pytest.mark.parametrize(
    "name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "PRIVACY.md", "CHANGELOG.md", "LICENSE"]
)
def test_document_exists(name: str) -> None:
    assert (ROOT / name).stat().st_size > 200


def test_help_is_quick() -> None:
    command = "from understudy.cli.app import main; import sys; sys.argv = ['understudy', '--help']; main()"
    runs = [_cpu_seconds(f"try:\n    {command}\nexcept SystemExit: pass") for _ in range(3)]
    assert "synthesize" in runs[0][1]
    assert min(seconds for seconds, _ in runs) <= MOST_HELP_SECONDS


def test_nothing_large_is_kept_in_the_repository() -> None:
    """A table that somebody tried things on was once committed by mistake."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    sizes = {name: (ROOT / name).stat().st_size for name in listed.stdout.split("\0") if (ROOT / name).is_file()}
    assert {name: size for name, size in sizes.items() if size > MOST_FILE_BYTES} == {}
