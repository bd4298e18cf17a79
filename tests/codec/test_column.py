"""Tests of `understudy.codec.column`."""

import numpy as np
import pyarrow as pa
import pytest

from understudy.codec.column import Layout, code_type, encode_safely, through_dictionary


@pytest.mark.parametrize(
    ("other", "missing", "absent", "unknown", "size"),
    [(True, True, 4, 3, 5), (True, False, 3, 3, 4), (False, True, 3, 3, 4), (False, False, 3, 3, 3)],
)
def test_odd_values_have_their_places(other, missing, absent, unknown, size):
    layout = Layout(regular=2, special=1, other=other, missing=missing)
    assert (layout.absent, layout.unknown, layout.size) == (absent, unknown, size)


@pytest.mark.parametrize(
    ("other", "missing", "absent", "unknown", "size"),
    [(True, True, 4, 3, 6), (True, False, 4, 3, 5), (False, True, 3, 4, 5), (False, False, 3, 3, 4)],
)
def test_what_cannot_be_read_may_have_a_code_of_its_own(other, missing, absent, unknown, size):
    layout = Layout(regular=2, special=1, other=other, missing=missing, unreadable=True)
    assert (layout.absent, layout.unknown, layout.size) == (absent, unknown, size)
    assert layout.unreadable_code == size - 1
    assert not layout.leaves_out


def test_the_number_that_is_no_code_fits_the_type():
    layout = Layout(256, missing=False)
    assert layout.leaves_out
    assert layout.absent == layout.unknown == layout.size == 256
    assert layout.dtype == np.uint16
    assert Layout(255, missing=False, unreadable=True).dtype == np.uint8


def test_code_types_are_the_smallest():
    assert [code_type(size).name for size in (1, 256, 257, 65_536, 65_537)] == [
        *("uint8", "uint8", "uint16", "uint16", "uint32")
    ]


def test_only_distinct_values_are_coded():
    seen = []

    def encode(array):
        seen.append(array.to_pylist())
        return np.arange(len(array), dtype=np.uint8)

    codes = through_dictionary(pa.array(["a", None, "b", "a"]), encode, Layout(9))
    assert codes.tolist() == [0, 9, 1, 0]
    assert seen == [["a", "b"]]


def test_a_full_index_type_still_has_room_for_nulls():
    values = pa.array([str(number) for number in range(128)])
    indices = pa.array([127, None, 0], pa.int8())
    codes = through_dictionary(
        pa.DictionaryArray.from_arrays(indices, values),
        lambda array: np.arange(len(array), dtype=np.uint8),
        Layout(200),
    )
    assert codes.tolist() == [127, 200, 0]


def test_a_value_that_cannot_be_read_is_unknown_and_leaves_the_others_alone():
    def encode(array):
        if "bad" in array.to_pylist():
            raise pa.ArrowInvalid("no")
        return np.zeros(len(array), dtype=np.uint8)

    layout = Layout(3, other=True)
    array = pa.array(["a", "bad", None, "b", "bad"])
    assert encode_safely(array, encode, layout).tolist() == [0, 3, 0, 0, 3]
    assert through_dictionary(array.dictionary_encode(), encode, layout).tolist() == [0, 3, 4, 0, 3]
