import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.charts import ChartAxis

numbers = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=6)


@given(numbers)
def test_every_number_lies_between_the_ends_of_its_axis(found: list[float]) -> None:
    axis = ChartAxis.around(found, 300.0, 10.0)
    assert all(10.0 <= axis.at(number) <= 300.0 for number in found)


@given(numbers)
@example([0.0, 5e-324])
@example([1e9, math.nextafter(1e9, 2e9)])
@example([1e9, 1e9 + 1.0])
def test_ticks_are_few_and_in_order(found: list[float]) -> None:
    axis = ChartAxis.around(found, 0.0, 100.0)
    places = [tick.place for tick in axis.ticks()]
    assert 1 <= len(places) <= 8
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.0, 1.0, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (0.0, 0.07, ["0", "0.02", "0.04", "0.06"]),
        (-30.0, 60.0, ["−20", "0", "20", "40", "60"]),
    ],
)
def test_ticks_stand_at_round_numbers(low: float, high: float, texts: list[str]) -> None:
    assert [tick.text for tick in ChartAxis(low, high, 0.0, 100.0).ticks()] == texts


def test_a_logarithmic_axis_spaces_factors_evenly() -> None:
    axis = ChartAxis.around([0.1, 1.0, 10.0], 0.0, 100.0, logarithmic=True)
    assert axis.at(1.0) == 50.0
    assert {"0.1", "1", "10"} <= {tick.text for tick in axis.ticks()}


def test_equal_numbers_still_have_an_axis() -> None:
    assert ChartAxis.around([3.0, 3.0], 0.0, 10.0).at(3.0) == 5.0
    assert ChartAxis.around([math.nan], 0.0, 10.0).at(1.0) == 5.0
