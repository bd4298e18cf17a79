"""Figure 2 of the source as one SVG file: histograms of drawn shares, with computed and drawn intervals."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from understudy.methods.leaf_size import LeafInterval

__all__ = ["drawn_shares", "histograms_svg"]

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 460, 240, 30, 34, 14, 40
BINS = 40


def drawn_shares(
    share: float, rate: float, records: int, draws: int, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Shares of a label among so many records drawn from a leaf whose share carries Laplace noise."""
    noisy = np.clip(share + rng.laplace(0.0, 1.0 / (records * rate), draws), 0.0, 1.0)
    return rng.binomial(records, noisy) / records


def histograms_svg(
    panels: Sequence[tuple[float, npt.NDArray[np.float64], LeafInterval, LeafInterval]], records: int, title: str
) -> str:
    """A panel for each share: its draws, the computed interval (solid) and the drawn one (dotted)."""
    width, height = 2 * WIDTH, -(-len(panels) // 2) * HEIGHT + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{width / 2:.0f}" y="16" text-anchor="middle" font-size="13">{title}</text>',
    ]
    for place, (share, drawn, computed, simulated) in enumerate(panels):
        corner = (place % 2) * WIDTH + LEFT, 24 + (place // 2) * HEIGHT + TOP
        parts += _panel(share, drawn, (computed, simulated), corner, records)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(
    share: float,
    drawn: npt.NDArray[np.float64],
    intervals: tuple[LeafInterval, LeafInterval],
    corner: tuple[int, int],
    records: int,
) -> list[str]:
    """Bars as wide as a whole number of records."""
    left, top = corner
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    low, high = (float(np.quantile(drawn, part)) for part in (0.001, 0.999))
    step = max(1, -(-round((high - low) * records) // BINS))
    low, wide = low - 0.5 / records, step / records
    edges = low + wide * np.arange(int(np.ceil((high - low) / wide)) + 1)
    counts, high = np.histogram(drawn, edges)[0], float(edges[-1])

    def x(value: float) -> float:
        return left + width * (value - low) / (high - low)

    parts = [f'<text x="{left + width / 2:.0f}" y="{top - 10}" text-anchor="middle">share {share:g}</text>']
    for count, start, end in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        tall = height * count / max(int(counts.max()), 1)
        parts.append(
            f'<rect x="{x(start):.2f}" y="{top + height - tall:.2f}" width="{x(end) - x(start):.2f}" '
            f'height="{tall:.2f}" fill="#9db8da"/>'
        )
    for interval, dash in zip(intervals, ("", ' stroke-dasharray="3 3"'), strict=True):
        for value in (interval.lower, interval.upper):
            at = f'x1="{x(value):.2f}" x2="{x(value):.2f}" y1="{top}" y2="{top + height}"'
            parts.append(f'<line {at} stroke="#1f3a63" stroke-width="1.5"{dash}/>')
    parts.append(f'<line x1="{left}" x2="{left + width}" y1="{top + height}" y2="{top + height}" stroke="#999"/>')
    for value in sorted({intervals[0].lower, share, intervals[0].upper}):
        parts.append(f'<text x="{x(value):.2f}" y="{top + height + 16}" text-anchor="middle">{value:.3f}</text>')
    return parts
