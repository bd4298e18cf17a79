"""Figure 2 of the source: histograms of drawn shares, each beside its computed and its drawn interval."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from understudy.charts import Amounts, IntervalGroup, IntervalPanel, SharesChart
from understudy.methods.leaf_size import LeafInterval
from understudy.report import render_panels

__all__ = ["drawn_shares", "histograms_svg"]

BINS = 40

Drawn = tuple[float, npt.NDArray[np.float64], LeafInterval, LeafInterval]
"""A share, its draws, and its computed and its drawn interval."""


def drawn_shares(
    share: float, rate: float, records: int, draws: int, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Shares of a label among so many records drawn from a leaf whose share carries Laplace noise."""
    noisy = np.clip(share + rng.laplace(0.0, 1.0 / (records * rate), draws), 0.0, 1.0)
    return rng.binomial(records, noisy) / records


def histograms_svg(panels: Sequence[Drawn], records: int, title: str) -> str:
    """A row for each share: its draws, and beside them the computed and the drawn interval."""
    return render_panels(
        title, [(histogram(share, drawn, records), _ends(share, *both)) for share, drawn, *both in panels]
    )


def histogram(share: float, drawn: npt.NDArray[np.float64], records: int) -> SharesChart:
    """The draws between their outermost thousandths, in bins as wide as a whole number of records."""
    low, high = (float(np.quantile(drawn, part)) for part in (0.001, 0.999))
    step = max(1, -(-round((high - low) * records) // BINS))
    low, wide = low - 0.5 / records, step / records
    edges = low + wide * np.arange(int(np.ceil((high - low) / wide)) + 1)
    counts = np.histogram(drawn, edges)[0]
    labels = tuple(f"[{start:.4f}, {end:.4f})" for start, end in pairwise(edges))
    amounts = Amounts("made", "draws", tuple(float(count) for count in counts))
    return SharesChart(f"share {share:g}: draws", labels, (amounts,), len(labels), unit="count")


def _ends(share: float, computed: LeafInterval, simulated: LeafInterval) -> IntervalPanel:
    groups = tuple(
        IntervalGroup(name, ((one.lower, one.upper),), (f"{name}: {one.lower:.4f} to {one.upper:.4f}",))
        for name, one in (("computed", computed), ("drawn", simulated))
    )
    return IntervalPanel(f"share {share:g}: intervals", share, groups)
