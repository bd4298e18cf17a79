"""The figure: well-formed, self-contained, one bar per interval, in the right place."""

import xml.etree.ElementTree as ElementTree

import pytest

from understudy.errors import UsageError
from understudy.methods.leaf_size import RATES, RECORDS, SHARES, intervals_svg, leaf_interval

SPACE = "{http://www.w3.org/2000/svg}"


def _bars(text):
    lines = ElementTree.fromstring(text).iter(f"{SPACE}line")
    return [line for line in lines if line.get("stroke-width") == "2"]


def test_the_figure_of_the_source():
    text = intervals_svg()
    assert len(_bars(text)) == len(SHARES) * len(RATES) * len(RECORDS)
    lowered = text.lower()
    assert "<script" not in lowered
    assert "href" not in lowered
    assert "@import" not in lowered
    assert "url(" not in lowered


def test_bars_are_as_long_as_their_intervals():
    text = intervals_svg([0.25], [0.1, 0.4], [100, 1000])
    lengths = [float(bar.get("y1")) - float(bar.get("y2")) for bar in _bars(text)]
    widths = [leaf_interval(0.25, rate, records).width for records in (100, 1000) for rate in (0.1, 0.4)]
    for length, width in zip(lengths, widths, strict=True):
        assert length == pytest.approx(lengths[0] * width / widths[0], abs=0.02)


@pytest.mark.parametrize("given", [([], [0.1], [10]), ([0.5], [0.1] * 50, [10] * 50)])
def test_too_few_or_too_many_bars_are_refused(given):
    with pytest.raises(UsageError):
        intervals_svg(*given)
