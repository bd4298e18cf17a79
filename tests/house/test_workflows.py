"""What runs outside this repository: workflows call targets that exist, hooks name tools that exist, facts agree."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.house.tree import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([\w-]+):(?!=)", MAKEFILE, re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _jobs(path: Path) -> dict[str, dict[str, object]]:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", True, "permissions", "jobs"} <= set(document)  # YAML 1.1 reads `on` as true
    assert document["permissions"] == {"contents": "read"}
    jobs: dict[str, dict[str, object]] = document["jobs"]
    return jobs


def _commands(job: dict[str, object]) -> Iterator[str]:
    """The commands of a job, once for every value of its matrix."""
    strategy = job.get("strategy", {})
    assert isinstance(strategy, dict)
    steps = job["steps"]
    assert isinstance(steps, list)
    for step in steps:
        command = step.get("run")
        if command is None:
            continue
        names = re.findall(r"\$\{\{ matrix\.(\w+) \}\}", command)
        values = strategy["matrix"][names[0]] if names else [""]
        for value in values:
            yield re.sub(r"\$\{\{ matrix\.\w+ \}\}", str(value), command)


def _pythons(job: dict[str, object]) -> list[str]:
    steps = job["steps"]
    assert isinstance(steps, list)
    (version,) = [step["with"]["python-version"] for step in steps if "python-version" in step.get("with", {})]
    strategy = job.get("strategy", {})
    assert isinstance(strategy, dict)
    return strategy["matrix"]["python"] if "matrix.python" in version else [version]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_that_exist(path: Path) -> None:
    for name, job in _jobs(path).items():
        commands = list(_commands(job))
        assert commands, f"{name} runs nothing"
        for command in commands:
            if command.startswith("sudo apt-get update"):  # servers that tests start for themselves
                continue
            make, target, *settings = shlex.split(command)
            assert make == "make"
            assert target in TARGETS, f"{name}: there is no target {target}"
            assert settings == ["PYTHON=python"], "the Python that was set up, not the machine's"


def test_make_takes_the_python_it_is_given() -> None:
    assert "PYTHON ?=" in MAKEFILE
    # The usual environment, those of the oldest dependencies and of the package, and that of the dependency audit.
    assert MAKEFILE.count("$(PYTHON) -m venv") == 4


def test_what_must_pass_runs_on_every_python_that_is_supported() -> None:
    (tests,) = [path for path in WORKFLOWS if path.stem == "tests"]
    (nightly,) = [path for path in WORKFLOWS if path.stem == "nightly"]
    (newest,) = [job for job in _jobs(tests).values() if "make test PYTHON=python" in _commands(job)]
    (lowest,) = [job for job in _jobs(tests).values() if "make test-lowest PYTHON=python" in _commands(job)]
    named = [words.rsplit(" ", 1)[1] for words in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", words)]
    assert _pythons(newest) == named
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"
    assert _pythons(lowest) == named[:1]
    nights = {command.split()[1] for job in _jobs(nightly).values() for command in _commands(job)}
    assert {"test-slow", "studies-smoke"} <= nights


def test_studies_of_the_makefile_exist() -> None:
    (listed,) = re.findall(r"^STUDIES := (.*)$", MAKEFILE, re.MULTILINE)
    found = {path.stem for path in (ROOT / "studies").glob("*.py") if "run_as_script(" in path.read_text("utf-8")}
    assert {*listed.split()} == found - {"writing"}


def test_hooks_use_the_projects_own_tools() -> None:
    document = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = [hook for repo in document["repos"] for hook in repo["hooks"]]
    assert [repo["repo"] for repo in document["repos"]] == ["local"], "nothing is fetched"
    tools = {"ruff", "python"}
    for hook in hooks:
        program, *words = hook["entry"].split()
        assert Path(program).parent == Path(".venv/bin")
        assert Path(program).name in tools
        assert all((ROOT / word).exists() for word in words if word.startswith("tests/"))
    assert len(hooks) == 3


def test_citation_and_security_say_what_the_project_says() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["license"] == PROJECT["project"]["license"]
    assert citation["title"].startswith(PROJECT["project"]["name"])
    assert citation["authors"] == PROJECT["project"]["authors"]
    assert citation["keywords"] == PROJECT["project"]["keywords"]
    assert {"message", "type", "version", "date-released"} <= set(citation)
    security = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert {"## Reporting", "## Supported versions"} <= set(security.splitlines())
