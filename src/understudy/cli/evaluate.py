"""`understudy evaluate` and `understudy pool`: how close a stand-in is to the real table, and estimates from a release.

An evaluation is confidential and never written into a release; pooling reads no private data.
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
    from understudy.evaluate.measured import MeasuredNumber
    from understudy.evaluate.measured_models import MeasuredModel
    from understudy.evaluate.pooling import MeasuredQuestion, PooledModel
    from understudy.release import Release
    from understudy.schema import Schema

First = Annotated[
    str, typer.Argument(metavar="REAL", help="The private table. The two arguments may come in either order.")
]
Second = Annotated[str, typer.Argument(metavar="RELEASE", help="A release folder, or a synthetic table with --schema.")]
Folder = Annotated[
    Path,
    typer.Option(
        "--out", "-o", help="The report: a new NAME.html, with its numbers in NAME-numbers/; or a new folder for both."
    ),
]
SchemaOption = Annotated[
    Path | None, typer.Option("--schema", help="Schema of both tables; not needed with a release, which has its own.")
]
NAMES = (
    "marginals, crosstab_l1, specks, pmse, classifiers, nist, chi2, slopes, correlations, regression, ci_overlap, "
    "prediction, rules, disclosure"
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
PairTexts = Annotated[
    list[str] | None,
    typer.Option("--pair", metavar="COLUMN,COLUMN", help="Pair of columns to draw in the report; may be repeated."),
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
    pair: PairTexts = None,
    seed: EvaluationSeed = 0,
    verbose: Verbose = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compares a stand-in with the real table, metric by metric, and shows each score beside its yardstick.

    NOT FOR RELEASE: the numbers are computed from private rows and no privacy guarantee covers them.
    """
    with shell("evaluate", quiet=quiet, debug=debug, as_json=as_json) as place:
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
                pairs=pair or (),
                progress=progress,
            )
            progress.stage("write", 0.0)
            found.save(out)
            progress.stage("write", 1.0)
        place.json(_document(found, out))
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


def _document(evaluation: "Evaluation", out: Path) -> dict[str, object]:
    """Every score for programs."""
    from understudy.evaluate.suite import NOTICE, numbers_beside

    scores = [
        {
            "metric": result.metric,
            "score": score.name,
            "value": score.value,
            "yardstick": score.yardstick,
            "better": score.direction,
            "why_not": score.why_not,
        }
        for result in evaluation.results
        for score in result.scores
    ]
    page = out.suffix.lower() == ".html"
    return {
        "notice": NOTICE,
        "scores": scores,
        "seconds": dict(evaluation.seconds),
        "left_out": dict(evaluation.left_out),
        "unread": [sentence for one in evaluation.unread for sentence in one.sentences()],
        "report": str(out),
        "numbers": str(numbers_beside(out) if page else out),
    }


def _remarks(evaluation: "Evaluation") -> list[str]:
    """What the table of scores does not say by itself."""
    found = []
    for result in evaluation.results:
        if result.headline.value is not None and result.headline.blind:
            found.append(f"{result.metric}: {result.headline.name} {result.headline.reading}.")
    if evaluation.left_out:
        reasons = "; ".join(f"{name} ({reason})" for name, reason in evaluation.left_out.items())
        found.append(f"Left out: {reasons}.")
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
            value = score.why_not if score.value is None else f"{score.value:.4g}"
            line = "none" if score.yardstick is None else f"{score.yardstick:.4g}"
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


Formula = Annotated[str | None, typer.Option("--formula", help='Model to estimate, e.g. "income ~ age + sex".')]
FamilyOption = Annotated[str, typer.Option("--family", help="Kind of model: auto, linear, logistic or firth.")]
Shares = Annotated[
    list[str] | None,
    typer.Option("--share", metavar="COLUMN=VALUE[,…]", help="Share to estimate from noisy answers; may be repeated."),
]
Rates = Annotated[
    list[str] | None,
    typer.Option("--rate", metavar="COLUMN=VALUE[,…]", help="Share among the rows of --where, for each group of --by."),
]
Means = Annotated[list[str] | None, typer.Option("--mean", metavar="COLUMN", help="Mean to estimate; may be repeated.")]
Quantiles = Annotated[
    list[str] | None,
    typer.Option(
        "--quantile", metavar="COLUMN=SHARE", help="Quantile, such as income=0.5 for the median; may be repeated."
    ),
]
Given = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="COLUMN=VALUE[,…]", help="Rows to which --rate, --mean and --quantile apply."),
]
Groups = Annotated[
    str | None, typer.Option("--by", metavar="COLUMN", help="Column of groups: one number for each of its labels.")
]
FromCopies = Annotated[
    bool,
    typer.Option(
        "--from-copies", help="Fit the formula to copies that were each measured anew; its intervals may be too short."
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
    rate: Rates = None,
    mean: Means = None,
    quantile: Quantiles = None,
    where: Given = None,
    by: Groups = None,
    from_copies: FromCopies = False,
    level: Level = 0.95,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Estimates shares, rates, means, quantiles and pooled models of a release, with intervals that include the noise.

    All come from noisy tables that were measured; a model may combine tables of some of its columns. No privacy cost.
    What cannot be answered is refused after the answers to the rest, and the exit status is 2.
    """
    with shell("pool", quiet=quiet, debug=debug, as_json=as_json) as place:
        from understudy.evaluate.pooling import pool_model
        from understudy.release import Release

        questions = _questions(share, rate, mean, quantile, (conditions("--where", where), by, level))
        if formula is None and not questions:
            raise UsageError("pool", "needs --formula, --share, --rate, --mean or --quantile.")
        if family not in FAMILIES:
            raise UsageError("--family", f"must be one of {', '.join(FAMILIES)}, got {family!r}.")
        loaded = Release.load(release)
        if from_copies and formula is None:
            raise UsageError("--from-copies", "needs --formula.")
        answers, refused = _answered(questions, loaded)
        model = None
        try:
            if formula is not None:
                model = pool_model(loaded, formula, family, level=level, from_copies=from_copies)  # type: ignore[arg-type]
        except UsageError as error:
            refused.append(error)
        if answers or model is not None:
            _show_answers(place, answers, model, refused)
        if refused:
            raise _refusal(refused)


def _answered(
    questions: "list[tuple[str, MeasuredQuestion]]", release: "Release"
) -> "tuple[list[tuple[str, MeasuredNumber]], list[UsageError]]":
    """The answers, each with its key in JSON, and why the other questions have none."""
    answers, refused = [], []
    for kind, question in questions:
        try:
            answers += [(kind, one) for one in question.answers(release)]
        except UsageError as error:
            refused.append(error)
    return answers, refused


def _refusal(refused: list[UsageError]) -> UsageError:
    """One error for everything that was refused."""
    texts = list(dict.fromkeys(map(str, refused)))
    if len(texts) == 1:
        return refused[0]
    return UsageError("pool", f"has no answer to {len(refused)} of the questions. {' '.join(texts)}")


def _show_answers(
    place: Shell,
    answers: "list[tuple[str, MeasuredNumber]]",
    model: "PooledModel | MeasuredModel | None",
    refused: list[UsageError],
) -> None:
    found: dict[str, object] = {}
    for kind, one in answers:
        found.setdefault(kind, []).append(dataclasses.asdict(one))  # type: ignore[attr-defined]
    found |= {} if model is None else {"model": dataclasses.asdict(model)}
    place.json(found | ({"refused": list(map(str, refused))} if refused else {}))
    if answers:
        _show_numbers(place, [one for _, one in answers])
    if model is not None:
        _show_model(place, model)


def _questions(
    share: list[str] | None,
    rate: list[str] | None,
    mean: list[str] | None,
    quantile: list[str] | None,
    about: tuple[dict[str, str], str | None, float],
) -> "list[tuple[str, MeasuredQuestion]]":
    """What is asked of the noisy answers, each under its key in JSON."""
    from understudy.evaluate.pooling import MeasuredQuestion

    given, by, level = about
    if (given or by) and not (rate or mean or quantile):
        fix = "For a share among some rows, or for each group, use --rate instead of --share."
        raise UsageError("--where" if given else "--by", "needs --rate, --mean or --quantile.", fix)
    where = given or None
    found = [("shares", MeasuredQuestion(conditions("--share", [one]), level=level)) for one in share or ()]
    for one in rate or ():
        found.append(("rates", MeasuredQuestion(where, conditions("--rate", [one]), by=by, level=level)))
    found += [("means", MeasuredQuestion(where, mean=one, by=by, level=level)) for one in mean or ()]
    for name, text in pairs("--quantile", quantile, "COLUMN=SHARE").items():
        found.append(("quantiles", MeasuredQuestion(where, quantile={name: _share(text)}, by=by, level=level)))
    return found


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError as cause:
        raise UsageError("--quantile", f"must be COLUMN=SHARE, as income=0.5, got {text!r}.") from cause


def _show_model(place: Shell, model: "PooledModel | MeasuredModel") -> None:
    from understudy.evaluate.measured_models import MeasuredModel

    if isinstance(model, MeasuredModel):
        _show_measured_model(place, model)
    else:
        rows = [
            [name, _plain(one.estimate), f"{_plain(one.low)} … {_plain(one.high)}", _degrees(one.degrees)]
            for name, one in model.coefficients.items()
        ]
        place.table(["coefficient", ">estimate", "in the population", ">degrees"], rows, title=model.formula)
    for note in model.notes:
        place.note(note)
    if model.left_out:
        place.note(f"Cannot be estimated, left out: {', '.join(model.left_out)}.")


def _show_measured_model(place: Shell, model: "MeasuredModel") -> None:
    binned = any(one.within_bins for one in model.coefficients.values())
    rows = []
    for name, one in model.coefficients.items():
        table = f"{_plain(one.table_low)} … {_plain(one.table_high)}"
        population = f"{_plain(one.population_low)} … {_plain(one.population_high)}"
        rows.append(
            [name, _plain(one.estimate), table, population, *([f"± {_plain(one.within_bins, 3)}"] if binned else [])]
        )
    header = ["coefficient", ">estimate", "in the private table", "in the population"]
    title = f"{model.formula} ({model.family}), measured as {model.question}"
    place.table([*header, *(["from the bins"] if binned else [])], rows, title=title)


def _degrees(degrees: float | None) -> str:
    return "normal" if degrees is None else f"{degrees:.1f}"


def _show_numbers(place: Shell, numbers: "list[MeasuredNumber]") -> None:
    binned = any(one.within_bins for one in numbers)
    rows = []
    for one in numbers:
        table = f"{_plain(one.table_low)} … {_plain(one.table_high)}"
        population = f"{_plain(one.population_low)} … {_plain(one.population_high)}"
        bins = [f"± {_plain(one.within_bins, 3)}"] if binned else []
        rows.append([one.named, _plain(one.estimate), table, population, *bins, one.question])
    header = ["number", ">estimate", "in the private table", "in the population"]
    place.table([*header, *(["from the bins"] if binned else []), "measured as"], rows)
    for note in dict.fromkeys(note for one in numbers for note in one.notes):
        place.note(note)


def _plain(value: float, digits: int = 4) -> str:
    """A number rounded to some digits, without an exponent unless it is huge or tiny.

    >>> _plain(10_000.0), _plain(1633.2, 3), _plain(0.05053), _plain(2e20)
    ('10000', '1630', '0.05053', '2e+20')
    """
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text and abs(value) < 1e15 else text
