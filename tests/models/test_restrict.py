import numpy as np
import pytest

from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.models.tables import allowed, check_linked, check_possible, linked, sub_indices

DOMAIN = Domain.of({"a": 2, "one": 1, "b": 3, "c": 4})


def rule(*columns, domain=DOMAIN):
    mask = np.zeros(domain.cells(columns), dtype=bool)
    mask[0] = True
    return StructuralZeros(domain.clique(columns), mask)


def test_sub_indices_agree_with_unravelling():
    cells = np.arange(24)
    codes = dict(zip("abc", np.unravel_index(cells, (2, 3, 4)), strict=True))
    found = sub_indices(DOMAIN, DOMAIN.columns, cells, ("a", "c"))
    np.testing.assert_array_equal(found, codes["a"] * 4 + codes["c"])
    assert sub_indices(DOMAIN, DOMAIN.columns, cells, ()).tolist() == [0] * 24


def test_sub_indices_of_a_huge_table():
    domain = Domain.of({f"c{i}": 1000 for i in range(6)})
    cell = np.array([123_456_789_012_345_678], dtype=np.int64)
    assert sub_indices(domain, domain.columns, cell, ("c0", "c5")).tolist() == [123_678]


def test_allowed_joins_all_rules_that_fit():
    cells = np.arange(24)
    a, b, c = np.unravel_index(cells, (2, 3, 4))
    possible = allowed(DOMAIN, DOMAIN.columns, cells, [rule("a", "b"), rule("c")])
    np.testing.assert_array_equal(possible, ~((a == 0) & (b == 0)) & (c != 0))
    assert allowed(DOMAIN, ("a",), np.arange(2), [rule("a", "b")]).all()


def test_rules_chain_columns_into_groups():
    cliques = [Clique((name,)) for name in DOMAIN.columns]
    assert linked(DOMAIN, cliques, []) == [[("a",)], [("one",)], [("b",)], [("c",)]]
    assert linked(DOMAIN, cliques, [rule("a", "c")]) == [[("a",), ("c",)], [("one",)], [("b",)]]
    assert linked(DOMAIN, cliques, [rule("b", "c"), rule("a", "c")]) == [[("a",), ("b",), ("c",)], [("one",)]]


def test_too_large_a_group_is_refused_and_named():
    domain = Domain.of({"x": 10_000, "y": 1001, "z": 5})
    cliques = [Clique((name,)) for name in domain.columns]
    assert check_linked(domain, cliques, [], "plan") == 10_000
    assert check_linked(domain, cliques, [rule("y", "z", domain=domain)], "plan") == 10_000
    with pytest.raises(ResourceError, match=r"plan: rules tie x, y into one table of 10,010,000 cells"):
        check_linked(domain, cliques, [rule("x", "y", domain=domain)], "plan")


def test_rules_that_leave_nothing_are_refused():
    cliques = [Clique((name,)) for name in DOMAIN.columns]
    halves = [np.repeat([True, False], 3), np.repeat([False, True], 3)]
    rules = [StructuralZeros(Clique(("a", "b")), mask) for mask in halves]
    assert check_linked(DOMAIN, cliques, rules[:1], "plan") == 6
    with pytest.raises(UsageError, match=r"plan: rules over a, b: leave no combination"):
        check_linked(DOMAIN, cliques, rules, "plan")


def test_rules_that_leave_nothing_possible_are_refused():
    check_possible(DOMAIN, ())
    check_possible(DOMAIN, [rule("a", "b")])
    nothing = StructuralZeros(Clique(("a",)), np.array([True, False]))
    check_possible(DOMAIN, [nothing])
    with pytest.raises(UsageError, match="no combination possible"):
        check_possible(DOMAIN, [nothing, StructuralZeros(Clique(("a",)), np.array([False, True]))])
