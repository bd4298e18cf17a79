"""The release folder on disk: written in one piece under fixed names, read back with every file checked first.

Nothing is written that was not already in the release, no clock is read, nothing that is loaded is executed.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from understudy.codec.table_codec import TableCodec
from understudy.errors import InputError, Problem, ReleaseError, UnderstudyError
from understudy.models.plain_files import read_json, read_plain
from understudy.models.store import load_model, save_model
from understudy.progress import Progress
from understudy.release.card_facts import card_facts
from understudy.release.checks.files import walk
from understudy.release.config import RunConfig, read_config, write_config
from understudy.release.folder import published
from understudy.release.label import read_statement, statement_document, statement_markdown
from understudy.release.measurements import read_measurements, write_measurements
from understudy.release.release import Release, data_name
from understudy.release.rows import Fitted, draw_tables, write_rows
from understudy.release.statement import Statement
from understudy.report.card import build_card
from understudy.report.html import render_page
from understudy.schema import Schema
from understudy.schema.document import schema_from_text

__all__ = [
    "Loaded",
    "codec_name",
    "expected_files",
    "load_codec",
    "load_release",
    "model_name",
    "number_of_runs",
    "read_ledger",
    "read_schema",
    "save_release",
]

FIXED_FILES = (
    "card.html",
    "config.yaml",
    "ledger.jsonl",
    "measurements.parquet",
    "schema.yaml",
    "statement.json",
    "statement.md",
)


def model_name(run: int) -> str:
    """The folder of a run's fitted model."""
    return f"model/{run}"


def codec_name(run: int) -> str:
    """The file of a run's settled codes."""
    return f"model/codec-{run}.json"


def save_release(
    release: Release, target: Path, progress: Progress, completing: Callable[[], None] | None = None
) -> None:
    """Writes every file of the folder and publishes it in one rename; `completing` is called just before that."""
    with published(target, completing) as folder:
        progress.stage("draw", 0.0)
        for copy in range(1, release.config.copies + 1):
            _write_data(release, copy, folder)
            progress.stage("draw", copy / release.config.copies)
        progress.stage("write", 0.0)
        _write_fits(release, folder)
        document = json.dumps(statement_document(release.statement), indent=1, ensure_ascii=True, allow_nan=False)
        _write_text(folder / "statement.json", document + "\n")
        _write_text(folder / "statement.md", statement_markdown(release.statement))
        release.schema.to_yaml(folder / "schema.yaml")
        write_config(release.config, folder / "config.yaml")
        _write_text(folder / "ledger.jsonl", "".join(f"{line}\n" for line in release.ledger))
        page = build_card(card_facts(release, folder / data_name(1, release.config.copies)))
        _write_text(folder / "card.html", render_page(page))
    progress.stage("write", 1.0)


def _write_data(release: Release, copy: int, folder: Path) -> None:
    fitted = release.fitted(copy)
    rows = release.config.rows[copy - 1]
    pieces = draw_tables(fitted, rows, seed=release.config.seed, copy=copy)
    path = folder / data_name(copy, release.config.copies)
    write_rows(path, fitted.codec.arrow_schema, pieces, release.marks())


def _write_fits(release: Release, folder: Path) -> None:
    (folder / "model").mkdir()
    for run, fitted in enumerate(release.fits, start=1):
        save_model(fitted.model, folder / model_name(run))
        _write_text(folder / codec_name(run), json.dumps(fitted.codec.to_json(), ensure_ascii=True) + "\n")
    transcripts = [fitted.transcript for fitted in release.fits]
    write_measurements(folder / "measurements.parquet", transcripts, [fitted.codec for fitted in release.fits])


def _write_text(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "backslashreplace"))


@dataclass(frozen=True, slots=True)
class Loaded:
    """The content of a release folder."""

    schema: Schema
    fits: tuple[Fitted, ...]
    statement: Statement
    config: RunConfig
    ledger: tuple[str, ...]
    folder: Path


def load_release(folder: Path) -> Loaded:
    """The content of a release folder, or every reason why it cannot be read."""
    if not folder.is_dir():
        raise InputError(f"release {str(folder)!r}", "is not a folder.", "Name the folder that synthesize wrote.")
    present, strange = walk(folder)
    if strange:
        raise ReleaseError(strange)
    _require(FIXED_FILES, present)
    try:
        return _loaded(folder, present)
    except (UnderstudyError, MemoryError):
        raise
    except Exception as error:  # whatever a damaged file leads to, it is the folder that is at fault
        rule = f"cannot be read ({type(error).__name__})."
        raise ReleaseError([Problem("release folder", rule, "Run `understudy verify` on it.")]) from error


def _loaded(folder: Path, present: Sequence[str]) -> Loaded:
    schema = read_schema(folder)
    config = read_config(folder / "config.yaml")
    statement = read_statement(read_json(folder / "statement.json"))
    runs = number_of_runs(config)
    _require(expected_files(config), present)
    transcripts = read_measurements(folder / "measurements.parquet", runs)
    fits = tuple(
        Fitted(load_codec(schema, folder, run), transcript, load_model(folder / model_name(run)))
        for run, transcript in enumerate(transcripts, start=1)
    )
    return Loaded(schema, fits, statement, config, read_ledger(folder), folder.absolute())


def _require(names: Sequence[str], present: Sequence[str]) -> None:
    missing = sorted(set(names) - set(present))
    if missing:
        raise ReleaseError([Problem(name, "is missing from the release folder.") for name in missing])


def number_of_runs(config: RunConfig) -> int:
    """How many times the private table was measured."""
    return config.copies if config.copies_mode == "resanitize" else 1


def expected_files(config: RunConfig) -> list[str]:
    """Every file the folder must hold besides the manifest and the arrays of the models."""
    runs = range(1, number_of_runs(config) + 1)
    data = [data_name(copy, config.copies) for copy in range(1, config.copies + 1)]
    models = [f"{model_name(run)}/model.json" for run in runs]
    return sorted([*FIXED_FILES, *data, *models, *(codec_name(run) for run in runs)])


def load_codec(schema: Schema, folder: Path, run: int) -> TableCodec:
    """The settled codes of a run."""
    name = codec_name(run)
    document = read_json(folder / name)
    try:
        if not isinstance(document, dict):
            raise TypeError("object")
        return TableCodec.from_json(schema, document)
    except (KeyError, TypeError, ValueError, UnderstudyError) as error:
        raise ReleaseError([Problem(name, "does not fit the schema.", "Restore the folder.")]) from error


def read_schema(folder: Path) -> Schema:
    """The schema of a release."""
    name = "schema.yaml"
    try:
        text = read_plain(folder / name).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ReleaseError([Problem(name, "is not UTF-8.", "Restore the folder.")]) from error
    return schema_from_text(text, name)


def read_ledger(folder: Path) -> tuple[str, ...]:
    """The lines of the ledger extract."""
    text = read_plain(folder / "ledger.jsonl").decode("utf-8", errors="replace")
    return tuple(line for line in text.split("\n") if line)
