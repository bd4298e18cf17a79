"""Figures 3 to 9 of the source, one SVG file each: two settings, a line of panels (a), (c) and (d) for either.

Panel (b), the shares of all columns together, has tens of thousands of points; runs keep its correlation alone.
"""

from collections.abc import Sequence

from studies.duke.panels import Labelled

__all__ = ["BARS", "comparison_svg"]

Pairs = Sequence[tuple[float, float]]
BARS = 60
"""Joint levels that a panel (a) shows: the largest ones of the authentic table."""
BAR_PANEL, POINT_PANEL, HEIGHT = 460, 290, 290
LEFT, TOP, RIGHT, BOTTOM = 44, 46, 12, 22
AUTHENTIC, SYNTHETIC = "#3465a4", "#6aa84f"


def comparison_svg(title: str, settings: Sequence[tuple[str, Labelled]]) -> str:
    """The figure as text; a name and a release for each line of panels."""
    width, height = BAR_PANEL + 2 * POINT_PANEL, HEIGHT * len(settings) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{width / 2:.0f}" y="16" text-anchor="middle" font-size="13">{title}</text>',
    ]
    for line, (name, one) in enumerate(settings):
        top = 24 + line * HEIGHT
        overall = f"(b) correlation of joint shares, all columns: {one.numbers['joint shares, all columns']:.3f}"
        parts.append(f'<text x="{LEFT}" y="{top + 16}" font-weight="bold">{name}; {overall}</text>')
        parts += _bars(one.points["joint"], top)
        parts += _points("(c) slopes", one.points["slopes"], (BAR_PANEL, top))
        parts += _points("(d) correlations", one.points["correlations"], (BAR_PANEL + POINT_PANEL, top))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bars(pairs: Pairs, top: int) -> list[str]:
    """Panel (a): shares of the largest joint levels of both private columns and Agency, authentic and synthetic."""
    largest = sorted(pairs, key=lambda pair: -pair[0])[:BARS]
    width, height = BAR_PANEL - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    most = max(max(pair) for pair in largest)
    floor, step = top + TOP + height, width / len(largest)
    words = f"(a) joint shares, the {len(largest)} largest of {len(pairs)}: authentic (blue), synthetic (green)"
    parts = [
        f'<text x="{LEFT}" y="{top + TOP - 8}">{words}</text>',
        f'<line x1="{LEFT}" x2="{LEFT + width}" y1="{floor}" y2="{floor}" stroke="#999"/>',
        f'<text x="{LEFT - 4}" y="{top + TOP + 8}" text-anchor="end">{most:.3f}</text>',
        f'<text x="{LEFT - 4}" y="{floor}" text-anchor="end">0</text>',
    ]
    for kind, colour in enumerate((AUTHENTIC, SYNTHETIC)):
        path = "".join(
            f"M{LEFT + step * (place + 0.3 + 0.4 * kind):.1f} {floor}v{-height * pair[kind] / most:.1f}"
            for place, pair in enumerate(largest)
        )
        parts.append(f'<path d="{path}" stroke="{colour}" stroke-width="{0.4 * step:.2f}" fill="none"/>')
    return parts


def _points(name: str, pairs: Pairs, corner: tuple[int, int]) -> list[str]:
    """Panels (c) and (d): a point for each pair of levels, with the line on which both tables agree."""
    left, top = corner[0] + LEFT, corner[1] + TOP
    side = POINT_PANEL - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    values = [value for pair in pairs for value in pair]
    low, high = min(values), max(values)
    room = max(high - low, 1e-12)

    def at(pair: tuple[float, float]) -> str:
        return f"M{left + side[0] * (pair[0] - low) / room:.1f} {top + side[1] * (high - pair[1]) / room:.1f}h0"

    return [
        f'<text x="{left}" y="{top - 8}">{name}: authentic across, synthetic up</text>',
        f'<rect x="{left}" y="{top}" width="{side[0]}" height="{side[1]}" fill="none" stroke="#999"/>',
        f'<line x1="{left}" x2="{left + side[0]}" y1="{top + side[1]}" y2="{top}" stroke="#bbb"/>',
        f'<path d="{"".join(map(at, pairs))}" stroke="{AUTHENTIC}" stroke-width="2.4" stroke-linecap="round" '
        'stroke-opacity="0.5" fill="none"/>',
        f'<text x="{left - 4}" y="{top + 8}" text-anchor="end">{high:.2f}</text>',
        f'<text x="{left - 4}" y="{top + side[1]}" text-anchor="end">{low:.2f}</text>',
        f'<text x="{left}" y="{top + side[1] + 14}">{low:.2f}</text>',
        f'<text x="{left + side[0]}" y="{top + side[1] + 14}" text-anchor="end">{high:.2f}</text>',
    ]
