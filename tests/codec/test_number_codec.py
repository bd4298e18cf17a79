import datetime as dt
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec.examples import codec_of, codec_of_everything, codes
from understudy.errors import UsageError
from understudy.schema import Date, Float, GivenBins, Integer, UniformBins

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
