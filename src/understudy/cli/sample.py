"""`understudy sample`: more rows out of a release, free of charge, if wanted under conditions."""

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, shell
from understudy.cli.options import ExcelSafe, ReleaseFolder, RowsFile, Seed, pairs

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.progress import Progress

__all__ = ["sample"]


def sample(
    release: ReleaseFolder,
    out: RowsFile,
    rows: Annotated[int | None, typer.Option("--rows", help="How many; by default as many as the release.")] = None,
    seed: Seed = None,
    *,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="COLUMN=VALUE", help='Only such rows; VALUE may be "lo..hi" or "missing".'),
    ] = None,
    copy: Annotated[int, typer.Option("--copy", help="Which copy's model to draw from.")] = 1,
    excel_safe: ExcelSafe = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Draws rows from the model of a release. Post-processing: costs no budget, reads no private data."""
    with shell(quiet=quiet, debug=debug) as place:
        from understudy.cli.spreadsheet import check_safe, safe_rows
        from understudy.release import Release
        from understudy.release.rows import draw_tables, write_rows

        check_safe(out, excel_safe=excel_safe)
        loaded = Release.load(release)
        fitted = loaded.fitted(copy)
        wanted = loaded.config.rows[copy - 1] if rows is None else rows
        chosen = secrets.randbits(63) if seed is None else seed
        pieces = draw_tables(fitted, wanted, seed=chosen, copy=copy, where=pairs("--where", where))
        loaded.check_file(out, wanted)
        schema = fitted.codec.arrow_schema
        with place.running(("draw",)) as progress:
            watched = _watched(pieces, wanted, progress)
            write_rows(out, *safe_rows(schema, watched, excel_safe=excel_safe), loaded.marks())
        place.note(f"Wrote {wanted:,} synthetic rows to {out}.")


def _watched(pieces: "Iterator[pa.Table]", rows: int, progress: "Progress") -> "Iterator[pa.Table]":
    done = 0
    progress.stage("draw", 0.0)
    for piece in pieces:
        yield piece
        done += piece.num_rows
        progress.stage("draw", done / max(rows, 1))
