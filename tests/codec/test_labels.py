"""Tests of `understudy.codec.column`."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec.examples import codec_of, codec_of_everything, codes, invalid_text, schema_of
from understudy.codec.column import checked_pool, labels_as
from understudy.codec.table import TableCodec
from understudy.errors import UsageError
from understudy.schema import Boolean, Category, Integer, OpenCategory

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
    with pytest.raises(UsageError):
        CODEC.codes_matching("blank", "zzz")


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


# Pooled labels: kept ones as ever, rare ones to one code and back by their shares, and the file form.


TOWN = Category(name="town", labels=("Rome", "Ada", "Oslo", "Bor", "Cut"), other="elsewhere", rare="private")
POOL = (("Ada", 1.0), ("Bor", 3.0), ("Cut", 0.0))
RNG = np.random.default_rng(1)


def _codec(**changes: object) -> TableCodec:
    return TableCodec.of(schema_of(TOWN), pools={"town": POOL}, **changes)  # type: ignore[arg-type]


def test_kept_labels_come_first_then_the_common_code_then_other_and_missing() -> None:
    codec = _codec()
    assert dict(codec.domain.sizes) == {"town": 5}
    values = pa.array(["Rome", "Oslo", "Ada", "Bor", "Cut", "Paris", None])
    assert codec.encode("town", values).tolist() == [0, 1, 2, 2, 2, 3, 4]
    assert codec.encode("town", values.dictionary_encode()).tolist() == [0, 1, 2, 2, 2, 3, 4]
    shown = [codec.describe("town", code) for code in range(5)]
    assert shown == ["Rome", "Oslo", "one of 3 rare labels", "elsewhere", "missing"]
    queries = ("Oslo", "one of 3 rare labels", "missing")
    assert [codec.codes_matching("town", text).tolist() for text in queries] == [[1], [2], [4]]
    with pytest.raises(UsageError, match='ask for all of these labels with "one of 3 rare labels"'):
        codec.codes_matching("town", "Bor")
    with pytest.raises(UsageError, match="matches no code"):
        codec.codes_matching("town", "Paris")


def test_rows_of_the_common_code_are_drawn_by_the_shares() -> None:
    codes = np.array([0, 1, 2, 3, 4] * 8_000, dtype=np.uint8)
    towns = _codec().decode({"town": codes}, RNG).column("town").to_pylist()
    drawn = towns[2::5]
    assert set(drawn) == {"Ada", "Bor"}
    assert abs(drawn.count("Bor") / 8_000 - 0.75) < 6 * (0.75 * 0.25 / 8_000) ** 0.5
    assert [towns[0], towns[1], towns[3], towns[4]] == ["Rome", "Oslo", "elsewhere", None]


def test_everything_may_be_rare_and_labels_may_be_numbers() -> None:
    column = Category(name="code", labels=("7", "8"), storage="int64", missing=False, rare="private")
    codec = TableCodec.of(schema_of(column), pools={"code": (("7", 1.0), ("8", 1.0))})
    assert codec.domain.sizes["code"] == 2
    assert codec.encode("code", pa.array([7, 8, 9, None])).tolist() == [0, 0, 1, 1]
    assert [codec.describe("code", code) for code in (0, 1)] == ["one of 2 rare labels", "unreadable"]
    dropped = TableCodec.of(codec.schema, pools=codec.pools, unreadable=False)
    assert dropped.encode("code", pa.array([7, 8, 9, None])).tolist() == [0, 0, 1, 1]
    assert dropped.domain.sizes["code"] == 1  # so that 1 is no code
    assert set(codec.decode({"code": np.zeros(50, np.uint8)}, RNG).column("code").to_pylist()) == {7, 8}


def test_the_file_form_brings_the_same_codec_back() -> None:
    codec = _codec()
    document = codec.to_json()
    assert document["rare"] == {"town": ["Ada", "Bor", "Cut"]}
    again = TableCodec.from_json(codec.schema, document)
    assert again.pools == codec.pools == {"town": POOL}
    assert again.domain == codec.domain
    assert "rare" not in TableCodec.of(codec.schema).to_json()


@pytest.mark.parametrize(
    "change",
    [
        {"shares": {"town": [1.0]}},
        {"shares": {}},
        {"rare": {"town": ["Ada", "Bor", 3]}},
        {"shares": {"town": [1.0, -1.0, 2.0]}},
        {"shares": {"town": [0.0, 0.0, 0.0]}},
        {"rare": {"town": ["Ada", "Ada", "Bor"]}},
        {"rare": {"town": ["Ada", "Bor", "Paris"]}},
    ],
)
def test_other_file_forms_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        TableCodec.from_json(_codec().schema, {**_codec().to_json(), **change})


def test_pools_are_only_for_columns_that_ask_for_them() -> None:
    plain = schema_of(Category(name="town", labels=TOWN.labels))
    with pytest.raises(UsageError, match="needs at least two of its labels"):
        TableCodec.of(plain, pools={"town": POOL})
    with pytest.raises(UsageError, match="needs at least two"):
        checked_pool("town", TOWN.labels, (("Ada", 1.0),))
    with pytest.raises(UsageError, match="shares"):
        checked_pool("town", TOWN.labels, (("Ada", float("nan")), ("Bor", 1.0)))


def described(codec, name, values, kind=None):
    return [codec.describe(name, code) for code in codes(codec, name, values, kind)]


def test_case_is_ignored_only_where_the_column_says_so_and_after_the_exact_rules():
    labels = ("Yes", "no", "Straße", "7")
    values = ["YES", " yes", "No ", "STRASSE", "7.0", "straße", "ye", b"\xffes"]
    folded = codec_of(Category(name="c", labels=labels, other="?", ignore_case=True))
    assert described(folded, "c", values, pa.binary()) == ["Yes", "Yes", "no", "Straße", "7", "Straße", "?", "?"]
    exact = codec_of(Category(name="c", labels=labels, other="?"))
    assert described(exact, "c", values, pa.binary()) == ["?", "?", "?", "?", "7", "?", "?", "?"]
    typed = codec_of(Category(name="c", labels=("TRUE", "x"), ignore_case=True, missing=False))
    assert described(typed, "c", [True, False]) == ["TRUE", "unreadable"]


def test_texts_that_mean_no_value_come_after_all_labels():
    both = {"labels": ("NA", "1", "x"), "other": "?"}
    usual = codec_of(Category(name="c", **both))
    assert described(usual, "c", ["NA", " N/A", "NULL", ".", "-", "na", "n/a"]) == ["NA", *["missing"] * 4, "?", "?"]
    own = codec_of(Category(name="c", missing_values=("-9", "none "), **both))
    assert described(own, "c", ["N/A", "-9", "-9.0", " none", "None", ""]) == [
        "?",
        "missing",
        "missing",
        "missing",
        "?",
        "missing",
    ]
    assert described(own, "c", [-9, 1, 5]) == ["missing", "1", "?"]
    assert described(own, "c", [-9.0, 1.0, 0.5]) == ["missing", "1", "?"]
    nothing = codec_of(Category(name="c", missing_values=(), **both))
    assert described(nothing, "c", ["N/A", ".", " "]) == ["?", "?", "missing"]
    folded = codec_of(Category(name="c", labels=("na", "x"), other="?", ignore_case=True))
    assert described(folded, "c", ["NA", "NULL", "null", "X"]) == ["na", "missing", "?", "x"]


def test_a_discovered_label_wins_over_the_usual_words():
    codec = codec_of(OpenCategory(name="o"), labels={"o": ["NA", "cook"]})
    assert described(codec, "o", ["NA", "NULL", "cook"]) == ["NA", "missing", "cook"]
