"""A method that pays in ε and δ: its currency, its grant, and what is left after open labels."""

import pytest

from understudy.errors import UsageError
from understudy.methods.dpwgan import DpWgan
from understudy.methods.independent import Independent
from understudy.methods.preparation import granted_cost, preparation_cost
from understudy.methods.registry import currency_for
from understudy.privacy.cost import Budget, Cost
from understudy.testing import cases as tables


def test_it_is_kept_in_the_pure_currency_and_needs_delta() -> None:
    assert DpWgan().spends_delta
    assert not Independent().spends_delta
    assert currency_for(DpWgan(), Budget(1.0, 1e-6)) == "pure"
    with pytest.raises(UsageError, match="δ above 0"):
        currency_for(DpWgan(), Budget(1.0))


def test_all_of_epsilon_and_delta_is_granted() -> None:
    budget = Budget(1.0, 1e-6)
    granted = granted_cost(tables.small(), budget, "pure", spends_delta=True)
    assert granted == Cost(epsilon=budget.epsilon_units, delta=budget.delta_units)
    assert preparation_cost(tables.small(), granted, spends_delta=True) == ({}, granted)


def test_open_labels_take_half_of_delta() -> None:
    budget = Budget(1.0, 1e-6)
    granted = granted_cost(tables.open_labels(), budget, "pure", spends_delta=True)
    costs, rest = preparation_cost(tables.open_labels(), granted, spends_delta=True)
    assert costs["job"].delta == budget.delta_units // 2
    assert rest.delta + costs["job"].delta == budget.delta_units
    assert rest.epsilon + costs["job"].epsilon == budget.epsilon_units


def test_other_methods_are_granted_as_before() -> None:
    budget = Budget(1.0, 1e-6)
    assert granted_cost(tables.small(), budget, "pure") == Cost(epsilon=budget.epsilon_units)
    costs, rest = preparation_cost(tables.open_labels(), granted_cost(tables.open_labels(), budget, "pure"))
    assert costs["job"].delta == budget.delta_units
    assert rest.delta == 0
