import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.codec.reading import read_reals, read_wholes

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
