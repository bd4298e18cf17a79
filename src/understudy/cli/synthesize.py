"""`understudy synthesize`: a private table goes in, a release folder comes out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, Shell, shell
from understudy.cli.options import Delta, Epsilon, Memory, Method, SchemaFile, Settings, memory_bytes, pairs
from understudy.errors import UsageError

if TYPE_CHECKING:
    from understudy.release import Release

__all__ = ["show_release", "synthesize"]


def synthesize(
    table: Annotated[str, typer.Argument(help="CSV, TSV or Parquet (also a glob), or FILE.duckdb::TABLE.")],
    schema: SchemaFile,
    epsilon: Epsilon,
    out: Annotated[Path, typer.Option("--out", "-o", help="Release folder to write; must not exist.")],
    delta: Delta = 0.0,
    *,
    method: Method = "auto",
    rows: Annotated[int | None, typer.Option("--rows", help="Rows of each copy; the noisy total by default.")] = None,
    copies: Annotated[int, typer.Option("--copies", help="Number of synthetic tables.")] = 1,
    copies_mode: Annotated[
        str, typer.Option("--copies-mode", help='"resample": all from one model; "resanitize": measure anew for each.')
    ] = "resample",
    ledger: Annotated[Path | None, typer.Option("--ledger", help="Ledger to charge before reading.")] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Name of the table in that ledger.")] = None,
    public: Annotated[Path | None, typer.Option("--public", help="A public table of the same form.")] = None,
    settings: Settings = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Seed of drawing rows from the model. Noise has no seed.")
    ] = None,
    memory: Memory = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Makes a release: checks everything public, charges the budget, measures with noise, draws rows, writes.

    Up to the charge nothing is read but names of columns; a mistake costs nothing. After the charge, nothing in a row
    can stop the run.
    """
    with shell(quiet=quiet, debug=debug) as place:
        from understudy.schema import Schema
        from understudy.synthesizer import plan
        from understudy.synthesizer import synthesize as run

        if public is not None:
            raise UsageError("--public", "no method of this version uses a public table.", "Drop it.")
        if dataset is not None and ledger is None:
            raise UsageError("--dataset", "names a dataset of a ledger.", "Give --ledger too.")
        known = Schema.from_yaml(schema)
        options = pairs("--set", settings)
        expected = None
        if place.watched:
            expected = plan(known, method=method, epsilon=epsilon, delta=delta, options=options).seconds
        with place.running(expected) as progress:
            release = run(
                table,
                known,
                method=method,
                epsilon=epsilon,
                delta=delta,
                rows=rows,
                copies=copies,
                copies_mode=copies_mode,
                options=options,
                ledger=ledger,
                dataset=dataset,
                seed=seed,
                out=out,
                memory_bytes=memory_bytes(memory),
                progress=progress,
            )
        show_release(place, release, out)


def show_release(place: Shell, release: "Release", folder: Path) -> None:
    """What was made, from public facts alone."""
    statement = release.statement
    rows = ", ".join(f"{count:,}" for count in release.config.rows)
    place.line(f"Release: {folder} ({rows} synthetic rows, method {statement.method})")
    place.line(statement.promise)
    place.line(statement.odds)
    if statement.left_out:
        place.note(f"Left out, not in the schema: {', '.join(statement.left_out)}.")
    if statement.ledger.dataset is None:
        place.note("No ledger was charged: keep your own account of what this table has spent.")
    place.note(f"Read {folder / 'statement.md'}, then check the folder: understudy verify {folder}")
