"""`understudy pool`: estimates with honest intervals from a release. Reads no private data."""

import dataclasses
from typing import Annotated

import typer

from understudy.cli.console import Debug, Quiet, Shell, shell
from understudy.cli.options import Json, ReleaseFolder, pairs
from understudy.errors import UsageError

__all__ = ["pool"]

Formula = Annotated[
    str | None, typer.Option("--formula", help='Model to fit to every copy and pool, as "income ~ age + sex".')
]
FamilyOption = Annotated[str, typer.Option("--family", help="auto, linear, logistic or firth.")]
Shares = Annotated[
    list[str] | None,
    typer.Option("--share", metavar="COLUMN=VALUE[,…]", help="A share with its privacy noise; repeat for more."),
]
Level = Annotated[float, typer.Option("--level", help="Of the intervals.")]
FAMILIES = ("auto", "linear", "logistic", "firth")


def pool(
    release: ReleaseFolder,
    *,
    formula: Formula = None,
    family: FamilyOption = "auto",
    share: Shares = None,
    level: Level = 0.95,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Pools a model over the copies of a release, or gives measured shares with intervals that include the noise."""
    with shell(quiet=quiet, debug=debug) as place:
        from understudy.evaluate.pooling.pool import pool_model
        from understudy.evaluate.pooling.shares import measured_share
        from understudy.release import Release

        if formula is None and not share:
            raise UsageError("pool", "needs --formula or --share.")
        if family not in FAMILIES:
            raise UsageError("--family", f"must be one of {', '.join(FAMILIES)}, got {family!r}.")
        loaded = Release.load(release)
        found: dict[str, object] = {}
        if share:
            conditions = [pairs("--share", text.split(",")) for text in share]
            shares = [measured_share(loaded, condition, level=level) for condition in conditions]
            found["shares"] = [dataclasses.asdict(one) for one in shares]
        if formula is not None:
            model = pool_model(loaded, formula, family, level=level)  # type: ignore[arg-type]
            found["model"] = dataclasses.asdict(model)
        if json:
            place.json(found)
            return
        if share:
            _show_shares(place, [(text, one) for text, one in zip(share, shares, strict=True)])
        if formula is not None:
            rows = [
                [name, f"{one.estimate:.6g}", f"{one.low:.6g}", f"{one.high:.6g}", _degrees(one.degrees)]
                for name, one in model.coefficients.items()
            ]
            place.table(["coefficient", ">estimate", ">low", ">high", ">degrees"], rows, title=model.formula)
            for note in model.notes:
                place.note(note)
            if model.left_out:
                place.note(f"Not estimable in every copy, left out: {', '.join(model.left_out)}.")


def _degrees(degrees: float | None) -> str:
    return "normal" if degrees is None else f"{degrees:.1f}"


def _show_shares(place: Shell, shares: list[tuple[str, object]]) -> None:
    from understudy.evaluate.pooling.shares import MeasuredShare

    rows = []
    for text, one in shares:
        assert isinstance(one, MeasuredShare)
        table = f"{one.table_low:.4f} … {one.table_high:.4f}"
        population = f"{one.population_low:.4f} … {one.population_high:.4f}"
        rows.append([text, f"{one.estimate:.4f}", table, population, one.question])
    place.table(["share of", ">estimate", "in the private table", "in the population", "measured as"], rows)
    for note in dict.fromkeys(note for _, one in shares if isinstance(one, MeasuredShare) for note in one.notes):
        place.note(note)
