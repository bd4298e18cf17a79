"""`understudy evaluate`: how close a stand-in is to the real table. Confidential, and never written into a release."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, Shell, shell
from understudy.cli.options import pairs
from understudy.errors import UsageError

if TYPE_CHECKING:
    from understudy.evaluate import Evaluation
    from understudy.schema import Schema

__all__ = ["NAMES", "FormulaText", "MetricSettings", "evaluate", "metric_options", "show_evaluation"]

First = Annotated[str, typer.Argument(metavar="REAL", help="The private table. Real table and release may be swapped.")]
Second = Annotated[str, typer.Argument(metavar="RELEASE", help="A release folder, or a synthetic table with --schema.")]
Folder = Annotated[
    Path,
    typer.Option("--out", "-o", help="A new NAME.html, with its numbers in NAME-numbers/; or a new folder for both."),
]
SchemaOption = Annotated[Path | None, typer.Option("--schema", help="What both tables may contain; a release has it.")]
NAMES = (
    "marginals, crosstab_l1, specks, pmse, nist, chi2, slopes, correlations, regression, ci_overlap, prediction, "
    "rules, disclosure"
)
"""Written out, so that the help page need not load the metrics."""
MetricNames = Annotated[
    list[str] | None,
    typer.Option("--metric", help=f'Only this metric; repeat for more: {NAMES}. See "understudy metrics".'),
]
MetricSettings = Annotated[
    list[str] | None, typer.Option("--set", metavar="METRIC.OPTION=VALUE", help="Option of a metric.")
]
FormulaText = Annotated[
    str | None, typer.Option("--formula", help='Model for regression and ci_overlap, as "income ~ age + sex".')
]
EvaluationSeed = Annotated[int, typer.Option("--seed", help="Same seed, same numbers.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Also print how long each metric took.")]


def evaluate(
    real: First,
    synthetic: Second,
    out: Folder,
    *,
    schema: SchemaOption = None,
    metric: MetricNames = None,
    settings: MetricSettings = None,
    formula: FormulaText = None,
    seed: EvaluationSeed = 0,
    verbose: Verbose = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compares a stand-in with the real table, metric by metric, each beside its yardstick.

    NOT FOR RELEASE: the numbers are computed from private rows and no privacy guarantee covers them.
    """
    with shell(quiet=quiet, debug=debug) as place:
        with place.running(("prepare", "measure", "write")) as progress:
            from understudy.evaluate.store import check_place
            from understudy.evaluate.suite import evaluate as run_all

            check_place(out)
            found = run_all(
                real,
                synthetic,
                _read(schema),
                metrics=metric,
                options=metric_options(settings),
                formula=formula,
                seed=seed,
                progress=progress,
            )
            progress.stage("write", 0.0)
            found.save(out)
            progress.stage("write", 1.0)
        show_evaluation(place, found, out, verbose=verbose)


def _read(schema: Path | None) -> "Schema | None":
    from understudy.schema import Schema

    return None if schema is None else Schema.from_yaml(schema)


def metric_options(settings: list[str] | None) -> dict[str, dict[str, object]]:
    """Options by metric, from texts such as pmse.null=bootstrap."""
    found: dict[str, dict[str, object]] = {}
    for key, value in pairs("--set", settings).items():
        metric, dot, option = key.partition(".")
        if not dot or not metric or not option:
            raise UsageError("--set", f"must be METRIC.OPTION=VALUE, got {key!r}.")
        found.setdefault(metric, {})[option] = value
    return found


def _remarks(evaluation: "Evaluation") -> list[str]:
    """What the table of scores does not say by itself."""
    found = []
    for result in evaluation.results:
        if result.headline.value is not None and result.headline.blind:
            found.append(f"{result.metric}: {result.headline.name} {result.headline.reading}.")
    if evaluation.left_out:
        reasons = "; ".join(f"{name} ({reason})" for name, reason in evaluation.left_out.items())
        found.append(f"Left out, as they were not asked for by name: {reasons}.")
    return found


def show_evaluation(place: Shell, evaluation: "Evaluation", folder: Path, *, verbose: bool) -> None:
    """Every score beside its yardstick."""
    from understudy.evaluate.evaluation import NOTICE

    place.line(NOTICE)
    for one in evaluation.unread:
        for sentence in one.sentences():
            place.line(sentence)
    rows = []
    for result in evaluation.results:
        for score in result.scores:
            value = score.why_not if score.value is None else f"{score.value:.6g}"
            line = "none" if score.yardstick is None else f"{score.yardstick:.6g}"
            rows.append([result.metric, score.name, value, line, score.direction])
    place.table(["metric", "score", ">value", ">yardstick", "better"], rows)
    for line in _remarks(evaluation):
        place.line(line)
    if verbose:
        times = [[name, f"{seconds:.1f}"] for name, seconds in evaluation.seconds.items()]
        place.table(["metric", ">seconds"], times)
    place.line(f"Confidential report: {folder}")
    if folder.suffix.lower() == ".html":
        from understudy.evaluate.store import numbers_beside

        place.line(f"Confidential numbers behind it: {numbers_beside(folder)}")
