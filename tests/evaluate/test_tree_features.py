"""Columns as trees see them: labels by code, numbers by rank, odd numbers above all others."""

import numpy as np
import pandas as pd

from tests.evaluate.examples import mixed, mixed_frame, rows_of
from understudy.evaluate.cart import MOST_CUTS, tree_features
from understudy.schema import Float, Schema, Unit


def test_order_is_kept_and_odd_values_come_last() -> None:
    rows = rows_of(mixed_frame(300), mixed())
    features = tree_features(rows)
    assert features.names == ("region", "sex", "voted", "age", "income", "seen")
    assert features.ordered.tolist() == [False, False, False, True, True, True]
    age = features.codes[3].astype(int)
    known = ~np.isnan(rows.numbers["age"])
    order = np.argsort(rows.numbers["age"][known], kind="stable")
    assert (np.diff(age[known][order]) >= 0).all()
    assert age[~known].min() > age[known].max()
    assert (features.codes.max(axis=1) < features.sizes).all()


def test_left_out_columns_are_gone() -> None:
    assert "age" not in tree_features(rows_of(mixed_frame(50), mixed()), leave_out={"age"}).names


def test_many_values_are_cut_at_quantiles() -> None:
    schema = Schema(columns=(Float(name="x", lower=0.0, upper=1.0),), unit=Unit())
    rows = rows_of(pd.DataFrame({"x": np.random.default_rng(1).random(5000)}), schema)
    counts = np.bincount(tree_features(rows).codes[0])
    assert len(counts) == MOST_CUTS
    assert counts.max() < 2 * 5000 / MOST_CUTS
