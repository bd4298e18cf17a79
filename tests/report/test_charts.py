"""Charts: lengths in proportion, inside the drawing, whatever the numbers."""

import pytest

from understudy.report import BAR_CHART_WIDTH as WIDTH
from understudy.report import LABEL_WIDTH, VALUE_WIDTH, Bars, draw_bars


def test_lengths_are_in_proportion() -> None:
    bars = draw_bars(Bars("x", ("a", "b", "c"), (100.0, 50.0, 0.0))).bars
    assert bars[0].length == 2 * bars[1].length == WIDTH - LABEL_WIDTH - VALUE_WIDTH
    assert bars[2].length == 0
    assert bars[0].text == "100"


def test_whiskers_surround_the_end_of_the_bar() -> None:
    bar = draw_bars(Bars("x", ("a",), (80.0,), (20.0,))).bars[0]
    assert bar.whisker is not None
    assert bar.whisker[0] < bar.length < bar.whisker[1]
    assert bar.text == "80 ± 20"


@pytest.mark.parametrize("values", [(), (-5.0, -1.0), (0.0,), (1e300, 1e-300), (-1e9, 3.0)])
def test_everything_stays_inside(values: tuple[float, ...]) -> None:
    drawing = draw_bars(Bars("x", tuple("abcdef"[: len(values)]), values, tuple(1.0 for _ in values)))
    for bar in drawing.bars:
        ends = (bar.length, *(bar.whisker or ()))
        assert all(0 <= end <= WIDTH - LABEL_WIDTH - VALUE_WIDTH for end in ends)
        assert 0 <= bar.y < drawing.height
