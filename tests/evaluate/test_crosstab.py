"""The full cross-tabulation, by hand."""

import pandas as pd
import pytest

from tests.evaluate.examples import codes_schema, context, pair_of, rows_of
from understudy.evaluate.marginals import CrosstabDistance, joint_counts

SCHEMA = codes_schema({"a": 2, "b": 3})
REAL = pd.DataFrame({"a": list("00011"), "b": list("01122")})
SYNTHETIC = pd.DataFrame({"a": list("0011"), "b": list("0012")})


def test_by_hand() -> None:
    found = CrosstabDistance().compare(pair_of(REAL, SYNTHETIC, schema=SCHEMA), context())
    # real: 00→1, 01→2, 12→2; synthetic: 00→2, 11→1, 12→1
    assert found.score("l1").value == 1 + 2 + 1 + 1
    assert found.score("half_l1").value == 2.5
    assert found.value == pytest.approx((abs(0.2 - 0.5) + 0.4 + 0.25 + abs(0.4 - 0.25)) / 2)


def test_joint_counts_add_up() -> None:
    ours, theirs = joint_counts(rows_of(REAL, SCHEMA), rows_of(SYNTHETIC, SCHEMA))
    assert (ours.sum(), theirs.sum()) == (5, 4)
    assert len(ours) == 4


def test_yardstick_of_counts_is_for_tables_of_the_real_size() -> None:
    frame = pd.concat([REAL] * 20)
    found = CrosstabDistance().compare(pair_of(frame, frame, schema=SCHEMA), context())
    assert found.score("l1").yardstick == pytest.approx(2 * found.score("half_l1").yardstick)  # type: ignore[operator]
    assert found.score("l1").yardstick == pytest.approx(2 * 100 * found.yardstick)  # type: ignore[operator]
