"""Tests of `understudy.methods.network_structure`."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.domain import Clique, Domain, Partition, StructuralZeros
from understudy.methods.network_structure import (
    COUNTED,
    FamilyTable,
    Search,
    SearchSize,
    best_degree,
    from_pairs,
    halved,
    largest_table,
    maximal_sets,
    of_equal_mass,
    pairs_of,
    parents_joint,
    plain_conditional,
    possible_cells,
    refined_conditional,
    usefulness,
)
from understudy.models.bayes_net import Conditional
from understudy.privacy.dependence import Family, FamilyTables

# Structures: from pair scores to a network whose tables stay useful.


DOMAIN = Domain.of({"a": 2, "b": 2, "c": 2, "one": 1, "d": 4})


def scores(**given: float) -> dict[Clique, float]:
    """Pair scores, 0 unless given (`ab` is the pair of a and b)."""
    return {
        DOMAIN.clique(pair.columns): given.get("".join(DOMAIN.clique(pair.columns)), 0.0) for pair in pairs_of(DOMAIN)
    }


def test_every_pair_of_live_columns_is_scored_once() -> None:
    assert len(pairs_of(DOMAIN)) == 6
    assert Family("b", ("a",)) in pairs_of(DOMAIN)


def test_the_first_table_starts_at_the_best_pair_per_cell_and_grows_by_score() -> None:
    """b and c have the best score per cell; a adds more than d and fits into 8 cells, d no longer does."""
    found = from_pairs(Search(DOMAIN, [], 8.0), scores(bc=10.0, ab=4.0, cd=9.0, ad=1.0))
    assert [family.child for family in found.families] == ["b", "c", "a", "d"]
    assert found.families[2] == Family("a", ("b", "c"))
    assert found.families[3] == Family("d", ("c",))
    assert found.derived == 2
    assert [family.child for family in found.measured] == ["a", "d"]


def test_parents_without_a_score_above_nothing_are_not_taken() -> None:
    found = from_pairs(Search(DOMAIN, [], 4.0), scores(ab=5.0, bd=-2.0, ad=-1.0, cd=-3.0, ac=-1.0, bc=-1.0))
    assert {family.child: family.parents for family in found.families}["c"] == ()


def test_one_live_column_is_its_own_network() -> None:
    domain = Domain.of({"one": 1, "a": 3})
    assert from_pairs(Search(domain, [], 100.0), {}).families == (Family("a"),)


# Parents: usefulness as published, maximal sets against brute force, levels, limits of a step.


ROWS, COLUMNS, SHARE = 44_821, 15, 0.7


def published(epsilon: float):
    """Scale of the published noise on counts, for so many tables."""
    return lambda tables: 2 * tables / (SHARE * epsilon)


def test_usefulness_as_published() -> None:
    """n = 44,821, d = 15, β = 0.3, ε = e⁻²: 37.9, 20.4, 11.1, 6.03, 3.32, so k = 4; ε = 1: 4.38 at k = 8."""
    noise = published(math.exp(-2))
    found = [usefulness(ROWS, 2 ** (k + 1), noise(COLUMNS - k)) for k in range(1, 6)]
    assert found == pytest.approx([37.9, 20.4, 11.1, 6.03, 3.32], abs=0.05)
    assert best_degree(ROWS, COLUMNS, 4.0, noise) == 4
    assert usefulness(ROWS, 2**9, published(1.0)(COLUMNS - 8)) == pytest.approx(4.38, abs=0.005)
    assert best_degree(ROWS, COLUMNS, 4.0, published(1.0)) == 8
    assert best_degree(10, COLUMNS, 4.0, noise) == 0


@pytest.mark.parametrize(("epsilon", "cells"), [(math.exp(-2), 35.4), (1.0, 261.5), (math.exp(2), 1931.9)])
def test_largest_tables_as_published(epsilon: float, cells: float) -> None:
    assert largest_table(ROWS, 4.0, published(epsilon)(COLUMNS)) == pytest.approx(cells, abs=0.05)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(2, 9), max_size=4), st.floats(0.5, 200))
def test_maximal_sets_are_all_sets_that_nothing_can_be_added_to(sizes, limit) -> None:
    columns = {f"c{place}": [size] for place, size in enumerate(sizes)}
    found = [frozenset(name for name, _ in taken) for taken in maximal_sets(columns, limit)]
    subsets = [set(s) for width in range(len(sizes) + 1) for s in itertools.combinations(columns, width)]
    fitting = [s for s in subsets if math.prod(columns[name][0] for name in s) <= limit]
    expected = {frozenset(s) for s in fitting if not any(s < other for other in fitting)}
    assert set(found) == expected
    assert len(found) == len(set(found))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(2, 9), min_size=1, max_size=3, unique=True), max_size=3), st.floats(1, 100))
def test_maximal_sets_with_levels_cannot_be_made_finer(levels, limit) -> None:
    columns = {f"c{place}": sorted(sizes, reverse=True) for place, sizes in enumerate(levels)}
    found = maximal_sets(columns, limit)
    choices = itertools.product(*([None, *range(len(sizes))] for sizes in columns.values()))
    every = [{n: c for n, c in zip(columns, choice, strict=True) if c is not None} for choice in choices]

    def cells(taken: dict[str, int]) -> int:
        return math.prod(columns[name][level] for name, level in taken.items())

    def finer(one: dict[str, int], other: dict[str, int]) -> bool:
        return one != other and all(name in one and one[name] <= level for name, level in other.items())

    fitting = [taken for taken in every if cells(taken) <= limit]
    expected = {frozenset(t.items()) for t in fitting if not any(finer(other, t) for other in fitting)}
    assert expected <= {frozenset(taken) for taken in found}
    assert all(cells(dict(taken)) <= limit for taken in found)


def test_levels_merge_neighbours() -> None:
    assert [level.tolist() for level in halved(9, 2)] == [[0, 0, 1, 1, 2, 2, 3, 3, 4]]
    assert halved(100, 0) == []
    shares = np.array([0.0, 0.7, 0.05, 0.05, 0.1, 0.1])
    (level,) = of_equal_mass(shares, [3])
    assert level.tolist() == [0, 1, 2, 2, 2, 2]
    assert of_equal_mass(np.array([1.0, 0.0]), [2, 5]) == []


def test_the_table_of_a_family_is_a_partition_and_counts_as_the_score_does() -> None:
    domain = Domain.of({"a": 4, "b": 3, "c": 2})
    coarser = {"a": [np.array([0, 0, 1, 1])]}
    table = FamilyTable(Family("c", ("b", "a"), (0, 1)), domain, coarser)
    rng = np.random.default_rng(1)
    codes = {name: rng.integers(0, size, 50) for name, size in domain.sizes.items()}
    assert isinstance(table, Partition)
    assert (table.name, table.cells, table.columns) == ("b × a in 2 × c", 12, Clique(("a", "b", "c")))
    whole = np.zeros(domain.shape(domain.columns), dtype=np.int64)
    np.add.at(whole, tuple(codes.values()), 1)
    expected = FamilyTables(domain, coarser).table(table.family, whole.ravel())
    assert np.array_equal(np.bincount(table.assign(codes), minlength=12).reshape(6, 2), expected)


def test_a_step_offers_what_fits_and_forces_what_rules_tie() -> None:
    domain = Domain.of({"a": 2, "b": 3, "c": 4})
    rule = StructuralZeros(Clique(("a", "c")), np.zeros(8, dtype=bool))
    offers = Search(domain, [], 12).families(["a", "b"], ["c"])
    assert offers == [Family("c", ("a",)), Family("c", ("b",)), Family("c")]
    largest = Search(domain, [], 12, maximal=True).families(["a", "b"], ["c"])
    assert set(largest) == {Family("c", ("b",)), Family("c", ("a",))}
    tied = Search(domain, [rule], 12).families(["b", "a"], ["c"])
    assert all(family.parents[:1] == ("a",) for family in tied)
    assert Search(domain, [], 1e9, degree=2).families(["a", "b"], ["c"]) == [Family("c", ("a", "b"))]


def test_candidates_stay_within_the_limits_of_a_step() -> None:
    domain = Domain.of({f"c{place}": 2 for place in range(60)} | {"wide": COUNTED, "other": 3})
    columns = list(domain.columns)
    offers = Search(domain, [], 1e9, most_candidates=2000).families(columns[:30], columns[30:])
    assert max(len(family.parents) for family in offers) == 1
    assert len(offers) <= 2000
    assert all(domain.cells(family.columns) <= COUNTED or not family.parents for family in offers)
    assert {family.child for family in offers} == set(columns[30:])


SEARCHES = {
    "all sets": {"limit": 5_000.0},
    "all sets, few cells": {"limit": 100.0},
    "maximal sets": {"limit": 800.0, "maximal": True},
    "two parents": {"limit": 1e9, "degree": 2},
}


@pytest.mark.parametrize("named", SEARCHES.values(), ids=SEARCHES.keys())
@pytest.mark.parametrize("columns", [8, 14, 40])
def test_the_expected_size_of_a_search_is_about_what_it_offers(columns: int, named: dict[str, float]) -> None:
    """Candidates and cells of all steps, with columns chosen in a random order, against what sizes alone tell."""
    sizes = dict(zip((f"c{place}" for place in range(columns)), itertools.cycle((2, 3, 4, 6, 8, 12, 5, 7))))
    levels = {
        name: [np.arange(size) // 2] if size >= 8 and "degree" not in named else [] for name, size in sizes.items()
    }
    domain = Domain.of(sizes)
    search = Search(domain, (), coarser=levels, **named)  # type: ignore[arg-type]
    order = list(np.random.default_rng(1).permutation(list(sizes)))
    offered, counted = 0, set[Clique]()
    for step in range(1, columns):
        families = search.families(order[:step], order[step:])
        offered += len(families)
        counted |= {domain.clique(family.columns) for family in families}
    cells = sum(map(domain.cells, counted))
    given = {name: (size, *(int(level.max()) + 1 for level in levels[name])) for name, size in sizes.items()}
    found = SearchSize.of(search, given, 2**30)
    assert 0.5 < found.candidates / offered < 2.0
    assert 0.5 < found.kept_cells / cells < 2.0
    assert found.kept_cells <= found.peak_cells <= 1.5 * found.kept_cells


def test_no_more_is_expected_to_be_kept_than_may_be() -> None:
    sizes = {f"c{place}": 8 for place in range(12)}
    search = Search(Domain.of(sizes), (), 1e5)
    levels = {name: (size,) for name, size in sizes.items()}
    free, bound = (SearchSize.of(search, levels, room) for room in (2**30, 10_000))
    assert free.kept_cells > bound.kept_cells == 10_000
    assert bound.peak_cells < free.peak_cells


# Conditionals: rows that add up, rules that hold, sums that agree, and the fallback of empty combinations.


CONDITIONALS_DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})


def test_a_combination_without_mass_takes_the_childs_own_distribution() -> None:
    counts = np.array([[6.0, 2.0], [-1.0, -3.0], [0.0, 4.0]])
    found = plain_conditional(counts, np.ones((3, 2), dtype=bool))
    assert found.tolist() == [[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]]


def test_nothing_positive_is_uniform_over_what_is_possible() -> None:
    possible = np.array([[True, True], [True, False], [False, False]])
    assert plain_conditional(np.full((3, 2), -1.0), possible).tolist() == [[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]]


def test_rules_exclude_cells_and_coarse_parents_are_left_out() -> None:
    rule = StructuralZeros(Clique(("a", "c")), np.array([False, True, False, False]))
    fine = FamilyTable(Family("c", ("b", "a")), CONDITIONALS_DOMAIN, {})
    assert possible_cells(fine, [rule]).tolist() == [[True, False], [True, True]] * 3
    coarse = FamilyTable(Family("c", ("a", "b"), (0, 1)), CONDITIONALS_DOMAIN, {"b": [np.array([0, 0, 1])]})
    assert possible_cells(coarse, [rule]).tolist() == [[True, False]] * 2 + [[True, True]] * 2


def test_refined_rows_agree_with_the_columns_and_the_parents() -> None:
    rng = np.random.default_rng(2)
    own, joint = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1, 0.0])
    noisy = np.multiply.outer(joint, own) + rng.normal(0, 0.01, (4, 3))
    found = refined_conditional(noisy, 1e-4, own, joint, np.ones((4, 3), dtype=bool))
    assert found.sum(axis=1) == pytest.approx(np.ones(4))
    assert joint @ found == pytest.approx(own, abs=1e-6)
    exact = refined_conditional(np.diag([0.2, 0.3, 0.5]), 1e-18, own, own, np.ones((3, 3), dtype=bool))
    assert exact == pytest.approx(np.eye(3), abs=1e-6)


def test_nothing_but_noise_is_drawn_to_independence() -> None:
    own, joint = np.array([0.25, 0.75]), np.full(50, 0.02)
    noisy = np.multiply.outer(joint, own) + np.random.default_rng(3).normal(0, 0.05, (50, 2))
    found = refined_conditional(noisy, 0.05**2, own, joint, np.ones((50, 2), dtype=bool))
    plain = plain_conditional(noisy, np.ones((50, 2), dtype=bool))
    assert np.abs(found - own).mean() < np.abs(plain - own).mean() / 2


def test_the_joint_of_parents_is_that_of_the_network() -> None:
    rng = np.random.default_rng(4)
    root, second = rng.dirichlet(np.ones(2), 1), rng.dirichlet(np.ones(3), 2)
    parts = [Conditional("a", (), root), Conditional("b", ("a",), second)]
    joint = root[0][:, None] * second
    table = FamilyTable(Family("c", ("b", "a")), CONDITIONALS_DOMAIN, {})
    assert parents_joint(CONDITIONALS_DOMAIN, parts, table) == pytest.approx(joint.T.ravel())
    coarse = FamilyTable(Family("c", ("b",), (1,)), CONDITIONALS_DOMAIN, {"b": [np.array([0, 1, 0])]})
    assert parents_joint(CONDITIONALS_DOMAIN, parts, coarse) == pytest.approx(
        [joint[:, [0, 2]].sum(), joint[:, 1].sum()]
    )
    assert parents_joint(CONDITIONALS_DOMAIN, [], FamilyTable(Family("a"), CONDITIONALS_DOMAIN, {})) == pytest.approx(
        [1.0]
    )
