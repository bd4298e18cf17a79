"""pmse: raw, ratio and standardised values against each null, and what happens when no tree splits."""

import numpy as np
import pandas as pd
import pytest

from tests.evaluate.examples import codes_schema, context, mixed_frame, pair_of, shuffled
from understudy.errors import UsageError
from understudy.evaluate.propensity import Pmse

FRAME = mixed_frame(500)


def test_exact_values_for_one_column() -> None:
    schema = codes_schema({"a": 2})
    first, second = pd.DataFrame({"a": ["0"] * 60 + ["1"] * 40}), pd.DataFrame({"a": ["0"] * 40 + ["1"] * 60})
    result = Pmse(draws=2).compare(pair_of(first, second, schema=schema), context("pmse"))
    assert result.score("logistic_raw").value == pytest.approx(0.01)  # scores are 0.4 and 0.6
    assert result.score("logistic_ratio").value == pytest.approx(0.01 / (0.25 / 200))
    spread = np.sqrt(2) * 0.25 / 200
    assert result.score("logistic_standardised").value == pytest.approx((0.01 - 0.25 / 200) / spread)
    by_null = {row["null"]: row for row in result.detail("variants").records() if row["tables"] == "copy 1"
               and row["classifier"] == "logistic"}  # fmt: skip
    assert by_null["fitted_model"]["ratio"] == pytest.approx(2 * by_null["permutation"]["ratio"])  # type: ignore[operator]


def test_copies_are_averaged() -> None:
    one, two = shuffled(FRAME, 1), shuffled(FRAME, 2)
    options = Pmse(draws=2, complexity=0.001)
    alone = [options.compare(pair_of(FRAME, copy), context("pmse")).score("cart_raw").value for copy in (one, two)]
    both = options.compare(pair_of(FRAME, one, two), context("pmse"))
    assert both.score("cart_raw").value == pytest.approx(sum(alone) / 2)  # type: ignore[arg-type]


CALIBRATED = [
    ("permutation", "in_sample"),
    ("permutation", "folds"),
    ("fitted_model", "in_sample"),
    ("bootstrap", "in_sample"),
    ("bootstrap", "folds"),
]


def test_the_fitted_model_null_of_folds_is_refused() -> None:
    with pytest.raises(UsageError, match="scheme in_sample"):
        Pmse(null="fitted_model", scheme="folds")


@pytest.mark.parametrize(("null", "scheme"), CALIBRATED)
def test_every_null_and_scheme(null: str, scheme: str) -> None:
    options = Pmse(null=null, scheme=scheme, draws=2, complexity=0.0)  # type: ignore[arg-type]
    result = options.compare(pair_of(FRAME, mixed_frame(400, seed=5)), context("pmse"))
    assert result.value is not None
    assert 0.2 < result.value < 5
    assert f"The null is {null}." in result.notes


def test_trees_that_do_not_split_leave_no_ratio() -> None:
    result = Pmse(draws=3, complexity=1.0).compare(pair_of(FRAME, shuffled(FRAME)), context("pmse"))
    assert result.score("cart_raw").value == pytest.approx(0)
    assert "no tree split" in result.score("cart_ratio").why_not
    assert any("3 of 3 trees under the null did not split" in note for note in result.notes)


def test_constant_columns_leave_no_ratio() -> None:
    schema = codes_schema({"a": 2})
    frame = pd.DataFrame({"a": ["0"] * 50})
    result = Pmse(draws=2).compare(pair_of(frame, frame, schema=schema), context("pmse"))
    assert "no column varies" in result.why_not
