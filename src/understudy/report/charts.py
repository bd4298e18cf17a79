"""Charts as geometry: positions and lengths that the page template draws as inline SVG.

Only numbers and text leave this file; markup is written by the template, which escapes every text.
"""

import math
from dataclasses import dataclass

from understudy.report.page import Bars

__all__ = ["BarMark", "Drawing", "draw_bars"]

WIDTH = 640
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
    room = WIDTH - LABEL_WIDTH - VALUE_WIDTH
    scale = room / longest if longest > 0 else 0.0
    marks = []
    for row, (label, value, half) in enumerate(zip(chart.labels, chart.values, half_widths, strict=True)):
        place = (_within(value - half, scale, room), _within(value + half, scale, room)) if half > 0 else None
        text = f"{value:,.0f} ± {half:,.0f}" if half > 0 else f"{value:,.0f}"
        marks.append(BarMark(label, text, row * ROW_HEIGHT, _within(value, scale, room), place))
    return Drawing(
        caption=chart.caption,
        width=WIDTH,
        height=ROW_HEIGHT * max(len(marks), 1),
        left=LABEL_WIDTH,
        row_height=ROW_HEIGHT,
        bars=tuple(marks),
    )


def _within(value: float, scale: float, room: float) -> float:
    return round(min(max(value * scale, 0.0), room), 2)
