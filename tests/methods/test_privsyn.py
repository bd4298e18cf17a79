"""PrivSyn: costs and noise by formula, the pairs it finds, rules, units, refusals."""

import numpy as np
import pytest

from tests.methods.door import VOTERS, door, epsilon, letters, rho, rows_of
from understudy.answers import SCORE_UNIT, Measurement, NoisyScores
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.method import PublicFacts, facts_of
from understudy.methods.privsyn import PrivSyn
from understudy.privacy.cost import UNIT, Cost
from understudy.schema import Unit
from understudy.testing.doubles import NoNoise, SeededRandomizer

SOURCE = PrivSyn(one_way_share=0.1, threshold=3.0)
CHAIN = letters({"a": 4, "b": 4, "c": 4, "d": 4})


def chain(rows, seed=0):
    """b copies a four times out of five, c likewise b, and d is on its own."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, rows)
    b = np.where(rng.random(rows) < 0.8, a, rng.integers(0, 4, rows))
    c = np.where(rng.random(rows) < 0.8, b, rng.integers(0, 4, rows))
    return {"a": a, "b": b, "c": c, "d": rng.integers(0, 4, rows)}


def tables_of(curator):
    return [answer for answer in curator.transcript.of(Measurement) if len(answer.columns) > 1]


def test_noise_is_that_of_the_source():
    cost = rho(1.0)
    curator = door(rows_of(chain(500)), CHAIN, cost)
    SOURCE.fit(curator, cost)
    ones = [answer for answer in curator.transcript.of(Measurement) if len(answer.columns) == 1]
    assert [answer.distribution.variance for answer in ones] == pytest.approx([4 / (2 * 0.1)] * 4, rel=1e-6)
    (scores,) = curator.transcript.of(NoisyScores)
    assert scores.distribution.variance / SCORE_UNIT**2 == pytest.approx(8 * 6 / 0.1, rel=1e-6)
    tables = tables_of(curator)
    assert sum(1 / (2 * answer.distribution.variance) for answer in tables) == pytest.approx(0.8, rel=1e-6)
    assert curator.left.rho < 100


def test_tables_share_by_cells_to_the_two_thirds():
    schema = letters({"a": 2, "b": 2, "c": 16})
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 4000)
    codes = {"a": a, "b": a, "c": a * 8 + rng.integers(0, 8, 4000)}
    curator = door(rows_of(codes), schema, rho(1.0), NoNoise())
    PrivSyn(threshold=0.0).fit(curator, rho(1.0))
    costs = {answer.shape: 1 / answer.distribution.variance for answer in tables_of(curator)}
    assert costs[(2, 16)] / costs[(2, 2)] == pytest.approx(4.0, rel=1e-4), "8 times the cells, 8^(2/3) = 4"


def test_strong_pairs_are_measured_and_weak_ones_left_out():
    cost = rho(0.5)
    curator = door(rows_of(chain(20_000)), CHAIN, cost, SeededRandomizer(1))
    model = PrivSyn().fit(curator, cost)
    pairs = {answer.columns for answer in tables_of(curator)}
    assert {("a", "b"), ("b", "c")} <= pairs
    assert {name for pair in pairs for name in pair} == set("abcd"), "a column left alone is joined"
    exact = chain(20_000)
    table = np.bincount(exact["a"] * 4 + exact["b"], minlength=16) / 20_000
    assert np.abs(model.marginal(Clique("ab")) - table).sum() / 2 < 0.02


def test_larger_tables_if_asked_for():
    cost = rho(5.0)
    curator = door(rows_of(chain(20_000)), CHAIN, cost, SeededRandomizer(1))
    PrivSyn(clique_cells=100).fit(curator, cost)
    tables = [set(answer.columns) for answer in tables_of(curator)]
    assert max(map(len, tables)) == 3, "64 cells are fewer than 100, 256 are not"
    assert any({"a", "b"} <= names for names in tables)


def test_pure_noise_is_laplace_and_shares_by_roots():
    cost = epsilon(2.0)
    curator = door(rows_of(chain(3000)), CHAIN, cost)
    PrivSyn().fit(curator, cost)
    assert {answer.distribution.kind for answer in curator.transcript.of(Measurement)} == {"laplace"}
    (scores,) = curator.transcript.of(NoisyScores)
    assert float(scores.distribution.parameter) / SCORE_UNIT == pytest.approx(6 * 4 / 0.2)
    assert curator.left.epsilon < 100


def test_a_unit_of_several_rows_gets_more_noise():
    schema = letters({"a": 3, "b": 3, "c": 3}, unit=Unit(column="who", rows=3))
    rows = rows_of({"a": [0, 1, 2], "b": [0, 1, 1], "c": [0, 0, 2]})
    rows = rows.append_column("who", [["x", "x", "y"]])
    curator = door(rows, schema, rho(1.0))
    PrivSyn().fit(curator, rho(1.0))
    (scores,) = curator.transcript.of(NoisyScores)
    assert scores.sensitivity == 12 * SCORE_UNIT


@pytest.mark.parametrize("update", ["sweeps", "gradual", "both"])
def test_rules_hold_whatever_the_noise(update):
    curator = door(rows_of({"registered": [0, 1, 1], "voted": [0, 1, 0], "age": [0, 3, 4]}), VOTERS, rho(0.001))
    model = PrivSyn(update=update, rounds=5).fit(curator, rho(0.001))
    assert model.marginal(Clique(("registered", "voted")))[1] == 0.0


def test_one_seed_one_model_and_another_seed_another():
    codes = rows_of(chain(1500))
    models = [PrivSyn(structure_seed=seed).fit(door(codes, CHAIN, rho(1.0), NoNoise()), rho(1.0)) for seed in (1, 1, 2)]
    assert all(np.array_equal(models[0].codes[name], models[1].codes[name]) for name in "abcd")
    assert any(not np.array_equal(models[0].codes[name], models[2].codes[name]) for name in "abcd")


def test_one_column_gets_everything():
    curator = door(rows_of({"a": [0, 1, 1]}), letters({"a": 3}), rho(1.0))
    model = PrivSyn().fit(curator, rho(1.0))
    assert curator.left.rho < 10
    assert model.domain.columns == ("a",)


def test_records_are_bounded_and_bytes_are_stated():
    curator = door(rows_of(chain(3000)), CHAIN, rho(1.0))
    few = PrivSyn(most_records=1200)
    assert few.fit(curator, rho(1.0)).records == 1200
    facts = facts_of(curator)
    less, more = (PrivSyn(most_records=number).plan(facts, rho(1.0)).bytes for number in (10**4, 10**6))
    assert more > less > 10**4 * 4 * 6


def test_plan_prices_add_up_and_name_the_scores():
    facts = PublicFacts(Domain.of({"a": 2, "b": 3, "c": 200}), (), 1, 1000)
    plan = PrivSyn().plan(facts, rho(1.0))
    assert plan.cost.fits(rho(1.0))
    assert plan.cost.rho > 0.999 * UNIT
    assert any(step.name == "score 3 pairs" for step in plan.steps)


def test_rules_that_tie_too_much_are_refused_in_advance():
    sizes = dict.fromkeys("abcd", 200)
    rule = StructuralZeros(Clique("abcd"), np.zeros(1, dtype=bool))
    with pytest.raises(ResourceError):
        PrivSyn().plan(PublicFacts(Domain.of(sizes), (rule,), 1, None), rho(1.0))


def test_pairs_beyond_table_cells_are_no_candidates():
    facts = PublicFacts(Domain.of({"a": 2, "b": 300, "c": 300}), (), 1, 1000)
    plan = PrivSyn(table_cells=1000).plan(facts, rho(1.0))
    assert any(step.name == "score 2 pairs" for step in plan.steps)


@pytest.mark.parametrize(
    "options",
    [
        {"one_way_share": 0.0},
        {"one_way_share": 0.6, "selection_share": 0.5},
        {"threshold": -1.0},
        {"penalty": float("nan")},
        {"clique_cells": -1},
        {"table_cells": 2.5},
        {"update": "slowly"},
        {"rounds": -1},
        {"sweeps": 1.5},
        {"most_records": 0},
        {"structure_seed": -1},
    ],
)
def test_options_are_checked(options):
    with pytest.raises(UsageError):
        PrivSyn(**options)


def test_nothing_is_charged_for_a_refusal():
    curator = door(rows_of({"a": [0]}), letters({"a": 2}), Cost())
    with pytest.raises(UsageError):
        PrivSyn().fit(curator, Cost())
    assert not curator.charges
