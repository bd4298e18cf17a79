import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest

from understudy.counts.labels import counted_labels, label_keys, object_text, text_of


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
    assert text_of(values).to_pylist() == texts


def test_nested_values_have_some_text_and_do_not_raise() -> None:
    first, second, absent = text_of(pa.array([[1, 2], [3], None])).to_pylist()
    assert first != second
    assert absent is None


def test_text_that_is_not_unicode_is_no_label() -> None:
    broken = pa.Array.from_buffers(pa.binary(), 2, pa.array([b"\xff\xfe", b"ok"]).buffers())
    found = counted_labels([(text_of(broken).combine_chunks(), pa.array([3, 4]))])
    assert found.labels == ("ok",)
    assert found.counts.tolist() == [4]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (float("nan"), None),
        (np.float64("nan"), None),
        (np.datetime64("NaT"), None),
        ("text", "text"),
        ("\ud800", None),
        (b"bytes", "bytes"),
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
def test_objects(value: object, text: str | None) -> None:
    assert object_text(value) == text


def test_labels_come_in_code_point_order_and_add_up_over_parts() -> None:
    parts = [(pa.array(["b", "é", None]), pa.array([1, 2, 9])), (pa.array(["b", "a", ""]), pa.array([10, 3, 9]))]
    found = counted_labels(parts)
    assert found.labels == ("a", "b", "é")
    assert found.counts.tolist() == [3, 11, 2]
    assert found.counts.dtype == np.int64


def test_label_keys_depend_on_the_label_alone() -> None:
    keys = label_keys(pa.array(["a", "b"]))
    assert keys.tolist() == label_keys(pa.array(["a", "b"], pa.large_string())).tolist()
    assert keys[0] == label_keys(pa.array(["x", "a"]))[1]
    assert keys[0] != keys[1]
