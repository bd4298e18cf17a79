"""The public names: all of them load, nothing else does, and the version is the project's."""

import subprocess
import sys
import tomllib
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

import understudy


def test_every_public_name_loads_and_is_listed() -> None:
    assert dir(understudy) == sorted(understudy.__all__)
    for name in understudy.__all__:
        assert getattr(understudy, name) is not None
    assert understudy.verify.__name__ == "verify_release"
    assert understudy.schema.Category.kind == "category"


def test_unknown_names_raise() -> None:
    with pytest.raises(AttributeError, match="synthesise"):
        understudy.synthesise  # noqa: B018


ROOT = Path(__file__).parents[1]


def test_the_package_says_that_it_is_typed() -> None:
    assert files("understudy").joinpath("py.typed").is_file()


def test_the_wheel_holds_everything_the_package_needs(tmp_path: Path) -> None:
    wheels = pytest.importorskip("hatchling.builders.wheel")
    (built,) = wheels.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(built) as wheel:
        held = set(wheel.namelist())
    assert Path(built).name.startswith(f"understudy-{understudy.__version__}-")
    package = ROOT / "src" / "understudy"
    wanted = {path.relative_to(ROOT / "src").as_posix() for path in package.rglob("*") if path.is_file()}
    wanted = {name for name in wanted if "__pycache__" not in name}
    assert "understudy/py.typed" in wanted & held
    assert wanted <= held, wanted - held


def test_the_version_stands_in_the_package_alone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version", "readme"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {understudy.__version__}\n" in citation


def test_importing_loads_no_package() -> None:
    code = "import sys, understudy; print(sorted(m for m in sys.modules if m.startswith('understudy')))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "['understudy']\n"
    assert run.stderr == ""


def test_verbs_can_be_called_whatever_was_loaded_before() -> None:
    """A package that is loaded takes the place of the verb of its name."""
    code = "import understudy as us, understudy.compare.choice, understudy.evaluate.nist; us.choose, us.Evaluation\n"
    code += "for verb in (us.compare, us.evaluate):\n    try: verb()\n    except TypeError: print('called')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "called\n" * 2


def test_verbs_show_their_arguments_whatever_was_loaded_before() -> None:
    code = "import inspect, understudy as us, understudy.audit.bounds, understudy.evaluate.nist\n"
    code += "for verb, name in ((us.audit, 'runs'), (us.evaluate, 'metrics')):\n"
    code += "    print(name in inspect.signature(verb).parameters)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "True\n" * 2
