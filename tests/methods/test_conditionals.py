"""Conditionals: rows that add up, rules that hold, sums that agree, and the fallback of empty combinations."""

import numpy as np
import pytest

from understudy.domain import Clique, Domain, StructuralZeros
from understudy.methods.network_structure import (
    FamilyTable,
    parents_joint,
    plain_conditional,
    possible_cells,
    refined_conditional,
)
from understudy.models.bayes_net import Conditional
from understudy.privacy.dependence import Family

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})


def test_a_combination_without_mass_takes_the_childs_own_distribution() -> None:
    counts = np.array([[6.0, 2.0], [-1.0, -3.0], [0.0, 4.0]])
    found = plain_conditional(counts, np.ones((3, 2), dtype=bool))
    assert found.tolist() == [[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]]


def test_nothing_positive_is_uniform_over_what_is_possible() -> None:
    possible = np.array([[True, True], [True, False], [False, False]])
    assert plain_conditional(np.full((3, 2), -1.0), possible).tolist() == [[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]]


def test_rules_exclude_cells_and_coarse_parents_are_left_out() -> None:
    rule = StructuralZeros(Clique(("a", "c")), np.array([False, True, False, False]))
    fine = FamilyTable(Family("c", ("b", "a")), DOMAIN, {})
    assert possible_cells(fine, [rule]).tolist() == [[True, False], [True, True]] * 3
    coarse = FamilyTable(Family("c", ("a", "b"), (0, 1)), DOMAIN, {"b": [np.array([0, 0, 1])]})
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
    table = FamilyTable(Family("c", ("b", "a")), DOMAIN, {})
    assert parents_joint(DOMAIN, parts, table) == pytest.approx(joint.T.ravel())
    coarse = FamilyTable(Family("c", ("b",), (1,)), DOMAIN, {"b": [np.array([0, 1, 0])]})
    assert parents_joint(DOMAIN, parts, coarse) == pytest.approx([joint[:, [0, 2]].sum(), joint[:, 1].sum()])
    assert parents_joint(DOMAIN, [], FamilyTable(Family("a"), DOMAIN, {})) == pytest.approx([1.0])
