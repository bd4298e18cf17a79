import numpy as np
import pytest

from tests.methods.door import VOTERS, door, epsilon, letters, rho, rows_of
from tests.methods.test_mst import CHAIN, EDGES, ROW, chain
from understudy.domain import Measurement, Selection
from understudy.errors import UsageError
from understudy.methods.method import facts_of
from understudy.methods.mwem import Mwem
from understudy.privacy.cost import Cost
from understudy.schema import Schema, Unit
from understudy.testing.doubles import NoNoise, SeededRandomizer

PUBLISHED = {"one_way_share": 0, "rounds": 10}


def test_the_published_rounds_have_the_published_noise():
    """ρ = 1 for the rounds; the number of rows is bought on top, because it may not be read."""
    cost = rho(1 / 0.99)
    curator = door(rows_of(chain(300)), CHAIN, cost)
    Mwem(**PUBLISHED).fit(curator, cost)
    total, *tables = curator.transcript.of(Measurement)
    assert total.name == "total"
    assert [answer.distribution.scale for answer in tables] == pytest.approx([2.3570] * 10, abs=1e-4)
    rates = [2.0 * float(draw.rate * ROW) for draw in curator.transcript.of(Selection)]
    assert rates == pytest.approx([0.28284] * 10, abs=1e-5)
    assert curator.left == Cost()


def test_the_pure_form_splits_epsilon():
    cost = epsilon(1 / 0.99)
    curator = door(rows_of(chain(300)), CHAIN, cost)
    Mwem(**PUBLISHED).fit(curator, cost)
    tables = curator.transcript.of(Measurement)[1:]
    assert [(answer.distribution.kind, answer.distribution.scale) for answer in tables] == [
        ("laplace", pytest.approx(1 / 0.09))
    ] * 10
    rates = [2.0 * float(draw.rate * ROW) for draw in curator.transcript.of(Selection)]
    assert rates == pytest.approx([0.01] * 10, rel=1e-9)
    assert curator.left == Cost()


@pytest.mark.parametrize("cost", [epsilon(1), rho(0.1)], ids=str)
def test_the_run_spends_what_the_plan_says(cost):
    curator = door(rows_of(chain(100)), CHAIN, cost)
    plan = Mwem().plan(facts_of(curator), cost)
    Mwem().fit(curator, cost)
    assert plan.cost.fits(cost)
    spent = sum((part for _, part in curator.charges), Cost())
    assert spent == cost
    assert (spent - plan.cost).fits(Cost(100, 100))
    assert len(curator.transcript.of(Selection)) == 8


def test_a_table_is_chosen_only_if_its_error_exceeds_its_noise():
    """The wide pair has the larger error by far, but even more noise; the small one is worth measuring."""
    rng = np.random.default_rng(2)
    codes = {"a": rng.integers(0, 2, 100), "u": rng.integers(0, 50, 100)}
    codes["b"], codes["v"] = codes["a"], (codes["u"] + rng.integers(0, 50, 100)) % 50
    schema = letters({"a": 2, "b": 2, "u": 50, "v": 50})
    curator = door(rows_of(codes), schema, rho(0.05), NoNoise())
    Mwem(workload="a×b, u×v", rounds=1).fit(curator, rho(0.05))
    assert curator.transcript.of(Measurement)[-1].columns == ("a", "b")
    rich = door(rows_of(codes), schema, rho(5000), NoNoise())
    Mwem(workload="a×b, u×v", rounds=1).fit(rich, rho(5000))
    assert rich.transcript.of(Measurement)[-1].columns == ("u", "v")


def test_size_limit_grows_with_the_rounds_and_is_met():
    cost = rho(100)
    curator = door(rows_of(chain(2_000)), CHAIN, cost)
    model = Mwem(model_bytes=1_024, rounds=6).fit(curator, cost)
    assert sum(table.nbytes for table in model.tables) <= 1_024  # type: ignore[attr-defined]
    small = door(rows_of({"a": [1], "b": [2]}), letters({"a": 30, "b": 30}), cost)
    Mwem(model_bytes=1_024, rounds=2).fit(small, cost)
    assert {len(answer.columns) for answer in small.transcript.of(Measurement)} == {1}  # no pair fits: columns again
    assert small.left == Cost()


def test_dependence_is_reproduced_and_rules_hold():
    cost, codes = epsilon(20), chain(3_000)
    curator = door(rows_of(codes), CHAIN, cost, SeededRandomizer(1))
    model = Mwem().fit(curator, cost)
    truth = np.bincount(codes["a"] * 4 + codes["b"], minlength=16) / 3_000
    assert np.abs(model.marginal(curator.domain.clique("ab")) - truth).sum() < 0.1
    voters = door(rows_of({"registered": [1], "voted": [0], "age": [3]}), VOTERS, epsilon(0.01))
    drawn = Mwem().fit(voters, epsilon(0.01)).draw(1_000, np.random.default_rng(0))
    assert not ((drawn["registered"] == 0) & (drawn["voted"] == 1)).any()


@pytest.mark.parametrize(("schema", "columns"), EDGES.values(), ids=EDGES.keys())
@pytest.mark.parametrize("cost", [rho(1e-9), rho(1e5), epsilon(1e-4), epsilon(1e5)], ids=str)
@pytest.mark.parametrize("share", [0.4, 0])
def test_edge_shapes(schema, columns, cost, share):
    curator = door(rows_of(columns), schema, cost)
    model = Mwem(one_way_share=share).fit(curator, cost)
    drawn = model.draw(20, np.random.default_rng(0))
    assert all(column.max() < curator.domain.sizes[name] for name, column in drawn.items())
    assert curator.left.fits(cost.share(0.01))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"workload": ""}, "workload"),
        ({"rounds": -1}, "rounds"),
        ({"one_way_share": -0.1}, "one_way_share"),
        ({"selection_share": 1}, "selection_share"),
        ({"model_bytes": 0}, "model_bytes"),
    ],
)
def test_options_are_checked(options, named):
    with pytest.raises(UsageError, match=named):
        Mwem(**options)


def test_units_of_several_rows_scale_the_noise():
    schema = Schema(columns=CHAIN.columns, unit=Unit(column="person", rows=3))
    codes = chain(50)
    table = rows_of({**codes, "person": np.arange(50) // 3})
    curator = door(table, schema, epsilon(1))
    Mwem().fit(curator, epsilon(1))
    plain = door(rows_of(codes), CHAIN, epsilon(1))
    Mwem().fit(plain, epsilon(1))
    scales = [[answer.distribution.scale for answer in c.transcript.of(Measurement)] for c in (curator, plain)]
    assert scales[0] == pytest.approx([3 * scale for scale in scales[1]])
