"""Curves and scatters as geometry, for the page template to draw as inline SVG.

Every curve differs from the others in colour (a palette that stays apart for colour-blind eyes), in its dashes and in
the shape of its marks, so that none of these alone carries the meaning.
"""

import math
from dataclasses import dataclass

from understudy.report.axis import Axis, Tick
from understudy.report.page import Lines, Points, Series

__all__ = ["Cloud", "Curve", "Graph", "draw_lines", "draw_points"]

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 12, 46
INSET = 12
"""Room between the frame and the first and last marks, so that marks and whiskers touch neither axis nor names."""
SIDE = 360
STYLES = 8
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 3", "10 4", "4 2 1 2", "12 3 4 3")
_MARKS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
    "M-4 -4h8v8h-8z",
    "M0 -5l5 9h-10z",
    "M0 -5l5 5l-5 5l-5 -5z",
    "M0 5l5 -9h-10z",
    "M-4 -1h3v-3h2v3h3v2h-3v3h-2v-3h-3z",
    "M-5 0l3 -4h4l3 4l-3 4h-4z",
    "M-4 -4l8 8M4 -4l-8 8",
)


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve: its path, its marks, the whiskers of its intervals, and where its name stands."""

    name: str
    style: int
    dashes: str
    mark: str
    path: str
    marks: tuple[tuple[float, float], ...]
    whiskers: tuple[tuple[float, float, float], ...]
    name_at: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Graph:
    """A chart with two axes, in pixels."""

    caption: str
    across: str
    upward: str
    width: int
    height: int
    frame: tuple[float, float, float, float]
    columns: tuple[Tick, ...]
    rows: tuple[Tick, ...]
    curves: tuple[Curve, ...] = ()
    yardstick: float | None = None


@dataclass(frozen=True, slots=True)
class Cloud:
    """A scatter: its axes, its points, and the two ends of the diagonal."""

    graph: Graph
    points: tuple[tuple[float, float], ...]
    diagonal: tuple[float, float, float, float]


def draw_lines(chart: Lines) -> Graph:
    """The geometry of curves over one axis; places or values that are not finite are left out."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    places = [place for one in chart.series for place in one.places]
    across = Axis.around(places, LEFT + INSET, right - INSET, logarithmic=chart.logarithmic)
    upward = Axis.around(_heights(chart), bottom, TOP, logarithmic=chart.decades)
    curves = tuple(_curve(number, one, across, upward) for number, one in enumerate(chart.series))
    return Graph(
        caption=chart.caption,
        across=chart.across,
        upward=chart.upward,
        width=WIDTH,
        height=HEIGHT,
        frame=(LEFT, TOP, right, bottom),
        columns=across.ticks(),
        rows=upward.ticks(),
        curves=_spread(curves),
        yardstick=None if chart.yardstick is None else upward.at(chart.yardstick),
    )


def _heights(chart: Lines) -> list[float]:
    """Numbers that the upward axis must hold.

    A linear axis holds 0 and all intervals. A logarithmic one cannot, and an interval that nearly reaches 0 would take
    most of it: lower ends are cut a little below the smallest mark.
    """
    values = [number for one in chart.series for number in one.values]
    values += [] if chart.yardstick is None else [chart.yardstick]
    highs = [number for one in chart.series for number in one.highs]
    if not chart.decades:
        return [*values, *highs, *(number for one in chart.series for number in one.lows), 0.0]
    least = min((number for number in values if math.isfinite(number) and number > 0), default=1.0)
    return [*values, *highs, least / 1.5]


def draw_points(chart: Points) -> Cloud:
    """The geometry of a scatter on equal axes; points that are not finite are left out."""
    kept = [point for point in chart.points if all(math.isfinite(number) for number in point)]
    numbers = [number for point in kept for number in point]
    across = Axis.around(numbers, LEFT, LEFT + SIDE - 20)
    upward = Axis.around(numbers, SIDE - BOTTOM, TOP)
    graph = Graph(
        caption=chart.caption,
        across=chart.across,
        upward=chart.upward,
        width=LEFT + SIDE,
        height=SIDE,
        frame=(LEFT, TOP, LEFT + SIDE - 20, SIDE - BOTTOM),
        columns=across.ticks(),
        rows=upward.ticks(),
    )
    places = tuple((across.at(first), upward.at(second)) for first, second in kept)
    return Cloud(graph, places, (across.start, upward.start, across.end, upward.end))


def _curve(number: int, series: Series, across: Axis, upward: Axis) -> Curve:
    style = number % STYLES
    kept = [index for index, value in enumerate(series.values) if math.isfinite(value)]
    marks = tuple((across.at(series.places[index]), upward.at(series.values[index])) for index in kept)
    whiskers = tuple(
        (across.at(series.places[index]), upward.at(series.lows[index]), upward.at(series.highs[index]))
        for index in kept
        if series.lows and math.isfinite(series.lows[index]) and math.isfinite(series.highs[index])
    )
    path = "M" + " L".join(f"{x} {y}" for x, y in marks) if marks else ""
    last = marks[-1] if marks else (across.end, upward.start)
    name_at = across.end + INSET + 10, last[1]
    return Curve(series.name, style, _DASHES[style], _MARKS[style], path, marks, whiskers, name_at)


def _spread(curves: tuple[Curve, ...]) -> tuple[Curve, ...]:
    """The same curves with their names moved apart, so that none covers another."""
    order = sorted(range(len(curves)), key=lambda index: curves[index].name_at[1])
    places: dict[int, float] = {}
    lowest = float(TOP)
    for index in order:
        places[index] = max(curves[index].name_at[1], lowest)
        lowest = places[index] + 14
    excess = max(0.0, lowest - 14 - (HEIGHT - BOTTOM))
    return tuple(
        Curve(one.name, one.style, one.dashes, one.mark, one.path, one.marks, one.whiskers,
              (one.name_at[0], round(places[index] - excess, 2)))
        for index, one in enumerate(curves)
    )  # fmt: skip
