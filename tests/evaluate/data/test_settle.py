"""What a schema leaves open is taken from the real table."""

import numpy as np
import pandas as pd

from understudy.evaluate.data import fixed_codec, open_for_comparison
from understudy.schema import Float, Integer, OpenCategory, PrivateBins, Schema, Unit

SCHEMA = Schema(
    columns=(
        OpenCategory(name="job", most_labels=2),
        Integer(name="age", lower=0, upper=100, bins=PrivateBins(4)),
        Float(name="pay", lower=0.0, upper=1.0, bins=PrivateBins(2)),
    ),
    unit=Unit(),
)


def test_most_frequent_labels_and_quantiles() -> None:
    frame = pd.DataFrame(
        {"job": ["b"] * 5 + ["a"] * 3 + ["c"] * 2, "age": np.arange(10) * 10, "pay": np.arange(10) / 10}
    )
    codec = fixed_codec(open_for_comparison(frame, SCHEMA), SCHEMA)
    assert codec.labels == {"job": ("a", "b")}
    assert codec.edges["age"][0] == 0
    assert codec.edges["age"][-1] == 101
    assert codec.layout("age").regular == 4
    assert codec.layout("pay").regular == 2
    assert codec.describe("age", codec.domain.sizes["age"] - 1) == "unreadable"


def test_nothing_known_is_one_bin() -> None:
    frame = pd.DataFrame({"job": [None], "age": [None], "pay": [np.nan]})
    codec = fixed_codec(open_for_comparison(frame, SCHEMA), SCHEMA)
    assert codec.layout("age").regular == 1
