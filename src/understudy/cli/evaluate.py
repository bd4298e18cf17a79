"""`understudy evaluate`, `understudy metrics` and `understudy pool`.

`understudy evaluate`: how close a stand-in is to the real table. Confidential, and never written into a release.

`understudy pool`: estimates with honest intervals from a release. Reads no private data.
"""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, Shell, shell
from understudy.cli.options import Json, ReleaseFolder, conditions, pairs, reads_table
from understudy.errors import UsageError

if TYPE_CHECKING:
    from understudy.evaluate import Evaluation
    from understudy.schema import Schema

First = Annotated[str, typer.Argument(metavar="REAL", help="The private table. Real table and release may be swapped.")]
Second = Annotated[str, typer.Argument(metavar="RELEASE", help="A release folder, or a synthetic table with --schema.")]
Folder = Annotated[
    Path,
    typer.Option("--out", "-o", help="A new NAME.html, with its numbers in NAME-numbers/; or a new folder for both."),
]
SchemaOption = Annotated[
    Path | None, typer.Option("--schema", help="What both tables may contain; a release brings its own.")
]
NAMES = (
    "marginals, crosstab_l1, specks, pmse, nist, chi2, slopes, correlations, regression, ci_overlap, prediction, "
    "rules, disclosure"
)
"""Written out, so that the help page need not load the metrics."""
MetricNames = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", help=f'Metric to run (all by default); may be repeated: {NAMES}. See "understudy metrics".'
    ),
]
MetricSettings = Annotated[
    list[str] | None, typer.Option("--set", metavar="METRIC.OPTION=VALUE", help="Option of a metric; may be repeated.")
]
FormulaText = Annotated[
    str | None, typer.Option("--formula", help='Model for regression and ci_overlap, e.g. "income ~ age + sex".')
]
EvaluationSeed = Annotated[
    int, typer.Option("--seed", help="Seed of the evaluation: the same seed gives the same numbers.")
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Also print how long each metric took.")]


@reads_table("real")
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
            from understudy.evaluate.suite import check_place
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
    from understudy.evaluate.suite import NOTICE

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
        from understudy.evaluate.suite import numbers_beside

        place.line(f"Confidential numbers behind it: {numbers_beside(folder)}")


Formula = Annotated[
    str | None, typer.Option("--formula", help='Model to fit to every copy and pool, e.g. "income ~ age + sex".')
]
FamilyOption = Annotated[str, typer.Option("--family", help="Kind of model: auto, linear, logistic or firth.")]
Shares = Annotated[
    list[str] | None,
    typer.Option(
        "--share", metavar="COLUMN=VALUE[,…]", help="Share to estimate from noisy answers; repeat for further shares."
    ),
]
Level = Annotated[float, typer.Option("--level", help="Confidence level of the intervals, e.g. 0.95.")]
FAMILIES = ("auto", "linear", "logistic", "firth")


def pool(
    release: ReleaseFolder,
    *,
    formula: Formula = None,
    family: FamilyOption = "auto",
    share: Shares = None,
    level: Level = 0.95,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Pools a model over the copies of a release, or gives measured shares with intervals that include the noise."""
    with shell(quiet=quiet, debug=debug) as place:
        from understudy.evaluate.pooling import measured_share, pool_model
        from understudy.release import Release

        if formula is None and not share:
            raise UsageError("pool", "needs --formula or --share.")
        if family not in FAMILIES:
            raise UsageError("--family", f"must be one of {', '.join(FAMILIES)}, got {family!r}.")
        loaded = Release.load(release)
        found: dict[str, object] = {}
        if share:
            shares = [measured_share(loaded, conditions("--share", [text]), level=level) for text in share]
            found["shares"] = [dataclasses.asdict(one) for one in shares]
        if formula is not None:
            model = pool_model(loaded, formula, family, level=level)  # type: ignore[arg-type]
            found["model"] = dataclasses.asdict(model)
        if json:
            place.json(found)
            return
        if share:
            _show_shares(place, [(text, one) for text, one in zip(share, shares, strict=True)])
        if formula is not None:
            rows = [
                [name, f"{one.estimate:.6g}", f"{one.low:.6g}", f"{one.high:.6g}", _degrees(one.degrees)]
                for name, one in model.coefficients.items()
            ]
            place.table(["coefficient", ">estimate", ">low", ">high", ">degrees"], rows, title=model.formula)
            for note in model.notes:
                place.note(note)
            if model.left_out:
                place.note(f"Not estimable in every copy, left out: {', '.join(model.left_out)}.")


def _degrees(degrees: float | None) -> str:
    return "normal" if degrees is None else f"{degrees:.1f}"


def _show_shares(place: Shell, shares: list[tuple[str, object]]) -> None:
    from understudy.evaluate.pooling import MeasuredShare

    rows = []
    for text, one in shares:
        assert isinstance(one, MeasuredShare)
        table = f"{one.table_low:.4f} … {one.table_high:.4f}"
        population = f"{one.population_low:.4f} … {one.population_high:.4f}"
        rows.append([text, f"{one.estimate:.4f}", table, population, one.question])
    place.table(["share of", ">estimate", "in the private table", "in the population", "measured as"], rows)
    for note in dict.fromkeys(note for _, one in shares if isinstance(one, MeasuredShare) for note in one.notes):
        place.note(note)
