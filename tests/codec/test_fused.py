"""Coding in one pass gives the codes of the general way, for every storage type and every value."""

import copy
import itertools
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codec.examples import ARRAYS, COLUMNS, EDGES, LABELS, NAMES, codec_of, schema_of
from understudy.codec import table
from understudy.codec.kernels import ByTable, KnownTexts, code_in_one_pass
from understudy.codec.numbers import NumberCodec
from understudy.codec.table import TableCodec
from understudy.schema import Category, Integer, UniformBins

SPLIT = Integer(name="amount", lower=-50, upper=12_000, split=(100, 10), special=(-1,), missing_values=("777",))
RARE = Category(name="rare", labels=("0", "1", "2", "3", "4"), rare="private", other="else")
POOL = {"rare": (("1", 0.5), ("3", 0.5))}
CODECS = [
    TableCodec.of(schema_of(*COLUMNS, SPLIT, RARE), LABELS, EDGES, pools=POOL, **odd)
    for odd in ({}, {"unreadable": False}, {"judging": True})
]


@pytest.fixture(autouse=True)
def no_array_is_too_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "LEAST_ROWS", 0)


def general(codec: TableCodec, name: str, array: pa.Array) -> list[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "LEAST_ROWS", 1 << 60)
        return codec.encode(name, array).tolist()  # type: ignore[no-any-return]


@given(ARRAYS, st.integers(0, 3), st.sampled_from(CODECS))
@settings(max_examples=150, deadline=None)
def test_every_array_of_every_type(array: pa.Array, cut: int, codec: TableCodec) -> None:
    part = array.slice(min(cut, len(array)))
    for name in codec.domain.columns:
        assert codec.encode(name, part).tolist() == general(codec, name, part), name


def near(codec: NumberCodec) -> list[int]:
    """Whole numbers beside every edge and every number with a code of its own, and the farthest ones."""
    marks = [number for number in (*codec.edges, *codec.avoid) if np.isfinite(number)]
    around = {int(number) + step for number in marks for step in (-2, -1, 0, 1, 2)}
    far = {-(2**63), 2**63 - 1, -(2**62), 2**62, -(3 * 10**11), 3 * 10**11}
    return sorted(number for number in around | far if -(2**63) <= number < 2**63)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("name", NAMES)
def test_numbers_beside_every_edge(codec: TableCodec, name: str) -> None:
    column = codec._columns[name]
    if not isinstance(column, NumberCodec):
        return
    whole = near(column)
    floats = [one for number in (*column.edges, *column.avoid, *whole) for one in neighbours(float(number))]
    typed = [pa.array([None, *whole], pa.int64()), pa.array([None, float("nan"), *floats], pa.float64())]
    for unit, per in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        for day in (1, 86_400):
            ticks = [number * per * day + step for number, step in itertools.product(whole, (-1, 0, 1))]
            fitting = pa.array([None, *(tick for tick in ticks if abs(tick) < 2**63)], pa.int64())
            typed += [fitting.view(pa.timestamp(unit, zone)) for zone in (None, "UTC", "Asia/Tokyo")]
            typed += [fitting.view(pa.time64(unit))] if unit in ("us", "ns") else []
    short = pa.array([None, *(number for number in whole if abs(number) < 2**31)], pa.int32())
    typed += [short, short.view(pa.date32()), short.view(pa.time32("s")), short.view(pa.time32("ms"))]
    for array, start in itertools.product(typed, (0, 1)):
        part = array.slice(start)
        assert codec.encode(name, part).tolist() == general(codec, name, part), array.type


def neighbours(number: float) -> tuple[float, ...]:
    return number, float(np.nextafter(number, -np.inf)), float(np.nextafter(number, np.inf)), number + 0.5


def test_long_columns_take_the_one_pass_and_gaps_keep_their_places() -> None:
    codec, rng = codec_of(SPLIT), np.random.default_rng(3)
    values = rng.integers(-100, 13_000, 20_000)
    array = pa.array(values, mask=rng.random(len(values)) < 0.1)
    calls: list[str] = []
    for name in codec.domain.columns:
        way = codec._codecs[name].one_pass(pa.int64())
        assert way is not None
        calls.append(name)
        for part in (array, array.slice(3, 9_001), array.cast(pa.int16()), array.cast(pa.float64())):
            assert codec.encode(name, part).tolist() == general(codec, name, part)
    assert calls == list(codec.domain.columns)


FORMS = {
    "rising": ByTable(-4, np.array([9, 3, 4, 5, 6, 11], np.uint8)),
    "rising, one number": ByTable(10, np.array([0, 1, 0], np.uint8)),
    "bins, ends apart": ByTable(-4, np.array([0, 0, 1, 1, 2, 300], np.uint16)),
    "labels in any order, ends alike": ByTable(2, np.array([7, 2, 0, 1, 7], np.uint32)),
    "no number": ByTable(0, np.array([5, 5], np.uint8)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64])
def test_each_form_of_a_table_looks_numbers_up(form: str, kind: type[np.signedinteger]) -> None:
    way, limits = FORMS[form], np.iinfo(kind)
    near = [number for number in range(-6, 15) if number >= limits.min]
    values = np.array([limits.min, limits.max, limits.min + 1, limits.max - 1, *near], kind)
    codes = np.zeros(len(values), way.table.dtype)
    way.code(values, 0, codes)
    places = [min(max(int(value) - way.low, 0), len(way.table) - 1) for value in values]
    assert codes.tolist() == way.table[places].tolist()


@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_gaps_anywhere_in_a_piece_of_an_array(share: float) -> None:
    rng = np.random.default_rng(7)
    mask = rng.random(200) < share
    whole = pa.array(rng.integers(0, 4, 200).astype(np.int32), mask=mask)
    way = ByTable(-1, np.array([4, 0, 1, 2, 3, 4], np.uint16))
    for start, stop in [(0, 200), (0, 7), (3, 5), (5, 200), (8, 64), (9, 65), (199, 200), (60, 60)]:
        part, codes = whole[start:stop], np.zeros(stop - start, np.uint16)
        code_in_one_pass(way, part, 500, codes)
        assert codes.tolist() == [500 if value is None else value for value in part.to_pylist()]


def test_indices_beyond_a_dictionary_are_absent() -> None:
    codec = codec_of(Category(name="x", labels=("a", "b")))
    indices = pa.array([0, 1, 7, -3, None], pa.int32())
    array = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"]), safe=False)
    assert codec.encode("x", array).tolist() == general(codec, "x", array) == [0, 1, 2, 0, 2]


def test_a_changed_dictionary_is_coded_anew() -> None:
    codec = codec_of(Category(name="x", labels=("a", "b")))
    for entries in (["a", "b"], ["b", "a"], ["b", None], ["z", "b"], ["b"]):
        array = pa.DictionaryArray.from_arrays(pa.array([0, len(entries) - 1, None], pa.int8()), pa.array(entries))
        assert codec.encode("x", array).tolist() == general(codec, "x", array)


@given(st.lists(st.lists(st.text(max_size=40) | st.none(), max_size=60), min_size=2, max_size=6))
@settings(max_examples=60, deadline=None)
def test_texts_met_before_keep_their_codes(batches: list[list[str | None]]) -> None:
    labels = tuple(dict.fromkeys(text for batch in batches[:1] for text in batch if text and text.strip()))[:20]
    codec = codec_of(Category(name="x", labels=("a", *(label for label in labels if label.strip() != "a"))))
    for batch in batches:
        for kind in (pa.string(), pa.large_string()):
            array = pa.array([*batch, *batch[::2], "a", " a"], kind)
            assert codec.encode("x", array).tolist() == general(codec, "x", array)


def test_a_long_list_of_labels() -> None:
    labels = tuple(f"label {number}" for number in range(600))
    codec = codec_of(Category(name="x", labels=labels, other="else"))
    for seed in range(3):
        drawn = np.random.default_rng(seed).integers(0, 800, 5_000)
        array = pa.array([f"label {number}" for number in drawn])
        assert codec.encode("x", array).tolist() == [min(number, 600) for number in drawn]


def test_a_column_of_ever_new_texts_is_coded_the_general_way() -> None:
    codec = codec_of(Integer(name="x", lower=0, upper=10**9, bins=UniformBins(10), prefix="n"))
    for start in range(3):
        array = pa.array([f"n{number}" for number in range(start * 5_000, start * 5_000 + 5_000)])
        assert codec.encode("x", array).tolist() == general(codec, "x", array)
    assert codec._passes._texts["x", pa.string()] is None


def test_a_copy_holds_no_value_that_was_coded() -> None:
    codec = codec_of(Category(name="x", labels=("a",), other="else"))
    secrets = pa.array(["zyxwv48151623", "a"] * 10)
    codec.encode("x", secrets)
    codec.encode("x", secrets.dictionary_encode())
    assert b"zyxwv48151623" not in pickle.dumps(codec._passes)
    for one in (copy.deepcopy(codec._passes), codec.without_values()._passes):
        assert vars(one) == vars(type(one)())
    assert codec.without_values().encode("x", secrets).tolist() == codec.encode("x", secrets).tolist()


def test_texts_that_were_met_are_known_again_by_their_bytes() -> None:
    texts = pa.array([f"text {number}" for number in range(2000)])
    codes = np.arange(2000, dtype=np.uint16)
    known = KnownTexts.empty().with_texts(texts, codes)
    size = len(known.entries)
    assert size & (size - 1) == 0, "the search takes the last bits of a hash for a place"
    found = np.zeros(2000, np.uint16)
    others = known.code(texts, 0, found)
    assert others.size < 20, "a few find no place where they are looked for"
    assert np.delete(found - codes, others).tolist() == [0] * (2000 - others.size)
