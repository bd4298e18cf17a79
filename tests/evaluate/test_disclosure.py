"""Disclosure: matches by hand, and the promise in words."""

import dataclasses

import pandas as pd
import pytest

from tests.evaluate.examples import codes_schema, context, pair_of
from understudy.evaluate.records import Disclosure

SCHEMA = codes_schema({"a": 4, "b": 2})
REAL = pd.DataFrame({"a": list("00123"), "b": list("00011")})
SYNTHETIC = pd.DataFrame({"a": list("0013"), "b": list("0000")})


def test_by_hand() -> None:
    found = Disclosure().compare(pair_of(REAL, SYNTHETIC, schema=SCHEMA), context())
    # unique real rows: (1,0), (2,1), (3,1); of those (1,0) is synthetic too. Equal rows: (0,0) twice and (1,0).
    assert found.value == pytest.approx(1 / 3)
    assert found.score("equal_rows").value == pytest.approx(3 / 4)
    (row,) = found.detail("matches").records()
    assert (row["real_unique_rows"], row["of_those_in_synthetic"], row["synthetic_rows_equal_to_real"]) == (3, 1, 3)
    assert "CONFIDENTIAL" in found.detail("matches").caption


def test_it_judges_nothing_and_says_what_protects() -> None:
    pair = pair_of(REAL, SYNTHETIC, schema=SCHEMA)
    found = Disclosure().compare(pair, context())
    assert {score.direction for score in found.scores} == {"none"}
    assert "nothing is known here" in found.notes[0]
    promised = Disclosure().compare(dataclasses.replace(pair, promise="ε = 1."), context())
    assert promised.notes[0] == "ε = 1."


def test_no_unique_row() -> None:
    twins = pd.concat([REAL, REAL])
    assert "more than once" in Disclosure().compare(pair_of(twins, SYNTHETIC, schema=SCHEMA), context()).why_not
