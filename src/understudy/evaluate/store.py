"""The confidential folder of an evaluation: every number as JSON and CSV, marked, and never inside a release."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv

from understudy.evaluate.evaluation import NOTICE, Evaluation
from understudy.evaluate.page import build_report
from understudy.release.folder import check_free, published, refuse_release_folder
from understudy.report.html import render_page

__all__ = [
    "CLOSED_FILE",
    "CLOSED_FOLDER",
    "MARKER",
    "check_place",
    "close_to_others",
    "numbers_beside",
    "save_evaluation",
    "write_closed",
]

MARKER = "NOT-FOR-RELEASE.txt"
EXPLANATION = (
    f"{NOTICE}\n\nThis folder compares a synthetic table with the private one. Publishing any number of it may reveal\n"
    "facts about single people. Keep it where the private table is kept.\n"
)
REPORT = "report.html"
CLOSED_FOLDER, CLOSED_FILE = 0o700, 0o600


def check_place(place: Path) -> None:
    """Raises unless a report may be written there: not into a release, and over nothing that exists."""
    refuse_release_folder(place)
    check_free(place)
    if place.suffix.lower() == ".html":
        check_free(numbers_beside(place))


def numbers_beside(place: Path) -> Path:
    """The folder for the numbers behind a report that is a file of its own.

    >>> numbers_beside(Path("out/report.html")).name
    'report-numbers'
    """
    return place.with_name(f"{place.stem}-numbers")


def save_evaluation(evaluation: Evaluation, place: Path) -> None:
    """Writes report and numbers, readable by their owner alone.

    A name that ends in .html is the report, with the numbers in a folder beside it; any other name is a folder with
    both. The folder appears in one piece.
    """
    check_place(place)
    page = render_page(build_report(evaluation))
    if place.suffix.lower() != ".html":
        _save_folder(evaluation, place, page)
        return
    _save_folder(evaluation, numbers_beside(place), None)
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, CLOSED_FILE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(page)


def write_closed(path: Path, content: bytes) -> None:
    """Writes a file that its owner alone can read, whatever the umask; it is there as a whole or not at all."""
    beside = path.with_name(f".{path.name}.part")
    beside.unlink(missing_ok=True)
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, CLOSED_FILE), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.rename(path)


def close_to_others(folder: Path) -> None:
    """Lets nobody but the owner see the folder and anything in it."""
    folder.chmod(CLOSED_FOLDER)
    for path in folder.rglob("*"):
        path.chmod(CLOSED_FOLDER if path.is_dir() else CLOSED_FILE)


def _save_folder(evaluation: Evaluation, folder: Path, page: str | None) -> None:
    _publish_folder(evaluation, folder, page)
    close_to_others(folder)  # the list of files is written last; until now the closed folder alone kept it


def _publish_folder(evaluation: Evaluation, folder: Path, page: str | None) -> None:
    with published(folder) as place:
        place.chmod(CLOSED_FOLDER)
        (place / MARKER).write_text(EXPLANATION, encoding="utf-8")
        if page is not None:
            (place / REPORT).write_text(page, encoding="utf-8")
        document = json.dumps(evaluation.to_json(), indent=1, ensure_ascii=True, allow_nan=False)
        (place / "evaluation.json").write_text(document + "\n", encoding="utf-8")
        (place / "tables").mkdir()
        for name, table in evaluation.tables().items():
            pacsv.write_csv(_writable(table), place / "tables" / f"{name}.csv")
        close_to_others(place)


def _writable(table: pa.Table) -> pa.Table:
    """Lists, which CSV cannot hold, as text."""
    for place, kind in enumerate(table.schema.types):
        if pa.types.is_list(kind):
            texts = [None if cell is None else json.dumps(cell) for cell in table.column(place).to_pylist()]
            table = table.set_column(place, table.column_names[place], pa.array(texts, pa.string()))
    return table
