"""What the scorer sees: codes, buckets, and values that are neither."""

import numpy as np

from tests.evaluate.examples import mixed, mixed_frame, rows_of
from understudy.evaluate.nist import (
    CodeView,
    NumberView,
    bucket_codes,
    challenge_columns,
    column_view,
    densities,
    paired_cells,
)


def test_buckets() -> None:
    values = np.array([0.0, 1.0, 1.0001, 50.0, 100.0, -0.1, 100.02, 0.0])
    states = np.array([-1] * 7 + [3])
    assert bucket_codes(NumberView(0.0, 100.0, values, states)).tolist() == [0, 0, 1, 49, 99, 100, 100, 104]


def test_one_value_is_one_bucket() -> None:
    assert bucket_codes(NumberView(5.0, 5.0, np.array([5.0]), np.array([-1]))).tolist() == [0]


def test_columns_and_views() -> None:
    rows = rows_of(mixed_frame(100), mixed())
    assert challenge_columns(rows) == mixed().names
    assert isinstance(column_view(rows, "sex"), CodeView)
    view = column_view(rows, "age")
    assert isinstance(view, NumberView)
    assert (view.lower, view.upper) == (18.0, 67.0)
    assert ((view.states >= 0) == np.isnan(rows.numbers["age"])).all()


def test_densities_are_shares_over_the_same_cells() -> None:
    parts = [rows_of(mixed_frame(100, seed), mixed()) for seed in (1, 2)]
    cells = {name: paired_cells(parts[0], parts[1], name) for name in ("age", "income", "seen")}
    first, second = densities(("age", "income", "seen"), cells)
    assert first.shape == second.shape
    assert first.sum() == second.sum() == 1.0
