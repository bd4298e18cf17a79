"""docs/json.md is true: every command prints the keys that the page lists, under one format, and nothing else."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Outcome, run
from tests.cli.test_app import OPTIONS
from tests.cli.workspace import Workspace

PAGE = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
HEADS = re.findall(r"^### (.+)\n((?:.|\n)*?)(?=^##|\Z)", PAGE, flags=re.MULTILINE)
KEYS = {
    name: set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| ([^|]+) \|", text, flags=re.MULTILINE))))
    for names, text in HEADS
    for name in names.split(", ")
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    place = Workspace.make(tmp_path_factory.mktemp("json"))
    words = ("--method", "laplace", "--rows", 50, "--rows-file", place.folder / "rows.arrow", "--yes")
    shown = place.synthesize(*words, epsilon=50)  # little noise on 200 rows: a share can be estimated
    assert shown.status == 0, shown.err
    return place


def _document(command: str, shown: Outcome, status: int = 0) -> dict[str, Any]:
    """What was printed, which must be one object with the documented keys."""
    assert shown.status == status, shown.err
    document: dict[str, Any] = json.loads(shown.out)
    assert (document.pop("command"), document.pop("format")) == (command, 1)
    return document


def test_page_lists_every_command_that_prints_an_object() -> None:
    assert set(KEYS) == {" ".join(command) for command in OPTIONS} - {"schema edit"}


COMMANDS = {
    "methods": ("methods", "aim"),
    "metrics": ("metrics",),
    "audit": ("audit", "laplace", "--runs", "20", "--epsilon", "3"),
    "plan": ("plan", "--schema", "{schema}", "--epsilon", "1", "--method", "laplace"),
    "leafsize": ("leafsize", "--width", "0.1", "--epsilon", "1"),
    "schema check": ("schema", "check", "{schema}", "{table}"),
    "schema draft": ("schema", "draft", "{table}", "-o", "{new}.yaml"),
    "synthesize": ("synthesize", "{table}", "--schema", "{schema}", "--epsilon", "1", "-o", "{new}"),
    "sample": ("sample", "{release}", "--rows", "5", "-o", "{new}.feather"),
    "verify": ("verify", "{release}"),
    "sign": ("sign", "--new-key", "{new}.pem"),
    "ledger init": ("ledger", "init", "{new}.db", "--dataset", "d", "--epsilon", "1"),
    "ledger show": ("ledger", "show", "{ledger}"),
    "ledger verify": ("ledger", "verify", "{ledger}"),
    "evaluate": ("evaluate", "{table}", "{release}", "--metric", "rules", "-o", "{new}.html"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_command_prints_the_documented_keys(command: str, made: Workspace, tmp_path: Path) -> None:
    places = {name: getattr(made, name) for name in ("table", "schema", "ledger", "release")}
    words = [word.format(**places, new=tmp_path / "new") for word in COMMANDS[command]]
    looked = {"notice", "rows", "columns", "epsilon", "delta", "error"} if command == "schema check" else set()
    assert set(_document(command, run(*words, "--json"))) == KEYS[command] - looked


def test_stats_and_pool_print_one_of_two_parts(made: Workspace) -> None:
    assert set(_document("stats", run("stats", made.release, "--json"))) == {"table", "measured"}
    found = _document("stats", run("stats", made.release, "--table", "sex", "--json"))
    assert set(found) == {"table", "cells"}
    assert KEYS["stats"] == {"table", "measured", "cells"}
    assert set(_document("pool", run("pool", made.release, "--share", "sex=F", "--json"))) <= KEYS["pool"]


def test_a_row_check_adds_to_the_same_keys(made: Workspace) -> None:
    shown = run("schema", "check", made.schema, made.table, "--rows", "--json")
    assert set(_document("schema check", shown)) == KEYS["schema check"] - {"epsilon", "delta", "error"}
    with_noise = run(
        "schema", "check", made.schema, made.table, "--rows", "--epsilon", 1, "--ledger", made.ledger, "--json"
    )
    assert set(_document("schema check", with_noise)) == KEYS["schema check"]


def test_demo_and_label_print_theirs(tmp_path: Path) -> None:
    shown = run("demo", "-o", tmp_path / "out", "--private", tmp_path / "private", "--json", "--quiet")
    found = _document("demo", shown)
    assert set(found) == KEYS["demo"]
    assert found["release"] == str(tmp_path / "out")


def test_compare_prints_its_study(made: Workspace, tmp_path: Path) -> None:
    words = ["compare", made.table, "--schema", made.schema, "--method", "laplace", "--epsilon", 1, "--repeats", 1]
    found = _document("compare", run(*words, "--metric", "rules", "-o", tmp_path / "study", "--json", "--quiet"))
    assert set(found) == KEYS["compare"] - {"chosen", "release", "epsilon", "delta"}
    assert found["confidential"] is True


def test_verify_prints_its_problems_and_ends_with_2(made: Workspace, tmp_path: Path) -> None:
    found = _document("verify", run("verify", tmp_path, "--json"), status=2)
    assert set(found) == KEYS["verify"]
    assert set(found["problems"][0]) == {"where", "rule", "fix"}
    assert found["promise"] is None


def test_an_error_is_an_object_too(made: Workspace) -> None:
    shown = run("plan", "--schema", made.schema, "--epsilon", "-1", "--json")
    found = _document("plan", shown, status=2)
    assert set(found) == {"error"}
    assert found["error"]["status"] == 2
    assert "--epsilon" in found["error"]["lines"][0]
    assert shown.panels == 1


def test_a_result_before_an_error_stays_the_only_object(made: Workspace) -> None:
    words = ["plan", "--schema", made.schema, "--epsilon", "1", "--method", "laplace", "--memory", "1B", "--json"]
    assert set(_document("plan", run(*words), status=4)) == KEYS["plan"]


def test_nothing_but_the_object_is_printed(made: Workspace, tmp_path: Path) -> None:
    shown = made.synthesize("--method", "laplace", "--json", "-o", tmp_path / "again", "--out", tmp_path / "again")
    assert shown.out.startswith("{")
    assert shown.out.endswith("}\n")
