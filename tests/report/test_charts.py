"""Charts: lengths in proportion, inside the drawing, whatever the numbers; and every chart in words."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import charts
from understudy.charts import (
    MOST_BINS,
    MOST_NUMBERED,
    MOST_ROWS,
    SHADES,
    SMALL,
    Amounts,
    Between,
    Bundle,
    CurveNames,
    CurvePanel,
    Drawing,
    Forest,
    IntervalGroup,
    IntervalPanel,
    IntervalRow,
    Matrix,
    MatrixCell,
    PointMap,
    Series,
    SharesChart,
    SvgMark,
    draw,
)


def _bars(drawing: Drawing, side: str = "made") -> list[SvgMark]:
    return [shape for shape in drawing.shapes if shape.style == f"bar {side}"]


def _at(shape: SvgMark, name: str) -> float:
    return float(dict(shape.at)[name])


def _counts(values: tuple[float, ...], half: float = 0.0) -> SharesChart:
    return SharesChart(
        "x",
        tuple("abcdef"[: len(values)]),
        (Amounts("made", "counts", values, (half,) * len(values) if half else ()),),
        unit="count",
    )


def test_lengths_are_in_proportion() -> None:
    widths = [_at(bar, "width") for bar in _bars(draw(_counts((100.0, 50.0, 0.0))))]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.2)
    assert widths[2] == 0


def test_whiskers_surround_the_end_of_the_bar() -> None:
    drawing = draw(_counts((80.0,), 20.0))
    (bar,), (whisker,) = _bars(drawing), [shape for shape in drawing.shapes if shape.style == "whisker"]
    assert _at(whisker, "x1") < _at(bar, "x") + _at(bar, "width") < _at(whisker, "x2")
    assert [shape.text for shape in drawing.shapes if shape.style == "value"] == ["80 ± 20"]


def test_errors_of_what_is_put_together_add_up_in_squares() -> None:
    values, halves = tuple(float(20 - place) for place in range(MOST_ROWS + 3)), (3.0,) * (MOST_ROWS + 3)
    drawing = draw(
        SharesChart(
            "x", tuple(map(chr, range(97, 100 + MOST_ROWS))), (Amounts("made", "n", values, halves),), unit="count"
        )
    )
    assert [shape.text for shape in drawing.shapes if shape.style == "value"][-1] == "14 ± 6"


def test_two_tables_stand_side_by_side_with_their_shares() -> None:
    amounts = (Amounts("real", "real", (0.75, 0.25)), Amounts("made", "synthetic", (0.5, 0.5)))
    drawing = draw(SharesChart("sex", ("F", "M"), amounts))
    real, made = (_at(_bars(drawing, side)[0], "width") for side in ("real", "made"))
    assert real == pytest.approx(1.5 * made, abs=0.2)
    assert [shape.text for shape in drawing.shapes if shape.style == "value"] == ["75.0 · 50.0 %", "25.0 · 50.0 %"]
    assert drawing.names == (("key-real", "real"), ("key-made", "synthetic"))
    assert "F: real 75.0 %, synthetic 50.0 %" in drawing.summary


def test_of_many_labels_the_rare_ones_are_put_together_and_none_is_lost() -> None:
    values = tuple(float(place) for place in range(40))
    drawing = draw(
        SharesChart("x", tuple(f"label {place}" for place in range(40)), (Amounts("made", "n", values),), unit="count")
    )
    assert len(_bars(drawing)) == MOST_ROWS
    numbers = [float(shape.text.replace(",", "")) for shape in drawing.shapes if shape.style == "value"]
    assert sum(numbers) == sum(values)


def test_bins_are_a_histogram_and_what_is_no_number_a_bar() -> None:
    labels = (*(f"[{5 * place}, {5 * place + 5})" for place in range(100)), "missing")
    amounts = (Amounts("real", "real", (0.009,) * 100 + (0.1,)), Amounts("made", "synthetic", (0.01,) * 100 + (0.0,)))
    drawing = draw(SharesChart("age", labels, amounts, bins=100))
    over = [shape for shape in drawing.shapes if shape.style == "over"]
    assert len(over) == 34 <= MOST_BINS
    assert over[0].hint == "[0, 5) to [10, 15): 2.7 % · 3.0 %"
    assert [shape.hint for shape in _bars(drawing, "real")] == ["missing: 10.0 · 0 %"]


finite = st.floats(-1e12, 1e12)


@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=60), st.integers(0, 60), finite)
def test_everything_stays_inside(values: list[tuple[float, float]], bins: int, half: float) -> None:
    labels = tuple(f"label {place}" for place in range(len(values)))
    amounts = (Amounts("real", "a", tuple(one for one, _ in values)), Amounts("made", "b", tuple(o for _, o in values)))
    drawing = draw(
        SharesChart(
            "x",
            labels,
            tuple(replace(one, half_widths=(abs(half),) * len(values)) for one in amounts),
            min(bins, len(values)),
        )
    )
    for shape in drawing.shapes:
        numbers = dict(shape.at)
        for name in ("x", "x1", "x2"):
            assert 0 <= float(numbers.get(name, 0)) <= SMALL
        for name in ("y", "y1", "y2"):
            assert 0 <= float(numbers.get(name, 0)) <= drawing.height
        assert float(numbers.get("x", 0)) + float(numbers.get("width", 0)) <= SMALL + 0.2


def test_shades_rise_with_the_value_and_differ_by_sign() -> None:
    names = tuple(map(str, range(10)))
    cells = tuple(MatrixCell(0, place, place / 9, f"cell {place}") for place in range(10))
    found = [
        shape.style for shape in draw(Matrix("m", names, names, cells, 1.0)).shapes if shape.hint.startswith("cell")
    ]
    assert found == [f"shade-{min(place, SHADES - 1)}" for place in range(10)]
    signed = tuple(MatrixCell(0, place, value, f"cell {place}") for place, value in enumerate((-1.0, 0.5, math.nan)))
    shown = draw(
        Matrix(
            "m",
            names,
            names,
            (
                *signed,
                MatrixCell(1, 1, None, "cell"),
            ),
            1.0,
            signed=True,
        )
    ).shapes
    assert [shape.style for shape in shown if shape.hint.startswith("cell")] == [
        "less-8",
        "more-4",
        "unknown",
        "unknown",
    ]


def test_small_shares_beside_a_large_one_can_be_seen() -> None:
    cells = (MatrixCell(0, 0, 0.25, "small"), MatrixCell(0, 1, 1.0, "large"))
    matrix = Matrix("m", ("a",), ("b", "c"), cells, 1.0)
    for root, shade in ((False, 2), (True, 4)):
        shapes = draw(replace(matrix, root=root)).shapes
        assert [shape.style for shape in shapes if shape.hint == "small"] == [f"shade-{shade}"]


def test_cells_that_tell_nothing_share_one_path_for_each_shade() -> None:
    names = tuple(map(str, range(50)))
    cells = tuple(MatrixCell(row, column, (row + column) / 98) for row in range(50) for column in range(50))
    drawing = draw(Matrix("m", names, names, cells, 1.0))
    paths = [shape for shape in drawing.shapes if shape.element == "path"]
    assert len(paths) == SHADES
    assert sum(dict(shape.at)["d"].count("z") for shape in paths) == 2500
    assert "49 and 49: 1" in drawing.summary


def test_the_marker_lies_where_the_score_does() -> None:
    def marker(place: float | None) -> str:
        shapes = draw(Between("x", place, "near", "far", "s")).shapes
        return next((dict(shape.at)["d"] for shape in shapes if shape.style == "marker"), "")

    assert marker(0.0).startswith("M6 ")
    assert marker(-5.0) == marker(0.0)
    assert marker(7.0) == marker(1.0)
    assert marker(0.5).startswith("M138 ")
    assert marker(None) == ""


def test_intervals_of_both_tables_and_those_that_cannot_be_estimated() -> None:
    rows = (IntervalRow("age", (1.0, 0.5, 1.5), (1.2, 0.7, 1.7)), IntervalRow("sex", (-1.0, -1.5, -0.5), None))
    drawing = draw(Forest("f", rows))
    real, made = ([shape for shape in drawing.shapes if shape.style == f"interval {side}"] for side in ("real", "made"))
    assert (len(real), len(made)) == (2, 1)
    assert _at(real[0], "x1") < _at(made[0], "x1") < _at(real[0], "x2") < _at(made[0], "x2")
    assert "cannot be estimated" in drawing.summary
    assert any(shape.text == "synthetic: cannot be estimated" for shape in drawing.shapes)


def test_a_runaway_interval_does_not_press_the_others_together() -> None:
    rows = tuple(IntervalRow(str(place), (1.0, 0.5, 1.5), (1.0, 0.5, 1.5)) for place in range(20))
    drawing = draw(Forest("f", (*rows, IntervalRow("far", (1e9, -1e9, 1e9), None))))
    first = next(shape for shape in drawing.shapes if shape.style == "interval real")
    assert _at(first, "x2") - _at(first, "x1") > 50


def test_maps_with_one_frame_put_equal_points_in_equal_places() -> None:
    ends = (-1.0, 1.0, -1.0, 1.0)
    maps = [draw(PointMap("m", "made", "a", "b", points, ends)) for points in (((0.0, 0.0), (1.0, 1.0)), ((0.0, 0.0),))]
    paths = [next(dict(shape.at)["d"] for shape in one.shapes if shape.style == "dots made") for one in maps]
    assert paths[0].startswith(paths[1])


def test_a_panel_names_its_places_and_tells_its_numbers() -> None:
    first = Series("mst", (0.1, 1.0, 10.0), (0.4, 0.2, 0.1), (0.3, 0.1, math.nan), (0.5, 0.3, math.nan))
    second = Series("aim", (0.1, 1.0), (0.3, 0.1))
    drawing = draw(CurvePanel("error", "ε", (first, second), (0.1, 1.0, 10.0), yardstick=0.05))
    assert [one.text for one in drawing.shapes if one.style == "middle"] == ["0.1", "1", "10"]
    assert "mst at ε 0.1: 0.4 (0.3 to 0.5), at ε 1: 0.2 (0.1 to 0.3), at ε 10: 0.1" in drawing.summary
    assert drawing.summary.endswith("Dotted: 0.05.")
    whiskers = [one for one in drawing.shapes if (one.element, one.style) == ("line", "trace colour-0")]
    assert len(whiskers) == 2, "a value without an interval has none"
    dots = [one.hint for one in drawing.shapes if one.style.startswith("dot")]
    assert dots == ["mst: 0.4 (0.3 to 0.5)", "mst: 0.2 (0.1 to 0.3)", "mst: 0.1", "aim: 0.3", "aim: 0.1"]
    heights = [float(dict(one.at)["y1"]) for one in drawing.shapes if one.style == "yardstick"]
    lowest = [float(dict(one.at)["y1"]) for one in drawing.shapes if one.style == "frame"]
    assert heights[0] < max(lowest), "the level lies above the axis, which begins at 0"


def test_a_panel_of_one_place_has_a_row_for_each_curve() -> None:
    rows = (Series("mst", (1.0,), (0.4,), (0.3,), (0.5,)), Series("a very long name of a method", (), ()))
    drawing = draw(CurvePanel("error", "ε", rows, (1.0,)))
    names = [(one.text, one.hint) for one in drawing.shapes if one.style == "label"]
    assert names[0] == ("mst", "mst")
    assert names[1][0].endswith("…")
    assert names[1][1] == "a very long name of a method"
    assert [one.text for one in drawing.shapes if one.style == "value"] == ["none"]
    (interval,) = [dict(one.at) for one in drawing.shapes if one.style == "trace colour-0"]
    (dot,) = [dict(one.at)["transform"] for one in drawing.shapes if one.style == "dot colour-0"]
    middle = (float(interval["x1"]) + float(interval["x2"])) / 2
    assert float(dot.removeprefix("translate(").split()[0]) == pytest.approx(middle, abs=0.11)


def test_a_bundle_has_a_thin_line_for_each_and_a_thick_one_for_their_mean() -> None:
    lines = ((0.2, 0.1), (0.4, 0.3), (math.nan, 0.1))
    drawing = draw(Bundle("bias", "ε", (0.5, 2.0), lines, heights=(0.0, 1.0), yardstick=0.95))
    paths = {style: [dict(one.at)["d"] for one in drawing.shapes if one.style == style] for style in ("thread",)}
    assert len(paths["thread"]) == 2, "the line with a number that is not finite is left out"
    (mean,) = [dict(one.at)["d"] for one in drawing.shapes if one.style == "thread mean"]
    spots = [[float(one) for one in spot.split()] for spot in mean.removeprefix("M").split(" L")]
    ends = [[float(spot.split()[1]) for spot in path.removeprefix("M").split(" L")] for path in paths["thread"]]
    assert [spot[1] for spot in spots] == pytest.approx([sum(pair) / 2 for pair in zip(*ends, strict=True)], abs=0.02)
    assert spots[0][1] < spots[1][1], "larger numbers stand higher"
    assert [one.text for one in drawing.shapes if one.style == "middle"] == ["0.5", "2"]
    assert drawing.summary == "2 lines; their mean at ε 0.5 0.3; at ε 2 0.2."
    nothing = draw(Bundle("bias", "ε", (0.5, 2.0), ()))
    assert nothing.summary == "0 lines; their mean does not exist."


def test_names_of_curves_have_the_styles_of_their_panels() -> None:
    names = tuple(f"method {place}" for place in range(10))
    drawing = draw(CurveNames("Methods", names))
    series = tuple(Series(name, (0.1, 1.0), (0.1, 0.2)) for name in names)
    panel = draw(CurvePanel("error", "ε", series))
    dots = [[one.style for one in made.shapes if one.style.startswith("dot")] for made in (drawing, panel)]
    assert dots[0] == dots[1][::2]
    assert [one.text for one in drawing.shapes if one.style == "name"] == list(names)


def test_many_numbered_labels_are_a_histogram_with_bars_for_the_rest() -> None:
    labels = (*(str(number) for number in range(100)), "other")
    drawing = draw(SharesChart("codes", labels, (Amounts("made", "rows", (1.0,) * 101),), unit="count"))
    assert len([one for one in drawing.shapes if one.style.startswith("area")]) == 1
    assert [one.text for one in drawing.shapes if one.style == "label"][-1] == "other"
    for few in (
        tuple(map(str, range(MOST_NUMBERED))),
        tuple(map(str, reversed(range(30)))),
        ("nan",) * 30,
        ("inf",) * 30,
    ):
        flat = draw(SharesChart("codes", few, (Amounts("made", "rows", (1.0,) * len(few)),), unit="count"))
        assert not [one for one in flat.shapes if one.style.startswith("area")]


def test_a_small_matrix_of_many_columns_is_no_wider_than_its_room() -> None:
    names = tuple(f"c{place}" for place in range(110))
    cells = tuple(MatrixCell(place, place - 1, None) for place in range(1, 110))
    drawing = draw(Matrix("many", names, names, cells, 1.0, small=True))
    assert drawing.width <= SMALL + 1
    assert {one.style for one in drawing.shapes if one.element == "path"} == {"blank"}


def test_intervals_stand_on_one_axis_in_order() -> None:
    groups = (
        IntervalGroup("few", ((0.1, 0.5), (0.2, 0.4)), ("few a", "few b")),
        IntervalGroup("many", ((0.3, 0.3), (0.25, 0.35)), ("many a", "many b")),
    )
    drawing = draw(IntervalPanel("shares", 0.3, groups))
    bars = [shape for shape in drawing.shapes if shape.style.startswith("shade-")]
    assert [bar.hint for bar in bars] == ["few a", "few b", "many a", "many b"]
    assert [bar.style for bar in bars][:2] == [f"shade-{SHADES - 1}", "shade-2"]
    heights = [_at(bar, "height") for bar in bars]
    assert heights[1] == pytest.approx(heights[0] / 2, abs=0.2)
    assert heights[2] == 1, "an interval without width can be seen"
    assert heights[3] == pytest.approx(heights[0] / 4, abs=0.2)
    places = [_at(bar, "x") for bar in bars]
    assert places == sorted(places)
    assert max(places) <= SMALL
    assert drawing.summary == "Around 0.3, first and last of each group. few a; few b; many a; many b."


def test_names_beside_a_matrix_are_cut_only_where_cells_need_the_room() -> None:
    """Two labels that begin alike must stay apart: "15,000 to 1…" could be several groups of incomes."""
    names = ("15,000 to 17,499", "15,000 to 19,999")
    few = draw(Matrix("pair", names, ("no", "yes"), (), 1.0, small=True))
    assert {*names} <= {mark.text for mark in few.shapes}
    assert few.width <= 340
    many = draw(Matrix("pair", names, tuple(f"label {place}" for place in range(10)), (), 1.0, small=True))
    assert not {*names} & {mark.text for mark in many.shapes}
    assert many.width <= 340
    assert {mark.hint for mark in many.shapes if mark.style == "label" and mark.hint} == {*names}
    alone = draw(Matrix("all", ("preregistration_state",), ("preregistration_state",), (), 1.0))
    assert [mark.text for mark in alone.shapes if mark.hint] == ["preregistration_state"] * 2


def test_colours_of_curves_are_no_shades() -> None:
    """Shades are chosen by how the name of a class ends; curves whose class ended so could hardly be read."""
    css = (Path(charts.__file__).parent / "templates" / "charts.css").read_text(encoding="utf-8")
    ends = re.findall(r'\[class\$="([^"]+)"\]', css)
    colours = re.findall(r"\.(colour-\d) \{", css)
    assert len(ends) == 18
    assert len(colours) == 8
    assert [name for name in colours if name.endswith(tuple(ends))] == []
