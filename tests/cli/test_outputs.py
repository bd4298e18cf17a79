"""No command writes into a release folder: what is in there was listed, checked and published."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer

from tests.cli.terminal import listing, run
from tests.cli.workspace import Workspace
from understudy.cli.app import app

READ = {"codebook", "schema", "public", "release", "ledger", "criteria", "key", "password_file"}
"""Parameters that name a file or folder to read; all others that are paths name one to write."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = Workspace.make(tmp_path_factory.mktemp("outputs"), rows=60)
    assert made.synthesize().status == 0
    return made


def _commands(group: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, object]]:
    for name, found in getattr(group, "commands", {}).items():
        yield " ".join((*path, name)), found
        yield from _commands(found, (*path, name))


def _words(place: Workspace, out: Path) -> dict[tuple[str, str], tuple[object, ...]]:
    """For every place that a command writes to, a command line that is right but for that place."""
    budget = ("--schema", place.schema, "--epsilon", 1)
    return {
        ("synthesize", "out"): ("synthesize", place.table, *budget, "--ledger", place.ledger, "--out", out),
        ("synthesize", "rows_file"): (
            *("synthesize", place.table, *budget, "--ledger", place.ledger, "--out", place.folder / "another"),
            *("--rows-file", out.with_suffix(".csv")),
        ),
        ("stats", "out"): ("stats", place.release, "--table", "sex", "-o", out.with_suffix(".csv")),
        ("sample", "out"): ("sample", place.release, "--rows", 5, "-o", out.with_suffix(".csv")),
        ("label", "out"): ("label", place.release, place.table, "-o", out.with_suffix(".csv")),
        ("evaluate", "out"): ("evaluate", place.table, place.release, "-o", out, "--metric", "marginals"),
        ("compare", "out"): ("compare", place.table, *budget, "--method", "independent", "--repeats", 1, "-o", out),
        ("schema draft", "out"): ("schema", "draft", place.table, "-o", out),
        ("leafsize", "svg"): ("leafsize", "--width", 0.1, "--rate", 1, "--svg", out),
        ("ledger init", "path"): ("ledger", "init", out, "--dataset", "more", "--epsilon", 1),
        ("audit", "out"): ("audit", "laplace", "--runs", 40, "-o", out),
        ("sign", "new_key"): ("sign", "--new-key", out),
        ("studio", "make_password"): ("studio", "--make-password", out),
        ("studio", "folder"): ("studio", place.release, "--port", 0),
        ("demo", "out"): ("demo", "--out", out, "--private", place.folder / "private"),
        ("demo", "private"): ("demo", "--out", place.folder / "demo", "--private", out),
    }


@pytest.mark.parametrize("inside", ["new", "model/new", "link"])
def test_no_output_goes_into_a_release(inside: str, place: Workspace, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(place.release)
    out = tmp_path / "link" / "new" if inside == "link" else place.release / inside
    before, balance = listing(place.folder), place.balance()
    for (command, _), words in _words(place, out).items():
        shown = run(*words)
        if command == "label":  # this release has no private columns to draw
            assert shown.status == 2
            continue
        assert (shown.status, shown.panels) == (2, 1), (command, shown.err)
        assert "lies in a release folder" in shown.words, (command, shown.err)
    assert listing(place.folder) == before
    assert place.balance() == balance
    assert run("verify", place.release).status == 0


def test_every_place_that_a_command_writes_to_is_tried(place: Workspace) -> None:
    written = {
        (command, name)
        for command, found in _commands(typer.main.get_command(app))
        for name, kind in getattr(getattr(found, "callback", None), "__annotations__", {}).items()
        if "Path" in str(kind) and name not in READ and command not in ("ledger show", "ledger verify")
    }
    assert written == set(_words(place, place.release))


def test_second_file_of_rows_holds_those_of_the_release(place: Workspace, tmp_path: Path) -> None:
    shown = place.synthesize("--method", "laplace", "--rows-file", tmp_path / "rows.parquet", "--out", tmp_path / "out")
    assert shown.status == 0, shown.err
    assert pq.read_table(tmp_path / "rows.parquet").equals(pq.read_table(tmp_path / "out" / "data.parquet"))


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("rows.xlsx", (), "Give --rows too"),
        ("rows.xlsx", ("--rows", 2**20), "at most 1,048,575 rows"),
        ("rows.ods", (), "suffix"),
        ("people.csv", (), "exists already"),
        ("made/rows.csv", (), "lies in the release folder"),
    ],
)
def test_second_file_that_could_not_be_written_is_refused_before_the_charge(
    place: Workspace, name: str, more: tuple[object, ...], message: str
) -> None:
    before = place.balance()
    words = ("--method", "laplace", "--rows-file", place.folder / name, "--out", place.folder / "made")
    shown = place.synthesize(*words, *more)
    assert (shown.status, shown.panels) == (2, 1)
    assert message in shown.words
    assert place.balance() == before
