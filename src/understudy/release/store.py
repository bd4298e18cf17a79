"""The release folder on disk: written in one piece under fixed names, read back with every file checked first.

Nothing is written that was not already in the release, no clock is read, nothing that is loaded is executed. The error
bars of the public card follow from the noise that was added, which is public; no private number is needed to state
them.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from understudy.codec.table import TableCodec
from understudy.domain import (
    GROWTH_UNIT,
    SCORE_UNIT,
    Answer,
    Discovery,
    Distribution,
    Grown,
    Measurement,
    NoisyScores,
    Selection,
    Selections,
    SparseMeasurement,
    Trained,
)
from understudy.errors import InputError, Problem, ReleaseError, ResourceError, UnderstudyError
from understudy.models.model import load_model, misplaced_share, read_json, read_plain, save_model
from understudy.progress import Progress
from understudy.release import wording
from understudy.release.files import published, walk
from understudy.release.measurements import read_measurements, write_measurements
from understudy.release.release import (
    Fitted,
    Release,
    RunConfig,
    data_name,
    draw_tables,
    read_config,
    write_config,
    write_rows,
)
from understudy.release.statement import Statement, charge_rows, read_statement, statement_document, statement_markdown
from understudy.report.card import CardFacts, ColumnNote, MeasuredTable, OneWay, PrivacyFacts, SampleRows, build_card
from understudy.report.html import render_page
from understudy.schema import Category, Column, Schema
from understudy.schema.document import schema_from_text

SAMPLE_ROWS = 10
MOST_PAIRS_NAMED = 12
MOST_LABELS_NAMED = 50
COVERAGE = 0.95
MOST_CODES = 10_000
DRAWN_ROWS = 20_000
MOST_CELLS = 2_000_000


def card_facts(release: Release, data: Path) -> CardFacts:
    """The card's content for a release whose first table of rows is stored in `data`."""
    statement = release.statement
    first = release.fits[0]
    return CardFacts(
        title=f"Synthetic stand-in: {statement.title or 'untitled table'}",
        banner=_banner(release),
        privacy=PrivacyFacts(
            promise=statement.promise,
            facts=statement.facts(),
            odds=statement.odds,
            charges=tuple(charge_rows(statement)),
            not_protected=statement.not_protected,
            left_out=statement.left_out,
            odd=tuple(one.text for one in statement.odd),
        ),
        measured=tuple(_measured(answer, first) for answer in first.transcript),
        together=_together(first),
        one_ways=tuple(_one_way(name, first) for name in first.codec.domain.columns),
        sample=replace(_sample(data, release.config.rows[0]), remark=release.config.remark),
        copies=wording.copies_text(statement.copies, statement.copies_mode),
        footer=f"understudy {statement.versions.get('understudy', '')}, {statement.date}, run {statement.run}.",
        columns=tuple(map(_column_note, release.schema.columns)),
    )


def _column_note(column: Column) -> ColumnNote:
    labels = ""
    if isinstance(column, Category) and (column.meanings or column.ordered):
        shown = [_with_meaning(column, label) for label in column.labels[:MOST_LABELS_NAMED]]
        more = len(column.labels) - len(shown)
        order = "from lowest to highest: " if column.ordered else ""
        labels = f"{order}{'; '.join(shown)}{f'; and {more:,} more' if more else ''}"
    return ColumnNote(column.name, column.title, column.description, getattr(column, "measured_in", ""), labels)


def _with_meaning(column: Column, label: str) -> str:
    """The label and what it means, where the schema says so."""
    meaning = column.meanings.get(label, "") if isinstance(column, Category) else ""
    return f"{label} = {meaning}" if meaning else label


def half_width(distribution: Distribution, cells: int = 1) -> float:
    """Rows within which the noise of a sum of `cells` cells stays with 95 % probability.

    >>> from fractions import Fraction
    >>> half_width(Distribution("laplace", Fraction(10)))
    30.0
    """
    if cells == 1 and distribution.kind == "laplace":
        decay = math.exp(-1.0 / float(distribution.parameter))
        if decay == 0.0:
            return 0.0
        # P(|noise| > k) = 2·decay^(k+1) / (1 + decay) for the discrete Laplace distribution
        return float(max(math.ceil(math.log((1 - COVERAGE) * (1 + decay) / 2) / math.log(decay)) - 1, 0))
    return 1.959964 * math.sqrt(cells * distribution.variance)


def _banner(release: Release) -> str:
    if release.statement.claim is None:
        return f"{release.statement.refused}. Not for release."
    return "PUBLIC. Synthetic data under a differential-privacy guarantee; rows are drawn from a model."


def _measured(answer: Answer, fitted: Fitted) -> MeasuredTable:
    if isinstance(answer, Selection | Selections):
        text = wording.choice_text(answer.rate, answer.sensitivity, monotone=answer.monotone, options=answer.options)
        rate = f"exponential mechanism: {text}"
        if isinstance(answer, Selection):
            return MeasuredTable(answer.name, "choice", answer.options, rate, None)
        kind = f"choice among {answer.options:,} in every cell"
        return MeasuredTable(answer.name, kind, int(answer.chosen.size), rate, None)
    if isinstance(answer, Trained):
        scale = answer.distribution.scale / answer.course.clip
        noise = f"discrete Gaussian, σ = {scale:.4g} of the most a unit may add to a step"
        return MeasuredTable(answer.name, f"training of {answer.course.steps:,} steps", answer.values.size, noise, None)
    if isinstance(answer, NoisyScores | Grown):
        return _scores_or_tree(answer)
    letter = "b" if answer.distribution.kind == "laplace" else "σ"
    noise = f"discrete {answer.distribution.kind.capitalize()}, {letter} = {answer.distribution.scale:.4g}"
    if isinstance(answer, Discovery):
        kept = f"{noise}, labels with at least {answer.threshold:,}"
        return MeasuredTable(
            answer.name, "discovery of labels", len(answer.labels), kept, half_width(answer.distribution)
        )
    cells = math.prod(answer.shape)
    if isinstance(answer, SparseMeasurement):
        kept = f"{noise}, cells with at least {answer.threshold:,} kept"
        return MeasuredTable(answer.name, "sparse table", cells, kept, half_width(answer.distribution))
    return MeasuredTable(
        answer.name, "table", cells, noise, half_width(answer.distribution), _misplaced(answer, fitted)
    )


def _scores_or_tree(answer: NoisyScores | Grown) -> MeasuredTable:
    """Scores are not counts, and a tree's noise is in no released number: neither has an error bar in rows."""
    letter = "b" if answer.distribution.kind == "laplace" else "σ"
    if isinstance(answer, NoisyScores):
        kind, scale = answer.distribution.kind.capitalize(), answer.distribution.scale / SCORE_UNIT
        noise = f"discrete {kind}, {letter} = {scale:.4g} of a score"
        return MeasuredTable(answer.name, "scores of options", int(answer.values.size), noise, None)
    scale, bias = answer.distribution.scale / GROWTH_UNIT, answer.bias / GROWTH_UNIT
    noise = f"discrete Laplace, b = {scale:.4g} rows, bias {bias:.4g} rows per level, split above {answer.theta:,}"
    return MeasuredTable(answer.name, f"tree of {len(answer.layers)} layers", int(answer.values.size), noise, None)


def _misplaced(answer: Measurement, fitted: Fitted) -> float | None:
    """How far the model can be off on a measured clique; None for coarse or very large tables, or a tangled model."""
    domain = fitted.codec.domain
    if not set(answer.columns) <= set(domain.columns) or answer.shape != domain.shape(answer.columns):
        return None
    if answer.values.size > MOST_CELLS:
        return None
    try:
        model = fitted.model.marginal(domain.clique(answer.columns)) * fitted.model.total
    except ResourceError:
        return None
    return misplaced_share(answer.values, model, answer.distribution, COVERAGE)


def _together(fitted: Fitted) -> tuple[str, ...]:
    """Which pairs of columns some question looked at together."""
    names = fitted.codec.domain.columns
    if fitted.transcript.of(Trained):
        return (
            "All columns were looked at together, in training; what was learned of a relationship has no error bar.",
        )
    tables = [
        set(answer.columns) for answer in fitted.transcript if isinstance(answer, Measurement | SparseMeasurement)
    ]
    seen = {pair for table in tables for pair in combinations(sorted(table), 2)}
    pairs = math.comb(len(names), 2)
    lines = [f"{len(seen):,} of {pairs:,} pairs of columns were measured together."]
    if 0 < len(seen) < pairs:
        shown = [f"{first} with {second}" for first, second in sorted(seen)[:MOST_PAIRS_NAMED]]
        more = len(seen) - len(shown)
        lines.append("Measured together: " + "; ".join(shown) + (f"; and {more:,} more." if more else "."))
    if len(seen) < pairs:
        lines.append("Any other relationship between columns follows from the method's assumptions, not from data.")
    unmeasured = sorted(set(names) - set().union(*tables)) if tables else sorted(names)
    if unmeasured:
        lines.append("In no question at all: " + ", ".join(unmeasured) + ".")
    return tuple(lines)


def _one_way(name: str, fitted: Fitted) -> OneWay:
    """A column's counts: the noisy answer where it was asked on its own, else what the model makes of it."""
    clique = fitted.codec.domain.clique([name])
    size = fitted.codec.domain.sizes[name]
    shown = min(size, MOST_CODES)
    column = fitted.codec.schema.column(fitted.codec.origin(name))
    labels = tuple(_with_meaning(column, fitted.codec.describe(name, code)) for code in range(shown))
    for answer in fitted.transcript.of(Measurement):
        if answer.columns == (name,) and answer.shape == (size,):
            values = tuple(float(value) for value in answer.values[:shown])
            return OneWay(
                name, labels, values, half_width(answer.distribution), "noisy counts as measured, 95 % error bars"
            )
    sums = [
        half_width(answer.distribution, math.prod(answer.shape) // size)
        for answer in fitted.transcript.of(Measurement)
        if name in answer.columns and answer.shape == fitted.codec.domain.shape(answer.columns)
    ]
    try:
        values = tuple(float(value) for value in (fitted.model.marginal(clique) * fitted.model.total)[:shown])
    except ResourceError:  # a network too tangled for exact sums can still be drawn from
        drawn = fitted.model.draw(DRAWN_ROWS, np.random.default_rng(0))[name]
        counts = np.bincount(drawn, minlength=size)[:shown] * (fitted.model.total / DRAWN_ROWS)
        return OneWay(name, labels, tuple(map(float, counts)), None, f"counts of {DRAWN_ROWS:,} rows drawn, scaled")
    if not sums:
        return OneWay(name, labels, values, None, "counts of the fitted model; no error bar is known in closed form")
    return OneWay(name, labels, values, min(sums), "counts of the fitted model; error bars of sums of noisy cells")


def _sample(data: Path, total: int) -> SampleRows:
    with pq.ParquetFile(data) as stored:
        names = tuple(stored.schema_arrow.names)
        batch = next(stored.iter_batches(batch_size=SAMPLE_ROWS), None)
    rows = [] if batch is None else batch.to_pylist()
    texts = tuple(tuple("" if row[name] is None else str(row[name]) for name in names) for row in rows)
    return SampleRows(names, texts, total)


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
    """The file of a run's fixed codes."""
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
    return 1 if config.copies_mode == "resample" else config.copies


def expected_files(config: RunConfig) -> list[str]:
    """Every file the folder must hold besides the manifest and the arrays of the models."""
    runs = range(1, number_of_runs(config) + 1)
    data = [data_name(copy, config.copies) for copy in range(1, config.copies + 1)]
    models = [f"{model_name(run)}/model.json" for run in runs]
    return sorted([*FIXED_FILES, *data, *models, *(codec_name(run) for run in runs)])


def load_codec(schema: Schema, folder: Path, run: int) -> TableCodec:
    """The fixed codes of a run."""
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
