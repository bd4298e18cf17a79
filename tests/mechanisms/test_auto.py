import numpy as np
import pytest

from tests.mechanisms.door import VOTERS, door, epsilon, rho, rows_of
from tests.mechanisms.test_independent import voters
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.mechanisms.auto import Auto
from understudy.mechanisms.mechanism import PublicFacts


@pytest.mark.parametrize(
    ("cells", "unit_rows", "cost", "method"),
    [
        (2_000, 1, epsilon(1), "laplace"),
        (2_001, 1, epsilon(1), "mwem"),
        (2_001, 1, epsilon(0.49), "independent"),
        (2_000, 2, epsilon(1), "mwem"),
        (2_001, 3, epsilon(1), "independent"),
        (2_000, 2, epsilon(2), "laplace"),
        (2, 1, rho(100), "aim"),
    ],
)
def test_the_stated_rule(cells, unit_rows, cost, method):
    plan = Auto().plan(PublicFacts(Domain.of({"a": cells}), (), unit_rows), cost)
    assert plan.method == method
    assert plan.notes[0] == f"auto picked {method}."


@pytest.mark.parametrize(
    ("columns", "cost", "method"), [(60, rho(1), "aim"), (61, rho(1), "mst"), (61, epsilon(1), "independent")]
)
def test_many_columns(columns, cost, method):
    domain = Domain.of({f"c{number}": 2 for number in range(columns)})
    assert Auto().pick(PublicFacts(domain, (), 1), cost).name == method


def test_rows_are_made_by_controlled_rounding_whatever_is_picked():
    """The other three methods of the rule have no other way; independent draws add an error that no ε takes away."""
    for cells, cost in ((2_000, epsilon(1)), (2_001, epsilon(0.49))):
        assert Auto().plan(PublicFacts(Domain.of({"a": cells}), (), 1), cost).options["rounding"] == "controlled"


def test_what_rules_tie_too_large_falls_back():
    domain = Domain.of({"a": 2000, "b": 2000})
    tied = (Forbidden(domain.everything(), np.eye(2000, dtype=bool).reshape(-1)),)
    assert Auto().pick(PublicFacts(domain, tied, 1), rho(1)).name == "independent"


def test_a_hint_of_rows_does_not_change_the_choice():
    domain = Domain.of({"a": 100})
    plans = [Auto().plan(PublicFacts(domain, (), 1, rows_hint=rows), epsilon(1)) for rows in (None, 1, 10**9)]
    assert {plan.method for plan in plans} == {"laplace"}


def test_the_run_follows_the_plan():
    codes = rows_of(voters(200))
    assert len(Auto().run(door(codes, VOTERS, epsilon(100)), epsilon(100)).blocks) == 1
    model = Auto().run(door(codes, VOTERS, rho(100)), rho(100))
    assert model.kind == "markov_field"
    assert len(model.draw(3, np.random.default_rng(0))) == 3
