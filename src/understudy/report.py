"""A report as one page: plain data in, one HTML file out, which opens offline, without scripts or requests.

A `Page` is plain data: no markup is stored in it, so nothing can smuggle any in. Charts are geometry: axes, curves,
scatters and bars as numbers that the template draws as inline SVG. Every curve differs from the others in colour (a
palette that stays apart for colour-blind eyes), in its dashes and in the shape of its marks, so that none of these
alone carries the meaning. Markup is written by the templates alone, whose engine escapes every text, and a content
security policy in the page itself forbids whatever a label might try all the same. Nothing private is computed here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of text; `strong` sets it off as the sentence to remember."""

    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class BulletList:
    """A bulleted list of short texts."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows of text under a header. Columns named in `numeric` are set flush right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    numeric: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Bars:
    """A horizontal bar for each label, with an optional half-width of the error around its end."""

    caption: str
    labels: tuple[str, ...]
    values: tuple[float, ...]
    half_widths: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """One curve: a value for each place, with the ends of its interval where there is one."""

    name: str
    places: tuple[float, ...]
    values: tuple[float, ...]
    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Lines:
    """Curves over one axis; `yardstick` draws a level to hold them against, `decades` makes heights logarithmic."""

    caption: str
    across: str
    upward: str
    series: tuple[Series, ...]
    logarithmic: bool = False
    yardstick: float | None = None
    decades: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """A point for each pair of numbers, with the diagonal on which both are equal."""

    caption: str
    across: str
    upward: str
    points: tuple[tuple[float, float], ...]


Block = Paragraph | BulletList | TextTable | Bars | Lines | Points


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, the question it answers, and its blocks in order."""

    title: str
    question: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report: a banner that says what may be done with it, then the sections."""

    title: str
    banner: str
    sections: Sequence[Section]
    footer: str = ""
    confidential: bool = False
    """Whether it compares with the private table: then the banner is set in a warning colour."""


_APART = 1e-9
"""Numbers nearer to each other than this, relative to their size, get no ticks between them: floats are too coarse."""
_LEAST = 1e-290


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: where it lies in pixels and what it says."""

    place: float
    text: str


@dataclass(frozen=True, slots=True)
class ChartAxis:
    """Numbers from `low` to `high` drawn from pixel `start` to pixel `end`; `end` may lie before `start`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    @classmethod
    def around(cls, numbers: Sequence[float], start: float, end: float, *, logarithmic: bool = False) -> "ChartAxis":
        """An axis that holds all of these (finite) numbers, with some margin if they are (nearly) equal."""
        kept = [number for number in numbers if math.isfinite(number) and (number > 0 or not logarithmic)]
        low, high = min(kept, default=1.0), max(kept, default=1.0)
        if high - low <= _APART * max(abs(low), abs(high), _LEAST):
            low, high = (low / 2, high * 2) if logarithmic else (low - 0.5, high + 0.5)
        return cls(low, high, start, end, logarithmic)

    def at(self, number: float) -> float:
        """The pixel of a number, cut at the ends of the axis.

        >>> Axis(0, 10, 100, 200).at(5.0), Axis(1, 100, 0, 10, logarithmic=True).at(10.0)
        (150.0, 5.0)
        """
        if self.logarithmic:
            share = (math.log(max(number, self.low)) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        else:
            share = (number - self.low) / (self.high - self.low)
        return round(self.start + min(max(share, 0.0), 1.0) * (self.end - self.start), 2)

    def ticks(self) -> tuple[Tick, ...]:
        """About five marks at round numbers."""
        return tuple(Tick(self.at(number), _short(number)) for number in self._round_numbers())

    def _round_numbers(self) -> list[float]:
        if self.logarithmic:
            exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            found = [float(f"{lead}e{exponent}") for exponent in exponents for lead in (1, 2, 5)]
            inside = [number for number in found if self.low * 0.999 <= number <= self.high * 1.001]
            tens = [number for number in inside if f"{number:e}".startswith("1.0")]
            return tens if len(tens) > 3 else inside
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 5))
        step *= next(factor for factor in (1, 2, 5, 10) if (self.high - self.low) / (step * factor) <= 6)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        return [(first + place) * step for place in range(count)]


def _short(number: float) -> str:
    return f"{number:,.6g}" if abs(number) < 1e6 else f"{number:.3g}"


WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 12, 46
INSET = 12
"""Margin between the frame and the first and last marks, so that marks and whiskers touch neither axis nor names."""
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
    across = ChartAxis.around(places, LEFT + INSET, right - INSET, logarithmic=chart.logarithmic)
    upward = ChartAxis.around(_heights(chart), bottom, TOP, logarithmic=chart.decades)
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
    across = ChartAxis.around(numbers, LEFT, LEFT + SIDE - 20)
    upward = ChartAxis.around(numbers, SIDE - BOTTOM, TOP)
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


def _curve(number: int, series: Series, across: ChartAxis, upward: ChartAxis) -> Curve:
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


BAR_CHART_WIDTH = 640
ROW_HEIGHT = 22
LABEL_WIDTH = 220
VALUE_WIDTH = 90


@dataclass(frozen=True, slots=True)
class BarMark:
    """One bar: its place, its length, the whisker of its error, and the texts beside it."""

    label: str
    text: str
    y: float
    length: float
    whisker: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart ready to be written as SVG, in pixels."""

    caption: str
    width: int
    height: int
    left: int
    row_height: int
    bars: tuple[BarMark, ...]


def draw_bars(chart: Bars) -> Drawing:
    """The geometry of a bar chart; bars below zero are drawn with no length but keep their number.

    >>> draw_bars(Bars("sex", ("F", "M"), (10.0, 5.0))).bars[1].length
    165.0
    """
    half_widths = chart.half_widths or (0.0,) * len(chart.values)
    ends = [value + half for value, half in zip(chart.values, half_widths, strict=True)]
    longest = max([end for end in ends if math.isfinite(end)], default=0.0)
    width = BAR_CHART_WIDTH - LABEL_WIDTH - VALUE_WIDTH
    scale = width / longest if longest > 0 else 0.0
    marks = []
    for row, (label, value, half) in enumerate(zip(chart.labels, chart.values, half_widths, strict=True)):
        place = (_within(value - half, scale, width), _within(value + half, scale, width)) if half > 0 else None
        text = f"{value:,.0f} ± {half:,.0f}" if half > 0 else f"{value:,.0f}"
        marks.append(BarMark(label, text, row * ROW_HEIGHT, _within(value, scale, width), place))
    return Drawing(
        caption=chart.caption,
        width=BAR_CHART_WIDTH,
        height=ROW_HEIGHT * max(len(marks), 1),
        left=LABEL_WIDTH,
        row_height=ROW_HEIGHT,
        bars=tuple(marks),
    )


def _within(value: float, scale: float, width: float) -> float:
    return round(min(max(value * scale, 0.0), width), 2)


POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader("understudy", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)


def render_page(page: Page) -> str:
    """The page as HTML text. Characters that may not stand in a file (lone surrogates, NUL) are shown escaped."""
    drawing = {"draw_bars": draw_bars, "draw_lines": draw_lines, "draw_points": draw_points}
    return _written(_template("page.html").render(page=page, policy=POLICY, **drawing))


def render_picture(chart: Lines | Points) -> str:
    """One chart as an SVG file of its own: nothing to load, every text escaped."""
    cloud = draw_points(chart) if isinstance(chart, Points) else None
    graph = cloud.graph if cloud is not None else draw_lines(cast(Lines, chart))
    return _written(_template("picture.svg").render(graph=graph, cloud=cloud)).lstrip()


def _written(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0")
