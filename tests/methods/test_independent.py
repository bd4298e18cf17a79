from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import VOTERS, door, epsilon, letters, rho, rows_of
from understudy.domain import Clique, Distribution, Domain, Measurement, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.independent import Independent, weighted_total
from understudy.methods.method import PublicFacts, facts_of
from understudy.schema import Category, Integer, Schema, Unit


def voters(rows, seed=0):
    rng = np.random.default_rng(seed)
    registered = rng.random(rows) < 0.7
    voted = registered & (rng.random(rows) < 0.6)
    return {"registered": registered.astype(int), "voted": voted.astype(int), "age": rng.integers(0, 5, rows) ** 2 // 4}


@pytest.mark.parametrize("cost", [epsilon(1e5), rho(1e5)])
def test_huge_budget_recovers_every_column_and_the_total(cost):
    codes = voters(2_000)
    curator = door(rows_of(codes), VOTERS, cost)
    model = Independent().fit(curator, cost)
    assert model.total == pytest.approx(2_000, abs=0.5)
    for name, size in (("registered", 2), ("voted", 2), ("age", 5)):
        truth = np.bincount(codes[name], minlength=size) / 2_000
        np.testing.assert_allclose(model.marginal(Clique((name,))), truth, atol=1e-6)


@pytest.mark.parametrize("currency", [epsilon, rho])
def test_the_run_spends_what_the_plan_says(currency):
    cost = currency(1)
    curator = door(rows_of(voters(50)), VOTERS, cost)
    plan = Independent().plan(facts_of(curator), cost)
    Independent().fit(curator, cost)
    assert cost - curator.left == plan.cost
    assert plan.cost.fits(cost)
    assert [charge for _, charge in curator.charges] == [step.cost for step in plan.steps]
    assert [answer.distribution.scale for answer in curator.transcript] == [step.noise_scale for step in plan.steps]
    assert plan.steps[0].noise_scale == pytest.approx(3.0 if currency is epsilon else np.sqrt(1.5))


def test_rules_are_never_broken_even_when_noise_rules():
    cost = epsilon(0.01)
    for _ in range(20):
        model = Independent().fit(door(rows_of(voters(10)), VOTERS, cost), cost)
        codes = model.draw(2_000, np.random.default_rng(0))
        assert not ((codes["registered"] == 0) & (codes["voted"] == 1)).any()


def test_error_falls_with_the_budget():
    codes = voters(3_000)
    truth = np.bincount(codes["age"], minlength=5) / 3_000
    errors = []
    for budget in (0.01, 0.1, 10):
        runs = [Independent().fit(door(rows_of(codes), VOTERS, epsilon(budget)), epsilon(budget)) for _ in range(10)]
        errors.append(np.mean([np.abs(run.marginal(Clique(("age",))) - truth).sum() for run in runs]))
    assert errors[0] > errors[1] > errors[2]


EDGES = {
    "no row": (letters({"a": 3, "b": 2}), {"a": [], "b": []}),
    "one row": (letters({"a": 3, "b": 2}), {"a": ["1"], "b": ["0"]}),
    "one column": (letters({"a": 3}), {"a": ["1", "2"]}),
    "one code": (letters({"a": 1}), {"a": ["0"] * 5}),
    "constant": (letters({"a": 3, "b": 2}), {"a": ["2"] * 9, "b": ["1"] * 9}),
    "all missing": (
        Schema(columns=(Category(name="a", labels=("x",)), Integer(name="b", lower=0, upper=9)), unit=Unit()),
        {"a": [None] * 7, "b": [None] * 7},
    ),
}


@pytest.mark.parametrize(("schema", "columns"), EDGES.values(), ids=EDGES.keys())
@pytest.mark.parametrize("cost", [epsilon(1e-3), epsilon(1e5), rho(1e-6), rho(1e5)], ids=str)
def test_edge_shapes(schema, columns, cost):
    table = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
    curator = door(table, schema, cost)
    model = Independent().fit(curator, cost)
    codes = model.draw(20, np.random.default_rng(0))
    assert all(column.max() < curator.domain.sizes[name] for name, column in codes.items())
    if cost.epsilon == epsilon(1e5).epsilon:
        assert model.total == pytest.approx(table.num_rows, abs=1e-6)


def test_weighted_total_prefers_the_less_noisy_sum():
    wide = Measurement("w", ("w",), (4,), np.array([10, 10, 10, 10]), Distribution("gaussian", Fraction(1)))
    narrow = Measurement("n", ("n",), (1,), np.array([20]), Distribution("gaussian", Fraction(1)))
    assert weighted_total([wide, narrow]) == pytest.approx((40 / 4 + 20 / 1) / (1 / 4 + 1))
    low = Measurement("n", ("n",), (1,), np.array([-5]), Distribution("gaussian", Fraction(1)))
    assert weighted_total([low]) == 0.0


def test_the_plan_refuses_what_rules_make_too_large_or_impossible():
    domain = Domain.of({"x": 10_000, "y": 10_000})
    tied = StructuralZeros(domain.everything(), np.zeros(1, dtype=bool))
    with pytest.raises(ResourceError, match="x, y"):
        Independent().plan(PublicFacts(domain, (tied,), 1), epsilon(1))
    small = Domain.of({"x": 2, "y": 2})
    nothing = StructuralZeros(small.everything(), np.ones(4, dtype=bool))
    with pytest.raises(UsageError, match="no combination"):
        Independent().plan(PublicFacts(small, (nothing,), 1), epsilon(1))


def test_a_refused_run_spends_nothing():
    curator = door(rows_of(voters(5)), VOTERS, epsilon(1))
    with pytest.raises(UsageError, match="share of the budget"):
        Independent().fit(curator, epsilon(0))
    assert curator.left == epsilon(1)


def test_options_are_checked():
    assert Independent(negatives="norm_cut").negatives == "norm_cut"
    with pytest.raises(UsageError, match="clip_rescale"):
        Independent(negatives="clip")
    with pytest.raises(UsageError, match="controlled"):
        Independent(rounding="up")


def test_controlled_rounding_gives_back_whole_counts_of_every_column():
    codes = voters(2_000)
    model = Independent(rounding="controlled").fit(door(rows_of(codes), VOTERS, epsilon(1e5)), epsilon(1e5))
    drawn = model.draw(2_000, np.random.default_rng(1))
    for name, column in codes.items():
        assert np.bincount(drawn[name]).tolist() == np.bincount(column).tolist()
