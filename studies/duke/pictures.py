"""Figures 3 to 9 of the source, one SVG file each: two settings, a line of panels (a) to (d) for either.

Panel (b), the shares of all columns together, has tens of thousands of levels. Shares are small whole numbers over the
rows, so most levels lie on the same few hundred points; a point is drawn once.
"""

from collections.abc import Sequence

from studies.duke.panels import Labelled
from understudy.charts import MOST_BINS, Amounts, Chart, Points, SharesChart
from understudy.report import render_panels

__all__ = ["BARS", "comparison_svg"]

Pairs = Sequence[tuple[float, float]]
BARS = MOST_BINS
"""Joint levels that a panel (a) shows: the largest ones of the authentic table."""


def comparison_svg(title: str, settings: Sequence[tuple[str, Labelled]]) -> str:
    """The figure as text; a name and a release for each line of panels."""
    return render_panels(title, [_panels(name, one) for name, one in settings])


def _panels(name: str, one: Labelled) -> tuple[Chart | Points, ...]:
    overall = f"(b) all columns: r = {one.numbers['joint shares, all columns']:.3f}"
    return (
        _largest(f"{name}: (a) largest joint levels", one.points["joint"]),
        Points(overall, "authentic", "synthetic", tuple(one.points["all columns"])),
        Points("(c) slopes", "authentic", "synthetic", _apart(one.points["slopes"])),
        Points("(d) correlations", "authentic", "synthetic", _apart(one.points["correlations"])),
    )


def _apart(pairs: Pairs) -> tuple[tuple[float, float], ...]:
    """The points, but one of those that fall into the same of 500 × 500 parts of the panel."""
    low, high = min(map(min, pairs)), max(map(max, pairs))
    part = (high - low) / 500 or 1.0
    return tuple({(int(x / part), int(y / part)): (x, y) for x, y in pairs}.values())


def _largest(caption: str, pairs: Pairs) -> SharesChart:
    """Panel (a): shares of the largest joint levels of both private columns and Agency: authentic filled, synthetic
    outlined.
    """
    largest = sorted(pairs, key=lambda pair: -pair[0])[:BARS]
    amounts = (
        Amounts("real", "authentic", tuple(authentic for authentic, _ in largest)),
        Amounts("made", "synthetic", tuple(synthetic for _, synthetic in largest)),
    )
    return SharesChart(caption, tuple(str(place + 1) for place in range(len(largest))), amounts, len(largest))
