import numpy as np
import pytest

from understudy.domain import Clique, Domain, StructuralZeros
from understudy.models.tables import joint_table

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
