import numpy as np
import pytest

from tests.mechanisms.door import VOTERS, door, epsilon, rho, rows_of
from tests.mechanisms.test_independent import voters
from understudy.marginals.domain import Domain
from understudy.mechanisms.auto import Auto
from understudy.mechanisms.mechanism import PublicFacts


@pytest.mark.parametrize(
    ("cells", "unit_rows", "cost", "method"),
    [
        (2_000, 1, epsilon(1), "laplace"),
        (2_001, 1, epsilon(1), "independent"),
        (2_000, 2, epsilon(1), "independent"),
        (2_000, 2, epsilon(2), "laplace"),
        (2, 1, rho(100), "independent"),
    ],
)
def test_the_stated_rule(cells, unit_rows, cost, method):
    plan = Auto().plan(PublicFacts(Domain.of({"a": cells}), (), unit_rows), cost)
    assert plan.method == method
    assert plan.notes[0] == f"auto picked {method}."


def test_a_hint_of_rows_does_not_change_the_choice():
    domain = Domain.of({"a": 100})
    plans = [Auto().plan(PublicFacts(domain, (), 1, rows_hint=rows), epsilon(1)) for rows in (None, 1, 10**9)]
    assert {plan.method for plan in plans} == {"laplace"}


def test_the_run_follows_the_plan():
    codes = rows_of(voters(200))
    assert len(Auto().run(door(codes, VOTERS, epsilon(100)), epsilon(100)).blocks) == 1
    model = Auto().run(door(codes, VOTERS, rho(100)), rho(100))
    assert len(model.blocks) == 2
    assert len(model.draw(3, np.random.default_rng(0))) == 3
