"""Compiled loops decide what the regular expressions decide."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.codec import reading
from understudy.codec.kernels import iso_moments, short_reals, whole_numbers

PIECES = ["0", "1", "7", "12", "99", "2020", "1999", "-", "+", ".", ":", "T", "t", " ", "Z", "z", "e", "E", "e5", "é"]
PIECES += [
    "-02",
    "-13",
    "-1",
    "-30",
    "-31",
    "-29",
    "23:59",
    "24:00",
    ":60",
    ":07",
    ".5",
    "+0100",
    "-02:30",
    "12345678901234567890",
]
WHOLE_ONES = [
    *(
        "2020-02-29",
        "2019-02-29",
        "2020-1-1",
        "0000-01-01",
        "9999-12-31T23:59:59Z",
        "2020-01-01 1:02",
        "2020-01-01T01:02:03.5",
    ),
    *(
        "2020-01-01T01:02:03.",
        "2020-01-01T01:02:03 +01:00",
        "2020-01-01T01:02 -0130",
        "2020-01-01T01:02+1:00",
        "2020-01-01 ",
    ),
    *(
        "2020-01-01T",
        "2020-01-01T1",
        "2020-01-01T1:2",
        "20200-01-01",
        "2020-001-01",
        "2020-01-011",
        "2020-01-01T01:02:03.5z",
    ),
    *(
        "2020-01-01T25:00",
        "2020-01-01T::05",
        "2020-01-01TA:05",
        "2020-01-01TAA:05",
        "2020-01-01T1:05:5",
        "2020-01-01T01:05:",
        "2020-01-0",
        "2020-01-1a",
        "20a0-01-01",
        "2020-01-01T01:61",
        "2020-01-01T01:02:61",
        "2020-01-01T01:02  Z",
        "",
        "+",
        "1.",
        ".5",
        "1e5",
        "1e123",
    ),
    *("1e", "1e+", "-1.5e-07", "0" * 18, "0" * 19, "1." + "0" * 20, "1." + "0" * 21, "1\n", "\n1", "1 ", "1_0", "\0"),
]
TEXTS = st.lists(
    st.none()
    | st.sampled_from(WHOLE_ONES)
    | st.lists(st.sampled_from(PIECES), max_size=7).map("".join)
    | st.text(max_size=5),
    min_size=1,
    max_size=40,
)


@given(TEXTS, st.sampled_from([pa.string(), pa.large_string()]), st.integers(0, 2))
@settings(max_examples=300, deadline=None)
def test_loops_match_what_expressions_match(texts: list[str | None], kind: pa.DataType, cut: int) -> None:
    array = pa.array([*WHOLE_ONES, *texts], kind).slice(cut)
    wholes, whole = whole_numbers(array)
    assert whole.tolist() == reading._matches(array, reading._WHOLE).tolist()
    assert wholes.tolist() == [int(text.as_py()) if fits else 0 for text, fits in zip(array, whole, strict=True)]
    reals, real = short_reals(array)
    assert real.tolist() == reading._matches(array, reading._SHORT_REAL).tolist()
    assert reals.tolist() == [float(text.as_py()) if fits else 0 for text, fits in zip(array, real, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for least in (0, 1 << 60):
            patch.setattr(reading, "LEAST_ROWS", least)
            found.append(reading._read_text(array, None))
    for name in ("seconds", "has_offset", "valid"):
        assert getattr(found[0], name).tolist() == getattr(found[1], name).tolist()
    known = found[0].valid
    assert found[0].offsets[known].tolist() == found[1].offsets[known].tolist()


def test_bytes_that_are_no_text_match_nothing() -> None:
    offsets = np.array([0, 2, 3, 5], np.int32)
    array = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(b"\xff1" + b"7" + b"1\xb2")]
    )
    assert whole_numbers(array)[1].tolist() == short_reals(array)[1].tolist() == [False, True, False]


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1),
    st.sampled_from(["r", ".3f", ".12e", ".15g"]),
)
@settings(max_examples=300, deadline=None)
def test_short_numbers_are_rounded_as_python_rounds_them(numbers: list[float], form: str) -> None:
    texts = [repr(number) if form == "r" else format(number, form) for number in numbers]
    found, fits = short_reals(pa.array(texts))
    assert found[fits].tolist() == [float(text) for text, fit in zip(texts, fits, strict=True) if fit]


@given(st.dates() | st.datetimes(min_value=dt.datetime(1, 1, 1)))
@settings(max_examples=300, deadline=None)
def test_every_day_of_the_calendar_is_found(moment: dt.date) -> None:
    whole = dt.datetime(moment.year, moment.month, moment.day)
    clock = moment.time().replace(microsecond=0) if isinstance(moment, dt.datetime) else dt.time()
    seconds = (dt.datetime.combine(whole, clock) - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1)
    assert iso_moments(pa.array([moment.isoformat()])).tolist() == [[seconds, 0, 0, 1]]


@pytest.mark.parametrize("year", [1600, 1700, 1900, 1999, 2000, 2024, 2100, 2400])
def test_leap_days_exist_as_the_calendar_says(year: int) -> None:
    text = f"{year}-02-29"
    try:
        expected = [(dt.date.fromisoformat(text) - dt.date(1970, 1, 1)).days * 86_400, 0, 0, 1]
    except ValueError:
        expected = [0, 0, 0, 0]
    assert iso_moments(pa.array([text])).tolist() == [expected]


def test_long_numbers_with_a_plus_are_read_beside_others() -> None:
    texts = ["+1234567890.1234567", "1234567890.1234567", "x", None, "+0.25", "+12e30"]
    found, fits = short_reals(pa.array(texts, pa.string()))
    assert fits.tolist() == [True, True, False, False, True, True]
    assert found.tolist() == [1234567890.1234567, 1234567890.1234567, 0.0, 0.0, 0.25, 12e30]
