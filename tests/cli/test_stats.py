"""`understudy stats`: what was measured, a table cell by cell, as lines, JSON and files; nothing is charged."""

import json
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tests.cli.terminal import run
from tests.cli.workspace import Workspace


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    place = Workspace.make(tmp_path_factory.mktemp("stats"))
    assert place.synthesize("--method", "laplace").status == 0
    return place


def test_lists_what_was_measured(made: Workspace) -> None:
    shown = run("stats", made.release)
    assert shown.status == 0, shown.err
    assert "standard error" in shown.out
    assert "understudy stats" in shown.err


def test_shows_a_table_cell_by_cell_and_charges_nothing(made: Workspace) -> None:
    before = made.balance()
    shown = run("stats", made.release, "--table", "sex,region")
    assert shown.status == 0, shown.err
    assert "north F" in shown.words
    assert "elsewhere" in shown.words
    assert made.balance() == before


def test_json_and_files_hold_every_cell(made: Workspace, tmp_path: Path) -> None:
    shown = run("stats", made.release, "--table", "sex, region", "--json", "-o", tmp_path / "cells.parquet")
    cells = json.loads(shown.out)["cells"]
    assert cells == pq.read_table(tmp_path / "cells.parquet").to_pylist()
    assert run("stats", made.release, "--table", "sex", "-o", tmp_path / "cells.csv", "--quiet").status == 0
    assert pacsv.read_csv(tmp_path / "cells.csv")["sex"].to_pylist()[:2] == ["F", "M"]


def test_refuses_unknown_columns_and_files_that_exist(made: Workspace) -> None:
    refused = run("stats", made.release, "--table", "sex,ages")
    assert (refused.status, refused.panels) == (2, 1)
    assert "Did you mean 'age'?" in refused.words or "age" in refused.words
    assert run("stats", made.release, "-o", made.table).status == 2


def test_long_tables_are_cut_on_the_screen_and_say_so(made: Workspace) -> None:
    shown = run("stats", made.release, "--table", "age,income")
    assert "more rows; -o writes them all." in shown.out
