"""Families: counts of parents × child, at any level, equal to counting row by row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.domain import Domain
from understudy.errors import UsageError
from understudy.privacy.dependence import LARGEST_TOTAL, Family, FamilyTables

DOMAIN = Domain.of({"a": 2, "b": 4, "c": 3})
COARSER = {"b": [np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64)], "c": [np.array([0, 1, 0])]}
FAMILIES = [
    Family("a"),
    Family("b", ("c",)),
    Family("a", ("c", "b")),
    Family("c", ("a", "b"), (0, 1)),
    Family("a", ("b", "c"), (2, 1)),
]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FAMILIES), st.lists(st.tuples(*(st.integers(0, s - 1) for s in (2, 4, 3))), max_size=30))
def test_the_table_is_what_counting_row_by_row_gives(family, rows) -> None:
    tables = FamilyTables(DOMAIN, COARSER)
    clique = tables.clique(family)
    counted = np.zeros(DOMAIN.shape(clique), dtype=np.int64)
    wanted = np.zeros(tables.shape(family), dtype=np.int64)
    for row in rows:
        codes = dict(zip(DOMAIN.columns, row, strict=True))
        counted[tuple(codes[name] for name in clique)] += 1
        place = 0
        for number, name in enumerate(family.parents):
            level = family.level(number)
            group = COARSER[name][level - 1] if level else np.arange(DOMAIN.sizes[name])
            place = place * (int(group.max()) + 1) + int(group[codes[name]])
        wanted[place, codes[family.child]] += 1
    assert np.array_equal(tables.table(family, counted.ravel()), wanted)


def test_counts_are_cut_so_that_no_sum_wraps() -> None:
    table = FamilyTables(DOMAIN).table(Family("a", ("b",)), np.full(8, 2**63 - 1))
    assert int(table.sum()) == LARGEST_TOTAL


def test_counts_of_another_size_and_odd_families_are_refused() -> None:
    with pytest.raises(UsageError, match="cells of its table"):
        FamilyTables(DOMAIN).table(Family("a", ("b",)), np.zeros(7, dtype=np.int64))
    with pytest.raises(UsageError, match="its own parent"):
        Family("a", ("a",))
    with pytest.raises(UsageError, match="a parent twice"):
        Family("a", ("b", "b"))
    with pytest.raises(UsageError, match="one level per parent"):
        Family("a", ("b", "c"), (1,))
