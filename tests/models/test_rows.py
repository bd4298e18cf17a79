"""Rows as arrays and back, and rules over several columns."""

import numpy as np

from tests.models.moving import DOMAIN, NO_SUCH_CELL, RULE, truth
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.models.records import Rules, Target, breaks, stacked, unstacked


def test_rows_survive_being_stacked() -> None:
    domain = Domain.of({"narrow": 2, "wide": 300})
    codes = {"narrow": np.array([0, 1, 1], np.uint8), "wide": np.array([299, 0, 7], np.uint16)}
    columns = stacked(domain, codes)
    assert columns.dtype == np.uint16
    again = unstacked(domain, columns)
    assert all(np.array_equal(again[name], codes[name]) for name in codes)
    assert [again[name].dtype for name in codes] == [np.uint8, np.uint16]


def test_rules_are_looked_up_by_cell() -> None:
    other = StructuralZeros(Clique("abd"), np.arange(24) == 17)
    rules = Rules.of(DOMAIN, [RULE, other])
    codes = {name: np.concatenate([column, [2]]).astype(np.uint8) for name, column in truth(200).items()}
    codes["d"][-1] = 1
    columns = stacked(DOMAIN, codes)
    cells = (codes["a"].astype(int) * 3 + codes["b"]) * 2 + codes["d"]
    expected = NO_SUCH_CELL[codes["a"], codes["c"]] | (cells == 17)
    assert expected.any()
    found = [breaks(columns, row, np.array([0, 1]), rules) for row in range(201)]
    assert found == expected.tolist()


def test_rules_that_touch_a_column() -> None:
    rules = Rules.of(DOMAIN, [RULE, StructuralZeros(Clique("bd"), np.zeros(6, dtype=bool))])
    assert rules.touching([0]).tolist() == [0]
    assert rules.touching([3]).tolist() == [1]
    assert rules.touching([1, 2]).tolist() == [0, 1]
    assert Rules.of(DOMAIN, []).touching([0, 1, 2, 3]).tolist() == []


def test_wanted_rows_have_the_shares_of_the_counts() -> None:
    assert Target(Clique("d"), np.array([1.0, 3.0])).wanted(100).tolist() == [25.0, 75.0]
