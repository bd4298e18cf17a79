import datetime as dt
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import VOTERS, door, epsilon
from understudy.answers import Discovery, Distribution
from understudy.counts.frames import FrameTable
from understudy.errors import UsageError
from understudy.methods.independent import Independent
from understudy.methods.laplace import Laplace
from understudy.methods.preparation import (
    equal_mass_edges,
    failure_delta,
    granted_cost,
    most_frequent,
    preparation_cost,
    preparation_steps,
    prepare,
    public_facts,
)
from understudy.methods.registry import currency_for
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost
from understudy.schema import Category, Date, Float, Integer, OpenCategory, PrivateBins, Schema, Unit
from understudy.testing.doubles import SeededRandomizer

OPEN = Schema(
    columns=(
        OpenCategory(name="job", most_labels=2, missing=False),
        Integer(name="income", lower=0, upper=99_999, bins=PrivateBins(4), special=(999_999,)),
        Category(name="sex", labels=("f", "m"), missing=False),
    ),
    unit=Unit(),
)
BUDGET = Budget(50.0, 1e-9)


def people(rows=3_000):
    rng = np.random.default_rng(0)
    jobs = rng.choice(["baker", "nurse", "clerk"], rows, p=[0.5, 0.3, 0.2]).tolist()
    jobs[0] = "spy"
    income = np.where(rng.random(rows) < 0.1, 999_999, (rng.random(rows) ** 3 * 90_000).astype(int))
    return pa.table({"job": jobs, "income": pa.array(income), "sex": rng.choice(["f", "m"], rows).tolist()})


def test_shares_add_up():
    costs, rest = preparation_cost(OPEN, Cost(rho=1_000, delta=7))
    assert costs == {"job": Cost(rho=50, delta=7), "income": Cost(rho=50)}
    assert rest == Cost(rho=900)
    many = Schema(columns=tuple(OpenCategory(name=f"c{place}") for place in range(10)), unit=Unit())
    costs, rest = preparation_cost(many, Cost(epsilon=1_000, delta=100))
    assert set(costs.values()) == {Cost(epsilon=30, delta=10)}
    assert rest == Cost(epsilon=700)


def test_nothing_open_costs_nothing():
    assert preparation_cost(VOTERS, epsilon(1)) == ({}, epsilon(1))
    assert failure_delta(VOTERS, BUDGET, "zcdp") == 0
    assert preparation_steps(VOTERS, {}) == ()
    curator = door(
        pa.table({name: pa.array([], pa.string()) for name in VOTERS.names}), VOTERS, epsilon(1), fix_codec=False
    )
    assert prepare(curator, VOTERS, {}).domain == curator.domain
    assert curator.left == epsilon(1)


def test_delta_is_set_aside_by_currency():
    units = BUDGET.delta_units
    assert failure_delta(OPEN, BUDGET, "pure") == units
    assert failure_delta(OPEN, BUDGET, "zcdp") == units // 2
    assert granted_cost(OPEN, BUDGET, "pure") == Cost(epsilon=50 * UNIT, delta=units)
    assert granted_cost(OPEN, BUDGET, "zcdp").delta == units // 2
    for budget in (Budget(1.0), Budget(1.0, 1 / DELTA_UNIT)):
        with pytest.raises(UsageError, match=r"job.*delta="):
            failure_delta(OPEN, budget, "zcdp")


@pytest.mark.parametrize("method", [Independent(), Laplace()])
def test_the_whole_way(method):
    currency = currency_for(method, BUDGET, OPEN)
    granted = granted_cost(OPEN, BUDGET, currency)
    costs, rest = preparation_cost(OPEN, granted)
    curator = door(people(), OPEN, granted, SeededRandomizer(1), fix_codec=False)
    codec = prepare(curator, OPEN, costs)
    assert codec.labels["job"] == ("baker", "nurse")  # capped at two by noisy count; the spy is alone
    assert len(codec.edges["income"]) == 4
    steps = preparation_steps(OPEN, costs)
    assert [cost for _, cost in curator.charges] == [step.cost for step in steps]
    assert [answer.distribution.scale for answer in curator.transcript] == [step.noise_scale for step in steps]
    model = method.fit(curator, rest)
    shares = model.marginal(curator.domain.clique(["income"]))
    np.testing.assert_allclose(shares[:4], [0.225] * 4, atol=0.03)
    assert shares[4] == pytest.approx(0.1, abs=0.03)
    assert curator.left.fits(Cost(epsilon=10, rho=10, delta=1))
    epsilon_spent, delta_spent = BUDGET.claim(granted - curator.left)
    assert epsilon_spent <= BUDGET.epsilon
    assert delta_spent <= BUDGET.delta


def test_plans_know_the_largest_domain():
    facts = public_facts(OPEN, rows_hint=7)
    assert dict(facts.domain.sizes) == {"job": 3, "income": 6, "sex": 3}  # the last code of sex: unreadable
    assert (facts.unit_rows, facts.rows_hint, facts.structural_zeros) == (1, 7, ())


def test_empty_table_settles_all_the_same():
    empty = people(5).slice(0, 0)
    granted = granted_cost(OPEN, BUDGET, "pure")
    codec = prepare(door(empty, OPEN, granted, fix_codec=False), OPEN, preparation_cost(OPEN, granted)[0])
    assert codec.domain.sizes["job"] == 1
    assert 2 <= codec.domain.sizes["income"] <= 6


def test_private_bins_of_floats_and_dates():
    schema = Schema(
        columns=(
            Float(name="share", lower=0.0, upper=1.0, bins=PrivateBins(3)),
            Date(name="day", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 1, 5), bins=PrivateBins(9)),
        ),
        unit=Unit(),
    )
    table = pa.table({"share": [0.1] * 50 + [0.9] * 50, "day": [dt.date(2020, 1, 2)] * 100})
    granted = epsilon(100)
    curator = door(table, schema, granted, fix_codec=False)
    codec = prepare(curator, schema, preparation_cost(schema, granted)[0])
    # Three bins at most: the two values fall into different ones, whatever lies between them.
    assert 3 <= codec.domain.sizes["share"] <= 4
    assert len(set(codec.encode("share", pa.array([0.1, 0.9])).tolist())) == 2
    assert 2 <= codec.domain.sizes["day"] <= 6


def test_most_frequent_labels_break_ties_by_label():
    distribution = Distribution("laplace", Fraction(1))
    found = Discovery("discover x", "x", ("a", "b", "c", "d"), np.array([5, 9, 5, 5]), distribution, 3)
    assert most_frequent(found, 3) == ["a", "b", "c"]
    assert most_frequent(found, 9) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("noisy", "count", "edges"),
    [
        ([10, 10, 10, 10], 2, [0, 2, 4]),
        ([10, 10, 10, 10], 9, [0, 1, 2, 3, 4]),
        ([0, 90, 0, 10], 4, [0, 1, 2, 4]),
        ([100, -3, -2, -4], 3, [0, 1, 4]),
        ([-1, -1, -1, -1], 2, [0, 2, 4]),
        ([7, 7, 7, 7], 1, [0, 4]),
    ],
)
def test_edges_of_equal_mass(noisy, count, edges):
    assert equal_mass_edges([0, 1, 2, 3, 4], noisy, count) == edges


def test_private_bins_of_a_split_column_are_chosen_on_its_size():
    column = Integer(name="wage", lower=0, upper=999, bins=PrivateBins(4), split=(100, 10), missing=False)
    schema = Schema(columns=(column,), unit=Unit())
    table = pa.table({"wage": [100, 150, 500, 730] * 50})
    granted = epsilon(100)
    costs, _ = preparation_cost(schema, granted)
    curator = door(table, schema, granted, fix_codec=False)
    codec = prepare(curator, schema, costs)
    assert [cost for _, cost in curator.charges] == [step.cost for step in preparation_steps(schema, costs)]
    assert codec.domain.columns == ("wage.size", "wage.kind")
    assert len(codec.edges["wage"]) == 4
    assert public_facts(schema).domain.sizes["wage.size"] == 5  # four bins, and what cannot be read


def test_public_labels_stand_for_those_to_be_discovered():
    facts = public_facts(OPEN, public=FrameTable(people(), OPEN, memory_bytes=2**26))
    assert dict(facts.domain.sizes) == dict(public_facts(OPEN).domain.sizes)
    held = facts.public([facts.domain.clique(["job"])])[facts.domain.clique(["job"])]
    assert held[:2].min() > held[2:].max()  # the two most frequent labels are codes, the rest is other
