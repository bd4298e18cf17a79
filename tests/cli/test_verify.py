"""Verification from the command line: a whole folder passes, every touched file is named."""

import shutil
from pathlib import Path

import pytest

from tests.cli.terminal import run
from tests.cli.workspace import Workspace


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = Workspace.make(tmp_path_factory.mktemp("verify"))
    assert made.synthesize().status == 0
    return made


def test_a_whole_folder_passes_with_its_promise(place: Workspace) -> None:
    shown = run("verify", place.release)
    assert shown.status == 0
    assert "nothing wrong was found" in shown.out
    assert "ε = 1" in shown.out


@pytest.mark.parametrize(
    "name",
    ["data.parquet", "statement.json", "statement.md", "config.yaml", "schema.yaml", "ledger.jsonl", "card.html"],
)
def test_a_touched_file_is_named(name: str, place: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    shutil.copytree(place.release, folder)
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(bytes(content))
    shown = run("verify", folder)
    assert (shown.status, shown.panels, shown.out) == (2, 1, "")
    assert name in shown.words


def test_missing_and_added_files_are_named(place: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    shutil.copytree(place.release, folder)
    (folder / "card.html").unlink()
    (folder / "extra.txt").write_text("x", encoding="utf-8")
    shown = run("verify", folder)
    assert shown.status == 2
    assert "card.html" in shown.words
    assert "extra.txt" in shown.words


def test_no_folder(tmp_path: Path) -> None:
    shown = run("verify", tmp_path / "nothing")
    assert (shown.status, shown.panels) == (2, 1)
