"""Merged codes: for counting alone, each by its own value, and never of a column that a rule names."""

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import VOTERS, letters
from understudy.codec.table import MergedCodec, TableCodec
from understudy.errors import UsageError

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
