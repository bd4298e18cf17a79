"""The public names: all of them load, nothing else does, and the version is the project's."""

import subprocess
import sys
import tomllib
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


def test_version_is_the_projects() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert understudy.__version__ == project["project"]["version"]


def test_importing_loads_no_room() -> None:
    code = "import sys, understudy; print(sorted(m for m in sys.modules if m.startswith('understudy')))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "['understudy']\n"
    assert run.stderr == ""
