"""`understudy demo` runs the whole workflow on a simulated table: schema, release, verification, confidential report.

At its end it compiles ahead what a first release needs, so that the first run on a table of one's own need not wait.
"""

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, shell
from understudy.cli.options import Json
from understudy.errors import ReleaseError, UsageError

if TYPE_CHECKING:
    from understudy.schema import Schema

EPSILON = 1.0
METHOD = "mwem"
MARKER = "SIMULATED.txt"
TABLE = "voters.duckdb"
SCHEMA = "voters.yaml"
REPORT = "report.html"
NUMBERS = "report-numbers"
METRICS = ("marginals", "correlations", "rules")
"""Scores that take a moment on this table; `understudy evaluate` computes all."""
COMPILED_AHEAD = ("ensemble", "aim", "mst", "privsyn")
"""Methods whose inner loops are compiled ahead: those that `auto` picks from under δ."""
MARKER_TEXT = """\
Made by `understudy demo`. voters.duckdb holds a SIMULATED table: no row describes a real person.
It plays the part of the private table here. The next run of the demo replaces this folder.
"""


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Release folder to write.")] = Path("demo-release"),
    private: Annotated[Path, typer.Option("--private", help="Folder for the simulated table and its schema.")] = Path(
        "demo-confidential"
    ),
    *,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Makes a release from a simulated table of 44,821 young voters at ε = 1, verifies it, and compares the two.

    Replaces the folders of an earlier demo. If anything else has one of these names, the demo refuses to run.
    """
    with shell("demo", quiet=quiet, debug=debug, as_json=as_json, charges=True) as place:
        from understudy.cli.synthesize import release_document, show_release
        from understudy.demo import schema_text
        from understudy.schema.document import schema_from_text
        from understudy.synthesizer import plan, synthesize
        from understudy.synthesizer.verifying import verify_release

        schema = schema_from_text(schema_text(), SCHEMA)
        _require_ours(private, out)
        _clear(out, schema)
        _write_table(private)
        place.note(f"SIMULATED table in place of a private one: {private / TABLE}")
        with place.running() as progress:
            progress.expect(plan(schema, method=METHOD, epsilon=EPSILON).seconds)
            source = f"{private / TABLE}::voters"
            release = synthesize(source, schema, method=METHOD, epsilon=EPSILON, out=out, progress=progress)
        show_release(place, release, out)
        made = release_document(release, out)
        problems = verify_release(out)
        if problems:
            raise ReleaseError(problems)
        place.line("Verified: no problems were found in the folder.")
        _compare(source, out, private)
        _compile_ahead()
        place.json({**made, "private": str(private), "report": str(private / REPORT)})
        place.line(f"Compared with the table, NOT FOR RELEASE: {private / REPORT}")
        place.note(f"More rows:   understudy sample {out} --rows 1000 --where voted=yes -o more.csv")
        place.note(f"Your table:  understudy schema draft people.csv -o schema.yaml; see {private / SCHEMA} for one.")


def _require_ours(private: Path, out: Path) -> None:
    """Refuses folders that no demo made, places inside a release, and one folder for both."""
    from understudy.release.files import refuse_release_folder

    refuse_release_folder(private)
    refuse_release_folder(out.absolute().parent)  # the folder itself may be a release: of the demo, to be replaced
    if private.absolute() == out.absolute():
        raise UsageError("--private", "must not be the release folder.", "Name another folder.")
    for option, folder in (("--private", private), ("--out", out)):
        if not folder.absolute().parent.is_dir():
            raise UsageError(option, f"the folder around {str(folder)!r} does not exist.", "Create it first.")
    if private.is_symlink() or (private.exists() and not _made_by_demo(private)):
        rule = f"{str(private)!r} exists and was not made by the demo."
        raise UsageError("--private", rule, "Remove it or name another folder.")


def _made_by_demo(folder: Path) -> bool:
    marker = folder / MARKER
    if not folder.is_dir() or not marker.is_file() or marker.read_text(encoding="utf-8") != MARKER_TEXT:
        return False
    return {path.name for path in folder.iterdir()} <= {MARKER, TABLE, SCHEMA, REPORT, NUMBERS}


def _compare(source: str, out: Path, private: Path) -> None:
    """The confidential report, beside the table it was computed from."""
    from understudy.evaluate import evaluate

    (private / REPORT).unlink(missing_ok=True)
    shutil.rmtree(private / NUMBERS, ignore_errors=True)
    evaluate(source, out, metrics=METRICS).save(private / REPORT)


def _compile_ahead() -> None:
    """Makes small releases of a text file with made-up rows, so that what is compiled for them lies on disk."""
    import pyarrow.csv

    from understudy.codec.kernels import LEAST_ROWS
    from understudy.synthesizer import synthesize
    from understudy.testing import cases

    schema = cases.every_kind()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # made-up rows look odd
        path = Path(folder) / "rows.csv"
        pyarrow.csv.write_csv(cases.possible_rows(schema, LEAST_ROWS, seed=1), path)
        for method in COMPILED_AHEAD:
            synthesize(path, schema, method=method, epsilon=1.0, delta=1e-6)


def _write_table(folder: Path) -> None:
    from understudy.demo import schema_text, write_database

    folder.mkdir(exist_ok=True)
    (folder / MARKER).write_text(MARKER_TEXT, encoding="utf-8")
    (folder / SCHEMA).write_text(schema_text(), encoding="utf-8")
    (folder / TABLE).unlink(missing_ok=True)
    write_database(folder / TABLE)


def _clear(out: Path, schema: "Schema") -> None:
    """Removes a release of the demo table; it is recognised by being intact and having the demo's schema."""
    if not out.exists() and not out.is_symlink():
        return
    from understudy.release import Release, verify_release

    if out.is_symlink() or verify_release(out) or Release.load(out).schema != schema:
        rule = f"{str(out)!r} exists and is not an intact release of the demo."
        raise UsageError("--out", rule, "Remove it or name another folder.")
    shutil.rmtree(out)
