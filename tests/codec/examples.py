"""Columns of every kind, and Arrow arrays of every type, for the tests of this room."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from understudy.codec.table import TableCodec
from understudy.schema import (
    Boolean,
    Category,
    Date,
    Datetime,
    Float,
    GivenBins,
    Integer,
    OpenCategory,
    PrivateBins,
    Schema,
    Time,
    UniformBins,
    Unit,
)

UTC = dt.UTC
DAY = dt.date(1990, 1, 1)
LAST = dt.date(2020, 12, 31)
START, STOP = dt.datetime(2020, 1, 1), dt.datetime(2021, 6, 1, 12)
ZONED = {"lower": START.replace(tzinfo=UTC), "upper": STOP.replace(tzinfo=UTC), "zone": "Europe/Berlin"}

COLUMNS = (
    Category(name="plain", labels=("1", "2", "05", "red", "Ünï", "true", "2020-01-01", "0.5", " x ", "e\u0301")),
    Category(name="numbered", labels=("-1", "0", "7"), other="99", missing=False, storage="int64"),
    Category(name="wide", labels=("-9223372036854775808", "9223372036854775807", "18446744073709551615")),
    Category(name="blank", labels=("", "a"), missing=False),
    Category(name="cased", labels=("Yes", "no ", "Straße", "na"), other="?", ignore_case=True),
    Category(name="gapped", labels=("1", "NA"), other="?", missing_values=("-9", "1.0 unknown")),
    OpenCategory(name="open"),
    Boolean(name="flag"),
    Boolean(name="sure", missing=False),
    Integer(name="age", lower=0, upper=90),
    Integer(name="income", lower=0, upper=10**6, special=(999_998, 0, -1), missing=False),
    Integer(name="stepped", lower=3, upper=5000, step=7, bins=UniformBins(9), storage="int16"),
    Integer(name="banded", lower=0, upper=100, bins=GivenBins((0, 18, 65, 100))),
    Integer(name="chosen", lower=-(10**12), upper=10**12, bins=PrivateBins(5)),
    Integer(name="floating", lower=0, upper=9, storage="double"),
    Integer(name="euros", lower=0, upper=90, decimal=",", thousands=".", prefix="€", parentheses=True),
    Integer(
        name="gappy", lower=0, upper=99, missing_values=("99", "-99", "50.5", "?"), special=(98,), bins=UniformBins(50)
    ),
    Float(name="share", lower=0.0, upper=100.0, decimals=1, suffix="%", thousands="'", missing_values=("100", "7 %")),
    Float(name="rate", lower=-1.0, upper=1.0),
    Float(name="price", lower=0.0, upper=10.0, decimals=2, special=(0.0, -9.0)),
    Float(name="coarse", lower=0.0, upper=3.0, decimals=0),
    Float(name="huge", lower=-1e308, upper=1e307, missing=False),
    Float(name="single", lower=0.0, upper=0.7, bins=UniformBins(7), storage="float"),
    Float(name="split", lower=0.0, upper=1.0, bins=PrivateBins(4)),
    Date(name="born", lower=DAY, upper=LAST),
    Date(name="old", lower=DAY, upper=LAST, missing_values=("1990-01-01", "01/01/1900", "?")),
    Date(name="german", lower=DAY, upper=LAST, format="%d.%m.%Y", storage="string"),
    Date(name="compact", lower=DAY, upper=LAST, format="%Y%m%d", storage="large_string", missing=False),
    Date(name="worded", lower=DAY, upper=LAST, format="%b %d, %Y", storage="string"),
    Date(name="weekly", lower=DAY, upper=LAST, format="%G-W%V-%u", storage="string"),
    Datetime(name="wall", lower=START, upper=STOP, resolution=60),
    Datetime(name="instant", **ZONED),
    Datetime(name="instant_text", **ZONED, storage="string"),
    Datetime(name="seconds", **ZONED, storage="timestamp[s]", bins=UniformBins(3)),
    Time(name="clock"),
    Time(name="shift", lower=dt.time(8), upper=dt.time(20), resolution=900, format="%I:%M %p", storage="string"),
)
LABELS = {"open": ["x", "y", "5", "other", ""]}
EDGES = {"chosen": [-(10**12), -5, 0, 1000, 10**12], "split": [0.0, 0.125, 0.5, 1.0]}
NAMES = tuple(column.name for column in COLUMNS)


def schema_of(*columns, rules=()):
    return Schema(columns=columns, unit=Unit(), rules=rules)


def codec_of(*columns, rules=(), labels=None, edges=None):
    return TableCodec.of(schema_of(*columns, rules=rules), labels, edges)


def codec_of_everything():
    return TableCodec.of(schema_of(*COLUMNS), LABELS, EDGES)


def codes(codec, name, values, kind=None):
    return codec.encode(name, pa.array(values, kind)).tolist()


def invalid_text(*pieces):
    """A string array that holds any bytes at all, as a careless writer may build it."""
    offsets = np.cumsum([0, *map(len, pieces)]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(pieces))]
    return pa.Array.from_buffers(pa.string(), len(pieces), buffers)


_TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        [
            *("", " ", "1", " 1 ", "1.0", "+7", "-0", "1e5", "1e999", "-1e999", "inf", "-Infinity", "nan", "0x10"),
            *("1_000", "٣", "9" * 30, "0" * 40 + "7", ".5", "5.", "1e-400", "true", "FALSE", "yes", "\0", "2020-02-30"),
            *("2020-1-1", "2020-03-29 02:30:00", "2020-10-25T02:30:00+01:00", "2020-10-25 02:30Z", "31.12.1999"),
            *("20200131", "24:00", "23:59:60", "Feb 29, 2019", "08:15 pm", "12:00 AM", "9:30", "1990-W01-1"),
            *("0000-01-01", "9999-12-31"),
        ]
    ),
)
_ANY64 = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, 1, -1, 999_998, 2**63 - 1, -(2**63)]), st.integers(-9, 99)
)


def _ints(bits, *, signed):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.one_of(st.integers(low, high), st.integers(max(low, -5), 100))


def _raw(kind, elements=_ANY64):
    """Arrays of a 64- or 32-bit type built from raw numbers, out-of-range ones included."""
    return st.lists(st.none() | elements, max_size=12).map(
        lambda items: pa.array(items, pa.int64() if kind.bit_width == 64 else pa.int32()).view(kind)
    )


def _typed(elements, kind):
    return st.lists(st.none() | elements, max_size=12).map(lambda items: pa.array(items, kind))


_FLOATS = st.one_of(
    st.floats(), st.sampled_from([0.0, -0.0, 1e308, -1e308, 5.0, 0.5, 0.7, float("nan"), float("inf"), 2.0**63])
)
_INT32 = st.integers(-(2**31), 2**31 - 1)

ARRAYS = st.one_of(
    st.integers(0, 9).map(pa.nulls),
    _typed(st.booleans(), pa.bool_()),
    *[_typed(_ints(bits, signed=True), getattr(pa, f"int{bits}")()) for bits in (8, 16, 32, 64)],
    *[_typed(_ints(bits, signed=False), getattr(pa, f"uint{bits}")()) for bits in (8, 16, 32, 64)],
    _typed(_FLOATS, pa.float64()),
    _typed(st.floats(width=32), pa.float32()),
    _typed(st.floats(width=16).map(np.float16), pa.float16()),
    _typed(st.decimals(-(10**8), 10**8, places=3), pa.decimal128(20, 3)),
    _typed(st.decimals(-(10**8), 10**8, places=0), pa.decimal256(50, 0)),
    _typed(st.integers(-9, 99).map(Decimal), pa.decimal32(5, 1)),
    _typed(st.integers(-9, 99).map(Decimal), pa.decimal64(12, 2)),
    *[_typed(_TEXTS, kind) for kind in (pa.string(), pa.large_string(), pa.string_view())],
    *[_typed(st.binary(max_size=6), kind) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())],
    _typed(st.binary(min_size=3, max_size=3), pa.binary(3)),
    st.lists(st.binary(max_size=6), min_size=1, max_size=8).map(lambda pieces: invalid_text(*pieces)),
    _raw(pa.date32(), _INT32),
    _raw(pa.date64()),
    *[_raw(pa.timestamp(unit, zone)) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Asia/Tokyo")],
    _raw(pa.timestamp("us", "Nowhere/Atall")),
    _raw(pa.timestamp("ms", "-03:30")),
    _raw(pa.time32("s"), _INT32),
    _raw(pa.time64("ns")),
    _raw(pa.duration("ms")),
    _typed(st.lists(st.integers(0, 3), max_size=2), pa.list_(pa.int8())),
    _typed(st.fixed_dictionaries({"a": st.integers(0, 3)}), pa.struct([("a", pa.int8())])),
    _typed(_TEXTS, pa.string()).map(lambda array: array.dictionary_encode()),
    _typed(st.integers(-5, 100), pa.int64()).map(lambda array: array.dictionary_encode()),
)
