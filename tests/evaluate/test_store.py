"""The folder of an evaluation: complete, marked, private to its owner, and never in a release."""

import json
import os
from pathlib import Path

import pyarrow.csv as pacsv
import pytest

from tests.evaluate.examples import mixed, mixed_frame, shuffled
from understudy.errors import UsageError
from understudy.evaluate import Evaluation, evaluate
from understudy.evaluate.suite import MARKER
from understudy.folders import write_durably
from understudy.release.files import refuse_release_folder


@pytest.fixture(scope="module")
def found() -> Evaluation:
    frame = mixed_frame(200)
    return evaluate(frame, shuffled(frame), mixed(), metrics=["marginals", "nist"], seed=4)


def test_every_number_is_there(found: Evaluation, tmp_path: Path) -> None:
    found.save(tmp_path / "confidential")
    folder = tmp_path / "confidential"
    assert (folder / MARKER).read_text(encoding="utf-8").startswith("NOT FOR RELEASE")
    assert json.loads((folder / "evaluation.json").read_text(encoding="utf-8")) == json.loads(
        json.dumps(found.to_json())
    )
    for name, table in found.tables().items():
        assert pacsv.read_csv(folder / "tables" / f"{name}.csv").num_rows == table.num_rows
    assert folder.stat().st_mode & 0o077 == 0


def test_no_file_is_open_to_others(found: Evaluation, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        found.save(tmp_path / "folder")
        found.save(tmp_path / "report.html")
        write_durably(tmp_path / "one", b"first")
        write_durably(tmp_path / "one", b"second")
    finally:
        os.umask(before)
    assert (tmp_path / "one").read_bytes() == b"second"
    below = list(tmp_path.rglob("*"))
    assert {path.stat().st_mode & 0o777 for path in below if path.is_file()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in below if path.is_dir()} == {0o700}
    assert (tmp_path / "folder" / "manifest.json").is_file()


def test_never_over_something(found: Evaluation, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        found.save(tmp_path / "there")


def test_never_into_a_release(found: Evaluation, plain_folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "innocent"
    link.symlink_to(plain_folder)
    for place in (plain_folder, plain_folder / "inside", plain_folder / "model" / "deep", link / "inside"):
        with pytest.raises(UsageError, match="release folder"):
            found.save(place)
    assert not (plain_folder / "inside").exists()
    refuse_release_folder(plain_folder.parent / "beside")


def test_a_name_that_ends_in_html_is_the_report_with_its_numbers_beside_it(found: Evaluation, tmp_path: Path) -> None:
    found.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_mode & 0o077 == 0
    assert "NOT FOR RELEASE" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "report-numbers" / "evaluation.json").is_file()
    with pytest.raises(UsageError, match="exists already"):
        found.save(tmp_path / "report.html")


def test_a_folder_holds_the_report_too(found: Evaluation, tmp_path: Path) -> None:
    found.save(tmp_path / "confidential")
    assert "NOT FOR RELEASE" in (tmp_path / "confidential" / "report.html").read_text(encoding="utf-8")


def test_no_report_into_a_release(found: Evaluation, plain_folder: Path) -> None:
    with pytest.raises(UsageError, match="release folder"):
        found.save(plain_folder / "report.html")
    assert not (plain_folder / "report.html").exists()
