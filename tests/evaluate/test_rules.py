"""Rules broken: shares by rule, in both tables."""

import pytest

from tests.evaluate.examples import codes_schema, context, mixed_frame, pair_of
from understudy.evaluate.records import RulesBroken

FRAME = mixed_frame(200)


def test_broken_rows_are_counted() -> None:
    synthetic = FRAME.copy()
    synthetic.loc[synthetic.index[:30], ["sex", "region"]] = ["M", "east"]
    found = RulesBroken().compare(pair_of(FRAME, synthetic), context())
    assert found.value == pytest.approx(30 / 200)
    assert found.yardstick == 0
    (row,) = found.detail("rules").records()
    assert row["rule"] == "never sex=M and region=east (no men in the east)"
    assert row["synthetic_share"] == pytest.approx(30 / 200)


def test_no_rule_no_score() -> None:
    schema = codes_schema({"sex": 2})
    frame = FRAME[["sex"]].replace({"F": "0", "M": "1"})
    assert "no rule" in RulesBroken().compare(pair_of(frame, frame, schema=schema), context()).why_not
