import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec.examples import ARRAYS
from understudy.codec.table import TableCodec
from understudy.errors import SchemaError, UsageError
from understudy.schema import (
    Category,
    Cut,
    Derived,
    GivenBins,
    Impossible,
    Integer,
    PrivateBins,
    Range,
    Schema,
    UniformBins,
    Unit,
)

WAGE = Integer(name="wage", lower=0, upper=400, bins=GivenBins((0, 3, 200, 400)), special=(0, 998), split=(100, 20, 3))
STEPPED = Integer(name="n", lower=5, upper=995, step=10, bins=UniformBins(4), split=(100, 25, 2), missing=False)
WIDE = Integer(name="n", lower=-(10**15), upper=10**15, bins=UniformBins(3), split=(1000, 7), special=(-1,))
SINGLE = Integer(name="n", lower=0, upper=30, split=(10, 4), missing=False, special=(99,), storage="int8")


def codec_of(*columns, rules=(), **more):
    return TableCodec.of(Schema(columns, Unit(), tuple(rules)), **more)


def pairs(codec, name, values):
    sizes, kinds = (codec.encode(f"{name}.{part}", values).tolist() for part in ("size", "kind"))
    return list(zip(sizes, kinds, strict=True))


def test_a_split_column_has_two_columns_of_codes_and_one_of_values():
    codec = codec_of(Category(name="sex", labels=("F", "M")), WAGE)
    assert dict(codec.domain.sizes) == {"sex": 3, "wage.size": 6, "wage.kind": 5}
    assert codec.arrow_schema.names == ["sex", "wage"]
    assert [codec.origin(name) for name in codec.domain.columns] == ["sex", "wage", "wage"]
    with pytest.raises(UsageError, match="not a modelled column"):
        codec.origin("wage")
    again = TableCodec.from_json(codec.schema, codec.to_json())
    assert again.domain == codec.domain


def test_size_and_kind_of_values_by_hand():
    codec = codec_of(WAGE)
    values = ["0", "1", "3", "20", "100", "199", "400", "5000", "-4", "998", None, "x", "7.5", "1e2"]
    assert pairs(codec, "wage", pa.array(values)) == [
        (3, 4), (0, 3), (1, 2), (1, 1), (1, 0), (1, 3), (2, 0), (2, 0), (0, 3), (4, 4), (5, 4), (5, 4), (1, 3), (1, 0),
    ]  # fmt: skip


def test_codes_in_words_and_words_as_codes():
    codec = codec_of(WAGE)
    words = [codec.describe("wage.kind", code) for code in range(5)]
    assert words == ["multiple of 100", "multiple of 20", "multiple of 3", "multiple of none", "no number"]
    for code, word in enumerate(words):
        assert codec.codes_matching("wage.kind", word).tolist() == [code]
    with pytest.raises(UsageError, match='ask for "multiple of 20"'):
        codec.codes_matching("wage.kind", "40")
    with pytest.raises(UsageError, match=r'ask for "3\.\.199"'):
        codec.codes_matching("wage.size", "40")
    assert codec.codes_matching("wage.size", "3..199").tolist() == [1]
    with pytest.raises(UsageError, match="matches no code"):
        codec.codes_matching("wage.kind", "multiple of 7")


@pytest.mark.parametrize("column", [WAGE, STEPPED, WIDE, SINGLE])
def test_every_possible_pair_gives_values_that_are_coded_as_that_pair(column):
    codec = codec_of(column)
    shape = codec.domain.shape(codec.domain.everything())
    structural_zeros = codec.structural_zeros[0].mask.reshape(shape)
    possible = np.argwhere(~structural_zeros)
    sizes, kinds = np.repeat(possible, 60, axis=0).T
    names = codec.domain.columns
    drawn = codec.decode({names[0]: sizes, names[1]: kinds}, np.random.default_rng(3)).column(column.name)
    assert pairs(codec, column.name, drawn) == list(zip(sizes.tolist(), kinds.tolist(), strict=True))
    numbers = [value for value in drawn.to_pylist() if value is not None and value not in column.special]
    assert all(column.lower <= value <= column.upper for value in numbers)
    assert all((value - column.lower) % column.step == 0 for value in numbers)


@pytest.mark.parametrize("column", [WAGE, STEPPED, SINGLE])
def test_possible_pairs_are_those_of_some_value(column):
    codec = codec_of(column)
    values = [*range(column.lower, column.upper + 1, column.step), *column.special]
    found = set(pairs(codec, column.name, pa.array([*values, None])))
    shape = codec.domain.shape(codec.domain.everything())
    assert found == {tuple(pair) for pair in np.argwhere(~codec.structural_zeros[0].mask.reshape(shape)).tolist()}


@given(ARRAYS, st.sampled_from([WAGE, STEPPED, WIDE, SINGLE]))
@settings(max_examples=150, deadline=None)
def test_no_content_raises_and_no_record_is_an_impossible_pair(array, column):
    codec = codec_of(column)
    found = pairs(codec, column.name, array)
    mask = codec.structural_zeros[0].mask.reshape(codec.domain.shape(codec.domain.everything()))
    assert not any(mask[pair] for pair in found)
    alone = [pairs(codec, column.name, array.slice(row, 1))[0] for row in range(min(len(array), 3))]
    assert alone == found[:3]


def test_impossible_codes_still_decode_to_values():
    codec = codec_of(WAGE)
    sizes, kinds = (part.ravel() for part in np.indices((6, 5)))
    drawn = codec.decode({"wage.size": sizes, "wage.kind": kinds}, np.random.default_rng(0)).column("wage")
    assert codec.encode("wage.size", drawn).tolist() == sizes.tolist()


def test_rules_and_derived_columns_speak_of_the_whole_column():
    band = Derived(name="band", formula=Cut("wage", (0.0, 200.0, 401.0), ("low", "high")))
    rule = Impossible(when={"wage": Range(lower=200), "sex": ("F",)})
    special = Impossible(when={"wage": ("998", None), "sex": ("M",)})
    codec = codec_of(Category(name="sex", labels=("F", "M")), WAGE, band, rules=[rule, special])
    first, second, _ = codec.structural_zeros
    assert first.clique == second.clique == ("sex", "wage.size")
    assert np.flatnonzero(first.mask).tolist() == [2]
    assert np.flatnonzero(second.mask).tolist() == [10, 11]
    codes = {"sex": np.array([0]), "wage.size": np.array([2]), "wage.kind": np.array([0])}
    assert codec.decode(codes, np.random.default_rng(0)).column("band").to_pylist() == ["high"]


def test_bins_chosen_later():
    column = Integer(name="n", lower=0, upper=99, bins=PrivateBins(3), split=(10,), missing=False)
    codec = codec_of(column, edges={"n": [0, 5, 40]})
    assert dict(codec.domain.sizes) == {"n.size": 4, "n.kind": 3}
    numbers = pa.array([0, 4, 39, 40, 99])
    assert pairs(codec, "n", numbers) == [(0, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
    assert pairs(codec, "n", pa.array(["12", "€ 12.00", "", None])) == [(1, 1), (3, 2), (3, 2), (3, 2)]
    mask = codec.structural_zeros[0].mask.reshape(
        4, 3
    )  # every bin holds both kinds; what is no number has one of its own
    assert mask.tolist() == [[False, False, True]] * 3 + [[True, True, False]]
    dropped = TableCodec.of(codec.schema, edges={"n": [0, 5, 40]}, unreadable=False)
    assert dropped.structural_zeros == ()
    assert pairs(dropped, "n", numbers) == [(0, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
    assert pairs(dropped, "n", pa.array(["12", "€ 12.00", None])) == [(1, 1), (3, 2), (3, 2)]  # no codes at all


def test_too_many_pairs_are_refused():
    column = Integer(name="n", lower=0, upper=10**6 - 1, bins=UniformBins(10**6), split=tuple(range(15, 1, -1))[:12])
    with pytest.raises(SchemaError, match=r"columns.n.split: spans"):
        _ = codec_of(column).structural_zeros
