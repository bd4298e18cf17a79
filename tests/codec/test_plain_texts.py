"""Plain texts have the codes that the general way gives them, and so has every text that is nearly plain."""

import datetime as dt
import itertools
import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec.examples import codec_of
from understudy.codec import table
from understudy.codec.plain_texts import code_plain_texts
from understudy.codec.table import TableCodec
from understudy.schema import Category, Date, Datetime, Float, Integer, UniformBins

COLUMNS = (
    Integer(name="few", lower=-5, upper=120, special=(999,), missing_values=("-9", "77.0")),
    Integer(name="far", lower=-(10**15), upper=10**17, bins=UniformBins(30), missing_values=("12345678",)),
    Integer(name="split", lower=-50, upper=12_000, split=(100, 10), special=(-1,)),
    Float(name="real", lower=-3.0, upper=7.0, bins=UniformBins(30), special=(0.1,), missing_values=("6.5", "-0.25")),
    Float(name="tenths", lower=0.0, upper=1.0, bins=UniformBins(10), missing=False),
    Date(name="day", lower=dt.date(1899, 1, 1), upper=dt.date(2101, 1, 1), missing_values=("1900-01-01",)),
    Datetime(
        name="moment", lower=dt.datetime(1600, 1, 1), upper=dt.datetime(2400, 1, 1), bins=UniformBins(40), missing=False
    ),
)
CODEC = codec_of(*COLUMNS)
NAMES = CODEC.domain.columns


@pytest.fixture(autouse=True)
def no_array_is_too_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "LEAST_ROWS", 0)


def general(codec: TableCodec, name: str, array: pa.Array) -> list[int]:
    """By regular expressions, a few texts at a time: of many the general way reads some by loops of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "LEAST_ROWS", 1 << 60)
        parts = [codec.encode(name, array.slice(start, 2_000)).tolist() for start in range(0, len(array), 2_000)]
    return list(itertools.chain.from_iterable(parts))


def check(texts: list[bytes | None], names: tuple[str, ...] = NAMES) -> None:
    raw = pa.array([None, *texts], pa.large_binary())
    array = pc.cast(raw, options=pc.CastOptions.unsafe(pa.large_string()))
    for name, start in itertools.product(names, (0, 1)):
        part = array.slice(start)
        assert CODEC.encode(name, part).tolist() == general(CODEC, name, part), name


BYTES = (*range(0, 64), *b"ATZatzeE", 127, 128, 176, 185, 186, 255)
DIGITS = st.text("0123456789", max_size=20)
NUMBERS = st.builds("{}{}{}{}{}".format, st.sampled_from(("", "", "-", "+", " ")), DIGITS, st.sampled_from(("", ".")),
                    DIGITS, st.sampled_from(("", "", "", "e3", " ")))  # fmt: skip
MOMENTS = st.builds(
    "{}{}{}{}".format,
    st.dates(dt.date(1, 1, 1)).map(str) | st.from_regex(r"[0-9]{4}-[0-3][0-9]-[0-3][0-9]", fullmatch=True),
    st.sampled_from(("", " ", "T", "t", "x")),
    st.sampled_from(("", "12:30")) | st.times().map(str),
    st.sampled_from(("", "", "Z", "z", "+02:00", " ", ".")),
)


@given(st.lists(NUMBERS | MOMENTS | st.text(max_size=12) | st.none(), max_size=40))
@settings(max_examples=50, deadline=None)
def test_every_text_has_its_code_whatever_stands_around_it(texts: list[str | None]) -> None:
    check([None if text is None else text.encode() for text in texts])


@pytest.mark.parametrize("text", [b"-103", b"12345678", b"6.5", b"-12.25", b"123456789.5", b"0.12345678901234567"])
def test_one_byte_off_a_number(text: bytes) -> None:
    changed = [text[:at] + bytes([byte]) + text[at + 1 :] for at in range(len(text)) for byte in BYTES]
    check([text, *(one for one in changed if one.isascii() or one[0] != 45)], ("few", "far", "real"))


@pytest.mark.parametrize("text", [b"2024-02-29", b"1999-12-31T23:59:59", b"2000-01-01 00:00:00.25Z"])
def test_one_byte_off_a_moment(text: bytes) -> None:
    changed = [text[:at] + bytes([byte]) + text[at + 1 :] for at in range(len(text)) for byte in BYTES]
    check([text, *changed, *(text[:at] for at in range(len(text))), text + b"0"], ("day", "moment"))


def test_every_day_around_the_ends_of_months_and_leap_years() -> None:
    years = (0, 4, 100, 400, 1582, 1600, 1700, 1899, 1900, 1970, 1999, 2000, 2023, 2024, 2100, 9999)
    days = [f"{y:04d}-{m:02d}-{d:02d}" for y in years for m in range(14) for d in (0, 1, 28, 29, 30, 31, 32)]
    check([day.encode() for day in days], ("day", "moment"))


def test_decimals_beside_every_edge_and_special_value() -> None:
    """Of 15 digits and more, where one division need not round as it should."""
    column = CODEC._columns["real"]
    marks = [*column.edges, *column.avoid, *CODEC._columns["tenths"].edges]  # type: ignore[attr-defined]
    texts = []
    for mark in marks:
        near = [mark]
        for towards in (-math.inf, math.inf):
            one = mark
            for _ in range(6):
                one = float(np.nextafter(one, towards))
                near.append(one)
        texts += [f"{one:.{digits}f}" for one in near for digits in (13, 14, 15, 16, 17, 18, 20)]
        texts += [repr(one) for one in near]
    written = ("1", "99999999999", "9007199254740993", "98765432109876543210", "1234567x90123456")
    texts += [f"{sign}0.{'0' * zeros}{one}" for sign in ("", "-") for zeros in range(12) for one in written]
    check([text.encode() for text in texts], ("real", "tenths"))


def test_what_is_left_to_the_general_way_is_little() -> None:
    """Else the loops here would be right by leaving everything to others."""
    rng = np.random.default_rng(1)
    texts = {
        "few": [str(number) for number in rng.integers(-200, 200, 500)],
        "real": [f"{one!r}" for one in rng.normal(size=500).tolist()] + [f"{one / 8:.2f}" for one in range(500)],
        "day": [str(dt.date(1950, 1, 1) + dt.timedelta(int(days))) for days in rng.integers(0, 30_000, 500)],
        "moment": [f"20{year:02d}-03-04T05:06:07.5Z" for year in range(100)],
    }
    for name, written in texts.items():
        reader = CODEC._codec(name)
        kind = reader.text_kind
        assert kind is not None
        way = reader.one_pass(kind)
        assert way is not None
        others = code_plain_texts(kind, way, pa.array(written), 0, np.zeros(len(written), np.uint8))
        assert len(others) <= len(written) / 10, name


def test_columns_whose_text_has_a_form_of_its_own_are_left_alone() -> None:
    own = codec_of(
        Integer(name="grouped", lower=0, upper=9_999, thousands="'"),
        Float(name="comma", lower=0.0, upper=9.0, decimal=",", bins=UniformBins(9)),
        Date(name="american", lower=dt.date(2020, 1, 1), upper=dt.date(2021, 1, 1), format="%m/%d/%Y"),
        Datetime(name="zoned", lower=dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
                 upper=dt.datetime(2021, 1, 1, tzinfo=dt.UTC), zone="Asia/Tokyo", bins=UniformBins(9)),
        Category(name="label", labels=("1", "2.5")),
    )  # fmt: skip
    texts = pa.array(["1'234", "1,5", "1.5", "02/03/2020", "2020-02-03", "2020-02-03 04:05:06", "2.5", None])
    for name in own.domain.columns:
        assert own._codec(name).text_kind is None
        assert own.encode(name, texts).tolist() == general(own, name, texts)
