"""`understudy audit`: hold the claim of a method against real runs on neighbouring tables that the schema allows."""

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.console import Debug, Quiet, shell
from understudy.cli.options import Copies, CopiesMode, Json, PublicTable, Settings, pairs, require_absent

MethodName = Annotated[str, typer.Argument(metavar="METHOD", help='Method, see "understudy methods".')]
OwnSchema = Annotated[
    Path | None, typer.Option("--schema", help="Your schema; three columns of two labels when not given.")
]
Claimed = Annotated[float, typer.Option("--epsilon", help="Privacy budget ε of each run.")]
ClaimedDelta = Annotated[
    float | None, typer.Option("--delta", help="δ of each run; 0 or 1e-6 when not given, as the method needs.")
]
Runs = Annotated[int, typer.Option("--runs", help="Runs on either table: half choose the event, half test it.")]
Confidence = Annotated[float, typer.Option("--confidence", help="With which the bound holds.")]
PagePlace = Annotated[Path | None, typer.Option("--out", "-o", help="Also write a page with the picture: a new .html.")]


def audit(
    method: MethodName,
    *,
    schema: OwnSchema = None,
    epsilon: Claimed = 3.0,
    delta: ClaimedDelta = None,
    runs: Runs = 2000,
    settings: Settings = None,
    copies: Copies = 1,
    copies_mode: CopiesMode = "resample",
    public: PublicTable = None,
    confidence: Confidence = 0.9999,
    out: PagePlace = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Runs a method on neighbouring tables made from the schema, and bounds its ε from below beside its claim.

    Reads no private data. A bound above the claim is a fault of the method, and the command ends with 1.
    """
    with shell("audit", quiet=quiet, debug=debug, as_json=as_json) as place:
        if out is not None:
            require_absent("--out", out)
        with place.running(("prepare", "measure")) as progress:
            from understudy.audit import audit as run_all

            found = run_all(
                method,
                schema,
                epsilon=epsilon,
                delta=delta,
                runs=runs,
                options=pairs("--set", settings),
                copies=copies,
                copies_mode=copies_mode,
                public=public,
                confidence=confidence,
                progress=progress,
            )
        if out is not None:
            found.save(out)
        place.json(found.document() | {"page": None if out is None else str(out)})
        for sentence in found.sentences():
            place.line(sentence)
        rows = [[f"{count:,}", f"{bound:.4g}"] for count, bound in found.telling.expected]
        place.table([">runs a side", ">bound, if the event stays as frequent"], rows)
        if out is not None:
            place.note(f"Open {out}.")
    if found.violated:
        raise typer.Exit(1)
