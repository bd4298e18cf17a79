"""Walls of the private packages that can be read off the source: randomness, code execution, messages, integers."""

import ast
import sys
from pathlib import Path

from tests.house.tree import SOURCE, TESTS, functions, relative, source_files, syntax

PRIVATE = tuple(path for path in source_files() if path.relative_to(SOURCE).parts[0] in ("privacy", "counts"))
OUTSIDE_TESTING = tuple(path for path in source_files() if path.relative_to(SOURCE).parts[0] != "testing")
SEEDABLE = {"random", "secrets.SystemRandom", "torch"}
EXECUTES = {"eval", "exec", "compile", "__import__"}
UNSAFE_MODULES = {"pickle", "cPickle", "marshal", "shelve", "joblib", "dill", "cloudpickle"}
PRIVATE_NAMES = {
    "exact",
    "counts",
    "values",
    "value",
    "scores",
    "codes",
    "occupied",
    "rows",
    "record",
    "row",
    "batch",
    "chunk",
}


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_no_seedable_generator_in_private_packages() -> None:
    for path in PRIVATE:
        seeded = {name for name in _imports(path) if name.split(".")[0] in SEEDABLE or name.startswith("numpy.random")}
        attributes = {ast.unparse(node) for node in ast.walk(syntax(path)) if isinstance(node, ast.Attribute)}
        seeded |= {name for name in attributes if name.startswith(("np.random", "numpy.random"))}
        assert not seeded, relative(path)


def test_no_seed_parameter_in_private_packages() -> None:
    for path in PRIVATE:
        for node in functions(syntax(path)):
            names = {argument.arg for argument in node.args.args + node.args.kwonlyargs + node.args.posonlyargs}
            assert not names & {"seed", "random_state", "rng"}, f"{relative(path)}: {node.name}"


def test_nothing_executes_data() -> None:
    for path in source_files():
        assert not {name for name in _imports(path) if name.split(".")[0] in UNSAFE_MODULES}, relative(path)
        calls = {ast.unparse(node.func) for node in ast.walk(syntax(path)) if isinstance(node, ast.Call)}
        assert not calls & EXECUTES, relative(path)
        assert not {name for name in calls if name.endswith("yaml.load")}, relative(path)


def test_numpy_never_unpickles() -> None:
    for path in source_files():
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant), relative(path)
                assert node.value.value is False, relative(path)


def _message_names(node: ast.Raise) -> set[str]:
    names: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.FormattedValue):
            names |= {inner.id for inner in ast.walk(part.value) if isinstance(inner, ast.Name)}
    return names


def test_messages_of_private_packages_name_nothing_private() -> None:
    for path in PRIVATE:
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.Raise):
                assert not _message_names(node) & PRIVATE_NAMES, f"{relative(path)}: {ast.unparse(node)}"


def test_noise_is_added_to_integers_only() -> None:
    """Between an exact count and its noisy answer there is no float: the adding module neither names nor writes one."""
    tree = syntax(SOURCE / "privacy" / "randomizer.py")
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert not [value for value in constants if isinstance(value, float)]
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not (names | attributes) & {"float", "float32", "float64", "normal", "rint", "exp", "log"}
    divisions = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)]
    assert not divisions


def test_only_privacy_takes_noise_from_the_operating_system() -> None:
    """Elsewhere its generator only names files and runs, keys hashes and sessions, picks seeds; not in methods."""
    for path in OUTSIDE_TESTING:
        package = path.relative_to(SOURCE).parts[0]
        if package == "privacy":
            continue
        calls = {ast.unparse(node.func) for node in ast.walk(syntax(path)) if isinstance(node, ast.Call)}
        drawn = {name for name in calls if name.startswith("secrets.") or name in ("os.urandom", "os.getrandom")}
        allowed = {"release", "synthesizer", "compare", "cli", "studio"}
        if relative(path).endswith("counts/source.py"):  # the key under which ids are hashed
            drawn -= {"secrets.randbits"}
        assert drawn <= ({"secrets.randbits", "secrets.token_hex"} if package in allowed else set()), relative(path)


def test_the_reference_takes_nothing_from_the_package() -> None:
    """What our numbers are held against is written from formulas with the standard library alone."""
    held = [path for path in (TESTS / "reference").glob("*.py") if not path.name.startswith(("test_", "conftest"))]
    assert len(held) >= 6
    for path in held:
        taken = {name for name in _imports(path) if name.split(".")[0] not in sys.stdlib_module_names}
        assert all(name.startswith("tests.reference") for name in taken), f"{relative(path)}: {taken}"
