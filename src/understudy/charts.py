"""Charts as plain data and as geometry: what to show, and the marks, in pixels, that show it.

A chart says what is compared (shares of labels, distances of pairs, intervals of coefficients); `draw` turns it into a
`Drawing`: marks with classes for the style sheet, in light and dark, and no colours of their own. A template writes the
marks as inline SVG, which needs no script: what a pointer finds on a mark is a `title` element, and every drawing has a
summary in words for those who do not see it. Real rows are grey areas, synthetic rows blue lines or bars, so that shape
and brightness tell them apart as well as hue. Curves differ in colour (a palette that stays apart for colour-blind
eyes), in their dashes and in the shape of their marks.

Small charts are 340 pixels wide, so that they stand side by side on a desk and one below another on a telephone.
"""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal


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

        >>> ChartAxis(0, 10, 100, 200).at(5.0), ChartAxis(1, 100, 0, 10, logarithmic=True).at(10.0)
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
    return _signed(f"{number:,.6g}" if abs(number) < 1e6 else f"{number:.3g}")


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


Element = Literal["rect", "line", "path", "text"]


@dataclass(frozen=True, slots=True)
class SvgMark:
    """One mark: its SVG element, its class, its numbers, its text, what a pointer finds on it, and where it leads."""

    element: Element
    style: str
    at: tuple[tuple[str, str], ...]
    text: str = ""
    hint: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart ready to be written as SVG, in pixels, with a summary in words."""

    caption: str
    summary: str
    width: int
    height: int
    shapes: tuple[SvgMark, ...]
    names: tuple[tuple[str, str], ...] = ()
    """What the colours mean: class and name."""


def _number(value: float) -> str:
    return f"{round(value, 1):g}"


def _rect(style: str, box: tuple[float, float, float, float], hint: str = "", link: str = "") -> SvgMark:
    x, y, width, height = box
    at = (("x", _number(x)), ("y", _number(y)), ("width", _number(max(width, 0.0))), ("height", _number(height)))
    return SvgMark("rect", style, at, hint=hint, link=link)


def _line(style: str, start: tuple[float, float], end: tuple[float, float]) -> SvgMark:
    numbers = zip(("x1", "y1", "x2", "y2"), (*start, *end), strict=True)
    return SvgMark("line", style, tuple((name, _number(value)) for name, value in numbers))


def _text(style: str, x: float, y: float, text: str, *, hint: str = "", turned: bool = False) -> SvgMark:
    at: tuple[tuple[str, str], ...] = (("x", _number(x)), ("y", _number(y)))
    if turned:
        at = (*at, ("transform", f"rotate(-90 {_number(x)} {_number(y)})"))
    return SvgMark("text", style, at, text, hint)


def _path(style: str, steps: str, hint: str = "", link: str = "") -> SvgMark:
    return SvgMark("path", style, (("d", steps),), hint=hint, link=link)


LETTER = 7.1
"""Width of a middling letter of 12 pixels; capitals take more, and letters of East Asia two."""
CAPITAL = 1.3


def shortened(text: str, width: float) -> str:
    """The text, cut with an ellipsis where it would be wider than so many pixels.

    >>> shortened("under 5,000 a year", 70)
    'under 5,…'
    """
    room, used = width / LETTER, 0.0
    for place, letter in enumerate(text):
        used += 2.0 if unicodedata.east_asian_width(letter) in "WF" else CAPITAL if letter.isupper() else 1.0
        if used > room:
            return text[: max(place - 1, 1)].rstrip() + "…"
    return text


def percent(share: float) -> str:
    """A share in percent, in two or three digits.

    >>> percent(0.3468), percent(0.0312), percent(0.00004), percent(0)
    ('34.7 %', '3.1 %', '<0.1 %', '0 %')
    """
    if 0 < abs(share) < 0.0005:
        return "<0.1 %"
    return _signed(f"{100 * share:.1f} %" if share not in (0.0, 1.0) else f"{100 * share:.0f} %")


def in_digits(value: float) -> str:
    """A number in three digits, as people write it.

    >>> in_digits(0.012345), in_digits(1234.5), in_digits(-2.0), in_digits(0.0000004)
    ('0.0123', '1,234', '−2', '4e-07')
    """
    return _signed(f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}")


def _signed(text: str) -> str:
    return f"−{text[1:]}" if text.startswith("-") else text


Side = Literal["real", "made"]


@dataclass(frozen=True, slots=True)
class Amounts:
    """What one table has of each label: shares, or counts, with half of the width of their error bars if known."""

    side: Side
    name: str
    values: tuple[float, ...]
    half_widths: tuple[float, ...] = ()

    def halves(self) -> tuple[float, ...]:
        """The half-widths, 0 where none are known."""
        return self.half_widths or (0.0,) * len(self.values)

    def together(self, groups: Iterable[Sequence[int]]) -> "Amounts":
        """The sums of these places; errors are independent, so that their squares add up."""
        lists = [list(group) for group in groups]
        values = tuple(math.fsum(self.values[place] for place in group) for group in lists)
        squares = [math.fsum(self.half_widths[place] ** 2 for place in group) for group in lists if self.half_widths]
        return replace(self, values=values, half_widths=tuple(map(math.sqrt, squares)))


@dataclass(frozen=True, slots=True)
class SharesChart:
    """One column in one or two tables: a bar for each label, a histogram where the first `bins` labels are bins."""

    caption: str
    labels: tuple[str, ...]
    amounts: tuple[Amounts, ...]
    bins: int = 0
    unit: Literal["share", "count", "number"] = "share"


SMALL = 340
MOST_LABEL = 150.0
MOST_ROWS = 16
MOST_NUMBERED = 12
"""Ascending numbers up to which each has a bar of its own; more of them are a histogram."""
MOST_BINS = 48
FEWEST_BINS = 5
PLOT_LEFT, PLOT_HEIGHT = 46, 104
TOLD = 8


def draw_shares(chart: SharesChart) -> Drawing:
    """Bars for labels; a histogram for bins and many numbered labels, with a bar for whatever is no number."""
    chart = replace(chart, bins=chart.bins or _numbered(chart.labels))
    if chart.bins >= FEWEST_BINS:
        shapes, height = _histogram(chart)
        odd = _part(chart, chart.bins, len(chart.labels))
        more, lower = _bars(odd, height, _largest(chart)) if odd.labels else ([], height)
        shapes += more
        height = lower
    else:
        chart = _longest_first(chart)
        shapes, height = _bars(chart, 2, _largest(chart))
    names = tuple((f"key-{one.side}", one.name) for one in chart.amounts) if len(chart.amounts) > 1 else ()
    return Drawing(chart.caption, _told(chart), SMALL, math.ceil(height), tuple(shapes), names)


def _numbered(labels: Sequence[str]) -> int:
    """How many labels, from the first, are ascending numbers; 0 if there are few enough for bars of their own."""
    last, count = -math.inf, 0
    for label in labels:
        try:
            number = float(label)
        except ValueError:
            break
        if not last < number < math.inf:
            break
        last, count = number, count + 1
    return count if count > MOST_NUMBERED else 0


def _largest(chart: SharesChart) -> float:
    ends = [value + half for one in chart.amounts for value, half in zip(one.values, one.halves(), strict=True)]
    return max([end for end in ends if math.isfinite(end)], default=0.0)


def _part(chart: SharesChart, start: int, stop: int) -> SharesChart:
    parts = tuple(
        replace(one, values=one.values[start:stop], half_widths=one.half_widths[start:stop]) for one in chart.amounts
    )
    return replace(chart, labels=chart.labels[start:stop], amounts=parts, bins=0)


def _longest_first(chart: SharesChart) -> SharesChart:
    """The most frequent of many labels, in their order, and the sum of all others."""
    if len(chart.labels) <= MOST_ROWS:
        return chart
    often = sorted(range(len(chart.labels)), key=lambda place: -max(one.values[place] for one in chart.amounts))
    kept = sorted(often[: MOST_ROWS - 1])
    rest = often[MOST_ROWS - 1 :]
    amounts = tuple(one.together([*([place] for place in kept), rest]) for one in chart.amounts)
    labels = (*(chart.labels[place] for place in kept), f"{len(rest):,} others together")
    return replace(chart, labels=labels, amounts=amounts)


def _bars(chart: SharesChart, top: float, largest: float) -> tuple[list[SvgMark], float]:
    """One row for each label: its name, a bar for each table, its numbers."""
    told = [_told_row(chart, row) for row in range(len(chart.labels))]
    left = min(MOST_LABEL, max([LETTER * len(label) for label in chart.labels], default=0.0) + 16)
    right = SMALL - LETTER * max([len(numbers) for numbers in told], default=0) - 8
    room = max(right - left, 40.0)
    scale = room / largest if largest > 0 else 0.0
    thick, pitch = (7, 24) if len(chart.amounts) > 1 else (12, 22)
    shapes = []
    for row, (label, numbers) in enumerate(zip(chart.labels, told, strict=True)):
        y = top + row * pitch
        hint = f"{label}: {numbers}"
        shapes.append(_text("label", left - 6, y + 15, shortened(label, left - 6), hint=hint))
        for place, one in enumerate(chart.amounts):
            spot, value = y + 4 + place * (thick + 1), one.values[row]
            shapes.append(_rect(f"bar {one.side}", (left, spot, _held(value * scale, room), thick), hint))
            if one.half_widths:
                ends = [_held((value + sign * one.half_widths[row]) * scale, room) for sign in (-1, 1)]
                middle = spot + thick / 2
                shapes.append(_line("whisker", (left + ends[0], middle), (left + ends[1], middle)))
        shapes.append(_text("value", left + room + 6, y + 15, numbers))
    return shapes, top + len(chart.labels) * pitch + 4


def _told_row(chart: SharesChart, row: int) -> str:
    """The numbers of one label in every table; of shares, the sign stands once."""
    words = [_amount(one, row, chart) for one in chart.amounts]
    if chart.unit == "share":
        words = [word.removesuffix(" %") for word in words[:-1]] + words[-1:]
    return " · ".join(words)


def _held(length: float, room: float) -> float:
    return min(max(length, 0.0), room) if math.isfinite(length) else 0.0


def _amount(one: Amounts, place: int, chart: SharesChart) -> str:
    value = one.values[place]
    if chart.unit == "share":
        return percent(value)
    if chart.unit == "number":
        return in_digits(value)
    text = _signed(f"{value:,.0f}")
    return f"{text} ± {one.half_widths[place]:,.0f}" if one.half_widths else text


def _histogram(chart: SharesChart) -> tuple[list[SvgMark], float]:
    """Bins side by side: an area for real rows, a line for synthetic ones, whiskers where errors are known."""
    edges, groups = _grouped(chart.labels[: chart.bins])
    shown = [one.together([range(start, stop) for start, stop in groups]) for one in chart.amounts]
    largest = max([value + half for one in shown for value, half in zip(one.values, one.halves(), strict=True)])
    width = (SMALL - PLOT_LEFT - 8) / len(groups)
    base = 10.0 + PLOT_HEIGHT
    scale = PLOT_HEIGHT / largest if largest > 0 else 0.0
    shapes = [_line("frame", (PLOT_LEFT, base), (SMALL - 8, base))]
    for level in _levels(largest):
        height = base - level * scale
        text = f"{100 * level:,.6g} %" if chart.unit == "share" else _short(level)
        shapes += [
            _line("grid", (PLOT_LEFT, height), (SMALL - 8, height)),
            _text("label", PLOT_LEFT - 4, height + 4, text),
        ]
    for one in shown:
        heights = [base - _held(value * scale, PLOT_HEIGHT) for value in one.values]
        filled = one.side == "real" or len(shown) == 1
        shapes.append(_path(f"{'area' if filled else 'step'} {one.side}", _steps(heights, width, base, closed=filled)))
        if one.half_widths:
            shapes += _bin_whiskers(one, width, base, scale)
    for place, (start, stop) in enumerate(groups):
        numbers = " · ".join(_amount(one, place, chart) for one in shown)
        hint = f"{_span(chart.labels, start, stop)}: {numbers}"
        shapes.append(_rect("over", (PLOT_LEFT + place * width, 10, width, PLOT_HEIGHT), hint))
    alone = all(stop == start + 1 for start, stop in groups) and not chart.labels[0].startswith("[")
    return shapes + _edge_texts(edges, width, base, 0.5 if alone else 0.0), base + 24


def _levels(largest: float) -> list[float]:
    """Two to four round heights up to the largest.

    >>> _levels(0.33), _levels(9276.0), _levels(0.0)
    ([0.1, 0.2, 0.3], [2000.0, 4000.0, 6000.0, 8000.0], [])
    """
    if not _LEAST < largest < math.inf:
        return []
    power = 10.0 ** math.floor(math.log10(largest))
    step = next(step for step in (power * part for part in (0.2, 0.5, 1.0, 2.0)) if largest / step < 5)
    return [float(f"{step * place:.3g}") for place in range(1, math.floor(largest / step + 1e-9) + 1)]


def _bin_whiskers(one: Amounts, width: float, base: float, scale: float) -> list[SvgMark]:
    found = []
    for place, (value, half) in enumerate(zip(one.values, one.half_widths, strict=True)):
        low, high = (base - _held((value + sign * half) * scale, PLOT_HEIGHT) for sign in (-1, 1))
        x = PLOT_LEFT + (place + 0.5) * width
        found.append(_line("whisker", (x, low), (x, high)))
    return found


def _steps(heights: Sequence[float], width: float, base: float, *, closed: bool) -> str:
    x = float(PLOT_LEFT)
    parts = [f"M{_number(x)} {_number(base)}"]
    for height in heights:
        x += width
        parts.append(f"V{_number(height)}H{_number(x)}")
    return "".join([*parts, f"V{_number(base)}", "Z" if closed else ""])


def _grouped(labels: Sequence[str]) -> tuple[list[str], list[tuple[int, int]]]:
    """Neighbouring bins together where there are more than can be drawn; where each group starts, in words."""
    size = math.ceil(len(labels) / MOST_BINS)
    groups = [(start, min(start + size, len(labels))) for start in range(0, len(labels), size)]
    return [_start(labels[start]) for start, _ in groups], groups


def _start(label: str) -> str:
    return label[1:].split(",")[0].strip() if label.startswith("[") else label


def _span(labels: Sequence[str], start: int, stop: int) -> str:
    return labels[start] if stop == start + 1 else f"{labels[start]} to {labels[stop - 1]}"


def _edge_texts(edges: Sequence[str], width: float, base: float, within: float) -> list[SvgMark]:
    """As many starts of bins as have room beside one another; single values stand in the middle of their bin."""
    longest = max(len(edge) for edge in edges)
    every = max(1, math.ceil((min(longest, 11) + 1.5) * LETTER / width))
    found = []
    for place in range(0, len(edges), every):
        x, text = PLOT_LEFT + (place + within) * width, shortened(edges[place], 11 * LETTER)
        if x + LETTER * len(text) / 2 <= SMALL:
            found.append(_line("frame", (x, base), (x, base + 4)))
            found.append(_text("middle", x, base + 17, text))
    return found


def _told(chart: SharesChart) -> str:
    """The picture in words: the labels with the most, or where two tables differ most."""
    values = [one.values for one in chart.amounts]
    apart = len(values) > 1
    order = sorted(
        range(len(chart.labels)),
        key=lambda place: -abs(values[0][place] - values[1][place]) if apart else -values[0][place],
    )
    words = [
        f"{chart.labels[place]}: " + ", ".join(f"{one.name} {_amount(one, place, chart)}" for one in chart.amounts)
        for place in order[:TOLD]
    ]
    more = f"; and {len(order) - TOLD:,} more" if len(order) > TOLD else ""
    return f"{'Largest differences first. ' if apart else ''}{'; '.join(words)}{more}."


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One cell: its row and column, its value (None: not known), what a pointer finds on it, and where it leads."""

    row: int
    column: int
    value: float | None
    hint: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Values of rows by columns as shades from 0 to `top`; `signed` ones from −`top` to `top` in two hues."""

    caption: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[MatrixCell, ...]
    top: float
    signed: bool = False
    summary: str = ""
    small: bool = False
    """Whether it must fit beside others, within the width of a small chart."""
    root: bool = False
    """Whether shades follow the square root, so that small shares beside a large one can be seen."""
    unit: Literal["number", "share"] = "number"


SHADES = 9
ROW_NAME, COLUMN_NAME, LEAST_NAME = 200.0, 150.0, 96.0
"""Most room for names beside and above the cells; small charts leave names this much, and what cells do not need."""
LEAST_CELL, MOST_CELL = 8.0, 26.0
KEY = 190.0
"""Room for the key of shades."""
WHOLE = 1060
LETTERS_APART = 13.0


def draw_matrix(chart: Matrix) -> Drawing:
    """Cells in shades with their names beside them, and a key of shades below."""
    longest = LETTER * max((len(name) for name in chart.rows), default=0)
    spare = SMALL - max(MOST_CELL * len(chart.columns) + 4, KEY)
    left = float(math.ceil(min(max(LEAST_NAME, spare) if chart.small else ROW_NAME, 16 + longest)))
    above = 12 + min(COLUMN_NAME, LETTER * max((len(name) for name in chart.columns), default=0))
    room = (SMALL if chart.small else WHOLE) - left - 4
    size = min(MOST_CELL, max(LEAST_CELL if not chart.small else 1.0, room / max(len(chart.columns), 1)))
    size = size if chart.small else math.floor(2 * size) / 2  # short numbers: there are thousands of cells
    shapes = _names(chart, left, above, size)
    plain: dict[tuple[str, str], list[str]] = {}
    for cell in chart.cells:
        x, y, style = left + cell.column * size, above + cell.row * size, _shade(chart, cell.value)
        style = "blank" if style == "unknown" and size < LEAST_CELL else style  # frames would be all that is seen
        if cell.hint:
            shapes.append(_rect(style, (x, y, size, size), cell.hint, cell.link))
        else:
            plain.setdefault((style, cell.link), []).append(
                f"M{_number(x)} {_number(y)}h{_number(size)}v{_number(size)}h-{_number(size)}z"
            )
    shapes += [_path(style, "".join(steps), link=link) for (style, link), steps in plain.items()]
    bottom = above + size * len(chart.rows)
    shapes += _key(chart, left, bottom + 10)
    width = max(left + size * len(chart.columns) + 4, left + KEY)
    return Drawing(
        chart.caption, chart.summary or _extremes(chart), math.ceil(width), math.ceil(bottom + 42), tuple(shapes)
    )


def _names(chart: Matrix, left: float, above: float, size: float) -> list[SvgMark]:
    """Names of rows and columns, every second or third where cells are smaller than letters."""
    every = max(1, math.ceil(LETTERS_APART / size))
    shapes = []
    for place in range(0, len(chart.rows), every):
        name, y = chart.rows[place], above + (place + 0.5) * size + 4
        shapes.append(_text("label", left - 5, y, shortened(name, left - 6), hint=name))
    for place in range(0, len(chart.columns), every):
        name, x = chart.columns[place], left + (place + 0.5) * size + 4
        shapes.append(_text("up", x, above - 5, shortened(name, above - 6), hint=name, turned=True))
    return shapes


def _shade(chart: Matrix, value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "unknown"
    share = min(abs(value) / chart.top, 1.0) if chart.top > 0 else 0.0
    shade = min(SHADES - 1, math.floor((math.sqrt(share) if chart.root else share) * SHADES))
    if not chart.signed:
        return f"shade-{shade}"
    return f"{'less' if value < 0 else 'more'}-{shade}"


def _key(chart: Matrix, left: float, y: float) -> list[SvgMark]:
    styles = [f"shade-{shade}" for shade in range(SHADES)]
    if chart.signed:
        styles = [f"less-{shade}" for shade in reversed(range(0, SHADES, 2))]
        styles += [f"more-{shade}" for shade in range(0, SHADES, 2)]
    low, high = (_value(chart, end) for end in (-chart.top if chart.signed else 0.0, chart.top))
    whole = max(100.0, LETTER * (len(low) + len(high)) + 14)
    width = whole / len(styles)
    shapes = [_rect(style, (left + place * width, y, width, 10)) for place, style in enumerate(styles)]
    return [*shapes, _text("edge", left, y + 24, low), _text("far", left + whole, y + 24, high)]


def _value(chart: Matrix, value: float) -> str:
    return percent(value) if chart.unit == "share" else in_digits(value)


def _extremes(chart: Matrix) -> str:
    known = [cell for cell in chart.cells if cell.value is not None and math.isfinite(cell.value)]
    known.sort(key=lambda cell: -abs(cell.value or 0.0))
    words = [
        f"{chart.rows[cell.row]} and {chart.columns[cell.column]}: {_value(chart, cell.value or 0.0)}"
        for cell in known[:TOLD]
    ]
    return (
        f"{len(chart.rows)} rows by {len(chart.columns)} columns. Largest: {'; '.join(words)}."
        if words
        else "No values."
    )


@dataclass(frozen=True, slots=True)
class Between:
    """Where a score lies between the yardstick (0) and columns drawn independently (1)."""

    caption: str
    place: float | None
    near: str
    far: str
    summary: str


def draw_between(chart: Between) -> Drawing:
    """A bar from good to bad with a marker; beyond its ends the marker becomes an arrow."""
    left, right, y = 6.0, 270.0, 8.0
    shapes = [
        _rect("good", (left, y, (right - left) * 0.1, 10)),
        _rect("fair", (left + (right - left) * 0.1, y, (right - left) * 0.4, 10)),
        _rect("poor", (left + (right - left) * 0.5, y, (right - left) * 0.5, 10)),
    ]
    if chart.place is not None:
        x = left + (right - left) * min(max(chart.place, 0.0), 1.0)
        shapes.append(_path("marker", f"M{_number(x)} {_number(y + 14)}l-6 -17h12z"))
    shapes.append(_text("edge", left, 34, chart.near))
    shapes.append(_text("far", right, 34, chart.far))
    return Drawing(chart.caption, chart.summary, 276, 40, tuple(shapes))


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """One estimate: its name, and value, low and high in each table (None: it cannot be estimated there)."""

    name: str
    real: tuple[float, float, float]
    made: tuple[float, float, float] | None


@dataclass(frozen=True, slots=True)
class Forest:
    """Estimates with their intervals, real above synthetic, around a line at zero; `axis` are ends for all of them."""

    caption: str
    rows: tuple[IntervalRow, ...]
    axis: tuple[float, float] | None = None


FOREST_PITCH = 38
"""Pixels from one estimate to the next: its name stands above its intervals, so that both fit on a telephone."""


def forest_axis(rows: Iterable[IntervalRow]) -> tuple[float, float]:
    """Ends that hold zero and all intervals but runaway ones, for several charts side by side."""
    ends = _trimmed([number for row in rows for one in (row.real, row.made or row.real) for number in one])
    return min(0.0, *ends), max(0.0, *ends)


def draw_forest(chart: Forest) -> Drawing:
    """A name and two intervals for each estimate; intervals beyond the axis end in its frame."""
    axis = ChartAxis.around(chart.axis or forest_axis(chart.rows), 10, SMALL - 14.0)
    bottom = 4.0 + FOREST_PITCH * len(chart.rows)
    shapes: list[SvgMark] = []
    for tick in _apart_enough(axis.ticks()):
        shapes += [
            _line("grid", (tick.place, 4), (tick.place, bottom)),
            _text("middle", tick.place, bottom + 16, tick.text),
        ]
    shapes.append(_line("frame", (axis.at(0.0), 4), (axis.at(0.0), bottom)))
    words = []
    for place, row in enumerate(chart.rows):
        y = 4.0 + FOREST_PITCH * place
        told = f"{row.name}: {real_and_made(row)}"
        words.append(told)
        shapes.append(_text("name", 2, y + 13, shortened(row.name, SMALL - 8), hint=told))
        for side, numbers, spot in (("real", row.real, y + 21), ("made", row.made, y + 30)):
            if numbers is None:
                shapes.append(_text("value", 2, spot + 5, "synthetic: cannot be estimated"))
                continue
            value, low, high = (axis.at(number) for number in numbers)
            shapes.append(_line(f"interval {side}", (low, spot), (high, spot)))
            shapes.append(_rect(f"bar {side}", (value - 3, spot - 3, 6, 6), told))
    names = (("key-real", "real"), ("key-made", "synthetic"))
    return Drawing(chart.caption, "; ".join(words[:TOLD]) + ".", SMALL, math.ceil(bottom + 24), tuple(shapes), names)


def _trimmed(numbers: Sequence[float]) -> list[float]:
    """Numbers within ten times the middle ones: a runaway interval would press all others together."""
    known = sorted(number for number in numbers if math.isfinite(number))
    if not known:
        return [0.0]
    reach = 10 * max(abs(known[len(known) // 10]), abs(known[-1 - len(known) // 10]), 1e-9)
    return [number for number in known if abs(number) <= reach]


def real_and_made(row: IntervalRow) -> str:
    """Both estimates with their intervals, in words."""
    return f"real {_interval(row.real)}; synthetic {_interval(row.made)}"


def _interval(numbers: tuple[float, float, float] | None) -> str:
    if numbers is None:
        return "cannot be estimated"
    return f"{in_digits(numbers[0])} ({in_digits(numbers[1])} to {in_digits(numbers[2])})"


@dataclass(frozen=True, slots=True)
class PointMap:
    """Points of one table on two axes whose ends are given, so that two maps can be held against each other."""

    caption: str
    side: Side
    across: str
    upward: str
    points: tuple[tuple[float, float], ...]
    ends: tuple[float, float, float, float]
    summary: str = ""


def draw_map(chart: PointMap) -> Drawing:
    """All points as one path of dots."""
    low, high, lowest, highest = chart.ends
    across = ChartAxis.around([low, high], 34, SMALL - 8)
    upward = ChartAxis.around([lowest, highest], 270, 8)
    dots = "".join(f"M{_number(across.at(x))} {_number(upward.at(y))}h0" for x, y in chart.points)
    shapes = [
        _line("frame", (34, 270), (SMALL - 8, 270)),
        _line("frame", (34, 8), (34, 270)),
        _path(f"dots {chart.side}", dots),
        _text("middle", (34 + SMALL - 8) / 2, 288, shortened(chart.across, 280)),
        _text("middle", 22, 140, shortened(chart.upward, 240), turned=True),
    ]
    return Drawing(chart.caption, chart.summary, SMALL, 296, tuple(shapes))


@dataclass(frozen=True, slots=True)
class CurvePanel:
    """One of several small pictures of the same curves: values over a logarithmic axis, each with its interval.

    Where all values stand at one place, each curve is a row of its own with its name beside it.
    """

    caption: str
    across: str
    series: tuple[Series, ...]
    stops: tuple[float, ...] = ()
    """Places that the axis names."""
    yardstick: float | None = None
    decades: bool = False


PANEL_HEIGHT = 190


def draw_panel(chart: CurvePanel) -> Drawing:
    """Curves in the styles of their numbers, or rows of one value each."""
    places = {place for one in chart.series for place in one.places}
    shapes, height = _rows_of_one(chart) if len(places) < 2 else _small_curves(chart)
    return Drawing(chart.caption, _panel_told(chart), SMALL, math.ceil(height), tuple(shapes))


def _panel_axis(chart: CurvePanel, start: float, end: float) -> ChartAxis:
    whole = Lines(chart.caption, "", "", chart.series, True, chart.yardstick, chart.decades)
    numbers = _heights(whole)
    if not chart.decades and min([number for number in numbers if math.isfinite(number)], default=0.0) >= 0:
        numbers = [*numbers, 0.0]
    return ChartAxis.around(numbers, start, end, logarithmic=chart.decades)


def _small_curves(chart: CurvePanel) -> tuple[list[SvgMark], float]:
    bottom = 8.0 + PANEL_HEIGHT
    upward = _panel_axis(chart, bottom, 12.0)
    ticks = upward.ticks()
    left = 14 + LETTER * max([len(tick.text) for tick in ticks], default=3)
    places = sorted({place for one in chart.series for place in one.places})
    across = ChartAxis.around(places, left + INSET, SMALL - 8 - INSET, logarithmic=True)
    shapes = []
    for tick in ticks:
        shapes.append(_line("grid", (left, tick.place), (SMALL - 8, tick.place)))
        shapes.append(_text("label", left - 5, tick.place + 4, tick.text))
    if chart.yardstick is not None:
        level = upward.at(chart.yardstick)
        shapes.append(_line("yardstick", (left, level), (SMALL - 8, level)))
    stops = [Tick(across.at(place), f"{place:g}") for place in sorted(chart.stops)]
    for tick in _apart_enough(stops or across.ticks()):
        shapes.append(_line("frame", (tick.place, bottom), (tick.place, bottom + 4)))
        shapes.append(_text("middle", tick.place, bottom + 17, tick.text))
    shapes.append(_line("frame", (left, bottom), (SMALL - 8, bottom)))
    shapes.append(_text("label", SMALL - 8, bottom + 33, chart.across))
    for number, one in enumerate(chart.series):
        shapes += _small_curve(number, one, across, upward)
    return shapes, bottom + 40


def _small_curve(number: int, series: Series, across: ChartAxis, upward: ChartAxis) -> list[SvgMark]:
    curve = _curve(number, series, across, upward)
    shapes = [_line(f"trace colour-{curve.style}", (x, low), (x, high)) for x, low, high in curve.whiskers]
    if len(curve.marks) > 1:
        at = (("d", curve.path), ("stroke-dasharray", curve.dashes))
        shapes.append(SvgMark("path", f"trace colour-{curve.style}", at))
    known = [index for index, value in enumerate(series.values) if math.isfinite(value)]
    for index, spot in zip(known, curve.marks, strict=True):
        shapes.append(_curve_mark(curve.style, curve.mark, spot, _value_told(series, index)))
    return shapes


def _curve_mark(style: int, mark: str, spot: tuple[float, float], hint: str = "") -> SvgMark:
    at = (("d", mark), ("transform", f"translate({_number(spot[0])} {_number(spot[1])})"))
    return SvgMark("path", f"dot colour-{style}", at, hint=hint)


def _rows_of_one(chart: CurvePanel) -> tuple[list[SvgMark], float]:
    left = min(MOST_LABEL, max([LETTER * len(one.name) for one in chart.series], default=0.0) + 16)
    axis = _panel_axis(chart, left + 8, SMALL - 14.0)
    bottom = 6.0 + 24 * len(chart.series)
    shapes = []
    for tick in _apart_enough(axis.ticks()):
        shapes.append(_line("grid", (tick.place, 4), (tick.place, bottom)))
        shapes.append(_text("middle", tick.place, bottom + 16, tick.text))
    if chart.yardstick is not None:
        shapes.append(_line("yardstick", (axis.at(chart.yardstick), 4), (axis.at(chart.yardstick), bottom)))
    for number, one in enumerate(chart.series):
        y = 18.0 + 24 * number
        shapes.append(_text("label", left, y + 4, shortened(one.name, left - 2), hint=one.name))
        if not one.values or not math.isfinite(one.values[0]):
            shapes.append(_text("value", left + 8, y + 4, "none"))
            continue
        style = number % STYLES
        if one.lows and math.isfinite(one.lows[0]):
            shapes.append(_line(f"trace colour-{style}", (axis.at(one.lows[0]), y), (axis.at(one.highs[0]), y)))
        shapes.append(_curve_mark(style, _MARKS[style], (axis.at(one.values[0]), y), _value_told(one, 0)))
    return shapes, bottom + 24


def _apart_enough(ticks: Sequence[Tick]) -> list[Tick]:
    """As many ticks as can stand beside one another, the first and then what has room."""
    kept: list[Tick] = []
    for tick in ticks:
        half = LETTER * len(tick.text) / 2
        if not kept or tick.place - half > kept[-1].place + LETTER * len(kept[-1].text) / 2 + 6:
            kept.append(tick)
    return [tick for tick in kept if tick.place + LETTER * len(tick.text) / 2 <= SMALL]


def _value_told(series: Series, index: int) -> str:
    text = f"{series.name}: {in_digits(series.values[index])}"
    if series.lows and math.isfinite(series.lows[index]):
        text += f" ({in_digits(series.lows[index])} to {in_digits(series.highs[index])})"
    return text


def _panel_told(chart: CurvePanel) -> str:
    words = []
    for one in chart.series:
        found = [_value_told(one, index).partition(": ")[2] for index in range(len(one.values))]
        spots = [f"at {chart.across} {in_digits(place)}: {text}" for place, text in zip(one.places, found, strict=True)]
        words.append(f"{one.name} {', '.join(spots) or 'none'}")
    line = "" if chart.yardstick is None else f" Dotted: {in_digits(chart.yardstick)}."
    return f"{'; '.join(words)}.{line}"


@dataclass(frozen=True, slots=True)
class Bundle:
    """Many thin lines of one kind over a logarithmic axis, whose names do not matter, and the mean of all of them."""

    caption: str
    across: str
    places: tuple[float, ...]
    lines: tuple[tuple[float, ...], ...]
    heights: tuple[float, ...] = ()
    """Numbers that the upward axis holds as well, so that several panels have the same one."""
    yardstick: float | None = None


def draw_bundle(chart: Bundle) -> Drawing:
    """A line for each, light, and their mean, dark; a line with a number that is not finite is left out."""
    known = [line for line in chart.lines if all(map(math.isfinite, line))]
    level = () if chart.yardstick is None else (chart.yardstick,)
    bottom = 8.0 + PANEL_HEIGHT
    upward = ChartAxis.around([*chart.heights, *level, *(one for line in known for one in line)], bottom, 12.0)
    ticks = upward.ticks()
    left = 14 + LETTER * max([len(tick.text) for tick in ticks], default=3)
    across = ChartAxis.around(chart.places, left + INSET, SMALL - 8 - INSET, logarithmic=True)
    shapes = []
    for tick in ticks:
        shapes += [_line("grid", (left, tick.place), (SMALL - 8, tick.place))]
        shapes += [_text("label", left - 5, tick.place + 4, tick.text)]
    for place in chart.places:
        shapes.append(_text("middle", across.at(place), bottom + 17, f"{place:g}"))
    shapes += [_line("yardstick", (left, upward.at(one)), (SMALL - 8, upward.at(one))) for one in level]
    shapes.append(_line("frame", (left, bottom), (SMALL - 8, bottom)))
    shapes.append(_text("label", SMALL - 8, bottom + 33, chart.across))
    mean = tuple(math.fsum(values) / len(known) for values in zip(*known, strict=True))
    for style, line in [*(("thread", line) for line in known), *([("thread mean", mean)] if mean else [])]:
        spots = (f"{across.at(x)} {upward.at(y)}" for x, y in zip(chart.places, line, strict=True))
        shapes.append(_path(style, "M" + " L".join(spots)))
    told = "; ".join(f"at {chart.across} {x:g} {in_digits(y)}" for x, y in zip(chart.places, mean, strict=False))
    summary = f"{len(known)} lines; their mean {told or 'does not exist'}."
    return Drawing(chart.caption, summary, SMALL, math.ceil(bottom + 40), tuple(shapes))


@dataclass(frozen=True, slots=True)
class IntervalGroup:
    """Intervals that stand side by side under one name: the ends of each, and what a pointer finds on it."""

    name: str
    ends: tuple[tuple[float, float], ...]
    hints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IntervalPanel:
    """Groups of intervals around a level; within a group the shades go from dark to light, in order."""

    caption: str
    level: float
    groups: tuple[IntervalGroup, ...]


def draw_intervals(chart: IntervalPanel) -> Drawing:
    """An upright bar from end to end of each interval, on an axis that holds all of them and the level."""
    left, right, bottom = 62.0, SMALL - 8.0, 8.0 + PANEL_HEIGHT
    numbers = [number for group in chart.groups for ends in group.ends for number in ends]
    upward = ChartAxis.around([*numbers, chart.level], bottom - 4, 12)
    shapes: list[SvgMark] = []
    for tick in upward.ticks():
        shapes.append(_line("grid", (left, tick.place), (right, tick.place)))
        shapes.append(_text("label", left - 5, tick.place + 4, tick.text))
    shapes.append(_line("yardstick", (left, upward.at(chart.level)), (right, upward.at(chart.level))))
    shapes.append(_line("frame", (left, bottom), (right, bottom)))
    width = (right - left) / max(len(chart.groups), 1)
    for number, group in enumerate(chart.groups):
        start = left + number * width
        step = width / (len(group.ends) + 1)
        thick = min(step * 0.7, 12.0)
        for place, ((low, high), hint) in enumerate(zip(group.ends, group.hints, strict=True)):
            shade = SHADES - 1 - place * (SHADES - 3) // max(len(group.ends) - 1, 1)
            top, end = upward.at(high), upward.at(low)
            box = (start + (place + 1) * step - thick / 2, top, thick, max(end - top, 1.0))
            shapes.append(_rect(f"shade-{shade}", box, hint))
        shapes.append(_text("middle", start + width / 2, bottom + 17, shortened(group.name, width), hint=group.name))
    told = [hint for group in chart.groups for hint in (group.hints[0], group.hints[-1])]
    summary = f"Around {in_digits(chart.level)}, first and last of each group. {'; '.join(dict.fromkeys(told))}."
    return Drawing(chart.caption, summary, SMALL, math.ceil(bottom + 24), tuple(shapes))


@dataclass(frozen=True, slots=True)
class CurveNames:
    """Which mark and line belongs to which curve, for several panels of the same curves."""

    caption: str
    names: tuple[str, ...]


def draw_names(chart: CurveNames) -> Drawing:
    """A sample of each curve with its name, in as many columns as names leave room for."""
    longest = max([LETTER * len(name) for name in chart.names], default=0.0) + 50
    columns = max(1, int(SMALL // longest))
    width = SMALL / columns
    shapes = []
    for number, name in enumerate(chart.names):
        x, y = (number % columns) * width, 14.0 + 22 * (number // columns)
        style = number % STYLES
        at = (("d", f"M{_number(x + 2)} {_number(y)}h32"), ("stroke-dasharray", _DASHES[style]))
        shapes.append(SvgMark("path", f"trace colour-{style}", at))
        shapes.append(_curve_mark(style, _MARKS[style], (x + 18, y)))
        shapes.append(_text("name", x + 42, y + 4, shortened(name, width - 46), hint=name))
    height = 22 * math.ceil(len(chart.names) / columns) + 6
    return Drawing(chart.caption, ", ".join(chart.names), SMALL, height, tuple(shapes))


Chart = SharesChart | Matrix | Between | Forest | PointMap | CurvePanel | Bundle | IntervalPanel | CurveNames


def draw(chart: Chart) -> Drawing:
    """The marks of any chart but curves and scatters, which have templates of their own."""
    match chart:
        case SharesChart():
            return draw_shares(chart)
        case Matrix():
            return draw_matrix(chart)
        case Between():
            return draw_between(chart)
        case Forest():
            return draw_forest(chart)
        case PointMap():
            return draw_map(chart)
        case CurvePanel():
            return draw_panel(chart)
        case Bundle():
            return draw_bundle(chart)
        case IntervalPanel():
            return draw_intervals(chart)
        case CurveNames():
            return draw_names(chart)
