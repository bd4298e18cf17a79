import itertools
import math
from dataclasses import replace

from understudy.charts import HEIGHT, STYLES, WIDTH, Lines, Points, Series, draw_lines, draw_points

PLACES = (0.1, 1.0, 10.0)


def lines(*values: tuple[float, ...], yardstick: float | None = None) -> Lines:
    series = tuple(Series(f"method {number}", PLACES, one) for number, one in enumerate(values))
    return Lines("error", "ε", "total variation", series, logarithmic=True, yardstick=yardstick)


def test_higher_values_stand_higher_on_the_page() -> None:
    (curve,) = draw_lines(lines((0.3, 0.2, 0.1))).curves
    heights = [y for _, y in curve.marks]
    assert heights == sorted(heights)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in curve.marks)


def test_intervals_reach_from_low_to_high() -> None:
    series = Series("aim", PLACES, (0.3, 0.2, 0.1), (0.2, 0.1, 0.05), (0.4, 0.3, 0.15))
    (curve,) = draw_lines(Lines("error", "ε", "error", (series,))).curves
    for (_, low, high), (_, middle) in zip(curve.whiskers, curve.marks, strict=True):
        assert high < middle < low


def test_decades_give_small_errors_room_of_their_own() -> None:
    chart = lines((0.5, 0.4, 0.3), (0.004, 0.002, 0.001))
    flat, tall = (draw_lines(replace(chart, decades=decades)).curves[1] for decades in (False, True))
    room = [abs(curve.marks[0][1] - curve.marks[-1][1]) for curve in (flat, tall)]
    assert room[1] > 20 * room[0]


def test_an_interval_below_zero_ends_at_the_floor_of_decades() -> None:
    series = Series("aim", PLACES, (0.3, 0.02, 0.01), (0.2, -0.1, 1e-12), (0.4, 0.3, 0.15))
    graph = draw_lines(Lines("error", "ε", "error", (series,), decades=True))
    floor = graph.frame[3]
    (curve,) = graph.curves
    assert [low for _, low, _ in curve.whiskers][1:] == [floor, floor]
    assert all(y < floor for _, y in curve.marks)


def test_curves_differ_in_more_than_colour() -> None:
    curves = draw_lines(lines(*[(0.1 * number, 0.1, 0.2) for number in range(STYLES)])).curves
    assert len({curve.dashes for curve in curves}) == STYLES
    assert len({curve.mark for curve in curves}) == STYLES


def test_names_never_cover_each_other() -> None:
    curves = draw_lines(lines(*[(0.5, 0.5, 0.5)] * 6)).curves
    heights = sorted(curve.name_at[1] for curve in curves)
    assert all(second - first >= 14 for first, second in itertools.pairwise(heights))


def test_marks_touch_neither_the_frame_nor_the_names() -> None:
    graph = draw_lines(lines((0.3, 0.2, 0.1)))
    left, _, right, _ = graph.frame
    (curve,) = graph.curves
    places = [x for x, _ in curve.marks]
    assert left + 8 < min(places)
    assert max(places) < right - 8 < curve.name_at[0] - 8


def test_what_is_not_finite_is_left_out() -> None:
    (curve,) = draw_lines(lines((0.3, math.nan, 0.1))).curves
    assert len(curve.marks) == 2
    assert "nan" not in curve.path
    assert len(draw_points(Points("slopes", "real", "synthetic", ((0.0, 1.0), (math.inf, 0.0)))).points) == 1


def test_the_yardstick_stands_at_its_value() -> None:
    graph = draw_lines(lines((0.3, 0.2, 0.1), yardstick=0.2))
    assert graph.yardstick == graph.curves[0].marks[1][1]


def test_equal_pairs_lie_on_the_diagonal() -> None:
    cloud = draw_points(Points("slopes", "real", "synthetic", ((-1.0, -1.0), (0.5, 0.5), (1.0, 1.0))))
    x1, y1, x2, y2 = cloud.diagonal
    for x, y in cloud.points:
        assert abs((x - x1) * (y2 - y1) - (y - y1) * (x2 - x1)) < 1.0 * WIDTH
