"""Tests of `understudy.codec.table`."""

import datetime as dt
import itertools
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
from tests.methods.door import VOTERS, letters
from understudy.codec.table import MergedCodec, TableCodec
from understudy.errors import SchemaError, UsageError
from understudy.schema import (
    Boolean,
    Category,
    Cut,
    Date,
    Derived,
    Float,
    GivenBins,
    Impossible,
    Integer,
    LinearSum,
    Lookup,
    OpenCategory,
    PrivateBins,
    Range,
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
@settings(max_examples=150, deadline=None)
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
GAPS = ("", "  ", None, "NA", " N/A", "NULL", ".", "- ")
RUBBISH = ("n.a.", "--", "€ 12.00", "1,234.50", "31/12/2020", "tr ue", "x" * 5000)


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


# Merged codes: for counting alone, each by its own value, and never of a column that a rule names.


SCHEMA = letters({"a": 5, "b": 3})
PLACES = {"a": np.array([2, 0, 2, 1, 2])}


def test_codes_are_those_of_the_full_codec_sent_to_their_places() -> None:
    full = TableCodec.of(SCHEMA)
    merged = MergedCodec(full, PLACES)
    values = pa.array(["0", "1", "2", "3", "4", "unheard of", None])
    places = [*PLACES["a"].tolist(), 3]  # a value without a code, here one past the last, stays without one
    assert merged.encode("a", values).tolist() == [places[code] for code in full.encode("a", values).tolist()]
    assert merged.encode("b", values).tolist() == full.encode("b", values).tolist()
    assert dict(merged.domain.sizes) == {"a": 3, "b": 3}
    assert merged.merged == {"a"}
    assert merged.dtype("a") == np.uint8
    assert dict(full.domain.sizes) == {"a": 5, "b": 3}


def test_a_value_without_a_code_stays_without_one() -> None:
    """In a table that drops unreadable rows, the number past the last code must not land on a merged code."""
    full = TableCodec.of(SCHEMA, unreadable=False)
    merged = MergedCodec(full, PLACES)
    assert full.leaving_out == ("a", "b")
    assert merged.encode("a", pa.array(["1", "unheard of"])).tolist() == [0, merged.domain.sizes["a"]]
    assert dict(merged.readable.sizes) == {"a": 3, "b": 3}


def test_merging_twice_names_both_columns() -> None:
    again = MergedCodec(MergedCodec(TableCodec.of(SCHEMA), PLACES), {"b": np.array([0, 1, 1])})
    assert again.merged == {"a", "b"}
    assert again.encode("a", pa.array(["4"])).tolist() == [2]
    assert dict(again.domain.sizes) == {"a": 3, "b": 2}


def test_merged_codes_have_no_values() -> None:
    with pytest.raises(UsageError, match="cannot be decoded"):
        MergedCodec(TableCodec.of(SCHEMA), PLACES).decode(
            {"a": np.zeros(1, np.int64), "b": np.zeros(1, np.int64)}, np.random.default_rng(0)
        )


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ({"c": np.zeros(5, np.int64)}, "is not a column"),
        ({"a": np.zeros(4, np.int64)}, "each of its 5 codes"),
        ({"a": np.array([0, 0, 2, 2, 2])}, "without a gap"),
        ({"a": np.array([-1, 0, 0, 0, 0])}, "without a gap"),
    ],
)
def test_places_are_checked(places: dict[str, np.ndarray], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        MergedCodec(TableCodec.of(SCHEMA), places)


def test_columns_of_rules_are_never_merged() -> None:
    with pytest.raises(UsageError, match="named by a rule"):
        MergedCodec(TableCodec.of(VOTERS), {"voted": np.zeros(2, np.int64)})


AGE = Integer(name="age", lower=0, upper=30, bins=GivenBins((0, 10, 18, 30)), special=(99,))
VOTED = Boolean(name="voted")
STATE = Category(name="state", labels=("NC", "VA"), other="elsewhere")


def cells(codec, rule=0):
    """The structural zeros of a rule, in words."""
    structural_zeros = codec.structural_zeros[rule]
    shape = codec.domain.shape(structural_zeros.clique)
    every = itertools.product(*(range(size) for size in shape))
    return {
        tuple(codec.describe(name, code) for name, code in zip(structural_zeros.clique, cell, strict=True))
        for cell, hit in zip(every, structural_zeros.mask, strict=True)
        if hit
    }


def test_a_rule_becomes_cells_in_schema_order():
    rule = Impossible(when={"voted": ("true",), "age": Range(upper=17)})
    codec = codec_of(AGE, VOTED, STATE, rules=(rule,))
    assert codec.structural_zeros[0].clique == ("age", "voted")
    assert cells(codec) == {("[0, 10)", "true"), ("[10, 18)", "true")}


def test_missing_other_and_special_are_named_as_labels():
    rule = Impossible(when={"age": ("99", None), "state": ("elsewhere", "NC")})
    assert cells(codec_of(AGE, STATE, rules=(rule,))) == {
        (age, state) for age in ("99", "missing") for state in ("elsewhere", "NC")
    }


def test_open_ranges_stop_at_missing_and_special():
    rule = Impossible(when={"age": Range(lower=18), "voted": (None,)})
    assert cells(codec_of(AGE, VOTED, rules=(rule,))) == {("[18, 30]", "missing")}


def test_float_ranges_forgive_rounding():
    column = Float(name="rate", lower=0.0, upper=0.3, bins=GivenBins((0.0, 0.1 + 0.1, 0.3)))
    rule = Impossible(when={"rate": Range(upper=0.2), "voted": ("true",)})
    assert cells(codec_of(column, VOTED, rules=(rule,))) == {("[0, 0.2)", "true")}


@pytest.mark.parametrize("order", [0, 1])
def test_a_label_goes_only_with_its_group(order):
    city = Category(
        name="city",
        labels=("Durham", "Raleigh", "Richmond", "Nowhere"),
        groups={"Durham": "NC", "Raleigh": "NC", "Richmond": "VA"},
        within="state",
    )
    codec = codec_of(*((city, STATE) if order == 0 else (STATE, city)))
    wrong = {("Durham", "VA"), ("Raleigh", "VA"), ("Richmond", "NC")}
    wrong |= {(name, "elsewhere") for name in ("Durham", "Raleigh", "Richmond")}
    assert {pair if order == 0 else pair[::-1] for pair in cells(codec)} == wrong


def test_rules_over_too_many_cells_are_refused():
    wide = tuple(Category(name=f"c{i}", labels=tuple(map(str, range(400)))) for i in range(3))
    rule = Impossible(when={column.name: ("1",) for column in wide})
    with pytest.raises(SchemaError, match=r"rules\[0\]"):
        codec_of(*wide, rules=(rule,)).structural_zeros  # noqa: B018 - the rule is settled when it is asked for


def test_no_rules_no_cells():
    assert codec_of(VOTED).structural_zeros == ()


SOURCES = (
    Integer(name="a", lower=0, upper=10, special=(99,)),
    Integer(name="b", lower=0, upper=10),
    Float(name="f", lower=0.0, upper=1.0, decimals=1),
    Category(name="c", labels=("x", "y", "z")),
    Boolean(name="flag"),
)


def derive(formula, storage="", **chosen):
    codec = codec_of(*SOURCES, Derived(name="out", formula=formula, storage=storage))
    rows = len(next(iter(chosen.values())))
    codes = {name: np.zeros(rows, np.uint8) for name in codec.domain.columns}
    for name, values in chosen.items():
        codes[name] = codec.encode(name, pa.array(values))
    return codec.decode(codes, np.random.default_rng(0))["out"].combine_chunks()


def test_whole_sums_are_integers():
    out = derive(LinearSum({"a": 2.0, "b": -1.0}, constant=3.0), a=[1, 99, None, 10], b=[1, 1, 1, 0])
    assert out.equals(pa.array([4, None, None, 23], pa.int64()))


def test_other_sums_are_floats_unless_stored_otherwise():
    assert derive(LinearSum({"a": 0.5}), a=[1, None]).equals(pa.array([0.5, None], pa.float64()))
    assert derive(LinearSum({"a": 1.0, "f": 1.0}), a=[1], f=[1.0]).type == pa.float64()
    assert derive(LinearSum({"a": 1.0}), "float", a=[1]).equals(pa.array([1.0], pa.float32()))


def test_sums_that_do_not_fit_are_missing():
    assert derive(LinearSum({"a": 1.0}, constant=2.0**62), a=[1]).to_pylist() == [None]
    assert derive(LinearSum({"a": 1.0}), "int8", a=[5]).to_pylist() == [5]
    assert derive(LinearSum({"a": 100.0}), "int8", a=[1, 2]).to_pylist() == [100, None]


def test_lookup():
    entries = {"x": "first", "y": "second"}
    assert derive(Lookup("c", entries), c=["x", "y", "z", None]).to_pylist() == ["first", "second", None, None]
    assert derive(Lookup("c", entries, otherwise="-"), c=["x", "z", None]).to_pylist() == ["first", "-", "-"]
    assert derive(Lookup("flag", {"true": "yes"}, otherwise="no"), flag=[True, False]).to_pylist() == ["yes", "no"]


def test_cut_bands_include_the_last_end():
    bands = Cut("a", (0.0, 5.0, 9.0), ("low", "high"))
    assert derive(bands, a=[0, 4, 5, 9, 10, 99, None]).to_pylist() == ["low", "low", "high", "high", None, None, None]
    assert derive(bands, "large_string", a=[0]).type == pa.large_string()
