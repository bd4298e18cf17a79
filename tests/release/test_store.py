"""The folder on disk: every file of the design, nothing else, and clear words about what is missing."""

import json
import re
from pathlib import Path

import pytest

from tests.release.people import copied
from understudy.errors import InputError, ReleaseError, UsageError
from understudy.models.model import read_json
from understudy.release.files import PACKAGES_FILE
from understudy.release.release import Release
from understudy.release.statistics import STATISTICS_FILE
from understudy.release.store import expected_files, load_release


def test_the_folder_holds_exactly_its_files(full_folder: Path, full_release: Release) -> None:
    present = {path.relative_to(full_folder).as_posix() for path in full_folder.rglob("*") if path.is_file()}
    arrays = {name for name in present if name.endswith(".npy")}
    assert present - arrays == {*expected_files(full_release.config), STATISTICS_FILE, PACKAGES_FILE, "manifest.json"}
    assert len(present - arrays) == 13


def test_saving_refuses_a_folder_that_exists(full_release: Release, full_folder: Path) -> None:
    with pytest.raises(UsageError, match="exists"):
        full_release.save(full_folder)


def test_no_clock_but_the_date_and_the_charges_time(full_folder: Path) -> None:
    times = re.compile(rb"\d\d:\d\d:\d\d")
    for path in full_folder.rglob("*"):
        if path.is_file() and path.name != "ledger.jsonl":
            assert not times.search(path.read_bytes()), path.name
    entries = [json.loads(line) for line in (full_folder / "ledger.jsonl").read_text().splitlines()]
    assert [entry["kind"] for entry in entries] == ["dataset", "charge"]


@pytest.mark.parametrize("name", ["statement.json", "schema.yaml", "measurements.parquet", "model/codec-1.json"])
def test_a_missing_file_is_named(name: str, full_folder: Path, tmp_path: Path) -> None:
    folder = copied(full_folder, tmp_path / "release")
    (folder / name).unlink()
    with pytest.raises(ReleaseError, match=re.escape(name)):
        load_release(folder)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a folder"):
        Release.load(tmp_path / "nothing")


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\udcff"])
def test_broken_json_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ReleaseError, match="JSON"):
        read_json(tmp_path / "a.json")
