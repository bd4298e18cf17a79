"""PrivSyn: costs and noise by formula, the pairs it finds, rules, units, refusals."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.methods.door import VOTERS, door, epsilon, letters, rho, rows_of
from understudy.domain import SCORE_UNIT, Clique, Domain, Measurement, NoisyScores, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.method import PublicFacts, facts_of
from understudy.methods.privsyn import PrivSyn, SplitNoise, chosen_pairs, combined, steadied
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
    first, same, other = (model.codes for model in models)  # type: ignore[attr-defined]
    assert all(np.array_equal(first[name], same[name]) for name in "abcd")
    assert any(not np.array_equal(first[name], other[name]) for name in "abcd")


def test_one_column_gets_everything():
    curator = door(rows_of({"a": [0, 1, 1]}), letters({"a": 3}), rho(1.0))
    model = PrivSyn().fit(curator, rho(1.0))
    assert curator.left.rho < 10
    assert model.domain.columns == ("a",)


def test_records_are_bounded_and_bytes_are_stated():
    curator = door(rows_of(chain(3000)), CHAIN, rho(1.0))
    few = PrivSyn(most_records=1200)
    assert few.fit(curator, rho(1.0)).records == 1200  # type: ignore[attr-defined]
    facts = facts_of(curator)
    less, more = (PrivSyn(most_records=number).plan(facts, rho(1.0)).bytes for number in (10**4, 10**6))
    assert more > less > 10**4 * 4 * 6


def test_plan_costs_add_up_and_name_the_scores():
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


# Choosing pairs: the split of the cost by hand, greedy choice against all subsets, and dense groups.


RHO, PURE = Cost(rho=UNIT), Cost(epsilon=UNIT)


def test_the_vector_by_hand() -> None:
    noise = SplitNoise(RHO)
    weights = np.array([noise.weight(4), noise.weight(32)])
    np.testing.assert_allclose(weights / weights.sum(), [0.2, 0.8])
    assert noise.total(float(weights.sum())) == pytest.approx(25.2313, abs=5e-5)


@pytest.mark.parametrize(("cost", "error"), [(RHO, lambda c, s: c / np.sqrt(np.pi * s)), (PURE, lambda c, s: c / s)])
def test_no_other_split_has_less_noise(cost, error) -> None:
    noise, cells = SplitNoise(cost), np.array([4.0, 32.0])
    shares = np.linspace(0.001, 0.999, 9_999)
    least = (error(cells[0], shares) + error(cells[1], 1.0 - shares)).min()
    assert noise.total(sum(noise.weight(c) for c in cells)) == pytest.approx(least, rel=1e-6)


def test_a_unit_of_several_rows_multiplies_the_noise() -> None:
    assert SplitNoise(RHO, 3).total(8.0) == pytest.approx(3.0 * SplitNoise(RHO).total(8.0))


DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 5})
PAIRS = [Clique(pair) for pair in itertools.combinations("abcd", 2)]


@settings(max_examples=100, deadline=None)
@example([60.0, 0.0, 0.0, 0.0, 0.0, 69.0], PURE)
@given(st.lists(st.floats(-50.0, 400.0), min_size=6, max_size=6), st.sampled_from([RHO, PURE]))
def test_no_single_pair_would_improve_the_choice(scores, cost) -> None:
    given_scores = dict(zip(PAIRS, scores, strict=True))
    noise = SplitNoise(Cost(cost.epsilon // 10, cost.rho // 100))
    taken = chosen_pairs(DOMAIN, given_scores, noise, [])

    def error(chosen: list[Clique]) -> float:
        weights = sum(noise.weight(DOMAIN.cells(pair)) for pair in chosen)
        return sum(score for pair, score in given_scores.items() if pair not in chosen) + float(noise.total(weights))

    assert len(set(taken)) == len(taken)
    for pair in PAIRS:
        if pair not in taken:
            assert error([*taken, pair]) >= error(taken) - 1e-9
    for count in range(len(taken)):  # a gain below the rounding of the sums above is no gain that they could show
        assert error(taken[: count + 1]) < error(taken[:count]) + 1e-9


def test_columns_left_alone_get_their_best_pair() -> None:
    scores = dict.fromkeys(PAIRS, 1.0) | {Clique("ab"): 1000.0}
    noise = SplitNoise(Cost(rho=UNIT // 100))
    assert chosen_pairs(DOMAIN, scores, noise, []) == [Clique("ab")]
    taken = chosen_pairs(DOMAIN, scores, noise, list("abcd"))
    assert taken == [Clique("ab"), Clique("ac"), Clique("ad")], "the narrowest partner adds the least noise"


def test_penalty_weighs_the_noise() -> None:
    scores = dict.fromkeys(PAIRS, 60.0)
    noise = SplitNoise(Cost(rho=UNIT // 10))
    sizes = [len(chosen_pairs(DOMAIN, scores, noise, [], penalty=penalty)) for penalty in (0.0, 0.5, 2.0)]
    assert sizes[0] == 6
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[2] < sizes[0]


def test_dense_groups_become_tables() -> None:
    pairs = [Clique(p) for p in ("ab", "ac", "bc", "cd")]
    assert combined(DOMAIN, pairs, 5_000) == [Clique("abc"), Clique("cd")]
    assert combined(DOMAIN, pairs, 24) == pairs, "24 cells are not fewer than 24"
    assert combined(DOMAIN, pairs, 25) == [Clique("abc"), Clique("cd")]


def test_groups_share_at_most_two_columns_and_cover_every_pair() -> None:
    domain = Domain.of(dict.fromkeys("abcdefg", 2))
    pairs = [Clique(pair) for pair in itertools.combinations("abcdef", 2)] + [Clique("fg")]
    found = combined(domain, pairs, 9)
    assert max(map(len, found)) == 3
    for first, second in itertools.combinations([c for c in found if len(c) > 2], 2):
        assert len(set(first) & set(second)) <= 2
    assert all(any(set(pair) <= set(clique) for clique in found) for pair in pairs)
    assert combined(domain, pairs, 5_000)[0] == Clique("abcdef")


def test_steadied_scores_follow_what_noise_leaves() -> None:
    rng = np.random.default_rng(1)
    true = rng.normal(100.0, 30.0, 5_000)
    noisy = true + rng.normal(0.0, 60.0, 5_000)
    better = steadied(noisy, 3_600.0)
    assert np.mean((better - true) ** 2) < 0.3 * np.mean((noisy - true) ** 2)
    assert np.array_equal(np.argsort(better), np.argsort(noisy)), "only distances shrink, the order stays"
    np.testing.assert_allclose(steadied(true, 0.0), true)
    np.testing.assert_allclose(steadied(noisy, 1e9), noisy.mean())
