"""The same answers and seed give the same bytes, whatever else is different about the process and the machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.release import same_bytes
from tests.release.reproduced import ENVIRONMENTAL, RUNS

ROOT = Path(__file__).resolve().parents[2]
OTHER = {
    "PYTHONHASHSEED": "7",
    "TZ": "Asia/Tokyo",
    "LC_ALL": "C",
    "NUMBA_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Order of sets, time zone, language, and how many threads compute."""
OTHER_SUM = """
import builtins, math
plain = sum

def other(values, /, start=0):
    values = list(values)
    if any(type(one) is float for one in values):
        return start + math.fsum(values)
    return plain(values, start)

builtins.sum = other
from tests.release.reproduced import main
main()
"""
"""From 3.12 on Python adds floats by `sum` more exactly: stands in for that, and finds where it would show."""
OTHER_PYTHON = """
import platform
platform.python_version = lambda: "3.99.1"
from tests.release.reproduced import main
main()
"""


def _made(environment: dict[str, str], *words: str) -> dict[str, str]:
    given = os.environ | {"PYTHONHASHSEED": "1"} | environment
    command = [sys.executable, "-W", "ignore", *(words or ("-m", "tests.release.reproduced"))]
    ended = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def here() -> dict[str, str]:
    made = _made({})
    assert {name.split("/")[0] for name in made} == set(RUNS)
    return made


def test_another_process_writes_the_same_bytes(here: dict[str, str]) -> None:
    assert _made(OTHER, "-c", OTHER_SUM) == here


def test_what_differs_between_pythons_is_found(here: dict[str, str]) -> None:
    assert ENVIRONMENTAL == same_bytes.ENVIRONMENTAL
    assert same_bytes.differing([here, here | {"mst/statement.json": "0"}]) == []
    assert same_bytes.differing([here, here | {"mst/data.parquet": "0"}]) == ["mst/data.parquet"]
    assert same_bytes.differing([here, here | {"mst/more.txt": "0"}]) == ["mst/more.txt"]


@pytest.mark.slow
def test_another_python_changes_only_files_that_name_it(here: dict[str, str]) -> None:
    """A stand-in for one: the workflow `tests` compares real ones."""
    other = _made({}, "-c", OTHER_PYTHON)
    assert other.keys() == here.keys()
    differ = {name.split("/", 1)[1] for name in here if here[name] != other[name]}
    assert {"statement.json", "manifest.json"} <= differ <= ENVIRONMENTAL
