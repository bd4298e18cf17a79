"""The confidential folder of an evaluation: every number as JSON and CSV, marked, and never inside a release."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv

from understudy.errors import UsageError
from understudy.evaluate.evaluation import NOTICE, Evaluation
from understudy.release.folder import published

__all__ = ["MARKER", "refuse_release_folder", "save_evaluation"]

MARKER = "NOT-FOR-RELEASE.txt"
EXPLANATION = (
    f"{NOTICE}\n\nThis folder compares a synthetic table with the private one. Publishing any number of it may reveal\n"
    "facts about single people. Keep it where the private table is kept.\n"
)
RELEASE_FILE = "statement.json"


def refuse_release_folder(folder: Path) -> None:
    """Raises when the folder is a release folder or lies inside one: what is in there is meant to be published."""
    place = folder.absolute()
    for parent in (place, place.resolve(), *place.parents, *place.resolve().parents):
        if (parent / RELEASE_FILE).is_file():
            rule = "lies in a release folder, which is meant to be published."
            raise UsageError(f"output {str(folder)!r}", rule, "A comparison is confidential: write it elsewhere.")


def save_evaluation(evaluation: Evaluation, folder: Path) -> None:
    """Writes the folder in one piece, readable by its owner alone."""
    refuse_release_folder(folder)
    with published(folder) as place:
        place.chmod(0o700)
        (place / MARKER).write_text(EXPLANATION, encoding="utf-8")
        document = json.dumps(evaluation.to_json(), indent=1, ensure_ascii=True, allow_nan=False)
        (place / "evaluation.json").write_text(document + "\n", encoding="utf-8")
        (place / "tables").mkdir()
        for name, table in evaluation.tables().items():
            pacsv.write_csv(_writable(table), place / "tables" / f"{name}.csv")


def _writable(table: pa.Table) -> pa.Table:
    """Lists, which CSV cannot hold, as text."""
    for place, kind in enumerate(table.schema.types):
        if pa.types.is_list(kind):
            texts = [None if cell is None else json.dumps(cell) for cell in table.column(place).to_pylist()]
            table = table.set_column(place, table.column_names[place], pa.array(texts, pa.string()))
    return table
