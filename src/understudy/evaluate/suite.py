"""evaluate: every metric on the real table and its stand-in, both read through one codec."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from understudy.codec.table_codec import TableCodec
from understudy.counts.source import PrivateTable
from understudy.errors import UsageError
from understudy.evaluate.data.pair import Context, Pair
from understudy.evaluate.data.rows import Rows, open_for_comparison, read_rows
from understudy.evaluate.data.settle import judging_codec, settled_codec
from understudy.evaluate.data.unread import unread_columns
from understudy.evaluate.evaluation import Evaluation
from understudy.evaluate.metric import Metric, lacking, refused
from understudy.evaluate.registry import metric as metric_of
from understudy.evaluate.registry import names
from understudy.evaluate.score import Result
from understudy.progress import Progress, silent
from understudy.release.folder import RELEASE_FILE
from understudy.release.release import Release
from understudy.schema import Schema

__all__ = ["check_metrics", "chosen_metrics", "evaluate"]

MetricLike = str | Metric
FITTED = ("regression", "ci_overlap")
"""Metrics that fit a model, and so take a formula."""


def evaluate(
    real: object,
    synthetic: object,
    schema: Schema | None = None,
    *,
    metrics: Sequence[MetricLike] | None = None,
    options: Mapping[str, Mapping[str, object]] | None = None,
    formula: str | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Evaluation:
    """Compares a stand-in with the real table. CONFIDENTIAL: no privacy guarantee covers the result.

    Args:
        real: the private table: a frame, a file, a DuckDB table.
        synthetic: a release, its folder, a synthetic table, or a list of tables (copies). A release may also be given
            first and the real table second.
        schema: what both may contain; a release brings its own.
        metrics: names or metrics with options; when not given, all that the table has the columns for.
        options: options by metric name, for example {"pmse": {"null": "bootstrap"}}.
        formula: the model that `regression` and `ci_overlap` fit, for example "income ~ age + sex".
        seed: same seed, same numbers.
        progress: is told how far the comparison is.

    Raises:
        UsageError: a metric, option or formula is wrong, there is no schema, or the real table is empty.
        SchemaError: a table does not have the schema's columns.
    """
    real, given = _placed(real, synthetic)
    if type(seed) is not int or seed < 0:
        raise UsageError("seed", f"must be a whole number of 0 or more, got {seed!r}.")
    known = _known_schema(given, schema)
    chosen = chosen_metrics(metrics, options or {}, formula)
    left_out = _left_out(chosen, known, options or {}) if metrics is None else {}
    chosen = [metric for metric in chosen if metric.name not in left_out]
    check_metrics(chosen, known)
    progress.stage("prepare", 0.0)
    pair, method = _read(real, given, known, seed, progress)
    results, seconds = _all_compared(chosen, pair, progress)
    columns = tuple(column.name for column in known.modelled)
    sizes = tuple(copy.count for copy in pair.copies)
    facts = (known.title, method, pair.promise, pair.real.count, sizes, columns, seed, results)
    return Evaluation(*facts, left_out, unread_columns(pair.real, pair.copies), seconds)


def _placed(first: object, second: object) -> tuple[object, object]:
    """The real table and the stand-in; a release is always the stand-in."""
    one, other = _loaded(first), _loaded(second)
    return (second, one) if isinstance(one, Release) and not isinstance(other, Release) else (first, other)


def _left_out(chosen: Sequence[Metric], schema: Schema, options: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    """Metrics that nobody asked for, by name or by an option, and that lack something here, with the reason."""
    reasons = {metric.name: lacking(metric, schema) for metric in chosen if metric.name not in options}
    return {name: reason for name, reason in reasons.items() if reason}


def check_metrics(chosen: Sequence[Metric], schema: Schema) -> None:
    """Lets every metric that looks at names check them against the schema, before anything is read."""
    for metric in chosen:
        check = getattr(metric, "check", None)
        if check is not None:
            check(schema)


def _all_compared(
    chosen: Sequence[Metric], pair: Pair, progress: Progress
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


def _compared(metric: Metric, pair: Pair, context: Context) -> Result:
    if any(copy.count == 0 for copy in pair.copies):
        return refused(metric, "the synthetic table has no rows")
    return metric.compare(pair, context)


def chosen_metrics(
    metrics: Sequence[MetricLike] | None, options: Mapping[str, Mapping[str, object]], formula: str | None
) -> list[Metric]:
    """The metrics that are asked for, with their options; all of them when none is named."""
    wanted = names() if metrics is None else tuple(metrics)
    if not wanted:
        raise UsageError("metrics", "names none.", "Leave it out for all of them.")
    called = [name for name in wanted if isinstance(name, str)]
    for name in options:
        if name not in called:
            raise UsageError(f"options of metric {name!r}", "are given, but it is not asked for by name.")
    fitted = [name for name in called if name in FITTED and "formula" not in options.get(name, {})]
    if formula is not None and not fitted:
        rule = f"is for {' and '.join(FITTED)}, and none of them asks for one."
        raise UsageError("formula", rule, "Ask for one of them by name, or drop the formula.")
    if metrics is not None and formula is None and fitted:
        fix = 'Give formula, for example "income ~ age + sex".'
        raise UsageError(f"metric {fitted[0]!r}", "fits a model, and none is given.", fix)
    found: list[Metric] = []
    for one in wanted:
        if not isinstance(one, str):
            found.append(one)
            continue
        model = {"formula": formula} if formula is not None and one in fitted else {}
        found.append(metric_of(one, {**options.get(one, {}), **model}))
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
            raise UsageError("schema", "is not that of the release.", "Leave it out: a release brings its own.")
        return synthetic.schema
    if schema is None:
        fix = "Give schema=, or a release, which brings its own."
        raise UsageError("schema", "is needed to read both tables.", fix)
    return schema


def _read(real: object, synthetic: object, schema: Schema, seed: int, progress: Progress) -> tuple[Pair, str]:
    """Both tables under one codec, and the method of a release."""
    table = open_for_comparison(real, schema)
    if isinstance(synthetic, Release):
        copies = [open_for_comparison(copy, schema) for copy in synthetic.tables]
        promise, method = synthetic.statement.promise, synthetic.statement.method
        codec = judging_codec(synthetic.codec)
        mode = synthetic.config.copies_mode
    else:
        given = synthetic if isinstance(synthetic, list | tuple) else [synthetic]
        copies = [open_for_comparison(copy, schema) for copy in given]
        promise, method, codec = "", "", settled_codec(table, schema)
        mode = ""
    if not copies:
        raise UsageError("synthetic", "holds no table.")
    return Pair(codec, *_rows(table, copies, codec, progress), seed, promise, mode), method


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
