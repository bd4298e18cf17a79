"""What a release is good for: `understudy sample`, `stats`, `label`, `sign`, `verify`; and `leafsize`.

None of them charges anything. Records to be labelled may be private; all else is public.
"""

import dataclasses
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from understudy.cli.console import Debug, Quiet, Shell, in_flags, shell
from understudy.cli.options import (
    CriteriaFile,
    ExcelSafe,
    Json,
    ReleaseFolder,
    RowsFile,
    Seed,
    conditions,
    reads_table,
    require_absent,
)
from understudy.errors import ReleaseError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.methods.leaf_size import LeafSize, Relation
    from understudy.progress import Progress
    from understudy.release.criteria import Criterion


def sample(
    release: ReleaseFolder,
    out: RowsFile,
    rows: Annotated[
        int | None, typer.Option("--rows", help="Number of rows; as many as the release by default.")
    ] = None,
    seed: Seed = None,
    *,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where", metavar="COLUMN=VALUE[,…]", help='Condition on the rows; VALUE may be "lo..hi" or "missing".'
        ),
    ] = None,
    copy: Annotated[int, typer.Option("--copy", help="Which copy's model to draw from.")] = 1,
    excel_safe: ExcelSafe = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Draws rows from the model of a release. Post-processing: costs no budget, reads no private data."""
    with shell("sample", quiet=quiet, debug=debug, as_json=as_json) as place:
        from understudy.release import Release
        from understudy.release.release import check_safe, draw_tables, safe_rows, write_rows

        check_safe(out, excel_safe=excel_safe)
        loaded = Release.load(release)
        fitted = loaded.fitted(copy)
        wanted = loaded.config.rows[copy - 1] if rows is None else rows
        chosen = secrets.randbits(63) if seed is None else seed
        pieces = draw_tables(fitted, wanted, seed=chosen, copy=copy, where=conditions("--where", where))
        loaded.check_file(out, wanted)
        schema = fitted.codec.arrow_schema
        with place.running(("draw",)) as progress:
            watched = _watched(pieces, wanted, progress)
            write_rows(out, *safe_rows(schema, watched, excel_safe=excel_safe), loaded.marks())
        place.json({"file": str(out), "rows": wanted, "seed": chosen, "copy": copy})
        place.note(f"Wrote {wanted:,} synthetic rows to {out}.")
        if rows is None and loaded.config.remark:
            place.note(in_flags(loaded.config.remark))


def _watched(pieces: "Iterator[pa.Table]", rows: int, progress: "Progress") -> "Iterator[pa.Table]":
    done = 0
    progress.stage("draw", 0.0)
    for piece in pieces:
        yield piece
        done += piece.num_rows
        progress.stage("draw", done / max(rows, 1))


MOST_CELLS_SHOWN = 200
StatsTable = Annotated[
    str | None, typer.Option("--table", metavar="COLUMN[,…]", help="Columns of the table, for example sex,age.")
]
StatsFile = Annotated[
    Path | None, typer.Option("--out", "-o", help="Also write every cell to a file; .csv, .tsv or .parquet by suffix.")
]


def stats(
    release: ReleaseFolder,
    table: StatsTable = None,
    out: StatsFile = None,
    *,
    copy: Annotated[
        int | None, typer.Option("--copy", help="Only the answers of that copy, if copies were measured anew.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Shows a table cell by cell with the standard errors of its counts, or lists what was measured. No privacy cost.

    Noisy counts come from measured tables that hold the columns, and have a standard error. The estimate is the
    model's: it agrees between tables, and is all there is for columns that were never measured together.
    """
    with shell("stats", quiet=quiet, debug=debug, as_json=as_json) as place:
        from understudy.release import Release
        from understudy.release.files import check_free
        from understudy.release.release import write_rows

        if out is not None:
            check_free(out)
        loaded = Release.load(release)
        found = cast("pa.Table", loaded.stats(table, copy=copy))
        if out is not None:
            write_rows(out, found.schema, [found], loaded.marks())
        if as_json:
            place.json({"table": table, "cells" if table else "measured": found.to_pylist()})
        else:
            _show_stats(place, found)
        if table is None:
            place.note(f"Cell by cell: understudy stats {release} --table COLUMN,COLUMN")


def _show_stats(place: Shell, found: "pa.Table") -> None:
    import pyarrow as pa

    numeric = [pa.types.is_floating(kind) or pa.types.is_integer(kind) for kind in found.schema.types]
    headers = [f">{name}" if number else name for name, number in zip(found.column_names, numeric, strict=True)]
    rows = [[_cell(value) for value in row.values()] for row in found.slice(0, MOST_CELLS_SHOWN).to_pylist()]
    place.table([header.replace("_", " ") for header in headers], rows)
    if found.num_rows > MOST_CELLS_SHOWN:
        place.line(f"… and {found.num_rows - MOST_CELLS_SHOWN:,} more rows; -o writes them all.")


def _cell(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def sign(
    release: Annotated[Path | None, typer.Argument(metavar="[RELEASE]", help="The release folder to sign.")] = None,
    *,
    key: Annotated[Path | None, typer.Option("--key", help="Your private key, a PEM file.")] = None,
    new_key: Annotated[
        Path | None,
        typer.Option("--new-key", metavar="FILE", help="Make a key instead: FILE, and its public part beside it."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Signs every file of a release with your key, so that readers can tell that it is yours and unaltered.

    A key is made only if --new-key asks for one.
    """
    with shell("sign", quiet=quiet, debug=debug, as_json=as_json) as place:
        from understudy.release.files import SIGNATURE
        from understudy.release.provenance import new_key as make_key
        from understudy.release.provenance import sign_release
        from understudy.synthesizer.verifying import planned_costs

        if new_key is not None:
            if release is not None or key is not None:
                raise UsageError("--new-key", "makes a key and signs nothing.", "Sign with it in a second command.")
            public = make_key(new_key)
            place.json({"release": None, "signature": None, "key": str(new_key), "public_key": str(public)})
            place.line(f"Wrote the private key {new_key} and the public key {public}.")
            place.note("Keep the private key to yourself, with a copy in a safe place; publish the public one.")
            return
        if release is None or key is None:
            raise UsageError("sign", "needs a release folder and --key.", "Make a key with --new-key if you have none.")
        fingerprint = sign_release(release, key, planned_costs)
        signature = str(release / SIGNATURE)
        place.json({"release": str(release), "signature": signature, "key": fingerprint, "public_key": None})
        place.line(f"Signed {release} with the key of fingerprint {fingerprint}.")
        place.note("Publish the fingerprint or the public key by another channel than the folder.")


BROKEN, UNDECIDED = 5, 6
"""Exit status where the rows break a criterion, and where none is broken but one is undecided."""


def verify(
    release: ReleaseFolder,
    *,
    everything: Annotated[
        bool, typer.Option("--everything", help="Check every value of a very large folder, however long it takes.")
    ] = False,
    criteria: CriteriaFile = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="Also check the signature with the publisher's public key (PEM).")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Checks every file of a release: complete, unaltered, and consistent with what its statement claims.

    With --criteria the exit status is 5 if the rows break one of them, 6 if none is broken and one is undecided.
    """
    with shell("verify", quiet=quiet, debug=debug, as_json=as_json) as place:
        from understudy.release.criteria import read_criteria
        from understudy.release.provenance import check_signature
        from understudy.synthesizer.verifying import inspect_release

        limits = None if criteria is None else read_criteria(criteria)
        found = inspect_release(release, everything=everything)
        signed = [] if key is None or not release.is_dir() else check_signature(release, key, everything=everything)
        listed = tuple(dict.fromkeys((*signed, *found.problems)))
        problems = [dataclasses.asdict(problem) for problem in listed]
        document = {
            "release": str(release),
            "problems": problems,
            "unchecked": list(found.unchecked),
            "believed": list(found.believed),
        }
        if listed:
            place.json({**document, "promise": None, "check": None, "verdicts": [], "signed": None})
            raise ReleaseError(listed)
        _show_verified(place, release, document, limits, signed=key is not None)


def _show_verified(
    place: Shell,
    release: Path,
    document: Mapping[str, object],
    limits: "Sequence[Criterion] | None",
    *,
    signed: bool,
) -> None:
    """What a folder without faults says, and how its rows stand to the criteria."""
    from understudy.cli.synthesize import show_check
    from understudy.models.model import read_json
    from understudy.release import Release
    from understudy.release.files import SIGNATURE
    from understudy.release.provenance import read_signature
    from understudy.release.statement import read_statement, statement_document, verdict_document

    statement = read_statement(read_json(release / "statement.json"))
    judged = () if limits is None else Release.load(release).judge(limits)
    signer = read_signature(release).key if (release / SIGNATURE).exists() else None
    said = {"promise": statement.promise, "check": statement_document(statement).get("check")}
    verdicts = list(map(verdict_document, judged))
    place.json({**document, **said, "verdicts": verdicts, "signed": signer if signed else None})
    place.line(f"{release}: nothing wrong was found.")
    if signed:
        place.line(f"Signed by the key with fingerprint {signer}.")
    elif signer is not None:
        place.line(f"The folder claims to be signed by the key with fingerprint {signer}; check that with --key.")
    for part in cast(list[str], document["unchecked"]):
        place.line(f"Not checked, because it would take too long: {part}. Check it with --everything.")
    for part in cast(list[str], document["believed"]):
        place.line(f"Stated by the folder and not checked: {part}.")
    place.line(statement.promise)
    if limits is None:
        show_check(place, statement)
    for one in judged:
        place.line(f"Criterion {one.text}")
    place.note("Not checkable from the folder: that the noise was drawn honestly, and from which table.")
    outcomes = {one.outcome for one in judged}
    if outcomes - {"pass"}:
        place.flush()
        raise typer.Exit(BROKEN if "fail" in outcomes else UNDECIDED)


@reads_table("records")
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
        list[str] | None,
        typer.Option("--keep", help="Column outside the schema to copy to the output; may be repeated."),
    ] = None,
    excel_safe: ExcelSafe = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fills in the private columns of public records. Post-processing: costs no budget, reads no private data."""
    with shell("label", quiet=quiet, debug=debug, as_json=as_json) as place:
        from understudy.release import Release
        from understudy.release.labelling import label_marks, labelled_file, private_columns
        from understudy.release.release import check_safe, safe_rows, write_rows

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
        place.json({"file": str(out), "columns": list(private_columns(fitted)), "seed": chosen, "copy": copy})
        place.note(f"Wrote {out}; synthetic columns: {', '.join(private_columns(fitted))}.")


SIZES = (100, 500, 1000, 2000)
"""Numbers of records shown beside the one that was found."""

Width = Annotated[float, typer.Option("--width", help="Maximum width of the interval for a label's share.")]
Share = Annotated[float, typer.Option("--share", help="True share of the label in the leaf; 0.5 is the worst case.")]
Rate = Annotated[
    float | None, typer.Option("--rate", help="Rate λ of the noise (one over its scale), instead of --epsilon.")
]
LeafEpsilon = Annotated[
    float | None, typer.Option("--epsilon", help="Privacy budget of all trees together, from which λ follows.")
]
Trees = Annotated[int, typer.Option("--trees", help="Number of trees for each private column.")]
Columns = Annotated[int, typer.Option("--columns", help="Number of private columns.")]
Neighbours = Annotated[
    str, typer.Option("--relation", help="Neighbour relation that ε refers to: add_remove or label_change.")
]
Confidence = Annotated[float, typer.Option("--confidence", help="Confidence level of the interval, e.g. 0.9.")]
Figure = Annotated[Path | None, typer.Option("--svg", help="Also draw the intervals in this file.")]
Simulate = Annotated[int, typer.Option("--simulate", help="Check each interval with this many simulated draws.")]
DrawSeed = Annotated[int, typer.Option("--seed", help="Seed of the simulated draws.")]


def leafsize(
    width: Width,
    share: Share = 0.5,
    *,
    rate: Rate = None,
    epsilon: LeafEpsilon = None,
    trees: Trees = 5,
    columns: Columns = 1,
    relation: Neighbours = "add_remove",
    confidence: Confidence = 0.9,
    svg: Figure = None,
    simulate: Simulate = 0,
    seed: DrawSeed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Finds leaf_size for method rdt. Public arithmetic: opens no table and charges nothing."""
    with shell("leafsize", quiet=quiet, debug=debug, as_json=as_json) as place:
        from understudy.methods.leaf_size import leaf_size

        if simulate and not 100 <= simulate <= 10_000_000:
            raise UsageError("--simulate", f"must be 0 or from 100 to 10,000,000 draws, got {simulate}.")
        if seed < 0:
            raise UsageError("--seed", f"must be a whole number, 0 or more, got {seed}.")
        if svg is not None:
            require_absent("--svg", svg)
        found = leaf_size(
            width,
            share=share,
            rate=rate,
            epsilon=epsilon,
            trees=trees,
            columns=columns,
            relation=cast("Relation", relation),
            confidence=confidence,
        )
        lines = _lines(found, share, confidence, simulate, seed)
        if as_json:
            place.json({"leaf_size": found.records, "rate": found.rate, "intervals": lines})
        else:
            place.line(f"leaf_size = {found.records:,} (λ = {found.rate:.6g}, share {share:g})")
            _show(place, lines, confidence)
        if svg is not None:
            from understudy.methods.leaf_size import intervals_svg

            svg.write_text(intervals_svg(confidence=confidence), encoding="utf-8")
            place.note(f"Drew {svg}.")


def _lines(found: "LeafSize", share: float, confidence: float, draws: int, seed: int) -> list[dict[str, float]]:
    """The interval at some sizes and at the one found, each also by simulation if draws are asked for."""
    import numpy as np

    from understudy.methods.leaf_size import leaf_interval, simulated_interval

    rng = np.random.default_rng(seed)
    lines: list[dict[str, float]] = []
    for records in sorted({*SIZES, found.records}):
        exact = leaf_interval(share, found.rate, records, confidence=confidence)
        line: dict[str, float] = {"records": records, "lower": exact.lower, "upper": exact.upper, "width": exact.width}
        if draws:
            by_draws = simulated_interval(share, found.rate, records, rng, draws=draws, confidence=confidence)
            line |= {"simulated_lower": by_draws.lower, "simulated_upper": by_draws.upper}
        lines.append(line)
    return lines


def _show(place: Shell, lines: Sequence[dict[str, float]], confidence: float) -> None:
    names = [name for name in lines[0] if name != "records"]
    rows = [[f"{line['records']:,.0f}", *(f"{line[name]:.4f}" for name in names)] for line in lines]
    headers = [">records", *(f">{name.replace('_', ' ')}" for name in names)]
    place.table(headers, rows, title=f"{confidence:.0%} interval of the label's share among synthetic records")
