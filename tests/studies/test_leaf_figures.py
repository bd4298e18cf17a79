"""The figures of drawn shares: every draw between the outermost thousandths is in a bar, intervals stand beside."""

from xml.etree import ElementTree

import numpy as np
import pytest
from studies.duke.draws import BINS, drawn_shares, histogram, histograms_svg

from understudy.methods.leaf_size import leaf_interval, simulated_interval

RECORDS = 200


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])
def test_bars_hold_the_draws(share: float) -> None:
    drawn = drawn_shares(share, 0.3, RECORDS, 4000, np.random.default_rng(1))
    chart = histogram(share, drawn, RECORDS)
    (amounts,) = chart.amounts
    assert 0.995 * 4000 <= sum(amounts.values) <= 4000
    assert chart.bins == len(chart.labels) == len(amounts.values) <= BINS + 2
    tallest = float(chart.labels[int(np.argmax(amounts.values))][1:].split(",")[0])
    assert abs(tallest - share) < 0.1


def test_each_share_has_a_histogram_beside_its_two_intervals() -> None:
    rng = np.random.default_rng(2)
    panels = [
        (
            share,
            drawn_shares(share, 0.3, RECORDS, 1000, rng),
            leaf_interval(share, 0.3, RECORDS),
            simulated_interval(share, 0.3, RECORDS, rng, draws=1000),
        )
        for share in (0.1, 0.5)
    ]
    root = ElementTree.fromstring(histograms_svg(panels, RECORDS, "Drawn"))
    told = [one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}title")]
    assert sum(text.startswith("computed: ") for text in told) == 2
    assert f"computed: {panels[0][2].lower:.4f} to {panels[0][2].upper:.4f}" in told
    assert f"drawn: {panels[1][3].lower:.4f} to {panels[1][3].upper:.4f}" in told
