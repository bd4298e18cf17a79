"""`understudy label`: private columns for records of your own, from a release that was made for that."""

import secrets
from typing import Annotated

import typer

from understudy.cli.console import Debug, Quiet, shell
from understudy.cli.options import ExcelSafe, ReleaseFolder, RowsFile, Seed

__all__ = ["label"]


def label(
    release: ReleaseFolder,
    records: Annotated[
        str, typer.Argument(metavar="RECORDS", help="Records with the public columns; CSV, TSV or Parquet.")
    ],
    out: RowsFile,
    seed: Seed = None,
    *,
    copy: Annotated[int, typer.Option("--copy", help="Which copy's model to use.")] = 1,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="Pass on this column that the schema does not know; repeat it.")
    ] = None,
    excel_safe: ExcelSafe = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fills in the private columns of public records. Post-processing: costs no budget, reads no private data."""
    with shell(quiet=quiet, debug=debug) as place:
        from understudy.cli.spreadsheet import check_safe, safe_rows
        from understudy.release import Release
        from understudy.release.labelling.records import label_marks, labelled_file, private_columns
        from understudy.release.rows import write_rows

        check_safe(out, excel_safe=excel_safe)
        loaded = Release.load(release)
        fitted = loaded.fitted(copy)
        chosen = secrets.randbits(63) if seed is None else seed
        schema, pieces = labelled_file(fitted, records, chosen, keep or ())
        marks = loaded.marks() | label_marks(fitted)
        with place.running(("draw",)) as progress:
            progress.stage("draw", 0.0)
            write_rows(out, *safe_rows(schema, pieces, excel_safe=excel_safe), marks)
            progress.stage("draw", 1.0)
        place.note(f"Wrote {out}; synthetic columns: {', '.join(private_columns(fitted))}.")
