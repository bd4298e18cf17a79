import numpy as np
import pytest

from tests.methods.door import VOTERS, door, epsilon, letters, rho, rows_of
from tests.methods.test_independent import voters
from understudy.domain import Domain, StructuralZeros
from understudy.methods.auto import Auto
from understudy.methods.method import PublicFacts, facts_of


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
    assert plan.notes[0].startswith(f"auto picked {method}: ")


@pytest.mark.parametrize(
    ("columns", "cost", "method"), [(60, rho(0.01), "aim"), (61, rho(0.01), "mst"), (61, epsilon(1), "independent")]
)
def test_many_columns(columns, cost, method):
    domain = Domain.of({f"c{number}": 2 for number in range(columns)})
    assert Auto().plan(PublicFacts(domain, (), 1), cost).method == method


@pytest.mark.parametrize(
    ("sizes", "unit_rows", "cost", "method"),
    [
        ((4, 4, 9), 1, rho(0.3), "privsyn"),
        ((4, 4, 9), 1, rho(0.2999), "aim"),
        ((4, 4, 9), 2, rho(1.2), "privsyn"),
        ((4, 4, 9), 2, rho(1.1999), "aim"),
        ((512, 512, 2), 1, rho(1), "privsyn"),
        ((512, 513, 2), 1, rho(1), "aim"),
        ((9, 1, 1), 1, rho(1), "aim"),
        ((30, 30, 30), 1, epsilon(6), "privsyn"),
        ((30, 30, 30), 1, epsilon(5.99), "mwem"),
        ((30, 30, 30), 2, epsilon(12), "privsyn"),
        ((30, 30, 30), 2, epsilon(11.9), "mwem"),
        ((512, 513, 2), 1, epsilon(10), "mwem"),
        ((2,) * 60, 1, rho(1), "privsyn"),
        ((2,) * 61, 1, rho(1), "mst"),
        ((2,) * 61, 1, epsilon(10), "independent"),
    ],
)
def test_with_little_noise_all_pairs_are_scored_at_once(sizes, unit_rows, cost, method):
    """There privsyn is nearer to the truth than rounds of choosing, in a fraction of their time."""
    domain = Domain.of({f"c{number}": size for number, size in enumerate(sizes)})
    assert Auto().plan(PublicFacts(domain, (), unit_rows), cost).method == method


@pytest.mark.parametrize("cost", [rho(1), rho(0.01), epsilon(6), epsilon(1)], ids=str)
def test_the_pick_is_the_same_whatever_the_rows(cost):
    """An empty table, a constant one and a varied one of one schema: the runs begin with the same queries."""
    schema, queries = letters({"a": 30, "b": 30, "c": 30}), set()
    rng = np.random.default_rng(0)
    for codes in (np.zeros((3, 0), int), np.zeros((3, 40), int), rng.integers(0, 30, (3, 300))):
        curator = door(rows_of(dict(zip("abc", codes, strict=True))), schema, cost)
        Auto().fit(curator, cost)
        queries.add((Auto().plan(facts_of(curator), cost).method, tuple(curator.charges[:3])))
    assert len(queries) == 1


def test_rows_are_made_by_controlled_rounding_whatever_is_picked():
    """The other three methods of the rule have no other way; independent draws add an error that no ε takes away."""
    for cells, cost in ((2_000, epsilon(1)), (2_001, epsilon(0.49))):
        assert Auto().plan(PublicFacts(Domain.of({"a": cells}), (), 1), cost).options["rounding"] == "controlled"


def test_what_rules_tie_too_large_falls_back():
    domain = Domain.of({"a": 2000, "b": 2000})
    tied = (StructuralZeros(domain.everything(), np.eye(2000, dtype=bool).reshape(-1)),)
    assert Auto().plan(PublicFacts(domain, tied, 1), rho(1)).method == "independent"


def test_a_hint_of_rows_does_not_change_the_choice():
    domain = Domain.of({"a": 100})
    plans = [Auto().plan(PublicFacts(domain, (), 1, rows_hint=rows), epsilon(1)) for rows in (None, 1, 10**9)]
    assert {plan.method for plan in plans} == {"laplace"}


def test_the_run_follows_the_plan():
    codes = rows_of(voters(200))
    assert len(Auto().fit(door(codes, VOTERS, epsilon(100)), epsilon(100)).blocks) == 1  # type: ignore[attr-defined]
    assert Auto().fit(door(codes, VOTERS, rho(0.01)), rho(0.01)).kind == "markov_field"
    model = Auto().fit(door(codes, VOTERS, rho(100)), rho(100))
    assert model.kind == "records"
    assert len(model.draw(3, np.random.default_rng(0))) == 3
