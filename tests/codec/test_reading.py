"""Tests of `understudy.codec.reading`."""

import datetime as dt
import math
import re
import warnings
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec.examples import invalid_text
from understudy.codec.reading import (
    NumberForm,
    canonical_text,
    format_text,
    has_text,
    is_text,
    plain,
    read_clock,
    read_days,
    read_instants,
    read_reals,
    read_wholes,
    zone_is_known,
)

MOST, LEAST = 2**63 - 1, -(2**63)


def wholes(values, kind=None):
    reading = read_wholes(pa.array(values, kind))
    return [
        (int(value), bool(exact)) if valid else None
        for value, valid, exact in zip(reading.values, reading.valid, reading.exact, strict=True)
    ]


def reals(values, kind=None):
    reading = read_reals(pa.array(values, kind))
    return [float(value) if valid else None for value, valid in zip(reading.values, reading.valid, strict=True)]


def test_wholes_of_text():
    texts = ["42", " +7 ", "-0", "5.7", "-5.5", "1e3", "9" * 19, "-" + "9" * 30, "0" * 30 + "8", "9223372036854775807"]
    assert wholes(texts) == [
        *((42, True), (7, True), (0, True), (5, False), (-6, False), (1000, True)),
        *((MOST, False), (LEAST, False), (8, True), (MOST, True)),
    ]


@pytest.mark.parametrize(
    "text", ["", " ", "x", "0x10", "1_0", "1,5", "٣", "1e", "--1", "nan", "1 2", "\0", "½", "1\n2"]
)
def test_what_is_no_number_is_not_understood(text):
    assert wholes([text]) == [None]
    assert reals([text]) == [None]


def test_wholes_of_typed_values():
    assert wholes([5.7, -5.5, math.nan, math.inf, -math.inf, -0.0, 2.0**63]) == [
        *((5, False), (-6, False), None, (MOST, False), (LEAST, False), (0, True), (MOST, False))
    ]
    assert wholes([2**64 - 1, 3, None], pa.uint64()) == [(MOST, False), (3, True), None]
    assert wholes([True, False]) == [(1, True), (0, True)]
    assert wholes([[1]], pa.list_(pa.int8())) == [None]


def test_reals_agree_with_python():
    texts = ["0.1", "1e400", "-1e400", "5e-324", "1" * 400, ".5", "5.", "Infinity", "-inf", "1e-999", "-0"]
    assert reals(texts) == [*map(float, texts)]
    assert math.copysign(1, reals(["-0.0"])[0]) == 1
    assert math.copysign(1, reals([-0.0])[0]) == 1


def test_single_floats_mean_their_shortest_decimal():
    assert reals([0.7, 0.1, 1e10], pa.float32()) == [0.7, 0.1, 1e10]


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_floats_and_their_text_read_the_same(values):
    texts = [repr(value) for value in values]
    assert reals(texts) == reals(values)
    assert wholes(texts) == wholes(values)


@given(st.lists(st.integers(LEAST, MOST), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_integers_and_their_text_read_the_same(values):
    assert wholes([str(value) for value in values]) == [(value, True) for value in values] == wholes(values, pa.int64())
    assert reals([str(value) for value in values]) == reals(values, pa.int64()) == [float(value) for value in values]


@given(st.lists(st.decimals(-(10**9), 10**9, places=4), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_decimals_read_like_their_text(values):
    typed = pa.array(values, pa.decimal128(20, 4))
    narrow = pa.array(values[:1], pa.decimal64(16, 4))
    assert reals(narrow) == [float(values[0])]
    assert reals(typed) == [float(value) for value in values]
    assert np.array_equal(read_wholes(typed).values, [math.floor(value) for value in values])


EPOCH = dt.datetime(1970, 1, 1)
BERLIN = ZoneInfo("Europe/Berlin")


def found(reading):
    return [int(value) if valid else None for value, valid in zip(reading.values, reading.valid, strict=True)]


def instants(values, zone=None, form=None, kind=None):
    return found(read_instants(pa.array(values, kind), form, zone))


def days(values, form=None, kind=None):
    return found(read_days(pa.array(values, kind), form))


def utc(*parts):
    return int(dt.datetime(*parts, tzinfo=dt.UTC).timestamp())  # type: ignore[misc]


@given(st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)))
@settings(max_examples=80, deadline=None)
def test_iso_dates_read_like_typed_ones(day):
    number = day.toordinal() - dt.date(1970, 1, 1).toordinal()
    padded = f"{day.year:04}-{day.month:02}-{day.day:02}"
    assert days([padded, f" {padded} ", f"{padded}T23:59:59.5Z"]) == [number] * 3
    assert days([day], kind=pa.date32()) == [number]
    assert days([day], kind=pa.date64()) == [number]


@pytest.mark.parametrize(
    "text",
    [
        *("2021-02-30", "2021-13-01", "2021-00-10", "2021-01-00", "21-01-01", "2021-01-01x", "", "today"),
        *("2021-01-01T24:00", "2021-01-01 10:60", "2021-01-01 10:00:60", "2021-01-01T", "2021/01/01", "٢٠٢١-01-01"),
    ],
)
def test_what_is_no_date_is_not_understood(text):
    assert days([text]) == [None]
    assert instants([text]) == [None]


FORMATS = [
    "%d.%m.%Y",
    "%Y%m%d",
    "%m/%d/%y",
    "%d %B %Y",
    "%b-%d-%Y",
    "%Y-%j",
    "%A, %d %b %Y",
    "%d|%m (%Y)",
    "%Y.%m.%d%%",
]


@given(st.dates(dt.date(1970, 1, 1), dt.date(2060, 12, 31)), st.sampled_from(FORMATS))
@settings(max_examples=150, deadline=None)
def test_formats_read_as_python_reads_them(day, form):
    text = day.strftime(form)
    assert days([text, text.upper()], form) == [(day - EPOCH.date()).days] * 2


@given(st.text("0123456789./ -", max_size=10), st.sampled_from(["%d.%m.%Y", "%Y%m%d", "%m/%d/%y", "%Y-%j"]))
@settings(max_examples=200, deadline=None)
def test_formats_accept_what_python_accepts(text, form):
    try:
        expected = (dt.datetime.strptime(text.strip(), form) - EPOCH).days
    except ValueError:
        expected = None
    assert days([text], form) == [expected]


@pytest.mark.parametrize("year", [1969, 1970, 1999, 2000, 2067, 2068])
def test_years_of_two_digits_turn_over_where_they_do_in_python(year):
    day = dt.date(year, 3, 1)
    assert dt.datetime.strptime(day.strftime("%d.%m.%y"), "%d.%m.%y").date() == day
    assert days([day.strftime("%d.%m.%y")], "%d.%m.%y") == [(day - EPOCH.date()).days]


def test_formats_that_only_python_reads():
    assert days(["2020-W01-1", "2020-W99-1", None], "%G-W%V-%u") == [18_260, None, None]


def test_numbers_are_read_by_their_text():
    assert days([20200131, 20200231], "%Y%m%d", pa.int64()) == [18_292, None]
    assert days([20200131.0], "%Y%m%d") == [18_292]
    assert days([20200131]) == [None]


@given(st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2030, 1, 1)))
@settings(max_examples=80, deadline=None)
def test_wall_clock_times(moment):
    expected = (moment - EPOCH) // dt.timedelta(seconds=1)
    assert instants([moment.isoformat(), moment.isoformat(" ") + "+05:30", moment.isoformat() + "Z"]) == [expected] * 3
    assert instants([moment], kind=pa.timestamp("us")) == [expected]
    assert instants([moment.replace(tzinfo=dt.UTC).astimezone(BERLIN)], kind=pa.timestamp("ms", "UTC")) == [expected]


@given(st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2030, 1, 1), timezones=st.just(dt.UTC)))
@settings(max_examples=80, deadline=None)
def test_instants_do_not_depend_on_how_they_are_written(moment):
    moment = moment.replace(microsecond=0)
    expected = int(moment.timestamp())
    texts = [moment.astimezone(zone).isoformat() for zone in (dt.UTC, BERLIN, ZoneInfo("Asia/Kolkata"))]
    assert instants(texts, "Europe/Berlin") == [expected] * 3
    for zone in ("UTC", "Europe/Berlin", "America/St_Johns"):
        assert instants([moment], "Europe/Berlin", kind=pa.timestamp("s", zone)) == [expected]


def test_local_times_where_clocks_change():
    texts = ["2021-03-28 02:30:00", "2021-10-31 02:30:00", "2021-10-31 02:30:00+01:00", "2021-07-01 12:00:00"]
    expected = [utc(2021, 3, 28, 1), utc(2021, 10, 31, 0, 30), utc(2021, 10, 31, 1, 30), utc(2021, 7, 1, 10)]
    assert instants(texts, "Europe/Berlin") == expected
    naive = [dt.datetime.fromisoformat(text) for text in texts[:2]]
    assert instants(naive, "Europe/Berlin", kind=pa.timestamp("ns")) == expected[:2]


def test_a_moment_counts_for_the_day_its_own_clock_shows():
    late = dt.datetime(2020, 1, 1, 23, 30, tzinfo=dt.UTC)
    assert days([late], kind=pa.timestamp("s", "Europe/Berlin")) == [18_263]
    assert days([late.astimezone(BERLIN).isoformat()]) == [18_263]
    assert days([late], kind=pa.timestamp("s", "UTC")) == [18_262]


def test_far_moments_are_cut_not_wrapped():
    ticks = pa.array([2**63 - 1, -(2**63), None]).view(pa.timestamp("s", "Asia/Tokyo"))
    values = found(read_instants(ticks, None, "Europe/Berlin"))
    assert values[0] > utc(9999, 12, 31)
    assert values[1] < -(10**11)
    assert values[2] is None


def test_times_of_day():
    texts = ["08:05", "8:05:09", " 23:59:59.999 ", "24:00", "8", "08:05:60", "", None]
    assert found(read_clock(pa.array(texts), None)) == [29_100, 29_109, 86_399, None, None, None, None, None]
    assert found(read_clock(pa.array([dt.time(8, 5, 9, 999_999)], pa.time64("us")), None)) == [29_109]
    assert found(read_clock(pa.array([29_109_999], pa.int32()).view(pa.time32("ms")), None)) == [29_109]
    assert found(read_clock(pa.array(["12:05 AM", "12:05 pm", "1:00 PM", "13:00 PM"]), "%I:%M %p")) == [
        *(300, 43_500, 46_800, None)
    ]
    assert found(read_clock(pa.array([930, 1745]), "%H%M")) == [34_200, 63_900]
    assert found(read_clock(pa.array([EPOCH]), None)) == [None]


@given(st.lists(st.integers(0, 86_399), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None)
def test_written_text_reads_back(seconds):
    stamps = pa.array(seconds, pa.timestamp("s"))
    for form in ("%I:%M:%S %p", "%H%M%S", "%H:%M:%S.%f", "%S %M %H %%"):
        assert found(read_clock(format_text(stamps, form), form)) == seconds


def test_zones():
    assert zone_is_known("America/New_York")
    assert not zone_is_known("Nowhere/Atall")
    unknown = pa.array([0], pa.int64()).view(pa.timestamp("s", "Nowhere/Atall"))
    assert found(read_days(unknown, None)) == [0]
    assert np.array_equal(read_instants(unknown, None, "UTC").values, [0])


@pytest.mark.parametrize("form", ["%d.%m", "%d.%m %w"], ids=["by pattern", "one by one"])
def test_a_format_without_a_year_means_1900_without_a_warning(form: str) -> None:
    named = [dt.date(1900, 1, 1), dt.date(1900, 2, 28), dt.date(1900, 12, 24)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = days([day.strftime(form) for day in [*named, dt.date(2000, 2, 29)]], form)
    assert read == [*((day - EPOCH.date()).days for day in named), None]


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        ([5, -3, None], pa.int8(), ["5", "-3", None]),
        ([2**64 - 1], pa.uint64(), ["18446744073709551615"]),
        ([5.0, -0.0, 0.1, 1e22, float("inf"), float("nan")], pa.float64(), ["5", "0", "0.1", str(10**22), "inf", None]),
        ([0.1, 5.0, None], pa.float32(), ["0.1", "5", None]),
        ([True, False], pa.bool_(), ["true", "false"]),
        ([Decimal("1.50"), Decimal("5.00"), None], pa.decimal128(9, 2), ["1.5", "5", None]),
        ([Decimal("1.5"), Decimal("5.0"), None], pa.decimal32(5, 1), ["1.5", "5", None]),
        ([dt.date(2020, 1, 2)], pa.date32(), ["2020-01-02"]),
        ([dt.date(1969, 12, 31)], pa.date64(), ["1969-12-31"]),
        ([dt.datetime(2020, 1, 2, 3, 4, 5)], pa.timestamp("ns"), ["2020-01-02 03:04:05"]),
        ([dt.datetime(2020, 1, 2, 3, 4, 5, 120_000)], pa.timestamp("us"), ["2020-01-02 03:04:05.12"]),
        ([dt.time(10, 20)], pa.time64("us"), ["10:20:00"]),
        ([" é ", "e\u0301", ""], pa.string(), [" é ", "e\u0301", ""]),
        (["a"], pa.string_view(), ["a"]),
        ([b"ab "], pa.binary(3), ["ab "]),
    ],
)
def test_canonical_text(values, kind, texts):
    assert canonical_text(pa.array(values, kind)).to_pylist() == texts


def test_infinity_is_text_too():
    assert canonical_text(pa.array([np.inf, -np.inf])).to_pylist() == ["inf", "-inf"]


def test_runs_and_extensions_are_unwrapped():
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], ["a", None])
    assert plain(runs).to_pylist() == ["a", "a", None]
    wrapped = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["x"]))
    assert plain(wrapped).to_pylist() == ["x"]


def test_bytes_that_are_no_text_pass_through():
    assert plain(pa.array([b"\xff", b"a"])).cast(pa.binary()).to_pylist() == [b"\xff", b"a"]
    assert canonical_text(invalid_text(b"\xff")).cast(pa.binary()).to_pylist() == [b"\xff"]


def test_nested_values_have_no_text():
    assert not has_text(pa.list_(pa.int8()))
    assert not has_text(pa.duration("s"))
    assert has_text(pa.decimal256(40, 2))
    assert is_text(pa.large_string())


FORMS = st.builds(
    lambda marks, *rest: NumberForm(*marks, *rest),
    st.sampled_from([(".", ""), (",", ""), (",", "."), (".", ","), (",", " "), (".", "'"), (".", "_")]),
    st.sampled_from(["", "€", "US$"]),
    st.sampled_from(["", "%", "kg"]),
    st.booleans(),
)


@given(FORMS, st.lists(st.text("0123.,'_ ()+-€%\u202f\u00a0", max_size=7), max_size=20))
@settings(max_examples=200, deadline=None)
def test_what_is_read_in_a_form_has_the_digits_and_the_sign_of_the_text(form: NumberForm, texts: list[str]) -> None:
    reading = read_reals(pa.array(texts, pa.string()), form)
    for text, value, valid in zip(texts, reading.values.tolist(), reading.valid, strict=True):
        digits = "".join(mark for mark in text if mark.isdigit() or mark == form.decimal).replace(form.decimal, ".")
        if valid:
            assert abs(value) == float(digits)
            assert math.copysign(1, value) == (-1 if value and ("-" in text or "(" in text) else 1)
        elif re.fullmatch(r"[+-]?[0-9]+", text):
            pytest.fail(f"{text!r} is plain in every form")


@given(FORMS, st.integers(-(10**12), 10**12), st.integers(0, 4), st.booleans(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_numbers_written_in_a_form_are_read_back(
    form: NumberForm, units: int, decimals: int, grouped: bool, marked: bool
) -> None:
    whole, rest = divmod(abs(units), 10**decimals)
    digits = f"{whole:,}".replace(",", form.thousands) if grouped and form.thousands else str(whole)
    text = digits + (f"{form.decimal}{rest:0{decimals}d}" if decimals else "")
    text = f"{form.prefix} {text} {form.suffix}".strip() if marked else text
    text = text if units >= 0 else f"({text})" if form.parentheses else f"-{text}"
    value = float(f"{'-' if units < 0 else ''}{whole}.{rest:0{decimals}d}" if decimals else units)
    assert read_reals(pa.array([f" {text} "]), form).values.tolist() == [value]
    assert read_wholes(pa.array([text]), form).values.tolist() == [math.floor(value)]
