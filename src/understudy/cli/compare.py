"""`understudy compare`: which method, at which ε? Every run in its own process, in a folder that can be resumed."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, Shell, in_flags, shell, show_error
from understudy.cli.evaluate import NAMES, FormulaText, MetricSettings, metric_options
from understudy.cli.options import (
    Copies,
    CopiesMode,
    Dataset,
    Delta,
    Json,
    LedgerFile,
    PublicTable,
    RowCount,
    SchemaFile,
    Table,
    memory_bytes,
    reads_table,
)
from understudy.errors import UsageError

if TYPE_CHECKING:
    from understudy.compare import Choice, Comparison

REPEATS = 3
MINUTES, MEMORY = 60.0, "16GiB"
SHORT_OF = ("refused", "memory", "time")
"""Ends of a run that wider limits or a larger machine may change."""

Methods = Annotated[
    list[str], typer.Option("--method", help='Method, with options as in "steps layers=2"; may be repeated.')
]
Epsilons = Annotated[list[float], typer.Option("--epsilon", help="Privacy budget ε; may be repeated.")]
Repeats = Annotated[int, typer.Option("--repeats", help="Number of runs of each method at each ε.")]
Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", help=f"Metric (default: marginals and specks); may be repeated: {NAMES}."),
]
StudyPlace = Annotated[Path, typer.Option("--out", "-o", help="Folder of the study; an unfinished study is continued.")]
Minutes = Annotated[float, typer.Option("--minutes", help="Time limit of one run, in minutes.")]
RunMemory = Annotated[str, typer.Option("--memory", metavar="SIZE", help="Memory limit of one run, e.g. 4GiB.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Number of runs at a time, as far as memory allows.")]
Proxy = Annotated[bool, typer.Option("--public-proxy", help="The table is public: nothing here is confidential.")]
ChoiceEpsilon = Annotated[
    float | None,
    typer.Option(
        "--choose",
        metavar="EPSILON",
        help="Choose one method privately: spends this ε, plus --epsilon for each method.",
    ),
]
StudySeed = Annotated[
    int, typer.Option("--seed", help="Seed for sampling rows and for scoring. Privacy noise is never seeded.")
]


@reads_table("table")
def compare(
    table: Table,
    schema: SchemaFile,
    methods: Methods,
    epsilons: Epsilons,
    out: StudyPlace,
    *,
    delta: Delta = 0.0,
    repeats: Repeats = REPEATS,
    copies: Copies = 1,
    copies_mode: CopiesMode = "resample",
    metrics: Metrics = None,
    settings: MetricSettings = None,
    formula: FormulaText = None,
    rows: RowCount = None,
    public: PublicTable = None,
    public_proxy: Proxy = False,
    choose: ChoiceEpsilon = None,
    ledger: LedgerFile = None,
    dataset: Dataset = None,
    minutes: Minutes = MINUTES,
    memory: RunMemory = MEMORY,
    jobs: Jobs = 1,
    seed: StudySeed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Runs every method at every ε and scores it against the table. NOT FOR RELEASE, unless the table is public.

    With --choose, one release is made with each method and one of them is chosen privately. All of it is charged to the
    ledger.
    """
    with shell("compare", quiet=quiet, debug=debug, as_json=as_json, charges=choose is not None) as place:
        _require_agreement(choose, epsilons, ledger, dataset)
        if choose is not None and ledger is not None:
            alone = {"--copies": copies != 1, "--copies-mode": copies_mode != "resample", "--seed": seed != 0}
            alone |= {"--repeats": repeats != REPEATS, "--rows": rows is not None, "--public-proxy": public_proxy}
            alone |= {"--minutes": minutes != MINUTES, "--memory": memory != MEMORY, "--jobs": jobs != 1}
            named = {"--metric": metrics, "--set": settings, "--formula": formula, "--public": public}
            _refuse_unused(alone | {name: value is not None for name, value in named.items()})
            paid = _Paid((epsilons[0], delta), choose, ledger, dataset)
            _choose(place, table, schema, methods, paid, out=out)
            return
        request = _CompareOptions(methods, epsilons, delta, repeats, copies, copies_mode, rows, seed)
        scored = _ScoreOptions(metrics, settings, formula)
        limits = _Limits(60.0 * minutes, memory_bytes(memory) or 0, jobs)
        _study(place, _Read(table, schema, public, public_proxy), request, scored, limits=limits, out=out)


@dataclass(frozen=True, slots=True)
class _Read:
    """The tables and what they may contain."""

    table: str
    schema: Path
    public: str | None
    public_proxy: bool


@dataclass(frozen=True, slots=True)
class _CompareOptions:
    """What is run, under the names that `compare` gives them."""

    methods: list[str]
    epsilons: list[float]
    delta: float
    repeats: int
    copies: int
    copies_mode: str
    rows: int | None
    seed: int


@dataclass(frozen=True, slots=True)
class _ScoreOptions:
    """What is scored, as the options were typed."""

    metrics: list[str] | None
    settings: list[str] | None
    formula: str | None


@dataclass(frozen=True, slots=True)
class _Limits:
    """What one run may take, and how many may be made at a time."""

    seconds: float
    bytes: int
    jobs: int


@dataclass(frozen=True, slots=True)
class _Paid:
    """What a private choice may cost, and where it is charged."""

    each: tuple[float, float]
    choice: float
    ledger: Path
    dataset: str | None


def _study(
    place: Shell, read: _Read, request: _CompareOptions, scored: _ScoreOptions, *, limits: _Limits, out: Path
) -> None:
    with place.running(("check", "measure")) as progress:
        from understudy.compare.compare import METRICS
        from understudy.compare.compare import compare as run_all
        from understudy.schema import Schema

        found = run_all(
            read.table,
            Schema.from_yaml(read.schema),
            methods=request.methods,
            epsilons=request.epsilons,
            delta=request.delta,
            repeats=request.repeats,
            copies=request.copies,
            copies_mode=request.copies_mode,
            metrics=scored.metrics or METRICS,
            options=metric_options(scored.settings),
            formula=scored.formula,
            rows=request.rows,
            seed=request.seed,
            seconds=limits.seconds,
            memory_bytes=limits.bytes,
            jobs=limits.jobs,
            public=read.public,
            public_proxy=read.public_proxy,
            out=out,
            progress=progress,
        )
    place.json(_document(found, out))
    _show(place, found, out)


def _choose(place: Shell, table: str, schema: Path, methods: list[str], paid: _Paid, *, out: Path) -> None:
    with place.running() as progress:
        from understudy.compare import choose
        from understudy.schema import Schema

        epsilon, delta = paid.each
        choice = choose(
            table,
            Schema.from_yaml(schema),
            methods=methods,
            epsilon=epsilon,
            delta=delta,
            choice_epsilon=paid.choice,
            ledger=paid.ledger,
            dataset=paid.dataset,
            out=out,
            progress=progress,
        )
    _show_choice(place, choice, out)


def _document(found: "Comparison", out: Path) -> dict[str, object]:
    return {
        "study": str(out),
        "confidential": found.study.confidential,
        "recommendations": [dataclasses.asdict(one) for one in found.recommendations],
        "failures": [in_flags(failure) for failure in found.failures],
        "scores": found.frame().to_pylist(),
    }


def _show(place: Shell, found: "Comparison", out: Path) -> None:
    from understudy.compare.summary import judged_by, spelled

    if found.study.confidential:
        place.line("NOT FOR RELEASE: this compares with the private table.")
    _require_scores(found, out)
    for one in found.recommendations:
        place.line(f"ε = {spelled(one.epsilon)}: {one.answer}. {one.grounds}")
    place.line(judged_by(found.study))
    for failure in found.failures:
        place.line(f"Without scores: {in_flags(failure)}")
    place.note(f"Open {out / 'index.html'}; every number is in {out / 'results.parquet'}.")


def _require_scores(found: "Comparison", out: Path) -> None:
    """Ends the command with the reasons if no run at all has scores; what there is stays."""
    ends = {run.outcome.status for run in found.study.runs}
    if "done" in ends:
        return
    kept = f"The study is kept in {out}. To try again, run the same command; you may raise --minutes and --memory."
    show_error("No run finished", [*(f"• {failure}" for failure in found.failures), kept])
    raise typer.Exit(4 if ends <= set(SHORT_OF) else 1)


def _show_choice(place: Shell, choice: "Choice", out: Path) -> None:
    cost = {"epsilon": choice.cost.epsilon, "delta": choice.cost.delta}
    place.json({"study": str(out), "chosen": choice.chosen, "release": str(choice.release.folder), **cost})
    place.line(f"Chosen: {choice.chosen} ({choice.release.folder})")
    place.line(f"Paid in total: ε = {choice.cost.epsilon!r}, δ = {choice.cost.delta!r}, charged to the ledger.")
    place.note(f"Publish {out / 'choice.json'} with it: the statement of one release does not cover the choice.")


def _refuse_unused(given: Mapping[str, bool]) -> None:
    """A choice makes one release of each method and takes no options of a study."""
    for name, is_given in given.items():
        if is_given:
            rule = "cannot be combined with --choose, which makes one release of each method."
            raise UsageError(name, rule, "Drop one of the two.")


def _require_agreement(choose: float | None, epsilons: list[float], ledger: Path | None, dataset: str | None) -> None:
    if choose is None:
        for name, value in (("--ledger", ledger), ("--dataset", dataset)):
            if value is not None:
                raise UsageError(name, "is charged only for a private choice.", "Give --choose, or drop it.")
        return
    if ledger is None:
        raise UsageError("--choose", "must be charged to a ledger.", "Give --ledger.")
    if len(epsilons) != 1:
        raise UsageError("--epsilon", f"must be given once with --choose, got {len(epsilons)}.")
