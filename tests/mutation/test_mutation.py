"""The mutator itself: it makes what it says, finds its way back by name, and a trial tells killed from survived."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT
from tests.mutation.__main__ import EXPLAINED, explanations, interval
from tests.mutation.mutants import mutants_of, mutated
from tests.mutation.patching import affected_kernels
from tests.mutation.targets import GROUPS, path_of, source_of

SMALL = '''
"""A module."""
LIMIT = 3


def clipped(count: int, most: int = LIMIT) -> int:
    """The count, cut."""
    if count < 0:
        raise ValueError("must not be below " + str(0))
    total = 0
    total += pow(count, most) - 1
    return total if count else 0
'''


def test_what_is_made_of_a_small_module() -> None:
    found = {f"{mutant.kind}: {mutant.before} → {mutant.after}" for mutant in mutants_of("small", SMALL)}
    assert {
        "constant: 3 → 4",
        "comparison: count < 0 → count <= 0",
        "comparison: count < 0 → count >= 0",
        "negated condition: if count < 0 → if not count < 0",
        "dropped statement: raise ValueError('must not be below ' + str(0)) → pass",
        "operator: total += pow(count, most) - 1 → total -= pow(count, most) - 1",
        "operator: pow(count, most) - 1 → pow(count, most) + 1",
        "dropped call: pow(count, most) → count",
        "swapped arguments: pow(count, most) → pow(most, count)",
        "condition: total if count else 0 → total if not count else 0",
        "dropped statement: return total if count else 0 → return None",
    } <= found
    assert not any("must not be below" in mutant and "dropped statement" not in mutant for mutant in found)


def test_every_mutant_is_another_module_with_one_change_on_its_line() -> None:
    for mutant in mutants_of("small", SMALL):
        text, before = ast.unparse(mutated(SMALL, mutant)), ast.unparse(ast.parse(SMALL))
        assert text != before
        compile(mutated(SMALL, mutant), "small", "exec")


def test_names_do_not_depend_on_lines_and_differ_from_each_other() -> None:
    names = [mutant.name for mutant in mutants_of("small", SMALL)]
    assert names == [mutant.name for mutant in mutants_of("small", "\n\n" + SMALL)]
    found = [mutant.name for mutant in mutants_of("privacy.cost", source_of("privacy.cost"))]
    assert len(set(found)) == len(found) > 500


def test_kernels_are_compiled_anew_with_what_calls_them() -> None:
    kernels = "@compiled()\ndef inner(x): return x\n@compiled()\ndef outer(x): return inner(x)\n"
    source = f"{kernels}def plain(x): return outer(x)\n"
    assert affected_kernels(source, "inner") == {"inner", "outer"}
    assert affected_kernels(source, "outer") == {"outer"}
    assert affected_kernels(source, "plain") == frozenset()
    assert affected_kernels(source, "module") == {"inner", "outer"}
    assert affected_kernels(source.replace("compiled()", "within_kernels(inline='always')", 1), "inner") == {
        "inner",
        "outer",
    }


def test_modules_with_kernels_can_be_run_beside_the_loaded_ones() -> None:
    """In a process of its own, for it changes what is loaded."""
    names = [name for group in GROUPS.values() for name in group.modules if "@compiled(allocates" in source_of(name)]
    assert names
    code = (
        "import sys\nfrom tests.mutation.patching import replace_module\nfrom tests.mutation.trials import _noting\n"
        "for name in sys.argv[1:]: replace_module(name, _noting(name), _hit=int)"
    )
    subprocess.run([sys.executable, "-c", code, *names], check=True, env=_environment(), cwd=ROOT)


def test_every_group_has_modules_and_tests() -> None:
    for group in GROUPS.values():
        assert all(path_of(module).is_file() for module in group.modules)
        assert all(Path(path).suffix == ".py" for path in group.test_files())


def test_every_explained_mutant_still_exists() -> None:
    """A line names the module of its mutant in the third column."""
    lines = re.findall(
        r"^\| `([0-9a-f]{10})` \| (?:same|left) \| ([a-z_.]+):", EXPLAINED.read_text("utf-8"), re.MULTILINE
    )
    assert {name for name, _ in lines} == set(explanations())
    known = {mutant.name for module in {one for _, one in lines} for mutant in mutants_of(module, source_of(module))}
    assert {name for name, _ in lines} - known == set(), (
        "the code changed: take them out, or explain what became of them"
    )


def test_an_interval_of_a_share() -> None:
    assert interval(0, 0) == (0.0, 1.0)
    low, high = interval(95, 100)
    assert low == pytest.approx(0.8882, abs=1e-3)
    assert high == pytest.approx(0.9785, abs=1e-3)


@pytest.mark.slow
def test_a_trial_tells_killed_from_survived(tmp_path: Path) -> None:
    """A wrong share of the account, which any test of shares sees; its verdict is kept."""
    (share,) = [m for m in mutants_of("privacy.cost", source_of("privacy.cost")) if _is_share(m)]
    command = [sys.executable, "-m", "tests.mutation", "privacy", "--name", share.name, "--out", str(tmp_path)]
    tests = ["--tests", "tests/privacy/test_cost.py"]
    environment = _environment()
    run = subprocess.run([*command, *tests], capture_output=True, text=True, env=environment, check=False)
    assert "1 of 1 killed" in run.stdout, run.stdout + run.stderr
    again = subprocess.run([*command, "--report"], capture_output=True, text=True, env=environment, check=False)
    assert "1 of 1 killed" in again.stdout
    assert again.returncode == 0


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(["src", *os.environ.get("PYTHONPATH", "").split(":")])}


def _is_share(mutant) -> bool:
    return (mutant.function, mutant.kind) == ("Cost.share", "operator") and mutant.before == "self.rho * part"
