import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from understudy.counts.source import LabelNumbers, Texts, label_keys, object_bytes, texts_of
from understudy.schema.columns import MOST_LABEL_BYTES

KEY = (1, 2)


def shown(texts: Texts) -> list[str | None]:
    values = texts.values.to_pylist()
    return [None if place < 0 else values[place].decode() for place in texts.places]


class Awkward:
    def __str__(self) -> str:
        raise RuntimeError("no text for you")

    def __eq__(self, other: object) -> bool:
        raise ValueError("not comparable")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array([5, None, -1]), ["5", None, "-1"]),
        (pa.array([5.0, 0.5, float("nan"), None]), ["5", "0.5", None, None]),
        (pa.array([True, False, None]), ["true", "false", None]),
        (pa.array(["x", "", None, " "]), ["x", None, None, " "]),
        (pa.array([b"x", b"", None]), ["x", None, None]),
        (pa.array(["x", "y", None, "x", ""]).dictionary_encode(), ["x", "y", None, "x", None]),
        (pa.array([dt.date(2020, 1, 2)]), ["2020-01-02"]),
        (pa.array([decimal.Decimal("5.00"), None]), ["5", None]),
        (pa.array([None, None]), [None, None]),
        (pa.array([], pa.int8()), []),
        (pa.chunked_array([["x"], ["y"]]), ["x", "y"]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_one_text_for_one_value_whatever_its_type(values: pa.Array, texts: list[str | None]) -> None:
    assert shown(texts_of(values)) == texts


def test_nested_values_have_some_text_and_do_not_raise() -> None:
    first, second, absent = shown(texts_of(pa.array([[1, 2], [3], None])))
    assert first != second
    assert absent is None


NOT_UTF8 = (b"\xc3\x28", b"\xed\xa0\x80", b"\xff\xfe", b"Z\xfcrich")
AS_STRING = pc.CastOptions.unsafe(pa.string())


@pytest.mark.parametrize("raw", NOT_UTF8)
@pytest.mark.parametrize("kind", ["binary", "string", "large_binary", "dictionary", "dictionary of strings"])
def test_text_that_is_not_utf8_is_an_id_and_no_label(raw: bytes, kind: str) -> None:
    values = pa.array([raw, b"ok", None, raw])
    array = {
        "binary": values,
        "string": pc.cast(values, options=AS_STRING),
        "large_binary": values.cast(pa.large_binary()),
        "dictionary": values.dictionary_encode(),
        "dictionary of strings": pc.cast(values, options=AS_STRING).dictionary_encode(),
    }[kind]
    texts = texts_of(array)
    assert texts.numbers().tolist() == [0, 1, -1, 0]
    assert shown(texts.only_labels()) == [None, "ok", None, None]


def test_a_label_may_have_so_many_bytes_and_no_more() -> None:
    longest, longer = "é" * (MOST_LABEL_BYTES // 2), "é" * (MOST_LABEL_BYTES // 2) + "x"
    assert shown(texts_of(pa.array([longest, longer])).only_labels()) == [longest, None]


def test_a_long_text_of_a_dictionary_is_held_once() -> None:
    entries = pa.array(["x" * (1 << 20), "short"])
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 50_000, pa.int32()), entries)
    texts = texts_of(array)
    assert texts.values.nbytes < 2 << 20
    assert texts.numbers()[:3].tolist() == [0, 1, 0]
    assert texts.only_labels().places[:3].tolist() == [-1, 1, -1]


def test_hashes_follow_the_bytes_alone() -> None:
    whole = texts_of(pa.array(["a", None, "bc", "a", "x" * 100]))
    hashes = whole.hashes(KEY)
    assert hashes[0].tolist() == hashes[3].tolist()
    assert len({tuple(row) for row in hashes[[0, 2, 4]].tolist()}) == 3
    assert not hashes[1].any()
    for other in (pa.array([b"a"]), pa.array(["a"]).dictionary_encode(), pa.array(["zz", "a"]).slice(1)):
        assert texts_of(other).hashes(KEY)[0].tolist() == hashes[0].tolist()
    assert texts_of(pa.array(["a"])).hashes((1, 3))[0].tolist() != hashes[0].tolist()
    assert texts_of(pa.array([], pa.string())).hashes(KEY).shape == (0, 2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (float("nan"), None),
        (np.float64("nan"), None),
        (np.datetime64("NaT"), None),
        ("text", "text"),
        ("\ud800", b"\xed\xa0\x80"),
        (b"bytes", "bytes"),
        (b"\xc3\x28", b"\xc3\x28"),
        (5.0, "5"),
        (float("inf"), "inf"),
        (True, "true"),
        (np.bool_(False), "false"),
        (10**30, str(10**30)),
        (decimal.Decimal("1.50"), "1.5"),
        (dt.date(2020, 1, 2), "2020-01-02"),
        ((1, 2), "(1, 2)"),
        (Awkward(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects(value: object, text: str | bytes | None) -> None:
    assert object_bytes(value) == (text.encode() if isinstance(text, str) else text)


def test_labels_come_in_code_point_order_and_add_up_over_batches() -> None:
    known = LabelNumbers()
    first = known.of(texts_of(pa.array(["b", "é", "unheld", "b"])))
    second = known.of(texts_of(pa.chunked_array([["b", "a"], ["a"]])))
    times = np.bincount(np.concatenate([first, second]).astype(np.int64), minlength=len(known))
    times[int(first[2])] = 0
    found = known.counted(times)
    assert found.labels == ("a", "b", "é")
    assert found.counts.tolist() == [2, 3, 1]
    assert found.counts.dtype == np.int64


def test_label_keys_depend_on_the_label_alone() -> None:
    keys = label_keys(pa.array(["a", "b"]))
    assert keys.tolist() == label_keys(pa.array(["a", "b"], pa.large_string())).tolist()
    assert keys[0] == label_keys(pa.array(["x", "a"]))[1]
    assert keys[0] != keys[1]
