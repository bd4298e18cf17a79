"""Tests of `understudy.codec.numbers`."""

import datetime as dt
import math
import re
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec.examples import ARRAYS, codec_of, codec_of_everything, codes
from understudy.codec.axes import Continuum, Grid, axis_of, fine_grid, fixed_edges, written
from understudy.codec.numbers import Residues, kinds_of
from understudy.codec.table import TableCodec
from understudy.errors import SchemaError, UsageError
from understudy.schema import (
    Category,
    Cut,
    Date,
    Datetime,
    Derived,
    Float,
    GivenBins,
    Impossible,
    Integer,
    PrivateBins,
    Range,
    Schema,
    Time,
    UniformBins,
    Unit,
)

CODEC = codec_of_everything()


def test_values_beyond_the_bounds_fall_into_the_end_bins():
    assert codes(CODEC, "age", [-1, 0, 90, 91, 2**62]) == [0, 0, 90, 90, 90]
    assert codes(CODEC, "rate", [-9.0, float("-inf"), 1.0, 9.0, float("inf")]) == [0, 0, 31, 31, 31]


def test_edges_belong_to_the_bin_above_and_the_last_edge_to_the_last():
    assert codes(CODEC, "banded", [0, 17, 18, 64, 65, 100]) == [0, 0, 1, 1, 2, 2]
    assert codes(CODEC, "banded", [17.9, 18.0]) == [0, 1]
    assert codes(CODEC, "split", [0.1249, 0.125, 0.5, 1.0]) == [0, 1, 2, 2]


def test_special_values_are_met_exactly_or_not_at_all():
    regular = CODEC.domain.sizes["income"] - 4  # three special values and unreadable
    special = [regular, regular + 1, regular + 2]
    assert codes(CODEC, "income", [999_998, 0, -1]) == special
    assert codes(CODEC, "income", ["999998", "0.0", " -1 "]) == special
    assert codes(CODEC, "income", [999_998.0, -0.0, -1.0]) == special
    assert codes(CODEC, "income", [999_998.4, 0.3, -0.5]) == [regular - 1, 0, 0]
    assert [CODEC.describe("income", code) for code in special] == ["999998", "0", "-1"]


def test_specials_are_decoded_exactly_and_bins_never_give_one():
    sizes = CODEC.domain.sizes["price"]
    many = np.arange(sizes).repeat(200)
    codec = codec_of(Float(name="price", lower=0.0, upper=10.0, decimals=2, special=(0.0, -9.0)))
    values = codec.decode({"price": many}, np.random.default_rng(2))["price"].to_numpy(zero_copy_only=False)
    assert set(values[many == sizes - 3]) == {0.0}
    assert set(values[many == sizes - 2]) == {-9.0}
    assert np.isnan(values[many == sizes - 1]).all()
    regular = values[many < sizes - 3]
    assert regular.min() > 0
    assert np.array_equal(regular, np.round(regular, 2))


@given(
    st.integers(-500, 500), st.integers(1, 3000), st.integers(1, 6), st.integers(1, 40), st.sets(st.integers(-9, 40))
)
@settings(max_examples=60, deadline=None)
def test_integers_stay_in_bounds_on_the_step_and_come_back(lower, width, step, count, special):
    step, values = min(step, width), width // min(step, width) + 1
    bins, upper = UniformBins(min(count, values)), lower + width
    column = Integer(name="n", lower=lower, upper=upper, step=step, bins=bins, special=tuple(special))
    codec = codec_of(column)
    drawn = np.arange(codec.domain.sizes["n"]).repeat(4)
    numbers = codec.decode({"n": drawn}, np.random.default_rng(0))["n"]
    regular = numbers.to_numpy(zero_copy_only=False)[drawn < codec.domain.sizes["n"] - 1 - len(special)]
    assert regular.min() >= lower
    assert regular.max() <= lower + width
    assert not ((regular - lower) % step).any()
    if any(value not in special for value in range(lower, lower + width + 1, step)):
        assert (codec.encode("n", numbers) == drawn).all()


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.none() | st.integers(0, 6), st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_floats_stay_in_bounds_with_their_decimals_and_come_back(lower, width, decimals, count):
    column = Float(name="f", lower=lower, upper=lower + width, decimals=decimals, bins=UniformBins(count))
    codec = codec_of(column)
    drawn = np.arange(codec.domain.sizes["f"]).repeat(4)
    stored = codec.decode({"f": drawn}, np.random.default_rng(0))["f"]
    numbers = stored.to_numpy(zero_copy_only=False)[:-4]
    assert numbers.min() >= lower
    assert numbers.max() <= lower + width
    assert (codec.encode("f", stored) == drawn).all()
    if decimals is not None and width >= 2 / 10**decimals:
        assert all(float(f"{number:.{decimals}f}") == number for number in numbers)


def test_dates_are_drawn_from_every_day_of_the_bin():
    day = Date(name="d", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 1, 8), bins=UniformBins(2))
    values = codec_of(day).decode({"d": np.zeros(500, np.uint8)}, np.random.default_rng(0))["d"].to_pylist()
    assert set(values) == {dt.date(2020, 1, place) for place in (1, 2, 3, 4)}


@pytest.mark.parametrize(
    ("text", "expected"), [("18..64", [1]), ("..64", [0, 1]), ("65..", [2]), ("0..100", [0, 1, 2]), ("-5..64", [0, 1])]
)
def test_a_condition_of_whole_bins_is_answered(text, expected):
    codec = codec_of(Integer(name="n", lower=0, upper=100, bins=GivenBins((0, 18, 65, 100))))
    assert codec.codes_matching("n", text).tolist() == expected


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("18..65", '"18..64" or "18..100"'),
        ("20..30", '"18..64"'),
        ("70", '"65..100"'),
        ("200", '"65..100"'),
        ("..20", '"..17" or "..64"'),
        ("64..18", '"18..64"'),
    ],
)
def test_a_condition_that_cuts_a_bin_is_refused_with_the_nearest_ones(text, advice):
    codec = codec_of(Integer(name="n", lower=0, upper=100, bins=GivenBins((0, 18, 65, 100))))
    with pytest.raises(UsageError, match="matches no codes of this column exactly") as refused:
        codec.codes_matching("n", text)
    assert f"ask for {advice}." in str(refused.value)


def test_the_nearest_conditions_can_be_asked():
    even = codec_of(Float(name="x", lower=0.0, upper=100.0, bins=UniformBins(3)))
    with pytest.raises(UsageError) as refused:
        even.codes_matching("x", "0..40")
    for queries in re.findall(r'"([^"]+)"', str(refused.value)):
        assert even.codes_matching("x", queries).tolist() in ([0], [0, 1])


@settings(max_examples=150)
@given(
    inner=st.sets(st.integers(1, 39), max_size=4),
    special=st.sets(st.sampled_from([0, 7, 20, 40, 99]), max_size=3),
    ends=st.tuples(st.integers(-3, 45), st.integers(-3, 45)).map(sorted),
)
def test_an_answered_range_holds_the_values_that_were_asked_for_and_no_others(inner, special, ends):
    edges = (0, *sorted(inner), 40)
    codec = codec_of(Integer(name="n", lower=0, upper=40, bins=GivenBins(edges), special=tuple(sorted(special))))
    low, high = ends
    values = np.asarray(sorted({*range(41), *special}))
    codes = codec.encode("n", pa.array(values))
    try:
        found = codec.codes_matching("n", f"{low}..{high}")
    except UsageError:
        return
    held = set(values[np.isin(codes, found)].tolist())
    # A special value beyond the bounds is a mark, not an amount; a range of one value asks for that value.
    wanted = {value for value in values.tolist() if low <= value <= high and (value <= 40 or low == high)}
    assert held == wanted


def test_words_for_bins():
    assert [CODEC.describe("stepped", code) for code in (0, 8, 9)] == ["[3, 556)", "[4441, 5000]", "missing"]
    assert CODEC.describe("age", 7) == "7"
    assert CODEC.describe("coarse", 0) == "0"
    assert CODEC.describe("born", 31) == "[2020-01-13, 2020-12-31]"


def test_large_integers_are_exact():
    column = Integer(name="n", lower=2**53, upper=2**53 + 3)
    codec = codec_of(column)
    assert codes(codec, "n", [2**53 + place for place in range(4)]) == [0, 1, 2, 3]
    assert codec.encode("n", pa.array([str(2**53 + place) for place in range(4)])).tolist() == [0, 1, 2, 3]


VALID = np.asarray([True, False])


def write(column, numbers):
    return axis_of(column).write(np.asarray(numbers), VALID)


def test_integers_and_floats_are_written_in_their_storage():
    assert write(Integer(name="n", lower=0, upper=9, storage="uint8"), [7, 0]).equals(pa.array([7, None], pa.uint8()))
    assert write(Float(name="f", lower=0, upper=9, storage="float"), [0.5, 0]).equals(
        pa.array([0.5, None], pa.float32())
    )


def test_what_does_not_fit_becomes_null():
    assert written(pa.array([1, 300]), pa.int8()).to_pylist() == [1, None]


def test_dates_are_days():
    column = Date(name="d", lower=dt.date(1970, 1, 2), upper=dt.date(1970, 2, 1))
    assert (axis_of(column).lower, axis_of(column).upper) == (1, 31)
    assert write(column, [2, 0]).to_pylist() == [dt.date(1970, 1, 3), None]
    text = Date(name="d", lower=column.lower, upper=column.upper, storage="string", format="%d/%m/%y")
    assert write(text, [2, 0]).to_pylist() == ["03/01/70", None]
    assert axis_of(text).text(2) == "1970-01-03"


def test_instants_keep_their_zone():
    low, high = dt.datetime(2020, 10, 25, tzinfo=dt.UTC), dt.datetime(2020, 10, 26, tzinfo=dt.UTC)
    column = Datetime(name="t", lower=low, upper=high, zone="Europe/Berlin")
    start = axis_of(column).lower
    assert start == int(low.timestamp())
    stored = write(column, [start, 0])
    assert stored.type == pa.timestamp("us", "Europe/Berlin")
    assert stored[0].as_py().timestamp() == start
    text = Datetime(name="t", lower=low, upper=high, zone="Europe/Berlin", storage="string")
    assert write(text, [start, 0]).to_pylist() == ["2020-10-25T02:00:00+0200", None]
    assert write(text, [start + 3600, 0]).to_pylist() == ["2020-10-25T02:00:00+0100", None]


def test_times_are_seconds_of_the_day():
    assert write(Time(name="t", storage="time32[s]"), [3661, 0]).to_pylist() == [dt.time(1, 1, 1), None]
    assert write(Time(name="t", storage="string"), [3661, 0]).to_pylist() == ["01:01:01", None]


def test_typed_text_is_read_in_the_format_or_iso():
    axis = axis_of(Date(name="d", lower=dt.date(1970, 1, 1), upper=dt.date(2000, 1, 1), format="%d.%m.%Y"))
    assert axis.number("02.01.1970") == axis.number("1970-01-02") == 1
    assert axis.number("soon") is None
    assert axis_of(Integer(name="n", lower=0, upper=9)).number("4.9") == 4
    assert axis_of(Float(name="f", lower=0, upper=9)).number("x") is None


def test_bounds_too_wide_for_64_bits_are_refused():
    with pytest.raises(SchemaError, match="2\\^62"):
        axis_of(Integer(name="n", lower=-(2**63), upper=2**63 - 1))


def integer(**more):
    return Integer(name="n", **more)


def test_a_code_per_integer_up_to_a_hundred_then_32_bins():
    assert fixed_edges(integer(lower=1, upper=100)) == list(range(1, 102))
    assert len(fixed_edges(integer(lower=0, upper=100))) == 33
    assert fixed_edges(integer(lower=0, upper=30, step=10)) == [0, 10, 20, 30, 31]


def test_bins_end_one_past_the_bound_on_whole_axes_only():
    assert fixed_edges(integer(lower=0, upper=9, bins=GivenBins((0, 4, 9)))) == [0, 4, 10]
    assert fixed_edges(Float(name="f", lower=0.0, upper=1.0, bins=UniformBins(4))) == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_no_bin_is_left_without_a_value_of_its_own():
    assert fixed_edges(integer(lower=0, upper=4, special=(0, 2))) == [0, 2, 4, 5]
    assert fixed_edges(Float(name="f", lower=0.0, upper=3.0, decimals=0)) == pytest.approx(
        [0.0, 0.09375, 1.03125, 2.0625, 3.0], abs=0.1
    )
    assert len(fixed_edges(integer(lower=5, upper=6, special=(5, 6)))) == 2


def test_private_bins_need_edges_and_are_cut_to_the_bounds():
    column = integer(lower=0, upper=9, bins=PrivateBins(4))
    with pytest.raises(UsageError, match="'n'"):
        fixed_edges(column)
    assert fixed_edges(column, [-5, 0, 3, 3, 7, 9, 50]) == [0, 3, 7, 9, 10]
    assert fixed_edges(column, [0, 3, 9]) == fixed_edges(column, [0, 3, 10]) == [0, 3, 10]
    assert fixed_edges(column, []) == [0, 10]
    share = Float(name="f", lower=0.0, upper=1.0, bins=PrivateBins(4))
    assert fixed_edges(share, [0.0, 0.5, 1.0]) == fixed_edges(share, [0.5]) == [0.0, 0.5, 1.0]


@given(st.integers(-1000, 1000), st.integers(0, 3000), st.integers(1, 9), st.integers(1, 500))
@settings(max_examples=80, deadline=None)
def test_fine_grid_is_public_even_and_never_too_fine(lower, width, step, cells):
    column = integer(lower=lower, upper=lower + width, step=min(step, max(width, 1)), bins=PrivateBins(5))
    edges = fine_grid(column, cells)
    support = axis_of(column).support
    counts = [support.points(start, stop) for start, stop in pairwise(edges)]
    assert len(counts) <= cells
    assert edges[0] == lower
    assert edges[-1] == lower + width + 1
    assert max(counts) - min(counts) <= 1
    assert min(counts) >= 1
    assert fixed_edges(column, edges) == edges


def test_fine_grid_of_floats_and_dates():
    assert fine_grid(Float(name="f", lower=0.0, upper=1.0, bins=PrivateBins(4)), 4) == [0.0, 0.25, 0.5, 0.75, 1.0]
    day = Date(name="d", lower=dt.date(1970, 1, 1), upper=dt.date(1970, 1, 10), bins=PrivateBins(4))
    assert fine_grid(day, 1000) == list(range(11))


DIVISORS = st.sampled_from([(100, 20, 50, 25, 10, 5, 2), (7,), (6, 4), (9, 10, 3)])


def kind_by_hand(value, divisors):
    return next((place for place, divisor in enumerate(divisors) if value % divisor == 0), len(divisors))


def test_the_first_divisor_counts():
    assert kinds_of(np.array([0, 100, -100, 50, 25, 7, -5]), (100, 50, 5)).tolist() == [0, 0, 0, 1, 2, 3, 2]


@given(
    st.integers(-300, 300) | st.sampled_from([2**62, -(2**62)]),
    st.integers(1, 40),
    DIVISORS,
    st.lists(st.integers(0, 400), min_size=2, max_size=5, unique=True),
    st.lists(st.integers(0, 400), max_size=6, unique=True),
)
@settings(max_examples=60, deadline=None)
def test_counts_are_those_of_listing_all_values(start, step, divisors, places, avoid):
    residues = Residues.of(Grid(start, step), divisors)
    edges = np.array(sorted(places), dtype=np.int64)
    counts = residues.counts(edges[:-1], edges[1:], avoid)
    for stretch, (first, stop) in enumerate(pairwise(edges)):
        values = [start + int(index) * step for index in range(first, stop) if index not in avoid]
        kinds = [kind_by_hand(value, divisors) for value in values]
        assert counts[stretch].tolist() == [kinds.count(kind) for kind in range(len(divisors) + 1)]


def test_every_value_of_a_stretch_and_kind_is_equally_likely():
    residues = Residues.of(Grid(0, 1), (10, 5))
    firsts, stops = np.array([0, 17]), np.array([17, 60])
    wanted = (np.ones(30_000, dtype=np.int64), np.full(30_000, 2))
    drawn = residues.draw(firsts, stops, [18, 33, 47, 90], wanted, np.random.default_rng(5))
    allowed = [value for value in range(17, 60) if value % 5 and value not in (18, 33, 47)]
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == allowed
    expected = 30_000 / len(allowed)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert statistic < len(allowed) + 6 * np.sqrt(2 * len(allowed))


@pytest.mark.parametrize("width", [10**3, 10**15])
def test_long_stretches_need_no_listing(width):
    residues = Residues.of(Grid(-width, 3), (100, 7))
    firsts, stops = np.array([0]), np.array([width // 3])
    kinds = np.repeat(np.arange(3), 200)
    drawn = residues.draw(firsts, stops, [], (np.zeros(600, dtype=np.int64), kinds), np.random.default_rng(1))
    assert kinds_of(drawn, (100, 7)).tolist() == kinds.tolist()
    assert ((drawn + width) % 3 == 0).all()
    assert (drawn >= -width).all()
    assert (drawn < 0).all()
    assert residues.counts(firsts, stops, []).sum() == width // 3


@given(st.integers(-50, 50), st.integers(1, 9), st.integers(-100, 100), st.integers(-100, 100))
@settings(max_examples=100, deadline=None)
def test_grid_counts_points_like_a_list(start, step, low, high):
    grid = Grid(start, step)
    listed = [value for value in range(low, high) if (value - start) % step == 0]
    assert grid.points(low, high) == len(listed)


@given(st.floats(-100, 100), st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_first_decimal_not_below_a_bound(bound, decimals):
    grid = Grid(per=10**decimals)
    index = grid.first_index(bound)
    assert grid.value(index) >= bound > grid.value(index - 1)


def test_every_grid_value_of_a_bin_is_drawn_evenly_and_special_ones_never():
    grid, edges = Grid(0, 5), [0, 23, 51]
    drawn = grid.draw(edges, np.repeat([0, 1], 20_000), np.random.default_rng(5), [10, 50, 999, 3])
    first, second = drawn[:20_000], drawn[20_000:]
    values, counts = np.unique(first, return_counts=True)
    assert values.tolist() == [0, 5, 15, 20]
    assert set(np.unique(second)) == {25, 30, 35, 40, 45}
    # Four values with expectation 5,000: six standard deviations are 367.
    assert np.abs(counts - 5_000).max() < 367


def test_decimals_stay_on_the_grid_and_reach_both_ends():
    grid, edges = Grid(per=10), [0.0, 0.3, 0.5]
    drawn = grid.draw(edges, np.repeat([0, 1], 500), np.random.default_rng(5), [])
    assert set(drawn[:500]) == {0.0, 0.1, 0.2}
    assert set(drawn[500:]) == {0.3, 0.4, 0.5}


@pytest.mark.parametrize("edges", [[0.0, 1e-320, 1.0], [-1e308, 0.0, 1e308], [0.0, 0.1, 0.2]])
def test_floats_stay_inside_their_bin(edges):
    bins = np.repeat([0, 1], 2_000)
    drawn = Continuum().draw(edges, bins, np.random.default_rng(1), [edges[1]])
    assert np.isfinite(drawn).all()
    assert (np.searchsorted(edges[1:-1], drawn, side="right") == bins).all()
    assert not (drawn == edges[1]).any()


@pytest.mark.parametrize(
    ("start", "stop"), [(0.1, 0.3), (0.3, 0.7), (-0.7, -0.1), (1.0, 2.0), (16777216.0, 16777220.0)]
)
def test_the_ends_of_singles_lie_in_their_bin_as_they_are_written(start, stop):
    low, high = Continuum(single=True)._range(start, stop)
    written = [float(str(np.float32(end))) for end in (low, high)]
    assert start <= written[0] <= written[1] < stop
    above = float(str(np.nextafter(np.float32(high), np.float32(np.inf))))
    assert above >= stop, "no number of the bin is left out"


def test_singles_are_read_back_into_their_bin():
    edges = [0.1, 0.3, 0.7]
    bins = np.repeat([0, 1], 2_000)
    drawn = Continuum(single=True).draw(edges, bins, np.random.default_rng(1), []).astype(np.float32)
    read = np.asarray([float(str(value)) for value in drawn])
    assert (np.searchsorted(edges[1:-1], read, side="right") == bins).all()
    assert read.min() >= 0.1


def test_rounded_floats_keep_their_decimals_where_the_grid_is_too_large():
    drawn = Continuum(1).draw([0.0, 1e3], np.zeros(100, int), np.random.default_rng(1), [])
    assert all(math.isclose(value * 10, round(value * 10)) for value in drawn)


WAGE = Integer(name="wage", lower=0, upper=400, bins=GivenBins((0, 3, 200, 400)), special=(0, 998), split=(100, 20, 3))
STEPPED = Integer(name="n", lower=5, upper=995, step=10, bins=UniformBins(4), split=(100, 25, 2), missing=False)
WIDE = Integer(name="n", lower=-(10**15), upper=10**15, bins=UniformBins(3), split=(1000, 7), special=(-1,))
SINGLE = Integer(name="n", lower=0, upper=30, split=(10, 4), missing=False, special=(99,), storage="int8")


def split_codec_of(*columns, rules=(), **more):
    return TableCodec.of(Schema(columns, Unit(), tuple(rules)), **more)


def pairs(codec, name, values):
    sizes, kinds = (codec.encode(f"{name}.{part}", values).tolist() for part in ("size", "kind"))
    return list(zip(sizes, kinds, strict=True))


def test_a_split_column_has_two_columns_of_codes_and_one_of_values():
    codec = split_codec_of(Category(name="sex", labels=("F", "M")), WAGE)
    assert dict(codec.domain.sizes) == {"sex": 3, "wage.size": 6, "wage.kind": 5}
    assert codec.arrow_schema.names == ["sex", "wage"]
    assert [codec.origin(name) for name in codec.domain.columns] == ["sex", "wage", "wage"]
    with pytest.raises(UsageError, match="not a modelled column"):
        codec.origin("wage")
    again = TableCodec.from_json(codec.schema, codec.to_json())
    assert again.domain == codec.domain


def test_size_and_kind_of_values_by_hand():
    codec = split_codec_of(WAGE)
    values = ["0", "1", "3", "20", "100", "199", "400", "5000", "-4", "998", None, "x", "7.5", "1e2"]
    assert pairs(codec, "wage", pa.array(values)) == [
        (3, 4), (0, 3), (1, 2), (1, 1), (1, 0), (1, 3), (2, 0), (2, 0), (0, 3), (4, 4), (5, 4), (5, 4), (1, 3), (1, 0),
    ]  # fmt: skip


def test_codes_in_words_and_words_as_codes():
    codec = split_codec_of(WAGE)
    words = [codec.describe("wage.kind", code) for code in range(5)]
    assert words == ["multiple of 100", "multiple of 20", "multiple of 3", "multiple of none", "no number"]
    for code, word in enumerate(words):
        assert codec.codes_matching("wage.kind", word).tolist() == [code]
    with pytest.raises(UsageError, match='ask for "multiple of 20"'):
        codec.codes_matching("wage.kind", "40")
    with pytest.raises(UsageError, match=r'ask for "3\.\.199"'):
        codec.codes_matching("wage.size", "40")
    assert codec.codes_matching("wage.size", "3..199").tolist() == [1]
    with pytest.raises(UsageError, match="matches no code"):
        codec.codes_matching("wage.kind", "multiple of 7")


@pytest.mark.parametrize("column", [WAGE, STEPPED, WIDE, SINGLE])
def test_every_possible_pair_gives_values_that_are_coded_as_that_pair(column):
    codec = split_codec_of(column)
    shape = codec.domain.shape(codec.domain.everything())
    structural_zeros = codec.structural_zeros[0].mask.reshape(shape)
    possible = np.argwhere(~structural_zeros)
    sizes, kinds = np.repeat(possible, 60, axis=0).T
    names = codec.domain.columns
    drawn = codec.decode({names[0]: sizes, names[1]: kinds}, np.random.default_rng(3)).column(column.name)
    assert pairs(codec, column.name, drawn) == list(zip(sizes.tolist(), kinds.tolist(), strict=True))
    numbers = [value for value in drawn.to_pylist() if value is not None and value not in column.special]
    assert all(column.lower <= value <= column.upper for value in numbers)
    assert all((value - column.lower) % column.step == 0 for value in numbers)


@pytest.mark.parametrize("column", [WAGE, STEPPED, SINGLE])
def test_possible_pairs_are_those_of_some_value(column):
    codec = split_codec_of(column)
    values = [*range(column.lower, column.upper + 1, column.step), *column.special]
    found = set(pairs(codec, column.name, pa.array([*values, None])))
    shape = codec.domain.shape(codec.domain.everything())
    assert found == {tuple(pair) for pair in np.argwhere(~codec.structural_zeros[0].mask.reshape(shape)).tolist()}


@given(ARRAYS, st.sampled_from([WAGE, STEPPED, WIDE, SINGLE]))
@settings(max_examples=150, deadline=None)
def test_no_content_raises_and_no_record_is_an_impossible_pair(array, column):
    codec = split_codec_of(column)
    found = pairs(codec, column.name, array)
    mask = codec.structural_zeros[0].mask.reshape(codec.domain.shape(codec.domain.everything()))
    assert not any(mask[pair] for pair in found)
    alone = [pairs(codec, column.name, array.slice(row, 1))[0] for row in range(min(len(array), 3))]
    assert alone == found[:3]


def test_impossible_codes_still_decode_to_values():
    codec = split_codec_of(WAGE)
    sizes, kinds = (part.ravel() for part in np.indices((6, 5)))
    drawn = codec.decode({"wage.size": sizes, "wage.kind": kinds}, np.random.default_rng(0)).column("wage")
    assert codec.encode("wage.size", drawn).tolist() == sizes.tolist()


def test_rules_and_derived_columns_speak_of_the_whole_column():
    band = Derived(name="band", formula=Cut("wage", (0.0, 200.0, 401.0), ("low", "high")))
    rule = Impossible(when={"wage": Range(lower=200), "sex": ("F",)})
    special = Impossible(when={"wage": ("998", None), "sex": ("M",)})
    codec = split_codec_of(Category(name="sex", labels=("F", "M")), WAGE, band, rules=[rule, special])
    first, second, _ = codec.structural_zeros
    assert first.clique == second.clique == ("sex", "wage.size")
    assert np.flatnonzero(first.mask).tolist() == [2]
    assert np.flatnonzero(second.mask).tolist() == [10, 11]
    codes = {"sex": np.array([0]), "wage.size": np.array([2]), "wage.kind": np.array([0])}
    assert codec.decode(codes, np.random.default_rng(0)).column("band").to_pylist() == ["high"]


def test_bins_chosen_later():
    column = Integer(name="n", lower=0, upper=99, bins=PrivateBins(3), split=(10,), missing=False)
    codec = split_codec_of(column, edges={"n": [0, 5, 40]})
    assert dict(codec.domain.sizes) == {"n.size": 4, "n.kind": 3}
    numbers = pa.array([0, 4, 39, 40, 99])
    assert pairs(codec, "n", numbers) == [(0, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
    assert pairs(codec, "n", pa.array(["12", "€ 12.00", "", None])) == [(1, 1), (3, 2), (3, 2), (3, 2)]
    mask = codec.structural_zeros[0].mask.reshape(
        4, 3
    )  # every bin holds both kinds; what is no number has one of its own
    assert mask.tolist() == [[False, False, True]] * 3 + [[True, True, False]]
    dropped = TableCodec.of(codec.schema, edges={"n": [0, 5, 40]}, unreadable=False)
    assert dropped.structural_zeros == ()
    assert pairs(dropped, "n", numbers) == [(0, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
    assert pairs(dropped, "n", pa.array(["12", "€ 12.00", None])) == [(1, 1), (3, 2), (3, 2)]  # no codes at all


def test_too_many_pairs_are_refused():
    column = Integer(name="n", lower=0, upper=10**6 - 1, bins=UniformBins(10**6), split=tuple(range(15, 1, -1))[:12])
    with pytest.raises(SchemaError, match=r"columns.n.split: spans"):
        _ = split_codec_of(column).structural_zeros


def described(column, values, kind=None):
    codec = codec_of(column)
    name = codec.domain.columns[0]
    return [codec.describe(name, code) for code in codes(codec, name, values, kind)]


FORM = {"decimal": ",", "thousands": ".", "prefix": "€", "suffix": "a.m.", "parentheses": True}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.234,50", 1234.5),
        ("1234,5", 1234.5),
        (" € 1.234.567 ", 1234567),
        ("-€7", -7),
        ("€-7", -7),
        ("+ €\u00a07,", 7),
        ("7 a.m.", 7),
        ("€7,5a.m.", 7.5),
        ("(7)", -7),
        ("(€7 a.m.)", -7),
        ("€ (7) a.m.", -7),
        ("1,5e2", 150),
        ("1.23", None),
        ("1.2345", None),
        ("12.34,5", None),
        (".123", None),
        ("1,234.5", None),
        ("7 axm.", None),
        ("$7", None),
        ("€€7", None),
        ("(-7)", None),
        ("((7))", None),
        ("(7", None),
        ("-€-7", None),
        ("€", None),
        ("7 8", None),
    ],
)
def test_numbers_in_a_declared_form_are_read_strictly(text, value):
    reading = axis_of(Float(name="x", lower=0.0, upper=1.0, **FORM)).read(pa.array([text, "", None]))
    assert reading.valid.tolist() == [value is not None, False, False]
    whole = axis_of(Integer(name="x", lower=0, upper=1, **FORM)).read(pa.array([text]).cast(pa.large_string()))
    assert whole.valid.tolist() == [value is not None]
    if value is not None:
        assert reading.values[0] == value
        assert whole.values[0] == np.floor(value)


@pytest.mark.parametrize(
    ("mark", "text"),
    [(",", "12,345"), ("'", "12’345"), ("'", "12'345"), (" ", "12 345"), (" ", "12\u202f345"), ("_", "12_345")],
)
def test_marks_between_thousands(mark, text):
    axis = axis_of(Integer(name="x", lower=0, upper=1, thousands=mark))
    assert axis.read(pa.array([text, "12345"])).values.tolist() == [12345, 12345]
    assert axis.read(pa.array([text[:-1], f"{text}{text[2]}1", f"1234{text}"])).valid.tolist() == [False] * 3


def test_typed_numbers_are_taken_as_they_are_whatever_form_text_has():
    axis = axis_of(Float(name="x", lower=0.0, upper=1.0, **FORM))
    for kind in (pa.float64(), pa.float32(), pa.decimal128(9, 4)):
        assert axis.read(pa.array([1.5, -0.25]).cast(kind)).values.tolist() == [1.5, -0.25]
    assert axis.read(pa.array([1.5]).cast(pa.float32()).dictionary_encode().dictionary).values.tolist() == [1.5]


def test_special_values_follow_the_form_and_conditions_are_typed_plainly():
    column = Float(name="x", lower=0.0, upper=10.0, special=(999.5,), bins=UniformBins(2), decimal=",", prefix="€")
    assert described(column, ["€ 999,5", "999,5", "999.5", "4,9", "5"]) == [
        "999.5",
        "999.5",
        "missing",
        "[0, 5)",
        "[5, 10]",
    ]
    codec = codec_of(column)
    assert codec.codes_matching("x", "999.5").tolist() == codec.codes_matching("x", "€999,5").tolist() == [2]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["-99", "-99.0", " 99 ", "?", "98", "3", "NA"], pa.string()),
        ([-99, -99, 99, None, 98, 3, None], pa.int16()),
        ([-99.0, -99.0, 99.0, None, 98.0, 3.0, float("nan")], pa.float64()),
    ],
)
@pytest.mark.parametrize("kind_of_column", [Integer, Float])
def test_numbers_that_mean_no_value_do_so_in_text_and_typed(kind_of_column, values, kind):
    said = {"special": (98,), "bins": UniformBins(2), "missing_values": ("-99", "99", "?")}
    column = kind_of_column(name="x", lower=0, upper=100, **said)
    expected = ["missing"] * 4 + ["98", described(column, ["3"])[0], "missing"]
    assert described(column, values, kind) == expected
    judged = TableCodec.of(codec_of(column).schema, judging=True)
    words = [judged.describe("x", code) for code in codes(judged, "x", values, kind)]
    assert words == [*expected[:-1], "unreadable" if values[-1] == "NA" else "missing"]


def test_bins_never_give_out_what_means_no_value():
    column = Integer(name="x", lower=0, upper=3, missing_values=("2",), missing=False)
    codec = codec_of(column)
    assert [codec.describe("x", code) for code in range(codec.domain.sizes["x"])] == ["0", "1", "3", "unreadable"]
    wide = codec_of(Integer(name="x", lower=0, upper=3, missing_values=("2",), bins=UniformBins(1)))
    drawn = wide.decode({"x": np.zeros(400, np.int64)}, np.random.default_rng(0))["x"].to_pylist()
    assert set(drawn) == {0, 1, 3}
    split = codec_of(Integer(name="x", lower=0, upper=39, split=(10,), missing_values=("20",), bins=UniformBins(2)))
    kinds = {"x.size": np.ones(99, np.int64), "x.kind": np.zeros(99, np.int64)}
    assert set(split.decode(kinds, np.random.default_rng(0))["x"].to_pylist()) == {30}


def test_days_that_mean_no_value():
    day = {"lower": dt.date(1900, 1, 1), "upper": dt.date(1901, 1, 1), "bins": UniformBins(1)}
    column = Date(name="x", format="%d.%m.%Y", missing_values=("01.01.1900", "1900-01-02", "00.00.0000"), **day)
    regular = "[1900-01-01, 1901-01-01]"
    texts = ["01.01.1900", "1.1.1900", "02.01.1900", "1900-01-02", "00.00.0000", "03.01.1900"]
    judged = TableCodec.of(codec_of(column).schema, judging=True)
    assert [judged.describe("x", code) for code in codes(judged, "x", texts)] == [
        *["missing"] * 5,
        "[1900-01-01, 1901-01-01]",
    ]
    assert described(column, [dt.date(1900, 1, day) for day in (1, 2, 3)]) == ["missing", "missing", regular]


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (
            Time(name="x", lower=dt.time(0), upper=dt.time(23, 59, 59), bins=UniformBins(24)),
            ["00:00", "07:30:00", "23:59", "noon"],
        ),
        (
            Date(name="x", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 12, 31), bins=UniformBins(366)),
            ["2020-01-01", "2020-02-29", "2020-12-31", "today"],
        ),
    ],
)
def test_long_columns_are_read_as_short_ones(column, texts):
    codec = codec_of(column)
    short = codec.encode("x", pa.array(texts)).tolist()
    assert len(set(short)) == len(texts)
    assert codec.encode("x", pa.array(texts * 2_000)).tolist() == short * 2_000


def test_large_numbers_keep_their_decimals():
    column = Float(name="x", lower=0.0, upper=1e14, decimals=2, bins=UniformBins(4), missing=False)
    support = axis_of(column).support
    assert support == Continuum(2, single=False)
