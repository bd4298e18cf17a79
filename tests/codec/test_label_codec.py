import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec.examples import codec_of, codec_of_everything, codes, invalid_text
from understudy.codec.labels import labels_as
from understudy.errors import UsageError
from understudy.schema import Boolean, Category, Integer

CODEC = codec_of_everything()
UNKNOWN = 10  # "plain" has ten labels and no other: unknown is missing


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, 2, 5, None, -1], pa.int64(), [0, 1, UNKNOWN, UNKNOWN, UNKNOWN]),
        ([1, 2, 255], pa.uint8(), [0, 1, UNKNOWN]),
        ([1, 2**64 - 1], pa.uint64(), [0, UNKNOWN]),
        ([1.0, 0.5, -0.5], pa.float64(), [0, 7, UNKNOWN]),
        ([0.5, 2.0], pa.float32(), [7, 1]),
        ([True, False], pa.bool_(), [5, UNKNOWN]),
        ([dt.date(2020, 1, 1)], pa.date32(), [6]),
        (["red", "Red", "red ", "\tred\r\n", " x ", "x"], pa.string(), [3, UNKNOWN, 3, 3, 8, 8]),
        (["Ünï", "é", "e\u0301"], pa.large_string(), [4, UNKNOWN, 9]),
        ([b"red", b"\xff"], pa.binary(), [3, UNKNOWN]),
        (["05", "5", "05.0"], pa.string(), [2, UNKNOWN, UNKNOWN]),
        (["1.0", " 2.000 ", "1.5", "1e0", "+1", "1.", "0.50"], pa.string(), [0, 1, *[UNKNOWN] * 5]),
    ],
)
def test_values_are_compared_by_their_text(values, kind, expected):
    assert codes(CODEC, "plain", values, kind) == expected
    assert CODEC.encode("plain", pa.array(values, kind).dictionary_encode()).tolist() == expected


def test_without_missing_and_other_what_cannot_be_read_is_no_label():
    assert codes(CODEC, "blank", ["", "a", "zzz", None, "A"]) == [0, 1, 2, 2, 2]
    assert CODEC.describe("blank", 2) == "unreadable"
    assert CODEC.codes_matching("blank", "unreadable").tolist() == [2]


@pytest.mark.parametrize(
    ("labels", "values", "expected"),
    [
        (("a ", " a"), ["a", " a", "a ", " a "], [0, 1, 0, 0]),
        ((" a", "a"), ["a", " a", "a "], [1, 0, 1]),
        (("1.0", "2.00"), ["1", "1.0", "1.00", "2", "2.0"], [0, 0, 0, 1, 1]),
        (("1.0", "1"), ["1", "1.0", "1.00"], [1, 0, 1]),
        (("-3", "0"), ["-3.0", "-0.0", "0.0", "-0"], [0, 1, 1, 1]),
    ],
)
def test_the_closest_spelling_wins_where_several_labels_fit(labels, values, expected):
    codec = codec_of(Category(name="c", labels=labels, missing=False))
    assert codes(codec, "c", values) == expected


def test_numbers_meet_labels_that_are_written_with_zeros():
    codec = codec_of(Category(name="c", labels=("0.0", "1.0"), missing=False))
    assert codes(codec, "c", [0, 1, 2], pa.int64()) == [0, 1, 2]
    assert codes(codec, "c", [0.0, 1.0, None], pa.float64()) == [0, 1, 2]


def test_integers_outside_64_bits_match_their_labels():
    assert codes(CODEC, "wide", [-(2**63), 2**63 - 1, 0], pa.int64()) == [0, 1, 3]
    assert codes(CODEC, "wide", [2**64 - 1, 2**63 - 1, 2**63], pa.uint64()) == [2, 1, 3]
    close = codec_of(Category(name="c", labels=("18446744073709551615", "18446744073709551614")))
    assert codes(close, "c", [-1, -2], pa.int64()) == [2, 2]


def test_integer_table_does_not_wrap():
    assert codes(CODEC, "numbered", [-1, 0, 7, 8, -2, 2**63 - 1, -(2**63), None]) == [0, 1, 2, 3, 3, 3, 3, 3]


def test_stored_integers_come_back_as_integers():
    assert labels_as(["-1", "0", None], pa.int64()).to_pylist() == [-1, 0, None]
    assert labels_as(["1", "300", "x"], pa.int8()).to_pylist() == [1, None, None]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False, None], pa.bool_()),
        ([1, 0, None], pa.int32()),
        ([1.0, 0.0, None], pa.float64()),
        (["TRUE", "false", ""], pa.string()),
        ([" Yes", "nO ", "maybe"], pa.string()),
        (["1", "0", "2"], pa.string()),
        ([" 1.00", "0.000 ", "1.5"], pa.string()),
        (["1.0", "0.0", "\0"], pa.string()),
        (["t", "F", "tf"], pa.string_view()),
        ([1, 0, 2], pa.int8()),
    ],
)
def test_booleans_in_all_their_forms(values, kind):
    assert codes(CODEC, "flag", values, kind) == [1, 0, 2]
    assert codes(CODEC, "sure", values, kind) == [1, 0, 2]


def test_a_label_named_missing_wins_over_the_word():
    codec = codec_of(Category(name="c", labels=("missing", "a")), Boolean(name="b"))
    assert codec.codes_matching("c", "missing").tolist() == [0]
    assert codec.codes_matching("b", "missing").tolist() == [2]


def test_text_that_is_not_utf8_equals_nothing():
    assert CODEC.encode("plain", invalid_text(b"red", b"\xffred", b"1")).tolist() == [3, UNKNOWN, 0]


SMALL = st.lists(st.none() | st.integers(-3, 12), min_size=1, max_size=12)


@given(SMALL, st.booleans(), st.sampled_from(["", " ", "\t"]), st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_a_number_has_one_code_however_it_is_written(values, missing, space, zeros):
    """As CSV text, as pandas writes integers with gaps, with spaces, as integers, floats, decimals and a dictionary."""
    labels = ("0", "1", "2", "-3", "11")
    columns = [
        Category(name="label", labels=labels, missing=missing),
        Integer(name="number", lower=-2, upper=10, special=(11,), missing=missing),
    ]
    flags = [value if value in (0, 1) else None for value in values]
    codec = codec_of(*columns, Boolean(name="flag", missing=missing))
    for name, listed in (("label", values), ("number", values), ("flag", flags)):
        whole = pa.array(listed, pa.int64())
        expected = codec.encode(name, whole).tolist()
        forms = [
            whole.cast(pa.float64()),
            whole.cast(pa.float32()),
            whole.cast(pa.int8()),
            whole.cast(pa.decimal128(25, 2)),
            whole.cast(pa.string()),
            pa.array(["" if value is None else str(value) for value in listed]),
            pa.array([None if value is None else f"{value}.{'0' * zeros}" for value in listed], pa.string()),
            pa.array([None if value is None else f"{space}{value}{space}" for value in listed], pa.large_string()),
        ]
        for form in [*forms, *(form.dictionary_encode() for form in forms)]:
            assert codec.encode(name, form).tolist() == expected, form.type


@pytest.mark.parametrize("text", ["1", "1.0", " 1 ", "1.00"])
def test_a_condition_on_a_label_is_read_as_a_value_would_be(text):
    codec = codec_of(Category(name="smoker", labels=("0", "1")))
    assert codec.codes_matching("smoker", text).tolist() == [1]
    with pytest.raises(UsageError, match="matches no code"):
        codec.codes_matching("smoker", "01")
