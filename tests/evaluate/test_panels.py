"""Panels: one number per pair of levels, with what cannot be computed counted as nothing."""

import numpy as np
import pandas as pd
import pytest

from tests.evaluate.examples import codes_schema, pair_of
from understudy.evaluate.metric import Unavailable
from understudy.evaluate.slopes import agreement, panel_detail, panel_notes, panel_of, slope_table

SCHEMA = codes_schema({"a": 2, "b": 2})
REAL = pd.DataFrame({"a": list("0011") * 5, "b": list("0011") * 5})


def test_lost_levels_count_as_no_association() -> None:
    pair = pair_of(REAL, REAL.assign(b="0"), schema=SCHEMA)
    panel = panel_of(pair, pair.real, pair.copies, slope_table, outcomes=("a", "b"), both_ways=True)
    assert panel.mean_difference() == pytest.approx(1.0)  # every real slope is 1 or −1, every synthetic one 0
    assert panel.lost == 4
    assert "4 numbers cannot be computed" in panel_notes(pair, panel)[0]


def test_detail_is_worst_first() -> None:
    pair = pair_of(REAL, pd.DataFrame({"a": list("0011") * 5, "b": list("0111") * 5}), schema=SCHEMA)
    panel = panel_of(pair, pair.real, pair.copies, slope_table, outcomes=("a",), both_ways=True)
    rows = panel_detail(pair, panel, "levels", "caption").records()
    gaps = [abs(row["real"] - row["synthetic"]) for row in rows]  # type: ignore[operator]
    assert gaps == sorted(gaps, reverse=True)
    assert {row["column"] for row in rows} == {"a"}
    assert not panel_notes(pair, panel)


def test_agreement_has_reasons() -> None:
    assert agreement(np.array([1.0, 2.0, 4.0]), np.array([2.0, 4.0, 8.0])) == pytest.approx(1.0)
    assert isinstance(agreement(np.array([1.0, 2.0]), np.array([1.0, 2.0])), Unavailable)
    flat = agreement(np.array([1.0, 2.0, 3.0]), np.zeros(3))
    assert isinstance(flat, Unavailable)
    assert "synthetic values do not vary" in flat.reason
