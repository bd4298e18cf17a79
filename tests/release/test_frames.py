"""Frames: whole numbers with gaps stay whole, in every kind of frame."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from understudy.errors import UsageError
from understudy.release.release import to_frame

TABLE = pa.table(
    {
        "whole": pa.array([1, None, 3], pa.int32()),
        "full": pa.array([1, 2, 3], pa.int64()),
        "flag": pa.array([True, None, False]),
        "text": ["a", None, "c"],
    }
)


def test_pandas_keeps_whole_numbers_whole() -> None:
    frame = to_frame(TABLE, "pandas")
    assert isinstance(frame, pd.DataFrame)
    assert frame["whole"].dtype == pd.Int32Dtype()
    assert frame["full"].dtype == "int64"
    assert frame["flag"].dtype == pd.BooleanDtype()
    assert frame["whole"].isna().tolist() == [False, True, False]


def test_polars_and_arrow() -> None:
    frame = to_frame(TABLE, "polars")
    assert isinstance(frame, pl.DataFrame)
    assert frame["whole"].to_list() == [1, None, 3]
    assert to_frame(TABLE, "arrow") is TABLE


def test_unknown_kinds_are_named() -> None:
    with pytest.raises(UsageError, match="pandas"):
        to_frame(TABLE, "panda")
