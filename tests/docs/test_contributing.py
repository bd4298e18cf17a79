"""CONTRIBUTING.md to the letter: its toys are written to files, installed and held against their contracts."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.test_tutorial import BLOCK
from tests.processes import Forked
from understudy import testing

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILES = {name: text for key, name, _, text in BLOCK.findall(TEXT) if key == "file"}
DOCUMENT = tomllib.loads(FILES["pyproject.toml"])
PROJECT = DOCUMENT["project"]
KINDS = ("method", "metric", "source", "model")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with every file of the page, in which the toys' entry points are installed."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    installed = tmp_path / f"{PROJECT['name']}-{PROJECT['version']}.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {PROJECT['name']}\nVersion: {PROJECT['version']}\n", encoding="utf-8"
    )
    groups = (
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in entries.items())
        for group, entries in PROJECT["entry-points"].items()
    )
    (installed / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
    return tmp_path


PYTEST = """
import os, sys
os.environ.pop("PYTEST_ADDOPTS", None)  # a report of the suite is not to be written over
os.chdir(sys.argv[1])
sys.path.insert(0, sys.argv[1])
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""


def test_every_toy_keeps_its_contract(package: Path) -> None:
    names = [f"test_toy_{kind}.py" for kind in KINDS]
    assert all(f"check_{kind}(" in FILES[name] for kind, name in zip(KINDS, names, strict=True))
    done = Forked(PYTEST, package, *names).ended()
    assert done.status == 0, done.said
    assert f"{len(KINDS)} passed" in done.said


REGISTRIES = """
import sys
sys.path.insert(0, sys.argv[1])
from understudy.counts.opening import SOURCES
from understudy.evaluate.metric import METRICS
from understudy.methods.method import METHODS
from understudy.models.model import MODELS

for registry in (METHODS, METRICS, SOURCES, MODELS):
    for name, entry in registry.offered().items():
        print(registry.group, name, f"{registry.find(name).__module__}:{registry.find(name).__name__}")
"""


def test_every_registry_finds_the_toys_by_their_entry_points(package: Path) -> None:
    groups = PROJECT["entry-points"]
    assert set(groups) == {f"understudy.{kind}s" for kind in KINDS}
    wanted = [f"{group} {name} {place}" for group, entries in groups.items() for name, place in entries.items()]
    assert Forked(REGISTRIES, package).ended().said.splitlines() == wanted


def test_pip_is_told_which_modules_to_install() -> None:
    """It refuses to guess among several modules that lie in one folder."""
    modules = {place.partition(":")[0] for entries in PROJECT["entry-points"].values() for place in entries.values()}
    assert set(DOCUMENT["tool"]["setuptools"]["py-modules"]) == modules


def test_a_broken_toy_is_told_what_to_do(package: Path) -> None:
    """The page's promise about messages, on a source that loses a row."""
    path = package / "toy_source.py"
    path.write_text(FILES["toy_source.py"].replace('FROM rows")', 'FROM rows LIMIT 5")'), encoding="utf-8")
    done = Forked(PYTEST, package, "test_toy_source.py").ended()
    assert done.status == 1
    assert "AssertionError: source StreamedTable: three columns: counts of" in done.said
    assert "Let `batches` hand over every row exactly once" in done.said


def test_every_block_is_used() -> None:
    assert TEXT.count("\n```") == 2 * len(BLOCK.findall(TEXT)) == 2 * len(FILES)
    assert len(FILES) == 1 + 2 * len(KINDS)


def test_toys_are_short_and_keep_the_house_style(package: Path) -> None:
    assert max(text.count("\n") for text in FILES.values()) <= 70
    settings = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    ruff = [str(Path(sys.executable).parent / "ruff")]
    for words in (["format", "--check", *settings], ["check", *settings, "--ignore", "D1,I"]):
        done = subprocess.run([*ruff, *words, str(package)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_a_section_and_an_exported_contract(kind: str) -> None:
    assert f"\n## A {kind}\n" in TEXT
    assert f"check_{kind}" in testing.__all__


def test_what_the_page_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^    make ([\w-]+)", TEXT, re.MULTILINE):
        assert f"\n{target}:" in makefile
    for path in set(re.findall(r"`((?:tests|docs|benchmarks)/[\w/.]*)`|\]\(([\w/.]+)\)", TEXT)):
        assert (ROOT / "".join(path)).exists(), path
    for path in re.findall(r"`((?:methods|evaluate|counts|models|privacy)/[\w/.]*)`", TEXT):
        assert (ROOT / "src" / "understudy" / path).exists(), path
