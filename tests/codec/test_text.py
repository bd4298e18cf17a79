import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tests.codec.examples import invalid_text
from understudy.codec.reading import canonical_text, has_text, is_text, plain


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        ([5, -3, None], pa.int8(), ["5", "-3", None]),
        ([2**64 - 1], pa.uint64(), ["18446744073709551615"]),
        ([5.0, -0.0, 0.1, 1e22, float("inf"), float("nan")], pa.float64(), ["5", "0", "0.1", str(10**22), "inf", None]),
        ([0.1, 5.0, None], pa.float32(), ["0.1", "5", None]),
        ([True, False], pa.bool_(), ["true", "false"]),
        ([Decimal("1.50"), Decimal("5.00"), None], pa.decimal128(9, 2), ["1.5", "5", None]),
        ([Decimal("1.5"), Decimal("5.0"), None], pa.decimal32(5, 1), ["1.5", "5", None]),
        ([dt.date(2020, 1, 2)], pa.date32(), ["2020-01-02"]),
        ([dt.date(1969, 12, 31)], pa.date64(), ["1969-12-31"]),
        ([dt.datetime(2020, 1, 2, 3, 4, 5)], pa.timestamp("ns"), ["2020-01-02 03:04:05"]),
        ([dt.datetime(2020, 1, 2, 3, 4, 5, 120_000)], pa.timestamp("us"), ["2020-01-02 03:04:05.12"]),
        ([dt.time(10, 20)], pa.time64("us"), ["10:20:00"]),
        ([" é ", "e\u0301", ""], pa.string(), [" é ", "e\u0301", ""]),
        (["a"], pa.string_view(), ["a"]),
        ([b"ab "], pa.binary(3), ["ab "]),
    ],
)
def test_canonical_text(values, kind, texts):
    assert canonical_text(pa.array(values, kind)).to_pylist() == texts


def test_infinity_is_text_too():
    assert canonical_text(pa.array([np.inf, -np.inf])).to_pylist() == ["inf", "-inf"]


def test_runs_and_extensions_are_unwrapped():
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], ["a", None])
    assert plain(runs).to_pylist() == ["a", "a", None]
    wrapped = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["x"]))
    assert plain(wrapped).to_pylist() == ["x"]


def test_bytes_that_are_no_text_pass_through():
    assert plain(pa.array([b"\xff", b"a"])).cast(pa.binary()).to_pylist() == [b"\xff", b"a"]
    assert canonical_text(invalid_text(b"\xff")).cast(pa.binary()).to_pylist() == [b"\xff"]


def test_nested_values_have_no_text():
    assert not has_text(pa.list_(pa.int8()))
    assert not has_text(pa.duration("s"))
    assert has_text(pa.decimal256(40, 2))
    assert is_text(pa.large_string())
