"""Leaf sizes: the smallest that is narrow enough, and λ out of a budget."""

import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import understudy as us
from understudy.errors import UsageError
from understudy.methods.leaf_size import (
    RATES,
    RECORDS,
    SHARES,
    _mixture,
    _probabilities,
    intervals_svg,
    leaf_interval,
    leaf_rate,
    leaf_size,
    simulated_interval,
)


@pytest.mark.parametrize(("width", "share", "rate"), [(0.2, 0.5, 0.4), (0.15, 0.25, 0.4), (0.1, 0.05, 1.0)])
def test_no_smaller_size_is_narrow_enough(width, share, rate):
    found = leaf_size(width, share=share, rate=rate)
    assert found.interval.width <= width
    for records in range(1, found.records):
        assert leaf_interval(share, rate, records).width > width


def test_the_source_needs_a_thousand_where_its_interval_is_truncated():
    assert leaf_size(0.05, share=0.25, rate=0.4).records == 836
    assert 800 < leaf_size(0.2728 - 0.2272, share=0.25, rate=0.4).records <= 1001


def test_a_budget_is_shared_by_trees_and_columns():
    assert leaf_rate(1.0, trees=5, columns=2) == pytest.approx(0.1)
    assert leaf_rate(2.0, trees=5, columns=2, relation="label_change") == pytest.approx(0.1)
    by_budget = leaf_size(0.2, epsilon=1.0, trees=5, columns=2)
    assert by_budget == leaf_size(0.2, rate=0.1)


def test_it_is_part_of_the_package():
    assert us.leaf_size is leaf_size


@pytest.mark.parametrize(
    "given",
    [
        {"width": 0.0, "rate": 1.0},
        {"width": 1.0, "rate": 1.0},
        {"width": 0.1},
        {"width": 0.1, "rate": 1.0, "epsilon": 1.0},
        {"width": 0.1, "epsilon": 0.0},
        {"width": 0.1, "epsilon": 1.0, "trees": 0},
        {"width": 0.1, "epsilon": 1.0, "columns": 1.5},
        {"width": 0.1, "epsilon": 1.0, "relation": "replace"},
        {"width": 0.1, "rate": 1.0, "share": 2.0},
    ],
)
def test_bad_numbers_are_refused(given):
    width = given.pop("width")
    with pytest.raises(UsageError):
        leaf_size(width, **given)


def test_a_width_out_of_reach_is_refused(monkeypatch):
    monkeypatch.setattr("understudy.methods.leaf_size.MOST_RECORDS", 64)
    with pytest.raises(UsageError, match="not reached"):
        leaf_size(0.01, rate=1.0)


# Intervals of leaf sizes: every printed number, the distribution by brute force, and the simulation.


# share, rate, then the interval at 100, 500, 1,000 and 2,000 records, as the specification prints it.
FIGURE_ONE = [
    (0.0, 0.1, (0, 0.1592), (0, 0.0318), (0, 0.0159), (0, 0.0079)),
    (0.0, 1.0, (0, 0.0140), (0, 0.0028), (0, 0.0014), (0, 0.0007)),
    (0.01, 0.1, (0, 0.1696), (0, 0.0423), (0, 0.0264), (0.0002, 0.0198)),
    (0.01, 0.4, (0, 0.0498), (0.0001, 0.0199), (0.0029, 0.0171), (0.0056, 0.0144)),
    (0.05, 0.1, (0, 0.2113), (0.0026, 0.0974), (0.0251, 0.0749), (0.0364, 0.0636)),
    (0.05, 0.4, (0.0008, 0.0992), (0.0314, 0.0686), (0.0378, 0.0622), (0.0417, 0.0583)),
    (0.10, 0.1, (0, 0.2631), (0.0505, 0.1495), (0.0730, 0.1270), (0.0844, 0.1156)),
    (0.10, 0.4, (0.0306, 0.1694), (0.0762, 0.1238), (0.0839, 0.1161), (0.0888, 0.1112)),
    (0.25, 0.1, (0.0157, 0.4843), (0.1957, 0.3043), (0.2185, 0.2815), (0.2307, 0.2693)),
    (0.25, 0.4, (0.1638, 0.3362), (0.2171, 0.2829), (0.2272, 0.2728), (0.2341, 0.2659)),
    (0.25, 1.0, (0.1803, 0.3197), (0.2188, 0.2812), (0.2279, 0.2721), (0.2343, 0.2657)),
    (0.50, 0.1, (0.2625, 0.7375), (0.4427, 0.5573), (0.4660, 0.5340), (0.4786, 0.5214)),
    (0.50, 0.4, (0.4047, 0.5953), (0.4624, 0.5376), (0.4739, 0.5261), (0.4816, 0.5184)),
    (0.50, 1.0, (0.4196, 0.5804), (0.4639, 0.5361), (0.4744, 0.5256), (0.4818, 0.5182)),
]
FIGURE_TWO = {
    0.0: (0, 0.0052),
    0.01: (0.0014, 0.0186),
    0.05: (0.0369, 0.0631),
    0.10: (0.0831, 0.1169),
    0.25: (0.2267, 0.2733),
    0.50: (0.4734, 0.5266),
}


@pytest.mark.parametrize("line", FIGURE_ONE, ids=lambda line: f"share {line[0]}, rate {line[1]}")
def test_figure_one_to_all_printed_digits(line):
    share, rate, *printed = line
    for records, (lower, upper) in zip((100, 500, 1000, 2000), printed, strict=True):
        found = leaf_interval(share, rate, records)
        assert (round(found.lower, 4), round(found.upper, 4)) == (lower, upper), records


def test_the_check_of_the_source():
    found = leaf_interval(0.25, 0.4, 1000)
    assert (round(found.lower, 4), round(found.upper, 4)) == (0.2272, 0.2728)
    assert found.width == pytest.approx(found.upper - found.lower)


@pytest.mark.parametrize("share", FIGURE_TWO)
def test_figure_two_by_numbers_and_by_draws(share):
    lower, upper = FIGURE_TWO[share]
    exact = leaf_interval(share, 0.3, 1000)
    assert (round(exact.lower, 4), round(exact.upper, 4)) == (lower, upper)
    drawn = simulated_interval(share, 0.3, 1000, np.random.default_rng(2), draws=10_000)
    assert abs(drawn.lower - lower) <= 0.001
    assert abs(drawn.upper - upper) <= 0.001
    other = simulated_interval(share, 0.15, 1000, np.random.default_rng(2), draws=10_000)
    assert abs(other.upper - upper) > 0.001, "draws with twice the noise would pass"


def leaf_probabilities(share, rate, records):
    points, weights, atoms = _mixture(share, rate, records)
    return _probabilities(np.arange(records + 1), records, (points, weights), atoms)


def test_the_distribution_by_brute_force():
    """Riemann sums on a fine grid, atoms apart: a second way to the same integral."""
    share, rate, records = 0.3, 0.5, 12
    grid = (np.arange(400_000) + 0.5) / 400_000
    density = np.exp(-np.abs(grid - share) * records * rate) * records * rate / 2
    for count, found in enumerate(leaf_probabilities(share, rate, records)):
        inner = math.comb(records, count) * grid**count * (1 - grid) ** (records - count)
        expected = float((inner * density).mean())
        expected += 0.5 * math.exp(-share * records * rate) * (count == 0)
        expected += 0.5 * math.exp(-(1 - share) * records * rate) * (count == records)
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("share", "rate", "records"), [(0, 0.1, 100), (1.0, 0.3, 50), (0.5, 0.01, 40), (0.2, 9.0, 7)])
def test_probabilities_add_up_to_1(share, rate, records):
    assert leaf_probabilities(share, rate, records).sum() == pytest.approx(1.0, abs=1e-9)


def test_sure_things_have_no_width_and_hopeless_ones_the_whole():
    assert leaf_interval(0.0, 1000.0, 1000).width == 0.0
    assert leaf_interval(0.5, 1e-5, 3).width > 0.9
    assert simulated_interval(0.0, 1000.0, 1000, np.random.default_rng(1)).width == 0.0


@pytest.mark.parametrize(
    "given",
    [
        (-0.1, 1.0, 10),
        (1.1, 1.0, 10),
        (0.5, 0.0, 10),
        (0.5, float("nan"), 10),
        (0.5, 1.0, 0),
        (0.5, 1.0, 2.5),
        (True, 1.0, 9),
    ],
)
def test_numbers_out_of_range_are_refused(given):
    with pytest.raises(UsageError):
        leaf_interval(*given)
    with pytest.raises(UsageError):
        simulated_interval(*given, np.random.default_rng(1))  # type: ignore[call-arg]


@pytest.mark.parametrize("confidence", [0.0, 1.0, float("nan"), True])
def test_confidence_must_be_a_probability(confidence):
    with pytest.raises(UsageError):
        leaf_interval(0.5, 1.0, 10, confidence=confidence)


# The figure: well-formed, self-contained, one bar per interval, in the right place.


SPACE = "{http://www.w3.org/2000/svg}"


def _bars(text):
    boxes = ElementTree.fromstring(text).iter(f"{SPACE}rect")
    return [box for box in boxes if box.get("class", "").startswith("shade-")]


def test_the_figure_of_the_source():
    text = intervals_svg()
    assert len(_bars(text)) == len(SHARES) * len(RATES) * len(RECORDS)
    lowered = text.lower()
    assert "<script" not in lowered
    drawn = [element for element in ElementTree.fromstring(text).iter() if element.tag != f"{SPACE}style"]
    assert not [name for element in drawn for name in element.attrib if name.endswith("href")]
    assert "@import" not in lowered
    assert "url(" not in lowered


def test_bars_are_as_long_as_their_intervals_and_stand_in_order():
    bars = _bars(intervals_svg([0.25], [0.4, 0.1], [1000, 100]))
    lengths = [float(bar.get("height")) for bar in bars]
    order = [(records, rate) for records in (100, 1000) for rate in (0.1, 0.4)]
    intervals = [leaf_interval(0.25, rate, records) for records, rate in order]
    for length, interval in zip(lengths, intervals, strict=True):
        assert length == pytest.approx(lengths[0] * interval.width / intervals[0].width, abs=0.2)
    told = [bar.find(f"{SPACE}title").text for bar in bars]
    assert told == [
        f"{records:,} records, λ = {rate:g}: {one.lower:.4f} to {one.upper:.4f}"
        for (records, rate), one in zip(order, intervals, strict=True)
    ]


@pytest.mark.parametrize("given", [([], [0.1], [10]), ([0.5], [0.1] * 50, [10] * 50)])
def test_too_few_or_too_many_bars_are_refused(given):
    with pytest.raises(UsageError):
        intervals_svg(*given)
