"""`understudy compare`: which method, at which ε? Every run in its own process, in a folder that can be resumed."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, Shell, shell
from understudy.cli.options import (
    Copies,
    CopiesMode,
    Dataset,
    Delta,
    LedgerFile,
    PublicTable,
    RowCount,
    SchemaFile,
    Table,
    memory_bytes,
)
from understudy.errors import UsageError

if TYPE_CHECKING:
    from understudy.compare import Choice, Comparison

__all__ = ["compare"]

Methods = Annotated[
    list[str], typer.Option("--method", help='A synthesizer, with options as in "steps layers=2"; repeat the option.')
]
Epsilons = Annotated[list[float], typer.Option("--epsilon", help="Privacy budget ε; repeat the option.")]
Repeats = Annotated[int, typer.Option("--repeats", help="Runs of each method at each ε.")]
Metrics = Annotated[list[str] | None, typer.Option("--metric", help="What to score; repeat the option.")]
StudyPlace = Annotated[
    Path, typer.Option("--out", "-o", help="The study's folder; an unfinished one is taken up again.")
]
Minutes = Annotated[float, typer.Option("--minutes", help="Most minutes of one run.")]
RunMemory = Annotated[str, typer.Option("--memory", metavar="SIZE", help="Most memory of one run, as 4GiB.")]
Proxy = Annotated[bool, typer.Option("--public-proxy", help="The table is public: nothing here is confidential.")]
ChoiceEpsilon = Annotated[
    float | None,
    typer.Option("--choose", metavar="EPSILON", help="Pay for a private choice: this ε, and ε for each method."),
]
StudySeed = Annotated[int, typer.Option("--seed", help="Of drawing rows and scoring. Noise has no seed.")]


def compare(
    table: Table,
    schema: SchemaFile,
    methods: Methods,
    epsilons: Epsilons,
    out: StudyPlace,
    *,
    delta: Delta = 0.0,
    repeats: Repeats = 3,
    copies: Copies = 1,
    copies_mode: CopiesMode = "resample",
    metrics: Metrics = None,
    rows: RowCount = None,
    public: PublicTable = None,
    public_proxy: Proxy = False,
    choose: ChoiceEpsilon = None,
    ledger: LedgerFile = None,
    dataset: Dataset = None,
    minutes: Minutes = 60.0,
    memory: RunMemory = "16GiB",
    seed: StudySeed = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Runs every method at every ε and scores it against the table. NOT FOR RELEASE, unless the table is public.

    With --choose every method is released once and the best is drawn privately; all of it is charged to the ledger.
    """
    with shell(quiet=quiet, debug=debug) as place:
        _require_agreement(choose, epsilons, ledger)
        if choose is not None and ledger is not None:
            _refuse_unused(metrics=metrics, rows=rows, public=public, proxy=public_proxy, copies=copies != 1)
            paid = _Paid((epsilons[0], delta), choose, ledger, dataset)
            _choose(place, table, schema, methods, paid, out=out)
            return
        with place.running() as progress:
            from understudy.compare.compare import METRICS, carry_out
            from understudy.compare.settings import Candidate, StudySettings
            from understudy.compare.study import Tables
            from understudy.compare.watch import Limits
            from understudy.schema import Schema

            candidates = tuple(Candidate.read(text) for text in methods)
            asked = (delta, repeats, copies, copies_mode, tuple(metrics or METRICS), rows, seed)
            settings = StudySettings(candidates, tuple(epsilons), *asked)
            tables = Tables(table, None if public is None else str(public), public_proxy)
            limits = Limits(60.0 * minutes, memory_bytes(memory) or 0)
            found = carry_out(tables, Schema.from_yaml(schema), settings, limits, out=out, progress=progress)
        _show(place, found, out)


@dataclass(frozen=True, slots=True)
class _Paid:
    """What a private choice may cost, and where it is charged."""

    each: tuple[float, float]
    choice: float
    ledger: Path
    dataset: str | None


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


def _show(place: Shell, found: "Comparison", out: Path) -> None:
    if found.study.confidential:
        place.line("NOT FOR RELEASE: this compares with the private table.")
    for one in found.recommendations:
        place.line(f"ε = {one.epsilon:g}: {one.candidate or 'none'}. {one.grounds}")
    place.note(f"Open {out / 'index.html'}; every number is in {out / 'results.parquet'}.")


def _show_choice(place: Shell, choice: "Choice", out: Path) -> None:
    place.line(f"Chosen: {choice.chosen} ({choice.release.folder})")
    place.line(f"Paid in all: ε = {choice.cost.epsilon:g}, δ = {choice.cost.delta:g}, charged to the ledger.")
    place.note(f"Publish {out / 'choice.json'} with it: the statement of one release does not cover the choice.")


def _refuse_unused(**given: object) -> None:
    """A choice makes one release of each method and takes no options of a study."""
    for name, value in given.items():
        if value:
            rule = f"does not go with --choose, which makes one release of each method ({name})."
            raise UsageError("compare", rule, "Drop one of the two.")


def _require_agreement(choose: float | None, epsilons: list[float], ledger: Path | None) -> None:
    if choose is None:
        if ledger is not None:
            raise UsageError("--ledger", "is charged only for a private choice.", "Give --choose, or drop it.")
        return
    if ledger is None:
        raise UsageError("--choose", "must be charged to a ledger.", "Give --ledger.")
    if len(epsilons) != 1:
        raise UsageError("--epsilon", f"must be given once with --choose, got {len(epsilons)}.")
