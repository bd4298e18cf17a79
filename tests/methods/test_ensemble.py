"""Ensemble: costs and noise by formula, what it keeps, rules, units, pooling, refusals."""

import numpy as np
import pytest

from tests.methods.door import VOTERS, door, letters, rho, rows_of
from tests.methods.test_privsyn import CHAIN, chain
from understudy.domain import SCORE_UNIT, Clique, Domain, Measurement, NoisyScores, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.ensemble import MixtureEnsemble
from understudy.methods.method import PublicFacts, facts_of
from understudy.privacy.cost import Cost
from understudy.privacy.scores import WEIGHT_UNIT
from understudy.schema import Unit
from understudy.testing.doubles import NoNoise, SeededRandomizer

QUICK = MixtureEnsemble(components=20, steps=100)
ALL_CODES = MixtureEnsemble(threshold=0.0, components=5, steps=10)


def answers_about(curator, columns):
    return [answer for answer in curator.transcript.of(Measurement) if len(answer.columns) == columns]


def test_costs_add_up_and_noise_follows_from_them():
    cost = rho(1.0)
    curator = door(rows_of(chain(20_000)), CHAIN, cost)
    QUICK.fit(curator, cost)
    (total,) = answers_about(curator, 0)
    assert total.distribution.variance == pytest.approx(1 / (2 * 0.005), rel=1e-6)
    ones = sum(1 / (2 * answer.distribution.variance) for answer in answers_about(curator, 1))
    assert 0.25 <= ones <= 0.26, "little noise beside so many rows: the least share and hardly more"
    (scores,) = curator.transcript.of(NoisyScores)
    assert scores.sensitivity == SCORE_UNIT * WEIGHT_UNIT, "one row moves a score by one"
    assert scores.distribution.variance / (SCORE_UNIT * WEIGHT_UNIT) ** 2 == pytest.approx(6 / (2 * 0.03), rel=1e-6)
    pairs = sum(1 / (2 * answer.distribution.variance) for answer in answers_about(curator, 2))
    assert ones + pairs + 0.035 == pytest.approx(1.0, rel=1e-6)
    assert curator.left.rho < 100


def test_columns_get_more_where_noise_is_large_beside_the_rows():
    cost = rho(0.001)
    curator = door(rows_of(chain(300)), CHAIN, cost, NoNoise())
    ALL_CODES.fit(curator, cost)
    ones = sum(1 / (2 * answer.distribution.variance) for answer in answers_about(curator, 1))
    assert ones / 0.001 == pytest.approx(0.5, rel=1e-3)
    assert curator.left.rho < 100


def test_pairs_are_kept():
    cost, exact = rho(0.5), chain(20_000)
    model = QUICK.fit(door(rows_of(exact), CHAIN, cost, SeededRandomizer(1)), cost)
    for pair in ("ab", "bc", "ac", "ad"):
        table = np.bincount(exact[pair[0]] * 4 + exact[pair[1]], minlength=16) / 20_000
        assert np.abs(model.marginal(Clique(pair)) - table).sum() / 2 < 0.02


def test_a_pair_that_was_not_measured_follows_from_those_that_were():
    """a – b – c: the mixtures know a × c from a × b and b × c; independence would be off by a third."""
    cost, exact = rho(0.01), chain(20_000)
    curator = door(rows_of(exact), CHAIN, cost, SeededRandomizer(3))
    model = QUICK.fit(curator, cost)
    table = np.bincount(exact["a"] * 4 + exact["c"], minlength=16) / 20_000
    assert np.abs(model.marginal(Clique("ac")) - table).sum() / 2 < 0.1


def test_rules_hold_whatever_the_noise():
    for budget in (0.00001, 0.001, 10.0):
        rows = rows_of({"registered": [0, 1, 1], "voted": [0, 1, 0], "age": [0, 3, 4]})
        model = QUICK.fit(door(rows, VOTERS, rho(budget)), rho(budget))
        assert model.marginal(Clique(("registered", "voted")))[1] == 0.0


def test_rare_codes_are_pooled_and_come_back():
    schema = letters({"a": 40, "b": 3})
    rng = np.random.default_rng(0)
    a = np.where(rng.random(5000) < 0.9, rng.integers(0, 3, 5000), rng.integers(3, 40, 5000))
    curator = door(rows_of({"a": a, "b": rng.integers(0, 3, 5000)}), schema, rho(0.01), SeededRandomizer(2))
    model = QUICK.fit(curator, rho(0.01))
    (pair,) = answers_about(curator, 2)
    assert pair.values.size < 40 * 3
    assert model.domain.sizes["a"] == 40
    assert (model.marginal(Clique("a"))[3:] > 0).sum() > 5


def test_codes_are_pooled_until_all_fit():
    schema = letters({"a": 30, "b": 30, "c": 3})
    rng = np.random.default_rng(0)
    codes = {"a": rng.integers(0, 30, 3000), "b": rng.integers(0, 30, 3000), "c": rng.integers(0, 3, 3000)}
    curator = door(rows_of(codes), schema, rho(100.0), NoNoise())
    MixtureEnsemble(components=5, steps=10, most_codes=20).fit(curator, rho(100.0))
    assert sum(curator.domain.sizes.values()) <= 20


def test_a_unit_of_several_rows_gets_more_noise():
    schema = letters({"a": 3, "b": 3}, unit=Unit(column="who", rows=3))
    rows = rows_of({"a": [0, 1, 2], "b": [0, 1, 1]}).append_column("who", [["x", "x", "y"]])
    curator = door(rows, schema, rho(1.0), NoNoise())
    ALL_CODES.fit(curator, rho(1.0))
    (scores,) = curator.transcript.of(NoisyScores)
    assert scores.sensitivity == 3 * SCORE_UNIT * WEIGHT_UNIT
    (total,) = answers_about(curator, 0)
    assert total.distribution.variance == pytest.approx(9 / (2 * 0.005), rel=1e-6)


def test_one_column_gets_everything():
    curator = door(rows_of({"a": [0, 1, 1]}), letters({"a": 3}), rho(1.0))
    model = QUICK.fit(curator, rho(1.0))
    assert curator.left.rho < 10
    assert model.domain.columns == ("a",)


def test_where_noise_leaves_one_code_each_the_columns_are_measured_again():
    curator = door(rows_of(chain(10)), CHAIN, rho(1e-8), SeededRandomizer(5))
    model = MixtureEnsemble(threshold=1e9, components=5, steps=10).fit(curator, rho(1e-8))
    assert curator.left.rho < 10
    assert set(model.domain.sizes.values()) == {4}


def test_one_seed_one_model_and_another_seed_another():
    codes = rows_of(chain(1500))
    models = [
        MixtureEnsemble(components=10, steps=20, structure_seed=seed).fit(
            door(codes, CHAIN, rho(1.0), NoNoise()), rho(1.0)
        )
        for seed in (1, 1, 2)
    ]
    first, same, other = (model.codes for model in models)  # type: ignore[attr-defined]
    assert all(np.array_equal(first[name], same[name]) for name in "abcd")
    assert any(not np.array_equal(first[name], other[name]) for name in "abcd")


def test_the_plan_is_what_is_spent():
    curator = door(rows_of(chain(500)), CHAIN, rho(1.0))
    plan = QUICK.plan(facts_of(curator), rho(1.0))
    assert plan.cost == sum((step.cost for step in plan.steps), Cost()) == rho(1.0)
    assert not plan.fixed, "what columns and pairs cost depends on answers"


def test_large_tables_are_fitted_with_fewer_and_smaller_mixtures():
    fitting, members = MixtureEnsemble()._fitting(200, 500)
    assert (fitting.components, members) == (200, 3)
    smaller, fewer = MixtureEnsemble()._fitting(2000, 500)
    assert smaller.components < 200
    assert fewer == 2


def test_rules_over_too_many_codes_are_refused_before_anything_is_asked():
    domain = Domain.of({"a": 6000, "b": 3000})
    mask = np.zeros(domain.cells("ab"), dtype=bool)
    mask[0] = True
    facts = PublicFacts(domain, (StructuralZeros(Clique("ab"), mask),), 1)
    with pytest.raises(ResourceError):
        MixtureEnsemble().plan(facts, rho(1.0))


def test_shares_must_leave_something_for_pairs():
    with pytest.raises(UsageError):
        MixtureEnsemble(one_way_share=0.49)
