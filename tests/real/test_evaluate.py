"""Evaluations of real tables: two parts of one survey cannot be told apart, a shuffled one can."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.real.shared_tables import FOLDER, schema_of
from understudy.evaluate import evaluate

NAME = "nist_crc_acs2019"

pytestmark = pytest.mark.skipif(not (FOLDER / NAME).is_dir(), reason=f"no table {NAME} beside the checkout")


def test_two_parts_of_a_survey_look_alike() -> None:
    table = pq.read_table(FOLDER / NAME / "tx2019.parquet")
    order = np.random.default_rng(1).permutation(table.num_rows)[:4000]
    first, second = table.take(pa.array(order[:2000])), table.take(pa.array(order[2000:]))
    rng = np.random.default_rng(2)
    columns = [second[name].take(pa.array(rng.permutation(2000))) for name in second.column_names]
    apart = pa.table(columns, names=second.column_names)
    metrics = ["pmse", "nist", "chi2"]
    options = {"pmse": {"draws": 3}}
    alike = evaluate(first, second, schema_of(NAME), metrics=metrics, options=options)
    shuffled = evaluate(first, apart, schema_of(NAME), metrics=metrics, options=options)
    assert alike["pmse"].value == pytest.approx(1.0, abs=0.25)
    assert alike["pmse"].score("cart_ratio").value == pytest.approx(1.0, abs=0.5)
    assert shuffled["pmse"].score("cart_ratio").value > 2  # type: ignore[operator]
    for name in ("nist", "chi2"):
        gap = abs(shuffled[name].value - alike[name].value)  # type: ignore[operator]
        assert gap > 0.02 * abs(alike[name].value)  # type: ignore[arg-type]
