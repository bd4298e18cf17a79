"""Files of a folder: links, strangers and changes are found by name."""

import os
from pathlib import Path

import pytest

from understudy.release.files import check_expected, check_files, published


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with published(tmp_path / "out") as made:
        (made / "a.txt").write_text("a")
    return tmp_path / "out"


def _found(folder: Path) -> list[tuple[str, str]]:
    return [(problem.where, problem.rule) for problem in check_files(folder)]


def test_an_untouched_folder_has_no_findings(folder: Path) -> None:
    assert _found(folder) == []
    assert check_expected(folder, ["a.txt"]) == []


def test_a_change_of_equal_length_is_found(folder: Path) -> None:
    (folder / "a.txt").write_text("b")
    assert _found(folder) == [("a.txt", "differs from its checksum in the manifest.")]


def test_special_files_and_links_are_found(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    os.symlink(folder / "a.txt", folder / "also")
    assert {where for where, _ in _found(folder)} == {"pipe", "also"}


def test_names_are_shown_escaped(folder: Path) -> None:
    (folder / "evil\x1b[31m").write_text("x")
    assert all("\x1b" not in where for where, _ in _found(folder))


def test_strangers_and_gaps_are_named(folder: Path) -> None:
    found = {problem.where: problem.rule for problem in check_expected(folder, ["b.txt"])}
    assert found["b.txt"] == "is missing from the release folder."
    assert found["a.txt"] == "does not belong in a release folder."
