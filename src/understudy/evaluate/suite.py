"""evaluate: every metric on the real table and its stand-in; what was found, as values, as a page and as a folder.

Everything here was computed from real rows and is confidential: the page says so first, with every score beside its
yardstick and the worst first, and the folder of numbers (JSON and CSV) is marked and never lies inside a release.
"""

import glob
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.csv as pacsv

from understudy.codec.table import TableCodec
from understudy.counts.source import PrivateTable
from understudy.errors import UsageError, nearest
from understudy.evaluate.metric import (
    METRICS,
    Context,
    Detail,
    Metric,
    Result,
    Rows,
    Score,
    TablePair,
    Unread,
    fixed_codec,
    judging_codec,
    open_for_comparison,
    open_stand_in,
    read_rows,
    refused,
    unread_columns,
)
from understudy.evaluate.pictures import named_pair, pairs_to_draw, pictures_of
from understudy.folders import CLOSED_FILE, CLOSED_FOLDER
from understudy.notebook import shown_as_html
from understudy.progress import Progress, silent
from understudy.release.files import RELEASE_FILE, check_free, published, refuse_release_folder
from understudy.release.release import Release
from understudy.report import Pictures, render_page, section_pictures
from understudy.schema import Schema

NOTICE = "NOT FOR RELEASE. Computed from the private table; no privacy guarantee covers these numbers."
YARDSTICK = (
    "The yardstick of a score is the same score for two random halves of the real table: what chance alone does to "
    "tables of half the size. A stand-in that scores as well as its yardstick is as close to the real table as its "
    "halves are to each other. Where the halves themselves score close to the worst value, the score cannot judge any "
    "stand-in."
)
FORMAT = "understudy evaluation, format 1"
JSON_ROWS = 1000


def _short(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of all metrics, in the order they were asked for.

    `left_out` are metrics that nobody asked for and that lack something here, with the reason; `unread` says which
    columns hold values that the schema cannot read as they are. `seconds` is how long each metric took; it is no part
    of the findings, so it is neither compared nor written.
    """

    title: str
    method: str
    promise: str
    real_rows: int
    synthetic_rows: tuple[int, ...]
    columns: tuple[str, ...]
    seed: int
    results: tuple[Result, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    titles: Mapping[str, str] = field(default_factory=dict)
    """What people call the columns and in what they are measured, where the schema says so."""
    pictures: tuple[Detail, ...] = ()
    """The numbers behind the report's pictures; none if they were not asked for."""

    def __repr__(self) -> str:
        heads = ", ".join(f"{one.metric} {_short(one.headline.value)}" for one in self.results[:6])
        more = f" and {len(self.results) - 6:,} more" if len(self.results) > 6 else ""
        return f"<Evaluation of {self.method or 'a table'}: {heads}{more}; {NOTICE}>"

    def _repr_html_(self) -> str:
        """For notebooks: every score beside its yardstick."""
        facts = [("real rows", f"{self.real_rows:,}"), ("method", self.method or "none named")]
        rows = [
            (result.metric, score.name, _short(score.value), _short(score.yardstick), score.direction)
            for result in self.results
            for score in result.scores
        ]
        header = ("metric", "score", "value", "yardstick", "better")
        return shown_as_html(f"Evaluation: {self.title or 'untitled table'}", facts, header, rows, NOTICE)

    def plot(self, what: str = "columns") -> Pictures:
        """Charts of the report: "columns", "pairs", "associations", "classifier", "models", "map" or "nearest".

        Two columns, as "sex,age", give their joint shares in both tables and the difference. CONFIDENTIAL, as the
        evaluation is.

        Raises:
            UsageError: if there is no such chart, with those that there are.
        """
        from understudy.evaluate.page import build_report, pair_figures

        compared = self.picture("columns")
        names = named_pair(what, self.columns if compared is None else compared["column"].unique().to_pylist())
        if names is not None:
            return Pictures(pair_figures(self, names), confidential=True)
        return section_pictures(
            build_report(self), what, missing="Some need pictures=True, or a formula, in `evaluate`."
        )

    def __getitem__(self, metric: str) -> Result:
        for result in self.results:
            if result.metric == metric:
                return result
        raise UsageError(f"metric {metric!r}", "was not computed.", nearest(metric, self.metrics))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics, in order."""
        return tuple(result.metric for result in self.results)

    def frame(self) -> pa.Table:
        """Every score in one table: metric, score, value, yardstick, direction, range, and reasons for gaps."""
        rows = [_flat(result, score) for result in self.results for score in result.scores]
        return pa.Table.from_pylist(rows, schema=_SCORES)

    def tables(self) -> dict[str, pa.Table]:
        """Every detail as "metric.detail", and all scores as "scores"."""
        found = {f"{result.metric}.{detail.name}": detail.table for result in self.results for detail in result.details}
        drawn = {f"pictures.{detail.name}": detail.table for detail in self.pictures}
        return {"scores": self.frame()} | found | drawn

    def picture(self, name: str) -> pa.Table | None:
        """The table behind a picture; None if there is none."""
        return next((detail.table for detail in self.pictures if detail.name == name), None)

    def to_json(self, rows: int | None = JSON_ROWS) -> dict[str, object]:
        """Everything as plain values; details longer than `rows` are cut there, and say how many rows they have."""
        return {
            "notice": NOTICE,
            "format": FORMAT,
            "title": self.title,
            "method": self.method,
            "promise": self.promise,
            "real_rows": self.real_rows,
            "synthetic_rows": list(self.synthetic_rows),
            "columns": list(self.columns),
            **({"titles": dict(self.titles)} if self.titles else {}),
            "seed": self.seed,
            "yardstick": YARDSTICK,
            "left_out": dict(self.left_out),
            "unread": [asdict(one) for one in self.unread],
            "metrics": [_result_document(result, rows) for result in self.results],
            "pictures": [_detail_document(detail, rows) for detail in self.pictures],
        }

    def save(self, folder: str | Path) -> None:
        """Writes the confidential report and every number behind it (JSON, and CSV for each table).

        A name that ends in .html is the report, with the numbers in a folder beside it; any other name is a folder.

        Raises:
            UsageError: if the place exists or lies in a release folder.
        """

        save_evaluation(self, Path(folder))


_SCORES = pa.schema(
    [
        ("metric", pa.string()),
        ("score", pa.string()),
        ("value", pa.float64()),
        ("yardstick", pa.float64()),
        ("direction", pa.string()),
        ("lowest", pa.float64()),
        ("highest", pa.float64()),
        ("best", pa.float64()),
        ("meaning", pa.string()),
        ("why_not", pa.string()),
        ("why_no_yardstick", pa.string()),
        ("baseline", pa.float64()),
    ]
)


def _flat(result: Result, score: Score) -> dict[str, object]:
    return {"metric": result.metric, "score": score.name} | _score_document(score)


def _score_document(score: Score) -> dict[str, object]:
    return {
        "name": score.name,
        "meaning": score.meaning,
        "value": score.value,
        "yardstick": score.yardstick,
        "direction": score.direction,
        "lowest": score.lowest,
        "highest": score.highest,
        "best": score.best,
        "why_not": score.why_not,
        "why_no_yardstick": score.why_no_yardstick,
        "baseline": score.baseline,
    }


def _result_document(result: Result, rows: int | None) -> dict[str, object]:
    return {
        "metric": result.metric,
        "question": result.question,
        "scores": [_score_document(score) for score in result.scores],
        "notes": list(result.notes),
        "details": [_detail_document(detail, rows) for detail in result.details],
    }


def _detail_document(detail: Detail, rows: int | None) -> dict[str, object]:
    return {
        "name": detail.name,
        "caption": detail.caption,
        "rows": detail.table.num_rows,
        "columns": detail.table.column_names,
        "first": detail.records(rows),
    }


MARKER = "NOT-FOR-RELEASE.txt"
EXPLANATION = (
    f"{NOTICE}\n\nThis folder compares a synthetic table with the private one. Publishing any number of it may reveal\n"
    "facts about single people. Keep it where the private table is kept.\n"
)
REPORT = "report.html"


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
    from understudy.evaluate.page import build_report

    check_place(place)
    numbers = "tables" if place.suffix.lower() != ".html" else f"{quote(numbers_beside(place).name)}/tables"
    page = render_page(build_report(evaluation, numbers))
    if place.suffix.lower() != ".html":
        _save_folder(evaluation, place, page)
        return
    _save_folder(evaluation, numbers_beside(place), None)
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, CLOSED_FILE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(page)


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


MetricLike = str | Metric
FITTED = ("regression", "ci_overlap")
"""Metrics that fit a model, and so take a formula."""
SLOW = ("classifiers",)
"""Metrics that take minutes where the others take seconds."""


def evaluate(
    real: object,
    synthetic: object,
    schema: Schema | str | Path | None = None,
    *,
    metrics: Sequence[MetricLike] | None = None,
    options: Mapping[str, Mapping[str, object]] | None = None,
    formula: str | None = None,
    seed: int = 0,
    pictures: bool = True,
    pairs: Sequence[str] = (),
    progress: Progress = silent,
) -> Evaluation:
    """Compares a stand-in with the real table. CONFIDENTIAL: no privacy guarantee covers the result.

    Args:
        real: the private table: a frame, a file, a DuckDB table.
        synthetic: a release, its folder, a synthetic table, or a list of tables (copies). A release may also be given
            first and the real table second.
        schema: what both may contain; a release has its own.
        metrics: names or metrics with options; when not given, all that the table has the columns for.
        options: options by metric name, for example {"pmse": {"null": "bootstrap"}}.
        formula: the model that `regression` and `ci_overlap` fit, for example "income ~ age + sex".
        seed: the same seed gives the same numbers.
        pictures: whether to compute what the report draws beside the scores.
        pairs: pairs of columns to draw first, for example ["sex,age"]; others follow as long as there is room.
        progress: a function to call as the comparison proceeds.

    Raises:
        UsageError: a metric, option or formula is wrong, there is no schema, or the real table is empty.
        SchemaError: a table does not have the schema's columns.
    """
    real, given = _placed(real, synthetic)
    _check_settings(seed, pairs, pictures=pictures)
    known = _known_schema(given, None if schema is None else Schema.of(schema))
    chosen = chosen_metrics(metrics, options or {}, formula)
    left_out = _left_out(chosen, known, options or {}, formula) if metrics is None else {}
    chosen = [metric for metric in chosen if metric.name not in left_out]
    check_metrics(chosen, known)
    progress.stage("prepare", 0.0)
    pair, method = _read(real, given, known, seed, progress)
    asked = _asked_pairs(pairs, pair.codec.domain.columns)
    results, seconds = _all_compared(chosen, pair, progress)
    began = time.monotonic()
    drawn = _drawn(pair, asked, results) if pictures else ()
    seconds["pictures"] = time.monotonic() - began
    columns, sizes = tuple(column.name for column in known.modelled), tuple(copy.count for copy in pair.copies)
    facts = (known.title, method, pair.promise, pair.real.count, sizes, columns, seed, results)
    return Evaluation(*facts, left_out, unread_columns(pair.real, pair.copies), seconds, known.titles, drawn)


def _check_settings(seed: int, texts: Sequence[str], *, pictures: bool) -> None:
    if type(seed) is not int or seed < 0:
        raise UsageError("seed", f"must be a whole number of 0 or more, got {seed!r}.")
    if texts and not pictures:
        raise UsageError("pairs", "are to be drawn, but pictures=False.", "Leave one of them out.")
    if isinstance(texts, str):
        raise UsageError("pairs", f"must be a list of texts, got {texts!r}.", f"Give [{texts!r}].")


def _asked_pairs(texts: Sequence[str], columns: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs to draw in any case, of the columns as they are compared: some are in parts, each with a name."""
    found = []
    for text in texts:
        names = named_pair(text, columns)
        if names is None:
            rule = "must name two columns that are compared, with a comma between them."
            raise UsageError(f"pair {text!r}", rule, f"There are {', '.join(columns[:20])}.")
        found.append(names)
    return found


def _drawn(pair: TablePair, asked: Sequence[tuple[str, str]], results: Sequence[Result]) -> tuple[Detail, ...]:
    """The numbers behind the pictures; none if there are no synthetic rows."""
    if any(copy.count == 0 for copy in pair.copies):
        return ()
    return pictures_of(pair, pairs_to_draw(pair, asked, _compared_pairs(results)))


def _compared_pairs(results: Sequence[Result]) -> list[tuple[str, str]]:
    """The pairs of columns that were compared, the largest distance first."""
    details = [detail for result in results for detail in result.details if result.metric == "marginals"]
    rows = [row for detail in details if detail.name == "pairs" for row in detail.records()]
    return [(str(row["column_1"]), str(row["column_2"])) for row in rows]


def _placed(first: object, second: object) -> tuple[object, object]:
    """The real table and the stand-in; a release is always the stand-in."""
    one, other = _loaded(first), _loaded(second)
    return (second, one) if isinstance(one, Release) and not isinstance(other, Release) else (first, other)


def _left_out(
    chosen: Sequence[Metric], schema: Schema, options: Mapping[str, Mapping[str, object]], formula: str | None
) -> dict[str, str]:
    """Metrics that nobody asked for, by name or by an option, and that lack something here, with the reason."""
    found = {metric.name: metric.lacks(schema) for metric in chosen if metric.name not in options}
    reasons = found | _not_loaded(options, formula)
    return {name: reasons[name] for name in METRICS.built_in if reasons.get(name)}


def _not_loaded(options: Mapping[str, Mapping[str, object]], formula: str | None) -> dict[str, str]:
    """Built-in metrics that run only where they are asked for, with the reason: so much is known before they load."""
    reasons = dict.fromkeys(SLOW, "takes long, so it runs only if it is named")
    reasons |= dict.fromkeys(FITTED, "no formula was given") if formula is None else {}
    return {name: reason for name, reason in reasons.items() if name not in options}


def check_metrics(chosen: Sequence[Metric], schema: Schema) -> None:
    """Lets every metric that looks at names check them against the schema, before anything is read."""
    for metric in chosen:
        metric.check(schema)


def _all_compared(
    chosen: Sequence[Metric], pair: TablePair, progress: Progress
) -> tuple[tuple[Result, ...], dict[str, float]]:
    results: list[Result] = []
    seconds: dict[str, float] = {}
    for place, metric in enumerate(chosen):
        context = Context(metric.name, pair.seed, place / len(chosen), (place + 1) / len(chosen), progress)
        context.done(0.0)
        began = time.monotonic()
        results.append(_compared(metric, pair, context))
        seconds[metric.name] = time.monotonic() - began
    progress.stage("measure", 1.0)
    return tuple(results), seconds


def _compared(metric: Metric, pair: TablePair, context: Context) -> Result:
    if any(copy.count == 0 for copy in pair.copies):
        return refused(metric, "the synthetic table has no rows")
    return metric.compare(pair, context)


def chosen_metrics(
    metrics: Sequence[MetricLike] | None, options: Mapping[str, Mapping[str, object]], formula: str | None
) -> list[Metric]:
    """The metrics that are asked for, with their options; all that need no asking when none is named."""
    wanted = tuple(METRICS.built_in) if metrics is None else tuple(metrics)
    if not wanted:
        raise UsageError("metrics", "is empty.", "Omit it to run all metrics.")
    called = [name for name in wanted if isinstance(name, str)]
    if metrics is None:
        wanted = tuple(name for name in called if name not in _not_loaded(options, formula))
    for name in options:
        if name not in called:
            rule = "are given, but that metric was not requested by name."
            raise UsageError(
                f"options of metric {name!r}", rule, "Name the metric with metrics=, or leave its options out."
            )
    fitted = [name for name in called if name in FITTED and "formula" not in options.get(name, {})]
    if formula is not None and not fitted:
        rule = f"is for {' and '.join(FITTED)}, but none of the requested metrics needs one."
        raise UsageError("formula", rule, "Name one of them with metrics=, or drop the formula.")
    if metrics is not None and formula is None and fitted:
        fix = 'Give formula, for example "income ~ age + sex".'
        raise UsageError(f"metric {fitted[0]!r}", "fits a model, and none is given.", fix)
    found: list[Metric] = []
    for one in wanted:
        if not isinstance(one, str):
            found.append(one)
            continue
        model = {"formula": formula} if formula is not None and one in fitted else {}
        found.append(METRICS.make(one, {**options.get(one, {}), **model}))
    repeated = sorted({one.name for one in found if sum(other.name == one.name for other in found) > 1})
    if repeated:
        raise UsageError("metrics", f"names {repeated[0]!r} twice.", "Evaluate twice to compare options.")
    return found


def _loaded(given: object) -> object:
    """The release in a folder, if that is what is given."""
    if isinstance(given, str | Path) and (Path(given) / RELEASE_FILE).is_file():
        return Release.load(given)
    return given


def _known_schema(synthetic: object, schema: Schema | None) -> Schema:
    if isinstance(synthetic, Release):
        if schema is not None and schema != synthetic.schema:
            raise UsageError("schema", "is not the schema of the release.", "Leave it out: a release has its own.")
        return synthetic.schema
    if schema is None:
        said = str(synthetic) if isinstance(synthetic, str | Path) else ""
        if said and ":" not in said and not glob.has_magic(said) and not os.path.lexists(said):
            raise UsageError(f"release {said!r}", "does not exist.", "Check the path.")
        fix = "Give schema=, or a release, which has its own."
        raise UsageError(
            "schema", "is needed to read both tables, because the synthetic one is not a release folder.", fix
        )
    return schema


def _read(real: object, synthetic: object, schema: Schema, seed: int, progress: Progress) -> tuple[TablePair, str]:
    """Both tables under one codec, and the method of a release."""
    table = open_for_comparison(real, schema)
    if isinstance(synthetic, Release):
        copies = [open_stand_in(copy, schema) for copy in synthetic.tables]
        method = synthetic.statement.method
        promise = f"The release says: “{synthetic.statement.promise}” That does not cover this report."
        codec = judging_codec(synthetic.codec)
        mode = synthetic.config.copies_mode
    else:
        given = synthetic if isinstance(synthetic, list | tuple) else [synthetic]
        copies = [open_stand_in(copy, schema) for copy in given]
        promise, method, codec = "", "", fixed_codec(table, schema)
        mode = ""
    if not copies:
        raise UsageError("synthetic", "holds no table.")
    return TablePair(codec, *_rows(table, copies, codec, progress), seed, promise, mode), method


def _rows(
    real: PrivateTable, copies: Sequence[PrivateTable], codec: TableCodec, progress: Progress
) -> tuple[Rows, tuple[Rows, ...]]:
    found = []
    for place, table in enumerate([real, *copies]):
        found.append(read_rows(table, codec))
        progress.stage("prepare", (place + 1) / (1 + len(copies)))
    if not found[0].count:
        raise UsageError("real table", "has no rows, so there is nothing to compare with.", "Check the path.")
    return found[0], tuple(found[1:])
