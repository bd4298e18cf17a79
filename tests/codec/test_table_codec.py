import datetime as dt
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec.examples import (
    ARRAYS,
    COLUMNS,
    EDGES,
    LABELS,
    NAMES,
    codec_of,
    codec_of_everything,
    codes,
    invalid_text,
    schema_of,
)
from understudy.codec.table import TableCodec
from understudy.errors import UsageError
from understudy.schema import (
    Boolean,
    Category,
    Date,
    Derived,
    Float,
    Integer,
    LinearSum,
    OpenCategory,
    PrivateBins,
    Schema,
    Time,
    UniformBins,
    Unit,
)

CODEC = codec_of_everything()


def all_codes(repeats):
    """Every code of every column, `repeats` times, in columns of equal length."""
    longest = max(CODEC.domain.sizes.values())
    rows = np.tile(np.arange(longest), repeats)
    return {name: (rows % size).astype(CODEC.dtype(name)) for name, size in CODEC.domain.sizes.items()}


@given(ARRAYS)
@settings(max_examples=300, deadline=None)
def test_no_content_raises_and_every_value_is_coded_by_itself(array):
    for name in NAMES:
        together = CODEC.encode(name, array)
        assert together.dtype == CODEC.dtype(name)
        assert len(together) == len(array)
        assert (together < CODEC.domain.sizes[name]).all()
        alone = [CODEC.encode(name, array.slice(row, 1))[0] for row in range(min(len(array), 3))]
        assert alone == together[:3].tolist(), name


@pytest.mark.parametrize("name", NAMES)
def test_nulls_of_every_type_are_absent(name):
    layout_absent = CODEC.encode(name, pa.nulls(1))[0]
    assert codes(CODEC, name, [None], pa.string()) == [layout_absent]
    assert codes(CODEC, name, [None], pa.list_(pa.int8())) == [layout_absent]
    assert codes(CODEC, name, [float("nan")]) == [layout_absent]
    assert CODEC.encode(name, pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), ["1"]))[0] == layout_absent


@given(st.integers(0, 2**32))
@settings(max_examples=12, deadline=None)
def test_decoded_codes_come_back(seed):
    given_codes = all_codes(5)
    table = CODEC.decode(given_codes, np.random.default_rng(seed))
    assert table.schema == CODEC.arrow_schema
    for name in NAMES:
        assert (CODEC.encode(name, table[name]) == given_codes[name]).all(), name


@pytest.mark.parametrize("column", COLUMNS, ids=NAMES)
def test_text_and_typed_values_get_the_same_code(column):
    table = CODEC.decode(all_codes(5), np.random.default_rng(3))
    typed = table[column.name]
    text = typed.cast(pa.large_string())
    same = CODEC.encode(column.name, text) == CODEC.encode(column.name, typed)
    assert same.all()
    assert (CODEC.encode(column.name, text.dictionary_encode()) == CODEC.encode(column.name, text)).all()


def test_decoding_is_repeatable_and_seeded():
    first, second = (CODEC.decode(all_codes(2), np.random.default_rng(8)) for _ in range(2))
    assert first.equals(second)
    assert not first.equals(CODEC.decode(all_codes(2), np.random.default_rng(9)))


def test_chunks_and_slices_do_not_matter():
    whole = pa.array(["1", None, "red", "?", ""] * 20)
    chunked = pa.chunked_array([whole.slice(0, 7), whole.slice(7, 0), whole.slice(7)])
    assert (CODEC.encode("plain", chunked) == CODEC.encode("plain", whole)).all()
    assert CODEC.encode("plain", pa.chunked_array([], pa.string())).shape == (0,)


def test_one_bad_value_spoils_no_other():
    array = invalid_text(b"7", b"\xff\xfe", b"12", b"\x00", b"7")
    assert CODEC.encode("age", array).tolist() == [7, 91, 12, 91, 7]
    assert CODEC.encode("plain", invalid_text(b"1", b"\xff"))[0] == 0


def test_layout_is_regular_special_other_missing():
    codec = codec_of(
        Category(name="c", labels=("a", "b"), other="rest"),
        Integer(name="n", lower=0, upper=2, special=(99,)),
    )
    assert codec.domain.sizes == {"c": 4, "n": 5}
    assert codes(codec, "c", ["a", "b", "?", None, ""]) == [0, 1, 2, 3, 3]
    assert codes(codec, "n", [0, 1, 2, 99, None, -5, 98]) == [0, 1, 2, 3, 4, 0, 2]


def test_smallest_code_type():
    codec = codec_of(
        Integer(name="n9", lower=1, upper=9),
        Category(name="c255", labels=tuple(map(str, range(255))), missing=False),
        Category(name="c256", labels=tuple(map(str, range(256))), missing=False),
        Category(name="c70000", labels=tuple(map(str, range(70_000))), missing=False),
    )
    assert [codec.dtype(name).name for name in codec.domain.columns] == ["uint8", "uint8", "uint16", "uint32"]
    assert codes(codec, "c70000", [69_999]) == [69_999]


ODD = (
    Category(name="both", labels=("a",), other="rest"),
    Category(name="other", labels=("a",), other="rest", missing=False),
    Category(name="gaps", labels=("a",)),
    Category(name="closed", labels=("a",), missing=False),
    Boolean(name="flag", missing=False),
    Integer(name="number", lower=0, upper=1, special=(9,), missing=False),
    Float(name="real", lower=0.0, upper=2.0, bins=UniformBins(2)),
    Date(name="day", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 1, 2), missing=False),
    Time(name="clock", bins=UniformBins(2), missing=False),
    Integer(name="parts", lower=0, upper=1, split=(2,), missing=False),
)
GAPS = ("", "  ", None)
RUBBISH = ("NA", "€ 12.00", "1,234.50", "31/12/2020", "tr ue", "x" * 5000)


def _meanings(codec, name, values):
    return {
        codec.describe(name, code) if code < codec.domain.sizes[name] else None for code in codes(codec, name, values)
    }


@pytest.mark.parametrize(
    ("name", "gap", "rubbish"),
    [
        ("both", "missing", "rest"),
        ("other", "rest", "rest"),
        ("gaps", "missing", "missing"),
        ("real", "missing", "missing"),
        *((name, "unreadable", "unreadable") for name in ("closed", "flag", "number", "day", "clock", "parts.size")),
        ("parts.kind", "no number", "no number"),
    ],
)
def test_what_is_not_there_and_what_cannot_be_read_is_never_a_label_or_a_bin(name, gap, rubbish):
    codec = codec_of(*ODD)
    assert _meanings(codec, name, GAPS) == {gap}
    assert _meanings(codec, name, RUBBISH) == {rubbish}
    own = codec.unreadable_code(name)
    if gap == "unreadable":
        assert codec.codes_matching(name, "unreadable").tolist() == [own]
        assert own == codec.domain.sizes[name] - 1
    dropped = TableCodec.of(codec.schema, unreadable=False)
    expected = None if gap in ("unreadable", "no number") else rubbish
    assert _meanings(dropped, name, RUBBISH) == {expected}
    assert (name in dropped.leaving_out) == (expected is None)


@pytest.mark.parametrize(
    "name", ["both", "other", "gaps", "closed", "flag", "number", "real", "day", "clock", "parts.size"]
)
def test_a_judging_codec_tells_absent_from_unreadable(name):
    codec = TableCodec.of(codec_of(*ODD).schema, judging=True)
    assert _meanings(codec, name, GAPS) == {"missing"}
    assert _meanings(codec, name, RUBBISH) == {"rest" if name in ("both", "other") else "unreadable"}
    assert not codec.leaving_out
    assert codes(codec, name, [float("nan"), 12.5]) != codes(codec, name, [12.5, float("nan")])
    assert codec.missing_code(name) is not None


def test_unreadable_values_come_back_as_nulls():
    codec = TableCodec.of(codec_of(*ODD).schema, judging=True)
    for word in ("missing", "unreadable"):
        for name in ("closed", "flag", "number", "real", "day", "clock"):
            chosen = {other: np.zeros(1, np.int64) for other in codec.domain.columns}
            chosen[name] = codec.codes_matching(name, word)
            assert codec.decode(chosen, np.random.default_rng(0))[name].to_pylist() == [None]


def test_a_document_of_the_first_format_has_no_code_for_what_cannot_be_read():
    codec = codec_of(*ODD)
    old = TableCodec.from_json(codec.schema, {"labels": {}, "edges": {}})
    assert old.domain.sizes["closed"] == 1 == codec.domain.sizes["closed"] - 1
    assert "unreadable" not in old.to_json()
    assert codec.to_json()["unreadable"] is True


def test_a_schema_may_ask_to_drop_what_cannot_be_read():
    schema = Schema(columns=ODD, unit=Unit(), unreadable="drop")
    codec = TableCodec.of(schema)
    assert codec.domain == TableCodec.of(codec_of(*ODD).schema, unreadable=False).domain
    assert TableCodec.from_json(schema, codec.to_json()).domain == codec.domain


def test_unsettled_columns_are_named():
    schema = schema_of(OpenCategory(name="town"), Integer(name="pay", lower=0, upper=9, bins=PrivateBins(3)))
    with pytest.raises(UsageError, match="town"):
        TableCodec.of(schema)
    with pytest.raises(UsageError, match="pay"):
        TableCodec.of(schema, {"town": ["x"]})
    assert TableCodec.of(schema, {"town": ["x"]}, columns=["town"]).domain.columns == ("town",)
    with pytest.raises(UsageError, match="Did you mean"):
        TableCodec.of(schema, {"twon": ["x"]})


def test_discovered_labels_never_double_other_or_missing():
    assert [CODEC.describe("open", code) for code in range(5)] == ["x", "y", "5", "other", "missing"]
    assert codes(CODEC, "open", ["x", "5", "other", "zzz", "", None]) == [0, 2, 3, 3, 4, 4]
    assert codes(CODEC, "open", [5.0, 6.0]) == [2, 3]


def test_json_rebuilds_the_codec():
    document = json.loads(json.dumps(CODEC.to_json()))
    again = TableCodec.from_json(CODEC.schema, document)
    assert again.domain == CODEC.domain
    assert again.to_json() == CODEC.to_json()
    assert set(document) == {"labels", "edges", "unreadable"}
    table = CODEC.decode(all_codes(1), np.random.default_rng(1))
    assert all((again.encode(name, table[name]) == CODEC.encode(name, table[name])).all() for name in NAMES)


@pytest.mark.parametrize(
    "document",
    [
        {"labels": {"open": [1]}, "edges": EDGES},
        {"labels": {"open": ["\ud800"]}, "edges": EDGES},
        {"labels": LABELS, "edges": {**EDGES, "chosen": [float("nan")]}},
        {"labels": LABELS, "edges": {**EDGES, "age": [1, 2]}},
        {"labels": {**LABELS, "plain": ["x"]}, "edges": EDGES},
        {"labels": [], "edges": EDGES},
        {"labels": LABELS, "edges": EDGES, "unreadable": 1},
        {},
    ],
)
def test_documents_that_do_not_fit_are_refused(document):
    with pytest.raises(UsageError):
        TableCodec.from_json(CODEC.schema, document)


def test_edges_from_numpy_can_be_written():
    schema = schema_of(Integer(name="pay", lower=0, upper=9, bins=PrivateBins(3)))
    codec = TableCodec.of(schema, edges={"pay": np.asarray([0, 3, 9])})
    assert json.loads(json.dumps(codec.to_json()))["edges"] == {"pay": [0, 3, 9]}


def test_describe_and_matching_agree():
    assert CODEC.describe("banded", 1) == "[18, 65)"
    assert CODEC.describe("banded", 2) == "[65, 100]"
    assert CODEC.codes_matching("banded", "18..100").tolist() == [1, 2]
    assert CODEC.codes_matching("banded", "missing").tolist() == [3]
    assert CODEC.codes_matching("income", "999998").tolist() == CODEC.encode("income", pa.array([999_998])).tolist()
    with pytest.raises(UsageError) as refused:
        CODEC.codes_matching("german", "01.01.2000")
    (whole,) = re.findall(r'"([^"]+)"', str(refused.value))
    own = "..".join(dt.date.fromisoformat(end).strftime("%d.%m.%Y") for end in whole.split(".."))
    assert CODEC.codes_matching("german", own).tolist() == CODEC.codes_matching("german", whole).tolist()
    assert CODEC.codes_matching("flag", "Yes").tolist() == [1]
    for bad in ("nowhere", "x..y"):
        with pytest.raises(UsageError):
            CODEC.codes_matching("age", bad)
    with pytest.raises(UsageError, match="codes below"):
        CODEC.describe("age", 500)
    with pytest.raises(UsageError, match="Did you mean"):
        CODEC.describe("agee", 0)


@pytest.mark.parametrize("name", NAMES)
def test_every_code_has_words_of_its_own(name):
    words = [CODEC.describe(name, code) for code in range(CODEC.domain.sizes[name])]
    assert len(set(words)) == len(words)


def test_types_come_from_the_schema_even_without_rows():
    empty = CODEC.decode({name: np.zeros(0, CODEC.dtype(name)) for name in NAMES}, np.random.default_rng(0))
    assert empty.schema == CODEC.arrow_schema
    assert CODEC.arrow_schema.field("instant").type == pa.timestamp("us", "Europe/Berlin")
    assert CODEC.arrow_schema.field("numbered").type == pa.int64()
    assert CODEC.arrow_schema.field("shift").type == pa.string()


def test_columns_keep_schema_order_with_derived_ones_between():
    codec = codec_of(
        Integer(name="a", lower=0, upper=5),
        Derived(name="twice", formula=LinearSum({"a": 2.0})),
        Integer(name="b", lower=0, upper=5),
    )
    table = codec.decode({"a": np.asarray([2, 6], "u1"), "b": np.asarray([0, 1], "u1")}, np.random.default_rng(0))
    assert table.column_names == ["a", "twice", "b"]
    assert table["twice"].to_pylist() == [4, None]
    assert "twice" not in codec.domain.columns


def test_dates_far_outside_fall_into_the_end_bins():
    assert codes(CODEC, "born", [dt.date(1, 1, 1), dt.date(9999, 12, 31)]) == [0, 31]
    assert codes(CODEC, "age", ["1e999", "-1e999", "inf", "99999999999999999999999"]) == [90, 0, 90, 90]
    assert LABELS["open"][0] == "x"


def test_groups_of_a_category_are_its_taxonomy() -> None:
    city = Category(
        name="city",
        labels=("Basel", "Bern", "Genf", "Thun", "Lugano"),
        other="elsewhere",
        groups={"Bern": "BE", "Thun": "BE", "Basel": "BS", "Genf": "GE"},
    )
    plain = Category(name="sex", labels=("F", "M"))
    codec = TableCodec.of(Schema(columns=(city, plain), unit=Unit()))
    assert list(codec.taxonomies) == ["city"]
    # Basel; Bern and Thun; Genf; Lugano, elsewhere and missing each on their own.
    assert codec.taxonomies["city"].tolist() == [0, 1, 2, 1, 3, 4, 5]
