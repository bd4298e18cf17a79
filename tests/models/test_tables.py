"""Tests of `understudy.models.tables`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.models.tables import (
    allowed,
    check_linked,
    check_possible,
    clip_rescale,
    code_dtype,
    controlled_rounding,
    cumulative,
    draw_cells,
    draw_places,
    joint_table,
    linked,
    nonnegative,
    norm_cut,
    norm_sub,
    sub_indices,
)


class Extremes:
    """A generator that only returns the ends of [0, 1)."""

    def random(self, rows):
        return np.array([0.0, np.nextafter(1.0, 0.0)] * (rows // 2))


def test_cells_without_mass_are_never_drawn():
    steps = cumulative(np.array([0.0, 0.3, 0.0, 0.7, 0.0]))
    assert set(draw_cells(steps, 4, Extremes()).tolist()) == {1, 3}


def test_shares_follow_the_probabilities():
    probabilities = np.array([0.05, 0.15, 0.3, 0.5])
    drawn = draw_cells(cumulative(probabilities), 100_000, np.random.default_rng(1))
    assert chisquare(np.bincount(drawn, minlength=4), probabilities * 100_000).pvalue > 1e-4


def test_the_smallest_type_is_used():
    assert [code_dtype(size) for size in (1, 256, 257, 65536, 65537)] == [
        np.uint8, np.uint8, np.uint16, np.uint16, np.uint32,
    ]  # fmt: skip


def test_negative_rows_are_refused():
    with pytest.raises(UsageError, match="rows"):
        draw_cells(np.array([1.0]), -1, np.random.default_rng(0))
    with pytest.raises(UsageError, match="rows"):
        controlled_rounding(np.array([1.0]), -1, np.random.default_rng(0))


@pytest.mark.parametrize("rows", [0, 1, 7, 1_000])
def test_counts_are_the_expectation_rounded_down_or_up(rows):
    probabilities = np.random.default_rng(2).dirichlet(np.full(50, 0.3))
    probabilities[[3, 8]] = 0.0
    probabilities /= probabilities.sum()
    for seed in range(20):
        counts = controlled_rounding(probabilities, rows, np.random.default_rng(seed))
        assert counts.sum() == rows
        assert np.all(np.abs(counts - rows * probabilities) < 1.0 + 1e-9)
        assert not counts[[3, 8]].any()


def test_the_mean_of_rounded_counts_is_right():
    probabilities = np.array([0.05, 0.15, 0.3, 0.41, 0.09])
    repeats = 40_000
    rng = np.random.default_rng(5)
    counts = np.array([controlled_rounding(probabilities, 7, rng) for _ in range(repeats)])
    fractions = 7 * probabilities % 1.0
    spread = np.sqrt(fractions * (1 - fractions) / repeats)
    assert np.all(np.abs(counts.mean(axis=0) - 7 * probabilities) < 6 * spread + 1e-9)


def test_whole_expectations_need_no_chance():
    assert controlled_rounding(np.array([0.5, 0.25, 0.25]), 8, np.random.default_rng(0)).tolist() == [4, 2, 2]


def test_rounded_places_come_in_random_order():
    places = draw_places(np.array([0.5, 0.0, 0.5]), 1_000, np.random.default_rng(3), "controlled")
    assert np.bincount(places).tolist() == [500, 0, 500]
    assert 400 < np.count_nonzero(np.diff(places)) < 600


DOMAIN = Domain.of({"state": 2, "city": 4})
WITHIN = np.array([[True, True, False, False], [False, False, True, True]])  # which city lies in which state


def joined(state, city, possible=WITHIN):
    parts = {Clique(("state",)): np.array(state), Clique(("city",)): np.array(city)}
    clique, cells, table = joint_table(DOMAIN, parts, [StructuralZeros(DOMAIN.everything(), ~possible.ravel())])
    full = np.zeros(8)
    full[cells] = table
    assert clique == DOMAIN.everything()
    return full.reshape(2, 4)


def test_consistent_parts_are_kept_exactly():
    table = joined([0.3, 0.7], [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(table, [[0.1, 0.2, 0, 0], [0, 0, 0.3, 0.4]], atol=1e-9)


def test_no_rule_gives_the_product():
    table = joined([0.3, 0.7], [0.1, 0.2, 0.3, 0.4], np.ones((2, 4), dtype=bool))
    np.testing.assert_allclose(table, np.outer([0.3, 0.7], [0.1, 0.2, 0.3, 0.4]))


def test_one_impossible_cell_keeps_the_margins():
    possible = np.ones((2, 4), dtype=bool)
    possible[1, 3] = False
    table = joined([0.6, 0.4], [0.4, 0.3, 0.2, 0.1], possible)
    assert table[1, 3] == 0
    np.testing.assert_allclose(table.sum(axis=1), [0.6, 0.4], atol=1e-8)
    np.testing.assert_allclose(table.sum(axis=0), [0.4, 0.3, 0.2, 0.1], atol=1e-8)


@pytest.mark.parametrize("city", [[0.0, 0.0, 0.5, 0.5], [0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 0.0, 1.0]])
def test_contradicting_parts_still_give_a_legal_table(city):
    table = joined([1.0, 0.0], city)
    assert table.sum() == pytest.approx(1.0)
    assert table.min() >= 0
    assert not table[~WITHIN].any()


WAYS = [clip_rescale, norm_sub, norm_cut]
VECTORS = st.lists(st.integers(-50, 50), min_size=1, max_size=12)


def test_published_vectors():
    values = [5, -2, 1, 0.5, 3]
    np.testing.assert_allclose(norm_cut(values, 7.5), [5, 0, 0, 0, 2.5])
    np.testing.assert_allclose(norm_sub(values, 7.5), [4.5, 0, 0.5, 0, 2.5])
    np.testing.assert_allclose(clip_rescale(values, 9.5), [5, 0, 1, 0.5, 3])


def test_flat_sanitizer_by_hand():
    noisy = np.array([3, 0, 1, 0]) + np.array([-1, 2, 0, -1])
    np.testing.assert_allclose(clip_rescale(noisy, 1.0), [0.4, 0.4, 0.2, 0.0])
    np.testing.assert_allclose(norm_sub(noisy, 4.0), [5 / 3, 5 / 3, 2 / 3, 0.0])


@given(VECTORS, st.floats(0, 100))
def test_every_way_gives_the_total_without_negatives(values, total):
    for way in WAYS:
        result = way(values, total)
        assert result.min() >= 0
        assert result.sum() == pytest.approx(total, abs=1e-9)
        order = np.argsort(values, kind="stable")
        assert np.all(np.diff(result[order]) >= -1e-9) or way is norm_cut


@given(VECTORS, st.floats(0.1, 100), st.integers(0, 2**32))
def test_norm_sub_is_the_nearest_point(values, total, seed):
    nearest_point = norm_sub(values, total)
    other = np.random.default_rng(seed).dirichlet(np.full(len(values), 0.5)) * total
    assert np.linalg.norm(nearest_point - values) <= np.linalg.norm(other - values) + 1e-9


@pytest.mark.parametrize("way", WAYS)
def test_nothing_positive(way):
    np.testing.assert_allclose(way([-3, -3, -3, -3], 2.0), [0.5] * 4)
    np.testing.assert_allclose(way([-3, 4], 0.0), [0.0, 0.0])


@pytest.mark.parametrize("total", [-1.0, float("nan"), float("inf")])
def test_total_is_checked(total):
    with pytest.raises(UsageError, match="total"):
        clip_rescale([1], total)


def test_named_ways():
    np.testing.assert_allclose(nonnegative("norm_cut", [1, 2, 3], 3.0), [0, 0, 3])
    with pytest.raises(UsageError, match="norm_sub"):
        nonnegative("norm_subb", [1], 1.0)
    with pytest.raises(UsageError, match="at least one cell"):
        nonnegative("norm_sub", [], 1.0)


RESTRICT_DOMAIN = Domain.of({"a": 2, "one": 1, "b": 3, "c": 4})


def rule(*columns, domain=RESTRICT_DOMAIN):
    mask = np.zeros(domain.cells(columns), dtype=bool)
    mask[0] = True
    return StructuralZeros(domain.clique(columns), mask)


def test_sub_indices_agree_with_unravelling():
    cells = np.arange(24)
    codes = dict(zip("abc", np.unravel_index(cells, (2, 3, 4)), strict=True))
    found = sub_indices(RESTRICT_DOMAIN, RESTRICT_DOMAIN.columns, cells, ("a", "c"))
    np.testing.assert_array_equal(found, codes["a"] * 4 + codes["c"])
    assert sub_indices(RESTRICT_DOMAIN, RESTRICT_DOMAIN.columns, cells, ()).tolist() == [0] * 24


def test_sub_indices_of_a_huge_table():
    domain = Domain.of({f"c{i}": 1000 for i in range(6)})
    cell = np.array([123_456_789_012_345_678], dtype=np.int64)
    assert sub_indices(domain, domain.columns, cell, ("c0", "c5")).tolist() == [123_678]


def test_allowed_joins_all_rules_that_fit():
    cells = np.arange(24)
    a, b, c = np.unravel_index(cells, (2, 3, 4))
    possible = allowed(RESTRICT_DOMAIN, RESTRICT_DOMAIN.columns, cells, [rule("a", "b"), rule("c")])
    np.testing.assert_array_equal(possible, ~((a == 0) & (b == 0)) & (c != 0))
    assert allowed(RESTRICT_DOMAIN, ("a",), np.arange(2), [rule("a", "b")]).all()


def test_rules_chain_columns_into_groups():
    cliques = [Clique((name,)) for name in RESTRICT_DOMAIN.columns]
    assert linked(RESTRICT_DOMAIN, cliques, []) == [[("a",)], [("one",)], [("b",)], [("c",)]]
    assert linked(RESTRICT_DOMAIN, cliques, [rule("a", "c")]) == [[("a",), ("c",)], [("one",)], [("b",)]]
    assert linked(RESTRICT_DOMAIN, cliques, [rule("b", "c"), rule("a", "c")]) == [[("a",), ("b",), ("c",)], [("one",)]]


def test_too_large_a_group_is_refused_and_named():
    domain = Domain.of({"x": 10_000, "y": 1001, "z": 5})
    cliques = [Clique((name,)) for name in domain.columns]
    assert check_linked(domain, cliques, [], "plan") == 10_000
    assert check_linked(domain, cliques, [rule("y", "z", domain=domain)], "plan") == 10_000
    with pytest.raises(ResourceError, match=r"plan: the one table of 10,010,000 cells into which rules tie x, y needs"):
        check_linked(domain, cliques, [rule("x", "y", domain=domain)], "plan")


def test_rules_that_leave_nothing_are_refused():
    cliques = [Clique((name,)) for name in RESTRICT_DOMAIN.columns]
    halves = [np.repeat([True, False], 3), np.repeat([False, True], 3)]
    rules = [StructuralZeros(Clique(("a", "b")), mask) for mask in halves]
    assert check_linked(RESTRICT_DOMAIN, cliques, rules[:1], "plan") == 6
    with pytest.raises(UsageError, match=r"plan: rules over a, b leave no combination"):
        check_linked(RESTRICT_DOMAIN, cliques, rules, "plan")


def test_rules_that_leave_nothing_possible_are_refused():
    check_possible(RESTRICT_DOMAIN, ())
    check_possible(RESTRICT_DOMAIN, [rule("a", "b")])
    nothing = StructuralZeros(Clique(("a",)), np.array([True, False]))
    check_possible(RESTRICT_DOMAIN, [nothing])
    with pytest.raises(UsageError, match="no combination possible"):
        check_possible(RESTRICT_DOMAIN, [nothing, StructuralZeros(Clique(("a",)), np.array([False, True]))])
