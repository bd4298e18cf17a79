"""`understudy sample`: more rows out of a release, free of charge, if wanted under conditions."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, shell
from understudy.cli.options import ReleaseFolder, Seed, pairs
from understudy.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.progress import Progress

__all__ = ["sample"]


def sample(
    release: ReleaseFolder,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write; .parquet, .csv or .tsv by suffix.")],
    rows: Annotated[int | None, typer.Option("--rows", help="How many; by default as many as the release.")] = None,
    seed: Seed = None,
    *,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="COLUMN=VALUE", help='Only such rows; VALUE may be "lo..hi" or "missing".'),
    ] = None,
    copy: Annotated[int, typer.Option("--copy", help="Which copy's model to draw from.")] = 1,
    excel_safe: Annotated[
        bool, typer.Option("--excel-safe", help="CSV only: put an apostrophe before text a spreadsheet would run.")
    ] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Draws rows from the model of a release. Post-processing: costs no budget, reads no private data."""
    with shell(quiet=quiet, debug=debug) as place:
        from understudy.cli.spreadsheet import safe_schema, safe_table
        from understudy.release import Release
        from understudy.release.rows import draw_tables, write_rows

        if excel_safe and out.suffix.lower() not in (".csv", ".tsv"):
            raise UsageError("--excel-safe", "is for .csv and .tsv files.", "Drop it or change the suffix.")
        loaded = Release.load(release)
        fitted = loaded.fitted(copy)
        wanted = loaded.config.rows[copy - 1] if rows is None else rows
        chosen = secrets.randbits(63) if seed is None else seed
        pieces = draw_tables(fitted, wanted, seed=chosen, copy=copy, where=pairs("--where", where))
        schema = fitted.codec.arrow_schema
        with place.running(("draw",)) as progress:
            watched = _watched(pieces, wanted, progress)
            if excel_safe:
                write_rows(out, safe_schema(schema), map(safe_table, watched), loaded.marks())
            else:
                write_rows(out, schema, watched, loaded.marks())
        place.note(f"Wrote {wanted:,} synthetic rows to {out}.")


def _watched(pieces: "Iterator[pa.Table]", rows: int, progress: "Progress") -> "Iterator[pa.Table]":
    done = 0
    progress.stage("draw", 0.0)
    for piece in pieces:
        yield piece
        done += piece.num_rows
        progress.stage("draw", done / max(rows, 1))
