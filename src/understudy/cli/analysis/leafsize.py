"""`understudy leafsize`: how many records a leaf needs, for a budget and a wanted precision."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from understudy.cli.console import Debug, Quiet, Shell, shell
from understudy.cli.options import Json, require_absent
from understudy.errors import UsageError

if TYPE_CHECKING:
    from understudy.mechanisms.labels.leaf_size import LeafSize, Relation

__all__ = ["leafsize"]

SIZES = (100, 500, 1000, 2000)
"""Numbers of records shown beside the one that was found."""

Width = Annotated[float, typer.Option("--width", help="Most that a label's share may spread, end to end.")]
Share = Annotated[float, typer.Option("--share", help="The label's true share in the leaf; one half is the worst.")]
Rate = Annotated[float | None, typer.Option("--rate", help="λ itself: one over the scale of the noise on a count.")]
LeafEpsilon = Annotated[float | None, typer.Option("--epsilon", help="Budget of all trees together; gives λ.")]
Trees = Annotated[int, typer.Option("--trees", help="Trees for each private column.")]
Columns = Annotated[int, typer.Option("--columns", help="Number of private columns.")]
Neighbours = Annotated[str, typer.Option("--relation", help="What ε is for: add_remove or label_change.")]
Confidence = Annotated[float, typer.Option("--confidence", help="Probability of the interval.")]
Figure = Annotated[Path | None, typer.Option("--svg", help="Also draw the intervals into this file.")]
Simulate = Annotated[int, typer.Option("--simulate", help="Check the table by this many draws of each interval.")]
DrawSeed = Annotated[int, typer.Option("--seed", help="Of the simulated draws.")]


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
    """Finds leaf_size for method rdt. Public arithmetic: no table is opened, nothing is charged."""
    with shell(quiet=quiet, debug=debug) as place:
        from understudy.mechanisms.labels.leaf_size import leaf_size

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
            from understudy.mechanisms.labels.leaf_figure import intervals_svg

            svg.write_text(intervals_svg(confidence=confidence), encoding="utf-8")
            place.note(f"Drew {svg}.")


def _lines(found: "LeafSize", share: float, confidence: float, draws: int, seed: int) -> list[dict[str, float]]:
    """The interval at some sizes and at the one found, each also by simulation if draws are asked for."""
    import numpy as np

    from understudy.mechanisms.labels.leaf_interval import leaf_interval, simulated_interval

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
