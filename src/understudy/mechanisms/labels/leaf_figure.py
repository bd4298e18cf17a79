"""The intervals of leaf sizes as one SVG file: a panel for each share, a bar for each λ at each number of records.

Self-contained: no script, no style sheet, no link, nothing to load. Every text is written here and is a number.
"""

from collections.abc import Sequence

from understudy.errors import UsageError
from understudy.mechanisms.labels.leaf_interval import leaf_interval

__all__ = ["RATES", "RECORDS", "SHARES", "intervals_svg"]

SHARES = (0.0, 0.01, 0.05, 0.10, 0.25, 0.50)
RATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
RECORDS = (50, 100, 250, 500, 1000, 2000)

_PANEL_WIDTH, _PANEL_HEIGHT = 460, 240
_LEFT, _TOP, _RIGHT, _BOTTOM = 60, 34, 14, 40
_MOST_BARS = 2000


def intervals_svg(
    shares: Sequence[float] = SHARES,
    rates: Sequence[float] = RATES,
    records: Sequence[int] = RECORDS,
    *,
    confidence: float = 0.9,
) -> str:
    """The figure as text; the bars of a panel go from the smallest λ (dark) to the largest (light)."""
    if not shares or not rates or not records or len(shares) * len(rates) * len(records) > _MOST_BARS:
        raise UsageError("figure", f"needs 1 to {_MOST_BARS:,} intervals.", "Give fewer shares, rates or sizes.")
    columns = min(2, len(shares))
    lines = -(-len(shares) // columns)
    width, height = columns * _PANEL_WIDTH, lines * _PANEL_HEIGHT + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{width / 2:.0f}" y="16" text-anchor="middle" font-size="13">'
        f"{confidence:.0%} intervals of a label's share, by records in the leaf; "
        f"λ from {min(rates):g} (dark) to {max(rates):g} (light)</text>",
    ]
    for place, share in enumerate(shares):
        left, top = (place % columns) * _PANEL_WIDTH, 24 + (place // columns) * _PANEL_HEIGHT
        parts += _panel(share, sorted(rates), sorted(records), (left, top), confidence)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(
    share: float, rates: Sequence[float], records: Sequence[int], corner: tuple[int, int], confidence: float
) -> list[str]:
    found = [[leaf_interval(share, rate, count, confidence=confidence) for rate in rates] for count in records]
    highest = max(interval.upper for group in found for interval in group) or 1.0
    lowest = min(interval.lower for group in found for interval in group)
    left, top = corner[0] + _LEFT, corner[1] + _TOP
    width, height = _PANEL_WIDTH - _LEFT - _RIGHT, _PANEL_HEIGHT - _TOP - _BOTTOM

    def y(value: float) -> float:
        return top + height * (highest - value) / max(highest - lowest, 1e-12)

    parts = [
        f'<text x="{left + width / 2:.0f}" y="{top - 10}" text-anchor="middle">share {share:g}</text>',
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>',
        f'<line x1="{left}" x2="{left + width}" y1="{y(share):.2f}" y2="{y(share):.2f}" stroke="#bbb"/>',
    ]
    for value in (lowest, share, highest):
        parts.append(f'<text x="{left - 6}" y="{y(value) + 4:.2f}" text-anchor="end">{value:.3f}</text>')
    step = width / len(records)
    for group, (count, intervals) in enumerate(zip(records, found, strict=True)):
        parts.append(
            f'<text x="{left + (group + 0.5) * step:.2f}" y="{top + height + 16}" text-anchor="middle">{count:,}</text>'
        )
        for number, interval in enumerate(intervals):
            x = left + group * step + step * (number + 1) / (len(intervals) + 1)
            shade = f"hsl(215,60%,{25 + 50 * number / max(len(intervals) - 1, 1):.0f}%)"
            parts.append(
                f'<line x1="{x:.2f}" x2="{x:.2f}" y1="{y(interval.lower):.2f}" y2="{y(interval.upper):.2f}" '
                f'stroke="{shade}" stroke-width="2"/>'
            )
    return parts
